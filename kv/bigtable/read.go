package bigtable

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// visible is what a snapshot shows of a row.
type visible struct {
	locked  *mvcc.KeyLockedError
	deleted bool
	// found: the row has a value, which the transaction startTS has written. value is nil if the row was read without it.
	found   bool
	startTS tso.Timestamp
	value   []byte
}

// see decides what a snapshot shows of a row that was read by visibleAt.
func see(r *record, o *kv.ReadOptions) (visible, error) {
	if r == nil {
		return visible{}, nil
	}
	if r.fence >= o.ReadTS && r.fence != 0 {
		return visible{}, &mvcc.TooOldError{TS: o.ReadTS, SafePoint: r.fence}
	}
	for i := range r.locks {
		l := &r.locks[i].lock
		switch mvcc.DecideRead(r.key, l, o) {
		case mvcc.ReadLocked:
			return visible{locked: &mvcc.KeyLockedError{Key: r.key, Lock: *l}}, nil
		case mvcc.ReadThrough:
			return r.written(l.Op, l.StartTS), nil
		}
	}
	if len(r.versions) == 0 {
		return visible{}, nil
	}
	return r.written(r.versions[0].op, r.versions[0].startTS), nil
}

// written is the effect of a transaction's write.
func (r *record) written(op mvcc.Op, startTS tso.Timestamp) visible {
	if op == mvcc.OpDelete {
		return visible{deleted: true}
	}
	v := visible{found: true, startTS: startTS}
	for i := range r.data {
		if r.data[i].startTS == startTS {
			v.value = r.data[i].value
			if v.value == nil {
				v.value = []byte{}
			}
		}
	}
	return v
}

// readable begins a read of rows, as far as they are known, at ts.
func (s *Shard) readable(ctx context.Context, ts tso.Timestamp, rows int) error {
	if err := s.limit.wait(ctx, rows); err != nil {
		return err
	}
	if ts == tso.MaxTimestamp {
		return &mvcc.InvalidRequestError{Detail: "read without a timestamp"}
	}
	if err := s.issued.check(ctx, ts); err != nil {
		return err
	}
	return s.checkSafePoint(ts)
}

// Get implements kv.Shard. It is one request, which others may share, or which also reads what is likely to be read next, or none, if the row was read
// ahead, and a second one if newer data, of a transaction that has not committed at or
// below the snapshot, hides the value.
func (s *Shard) Get(ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	if err := s.admit(ref); err != nil {
		return nil, err
	}
	if err := s.readable(ctx, opts.ReadTS, 1); err != nil {
		return nil, err
	}
	value, found, req := s.ahead.get(opts.ReadTS, key)
	if found {
		s.c.metrics.aheadHits.Inc()
		return value, nil
	}
	var p *pointRead
	var err error
	if req != nil {
		p = &pointRead{shared: true} // with those who will read what is kept
		p.record, err = s.readAhead(ctx, req)
	} else {
		p, err = s.readPoint(ctx, key, opts.ReadTS)
	}
	if err != nil {
		return nil, err
	}
	v, err := see(p.record, &opts)
	switch {
	case err != nil:
		return nil, err
	case v.locked != nil:
		return nil, v.locked
	case v.found && v.value == nil:
		values, err := s.hidden(ctx, opts.ReadTS, []hiddenValue{{key, v.startTS}})
		return values[0], err
	case p.shared:
		return bytes.Clone(v.value), nil
	}
	return v.value, nil
}

// hiddenValue is a value that a read did not return because newer data lies before it.
type hiddenValue struct {
	key     []byte
	startTS tso.Timestamp
}

// hiddenAtOnce is how many hidden values one request reads: its filter names each, since the versions beside them may be many and large.
const hiddenAtOnce = 64

// hidden reads such values, of ascending keys, for a read at ts.
func (s *Shard) hidden(ctx context.Context, ts tso.Timestamp, of []hiddenValue) ([][]byte, error) {
	values := make([][]byte, 0, len(of))
	for some := range slices.Chunk(of, hiddenAtOnce) {
		keys, written := make([][]byte, len(some)), make([]tso.Timestamp, len(some))
		for i := range some {
			keys[i], written[i] = some[i].key, some[i].startTS
		}
		rows, err := s.readKeys(ctx, keys, dataOf(written))
		if err != nil {
			return values[:len(of)], err
		}
		for i, r := range rows {
			var value []byte
			if r != nil {
				value = r.written(mvcc.OpPut, some[i].startTS).value
			}
			if value == nil {
				return values[:len(of)], s.missingData(ctx, ts, some[i].key)
			}
			values = append(values, value)
		}
	}
	return values, nil
}

