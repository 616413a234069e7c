package session

import (
	"bytes"
	"context"
	"errors"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// A call of percodb.changes ends after so many requests, or so many cells beyond the rows that it may return, although it has found fewer
// rows: others have claimed them, or the observer's condition does not hold for them. The next call goes on there.
const (
	maxClaimRequests = 128
	maxClaimedBeyond = 1000
)

// changeClaim claims changed rows in the open transaction, for one call of percodb.changes, and acknowledges them there.
type changeClaim struct {
	x        *statementRunner
	table    *catalog.TableDescriptor
	observer *observe.Observer
	body     *observerBody // whose condition holds for the rows that the client gets
	limit    int           // of rows
	stay     bool          // the cursor stays

	rows             []types.Row
	unwanted         []byte // first row for which the condition does not hold
	requests, passed int    // so far; passed counts cells
}

// claimChanges claims up to limit changed rows.
func (x *statementRunner) claimChanges(ctx context.Context, n *planner.Changes, limit int) (*changeClaim, error) {
	from, limit, stay := x.deps.Cursors.next(n.Observer.ID, limit)
	body, err := x.conditionOf(ctx, n)
	if err != nil {
		return nil, err
	}
	c := &changeClaim{x: x, table: n.Table, observer: Delivery(x.tx.db, n.Table, n.Observer), body: body, limit: limit, stay: stay}
	ended, err := c.sweep(ctx, from, nil)
	if err == nil && !ended && from != nil {
		ended, err = c.sweep(ctx, nil, from)
	}
	if err == nil && !ended && c.passed == 0 {
		x.deps.Cursors.move(c.observer.ID, nil) // There are no cells.
	}
	return c, err
}

// conditionOf returns the condition of an observer without a body.
func (x *statementRunner) conditionOf(ctx context.Context, n *planner.Changes) (*observerBody, error) {
	body := &observerBody{table: n.Table, observer: n.Observer, rows: planner.ObserverRows(n.Table)}
	return body, body.prepareWhen(ctx, x.tx.resolver, x.env)
}

// sweep claims changes of the keys from … below end, nil for the first and the last, and reports whether the call ends.
func (c *changeClaim) sweep(ctx context.Context, from, end []byte) (ended bool, err error) {
	for page := c.limit - len(c.rows); ; page = min(2*page, maxClaimedBeyond) {
		cells, next, err := c.observer.Pending(ctx, page, from)
		if err != nil {
			return false, err
		}
		for len(cells) > 0 {
			if end != nil && bytes.Compare(cells[0].Key, end) >= 0 {
				return true, nil
			}
			some := cells[:min(len(cells), c.limit-len(c.rows))]
			if err := c.claim(ctx, some); err != nil {
				return false, err
			}
			if len(c.rows) == c.limit || c.requests == maxClaimRequests || c.passed >= c.limit+maxClaimedBeyond {
				return true, nil
			}
			cells = cells[len(some):]
		}
		if from = next; from == nil {
			return false, nil
		}
	}
}

// claim claims the rows of cells.
func (c *changeClaim) claim(ctx context.Context, cells []kv.NotifyCell) error {
	tx := c.x.tx
	claim, err := c.observer.Claim(ctx, tx.txn, cells)
	if err != nil {
		return err
	}
	if !c.stay {
		c.x.deps.Cursors.move(c.observer.ID, cells[len(cells)-1].Key)
	}
	c.requests++
	c.passed += len(cells)
	rows, err := changedRows(c.table, claim.Changes, &tx.claimed)
	if err != nil {
		return err
	}
	if err := tx.acknowledge(delivery{claim, c.observer}, c.table); err != nil {
		return err
	}
	wanted, err := c.body.wanted(ctx, c.x.env, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		if wanted[i] {
			c.rows = append(c.rows, rows[i])
		} else if c.unwanted == nil {
			c.unwanted = claim.Changes[i].Key
		}
	}
	return nil
}

// acknowledgeUnwanted acknowledges, in a transaction of its own, changes for which the observer's condition does not hold, and reports
// whether it has: a statement that waits for others holds no snapshot, and cannot acknowledge these itself.
func (x *statementRunner) acknowledgeUnwanted(ctx context.Context, w *changesWait) (done bool, err error) {
	err = x.commitUnwanted(ctx, w)
	x.tx.forgetStatement()
	if err == nil || ctx.Err() != nil {
		return err == nil, err
	}
	if retryable(err) || errors.Is(err, percolator.ErrRestartStatement) {
		return false, nil // The statement finds them again.
	}
	return false, err
}

func (x *statementRunner) commitUnwanted(ctx context.Context, w *changesWait) error {
	if err := x.tx.begin(ctx); err != nil {
		return err
	}
	body, err := x.conditionOf(ctx, w.node)
	if err != nil {
		return err
	}
	o := Delivery(x.tx.db, w.node.Table, w.node.Observer)
	cells, _, err := o.Pending(ctx, maxClaimedBeyond, w.unwanted)
	if err != nil {
		return err
	}
	claim, err := o.Claim(ctx, x.tx.txn, cells)
	if err != nil {
		return err
	}
	rows, err := changedRows(w.node.Table, claim.Changes, &x.tx.claimed)
	if err != nil {
		return err
	}
	wanted, err := body.wanted(ctx, x.env, rows)
	if err != nil {
		return err
	}
	all := claim.Changes
	claim.Changes = nil
	for i := range all {
		if !wanted[i] {
			claim.Changes = append(claim.Changes, all[i])
		}
	}
	if err := x.tx.acknowledge(delivery{claim, o}, w.node.Table); err != nil {
		return err
	}
	return x.tx.commitDelivered(ctx)
}
