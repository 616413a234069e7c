package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// distinct removes rows whose key was seen before. For ordered inputs it needs the last key only. Keys that do not fit
// into memory are processed in several passes (overflow), unless the rows have to stay in order.
type distinct struct {
	ex      *execution
	input   overflow
	ordered bool
	set     keySet
	have    bool // ordered: set.keys holds the last key
}

func newDistinct(ex *execution, input Operator, n *planner.Distinct) *distinct {
	in := keyedInput{ex: ex, op: input, keys: wholeRow(typesOf(n.Input))}
	if n.On != nil {
		in = newKeyedInput(ex, input, n.On)
	}
	o := newDistinctOf(ex, in, typesOf(n.Input))
	o.ordered = n.Ordered
	o.input.mayNot = o.input.mayNot || n.KeepsOrder
	return o
}

func newDistinctOf(ex *execution, in keyedInput, rows []types.Type) *distinct {
	return &distinct{ex: ex, input: newOverflow(in, rows), set: keySet{cols: in.keys, keys: rowBuffer{mem: &ex.mem}}}
}

func (o *distinct) Open(ctx context.Context) error {
	o.have = false
	o.input.reset()
	return o.input.in.op.Open(ctx)
}

func (o *distinct) Close() error {
	o.set.release()
	return errors.Join(o.input.release(), o.input.in.op.Close())
}

// spilledBytes implements spiller.
func (o *distinct) spilledBytes() int64 { return o.input.spilledBytes() }

func (o *distinct) Next(ctx context.Context) (types.Row, error) {
	for {
		row, key, _, err := o.input.in.next(ctx)
		if err != nil {
			return nil, err
		}
		if row == nil {
			more, err := o.input.turn()
			if !more || err != nil {
				return nil, err
			}
			o.set.reset()
			continue
		}
		isNew, err := o.isNew(row, key)
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

// isNew reports whether the row is to be yielded now.
func (o *distinct) isNew(row, key types.Row) (bool, error) {
	if o.ordered {
		return o.differs(key)
	}
	hash := o.set.cols.hash(key)
	if o.set.find(key, hash) != 0 {
		return false, nil
	}
	if o.input.full(o.set.keys.held) {
		return false, o.input.add(row, key, hash)
	}
	_, err := o.set.insert(key, hash)
	return err == nil, err
}

// differs compares a key with the one before it.
func (o *distinct) differs(key types.Row) (bool, error) {
	if o.have && o.set.cols.equal(o.set.keys.rows[0], key) {
		return false, nil
	}
	o.set.keys.reset()
	o.have = true
	return true, o.set.keys.add(key)
}
