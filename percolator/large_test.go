package percolator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/kv/mvcc"
)

// spilling are options under which a write set of a few hundred rows exceeds its memory.
var spilling = Options{SpillBytes: 8 << 10}

func rowKey(i int) []byte { return fmt.Appendf(nil, "row%06d", i) }

// contents reads all rows in both directions and returns their number and the sum of their values.
func contents(t *testing.T, r Reader) (rows int, sum int64) {
	t.Helper()
	ctx := context.Background()
	var counted [2]int
	var summed [2]int64
	for i, reverse := range []bool{false, true} {
		it := r.Scan(ctx, rowSpan, ScanOptions{Reverse: reverse})
		last := ""
		for it.Next(ctx) {
			key := string(it.Key())
			if last != "" && (key <= last) != reverse {
				t.Fatalf("%s after %s", key, last)
			}
			last = key
			var v int64
			if _, err := fmt.Sscan(string(it.Value()), &v); err != nil {
				t.Fatal(err)
			}
			counted[i]++
			summed[i] += v
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		it.Close()
	}
	if counted[0] != counted[1] || summed[0] != summed[1] {
		t.Fatalf("forward %d rows of %d, backward %d of %d", counted[0], summed[0], counted[1], summed[1])
	}
	return counted[0], summed[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Goal: a transaction whose writes are many times its share of memory reads them, scans them while it writes, rolls
// back to savepoints and commits, on one store and on several.
func TestTransactionLargerThanItsMemory(t *testing.T) {
	for _, bounds := range [][]string{nil, {"row001000", "row002500"}} {
		t.Run(fmt.Sprint(len(bounds)+1, " stores"), func(t *testing.T) {
			ctx := context.Background()
			db := newCluster(t, nil, bounds...).db(spilling, nil)
			const n = 5000
			txn := mustBegin(t, db)
			for i := range n {
				must(t, txn.Insert(rowKey(i*7919%n), []byte("1"))) // not in key order
			}
			if txn.buf.spilled == nil || len(txn.buf.spilled.runs) < 3 {
				t.Fatal("the writes stayed in memory")
			}
			if rows, sum := contents(t, txn); rows != n || sum != n {
				t.Fatalf("its own writes: %d rows of %d", rows, sum)
			}
			before := txn.Savepoint()
			it := txn.Scan(ctx, rowSpan, ScanOptions{})
			seen := 0
			for it.Next(ctx) { // each row once, though it is rewritten meanwhile
				seen++
				must(t, txn.Put(append([]byte(nil), it.Key()...), []byte("3")))
			}
			must(t, it.Err())
			it.Close()
			if seen != n {
				t.Fatalf("an update saw %d of %d rows", seen, n)
			}
			if rows, sum := contents(t, txn); rows != n || sum != 3*n {
				t.Fatalf("after an update: %d rows of %d", rows, sum)
			}
			txn.RollbackTo(before)
			if rows, sum := contents(t, txn); rows != n || sum != n {
				t.Fatalf("after a rollback to a savepoint: %d rows of %d", rows, sum)
			}
			for i := 0; i < n; i += 2 {
				must(t, txn.Delete(rowKey(i)))
			}
			if v, err := txn.Get(ctx, rowKey(3)); err != nil || string(v) != "1" {
				t.Fatalf("%q %v", v, err)
			}
			if v, err := txn.Get(ctx, rowKey(4)); err != nil || v != nil {
				t.Fatalf("%q %v", v, err)
			}
			if _, err := txn.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			after := mustBegin(t, db)
			defer after.Close()
			if rows, sum := contents(t, after); rows != n/2 || sum != n/2 {
				t.Fatalf("committed: %d rows of %d", rows, sum)
			}
		})
	}
}

// Goal: a large transaction fails as a small one does, and leaves nothing: after a conflict, on a key that exists and
// on one inserted twice.
func TestLargeTransactionFailsWhole(t *testing.T) {
	ctx := context.Background()
	for _, bounds := range [][]string{nil, {"row001500"}} {
		for _, why := range []string{"conflict", "exists", "twice"} {
			t.Run(fmt.Sprint(len(bounds)+1, " stores, ", why), func(t *testing.T) {
				db := newCluster(t, nil, bounds...).db(spilling, nil)
				if why == "exists" {
					first := mustBegin(t, db)
					must(t, first.Put(rowKey(2999), []byte("7")))
					_, err := first.Commit(ctx)
					must(t, err)
				}
				txn := mustBegin(t, db)
				for i := range 3000 {
					must(t, txn.Insert(rowKey(i), []byte("1")))
				}
				var want any
				var conflict *mvcc.WriteConflictError
				var exists *mvcc.KeyExistsError
				switch why {
				case "conflict":
					other := mustBegin(t, db)
					must(t, other.Put(rowKey(2998), []byte("7")))
					_, err := other.Commit(ctx)
					must(t, err)
					want = &conflict
				case "twice":
					must(t, txn.Insert(rowKey(10), []byte("2")))
					want = &exists
				default:
					want = &exists
				}
				if _, err := txn.Commit(ctx); !errors.As(err, want) {
					t.Fatalf("commit: %v", err)
				}
				after := mustBegin(t, db)
				defer after.Close()
				rows, sum := contents(t, after)
				if want := 1; why == "twice" {
					if rows != 0 {
						t.Fatalf("%d rows", rows)
					}
				} else if rows != want || sum != 7 {
					t.Fatalf("%d rows of %d", rows, sum)
				}
			})
		}
	}
}

// Goal: a pessimistic transaction's locks protect what it has written to a file, and what it has locked and not
// written.
func TestLargePessimisticTransaction(t *testing.T) {
	ctx := context.Background()
	c := newCluster(t, nil)
	db := c.db(spilling, nil)
	first := mustBegin(t, db)
	for i := range 3000 {
		must(t, first.Put(rowKey(i), []byte("1")))
	}
	_, err := first.Commit(ctx)
	must(t, err)
	txn, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true, Isolation: ReadCommitted})
	must(t, err)
	for i := 0; i < 3000; i += 100 {
		must(t, txn.BeginStatement(ctx))
		var keys [][]byte
		for j := i; j < i+100; j++ {
			keys = append(keys, rowKey(j))
		}
		if _, err := txn.AcquireLocks(ctx, LockOptions{}, keys...); err != nil {
			t.Fatal(err)
		}
		for j, key := range keys {
			if j%2 == 0 {
				must(t, txn.Put(key, []byte("2")))
			}
		}
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	after := mustBegin(t, db)
	defer after.Close()
	if rows, sum := contents(t, after); rows != 3000 || sum != 4500 {
		t.Fatalf("%d rows of %d", rows, sum)
	}
	must(t, db.Close()) // the secondaries are committed
	if left := c.locks(); len(left) > 0 {
		t.Fatalf("%d locks are left", len(left))
	}
}

// Goal: every kind of read that begins after a commit of a large transaction sees it, also if the keys were read before
// and small commits lie in between.
func TestLargeCommitsAreSeen(t *testing.T) {
	ctx := context.Background()
	c := newCluster(t, nil)
	large, small := c.db(Options{SpillBytes: 1}, nil), c.db(Options{}, nil)
	for i := range 60 {
		db := large
		if i%3 == 2 {
			db = small
		}
		want := fmt.Sprint(i)
		txn := mustBegin(t, db)
		for j := range 3 {
			if v, err := txn.Get(ctx, rowKey(j)); i > 0 && (err != nil || string(v) != fmt.Sprint(i-1)) {
				t.Fatalf("before commit %d: %q %v", i, v, err)
			}
			must(t, txn.Put(rowKey(j), []byte("replaced")))
			must(t, txn.Put(rowKey(j), []byte(want)))
		}
		if _, err := txn.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			after := mustBegin(t, db)
			if rows, sum := contents(t, after); rows != 3 || sum != int64(3*i) {
				t.Fatalf("commit %d: %d rows of %d", i, rows, sum)
			}
			if v, err := after.BatchGet(ctx, [][]byte{rowKey(0), rowKey(2)}); err != nil || string(v[0]) != want || string(v[1]) != want {
				t.Fatalf("commit %d: %q %v", i, v, err)
			}
			after.Close()
			if v, err := db.Latest().Get(ctx, rowKey(1)); err != nil || string(v) != want {
				t.Fatalf("commit %d: the latest value is %q %v", i, v, err)
			}
		}
	}
}

// Goal: a cancel ends the merge of a large write set, and nothing is committed.
func TestCancelReachesLargeCommit(t *testing.T) {
	db := newCluster(t, nil).db(spilling, nil)
	txn := mustBegin(t, db)
	for i := range 10_000 {
		must(t, txn.Put(rowKey(i*7919%10_000), []byte("1"))) // not in key order
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&committer{db: db, startTS: txn.startTS, readTS: txn.snap.readTS}).seal(ctx, txn); !errors.Is(err, context.Canceled) {
		t.Fatalf("merging: %v", err)
	}
	if _, err := txn.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("commit: %v", err)
	}
	after := mustBegin(t, db)
	defer after.Close()
	if rows, _ := contents(t, after); rows != 0 {
		t.Fatalf("%d rows", rows)
	}
}

