package bigtable

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Garbage collection reads all rows and removes cells by their names: a cell with a timestamp in its qualifier never changes,
// so nothing can be removed that was not looked at. With the cells it writes a fence into the row, in the same mutation. The
// fence refuses, in the row itself, what relies on the removed records: a late prewrite of a transaction whose rollback record
// is gone, a read below a version that is gone. A fence stays for fenceAge, longer than any request is under way, and is
// then removed, with the row if it is empty.
//
// The safe point is a row. Processes read it now and then, to refuse early what the rows would refuse.

const safePointRow = "safe_point"

// columnValue is the only column of a meta row that has one.
const columnValue = "v"

// fenceAge is how long a row's fence stays after its timestamp.
const fenceAge = 24 * time.Hour

// fenceCache is the safe point as this process knows it.
type fenceCache struct {
	mu     sync.Mutex
	ts     tso.Timestamp
	readAt time.Time
}

// fenceFresh is how long the safe point is taken from memory.
const fenceFresh = 10 * time.Second

func metaRow(name string) string { return string(rune(rowOfMeta)) + name }

// readMeta returns the value of a meta row, nil if it has none.
func (c *Client) readMeta(ctx context.Context, name string) ([]byte, error) {
	row, err := c.readRow(ctx, metaRow(name), column(familyMeta, columnValue))
	if err != nil || row == nil || len(row[familyMeta]) == 0 {
		return nil, err
	}
	return row[familyMeta][0].Value, nil
}

// swapMeta replaces the value of a meta row if it is before; nil: if it has none.
func (c *Client) swapMeta(ctx context.Context, name string, before, value []byte) (swapped bool, err error) {
	change := widerow.NewMutation()
	change.Set(familyMeta, columnValue, value)
	if before == nil {
		return c.unless(ctx, metaRow(name), column(familyMeta, columnValue), change)
	}
	is := widerow.ChainFilters(column(familyMeta, columnValue), widerow.ValueRangeFilter(before, append(bytes.Clone(before), 0)))
	return c.onlyIf(ctx, metaRow(name), is, change)
}

// raiseMeta raises the timestamp in a meta row, and returns the one in force.
func (c *Client) raiseMeta(ctx context.Context, name string, ts tso.Timestamp) (tso.Timestamp, error) {
	for {
		before, err := c.readMeta(ctx, name)
		if err != nil {
			return 0, err
		}
		var inForce tso.Timestamp
		if before != nil {
			if inForce, err = decodePlain(string(before)); err != nil {
				return 0, &mvcc.CorruptionError{Key: []byte(name), Detail: "meta row", Err: err}
			}
		}
		if ts <= inForce {
			return inForce, nil
		}
		swapped, err := c.swapMeta(ctx, name, before, []byte(plainTS(ts)))
		if swapped || err != nil {
			return ts, err
		}
	}
}

func (f *fenceCache) raise(ts tso.Timestamp) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ts, f.readAt = max(f.ts, ts), time.Now()
}

// refreshFence reads the safe point.
func (s *Shard) refreshFence(ctx context.Context) error {
	ts, err := s.c.raiseMeta(ctx, safePointRow, 0)
	if err == nil {
		s.fence.raise(ts)
	}
	return err
}

// checkSafePoint rejects timestamps that garbage collection may have passed, as far as this process knows. It reads the safe
// point again behind the caller's back.
func (s *Shard) checkSafePoint(ts tso.Timestamp) error {
	s.fence.mu.Lock()
	safePoint, old := s.fence.ts, time.Since(s.fence.readAt) > fenceFresh
	if old {
		s.fence.readAt = time.Now()
	}
	s.fence.mu.Unlock()
	if old {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), fenceFresh)
			defer cancel()
			_ = s.refreshFence(ctx) // after an error the rows' own fences still hold
		}()
	}
	if safePoint != 0 && ts <= safePoint {
		return &mvcc.TooOldError{TS: ts, SafePoint: safePoint}
	}
	return nil
}

// SetSafePoint implements kv.Shard.
func (s *Shard) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	if err := s.admit(); err != nil {
		return 0, err
	}
	if err := s.issued.check(ctx, ts); err != nil {
		return 0, err
	}
	inForce, err := s.c.raiseMeta(ctx, safePointRow, ts)
	if err == nil {
		s.fence.raise(inForce)
	}
	return inForce, err
}

// SyncLog implements kv.Shard: what Bigtable has acknowledged is durable.
func (s *Shard) SyncLog(context.Context) (uint64, error) { return s.run, s.admit() }

// collection is the progress of a pass.
type collection struct {
	mu     sync.Mutex
	target tso.Timestamp
	resume []byte // the first key not visited yet
}

// collectRows is how many rows are read at once.
const collectRows = 1000

// collectVersions bounds what is removed of a row at once: Bigtable makes at most 100,000 changes in a request.
const collectVersions = 40_000

// CollectGarbage implements kv.Shard.
func (s *Shard) CollectGarbage(ctx context.Context, req *kv.CollectGarbageRequest) (res kv.CollectGarbageResponse, err error) {
	if err := s.admit(); err != nil {
		return res, err
	}
	inForce, err := s.c.raiseMeta(ctx, safePointRow, 0)
	if err != nil {
		return res, err
	}
	if req.SafePoint > inForce || len(req.Protected) > 0 {
		return res, &mvcc.InvalidRequestError{Detail: "collection above the safe point, or for shards that are away"}
	}
	budget := req.Budget
	if budget <= 0 {
		budget = time.Second
	}
	s.gc.mu.Lock()
	defer s.gc.mu.Unlock()
	if s.gc.target != req.SafePoint {
		s.gc.target, s.gc.resume = req.SafePoint, nil
	}
	for begun := time.Now(); time.Since(begun) < budget; {
		done, err := s.collectPage(ctx, req.SafePoint, &res)
		if err != nil {
			return res, err
		}
		if done {
			s.gc.target, res.Done = 0, true
			return res, nil
		}
	}
	return res, nil
}

