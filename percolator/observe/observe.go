// Package observe delivers changes to observers: each change is acted upon by at most one transaction that commits, and
// by one at least as long as somebody scans. Package ack has the decisions; percolator.Txn.Notify is the side of those
// who write.
//
//	cells  := o.Pending(…)            what has changed; any number of workers may look at the same time
//	txn    := db.BeginTxn(…)          after that, so that its snapshot includes the changes
//	claim  := o.Claim(txn, cells)     reads acknowledgements and rows at the snapshot, and decides
//	…                                 the caller acts upon the rows in txn
//	claim.Acknowledge(txn)            the acknowledgements are part of txn
//	txn.Commit()                      if it fails, or its process dies, the changes are pending as before
//	claim.Clear()                     if it is forgotten, the next worker clears
package observe

import (
	"bytes"
	"context"
	"fmt"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/ack"
	"github.com/percodb/percodb/tso"
)

// Observer is one observer of the rows below a prefix. Safe for concurrent use.
type Observer struct {
	ID    uint64
	Cells *percolator.Notifications
	// Rows and Acks are the prefixes of the observed rows' keys and of their acknowledgements. What follows a prefix is
	// the same in a row's key and in that of its acknowledgement.
	Rows, Acks []byte
}

// ackKey returns the key of a row's acknowledgement.
func (o *Observer) ackKey(row []byte) []byte {
	return append(append(make([]byte, 0, len(o.Acks)+len(row)-len(o.Rows)), o.Acks...), row[len(o.Rows):]...)
}

// rowKey is the inverse of ackKey.
func (o *Observer) rowKey(key []byte) []byte {
	return append(append(make([]byte, 0, len(o.Rows)+len(key)-len(o.Acks)), o.Rows...), key[len(o.Acks):]...)
}

// below returns the span of the keys with a prefix.
func below(prefix []byte) kv.Span {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return kv.Span{Start: prefix, End: end[:i+1]}
		}
	}
	return kv.Span{Start: prefix}
}

// Pending returns cells of the observer, in key order, at most limit, from the key from on (nil: the first). next is
// where to go on, nil at the end. Some may have been handled.
func (o *Observer) Pending(ctx context.Context, limit int, from []byte) (cells []kv.NotifyCell, next []byte, err error) {
	return o.Cells.Scan(ctx, o.ID, below(o.Rows), limit, from)
}

// Change is a changed row, as of the snapshot, which may be later than the change.
type Change struct {
	Key      []byte        // of the row
	Row      []byte        // its value; nil: it is gone
	CommitTS tso.Timestamp // of the newest change in the snapshot, as far as it is known
	Hop      uint8         // as in kv.NotifySet, of that change
}

// Claim is the changes that a transaction delivers.
type Claim struct {
	// Changes ascend by key. The caller may drop some before Acknowledge: they stay pending.
	Changes []Change
	// Snapshot is that of the transaction.
	Snapshot tso.Timestamp
	// Locked and Later are the numbers of cells that other transactions have claimed, and that are newer than the snapshot.
	Locked, Later int

	o    *Observer
	seen []kv.NotifyUpTo // ascending
}

// Claim claims those of the cells, which ascend, that no other transaction has claimed and that are pending as of the
// transaction's snapshot. The transaction should have begun, or begun its statement, after the cells were read: changes
// that are newer than its snapshot stay pending. A pessimistic transaction locks the acknowledgements until it ends,
// without waiting for others; of optimistic ones that acknowledge a change at the same time one commits.
//
// The error percolator.ErrRestartStatement means what it does for Txn.AcquireLocks: call Claim again with the same
// cells. The other errors are those of Txn.AcquireLocks and Txn.BatchGet.
func (o *Observer) Claim(ctx context.Context, t *percolator.Txn, cells []kv.NotifyCell) (*Claim, error) {
	keys := make([][]byte, len(cells))
	for i := range cells {
		if !bytes.HasPrefix(cells[i].Key, o.Rows) {
			return nil, fmt.Errorf("observe: cell %x of observer %d is not of its table", cells[i].Key, o.ID)
		}
		keys[i] = o.ackKey(cells[i].Key)
	}
	c := &Claim{o: o}
	if len(cells) == 0 {
		c.Snapshot = t.ReadTS()
		return c, nil
	}
	var skipped []bool
	if t.Pessimistic() {
		var err error
		if skipped, err = t.AcquireLocks(ctx, percolator.LockOptions{SkipLocked: true}, keys...); err != nil {
			return nil, err
		}
	}
	c.Snapshot = t.ReadTS()
	if skipped != nil {
		own, ownKeys := make([]kv.NotifyCell, 0, len(cells)), keys[:0:0]
		for i := range cells {
			if !skipped[i] {
				own, ownKeys = append(own, cells[i]), append(ownKeys, keys[i])
			}
		}
		c.Locked, cells, keys = len(cells)-len(own), own, ownKeys
	}
	return c, c.decide(ctx, t, cells, keys)
}

