package bigtable

import (
	"bytes"
	"context"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// Intervals at which a waiter looks at the lock again, unless it is woken; and how long it does so before the caller checks whether the
// holder is alive.
const (
	pollFirst = 2 * time.Millisecond
	pollMost  = 50 * time.Millisecond
	waitMost  = 500 * time.Millisecond
)

// AcquireLocks implements kv.Shard: one conditional request for each key, in parallel. A key that another transaction has
// locked is waited for while only smaller keys are held, as if they had been locked one after another, so that two
// requests for the same keys do not wait for each other.
func (s *Shard) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	if err := mvcc.ValidateKeys(req.Keys); err != nil {
		return kv.AcquireLocksResponse{}, err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return kv.AcquireLocksResponse{}, err
	}
	if err := s.issued.check(ctx, max(req.StartTS, req.ReadTS)); err != nil {
		return kv.AcquireLocksResponse{}, err
	}
	if err := s.checkSafePoint(req.Snapshot()); err != nil {
		return kv.AcquireLocksResponse{}, err
	}
	for _, key := range req.Keys {
		if len(key) > maxKeyBytes {
			return kv.AcquireLocksResponse{}, &kv.SizeLimitError{Index: true, Size: len(key), Limit: maxKeyBytes}
		}
	}
	if err := s.limit.wait(ctx, 2*len(req.Keys)); err != nil {
		return kv.AcquireLocksResponse{}, err
	}
	a := &acquiring{s: s, req: req, got: make([]acquired, len(req.Keys)), until: time.Now().Add(min(req.Wait, waitMost))}
	if err := a.run(ctx); err != nil {
		a.undo(ctx, 0)
		return kv.AcquireLocksResponse{}, err
	}
	return a.response(), nil
}

// acquiring is a request for pessimistic locks under way.
type acquiring struct {
	s     *Shard
	req   *kv.AcquireLocksRequest
	got   []acquired
	until time.Time // the end of the wait
}

// acquired is the answer about one key.
type acquired struct {
	at      tso.Timestamp
	exists  bool
	placed  *heldLock // a new lock
	blocked *mvcc.KeyLockedError
}

func (a *acquiring) run(ctx context.Context) error {
	for from := 0; ; {
		err := eachAtOnce(len(a.req.Keys)-from, func(i int) error { return a.one(ctx, from+i) })
		if err != nil {
			return err
		}
		blocked := a.blockedFrom(from)
		switch {
		case blocked < 0:
			return nil
		case a.req.SkipLocked:
			return a.reportExpired()
		}
		a.undo(ctx, blocked+1)
		if err := a.await(ctx, blocked); err != nil {
			return err
		}
		from = blocked
	}
}

// blockedFrom returns the first key that is locked by another transaction, or -1.
func (a *acquiring) blockedFrom(from int) int {
	for i := from; i < len(a.got); i++ {
		if a.got[i].blocked != nil {
			return i
		}
	}
	return -1
}

// reportExpired returns a lock whose TTL has passed, and which is therefore not skipped: otherwise nobody might ever remove it.
func (a *acquiring) reportExpired() error {
	now := max(a.s.issued.clockMillis(), a.req.Snapshot().Physical())
	for i := range a.got {
		if blocked := a.got[i].blocked; blocked != nil && blocked.Lock.StartTS != a.req.Alive && blocked.Lock.Expiry() < now {
			return blocked
		}
	}
	return nil
}

// one locks a key, or records by whom it is locked.
func (a *acquiring) one(ctx context.Context, i int) error {
	key := a.req.Keys[i]
	a.got[i] = acquired{}
	if !a.req.Existence && a.s.memo.get(a.req.StartTS, key) == nil {
		if placed, err := a.blind(ctx, i); placed || err != nil {
			return err
		}
	}
	for {
		v, err := a.s.look(ctx, a.req.StartTS, key)
		if err != nil {
			return err
		}
		if err := v.recordsGone(a.req.StartTS); err != nil {
			return err
		}
		verdict, err := mvcc.DecideAcquire(a.req, &v.Records)
		if err != nil {
			return err
		}
		a.got[i] = acquired{exists: v.HasValue()}
		switch verdict {
		case mvcc.AcquireWait:
			a.got[i].blocked = &mvcc.KeyLockedError{Key: bytes.Clone(key), Lock: *v.Other}
			return nil
		case mvcc.AcquireHeld:
			held, err := a.hold(ctx, i, v)
			if held || err != nil {
				return err
			}
			continue
		}
		if placed, err := a.place(ctx, i, v); placed || err != nil {
			return err
		}
	}
}