// missingData is the error of a version without data: it was collected after the version was read, which a snapshot above the safe point excludes, or was
// never there.
func (s *Shard) missingData(ctx context.Context, ts tso.Timestamp, key []byte) error {
	if err := s.refreshFence(ctx); err != nil {
		return err
	}
	if err := s.checkSafePoint(ts); err != nil {
		return err
	}
	return &mvcc.CorruptionError{Key: key, Detail: "a version has no data"}
}

// BatchGet implements kv.Shard.
func (s *Shard) BatchGet(ctx context.Context, req *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	if err := s.admit(req.Ranges...); err != nil {
		return nil, err
	}
	if err := s.readable(ctx, req.ReadTS, len(req.Keys)); err != nil {
		return nil, err
	}
	rows, err := s.readKeys(ctx, req.Keys, visibleAt(req.ReadTS, true))
	if err != nil {
		return nil, err
	}
	res := &kv.BatchGetResponse{Values: make([][]byte, len(req.Keys))}
	var missing []hiddenValue
	var at []int
	for i, r := range rows {
		v, err := see(r, &req.ReadOptions)
		switch {
		case err != nil:
			return nil, err
		case v.locked != nil:
			res.Locked = append(res.Locked, *v.locked)
		case v.found && v.value == nil:
			missing, at = append(missing, hiddenValue{req.Keys[i], v.startTS}), append(at, i)
		default:
			res.Values[i] = v.value
		}
	}
	if len(missing) == 0 {
		return res, nil
	}
	values, err := s.hidden(ctx, req.ReadTS, missing)
	for i, value := range values {
		res.Values[at[i]] = value
	}
	return res, err
}

// defaultPageBytes bounds the values of a page.
const defaultPageBytes = 1 << 20

// Scan implements kv.Shard. A page is one request, and a second one for hidden values. Rows that the snapshot does not show
// are not sent, except deleted ones.
func (s *Shard) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return nil, err
	}
	if err := s.readable(ctx, req.ReadTS, 1); err != nil {
		return nil, err
	}
	p := &pageBuilder{req: req, page: &kv.ScanResponse{}}
	opts := widerow.ReadOptions{Limit: int64(req.Limit), Reverse: req.Reverse}
	err := s.c.readRows(ctx, rowRanges(req.Spans), visibleAt(req.ReadTS, !req.KeysOnly), opts, p.add)
	if err == nil {
		err = p.err
	}
	if err != nil {
		return nil, err
	}
	s.limit.take(p.rows - 1) // The next request waits for them.
	if err := p.fillHidden(ctx, s); err != nil {
		return nil, err
	}
	return p.page, nil
}

// rowRanges are the rows of spans.
func rowRanges(spans []kv.Span) widerow.RowRangeList {
	ranges := make(widerow.RowRangeList, len(spans))
	for i, s := range spans {
		ranges[i] = widerow.NewClosedOpenRange(rowKey(s.Start), endRow(s.End))
	}
	return ranges
}

// pageBuilder makes a page of the rows of a scan.
type pageBuilder struct {
	req     *kv.ScanRequest
	page    *kv.ScanResponse
	rows    int // that were sent
	bytes   int
	missing []hiddenValue
	at      []int // their places in the page
	err     error
}

// add takes a row, and reports whether the page has room for more.
func (p *pageBuilder) add(row widerow.Row) bool {
	r, err := parse(row)
	if err != nil {
		p.err = err
		return false
	}
	v, err := see(r, &p.req.ReadOptions)
	if err != nil {
		p.err = err
		return false
	}
	switch {
	case v.locked != nil:
		p.page.Locked = append(p.page.Locked, *v.locked)
	case v.deleted:
		p.page.Deleted++
	case v.found:
		if v.value == nil && !p.req.KeysOnly {
			p.missing, p.at = append(p.missing, hiddenValue{r.key, v.startTS}), append(p.at, len(p.page.Rows))
		}
		p.page.Rows = append(p.page.Rows, kv.KeyValue{Key: r.key, Value: v.value})
		p.bytes += len(r.key) + len(v.value)
	}
	if p.rows++; p.rows < p.req.Limit && p.bytes < p.maxBytes() {
		return true
	}
	p.page.ResumeKey = r.key
	if !p.req.Reverse {
		p.page.ResumeKey = append(bytes.Clone(r.key), 0)
	}
	return false
}