// collectPage visits the next rows, and reports whether there are no others. A row of which more is to be removed than may be at once is visited
// again.
func (s *Shard) collectPage(ctx context.Context, safePoint tso.Timestamp, res *kv.CollectGarbageResponse) (done bool, err error) {
	records := widerow.InterleaveFilters(
		wholeFamily(familyWrite), wholeFamily(familyStatus), wholeFamily(familyLock))
	var rows []string
	var changes []*widerow.Mutation
	var failed error
	n, again := 0, false
	resume := s.gc.resume
	span := []kv.Span{{Start: resume}}
	err = s.c.readRows(ctx, rowRanges(span), records, widerow.ReadOptions{Limit: collectRows}, func(row widerow.Row) bool {
		r, err := parse(row)
		if failed = err; err != nil {
			return false
		}
		n++
		resume = append(r.key, 0)
		var change *widerow.Mutation
		if change, again = collect(r, safePoint, res); change != nil {
			rows, changes = append(rows, row.Key()), append(changes, change)
		}
		if again {
			resume = r.key
		}
		return !again
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = s.c.bulk(ctx, rows, changes)
	}
	if err == nil {
		s.gc.resume = resume
	}
	return n < collectRows && !again, err
}

// collect returns the change of a row by which the versions and records that only snapshots at or below the safe point could
// need are removed, nil if there are none. again: there is more than may be removed at once. Then the oldest versions are removed, since the newest
// may be a deletion that hides others.
func collect(r *record, safePoint tso.Timestamp, res *kv.CollectGarbageResponse) (change *widerow.Mutation, again bool) {
	res.Keys++
	change, removed := widerow.NewMutation(), 0
	kept := 0 // versions that are newer than the safe point, and the value that it sees
	for kept < len(r.versions) && r.versions[kept].commitTS > safePoint {
		kept++
	}
	if kept < len(r.versions) && r.versions[kept].op == mvcc.OpPut {
		kept++
	}
	oldest := r.versions[max(kept, len(r.versions)-collectVersions):]
	again = len(oldest) < len(r.versions)-kept
	for _, v := range oldest {
		change.DeleteCellsInColumn(familyWrite, inverted(v.commitTS))
		change.DeleteCellsInColumn(familyData, inverted(v.startTS))
		removed++
	}
	res.Versions += removed
	for _, st := range r.statuses {
		if again = again || removed == collectVersions; again {
			break
		}
		if st.commitTS <= safePoint {
			change.DeleteCellsInColumn(familyStatus, commitColumn(st.commitTS))
			removed, res.Statuses = removed+1, res.Statuses+1
		}
	}
	for _, startTS := range r.rolled {
		if again = again || removed == collectVersions; again {
			break
		}
		if startTS <= safePoint {
			change.DeleteCellsInColumn(familyStatus, rollbackColumn(startTS))
			removed, res.Statuses = removed+1, res.Statuses+1
		}
	}
	superseded := tso.FromPhysical(max(0, safePoint.Physical()-fenceAge.Milliseconds()))
	if removed > 0 {
		superseded = safePoint - 1
		change.Set(familyStatus, fenceColumn(safePoint), []byte{1})
	}
	for _, fence := range r.fences {
		if fence <= superseded {
			change.DeleteCellsInColumn(familyStatus, fenceColumn(fence))
			removed++
		}
	}
	if removed == 0 {
		return nil, false
	}
	return change, again
}

// DropSpan implements kv.Shard.
func (s *Shard) DropSpan(ctx context.Context, req *kv.DropSpanRequest) (dropped bool, err error) {
	if err := s.admit(); err != nil {
		return false, err
	}
	inForce, err := s.c.raiseMeta(ctx, safePointRow, 0)
	if err != nil {
		return false, err
	}
	if req.SafePoint > inForce {
		return false, &mvcc.InvalidRequestError{Detail: "span dropped above the safe point"}
	}
	needed := false
	inUse := widerow.InterleaveFilters(wholeFamily(familyLock), newerWrites(req.SafePoint), newerStatuses(req.SafePoint))
	err = s.c.readRows(ctx, rowRanges([]kv.Span{req.Span}), inUse, widerow.ReadOptions{Limit: 1}, func(widerow.Row) bool {
		needed = true
		return false
	})
	if err != nil || needed {
		return false, err
	}
	for {
		rows, err := s.rowsOf(ctx, req.Span, collectRows)
		if err != nil || len(rows) == 0 {
			return err == nil, err
		}
		changes := make([]*widerow.Mutation, len(rows))
		for i := range rows {
			changes[i] = widerow.NewMutation()
			changes[i].DeleteRow()
		}
		if err := s.c.bulk(ctx, rows, changes); err != nil {
			return false, err
		}
	}
}

// rowsOf returns the names of up to limit rows of a span.
func (s *Shard) rowsOf(ctx context.Context, span kv.Span, limit int) (rows []string, err error) {
	names := widerow.ChainFilters(widerow.FirstOfRowFilter(), widerow.StripValueFilter())
	err = s.c.readRows(ctx, rowRanges([]kv.Span{span}), names, widerow.ReadOptions{Limit: int64(limit)}, func(row widerow.Row) bool {
		rows = append(rows, row.Key())
		return true
	})
	return rows, err
}
