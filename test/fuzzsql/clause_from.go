package fuzzsql

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// source is an item of FROM with the columns it adds to the scope.
type source struct {
	tree    *tree
	columns []column
}

// fromForms are the items of FROM.
var fromForms []weighted[func(g *gen, s *scope, depth int) *source]

func init() {
	fromForms = []weighted[func(g *gen, s *scope, depth int) *source]{
		{60, fromTable},
		{8, fromSubquery},
		{6, fromWith},
		{5, fromValues},
		{5, fromFunction},
		{3, fromSample},
		{5, fromRows},
		{4, fromRecord},
	}
}

// from makes a whole FROM clause; s is the scope around.
func (g *gen) from(s *scope, depth int) *source {
	first := g.fromItem(s, depth)
	for g.chance(40) && strings.Count(first.tree.String(), "JOIN") < 4 {
		first = g.join(first, s, depth)
	}
	first.tree.sort = "from"
	if !g.chance(15) {
		return first
	}
	second := g.lateralOr(first, s, depth)
	return &source{listOf(", ", 1, first.tree, second.tree), append(first.columns[:len(first.columns):len(first.columns)], second.columns...)}
}

func (g *gen) fromItem(s *scope, depth int) *source {
	for {
		if item := choose(g, fromForms)(g, s, depth); item != nil {
			return item
		}
	}
}

// lateralOr is a LATERAL subquery over what is left of it, or any item.
func (g *gen) lateralOr(left *source, s *scope, depth int) *source {
	if g.depth >= 3 || !g.chance(35) {
		return g.fromItem(s, depth)
	}
	alias := g.alias("l")
	q, columns := g.query(queryWants{outer: &scope{columns: left.columns, outer: s}, depth: depth - 1, total: true, columns: 1 + g.IntN(2)})
	return &source{seq("LATERAL (", q, ") AS "+alias), qualified(alias, columns)}
}

func qualified(alias string, columns []column) []column {
	out := make([]column, len(columns))
	for i, c := range columns {
		out[i] = column{name: alias + "." + c.name, typ: c.typ}
	}
	return out
}

func fromTable(g *gen, _ *scope, _ int) *source {
	t, alias := pick(g, g.world.tables), g.alias("a")
	return &source{leaf(t.name + " AS " + alias), qualified(alias, t.columns)}
}

func fromSubquery(g *gen, _ *scope, depth int) *source {
	if g.depth >= 3 {
		return nil
	}
	alias := g.alias("s")
	q, columns := g.query(queryWants{depth: depth, total: true, columns: 1 + g.IntN(3)})
	return &source{seq("(", q, ") AS "+alias), qualified(alias, columns)}
}

func fromWith(g *gen, _ *scope, _ int) *source {
	named := g.ctes
	for _, v := range g.world.views {
		named = append(named[:len(named):len(named)], v.relation)
	}
	if len(named) == 0 {
		return nil
	}
	r, alias := pick(g, named), g.alias("w")
	return &source{leaf(r.name + " AS " + alias), qualified(alias, r.columns)}
}

func fromValues(g *gen, _ *scope, _ int) *source {
	alias := g.alias("v")
	var columns []column
	var names []string
	for range 1 + g.IntN(2) {
		columns = append(columns, column{name: g.alias("x"), typ: g.anyType()})
		names = append(names, columns[len(columns)-1].name)
	}
	var rows []*tree
	for range 1 + g.IntN(4) {
		var row []*tree
		for _, c := range columns {
			row = append(row, c.typ.constant(g.stored(c.typ)).as("expr:"+c.typ.sql, "NULL::"+c.typ.sql))
		}
		rows = append(rows, seq("(", joined(row), ")"))
	}
	return &source{seq("(VALUES ", listOf(", ", 1, rows...), ") AS "+alias+"("+strings.Join(names, ", ")+")"), qualified(alias, columns)}
}

// setCall is a set-returning function of one column.
type setCall struct {
	name string
	args []types.OID
	ret  types.OID
}

