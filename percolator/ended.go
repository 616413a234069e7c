package percolator

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// A process that ends without rolling its transactions back leaves locks that are valid until their TTL passes. Who knows
// that it has ended need not wait for that: the context of status checks carries it.

type endedKey struct{}

// withEnded makes status checks regard the transactions' process as ended.
func withEnded(ctx context.Context) context.Context {
	return context.WithValue(ctx, endedKey{}, true)
}

func isEnded(ctx context.Context) bool { return ctx.Value(endedKey{}) != nil }

// EndProcess finishes the transactions of a process (Options.Process) that has ended, on all shards that answer, and
// returns how many locks it has removed. Should the process be alive after all, its transactions that hold locks fail, as
// if their TTL had passed. What it does not reach, because a shard does not answer or has restarted meanwhile, is left to
// the TTL.
//
// So are the locks on the keys that held reports, if it is not nil. They are those that sessions hold (Hold): a session of a process that is
// alive would go on for a while as if it had its lock, and nothing that it commits would fail.
func (db *DB) EndProcess(ctx context.Context, process uint64, held func(key []byte) bool) (removed int, _ error) {
	ctx = withEnded(ctx)
	var failed error
	for from := []byte(nil); ; {
		desc, locks, err := db.locksOfProcess(ctx, from, process)
		if desc == nil {
			return removed, errors.Join(failed, err)
		}
		if err == nil {
			var n int
			n, err = db.endTransactions(ctx, slices.DeleteFunc(slices.Clone(locks), func(l mvcc.LockInfo) bool {
				return held != nil && held(l.Key)
			}))
			removed += n
		}
		switch {
		case err != nil:
			failed = err
			fallthrough // The other ranges may be on shards that answer.
		case len(locks) < resolvePage:
			if from = desc.Span.End; len(from) == 0 {
				return removed, failed
			}
		default:
			from = append(bytes.Clone(locks[len(locks)-1].Key), 0)
		}
	}
}

// locksOfProcess lists locks of a process in the range that contains from, which is nil if it is not known.
func (db *DB) locksOfProcess(ctx context.Context, from []byte, process uint64) (*kv.RangeDescriptor, []mvcc.LockInfo, error) {
	bo := backoff{db: db}
	for {
		desc, shard, err := db.router.Locate(ctx, from)
		if err == nil {
			var locks []mvcc.LockInfo
			locks, err = shard.ScanLock(ctx, &kv.ScanLockRequest{Range: desc.Ref(), Span: kv.Span{Start: from, End: desc.Span.End},
				MaxTS: tso.MaxTimestamp, Process: process, Limit: resolvePage})
			if err == nil {
				return desc, locks, nil
			}
			db.forgetRoute(err, desc.Ref())
		}
		if err := db.retryRouting(ctx, &bo, err); err != nil {
			return desc, nil, err
		}
	}
}

// endTransactions finishes the transactions of locks. Pessimistic ones come last: they decide nothing, and those of a
// transaction that has begun to commit go with its other locks.
func (db *DB) endTransactions(ctx context.Context, infos []mvcc.LockInfo) (removed int, _ error) {
	var plain, pessimistic []mvcc.KeyLockedError
	for i := range infos {
		lock := mvcc.KeyLockedError{Key: infos[i].Key, Lock: infos[i].Lock}
		if lock.Lock.Op == mvcc.OpPessimistic {
			pessimistic = append(pessimistic, lock)
		} else {
			plain = append(plain, lock)
		}
	}
	for _, locks := range [][]mvcc.KeyLockedError{plain, pessimistic} {
		n, err := db.endLocks(ctx, locks)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// endLocks finishes locks that are all pessimistic, or none of them.
func (db *DB) endLocks(ctx context.Context, locks []mvcc.KeyLockedError) (removed int, _ error) {
	if len(locks) == 0 {
		return 0, nil
	}
	bo := backoff{db: db}
	firsts, groups := byTransaction(locks)
	outcomes, err := db.outcomesOf(ctx, &bo, firsts, 0)
	if err != nil {
		return 0, err
	}
	for i, f := range outcomes {
		if f.kind != outcomeCommitted && f.kind != outcomeRolledBack {
			continue
		}
		keys := make([][]byte, len(groups[i]))
		for j := range keys {
			keys[j] = groups[i][j].Key
		}
		lock := firsts[i].Lock
		lock.ForUpdateTS = goesOn // All pessimistic ones, whenever they were granted.
		if err := db.finishLock(ctx, &bo, keys, &lock, f.commitTS); err != nil {
			return removed, err
		}
		removed += len(keys)
	}
	return removed, nil
}