func (p *pageBuilder) maxBytes() int {
	if p.req.MaxBytes > 0 {
		return p.req.MaxBytes
	}
	return defaultPageBytes
}

func (p *pageBuilder) fillHidden(ctx context.Context, s *Shard) error {
	if len(p.missing) == 0 {
		return nil
	}
	if p.req.Reverse {
		slices.Reverse(p.missing)
		slices.Reverse(p.at)
	}
	values, err := s.hidden(ctx, p.req.ReadTS, p.missing)
	for i, value := range values {
		p.page.Rows[p.at[i]].Value = value
	}
	return err
}

// Refresh implements kv.Shard. That nothing changes later at or below ToTS follows from I2: whoever writes a lock from now
// on fetches its commit_ts afterwards, and ToTS was fetched before.
func (s *Shard) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	if req.ToTS == tso.MaxTimestamp || req.FromTS > req.ToTS {
		return &mvcc.InvalidRequestError{Detail: "refresh to a timestamp that is none, or below the snapshot"}
	}
	if err := s.admit(req.Ranges...); err != nil {
		return err
	}
	if err := s.issued.check(ctx, req.ToTS); err != nil {
		return err
	}
	if err := s.checkSafePoint(req.FromTS); err != nil {
		return err
	}
	var found error
	changes := widerow.InterleaveFilters(wholeFamily(familyLock), fenced(max(req.FromTS, 1)), newerWrites(req.FromTS))
	spans := slices.Clone(req.Spans)
	slices.SortFunc(spans, func(a, b kv.Span) int { return bytes.Compare(a.Start, b.Start) })
	err := s.c.readRows(ctx, rowRanges(spans), changes, widerow.ReadOptions{}, func(row widerow.Row) bool {
		r, err := parse(row)
		if err == nil {
			err = changed(r, req)
		}
		found = err
		return err == nil
	})
	if err == nil {
		err = found
	}
	return err
}

// changed returns the reason why a row may not be the same at both timestamps of a refresh.
func changed(r *record, req *kv.RefreshRequest) error {
	if r.fence != 0 {
		return &mvcc.TooOldError{TS: req.FromTS, SafePoint: r.fence}
	}
	for _, v := range r.versions {
		if mvcc.DecideRefresh(req, v.startTS, v.commitTS) {
			return &mvcc.RefreshConflictError{Key: r.key, StartTS: v.startTS, CommitTS: v.commitTS}
		}
	}
	for i := range r.locks {
		if l := &r.locks[i].lock; mvcc.DecideRefreshLock(req, l) != mvcc.ReadPass {
			return &mvcc.KeyLockedError{Key: r.key, Lock: *l}
		}
	}
	return nil
}

// ScanLock implements kv.Shard. It reads the lock family of the span. The waiters that it lists are those of this process.
func (s *Shard) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	if err := s.admit(req.Range); err != nil {
		return nil, err
	}
	if req.MaxTS != tso.MaxTimestamp {
		if err := s.issued.check(ctx, req.MaxTS); err != nil {
			return nil, err
		}
	}
	var locks []mvcc.LockInfo
	var failed error
	limit := req.Limit
	if limit <= 0 {
		limit = math.MaxInt
	}
	err := s.c.readRows(ctx, rowRanges([]kv.Span{req.Span}), wholeFamily(familyLock), widerow.ReadOptions{}, func(row widerow.Row) bool {
		r, err := parse(row)
		if failed = err; err != nil {
			return false
		}
		for i := range r.locks {
			if l := r.locks[i].lock; len(locks) < limit && l.StartTS <= req.MaxTS && (req.Process == 0 || l.Process == req.Process) {
				locks = append(locks, mvcc.LockInfo{Key: r.key, Lock: l, Waiters: s.wakeup.waitersFor(r.key)})
			}
		}
		return len(locks) < limit
	})
	if err == nil {
		err = failed
	}
	return locks, err
}
