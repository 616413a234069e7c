package executor

import (
	"context"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// lockRows locks the rows that pass (FOR UPDATE and its kind), in groups that grow; one by one where a
// LIMIT above may stop early, so that no row is locked that is not shown. What the strengths lock is stated
// at planner.LockTarget.
type lockRows struct {
	ex       *execution
	input    Operator
	targets  []planner.LockTarget
	strength string
	opts     percolator.LockOptions
	cut      bool

	rows   rowBuffer
	at     int
	group  int
	ended  bool
	arena  rowenc.Arena
	values types.Row
	keys   [][]byte
	owners []int  // by key: its row in the group
	drop   []bool // by row: locked by another transaction, and to be skipped
}

func newLockRows(ex *execution, input Operator, n *planner.LockRows) *lockRows {
	return &lockRows{
		ex: ex, input: input, targets: n.Targets, strength: n.Strength, cut: n.Cut, rows: rowBuffer{mem: &ex.mem},
		opts: percolator.LockOptions{
			NoWait: n.Wait == "NOWAIT", SkipLocked: n.Wait == "SKIP LOCKED",
			Shared: n.Strength == "SHARE" || n.Strength == "KEY SHARE",
		},
	}
}

func (o *lockRows) Open(ctx context.Context) error {
	o.at, o.ended, o.group = 0, false, o.ex.firstGroup()
	if o.cut {
		o.group = 1
	}
	return o.input.Open(ctx)
}

func (o *lockRows) Close() error {
	o.rows.release()
	return o.input.Close()
}

func (o *lockRows) Next(ctx context.Context) (types.Row, error) {
	for {
		for o.at < len(o.rows.rows) {
			o.at++
			if !o.drop[o.at-1] {
				return o.rows.rows[o.at-1], nil
			}
		}
		if o.ended {
			return nil, nil
		}
		if err := o.fill(ctx); err != nil {
			return nil, err
		}
	}
}

// fill reads and locks the next group.
func (o *lockRows) fill(ctx context.Context) error {
	o.rows.reset()
	o.keys, o.owners, o.drop, o.at = o.keys[:0], o.owners[:0], o.drop[:0], 0
	for len(o.rows.rows) < o.group {
		row, err := o.input.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			o.ended = true
			break
		}
		for i := range o.targets {
			if err := o.addKey(&o.targets[i], row); err != nil {
				return err
			}
		}
		if err := o.rows.add(row); err != nil {
			return err
		}
		o.drop = append(o.drop, false)
	}
	if !o.cut {
		o.group = o.ex.nextGroup(o.group)
	}
	if err := o.ex.tick(ctx); err != nil || len(o.keys) == 0 {
		return err
	}
	skipped, err := o.ex.txn.AcquireLocks(ctx, o.opts, o.keys...)
	for i, skip := range skipped {
		if skip {
			o.drop[o.owners[i]] = true
		}
	}
	return err
}

// addKey adds the key of one target's row. A target on the empty side of an outer join has none.
func (o *lockRows) addKey(t *planner.LockTarget, row types.Row) error {
	if t.Parts != nil {
		if row[t.Origin].IsNull() {
			return nil
		}
		part := t.Parts[row[t.Origin].Int()]
		return o.addKey(&part, row)
	}
	o.values = o.values[:0]
	for _, ord := range t.KeyOrdinals {
		if row[ord].IsNull() {
			return nil
		}
		o.values = append(o.values, row[ord])
	}
	key, err := rowenc.AppendKeyPrefix(o.arena.Start(), t.Table, &t.Table.Primary, o.values...)
	if err != nil {
		return err
	}
	key = o.arena.Finish(key)
	if !t.Guarded || o.strength != "KEY SHARE" {
		o.keys, o.owners = append(o.keys, key), append(o.owners, len(o.rows.rows))
	}
	if t.Guarded && (o.strength == "KEY SHARE" || o.strength == "UPDATE") {
		guard := o.arena.Finish(rowenc.AppendGuard(o.arena.Start(), t.Table, &t.Table.Primary, key))
		o.keys, o.owners = append(o.keys, guard), append(o.owners, len(o.rows.rows))
	}
	return nil
}
