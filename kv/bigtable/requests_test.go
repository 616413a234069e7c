package bigtable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// withDB calls do with a DB of its own over e's table, and returns when the work behind the backs of do's commits has ended as well:
// their secondaries are committed in the background.
func (e *emulated) withDB(do func(db *percolator.DB)) {
	db := percolator.New(e.Router, e.oracle, percolator.Options{DrainTimeout: time.Minute})
	defer db.Close()
	do(db)
}

// mustPut commits pairs, each key=value, in one transaction.
func (e *emulated) mustPut(t *testing.T, pairs ...string) {
	t.Helper()
	e.withDB(func(db *percolator.DB) {
		txn, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer txn.Close()
		for _, pair := range pairs {
			key, value, _ := strings.Cut(pair, "=")
			if err := txn.Put([]byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := txn.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// requestsOf counts the requests of do.
func (e *emulated) requestsOf(do func()) string {
	before := e.client.Requests()
	do()
	var counts []string
	after := e.client.Requests()
	for _, method := range methods {
		if n := after[method] - before[method]; n > 0 {
			counts = append(counts, fmt.Sprintf("%s %d", method, n))
		}
	}
	return strings.Join(counts, ", ")
}

// Goal: the numbers of requests that docs/bigtable.md states. Method: transactions over the emulator, whose requests are counted on
// the wire.
func TestRequests(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	var pairs []string
	for i := range 100 {
		pairs = append(pairs, fmt.Sprintf("row%02d=0", i))
	}
	e.mustPut(t, pairs...)
	for _, c := range []struct {
		what, want string
		do         func(db *percolator.DB)
	}{
		{"point select", "ReadRows 1", func(db *percolator.DB) {
			if v, err := db.Get(ctx, []byte("row05")); string(v) != "0" || err != nil {
				t.Errorf("%q %v", v, err)
			}
		}},
		{"one row, not read", "CheckAndMutateRow 2", func(*percolator.DB) { e.mustPut(t, "row05=1") }},
		{"a new row", "CheckAndMutateRow 2", func(*percolator.DB) { e.mustPut(t, "new=1") }},
		{"ten rows", "CheckAndMutateRow 11, MutateRows 1", func(*percolator.DB) { e.mustPut(t, pairs[10:20]...) }},
		{"a row that depends on ten others", "ReadRows 11, CheckAndMutateRow 2, MutateRows 1", func(db *percolator.DB) {
			txn, err := db.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer txn.Close()
			for i := range 10 {
				key := fmt.Appendf(nil, "row%02d", i)
				if exists, err := txn.ExistsAtCommit(ctx, key, fmt.Appendf(nil, "guard%02d", i)); !exists || err != nil {
					t.Errorf("%q %v %v", key, exists, err)
				}
			}
			if err := txn.Put([]byte("child"), []byte("1")); err != nil {
				t.Fatal(err)
			}
			if _, err := txn.Commit(ctx); err != nil {
				t.Error(err)
			}
		}},
		{"scan of 100 rows, whose first page is small", "ReadRows 2", func(db *percolator.DB) {
			txn, err := db.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer txn.Close()
			it := txn.Scan(ctx, kv.Span{Start: []byte("row"), End: []byte("rox")}, percolator.ScanOptions{})
			defer it.Close()
			n := 0
			for it.Next(ctx) {
				n++
			}
			if n != 100 || it.Err() != nil {
				t.Errorf("%d rows, %v", n, it.Err())
			}
		}},
	} {
		if got := e.requestsOf(func() { e.withDB(c.do) }); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Goal: a value that newer data hides is read by a second request, in point reads and scans. Method: a transaction that is not
// committed, with a start_ts below the snapshot of a reader that bypasses it.
func TestHiddenValues(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	e.mustPut(t, "a=old", "b=old")
	start := mustNow(t, e.oracle)
	ref := theRange()
	refs := []kv.RangeRef{ref.Ref()}
	_, err := e.shard.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: refs, Primary: []byte("a"), StartTS: start, TTLMillis: 60_000, Mutations: []mvcc.Mutation{
		{Op: mvcc.OpPut, Key: []byte("a"), Value: []byte("new")}, {Op: mvcc.OpPut, Key: []byte("b"), Value: []byte("new")}}})
	if err != nil {
		t.Fatal(err)
	}
	opts := kv.ReadOptions{ReadTS: mustNow(t, e.oracle), Bypass: []tso.Timestamp{start}}
	var value []byte
	if got := e.requestsOf(func() { value, err = e.shard.Get(t.Context(), refs[0], []byte("a"), opts) }); got != "ReadRows 2" || string(value) != "old" || err != nil {
		t.Errorf("point read: %s, %q %v", got, value, err)
	}
	for _, reverse := range []bool{false, true} {
		req := kv.ScanRequest{Ranges: refs, Spans: []kv.Span{{Start: []byte("a"), End: []byte("c")}}, Limit: 10, Reverse: reverse, ReadOptions: opts}
		page, err := e.shard.Scan(t.Context(), &req)
		if err != nil || len(page.Rows) != 2 || string(page.Rows[0].Value)+string(page.Rows[1].Value) != "oldold" {
			t.Errorf("scan, reverse %v: %+v %v", reverse, page, err)
		}
	}
}

func mustNow(t *testing.T, oracle tso.Oracle) tso.Timestamp {
	t.Helper()
	ts, err := oracle.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// Goal: what Bigtable cannot store is refused before it is sent, with kv's error.
func TestSizeLimits(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ref := theRange()
	for _, m := range []mvcc.Mutation{
		{Op: mvcc.OpPut, Key: make([]byte, 4096)},
		{Op: mvcc.OpPut, Key: []byte("a"), Value: make([]byte, 10<<20+1)},
	} {
		_, err := e.shard.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: []kv.RangeRef{ref.Ref()}, Primary: m.Key, StartTS: mustNow(t, e.oracle), Mutations: []mvcc.Mutation{m}})
		var limit *kv.SizeLimitError
		if !errors.As(err, &limit) || errkind.Of(err) != errkind.TooLarge {
			t.Errorf("key of %d, value of %d bytes: %v", len(m.Key), len(m.Value), err)
		}
	}
	counts := e.client.Requests()
	delete(counts, "ReadRows")
	if !maps.Equal(counts, map[string]int64{}) {
		t.Errorf("requests were sent: %v", counts)
	}
}

// Goal: a process that does not know the safe point yet cannot act on what was collected: the row refuses it. Method: a second
// shard, opened before the collection, reads and prewrites below the safe point; a transaction that was rolled back, and
// whose record is collected, tries to lock again, to commit, to roll back.
func TestRowsFenceOffWhatWasCollected(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	e.mustPut(t, "a=1")
	old := mustNow(t, e.oracle)
	e.mustPut(t, "a=2")
	late, err := NewShard(ctx, e.client, ShardOptions{Oracle: e.oracle})
	if err != nil {
		t.Fatal(err)
	}
	ref := theRange()
	refs, keys := []kv.RangeRef{ref.Ref()}, [][]byte{[]byte("a")}
	if err := late.Rollback(ctx, &kv.RollbackRequest{Ranges: refs, Keys: keys, StartTS: old}); err != nil {
		t.Fatal(err)
	}
	safePoint := mustNow(t, e.oracle)
	if _, err := e.shard.SetSafePoint(ctx, safePoint); err != nil {
		t.Fatal(err)
	}
	res, err := e.shard.CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: safePoint})
	if err != nil || !res.Done || res.Versions != 1 || res.Statuses != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	_, get := late.Get(ctx, refs[0], keys[0], kv.ReadOptions{ReadTS: old})
	_, prewrite := late.Prewrite(ctx, &kv.PrewriteRequest{Ranges: refs, Primary: keys[0], StartTS: old, TTLMillis: 1000,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: keys[0], Value: []byte("3")}}})
	_, acquire := late.AcquireLocks(ctx, &kv.AcquireLocksRequest{Ranges: refs, Keys: keys, Primary: keys[0], StartTS: old, TTLMillis: 1000})
	commit := late.Commit(ctx, &kv.CommitRequest{Ranges: refs, Keys: keys, StartTS: old, CommitTS: mustNow(t, e.oracle), Primary: true})
	rollback := late.Rollback(ctx, &kv.RollbackRequest{Ranges: refs, Keys: keys, StartTS: old})
	refresh := late.Refresh(ctx, &kv.RefreshRequest{Ranges: refs, Spans: []kv.Span{{Start: keys[0], End: []byte("b")}}, StartTS: old, FromTS: old, ToTS: mustNow(t, e.oracle)})
	for what, err := range map[string]error{"get": get, "prewrite": prewrite, "acquire": acquire, "commit": commit, "rollback": rollback, "refresh": refresh} {
		if errkind.Of(err) != errkind.TooOld {
			t.Errorf("%s: %v", what, err)
		}
	}
	e.withDB(func(db *percolator.DB) {
		if v, err := db.Get(ctx, keys[0]); string(v) != "2" || err != nil {
			t.Errorf("%q %v", v, err)
		}
	})
}

