package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
)

// group decides whether the SELECT is grouped, and then makes every expression above the grouping
// read the groups' columns, refusing columns that a group does not determine.
func (sb *selectBinder) group() error {
	if len(sb.groups) == 0 && len(sb.sel.aggs) == 0 && sb.having == nil && sb.sets == nil && len(sb.sel.groupings) == 0 {
		return nil
	}
	if len(sb.sel.aggs) > 0 && slices.ContainsFunc(sb.sc.items, func(it nsItem) bool { return it.work }) {
		return pgerror.New(invalidRecursion, "aggregate functions are not allowed in a recursive query's recursive term").At(sb.sel.aggs[0].pos)
	}
	if err := sb.markGroupings(); err != nil {
		return err
	}
	sb.sel.grouped = true
	g := &grouper{sb: sb}
	for _, x := range sb.groups {
		// An enclosing query's column is a computed key: as a column key it would hide the column that the rows below
		// read.
		if c, ok := x.(*expr.Column); ok && sb.sel.own.has(c.ID) && len(sb.sets) <= 1 {
			g.keys.add(c.ID)
			continue
		}
		g.ids = append(g.ids, groupedExpr{x, sb.b.newColumn("group", x.Type())})
	}
	sb.groupIDs = g.ids
	if err := sb.splitSets(); err != nil {
		return err
	}
	for i := range sb.sel.aggs {
		g.keys.add(sb.sel.aggs[i].id)
	}
	if err := g.groupDirect(); err != nil {
		return err
	}
	var firstErr error
	rewrite := func(e expr.Scalar) expr.Scalar {
		if firstErr != nil {
			return e
		}
		x, err := g.rewrite(e)
		firstErr = err
		return x
	}
	for i := range sb.targets {
		if k := slices.Index(sb.groupTargets, i); k >= 0 && len(sb.sets) > 1 {
			sb.targets[i].e = sb.b.column(g.ids[k].id, 0)
			continue
		}
		sb.targets[i].e = rewrite(sb.targets[i].e)
	}
	for _, w := range sb.sel.windows {
		w.mapExprs(rewrite)
	}
	for i := range sb.sel.sets {
		for j, arg := range sb.sel.sets[i].args {
			sb.sel.sets[i].args[j] = rewrite(arg)
		}
	}
	if sb.having != nil {
		sb.having = rewrite(sb.having)
	}
	return firstErr
}

// splitSets takes the set-returning functions that are grouped by from those that run above the grouping. Neither an aggregate nor a
// window function can be an argument of one that is grouped by.
func (sb *selectBinder) splitSets() error {
	var grouped colSet
	for _, x := range sb.groups {
		addUsed(x, &grouped)
	}
	for i := len(sb.sel.sets) - 1; i >= 0; i-- { // arguments stand before what they are arguments of
		if s := &sb.sel.sets[i]; grouped.has(s.id) {
			for _, arg := range s.args {
				addUsed(arg, &grouped)
			}
		}
	}
	sb.sel.sets = slices.DeleteFunc(sb.sel.sets, func(s setProjection) bool {
		if grouped.has(s.id) {
			sb.sel.groupSets = append(sb.sel.groupSets, s)
		}
		return grouped.has(s.id)
	})
	var below colSet
	for _, s := range sb.sel.groupSets {
		for _, arg := range s.args {
			addUsed(arg, &below)
		}
	}
	for _, a := range sb.sel.aggs {
		if below.has(a.id) {
			return pgerror.New(pgerror.Grouping, "aggregate functions are not allowed in GROUP BY")
		}
	}
	for _, w := range sb.sel.windows {
		if slices.ContainsFunc(w.calls, func(c windowing) bool { return below.has(c.id) }) {
			return pgerror.New(pgerror.WindowingError, "window functions are not allowed in GROUP BY")
		}
	}
	return nil
}

// groupID returns the column made for a computed key, -1 for a column of FROM.
func (sb *selectBinder) groupID(x expr.Scalar) int {
	for i := range sb.groupIDs {
		if sb.groupIDs[i].e == x {
			return sb.groupIDs[i].id
		}
	}
	return -1
}

// groupedExpr is a GROUP BY expression that is no plain column.
type groupedExpr struct {
	e  expr.Scalar
	id int
}

// grouper rewrites expressions above a grouping.
type grouper struct {
	sb   *selectBinder
	keys colSet // columns that may be read: plain keys and aggregates
	ids  []groupedExpr
	// inSub is set inside a subquery, where the error says so.
	inSub bool
}