// adoptedKeys counts the keys of a transaction with a spilled buffer that the write set takes from the file unmerged.
func adoptedKeys(t *testing.T, txn *Txn) (n int) {
	t.Helper()
	c := &committer{db: txn.db, startTS: txn.startTS, readTS: txn.snap.readTS}
	set, err := c.seal(context.Background(), txn)
	must(t, err)
	defer set.close()
	cur := set.run.NewCursor()
	for ok := cur.First(); ok; ok = cur.Next() {
		if cur.Adopted() {
			n++
		}
	}
	must(t, cur.Err())
	return n
}

// Goal: a transaction that writes in key order has one run and commits it unmerged, on one store and on several, and
// after a rollback to a savepoint within the run only the rest is committed.
func TestKeyOrderIsNotMerged(t *testing.T) {
	ctx := context.Background()
	const n = 3000
	for _, bounds := range [][]string{nil, {"row001500"}} {
		for _, undo := range []bool{false, true} {
			t.Run(fmt.Sprint(len(bounds)+1, " stores, undo ", undo), func(t *testing.T) {
				db := newCluster(t, nil, bounds...).db(spilling, nil)
				txn := mustBegin(t, db)
				var middle Savepoint
				for i := range n {
					if i == n/2 {
						middle = txn.Savepoint()
					}
					must(t, txn.Insert(rowKey(i), []byte("1")))
				}
				want := n
				if undo {
					txn.RollbackTo(middle)
					for i := n; i < n+1000; i++ {
						must(t, txn.Insert(rowKey(i), []byte("1")))
					}
					want = n/2 + 1000
				} else if runs := txn.buf.spilled.runs; len(runs) != 1 {
					t.Fatalf("%d runs", len(runs))
				}
				must(t, txn.buf.spill(""))
				if adopted := adoptedKeys(t, txn); (adopted == want) == undo {
					t.Fatalf("%d keys of %d are as they were written", adopted, want)
				}
				if rows, _ := contents(t, txn); rows != want {
					t.Fatalf("its own writes: %d rows of %d", rows, want)
				}
				_, err := txn.Commit(ctx)
				must(t, err)
				after := mustBegin(t, db)
				defer after.Close()
				if rows, _ := contents(t, after); rows != want {
					t.Fatalf("committed: %d rows of %d", rows, want)
				}
				again := mustBegin(t, db)
				for i := range n {
					must(t, again.Insert(rowKey(i), []byte("1")))
				}
				var exists *mvcc.KeyExistsError
				if _, err := again.Commit(ctx); !errors.As(err, &exists) {
					t.Fatalf("rows inserted once more: %v", err)
				}
			})
		}
	}
}

