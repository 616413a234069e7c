package percolator

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
)

// defaultPageRows is the first page of a scan that gives no hint. Each further page is pageGrowth times
// as large.
const (
	defaultPageRows = 64
	pageGrowth      = 4
)

// maxPageBytes ends a page before its rows do.
const maxPageBytes = 1 << 20

// scan is the Iterator of a transaction: pages of the shards, laid over with the write buffer.
//
//	pages   a    c d    f
//	buffer    b  C   E̶  F̶       puts replace and add rows, deletions hide them
//	result  a b  C d
type scan struct {
	t       *Txn
	snap    *snapshot
	req     kv.ScanRequest
	deleted *uint64 // ScanOptions.Deleted

	read slot // in the transaction's read set
	// left is the part of the current span that has not been fetched; drained reports that there is none, and that the
	// queue is empty.
	left    kv.Span
	drained bool
	queue   spanQueue

	rows []kv.KeyValue // the page's rows, and those behind its locks
	i    int           // of the next row
	page *kv.ScanResponse
	// ahead: the scan requests the next page while the rows of one are being returned.
	ahead struct {
		wanted bool
		next   *pageAhead       // nil: none is requested
		spare  *kv.ScanResponse // of rows that have been returned
	}

	buffered *bufferScan // nil when the buffer was empty

	key, value []byte
	err        error
	closed     bool
}

// Scan implements Reader. Writes after it do not show in the iterator (I7).
func (t *Txn) Scan(_ context.Context, span kv.Span, opts ScanOptions) Iterator {
	s := &scan{}
	if len(span.End) > 0 && bytes.Compare(span.Start, span.End) >= 0 {
		return s.init(t, nil, opts)
	}
	s.queue.one[0] = span
	return s.init(t, s.queue.one[:], opts)
}

// ScanSpans implements Reader. Writes after it do not show in the iterator (I7).
func (t *Txn) ScanSpans(_ context.Context, spans []kv.Span, opts ScanOptions) Iterator {
	return new(scan).init(t, spans, opts)
}

// init makes the iterator over spans, which ascend.
func (s *scan) init(t *Txn, spans []kv.Span, opts ScanOptions) *scan {
	s.t, s.snap, s.deleted, s.read = t, t.snap, opts.Deleted, slot{at: -1}
	if t.done {
		s.err = ErrTxnDone
		return s
	}
	first := opts.PageHint
	if first <= 0 {
		first = defaultPageRows
	}
	s.ahead.wanted = opts.ReadAhead
	s.req = kv.ScanRequest{
		Reverse:  opts.Reverse,
		KeysOnly: opts.KeysOnly,
		Limit:    min(first, t.db.opts.MaxPageRows),
		MaxBytes: maxPageBytes,
	}
	if len(spans) == 0 {
		s.drained = true
		return s
	}
	s.left, s.queue.rest = takeSpan(spans, opts.Reverse)
	if t.buf.len() > 0 {
		s.buffered = &bufferScan{}
		s.buffered.init(t.buf, s.left, s.queue.rest, opts.Reverse)
	}
	return s
}

// Next implements Iterator.
func (s *scan) Next(ctx context.Context) bool {
	if s.buffered != nil || s.t.done || s.closed {
		return s.mergedNext(ctx)
	}
	if s.i == len(s.rows) && !s.fetch(ctx) {
		return false
	}
	row := &s.rows[s.i]
	s.i++
	s.key, s.value = row.Key, row.Value
	return true
}

// mergedNext is Next for a scan with a buffer, or at its end.
func (s *scan) mergedNext(ctx context.Context) bool {
	for {
		switch {
		case s.err != nil || s.closed:
			return false
		case s.t.done:
			s.err = ErrTxnDone
			return false
		}
		stored := s.i < len(s.rows) || s.fetch(ctx)
		if s.err != nil {
			return false
		}
		own, err := s.buffered.peek()
		if err != nil {
			s.err = err
			return false
		}
		if own == nil && !stored {
			return false
		}
		if own == nil || stored && s.before(s.rows[s.i].Key, own.key) {
			s.key, s.value = s.rows[s.i].Key, s.rows[s.i].Value
			s.i++
			return true
		}
		if stored && bytes.Equal(s.rows[s.i].Key, own.key) {
			s.i++
		}
		s.buffered.advance()
		if own.leavesValue() {
			s.key, s.value = own.key, own.value
			return true
		}
	}
}

