package mvcc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: the locks of a prewrite of many rows take a few bytes each once they are durable, also after a restart, and
// none once they are removed. Method: 50,000 rows in batches; the contents of the tree, and the size of the packs.
func TestPrewrittenLocksArePacked(t *testing.T) {
	const n, batch = 50_000, 5_000
	ctx := context.Background()
	w := newWorld(t, false, nil)
	start, primary := w.now(), []byte("row00000000")
	var batches [][]Mutation
	for from := 0; from < n; from += batch {
		ms := make([]Mutation, batch)
		for i := range ms {
			ms[i] = Mutation{Op: OpPut, Key: fmt.Appendf(nil, "row%08d", from+i), Value: fmt.Appendf(nil, "value %d", from+i)}
		}
		batches = append(batches, ms)
	}
	for _, ms := range batches {
		if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: primary, StartTS: start, TTLMillis: 60_000, TxnSize: n}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		bytes := int64(0)
		for _, p := range w.locks.packs {
			bytes += p.locks.SizeBytes()
		}
		t.Logf("%s: %d bytes a lock", when, bytes/n)
		if w.locks.tree.n > 1 || w.NumLocks() != n || bytes/n > 16 || w.locks.blocking.Load() != n {
			t.Fatalf("%s: %d locks, %d of them in the tree, %d block reads, the others take %d bytes", when, w.NumLocks(), w.locks.tree.n, w.locks.blocking.Load(), bytes)
		}
	}
	check("prewritten")
	w.close()
	w.open()
	check("after a restart")

	commitTS := w.now()
	if _, err := w.Commit(ctx, admitAll{}, [][]byte{primary}, start, commitTS, true); err != nil {
		t.Fatal(err)
	}
	readTS := w.now()
	resolved := ReadOptions{ReadTS: readTS, Resolved: []CommittedTxn{{StartTS: start, CommitTS: commitTS}}}
	if err := w.BeginRead(ctx, readTS); err != nil {
		t.Fatal(err)
	}
	key := []byte("row00023456")
	if value, err := w.Get(ctx, key, &resolved); err != nil || string(value) != "value 23456" {
		t.Fatalf("a read through a packed lock: %q, %v", value, err)
	}
	for _, reverse := range []bool{false, true} {
		page, err := w.Scan(ctx, &ScanRequest{Spans: []Span{{Start: key, End: []byte("row00023556")}}, Limit: 1000, MaxBytes: 1 << 20, Reverse: reverse, ReadOptions: resolved})
		if err != nil || len(page.Rows) != 100 || len(page.Locked) != 0 {
			t.Fatalf("a scan through packed locks: %+v, %v", page, err)
		}
	}
	if info, err := w.ScanLock(ctx, key, nil, readTS, 0, 3); err != nil || len(info) != 3 || string(info[2].Key) != "row00023458" || string(info[2].Lock.Primary) != string(primary) {
		t.Fatalf("a list of packed locks: %+v, %v", info, err)
	}
	for i, ms := range batches {
		keys := make([][]byte, len(ms))
		for j := range ms {
			keys[j] = ms[j].Key
		}
		var err error
		if i%2 == 0 {
			_, err = w.Commit(ctx, admitAll{}, keys, start, commitTS, false)
		} else {
			_, err = w.ResolveLock(ctx, admitAll{}, keys, start, commitTS)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.NumLocks() != 0 || w.locks.blocking.Load() != 0 || len(w.locks.packs) != 0 || w.locks.tree.n != 0 {
		t.Fatalf("%d locks and %d packs are left", w.NumLocks(), len(w.locks.packs))
	}
	for _, i := range []int{0, 4_999, 5_000, n - 1} {
		if value, err := w.Get(ctx, fmt.Appendf(nil, "row%08d", i), &ReadOptions{ReadTS: readTS}); err != nil || string(value) != fmt.Sprint("value ", i) {
			t.Fatalf("row %d is %q, %v", i, value, err)
		}
	}
}

// oneBatch is a write set that is read in one batch.
type oneBatch struct{ memSet }

func (s *oneBatch) Read(_ context.Context, _ func(*Batch) (bool, error), f func([]Mutation) error) error {
	return f(s.ms)
}

func (s *oneBatch) Parts(int) []WriteSetPart { return []WriteSetPart{s} }

// Goal: a large commit replaces all locks of its transaction and leaves none, also if a waiter unpacks one meanwhile.
// Method: commits of many rows whose locks are packed, while another goroutine begins to wait for rows at random and
// cancels, from the check of the rows on.
func TestLargeCommitReplacesLocksUnpackedMeanwhile(t *testing.T) {
	const n, rounds = 20_000, 8
	ctx := context.Background()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	w := newPackingWorld(t, true, nil, packAll)
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "row%08d", i)
	}
	for round := range rounds {
		start := w.now()
		locked, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: keys, Primary: keys[0], StartTS: start, TTLMillis: 60_000})
		if err != nil {
			t.Fatal(err)
		}
		ms := make([]Mutation, n)
		for i := range ms {
			ms[i] = Mutation{Op: OpPut, Key: keys[i], Value: []byte("v"), LockedAt: locked.LockedAt[i]}
		}
		var waiting sync.WaitGroup
		stop := make(chan struct{})
		wait := func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = w.WaitForRelease(canceled, keys[rand.IntN(n)], start)
				}
			}
		}
		begin := sync.OnceFunc(func() { waiting.Go(wait) })
		_, err = w.CommitLarge(ctx, func([]Mutation, bool) Admission { begin(); return admitAll{} }, &CommitLargeRequest{Set: &oneBatch{memSet{ms: ms}}, StartTS: start, Primary: keys[0], TTLMillis: 3000})
		close(stop)
		waiting.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if left := w.NumLocks(); left != 0 || w.locks.tree.n != 0 || len(w.locks.packs) != 0 {
			t.Fatalf("round %d: %d locks are left, %d of them in the tree", round, left, w.locks.tree.n)
		}
	}
}

// Goal: a list of the locks of old transactions includes the packed ones, of each pack that may have some. Method:
// locks of two transactions next to each other; lists up to the older one, and up to both.
func TestListOfOldPackedLocks(t *testing.T) {
	ctx := context.Background()
	w := newPackingWorld(t, true, nil, packAll)
	var starts [2]tso.Timestamp
	for txn := range starts {
		starts[txn] = w.now()
		var keys [][]byte
		for i := range 100 {
			keys = append(keys, fmt.Appendf(nil, "row%03d", 2*i+txn))
		}
		if _, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: keys, Primary: keys[0], StartTS: starts[txn], TTLMillis: 60_000}); err != nil {
			t.Fatal(err)
		}
	}
	for txn, want := range []int{100, 200} {
		locks, err := w.ScanLock(ctx, nil, nil, starts[txn], 0, 1000)
		if err != nil || len(locks) != want {
			t.Fatalf("%d locks as of transaction %d, want %d; %v", len(locks), txn, want, err)
		}
		for i := 1; i < len(locks); i++ {
			if string(locks[i-1].Key) >= string(locks[i].Key) {
				t.Fatalf("%s before %s", locks[i-1].Key, locks[i].Key)
			}
		}
	}
}
