package percolator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// eachCluster runs a test on one store (one-phase commit), on three (two-phase commit), and on a table.
func eachCluster(t *testing.T, run func(t *testing.T, c *cluster)) {
	t.Run("stores=1", func(t *testing.T) { run(t, newCluster(t, nil)) })
	t.Run("stores=3", func(t *testing.T) { run(t, newCluster(t, nil, "h", "p")) })
	t.Run("stores=3,two phases", func(t *testing.T) {
		c := newCluster(t, nil, "h", "p")
		c.twoPhases = true
		run(t, c)
	})
	t.Run("table", func(t *testing.T) { run(t, newTable(t, nil)) })
}

// opener opens a cluster; of a table the bounds are ignored.
type opener func(t testing.TB, oracle tso.Oracle, bounds ...string) *cluster

// eachEngine runs a test that opens a cluster: of stores, and of a table.
func eachEngine(t *testing.T, run func(t *testing.T, open opener)) {
	t.Run("stores", func(t *testing.T) { run(t, newCluster) })
	t.Run("table", func(t *testing.T) {
		run(t, func(t testing.TB, oracle tso.Oracle, _ ...string) *cluster { return newTable(t, oracle) })
	})
}

// Goal: I1. Method: a reader that began before a commit and one that began after it, with all kinds of reads.
func TestReadersSeeTheirSnapshot(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		first := mustBegin(t, db)
		mustPut(t, first, "a=1", "k=2", "z=3")
		commitTS := mustCommit(t, first)
		before := mustBegin(t, db)
		second := mustBegin(t, db)
		mustPut(t, second, "a=10", "m=11")
		if err := second.Delete([]byte("z")); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, second)
		after := mustBegin(t, db)

		for _, r := range []struct {
			txn  *Txn
			want string
		}{{before, "a=1 k=2 z=3"}, {db.BeginAt(commitTS), "a=1 k=2 z=3"}, {after, "a=10 k=2 m=11"}} {
			if got := scanAll(t, r.txn, kv.Span{}, ScanOptions{}); got != r.want {
				t.Errorf("scan: %s, want %s", got, r.want)
			}
			words := strings.Fields(r.want)
			for i, j := 0, len(words)-1; i < j; i, j = i+1, j-1 {
				words[i], words[j] = words[j], words[i]
			}
			if got := scanAll(t, r.txn, kv.Span{}, ScanOptions{Reverse: true, PageHint: 1}); got != strings.Join(words, " ") {
				t.Errorf("reverse scan: %s, want %s", got, strings.Join(words, " "))
			}
			keys := [][]byte{[]byte("z"), []byte("a"), []byte("q"), []byte("m"), []byte("a"), []byte("k")}
			values, err := r.txn.BatchGet(t.Context(), keys)
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range keys {
				want := mustGet(t, r.txn, string(key))
				if got := string(values[i]); got != want && !(values[i] == nil && want == "-") {
					t.Errorf("batch get %s: %q, get: %q", key, got, want)
				}
			}
		}
	})
}

// Goal: a transaction sees its own writes over the snapshot, with every kind of read, also after a rollback to a
// savepoint. Method: puts, deletions and inserts of stored rows and between them.
func TestOwnWritesLieOverTheSnapshot(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{MaxPageRows: 2}, nil)
		base := mustBegin(t, db)
		mustPut(t, base, "a=1", "c=3", "e=5", "k=6", "z=7")
		mustCommit(t, base)

		txn := mustBegin(t, db)
		mustPut(t, txn, "b=2", "c=33", "zz=8")
		sp := txn.Savepoint()
		it := txn.Scan(t.Context(), kv.Span{}, ScanOptions{})
		for _, key := range []string{"a", "e", "zz"} {
			if err := txn.Delete([]byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := scanAll(t, txn, kv.Span{}, ScanOptions{}), "b=2 c=33 k=6 z=7"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got, want := scanAll(t, txn, kv.Span{Start: []byte("b"), End: []byte("z")}, ScanOptions{Reverse: true}), "k=6 c=33 b=2"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		var seen []string
		for it.Next(t.Context()) {
			seen = append(seen, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
		}
		if got, want := strings.Join(seen, " "), "a=1 b=2 c=33 e=5 k=6 z=7 zz=8"; got != want || it.Err() != nil {
			t.Errorf("iterator from before the deletions: %s, want %s, %v", got, want, it.Err())
		}
		late := txn.Scan(t.Context(), kv.Span{}, ScanOptions{})
		txn.RollbackTo(sp)
		if late.Next(t.Context()) || !errors.Is(late.Err(), ErrIteratorInvalid) {
			t.Errorf("iterator over what was rolled back: %v", late.Err())
		}
		if got := mustGet(t, txn, "a"); got != "1" {
			t.Errorf("a = %s after rolling back to the savepoint", got)
		}
		mustCommit(t, txn)
		if got, want := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}), "a=1 b=2 c=33 e=5 k=6 z=7 zz=8"; got != want {
			t.Errorf("committed: %s, want %s", got, want)
		}
	})
}

