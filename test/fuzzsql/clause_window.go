package fuzzsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// exprWindow calls a window function, or an aggregate as one, where that is allowed. Its window orders rows by all columns, so that only
// equal rows are peers: which of them gets which value is left open, and shows in no result.
func exprWindow(g *gen, t *typ, s *scope, depth int) *tree {
	if s == nil || !s.windows || len(s.columns) == 0 || len(s.columns) > 9 || slices.ContainsFunc(s.columns, func(c column) bool { return c.typ.unsorted }) {
		return nil
	}
	below := &scope{columns: s.columns, outer: s.outer}
	arg := func() *tree { return g.expr(t, below, min(depth, 2)) }
	number := func(n int) string { return fmt.Sprint(1 + g.IntN(n)) }
	var forms []*tree
	switch t.oid {
	case types.OIDInt8:
		forms = append(forms, leaf("row_number()"), leaf("rank()"), leaf("dense_rank()"))
	case types.OIDFloat8:
		forms = append(forms, leaf("percent_rank()"), leaf("cume_dist()"))
	case types.OIDInt4:
		forms = append(forms, leaf("ntile("+number(4)+")"))
	}
	forms = append(forms, seq("first_value(", arg(), ")"), seq("last_value(", arg(), ")"), seq("nth_value(", arg(), ", "+number(3)+")"),
		seq("lag(", arg(), ", "+number(3)+")"), seq("lead(", arg(), ", "+number(2)+", ", arg(), ")"), seq("lag(", arg(), ")"))
	call := pick(g, forms)
	if g.chance(40) {
		if a := g.windowAggregate(t, below, depth); a != nil {
			call = a
		}
	}
	return seq(call, " OVER (", g.windowOf(below), ")")
}

// windowAggregate calls an aggregate whose value over a frame does not depend on the way to it.
func (g *gen) windowAggregate(t *typ, s *scope, depth int) *tree {
	if t.oid == types.OIDInt8 && g.chance(40) {
		return seq("count(*)", g.filter(s, depth))
	}
	list := g.cat.aggregates[t.oid]
	if len(list) == 0 {
		return nil
	}
	sig := pick(g, list)
	var args []*tree
	for _, at := range sig.Args {
		at := argument(g, at, g.binding())
		if at.inexact || sig.Kind != builtin.AggregateSignature {
			return nil
		}
		args = append(args, g.expr(at, s, min(depth, 2)))
	}
	if len(args) == 0 {
		return nil
	}
	return seq(sig.Name, "(", joined(args), ")", g.filter(s, depth))
}

