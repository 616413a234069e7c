package bigtable

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// A notify cell of kv.Notifier is several cells here, one for each notification, of which the newest counts: so a commit
// writes without reading, and a clear removes what it has seen and nothing else.

// cellsOf matches an observer's cells.
func cellsOf(observer uint64) widerow.Filter {
	end := ""
	if observer+1 != 0 {
		end = observerColumn(observer + 1)
	}
	return widerow.ColumnRangeFilter(familyNotify, observerColumn(observer), end)
}

// notification is one cell of the notify family.
type notification struct {
	column string
	ts     tso.Timestamp
	hop    uint8
}

// notifications returns a row's cells of one observer, newest first.
func notifications(row widerow.Row) (all []notification, err error) {
	for _, item := range row[familyNotify] {
		qualifier := strings.TrimPrefix(item.Column, familyNotify+":")
		if len(qualifier) != 16 || len(item.Value) != 1 {
			return nil, &mvcc.CorruptionError{Key: keyOf(row.Key()), Detail: "notify cell", Err: errMalformed}
		}
		ts := ^tso.Timestamp(binary.BigEndian.Uint64([]byte(qualifier[8:])))
		all = append(all, notification{column: qualifier, ts: ts, hop: item.Value[0]})
	}
	return all, nil
}

// removedAtOnce bounds the cells that one change removes: Bigtable makes at most 100,000 changes in a request.
const removedAtOnce = 50_000

// removeNotifications returns the changes of a row that remove cells.
func removeNotifications(cells []notification) (changes []*widerow.Mutation) {
	for some := range slices.Chunk(cells, removedAtOnce) {
		change := widerow.NewMutation()
		for _, c := range some {
			change.DeleteCellsInColumn(familyNotify, c.column)
		}
		changes = append(changes, change)
	}
	return changes
}

// NotifyScan implements kv.Shard.
func (s *Shard) NotifyScan(ctx context.Context, req *kv.NotifyScanRequest) (*kv.NotifyScanResponse, error) {
	if req.Limit <= 0 || req.Observer == 0 {
		return nil, &mvcc.InvalidRequestError{Detail: fmt.Sprintf("scan for %d cells of observer %d", req.Limit, req.Observer)}
	}
	if err := s.admit(req.Range); err != nil {
		return nil, err
	}
	res := &kv.NotifyScanResponse{}
	var failed error
	newest := widerow.ChainFilters(cellsOf(req.Observer), widerow.FirstOfRowFilter())
	// One more than asked for shows whether cells follow.
	err := s.c.readRows(ctx, rowRanges([]kv.Span{req.Span}), newest, widerow.ReadOptions{Limit: int64(req.Limit) + 1}, func(row widerow.Row) bool {
		cells, err := notifications(row)
		if failed = err; err != nil || len(cells) == 0 {
			return err == nil
		}
		key := keyOf(row.Key())
		if len(res.Cells) == req.Limit {
			res.ResumeKey = key
			return false
		}
		res.Cells = append(res.Cells, kv.NotifyCell{Key: key, Latest: cells[0].ts, Hop: cells[0].hop})
		return true
	})
	if err == nil {
		err = failed
	}
	return res, err
}

