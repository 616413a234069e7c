package bigtable

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/tso"
)

// readahead reads the neighbours of rows that are read one after the other, in the order of their keys, at one snapshot: a loop that selects row
// after row in a REPEATABLE READ block or a STABLE function. It works as that of operating systems does. The third read of an index in one
// direction asks for one row more; if that is what is read next, the next request asks for twice as many, up to mostAhead; if less than
// half of what came ahead was read, the stream is left alone.
//
// What was read at a snapshot after it was fetched is final for that snapshot: whoever writes a lock later fetches its commit_ts later still (I2). So rows
// are kept for readers of exactly that snapshot, whoever they are, with the absence of rows between them. Rows with a lock in the way, and
// values that newer data hides, are not kept.
//
// Memory is bounded by the number of streams and aheadBytes. Rows read in vain are bounded too: each needs credit, which hits earn.
type readahead struct {
	mu      sync.Mutex
	streams [aheadStreams]stream
	credit  float64
	earned  time.Time

	prefixLen func(key []byte) int // ShardOptions.PrefixLen
}

const (
	aheadStreams = 64
	aheadAfter   = 2 // steps in one direction
	mostAhead    = 16
	aheadBytes   = 64 << 10
	aheadLife    = 5 * time.Second // of rows that nobody reads
	// Credit is rows. It begins at aheadCredit, is at most that, and grows by one a second and with each hit.
	aheadCredit = 64
)

// stream is the reads of one index at one snapshot. Two streams that share a place replace each other.
type stream struct {
	ts    tso.Timestamp
	last  []byte
	steps int // in one direction; negative: descending
	off   bool
	busy  bool // a request is under way, and sets what follows
	// Rows that were read ahead: all that the snapshot shows in [from, to).
	from, to []byte
	rows     []aheadRow
	ahead    int // of rows, those that nobody had asked for
	hits     int // of ahead, those that somebody has asked for since
	next     int // rows of the next request
	readAt   time.Time
}

// aheadRow is a row that was read ahead.
type aheadRow struct {
	key, value []byte // value nil: absent
	unknown    bool   // it must be read by itself
	asked      bool   // not ahead: it was asked for
}

// aheadRequest is a request for a row with its neighbours.
type aheadRequest struct {
	s       *stream
	ts      tso.Timestamp
	key     []byte
	span    kv.Span
	rows    int
	reverse bool
}

func (a *readahead) stream(ts tso.Timestamp, prefix []byte) *stream {
	h := fnv.New64a()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(ts))
	_, _ = h.Write(b[:]) // It does not fail.
	_, _ = h.Write(prefix)
	return &a.streams[h.Sum64()%aheadStreams]
}

