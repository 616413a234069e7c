package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// uniqueLookupJoin reads the right row of each left row by a whole unique key. Left rows are taken
// in growing groups and each different key of a group is read once, all of them together.
type uniqueLookupJoin struct {
	joinOutput
	access
	leftGroup
	rowKeys, values [][]byte // by key number
}

// newLookupJoin makes the operator that fits: groups of point reads, or of scans.
func newLookupJoin(ex *execution, left Operator, n *planner.LookupJoin) (Operator, error) {
	out := newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Ordinals))
	if !n.Unique {
		return newScanLookupJoin(ex, out, left, n)
	}
	j := &uniqueLookupJoin{joinOutput: out, leftGroup: newLeftGroup(ex, left, n)}
	return j, j.access.init(ex, &n.Access)
}

func (j *uniqueLookupJoin) Open(ctx context.Context) error { return j.leftGroup.open(ctx) }

func (j *uniqueLookupJoin) Close() error {
	j.rowKeys, j.values = nil, nil
	return j.leftGroup.close()
}

func (j *uniqueLookupJoin) Next(ctx context.Context) (types.Row, error) {
	for {
		if j.at == len(j.rows.rows) {
			if j.leftEnd {
				return nil, nil
			}
			if err := j.fill(ctx); err != nil {
				return nil, err
			}
			continue
		}
		row, err := j.join()
		if row != nil || err != nil {
			return row, err
		}
		if err := j.joinOutput.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// fill takes the next group of left rows and reads their partners.
func (j *uniqueLookupJoin) fill(ctx context.Context) error {
	err := j.take(ctx)
	if err != nil || len(j.distinct) == 0 {
		return err
	}
	j.rowKeys, j.values, err = j.getMany(ctx, j.distinct)
	return err
}

// join joins the next left row of the group; it returns nil if there is no result row.
func (j *uniqueLookupJoin) join() (types.Row, error) {
	i := j.at
	j.at++
	j.setLeft(j.rows.rows[i])
	slot := j.slots[i]
	if slot < 0 || j.values[slot] == nil {
		return j.unmatched(), nil
	}
	right, err := j.decode(j.rowKeys[slot], j.values[slot])
	if err != nil {
		return nil, err
	}
	ok, err := j.matches(right)
	if err != nil {
		return nil, err
	}
	if !ok {
		return j.unmatched(), nil
	}
	switch j.kind {
	case planner.SemiJoin:
		return j.leftOnly(), nil
	case planner.AntiJoin:
		return nil, nil
	}
	return j.joined, nil
}
