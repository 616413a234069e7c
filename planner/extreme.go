package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// maxExtremes is the greatest number of extremes that are read one by one.
const maxExtremes = 8

// extremes plans SELECT min(x), max(y) … FROM t, each of which is read from the end of an index, where there is one in its order and that
// costs less than reading the table.
func (p *physical) extremes(r *aggRel, aggs []aggregation) (pnode, bool) {
	s, ok := r.input.(*scanRel)
	if !ok || !r.scalar || len(aggs) == 0 || len(aggs) > maxExtremes || isVirtual(s) || falseScan(s) {
		return pnode{}, false
	}
	var out pnode
	var all colSet
	for i := range aggs {
		one := aggs[i : i+1]
		var need colSet
		p.addAggregateUse(&one[0].call, &need)
		all.addAll(need)
		in, ok := p.extreme(s, &one[0].call, need)
		if !ok {
			return pnode{}, false
		}
		end := p.aggregateNode(r, one, in)
		if i == 0 {
			out = end
		} else {
			out = p.equiJoin(InnerJoin, out, end, nil, nil) // of one row each
		}
	}
	return out, p.err == nil && (len(aggs) == 1 || out.est.Cost < p.scanCost(s, all))
}

// extreme plans the read of the first value in an index's order that is not NULL; false where no index is in the order of the call's
// argument.
func (p *physical) extreme(s *scanRel, call *AggregateCall, need colSet) (pnode, bool) {
	if call.Func.FirstByOrder == 0 || call.Filter != nil || len(call.Args) != 1 {
		return pnode{}, false
	}
	col, ok := expr.Unlabel(call.Args[0]).(*expr.Column)
	if !ok || s.ordinalOf(col) < 0 {
		return pnode{}, false
	}
	p.indexed(s)
	first := *s
	if !p.b.cols[col.ID].notNull {
		first.conds = append(append([]expr.Scalar(nil), s.conds...), &expr.IsNull{X: expr.Clone(col), Not: true})
	}
	desc := call.Func.FirstByOrder > 0
	for _, nullsFirst := range [2]bool{desc, !desc} {
		want := []orderKey{{id: col.ID, desc: desc, nullsFirst: nullsFirst, coll: call.Func.Args[0].Coll}}
		if s.table.IsPartitioned() {
			in := p.appendParts(&first, ask{need: need, want: want, limit: 1})
			if satisfies(in.order, want) {
				return p.firstOf(in), true
			}
			continue
		}
		pa := p.choosePath(&first, first.conds, need, want, 1)
		if pa.ordered && !pa.point && pa.cost < p.scanCost(s, need) {
			in := p.readPath(&first, &pa, ask{need: need, want: want, limit: 1})
			return p.firstOf(in), true
		}
	}
	return pnode{}, false
}

// firstOf takes the first of the rows.
func (p *physical) firstOf(in pnode) pnode {
	est := Estimate{Rows: 1, Cost: in.est.Cost}
	one := &expr.Const{Value: types.Int(1), Typ: types.TInt8}
	return pnode{cols: in.cols, order: in.order, est: est, node: &Limit{Base: p.base(in.cols, est), Input: in.node, Limit: one}}
}
