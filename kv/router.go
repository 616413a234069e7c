package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// RouterOptions configure a CachingRouter. Both fields are required.
type RouterOptions struct {
	Directory Directory
	// Dial returns the shard at an address. Connections are kept until the address changes; the
	// router does not close them.
	Dial func(ctx context.Context, info ShardInfo) (Shard, error)
}

// CachingRouter routes by a cache of descriptors filled from a directory. Safe for concurrent use.
type CachingRouter struct {
	opts  RouterOptions
	cache atomic.Pointer[[]*route] // in key order, not overlapping, with gaps; never changed in place

	mu struct {
		sync.Mutex
		shards map[string]dialed
	}
}

var _ Router = (*CachingRouter)(nil)

// route is a cached descriptor and the shard that serves it.
type route struct {
	desc  RangeDescriptor
	shard Shard
}

type dialed struct {
	addr  string
	shard Shard
}

// NewRouter returns a router with an empty cache.
func NewRouter(opts RouterOptions) (*CachingRouter, error) {
	if opts.Directory == nil || opts.Dial == nil {
		return nil, errors.New("kv: router options without directory or dialer")
	}
	r := &CachingRouter{opts: opts}
	r.mu.shards = map[string]dialed{}
	r.cache.Store(&[]*route{})
	return r, nil
}

// Locate implements Router.
func (r *CachingRouter) Locate(ctx context.Context, key []byte) (*RangeDescriptor, Shard, error) {
	cache := *r.cache.Load()
	i := sort.Search(len(cache), func(i int) bool { return bytes.Compare(cache[i].desc.Span.Start, key) > 0 })
	if i > 0 && cache[i-1].desc.Span.Contains(key) {
		return &cache[i-1].desc, cache[i-1].shard, nil
	}
	desc, info, err := r.opts.Directory.Lookup(ctx, key)
	return r.add(ctx, desc, info, err)
}

// LocateEnd implements Router.
func (r *CachingRouter) LocateEnd(ctx context.Context, end []byte) (*RangeDescriptor, Shard, error) {
	cache := *r.cache.Load()
	n := len(cache)
	if len(end) > 0 {
		n = sort.Search(n, func(i int) bool { return bytes.Compare(cache[i].desc.Span.Start, end) >= 0 })
	}
	if n > 0 && compareEnds(end, cache[n-1].desc.Span.End) <= 0 {
		return &cache[n-1].desc, cache[n-1].shard, nil
	}
	desc, info, err := r.opts.Directory.LookupEnd(ctx, end)
	return r.add(ctx, desc, info, err)
}

// add caches the directory's answer. The directory may lag behind a shard that has reported a split: then the request is
// routed by the old range once more, and the shard reports the split again.
func (r *CachingRouter) add(ctx context.Context, desc RangeDescriptor, info ShardInfo, err error) (*RangeDescriptor, Shard, error) {
	if err != nil {
		return nil, nil, err
	}
	shard, err := r.dial(ctx, info)
	if err != nil {
		return nil, nil, &UnavailableError{Shard: info.ID, Err: err}
	}
	added := &route{desc: desc, shard: shard}
	r.replace(nil, []*route{added})
	return &added.desc, shard, nil
}

// dial returns the connection to a shard, a new one if it has moved.
func (r *CachingRouter) dial(ctx context.Context, info ShardInfo) (Shard, error) {
	r.mu.Lock()
	known, ok := r.mu.shards[info.ID]
	r.mu.Unlock()
	if ok && known.addr == info.Addr {
		return known.shard, nil
	}
	shard, err := r.opts.Dial(ctx, info)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.shards[info.ID] = dialed{addr: info.Addr, shard: shard}
	return shard, nil
}

// Invalidate implements Router.
func (r *CachingRouter) Invalidate(stale *StaleRangeError) {
	var news []*route
	r.mu.Lock()
	for _, desc := range stale.Current {
		if known, ok := r.mu.shards[desc.Shard]; ok {
			news = append(news, &route{desc: desc, shard: known.shard})
		}
	}
	r.mu.Unlock()
	r.replace(stale.Refs, news)
}

// replace drops the routes that stale names and those that news overlap, and adds news.
func (r *CachingRouter) replace(stale []RangeRef, news []*route) {
	for {
		old := r.cache.Load()
		next := slices.Clone(news)
		for _, have := range *old {
			if slices.Contains(stale, have.desc.Ref()) {
				continue
			}
			if !slices.ContainsFunc(news, func(n *route) bool { return n.desc.Span.Overlaps(&have.desc.Span) }) {
				next = append(next, have)
			}
		}
		slices.SortFunc(next, func(a, b *route) int { return bytes.Compare(a.desc.Span.Start, b.desc.Span.Start) })
		if r.cache.CompareAndSwap(old, &next) {
			return
		}
	}
}

// CreateRange implements Router.
func (r *CachingRouter) CreateRange(ctx context.Context, span Span) error {
	return r.opts.Directory.CreateRange(ctx, span)
}

// Ranges implements Router.
func (r *CachingRouter) Ranges(ctx context.Context) ([]RangeDescriptor, error) {
	return r.opts.Directory.Ranges(ctx)
}
