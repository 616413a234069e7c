package percolator

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// resolvePage is how many locks ResolveBefore asks a shard for at once.
const resolvePage = 1024

// ResolveBefore finishes every transaction whose start_ts is at or below maxTS and that has left locks,
// on all shards, and returns how many locks it removed. A transaction that still lives is waited for:
// until it ends, or its TTL does, or Options.RetryBudget. Afterwards no such lock is anywhere, provided
// that a fence at maxTS (kv.Collector.SetSafePoint) keeps new ones from being made. Pessimistic locks
// stay: nothing depends on them.
func (db *DB) ResolveBefore(ctx context.Context, maxTS tso.Timestamp) (resolved int, err error) {
	var from []byte
	for {
		next, n, err := db.resolvePageBefore(ctx, from, maxTS)
		resolved += n
		if err != nil || next == nil {
			return resolved, err
		}
		from = next
	}
}

// resolvePageBefore finishes a page of locks from a key on, and returns where to go on, nil at the end.
func (db *DB) resolvePageBefore(ctx context.Context, from []byte, maxTS tso.Timestamp) (next []byte, resolved int, err error) {
	bo := backoff{db: db}
	for {
		desc, locks, err := db.locksBefore(ctx, &bo, from, maxTS)
		if err != nil {
			return nil, resolved, err
		}
		more := len(locks) == resolvePage
		if more {
			next = append(bytes.Clone(locks[len(locks)-1].Key), 0)
		} else if next = nil; len(desc.Span.End) > 0 {
			next = desc.Span.End
		}
		n, alive, err := db.resolveLocks(ctx, &bo, locks)
		resolved += n
		if err != nil {
			return nil, resolved, err
		}
		if alive == nil {
			return next, resolved, nil
		}
		if err := bo.wait(ctx, backoffLock, alive); err != nil {
			return nil, resolved, err
		}
	}
}

// locksBefore lists prewritten locks of the range that holds from, in key order.
func (db *DB) locksBefore(ctx context.Context, bo *backoff, from []byte, maxTS tso.Timestamp) (*kv.RangeDescriptor, []mvcc.LockInfo, error) {
	for {
		desc, shard, err := db.router.Locate(ctx, from)
		if err == nil {
			var locks []mvcc.LockInfo
			locks, err = shard.ScanLock(ctx, &kv.ScanLockRequest{
				Range: desc.Ref(), Span: kv.Span{Start: from, End: desc.Span.End}, MaxTS: maxTS, Limit: resolvePage})
			if err == nil {
				return desc, locks, nil
			}
			db.forgetRoute(err, desc.Ref())
		}
		if err := db.retryRouting(ctx, bo, err); err != nil {
			return nil, nil, err
		}
	}
}

// resolveLocks finishes the locks of transactions that are decided, and returns one of those whose
// transaction lives, if there is any.
func (db *DB) resolveLocks(ctx context.Context, bo *backoff, infos []mvcc.LockInfo) (resolved int, alive *mvcc.KeyLockedError, err error) {
	locks := make([]mvcc.KeyLockedError, 0, len(infos))
	for i := range infos {
		if infos[i].Lock.Op != mvcc.OpPessimistic {
			locks = append(locks, mvcc.KeyLockedError{Key: infos[i].Key, Lock: infos[i].Lock})
		}
	}
	if len(locks) == 0 {
		return 0, nil, nil
	}
	firsts, groups := byTransaction(locks)
	fates, err := db.fatesOf(ctx, bo, firsts, 0)
	if err != nil {
		return 0, nil, err
	}
	for i, f := range fates {
		if f.kind != fateCommitted && f.kind != fateRolledBack {
			alive = firsts[i]
			continue
		}
		keys := make([][]byte, len(groups[i]))
		for j := range keys {
			keys[j] = groups[i][j].Key
		}
		if err := db.resolveKeys(ctx, bo, keys, firsts[i].Lock.StartTS, f.commitTS); err != nil {
			return resolved, alive, err
		}
		resolved += len(keys)
	}
	return resolved, alive, nil
}