// Goal: I2, and failed transactions leave nothing behind. Method: two transactions that write one key,
// in each combination of put, delete and lock; the second to commit fails.
func TestFirstCommitterWins(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		write := map[string]func(*Txn) error{
			"put":    func(x *Txn) error { return x.Put([]byte("k"), []byte("v")) },
			"delete": func(x *Txn) error { return x.Delete([]byte("k")) },
			"lock":   func(x *Txn) error { return x.LockKeys(t.Context(), []byte("k")) },
		}
		for first, a := range write {
			for second, b := range write {
				one, two := mustBegin(t, db), mustBegin(t, db)
				mustPut(t, one, "a=1")
				mustPut(t, two, "z=1")
				if err := errors.Join(a(one), b(two)); err != nil {
					t.Fatal(err)
				}
				mustCommit(t, one)
				_, err := two.Commit(t.Context())
				var conflict *mvcc.WriteConflictError
				if !errors.As(err, &conflict) || string(conflict.Key) != "k" {
					t.Errorf("%s after %s: %v", second, first, err)
				}
			}
		}
		db.waitIdle()
		if got := mustGet(t, mustBegin(t, db), "z"); got != "-" {
			t.Errorf("z = %s", got)
		}
		if locks := c.locks(); len(locks) != 0 {
			t.Errorf("locks left: %v", locks)
		}
	})
}

// Goal: snapshot isolation, and so this package, allows write skew. Method: two
// transactions read both keys and each clears one; both commit.
func TestWriteSkewIsAllowed(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		base := mustBegin(t, db)
		mustPut(t, base, "a=on", "z=on")
		mustCommit(t, base)
		one, two := mustBegin(t, db), mustBegin(t, db)
		for _, txn := range []*Txn{one, two} {
			if mustGet(t, txn, "a") != "on" || mustGet(t, txn, "z") != "on" {
				t.Fatal("snapshot")
			}
		}
		mustPut(t, one, "a=off")
		mustPut(t, two, "z=off")
		mustCommit(t, one)
		mustCommit(t, two)
		if got := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); got != "a=off z=off" {
			t.Fatal(got)
		}
	})
}

// Goal: LockKeys of the keys that were read prevents write skew.
func TestProto_T_LCK_2(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		one, two := mustBegin(t, db), mustBegin(t, db)
		for _, txn := range []*Txn{one, two} {
			if err := txn.LockKeys(t.Context(), []byte("a"), []byte("z")); err != nil {
				t.Fatal(err)
			}
		}
		mustPut(t, one, "a=off")
		mustPut(t, two, "z=off")
		mustCommit(t, one)
		var conflict *mvcc.WriteConflictError
		if _, err := two.Commit(t.Context()); !errors.As(err, &conflict) {
			t.Fatal(err)
		}
	})
}

// Goal: Insert fails if and only if the key has a value at the snapshot, or one was inserted since.
// Method: sequences of writes on existing and non-existing keys, distributed over the stores.
func TestProto_T_CMP_1(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		put := func(k string) func(*Txn) error { return func(x *Txn) error { return x.Put([]byte(k), []byte("p")) } }
		insert := func(k string) func(*Txn) error {
			return func(x *Txn) error { return x.Insert([]byte(k), []byte("i")) }
		}
		del := func(k string) func(*Txn) error { return func(x *Txn) error { return x.Delete([]byte(k)) } }
		lock := func(k string) func(*Txn) error {
			return func(x *Txn) error { return x.LockKeys(t.Context(), []byte(k)) }
		}
		type steps = []func(*Txn) error
		for _, tc := range []struct {
			name   string
			steps  steps
			exists bool   // KeyExistsError
			after  string // of the key, if committed
		}{
			{"insert new", steps{insert("new")}, false, "i"},
			{"insert old", steps{insert("old")}, true, ""},
			{"delete, insert old", steps{del("old"), insert("old")}, false, "i"},
			{"insert, delete new", steps{insert("new"), del("new")}, false, "-"},
			{"insert, delete old", steps{insert("old"), del("old")}, true, ""},
			{"insert, delete, insert new", steps{insert("new"), del("new"), insert("new")}, false, "i"},
			{"insert, delete, lock new", steps{insert("new"), del("new"), lock("new")}, false, "-"},
			{"insert, delete, lock old", steps{insert("old"), del("old"), lock("old")}, true, ""},
			{"insert twice", steps{insert("new"), insert("new")}, true, ""},
			{"put, insert", steps{put("new"), insert("new")}, true, ""},
			{"lock, insert new", steps{lock("new"), insert("new")}, false, "i"},
			{"lock, insert old", steps{lock("old"), insert("old")}, true, ""},
			{"insert, put new", steps{insert("new"), put("new")}, false, "p"},
			{"insert, put old", steps{insert("old"), put("old")}, true, ""},
		} {
			for _, more := range []bool{false, true} { // alone, and with writes on the other stores
				t.Run(fmt.Sprintf("%s/more=%v", tc.name, more), func(t *testing.T) {
					c := open(t, nil, "l", "o")
					db := c.db(Options{}, nil)
					base := mustBegin(t, db)
					mustPut(t, base, "old=0")
					mustCommit(t, base)
					txn := mustBegin(t, db)
					for _, step := range tc.steps {
						if err := step(txn); err != nil {
							t.Fatal(err)
						}
					}
					if more {
						mustPut(t, txn, "a=1", "z=1")
					}
					_, err := txn.Commit(t.Context())
					var exists *mvcc.KeyExistsError
					if errors.As(err, &exists) != tc.exists || err != nil && !tc.exists {
						t.Fatal(err)
					}
					db.waitIdle()
					if locks := c.locks(); len(locks) != 0 {
						t.Fatalf("locks left: %v", locks)
					}
					key := "new"
					if strings.HasSuffix(tc.name, "old") {
						key = "old"
					}
					if got := mustGet(t, mustBegin(t, db), key); err == nil && got != tc.after {
						t.Fatalf("%s, want %s", got, tc.after)
					}
				})
			}
		}
	})
}

