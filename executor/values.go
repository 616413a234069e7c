package executor

import (
	"context"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// values yields rows of expressions over no input.
type values struct {
	ex   *execution
	rows [][]expr.Scalar
	out  types.Row
	at   int
}

func (o *values) Open(context.Context) error { o.at = 0; return nil }
func (o *values) Close() error               { return nil }

func (o *values) Next(ctx context.Context) (types.Row, error) {
	if o.at == len(o.rows) {
		return nil, nil
	}
	if err := o.ex.tick(ctx); err != nil {
		return nil, err
	}
	exprs := o.rows[o.at]
	o.at++
	return o.out, o.ex.evalAll(exprs, nil, o.out)
}