// decide decides about cells whose acknowledgements are at keys.
func (c *Claim) decide(ctx context.Context, t *percolator.Txn, cells []kv.NotifyCell, keys [][]byte) error {
	if len(cells) == 0 {
		return nil
	}
	both := make([][]byte, 0, 2*len(cells)) // Usually this is their order.
	for i := range cells {
		both = append(both, cells[i].Key)
	}
	values, err := t.BatchGet(ctx, append(both, keys...))
	if err != nil {
		return err
	}
	rows, values := values[:len(cells)], values[len(cells):]
	unsure := false
	verdicts := make([]ack.Verdict, len(cells))
	for i := range cells {
		var a ack.Ack
		if values[i] != nil {
			if a, err = ack.Parse(values[i]); err != nil {
				return fmt.Errorf("key %x: %w", keys[i], err)
			}
		}
		verdicts[i] = ack.Decide(cells[i].Latest, c.Snapshot, a.Snapshot)
		switch verdicts[i] {
		case ack.Seen:
			c.seen = append(c.seen, kv.NotifyUpTo{Key: cells[i].Key, UpTo: a.Snapshot})
		case ack.Later:
			c.Later++
		default:
			unsure = true
		}
	}
	if !unsure {
		return nil
	}
	present, err := c.o.look(ctx, cells)
	if err != nil {
		return err
	}
	for i := range cells {
		switch after := present[i]; {
		case verdicts[i] == ack.Deliver:
			c.add(&cells[i], after, rows[i])
		case verdicts[i] != ack.Confirm || after == nil:
		case after.Latest > c.Snapshot:
			c.Later++ // The cell may have been cleared, and be that of this newer change alone.
		default:
			c.add(&cells[i], after, rows[i])
		}
	}
	return nil
}

// add adds a change, of which the cell was found before the snapshot was taken, and after it (nil: no more). The later
// one is more precise, unless its change is not in the snapshot.
func (c *Claim) add(before, after *kv.NotifyCell, row []byte) {
	change := Change{Key: before.Key, Row: row, CommitTS: before.Latest, Hop: before.Hop}
	if after != nil {
		if change.Hop = max(change.Hop, after.Hop); after.Latest <= c.Snapshot {
			change.CommitTS = max(change.CommitTS, after.Latest)
		}
	}
	c.Changes = append(c.Changes, change)
}

// look reads cells, which ascend, again. present[i] is nil if there is none any more. The cells may be far apart, with
// many others between them: a page begins at a cell that is looked for, and is larger only where the page before was useful.
func (o *Observer) look(ctx context.Context, cells []kv.NotifyCell) (present []*kv.NotifyCell, _ error) {
	present = make([]*kv.NotifyCell, len(cells))
	span := kv.Span{End: append(bytes.Clone(cells[len(cells)-1].Key), 0)}
	limit := len(cells)
	for at := 0; at < len(cells); {
		span.Start = cells[at].Key
		page, next, err := o.Cells.Scan(ctx, o.ID, span, limit, nil)
		if err != nil {
			return nil, err
		}
		found := 0
		for i := range page {
			at = passBelow(cells, at, page[i].Key)
			if at < len(cells) && bytes.Equal(cells[at].Key, page[i].Key) {
				present[at] = &page[i]
				at++
				found++
			}
		}
		if next == nil {
			break
		}
		at = passBelow(cells, at, next)
		limit = max(1, min(2*found, len(cells)-at))
	}
	return present, nil
}

