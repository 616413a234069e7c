package planner

import (
	"math"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// checkTies refuses FETCH … WITH TIES where no order says what ties.
func checkTies(q *ast.Query) error {
	if !q.Ties {
		return nil
	}
	if len(q.OrderBy) == 0 {
		return pgerror.New(pgerror.SyntaxError, "WITH TIES cannot be specified without ORDER BY clause")
	}
	for i := range q.Locking {
		if q.Locking[i].Wait == "SKIP LOCKED" {
			return pgerror.New(pgerror.SyntaxError, "SKIP LOCKED and WITH TIES options cannot be used together")
		}
	}
	if _, null := q.Limit.(*ast.Null); null {
		return pgerror.New(pgerror.InvalidRowCountInLimit, "row count cannot be null in FETCH FIRST ... WITH TIES clause")
	}
	return nil
}

// orderOfQuery returns copies of the keys by which a query is sorted, for its ties.
func orderOfQuery(r rel) []SortKey {
	for r != nil {
		if s, ok := r.(*sortRel); ok {
			keys := make([]SortKey, len(s.keys))
			for i, k := range s.keys {
				keys[i] = k
				keys[i].Expr = expr.Clone(k.Expr)
			}
			return keys
		}
		r = input(r)
	}
	return nil
}

// limitWithTies plans a limit that passes the rows which tie with its last one: over rows in their order.
func (p *physical) limitWithTies(r *limitRel, a ask) pnode {
	below := a.clone()
	below.limit = 0
	for _, k := range r.ties {
		addUsed(k.Expr, &below.need)
	}
	in := p.plan(r.input, below)
	if p.err != nil {
		return in
	}
	est := in.est
	if n := expectedLimit(expr.Rewrite(r.limit, expr.Fold), expr.Rewrite(r.offset, expr.Fold)); n > 0 {
		est.Rows = math.Min(est.Rows, n)
	}
	return pnode{cols: in.cols, order: in.order, est: est, node: &Limit{Base: p.base(in.cols, est), Input: in.node,
		Limit: p.compile(r.limit, nil), Offset: p.compile(r.offset, nil), Ties: p.sortKeys(r.ties, in.cols)}}
}
