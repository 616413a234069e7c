package sim

import (
	"context"
	"slices"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
)

// cursor is an open query over all lists. It is advanced whenever another statement of its transaction begins, as a
// session advances it past what that statement may change. Its reads belong to the time at which it was opened, so that
// it has a place in the transaction's record from then on.
type cursor struct {
	it    percolator.Iterator
	at    int // of its first op in the record
	found map[string][]int64
	ended bool
}

// unread marks the place of a cursor without reads.
const unread history.OpKind = 0

// openCursor opens the transaction's cursor; it closes the previous one.
func (x *txn) openCursor(ctx context.Context, reverse bool) error {
	if err := x.closeCursor(ctx, false); err != nil {
		return err
	}
	x.cursor = &cursor{
		it: x.ScanSpans(ctx, x.c.cutUp(), percolator.ScanOptions{Reverse: reverse}),
		at: len(x.a.Ops), found: map[string][]int64{},
	}
	for i := range numLists {
		x.a.Ops = append(x.a.Ops, history.Op{Kind: unread, Key: list(i)})
	}
	return nil
}

// readOn reads up to n rows of the cursor.
func (x *txn) readOn(ctx context.Context, n int) error {
	if x.cursor == nil {
		return nil
	}
	for ; n > 0 && !x.cursor.ended; n-- {
		if x.cursor.it.Next(ctx) {
			x.cursor.found[string(x.cursor.it.Key())] = parseList(x.cursor.it.Value())
		} else {
			x.cursor.ended = true
		}
	}
	if x.c.w.plan.bug != dropCursorReads {
		x.KeepReads()
	}
	return x.cursor.it.Err()
}

// closeCursor closes the cursor, if there is one, after all its rows or those read so far. Only a cursor read to its
// end is recorded: the keys that a part covers are not known.
func (x *txn) closeCursor(ctx context.Context, all bool) error {
	if x.cursor == nil {
		return nil
	}
	if all {
		if err := x.readOn(ctx, numLists+1); err != nil {
			return err
		}
	}
	c := x.cursor
	x.cursor = nil
	c.it.Close()
	if c.ended {
		for i := range x.a.Ops[c.at : c.at+numLists] {
			op := &x.a.Ops[c.at+i]
			op.Kind, op.List = history.OpScan, c.found[op.Key]
		}
	}
	return nil
}

// dropUnread removes the places of cursors that were not read to their end from a record.
func dropUnread(ops []history.Op) []history.Op {
	return slices.DeleteFunc(ops, func(op history.Op) bool { return op.Kind == unread })
}

// undo runs body, and undoes its writes with ROLLBACK TO a savepoint. If a lock cannot be acquired, the transaction
// continues.
func (x *txn) undo(ctx context.Context, body func() error) error {
	sp, ops, open := x.Savepoint(), len(x.a.Ops), x.cursor
	err := body()
	if err != nil && !notAvailable(err) {
		return err
	}
	if x.cursor != open {
		if err := x.closeCursor(ctx, false); err != nil {
			return err
		}
	}
	x.RollbackTo(sp)
	x.a.Ops = x.a.Ops[:ops]
	return nil
}
