package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// appended yields the rows of those inputs of an Append that may have some, one after the other or merged. Operators of inputs are made when
// they are first needed: most executions read few of many partitions.
type appended struct {
	ex     *execution
	node   *planner.Append
	ops    []Operator // by input
	in     []bool
	active []int
	at     int
	open   bool // the input at has been opened
	// heads are the next rows of the active inputs, for merging; order is a heap of the places in active.
	heads []types.Row
	order []int
	begun bool
	err   error
}

func newAppended(ex *execution, n *planner.Append) *appended {
	return &appended{ex: ex, node: n, ops: make([]Operator, len(n.Inputs)), in: make([]bool, len(n.Inputs))}
}

func (o *appended) Open(context.Context) error {
	o.active, o.at, o.open, o.begun = o.active[:0], 0, false, false
	o.heads, o.order = o.heads[:0], o.order[:0]
	if o.node.Prune != nil {
		clear(o.in)
		if err := o.node.Prune.Inputs(&o.ex.ev, o.in); err != nil {
			return err
		}
	}
	for i := range o.ops {
		if o.node.Prune != nil && !o.in[i] {
			continue
		}
		o.active = append(o.active, i)
	}
	return nil
}

// input returns the operator of the active input at place i, opened.
func (o *appended) input(ctx context.Context, i int) (Operator, error) {
	n := o.active[i]
	if o.ops[n] == nil {
		op, err := o.ex.build(o.node.Inputs[n])
		if err != nil {
			return nil, err
		}
		o.ops[n] = op
	}
	return o.ops[n], o.ops[n].Open(ctx)
}

func (o *appended) Close() error {
	var err error
	for _, op := range o.ops {
		if op != nil {
			err = firstError(err, op.Close())
		}
	}
	return err
}

func (o *appended) Next(ctx context.Context) (types.Row, error) {
	if len(o.node.Merge) > 0 && len(o.active) > 1 {
		return o.merged(ctx)
	}
	for o.at < len(o.active) {
		if !o.open {
			if _, err := o.input(ctx, o.at); err != nil {
				return nil, err
			}
			o.open = true
		}
		op := o.ops[o.active[o.at]]
		row, err := op.Next(ctx)
		if row != nil || err != nil {
			return row, err
		}
		if err := op.Close(); err != nil {
			return nil, err
		}
		o.at, o.open = o.at+1, false
	}
	return nil, nil
}

// merged returns the first of the next rows of all inputs. A row stays valid until its input is asked for the next one.
func (o *appended) merged(ctx context.Context) (types.Row, error) {
	if !o.begun {
		o.begun = true
		for i := range o.active {
			op, err := o.input(ctx, i)
			if err != nil {
				return nil, err
			}
			row, err := op.Next(ctx)
			if err != nil {
				return nil, err
			}
			if o.heads = append(o.heads, row); row != nil {
				o.order = append(o.order, i)
			}
		}
		for i := len(o.order)/2 - 1; i >= 0; i-- {
			o.sift(i)
		}
	} else if len(o.order) > 0 {
		first := o.order[0]
		row, err := o.ops[o.active[first]].Next(ctx)
		if err != nil {
			return nil, err
		}
		if o.heads[first] = row; row == nil {
			o.order[0] = o.order[len(o.order)-1]
			o.order = o.order[:len(o.order)-1]
		}
		o.sift(0)
	}
	if o.err != nil || len(o.order) == 0 {
		return nil, o.err
	}
	return o.heads[o.order[0]], nil
}

// sift moves the place at i of the heap down to where it belongs.
func (o *appended) sift(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(o.order) && o.less(o.order[child], o.order[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		o.order[i], o.order[least] = o.order[least], o.order[i]
		i = least
	}
}

// less orders two inputs by their next rows, those with equal keys by their places.
func (o *appended) less(a, b int) bool {
	for i := range o.node.Merge {
		k := &o.node.Merge[i]
		ord := k.Expr.(*expr.Column).Ordinal
		if c := compareKeys(o.heads[a][ord], o.heads[b][ord], k); c != 0 {
			return c < 0
		}
	}
	return a < b
}

// compareKeys orders two values by a key.
func compareKeys(a, b types.Datum, k *planner.SortKey) int {
	switch {
	case a.IsNull() && b.IsNull():
		return 0
	case a.IsNull() || b.IsNull():
		if a.IsNull() == k.NullsFirst {
			return -1
		}
		return 1
	}
	c := types.Compare(a, b, k.Expr.Type())
	if k.Desc {
		return -c
	}
	return c
}
