package percolator

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// lockSlice is the longest that one request waits at a shard. It is short enough that the TTL sent with the request has
// not expired when the lock is granted.
func (db *DB) lockSlice() time.Duration { return min(db.opts.LockTTL/3, time.Second) }

// lockRequests is one call of AcquireLocks.
type lockRequests struct {
	t        *Txn
	opts     LockOptions
	deadline time.Time // of the wait; zero: none

	// The keys being requested, ascending, and their answers.
	keys    [][]byte
	got     []grant
	primary []byte

	all shardRequest[[]byte]

	// Space for a request for one key.
	gotOne [1]grant
	reqOne kv.AcquireLocksRequest
}

// grant is the answer about one key.
type grant struct {
	at     tso.Timestamp // timestamp as of which it is locked; 0: it was skipped
	exists bool          // it has a value as of then, if requested
}

// run locks ascending keys, all or none; got[i] answers keys[i].
func (a *lockRequests) run(ctx context.Context, keys [][]byte, got []grant) error {
	l := a.t.locks
	if limit := a.t.opts.LockTimeout; limit > 0 {
		a.deadline = time.Now().Add(limit)
	}
	done := 0
	for l.primary == nil && done < len(keys) { // skipped keys cannot be the primary
		if err := a.first(ctx, keys[done:done+1], got[done:done+1]); err != nil {
			return err
		}
		done++
	}
	if done == len(keys) {
		return nil
	}
	err := a.request(ctx, l.primary, keys[done:], got[done:])
	if err != nil {
		a.undo(ctx, keys, got)
	}
	return err
}

// first locks the key that becomes the primary.
func (a *lockRequests) first(ctx context.Context, key [][]byte, got []grant) error {
	t := a.t
	l := t.locks
	if err := a.request(ctx, key[0], key, got); err != nil {
		return err
	}
	if got[0].at != 0 {
		l.primary = key[0]
		l.add(key[0], got[0], &a.opts)
		l.lease.lockedAt, l.lease.alone = got[0].at, !a.opts.Shared
		l.lease.begin(t.db, t.startTS, l.primary, t.openMillis(), uint64(t.db.opts.LockTTL.Milliseconds()))
	}
	return nil
}

// request locks ascending keys, in parallel where several shards have them.
func (a *lockRequests) request(ctx context.Context, primary []byte, keys [][]byte, got []grant) error {
	a.primary, a.keys, a.got = primary, keys, got
	defer func() { a.keys, a.got = nil, nil }()
	if a.all.bo = (backoff{db: a.t.db}); a.all.send == nil {
		a.all.list, a.all.fanOut, a.all.send = &keyList, maxFanOut, a.send
	}
	return a.all.run(ctx, keys)
}

// undo releases the locks of a failed call that the transaction did not have before.
func (a *lockRequests) undo(ctx context.Context, keys [][]byte, got []grant) {
	var granted [][]byte
	for i, key := range keys {
		if _, held := a.t.locks.get(key); got[i].at != 0 && !held {
			granted = append(granted, key)
		}
	}
	a.t.release(ctx, granted, goesOn)
}

// send locks the keys that one shard has, in requests of bounded size: in order, which makes deadlocks rare.
func (a *lockRequests) send(ctx context.Context, bo *backoff, p *part[[]byte]) error {
	req := &a.reqOne
	if len(a.keys) > 1 {
		req = &kv.AcquireLocksRequest{}
	}
	*req = kv.AcquireLocksRequest{
		Ranges: p.refs, Primary: a.primary, StartTS: a.t.startTS, ReadTS: a.t.snap.readTS,
		SkipLocked: a.opts.SkipLocked, Shared: a.opts.Shared, Existence: a.opts.Existence,
		TxnLocks: uint32(min(a.t.locks.len(), math.MaxUint32)), Process: a.t.db.opts.Process,
	}
	for len(p.items) > 0 {
		some := p.items[:min(len(p.items), maxRequestKeys)]
		req.Keys, req.Alive = some, 0
		if err := a.sendSome(ctx, bo, p.shard, req); err != nil {
			return err
		}
		p.items = p.items[len(some):]
	}
	return nil
}

