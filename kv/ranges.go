package kv

import (
	"bytes"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/percodb/percodb/kv/mvcc"
)

// localRange is a range as its store holds it.
type localRange struct {
	desc RangeDescriptor
	// sizeBytes estimates the size of the range's data: the engine's last estimate, plus the bytes written since.
	sizeBytes atomic.Int64
}

// rangeTable is the set of ranges a store owns at one time, in key order. Immutable.
type rangeTable struct {
	sorted []*localRange
}

// compareEnds compares exclusive bounds, of which the empty one is the largest.
func compareEnds(a, b []byte) int { return mvcc.CompareEnds(a, b) }

// find returns the range that holds key, or nil.
func (t *rangeTable) find(key []byte) *localRange {
	if len(t.sorted) == 1 {
		if r := t.sorted[0]; r.desc.Span.Contains(key) {
			return r
		}
		return nil
	}
	i := sort.Search(len(t.sorted), func(i int) bool { return bytes.Compare(t.sorted[i].desc.Span.Start, key) > 0 })
	if i == 0 || !t.sorted[i-1].desc.Span.Contains(key) {
		return nil
	}
	return t.sorted[i-1]
}

// findEnd returns the range that contains the largest key below end, or nil. An empty end means the last range.
func (t *rangeTable) findEnd(end []byte) *localRange {
	n := len(t.sorted)
	if len(end) > 0 {
		n = sort.Search(n, func(i int) bool { return bytes.Compare(t.sorted[i].desc.Span.Start, end) >= 0 })
	}
	if n == 0 || compareEnds(t.sorted[n-1].desc.Span.End, end) < 0 {
		return nil
	}
	return t.sorted[n-1]
}

// with returns a table in which the ranges of remove are replaced by those of add.
func (t *rangeTable) with(remove, add []*localRange) *rangeTable {
	next := &rangeTable{sorted: make([]*localRange, 0, len(t.sorted)+len(add))}
	for _, r := range t.sorted {
		if !slices.Contains(remove, r) {
			next.sorted = append(next.sorted, r)
		}
	}
	next.sorted = append(next.sorted, add...)
	slices.SortFunc(next.sorted, func(a, b *localRange) int {
		return bytes.Compare(a.desc.Span.Start, b.desc.Span.Start)
	})
	return next
}

// stale returns the error for a request that was routed by refs, with the table's current ranges of keys.
func (t *rangeTable) stale(refs []RangeRef, keys ...[]byte) error {
	e := &StaleRangeError{Refs: slices.Clone(refs)}
	for _, key := range keys {
		r := t.find(key)
		if r == nil || slices.ContainsFunc(e.Current, func(d RangeDescriptor) bool { return d.ID == r.desc.ID }) {
			continue
		}
		e.Current = append(e.Current, r.desc)
	}
	return e
}

// checkKey returns the range of key if ref is its current reference.
func (t *rangeTable) checkKey(ref RangeRef, key []byte) (*localRange, error) {
	if r := t.find(key); r != nil && r.desc.ID == ref.ID && r.desc.Epoch == ref.Epoch {
		return r, nil
	}
	return nil, t.stale([]RangeRef{ref}, key)
}

// keyList is the ascending keys of a request, however it holds them.
type keyList interface {
	len() int
	at(i int) []byte
}

// checkKeys verifies that every key lies in a range that refs currently name.
func checkKeys[K keyList](t *rangeTable, refs []RangeRef, keys K) error {
	for i, n := 0, keys.len(); i < n; {
		r := t.find(keys.at(i))
		if r == nil || !slices.Contains(refs, r.desc.Ref()) {
			return t.staleKeys(refs, keys)
		}
		end := r.desc.Span.End
		if len(end) == 0 {
			return nil
		}
		if bytes.Compare(keys.at(n-1), end) < 0 {
			return nil // keys ascend: the others lie in the same range
		}
		i += sort.Search(n-i, func(j int) bool { return bytes.Compare(keys.at(i+j), end) >= 0 })
	}
	return nil
}

// staleKeys is stale for a request with many keys, of which it includes one for each range.
func (t *rangeTable) staleKeys(refs []RangeRef, keys keyList) error {
	var sample [][]byte
	var last *localRange
	for i := range keys.len() {
		if r := t.find(keys.at(i)); r != nil && r != last {
			last = r
			sample = append(sample, keys.at(i))
		}
	}
	return t.stale(refs, sample...)
}

// checkSpans verifies that every span lies in ranges that refs name as they are now.
func checkSpans(t *rangeTable, refs []RangeRef, spans []Span) error {
	for i := range spans {
		for at := spans[i].Start; ; {
			r := t.find(at)
			if r == nil || !slices.Contains(refs, r.desc.Ref()) {
				return t.staleSpan(refs, at, spans[i].End)
			}
			if compareEnds(spans[i].End, r.desc.Span.End) <= 0 {
				break
			}
			at = r.desc.Span.End
		}
	}
	return nil
}

// staleSpan is stale for a span, of whose both ends it tells: a scan in reverse is routed by its end.
func (t *rangeTable) staleSpan(refs []RangeRef, start, end []byte) error {
	e := &StaleRangeError{Refs: slices.Clone(refs)}
	first, last := t.find(start), t.findEnd(end)
	if first != nil {
		e.Current = append(e.Current, first.desc)
	}
	if last != nil && last != first {
		e.Current = append(e.Current, last.desc)
	}
	return e
}
