package pgcatalog

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// The routines that users have defined, as the catalogs show them.

// userProc returns a routine as pg_proc has it. view prints a body in SQL's standard form; nil, or one that cannot be bound: it is as it is stored.
func userProc(r catalog.Resolver, d *catalog.RoutineDescriptor, view catalog.SystemView) *builtin.Proc {
	body := d.Body
	if d.Standard && view != nil {
		if text, err := view.RoutineText(background(), r, d); err == nil {
			body = text
		}
	}
	return builtin.NewUserProc(builtin.UserProc{
		Routine: d.Routine(), Body: body, Standard: d.Standard, SecurityDefiner: d.SecurityDefiner, Config: d.Config, Visible: routineVisible(r, d),
		TypeName: func(t types.Type) string { return shownType(r, t) },
	})
}

// shownType prints a type without its modifier, as the search path shortens its name.
func shownType(r catalog.Resolver, t types.Type) string {
	if name, ok := typeName(r, t.OID); ok {
		return name
	}
	return builtin.TypeName(t)
}

// routineVisible reports whether the search path finds a routine: no schema before its own has one with the same name and arguments.
func routineVisible(r catalog.Resolver, d *catalog.RoutineDescriptor) bool {
	for _, schema := range catalog.Path(r) {
		switch {
		case schema == d.Schema:
			return true
		case schema == catalog.SystemSchema:
			for _, p := range builtin.ProcsNamed(d.Name) {
				if p.Schema() == schema && slices.EqualFunc(p.Args, d.InputTypes(), func(oid types.OID, t types.Type) bool { return oid == t.OID }) {
					return false
				}
			}
		case r.Routines().Find(schema, d.Name, d.InputTypes()) != nil:
			return false
		}
	}
	return false
}

// userProcs returns the routines with a name in the schemas of a path.
func userProcs(r catalog.Resolver, path []string, name string) (found []*builtin.Proc) {
	for _, d := range r.Routines().Named(name) {
		if slices.Contains(path, d.Schema) {
			found = append(found, userProc(r, d, nil))
		}
	}
	return found
}

// userRoutine returns the routine with an OID, nil if there is none.
func (o *Objects) userRoutine(id types.OID) *catalog.RoutineDescriptor {
	if r := o.Resolver(); r != nil && id >= types.FirstUserOID {
		return r.Routines().ByOID(id)
	}
	return nil
}

// Routine implements builtin.Catalog.
func (o *Objects) Routine(id types.OID) *builtin.Proc {
	if d := o.userRoutine(id); d != nil {
		return userProc(o.Resolver(), d, o.View)
	}
	return nil
}

// userRoutineName is RoutineName for a routine of a user.
func (o *Objects) userRoutineName(id types.OID, withTypes bool) (string, bool) {
	d := o.userRoutine(id)
	if d == nil {
		return "", false
	}
	r := o.Resolver()
	name := keyword.QuoteIdent(d.Name)
	visible := routineVisible(r, d)
	if !withTypes && visible { // The name alone must not mean another one.
		found, err := o.functions("", d.Name)
		visible = err == nil && len(found) == 1
	}
	if !visible {
		name = keyword.QuoteIdent(d.Schema) + "." + name
	}
	if withTypes {
		var args []string
		for _, t := range d.InputTypes() {
			args = append(args, shownType(r, t))
		}
		name += "(" + strings.Join(args, ",") + ")"
	}
	return name, true
}

// routineAsked returns the routine of a user that has_function_privilege is about; nil if that is one of PostgreSQL's own, or none.
func (o *Objects) routineAsked(r catalog.Resolver, q *builtin.PrivilegeQuery) (*catalog.RoutineDescriptor, error) {
	if len(r.Routines().All()) == 0 {
		return nil, nil
	}
	id := q.OID
	if q.Named {
		p, err := o.function(q.Name)
		if err != nil {
			return nil, err
		}
		id = p.OID
	}
	return r.Routines().ByOID(id), nil
}

// hasRoutinePrivilege answers for a routine of a user.
func hasRoutinePrivilege(a *catalog.Access, d *catalog.RoutineDescriptor, q *builtin.PrivilegeQuery, err error) (has, known bool, _ error) {
	if err != nil {
		return false, false, err
	}
	p, err := parsePrivileges("function", q.Privileges)
	if err != nil {
		return false, false, err
	}
	return a.Superuser() || d.EffectiveACL().Mask(a.Roles, a.Role, d.OwnerOID(), p, true) != 0, true, nil
}

// userProcRows emits the rows of pg_proc.
func (s *scan) userProcRows(r *dataRow) error {
	for _, d := range s.Routines().All() {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		more := []col{{"pronamespace", oid(schemaOID(s.Resolver, d.Schema))}, {"proowner", oid(d.OwnerOID())}, {"proacl", types.ACL(d.ACL)}}
		if len(d.Config) > 0 {
			more = append(more, col{"proconfig", textArray(d.Config)})
		}
		r.buf = userProc(s.Resolver, d, s.view).Values(r.buf[:0])
		if err := r.emit(r.buf, more...); err != nil {
			return err
		}
	}
	return nil
}

// userAggregateRows emits the rows of pg_aggregate.
func (s *scan) userAggregateRows() error {
	for _, d := range s.Routines().All() {
		a := d.Aggregate
		if a == nil {
			continue
		}
		initial := types.Null
		if a.Initial != nil {
			initial = text(*a.Initial)
		}
		err := s.emit(col{"aggfnoid", oid(uint32(d.ID))}, col{"aggkind", text("n")}, col{"aggnumdirectargs", num(0)},
			col{"aggtransfn", oid(uint32(a.Transition))}, col{"aggfinalfn", oid(uint32(a.Final))}, col{"aggcombinefn", oid(uint32(a.Combine))},
			col{"aggserialfn", num(0)}, col{"aggdeserialfn", num(0)}, col{"aggmtransfn", num(0)}, col{"aggminvtransfn", num(0)}, col{"aggmfinalfn", num(0)},
			col{"aggfinalextra", boolean(a.FinalExtra)}, col{"aggmfinalextra", boolean(false)}, col{"aggfinalmodify", text(string(rune(a.FinalModify)))},
			col{"aggmfinalmodify", text("r")}, col{"aggsortop", num(0)}, col{"aggtranstype", oid(uint32(a.State.OID))},
			col{"aggtransspace", num(int(a.Space))}, col{"aggmtranstype", num(0)}, col{"aggmtransspace", num(0)}, col{"agginitval", initial})
		if err != nil {
			return err
		}
	}
	return nil
}

// result returns the type of what a routine returns.
func (r *routine) result() types.Type {
	if r.user != nil {
		return r.user.Ret
	}
	return types.Type{OID: r.Ret, Mod: -1}
}
