package mvcc

import (
	"bytes"
	"context"
	"time"

	"github.com/percodb/percodb/tso"
)

// AcquireLocksRequest requests pessimistic locks on Keys, which ascend. ReadTS is the transaction's snapshot, StartTS if
// 0; Primary its primary, which is to be locked first.
type AcquireLocksRequest struct {
	Ranges          []RangeRef
	Keys            [][]byte
	Primary         []byte
	StartTS, ReadTS tso.Timestamp
	TTLMillis       uint64
	LeaseMillis     uint64 // as in PrewriteRequest
	Process         uint64 // likewise
	// Wait bounds how long to wait for others, for all keys together; 0 means not at all.
	Wait time.Duration
	// SkipLocked passes over keys that others hold, instead of waiting for them.
	SkipLocked bool
	// Shared locks keep writers out but not each other.
	Shared bool
	// Alive is a transaction that the caller has found alive although the TTL of its lock, as reported in an earlier
	// *KeyLockedError, has passed: the shard waits for it a while longer.
	Alive tso.Timestamp
	// Existence requests that the response also report which of the keys have values, so that an insert needs only one
	// request.
	Existence bool
	// TxnLocks is how many locks the transaction has got before, a hint: the shard keeps those of one with many in
	// little memory.
	TxnLocks uint32
}

// AcquireLocksResponse: LockedAt[i] is the result for Keys[i]: the largest of ReadTS and the newest commit on the key; 0
// if it was skipped. If it is above ReadTS the snapshot has to advance to it, and the key has to be read again. Exists,
// if requested, reports which keys have values as of LockedAt; nil: none.
type AcquireLocksResponse struct {
	LockedAt []tso.Timestamp
	Exists   []bool
}

func (a *AcquireLocksRequest) snapshot() tso.Timestamp { return max(a.StartTS, a.ReadTS) }

// acquisition is a request for pessimistic locks under way.
type acquisition struct {
	s        *State
	adm      Admission
	args     *AcquireLocksRequest
	lockedAt []tso.Timestamp // of the keys dealt with
	exists   []bool          // of all keys, once one of them does
	// Space for locks, and the primary that they share.
	slab     []entry
	bytes    []byte
	primary  []byte
	fresh    []int     // which of them this request has locked, unless there is only one
	begun    uint64    // by lockTable.millis; 0: not read yet
	deadline time.Time // set at the first wait
	patience time.Time // until when args.Alive is taken to be alive; likewise
}

// AcquireLocks acquires pessimistic locks, key by key in their order, waiting for their holders. It is idempotent.
// Errors: *KeyLockedError, *DeadlockError, *RolledBackError, *AlreadyCommittedError, *TooOldError, and those of adm; the
// keys that this request has locked are then released.
func (s *State) AcquireLocks(ctx context.Context, adm Admission, args *AcquireLocksRequest) (AcquireLocksResponse, error) {
	if err := validateKeys(args.Keys); err != nil {
		return AcquireLocksResponse{}, err
	}
	if err := s.checkClaimed(ctx, max(args.StartTS, args.ReadTS)); err != nil {
		return AcquireLocksResponse{}, err
	}
	if args.Existence { // a key's absence is a read
		if err := s.BeginRead(ctx, args.snapshot()); err != nil {
			return AcquireLocksResponse{}, err
		}
	}
	a := acquisition{s: s, adm: adm, args: args, lockedAt: make([]tso.Timestamp, 0, len(args.Keys))}
	for len(a.lockedAt) < len(args.Keys) {
		blocked, err := a.advance()
		if large, ok := err.(*largeInTheWay); ok {
			err = a.awaitLarge(ctx, large)
		}
		if blocked != nil {
			err = a.await(ctx, blocked)
		}
		if err != nil {
			a.undo()
			return AcquireLocksResponse{}, err
		}
	}
	return AcquireLocksResponse{LockedAt: a.lockedAt, Exists: a.exists}, nil
}

// largeInTheWay: a large commit holds a key.
type largeInTheWay struct {
	c   *largeCommit
	key []byte
}

func (e *largeInTheWay) Error() string { return e.c.lockedError(e.key).Error() }

