package mvcc

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// queue contains the waiters for a key in AcquireLocks, in the order in which they will be granted it. It moves with the
// key from holder to holder. Guarded by lockTable.mu, as are its waiters.
type queue struct {
	waiters []*waiter
	// newest is the newest commit_ts on the key since the first of them came.
	newest tso.Timestamp
	// reported is when one of them last left because the holder may be dead: its client is looking
	// into that, and the others keep their places.
	reported time.Time
}

// waiter is one request that waits for one key. It is woken with an outcome.
type waiter struct {
	entry   entry         // becomes the key's when it is granted
	readTS  tso.Timestamp // the least to be granted at
	seen    tso.Timestamp // newest commit_ts on the key when the waiter came
	arrived time.Time
	upgrade bool // it has a shared lock on the key already, and requests an exclusive one
	outcome waitOutcome
	err     error             // of waitDeadlock
	edges   []*waitgraph.Edge // to the transactions for which it waits
	wake    chan struct{}     // capacity 1; filled when outcome is set or the waiter's blocker changes
}

type waitOutcome uint8

const (
	waitGoesOn   waitOutcome = iota
	waitGranted              // entry.lock contains the timestamp as of which it is granted
	waitRetry                // check again: the key may have moved to another shard, or the transaction shares it now
	waitStopped              // see lockTable.stopped
	waitDeadlock             // the predecessor left, and waiting for the next one would close a circle
)

// lockStats counts events of queues.
type lockStats struct {
	waits, deadlocks atomic.Int64
	waitNanos        atomic.Int64
	waiting          atomic.Int64
}

func (w *waiter) startTS() tso.Timestamp { return w.entry.lock.StartTS }

func (w *waiter) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// enqueue adds a waiter to the end of the queue for its key. It reports false if the key may be free: check again. The
// caller holds the key's latch.
func (t *lockTable) enqueue(w *waiter) (queued bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped != nil {
		return false, t.stopped
	}
	e := t.ownLocked(t.getLocked(w.entry.key))
	if e == nil {
		return false, nil
	}
	own := e.holderOf(w.startTS())
	switch {
	case own == nil && w.entry.lock.Shared && e.lock.Shared && e.queue == nil:
		return false, nil // it may join
	case own != nil && (!own.Shared || w.entry.lock.Shared || len(e.sharers) == 0):
		return false, nil // nothing blocks it
	}
	w.upgrade = own != nil
	if e.queue == nil {
		e.queue = &queue{}
	}
	at := len(e.queue.waiters)
	if w.upgrade {
		// A waiter before it would wait for it in vain.
		at = slices.IndexFunc(e.queue.waiters, func(o *waiter) bool { return !o.upgrade })
		if at < 0 {
			at = len(e.queue.waiters)
		}
	}
	e.queue.waiters = slices.Insert(e.queue.waiters, at, w)
	if err := t.connectLocked(e, at); err != nil {
		t.leaveLocked(e, w)
		return false, err
	}
	t.stats.waits.Add(1)
	t.stats.waiting.Add(1)
	if at+1 < len(e.queue.waiters) {
		t.reconnectLocked(e, at+1)
	}
	return true, nil
}

// connectLocked registers in the graph for which transaction the waiter at a position waits: for the one before it or,
// the first, for the holders.
func (t *lockTable) connectLocked(e *entry, at int) error {
	w := e.queue.waiters[at]
	t.disconnectLocked(w)
	if at > 0 {
		return t.connectTo(w, e.queue.waiters[at-1].startTS())
	}
	if err := t.connectTo(w, e.lock.StartTS); err != nil {
		return err
	}
	for i := range e.sharers {
		if err := t.connectTo(w, e.sharers[i].StartTS); err != nil {
			return err
		}
	}
	return nil
}

func (t *lockTable) connectTo(w *waiter, other tso.Timestamp) error {
	if other == w.startTS() {
		return nil // its own shared lock, or another request of the same transaction
	}
	edge, err := t.graph.Add(w.startTS(), other, w.entry.key)
	if err != nil {
		t.stats.deadlocks.Add(1)
		return err
	}
	w.edges = append(w.edges, edge)
	return nil
}

func (t *lockTable) disconnectLocked(w *waiter) {
	for _, edge := range w.edges {
		t.graph.Remove(edge)
	}
	w.edges = w.edges[:0]
}

// reconnectLocked is connectLocked for a waiter whose blocker has changed.
func (t *lockTable) reconnectLocked(e *entry, at int) {
	w := e.queue.waiters[at]
	if err := t.connectLocked(e, at); err != nil {
		t.leaveLocked(e, w)
		w.err = err
		t.finishLocked(w, waitDeadlock)
		return
	}
	w.notify()
}

// finishLocked ends a wait; the waiter is no longer in a queue.
func (t *lockTable) finishLocked(w *waiter, outcome waitOutcome) {
	t.disconnectLocked(w)
	w.outcome = outcome
	t.stats.waiting.Add(-1)
	w.notify()
}

