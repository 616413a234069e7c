package percolator

import (
	"bytes"
	"slices"

	"github.com/percodb/percodb/kv"
)

// bufferScan walks the write buffer in key order, as it was when the scan began.
type bufferScan struct {
	b       *writeBuffer
	span    kv.Span
	rest    []kv.Span // the spans after span, in key order
	reverse bool
	bound   int // entries of the log from here on are not seen
	cuts    int // truncations of the buffer seen so far

	// Of what is in memory:
	page [bufferPage]int32 // positions that determine what a reader finds, in order of the scan
	len  int
	pos  int
	last []byte // the key to go on after when the page is used up; nil: from the beginning
	done bool   // no entries follow this page

	runs *runScan // the entries in the buffer's file; nil: none
	// passed is the key that the scan has passed last in the span, nil if none.
	passed, passedSpace []byte
}

const bufferPage = 32

func spanContains(span kv.Span, key []byte) bool {
	return bytes.Compare(key, span.Start) >= 0 && (len(span.End) == 0 || bytes.Compare(key, span.End) < 0)
}

// init begins a scan of span and then of rest; the buffer must not be empty.
func (s *bufferScan) init(b *writeBuffer, span kv.Span, rest []kv.Span, reverse bool) {
	s.b, s.span, s.rest, s.reverse = b, span, rest, reverse
	_ = b.settle() // peek returns the error
	s.cuts = len(b.truncations)
	s.bound = b.freeze()
	s.begin()
}

// begin fetches the first page of a span.
func (s *bufferScan) begin() {
	if s.b.spilled != nil {
		s.runs = newRunScan(s.b.spilled, s.span, s.reverse, s.bound, nil)
	}
	if s.inMemory() <= smallLog && s.b.n <= smallLog {
		s.fillSmall()
		return
	}
	s.fill()
}

// inMemory is the position in memory from which on entries are not seen.
func (s *bufferScan) inMemory() int { return max(0, min(s.bound-s.b.base, s.b.n)) }

// nextSpan advances to the next span and reports whether there is one.
func (s *bufferScan) nextSpan() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.span, s.rest = takeSpan(s.rest, s.reverse)
	s.pos, s.len, s.last, s.passed = 0, 0, nil, nil
	s.begin()
	return true
}

// peek returns the current entry, or nil at the end. It is valid until the next peek.
func (s *bufferScan) peek() (*bufferEntry, error) {
	for ; s.cuts < len(s.b.truncations); s.cuts++ {
		if s.b.truncations[s.cuts] < s.bound {
			return nil, ErrIteratorInvalid
		}
	}
	if s.b.spilled != nil {
		if err := s.b.spilled.failure(s.bound); err != nil {
			return nil, err
		}
		return s.peekMerged()
	}
	for s.pos == s.len {
		switch {
		case !s.done:
			s.fill()
		case !s.nextSpan():
			return nil, nil
		}
	}
	return s.b.at(int(s.page[s.pos])), nil
}

// advance moves behind the entry that peek returned.
func (s *bufferScan) advance() {
	if s.runs != nil {
		s.advanceMerged()
		return
	}
	s.passed = s.b.at(int(s.page[s.pos])).key
	s.pos++
}

// fillSmall collects all there is from a log without an index, which then need not exist.
func (s *bufferScan) fillSmall() {
	s.done = true
	for i := s.inMemory() - 1; i >= 0; i-- {
		e := &s.b.first[i]
		if !e.decides() || !spanContains(s.span, e.key) {
			continue
		}
		at, found := slices.BinarySearchFunc(s.page[:s.len], e.key, func(p int32, key []byte) int {
			if c := bytes.Compare(s.b.first[p].key, key); !s.reverse {
				return c
			} else {
				return -c
			}
		})
		if found { // a newer entry of the key is there
			continue
		}
		copy(s.page[at+1:s.len+1], s.page[at:s.len])
		s.page[at] = int32(i)
		s.len++
	}
}

// fill fetches the next page from the index.
func (s *bufferScan) fill() {
	s.b.syncIndex()
	s.pos, s.len = 0, 0
	s.done = true // unless the page overflows
	visit := func(i int32) bool {
		key := s.b.at(int(i)).key
		if s.last != nil && bytes.Equal(key, s.last) || s.reverse && len(s.span.End) > 0 && bytes.Equal(key, s.span.End) {
			return true
		}
		if !spanContains(s.span, key) {
			return false
		}
		if s.len == len(s.page) {
			s.done = false
			return false
		}
		s.last = key
		if d := s.b.deciding(int(i), s.inMemory()); d >= 0 {
			s.page[s.len] = int32(d)
			s.len++
		}
		return true
	}
	from := s.last
	switch {
	case !s.reverse:
		if from == nil {
			from = s.span.Start
		}
		s.b.probe = from
		s.b.index.AscendGreaterOrEqual(probePos, visit)
	case from == nil && len(s.span.End) == 0:
		s.b.index.Descend(visit)
	default:
		if from == nil {
			from = s.span.End
		}
		s.b.probe = from
		s.b.index.DescendLessOrEqual(probePos, visit)
	}
}