// sendSome repeats a request until it is granted, its wait is over, or its route is stale. Keys that are skipped because their holder is alive
// are taken out of it.
func (a *lockRequests) sendSome(ctx context.Context, bo *backoff, shard kv.Shard, req *kv.AcquireLocksRequest) error {
	db := a.t.db
	waited, pausing := false, backoff{db: db}
	for len(req.Keys) > 0 {
		req.LeaseMillis = uint64(db.opts.LockTTL.Milliseconds())
		req.Wait, req.TTLMillis = a.wait(), a.t.openMillis()+req.LeaseMillis
		a.t.snap.requests.lock(len(req.Keys))
		resp, err := shard.AcquireLocks(ctx, req)
		if err == nil {
			a.note(req.Keys, &resp)
			return nil
		}
		locked, ok := errkind.As[*mvcc.KeyLockedError](err)
		if !ok {
			return a.refused(err, req.Keys)
		}
		if !waited {
			waited = true
			db.metrics.lockWaits.Inc()
		}
		*bo = backoff{db: db} // the shard has answered: the budget does not apply to waiting for a lock
		alive, err := db.evict(ctx, bo, locked, req.Keys[len(req.Keys)-1])
		switch {
		case err != nil:
			return stopError{err}
		case !alive:
		case a.opts.SkipLocked:
			a.skip(req, locked.Key)
		case a.opts.NoWait:
			return &LockNotAvailableError{Key: locked.Key, Lock: locked.Lock}
		case !a.deadline.IsZero() && !time.Now().Before(a.deadline):
			return &LockNotAvailableError{Key: locked.Key, Lock: locked.Lock, Timeout: true}
		case waits(shard):
			req.Alive = locked.Lock.StartTS
		default:
			if err := a.pause(ctx, &pausing, locked); err != nil {
				return err
			}
		}
	}
	return nil
}

// skip takes a key out of a request. The shard does not skip by itself a lock whose TTL has passed; its transaction, whose primary was
// asked, is alive.
func (a *lockRequests) skip(req *kv.AcquireLocksRequest, key []byte) {
	req.Keys = slices.DeleteFunc(slices.Clone(req.Keys), func(k []byte) bool { return bytes.Equal(k, key) })
	a.note([][]byte{key}, &kv.AcquireLocksResponse{LockedAt: make([]tso.Timestamp, 1)})
}

// note records the answer about keys. It may be called from several goroutines, each with its own keys.
func (a *lockRequests) note(keys [][]byte, resp *kv.AcquireLocksResponse) {
	at, _ := slices.BinarySearchFunc(a.keys, keys[0], bytes.Compare)
	for i, key := range keys {
		for !bytes.Equal(a.keys[at], key) {
			at++
		}
		a.got[at] = grant{at: resp.LockedAt[i], exists: resp.Exists != nil && resp.Exists[i]}
	}
}

// waits reports whether requests wait at the shard.
func waits(shard kv.Shard) bool {
	caps := shard.Capabilities()
	return caps.LockQueue || caps.LockWait
}

// pause waits before another request where requests do not wait at the shard.
func (a *lockRequests) pause(ctx context.Context, bo *backoff, locked *mvcc.KeyLockedError) error {
	pause, err := bo.next(ctx, backoffLock, locked)
	if err != nil && ctx.Err() == nil { // the budget does not apply to waiting for a lock
		*bo = backoff{db: a.t.db}
		pause, err = bo.next(ctx, backoffLock, locked)
	}
	if err != nil {
		return err
	}
	if !a.deadline.IsZero() {
		pause = min(pause, max(0, time.Until(a.deadline)))
	}
	return sleep(ctx, pause)
}

// wait is how long the next request may wait.
func (a *lockRequests) wait() time.Duration {
	switch {
	case a.opts.NoWait || a.opts.SkipLocked:
		return 0
	case a.deadline.IsZero():
		return a.t.db.lockSlice()
	default:
		return min(a.t.db.lockSlice(), max(0, time.Until(a.deadline)))
	}
}

