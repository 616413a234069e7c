package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// union yields the rows of its inputs, one input after the other.
type union struct {
	inputs []Operator
	at     int
}

// newUnion makes a union of two inputs. A chain of unions is one operator, so that a row passes through one,
// whatever the chain's length.
func newUnion(left, right Operator) *union {
	if chain, ok := left.(*union); ok {
		chain.inputs = append(chain.inputs, right)
		return chain
	}
	return &union{inputs: []Operator{left, right}}
}

func (o *union) Open(ctx context.Context) error {
	o.at = 0
	return o.inputs[0].Open(ctx)
}

func (o *union) Close() error {
	var err error
	for _, in := range o.inputs {
		err = firstError(err, in.Close())
	}
	return err
}

// Next returns the next row. An input is opened when the previous one is exhausted, and closed when it is exhausted
// itself.
func (o *union) Next(ctx context.Context) (types.Row, error) {
	for {
		row, err := o.inputs[o.at].Next(ctx)
		if row != nil || err != nil || o.at == len(o.inputs)-1 {
			return row, err
		}
		if err := o.inputs[o.at].Close(); err != nil {
			return nil, err
		}
		o.at++
		if err := o.inputs[o.at].Open(ctx); err != nil {
			return nil, err
		}
	}
}

// intersectExcept counts the right rows by value and filters left rows by that count: INTERSECT ALL returns min(l, r)
// copies of a row, EXCEPT ALL max(l-r, 0), the plain forms one copy if any.
type intersectExcept struct {
	ex          *execution
	left, right Operator
	except, all bool
	set         keySet
	counts      []int64 // by entry; the copies of the right side not used up yet
	ready       bool
}

func newSetOp(ex *execution, left, right Operator, n *planner.SetOp) Operator {
	rows := typesOf(n)
	if n.Op == "UNION" {
		both := newUnion(left, right)
		if n.All {
			return both
		}
		return newDistinctOf(ex, keyedInput{ex: ex, op: both, keys: wholeRow(rows)}, rows)
	}
	set := keySet{cols: wholeRow(rows), keys: rowBuffer{mem: &ex.mem}}
	return &intersectExcept{ex: ex, left: left, right: right, except: n.Op == "EXCEPT", all: n.All, set: set}
}

func (o *intersectExcept) Open(ctx context.Context) error {
	o.ready = false
	if err := o.left.Open(ctx); err != nil {
		return err
	}
	return o.right.Open(ctx)
}

func (o *intersectExcept) Close() error {
	o.set.release()
	o.counts = nil
	return closeBoth(o.left, o.right)
}

func (o *intersectExcept) Next(ctx context.Context) (types.Row, error) {
	if !o.ready {
		if err := o.build(ctx); err != nil {
			return nil, err
		}
		o.ready = true
	}
	if !o.except && o.set.len() == 0 {
		return nil, nil
	}
	for {
		row, err := o.left.Next(ctx)
		if row == nil || err != nil {
			return nil, err
		}
		pass, err := o.passes(row)
		if err != nil {
			return nil, err
		}
		if pass {
			return row, nil
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// build counts the right rows.
func (o *intersectExcept) build(ctx context.Context) error {
	for {
		row, err := o.right.Next(ctx)
		if row == nil || err != nil {
			return err
		}
		e, added, err := o.set.add(row)
		if err != nil {
			return err
		}
		if added {
			o.counts = append(o.counts, 0)
		}
		o.counts[e-1]++
		if err := o.ex.tick(ctx); err != nil {
			return err
		}
	}
}

// passes decides whether a left row is returned, and decrements the count that it matched.
func (o *intersectExcept) passes(row types.Row) (bool, error) {
	if o.except && !o.all {
		// A returned row joins the set, and is not returned again.
		_, added, err := o.set.add(row)
		return added, err
	}
	e := o.set.find(row, o.set.cols.hash(row))
	if e == 0 || o.counts[e-1] == 0 {
		return o.except, nil
	}
	if o.all {
		o.counts[e-1]--
	} else {
		o.counts[e-1] = 0
	}
	return !o.except, nil
}

// closeBoth closes two inputs and returns the first error.
func closeBoth(a, b Operator) error {
	err := a.Close()
	if err2 := b.Close(); err == nil {
		err = err2
	}
	return err
}

// typesOf lists the types of a node's output columns.
func typesOf(n planner.Node) []types.Type { return columnTypes(n.Columns()) }

func columnTypes(cols []planner.Column) []types.Type {
	ts := make([]types.Type, len(cols))
	for i := range cols {
		ts[i] = cols[i].Type
	}
	return ts
}
