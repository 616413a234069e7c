package catalog

import (
	"context"
	"time"

	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// changeWait is a transaction's wait for other transactions' schema changes. It may deadlock, because these may wait for its row locks.
// The caller calls stop at the end.
type changeWait struct {
	relation string    // that is changed
	ends     time.Time // of the wait, zero for none
	deadlock <-chan error
	stop     func()
}

// waiter is who waits for schema changes.
type waiter struct {
	id    tso.Timestamp // of a transaction that others may wait for, else 0
	limit time.Duration // of the wait, 0 for none
}

// watch begins a wait. changes lists the transactions that are waited for; it may be called from another goroutine, also after the
// wait.
func (c *Catalog) watch(ctx context.Context, who waiter, relation string, changes func() []tso.Timestamp) *changeWait {
	w := &changeWait{relation: relation, stop: func() {}}
	if who.limit > 0 {
		w.ends = time.Now().Add(who.limit)
	}
	if who.id != 0 && c.opts.WaitGraph != nil {
		w.deadlock, w.stop = waitgraph.Watch(ctx, c.opts.WaitGraph, who.id, nil, changes)
	}
	return w
}

// until returns when wake delivers or is closed, or after pause unless that is 0, with an error if the wait is over.
func (w *changeWait) until(ctx context.Context, wake <-chan struct{}, pause time.Duration) error {
	last := false
	if !w.ends.IsZero() {
		if left := max(time.Until(w.ends), time.Nanosecond); pause == 0 || left <= pause {
			pause, last = left, true
		}
	}
	var paused <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		paused = timer.C
	}
	select {
	case <-wake:
	case <-paused:
		if last {
			return &LockTimeoutError{Relation: w.relation}
		}
	case err := <-w.deadlock:
		return &DeadlockError{Relation: w.relation, Err: err}
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// known removes the timestamps of transactions that are not known.
func known(txns ...tso.Timestamp) []tso.Timestamp {
	out := txns[:0]
	for _, ts := range txns {
		if ts != 0 {
			out = append(out, ts)
		}
	}
	return out
}
