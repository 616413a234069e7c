// Package advisory implements the advisory locks of a session (PostgreSQL 15, 13.3.5). Each locked key is one lock in the store, so that all
// SQL processes see it, and it ends with the session or its process. A key that the session locks several times is locked once there.
//
//	session ── counts by key ──▶ percolator.Hold ──▶ lock in the store
//
// Invariants:
//
//	I1 A key is locked in the store while any of the session's counts of it is above 0: exclusively once an exclusive count has been, which
//	   lasts until the last count is gone.
//	I2 A lock of transaction level ends with the transaction, or with the rollback to a savepoint before it.
//	I3 A session does not go on with a lock that others may have: Options.Lost is called, and Confirm fails the commit that comes before that.
//	I4 A circle of waits through advisory locks, row locks and schema changes is a deadlock for one of its waiters: each lock of a session
//	   waits, in the graph of waits, for the session's transaction.
package advisory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Key identifies an advisory lock. Keys of one number and keys of two are different.
type Key struct {
	High, Low uint32 // classid and objid of pg_locks
	Pair      bool   // a key of two numbers: objsubid 2 of pg_locks, not 1
}

// Request is one call of a function that locks.
type Request struct {
	Key         Key
	Shared      bool
	Transaction bool          // the lock ends with the transaction
	Try         bool          // do not wait
	LockTimeout time.Duration // of the wait; 0: none
}

// Options of New.
type Options struct {
	// Database is the OID of the session's database, which has locks of its own.
	Database uint32
	DB       *percolator.DB
	Graph    waitgraph.Graph // of the store's waits; nil: deadlocks through several kinds of locks are not found
	Memory   *memory.Account // the session's
	Lost     func()          // called once, from another goroutine, when a lock may have been granted to others; must not block
}

// lockBytes is what a lock counts for in the session's memory.
const lockBytes = 2 << 10

// Locks are a session's advisory locks. Not safe for concurrent use, except for List.
type Locks struct {
	opts Options
	self tso.Timestamp // the session in the graph of waits
	txn  tso.Timestamp // its transaction, 0 for none
	// follows ends the edge from self to txn.
	follows func()
	// log has what the transaction has locked, in order; of the session level, too.
	log []Request

	mu struct {
		sync.Mutex
		held    map[Key]*lock
		waiting *Shown
	}
}

// lock is one key that is locked in the store.
type lock struct {
	hold   *percolator.Hold
	shared bool
	counts [2][2]int // by Request.Shared and Request.Transaction
	owned  func()    // ends the edge from the hold to Locks.self
}

func (l *lock) count(r *Request) *int { return &l.counts[index(r.Shared)][index(r.Transaction)] }

