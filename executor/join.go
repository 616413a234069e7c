package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// joinOutput is the common part of all joins: the kind, the residual condition and the joined row, which is reused. The
// left half is set once per left row, the right half once per candidate.
type joinOutput struct {
	ex        *execution
	kind      planner.JoinKind
	on        expr.Scalar
	joined    types.Row
	leftWidth int
}

func newJoinOutput(ex *execution, kind planner.JoinKind, on expr.Scalar, leftWidth, rightWidth int) joinOutput {
	return joinOutput{ex: ex, kind: kind, on: on, joined: make(types.Row, leftWidth+rightWidth), leftWidth: leftWidth}
}

// setLeft makes row the left half; nil means NULLs.
func (j *joinOutput) setLeft(row types.Row) {
	if row == nil {
		clear(j.joined[:j.leftWidth])
		return
	}
	copy(j.joined, row)
}

// setRight makes row the right half; nil means NULLs.
func (j *joinOutput) setRight(row types.Row) {
	if row == nil {
		clear(j.joined[j.leftWidth:])
		return
	}
	copy(j.joined[j.leftWidth:], row)
}

// matches makes row the right half and tests the residual condition.
func (j *joinOutput) matches(row types.Row) (bool, error) {
	j.setRight(row)
	if j.on == nil {
		return true, nil
	}
	return j.ex.holds(j.on, j.joined)
}

// leftOnly is the joined row's left half, which semi and anti joins return.
func (j *joinOutput) leftOnly() types.Row { return j.joined[:j.leftWidth:j.leftWidth] }

// unmatched returns the join's row for a left row without partner, nil for none.
func (j *joinOutput) unmatched() types.Row {
	switch j.kind {
	case planner.LeftJoin, planner.FullJoin:
		j.setRight(nil)
		return j.joined
	case planner.AntiJoin:
		return j.leftOnly()
	}
	return nil
}

// bitmap marks the right rows of a full join that have found a partner.
type bitmap []uint64

func newBitmap(n int) bitmap    { return make(bitmap, (n+63)/64) }
func (b bitmap) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitmap) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// drain copies all rows of input into buf.
func (ex *execution) drain(ctx context.Context, input Operator, buf *rowBuffer) error {
	for {
		row, err := input.Next(ctx)
		if row == nil || err != nil {
			return err
		}
		if err := buf.add(row); err != nil {
			return err
		}
		if err := ex.tick(ctx); err != nil {
			return err
		}
	}
}