// leaveLocked removes a waiter from the queue, and connects the next one again.
func (t *lockTable) leaveLocked(e *entry, w *waiter) {
	q := e.queue
	at := slices.Index(q.waiters, w)
	t.disconnectLocked(w)
	q.waiters = slices.Delete(q.waiters, at, at+1)
	if len(q.waiters) == 0 {
		e.queue = nil
	} else if at < len(q.waiters) {
		t.reconnectLocked(e, at)
	}
}

// giveUp ends a wait unless it has ended by itself; it returns how it has ended then.
func (t *lockTable) giveUp(w *waiter) waitOutcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.outcome == waitGoesOn {
		t.stats.waiting.Add(-1)
		t.leaveLocked(t.getLocked(w.entry.key), w)
	}
	return w.outcome
}

// handOverLocked grants the key of a removed entry to the first waiter in its queue and, if that one shares it, to the
// following ones that do too.
func (t *lockTable) handOverLocked(old *entry, commitTS tso.Timestamp) {
	q := old.queue
	old.queue = nil
	q.newest = max(q.newest, commitTS)
	next := &q.waiters[0].entry
	next.state = stateDurable
	granted, now := 0, time.Now()
	for _, w := range q.waiters {
		if granted > 0 && !(next.lock.Shared && w.entry.lock.Shared) {
			break
		}
		w.entry.lock.ForUpdateTS = max(w.readTS, w.seen, q.newest)
		// The TTL was computed when the lock was requested.
		w.entry.lock.TTLMillis += uint64(max(0, now.Sub(w.arrived).Milliseconds()))
		w.entry.lock.HeardMillis = t.millis()
		if granted > 0 && next.holderOf(w.startTS()) == nil {
			next.sharers = append(next.sharers, w.entry.lock)
		}
		t.finishLocked(w, waitGranted)
		granted++
	}
	q.waiters = slices.DeleteFunc(q.waiters[granted:], func(w *waiter) bool {
		switch l := next.holderOf(w.startTS()); {
		case l == nil:
			return false
		case l.Shared: // by another request of its transaction; that lock may suffice for this one, or it waits on as an upgrade
			t.finishLocked(w, waitRetry)
		default: // another request of the transaction that has the key now
			w.entry.lock.ForUpdateTS = l.ForUpdateTS
			t.finishLocked(w, waitGranted)
		}
		return true
	})
	t.n.Add(1)
	var f finger
	t.tree.put(&f, next)
	t.forgetLocked(old)
	if len(q.waiters) == 0 {
		return
	}
	next.queue = q
	if granted > 1 {
		t.reconnectLocked(next, 0) // it has waited for the last of them only
	}
}

// outcome returns the outcome of a waiter.
func (t *lockTable) outcome(w *waiter) waitOutcome {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return w.outcome
}

// blocker returns the lock that the first in a queue waits for; head is false for all others.
func (t *lockTable) blocker(w *waiter) (l Lock, head bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if w.outcome != waitGoesOn {
		return Lock{}, false
	}
	e := t.getLocked(w.entry.key)
	if e.queue.waiters[0] != w {
		return Lock{}, false
	}
	return t.detachedLocked(e, w.startTS()), true
}

// detachedLocked returns a copy of another transaction's lock on a key, with the TTL in force.
func (t *lockTable) detachedLocked(e *entry, startTS tso.Timestamp) Lock {
	other := e.otherThan(startTS)
	l := other.detached()
	l.TTLMillis = t.ttlLocked(e.key, other)
	return l
}

// lockedError returns an error with the lock that blocks a transaction's access to a key, or nil.
func (t *lockTable) lockedError(key []byte, startTS tso.Timestamp) *KeyLockedError {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e := t.getLocked(key)
	if e == nil || e.otherThan(startTS) == nil {
		return nil
	}
	return &KeyLockedError{Key: bytes.Clone(key), Lock: t.detachedLocked(e, startTS)}
}

// report reports whether the waiter shall leave because the holder may be dead.
func (t *lockTable) report(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.outcome != waitGoesOn {
		return false
	}
	q, now := t.getLocked(w.entry.key).queue, time.Now()
	if now.Sub(q.reported) < reportAgain {
		return false
	}
	q.reported = now
	return true
}

// waitsFor lists whom a waiter waits for.
func (t *lockTable) waitsFor(w *waiter) []tso.Timestamp {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]tso.Timestamp, len(w.edges))
	for i, edge := range w.edges {
		out[i] = edge.Holder()
	}
	return out
}

func (t *lockTable) whyStopped() error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.stopped
}