func (l *lock) total() int {
	return l.counts[0][0] + l.counts[0][1] + l.counts[1][0] + l.counts[1][1]
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Shown is a lock as pg_locks shows it.
type Shown struct {
	Key             Key
	Shared, Granted bool
	Hold            tso.Timestamp // identifies it in the store's lists of locks
	Since           time.Time     // when the wait began; zero if it is granted
}

// New returns a session's locks, of which there are none yet.
func New(o Options) *Locks {
	l := &Locks{opts: o}
	l.mu.held = map[Key]*lock{}
	return l
}

// Acquire locks a key, and reports false if it did not wait although others have it. Errors: those of percolator.DB.Hold,
// *memory.ExceededError.
func (l *Locks) Acquire(ctx context.Context, r Request) (bool, error) {
	held := l.mu.held[r.Key]
	var err error
	switch {
	case held == nil:
		held, err = l.lock(ctx, &r)
	case held.shared && !r.Shared:
		err = l.strengthen(ctx, held, &r)
	}
	if refused := (*percolator.LockNotAvailableError)(nil); r.Try && errors.As(err, &refused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	*held.count(&r)++
	l.log = append(l.log, r)
	return true, nil
}

// lock locks a key that the session has not locked.
func (l *Locks) lock(ctx context.Context, r *Request) (*lock, error) {
	if err := l.opts.Memory.Grow(lockBytes); err != nil {
		return nil, err
	}
	hold, err := l.opts.DB.Hold(ctx, catalog.AdvisoryKey(l.opts.Database, r.Key.High, r.Key.Low, r.Key.Pair), l.options(ctx, r))
	if err != nil {
		l.opts.Memory.Shrink(lockBytes)
		return nil, err
	}
	held := &lock{hold: hold, shared: r.Shared}
	if err := l.own(ctx, held); err != nil {
		l.end(ctx, held)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.held[r.Key] = held
	return held, nil
}

// strengthen makes a lock that is shared exclusive. Until it is, the lock does not wait for its session: the session waits for it.
func (l *Locks) strengthen(ctx context.Context, held *lock, r *Request) error {
	held.owned()
	err := held.hold.Strengthen(ctx, l.options(ctx, r))
	if err == nil {
		l.mu.Lock()
		held.shared = false
		l.mu.Unlock()
	}
	return errors.Join(err, l.own(ctx, held))
}

func (l *Locks) options(ctx context.Context, r *Request) percolator.HoldOptions {
	return percolator.HoldOptions{Shared: r.Shared, NoWait: r.Try, LockTimeout: r.LockTimeout, Lost: l.opts.Lost,
		Begun: func(hold tso.Timestamp) (func(), error) {
			done, err := l.edge(ctx, max(l.txn, l.self), hold)
			if err != nil {
				return nil, err
			}
			l.setWaiting(&Shown{Key: r.Key, Shared: r.Shared, Hold: hold, Since: time.Now()})
			return func() {
				l.setWaiting(nil)
				done()
			}, nil
		}}
}

func (l *Locks) setWaiting(w *Shown) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.waiting = w
}

// own makes whoever waits for a lock wait for the session.
func (l *Locks) own(ctx context.Context, held *lock) (err error) {
	if l.self == 0 {
		if l.self, err = l.opts.DB.Timestamp(ctx); err != nil {
			return err
		}
		if err := l.Follow(ctx, l.txn); err != nil {
			return err
		}
	}
	held.owned, err = l.edge(ctx, held.hold.StartTS(), l.self)
	return err
}

// edge adds an edge to the graph of waits, and returns what removes it.
func (l *Locks) edge(ctx context.Context, waiter, holder tso.Timestamp) (done func(), err error) {
	if l.opts.Graph == nil || waiter == 0 || holder == 0 {
		return func() {}, nil
	}
	done, err = l.opts.Graph.Wait(ctx, waiter, holder, nil)
	if errkind.Of(err) == errkind.Unavailable { // A deadlock through this wait is not found then; timeouts end it.
		return func() {}, nil
	}
	return done, err
}

// Confirm returns nil if the store still has all locks of the session. It is called before a transaction commits: what a lock protects must
// not be written by who has lost it.
func (l *Locks) Confirm(ctx context.Context) error {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.mu.held))
	l.mu.Unlock()
	for _, held := range all {
		if err := held.hold.Confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Follow is called when the session's transaction begins: whoever waits for a lock of the session then waits for the transaction.
func (l *Locks) Follow(ctx context.Context, txn tso.Timestamp) (err error) {
	l.unfollow()
	if l.txn = txn; l.self != 0 {
		l.follows, err = l.edge(ctx, l.self, txn)
	}
	return err
}

func (l *Locks) unfollow() {
	if l.follows != nil {
		l.follows()
		l.follows = nil
	}
	l.txn = 0
}

// Release undoes one Acquire of the session level, and reports false if there is none.
func (l *Locks) Release(ctx context.Context, key Key, shared bool) bool {
	return l.release(ctx, &Request{Key: key, Shared: shared})
}

func (l *Locks) release(ctx context.Context, r *Request) bool {
	l.mu.Lock()
	held := l.mu.held[r.Key]
	if held == nil || *held.count(r) == 0 {
		l.mu.Unlock()
		return false
	}
	*held.count(r)--
	last := held.total() == 0
	if last {
		delete(l.mu.held, r.Key)
	}
	l.mu.Unlock()
	if last {
		l.end(ctx, held)
	}
	return true
}

// end ends a lock in the store.
func (l *Locks) end(ctx context.Context, held *lock) {
	held.hold.Release(ctx)
	if held.owned != nil {
		held.owned()
	}
	l.opts.Memory.Shrink(lockBytes)
}

// ReleaseAll releases the locks of the session level.
func (l *Locks) ReleaseAll(ctx context.Context) {
	l.mu.Lock()
	var ended []*lock
	for key, held := range l.mu.held {
		held.counts[0][0], held.counts[1][0] = 0, 0
		if held.total() == 0 {
			delete(l.mu.held, key)
			ended = append(ended, held)
		}
	}
	l.mu.Unlock()
	for _, held := range ended {
		l.end(ctx, held)
	}
}

// EndTransaction releases the locks of the transaction level.
func (l *Locks) EndTransaction(ctx context.Context) {
	l.RollbackTo(ctx, 0)
	l.log = nil
	l.unfollow()
}

// Mark is a point of the transaction for RollbackTo and Undo.
func (l *Locks) Mark() int { return len(l.log) }

// RollbackTo releases the locks of the transaction level that were locked after the mark.
func (l *Locks) RollbackTo(ctx context.Context, mark int) {
	for _, r := range slices.Backward(l.log[min(mark, len(l.log)):]) {
		if r.Transaction {
			l.release(ctx, &r)
		}
	}
	l.log = l.log[:min(mark, len(l.log))]
}

// Undo releases all locks that were locked after the mark: their statement runs again.
func (l *Locks) Undo(ctx context.Context, mark int) {
	for _, r := range slices.Backward(l.log[min(mark, len(l.log)):]) {
		l.release(ctx, &r)
	}
	l.log = l.log[:min(mark, len(l.log))]
}

// Close releases all locks; the session has ended.
func (l *Locks) Close(ctx context.Context) {
	l.EndTransaction(ctx)
	l.ReleaseAll(ctx)
}

// List returns what is locked, and what the session waits for. Safe for concurrent use.
func (l *Locks) List() (all []Shown) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, held := range l.mu.held {
		all = append(all, Shown{Key: key, Shared: held.shared, Granted: true, Hold: held.hold.StartTS()})
	}
	if w := l.mu.waiting; w != nil {
		all = append(all, *w)
	}
	return all
}
