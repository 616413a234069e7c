package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// mergeJoin reads both sides in key order. Right rows of one key are kept as a group, so that they can be joined with
// further left rows of the key. Rows with a NULL in the key match nothing; the position of NULLs in the order is
// irrelevant, because such rows are skipped before keys are compared.
type mergeJoin struct {
	joinOutput
	left, right         Operator
	leftKeys, rightKeys keyColumns
	desc                []bool

	group    rowBuffer // right rows of the key at hand
	groupKey types.Row // nil: no group
	matched  bitmap    // full join: over the group
	ahead    types.Row // right row beyond the group, owned by the right side
	rightEnd bool

	have, found bool
	leftEnd     bool
	at          int // next row of the group for the left row; len(group.rows) when it has none
	key         types.Row
	draining    bool // full join: the group's unmatched rows are being yielded
	drainAt     int
	aside       types.Row // full join: a right row without partner, put together
}

func newMergeJoin(ex *execution, left, right Operator, n *planner.MergeJoin) *mergeJoin {
	return &mergeJoin{
		joinOutput: newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Right.Columns())),
		left:       left, right: right, desc: n.Desc, group: rowBuffer{mem: &ex.mem},
		leftKeys: newKeyColumns(n.LeftKeys), rightKeys: newKeyColumns(n.RightKeys),
	}
}

func (j *mergeJoin) Open(ctx context.Context) error {
	j.groupKey, j.ahead, j.matched = nil, nil, nil
	j.rightEnd, j.leftEnd, j.have, j.draining = false, false, false, false
	j.group.reset()
	if err := j.left.Open(ctx); err != nil {
		return err
	}
	return j.right.Open(ctx)
}

func (j *mergeJoin) Close() error {
	j.groupKey, j.ahead, j.matched = nil, nil, nil
	j.group.release()
	return closeBoth(j.left, j.right)
}

func (j *mergeJoin) Next(ctx context.Context) (types.Row, error) {
	for {
		if err := j.ex.tick(ctx); err != nil {
			return nil, err
		}
		row, done, err := j.step(ctx)
		if row != nil || done || err != nil {
			return row, err
		}
	}
}

// step does one move of the merge: it yields a row, or moves a side on, or reports the end.
func (j *mergeJoin) step(ctx context.Context) (row types.Row, done bool, err error) {
	switch {
	case j.draining:
		return j.drainGroup(), false, nil
	case j.have && j.at < len(j.group.rows):
		row, err = j.probe()
		return row, false, err
	case j.have && (j.found || j.placed()):
		j.have = false
		if j.found {
			return nil, false, nil
		}
		return j.unmatched(), false, nil
	case !j.have && !j.leftEnd:
		return nil, false, j.nextLeft(ctx)
	case j.leftEnd && j.kind != planner.FullJoin:
		return nil, true, nil
	case j.groupKey != nil:
		j.dropGroup()
		return nil, false, nil
	case j.ahead == nil && !j.rightEnd:
		return nil, false, j.nextRight(ctx)
	case j.leftEnd:
		if j.rightEnd && j.ahead == nil {
			return nil, true, nil
		}
		return j.passRight(), false, nil
	}
	return j.advanceRight(ctx)
}

// nextLeft fetches the next left row and sets it on the group if that has its key.
func (j *mergeJoin) nextLeft(ctx context.Context) error {
	row, err := j.left.Next(ctx)
	if err != nil {
		return err
	}
	if row == nil {
		j.leftEnd = true
		return nil
	}
	key, hasNull, err := j.leftKeys.eval(&j.ex.ev, row)
	if err != nil {
		return err
	}
	j.have, j.found, j.key, j.at = true, false, key, len(j.group.rows)
	j.setLeft(row)
	if hasNull {
		j.key = nil
	} else if j.groupKey != nil && j.compare(key, j.groupKey) == 0 {
		j.at = 0
	}
	return nil
}

// placed reports whether it is known that no further right row can match the left row.
func (j *mergeJoin) placed() bool {
	switch {
	case j.key == nil:
		return true
	case j.groupKey != nil:
		return j.compare(j.key, j.groupKey) <= 0
	}
	return j.rightEnd && j.ahead == nil
}