// Goal: of two transactions that insert one key, one succeeds, and the other receives a conflict, not the error of a
// duplicate of a row outside of its snapshot.
func TestProto_T_CMP_2(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		one, two := mustBegin(t, db), mustBegin(t, db)
		for _, txn := range []*Txn{one, two} {
			if err := txn.Insert([]byte("k"), []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
		mustCommit(t, one)
		var conflict *mvcc.WriteConflictError
		if _, err := two.Commit(t.Context()); !errors.As(err, &conflict) {
			t.Fatal(err)
		}
	})
}

// Goal: operations on a completed, a read-only or a too large transaction return the documented errors, and an empty
// value differs from an absent one.
func TestEdgesOfATransaction(t *testing.T) {
	db := newCluster(t, nil).db(Options{MaxTxnBytes: 1000}, nil)
	txn := mustBegin(t, db)
	if txn.Wrote() {
		t.Error("wrote nothing yet")
	}
	if err := txn.Put([]byte("empty"), nil); err != nil || !txn.Wrote() {
		t.Fatal(err)
	}
	if v, err := txn.Get(t.Context(), []byte("empty")); v == nil || err != nil {
		t.Error(v, err)
	}
	var large *TxnTooLargeError
	if err := txn.Put([]byte("big"), make([]byte, 1000)); !errors.As(err, &large) {
		t.Error(err)
	}
	it := txn.Scan(t.Context(), kv.Span{}, ScanOptions{})
	mustCommit(t, txn)
	if it.Next(t.Context()) || !errors.Is(it.Err(), ErrTxnDone) {
		t.Error(it.Err())
	}
	_, getErr := txn.Get(t.Context(), []byte("a"))
	_, batchErr := txn.BatchGet(t.Context(), nil)
	_, commitErr := txn.Commit(t.Context())
	done := txn.Scan(t.Context(), kv.Span{}, ScanOptions{})
	done.Next(t.Context())
	for i, err := range []error{getErr, batchErr, commitErr, done.Err(), txn.Put([]byte("a"), nil)} {
		if !errors.Is(err, ErrTxnDone) {
			t.Error(i, err)
		}
	}
	if err := txn.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	after := mustBegin(t, db)
	if v, err := after.Get(t.Context(), []byte("empty")); v == nil || err != nil {
		t.Error(v, err)
	}
	if err := db.BeginAt(after.StartTS()).Delete([]byte("a")); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if ts := mustCommit(t, after); ts != 0 {
		t.Error(ts)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late := mustBegin(t, db)
	mustPut(t, late, "late=1")
	if _, err := late.Commit(cancelled); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := mustGet(t, mustBegin(t, db), "late"); got != "-" {
		t.Error(got)
	}
}

// Goal: metrics are registered under their names, and count events.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	db := newCluster(t, nil, "m").db(Options{Registerer: registry}, nil)
	for _, pairs := range [][]string{{"a=1"}, {"a=1", "z=1"}, nil} {
		txn := mustBegin(t, db)
		mustPut(t, txn, pairs...)
		mustCommit(t, txn)
	}
	large := mustBegin(t, db)
	mustPut(t, large, "a=2", "z="+strings.Repeat("z", maxRequestBytes))
	mustCommit(t, large)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	commits := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "percodb_percolator_") {
			t.Errorf("metric %s", f.GetName())
		}
		if f.GetName() == "percodb_percolator_commits_total" {
			for _, m := range f.GetMetric() {
				commits[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	for _, kind := range []string{"read_only", "one_phase", "async", "two_phase"} {
		if commits[kind] != 1 {
			t.Errorf("%s: %v commits", kind, commits[kind])
		}
	}
}
