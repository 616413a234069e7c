package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// nestedLoopJoin keeps the right rows and tests every pair.
type nestedLoopJoin struct {
	joinOutput
	left, right Operator
	inner       rowBuffer
	matched     bitmap // full join
	ready       bool
	have, found bool
	at          int
	leftDone    bool
	rest        int
}

func newNestedLoopJoin(ex *execution, left, right Operator, n *planner.NestedLoopJoin) *nestedLoopJoin {
	return &nestedLoopJoin{
		joinOutput: newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Right.Columns())),
		left:       left, right: right, inner: rowBuffer{mem: &ex.mem},
	}
}

func (j *nestedLoopJoin) Open(ctx context.Context) error {
	j.ready, j.have, j.leftDone, j.rest = false, false, false, 0
	return j.left.Open(ctx)
}

func (j *nestedLoopJoin) Close() error {
	j.matched = nil
	j.inner.release()
	return closeBoth(j.left, j.right)
}

func (j *nestedLoopJoin) Next(ctx context.Context) (types.Row, error) {
	for !j.leftDone {
		if !j.have {
			if err := j.nextLeft(ctx); err != nil {
				return nil, err
			}
			continue
		}
		row, err := j.probe(ctx)
		if row != nil || err != nil {
			return row, err
		}
	}
	return j.nextUnmatchedRight(), nil
}

func (j *nestedLoopJoin) nextLeft(ctx context.Context) error {
	row, err := j.left.Next(ctx)
	if err != nil {
		return err
	}
	if row != nil {
		j.have, j.found, j.at = true, false, 0
		j.setLeft(row)
	} else {
		j.leftDone = true
	}
	if j.ready || row == nil && j.kind != planner.FullJoin {
		return nil // the right side is not run for an empty left side
	}
	if err := j.right.Open(ctx); err != nil {
		return err
	}
	if err := j.ex.drain(ctx, j.right, &j.inner); err != nil {
		return err
	}
	if j.kind == planner.FullJoin {
		j.matched = newBitmap(len(j.inner.rows))
	}
	j.ready = true
	return nil
}

// probe finds the left row's next partner; nil when the left row is finished.
func (j *nestedLoopJoin) probe(ctx context.Context) (types.Row, error) {
	for j.at < len(j.inner.rows) {
		i := j.at
		j.at++
		if err := j.ex.tick(ctx); err != nil {
			return nil, err
		}
		ok, err := j.matches(j.inner.rows[i])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		j.found = true
		switch j.kind {
		case planner.SemiJoin:
			j.have = false
			return j.leftOnly(), nil
		case planner.AntiJoin:
			j.have = false
			return nil, nil
		case planner.FullJoin:
			j.matched.set(i)
		}
		return j.joined, nil
	}
	j.have = false
	if j.found {
		return nil, nil
	}
	return j.unmatched(), j.ex.tick(ctx)
}

func (j *nestedLoopJoin) nextUnmatchedRight() types.Row {
	if j.kind != planner.FullJoin {
		return nil
	}
	for ; j.rest < len(j.inner.rows); j.rest++ {
		if !j.matched.has(j.rest) {
			j.setLeft(nil)
			j.setRight(j.inner.rows[j.rest])
			j.rest++
			return j.joined
		}
	}
	return nil
}
