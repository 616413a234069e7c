package builtin

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// catalogFunc adapts a function of the catalog.
func catalogFunc(f func(env *Env, c Catalog, a []types.Datum) (types.Datum, error)) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if env.Catalog == nil {
			return types.Null, errNoService("the catalog")
		}
		return f(env, env.Catalog, a)
	}
}

// textOrNull returns the datum of a lookup's result.
func textOrNull(s string, ok bool) (types.Datum, error) {
	if !ok {
		return types.Null, nil
	}
	return types.Text(s), nil
}

func oidArg(d types.Datum) types.OID { return types.OID(d.Int()) }

func catalogFuncs() []decl {
	out := []decl{
		{sig: "format_type(oid,int4) text", flags: stable | nonStrict, fn: formatType},
		{sig: "to_regtype(text) regtype", flags: stable, fn: toRegtype},
		{sig: "to_regclass(text) regclass", flags: stable, fn: catalogFunc(toRegclass)},
		{sig: "pg_get_userbyid(oid) name", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			if name, ok := c.RoleName(oidArg(a[0])); ok {
				return types.Text(name), nil
			}
			return types.Text("unknown (OID=" + strconv.FormatInt(a[0].Int(), 10) + ")"), nil
		})},
		{sig: "pg_table_is_visible(oid) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			visible, ok := c.RelationVisible(oidArg(a[0]))
			if !ok {
				return types.Null, nil
			}
			return types.Bool(visible), nil
		})},
		{sig: "pg_get_serial_sequence(text,text) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			s, ok, err := c.SerialSequence(a[0].Text(), a[1].Text())
			if err != nil {
				return types.Null, err
			}
			return textOrNull(s, ok)
		})},
		{sig: "pg_describe_object(oid,oid,int4) text", flags: stable, fn: catalogFunc(func(env *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			text, ok := c.Describe(oidArg(a[0]), oidArg(a[1]), int(a[2].Int()))
			if !ok {
				var err error
				if text, ok, err = newObjectReader(env).describeByName(oidArg(a[0]), oidArg(a[1])); err != nil {
					return types.Null, err
				}
			}
			return textOrNull(text, ok)
		})},
		{sig: "obj_description(oid,name) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return textOrNull(c.Comment(oidArg(a[0]), a[1].Text(), 0))
		})},
		{sig: "obj_description(oid) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return textOrNull(c.Comment(oidArg(a[0]), "", 0))
		})},
		{sig: "col_description(oid,int4) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return textOrNull(c.Comment(oidArg(a[0]), "pg_class", int(a[1].Int())))
		})},
		{sig: "shobj_description(oid,name) text", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return textOrNull(c.Comment(oidArg(a[0]), a[1].Text(), 0))
		})},
	}
	out = append(out, collationFuncs()...)
	// There are no objects of these kinds.
	for _, name := range []string{
		"conversion", "statistics_obj",
	} {
		out = append(out, decl{sig: "pg_" + name + "_is_visible(oid) bool", flags: stable, fn: constant(types.Null)})
	}
	out = append(out, decl{sig: "pg_type_is_visible(oid) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		visible, ok := c.TypeVisible(oidArg(a[0]))
		if !ok {
			return types.Null, nil
		}
		return types.Bool(visible), nil
	})})
	out = append(out, definitionFuncs()...)
	out = append(out, partitionDefinitionFuncs()...)
	out = append(out, procFuncs()...)
	out = append(out, privilegeFuncs()...)
	return append(out, roleFuncs()...)
}

// isPretty reports whether the pretty form of a definition is asked for.
func isPretty(a []types.Datum) bool { return len(a) > 1 && a[1].Bool() }

