package pgcatalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// The rows of the views in schema percodb: locks, transactions, ranges and the oracle. They show the
// present, not the reader's snapshot; only names of tables and columns come from there.

// epochMillis is 2000-01-01 UTC, from where timestamptz counts, in Unix milliseconds.
const epochMillis = 946_684_800_000

// at is the time of a timestamp, as a timestamptz; NULL for 0.
func at(ts tso.Timestamp) types.Datum {
	if ts == 0 {
		return types.Null
	}
	return types.Int((ts.Physical() - epochMillis) * 1000)
}

func millis(ms int64) types.Datum { return types.NewInterval(types.Interval{Micros: ms * 1000}) }

func number(ts tso.Timestamp) types.Datum { return types.Int(int64(ts)) }

// numberIf is number, or NULL for 0.
func numberIf(ts tso.Timestamp) types.Datum {
	if ts == 0 {
		return types.Null
	}
	return number(ts)
}

// place is a key as a person knows it.
type place struct {
	schema, table, index types.Datum // NULL of keys that belong to no table
	key                  string
	raw                  []byte
	// hidden: policies may hide the row from the reader, who is not shown its key.
	hidden bool
}

// placeOf decodes a key of a table, in the form "(columns)=(values)" of PostgreSQL's messages. Keys
// of the catalog, and what cannot be decoded, such as a bound between keys, come as they are, quoted.
func (s *scan) placeOf(key []byte) (place, error) {
	if len(key) == 0 {
		return place{}, nil
	}
	p := place{key: strconv.QuoteToASCII(string(key)), raw: key}
	tableID, indexID, columns, err := rowenc.SplitKey(key)
	bound := false
	if err != nil {
		if tableID, bound = rowenc.TableOfBound(key); !bound {
			return p, nil
		}
	}
	t, err := s.RelationByID(s.ctx, tableID)
	if err != nil || t == nil || t.Kind != catalog.KindTable {
		return p, err
	}
	p.schema, p.table = text(t.Schema), text(t.Name)
	if s.keysHidden(t) {
		p.key, p.raw, p.hidden = "", nil, true
		return p, nil
	}
	if bound {
		p.key = "" // The bound before all keys of the table.
		return p, nil
	}
	ix := &t.Primary
	if ix.ID != indexID {
		at := slices.IndexFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return ix.ID == indexID })
		if at < 0 {
			return p, nil
		}
		ix = &t.Indexes[at]
	}
	p.index = optional(ix.Name)
	if len(columns) == 0 {
		p.key = "" // The bound before all keys of the index.
		return p, nil
	}
	values, err := rowenc.KeyColumns(t, ix, key)
	if err != nil {
		return p, nil
	}
	var names, texts []string
	for i, c := range ix.Columns {
		column := t.ColumnByID(c.ColumnID)
		names = append(names, column.Name)
		if values[i].IsNull() {
			texts = append(texts, "null")
		} else {
			texts = append(texts, string(types.AppendText(nil, values[i], column.Type, nil)))
		}
	}
	p.key = "(" + strings.Join(names, ", ") + ")=(" + strings.Join(texts, ", ") + ")"
	return p, nil
}

// lockKind names what a lock is for.
func lockKind(l *mvcc.Lock) string {
	switch {
	case l.Op == mvcc.OpPessimistic && l.Shared:
		return "for share"
	case l.Op == mvcc.OpPessimistic:
		return "for update"
	case l.Op == mvcc.OpPut:
		return "put"
	case l.Op == mvcc.OpDelete:
		return "delete"
	case l.Op == mvcc.OpCheckNotExists:
		return "check not exists"
	}
	return "lock"
}

func lockRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	oracle, err := s.view.Oracle(s.ctx)
	if err != nil {
		return err
	}
	pids := map[tso.Timestamp]int64{}
	for _, t := range s.view.Transactions() {
		if s.sees(t.Role) {
			pids[t.StartTS] = int64(t.PID)
		}
	}
	all := s.monitors(catalog.MonitorRole)
	return s.view.Locks(s.ctx, func(desc *kv.RangeDescriptor, info *mvcc.LockInfo) error {
		lock := &info.Lock
		if _, own := pids[lock.StartTS]; !own && !all {
			return nil
		}
		p, err := s.placeOf(info.Key)
		if err != nil {
			return err
		}
		pid := types.Null
		if id, ok := pids[lock.StartTS]; ok {
			pid = types.Int(id)
		}
		var waiters, waiting []int64
		for _, w := range info.Waiters {
			waiters = append(waiters, int64(w))
			if id, ok := pids[w]; ok {
				waiting = append(waiting, id)
			}
		}
		return s.emit(col{"schema_name", p.schema}, col{"table_name", p.table}, col{"index_name", p.index}, col{"key", text(p.key)},
			col{"kind", text(lockKind(lock))}, col{"holder", number(lock.StartTS)}, col{"pid", pid},
			col{"is_primary", boolean(slices.Equal(lock.Primary, info.Key))},
			col{"age", millis(oracle.Now.Physical() - lock.StartTS.Physical())}, col{"ttl", millis(int64(lock.TTLMillis))},
			col{"waiters", intArray(types.TInt8, waiters)}, col{"waiting_pids", intArray(types.TInt4, waiting)},
			col{"range_id", num(int64(desc.ID))}, col{"shard", text(desc.Shard)}, col{"key_bytes", types.Bytes(p.raw)})
	})
}

func transactionRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	oracle, err := s.view.Oracle(s.ctx)
	if err != nil {
		return err
	}
	for _, t := range s.view.Transactions() {
		if !s.sees(t.Role) {
			continue
		}
		locking := "optimistic"
		if t.Pessimistic {
			locking = "pessimistic"
		}
		err := s.emit(col{"pid", num(t.PID)}, col{"user_name", text(t.User)}, col{"isolation", text(t.Isolation)}, col{"locking", text(locking)},
			col{"state", text(t.State)}, col{"start_ts", number(t.StartTS)}, col{"read_ts", number(t.ReadTS)},
			col{"started_at", at(t.StartTS)}, col{"snapshot_at", at(t.ReadTS)},
			col{"age", millis(oracle.Now.Physical() - t.StartTS.Physical())},
			col{"reads", num(t.Reads)}, col{"locks", num(t.Locks)}, col{"writes", num(t.Writes)})
		if err != nil {
			return err
		}
	}
	return nil
}

// rangeRows lists the ranges, whose bounds are rows' keys: to pg_monitor only.
func rangeRows(s *scan) error {
	if s.view == nil || !s.monitors(catalog.MonitorRole) {
		return nil
	}
	all, err := s.view.Ranges(s.ctx)
	if err != nil {
		return err
	}
	for i := range all {
		r := &all[i]
		start, err := s.placeOf(r.Span.Start)
		if err != nil {
			return err
		}
		end, err := s.placeOf(r.Span.End)
		if err != nil {
			return err
		}
		size := types.Null
		if r.SizeBytes >= 0 {
			size = num(r.SizeBytes)
		}
		err = s.emit(col{"range_id", num(int64(r.ID))}, col{"epoch", num(int64(r.Epoch))}, col{"shard", text(r.Shard)},
			col{"schema_name", start.schema}, col{"table_name", start.table}, col{"index_name", start.index},
			col{"start_key", text(start.key)}, col{"end_key", text(end.key)}, col{"size_bytes", size},
			col{"start_bytes", types.Bytes(start.raw)}, col{"end_bytes", types.Bytes(end.raw)})
		if err != nil {
			return err
		}
	}
	return nil
}

func oracleRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	o, err := s.view.Oracle(s.ctx)
	if err != nil {
		return err
	}
	return s.emit(col{"now_ts", number(o.Now)}, col{"now_at", at(o.Now)}, col{"window_end_at", at(o.WindowEnd)},
		col{"safe_point_ts", numberIf(o.SafePoint)}, col{"safe_point_at", at(o.SafePoint)},
		col{"oldest_active_ts", number(o.OldestActive)}, col{"oldest_active_at", at(o.OldestActive)})
}