// blind locks a key without having read its row, if it is free and nothing newer than the snapshot was committed on it.
func (a *acquiring) blind(ctx context.Context, i int) (placed bool, err error) {
	u := unchanged{startTS: a.req.StartTS, version: a.req.Snapshot(), status: a.req.Snapshot(), locks: anyLock}
	if a.req.Shared {
		u.locks = exclusiveOrOwnLock
	}
	return a.put(ctx, i, a.lock(a.req.Snapshot()), nil, &u)
}

// place locks a key as decided by v, in which the transaction has no lock. If the request is executed late, the transaction may have prewritten
// the key, and that lock must stay.
func (a *acquiring) place(ctx context.Context, i int, v *view) (placed bool, err error) {
	u := unchanged{startTS: a.req.StartTS, version: v.NewestCommitTS, status: v.status, locks: anyLock}
	if a.req.Shared {
		u.locks = exclusiveOrOwnLock
	}
	return a.put(ctx, i, a.lock(mvcc.LockedAt(a.req, &v.Records)), nil, &u)
}

// hold answers for a lock that the transaction has, which becomes exclusive if it is shared and an exclusive one is wanted.
func (a *acquiring) hold(ctx context.Context, i int, v *view) (done bool, err error) {
	if v.own.lock.Op != mvcc.OpPessimistic || !v.own.lock.Shared || a.req.Shared {
		a.got[i].at = max(v.own.lock.ForUpdateTS, a.req.StartTS)
		return true, nil
	}
	u := unchanged{startTS: a.req.StartTS, version: v.NewestCommitTS, status: v.status, locks: othersOrOwnExclusive}
	return a.put(ctx, i, a.lock(mvcc.LockedAt(a.req, &v.Records)), v.own, &u)
}

// put writes a lock, in the place of another one of the transaction.
func (a *acquiring) put(ctx context.Context, i int, l, instead *heldLock, u *unchanged) (placed bool, err error) {
	key := a.req.Keys[i]
	change := widerow.NewMutation()
	if instead != nil {
		change.DeleteCellsInColumn(familyLock, instead.column)
	}
	change.Set(familyLock, l.column, l.value)
	placed, err = a.s.c.unless(ctx, rowKey(key), u.violated(), change)
	if placed {
		a.got[i].at = l.lock.ForUpdateTS
		if instead == nil {
			a.got[i].placed = l
		}
		a.s.memo.put(key, l)
	}
	return placed, err
}

func (a *acquiring) lock(at tso.Timestamp) *heldLock {
	return held(mvcc.Lock{Op: mvcc.OpPessimistic, Shared: a.req.Shared, StartTS: a.req.StartTS, Primary: bytes.Clone(a.req.Primary), TTLMillis: a.req.TTLMillis,
		LeaseMillis: a.req.LeaseMillis, HeardMillis: a.s.heardMillis(), Process: a.req.Process, ForUpdateTS: at})
}