// definitionFuncs declares the functions that print an object's definition.
func definitionFuncs() []decl {
	view := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		return textOrNull(c.ViewDefinition(oidArg(a[0]), isPretty(a), 0))
	})
	viewInWidth := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		return textOrNull(c.ViewDefinition(oidArg(a[0]), true, int(a[1].Int())))
	})
	viewByName := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		oid, err := c.RelationOID(a[0].Text())
		if err != nil {
			return types.Null, err
		}
		return textOrNull(c.ViewDefinition(oid, isPretty(a), 0))
	})
	rule := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		return textOrNull(c.RuleDefinition(oidArg(a[0]), isPretty(a)))
	})
	constraint := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		return textOrNull(c.ConstraintDefinition(oidArg(a[0]), isPretty(a)))
	})
	trigger := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		return textOrNull(c.TriggerDefinition(oidArg(a[0]), len(a) > 1 && a[1].Bool()))
	})
	index := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		column, pretty := 0, false
		if len(a) > 1 {
			column, pretty = int(a[1].Int()), a[2].Bool()
		}
		return textOrNull(c.IndexDefinition(oidArg(a[0]), column, pretty))
	})
	// The system tables show expressions as text, with all parentheses.
	expression := catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
		if len(a) < 3 || !a[2].Bool() {
			return a[0], nil
		}
		return types.Text(c.PrettyExpr(a[0].Text(), oidArg(a[1]))), nil
	})
	return []decl{
		{sig: "pg_get_viewdef(oid) text", flags: stable, fn: view}, {sig: "pg_get_viewdef(oid,bool) text", flags: stable, fn: view},
		{sig: "pg_get_viewdef(oid,int4) text", flags: stable, fn: viewInWidth},
		{sig: "pg_get_viewdef(text) text", flags: stable, fn: viewByName},
		{sig: "pg_get_viewdef(text,bool) text", flags: stable, fn: viewByName},
		{sig: "pg_get_constraintdef(oid) text", flags: stable, fn: constraint},
		{sig: "pg_get_constraintdef(oid,bool) text", flags: stable, fn: constraint},
		{sig: "pg_get_indexdef(oid) text", flags: stable, fn: index},
		{sig: "pg_get_indexdef(oid,int4,bool) text", flags: stable, fn: index},
		{sig: "pg_get_triggerdef(oid) text", flags: stable, fn: trigger},
		{sig: "pg_get_triggerdef(oid,bool) text", flags: stable, fn: trigger},
		{sig: "pg_get_ruledef(oid) text", flags: stable, fn: rule},
		{sig: "pg_get_ruledef(oid,bool) text", flags: stable, fn: rule},
		// There are no statistics objects to be found by OID.
		{sig: "pg_get_statisticsobjdef(oid) text", flags: stable, fn: constant(types.Null)},
		{sig: "pg_get_statisticsobjdef_columns(oid) text", flags: stable, fn: constant(types.Null)},
		{sig: "pg_relation_is_publishable(regclass) bool", flags: stable, fn: constant(types.Bool(false))},
		{sig: "pg_tablespace_location(oid) text", flags: stable, fn: constant(types.Text(""))},
		{sig: "pg_get_expr(pg_node_tree,oid) text", flags: stable, fn: expression},
		{sig: "pg_get_expr(pg_node_tree,oid,bool) text", flags: stable, fn: expression},
	}
}

// roleFuncs declares pg_has_role, by names and OIDs, of the current user or another.
func roleFuncs() []decl {
	var out []decl
	for _, args := range []string{"name,text", "oid,text", "name,name,text", "name,oid,text", "oid,name,text", "oid,oid,text"} {
		parts := strings.Split(args, ",")
		out = append(out, decl{sig: "pg_has_role(" + args + ") bool", flags: stable, fn: catalogFunc(func(env *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return hasRole(env, c, parts, a)
		})})
	}
	return out
}

// hasRole is pg_has_role with arguments of the given types.
func hasRole(env *Env, c Catalog, kinds []string, a []types.Datum) (types.Datum, error) {
	var roles []types.OID
	for i, kind := range kinds[:len(kinds)-1] {
		role := oidArg(a[i])
		if kind == "name" {
			var err error
			if role, err = c.RoleNamed(a[i].Text()); err != nil {
				return types.Null, err
			}
		}
		roles = append(roles, role)
	}
	if len(roles) == 1 {
		if env.Session == nil {
			return types.Null, errNoService("session information")
		}
		current, err := c.RoleNamed(env.Session.User())
		if err != nil {
			return types.Null, err
		}
		roles = []types.OID{current, roles[0]}
	}
	is, err := c.HasRole(roles[0], roles[1], a[len(a)-1].Text())
	return types.Bool(is), err
}

