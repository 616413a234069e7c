package fuzzsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/types"
)

// queryWants says what a query must be.
type queryWants struct {
	types   []*typ // of its columns; nil: as many as columns, of any types
	columns int
	outer   *scope // what it may name of the query around
	depth   int    // of its expressions
	total   bool   // its result must not depend on the order of rows: LIMIT only with a whole order
	limit   int    // LIMIT so many; 0: any or none
	top     bool   // it is the statement
}

// query makes a query, with its columns' names.
func (g *gen) query(w queryWants) (*tree, []column) {
	g.depth++
	defer func() { g.depth-- }()
	if w.types == nil {
		for range max(1, w.columns) {
			w.types = append(w.types, g.sortedType(g.likelyType))
		}
	}
	var columns []column
	for i, t := range w.types {
		columns = append(columns, column{name: fmt.Sprintf("k%d", i+1), typ: t})
	}
	sort := "query"
	for _, t := range w.types {
		sort += ":" + t.sql
	}
	had := len(g.ctes)
	with := g.with(w)
	defer func() { g.ctes = g.ctes[:had] }()
	var body *tree
	locks := false
	if g.depth < 3 && g.chance(8) && w.sorted() {
		body = g.setOperation(w, columns)
	} else if g.chance(5) && !w.anyCoarse() && w.sorted() {
		return seq(with, g.distinctOn(w, columns)).as(sort, ""), columns
	} else {
		body, locks = g.selectCore(w, columns)
	}
	parts := []any{with, body}
	if !locks {
		parts = append(parts, g.orderAndLimit(w)...)
	}
	return seq(parts...).as(sort, ""), columns
}

// likelyType is a type that some table has.
func (g *gen) likelyType() *typ {
	if g.chance(70) {
		return pick(g, pick(g, g.world.tables).columns).typ
	}
	return g.anyType()
}

// anyCoarse reports whether the result has types whose equal values look different.
func (w *queryWants) anyCoarse() bool {
	return slices.ContainsFunc(w.types, func(t *typ) bool { return t.coarse })
}

// sorted reports whether all values of the result compare.
func (w *queryWants) sorted() bool {
	return !slices.ContainsFunc(w.types, func(t *typ) bool { return t.unsorted })
}

// distinctOn makes SELECT DISTINCT ON with an order that is whole, so that the rows are determined.
func (g *gen) distinctOn(w queryWants, columns []column) *tree {
	src := g.from(w.outer, w.depth)
	inner := &scope{columns: src.columns, outer: w.outer}
	var list []*tree
	var keys []string
	for i, c := range columns {
		list = append(list, seq(g.expr(c.typ, inner, w.depth), " AS "+c.name))
		keys = append(keys, fmt.Sprint(i+1)+pick(g, []string{"", " DESC"}))
	}
	return seq("SELECT DISTINCT ON (1) ", joined(list), " FROM ", src.tree, opt(" WHERE ", g.boolean(inner, w.depth)), " ORDER BY "+strings.Join(keys, ", "))
}

// selectCore makes SELECT without ORDER BY; locks if it has FOR UPDATE.
func (g *gen) selectCore(w queryWants, columns []column) (t *tree, locks bool) {
	var src *source
	inner := &scope{outer: w.outer}
	if !g.chance(5) {
		src = g.from(w.outer, w.depth)
		inner.columns = src.columns
	}
	items := &scope{columns: inner.columns, outer: w.outer, windows: src != nil}
	var group, having *tree
	if src != nil && g.chance(25) {
		items, group, having = g.grouped(inner, w.depth)
	}
	var list []*tree
	for i, c := range columns {
		e := g.expr(c.typ, items, w.depth)
		if src != nil && group == nil && w.limit == 0 && g.chance(4) {
			if set := g.setCall(c.typ, inner, w.depth); set != nil {
				e = set
			}
		}
		list = append(list, seq(e, " AS "+columns[i].name))
	}
	var from, where *tree
	if src != nil {
		from = opt(" FROM ", src.tree)
		if g.chance(60) {
			where = opt(" WHERE ", g.boolean(inner, w.depth))
		}
	}
	distinct := &tree{}
	if group == nil && g.chance(8) && w.sorted() {
		distinct = opt("DISTINCT ")
	}
	var lock *tree
	if w.top && group == nil && len(distinct.kids) == 0 && src != nil && g.chance(3) {
		lock = opt(pick(g, []string{" FOR UPDATE", " FOR SHARE", " FOR NO KEY UPDATE", " FOR KEY SHARE"}))
	}
	return seq("SELECT ", distinct, listOf(", ", 1, list...), from, where, group, having, lock), lock != nil
}

