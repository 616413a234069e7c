package builtin

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// procFuncs declares the functions that print functions, and those that find functions and operators by their names.
func procFuncs() []decl {
	print := func(f func(p *Proc) (string, error)) Func {
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			p := procOf(env, oidArg(a[0]))
			if p == nil {
				return types.Null, nil
			}
			s, err := f(p)
			if err != nil || s == pgdata.Null {
				return types.Null, err
			}
			return types.Text(s), nil
		}
	}
	out := []decl{
		{sig: "pg_get_functiondef(oid) text", flags: stable, fn: print((*Proc).definition)},
		{sig: "pg_get_function_sqlbody(oid) text", flags: stable, fn: print(func(p *Proc) (string, error) { return p.Value("prosqlbody"), nil })},
		{sig: "pg_get_function_result(oid) text", flags: stable, fn: print(func(p *Proc) (string, error) { return p.result(), nil })},
		{sig: "pg_get_function_arguments(oid) text", flags: stable, fn: print(func(p *Proc) (string, error) { return p.arguments(true), nil })},
		{sig: "pg_get_function_identity_arguments(oid) text", flags: stable, fn: print(func(p *Proc) (string, error) { return p.arguments(false), nil })},
		{sig: "pg_function_is_visible(oid) bool", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			p := procOf(env, oidArg(a[0]))
			if p == nil {
				return types.Null, nil
			}
			if p.user != nil {
				return types.Bool(p.user.Visible), nil
			}
			return types.Bool(p.Schema() == systemSchema), nil
		}},
	}
	out = append(out,
		decl{sig: "nameconcatoid(name,oid) name", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Text(NameWithOID(a[0].Text(), oidArg(a[1]))), nil
		}},
		decl{sig: "pg_get_function_arg_default(oid,int4) text", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			p := procOf(env, oidArg(a[0]))
			if p == nil {
				return types.Null, nil
			}
			list, n := p.Parameters(), a[1].Int()
			if n < 1 || n > int64(len(list)) || list[n-1].Default == "" {
				return types.Null, nil
			}
			return types.Text(list[n-1].Default), nil
		}},
	)
	for name, is := range map[string]func(Catalog, types.OID) (visible, ok bool){
		"operator": Catalog.OperatorVisible,
		"opclass":  func(c Catalog, id types.OID) (visible, ok bool) { return c.OperatorClassVisible(id, false) },
		"opfamily": func(c Catalog, id types.OID) (visible, ok bool) { return c.OperatorClassVisible(id, true) },
	} {
		out = append(out, decl{sig: "pg_" + name + "_is_visible(oid) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			visible, ok := is(c, oidArg(a[0]))
			if !ok {
				return types.Null, nil
			}
			return types.Bool(visible), nil
		})})
	}
	for _, t := range []types.Type{types.TRegproc, types.TRegprocedure, types.TRegoper, types.TRegoperator} {
		name := t.Info().Name
		out = append(out, decl{sig: "to_" + name + "(text) " + name, flags: stable, fn: nameOrNull(func(c Catalog, s string) (types.OID, error) { return c.RoutineOID(t.OID, s) })})
	}
	return append(out,
		decl{sig: "to_regcollation(text) regcollation", flags: stable, fn: nameOrNull(Catalog.CollationOID)},
		decl{sig: "to_regnamespace(text) regnamespace", flags: stable, fn: nameOrNull(Catalog.SchemaOID)},
		decl{sig: "to_regrole(text) regrole", flags: stable, fn: nameOrNull(Catalog.RoleOID)},
	)
}

// NameWithOID is the name by which information_schema distinguishes a function from others: the name, cut if need be, and the OID.
func NameWithOID(name string, oid types.OID) string {
	const maxNameBytes = 63
	suffix := "_" + formatOID(oid)
	if over := len(name) + len(suffix) - maxNameBytes; over > 0 {
		cut := len(name) - over
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	return name + suffix
}

// systemSchema is the schema of all functions but those of information_schema.
const systemSchema = "pg_catalog"

// nameOrNull returns the function that finds an object by its name, NULL if there is none or if there are several.
func nameOrNull(find func(c Catalog, name string) (types.OID, error)) Func {
	return catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		oid, err := find(c, a[0].Text())
		if e, ok := err.(*pgerror.Error); ok {
			switch e.Code {
			case pgerror.UndefinedFunction, pgerror.AmbiguousFunction, pgerror.InvalidSchemaName, pgerror.UndefinedObject:
				return types.Null, nil
			}
		}
		return intDatum(int64(oid), err)
	})
}

// ProcParameter is a parameter of a function as pg_proc has it.
type ProcParameter struct {
	Name    string
	Type    types.Type
	Mode    byte // i, o, b, v
	Default string
	Shown   string // how the type is printed; "" for its name
}

