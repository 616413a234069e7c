package kv

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// listPage is the number of locks that ListLocks requests from a shard at once.
const listPage = 512

// ListLocks calls yield with every lock of every shard, in key order, for operators: a page at a time, so the list as a
// whole is of no single moment. An error of yield ends it. It returns the shards that did not answer, whose locks are
// missing.
func ListLocks(ctx context.Context, router Router, yield func(*RangeDescriptor, *mvcc.LockInfo) error) (missing []string, err error) {
	var from []byte
	for {
		desc, shard, err := router.Locate(ctx, from)
		if err != nil {
			return missing, err
		}
		if slices.Contains(missing, desc.Shard) {
			if len(desc.Span.End) == 0 {
				return missing, nil
			}
			from = desc.Span.End
			continue
		}
		locks, err := shard.ScanLock(ctx, &ScanLockRequest{
			Range: desc.Ref(), Span: Span{Start: from, End: desc.Span.End}, MaxTS: tso.MaxTimestamp, Limit: listPage})
		if stale, ok := errkind.As[*StaleRangeError](err); ok {
			router.Invalidate(stale)
			continue
		}
		if errkind.Of(err) == errkind.Unavailable {
			router.Invalidate(&StaleRangeError{Refs: []RangeRef{desc.Ref()}})
			missing = append(missing, desc.Shard)
			continue
		}
		if err != nil {
			return missing, err
		}
		for i := range locks {
			if err := yield(desc, &locks[i]); err != nil {
				return missing, err
			}
		}
		switch {
		case len(locks) >= listPage:
			from = append(bytes.Clone(locks[len(locks)-1].Key), 0)
		case len(desc.Span.End) == 0:
			return missing, nil
		default:
			from = desc.Span.End
		}
	}
}

// InForce returns the largest safe point that a shard of the router's ranges has in force, of those that answer: reads
// at or below it may be refused. 0: there has been no garbage collection.
func InForce(ctx context.Context, router Router) (tso.Timestamp, error) {
	ranges, err := router.Ranges(ctx)
	if err != nil {
		return 0, err
	}
	var highest tso.Timestamp
	asked := map[string]bool{}
	for i := range ranges {
		if asked[ranges[i].Shard] {
			continue
		}
		asked[ranges[i].Shard] = true
		_, shard, err := router.Locate(ctx, ranges[i].Span.Start)
		if err != nil {
			return 0, err
		}
		ts, err := shard.SetSafePoint(ctx, 0)
		if err != nil && errkind.Of(err) != errkind.Unavailable {
			return 0, err
		}
		highest = max(highest, ts)
	}
	return highest, nil
}

// RangeSizes implements Router.
func (l localRouter) RangeSizes(context.Context) (map[uint64]int64, error) {
	return l.store.rangeSizes(), nil
}

func (s *Store) rangeSizes() map[uint64]int64 {
	sorted := s.ranges.Load().sorted
	sizes := make(map[uint64]int64, len(sorted))
	for _, r := range sorted {
		sizes[r.desc.ID] = r.sizeBytes.Load()
	}
	return sizes
}

// RangeSizes implements Router.
func (r *CachingRouter) RangeSizes(ctx context.Context) (map[uint64]int64, error) {
	infos, err := r.opts.Directory.Shards(ctx)
	if err != nil {
		return nil, err
	}
	all := map[uint64]int64{}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, info := range infos {
		asked.Go(func() {
			shard, err := r.dial(ctx, info)
			if err != nil {
				return
			}
			status, err := shard.Status(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all, status.RangeSizes)
		})
	}
	asked.Wait()
	return all, ctx.Err()
}