// grouped makes GROUP BY and HAVING, and the scope of the select list.
func (g *gen) grouped(inner *scope, depth int) (items *scope, group, having *tree) {
	items = &scope{outer: inner.outer, over: inner}
	var keys []*tree
	for range g.IntN(3) {
		var t *typ
		var e *tree
		if g.chance(75) {
			c := pick(g, inner.columns)
			if c.typ.unsorted && !g.chance(3) {
				continue
			}
			t, e = c.typ, leaf(c.name)
		} else {
			t = g.sortedColumnType(inner)
			e = g.expr(t, inner, 1)
			if isConstant(e) || len(e.kids) == 0 && !strings.Contains(e.text, ".") {
				continue // a constant, which may read as a position
			}
		}
		keys = append(keys, e)
		items.columns = append(items.columns, column{expr: e, typ: t})
	}
	// PostgreSQL 15 takes a key without columns for a constant, which is not NULL in the sets without it.
	columnsOnly := !slices.ContainsFunc(keys, func(k *tree) bool { return len(k.kids) > 0 })
	if len(keys) > 0 && columnsOnly && g.chance(12) {
		group = g.mixedSets(keys)
	} else if len(keys) > 0 && columnsOnly && g.chance(40) {
		group = g.groupingSets(keys)
		items.columns = append(items.columns, column{expr: seq("GROUPING(", clones(keys)[0], ")"), typ: byOID[types.OIDInt4]})
	} else if len(keys) > 0 {
		group = opt(" GROUP BY ", listOf(", ", 1, keys...))
	} else {
		group = &tree{}
	}
	if g.chance(30) {
		having = opt(" HAVING ", g.boolean(items, min(depth, 2)))
	}
	return items, group, having
}