// Parameters returns all parameters of a function, with those that it returns.
func (p *Proc) Parameters() []ProcParameter {
	if p.user != nil {
		return p.user.parameters()
	}
	oids := p.Args
	if all := p.Value("proallargtypes"); all != pgdata.Null {
		oids = parseOIDList(strings.ReplaceAll(strings.Trim(all, "{}"), ",", " "))
	}
	list := make([]ProcParameter, len(oids))
	names, modes := p.Value("proargnames"), p.Value("proargmodes")
	for i, t := range typesOf(oids) {
		list[i] = ProcParameter{Type: t, Mode: 'i'}
	}
	if names != pgdata.Null {
		for i, name := range strings.Split(strings.Trim(names, "{}"), ",") {
			list[i].Name = strings.Trim(name, `"`)
		}
	}
	if modes != pgdata.Null {
		for i, mode := range strings.Split(strings.Trim(modes, "{}"), ",") {
			list[i].Mode = mode[0]
		}
	}
	if defaults := p.Value("proargdefaults"); defaults != pgdata.Null {
		values := strings.Split(defaults, ", ")
		at := len(p.Args) - len(values)
		for i, input := 0, 0; i < len(list); i++ {
			if list[i].Mode == 'o' {
				continue
			}
			if input >= at {
				list[i].Default = values[input-at]
			}
			input++
		}
	}
	return list
}

// arguments prints the parameters. Those of an ordered-set aggregate are divided by ORDER BY, which comes twice with the VARIADIC one.
func (p *Proc) arguments(defaults bool) string {
	orderBy := -1
	if row, ok := pgdata.Aggregates().ByOID(uint32(p.OID)); ok && pgdata.Aggregates().Value(row, "aggkind") != "n" {
		orderBy = int(pgdata.Aggregates().Number(row, "aggnumdirectargs"))
	}
	var b strings.Builder
	list := p.Parameters()
	if p.user != nil {
		list = slices.DeleteFunc(list, func(a ProcParameter) bool { return a.Mode == 't' })
	}
	for i := 0; i < len(list); i++ {
		a := &list[i]
		switch {
		case i == orderBy && i > 0:
			b.WriteString(" ORDER BY ")
		case i == orderBy:
			b.WriteString("ORDER BY ")
		case i > 0:
			b.WriteString(", ")
		}
		if a.Mode == 'i' && p.Kind == 'p' {
			b.WriteString("IN ")
		}
		b.WriteString(a.String())
		if defaults && a.Default != "" {
			b.WriteString(" DEFAULT " + a.Default)
		}
		if orderBy == i+1 && i+1 == len(list) {
			b.WriteString(" ORDER BY " + a.String())
		}
	}
	return b.String()
}

// String prints the parameter without its default.
func (a *ProcParameter) String() string {
	s := map[byte]string{'o': "OUT ", 'b': "INOUT ", 'v': "VARIADIC "}[a.Mode]
	if a.Name != "" {
		s += keyword.QuoteIdent(a.Name) + " "
	}
	if a.Shown != "" {
		return s + a.Shown
	}
	return s + TypeName(a.Type)
}

// result prints what the function returns.
func (p *Proc) result() string {
	if p.user != nil {
		return p.user.result()
	}
	t := TypeName(types.Type{OID: p.Ret, Mod: -1})
	if p.Value("proretset") == "t" {
		return "SETOF " + t
	}
	return t
}

// definition prints CREATE FUNCTION as PostgreSQL does.
func (p *Proc) definition() (string, error) {
	if p.Kind == 'a' {
		return "", pgerror.New(pgerror.WrongObjectType, "\"%s\" is an aggregate function", p.Name)
	}
	if p.user != nil {
		return p.user.definition(p), nil
	}
	language, cost := "internal", "1"
	if p.Value("prolang") == "14" {
		language, cost = "sql", "100"
	}
	s := "CREATE OR REPLACE FUNCTION " + p.Schema() + "." + keyword.QuoteIdent(p.Name) + "(" + p.arguments(true) + ")\n RETURNS " + p.result() +
		"\n LANGUAGE " + language + "\n"
	if words := p.attributes(cost); words != "" {
		s += words + "\n"
	}
	if body := p.Value("prosqlbody"); body != pgdata.Null {
		return s + body + "\n", nil
	}
	return s + "AS $function$" + p.Value("prosrc") + "$function$\n", nil
}

// attributes prints those attributes of the function that are not the defaults; cost is the default of its language.
func (p *Proc) attributes(cost string) string {
	s := ""
	if p.Kind == 'w' {
		s += " WINDOW"
	}
	s += map[string]string{"i": " IMMUTABLE", "s": " STABLE"}[p.Value("provolatile")]
	s += map[string]string{"s": " PARALLEL SAFE", "r": " PARALLEL RESTRICTED"}[p.Value("proparallel")]
	for _, w := range [][2]string{{"proisstrict", " STRICT"}, {"prosecdef", " SECURITY DEFINER"}, {"proleakproof", " LEAKPROOF"}} {
		if p.Value(w[0]) == "t" {
			s += w[1]
		}
	}
	if v := p.Value("procost"); v != cost {
		s += " COST " + v
	}
	if v := p.Value("prorows"); v != "0" && v != "1000" {
		s += " ROWS " + v
	}
	if v, err := strconv.ParseUint(p.Value("prosupport"), 10, 32); err == nil && v != 0 {
		if support := ProcByOID(types.OID(v)); support != nil {
			s += " SUPPORT " + keyword.QuoteIdent(support.Name)
		}
	}
	return s
}
