package mvcc

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/kv/storage"
)

// MiddleKey returns a key k, start < k < end, with about as much data below it as above in
// [start, end), or nil if the span holds fewer than two keys.
func (s *State) MiddleKey(ctx context.Context, start, end []byte) ([]byte, error) {
	lower, upper := WriteBounds(start, end)
	// Boundaries of files are known without reading any: enough for spans of many files.
	if bound, err := s.eng.MiddleBoundary(lower, upper); err != nil {
		return nil, err
	} else if bound != nil {
		if prefix, _, ok := storage.SplitVersion(bound); ok && bytes.Compare(userKey(prefix), start) > 0 {
			return bytes.Clone(userKey(prefix)), nil
		}
	}
	return s.walkToMiddle(ctx, lower, upper)
}

// walkToMiddle scans the span twice: once to determine its size, once to stop half way.
func (s *State) walkToMiddle(ctx context.Context, lower, upper []byte) ([]byte, error) {
	var total int
	err := s.walkSizes(ctx, lower, upper, func(_ []byte, size int) bool {
		total += size
		return true
	})
	if err != nil {
		return nil, err
	}
	var middle, first []byte
	below := 0
	err = s.walkSizes(ctx, lower, upper, func(key []byte, size int) bool {
		if first == nil {
			first = bytes.Clone(key)
		}
		if below >= total/2 && !bytes.Equal(key, first) {
			// A later version of a key already met stays with it.
			middle = bytes.Clone(key)
			return false
		}
		below += size
		return true
	})
	if err != nil || middle != nil {
		return middle, err
	}
	return s.lastKey(lower, upper)
}

// walkSizes calls f for every version until it returns false.
func (s *State) walkSizes(ctx context.Context, lower, upper []byte, f func(key []byte, size int) bool) error {
	it, err := s.eng.NewRangeIter(lower, upper)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok, n := it.First(), 0; ok; ok, n = it.Next(), n+1 {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		prefix, _, versioned := storage.SplitVersion(it.Key())
		if !versioned {
			return corrupt(it.Key(), "unversioned key among the write records")
		}
		value, err := it.Value()
		if err != nil {
			return err
		}
		if !f(userKey(prefix), len(it.Key())+len(value)) {
			return nil
		}
	}
	return it.Error()
}

// lastKey returns the last key of a span that has at least two, or nil.
func (s *State) lastKey(lower, upper []byte) ([]byte, error) {
	it, err := s.eng.NewRangeIter(lower, upper)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.First() {
		return nil, it.Error()
	}
	prefix, _, _ := storage.SplitVersion(it.Key())
	first := bytes.Clone(userKey(prefix))
	if !it.Last() {
		return nil, it.Error()
	}
	prefix, _, _ = storage.SplitVersion(it.Key())
	if bytes.Equal(userKey(prefix), first) {
		return nil, nil
	}
	return bytes.Clone(userKey(prefix)), nil
}