// Goal: a single run is merged if it is not a write set: with a key written twice, or a lock.
func TestSingleRunIsMergedIfNecessary(t *testing.T) {
	for name, write := range map[string]func(*Txn) error{
		"twice": func(txn *Txn) error { txn.buf.freeze(); return txn.Put(rowKey(1), []byte("2")) },
		"lock":  func(txn *Txn) error { return txn.LockKeys(context.Background(), rowKey(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			db := newCluster(t, nil).db(Options{}, nil)
			txn := mustBegin(t, db)
			must(t, txn.Put(rowKey(1), []byte("1")))
			must(t, write(txn))
			must(t, txn.buf.spill(t.TempDir()))
			if n := adoptedKeys(t, txn); n > 0 {
				t.Fatalf("%d keys are taken as they are", n)
			}
			_, err := txn.Commit(context.Background())
			must(t, err)
		})
	}
}

// Goal: merged runs release their space, and a cancel ends merging and leaves the runs unchanged.
func TestMergedRunsReleaseTheirSpace(t *testing.T) {
	db := newCluster(t, nil).db(Options{SpillBytes: 1}, nil)
	txn := mustBegin(t, db)
	defer txn.Close()
	const rows = maxRuns + 2 // The newest is in memory, the one before it may be being written.
	for i := range rows {
		must(t, txn.MergeRuns(context.Background())) // too few yet
		must(t, txn.Put(rowKey(rows-i), []byte("1")))
	}
	s := txn.buf.spilled
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := txn.MergeRuns(ctx); !errors.Is(err, context.Canceled) || len(s.runs) != maxRuns+1 {
		t.Fatalf("%v, %d runs", err, len(s.runs))
	}
	if n, _ := contents(t, txn); n != rows {
		t.Fatalf("after a cancel: %d rows", n)
	}
	must(t, txn.MergeRuns(context.Background()))
	if len(s.runs) != 1 || s.files[0] != nil || s.files[1] == nil {
		t.Fatalf("%d runs, files %v", len(s.runs), s.files)
	}
	if n, _ := contents(t, txn); n != rows {
		t.Fatalf("merged: %d rows", n)
	}
}

// Goal: writes merge runs without a call of MergeRuns, so that runs stay few.
func TestRunsStayFew(t *testing.T) {
	db := newCluster(t, nil).db(Options{SpillBytes: 1}, nil)
	txn := mustBegin(t, db)
	defer txn.Close()
	const n = 5 * maxRuns
	for i := range n {
		must(t, txn.Put(rowKey(n-i), []byte("1")))
		if s := txn.buf.spilled; s != nil && len(s.runs) > 2*maxRuns {
			t.Fatalf("%d runs", len(s.runs))
		}
	}
	if rows, _ := contents(t, txn); rows != n {
		t.Fatalf("%d rows", rows)
	}
}

// Goal: a write set of unmerged blocks of the runs and of merged records is what the transaction wrote and locked, each
// key once and in order. Method: stretches of keys in order, among others at random, some written twice or rolled back,
// some only locked; runs merged and not.
func TestWriteSetAgainstModel(t *testing.T) {
	ctx := context.Background()
	adopted, plain := 0, 0
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		db := newCluster(t, nil).db(Options{SpillBytes: 200 << 10}, nil)
		txn, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: seed%2 == 0})
		must(t, err)
		want := map[string]string{}
		if seed%2 == 0 {
			for range 5 {
				key := rowKey(rnd.IntN(60_000))
				_, err := txn.AcquireLocks(ctx, LockOptions{}, key)
				must(t, err)
				want[string(key)] = "lock"
			}
		}
		write := func(i int) {
			key, value := rowKey(i), fmt.Sprintf("%100d", rnd.IntN(100))
			if rnd.IntN(10) == 0 {
				must(t, txn.Delete(key))
				value = "delete"
			} else {
				if i%2 == 0 && want[string(key)] == "" {
					must(t, txn.Insert(key, []byte(value)))
				} else {
					must(t, txn.Put(key, []byte(value)))
				}
			}
			want[string(key)] = value
		}
		for range 10 {
			at := rnd.IntN(50_000)
			switch rnd.IntN(3) {
			case 0:
				for range 30 {
					write(rnd.IntN(60_000))
				}
			case 1:
				save, before := txn.Savepoint(), maps.Clone(want)
				for i := range 4000 {
					write(at + i)
				}
				txn.RollbackTo(save)
				want = before
			default:
				for i := range 4000 {
					write(at + i)
				}
			}
		}
		if txn.buf.len() == 0 {
			write(1)
		}
		must(t, txn.buf.spill(""))
		if seed%3 == 0 {
			must(t, txn.buf.spilled.compact(ctx, "", 2))
		}
		adopted += adoptedKeys(t, txn)
		c := &committer{db: db, startTS: txn.startTS, readTS: txn.snap.readTS}
		set, err := c.seal(ctx, txn)
		must(t, err)
		last, n, locks := "", 0, 0
		var told *mvcc.Batch
		describe := func(b *mvcc.Batch) (bool, error) { told = b; return false, nil }
		must(t, set.Read(ctx, describe, func(ms []mvcc.Mutation) error {
			if told.Plain {
				plain++
			}
			if string(told.First) != string(ms[0].Key) || string(told.Last) != string(ms[len(ms)-1].Key) {
				t.Fatalf("a batch of %q to %q is described as %q to %q", ms[0].Key, ms[len(ms)-1].Key, told.First, told.Last)
			}
			for i := range ms {
				if m := &ms[i]; told.Plain && (m.Op != mvcc.OpPut && m.Op != mvcc.OpDelete || m.LockedAt != 0 || m.MustBeNew && !told.MustBeNew) {
					t.Fatalf("%+v in a batch that is described as %+v", m, told)
				}
				m := &ms[i]
				key, got := string(m.Key), string(m.Value)
				switch m.Op {
				case mvcc.OpDelete, mvcc.OpCheckNotExists:
					got = "delete"
				case mvcc.OpLock:
					got = "lock"
				}
				if key <= last || got != want[key] {
					t.Fatalf("%s after %s: %q, want %q", key, last, got, want[key])
				}
				if n%997 == 0 {
					if has, err := set.Has(m.Key); !has || err != nil {
						t.Fatalf("%s: %v %v", key, has, err)
					}
				}
				if m.Op.LeavesLock() {
					locks++
				}
				last = key
				n++
			}
			return nil
		}))
		if n != len(want) || n != set.Len() || locks != set.locks {
			t.Fatalf("%d keys of %d, Len %d; %d locks, counted %d", n, len(want), set.Len(), locks, set.locks)
		}
		if _, found := want[string(set.primary)]; !found {
			t.Fatalf("primary %q", set.primary)
		}
		set.close()
		must(t, txn.Rollback(ctx))
	}
	if adopted == 0 || plain == 0 {
		t.Fatalf("%d keys were taken as they were, %d batches are plain", adopted, plain)
	}
}
