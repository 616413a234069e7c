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
	large largeValues
}

func (o *project) Open(ctx context.Context) error { return o.input.Open(ctx) }

func (o *project) Close() error {
	o.large.drop(o.ex)
	return o.input.Close()
}

func (o *project) Next(ctx context.Context) (types.Row, error) {
	o.large.drop(o.ex)
	row, err := o.input.Next(ctx)
	if row == nil || err != nil {
		return nil, err
	}
	before := o.ex.ev.Env.Counted()
	if err := o.ex.evalAll(o.exprs, row, o.out); err != nil {
		return nil, err
	}
	o.large.keep(o.ex, before)
	return o.out, nil
}

// largeValues charges for the values that an operator keeps until its next row.
type largeValues struct{ bytes int64 }

// keep charges what has been counted since before.
func (l *largeValues) keep(ex *execution, before int64) {
	if n := ex.ev.Env.Counted() - before; n > 0 {
		ex.ev.Env.Pin(n)
		l.bytes += n
	}
}

// drop gives it back.
func (l *largeValues) drop(ex *execution) {
	if l.bytes > 0 {
		ex.rt.Env.Unpin(l.bytes)
		l.bytes = 0
	}
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