func formatType(env *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	if env.Catalog != nil {
		if name, ok := env.Catalog.TypeName(oidArg(a[0])); ok {
			return types.Text(name), nil
		}
	}
	t := types.Type{OID: oidArg(a[0]), Mod: -1}
	if a[1].IsNull() {
		// Without a modifier PostgreSQL writes bpchar by its SQL name.
		return types.Text(TypeName(t)), nil
	}
	t.Mod = int32(a[1].Int())
	return types.Text(t.String()), nil
}

func toRegtype(env *Env, a []types.Datum) (types.Datum, error) {
	const maxNameBytes = 1024 // with a schema, modifiers and brackets
	if len(a[0].Text()) > maxNameBytes {
		return types.Null, nil
	}
	t, err := types.ParseTypeName(a[0].Text(), env.Format.Names)
	if err != nil {
		return types.Null, nil // to_regtype returns NULL in this case
	}
	return types.Int(int64(t.OID)), nil
}

func toRegclass(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
	oid, err := c.RelationOID(a[0].Text())
	if e, ok := err.(*pgerror.Error); ok && (e.Code == pgerror.UndefinedTable || e.Code == pgerror.InvalidSchemaName) {
		return types.Null, nil
	}
	return intDatum(int64(oid), err)
}

func sizeFuncs() []decl {
	relation := func(withIndexes bool) Func {
		return catalogFunc(func(env *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			if len(a) == 2 && a[1].Text() != mainFork {
				return otherForkSize(a[1].Text())
			}
			if oidArg(a[0]) == 0 {
				return types.Null, nil
			}
			return intDatum(c.RelationSize(env.Context(), oidArg(a[0]), withIndexes))
		})
	}
	database := func(query func(types.Datum) DatabaseQuery) Func {
		return catalogFunc(func(env *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			return databaseSize(env, c, query(a[0]))
		})
	}
	tablespace := catalogFunc(tablespaceSize)
	return []decl{
		{sig: "pg_relation_size(regclass) int8", flags: volatile, fn: relation(false)},
		{sig: "pg_relation_size(regclass,text) int8", flags: volatile, fn: relation(false)},
		{sig: "pg_table_size(regclass) int8", flags: volatile, fn: relation(false)},
		{sig: "pg_total_relation_size(regclass) int8", flags: volatile, fn: relation(true)},
		{sig: "pg_indexes_size(regclass) int8", flags: volatile, fn: catalogFunc(func(env *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			if oidArg(a[0]) == 0 {
				return types.Null, nil
			}
			all, err := c.RelationSize(env.Context(), oidArg(a[0]), true)
			if err != nil {
				return types.Null, err
			}
			table, err := c.RelationSize(env.Context(), oidArg(a[0]), false)
			return intDatum(all-table, err)
		})},
		{sig: "pg_database_size(name) int8", flags: volatile, fn: database(func(d types.Datum) DatabaseQuery { return DatabaseQuery{Name: d.Text()} })},
		{sig: "pg_database_size(oid) int8", flags: volatile, fn: database(func(d types.Datum) DatabaseQuery { return DatabaseQuery{OID: oidArg(d)} })},
		{sig: "pg_tablespace_size(name) int8", flags: volatile, fn: tablespace},
		{sig: "pg_tablespace_size(oid) int8", flags: volatile, fn: tablespace},
		{sig: "pg_size_pretty(int8) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Text(prettySize(types.NewNumeric(a[0].Int()))), nil
		}},
		{sig: "pg_size_pretty(numeric) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Text(prettySize(a[0].Decimal())), nil
		}},
	}
}

// mainFork is the part of a relation that has its rows.
const mainFork = "main"