// holders adds the locks on key to the view of a transaction; queued reports that there are waiters for the key. The
// caller holds its latch.
func (t *lockTable) holders(n *near, v *keyView, key []byte, startTS tso.Timestamp) (e *entry, queued bool) {
	if t.n.Load() == 0 || n.passes(key) {
		return nil, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e = t.getNearLocked(n, key); e == nil {
		return nil, false
	}
	seen := e
	if e.onePC {
		// It is removed when its batch is synced, without the latch, and its memory is reused.
		seen = &entry{lock: e.lock}
	}
	v.setLock(seen, startTS)
	return e, e.queue != nil
}

// grant adds locks that were free, all in one critical section, for a transaction that has held size locks.
func (t *lockTable) grant(entries []*entry, size uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var f finger
	for _, e := range entries {
		if t.n.Add(1); t.packable(e, size) {
			t.packLocked(e)
		} else {
			t.tree.put(&f, e)
		}
	}
}

// join adds a holder to a shared lock, unless others have begun to wait for the key.
func (t *lockTable) join(e *entry, l *Lock) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e = t.ownLocked(e); e == nil || e.queue != nil {
		return false
	}
	e.sharers = append(e.sharers, *l)
	return true
}

// relock records that a transaction has locked a key again: as of a later snapshot, or, if it is the only holder, no
// longer shared.
func (t *lockTable) relock(e *entry, args *AcquireLocksRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.pack != nil && (args.Shared || !e.lock.Shared) {
		return // its primary alone is prolonged
	}
	if e = t.ownLocked(e); e == nil {
		return
	}
	l := e.holderOf(args.StartTS)
	l.TTLMillis = max(l.TTLMillis, args.TTLMillis)
	l.LeaseMillis, l.HeardMillis = args.LeaseMillis, t.millis()
	l.Shared = l.Shared && args.Shared
}

// release ends a transaction's pessimistic hold on a key. The caller holds the key's latch.
func (t *lockTable) release(e *entry, startTS tso.Timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releaseLocked(e, startTS)
}

func (t *lockTable) releaseLocked(e *entry, startTS tso.Timestamp) {
	if e.pack != nil {
		var f finger
		own := t.tree.get(&f, e.key)
		if own == nil {
			t.dropPackedLocked(e)
			return
		}
		e = own
	}
	if len(e.sharers) == 0 {
		var f finger
		t.removeLocked(&f, e, 0)
		return
	}
	if e.lock.StartTS == startTS {
		e.lock = e.sharers[0]
		e.sharers = slices.Delete(e.sharers, 0, 1)
	} else {
		e.sharers = slices.DeleteFunc(e.sharers, func(l Lock) bool { return l.StartTS == startTS })
	}
	e.wakeLocked()
	if e.queue == nil {
		return
	}
	if head := e.queue.waiters[0]; head.upgrade && len(e.sharers) == 0 && e.lock.StartTS == head.startTS() {
		// The only holder left is the one that requests the key exclusively.
		e.lock.Shared = false
		head.entry.lock.ForUpdateTS = e.lock.ForUpdateTS
		t.leaveLocked(e, head)
		t.finishLocked(head, waitGranted)
	}
	t.dismissHolderLocked(e)
	if e.queue != nil {
		t.reconnectLocked(e, 0)
	}
}

// dismissHolderLocked makes the waiters of a transaction that is the only holder check again: nothing blocks it.
func (t *lockTable) dismissHolderLocked(e *entry) {
	for len(e.sharers) == 0 && e.queue != nil {
		at := slices.IndexFunc(e.queue.waiters, func(w *waiter) bool { return w.startTS() == e.lock.StartTS })
		if at < 0 {
			return
		}
		w := e.queue.waiters[at]
		t.leaveLocked(e, w)
		t.finishLocked(w, waitRetry)
	}
}

// retryWaiters makes the requests that wait for keys of [start, end) start over.
func (t *lockTable) retryWaiters(start, end []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ascendTreeLocked(start, end, func(e *entry) bool {
		t.dismissLocked(e, waitRetry)
		return true
	})
}

// stop makes all current and future waits fail with err.
func (t *lockTable) stop(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked(err)
}

func (t *lockTable) stopLocked(err error) {
	t.stopped = err
	t.tree.ascend(nil, func(e *entry) bool {
		t.dismissLocked(e, waitStopped)
		return true
	})
}

func (t *lockTable) dismissLocked(e *entry, outcome waitOutcome) {
	if e.queue == nil {
		return
	}
	for _, w := range e.queue.waiters {
		t.finishLocked(w, outcome)
	}
	e.queue = nil
}

// ttlLocked returns the TTL in force of a lock: that of its primary, if it is here, because heartbeats extend only that.
func (t *lockTable) ttlLocked(key []byte, l *Lock) uint64 {
	if !bytes.Equal(l.Primary, key) {
		if e := t.getLocked(l.Primary); e != nil {
			if p := e.holderOf(l.StartTS); p != nil {
				return max(l.TTLMillis, p.TTLMillis)
			}
		}
	}
	return l.TTLMillis
}

// waitersLocked lists the waiters for an entry's key.
func (e *entry) waitersLocked() []tso.Timestamp {
	if e.queue == nil {
		return nil
	}
	out := make([]tso.Timestamp, len(e.queue.waiters))
	for i, w := range e.queue.waiters {
		out[i] = w.startTS()
	}
	return out
}
