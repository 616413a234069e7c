package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// expand yields each row of its input once for each grouping set.
type expand struct {
	ex    *execution
	input Operator
	node  *planner.Expand
	out   types.Row
	row   types.Row // the row at hand, owned by the input
	keys  types.Row
	set   int // the next set of row
}

func (o *expand) Open(ctx context.Context) error {
	o.row, o.set = nil, 0
	return o.input.Open(ctx)
}

func (o *expand) Close() error {
	o.row = nil
	return o.input.Close()
}

func (o *expand) Next(ctx context.Context) (types.Row, error) {
	if o.row == nil || o.set == len(o.node.Sets) {
		row, err := o.input.Next(ctx)
		if o.row = row; row == nil || err != nil {
			return nil, err
		}
		o.set, o.keys = 0, o.keys[:0]
		for _, k := range o.node.Keys {
			d, err := k.Eval(&o.ex.ev, row)
			if err != nil {
				return nil, err
			}
			o.keys = append(o.keys, d)
		}
	}
	s := &o.node.Sets[o.set]
	n := copy(o.out, o.row)
	for i, d := range o.keys {
		if !s.Has[i] {
			d = types.Null
		}
		o.out[n+i] = d
	}
	n += len(o.keys)
	for i, mark := range s.Marks {
		o.out[n+i] = types.Int(mark)
	}
	o.out[n+len(s.Marks)] = types.Int(int64(o.set))
	o.set++
	return o.out, nil
}