// otherForkSize is the size of a part that PostgreSQL's relations have beside their rows.
func otherForkSize(fork string) (types.Datum, error) {
	switch fork {
	case "fsm", "vm", "init":
		return types.Int(0), nil
	}
	return types.Null, pgerror.New(pgerror.InvalidParameterValue, "invalid fork name").WithHint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")
}

// The tablespaces. Everything is in pg_default.
const (
	defaultTablespace, defaultTablespaceOID = "pg_default", 1663
	globalTablespace, globalTablespaceOID   = "pg_global", 1664
)

func databaseSize(env *Env, c Catalog, q DatabaseQuery) (types.Datum, error) {
	size, known, err := c.DatabaseSize(env.Context(), q)
	if err != nil || !known {
		return types.Null, err
	}
	return types.Int(size), nil
}

// tablespaceSize takes a tablespace's name or OID.
func tablespaceSize(env *Env, c Catalog, a []types.Datum) (types.Datum, error) {
	id := types.OID(0)
	if a[0].Kind() == types.KindInt {
		id = oidArg(a[0])
	} else {
		switch name := a[0].Text(); name {
		case defaultTablespace:
			id = defaultTablespaceOID
		case globalTablespace:
			id = globalTablespaceOID
		default:
			return types.Null, pgerror.New(pgerror.UndefinedObject, "tablespace \"%s\" does not exist", name)
		}
	}
	switch id {
	case defaultTablespaceOID:
		return databaseSize(env, c, DatabaseQuery{Current: true})
	case globalTablespaceOID:
		return types.Int(0), nil
	}
	return types.Null, nil
}

// optionFuncs declares pg_options_to_table, which divides texts NAME=VALUE.
func optionFuncs() []setDecl {
	split := func(_ *Env, a []types.Datum) (SetRows, error) {
		var rows []types.Datum
		for _, d := range a[0].Array().Elems {
			if d.IsNull() {
				return nil, pgerror.New(pgerror.NullValueNotAllowed, "null array element not allowed in this context")
			}
			name, value, ok := strings.Cut(d.Text(), "=")
			row := []types.Datum{types.Text(name), types.Null}
			if ok {
				row[1] = types.Text(value)
			}
			rows = append(rows, types.NewRecord([]types.Type{types.TText, types.TText}, row))
		}
		return &sliceRows{rows}, nil
	}
	return []setDecl{{sig: "pg_options_to_table(text[]) record", estimate: 3, flags: stable, open: opens(split), columns: []SetColumn{
		{"option_name", types.TText}, {"option_value", types.TText},
	}}}
}

// prettySize writes a size in the largest unit that leaves at least 10 units of it, rounded.
func prettySize(n *apd.Decimal) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	abs := types.NewNumeric(10 * 1024)
	unit := 0
	if n.Form != apd.Finite {
		return string(types.AppendNumeric(nil, n)) + " " + units[len(units)-1]
	}
	if lessAbs(n, abs) {
		return string(types.AppendNumeric(nil, n)) + " bytes"
	}
	// Halved units keep one bit for rounding.
	half := quotient(n, types.NewNumeric(1<<9), 0, false)
	for unit = 1; unit < len(units)-1 && !lessAbs(half, types.NewNumeric(20*1024-1)); unit++ {
		half = quotient(half, types.NewNumeric(1024), 0, false)
	}
	one := types.NewNumeric(1)
	if half.Negative {
		one = types.NewNumeric(-1)
	}
	if sum, err := AddNumeric(half, one); err == nil {
		half = sum
	}
	return string(types.AppendNumeric(nil, quotient(half, types.NewNumeric(2), 0, false))) + " " + units[unit]
}

// lessAbs reports |a| < b for a positive b.
func lessAbs(a, b *apd.Decimal) bool {
	if a.Negative {
		a = NegNumeric(a)
	}
	return types.CompareNumeric(a, b) < 0
}

// nameBytes is the length of a name as PostgreSQL stores it.
const nameBytes = 64
