package fuzzsql

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// fromSample is a sample of a table of which the method leaves nothing to chance: all rows, or none.
func fromSample(g *gen, _ *scope, _ int) *source {
	t, alias := pick(g, g.world.tables), g.alias("a")
	sample := pick(g, []string{"BERNOULLI (100)", "SYSTEM (100)", "BERNOULLI (0)", "SYSTEM (0) REPEATABLE (3)", "BERNOULLI (100.0) REPEATABLE (1)"})
	return &source{leaf(t.name + " AS " + alias + " TABLESAMPLE " + sample), qualified(alias, t.columns)}
}

// fromRows is ROWS FROM, or one function, with the number of each row now and then.
func fromRows(g *gen, _ *scope, _ int) *source {
	alias := g.alias("f")
	var calls []*tree
	var columns []column
	var names []string
	add := func(t *typ) {
		names = append(names, g.alias("x"))
		columns = append(columns, column{name: alias + "." + names[len(names)-1], typ: t})
	}
	for range 1 + g.IntN(3) {
		c := pick(g, setCalls)
		calls = append(calls, g.setSource(c))
		add(byOID[c.ret])
	}
	ordinality := ""
	if len(calls) == 1 || g.chance(50) {
		ordinality = " WITH ORDINALITY"
		add(byOID[types.OIDInt8])
	}
	tail := ordinality + " AS " + alias + "(" + strings.Join(names, ", ") + ")"
	if len(calls) == 1 {
		return &source{seq(calls[0], tail), columns}
	}
	return &source{seq("ROWS FROM (", joined(calls), ")"+tail), columns}
}

// setSource is a call of a set-returning function with constants.
func (g *gen) setSource(c setCall) *tree {
	var args []*tree
	for _, oid := range c.args {
		t := byOID[oid]
		value := g.stored(t)
		if c.name == "generate_series" {
			value = pick(g, seriesArguments[oid])
		}
		args = append(args, t.constant(value).as("expr:"+t.sql, ""))
	}
	return seq(c.name+"(", joined(args), ")")
}

// seriesArguments are the bounds and steps of generate_series, so that it has few rows.
var seriesArguments = map[types.OID][]string{
	types.OIDInt4: {"1", "2", "3", "5", "10", "-2"}, types.OIDInt8: {"1", "2", "3", "-4", "7"}, types.OIDNumeric: {"1", "2.5", "0.75", "-1", "4.00"},
	types.OIDTimestamp: {"2024-02-28", "2024-03-02 12:00", "2024-02-29 01:00"}, types.OIDTimestamptz: {"2024-03-30 00:00+00", "2024-04-01 12:00+00"},
	types.OIDInterval: {"1 day", "-1 day", "12:00", "1 mon"},
}

// records are functions whose columns the call defines or the function has, with the types of the columns.
var records = []struct {
	call  string
	arg   types.OID
	defs  string // between the parentheses behind the alias
	types []types.OID
}{
	{"jsonb_to_record", types.OIDJSONB, "a int4, b text", []types.OID{types.OIDInt4, types.OIDText}},
	{"jsonb_to_recordset", types.OIDJSONB, "a text, b jsonb", []types.OID{types.OIDText, types.OIDJSONB}},
	{"json_to_recordset", types.OIDJSON, "a numeric, b json", []types.OID{types.OIDNumeric, types.OIDJSON}},
	{"json_each", types.OIDJSON, "a, b", []types.OID{types.OIDText, types.OIDJSON}},
	{"jsonb_each_text", types.OIDJSONB, "a, b", []types.OID{types.OIDText, types.OIDText}},
	{"jsonb_each", types.OIDJSONB, "a, b", []types.OID{types.OIDText, types.OIDJSONB}},
	{"ts_parse('default', ", types.OIDText, "a, b", []types.OID{types.OIDInt4, types.OIDText}},
}