// passBelow returns the position of the first of cells, from at on, whose key is not below key.
func passBelow(cells []kv.NotifyCell, at int, key []byte) int {
	for at < len(cells) && bytes.Compare(cells[at].Key, key) < 0 {
		at++
	}
	return at
}

// MaxHop is the longest chain of observers: a change with a larger hop is not delivered, for a cycle has caused it.
const MaxHop = 64

// Hop returns the hop of what the transaction writes: one more than that of the changes.
func (c *Claim) Hop() uint8 {
	hop := uint8(0)
	for i := range c.Changes {
		hop = max(hop, c.Changes[i].Hop)
	}
	return min(hop, MaxHop) + 1
}

// Acknowledge writes the acknowledgements of the changes. Whether the caller has acted on a change does not matter.
func (c *Claim) Acknowledge(t *percolator.Txn) error {
	for i := range c.Changes {
		change := &c.Changes[i]
		value := ack.Ack{Snapshot: c.Snapshot, Gone: change.Row == nil}.Append(nil)
		if err := t.Put(c.o.ackKey(change.Key), value); err != nil {
			return err
		}
	}
	return nil
}

// Acknowledged returns the snapshots at which rows, by their keys, were handled last, as of the transaction's; 0: never.
func (o *Observer) Acknowledged(ctx context.Context, t *percolator.Txn, rows [][]byte) ([]tso.Timestamp, error) {
	keys := make([][]byte, len(rows))
	for i := range rows {
		keys[i] = o.ackKey(rows[i])
	}
	values, err := t.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	snapshots := make([]tso.Timestamp, len(rows))
	for i := range values {
		if values[i] == nil {
			continue
		}
		a, err := ack.Parse(values[i])
		if err != nil {
			return nil, fmt.Errorf("key %x: %w", keys[i], err)
		}
		snapshots[i] = a.Snapshot
	}
	return snapshots, nil
}

// Written reports whether what Clear relies on is there for the transaction: the acknowledgements of the changes among its writes, and
// those that it has found, which may be its own. Rollbacks to savepoints take both back.
func (c *Claim) Written(ctx context.Context, t *percolator.Txn) (bool, error) {
	keys := make([][]byte, 0, len(c.Changes)+len(c.seen))
	for i := range c.Changes {
		keys = append(keys, c.o.ackKey(c.Changes[i].Key))
	}
	for i := range c.seen {
		keys = append(keys, c.o.ackKey(c.seen[i].Key))
	}
	if len(keys) == 0 {
		return true, nil
	}
	values, err := t.BatchGet(ctx, keys)
	if err != nil {
		return false, err
	}
	for i := range c.Changes {
		own := ack.Ack{Snapshot: c.Snapshot, Gone: c.Changes[i].Row == nil}
		if !bytes.Equal(values[i], own.Append(nil)) {
			return false, nil
		}
	}
	for i := range c.seen {
		value := values[len(c.Changes)+i]
		if value == nil {
			return false, nil
		}
		if a, err := ack.Parse(value); err != nil || a.Snapshot < c.seen[i].UpTo {
			return false, err
		}
	}
	return true, nil
}

// Clear clears the cells of what has been acknowledged. It must not be called unless the transaction has committed, with
// all that Acknowledge wrote: not if it may have failed, and not after a rollback to a savepoint before Acknowledge. It
// need not be called.
func (c *Claim) Clear(ctx context.Context) error {
	_, err := c.o.Cells.Clear(ctx, c.o.ID, c.Done())
	return err
}

// Done returns what Clear clears, ascending by key, for a caller that clears the cells of several claims together, at any
// time after Clear may be called.
func (c *Claim) Done() []kv.NotifyUpTo {
	done := make([]kv.NotifyUpTo, 0, len(c.Changes)+len(c.seen))
	seen := c.seen
	for i := range c.Changes {
		key := c.Changes[i].Key
		for len(seen) > 0 && bytes.Compare(seen[0].Key, key) < 0 {
			done, seen = append(done, seen[0]), seen[1:]
		}
		done = append(done, kv.NotifyUpTo{Key: key, UpTo: c.Snapshot})
	}
	return append(done, seen...)
}