// nextRight fetches the next right row.
func (j *mergeJoin) nextRight(ctx context.Context) error {
	row, err := j.right.Next(ctx)
	if err != nil {
		return err
	}
	if row == nil {
		j.rightEnd = true
		return nil
	}
	j.ahead = row
	return nil
}

// advanceRight processes the next right row: it skips it, collects its group, or, if it lies beyond the left row,
// finishes the left row.
func (j *mergeJoin) advanceRight(ctx context.Context) (row types.Row, done bool, err error) {
	key, hasNull, err := j.rightKeys.eval(&j.ex.ev, j.ahead)
	if err != nil {
		return nil, false, err
	}
	if hasNull {
		return j.passRight(), false, nil
	}
	switch c := j.compare(j.key, key); {
	case c > 0:
		return j.passRight(), false, nil
	case c < 0:
		j.have = false
		return j.unmatched(), false, nil
	}
	return nil, false, j.gather(ctx, key)
}

// passRight drops the right row ahead, which has no partner.
func (j *mergeJoin) passRight() types.Row {
	row := j.ahead
	j.ahead = nil
	if j.kind != planner.FullJoin {
		return nil
	}
	// The left half belongs to a row that is still to be matched, unless left is done.
	j.setRight(row)
	return j.withoutLeft()
}

// withoutLeft is the joined row with NULLs on the left. The left row at hand must survive it, so
// the answer is put together aside.
func (j *mergeJoin) withoutLeft() types.Row {
	if !j.have {
		j.setLeft(nil)
		return j.joined
	}
	if j.aside == nil {
		j.aside = make(types.Row, len(j.joined))
	}
	copy(j.aside[j.leftWidth:], j.joined[j.leftWidth:])
	return j.aside
}

// gather keeps the row ahead and all further ones of the same key.
func (j *mergeJoin) gather(ctx context.Context, key types.Row) error {
	j.group.reset()
	kept, err := j.group.keep(key)
	if err != nil {
		return err
	}
	j.groupKey = kept
	for {
		if err := j.group.add(j.ahead); err != nil {
			return err
		}
		j.ahead = nil
		if err := j.nextRight(ctx); err != nil {
			return err
		}
		if err := j.ex.tick(ctx); err != nil {
			return err
		}
		if j.ahead == nil {
			break
		}
		key, hasNull, err := j.rightKeys.eval(&j.ex.ev, j.ahead)
		if err != nil {
			return err
		}
		if hasNull || j.compare(key, j.groupKey) != 0 {
			break
		}
	}
	if j.kind == planner.FullJoin {
		j.matched = newBitmap(len(j.group.rows))
	}
	j.at = 0
	return nil
}

// probe tests the left row against the group's next row.
func (j *mergeJoin) probe() (types.Row, error) {
	i := j.at
	j.at++
	ok, err := j.matches(j.group.rows[i])
	if !ok || err != nil {
		return nil, err
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

// dropGroup leaves the group behind; a full join yields its unmatched rows first.
func (j *mergeJoin) dropGroup() {
	if j.kind == planner.FullJoin {
		j.draining, j.drainAt = true, 0
		return
	}
	j.groupKey = nil
	j.group.reset()
	j.at = 0
}

func (j *mergeJoin) drainGroup() types.Row {
	for j.drainAt < len(j.group.rows) {
		i := j.drainAt
		j.drainAt++
		if !j.matched.has(i) {
			j.setRight(j.group.rows[i])
			return j.withoutLeft()
		}
	}
	j.draining, j.groupKey, j.at = false, nil, 0
	j.group.reset()
	return nil
}

// compare orders two keys without NULLs.
func (j *mergeJoin) compare(a, b types.Row) int {
	for i := range a {
		if c := types.Compare(a[i], b[i], j.leftKeys.types[i]); c != 0 {
			if j.desc[i] {
				return -c
			}
			return c
		}
	}
	return 0
}
