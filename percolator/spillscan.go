package percolator

import (
	"bytes"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator/sortrun"
)

// runScan scans a buffer's runs in one span, in either direction, and finds for each key the newest entry that
// determines what a reader finds.
type runScan struct {
	span       kv.Span
	reverse    bool
	bound      int // entries of the log from here on are not seen
	cursors    []runCursor
	generation int // of the runs

	// current is the current entry, if found; its bytes are the scan's.
	found      bool
	current    bufferEntry
	key, value []byte
	// fromMemory and fromRuns report in which of the buffer's two parts the last peek found the key.
	fromMemory, fromRuns bool
	err                  error
}

// runCursor is one run's part of a scan; ok reports that it has a current record.
type runCursor struct {
	*sortrun.Cursor
	limit int
	ok    bool
}

// newRunScan begins behind the key that the scan has passed last in the span; nil: none.
func newRunScan(s *spilled, span kv.Span, reverse bool, bound int, passed []byte) *runScan {
	r := &runScan{span: span, reverse: reverse, bound: bound, generation: s.generation}
	for i := range s.runs {
		run := &s.runs[i]
		if run.from >= r.bound || !mayHold(run.run, &r.span) {
			continue
		}
		c := runCursor{Cursor: run.run.NewCursor(), limit: min(run.limit, r.bound)}
		switch {
		case r.reverse && passed != nil:
			c.ok = c.SeekLT(passed)
		case r.reverse:
			c.ok = c.SeekLT(r.span.End)
		case passed != nil:
			c.ok = c.SeekGE(append(bytes.Clone(passed), 0))
		default:
			c.ok = c.SeekGE(r.span.Start)
		}
		r.check(&c)
		r.cursors = append(r.cursors, c)
	}
	return r
}

// mayHold reports whether a run's keys and a span overlap.
func mayHold(run *sortrun.Run, span *kv.Span) bool {
	return bytes.Compare(run.Last(), span.Start) >= 0 && (len(span.End) == 0 || bytes.Compare(run.First(), span.End) < 0)
}

// check ends a cursor that has left the span.
func (r *runScan) check(c *runCursor) {
	if !c.ok && c.Err() != nil {
		r.err = c.Err()
	}
	c.ok = c.ok && spanContains(r.span, c.Key())
}

// peek returns the newest entry of the next key that has one, nil at the end.
func (r *runScan) peek() (*bufferEntry, error) {
	for !r.found && r.err == nil {
		next := -1
		for i := range r.cursors {
			if c := &r.cursors[i]; c.ok && (next < 0 || r.before(c.Key(), r.cursors[next].Key())) {
				next = i
			}
		}
		if next < 0 {
			return nil, r.err
		}
		r.collect(r.cursors[next].Key())
	}
	if r.err != nil {
		return nil, r.err
	}
	return &r.current, nil
}

func (r *runScan) before(a, b []byte) bool {
	if r.reverse {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

// collect passes all records of a key, and keeps the newest that decides.
func (r *runScan) collect(key []byte) {
	r.key = append(r.key[:0], key...)
	newest := -1
	for i := range r.cursors {
		c := &r.cursors[i]
		for c.ok && bytes.Equal(c.Key(), r.key) {
			e, err := decodeSpilled(c.Value())
			if err != nil {
				r.err = err
				return
			}
			if e.at < c.limit && e.at > newest && e.decides() {
				newest = e.at
				r.value = append(r.value[:0], e.value...)
				r.current = bufferEntry{key: r.key, change: e.change}
			}
			if r.reverse {
				c.ok = c.Prev()
			} else {
				c.ok = c.Next()
			}
			r.check(c)
		}
	}
	if r.found = newest >= 0; r.found && r.current.leavesValue() {
		r.current.value = r.value
	}
}

// peekMerged is peek for a buffer with a file: entries in memory are newer than those in the file.
func (s *bufferScan) peekMerged() (*bufferEntry, error) {
	if s.runs == nil || s.runs.generation != s.b.spilled.generation {
		s.reopen()
	}
	for {
		var own *bufferEntry
		for s.pos == s.len && !s.done {
			s.fill()
		}
		if s.pos < s.len {
			own = s.b.at(int(s.page[s.pos]))
		}
		old, err := s.runs.peek()
		if err != nil {
			return nil, err
		}
		r := s.runs
		switch {
		case own == nil && old == nil:
			if !s.nextSpan() {
				return nil, nil
			}
			continue
		case own == nil || old != nil && r.before(old.key, own.key):
			r.fromMemory, r.fromRuns = false, true
			return old, nil
		default:
			r.fromMemory, r.fromRuns = true, old != nil && bytes.Equal(old.key, own.key)
			return own, nil
		}
	}
}

// advanceMerged is advance after peekMerged. The entry is unchanged until the next peek.
func (s *bufferScan) advanceMerged() {
	r := s.runs
	key := r.key
	if r.fromMemory {
		key = s.b.at(int(s.page[s.pos])).key
		s.pos++
	}
	s.passedSpace = append(s.passedSpace[:0], key...)
	s.passed = s.passedSpace
	if r.fromRuns {
		r.found = false
	}
	r.fromMemory, r.fromRuns = false, false
}

// reopen continues after entries have moved to the file since the last peek: all that the scan sees are there.
func (s *bufferScan) reopen() {
	s.pos, s.len, s.done = 0, 0, true
	s.runs = newRunScan(s.b.spilled, s.span, s.reverse, s.bound, s.passed)
}
