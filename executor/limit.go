package executor

import (
	"context"
	"math"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// limit skips offset rows and returns at most as many as the limit.
type limit struct {
	ex            *execution
	input         Operator
	limit, offset expr.Scalar
	skip, left    int64
}

func (o *limit) Open(ctx context.Context) (err error) {
	if o.left, o.skip, err = o.ex.limitOffset(o.limit, o.offset); err != nil {
		return err
	}
	return o.input.Open(ctx)
}

func (o *limit) Close() error { return o.input.Close() }

func (o *limit) Next(ctx context.Context) (types.Row, error) {
	if o.left == 0 {
		return nil, nil
	}
	for o.skip > 0 {
		if row, err := o.input.Next(ctx); row == nil || err != nil {
			o.left = 0
			return nil, err
		}
		o.skip--
	}
	o.left--
	return o.input.Next(ctx)
}

// limitOffset evaluates the bounds of LIMIT and OFFSET; math.MaxInt64 means no limit.
func (ex *execution) limitOffset(limit, offset expr.Scalar) (n, skip int64, err error) {
	n = math.MaxInt64
	if limit != nil {
		d, err := limit.Eval(&ex.ev, nil)
		switch {
		case err != nil:
			return 0, 0, err
		case d.IsNull():
		case d.Int() < 0:
			return 0, 0, pgerror.New(pgerror.InvalidRowCountInLimit, "LIMIT must not be negative")
		default:
			n = d.Int()
		}
	}
	if offset != nil {
		d, err := offset.Eval(&ex.ev, nil)
		switch {
		case err != nil:
			return 0, 0, err
		case d.IsNull():
		case d.Int() < 0:
			return 0, 0, pgerror.New(pgerror.InvalidRowCountInOffset, "OFFSET must not be negative")
		default:
			skip = d.Int()
		}
	}
	return n, skip, nil
}
