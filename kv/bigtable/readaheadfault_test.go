package bigtable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// rangeTable is a table in memory whose reads of ranges may end badly after their first row, and which counts the rows that they look at.
type rangeTable struct {
	*widerow.Memory
	afterFirst func(ctx context.Context) error // nil: the other rows follow
	ranges     int
	looked     int // rows that pass the filter or not
}

func (m *rangeTable) ReadRows(ctx context.Context, rows widerow.RowSet, f widerow.Filter, o widerow.ReadOptions, visit func(widerow.Row) bool) error {
	if _, ok := rows.(widerow.RowRangeList); !ok {
		return m.Memory.ReadRows(ctx, rows, f, o, visit)
	}
	m.ranges++
	n, last := int64(0), ""
	err := m.Memory.ReadRows(ctx, rows, f, o, func(r widerow.Row) bool {
		n, last = n+1, r.Key()
		return visit(r) && m.afterFirst == nil && n != o.Limit
	})
	all := m.Memory.ReadRows(ctx, rows, widerow.FirstOfRowFilter(), widerow.ReadOptions{Reverse: o.Reverse}, func(r widerow.Row) bool {
		m.looked++
		return n < o.Limit || r.Key() != last
	})
	if m.afterFirst != nil {
		return m.afterFirst(ctx)
	}
	return errors.Join(err, all)
}

// newRangeShard returns a shard that reads ahead over a rangeTable, and a function that commits rows there.
func newRangeShard(t *testing.T, table *rangeTable) (s *Shard, now func() tso.Timestamp, put func(value []byte, keys ...string)) {
	t.Helper()
	oracle := &tsotest.ClockOracle{}
	s, err := NewShard(t.Context(), NewClient(table, 2*time.Second), ShardOptions{Oracle: oracle, PrefixLen: func(key []byte) int { return min(2, len(key)) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	now = func() tso.Timestamp { return mustNow(t, oracle) }
	d := theRange()
	ref := []kv.RangeRef{d.Ref()}
	put = func(value []byte, keys ...string) {
		t.Helper()
		for _, key := range keys {
			k, start := []byte(key), now()
			_, err := s.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: ref, Primary: k, StartTS: start, TTLMillis: 60_000,
				Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: k, Value: value}}})
			if err == nil {
				err = s.Commit(t.Context(), &kv.CommitRequest{Ranges: ref, Keys: [][]byte{k}, StartTS: start, CommitTS: now(), Primary: true})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, now, put
}

// Goal: a read whose row has arrived is answered, though the neighbours fail or do not come. Method: a table whose reads of ranges end with an error, or are silent,
// after a row.
func TestReadAheadDoesNotFailTheRead(t *testing.T) {
	for what, afterFirst := range map[string]func(context.Context) error{
		"an error": func(context.Context) error { return errors.New("broken") },
		"silence": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		table := &rangeTable{Memory: widerow.NewMemory()}
		s, now, put := newRangeShard(t, table)
		put([]byte("v"), "t10", "t11", "t12", "t14", "t15")
		for _, order := range [][]string{{"t10", "t11", "t12", "t13", "t14"}, {"t15", "t14", "t13", "t12", "t11"}, {"t10", "t11", "t13", "t14"}} {
			table.afterFirst, table.ranges = afterFirst, 0
			ts := now()
			for _, key := range order {
				want := `"v" <nil>`
				if key == "t13" {
					want = `"" <nil>`
				}
				if got := getAt(t, s, ts, key); got != want {
					t.Errorf("%s after the first row: %s is %s, want %s", what, key, got, want)
				}
			}
			if table.ranges != 1 {
				t.Errorf("%s: %d rows were read with neighbours, want 1", what, table.ranges)
			}
		}
	}
}

// Goal: a read of a row with its neighbours looks at few rows, also where the snapshot shows none. Method: an index with many rows that are newer than the
// snapshot.
func TestReadAheadLooksAtFewRows(t *testing.T) {
	table := &rangeTable{Memory: widerow.NewMemory()}
	s, now, put := newRangeShard(t, table)
	put([]byte("old"), "t1000", "t1001", "t1002")
	ts := now()
	for i := range 300 {
		put([]byte("new"), fmt.Sprintf("t1%03d", i+1))
	}
	for i, want := range []string{`"old" <nil>`, `"old" <nil>`, `"old" <nil>`, `"" <nil>`, `"" <nil>`} {
		if got := getAt(t, s, ts, fmt.Sprintf("t1%03d", i)); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if table.ranges == 0 || table.looked > mostAhead {
		t.Errorf("%d reads of ranges looked at %d rows", table.ranges, table.looked)
	}
}

// Goal: the memory of rows read ahead is bounded. Method: values that are larger than the bound.
func TestReadAheadKeepsNoLargeValues(t *testing.T) {
	table := &rangeTable{Memory: widerow.NewMemory()}
	s, now, put := newRangeShard(t, table)
	large := make([]byte, 2*aheadBytes)
	put(large, "t10", "t11", "t12", "t13", "t14")
	ts := now()
	d := theRange()
	for _, key := range []string{"t10", "t11", "t12", "t13", "t14", "t14"} {
		if value, err := s.Get(t.Context(), d.Ref(), []byte(key), kv.ReadOptions{ReadTS: ts}); len(value) != len(large) || err != nil {
			t.Errorf("%s: %d bytes, %v", key, len(value), err)
		}
		kept := 0
		for i := range s.ahead.streams {
			for _, r := range s.ahead.streams[i].rows {
				kept += len(r.key) + len(r.value)
			}
		}
		if kept > aheadBytes {
			t.Errorf("after %s: %d bytes are kept", key, kept)
		}
	}
	if table.ranges == 0 {
		t.Error("nothing was read with its neighbours")
	}
}
