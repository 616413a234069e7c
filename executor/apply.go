package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// apply runs the right side again for every left row. While the right side runs, the left row is on the stack of outer
// rows; it is removed before any other operator runs.
type apply struct {
	joinOutput
	left, right Operator
	row         types.Row // the left row, while right runs for it
	found       bool
}

func newApply(ex *execution, left, right Operator, n *planner.Apply) *apply {
	return &apply{
		joinOutput: newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Right.Columns())),
		left:       left, right: right,
	}
}

func (j *apply) Open(ctx context.Context) error {
	j.row = nil
	return j.left.Open(ctx)
}

func (j *apply) Close() error {
	j.row = nil
	return closeBoth(j.left, j.right)
}

func (j *apply) Next(ctx context.Context) (types.Row, error) {
	for {
		if j.row == nil {
			row, err := j.left.Next(ctx)
			if row == nil || err != nil {
				return nil, err
			}
			j.row, j.found = row, false
			j.setLeft(row)
			if err := j.openRight(ctx); err != nil {
				return nil, err
			}
		}
		row, err := j.probe(ctx)
		if row != nil || err != nil {
			return row, err
		}
		if err := j.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// probe takes the right side's next row that matches; nil when the left row is finished.
func (j *apply) probe(ctx context.Context) (types.Row, error) {
	for {
		right, err := j.nextRight(ctx)
		if err != nil {
			return nil, err
		}
		if right == nil {
			j.row = nil
			if j.found {
				return nil, j.right.Close()
			}
			return j.unmatched(), j.right.Close()
		}
		ok, err := j.matches(right)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		j.found = true
		switch j.kind {
		case planner.SemiJoin:
			j.row = nil
			return j.leftOnly(), j.right.Close()
		case planner.AntiJoin:
			j.row = nil
			return nil, j.right.Close()
		}
		return j.joined, nil
	}
}

func (j *apply) openRight(ctx context.Context) error {
	j.ex.pushOuter(j.row)
	defer j.ex.popOuter()
	return j.right.Open(ctx)
}

func (j *apply) nextRight(ctx context.Context) (types.Row, error) {
	j.ex.pushOuter(j.row)
	defer j.ex.popOuter()
	return j.right.Next(ctx)
}

// pushOuter makes row the innermost outer row.
func (ex *execution) pushOuter(row types.Row) { ex.ev.Outer = append(ex.ev.Outer, row) }

// popOuter undoes pushOuter.
func (ex *execution) popOuter() { ex.ev.Outer = ex.ev.Outer[:len(ex.ev.Outer)-1] }
