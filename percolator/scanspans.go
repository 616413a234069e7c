package percolator

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
)

// maxScanSpans bounds the spans of one request, as maxBatchKeys does keys.
const maxScanSpans = 1024

// spanQueue is what a scan has yet to read behind the span it is in, and what its request asks for. A scan of one
// span is that of a list of one.
//
//	spans   ├──┤   ├─────┤  ├────────┤  ├──┤
//	ranges  ──── shard 1 ───────┼─ shard 2 ──
//	asked   ├──┤   ├─────┤  ├───┤                next is the rest of the third, after the fourth
type spanQueue struct {
	rest []kv.Span // in key order, whatever the direction

	asked []kv.Span     // pieces of spans, each within a range; in key order
	refs  []kv.RangeRef // of these ranges

	noted slot // of the first of asked, in the transaction's read set

	next      kv.Span // the rest after the request: a span, or a part of one
	afterNext []kv.Span
	ended     bool // there is none

	// Space for a list of one.
	one      [1]kv.Span
	askedOne [1]kv.Span
	refOne   [1]kv.RangeRef
}

// takeSpan takes the span that comes first in the order of reading off spans.
func takeSpan(spans []kv.Span, reverse bool) (kv.Span, []kv.Span) {
	if n := len(spans) - 1; reverse {
		return spans[n], spans[:n]
	}
	return spans[0], spans[1:]
}

// gather makes the request: as many successive spans as lie on the shard of desc, the range of the first. The last span is
// requested up to the end of its range: a scan that ends early locates no further ranges.
func (s *scan) gather(ctx context.Context, desc *kv.RangeDescriptor) {
	q := &s.queue
	if q.asked == nil {
		q.asked, q.refs = q.askedOne[:], q.refOne[:]
	}
	q.asked, q.refs, q.ended = q.asked[:0], append(q.refs[:0], desc.Ref()), false
	shard := desc.Shard
	span, rest := s.left, q.rest
	for len(q.asked) < maxScanSpans {
		piece := clip(span, desc.Span)
		q.asked = append(q.asked, piece)
		crosses := false
		switch {
		case s.req.Reverse && !bytes.Equal(piece.Start, span.Start):
			span.End, crosses = piece.Start, true
		case !s.req.Reverse && !bytes.Equal(piece.End, span.End):
			span.Start, crosses = piece.End, true
		case len(rest) == 0:
			q.ended = true
		default:
			span, rest = takeSpan(rest, s.req.Reverse)
		}
		if q.ended || crosses && len(rest) == 0 {
			break
		}
		if s.begins(desc, span) {
			continue
		}
		var err error
		if desc, _, err = s.locate(ctx, span); err != nil || desc.Shard != shard {
			break // the next request will return the error
		}
		q.refs = append(q.refs, desc.Ref())
	}
	q.next, q.afterNext = span, rest
	if s.req.Reverse {
		slices.Reverse(q.asked)
	}
	s.req.Spans, s.req.Ranges = q.asked, q.refs
}

// begins reports whether the end of span at which the scan starts lies in the range.
func (s *scan) begins(desc *kv.RangeDescriptor, span kv.Span) bool {
	if s.req.Reverse {
		return bytes.Compare(desc.Span.Start, span.End) < 0 && len(span.End) > 0
	}
	return len(desc.Span.End) == 0 || bytes.Compare(span.Start, desc.Span.End) < 0
}

// moveOn removes a page from left and the queue.
func (s *scan) moveOn(resume []byte) {
	q := &s.queue
	if resume == nil {
		s.left, q.rest, s.drained = q.next, q.afterNext, q.ended
		return
	}
	for s.passed(s.left, resume) && len(q.rest) > 0 {
		s.left, q.rest = takeSpan(q.rest, s.req.Reverse)
	}
	switch {
	case s.passed(s.left, resume):
		s.drained = true
	case s.req.Reverse:
		if len(s.left.End) == 0 || bytes.Compare(resume, s.left.End) < 0 {
			s.left.End = resume
		}
	case bytes.Compare(resume, s.left.Start) > 0:
		s.left.Start = resume
	}
}

// passed reports whether a page that ended at resume has read all of span.
func (s *scan) passed(span kv.Span, resume []byte) bool {
	if s.req.Reverse {
		return bytes.Compare(resume, span.Start) <= 0
	}
	return len(span.End) > 0 && bytes.Compare(resume, span.End) >= 0
}

// note records what the page has read of each span.
func (s *scan) note(resume []byte) {
	if s.t.reads == nil {
		return
	}
	for left, first := s.queue.asked, true; len(left) > 0; first = false {
		var span kv.Span
		span, left = takeSpan(left, s.req.Reverse)
		if resume != nil && !s.passed(span, resume) {
			left = nil
			if s.req.Reverse {
				span.Start = resume
			} else {
				span.End = resume
			}
			if !span.Valid() {
				return
			}
		}
		if s.read = s.t.reads.addSpan(span, s.read); first {
			s.queue.noted = s.read
		}
	}
}
