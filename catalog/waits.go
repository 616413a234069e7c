package catalog

import (
	"context"
	"sync"
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
	schema   bool // SchemaWait.Schema
	blockers func() []uint32
	tables   []uint64 // SchemaWait.Tables
}

// waiter is who waits for schema changes.
type waiter struct {
	id      tso.Timestamp // of a transaction that others may wait for, else 0
	limit   time.Duration // of the wait, 0 for none
	session uint32        // Guard.Session
	// blockers lists the sessions that are waited for; nil: they are not known.
	blockers func() []uint32
	tables   []uint64 // SchemaWait.Tables
}

// SchemaWait is a session's wait for schema changes of others.
type SchemaWait struct {
	// Schema: it waits for its turn to change the schema; otherwise for a table that others change.
	Schema bool
	// Blockers are the sessions of this process that it waits for (Guard.Session), as far as they are known.
	Blockers []uint32
	// Tables are the ids of the tables that a commit wants to change, one of which others have closed.
	Tables []uint64
}

// schemaWaits are the waits of this process, by session.
type schemaWaits struct {
	sync.Mutex
	all map[uint32]*changeWait
}

func (s *schemaWaits) set(session uint32, w *changeWait) {
	s.Lock()
	defer s.Unlock()
	if w == nil {
		delete(s.all, session)
		return
	}
	if s.all == nil {
		s.all = map[uint32]*changeWait{}
	}
	s.all[session] = w
}

// WaitOf returns what a session of this process waits for, if it waits for schema changes.
func (c *Catalog) WaitOf(session uint32) (wait SchemaWait, ok bool) {
	c.waits.Lock()
	w := c.waits.all[session]
	c.waits.Unlock()
	if w == nil {
		return SchemaWait{}, false
	}
	wait.Schema, wait.Tables = w.schema, w.tables
	if w.blockers != nil {
		for _, b := range w.blockers() {
			if b != 0 {
				wait.Blockers = append(wait.Blockers, b)
			}
		}
	}
	return wait, true
}

// watch begins a wait. changes lists the transactions that are waited for; it may be called from another goroutine, also after the
// wait.
func (c *Catalog) watch(ctx context.Context, who waiter, relation string, changes func() []tso.Timestamp) *changeWait {
	w := &changeWait{relation: relation, stop: func() {}, schema: relation == "", blockers: who.blockers, tables: who.tables}
	if who.limit > 0 {
		w.ends = time.Now().Add(who.limit)
	}
	if who.id != 0 && c.opts.WaitGraph != nil {
		w.deadlock, w.stop = waitgraph.Watch(ctx, c.opts.WaitGraph, who.id, nil, changes)
	}
	if who.session != 0 {
		c.waits.set(who.session, w)
		unwatch := w.stop
		w.stop = func() {
			unwatch()
			c.waits.set(who.session, nil)
		}
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
