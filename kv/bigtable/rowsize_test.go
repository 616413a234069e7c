package bigtable

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
)

// weighedTable notes the largest row that was read, and the sum of all, in bytes of values.
type weighedTable struct {
	widerow.Table
	largest, sum int
}

func (w *weighedTable) ReadRows(ctx context.Context, rows widerow.RowSet, f widerow.Filter, o widerow.ReadOptions, visit func(widerow.Row) bool) error {
	return w.Table.ReadRows(ctx, rows, f, o, func(row widerow.Row) bool {
		n := 0
		for _, cells := range row {
			for i := range cells {
				n += len(cells[i].Value)
			}
		}
		w.largest, w.sum = max(w.largest, n), w.sum+n
		return visit(row)
	})
}

// putLarge writes a version of a value of so many bytes.
func putLarge(t *testing.T, e *emulated, s *Shard, key []byte, size int) error {
	t.Helper()
	descriptor, ts := theRange(), mustNow(t, e.oracle)
	refs := []kv.RangeRef{descriptor.Ref()}
	_, err := s.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: refs, StartTS: ts, Primary: key, TxnSize: 1, TTLMillis: 3000,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: key, Value: make([]byte, size)}}})
	if err != nil {
		return err
	}
	return s.Commit(t.Context(), &kv.CommitRequest{Ranges: refs, StartTS: ts, CommitTS: mustNow(t, e.oracle), Keys: [][]byte{key}, Primary: true})
}

// Goal: the size of a row of many large versions is found out without holding all of them in memory, which a reader of the whole row did; what this process
// has written, or read before, is not read again. Method: a table that weighs rows; a shard that has written the versions, and one that has not.
func TestRowSizeIsReadPieceByPiece(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	table := &weighedTable{Table: e.client.table}
	e.client.table = table
	other, err := NewShard(t.Context(), e.client, ShardOptions{Oracle: e.oracle})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("k")
	for _, s := range []*Shard{e.shard, other} {
		s.rowBytes = 5 << 20
	}
	for range 2 {
		if err := putLarge(t, e, e.shard, key, 2<<20); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(s *Shard) {
		t.Helper()
		table.largest, table.sum = 0, 0
		var limit *kv.SizeLimitError
		if err := putLarge(t, e, s, key, 2<<20); !errors.As(err, &limit) || limit.Size != 6<<20 {
			t.Errorf("%v", err)
		}
	}
	refused(e.shard)
	if table.sum != 0 {
		t.Errorf("%d bytes of values read whose lengths were known", table.sum)
	}
	refused(other)
	if table.largest != 2<<20 || table.sum != 4<<20 {
		t.Errorf("%d bytes read, %d at once", table.sum, table.largest)
	}
	refused(other)
	if table.sum != 0 {
		t.Errorf("%d bytes of values read twice", table.sum)
	}
}

// Goal: a value that newer data hide is read alone, not with all older versions. Method: the middle one of three versions of
// each of many keys, each of another transaction, in a table that weighs rows.
func TestHiddenValuesAreReadAlone(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	table := &weighedTable{Table: e.client.table}
	e.client.table = table
	const size = 1000
	keys := make([][]byte, hiddenAtOnce+2)
	of := make([]hiddenValue, len(keys))
	for i := range keys {
		keys[i] = []byte{'k', byte(i)}
		for range 3 {
			if err := putLarge(t, e, e.shard, keys[i], size); err != nil {
				t.Fatal(err)
			}
		}
		r, err := e.shard.readKey(t.Context(), keys[i], wholeFamily(familyData))
		if err != nil {
			t.Fatal(err)
		}
		of[i] = hiddenValue{keys[i], r.data[1].startTS}
	}
	table.largest = 0
	values, err := e.shard.hidden(t.Context(), mustNow(t, e.oracle), of)
	if err != nil || len(values) != len(keys) || table.largest != size {
		t.Errorf("%d values, %d bytes of a row, %v", len(values), table.largest, err)
	}
	for i, value := range values {
		if !bytes.Equal(value, make([]byte, size)) {
			t.Errorf("value %d has %d bytes", i, len(value))
		}
	}
	of[len(of)-1].startTS++
	var corrupt *mvcc.CorruptionError
	if values, err := e.shard.hidden(t.Context(), mustNow(t, e.oracle), of); !errors.As(err, &corrupt) || len(values) != len(of) {
		t.Errorf("%d values, %v", len(values), err)
	}
}
