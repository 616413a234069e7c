package executor

import (
	"context"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// project computes exprs over each row.
type project struct {
	ex    *execution
	input Operator
	exprs []expr.Scalar
	out   types.Row
}

func (o *project) Open(ctx context.Context) error { return o.input.Open(ctx) }
func (o *project) Close() error                   { return o.input.Close() }

func (o *project) Next(ctx context.Context) (types.Row, error) {
	row, err := o.input.Next(ctx)
	if row == nil || err != nil {
		return nil, err
	}
	return o.out, o.ex.evalAll(o.exprs, row, o.out)
}

// evalAll computes exprs over row into out.
func (ex *execution) evalAll(exprs []expr.Scalar, row, out types.Row) error {
	for i, e := range exprs {
		d, err := e.Eval(&ex.ev, row)
		if err != nil {
			return err
		}
		out[i] = d
	}
	return nil
}
