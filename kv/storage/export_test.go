package storage

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// NewVersionIter returns an iterator over [lower, upper) that may leave out versions outside of
// [from, to): it does not read blocks that hold none inside.
func (e *Engine) NewVersionIter(lower, upper []byte, from, to uint64) (*Iterator, error) {
	opts := pebble.IterOptions{LowerBound: lower, UpperBound: upper, PointKeyFilters: []pebble.BlockPropertyFilter{
		sstable.NewBlockIntervalFilter(versionProperty, from, to, nil),
	}}
	it, err := e.db.NewIter(&opts)
	if err != nil {
		return nil, err
	}
	return &Iterator{it: it, e: e, kind: RangeRead, seen: ^uint64(0)}, nil
}
