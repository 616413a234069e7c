package percolator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// Hold is a lock on a key that belongs to no transaction of data: it ends with Release, or with its process. It is a transaction that locks one
// key, never writes, and keeps no history from garbage collection once the key is locked. Not safe for concurrent use.
//
//	owner ──▶ hold ──▶ holder of the key     while it waits, so that a circle through the owner is found
type Hold struct {
	txn   *Txn
	key   []byte
	state holdState
}

// holdState is what the lease of a hold's transaction needs of it.
type holdState struct {
	lost func()
	told atomic.Bool // lost was called

	mu      sync.Mutex
	renewed time.Time // when the lock was renewed last, by the local clock
}

// renew notes that the lock was there at a time.
func (s *holdState) renew(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.renewed) {
		s.renewed = at
	}
}

// age is how long ago the lock was renewed.
func (s *holdState) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.renewed)
}

// HoldOptions of DB.Hold.
type HoldOptions struct {
	Shared bool // others may hold it shared too
	NoWait bool // fail with *LockNotAvailableError instead of waiting
	// LockTimeout bounds the wait; 0: only the context does.
	LockTimeout time.Duration
	// Lost is called once, by another goroutine, if the lock may have been granted to others: its store has restarted, or could not be
	// reached until the lock expired. It must not block.
	Lost func()
	// Begun is called with the hold's start_ts before it waits, and returns what is to be called when the wait is over. It may refuse
	// the wait. nil: nothing is called.
	Begun func(hold tso.Timestamp) (done func(), err error)
}

// Hold locks a key, waiting for others. The key must be one that nothing writes. Errors: *LockNotAvailableError, *mvcc.DeadlockError, those
// of routing and of the context.
func (db *DB) Hold(ctx context.Context, key []byte, o HoldOptions) (*Hold, error) {
	txn, err := db.BeginTxn(ctx, TxnOptions{Isolation: ReadCommitted, Pessimistic: true})
	if err != nil {
		return nil, err
	}
	h := &Hold{txn: txn, key: key, state: holdState{lost: o.Lost}}
	txn.locks.lease.hold = &h.state
	if err := h.acquire(ctx, o); err != nil {
		_ = txn.Rollback(context.WithoutCancel(ctx)) // It always succeeds.
		return nil, err
	}
	db.active.leave(&txn.active)
	return h, nil
}

// Strengthen makes a shared lock exclusive, waiting for the others that share it. The lock stays shared after an error.
func (h *Hold) Strengthen(ctx context.Context, o HoldOptions) error {
	ts, err := h.txn.db.now(ctx)
	if err != nil {
		return err
	}
	h.txn.moveTo(ts)
	return h.acquire(ctx, o)
}

// Confirm renews the lock, and returns nil if its store still has it. Otherwise others may have had it meanwhile; Lost is called then, unless the
// store could not be reached. Errors: *LockNotAvailableError, those of routing and of the context.
func (h *Hold) Confirm(ctx context.Context) error {
	l := &h.txn.locks.lease
	start := time.Now()
	err := l.send(ctx, l.ttlNow(ctx))
	l.beatHold(start, err)
	if l.doomed.Load() {
		return &LockNotAvailableError{Key: h.key}
	}
	return err
}

func (h *Hold) acquire(ctx context.Context, o HoldOptions) error {
	if o.Begun != nil {
		done, err := o.Begun(h.txn.startTS)
		if err != nil {
			return err
		}
		defer done()
	}
	h.txn.SetLockTimeout(o.LockTimeout)
	_, err := h.txn.AcquireLocks(ctx, LockOptions{NoWait: o.NoWait, Shared: o.Shared, Aside: true}, h.key)
	return err
}

// StartTS identifies the hold in lists of locks, and in the graph of waits.
func (h *Hold) StartTS() tso.Timestamp { return h.txn.startTS }

// Release ends the lock.
func (h *Hold) Release(ctx context.Context) {
	_ = h.txn.Rollback(context.WithoutCancel(ctx)) // It always succeeds; a lock that its store was not told of expires.
}

// beatHold follows a heartbeat of a hold that began at start and ended with err: it dooms the hold if another transaction may have its lock.
func (l *lease) beatHold(start time.Time, err error) {
	kind, expired := errkind.Of(err), l.hold.age() >= time.Duration(l.ttlMillis)*time.Millisecond
	switch {
	case err == nil:
		l.hold.renew(start)
	case kind == errkind.Locked, kind == errkind.LockNotFound, kind == errkind.Committed, expired:
		l.doomed.Store(true)
	}
	if l.doomed.Load() && l.hold.lost != nil && l.running() && !l.hold.told.Swap(true) {
		l.hold.lost()
	}
}
