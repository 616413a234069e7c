package bigtable

import (
	"context"
	"strings"

	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// record is a row as it was read.
type record struct {
	key      []byte
	locks    []heldLock
	versions []version // newest first
	data     []datum   // newest first
	statuses []statusRecord
	fence    tso.Timestamp // records up to it are collected; 0: none that the filter let through
	rolled   []tso.Timestamp
	// fences and others are what garbage collection needs besides.
	fences []tso.Timestamp
}

// heldLock is a lock with its cell.
type heldLock struct {
	lock   mvcc.Lock
	column string
	value  []byte
}

// datum is a cell of the data family.
type datum struct {
	startTS tso.Timestamp
	value   []byte
}

// statusRecord is a committed lock, or the use of a shared one.
type statusRecord struct{ commitTS, startTS tso.Timestamp }

// parse reads the cells of a row. The filter may have returned a cell twice.
func parse(row widerow.Row) (*record, error) {
	r := &record{key: keyOf(row.Key())}
	for _, family := range [...]string{familyLock, familyWrite, familyData, familyStatus} {
		before := ""
		for _, item := range row[family] {
			qualifier := strings.TrimPrefix(item.Column, family+":")
			if qualifier == before {
				continue
			}
			before = qualifier
			if err := r.add(family, qualifier, item.Value); err != nil {
				return nil, &mvcc.CorruptionError{Key: r.key, Detail: "cell " + family, Err: err}
			}
		}
	}
	return r, nil
}

func (r *record) add(family, qualifier string, value []byte) error {
	switch family {
	case familyLock:
		l, err := decodeLock(qualifier, value)
		r.locks = append(r.locks, heldLock{lock: l, column: qualifier, value: value})
		return err
	case familyWrite:
		v, err := decodeWrite(qualifier, value)
		r.versions = append(r.versions, v)
		return err
	case familyData:
		ts, err := decodeInverted(qualifier)
		r.data = append(r.data, datum{startTS: ts, value: value})
		return err
	default:
		return r.addStatus(qualifier, value)
	}
}

func (r *record) addStatus(qualifier string, value []byte) error {
	if qualifier == "" {
		return errMalformed
	}
	switch qualifier[0] {
	case statusRollback:
		ts, err := decodePlain(qualifier[1:])
		r.rolled = append(r.rolled, ts)
		return err
	case statusCommit:
		commitTS, err := decodeInverted(qualifier[1:])
		if err != nil {
			return err
		}
		startTS, err := decodePlain(string(value))
		r.statuses = append(r.statuses, statusRecord{commitTS: commitTS, startTS: startTS})
		return err
	case statusFence:
		ts, err := decodeInverted(qualifier[1:])
		r.fence = max(r.fence, ts)
		r.fences = append(r.fences, ts)
		return err
	default:
		return errMalformed
	}
}

// view is what a decision about a transaction depends on.
type view struct {
	mvcc.Records
	own    *heldLock     // the transaction's lock, nil if it has none
	fence  tso.Timestamp // at or above the transaction's start_ts, or 0
	status tso.Timestamp // at or above the newest status record
}

// viewOf is a row from the view of a transaction; the row was read by recordsOf, and is nil if it has no cell.
func viewOf(r *record, startTS tso.Timestamp) *view {
	v := &view{status: startTS}
	if r == nil {
		return v
	}
	locks := make([]mvcc.Lock, len(r.locks))
	for i := range r.locks {
		locks[i] = r.locks[i].lock
		if locks[i].StartTS == startTS {
			v.own = &r.locks[i]
		}
	}
	v.SetLocks(startTS, locks)
	if len(r.versions) > 0 {
		newest := r.versions[0]
		v.NewestOp, v.NewestStartTS, v.NewestCommitTS = newest.op, newest.startTS, newest.commitTS
	}
	for _, w := range r.versions {
		if w.startTS == startTS {
			v.OwnCommitTS = w.commitTS
		}
	}
	for _, s := range r.statuses {
		v.status = max(v.status, s.commitTS)
		switch {
		case mvcc.IsUse(s.startTS):
			v.SharedUseTS = max(v.SharedUseTS, s.commitTS)
			continue
		case s.startTS == startTS:
			v.OwnCommitTS = s.commitTS
		}
		if s.commitTS > v.LockCommitTS {
			v.LockCommitTS, v.LockCommitStartTS = s.commitTS, s.startTS
		}
	}
	for _, ts := range r.rolled {
		v.RolledBack = v.RolledBack || ts == startTS
	}
	v.fence = r.fence
	return v
}

// recordsGone returns *mvcc.TooOldError if the row has no record of the transaction, and may have had one that is
// collected.
func (v *view) recordsGone(startTS tso.Timestamp) error {
	if v.fence >= startTS && v.fence != 0 && v.OwnCommitTS == 0 && !v.RolledBack && !v.OwnLock(startTS) {
		return &mvcc.TooOldError{TS: startTS, SafePoint: v.fence}
	}
	return nil
}

// silentMillis is for how long the owner of a lock has sent no request for it. It is the difference of the clocks of two
// processes; if they differ by more than a lock's lease, the lease protects less, and the TTL, which the oracle's time
// decides, still does.
func (s *Shard) silentMillis(l *mvcc.Lock) uint64 {
	if l == nil {
		return 0
	}
	return uint64(max(0, int64(s.heardMillis())-int64(l.HeardMillis)))
}

// gather reads what decisions about a transaction on keys depend on. views[i] is of keys[i].
func (s *Shard) gather(ctx context.Context, startTS tso.Timestamp, keys [][]byte) ([]*view, error) {
	if len(keys) == 1 {
		v, err := s.look(ctx, startTS, keys[0])
		return []*view{v}, err
	}
	found, err := s.readKeys(ctx, keys, recordsOf(startTS))
	if err != nil {
		return nil, err
	}
	views := make([]*view, len(keys))
	for i := range keys {
		views[i] = viewOf(found[i], startTS)
	}
	return views, nil
}

// look is gather for one key.
func (s *Shard) look(ctx context.Context, startTS tso.Timestamp, key []byte) (*view, error) {
	r, err := s.readKey(ctx, key, recordsOf(startTS))
	return viewOf(r, startTS), err
}

func (s *Shard) readKey(ctx context.Context, key []byte, f widerow.Filter) (*record, error) {
	row, err := s.c.readRow(ctx, rowKey(key), f)
	if err != nil || row == nil {
		return nil, err
	}
	return parse(row)
}

// readKeys reads the rows of ascending keys; those without a cell are nil.
func (s *Shard) readKeys(ctx context.Context, keys [][]byte, f widerow.Filter) ([]*record, error) {
	found := make([]*record, len(keys))
	at := 0
	for start := 0; start < len(keys); {
		var rows widerow.RowList
		for size := 0; start < len(keys) && size < maxReadBytes; start++ {
			rows = append(rows, rowKey(keys[start]))
			size += len(keys[start]) + 8
		}
		var failed error
		err := s.c.readRows(ctx, rows, f, widerow.ReadOptions{}, func(row widerow.Row) bool {
			for at < len(keys) && rowKey(keys[at]) < row.Key() {
				at++
			}
			if at < len(keys) {
				found[at], failed = parse(row)
			}
			return failed == nil
		})
		if err == nil {
			err = failed
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// maxReadBytes bounds the keys of one request, which may have 512 KB with its filter.
const maxReadBytes = 400 << 10
