package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// gathered reads its input to the end before it returns the first row: what is done with the rows may change what the input reads.
type gathered struct {
	input Operator
	rows  RowStore
	ready bool
}

// gather makes a gathered input of a plan's.
func gather(ex *execution, input Operator, n planner.Node) Operator {
	o := &gathered{input: input}
	o.rows.init(ex, n.Columns())
	return o
}

// gatherFor gathers the rows of a change whose triggers before rows may change what its input reads.
func gatherFor(ex *execution, input Operator, n planner.Node, g *planner.Triggers) Operator {
	if g == nil || !g.Changes || n.Properties().AtMostOne {
		return input
	}
	return gather(ex, input, n)
}

// Open implements Operator.
func (o *gathered) Open(ctx context.Context) error {
	o.ready = false
	return firstError(o.rows.Reset(), o.input.Open(ctx))
}

// Close implements Operator.
func (o *gathered) Close() error { return firstError(o.rows.Reset(), o.input.Close()) }

// Next implements Operator.
func (o *gathered) Next(ctx context.Context) (types.Row, error) {
	for !o.ready {
		row, err := o.input.Next(ctx)
		if err != nil {
			return nil, err
		}
		if o.ready = row == nil; o.ready {
			break
		}
		if err := o.rows.Add(row); err != nil {
			return nil, err
		}
	}
	return o.rows.Next()
}
