package percolator

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// passLocks makes the transaction's reads able to ignore the locks, or waits briefly for those that cannot be ignored.
// The status of each transaction is checked once. Afterwards the caller reads the keys again.
//
//	committed at or before the snapshot   read the lock's value, commit the key later
//	committed above it, or rolled back    ignore the lock, resolve it later
//	alive                                 push its commit_ts above the snapshot, ignore it
//	alive, primary not yet prewritten     wait
func (s *snapshot) passLocks(ctx context.Context, bo *backoff, locks []mvcc.KeyLockedError) error {
	firsts, groups := byTransaction(slices.Clone(locks))
	outcomes, err := s.db.outcomesOf(ctx, bo, firsts, s.readTS)
	if err != nil {
		return err
	}
	var alive *mvcc.KeyLockedError
	for i, f := range outcomes {
		if f.kind == outcomeAlive {
			if alive == nil || alive.Lock.Expiry() < firsts[i].Lock.Expiry() {
				alive = firsts[i]
			}
		} else {
			s.learn(f, groups[i])
		}
	}
	if alive != nil {
		return bo.waitForExpiry(ctx, alive)
	}
	return nil
}

// byTransaction sorts locks and groups them by transaction, keys ascending, and returns the first of each.
func byTransaction(locks []mvcc.KeyLockedError) (firsts []*mvcc.KeyLockedError, groups [][]mvcc.KeyLockedError) {
	slices.SortFunc(locks, func(a, b mvcc.KeyLockedError) int {
		return cmp.Or(cmp.Compare(a.Lock.StartTS, b.Lock.StartTS), bytes.Compare(a.Key, b.Key))
	})
	for len(locks) > 0 {
		n := 1
		for n < len(locks) && locks[n].Lock.StartTS == locks[0].Lock.StartTS {
			n++
		}
		firsts, groups = append(firsts, &locks[0]), append(groups, locks[:n])
		locks = locks[n:]
	}
	return firsts, groups
}

// learn records how to treat one transaction's locks and resolves them in the background.
func (s *snapshot) learn(f outcome, locks []mvcc.KeyLockedError) {
	startTS := locks[0].Lock.StartTS
	if f.kind == outcomeCommitted && f.commitTS <= s.readTS {
		s.rememberCommitted(startTS, f.commitTS)
	} else {
		s.rememberBypass(startTS)
	}
	if f.kind == outcomePassed {
		return
	}
	keys := make([][]byte, 0, len(locks))
	for i := range locks {
		// A primary that was rolled back by the status check has no lock any more.
		if l := &locks[i].Lock; l.Async || f.kind != outcomeRolledBack || !bytes.Equal(locks[i].Key, l.Primary) {
			keys = append(keys, locks[i].Key)
		}
	}
	if len(keys) > 0 {
		s.db.resolveLater(keys, startTS, f.commitTS)
	}
}

// resolveLater finishes ascending keys behind the caller's back, unless there is too much to do.
func (db *DB) resolveLater(keys [][]byte, startTS, commitTS tso.Timestamp) {
	if !db.background.submit(func(ctx context.Context) { db.resolveInBackground(ctx, keys, startTS, commitTS) }) {
		db.metrics.dropped.Inc()
	}
}

func (db *DB) resolveInBackground(ctx context.Context, keys [][]byte, startTS, commitTS tso.Timestamp) {
	bo := backoff{db: db}
	if err := db.resolveKeys(ctx, &bo, keys, startTS, commitTS); err != nil {
		db.metrics.dropped.Inc()
		db.opts.Logger.Warn("resolving locks", "start_ts", startTS, "commit_ts", commitTS, "keys", len(keys), "err", err)
	}
}

// resolveKeys commits or rolls back ascending keys of a transaction whose outcome is decided (commitTS 0: rolled back).
func (db *DB) resolveKeys(ctx context.Context, bo *backoff, keys [][]byte, startTS, commitTS tso.Timestamp) error {
	return onShards(ctx, bo, keys, func(p *part[[]byte]) error {
		return p.shard.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: p.refs, Keys: p.items, StartTS: startTS, CommitTS: commitTS})
	})
}

// outcomeOf checks the status of a lock's transaction. callerTS is the reader's snapshot, above which a live transaction is
// pushed; a writer passes 0. The check rolls back an expired transaction.
func (db *DB) outcomeOf(ctx context.Context, bo *backoff, e *mvcc.KeyLockedError, callerTS tso.Timestamp) (outcome, error) {
	return db.outcomeAt(ctx, bo, e, callerTS, 0)
}

