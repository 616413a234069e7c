package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// distinct drops rows whose key was seen before. Ordered inputs need the last key only.
type distinct struct {
	ex      *execution
	input   Operator
	ordered bool
	set     keySet
	have    bool // ordered: set.keys holds the last key
}

func newDistinct(ex *execution, input Operator, n *planner.Distinct) *distinct {
	o := &distinct{ex: ex, input: input, ordered: n.Ordered}
	if n.On != nil {
		o.set.cols = newKeyColumns(n.On)
	} else {
		o.set.cols = wholeRow(typesOf(n.Input))
	}
	o.set.keys.mem = &ex.mem
	return o
}

func (o *distinct) Open(ctx context.Context) error {
	o.have = false
	return o.input.Open(ctx)
}

func (o *distinct) Close() error {
	o.set.release()
	return o.input.Close()
}

func (o *distinct) Next(ctx context.Context) (types.Row, error) {
	for {
		row, err := o.input.Next(ctx)
		if row == nil || err != nil {
			return nil, err
		}
		key, _, err := o.set.cols.eval(&o.ex.ev, row)
		if err != nil {
			return nil, err
		}
		isNew, err := o.isNew(key)
		if err != nil {
			return nil, err
		}
		if isNew {
			return row, nil
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

func (o *distinct) isNew(key types.Row) (bool, error) {
	if !o.ordered {
		_, added, err := o.set.add(key)
		return added, err
	}
	if o.have && o.set.cols.equal(o.set.keys.rows[0], key) {
		return false, nil
	}
	o.set.keys.reset()
	o.have = true
	return true, o.set.keys.add(key)
}
