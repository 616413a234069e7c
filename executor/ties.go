package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// ties is a limit that also passes the rows behind its last one that are equal to it in their order.
type ties struct {
	limit
	order ordering
	key   types.Row // scratch
	last  rowBuffer // the key of the limit's last row
	ended bool
}

func newTies(ex *execution, input Operator, n *planner.Limit) *ties {
	return &ties{
		limit: limit{ex: ex, input: input, limit: n.Limit, offset: n.Offset},
		order: newOrdering(n.Ties), key: make(types.Row, len(n.Ties)), last: rowBuffer{mem: &ex.mem},
	}
}

func (o *ties) Open(ctx context.Context) error {
	err := o.limit.Open(ctx)
	o.ended = o.left == 0
	o.last.reset()
	return err
}

func (o *ties) Close() error {
	o.last.release()
	return o.limit.Close()
}

func (o *ties) Next(ctx context.Context) (types.Row, error) {
	switch {
	case o.ended:
		return nil, nil
	case o.left > 0:
		row, err := o.limit.Next(ctx)
		if row == nil || err != nil || o.left > 0 {
			o.ended = row == nil
			return row, err
		}
		key, err := o.order.eval(o.ex, row, o.key)
		if err != nil {
			return nil, err
		}
		return row, o.last.add(key)
	}
	row, err := o.input.Next(ctx)
	if row == nil || err != nil {
		o.ended = true
		return nil, err
	}
	key, err := o.order.eval(o.ex, row, o.key)
	if err != nil {
		return nil, err
	}
	if o.ended = o.order.compare(o.last.rows[0], key) != 0; o.ended {
		return nil, nil
	}
	return row, nil
}
