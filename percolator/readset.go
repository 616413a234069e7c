package percolator

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"

	"github.com/percodb/percodb/kv"
)

// readSet records what a transaction has read, to verify later that reading at a later timestamp would have returned the
// same. It records the keys and spans read, not the results: a missing key, an empty span and the gaps between rows are
// reads too.
//
//	spans   [a] [c,g) [k] │ [m,p) [q]
//	                    mark: the current statement's from here
//
// Keys are copied into chunks of memory. A span that touches the one before it is added to it. When the list is full its
// overlaps are merged, and if that does not suffice, spans that lie close together are merged including the gap between
// them: this may cause additional conflicts, but misses none. Not safe for concurrent use.
type readSet struct {
	limit int
	spans []kv.Span
	mark  int
	// generation changes when spans move, so that the slots that scans hold become invalid.
	generation int
	chunk      []byte

	// Space for the reads of a small transaction.
	spanSpace  [4]kv.Span
	chunkSpace [192]byte
}

func (r *readSet) init(limit int) {
	r.limit, r.spans, r.chunk = limit, r.spanSpace[:0], r.chunkSpace[:0]
}

// slot identifies a span that a scan extends as it continues.
type slot struct{ at, generation int }

const (
	firstReadChunk = 256
	mostReadChunk  = 16 << 10
)

// beginStatement marks where a statement's reads begin.
func (r *readSet) beginStatement() { r.mark = len(r.spans) }

// forgetStatement drops the reads since beginStatement, since they will be repeated.
func (r *readSet) forgetStatement() {
	clear(r.spans[r.mark:])
	r.spans = r.spans[:r.mark]
	r.generation++
}

// copyKey returns a copy of key, followed by a zero byte beyond its length.
func (r *readSet) copyKey(key []byte) []byte {
	need := len(key) + 1
	if cap(r.chunk)-len(r.chunk) < need {
		size := min(max(2*cap(r.chunk), firstReadChunk), mostReadChunk)
		r.chunk = make([]byte, 0, max(size, need))
	}
	n := len(r.chunk)
	r.chunk = append(append(r.chunk, key...), 0)
	return r.chunk[n : n+len(key) : n+need]
}

// addPoint records that key was read.
func (r *readSet) addPoint(key []byte) {
	// A wider span that holds the key will not do: it may belong to a scan that gives part of it back.
	if n := len(r.spans); n > r.mark && len(r.spans[n-1].End) == len(key)+1 && bytes.Equal(r.spans[n-1].Start, key) {
		return
	}
	c := r.copyKey(key)
	r.push(kv.Span{Start: c, End: c[:len(c)+1]})
}

// addSpan records that span was read. prev is the slot of the same scan's last page; the result is the slot of this one.
func (r *readSet) addSpan(span kv.Span, prev slot) slot {
	if prev.generation == r.generation && prev.at >= 0 {
		s := &r.spans[prev.at]
		switch {
		case len(s.End) > 0 && bytes.Equal(s.End, span.Start):
			s.End = r.copyEnd(span.End)
			return prev
		case bytes.Equal(s.Start, span.End) && len(span.End) > 0:
			s.Start = r.copyKey(span.Start)
			return prev
		}
	}
	r.push(kv.Span{Start: r.copyKey(span.Start), End: r.copyEnd(span.End)})
	return slot{at: len(r.spans) - 1, generation: r.generation}
}

func (r *readSet) copyEnd(end []byte) []byte {
	if len(end) == 0 {
		return nil
	}
	return r.copyKey(end)
}

// shrink removes what a scan has not returned: everything beyond last, in its direction. The slots of its last page are
// those from first to at: those beyond the one that contains last are removed, unless something else has been read since.
func (r *readSet) shrink(first, at slot, last []byte, reverse bool) {
	if at.at < 0 || first.generation != at.generation || at.generation != r.generation {
		return
	}
	for i := max(first.at, 0); i <= at.at; i++ {
		s := &r.spans[i]
		if !spanContains(*s, last) {
			continue
		}
		if reverse {
			s.Start = r.copyKey(last)
		} else {
			c := r.copyKey(last)
			s.End = c[:len(c)+1]
		}
		if at.at == len(r.spans)-1 {
			clear(r.spans[i+1:])
			r.spans = r.spans[:i+1]
			r.mark = min(r.mark, i+1)
		}
		return
	}
}

func (r *readSet) push(span kv.Span) {
	if len(r.spans) >= r.limit {
		r.compact()
	}
	r.spans = append(r.spans, span)
}

// compact frees space for many more spans, separately on each side of the mark.
func (r *readSet) compact() {
	r.generation++
	older := merged(r.spans[:r.mark])
	newer := merged(r.spans[r.mark:])
	if len(older)+len(newer) > r.limit*7/8 {
		older, newer = coalesced(older), coalesced(newer)
	}
	n := copy(r.spans[len(older):], newer)
	r.mark = len(older)
	clear(r.spans[r.mark+n:])
	r.spans = r.spans[:r.mark+n]
}

// merged sorts spans and merges those that overlap or touch, in place.
func merged(spans []kv.Span) []kv.Span {
	slices.SortFunc(spans, func(a, b kv.Span) int { return bytes.Compare(a.Start, b.Start) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if len(last.End) == 0 || bytes.Compare(s.Start, last.End) <= 0 {
				if len(last.End) > 0 && (len(s.End) == 0 || bytes.Compare(s.End, last.End) > 0) {
					last.End = s.End
				}
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// coalesced makes half as many out of ascending spans without overlaps, in place, by closing the
// narrowest gaps.
func coalesced(spans []kv.Span) []kv.Span {
	if len(spans) < 2 {
		return spans
	}
	type gap struct{ at, width int }
	gaps := make([]gap, len(spans)-1)
	for i := range gaps {
		gaps[i] = gap{i, gapWidth(spans[i].End, spans[i+1].Start)}
	}
	slices.SortFunc(gaps, func(a, b gap) int {
		// Of gaps of one width every other one goes, so that keys at equal distances become pairs.
		return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.at%2, b.at%2), cmp.Compare(a.at, b.at))
	})
	closed := make([]bool, len(spans))
	for _, g := range gaps[:len(spans)/2] {
		closed[g.at] = true
	}
	out := spans[:1]
	for i := 1; i < len(spans); i++ {
		if last := &out[len(out)-1]; closed[i-1] {
			last.End = spans[i].End
		} else {
			out = append(out, spans[i])
		}
	}
	return out
}

// gapWidth is the logarithm of the distance from a to b, which is above: keys taken for binary
// fractions, the position of the highest bit of their difference, counted down from 0.
func gapWidth(a, b []byte) int {
	common := 0
	for common < len(a) && common < len(b) && a[common] == b[common] {
		common++
	}
	return -8*common - bits.LeadingZeros64(headOf(b[common:])-headOf(a[common:]))
}

// list returns the spans in key order, without overlaps. It belongs to the caller.
func (r *readSet) list() []kv.Span { return merged(slices.Clone(r.spans)) }