// Goal: two transactions that wait for each other are told apart by the graph; one goes on. Method: two shards of one table, as two
// processes have them, and one graph.
func TestDeadlockBetweenProcesses(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	graph := waitgraph.NewLocal()
	var dbs []*percolator.DB
	for range 2 {
		shard, err := NewShard(t.Context(), e.client, ShardOptions{Oracle: e.oracle, WaitGraph: graph})
		if err != nil {
			t.Fatal(err)
		}
		db := percolator.New(NewRouter(shard), e.oracle, percolator.Options{})
		t.Cleanup(func() { db.Close() })
		dbs = append(dbs, db)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var txns []*percolator.Txn
	for i, db := range dbs {
		txn, err := db.BeginTxn(ctx, percolator.TxnOptions{Pessimistic: true})
		if err != nil {
			t.Fatal(err)
		}
		defer txn.Close()
		if _, err := txn.AcquireLocks(ctx, percolator.LockOptions{}, []byte{byte('a' + i)}); err != nil {
			t.Fatal(err)
		}
		txns = append(txns, txn)
	}
	errs := make(chan error, 2)
	for i, txn := range txns {
		go func() {
			_, err := txn.AcquireLocks(ctx, percolator.LockOptions{}, []byte{byte('b' - i)})
			if err != nil {
				txn.Close() // its locks let the other one go on
			}
			errs <- err
		}()
	}
	first, second := <-errs, <-errs
	if errkind.Of(first) != errkind.Deadlock || second != nil && errkind.Of(second) != errkind.Deadlock {
		t.Errorf("%v; %v", first, second)
	}
}

// Goal: a point select takes one timestamp, and states it, so that its schema is checked as of it. Method: Latest over the emulator.
func TestLatestStatesItsSnapshot(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	e.withDB(func(db *percolator.DB) {
		before := mustNow(t, e.oracle)
		e.mustPut(t, "a=1")
		l := db.Latest()
		v, err := l.Get(t.Context(), []byte("a"))
		if string(v) != "1" || err != nil || l.Snapshot() <= before || l.Snapshot() >= mustNow(t, e.oracle) {
			t.Errorf("%q %v as of %d, after %d", v, err, l.Snapshot(), before)
		}
	})
}