func (g *grouper) rewrite(e expr.Scalar) (expr.Scalar, error) {
	return expr.RewriteTop(e, func(x expr.Scalar) (expr.Scalar, error) {
		for i := range g.ids {
			if expr.Refers(g.ids[i].e, x, g.sameSubquery) {
				return g.sb.b.column(g.ids[i].id, 0), nil
			}
		}
		switch x := x.(type) {
		case *expr.Column:
			return g.column(x)
		case *expr.Const, *expr.Input:
			return x, nil
		}
		if sub := expr.SubqueryOf(x); sub != nil {
			return nil, g.subquery(sub)
		}
		return nil, nil
	})
}

// sameSubquery reports whether two subqueries of the grouped query itself are the same text, so that they
// mean the same. In a subquery the names of a text may mean something else.
func (g *grouper) sameSubquery(a, b *expr.Subquery) bool {
	return a == b || !g.inSub && a.Source != nil && b.Source != nil && a.Source.String() == b.Source.String()
}

// column accepts a column that the group determines: a key, an aggregate, another query's, a column
// of a table whose primary key is grouped by.
func (g *grouper) column(c *expr.Column) (expr.Scalar, error) {
	if !g.keys.has(c.ID) && slices.ContainsFunc(g.sb.sel.groupSets, func(s setProjection) bool { return s.id == c.ID }) {
		return nil, pgerror.Unsupported("grouping by one column of a set-returning function in the select list beside others of it", "Call the function in FROM.").At(c.Pos)
	}
	if g.keys.has(c.ID) || !g.sb.sel.own.has(c.ID) {
		return c, nil
	}
	info := &g.sb.b.cols[c.ID]
	if info.scan != nil && g.determined(info.scan) {
		return g.addDetermined(c), nil
	}
	name := g.sb.sc.columnName(c)
	if g.inSub {
		return nil, pgerror.New(pgerror.Grouping, "subquery uses ungrouped column \"%s\" from outer query", name).At(c.Pos)
	}
	return nil, pgerror.New(pgerror.Grouping,
		"column \"%s\" must appear in the GROUP BY clause or be used in an aggregate function", name).At(c.Pos)
}

// addDetermined groups by a column that the keys determine, which changes nothing, and returns what reads it above the grouping.
func (g *grouper) addDetermined(c *expr.Column) expr.Scalar {
	key := g.sb.b.column(c.ID, 0)
	g.sb.groups = append(g.sb.groups, key)
	if len(g.sb.sets) <= 1 {
		g.keys.add(c.ID)
		return c
	}
	for i := range g.sb.sets {
		g.sb.sets[i] = append(g.sb.sets[i], len(g.sb.groups)-1)
	}
	g.ids = append(g.ids, groupedExpr{key, g.sb.b.newColumn("group", c.Typ)})
	g.sb.groupIDs = g.ids
	return g.sb.b.column(g.ids[len(g.ids)-1].id, 0)
}

// determined reports whether the whole primary key of s is among the keys, of each grouping set if there are some.
func (g *grouper) determined(s *scanRel) bool {
	pk := &s.table.Primary
	if len(pk.Columns) == 0 || s.table.Kind == catalog.KindTable && !s.table.HasPrimaryKey() {
		return false
	}
	for i := range pk.Columns {
		ord := s.table.Ordinal(pk.Columns[i].ColumnID)
		if ord < 0 || s.table.Columns[ord].Hidden || !g.keys.has(s.cols[ord]) && !g.inAllSets(s.cols[ord]) {
			return false
		}
	}
	return true
}

// inAllSets reports whether each of several grouping sets has a column.
func (g *grouper) inAllSets(id int) bool {
	key := slices.IndexFunc(g.sb.groups, func(x expr.Scalar) bool {
		c, ok := x.(*expr.Column)
		return ok && c.ID == id
	})
	return key >= 0 && len(g.sb.sets) > 1 && !slices.ContainsFunc(g.sb.sets, func(set []int) bool { return !slices.Contains(set, key) })
}

// subquery rewrites the references of a subquery to the grouped query.
func (g *grouper) subquery(sub *expr.Subquery) error {
	sr := sub.Plan.(*subRel)
	if !sr.free.intersects(g.sb.sel.own) {
		return nil
	}
	inner := &grouper{sb: g.sb, keys: g.keys.clone(), ids: g.ids, inSub: true}
	var firstErr error
	rewriteAll(sr.root, func(e expr.Scalar) expr.Scalar {
		x, err := inner.rewrite(e)
		if err != nil {
			if firstErr == nil {
				firstErr = err
			}
			return e
		}
		return x
	})
	g.keys, g.ids = inner.keys, inner.ids
	sr.free = freeColumns(sr.root)
	sub.Correlated = !sr.free.empty()
	return firstErr
}

// rewriteAll replaces every expression of the tree below r by f of it.
func rewriteAll(r rel, f func(expr.Scalar) expr.Scalar) {
	mapExprs(r, f)
	mapInputs(r, func(in rel) rel { rewriteAll(in, f); return in })
}
