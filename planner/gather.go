package planner

import (
	"math"
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// A correlated subquery that cannot become a join of its own, in a select list, below OR, compared with a column, runs once for each row. If its
// condition equates its rows with columns of the outer row, its results for all rows can be computed at once: its rows are grouped by
// their side of the equality, and the groups are joined with the outer rows by hash.
//
//	(SELECT sum(v) FROM o WHERE o.aid = a.id)    a LEFT JOIN (SELECT aid, sum(v) FROM o GROUP BY aid) g ON aid = id; the sum
//	(SELECT v FROM o WHERE o.aid = a.id)         as gatherSingle does
//	EXISTS (SELECT FROM o WHERE o.aid = a.id)    a LEFT JOIN (SELECT aid FROM o GROUP BY aid) g ON aid = id; aid IS NOT NULL
//
// The costs decide, and they depend on the number of outer rows, so that this is a choice of the physical plan and no rule. Groups that
// no row asks for are computed too, hence nothing in them may fail.

// gatherFrom is the number of rows from which gathering is considered.
const gatherFrom = 50

// gathering is a subquery as groups.
type gathering struct {
	groups *aggRel
	keys   []expr.Scalar // over the outer row, one for each of the groups' keys
	// substitute replaces expressions over the subquery's row by those over the outer row and the group, whose columns are NULL where
	// there is no group.
	substitute func(expr.Scalar) expr.Scalar
	needs      colSet // the groups' columns that may be read
}

// gather joins in with the groups of the correlated subqueries in es where that is cheaper than running them for each of its rows, and
// returns es with columns in their place. pulled is the number of rows that are expected to be needed, 0: all.
func (p *physical) gather(in pnode, es []expr.Scalar, pulled float64) (pnode, []expr.Scalar) {
	rows := in.est.Rows
	if pulled > 0 {
		rows = math.Min(rows, pulled)
	}
	if p.b.subs == 0 || p.err != nil || rows < gatherFrom || !slices.ContainsFunc(es, expr.HasSubquery) {
		return in, es
	}
	out := slices.Clone(es)
	for i, e := range out {
		if !expr.HasSubquery(e) {
			continue
		}
		out[i] = expr.Rewrite(e, func(x expr.Scalar) expr.Scalar {
			value, joined, ok := p.gatherOne(x, in, rows)
			if ok {
				in = joined
				return value
			}
			return x
		})
	}
	return in, out
}

// gatherOne gathers the subquery x if that can be done and pays.
func (p *physical) gatherOne(x expr.Scalar, in pnode, rows float64) (value expr.Scalar, joined pnode, ok bool) {
	var g *gathering
	sub := expr.SubqueryOf(x)
	if sub == nil {
		return nil, in, false
	}
	sr := sub.Plan.(*subRel)
	if sr.hidden || sr.free.empty() || !sr.free.within(setOf(in.cols)) {
		return nil, in, false
	}
	switch x.(type) {
	case *expr.ScalarSubquery:
		if g = p.gatherAggregate(sr.root, sr.free); g == nil {
			g = p.gatherSingle(sr)
		}
		if g != nil {
			value = g.substitute(p.b.column(sr.cols[0], 0))
		}
	case *expr.Exists:
		if g = p.gatherExists(sr); g != nil {
			value = &expr.IsNull{X: p.b.column(g.groups.groups[0].id, 0), Not: true}
		}
	}
	if g == nil {
		return nil, in, false
	}
	each := p.subplan(sub, in.cols).Plan.(Node).Estimate().Cost + subqueryCost
	joined, ok = p.joinGroups(g, in, each, rows)
	return value, joined, ok
}

// joinGroups joins in with the groups of g, if that costs less than each for every one of rows.
func (p *physical) joinGroups(g *gathering, in pnode, each, rows float64) (pnode, bool) {
	if p.err != nil {
		return in, false
	}
	need := g.needs.clone()
	var keys []equiKey
	for i, k := range g.keys {
		need.add(g.groups.groups[i].id)
		keys = append(keys, equiKey{left: k, right: p.b.column(g.groups.groups[i].id, 0)})
	}
	right := p.plan(g.groups, ask{need: need})
	if p.err != nil || right.est.Cost+right.est.Rows*hashCost+rows*(probeCost+emitCost) >= rows*each {
		return in, false
	}
	joined := p.equiJoin(LeftJoin, in, right, nil, keys)
	joined.est = Estimate{ // A row has one group at most.
		Rows: in.est.Rows, Cost: in.est.Cost + right.est.Cost + right.est.Rows*hashCost + in.est.Rows*(probeCost+emitCost),
	}
	joined.node.base().Est = joined.est
	return joined, p.err == nil
}

// gatherLateral joins left with the groups of the aggregating subquery on the right of j, if that is cheaper than running it, planned as right,
// for each row.
func (p *physical) gatherLateral(j *joinRel, left, right pnode, need colSet, a ask) (pnode, bool) {
	rows := left.est.Rows
	if a.limit > 0 {
		rows = math.Min(rows, a.limit)
	}
	free := freeColumns(j.right)
	if len(j.on) > 0 || j.kind != InnerJoin && j.kind != LeftJoin || rows < gatherFrom || !free.within(setOf(left.cols)) ||
		len(a.want) > 0 && len(left.order) > 0 {
		return left, false
	}
	g := p.gatherAggregate(j.right, free)
	if g == nil {
		return left, false
	}
	joined, ok := p.joinGroups(g, left, applyCost+right.est.Cost, rows)
	if !ok {
		return left, false
	}
	cols := slices.Clone(left.cols)
	exprs := make([]expr.Scalar, 0, len(cols))
	for _, id := range cols {
		exprs = append(exprs, p.place(p.b.column(id, 0), joined.cols))
	}
	need.each(func(id int) {
		cols = append(cols, id)
		exprs = append(exprs, p.compile(g.substitute(p.b.column(id, 0)), joined.cols))
	})
	est := joined.est
	est.Cost += est.Rows * emitCost
	return pnode{node: p.projection(cols, est, joined.node, exprs), cols: cols, order: joined.order, est: est}, p.err == nil
}

// gatherAggregate takes a subquery that aggregates all of its rows: projections over a grouping without keys.
func (p *physical) gatherAggregate(root rel, free colSet) *gathering {
	var shapes []*projectRel
	for {
		pr, ok := root.(*projectRel)
		if !ok {
			break
		}
		shapes, root = append(shapes, pr), pr.input
	}
	agg, ok := root.(*aggRel)
	if !ok || !agg.scalar || len(agg.groups) > 0 || len(agg.empties) > 0 {
		return nil
	}
	for i := range agg.aggs {
		if !gatherableCall(&agg.aggs[i].call, free) {
			return nil
		}
	}
	for _, s := range shapes {
		for i := range s.items {
			if expr.HasSubquery(s.items[i].e) || expr.Volatile(s.items[i].e) {
				return nil
			}
		}
	}
	g := p.groupBy(agg.input, free)
	if g == nil {
		return nil
	}
	g.groups.aggs = agg.aggs
	g.needs = outputSet(g.groups)
	g.substitute = func(e expr.Scalar) expr.Scalar {
		for _, s := range shapes {
			e, _ = s.substitute(e)
		}
		return expr.Rewrite(e, func(x expr.Scalar) expr.Scalar { return countsAsZero(x, agg.aggs) })
	}
	return g
}

// gatherableCall reports whether an aggregate's result for no rows is known, and nothing in it reads the outer row or fails.
func gatherableCall(c *AggregateCall, free colSet) bool {
	if c.Func.Direct > 0 || len(c.Direct) > 0 {
		return false
	}
	ok := true
	mapAggregate(c, func(e expr.Scalar) expr.Scalar {
		ok = ok && neverFails(e) && !used(e).intersects(free)
		return e
	})
	return ok
}

// countsAsZero replaces the column of an aggregate that counts by zero where there is no group. The other aggregates are NULL of no rows.
func countsAsZero(x expr.Scalar, aggs []aggregation) expr.Scalar {
	c, ok := x.(*expr.Column)
	if !ok {
		return x
	}
	for i := range aggs {
		if f := aggs[i].call.Func; aggs[i].id == c.ID && (f.Name == "count" || f.Name == "regr_count") {
			return &expr.Coalesce{Args: []expr.Scalar{x, &expr.Const{Value: types.Int(0), Typ: f.Ret}}, Typ: f.Ret}
		}
	}
	return x
}

// gatherExists takes the subquery of EXISTS.
func (p *physical) gatherExists(sr *subRel) *gathering {
	g := p.groupBy(stripShape(sr.root), sr.free)
	if g != nil {
		g.needs = outputSet(g.groups)
	}
	return g
}

// groupBy groups the rows of r, which names outer columns in equalities with its own only, by its sides of these; nil if it cannot be done.
func (p *physical) groupBy(r rel, free colSet) *gathering {
	rows, on, ok := p.decorrelate(r, free)
	if !ok || len(on) == 0 || !safeTree(rows) {
		return nil
	}
	keys := equiKeys(on, free, outputSet(rows))
	if len(keys) != len(on) {
		return nil
	}
	g := &gathering{groups: &aggRel{input: rows}}
	for _, k := range keys {
		if !neverFails(k.right) {
			return nil
		}
		name := ""
		if c, ok := k.right.(*expr.Column); ok {
			name = c.Name
		}
		g.groups.groups = append(g.groups.groups, projection{id: p.b.newColumn(name, k.right.Type()), e: k.right})
		g.keys = append(g.keys, k.left)
	}
	return g
}

// safeTree reports whether all expressions below r can be evaluated for rows that the statement does not ask for: they cannot fail, and do
// not change from one evaluation to the next.
func safeTree(r rel) bool {
	safe := true
	walkExprs(r, func(e expr.Scalar) { safe = safe && (e == nil || neverFails(e)) })
	return safe
}

func neverFails(e expr.Scalar) bool {
	return expr.NeverFails(e) && !expr.Volatile(e) && !expr.HasSubquery(e)
}
