package percolator

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// part is what one shard has of a request's items.
type part[T any] struct {
	shard kv.Shard
	refs  []kv.RangeRef
	items []T
}

// splitter knows how a list of items is divided among shards.
type splitter[T any] struct {
	split func(ctx context.Context, db *DB, items []T) ([]part[T], error)
	start func(*T) []byte // by which items ascend
}

var (
	keyList      = keyed(func(key *[]byte) []byte { return *key })
	mutationList = keyed(func(m *mvcc.Mutation) []byte { return m.Key })
	spanList     = splitter[kv.Span]{
		split: func(ctx context.Context, db *DB, spans []kv.Span) ([]part[kv.Span], error) {
			portions, err := db.spanPortions(ctx, spans)
			parts := make([]part[kv.Span], len(portions))
			for i, p := range portions {
				parts[i] = part[kv.Span]{shard: p.shard, refs: p.refs, items: p.spans}
			}
			return parts, err
		},
		start: func(s *kv.Span) []byte { return s.Start },
	}
)

// keyed is the splitter of items that have one key each.
func keyed[T any](key func(*T) []byte) splitter[T] {
	return splitter[T]{start: key, split: func(ctx context.Context, db *DB, items []T) ([]part[T], error) {
		desc, shard, err := db.router.Locate(ctx, key(&items[0]))
		if err != nil {
			return nil, err
		}
		if end := desc.Span.End; len(end) == 0 || bytes.Compare(key(&items[len(items)-1]), end) < 0 {
			return []part[T]{{shard: shard, refs: []kv.RangeRef{desc.Ref()}, items: items}}, nil
		}
		portions, err := db.portions(ctx, len(items), func(i int) []byte { return key(&items[i]) }, nil)
		parts := make([]part[T], len(portions))
		for i, p := range portions {
			picked := items
			if p.pick != nil {
				picked = make([]T, len(p.pick))
				for j, at := range p.pick {
					picked[j] = items[at]
				}
			}
			parts[i] = part[T]{shard: p.shard, refs: p.refs, items: picked}
		}
		return parts, err
	}}
}

// errSendAgain is the answer of a sender that has made the way free: its part is sent again at once.
var errSendAgain = errors.New("percolator: send again")

// stopError is the answer of a sender that has tried again by itself, and has given up: it ends sendAll.
type stopError struct{ error }

// sendAll is how a request that concerns several shards is sent: it splits items, which ascend, by shard, has send
// send each part, and splits and sends again those parts whose error may pass, by the routes of then. It ends
// when every part has been sent, or with an error that does not pass. send must be idempotent. With fanOut 1 the
// parts are sent one after the other; otherwise so many at a time, and all are answered when it returns.
func sendAll[T any](ctx context.Context, db *DB, bo *backoff, items []T, s splitter[T], fanOut int, send func(*part[T]) error) error {
	for len(items) > 0 {
		parts, err := s.split(ctx, db, items)
		if err != nil {
			if err := db.retryRouting(ctx, bo, err); err != nil {
				return err
			}
			continue
		}
		items = nil
		var answers []error
		if fanOut > 1 && len(parts) > 1 {
			answers = sendParallel(parts, fanOut, send)
		}
		for i := range parts {
			var err error
			if answers != nil {
				err = answers[i]
			} else {
				err = send(&parts[i])
			}
			if err == nil {
				continue
			}
			if stop, ok := err.(stopError); ok {
				return stop.error
			}
			if err != errSendAgain {
				db.forgetRoute(err, parts[i].refs...)
				if err := db.retryRouting(ctx, bo, err); err != nil {
					return err
				}
			}
			items = append(items, parts[i].items...)
		}
		if len(items) > 1 {
			slices.SortFunc(items, func(a, b T) int { return bytes.Compare(s.start(&a), s.start(&b)) })
		}
	}
	return nil
}

// sendParallel sends all parts and returns their errors.
func sendParallel[T any](parts []part[T], fanOut int, send func(*part[T]) error) []error {
	errs := make([]error, len(parts))
	slots := make(chan struct{}, fanOut)
	var all sync.WaitGroup
	for i := range parts {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = send(&parts[i])
		})
	}
	all.Wait()
	return errs
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
