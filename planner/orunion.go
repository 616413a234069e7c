package planner

import (
	"math"

	"github.com/percodb/percodb/planner/expr"
)

// maxAlternatives is the greatest number of alternatives that are read by an index each.
const maxAlternatives = 8

// orUnion plans WHERE a = 1 OR b = 2 as the rows of one index with a = 1, followed by those of another with b = 2 for which a = 1 is not
// true, so that no row comes twice; false where that costs more than best, the cheapest path over one index.
func (p *physical) orUnion(s *scanRel, best *path, a ask) (pnode, bool) {
	if best.point || best.cost <= 2*spanCost || s.secured {
		return pnode{}, false
	}
	for i, c := range s.conds {
		or, ok := c.(*expr.Or)
		if !ok || len(or.Args) > maxAlternatives || expr.HasSubquery(or) || expr.Volatile(or) {
			continue
		}
		others := append(append([]expr.Scalar(nil), s.conds[:i]...), s.conds[i+1:]...)
		branches := p.branches(s, or, others, best.cost, a)
		if branches != nil && p.err == nil {
			return p.unionAll(branches), true
		}
	}
	return pnode{}, false
}

// branches plans the alternatives of a condition; nil if together they cost more than limit.
func (p *physical) branches(s *scanRel, or *expr.Or, others []expr.Scalar, limit float64, a ask) []pnode {
	var scans []*scanRel
	var paths []path
	cost, rows := 0.0, 0.0
	for i, arg := range or.Args {
		one := *s
		one.conds = append(expr.Conjuncts(nil, arg), others...)
		for _, earlier := range or.Args[:i] {
			one.conds = append(one.conds, &expr.IsBool{X: earlier, Want: true, Not: true})
		}
		need := a.need.clone()
		for _, c := range one.conds {
			addUsed(c, &need)
		}
		pa := p.choosePath(&one, one.conds, need, nil, 0)
		if len(pa.eq) == 0 && pa.tuples == nil && pa.low == nil && pa.high == nil {
			return nil
		}
		cost, rows = cost+pa.cost, rows+pa.rows
		scans, paths = append(scans, &one), append(paths, pa)
	}
	if len(a.want) > 0 {
		cost += sortPrice(rows)
	}
	if cost >= limit {
		return nil
	}
	var ids []int
	for _, id := range s.cols {
		if a.need.has(id) {
			ids = append(ids, id)
		}
	}
	out := make([]pnode, len(scans))
	for i := range scans {
		out[i] = p.shape(p.readPath(scans[i], &paths[i], ask{need: a.need}), ids)
	}
	return out
}

// unionAll appends the rows of branches with the same columns.
func (p *physical) unionAll(branches []pnode) pnode {
	out := branches[0]
	for _, b := range branches[1:] {
		est := Estimate{Rows: out.est.Rows + b.est.Rows, Cost: out.est.Cost + b.est.Cost}
		out = pnode{cols: out.cols, est: est,
			node: &SetOp{Base: p.base(out.cols, est), Op: "UNION", All: true, Left: out.node, Right: b.node}}
	}
	out.order = nil
	out.est.Rows = math.Max(out.est.Rows, 1)
	return out
}
