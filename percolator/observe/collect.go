package observe

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/ack"
	"github.com/percodb/percodb/tso"
)

// Collect deletes the acknowledgements of rows that are gone, among the first limit from the key from on (nil: the
// first), and returns how many. next is where to go on, nil at the end. An error whose kind is errkind.WriteConflict
// means that one of them was needed meanwhile, and that nothing was deleted.
//
// An acknowledgement is needed as long as a cell may be read that it covers. So there must be no cell, and its removal
// must be durable: the logs of the rows' shards are synced after the look, and no shard has restarted since before it. Nor
// may a cell be yet to come: a change that was seen through the lock of its committed transaction has none before the lock is
// resolved, and where cells appear again (percolator.Notifications.Once), the acknowledgement stays until they do not.
func (o *Observer) Collect(ctx context.Context, db *percolator.DB, limit int, from []byte) (deleted int, next []byte, _ error) {
	t, err := db.BeginTxn(ctx, percolator.TxnOptions{})
	if err != nil {
		return 0, nil, err
	}
	defer t.Close()
	once, err := o.Cells.Once(ctx, below(o.Rows))
	if err != nil {
		return 0, nil, err
	}
	rows, next, err := o.goneRows(ctx, t, limit, from, once)
	if err != nil || len(rows) == 0 {
		return 0, next, err
	}
	locked := kv.Span{Start: rows[0].Key, End: append(bytes.Clone(rows[len(rows)-1].Key), 0)}
	if err := o.Cells.Settle(ctx, locked, t.ReadTS()); err != nil {
		return 0, nil, err
	}
	gone, err := o.durablyAbsent(ctx, rows)
	if err != nil {
		return 0, nil, err
	}
	for i := range rows {
		if !gone[i] {
			continue
		}
		deleted++
		if err := t.Delete(o.ackKey(rows[i].Key)); err != nil {
			return 0, nil, err
		}
	}
	if deleted == 0 {
		return 0, next, nil
	}
	if _, err := t.Commit(ctx); err != nil {
		return 0, nil, err
	}
	return deleted, next, nil
}

// durablyAbsent reports which of the cells, which ascend, are not there and do not come back after a crash.
func (o *Observer) durablyAbsent(ctx context.Context, cells []kv.NotifyCell) (absent []bool, _ error) {
	keys := make([][]byte, len(cells))
	for i := range cells {
		keys[i] = cells[i].Key
	}
	before, err := o.Cells.Sync(ctx, keys)
	if err != nil {
		return nil, err
	}
	present, err := o.look(ctx, cells)
	if err != nil {
		return nil, err
	}
	after, err := o.Cells.Sync(ctx, keys)
	if err != nil {
		return nil, err
	}
	absent = make([]bool, len(cells))
	for i := range cells {
		absent[i] = present[i] == nil && maps.Equal(before, after)
	}
	return absent, nil
}

// goneRows reads acknowledgements, and returns the keys of the rows that were gone as of a snapshot at or below once.
func (o *Observer) goneRows(ctx context.Context, t *percolator.Txn, limit int, from []byte, once tso.Timestamp) (rows []kv.NotifyCell, next []byte, _ error) {
	span := below(o.Acks)
	if bytes.Compare(from, span.Start) > 0 {
		span.Start = from
	}
	it := t.Scan(ctx, span, percolator.ScanOptions{PageHint: limit})
	defer it.Close()
	for n := 0; n < limit; n++ {
		if !it.Next(ctx) {
			return rows, nil, it.Err()
		}
		a, err := ack.Parse(it.Value())
		if err != nil {
			return nil, nil, fmt.Errorf("key %x: %w", it.Key(), err)
		}
		if a.Gone && a.Snapshot <= once {
			rows = append(rows, kv.NotifyCell{Key: o.rowKey(it.Key())})
		}
		next = append(slices.Clone(it.Key()), 0)
	}
	return rows, next, nil
}