// NotifyClear implements kv.Shard.
func (s *Shard) NotifyClear(ctx context.Context, req *kv.NotifyClearRequest) (cleared int, err error) {
	if err := mvcc.ValidateUpTo(req.Observer, req.Cells); err != nil {
		return 0, err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return 0, err
	}
	rows := make(widerow.RowList, len(req.Cells))
	upTo := make(map[string]tso.Timestamp, len(req.Cells))
	for i := range req.Cells {
		rows[i] = rowKey(req.Cells[i].Key)
		upTo[rows[i]] = req.Cells[i].UpTo
	}
	var names []string
	var changes []*widerow.Mutation
	var failed error
	err = s.c.readRows(ctx, rows, cellsOf(req.Observer), widerow.ReadOptions{}, func(row widerow.Row) bool {
		cells, err := notifications(row)
		if failed = err; err != nil {
			return false
		}
		seen := slices.DeleteFunc(slices.Clone(cells), func(c notification) bool { return c.ts > upTo[row.Key()] })
		for _, change := range removeNotifications(seen) {
			names, changes = append(names, row.Key()), append(changes, change)
		}
		if len(seen) > 0 && len(seen) == len(cells) {
			cleared++
		}
		return true
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = s.c.bulk(ctx, names, changes)
	}
	return cleared, err
}

// NotifyPut implements kv.Shard.
func (s *Shard) NotifyPut(ctx context.Context, req *kv.NotifyPutRequest) error {
	if req.Observer == 0 || req.TS == 0 {
		return &mvcc.InvalidRequestError{Detail: fmt.Sprintf("notification of observer %d at %d", req.Observer, req.TS)}
	}
	if err := mvcc.ValidateKeys(req.Keys); err != nil {
		return err
	}
	if err := s.admit(req.Ranges...); err != nil {
		return err
	}
	if err := s.issued.check(ctx, req.TS); err != nil {
		return err
	}
	rows, changes := make([]string, len(req.Keys)), make([]*widerow.Mutation, len(req.Keys))
	for i, key := range req.Keys {
		rows[i], changes[i] = rowKey(key), widerow.NewMutation()
		changes[i].Set(familyNotify, notifyColumn(req.Observer, req.TS), []byte{req.Hop})
	}
	if err := s.c.bulk(ctx, rows, changes); err != nil {
		return err
	}
	set := &kv.NotifySet{Hop: req.Hop, Observers: []uint64{req.Observer}}
	for _, key := range req.Keys {
		s.hints.committed(key, req.TS, set)
	}
	return nil
}

// NotifyDrop implements kv.Shard.
func (s *Shard) NotifyDrop(ctx context.Context, req *kv.NotifyDropRequest) error {
	if req.Observer == 0 {
		return &mvcc.InvalidRequestError{Detail: "drop of the cells of no observer"}
	}
	if err := s.admit(req.Range); err != nil {
		return err
	}
	for {
		var rows []string
		var changes []*widerow.Mutation
		n := 0
		var failed error
		err := s.c.readRows(ctx, rowRanges([]kv.Span{req.Span}), cellsOf(req.Observer), widerow.ReadOptions{Limit: collectRows}, func(row widerow.Row) bool {
			cells, err := notifications(row)
			if failed = err; err != nil {
				return false
			}
			for _, change := range removeNotifications(cells) {
				rows, changes = append(rows, row.Key()), append(changes, change)
			}
			n++
			return true
		})
		if err == nil {
			err = failed
		}
		if err == nil {
			err = s.c.bulk(ctx, rows, changes)
		}
		if err != nil || n < collectRows {
			return err
		}
	}
}

// hints are the watches of this process. Commits of other processes are found by their observers' scans.
type hints struct {
	mu      sync.Mutex
	watches map[*watch]struct{}
}

// watch is one WatchNotify.
type watch struct {
	some  []kv.NotifyHint
	awake chan struct{}
}

// maxHints bounds the hints that wait for a watch; beyond it a scan is asked for.
const maxHints = 4096

// committed sends the hints of a commit.
func (h *hints) committed(key []byte, ts tso.Timestamp, set *kv.NotifySet) {
	if set == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches {
		if len(w.some) >= maxHints {
			w.some = []kv.NotifyHint{{}}
		}
		for _, observer := range set.Observers {
			w.some = append(w.some, kv.NotifyHint{Observer: observer, Key: append([]byte{}, key...), CommitTS: ts, AtMicros: time.Now().UnixMicro()})
		}
		select {
		case w.awake <- struct{}{}:
		default:
		}
	}
}

func (h *hints) take(w *watch) []kv.NotifyHint {
	h.mu.Lock()
	defer h.mu.Unlock()
	some := w.some
	w.some = nil
	return some
}

// WatchNotify implements kv.Shard.
func (s *Shard) WatchNotify(ctx context.Context, f func(hints []kv.NotifyHint) error) error {
	if err := s.admit(); err != nil {
		return err
	}
	w := &watch{some: []kv.NotifyHint{{}}, awake: make(chan struct{}, 1)}
	w.awake <- struct{}{}
	s.hints.mu.Lock()
	if s.hints.watches == nil {
		s.hints.watches = map[*watch]struct{}{}
	}
	s.hints.watches[w] = struct{}{}
	s.hints.mu.Unlock()
	defer func() {
		s.hints.mu.Lock()
		delete(s.hints.watches, w)
		s.hints.mu.Unlock()
	}()
	for {
		select {
		case <-w.awake:
			if err := f(s.hints.take(w)); err != nil {
				return err
			}
		case <-s.ended:
			return kv.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
