package bigtable

import (
	"context"

	"github.com/percodb/percodb/kv"
)

// Router leads every key to one shard.
type Router struct{ shard *Shard }

var _ kv.Router = (*Router)(nil)

// NewRouter returns a router to a shard.
func NewRouter(s *Shard) *Router { return &Router{shard: s} }

// Locate implements kv.Router.
func (r *Router) Locate(context.Context, []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	d := theRange()
	return &d, r.shard, nil
}

// LocateEnd implements kv.Router.
func (r *Router) LocateEnd(ctx context.Context, _ []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	return r.Locate(ctx, nil)
}

// Invalidate implements kv.Router: the range never changes.
func (r *Router) Invalidate(*kv.StaleRangeError) {}

// CreateRange implements kv.Router. It is a hint that Bigtable, which divides and places rows by their load, does not need.
func (r *Router) CreateRange(context.Context, kv.Span) error { return nil }

// Ranges implements kv.Router.
func (r *Router) Ranges(context.Context) ([]kv.RangeDescriptor, error) {
	return []kv.RangeDescriptor{theRange()}, nil
}
