package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// What information_schema shows of functions.

// routine is a function with its name that no other one has.
type routine struct {
	*builtin.Proc
	specific string
	user     *catalog.RoutineDescriptor // nil: PostgreSQL's own
}

// owned reports whether the reader has the privileges of the routine's owner, and sees its body.
func (r *routine) owned(s *scan) bool {
	if r.user != nil {
		return s.access().Owns(r.user.OwnerOID())
	}
	return s.access().Owns(ownerOID)
}

// eachRoutine calls f with the functions that the reader is shown: those it may execute.
func (s *scan) eachRoutine(f func(r *routine) error) error {
	owns := s.access().Owns(ownerOID)
	for _, p := range builtin.Procs() {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if !owns && s.access().Object(acl.Function, p.Signature, acl.Execute) == 0 {
			continue
		}
		if err := f(&routine{p, builtin.NameWithOID(p.Name, p.OID), nil}); err != nil {
			return err
		}
	}
	for _, d := range s.Routines().All() {
		if !s.access().Owns(d.OwnerOID()) && s.access().Routine(d, acl.Execute) == 0 {
			continue
		}
		if err := f(&routine{userProc(s.Resolver, d, s.view), builtin.NameWithOID(d.Name, d.OID()), d}); err != nil {
			return err
		}
	}
	return nil
}

func routineRows(s *scan) error {
	return s.eachRoutine(func(r *routine) error {
		owns := r.owned(s)
		ret := types.Type{OID: r.Ret, Mod: -1}
		if r.user != nil {
			ret = r.user.Ret
		}
		cols := append(s.named("specific", r.Schema(), r.specific), s.named("routine", r.Schema(), r.Name)...)
		if r.Kind != 'p' {
			cols = append(cols, s.named("type_udt", s.typeSchema(ret), ret.Info().Name)...)
			cols = append(cols, col{"data_type", text(dataType(ret))}, col{"dtd_identifier", text("0")})
		}
		cols = append(cols, col{"parameter_style", text("GENERAL")},
			col{"is_deterministic", yesNo(r.Value("provolatile") == "i")}, col{"sql_data_access", text("MODIFIES")},
			col{"is_null_call", yesNo(r.Value("proisstrict") == "t")}, col{"schema_level_routine", yesNo(true)}, col{"max_dynamic_result_sets", num(0)},
			col{"as_locator", yesNo(false)}, col{"is_udt_dependent", yesNo(false)})
		switch r.Kind {
		case 'f':
			cols = append(cols, col{"routine_type", text("FUNCTION")})
		case 'p':
			cols = append(cols, col{"routine_type", text("PROCEDURE")})
		}
		body, language := "EXTERNAL", "INTERNAL"
		if r.Value("prolang") == "14" {
			body, language = "SQL", "SQL"
		} else if r.user != nil && r.user.Language != "internal" {
			language = strings.ToUpper(r.user.Language)
		}
		security := "INVOKER"
		if r.Value("prosecdef") == "t" {
			security = "DEFINER"
		}
		if source := r.Value("prosrc"); owns && source != pgdata.Null {
			cols = append(cols, col{"routine_definition", text(source)})
		}
		return s.emit(append(cols, col{"routine_body", text(body)}, col{"external_language", text(language)}, col{"security_type", text(security)})...)
	})
}

// parameterModes are the modes of parameters as the view has them.
var parameterModes = map[byte]string{'i': "IN", 'o': "OUT", 'b': "INOUT", 'v': "IN", 't': "OUT"}

func parameterRows(s *scan) error {
	return s.eachRoutine(func(r *routine) error {
		owns := r.owned(s)
		for i, p := range r.Parameters() {
			cols := append(s.named("specific", r.Schema(), r.specific), s.named("udt", s.typeSchema(p.Type), p.Type.Info().Name)...)
			cols = append(cols, col{"ordinal_position", num(i + 1)}, col{"parameter_mode", text(parameterModes[p.Mode])}, col{"is_result", yesNo(false)},
				col{"as_locator", yesNo(false)}, col{"parameter_name", optional(p.Name)}, col{"data_type", text(dataType(p.Type))},
				col{"dtd_identifier", text(formatInt(int64(i + 1)))})
			if owns {
				cols = append(cols, col{"parameter_default", optional(p.Default)})
			}
			if err := s.emit(cols...); err != nil {
				return err
			}
		}
		return nil
	})
}

func routinePrivilegeRows(s *scan) error { return s.routinePrivileges(everybody) }
func roleRoutineGrantRows(s *scan) error { return s.routinePrivileges(enabledRoles) }

// routinePrivileges lists the privileges on functions.
func (s *scan) routinePrivileges(to audience) error {
	for _, p := range builtin.Procs() {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		list := s.Grants().EffectiveObjectACL(acl.Function, p.Signature)
		err := s.grantRow(to, list, ownerOID, acl.Execute, func(grant []col) error {
			cols := append(grant, s.named("specific", p.Schema(), builtin.NameWithOID(p.Name, p.OID))...)
			return s.emit(append(cols, s.named("routine", p.Schema(), p.Name)...)...)
		})
		if err != nil {
			return err
		}
	}
	for _, d := range s.Routines().All() {
		err := s.grantRow(to, d.EffectiveACL(), d.OwnerOID(), acl.Execute, func(grant []col) error {
			cols := append(grant, s.named("specific", d.Schema, builtin.NameWithOID(d.Name, d.OID()))...)
			return s.emit(append(cols, s.named("routine", d.Schema, d.Name)...)...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isArray reports whether information_schema calls a type an array: vectors are.
func isArray(t types.Type) bool {
	info := t.Info()
	return info.Elem != 0 && info.Len == -1
}

// dataType names a type as information_schema does. The type of a domain is that below it where the view does not show the domain.
func dataType(t types.Type) string {
	switch {
	case isArray(t):
		return "ARRAY"
	case t.Def != nil:
		return "USER-DEFINED"
	}
	return strings.TrimPrefix(builtin.TypeName(t.Base()), "pg_catalog.")
}