// get returns the value of a row that was read ahead, or else how the row is to be read: with its neighbours, or by itself (nil).
func (a *readahead) get(ts tso.Timestamp, key []byte) (value []byte, found bool, req *aheadRequest) {
	if a.prefixLen == nil {
		return nil, false, nil
	}
	prefix := key[:a.prefixLen(key)]
	if len(prefix) < 2 {
		return nil, false, nil // It is no key of an index.
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stream(ts, prefix)
	if s.ts != ts || !bytes.HasPrefix(s.last, prefix) {
		*s = stream{ts: ts, last: append(s.last[:0], key...)}
		return nil, false, nil
	}
	s.step(key)
	if s.off || s.busy {
		return nil, false, nil
	}
	if s.to != nil {
		if bytes.Compare(key, s.from) >= 0 && bytes.Compare(key, s.to) < 0 && time.Since(s.readAt) < aheadLife {
			return a.hit(s, key)
		}
		s.off = 2*s.hits < s.ahead
		if s.ahead > 0 {
			s.next = min(2*s.next, mostAhead)
		}
		s.forget()
	}
	s.next = max(s.next, 2)
	if s.off || max(s.steps, -s.steps) < aheadAfter || a.left() < float64(s.next) {
		return nil, false, nil
	}
	end := prefixEnd(prefix)
	if end == nil {
		return nil, false, nil
	}
	req = &aheadRequest{s: s, ts: ts, key: key, rows: s.next, reverse: s.steps < 0, span: kv.Span{Start: key, End: end}}
	if req.reverse {
		req.span = kv.Span{Start: prefix, End: append(bytes.Clone(key), 0)}
	}
	a.credit -= float64(s.next - 1)
	s.busy = true
	return nil, false, req
}

// step notes a read.
func (s *stream) step(key []byte) {
	switch order := bytes.Compare(key, s.last); {
	case order > 0:
		s.steps = max(s.steps, 0) + 1
	case order < 0:
		s.steps = min(s.steps, 0) - 1
	}
	s.last = append(s.last[:0], key...)
}

// forget drops the rows of a stream.
func (s *stream) forget() { s.from, s.to, s.rows, s.ahead, s.hits = nil, nil, nil, 0, 0 }

// hit returns a row that was read ahead. The caller holds mu.
func (a *readahead) hit(s *stream, key []byte) (value []byte, found bool, _ *aheadRequest) {
	at, is := slices.BinarySearchFunc(s.rows, key, func(r aheadRow, key []byte) int { return bytes.Compare(r.key, key) })
	if !is {
		return nil, true, nil
	}
	if s.rows[at].unknown {
		return nil, false, nil
	}
	if !s.rows[at].asked {
		s.rows[at].asked = true
		s.hits++
		a.credit = min(a.credit+2, aheadCredit) // what it took, and one more
	}
	return bytes.Clone(s.rows[at].value), true, nil
}

// left returns the credit. The caller holds mu.
func (a *readahead) left() float64 {
	now := time.Now()
	if a.earned.IsZero() {
		a.credit = aheadCredit
	} else {
		a.credit = min(a.credit+now.Sub(a.earned).Seconds(), aheadCredit)
	}
	a.earned = now
	return a.credit
}

// keep keeps the answer to a request; nil: it failed.
func (a *readahead) keep(req *aheadRequest, covered *kv.Span, rows []aheadRow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ahead := len(rows)
	for i := range rows {
		if rows[i].asked = bytes.Equal(rows[i].key, req.key); rows[i].asked {
			ahead--
		}
	}
	a.credit += float64(req.rows - 1 - ahead)
	s := req.s
	if s.ts != req.ts || !s.busy {
		return // Another stream has its place.
	}
	s.busy = false
	if covered == nil {
		s.off = true
		return
	}
	s.from, s.to, s.rows, s.ahead, s.readAt = bytes.Clone(covered.Start), covered.End, rows, ahead, time.Now()
}

// aheadPatience is how long a read waits for the neighbours when its own row is there.
const aheadPatience = 100 * time.Millisecond

// readAhead reads a row with its neighbours, and returns its record. Neighbours that are late, or whose reading fails, are left out.
func (s *Shard) readAhead(ctx context.Context, req *aheadRequest) (*record, error) {
	var own *record
	var failed error
	p := aheadPage{req: req}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	var patience *time.Timer
	err := s.c.readRows(reading, rowRanges([]kv.Span{req.span}), aheadFilter(req.ts), widerow.ReadOptions{Limit: int64(req.rows), Reverse: req.reverse}, func(row widerow.Row) bool {
		r, err := parse(row)
		if err != nil {
			failed = err
			return false
		}
		if patience == nil { // It is the read's own row, or one behind it.
			patience = time.AfterFunc(aheadPatience, cancel)
		}
		r.dropNewer(req.ts)
		if bytes.Equal(r.key, req.key) {
			own = r
		}
		return p.add(r)
	})
	if patience != nil {
		patience.Stop()
	}
	if err == nil {
		err = failed
	}
	if err != nil {
		s.ahead.keep(req, nil, nil)
		if len(p.rows) > 0 && ctx.Err() == nil {
			err = nil
		}
		return own, err
	}
	ahead := len(p.rows)
	if own != nil {
		ahead--
	}
	s.limit.take(ahead)
	s.c.metrics.rowsAhead.Add(float64(ahead))
	covered := p.covered()
	if req.reverse {
		slices.Reverse(p.rows)
	}
	s.ahead.keep(req, &covered, p.rows)
	return own, nil
}

// aheadFilter is visibleAt, and returns something of every row, also of one that the snapshot does not show: the limit of the request then bounds the rows
// that Bigtable looks at. An index may have any number of rows that are newer than the snapshot.
func aheadFilter(ts tso.Timestamp) widerow.Filter {
	first := func(f widerow.Filter) widerow.Filter { return widerow.ChainFilters(f, widerow.FirstOfRowFilter()) }
	return widerow.InterleaveFilters(visibleAt(ts, true), first(newerWrites(ts)), first(wholeFamily(familyStatus)), first(wholeFamily(familyNotify)))
}

// dropNewer drops versions above ts.
func (r *record) dropNewer(ts tso.Timestamp) {
	r.versions = slices.DeleteFunc(r.versions, func(v version) bool { return v.commitTS > ts })
}

// aheadPage is the rows that a request has read.
type aheadPage struct {
	req  *aheadRequest
	rows []aheadRow
	size int
	more bool // rows of the span may follow the last
}

// add takes a row, and reports whether more are to be read. Values that exceed aheadBytes are not kept.
func (p *aheadPage) add(r *record) bool {
	v, err := see(r, &kv.ReadOptions{ReadTS: p.req.ts})
	row := aheadRow{key: r.key, value: v.value, unknown: err != nil || v.locked != nil || v.found && v.value == nil}
	p.size += len(r.key)
	for _, d := range r.data {
		p.size += len(d.value)
	}
	if p.size > aheadBytes {
		row.value, row.unknown = nil, true
	}
	p.rows = append(p.rows, row)
	p.more = len(p.rows) == p.req.rows || p.size >= aheadBytes
	return !p.more
}

// covered is the part of the span that was read.
func (p *aheadPage) covered() kv.Span {
	covered := p.req.span
	switch {
	case p.more && p.req.reverse:
		covered.Start = p.rows[len(p.rows)-1].key
	case p.more:
		covered.End = append(bytes.Clone(p.rows[len(p.rows)-1].key), 0)
	}
	return covered
}

// prefixEnd is the end of the keys that begin with prefix, nil if there is none.
func prefixEnd(prefix []byte) []byte {
	end := bytes.TrimRight(prefix, "\xff")
	if len(end) == 0 {
		return nil
	}
	end = bytes.Clone(end)
	end[len(end)-1]++
	return end
}
