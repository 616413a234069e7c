package executor

import (
	"context"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// values yields rows of expressions over no input.
type values struct {
	ex    *execution
	rows  [][]expr.Scalar
	out   types.Row
	at    int
	large largeValues
}

func (o *values) Open(context.Context) error { o.at = 0; return nil }

func (o *values) Close() error {
	o.large.drop(o.ex)
	return nil
}

func (o *values) Next(ctx context.Context) (types.Row, error) {
	o.large.drop(o.ex)
	if o.at == len(o.rows) {
		return nil, nil
	}
	if err := o.ex.tick(ctx); err != nil {
		return nil, err
	}
	exprs := o.rows[o.at]
	o.at++
	before := o.ex.ev.Env.Counted()
	if err := o.ex.evalAll(exprs, nil, o.out); err != nil {
		return nil, err
	}
	o.large.keep(o.ex, before)
	return o.out, nil
}
