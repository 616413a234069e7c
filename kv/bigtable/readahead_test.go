package bigtable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// aheadShard opens a shard that reads ahead, over keys whose index is their first two bytes.
func (e *emulated) aheadShard(t *testing.T) *Shard {
	t.Helper()
	s, err := NewShard(t.Context(), e.client, ShardOptions{Oracle: e.oracle, PrefixLen: func(key []byte) int { return min(2, len(key)) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func counted(t *testing.T, c prometheus.Counter) int {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int(m.GetCounter().GetValue())
}

func getAt(t *testing.T, s *Shard, ts tso.Timestamp, key string) string {
	ref := theRange()
	value, err := s.Get(t.Context(), ref.Ref(), []byte(key), kv.ReadOptions{ReadTS: ts})
	var locked *mvcc.KeyLockedError
	if errors.As(err, &locked) {
		return "locked"
	}
	return fmt.Sprintf("%q %v", value, err)
}

// Goal: reading ahead saves requests where rows are read in order, and costs at most a row where they are not. Method: 200 rows, read in several
// orders; requests on the wire, rows that came ahead, and hits.
func TestReadAhead(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	var pairs []string
	for i := range 200 {
		pairs = append(pairs, fmt.Sprintf("t1%03d=%d", i, i))
	}
	e.mustPut(t, pairs...)
	counter := func(c prometheus.Counter) int { return counted(t, c) }
	for _, c := range []struct {
		what, want  string
		ahead, hits int
		order       func(i int) int
		reads       int
		snapshots   bool // each read has its own
	}{
		{what: "ascending", want: "ReadRows 11", ahead: 101, hits: 95, reads: 106, order: func(i int) int { return i }},
		{what: "descending", want: "ReadRows 11", ahead: 101, hits: 95, reads: 106, order: func(i int) int { return 199 - i }},
		{what: "every tenth", want: "ReadRows 20", ahead: 1, reads: 20, order: func(i int) int { return 10 * i }},
		{what: "to and fro", want: "ReadRows 100", ahead: 1, reads: 100, order: func(i int) int { return (i*101 + 50*(i%2)) % 200 }},
		{what: "two in order", want: "ReadRows 2", reads: 2, order: func(i int) int { return i }},
		{what: "each at its own snapshot", want: "ReadRows 50", reads: 50, order: func(i int) int { return i }, snapshots: true},
	} {
		s := e.aheadShard(t)
		ahead, hits := counter(e.client.metrics.rowsAhead), counter(e.client.metrics.aheadHits)
		ts := mustNow(t, e.oracle)
		got := e.requestsOf(func() {
			for i := range c.reads {
				n := c.order(i)
				if got, want := getAt(t, s, ts, fmt.Sprintf("t1%03d", n)), fmt.Sprintf("\"%d\" <nil>", n); got != want {
					t.Errorf("%s: row %d: %s, want %s", c.what, n, got, want)
				}
				if c.snapshots {
					ts = mustNow(t, e.oracle)
				}
			}
		})
		ahead, hits = counter(e.client.metrics.rowsAhead)-ahead, counter(e.client.metrics.aheadHits)-hits
		if got != c.want || ahead != c.ahead || hits != c.hits {
			t.Errorf("%s: %s, %d rows ahead, %d hits, want %s, %d, %d", c.what, got, ahead, hits, c.want, c.ahead, c.hits)
		}
	}
}

// Goal: rows that are read in vain are bounded. Method: many streams that end after the row that is read ahead.
func TestReadAheadInVain(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	e.mustPut(t, "t10=0", "t11=0", "t12=0", "t13=0", "t14=0", "t15=0")
	s := e.aheadShard(t)
	for range 300 {
		ts := mustNow(t, e.oracle)
		for _, key := range []string{"t10", "t11", "t12"} {
			getAt(t, s, ts, key)
		}
	}
	if n := counted(t, e.client.metrics.rowsAhead); n < aheadCredit/2 || n > 2*aheadCredit {
		t.Errorf("%d rows in vain", n)
	}
}

// Goal: a shard that reads ahead answers as one that does not: rows that change, that are deleted, absent, locked, hidden, collected. Method: readers that go up
// and down at their snapshots, beside writers, and compare.
func TestReadAheadAnswersAsSingleReads(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ahead := e.aheadShard(t)
	const rows = 60
	key := func(i int) string { return fmt.Sprintf("t1%02d", i) }
	locked := map[int]bool{7: true, 31: true, 32: true} // for long
	write := func(n int) {
		e.withDB(func(db *percolator.DB) {
			txn, err := db.Begin(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer txn.Close()
			for range 5 {
				i := rand.IntN(rows)
				if locked[i] {
					continue
				}
				if rand.IntN(3) == 0 {
					err = errors.Join(err, txn.Delete([]byte(key(i))))
				} else {
					err = errors.Join(err, txn.Put([]byte(key(i)), fmt.Append(nil, n, i)))
				}
			}
			if _, commitErr := txn.Commit(t.Context()); err != nil {
				t.Error(err, commitErr)
			}
		})
	}
	for n := range 20 {
		write(n)
	}
	ref := theRange()
	lock := func(i int) (start tso.Timestamp, err error) {
		start = mustNow(t, e.oracle)
		_, err = e.shard.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: []kv.RangeRef{ref.Ref()}, Primary: []byte(key(i)), StartTS: start, TTLMillis: 600_000,
			Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte(key(i)), Value: []byte("lock")}}})
		return start, err
	}
	for i := range locked {
		if _, err := lock(i); err != nil {
			t.Fatal(err)
		}
	}
	before := counted(t, e.client.metrics.aheadHits)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for n := range 30 {
				write(100 + n)
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			for n := range 10 {
				ts := mustNow(t, e.oracle)
				for i := range rows {
					i += rand.IntN(2)
					if n%2 == 1 {
						i = rows - i
					}
					ahead.ahead.mu.Lock()
					ahead.ahead.credit = aheadCredit // It is not what bounds here.
					ahead.ahead.mu.Unlock()
					read := func(s *Shard) (got string) { // when the writers' locks are gone
						for got = "locked"; got == "locked"; {
							if got = getAt(t, s, ts, key(i)); locked[i] {
								break
							}
						}
						return got
					}
					got := read(ahead)
					if want := read(e.shard); got != want {
						t.Errorf("%s as of %d: %s, want %s", key(i), ts, got, want)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if n := counted(t, e.client.metrics.aheadHits) - before; n < 100 {
		t.Errorf("only %d hits", n)
	}
}

// Goal: a value that newer data hides is not kept as absent, and rows that are collected are not read ahead as absent.
func TestReadAheadKeepsNoHoles(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	e.mustPut(t, "t10=0", "t11=1", "t12=2", "t13=3", "t14=4")
	start := mustNow(t, e.oracle)
	ref := theRange()
	_, err := e.shard.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: []kv.RangeRef{ref.Ref()}, Primary: []byte("t13"), StartTS: start, TTLMillis: 600_000,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte("t13"), Value: []byte("new")}}})
	if err != nil {
		t.Fatal(err)
	}
	s := e.aheadShard(t)
	opts := kv.ReadOptions{ReadTS: mustNow(t, e.oracle), Bypass: []tso.Timestamp{start}}
	for i := range 5 {
		value, err := s.Get(t.Context(), ref.Ref(), fmt.Append(nil, "t1", i), opts)
		if string(value) != fmt.Sprint(i) || err != nil {
			t.Errorf("row %d: %q %v", i, value, err)
		}
	}
	old := mustNow(t, e.oracle)
	e.mustPut(t, "t11=x", "t12=x")
	late := e.aheadShard(t)
	safePoint := mustNow(t, e.oracle)
	if err := e.shard.Rollback(t.Context(), &kv.RollbackRequest{Ranges: []kv.RangeRef{ref.Ref()}, Keys: [][]byte{[]byte("t13")}, StartTS: start}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.shard.SetSafePoint(t.Context(), safePoint); err != nil {
		t.Fatal(err)
	}
	if res, err := e.shard.CollectGarbage(t.Context(), &kv.CollectGarbageRequest{SafePoint: safePoint}); err != nil || res.Versions == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	for _, key := range []string{"t10", "t105", "t11", "t12"} {
		got, want := getAt(t, late, old, key), getAt(t, s, old, key)
		if got != want && key >= "t11" {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	if n := counted(t, e.client.metrics.rowsAhead); n == 0 {
		t.Error("nothing was read ahead")
	}
}
