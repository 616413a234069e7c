package percolator

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Notifications reads and clears notify cells, which Txn.Notify has commits write. Cells belong to no transaction and no
// snapshot. Package observe delivers changes by them, each once. Safe for concurrent use.
type Notifications struct{ db *DB }

// Observers returns the client of the notify cells of all shards.
func (db *DB) Observers() *Notifications { return &Notifications{db} }

// Scan returns the first limit cells of an observer in span from the key from on (nil: from its start), in key order.
// next is the key to go on from, nil at the end of the span. See kv.Notifier for what may be missing.
func (n *Notifications) Scan(ctx context.Context, observer uint64, span kv.Span, limit int, from []byte) (cells []kv.NotifyCell, next []byte, _ error) {
	if bytes.Compare(from, span.Start) > 0 {
		span.Start = from
	}
	bo := backoff{db: n.db}
	for len(cells) < limit {
		var resp *kv.NotifyScanResponse
		next, err := n.db.onRange(ctx, &bo, span, func(ref kv.RangeRef, shard kv.Shard, part kv.Span) (err error) {
			resp, err = shard.NotifyScan(ctx, &kv.NotifyScanRequest{Range: ref, Span: part, Observer: observer, Limit: limit - len(cells)})
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		cells = append(cells, resp.Cells...)
		switch {
		case resp.ResumeKey != nil:
			span.Start = resp.ResumeKey
		case next != nil:
			span.Start = next
		default:
			return cells, nil, nil
		}
	}
	return cells, span.Start, nil
}

// Clear removes those of an observer's cells that are not newer than given, and returns how many. The cells ascend by
// key. A crash of a shard may bring cells back.
func (n *Notifications) Clear(ctx context.Context, observer uint64, cells []kv.NotifyUpTo) (cleared int, _ error) {
	var sum atomic.Int64
	err := eachShard(ctx, n.db, &upToList, cells, func(ctx context.Context, shard kv.Shard, refs []kv.RangeRef, some []kv.NotifyUpTo) error {
		n, err := shard.NotifyClear(ctx, &kv.NotifyClearRequest{Ranges: refs, Observer: observer, Cells: some})
		sum.Add(int64(n))
		return err
	})
	return int(sum.Load()), err
}

var upToList = keyed(func(c *kv.NotifyUpTo) []byte { return c.Key })

// Put notifies an observer of ascending keys as a change at ts would, durably, and without a change. The oracle has
// issued ts.
func (n *Notifications) Put(ctx context.Context, observer uint64, keys [][]byte, ts tso.Timestamp, hop uint8) error {
	return eachShard(ctx, n.db, &keyList, keys, func(ctx context.Context, shard kv.Shard, refs []kv.RangeRef, some [][]byte) error {
		return shard.NotifyPut(ctx, &kv.NotifyPutRequest{Ranges: refs, Observer: observer, Keys: some, TS: ts, Hop: hop})
	})
}

// Sync makes what was done before to the cells of ascending keys durable, Clear included. It returns the runs of
// the shards that have them (kv.Collector.SyncLog), by name: if a call before something was read and a call after it return
// the same, what was read is durable.
func (n *Notifications) Sync(ctx context.Context, keys [][]byte) (map[string]uint64, error) {
	r := shardRequest[[]byte]{bo: backoff{db: n.db}, list: &keyList, fanOut: 1}
	runs := map[string]uint64{}
	r.send = func(ctx context.Context, _ *backoff, p *part[[]byte]) error {
		run, err := p.shard.SyncLog(ctx)
		runs[p.name] = run
		return err
	}
	return runs, r.run(ctx, keys)
}

// Once returns a bound: no cell in span of a commit at or below it appears again after it was cleared. For most shards that is so of all commits, for
// those with kv.Capabilities.LateCells of what is at or below the safe point.
func (n *Notifications) Once(ctx context.Context, span kv.Span) (tso.Timestamp, error) {
	once := tso.MaxTimestamp
	for {
		bo := backoff{db: n.db}
		next, err := n.db.onRange(ctx, &bo, span, func(_ kv.RangeRef, shard kv.Shard, _ kv.Span) error {
			if !shard.Capabilities().LateCells {
				return nil
			}
			safePoint, err := shard.SetSafePoint(ctx, 0)
			once = min(once, safePoint)
			return err
		})
		if err != nil || next == nil {
			return once, err
		}
		span.Start = next
	}
}

// Drop removes an observer's cells in span, durably. No transaction that is yet to commit may notify it; locks of
// committed ones are resolved before: see Settle.
func (n *Notifications) Drop(ctx context.Context, observer uint64, span kv.Span) error {
	for {
		bo := backoff{db: n.db}
		next, err := n.db.onRange(ctx, &bo, span, func(ref kv.RangeRef, shard kv.Shard, part kv.Span) error {
			return shard.NotifyDrop(ctx, &kv.NotifyDropRequest{Range: ref, Span: part, Observer: observer})
		})
		if err != nil || next == nil {
			return err
		}
		span.Start = next
	}
}

// Settle returns when every transaction that has committed at or below ts, an issued timestamp, has its cells in span:
// a key of a committed transaction may still be locked, and its cell is written when the lock is resolved. Transactions
// that are running are not waited for, except for async commits: they commit above ts.
func (n *Notifications) Settle(ctx context.Context, span kv.Span, ts tso.Timestamp) error {
	bo := backoff{db: n.db}
	for {
		var locks []mvcc.LockInfo
		next, err := n.db.onRange(ctx, &bo, span, func(ref kv.RangeRef, shard kv.Shard, part kv.Span) (err error) {
			locks, err = shard.ScanLock(ctx, &kv.ScanLockRequest{Range: ref, Span: part, MaxTS: ts, Limit: resolvePage})
			return err
		})
		if err != nil {
			return err
		}
		if len(locks) == resolvePage {
			next = append(bytes.Clone(locks[len(locks)-1].Key), 0)
		}
		alive, err := n.settle(ctx, &bo, locks, ts)
		switch {
		case err != nil:
			return err
		case alive != nil:
			if err := bo.wait(ctx, backoffLock, alive); err != nil {
				return err
			}
		case next == nil:
			return nil
		default:
			span.Start, bo = next, backoff{db: n.db}
		}
	}
}

// settle resolves the locks of transactions that have ended, makes others commit above ts, and returns the lock of one
// of which neither is known.
func (n *Notifications) settle(ctx context.Context, bo *backoff, infos []mvcc.LockInfo, ts tso.Timestamp) (alive *mvcc.KeyLockedError, _ error) {
	var locks []mvcc.KeyLockedError
	for i := range infos {
		if infos[i].Lock.Notify != nil {
			locks = append(locks, mvcc.KeyLockedError{Key: infos[i].Key, Lock: infos[i].Lock})
		}
	}
	if len(locks) == 0 {
		return nil, nil
	}
	firsts, groups := byTransaction(locks)
	outcomes, err := n.db.outcomesOf(ctx, bo, firsts, ts)
	if err != nil {
		return nil, err
	}
	for i, f := range outcomes {
		switch f.kind {
		case outcomePassed:
		case outcomeCommitted, outcomeRolledBack:
			keys := make([][]byte, len(groups[i]))
			for j := range keys {
				keys[j] = groups[i][j].Key
			}
			if err := n.db.resolveKeys(ctx, bo, keys, firsts[i].Lock.StartTS, f.commitTS); err != nil {
				return nil, err
			}
		default:
			alive = firsts[i]
		}
	}
	return alive, nil
}

// eachShard sends a request about ascending items to their shards, in pieces of bounded size.
func eachShard[T any](ctx context.Context, db *DB, list *splitter[T], items []T,
	send func(ctx context.Context, shard kv.Shard, refs []kv.RangeRef, some []T) error) error {
	r := shardRequest[T]{bo: backoff{db: db}, list: list, fanOut: maxFanOut}
	r.send = func(ctx context.Context, _ *backoff, p *part[T]) error {
		for len(p.items) > 0 {
			some := p.items[:min(len(p.items), maxRequestKeys)]
			if err := send(ctx, p.shard, p.refs, some); err != nil {
				return err
			}
			p.items = p.items[len(some):]
		}
		return nil
	}
	if len(items) == 0 {
		return nil
	}
	return r.run(ctx, items)
}

// onRange sends a request about the part of span that is in the range of its start, until it is answered. It returns the
// start of the rest, nil if there is none. send must be idempotent.
func (db *DB) onRange(ctx context.Context, bo *backoff, span kv.Span, send func(ref kv.RangeRef, shard kv.Shard, part kv.Span) error) (next []byte, _ error) {
	for {
		desc, shard, err := db.router.Locate(ctx, span.Start)
		if err == nil {
			if err = send(desc.Ref(), shard, clip(span, desc.Span)); err == nil {
				if end := desc.Span.End; len(end) > 0 && (len(span.End) == 0 || bytes.Compare(end, span.End) < 0) {
					next = slices.Clone(end)
				}
				return next, nil
			}
			db.forgetRoute(err, desc.Ref())
		}
		if err := db.retryRouting(ctx, bo, err); err != nil {
			return nil, err
		}
	}
}
