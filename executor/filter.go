package executor

import (
	"context"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// filter passes the rows for which cond is true.
type filter struct {
	ex    *execution
	input Operator
	cond  expr.Scalar
}

func (o *filter) Open(ctx context.Context) error { return o.input.Open(ctx) }
func (o *filter) Close() error                   { return o.input.Close() }

func (o *filter) Next(ctx context.Context) (types.Row, error) {
	for {
		row, err := o.input.Next(ctx)
		if row == nil || err != nil {
			return nil, err
		}
		ok, err := o.ex.holds(o.cond, row)
		if err != nil {
			return nil, err
		}
		if ok {
			return row, nil
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// holds reports whether a condition is true of a row; NULL is not true, no condition is.
func (ex *execution) holds(cond expr.Scalar, row types.Row) (bool, error) {
	if cond == nil {
		return true, nil
	}
	return expr.EvalBool(cond, &ex.ev, row)
}
