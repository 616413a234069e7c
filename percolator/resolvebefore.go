package percolator

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// resolvePage is the number of locks that ResolveBefore requests from a shard at once.
const resolvePage = 1024

// ResolveBefore completes every transaction whose start_ts is at or below maxTS and that has left locks, on all shards
// except the unavailable ones, and returns how many locks it removed. It waits for a live transaction until it ends, its
// TTL passes, or Options.RetryBudget is spent. Afterwards such locks exist only on the unavailable shards, and those
// left, whose outcome only these know; provided that a fence at maxTS (kv.Collector.SetSafePoint) prevents new ones.
// Pessimistic locks remain: nothing depends on them.
func (db *DB) ResolveBefore(ctx context.Context, maxTS tso.Timestamp, away map[string]bool) (resolved int, left []kv.LeftLocks, err error) {
	r := beforeResolver{db: db, maxTS: maxTS, away: away}
	ctx = withAway(ctx, away)
	for from := []byte(nil); ; {
		next, err := r.page(ctx, from)
		if err != nil || next == nil {
			return r.resolved, r.left, err
		}
		from = next
	}
}

// beforeResolver is one ResolveBefore.
type beforeResolver struct {
	db       *DB
	maxTS    tso.Timestamp
	away     map[string]bool
	resolved int
	left     []kv.LeftLocks // by shard
}

// page finishes a page of locks from a key on, and returns where to go on, nil at the end.
func (r *beforeResolver) page(ctx context.Context, from []byte) (next []byte, err error) {
	bo := backoff{db: r.db}
	for {
		desc, locks, err := r.db.locksBefore(ctx, &bo, from, r.maxTS, r.away)
		if err != nil {
			return nil, err
		}
		more := len(locks) == resolvePage
		if more {
			next = append(bytes.Clone(locks[len(locks)-1].Key), 0)
		} else if next = nil; len(desc.Span.End) > 0 {
			next = desc.Span.End
		}
		alive, left, err := r.resolve(ctx, &bo, locks)
		if err != nil {
			return nil, err
		}
		if alive == nil {
			r.leave(desc.Shard, left)
			return next, nil
		}
		if err := bo.wait(ctx, backoffLock, alive); err != nil {
			return nil, err
		}
	}
}

// leave counts locks that stay on a shard.
func (r *beforeResolver) leave(shard string, locks []mvcc.KeyLockedError) {
	for i := range locks {
		ts := locks[i].Lock.StartTS
		at := slices.IndexFunc(r.left, func(l kv.LeftLocks) bool { return l.Shard == shard })
		if at < 0 {
			at = len(r.left)
			r.left = append(r.left, kv.LeftLocks{Shard: shard, Oldest: ts, Newest: ts})
		}
		l := &r.left[at]
		l.Locks++
		l.Oldest, l.Newest = min(l.Oldest, ts), max(l.Newest, ts)
	}
}

// locksBefore lists prewritten locks of the range that contains from, in key order; none if its shard is unavailable. It
// uses a route that was requested from the directory since the call, because an older one may name a shard that has
// given the keys to another.
func (db *DB) locksBefore(ctx context.Context, bo *backoff, from []byte, maxTS tso.Timestamp, away map[string]bool) (*kv.RangeDescriptor, []mvcc.LockInfo, error) {
	fresh := false
	for {
		desc, shard, err := db.router.Locate(ctx, from)
		switch {
		case err == nil && away[desc.Shard] && fresh:
			return desc, nil, nil
		case err == nil && away[desc.Shard]:
			db.router.Invalidate(&kv.StaleRangeError{Refs: []kv.RangeRef{desc.Ref()}})
			fresh = true
			continue
		case err == nil:
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

// resolve resolves the locks of transactions whose outcome is decided, and returns one lock of a live transaction, if
// there is any, and those whose outcome only unavailable shards know.
func (r *beforeResolver) resolve(ctx context.Context, bo *backoff, infos []mvcc.LockInfo) (alive *mvcc.KeyLockedError, left []mvcc.KeyLockedError, err error) {
	locks := make([]mvcc.KeyLockedError, 0, len(infos))
	for i := range infos {
		if infos[i].Lock.Op != mvcc.OpPessimistic {
			locks = append(locks, mvcc.KeyLockedError{Key: infos[i].Key, Lock: infos[i].Lock})
		}
	}
	if len(locks) == 0 {
		return nil, nil, nil
	}
	firsts, groups := byTransaction(locks)
	outcomes, err := r.db.outcomesOf(ctx, bo, firsts, 0)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range outcomes {
		switch f.kind {
		case outcomeCommitted, outcomeRolledBack:
		case outcomeAway:
			left = append(left, groups[i]...)
			continue
		default:
			alive = firsts[i]
			continue
		}
		keys := make([][]byte, len(groups[i]))
		for j := range keys {
			keys[j] = groups[i][j].Key
		}
		if err := r.db.resolveKeys(ctx, bo, keys, firsts[i].Lock.StartTS, f.commitTS); err != nil {
			return alive, left, err
		}
		r.resolved += len(keys)
	}
	return alive, left, nil
}
