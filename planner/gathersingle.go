package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// gatherSingle takes a scalar subquery of at most one row for each outer row. Whether a group has more shows when an outer row has it:
//
//	(SELECT v FROM o WHERE o.aid = a.id)    a LEFT JOIN (SELECT aid, single_value(v), count(*) FROM o GROUP BY aid) g ON aid = id; only_row(count, v)
func (p *physical) gatherSingle(sr *subRel) *gathering {
	root, value := sr.root, expr.Scalar(p.b.column(sr.cols[0], 0))
	for {
		shape, ok := root.(*projectRel)
		if !ok {
			break
		}
		value, _ = shape.substitute(value)
		root = shape.input
	}
	if used(value).intersects(sr.free) || !neverFails(value) || expr.HasSubquery(value) {
		return nil
	}
	g := p.groupBy(root, sr.free)
	if g == nil || !used(value).within(outputSet(g.groups.input)) {
		return nil
	}
	count, err := builtin.ResolveAggregate("count", nil)
	if err != nil {
		return nil
	}
	t := value.Type()
	held, rows := p.b.newColumn("single_value", t), p.b.newColumn("count", types.TInt8)
	g.groups.aggs = []aggregation{
		{id: held, name: "single_value", call: AggregateCall{Func: builtin.SingleValue(t), Args: []expr.Scalar{value}}},
		{id: rows, name: "count", call: AggregateCall{Func: count}},
	}
	g.needs = outputSet(g.groups)
	g.substitute = func(expr.Scalar) expr.Scalar {
		return &expr.Call{Fn: onlyRowValue(t), Args: []expr.Scalar{p.b.column(rows, 0), p.b.column(held, 0)}}
	}
	return g
}

// onlyRowValue returns the value of a group, if that has one row.
func onlyRowValue(t types.Type) *builtin.Overload {
	return &builtin.Overload{
		Name: "only_row", Args: []types.Type{types.TInt8, t}, Ret: t, Volatility: builtin.Immutable,
		Fn: func(_ *builtin.Env, a []types.Datum) (types.Datum, error) {
			if !a[0].IsNull() && a[0].Int() > 1 {
				return types.Null, pgerror.New(pgerror.CardinalityViolation, "more than one row returned by a subquery used as an expression")
			}
			return a[1], nil
		},
	}
}