// await waits until a key may be free. It returns the lock that is in the way when the time is over, so that the caller checks whether its
// transaction is alive.
func (a *acquiring) await(ctx context.Context, i int) error {
	blocked := a.got[i].blocked
	deadlock, stop := a.watch(ctx, blocked)
	defer stop()
	key := a.req.Keys[i]
	defer a.s.wakeup.arrive(key, a.req.StartTS)()
	pause := pollFirst
	if a.req.Alive == blocked.Lock.StartTS { // An earlier request has waited for it.
		pause = pollMost
	}
	woken := a.s.wakeup.on(key)
	for a.askForHint(key, &blocked.Lock); ; pause = min(2*pause, pollMost) {
		left := time.Until(a.until)
		if left <= 0 {
			return blocked
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-woken:
		case <-timer.C:
			a.askForHint(key, &blocked.Lock)
		case err := <-deadlock:
			timer.Stop()
			return err
		case <-a.s.ended:
			timer.Stop()
			return kv.ErrClosed
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
		woken = a.s.wakeup.on(key) // before the look: what is removed after it wakes again
		v, err := a.s.look(ctx, a.req.StartTS, key)
		if err != nil {
			return err
		}
		if verdict, err := mvcc.DecideAcquire(a.req, &v.Records); err != nil || verdict != mvcc.AcquireWait {
			return err
		}
		if v.Other.StartTS != blocked.Lock.StartTS {
			blocked = &mvcc.KeyLockedError{Key: blocked.Key, Lock: *v.Other}
			a.got[i].blocked = blocked
			return nil // the wait for the new holder is another one
		}
	}
}

// watch registers the wait with the graph of all processes, if there is one.
func (a *acquiring) watch(ctx context.Context, blocked *mvcc.KeyLockedError) (deadlock <-chan error, stop func()) {
	if a.s.opts.WaitGraph == nil {
		return nil, func() {}
	}
	holder := blocked.Lock.StartTS
	return waitgraph.Watch(ctx, a.s.opts.WaitGraph, a.req.StartTS, blocked.Key, func() []tso.Timestamp { return []tso.Timestamp{holder} })
}

// undo releases the locks on keys from one on that this request has taken.
func (a *acquiring) undo(ctx context.Context, from int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	_ = eachAtOnce(len(a.got)-from, func(i int) error {
		i += from
		placed := a.got[i].placed
		if placed == nil {
			return nil
		}
		a.got[i] = acquired{}
		_, err := a.s.dropLock(ctx, a.req.Keys[i], placed)
		return err
	})
}

func (a *acquiring) response() kv.AcquireLocksResponse {
	res := kv.AcquireLocksResponse{LockedAt: make([]tso.Timestamp, len(a.got))}
	for i := range a.got {
		res.LockedAt[i] = a.got[i].at
		if a.got[i].exists && a.got[i].at != 0 && a.req.Existence {
			if res.Exists == nil {
				res.Exists = make([]bool, len(a.got))
			}
			res.Exists[i] = true
		}
	}
	return res
}

// dropLock removes a pessimistic lock if its cell is still as it was.
func (s *Shard) dropLock(ctx context.Context, key []byte, l *heldLock) (done bool, err error) {
	change := widerow.NewMutation()
	change.DeleteCellsInColumn(familyLock, l.column)
	done, err = s.c.onlyIf(ctx, rowKey(key), lockIs(l.column, l.value), change)
	if done {
		s.finished(key, l.lock.StartTS, 0, l)
	}
	return done, err
}

// ReleaseLocks implements kv.Shard. It is one request a key for locks that this process has written.
func (s *Shard) ReleaseLocks(ctx context.Context, req *kv.ReleaseLocksRequest) error {
	if err := mvcc.ValidateKeys(req.Keys); err != nil {
		return err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return err
	}
	return eachAtOnce(len(req.Keys), func(i int) error { return s.releaseOne(ctx, req, req.Keys[i]) })
}

func (s *Shard) releaseOne(ctx context.Context, req *kv.ReleaseLocksRequest, key []byte) error {
	l := s.memo.get(req.StartTS, key)
	for {
		if l != nil {
			var r mvcc.Records
			r.SetLocks(req.StartTS, []mvcc.Lock{l.lock})
			if !mvcc.DecideRelease(req.StartTS, req.ForUpdateTS, &r) {
				return nil
			}
			if done, err := s.dropLock(ctx, key, l); done || err != nil {
				return err
			}
		}
		v, err := s.look(ctx, req.StartTS, key)
		if err != nil {
			s.memo.forget(req.StartTS, key)
			return err
		}
		if v.own == nil {
			s.finished(key, req.StartTS, 0, nil)
			return nil
		}
		l = v.own
	}
}