// refused deals with an answer, or the lack of one, that is not a lock. Routing errors go back as they are.
func (a *lockRequests) refused(err error, keys [][]byte) error {
	switch errkind.Of(err) {
	case errkind.StaleRoute, errkind.TooOld:
	case errkind.RolledBack, errkind.Committed:
		return rolledBack(keys[0], a.t.startTS)
	case errkind.Deadlock:
		a.t.db.metrics.deadlocks.Inc()
	default:
		// The locks may have been acquired. They are released when the transaction ends.
		a.t.locks.noteStray(keys)
	}
	return err
}

// noteStray may be called from several goroutines.
func (l *lockSet) noteStray(keys [][]byte) {
	l.strayMu.Lock()
	defer l.strayMu.Unlock()
	l.stray = append(l.stray, keys...)
}

// evict removes a lock whose transaction has ended, and some of that transaction's locks after it, up to last. alive
// reports that it has not ended.
func (db *DB) evict(ctx context.Context, bo *backoff, e *mvcc.KeyLockedError, last []byte) (alive bool, _ error) {
	f, err := db.outcomeOf(ctx, bo, e, 0)
	if err != nil {
		return false, err
	}
	if f.kind == outcomeAlive || f.kind == outcomePassed {
		return true, nil
	}
	keys, err := db.locksOf(ctx, e, last)
	if err != nil {
		return false, db.retryRouting(ctx, bo, err)
	}
	return false, db.finishLock(ctx, bo, keys, &e.Lock, f.commitTS)
}

// finishLock finishes the locks of one dead transaction on ascending keys, which are like lock.
func (db *DB) finishLock(ctx context.Context, bo *backoff, keys [][]byte, lock *mvcc.Lock, commitTS tso.Timestamp) error {
	if lock.Op == mvcc.OpPessimistic {
		return db.releaseKeys(ctx, bo, keys, lock.StartTS, lock.ForUpdateTS)
	}
	return db.resolveKeys(ctx, bo, keys, lock.StartTS, commitTS)
}

func (db *DB) releaseKeys(ctx context.Context, bo *backoff, keys [][]byte, startTS, forUpdateTS tso.Timestamp) error {
	return onShards(ctx, bo, keys, func(p *part[[]byte]) error {
		return p.shard.ReleaseLocks(ctx, &kv.ReleaseLocksRequest{Ranges: p.refs, Keys: p.items, StartTS: startTS, ForUpdateTS: forUpdateTS})
	})
}

// goesOn is for a release by a transaction that continues: see kv.ReleaseLocksRequest.
const goesOn = tso.MaxTimestamp - 1

// release releases pessimistic locks on ascending keys before it returns, so that a client that is told of the
// transaction's end finds them free. Locks that cannot be released expire. upTo is goesOn or, at the transaction's end,
// tso.MaxTimestamp. It reports whether all have been released.
func (t *Txn) release(ctx context.Context, keys [][]byte, upTo tso.Timestamp) bool {
	if len(keys) == 0 {
		return true
	}
	if ctx.Done() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), t.db.opts.ProbeTimeout)
		defer cancel()
	}
	bo := backoff{db: t.db}
	for some := range slices.Chunk(keys, maxRequestKeys) {
		if err := t.db.releaseKeys(ctx, &bo, some, t.startTS, upTo); err != nil {
			t.db.metrics.dropped.Inc()
			t.db.opts.Logger.Warn("releasing locks", "start_ts", t.startTS, "keys", len(keys), "err", err)
			return false
		}
	}
	return true
}

// releaseAll ends the lease and releases all locks except those on mutations, which have been replaced.
func (t *Txn) releaseAll(ctx context.Context, mutations []mvcc.Mutation) {
	if t.locks == nil {
		return
	}
	t.locks.lease.stop()
	if len(t.locks.held) == 0 && len(t.locks.stray) == 0 {
		return
	}
	if t.release(ctx, t.locks.keysBut(mutations), tso.MaxTimestamp) {
		t.locks.eachPacked(mutations == nil, func(keys [][]byte) bool { return t.release(ctx, keys, tso.MaxTimestamp) })
	}
}