// before reports whether a comes before b in the order of the scan.
func (s *scan) before(a, b []byte) bool {
	if s.req.Reverse {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

// fetch fetches the next page that contains rows. It reports whether there is one.
func (s *scan) fetch(ctx context.Context) bool {
	if s.err != nil {
		return false
	}
	bo := backoff{db: s.t.db}
	for !s.drained {
		err := s.fetchPage(ctx)
		if err == nil {
			if len(s.rows) > 0 {
				return true
			}
			if s.err = ctx.Err(); s.err != nil {
				return false
			}
			continue
		}
		if s.err = s.snap.retryRead(ctx, &bo, err); s.err != nil {
			return false
		}
	}
	return false
}

// fetchPage fetches one page and moves left beyond it.
func (s *scan) fetchPage(ctx context.Context) error {
	s.rows, s.i = nil, 0
	resp, err := s.takeAhead(ctx)
	if err == nil && resp == nil {
		resp, err = s.ask(ctx)
	}
	if err != nil {
		return err
	}
	s.snap.requests.page(resp)
	if s.page != resp {
		s.ahead.spare = s.page // all of its rows have been returned
	}
	s.page, s.rows = resp, resp.Rows
	if s.deleted != nil {
		*s.deleted += resp.Deleted
	}
	if len(resp.Locked) > 0 {
		if s.rows, err = s.readLocked(ctx, resp); err != nil {
			return err
		}
	}
	s.note(resp.ResumeKey)
	s.moveOn(resp.ResumeKey)
	if s.req.Limit < s.t.db.opts.MaxPageRows {
		s.req.Limit = min(pageGrowth*s.req.Limit, s.t.db.opts.MaxPageRows)
	} else if s.ahead.wanted { // Short scans do not get here.
		s.readAhead(ctx)
	}
	return nil
}

// prepare makes the request for the next page.
func (s *scan) prepare(ctx context.Context) (kv.Shard, error) {
	desc, shard, err := s.locate(ctx, s.left)
	if err != nil {
		return nil, err
	}
	s.gather(ctx, desc)
	s.req.ReadOptions = s.snap.readOptions()
	return shard, nil
}

// ask requests the next page.
func (s *scan) ask(ctx context.Context) (*kv.ScanResponse, error) {
	shard, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	s.req.Reuse = s.page // all of its rows have been returned
	s.snap.requests.scan()
	resp, err := shard.Scan(ctx, &s.req)
	if err != nil {
		s.t.db.forgetRoute(err, s.req.Ranges...)
	}
	return resp, err
}

// locate returns the range that contains the end of span at which the scan starts.
func (s *scan) locate(ctx context.Context, span kv.Span) (*kv.RangeDescriptor, kv.Shard, error) {
	if s.req.Reverse {
		return s.t.db.router.LocateEnd(ctx, span.End)
	}
	return s.t.db.router.Locate(ctx, span.Start)
}

// clip returns the part of span that lies in bounds.
func clip(span, bounds kv.Span) kv.Span {
	if bytes.Compare(span.Start, bounds.Start) < 0 {
		span.Start = bounds.Start
	}
	if len(bounds.End) > 0 && (len(span.End) == 0 || bytes.Compare(bounds.End, span.End) < 0) {
		span.End = bounds.End
	}
	return span
}

// readLocked handles the locks of a page and reads only the locked keys; the result is the page as it would have been
// without locks.
func (s *scan) readLocked(ctx context.Context, resp *kv.ScanResponse) ([]kv.KeyValue, error) {
	bo := backoff{db: s.t.db}
	if err := s.snap.passLocks(ctx, &bo, resp.Locked); err != nil {
		return nil, err
	}
	keys := make([][]byte, len(resp.Locked))
	for i := range resp.Locked {
		keys[i] = resp.Locked[i].Key
	}
	slices.SortFunc(keys, bytes.Compare)
	values, err := s.snap.fetch(ctx, keys)
	if err != nil {
		return nil, err
	}
	rows := make([]kv.KeyValue, 0, len(resp.Rows)+len(keys))
	unread := resp.Rows
	for i := range keys {
		at := i
		if s.req.Reverse {
			at = len(keys) - 1 - i
		}
		for len(unread) > 0 && s.before(unread[0].Key, keys[at]) {
			rows = append(rows, unread[0])
			unread = unread[1:]
		}
		if values[at] != nil {
			rows = append(rows, kv.KeyValue{Key: keys[at], Value: values[at]})
		}
	}
	return append(rows, unread...), nil
}

// Key implements Iterator.
func (s *scan) Key() []byte { return s.key }

// Value implements Iterator.
func (s *scan) Value() []byte { return s.value }

// Err implements Iterator.
func (s *scan) Err() error { return s.err }

// Close implements Iterator.
func (s *scan) Close() {
	if s.t.reads != nil && s.key != nil && s.err == nil && (!s.drained || s.i < len(s.rows)) {
		// Rows that were fetched and not returned were not read. After an error they count as read: the page that s.key is in
		// may have been reused.
		s.t.reads.shrink(s.queue.noted, s.read, s.key, s.req.Reverse)
	}
	s.stopAhead()
	s.closed = true
	s.rows, s.page, s.buffered = nil, nil, nil
	s.i = 0
}
