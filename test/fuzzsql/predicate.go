package fuzzsql

import "github.com/percodb/percodb/sql/types"

// predicateForms are the forms of conditions besides operators and functions.
var predicateForms []weighted[func(g *gen, s *scope, depth int) *tree]

func init() {
	predicateForms = []weighted[func(g *gen, s *scope, depth int) *tree]{
		{20, predicateLogic},
		{8, predicateNot},
		{30, predicateComparison},
		{6, predicateNull},
		{4, predicateTruth},
		{8, predicateIn},
		{6, predicateInSubquery},
		{5, predicateExists},
		{6, predicateBetween},
		{4, predicateLike},
		{4, predicateAny},
		{4, predicateDistinct},
		{3, predicateRow},
	}
}

// exprPredicate makes a condition.
func exprPredicate(g *gen, t *typ, s *scope, depth int) *tree {
	if t.oid != types.OIDBool {
		return nil
	}
	return choose(g, predicateForms)(g, s, depth)
}

var comparisons = []string{"=", "=", "=", "<", "<=", ">", ">=", "<>", "!="}

func (g *gen) boolean(s *scope, depth int) *tree { return g.expr(byOID[types.OIDBool], s, depth) }

func predicateLogic(g *gen, s *scope, depth int) *tree {
	var list []*tree
	for range 2 + g.IntN(2) {
		list = append(list, g.boolean(s, depth))
	}
	return seq("(", listOf(pick(g, []string{" AND ", " AND ", " OR "}), 1, list...), ")")
}

func predicateNot(g *gen, s *scope, depth int) *tree { return seq("(NOT ", g.boolean(s, depth), ")") }

func predicateComparison(g *gen, s *scope, depth int) *tree {
	t := g.sortedColumnType(s)
	return g.parens(g.expr(t, s, min(depth, 1)), " "+pick(g, comparisons)+" ", g.expr(t, s, min(depth, 1)))
}

func predicateNull(g *gen, s *scope, depth int) *tree {
	return seq("(", g.expr(g.anyColumnType(s), s, depth), pick(g, []string{" IS NULL", " IS NOT NULL"}), ")")
}

func predicateTruth(g *gen, s *scope, depth int) *tree {
	return seq("(", g.boolean(s, depth), pick(g, []string{" IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT FALSE", " IS UNKNOWN", " IS NOT UNKNOWN"}), ")")
}

func not(g *gen) string {
	if g.chance(30) {
		return "NOT "
	}
	return ""
}

func predicateIn(g *gen, s *scope, depth int) *tree {
	t := g.sortedColumnType(s)
	return seq("(", g.expr(t, s, min(depth, 1)), " "+not(g)+"IN (", g.exprs(t, s, min(depth, 1), 1, 4), "))")
}

func predicateInSubquery(g *gen, s *scope, depth int) *tree {
	if g.depth >= 3 {
		return nil
	}
	ts := []*typ{g.sortedColumnType(s)}
	if g.chance(20) {
		ts = append(ts, g.sortedColumnType(s))
	}
	q, _ := g.query(queryWants{types: ts, outer: s, depth: depth})
	if len(ts) == 2 {
		return seq("((", g.expr(ts[0], s, 1), ", ", g.expr(ts[1], s, 1), ") "+not(g)+"IN (", q, "))")
	}
	if g.chance(25) {
		return seq("(", g.expr(ts[0], s, 1), " "+pick(g, comparisons)+pick(g, []string{" ANY (", " ALL ("}), q, "))")
	}
	return seq("(", g.expr(ts[0], s, 1), " "+not(g)+"IN (", q, "))")
}

func predicateExists(g *gen, s *scope, depth int) *tree {
	if g.depth >= 3 {
		return nil
	}
	q, _ := g.query(queryWants{types: []*typ{g.anyType()}, outer: s, depth: depth})
	return seq("(", not(g), "EXISTS (", q, "))")
}

func predicateBetween(g *gen, s *scope, depth int) *tree {
	t := g.sortedColumnType(s)
	word := pick(g, []string{"BETWEEN ", "BETWEEN ", "BETWEEN SYMMETRIC ", "NOT BETWEEN "})
	return seq("(", g.expr(t, s, min(depth, 1)), " "+word, g.expr(t, s, 0), " AND ", g.expr(t, s, 0), ")")
}

func predicateLike(g *gen, s *scope, depth int) *tree {
	text := byOID[types.OIDText]
	word := pick(g, []string{" LIKE ", " NOT LIKE ", " ILIKE ", " NOT ILIKE "})
	return seq("(", g.expr(text, s, depth), word, g.expr(text, s, 0), opt(pick(g, []string{"", "", " ESCAPE '!'", " ESCAPE ''"})), ")")
}

func predicateAny(g *gen, s *scope, depth int) *tree {
	t := g.sortedColumnType(s)
	if t.elem != nil {
		return nil
	}
	return seq("(", g.expr(t, s, min(depth, 1)), " "+pick(g, comparisons)+pick(g, []string{" ANY (", " ALL ("}), g.expr(byOID[arrayOID(t)], s, min(depth, 1)), "))")
}

func predicateDistinct(g *gen, s *scope, depth int) *tree {
	t := g.sortedColumnType(s)
	return seq("(", g.expr(t, s, min(depth, 1)), " IS "+not(g)+"DISTINCT FROM ", g.expr(t, s, min(depth, 1)), ")")
}

func predicateRow(g *gen, s *scope, depth int) *tree {
	a, b := g.sortedColumnType(s), g.sortedColumnType(s)
	return seq("((", g.expr(a, s, 1), ", ", g.expr(b, s, 1), ") "+pick(g, comparisons)+" (", g.expr(a, s, 1), ", ", g.expr(b, s, 1), "))")
}