// fromRecord is a function that returns rows of several columns, over a constant or a column to the left of it.
func fromRecord(g *gen, s *scope, _ int) *source {
	r, alias := pick(g, records), g.alias("r")
	var columns []column
	for i, oid := range r.types {
		columns = append(columns, column{name: alias + "." + string(rune('a'+i)), typ: byOID[oid]})
	}
	open := "("
	if strings.Contains(r.call, "(") {
		open = ""
	}
	t := byOID[r.arg]
	return &source{seq(r.call+open, t.constant(g.stored(t)).as("expr:"+t.sql, ""), ") AS "+alias+"("+r.defs+")"), columns}
}

// orderedSet calls an ordered-set or hypothetical-set aggregate; nil for types that none returns.
func (g *gen) orderedSet(t *typ, s *scope, depth int) *tree {
	below := &scope{columns: s.columns, outer: s.outer}
	fraction := pick(g, []string{"0", "0.25", "0.5", "0.9", "1"})
	call, of, order := "", t, pick(g, []string{"", " DESC", " NULLS FIRST"})
	switch {
	case t.unsorted || t.elem != nil:
		return nil
	case t.oid == types.OIDInt8 && g.chance(50):
		of = g.sortedColumnType(s)
		return seq(pick(g, []string{"rank", "dense_rank"})+"(", of.constant(g.stored(of)), ") WITHIN GROUP (ORDER BY ", g.expr(of, below, min(depth, 1)), order+")", g.filter(s, depth))
	case t.oid == types.OIDFloat8 && g.chance(40):
		of = byOID[types.OIDInt4]
		return seq(pick(g, []string{"percent_rank", "cume_dist"})+"(", of.constant(g.stored(of)), ") WITHIN GROUP (ORDER BY ", g.expr(of, below, min(depth, 1)), order+")", g.filter(s, depth))
	case t.oid == types.OIDFloat8 || t.oid == types.OIDInterval:
		call = "percentile_cont(" + fraction + ")"
	case g.chance(50):
		call = "percentile_disc(" + fraction + ")"
	case t.coarse:
		return nil // Of equal values, mode takes any.
	default:
		call = "mode()"
	}
	return seq(call+" WITHIN GROUP (ORDER BY ", g.expr(of, below, min(depth, 1)), order+")", g.filter(s, depth))
}

// mixedSets is GROUP BY of keys beside grouping sets, which multiply.
func (g *gen) mixedSets(keys []*tree) *tree {
	first, rest := keys[0], clones(keys)
	word := pick(g, []string{"ROLLUP", "CUBE"})
	return opt(" GROUP BY "+pick(g, []string{"", "DISTINCT ", "ALL "}), first, ", "+word+" (", joined(rest), ")"+pick(g, []string{"", ", GROUPING SETS ((), ())"}))
}

// unitValues is a query that is not SELECT.
func unitValues(g *gen) *unit {
	if g.chance(30) {
		return single(seq("TABLE ", leaf(pick(g, g.world.tables).name)))
	}
	var ts []*typ
	for range 1 + g.IntN(3) {
		ts = append(ts, g.sortedType(g.anyType))
	}
	var rows []*tree
	for range 1 + g.IntN(4) {
		var row []*tree
		for _, t := range ts {
			row = append(row, g.expr(t, nil, g.IntN(3)))
		}
		rows = append(rows, seq("(", joined(row), ")"))
	}
	var keys []string
	for i := range ts {
		keys = append(keys, fmt.Sprint(i+1))
	}
	tail := opt(" ORDER BY " + strings.Join(keys, ", "))
	if w := (queryWants{types: ts}); !w.anyCoarse() {
		tail.kids = append(tail.kids, leaf(pick(g, []string{"", " LIMIT 2", " OFFSET 1", " FETCH FIRST ROW ONLY"})))
	}
	return single(seq("VALUES ", listOf(", ", 1, rows...), tail))
}