// windowOf is PARTITION BY, ORDER BY and a frame.
func (g *gen) windowOf(s *scope) *tree {
	var partition *tree
	if g.chance(60) {
		partition = opt("PARTITION BY ", listOf(", ", 1, g.partitionKeys(s)...))
	}
	var keys []string
	for _, i := range g.Perm(len(s.columns)) {
		keys = append(keys, s.columns[i].name+pick(g, []string{"", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"}))
	}
	return seq(partition, leaf(" ORDER BY "+strings.Join(keys, ", ")), g.frame())
}

func (g *gen) partitionKeys(s *scope) []*tree {
	var keys []*tree
	for range 1 + g.IntN(2) {
		keys = append(keys, pick(g, s.columns).tree())
	}
	return keys
}

// frame is the frame of a window whose order has several keys.
func (g *gen) frame() *tree {
	if g.chance(35) {
		return nil
	}
	mode := pick(g, []string{"ROWS", "ROWS", "GROUPS", "RANGE"})
	bound := func(side string) string {
		if mode != "RANGE" && g.chance(60) {
			return fmt.Sprintf("%d %s", g.IntN(3), side)
		}
		return "CURRENT ROW"
	}
	start := pick(g, []string{"UNBOUNDED PRECEDING", bound("PRECEDING"), bound("FOLLOWING")})
	end := pick(g, []string{"UNBOUNDED FOLLOWING", bound("FOLLOWING"), "UNBOUNDED FOLLOWING"})
	if strings.HasSuffix(start, "PRECEDING") {
		end = pick(g, []string{end, bound("PRECEDING")})
	}
	exclude := pick(g, []string{"", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"})
	if strings.HasSuffix(start, "FOLLOWING") && end == "CURRENT ROW" {
		end = "UNBOUNDED FOLLOWING"
	}
	return opt(" " + mode + " BETWEEN " + start + " AND " + end + exclude)
}

// exprRangeWindow is a count or sum over a RANGE frame with an offset from the value of one column.
func exprRangeWindow(g *gen, t *typ, s *scope, depth int) *tree {
	if s == nil || !s.windows || t.oid != types.OIDInt8 {
		return nil
	}
	offsets := map[types.OID][]string{
		types.OIDInt4: {"1", "2", "0", "2147483647"}, types.OIDInt2: {"1", "3"}, types.OIDInt8: {"1", "5"}, types.OIDNumeric: {"1.5", "0", "'Infinity'"},
		types.OIDFloat8: {"0.5", "'Infinity'", "10"}, types.OIDDate: {"'1 day'", "'1 year'"}, types.OIDTimestamp: {"'1 month'", "'10 years'"},
		types.OIDTimestamptz: {"'1 day'"}, types.OIDInterval: {"'1 day'", "'1 month'"}, types.OIDTime: {"'1 hour'"},
	}
	for range 4 {
		c := pick(g, s.columns)
		list := offsets[c.typ.oid]
		if len(list) == 0 || c.name == "" {
			continue
		}
		frame := fmt.Sprintf(" RANGE BETWEEN %s PRECEDING AND %s FOLLOWING", pick(g, list), pick(g, list))
		if g.chance(30) {
			frame = fmt.Sprintf(" RANGE BETWEEN %s FOLLOWING AND UNBOUNDED FOLLOWING", pick(g, list))
		}
		call := pick(g, []*tree{leaf("count(*)"), seq("count(", g.expr(g.anyColumnType(s), &scope{columns: s.columns}, min(depth, 1)), ")")})
		return seq(call, " OVER (ORDER BY "+c.name+pick(g, []string{"", " DESC", " NULLS FIRST"})+frame+")")
	}
	return nil
}

// groupingSets makes ROLLUP, CUBE or GROUPING SETS of keys.
func (g *gen) groupingSets(keys []*tree) *tree {
	switch g.IntN(4) {
	case 0:
		return opt(" GROUP BY ROLLUP (", listOf(", ", 1, keys...), ")")
	case 1:
		return opt(" GROUP BY CUBE (", listOf(", ", 1, keys...), ")")
	case 2:
		rest := append([]*tree{leaf("()")}, keys...)
		return opt(" GROUP BY GROUPING SETS (", listOf(", ", 1, rest...), ")")
	}
	whole := seq("(", joined(keys), ")")
	return opt(" GROUP BY "+pick(g, []string{"", "DISTINCT "})+"GROUPING SETS (", whole, ", ", clones(keys)[0], ", ", whole.clone(), ")")
}

func clones(list []*tree) []*tree {
	out := make([]*tree, len(list))
	for i, t := range list {
		out[i] = t.clone()
	}
	return out
}

// setCall is a set-returning function of a select list, nil for most types.
func (g *gen) setCall(t *typ, s *scope, depth int) *tree {
	switch t.oid {
	case types.OIDInt4:
		if g.chance(30) {
			return seq("generate_series(1, generate_series(1, 2))")
		}
		return seq("generate_series(", g.expr(t, s, 0), " % 3, 2)")
	case types.OIDInt8:
		return seq("(generate_series(1, 3) + ", g.expr(t, s, min(depth, 1)), ")")
	case types.OIDText:
		return seq("unnest(ARRAY[", g.exprs(t, s, min(depth, 1), 1, 3), "])")
	}
	return nil
}
