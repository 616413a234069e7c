package percolator

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// One request counts countPages times the rows of a scan's largest page, and passes visitPages times as many to a function.
const (
	countPages = 8
	visitPages = 4
)

// Walk is what Reader.Walk does with the pairs.
type Walk struct {
	KeysOnly bool
	// Pair is called with every pair; key and value are valid until it returns. It must not read; it may write, which the walk does not
	// show. Pairs of keys that are locked come out of order. Nil: the pairs are only counted.
	Pair func(key, value []byte) error
	// Rest, if given, is called between two pages with what is left of the span at hand. The walk goes on with the span that it
	// returns: the same, or a first part of it, which may be empty.
	Rest func(rest kv.Span) kv.Span
	// PageRows is how many pairs a page has at most; 0: as many as make a walk cheap.
	PageRows int
	// Stop, if given, is called between two pages, when all pairs before what is left have been passed, and ends the walk by true.
	Stop func() bool
}

// Walk implements Reader. A shard in this process calls w.Pair while it reads; others return pages.
func (t *Txn) Walk(ctx context.Context, spans []kv.Span, w Walk) (int64, error) {
	if len(spans) == 1 && !spans[0].Valid() {
		return 0, nil
	}
	walk := walker{w: w}
	walk.init(t, spans, ScanOptions{KeysOnly: w.KeysOnly, PageHint: t.db.opts.MaxPageRows})
	defer walk.Close()
	if walk.buffered != nil {
		return walk.iterate(ctx)
	}
	if w.Pair == nil {
		walk.req.Limit *= countPages
	} else {
		walk.req.Limit *= visitPages
	}
	if w.PageRows > 0 {
		walk.req.Limit = w.PageRows
	}
	walk.visit.Pair = w.Pair
	walk.req.Visit = &walk.visit
	return walk.n, walk.pages(ctx)
}

// walker is a scan whose pairs are passed to a Walk.
type walker struct {
	scan
	w     Walk
	n     int64
	visit mvcc.Visit // of the page at hand
}

// iterate walks over the iterator, which lays the transaction's writes over the pages.
func (s *walker) iterate(ctx context.Context) (int64, error) {
	for s.Next(ctx) {
		s.n++
		if s.w.Pair != nil {
			if err := s.w.Pair(s.key, s.value); err != nil {
				return s.n, err
			}
		}
		if s.w.Stop != nil && s.n%int64(max(s.w.PageRows, 1)) == 0 && s.w.Stop() {
			break
		}
	}
	return s.n, s.err
}

// pages walks over all pages.
func (s *walker) pages(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	bo := backoff{db: s.t.db}
	for !s.drained {
		s.visit.Passed = false
		err := s.fetchPage(ctx)
		if s.visit.Failed != nil {
			return s.visit.Failed
		}
		if err != nil && !s.visit.Passed { // Pairs that have been passed cannot be taken back.
			if err = s.snap.retryRead(ctx, &bo, err); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := s.passRows(ctx); err != nil {
			return err
		}
		if s.w.Stop != nil && !s.drained && s.w.Stop() {
			return nil
		}
		if s.w.Rest != nil && !s.drained {
			s.left = s.w.Rest(s.left)
			s.skipEmpty()
		}
	}
	return nil
}

// passRows passes the rows that the shard has not: all of another process, or the locked ones.
func (s *walker) passRows(ctx context.Context) error {
	s.n += int64(len(s.rows) + s.page.Count)
	if s.w.Pair != nil {
		for i := range s.rows {
			if err := s.w.Pair(s.rows[i].Key, s.rows[i].Value); err != nil {
				return err
			}
		}
	}
	s.i = len(s.rows)
	return ctx.Err()
}

// skipEmpty moves on to the next span if nothing is left of the present one.
func (s *walker) skipEmpty() {
	if s.left.Valid() {
		return
	}
	if s.drained = len(s.queue.rest) == 0; !s.drained {
		s.left, s.queue.rest = takeSpan(s.queue.rest, false)
	}
}

// Beside implements Reader.
func (t *Txn) Beside() Reader {
	if t.done || t.buf.len() > 0 || t.reads != nil {
		return nil
	}
	beside := &Txn{db: t.db, startTS: t.startTS, opts: TxnOptions{ReadOnly: true}}
	beside.firstSnap = snapshot{db: t.db, readTS: t.snap.readTS, bypass: slices.Clone(t.snap.bypass), resolved: slices.Clone(t.snap.resolved), requests: t.snap.requests}
	beside.snap = &beside.firstSnap
	return beside
}

// MiddleOf returns a key that divides span, or nil. It lies in the middle if the keys are spread evenly: halving again and again comes
// near the middle of any others.
func MiddleOf(span kv.Span) []byte {
	n := 0
	for n < len(span.Start) && n < len(span.End) && span.Start[n] == span.End[n] {
		n++
	}
	low, high := eightBytes(span.Start[n:]), eightBytes(span.End[n:])
	if len(span.End) == 0 {
		high = ^uint64(0)
	}
	middle := low + (high-low)/2
	if high <= low || middle == low {
		return nil
	}
	key := append(make([]byte, 0, n+8), span.Start[:n]...)
	for shift := 56; shift >= 0; shift -= 8 {
		key = append(key, byte(middle>>shift))
	}
	if bytes.Compare(key, span.Start) <= 0 || len(span.End) > 0 && bytes.Compare(key, span.End) >= 0 {
		return nil
	}
	return key
}

func eightBytes(b []byte) (v uint64) {
	for i := range 8 {
		v <<= 8
		if i < len(b) {
			v |= uint64(b[i])
		}
	}
	return v
}