// awaitLarge waits for a large commit, which goes by itself, as long as the request may wait.
func (a *acquisition) awaitLarge(ctx context.Context, e *largeInTheWay) error {
	timer := time.NewTimer(a.args.Wait)
	defer timer.Stop()
	select {
	case <-e.c.done:
		return a.s.eng.Err()
	case <-timer.C:
		return e.c.lockedError(e.key)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// advance locks the keys that are free, up to the first that is not, for which it enqueues a waiter.
func (a *acquisition) advance() (blocked *waiter, err error) {
	w := a.s.newWriter()
	defer w.release()
	w.latchKeys(a.args.Keys[len(a.lockedAt):])
	defer w.unlatch()
	if err := a.adm.Admit(); err != nil {
		return nil, err
	}
	if err := a.s.checkLockBound(a.args.StartTS); err != nil {
		return nil, err
	}
	if err := a.s.checkSafePoint(a.args.snapshot()); err != nil {
		return nil, err
	}
	if n := len(a.args.Keys); a.args.Existence && n-len(a.lockedAt) >= cursorMinKeys {
		w.cursor.start(a.args.Keys[n-1])
	}
	for len(a.lockedAt) < len(a.args.Keys) && blocked == nil && err == nil {
		blocked, err = a.one(w, a.args.Keys[len(a.lockedAt)])
	}
	if len(w.met) > 0 {
		a.s.locks.grant(w.met, a.args.TxnLocks)
	}
	return blocked, err
}

// one deals with the next key. A lock on a free key is left in w.met.
func (a *acquisition) one(w *writer, key []byte) (blocked *waiter, err error) {
	t, args := a.s.locks, a.args
	if c := t.largeWriter(key, args.StartTS); c != nil {
		if !args.SkipLocked {
			return nil, &largeInTheWay{c, key}
		}
		a.lockedAt = append(a.lockedAt, 0)
		return nil, nil
	}
	for {
		var v keyView
		e, queued := t.holders(&w.near, &v, key, args.StartTS)
		if args.Existence || !v.ownLock(args.StartTS) && !v.ownPess(args.StartTS) {
			if err := w.lookForLock(&v, key, args); err != nil {
				return nil, err
			}
		}
		switch decideAcquire(args.StartTS, args.Shared, queued, &v) {
		case acquireTake:
			e := a.newEntry(key, lockedAt(args.snapshot(), args.Shared, &v))
			w.met = append(w.met, e)
			a.look(&v)
			a.took(e.lock.ForUpdateTS)
			return nil, nil
		case acquireHeld:
			a.look(&v)
			a.hold(e, &v)
			return nil, nil
		case acquireJoin:
			l := a.newEntry(key, lockedAt(args.snapshot(), args.Shared, &v)).lock
			if t.join(e, &l) {
				a.look(&v)
				a.took(l.ForUpdateTS)
				return nil, nil
			}
		case acquireRolledBack:
			return nil, &RolledBackError{StartTS: args.StartTS}
		case acquireCommitted:
			return nil, &AlreadyCommittedError{CommitTS: v.ownCommitTS}
		case acquireWait:
			blocked, done, err := a.blocked(key, &v)
			if done {
				return blocked, err
			}
		}
	}
}

// blocked handles a key that another transaction has locked; done is false if none has any more.
func (a *acquisition) blocked(key []byte, v *keyView) (w *waiter, done bool, err error) {
	t, args := a.s.locks, a.args
	if args.Wait > 0 && !args.SkipLocked {
		e := a.newEntry(key, 0)
		w = &waiter{entry: *e, readTS: args.snapshot(), seen: lockedAt(0, args.Shared, v), arrived: time.Now(), wake: make(chan struct{}, 1)}
		queued, err := t.enqueue(w)
		if !queued {
			w = nil
		}
		return w, queued || err != nil, err
	}
	locked := t.lockedError(key, args.StartTS)
	if locked == nil {
		return nil, false, nil
	}
	// A lock whose TTL has passed is not skipped: otherwise it might never be removed.
	if args.SkipLocked && (locked.Lock.StartTS == args.Alive || !a.s.mayBeDead(&locked.Lock)) {
		a.lockedAt = append(a.lockedAt, 0)
		return nil, true, nil
	}
	return nil, true, locked
}

// lockSlab is how many locks of a large request are allocated together. One that outlives the others, for example
// because a request waits for it, keeps them from being freed.
const lockSlab = 32

// newEntry returns a lock for the next key. It costs two allocations, less than one where there are many.
func (a *acquisition) newEntry(key []byte, at tso.Timestamp) *entry {
	left := len(a.args.Keys) - len(a.lockedAt)
	if len(a.slab) == 0 {
		n := 1
		if left >= lockSlab {
			n = lockSlab
		}
		a.slab = make([]entry, n)
		a.bytes = make([]byte, 0, n*len(key)+len(a.args.Primary))
	}
	e := &a.slab[0]
	a.slab = a.slab[1:]
	e.key, e.state = a.copyKey(key), stateDurable
	e.lock = Lock{
		Op: OpPessimistic, StartTS: a.args.StartTS, TTLMillis: a.args.TTLMillis,
		LeaseMillis: a.args.LeaseMillis, Process: a.args.Process, ForUpdateTS: at, Shared: a.args.Shared,
	}
	if a.args.LeaseMillis != 0 {
		if a.begun == 0 {
			a.begun = a.s.locks.millis()
		}
		e.lock.HeardMillis = a.begun
	}
	switch {
	case bytes.Equal(key, a.args.Primary):
		e.lock.Primary = e.key
	case a.primary == nil:
		a.primary = a.copyKey(a.args.Primary)
		fallthrough
	default:
		e.lock.Primary = a.primary
	}
	return e
}

func (a *acquisition) copyKey(key []byte) []byte {
	n := len(a.bytes)
	if cap(a.bytes)-n < len(key) {
		return bytes.Clone(key)
	}
	a.bytes = append(a.bytes, key...)
	return a.bytes[n:len(a.bytes):len(a.bytes)]
}

// look records whether the next key exists, if requested.
func (a *acquisition) look(v *keyView) {
	if a.args.Existence && hasValue(v) {
		if a.exists == nil {
			a.exists = make([]bool, len(a.args.Keys))
		}
		a.exists[len(a.lockedAt)] = true
	}
}

// lookLater is look for the next key after the lock was handed over: its previous holder has committed or rolled back.
func (a *acquisition) lookLater() error {
	if !a.args.Existence {
		return nil
	}
	w := a.s.newWriter()
	defer w.release()
	next := a.args.Keys[len(a.lockedAt):][:1]
	w.latchKeys(next)
	defer w.unlatch()
	var v keyView
	if err := w.lookWrites(&v, next[0], a.args.StartTS); err != nil {
		return err
	}
	a.look(&v)
	return nil
}

// took records that the next key has been locked.
func (a *acquisition) took(at tso.Timestamp) {
	if len(a.args.Keys) > 1 {
		a.fresh = append(a.fresh, len(a.lockedAt))
	}
	a.lockedAt = append(a.lockedAt, at)
}

// hold answers for a key that the transaction has locked already: nothing has been committed on it since it was granted.
func (a *acquisition) hold(e *entry, v *keyView) {
	at := v.lock.ForUpdateTS
	if v.lock.Op == OpPessimistic {
		a.s.locks.relock(e, a.args)
	}
	a.lockedAt = append(a.lockedAt, max(at, a.args.StartTS))
}

// undo releases the locks that the request has acquired.
func (a *acquisition) undo() {
	if len(a.fresh) == 0 {
		return
	}
	keys := make([][]byte, len(a.fresh))
	for i, at := range a.fresh {
		keys[i] = a.args.Keys[at]
	}
	a.s.releaseKeys(keys, a.args.StartTS, tso.MaxTimestamp)
}

// ReleaseLocks releases the pessimistic locks of startTS on keys whose ForUpdateTS is at or below forUpdateTS: those
// granted again since then stay. tso.MaxTimestamp means that the transaction has ended; any other value is unsafe if the
// transaction still relies on the lock.
func (s *State) ReleaseLocks(adm Admission, keys [][]byte, startTS, forUpdateTS tso.Timestamp) error {
	if err := validateKeys(keys); err != nil {
		return err
	}
	// The ranges need not be checked under latches: if there is no lock, nothing is done.
	if err := adm.Admit(); err != nil {
		return err
	}
	if forUpdateTS != tso.MaxTimestamp {
		s.noteLost(startTS)
	}
	s.releaseKeys(keys, startTS, forUpdateTS)
	return nil
}

func (s *State) releaseKeys(keys [][]byte, startTS, forUpdateTS tso.Timestamp) {
	if s.locks.n.Load() == 0 {
		return
	}
	w := s.newWriter()
	defer w.release()
	w.latchKeys(keys)
	defer w.unlatch()
	for _, key := range keys {
		var v keyView
		if e, _ := s.locks.holders(&w.near, &v, key, startTS); decideRelease(startTS, forUpdateTS, &v) {
			s.locks.release(e, startTS)
		}
	}
}
