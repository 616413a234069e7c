package kv

import "context"

// localRouter routes to one store that owns all keys. It reads the store's own table, so it is never stale, and
// allocates nothing.
type localRouter struct{ store *Store }

// Router returns a router for a store without a directory.
func (s *Store) Router() Router { return localRouter{s} }

func (l localRouter) Locate(_ context.Context, key []byte) (*RangeDescriptor, Shard, error) {
	t := l.store.ranges.Load()
	if r := t.find(key); r != nil {
		return &r.desc, l.store, nil
	}
	return nil, nil, t.stale(nil, key)
}

func (l localRouter) LocateEnd(_ context.Context, end []byte) (*RangeDescriptor, Shard, error) {
	t := l.store.ranges.Load()
	if r := t.findEnd(end); r != nil {
		return &r.desc, l.store, nil
	}
	return nil, nil, t.stale(nil, end)
}

func (l localRouter) Invalidate(*StaleRangeError) {}

// CreateRange does nothing: there is only one shard, and additional ranges would only make routes longer.
func (l localRouter) CreateRange(context.Context, Span) error { return nil }

func (l localRouter) Ranges(context.Context) ([]RangeDescriptor, error) {
	return l.store.ownedRanges(), nil
}

// ownedRanges returns the descriptors of the store's ranges in key order.
func (s *Store) ownedRanges() []RangeDescriptor {
	sorted := s.ranges.Load().sorted
	descs := make([]RangeDescriptor, len(sorted))
	for i, r := range sorted {
		descs[i] = r.desc
	}
	return descs
}
