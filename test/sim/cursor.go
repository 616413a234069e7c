package sim

import (
	"context"
	"slices"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
)

// cursor is an open query over all lists, read on whenever a further statement of its transaction begins, as
// a session does for what that statement may change. Its reads belong where it was opened, so that it has a
// place in the transaction's record from then on.
type cursor struct {
	it    percolator.Iterator
	at    int // of its first op in the record
	found map[string][]int64
	ended bool
}

// unread marks a cursor's place that nothing has been read for.
const unread history.OpKind = 0

// openCursor opens the transaction's cursor; the one before is closed.
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

// readOn takes up to n rows of the cursor.
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

// closeCursor closes the cursor, if there is one, with all its rows or those that were read so far. Only what it
// read to its end is recorded: of a part nobody can say which keys it covers.
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

// dropUnread takes the places of cursors that were not read to their end off a record.
func dropUnread(ops []history.Op) []history.Op {
	return slices.DeleteFunc(ops, func(op history.Op) bool { return op.Kind == unread })
}

// undo runs body, and takes back what it did: ROLLBACK TO a savepoint. A lock that could not be had is no
// reason to give the transaction up.
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
