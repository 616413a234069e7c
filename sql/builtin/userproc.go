package builtin

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// UserProc is what pg_proc shows of a routine of a user beside what binding needs of it.
type UserProc struct {
	Routine         *Routine
	Body            string
	Standard        bool // Body is in SQL's standard form
	SecurityDefiner bool
	Config          []string // name=value
	Visible         bool     // its name alone finds it
	// TypeName prints a type as the search path shortens its name; nil: TypeName does.
	TypeName func(types.Type) string
}

// Languages are the OIDs of the languages in which routines can be written, and of that of aggregates.
var Languages = map[string]types.OID{"internal": 12, "sql": 14, "plpgsql": PlpgsqlOID}

// PlpgsqlOID is the OID of the language PL/pgSQL.
const PlpgsqlOID types.OID = 13562

// NewUserProc returns a routine of a user as pg_proc has it.
func NewUserProc(u UserProc) *Proc {
	r := u.Routine
	p := &Proc{OID: r.OID, Name: r.Name, Kind: byte(r.Kind), Ret: r.Ret.OID, row: -1, user: &u}
	for _, t := range r.InputTypes() {
		p.Args = append(p.Args, t.OID)
	}
	return p
}

// procOf returns a function by its OID, nil if there is none.
func procOf(env *Env, oid types.OID) *Proc {
	if p := ProcByOID(oid); p != nil || env.Catalog == nil {
		return p
	}
	return env.Catalog.Routine(oid)
}

// parameters lists the parameters.
func (u *UserProc) parameters() []ProcParameter {
	var list []ProcParameter
	for _, p := range u.Routine.Params {
		list = append(list, ProcParameter{Name: p.Name, Type: p.Type, Mode: p.Mode, Default: p.Default, Shown: u.typeName(p.Type)})
	}
	return list
}

// value returns a column of pg_proc.
func (u *UserProc) value(column string) string {
	r := u.Routine
	in := r.InputTypes()
	oids := func(ts []types.Type) (list []types.OID) {
		for _, t := range ts {
			list = append(list, t.OID)
		}
		return list
	}
	switch column {
	case "oid":
		return formatOID(r.OID)
	case "proname":
		return r.Name
	case "prosrc":
		if u.Standard {
			return ""
		}
		return u.Body
	case "prosqlbody":
		if u.Standard {
			return u.Body
		}
		return pgdata.Null
	case "proargtypes":
		return oidList(oids(in))
	case "prorettype":
		return formatOID(r.Ret.OID)
	case "prokind":
		return string(rune(r.Kind))
	case "prolang":
		return formatOID(Languages[r.Language])
	case "procost":
		return strconv.FormatFloat(r.Cost, 'g', -1, 32)
	case "prorows":
		return strconv.FormatFloat(r.Rows, 'g', -1, 32)
	case "provariadic":
		if r.Variadic() {
			return formatOID(variadicElem(in[len(in)-1]).OID)
		}
	case "proisstrict":
		return boolLetter(r.Strict)
	case "proretset":
		return boolLetter(r.Set)
	case "prosecdef":
		return boolLetter(u.SecurityDefiner)
	case "proleakproof":
		return boolLetter(r.Leakproof)
	case "provolatile":
		return "isv"[r.Volatility : r.Volatility+1]
	case "proparallel":
		return string(rune(r.Parallel))
	case "pronargs":
		return strconv.Itoa(len(in))
	case "pronargdefaults":
		return strconv.Itoa(len(u.defaults()))
	case "description", "probin":
		return pgdata.Null
	}
	return u.list(column)
}

// defaults are the defaults of the parameters.
func (u *UserProc) defaults() []string {
	var list []string
	for i := range u.Routine.Params {
		if d := u.Routine.Params[i].Default; d != "" {
			list = append(list, d)
		}
	}
	return list
}

// list returns a column of pg_proc that lists something of the parameters.
func (u *UserProc) list(column string) string {
	var words []string
	plain, named := true, false
	for i := range u.Routine.Params {
		p := &u.Routine.Params[i]
		plain, named = plain && p.Mode == 'i', named || p.Name != ""
		switch column {
		case "proallargtypes":
			words = append(words, formatOID(p.Type.OID))
		case "proargmodes":
			words = append(words, string(rune(p.Mode)))
		case "proargnames":
			words = append(words, "\""+strings.ReplaceAll(strings.ReplaceAll(p.Name, `\`, `\\`), `"`, `\"`)+"\"")
		}
	}
	switch column {
	case "proallargtypes", "proargmodes":
		if plain {
			return pgdata.Null
		}
	case "proargnames":
		if !named {
			return pgdata.Null
		}
	case "proargdefaults":
		if list := u.defaults(); len(list) > 0 {
			return strings.Join(list, ", ")
		}
		return pgdata.Null
	default:
		return "0"
	}
	return "{" + strings.Join(words, ",") + "}"
}

// result prints what the routine returns, pgdata.Null for a procedure.
func (u *UserProc) result() string {
	r := u.Routine
	if r.Kind == ProcedureRoutine {
		return pgdata.Null
	}
	var table []string
	for i := range r.Params {
		if p := &r.Params[i]; p.Mode == 't' {
			table = append(table, keyword.QuoteIdent(p.Name)+" "+u.typeName(p.Type))
		}
	}
	switch {
	case table != nil:
		return "TABLE(" + strings.Join(table, ", ") + ")"
	case r.Set:
		return "SETOF " + u.typeName(r.Ret)
	}
	return u.typeName(r.Ret)
}

func (u *UserProc) typeName(t types.Type) string {
	if u.TypeName == nil {
		return TypeName(t)
	}
	return u.TypeName(t)
}

// definition prints CREATE FUNCTION or PROCEDURE as PostgreSQL does.
func (u *UserProc) definition(p *Proc) string {
	r := u.Routine
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE " + strings.ToUpper(r.Kind.String()) + " " + keyword.QuoteIdent(r.Schema) + "." + keyword.QuoteIdent(r.Name) +
		"(" + p.arguments(true) + ")\n")
	if ret := u.result(); ret != pgdata.Null {
		b.WriteString(" RETURNS " + ret + "\n")
	}
	b.WriteString(" LANGUAGE " + r.Language + "\n")
	if words := p.attributes("100"); words != "" {
		b.WriteString(words + "\n")
	}
	for _, c := range u.Config {
		b.WriteString(" SET " + configClause(c) + "\n")
	}
	if u.Standard {
		return b.String() + u.Body + "\n"
	}
	tag := "$" + r.Kind.String()
	for strings.Contains(u.Body, tag) {
		tag += "x"
	}
	tag += "$"
	return b.String() + "AS " + tag + u.Body + tag + "\n"
}

// configClause prints name=value as SET has it: each name of a list is quoted.
func configClause(c string) string {
	name, value, _ := strings.Cut(c, "=")
	words := []string{value}
	if strings.EqualFold(name, "search_path") || strings.EqualFold(name, "DateStyle") {
		words = strings.Split(value, ", ")
		for i, w := range words {
			words[i] = strings.ReplaceAll(strings.Trim(w, `"`), `""`, `"`)
		}
	}
	for i, w := range words {
		words[i] = "'" + strings.ReplaceAll(w, "'", "''") + "'"
	}
	return keyword.QuoteIdent(name) + " TO " + strings.Join(words, ", ")
}