// orderAndLimit makes ORDER BY, LIMIT and OFFSET: rows are cut off only in an order that is whole.
func (g *gen) orderAndLimit(w queryWants) []any {
	coarse := w.anyCoarse()
	if w.limit == 0 && (!g.chance(30) || !w.sorted()) {
		return nil
	}
	whole := w.limit > 0 || g.chance(60)
	var keys []*tree
	for _, i := range g.Perm(len(w.types)) {
		keys = append(keys, leaf(fmt.Sprintf("%d%s", i+1, pick(g, []string{"", "", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"}))))
		if !whole && g.chance(50) {
			break
		}
	}
	list := listOf(", ", 1, keys...)
	order := seq(" ORDER BY ", list)
	if w.limit == 0 && g.chance(12) {
		// Whoever ties with the last row comes too, so that any order says which rows there are.
		return []any{order, leaf(fmt.Sprintf(" FETCH FIRST %d ROWS WITH TIES", g.IntN(4)))}
	}
	if w.top && whole && !coarse {
		g.ordered = true
	}
	if whole {
		list.least = len(keys)
	}
	if whole && (w.limit > 0 || !coarse && g.chance(60)) {
		n := w.limit
		if n == 0 {
			n = g.IntN(6)
		}
		limit := opt(fmt.Sprintf(" LIMIT %d", n))
		limit.optional = w.limit == 0
		if w.limit == 0 && g.chance(30) {
			return []any{order, limit, opt(fmt.Sprintf(" OFFSET %d", g.IntN(4)))}
		}
		return []any{order, limit}
	}
	order.optional = true
	return []any{order}
}

// aggregateQuery is a query of one row: an aggregate with a result of type t.
func (g *gen) aggregateQuery(t *typ, outer *scope, depth int) *tree {
	g.depth++
	defer func() { g.depth-- }()
	src := g.from(outer, min(depth, 1))
	inner := &scope{columns: src.columns, outer: outer}
	for range 5 {
		if a := g.aggregate(t, inner, min(depth, 1)); a != nil {
			return seq("SELECT ", a, " AS k1 FROM ", src.tree, opt(" WHERE ", g.boolean(inner, min(depth, 2)))).as("query:"+t.sql, "")
		}
	}
	return nil
}

// setOperation makes UNION, INTERSECT or EXCEPT.
func (g *gen) setOperation(w queryWants, columns []column) *tree {
	part := func() *tree {
		sub := w
		sub.total, sub.top = true, false
		body, _ := g.selectCore(sub, columns)
		return seq("(", body, ")")
	}
	t := part()
	for i := 0; i == 0 || g.chance(30); i++ {
		t = seq(t, " "+pick(g, []string{"UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"})+" ", part())
	}
	return t
}

// with makes WITH items for a query.
func (g *gen) with(w queryWants) *tree {
	if g.depth > 2 || !g.chance(10) {
		return nil
	}
	var items []*tree
	recursive := ""
	for range 1 + g.IntN(2) {
		name := g.alias("q")
		if g.chance(15) {
			recursive = "RECURSIVE "
			items = append(items, g.walk(name))
			continue
		}
		if g.chance(20) {
			recursive = "RECURSIVE "
			items = append(items, leaf(fmt.Sprintf("%s(n) AS (SELECT %d UNION ALL SELECT n + %d FROM %s WHERE n < %d)", name, g.IntN(3), 1+g.IntN(3), name, 3+g.IntN(8))))
			g.ctes = append(g.ctes, &relation{name, []column{{name: "n", typ: byOID[types.OIDInt4]}}})
			continue
		}
		q, columns := g.query(queryWants{depth: min(w.depth, 2), total: true, columns: 1 + g.IntN(3)})
		items = append(items, seq(name+" AS ", opt(pick(g, []string{"", "", "MATERIALIZED ", "NOT MATERIALIZED "})), "(", q, ")"))
		g.ctes = append(g.ctes, &relation{name, columns})
	}
	return opt("WITH "+recursive, listOf(", ", 1, items...), " ")
}

// walk makes a recursive item over a table's rows that ends at its cycles, or after some steps.
func (g *gen) walk(name string) *tree {
	t := pick(g, g.world.tables)
	first := fmt.Sprintf("SELECT a.id %% 5, 0 FROM %s AS a WHERE a.id < %d", t.name, 2+g.IntN(4))
	step := fmt.Sprintf("SELECT (r.n * %d + %d) %% 5, r.m + 1 FROM %s AS r", 1+g.IntN(3), g.IntN(3), name)
	if g.chance(40) {
		step += fmt.Sprintf(" JOIN %s AS b ON b.id = r.n", t.name)
	}
	step += " WHERE r.m < 4"
	columns := []column{{name: "n", typ: byOID[types.OIDInt4]}, {name: "m", typ: byOID[types.OIDInt4]}}
	clause := ""
	if g.chance(40) {
		clause += pick(g, []string{" SEARCH DEPTH FIRST BY n SET way", " SEARCH BREADTH FIRST BY n, m SET way"})
	}
	if g.chance(60) {
		clause += " CYCLE n SET loop" + pick(g, []string{"", " TO 'y' DEFAULT 'n'"}) + " USING path"
	}
	g.ctes = append(g.ctes, &relation{name, columns})
	return seq(name+"(n, m) AS ("+first+pick(g, []string{" UNION ", " UNION ALL "})+step+")", opt(clause))
}