// setCalls are the set-returning functions of FROM.
var setCalls = []setCall{
	{"generate_series", []types.OID{types.OIDInt4, types.OIDInt4}, types.OIDInt4},
	{"generate_series", []types.OID{types.OIDInt4, types.OIDInt4, types.OIDInt4}, types.OIDInt4},
	{"generate_series", []types.OID{types.OIDInt8, types.OIDInt8}, types.OIDInt8},
	{"unnest", []types.OID{1007}, types.OIDInt4},
	{"unnest", []types.OID{1009}, types.OIDText},
	{"regexp_split_to_table", []types.OID{types.OIDText, types.OIDText}, types.OIDText},
	{"string_to_table", []types.OID{types.OIDText, types.OIDText}, types.OIDText},
	{"jsonb_array_elements", []types.OID{types.OIDJSONB}, types.OIDJSONB},
	{"jsonb_object_keys", []types.OID{types.OIDJSONB}, types.OIDText},
	{"generate_subscripts", []types.OID{1007, types.OIDInt4}, types.OIDInt4},
	{"generate_series", []types.OID{types.OIDNumeric, types.OIDNumeric}, types.OIDNumeric},
	{"generate_series", []types.OID{types.OIDNumeric, types.OIDNumeric, types.OIDNumeric}, types.OIDNumeric},
	{"generate_series", []types.OID{types.OIDTimestamp, types.OIDTimestamp, types.OIDInterval}, types.OIDTimestamp},
	{"generate_series", []types.OID{types.OIDTimestamptz, types.OIDTimestamptz, types.OIDInterval}, types.OIDTimestamptz},
	{"jsonb_path_query", []types.OID{types.OIDJSONB, types.OIDJSONPath}, types.OIDJSONB},
	{"json_array_elements_text", []types.OID{types.OIDJSON}, types.OIDText},
	{"json_object_keys", []types.OID{types.OIDJSON}, types.OIDText},
	{"regexp_matches", []types.OID{types.OIDText, types.OIDText}, 1009},
	{"unnest", []types.OID{types.OIDInt4Multirange}, types.OIDInt4Range},
	{"unnest", []types.OID{types.OIDNumMultirange}, types.OIDNumRange},
	{"f_rows", []types.OID{types.OIDInt4}, types.OIDInt4},
	{"f_each", []types.OID{types.OIDInt4}, types.OIDInt4},
}

func fromFunction(g *gen, _ *scope, _ int) *source {
	c, alias, name := pick(g, setCalls), g.alias("f"), g.alias("x")
	return &source{seq(g.setSource(c), " AS "+alias+"("+name+")"), []column{{name: alias + "." + name, typ: byOID[c.ret]}}}
}

// join adds a join to what is left of it.
func (g *gen) join(left *source, s *scope, depth int) *source {
	kind := pick(g, []string{"JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"})
	var right *source
	if kind == "RIGHT JOIN" || kind == "FULL JOIN" {
		right = g.fromItem(s, depth)
	} else {
		right = g.lateralOr(left, s, depth)
	}
	columns := append(left.columns[:len(left.columns):len(left.columns)], right.columns...)
	if kind == "CROSS JOIN" {
		return &source{seq(left.tree, " CROSS JOIN ", right.tree).as("from", ""), columns}
	}
	if g.chance(12) && hasID(left) && hasID(right) { // Of several ids on one side both servers say the same.
		left.tree.sort = "from"
		return &source{seq(left.tree, " "+kind+" ", right.tree, " USING (id)").as("from", ""), columns}
	}
	on := g.joinCondition(left, right, s, kind == "FULL JOIN", depth)
	left.tree.sort = "from"
	return &source{seq(left.tree, " "+kind+" ", right.tree, " ON ", on).as("from", ""), columns}
}

// hasID reports whether an item of FROM has a table's id.
func hasID(s *source) bool {
	return slices.ContainsFunc(s.columns, func(c column) bool { return strings.HasSuffix(c.name, ".id") })
}

// joinCondition is mostly an equality of columns, with more conditions now and then.
func (g *gen) joinCondition(left, right *source, s *scope, equalOnly bool, depth int) *tree {
	var list []*tree
	for range 4 {
		l, r := pick(g, left.columns), pick(g, right.columns)
		if l.typ.unsorted || r.typ.unsorted {
			continue
		}
		if l.typ == r.typ || slices.Contains(l.typ.from, r.typ.oid) {
			list = append(list, leaf(l.name+" = "+r.name).as("expr:bool", "true"))
			if !g.chance(20) {
				break
			}
		}
	}
	all := &scope{columns: append(left.columns[:len(left.columns):len(left.columns)], right.columns...), outer: s}
	if len(list) == 0 && !equalOnly || !equalOnly && g.chance(20) {
		list = append(list, g.boolean(all, min(depth, 2)))
	}
	if len(list) == 0 {
		return leaf("true").as("expr:bool", "true")
	}
	return seq("(", listOf(" AND ", 1, list...), ")").as("expr:bool", "true")
}
