package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// lockRows makes the transaction conflict with writers of the rows that pass. FOR SHARE locks as FOR
// UPDATE does: snapshot isolation has one strength.
type lockRows struct {
	ex      *execution
	input   Operator
	targets []planner.LockTarget
	arena   arena
	values  types.Row
	keys    [][]byte
}

func newLockRows(ex *execution, input Operator, n *planner.LockRows) (*lockRows, error) {
	if n.Wait == "SKIP LOCKED" {
		return nil, pgerror.Unsupported("SKIP LOCKED", "Locks are seen at commit; retry on SQLSTATE 40001 instead.")
	}
	return &lockRows{ex: ex, input: input, targets: n.Targets}, nil
}

func (o *lockRows) Open(ctx context.Context) error { return o.input.Open(ctx) }
func (o *lockRows) Close() error                   { return o.input.Close() }

func (o *lockRows) Next(ctx context.Context) (types.Row, error) {
	row, err := o.input.Next(ctx)
	if row == nil || err != nil {
		return nil, err
	}
	o.keys = o.keys[:0]
	for i := range o.targets {
		if err := o.addKey(&o.targets[i], row); err != nil {
			return nil, err
		}
	}
	if len(o.keys) == 0 {
		return row, nil
	}
	return row, o.ex.txn.LockKeys(ctx, o.keys...)
}

// addKey adds the key of one target's row. A target on the empty side of an outer join has none.
func (o *lockRows) addKey(t *planner.LockTarget, row types.Row) error {
	o.values = o.values[:0]
	for _, ord := range t.KeyOrdinals {
		if row[ord].IsNull() {
			return nil
		}
		o.values = append(o.values, row[ord])
	}
	key, err := rowenc.AppendKeyPrefix(o.arena.start(), t.Table, &t.Table.Primary, o.values...)
	if err != nil {
		return err
	}
	o.keys = append(o.keys, o.arena.finish(key))
	return nil
}