// outcomeAt is outcomeOf with a timestamp by which the lock's expiry is determined first; 0: a new one is requested from the
// oracle.
func (db *DB) outcomeAt(ctx context.Context, bo *backoff, e *mvcc.KeyLockedError, callerTS, now tso.Timestamp) (f outcome, err error) {
	lock := &e.Lock
	if f, ok := db.statuses.get(lock.StartTS); ok {
		db.metrics.statusHits.Inc()
		db.metrics.resolved[f.kind].Inc()
		return f, nil
	}
	db.metrics.statusMisses.Inc()
	for {
		if now != 0 {
			f, err = db.askPrimaryAs(ctx, lock, callerTS, now, false)
		} else {
			f, err = db.askPrimary(ctx, lock, callerTS)
		}
		now = 0
		if isAway(err) {
			return outcome{kind: outcomeAway}, nil
		}
		if err == nil {
			if (f.kind == outcomeCommitted || f.kind == outcomeRolledBack) && !f.undecided {
				db.statuses.put(lock.StartTS, f)
			}
			db.metrics.resolved[f.kind].Inc()
			return f, nil
		}
		if err := db.retryRouting(ctx, bo, err); err != nil {
			return outcome{}, err
		}
	}
}

// maxAsking bounds the number of concurrent status checks. Each may have to wait for a sync, which they then share.
const maxAsking = 256

// outcomesOf is outcomeOf for several transactions, each by one of its locks.
func (db *DB) outcomesOf(ctx context.Context, bo *backoff, locks []*mvcc.KeyLockedError, callerTS tso.Timestamp) ([]outcome, error) {
	outcomes := make([]outcome, len(locks))
	if len(locks) == 1 {
		var err error
		outcomes[0], err = db.outcomeOf(ctx, bo, locks[0], callerTS)
		return outcomes, err
	}
	now, err := db.now(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(locks), maxAsking) {
		wg.Go(func() {
			bo := backoff{db: db}
			for i := int(next.Add(1)) - 1; i < len(locks) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var err error
				if outcomes[i], err = db.outcomeAt(ctx, &bo, locks[i], callerTS, now); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return outcomes, context.Cause(ctx)
}

// maxNeighbours bounds how many locks of one dead transaction a writer resolves at once.
const maxNeighbours = 1024

// clearLock removes a lock that blocks a write of the transaction startTS, or waits briefly for it. The older of two
// transactions fails at once, since it could only wait for a conflict, and so that no two wait for each other. A writer
// that encounters a pessimistic lock also fails at once: when it runs again, it acquires locks and enters the queue.
func (db *DB) clearLock(ctx context.Context, bo *backoff, shard kv.Shard, startTS tso.Timestamp, e *mvcc.KeyLockedError, last []byte) error {
	f, err := db.outcomeOf(ctx, bo, e, 0)
	if err != nil {
		return err
	}
	if f.kind == outcomeAlive || f.kind == outcomePassed {
		if e.Lock.StartTS > startTS || e.Lock.Op == mvcc.OpPessimistic {
			return &mvcc.WriteConflictError{Key: e.Key, StartTS: startTS, ConflictingStartTS: e.Lock.StartTS}
		}
		return bo.waitForLock(ctx, shard, e)
	}
	keys := [][]byte{e.Key}
	if e.Lock.TxnSize > 1 {
		if keys, err = db.locksOf(ctx, e, last); err != nil {
			return db.retryRouting(ctx, bo, err)
		}
	}
	return db.finishLock(ctx, bo, keys, &e.Lock, f.commitTS)
}

// locksOf lists keys locked by the same transaction as e.Key, from there up to last and within the
// range. A write set behind a dead one is freed in a few steps rather than key by key.
func (db *DB) locksOf(ctx context.Context, e *mvcc.KeyLockedError, last []byte) ([][]byte, error) {
	keys := [][]byte{e.Key}
	if bytes.Compare(e.Key, last) >= 0 {
		return keys, nil
	}
	desc, shard, err := db.router.Locate(ctx, e.Key)
	if err != nil {
		return nil, err
	}
	after := append(bytes.Clone(e.Key), 0)
	span := clip(kv.Span{Start: after, End: append(bytes.Clone(last), 0)}, desc.Span)
	if len(span.End) > 0 && bytes.Compare(span.Start, span.End) >= 0 {
		return keys, nil
	}
	locks, err := shard.ScanLock(ctx, &kv.ScanLockRequest{Range: desc.Ref(), Span: span, MaxTS: e.Lock.StartTS, Limit: maxNeighbours})
	if err != nil {
		db.forgetRoute(err, desc.Ref())
		return nil, err
	}
	for i := range locks {
		if l := &locks[i].Lock; l.StartTS == e.Lock.StartTS && (l.Op == mvcc.OpPessimistic) == (e.Lock.Op == mvcc.OpPessimistic) {
			keys = append(keys, locks[i].Key)
		}
	}
	return keys, nil
}
