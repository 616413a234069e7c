package percolator

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// part is what one shard has of a list of items.
type part[T any] struct {
	name  string
	shard kv.Shard
	refs  []kv.RangeRef
	items []T  // ascending; shares memory with the list
	sole  bool // no other shard has any
}

// partSpace is space for the only part of a list, in one range.
type partSpace[T any] struct {
	parts [1]part[T]
	refs  [1]kv.RangeRef
}

// splitter knows how a list of items is divided among shards.
type splitter[T any] struct {
	// once divides the list by the routes known, or returns why it cannot. space may be nil.
	once  func(ctx context.Context, db *DB, items []T, space *partSpace[T]) ([]part[T], error)
	start func(*T) []byte // by which items ascend
}

var (
	keyList      = keyed(func(key *[]byte) []byte { return *key })
	mutationList = keyed(func(m *mvcc.Mutation) []byte { return m.Key })
	spanList     = splitter[kv.Span]{once: splitSpans, start: func(s *kv.Span) []byte { return s.Start }}
)

// split divides ascending items by shard.
func (s *splitter[T]) split(ctx context.Context, bo *backoff, items []T, space *partSpace[T]) ([]part[T], error) {
	for {
		parts, err := s.once(ctx, bo.db, items, space)
		if err == nil {
			return parts, nil
		}
		if err := bo.db.retryRouting(ctx, bo, err); err != nil {
			return nil, err
		}
	}
}

// partOf returns the position of the part that a range belongs to, after adding the range to it.
func partOf[T any](parts []part[T], desc *kv.RangeDescriptor, shard kv.Shard, space *partSpace[T]) ([]part[T], int) {
	at := slices.IndexFunc(parts, func(p part[T]) bool { return p.name == desc.Shard })
	if at < 0 {
		at = len(parts)
		p := part[T]{name: desc.Shard, shard: shard, sole: at == 0}
		if at == 0 && space != nil {
			parts, p.refs = space.parts[:0], space.refs[:0]
		}
		parts = append(parts, p)
		parts[0].sole = at == 0
	}
	parts[at].refs = append(parts[at].refs, desc.Ref())
	return parts, at
}

// keyed is the splitter of items that have one key each.
func keyed[T any](key func(*T) []byte) splitter[T] {
	once := func(ctx context.Context, db *DB, items []T, space *partSpace[T]) (parts []part[T], _ error) {
		for i, n := 0, len(items); i < n; {
			desc, shard, err := db.router.Locate(ctx, key(&items[i]))
			if err != nil {
				return nil, err
			}
			next := n
			if end := desc.Span.End; len(end) > 0 && bytes.Compare(key(&items[n-1]), end) >= 0 {
				next = i + 1 + sort.Search(n-i-1, func(j int) bool { return bytes.Compare(key(&items[i+1+j]), end) >= 0 })
			}
			var at int
			parts, at = partOf(parts, desc, shard, space)
			switch p := &parts[at]; {
			case p.sole:
				p.items = items[:next:next]
			case p.items == nil:
				p.items = items[i:next:next]
			default:
				p.items = append(p.items, items[i:next]...)
			}
			i = next
		}
		return parts, nil
	}
	return splitter[T]{once: once, start: key}
}

// splitSpans splits spans, which ascend without overlaps, by shard.
func splitSpans(ctx context.Context, db *DB, spans []kv.Span, space *partSpace[kv.Span]) (parts []part[kv.Span], _ error) {
	var desc *kv.RangeDescriptor
	at := -1
	for _, span := range spans {
		for {
			if desc == nil || !spanContains(desc.Span, span.Start) {
				var shard kv.Shard
				var err error
				if desc, shard, err = db.router.Locate(ctx, span.Start); err != nil {
					return nil, err
				}
				parts, at = partOf(parts, desc, shard, space)
			}
			p := &parts[at]
			p.items = append(p.items, clip(span, desc.Span))
			end := desc.Span.End
			if len(end) == 0 || len(span.End) > 0 && bytes.Compare(span.End, end) <= 0 {
				break
			}
			span.Start = end
		}
	}
	return parts, nil
}

// errSendAgain is the answer of a sender that has made the way free: its part is sent again at once.
var errSendAgain = errors.New("percolator: send again")

// stopError is returned by a sender to end the request: the sender has retried by itself and failed, or needs no more
// answers (nil).
type stopError struct{ error }

// shardRequest is a request that concerns several shards: the one way in which requests are divided among shards, sent,
// and sent again.
type shardRequest[T any] struct {
	bo     backoff
	list   *splitter[T]
	fanOut int // 1: the parts are sent one after the other; otherwise so many at a time, each with a backoff of its own
	// send sends one part, and must be idempotent. An error that may pass has the part sent again, by new routes; any
	// other ends the request. A sender that sends a part in pieces removes from its items those that are answered.
	send  func(ctx context.Context, bo *backoff, p *part[T]) error
	space partSpace[T]
}

// run sends all parts of items, which ascend. All requests have been answered when it returns. The first error ends the
// contexts of the others.
func (r *shardRequest[T]) run(ctx context.Context, items []T) error {
	parts, err := r.list.split(ctx, &r.bo, items, &r.space)
	if err != nil {
		return err
	}
	if r.fanOut == 1 || len(parts) == 1 {
		return r.inTurn(ctx, &r.bo, parts)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.fanOut)
	for i := range parts {
		g.Go(func() error {
			bo := r.bo
			return r.inTurn(gctx, &bo, parts[i:i+1])
		})
	}
	return g.Wait()
}

// inTurn sends parts one after the other, and then again what is left of them, until nothing is.
func (r *shardRequest[T]) inTurn(ctx context.Context, bo *backoff, parts []part[T]) error {
	for {
		var left []T
		for i := range parts {
			p := &parts[i]
			err := r.send(ctx, bo, p)
			if err == nil {
				continue
			}
			if stop, ok := err.(stopError); ok {
				return stop.error
			}
			if err != errSendAgain {
				bo.db.forgetRoute(err, p.refs...)
				if err := bo.db.retryRouting(ctx, bo, err); err != nil {
					return err
				}
			}
			left = append(left, p.items...)
		}
		if len(left) == 0 {
			return nil
		}
		slices.SortFunc(left, func(a, b T) int { return bytes.Compare(r.list.start(&a), r.list.start(&b)) })
		var err error
		if parts, err = r.list.split(ctx, bo, left, nil); err != nil {
			return err
		}
	}
}

// onShards sends a request about ascending keys, one shard after the other. send must be idempotent.
func onShards(ctx context.Context, bo *backoff, keys [][]byte, send func(*part[[]byte]) error) error {
	r := shardRequest[[]byte]{bo: *bo, list: &keyList, fanOut: 1,
		send: func(_ context.Context, _ *backoff, p *part[[]byte]) error { return send(p) }}
	err := r.run(ctx, keys)
	*bo = r.bo
	return err
}

// onKey sends one request to the shard that holds key, once.
func (db *DB) onKey(ctx context.Context, key []byte, send func(kv.RangeRef, kv.Shard) error) error {
	desc, shard, err := db.router.Locate(ctx, key)
	if err != nil {
		return err
	}
	err = send(desc.Ref(), shard)
	db.forgetRoute(err, desc.Ref())
	return err
}
