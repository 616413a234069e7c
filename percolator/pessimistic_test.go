package percolator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var pessimistic = TxnOptions{Pessimistic: true}

func mustBeginTxn(t testing.TB, db *DB, opts TxnOptions) *Txn {
	t.Helper()
	txn, err := db.BeginTxn(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { txn.Rollback(context.Background()) })
	return txn
}

func lock(txn *Txn, keys ...string) error { return lockAs(txn, LockOptions{}, keys...) }

func lockAs(txn *Txn, opts LockOptions, keys ...string) error {
	var list [][]byte
	for _, key := range keys {
		list = append(list, []byte(key))
	}
	_, err := txn.AcquireLocks(context.Background(), opts, list...)
	return err
}

// statement runs body as the SQL layer runs a statement: again, as long as it must.
func statement(ctx context.Context, txn *Txn, body func() error) error {
	sp := txn.Savepoint()
	for {
		err := txn.BeginStatement(ctx)
		if err == nil {
			err = body()
		}
		if !errors.Is(err, ErrRestartStatement) {
			return err
		}
		txn.RestartStatement(sp)
	}
}

// increment increments a counter, as UPDATE does: it reads the row to find it, locks it, and changes what it has read.
func increment(ctx context.Context, txn *Txn, key string) error {
	return statement(ctx, txn, func() error {
		value, err := txn.Get(ctx, []byte(key))
		if err != nil {
			return err
		}
		if _, err := txn.AcquireLocks(ctx, LockOptions{}, []byte(key)); err != nil {
			return err
		}
		n, _ := strconv.Atoi(string(value))
		return txn.Put([]byte(key), []byte(strconv.Itoa(n+1)))
	})
}

// realOracle is an oracle whose time passes.
func realOracle(t testing.TB) tso.Oracle {
	t.Helper()
	oracle, err := tso.NewLocal(context.Background(), &tso.MemoryWindow{}, tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { oracle.Close() })
	return oracle
}

// eachRealCluster is eachCluster with time that passes.
func eachRealCluster(t *testing.T, run func(t *testing.T, c *cluster)) {
	t.Run("stores=1", func(t *testing.T) { run(t, newCluster(t, realOracle(t))) })
	t.Run("stores=3", func(t *testing.T) { run(t, newCluster(t, realOracle(t), "h", "p")) })
	t.Run("table", func(t *testing.T) { run(t, newTable(t, realOracle(t))) })
}

// Goal: transaction blocks queue for a hot row: no update is lost and none fails. Method: 64 goroutines increment one
// counter, after having read another row and written a row of their own; at every isolation level that guarantees it.
func TestProto_T_PES_5(t *testing.T) {
	for _, level := range []Isolation{SnapshotIsolation, ReadCommitted} {
		t.Run(level.String(), func(t *testing.T) {
			eachRealCluster(t, func(t *testing.T, c *cluster) {
				db := c.db(Options{}, nil)
				seed := mustBegin(t, db)
				mustPut(t, seed, "hot=0", "a/setting=on")
				mustCommit(t, seed)
				const clients, each = 64, 4
				var wg sync.WaitGroup
				for i := range clients {
					wg.Go(func() {
						ctx := context.Background()
						for j := range each {
							txn, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true, Isolation: level})
							if err != nil {
								t.Error(err)
								return
							}
							if err := txn.BeginStatement(ctx); err != nil {
								t.Error(err)
							}
							if v, err := txn.Get(ctx, []byte("a/setting")); err != nil || string(v) != "on" {
								t.Error(string(v), err)
							}
							err = txn.Put(fmt.Appendf(nil, "z/%d/%d", i, j), []byte("mine"))
							if err == nil {
								err = increment(ctx, txn, "hot")
							}
							if err == nil {
								_, err = txn.Commit(ctx)
							}
							if err != nil {
								t.Error(err)
								txn.Rollback(ctx)
							}
						}
					})
				}
				wg.Wait()
				db.waitIdle()
				if got := mustGet(t, mustBegin(t, db), "hot"); got != strconv.Itoa(clients*each) {
					t.Errorf("hot = %s", got)
				}
				if rows := strings.Fields(scanAll(t, mustBegin(t, db), kv.Span{Start: []byte("z")}, ScanOptions{})); len(rows) != clients*each {
					t.Errorf("%d rows", len(rows))
				}
				if locks := c.locks(); len(locks) != 0 {
					t.Errorf("locks: %v", locks)
				}
			})
		})
	}
}

// Goal: a snapshot is advanced only if all reads are unchanged. Method: a transaction reads in one of several ways,
// another changes something and the row to be locked; then the first locks it.
func TestSnapshotMovesIfItsReadsHold(t *testing.T) {
	ctx := context.Background()
	show := func(it Iterator, rows int) error {
		defer it.Close()
		for ; rows > 0 && it.Next(ctx); rows-- {
		}
		return it.Err()
	}
	read := func(txn *Txn, span kv.Span, opts ScanOptions, rows int) error {
		return show(txn.Scan(ctx, span, opts), rows)
	}
	// Several spans with gaps between them: of b and c, of d alone, of f and after.
	readSpans := func(txn *Txn, opts ScanOptions, rows int) error {
		spans := []kv.Span{{Start: []byte("b"), End: []byte("cd")}, {Start: []byte("d"), End: []byte("dd")}, {Start: []byte("f"), End: []byte("g")}}
		return show(txn.ScanSpans(ctx, spans, opts), rows)
	}
	all := kv.Span{Start: []byte("b"), End: []byte("g")}
	for _, tc := range []struct {
		name   string
		read   func(txn *Txn) error
		change string
		moves  bool
	}{
		{"nothing read", func(*Txn) error { return nil }, "c", true},
		{"the point", func(txn *Txn) error { _, err := txn.Get(ctx, []byte("c")); return err }, "c", false},
		{"another point", func(txn *Txn) error { _, err := txn.Get(ctx, []byte("d")); return err }, "c", true},
		{"an absent point", func(txn *Txn) error { _, err := txn.Get(ctx, []byte("cc")); return err }, "cc", false},
		{"points", func(txn *Txn) error { _, err := txn.BatchGet(ctx, [][]byte{[]byte("d"), []byte("c")}); return err }, "c", false},
		{"a span", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 100) }, "c", false},
		{"a phantom in a span", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 100) }, "dd", false},
		{"behind the last row of a span", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 100) }, "ff", false},
		{"beyond a span", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 100) }, "g", true},
		{"an empty span", func(txn *Txn) error {
			return read(txn, kv.Span{Start: []byte("x"), End: []byte("y")}, ScanOptions{}, 1)
		}, "xx", false},
		{"small pages", func(txn *Txn) error { return read(txn, all, ScanOptions{PageHint: 1}, 100) }, "dd", false},
		{"a scan closed early, behind", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 2) }, "dd", true},
		{"a scan closed early, within", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 2) }, "bb", false},
		{"a scan closed early, its last row", func(txn *Txn) error { return read(txn, all, ScanOptions{}, 2) }, "c", false},
		{"reverse, closed early, behind", func(txn *Txn) error { return read(txn, all, ScanOptions{Reverse: true}, 2) }, "c", true},
		{"reverse, closed early, within", func(txn *Txn) error { return read(txn, all, ScanOptions{Reverse: true}, 2) }, "ee", false},
		{"reverse, small pages", func(txn *Txn) error { return read(txn, all, ScanOptions{Reverse: true, PageHint: 1}, 100) }, "bb", false},
		{"a row of several spans", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 100) }, "d", false},
		{"a phantom in several spans", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 100) }, "bb", false},
		{"behind the last row of several spans", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 100) }, "ff", false},
		{"between several spans", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 100) }, "e", true},
		{"several spans, small pages", func(txn *Txn) error { return readSpans(txn, ScanOptions{PageHint: 1}, 100) }, "dc", false},
		{"several spans, small pages, between", func(txn *Txn) error { return readSpans(txn, ScanOptions{PageHint: 1}, 100) }, "e", true},
		{"several spans closed early, within", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 3) }, "bb", false},
		{"several spans closed early, behind", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 2) }, "f", true},
		{"several spans closed early, behind in the last", func(txn *Txn) error { return readSpans(txn, ScanOptions{}, 3) }, "dc", true},
		{"several spans in reverse", func(txn *Txn) error { return readSpans(txn, ScanOptions{Reverse: true}, 100) }, "bb", false},
		{"several spans in reverse, closed early, within", func(txn *Txn) error { return readSpans(txn, ScanOptions{Reverse: true}, 2) }, "ff", false},
		{"several spans in reverse, closed early, behind", func(txn *Txn) error { return readSpans(txn, ScanOptions{Reverse: true}, 2) }, "c", true},
		{"several spans in reverse, small pages", func(txn *Txn) error { return readSpans(txn, ScanOptions{Reverse: true, PageHint: 1}, 100) }, "dc", false},
		{"a point within a scan closed early", func(txn *Txn) error {
			it := txn.Scan(ctx, all, ScanOptions{})
			defer it.Close()
			it.Next(ctx)
			_, err := txn.Get(ctx, []byte("f"))
			return err
		}, "f", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachCluster(t, func(t *testing.T, c *cluster) {
				db := c.db(Options{}, nil)
				seed := mustBegin(t, db)
				mustPut(t, seed, "b=0", "c=0", "d=0", "e=0", "f=0", "hot=0")
				mustCommit(t, seed)
				txn := mustBeginTxn(t, db, pessimistic)
				if err := txn.BeginStatement(ctx); err != nil {
					t.Fatal(err)
				}
				if err := tc.read(txn); err != nil {
					t.Fatal(err)
				}
				other := mustBegin(t, db)
				mustPut(t, other, tc.change+"=1", "hot=1")
				mustCommit(t, other)
				if err := txn.BeginStatement(ctx); err != nil {
					t.Fatal(err)
				}
				if got := mustGet(t, txn, "hot"); got != "0" {
					t.Fatal(got)
				}
				err := lock(txn, "hot")
				var conflict *mvcc.WriteConflictError
				switch {
				case tc.moves && !errors.Is(err, ErrRestartStatement):
					t.Fatal(err)
				case tc.moves:
					if got := mustGet(t, txn, "hot"); got != "1" {
						t.Fatal(got)
					}
				case !errors.As(err, &conflict):
					t.Fatalf("%v, want a conflict", err)
				case string(conflict.Key) != tc.change || conflict.ConflictingCommitTS == 0 || conflict.ConflictingStartTS == 0:
					t.Fatalf("%+v", conflict)
				}
			})
		})
	}
}

// Goal: the record of reads is bounded for any reads, and the snapshot advances as long as nothing near them has
// changed. Method: a small limit, and many keys in several statements; then a change among them.
func TestReadRecordIsBounded(t *testing.T) {
	ctx := context.Background()
	c := newCluster(t, nil)
	db := c.db(Options{MaxReadSpans: 16}, nil)
	change := func(pair string) {
		other := mustBegin(t, db)
		mustPut(t, other, pair)
		mustCommit(t, other)
	}
	txn := mustBeginTxn(t, db, pessimistic)
	points := func(n, different int) {
		for i := range n {
			mustGet(t, txn, fmt.Sprintf("k%d", i%different))
			if len(txn.reads.spans) > 16 {
				t.Fatalf("%d spans", len(txn.reads.spans))
			}
		}
	}
	points(100, 10)
	for i, hot := range []string{"hot", "hotter", "hottest"} {
		if err := txn.BeginStatement(ctx); err != nil {
			t.Fatal(err)
		}
		points(100, 40*(i+1))
		change(hot + "=1")
		if err := lock(txn, hot); !errors.Is(err, ErrRestartStatement) {
			t.Fatal(err)
		}
		points(100, 40*(i+1)) // the statement again
	}
	if err := txn.BeginStatement(ctx); err != nil {
		t.Fatal(err)
	}
	change("k57=1")
	change("last=1")
	var conflict *mvcc.WriteConflictError
	if err := lock(txn, "last"); !errors.As(err, &conflict) || string(conflict.Key) != "k57" {
		t.Fatal(err)
	}
}

// Goal: NOWAIT, SKIP LOCKED and the lock timeout, against the locks of a running, of a crashed, and of a committed
// transaction whose locks are not all resolved (T-PES-9). Method: each against each.
func TestProto_T_PES_9(t *testing.T) {
	ctx := context.Background()
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		holder := mustBeginTxn(t, db, pessimistic)
		if err := lock(holder, "a", "k", "z"); err != nil {
			t.Fatal(err)
		}
		prewritten := mustBegin(t, db)
		holdLock(t, c, prewritten, "m")

		txn := mustBeginTxn(t, db, TxnOptions{Pessimistic: true, LockTimeout: 20 * time.Millisecond})
		var unavailable *LockNotAvailableError
		for _, key := range []string{"k", "m"} {
			if err := lockAs(txn, LockOptions{NoWait: true}, key); !errors.As(err, &unavailable) || unavailable.Timeout || string(unavailable.Key) != key {
				t.Fatalf("%s: %v", key, err)
			}
			if err := lock(txn, key); !errors.As(err, &unavailable) || !unavailable.Timeout {
				t.Fatalf("%s: %v", key, err)
			}
		}
		skipped, err := txn.AcquireLocks(ctx, LockOptions{SkipLocked: true}, []byte("k"), []byte("b"), []byte("z"), []byte("m"), []byte("y"))
		if err != nil || fmt.Sprint(skipped) != "[true false true true false]" {
			t.Fatal(skipped, err)
		}
		c.step.advance(time.Minute) // no heartbeat keeps the holder's locks alive in this time
		third := mustBeginTxn(t, db, pessimistic)
		scanAll(t, third, kv.Span{}, ScanOptions{}) // informs the shards of the time
		skipped, err = third.AcquireLocks(ctx, LockOptions{SkipLocked: true}, []byte("a"), []byte("k"), []byte("m"))
		if err != nil || skipped != nil {
			t.Fatal(skipped, err)
		}
	})
}

// Goal: SKIP LOCKED passes over the locks of several transactions that are alive although the TTLs of these locks have passed. Method: two
// holders; the oracle's clock jumps, which is not silence of the holders.
func TestSkipLocksOfSeveralOldTransactions(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		db := c.db(Options{}, nil)
		for _, keys := range [][]string{{"a", "k"}, {"b", "m"}} {
			if err := lock(mustBeginTxn(t, db, pessimistic), keys...); err != nil {
				t.Fatal(err)
			}
		}
		c.step.jump(time.Minute)
		txn := mustBeginTxn(t, db, pessimistic)
		if err := lock(txn, "y"); err != nil { // the primary: the others are requested together
			t.Fatal(err)
		}
		scanAll(t, txn, kv.Span{}, ScanOptions{}) // informs the shards of the time
		skipped, err := txn.AcquireLocks(ctx, LockOptions{SkipLocked: true}, []byte("k"), []byte("l"), []byte("m"))
		if err != nil || fmt.Sprint(skipped) != "[true false true]" {
			t.Fatal(skipped, err)
		}
	})
}

// Goal: shared locks are compatible, block writers, and can be upgraded.
func TestSharedLocks(t *testing.T) {
	c := newCluster(t, nil)
	db := c.db(Options{}, nil)
	one, two := mustBeginTxn(t, db, pessimistic), mustBeginTxn(t, db, pessimistic)
	for _, txn := range []*Txn{one, two} {
		if err := lockAs(txn, LockOptions{Shared: true}, "k"); err != nil {
			t.Fatal(err)
		}
	}
	var unavailable *LockNotAvailableError
	if err := lockAs(one, LockOptions{NoWait: true}, "k"); !errors.As(err, &unavailable) || unavailable.Lock.StartTS != two.StartTS() {
		t.Fatal(err)
	}
	two.Rollback(t.Context())
	if err := lockAs(one, LockOptions{NoWait: true}, "k"); err != nil {
		t.Fatal(err)
	}
	three := mustBeginTxn(t, db, pessimistic)
	if err := lockAs(three, LockOptions{NoWait: true, Shared: true}, "k"); !errors.As(err, &unavailable) {
		t.Fatal(err)
	}
}

// Goal: locks are released when they should be: at a rollback to a savepoint those acquired since (except the first of
// the transaction), at the end all of them, written or not; a retried statement keeps them.
func TestLocksAreReleased(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		held := func() string {
			db.waitIdle()
			var keys []string
			for _, l := range c.locks() {
				keys = append(keys, string(l.Key))
			}
			return strings.Join(keys, " ")
		}
		txn := mustBeginTxn(t, db, pessimistic)
		start := txn.Savepoint()
		for _, step := range []struct {
			do   func() error
			want string
		}{
			{func() error { return lock(txn, "b") }, "b"},
			{func() error { return lock(txn, "z", "k", "b") }, "b k z"},
			{func() error { sp := txn.Savepoint(); mustPut(t, txn, "k=1"); txn.RestartStatement(sp); return nil }, "b k z"},
			{func() error { sp := txn.Savepoint(); err := lock(txn, "x", "y", "k"); txn.RollbackTo(sp); return err }, "b k z"},
			{func() error { txn.RollbackTo(start); return nil }, "b"},
			{func() error { return lock(txn, "z", "y") }, "b y z"},
			{func() error { mustPut(t, txn, "z=1"); mustCommit(t, txn); return nil }, ""},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if got := held(); got != step.want {
				t.Fatalf("%q, want %q", got, step.want)
			}
		}
		for _, end := range []func(*Txn){
			func(txn *Txn) { txn.Rollback(context.Background()) },
			func(txn *Txn) { mustCommit(t, txn) },
			func(txn *Txn) {
				txn.Insert([]byte("z"), nil)
				txn.Put([]byte("b"), nil)
				if _, err := txn.Commit(context.Background()); err == nil {
					t.Error("inserted what exists")
				}
			},
		} {
			txn := mustBeginTxn(t, db, pessimistic)
			if err := lock(txn, "b", "k", "z"); err != nil {
				t.Fatal(err)
			}
			end(txn)
			if got := held(); got != "" {
				t.Fatal(got)
			}
		}
	})
}

// Goal: many locks of one transaction, on several shards, are found again, and cost no request twice.
func TestManyLocks(t *testing.T) {
	c := newCluster(t, nil, "k3", "k6")
	var mu sync.Mutex
	requests := 0
	db := c.db(Options{}, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
			if _, ok := req.(*kv.AcquireLocksRequest); ok {
				mu.Lock()
				requests++
				mu.Unlock()
			}
			return nil
		}}
	})
	txn := mustBeginTxn(t, db, pessimistic)
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("k%d/%d", i%10, i))
	}
	for range 2 {
		if err := lock(txn, keys...); err != nil {
			t.Fatal(err)
		}
	}
	if requests != 4 { // the primary, and one for each shard
		t.Errorf("%d requests", requests)
	}
	for _, key := range keys {
		mustPut(t, txn, key+"=1")
	}
	mustCommit(t, txn)
	db.waitIdle()
	if locks := c.locks(); len(locks) != 0 {
		t.Fatal(len(locks))
	}
}

// Goal: a transaction's locks are bounded by a pool, to which released ones return. Method: locks until the pool is
// exhausted; keys locked twice, a savepoint, the end.
func TestLocksDrawFromTheirPool(t *testing.T) {
	pool := memory.NewPool("row locks", 4<<20)
	db := newCluster(t, nil).db(Options{LockMemory: pool}, nil)
	txn := mustBeginTxn(t, db, pessimistic)
	must(t, lock(txn, "first"))
	sp := txn.Savepoint()
	lockSome := func(from, n int) error {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = rowKey(from + i)
		}
		_, err := txn.AcquireLocks(t.Context(), LockOptions{}, keys...)
		return err
	}
	locked := 0
	var err error
	for ; err == nil && locked < 1<<20; locked += 100 {
		err = lockSome(locked, 100)
	}
	var exceeded *memory.ExceededError
	if !errors.As(err, &exceeded) {
		t.Fatalf("%v after %d locks", err, locked)
	}
	if n := len(txn.locks.held); n < 5000 || n > 4<<20/lockOverheadBytes+200 {
		t.Errorf("%d locks before there was no more room", n)
	}
	if held := len(txn.locks.held); lockSome(0, 100) != nil || len(txn.locks.held) != held {
		t.Error("keys that are locked already draw again")
	}
	txn.RollbackTo(sp)
	if used := pool.Used(); used > 256<<10 {
		t.Errorf("%d bytes drawn after the locks were released", used)
	}
	if err := lockSome(0, 1000); err != nil {
		t.Error(err)
	}
	mustPut(t, txn, "first=1")
	mustCommit(t, txn)
	if used := pool.Used(); used != 0 {
		t.Errorf("%d bytes drawn after the end", used)
	}
}

// Goal: the estimate of a lock's size is not far below its real size. Method: the heap before and after many.
func TestLockSizeEstimate(t *testing.T) {
	db := newCluster(t, nil).db(Options{}, nil)
	txn := mustBeginTxn(t, db, pessimistic)
	const n = 30_000 // none of them is packed
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	for from := 0; from < n; from += 1000 {
		keys := make([][]byte, 1000)
		for i := range keys {
			keys[i] = rowKey(from + i)
		}
		if _, err := txn.AcquireLocks(t.Context(), LockOptions{}, keys...); err != nil {
			t.Fatal(err)
		}
	}
	took := int64(heap()-before) / n
	if t.Logf("%d bytes a lock, %d estimated", took, lockBytes(rowKey(0))); took > lockBytes(rowKey(0))*5/4 {
		t.Error("the estimate is too low")
	}
	must(t, txn.Rollback(t.Context()))
}

// Goal: a transaction that a heartbeat finds rolled back does not continue; one with heartbeats outlives its TTL by far
// (T-TTL-1, for a transaction that is not committing). Method: fake time that passes, a short TTL, and a rival that would
// resolve the lock as soon as possible.
func TestHeartbeatsKeepLocks(t *testing.T) {
	for _, beating := range []bool{true, false} {
		t.Run(fmt.Sprintf("beating=%v", beating), func(t *testing.T) {
			for _, bounds := range [][]string{nil, {"h", "p"}} {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, realOracle(t), bounds...)
					db := c.db(Options{LockTTL: 400 * time.Millisecond}, func(s kv.Shard) kv.Shard {
						return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
							if _, ok := req.(*kv.HeartbeatRequest); ok && !beating {
								return errLost
							}
							return nil
						}}
					})
					txn := mustBeginTxn(t, db, pessimistic)
					if err := lock(txn, "a", "z"); err != nil {
						t.Fatal(err)
					}
					mustPut(t, txn, "a=1", "z=1")
					rival := mustBeginTxn(t, c.db(Options{}, nil), TxnOptions{Pessimistic: true, LockTimeout: 2 * time.Second})
					rivalErr := lock(rival, "z")
					if rivalErr == nil {
						mustPut(t, rival, "z=rival")
						mustCommit(t, rival)
					}
					_, err := txn.Commit(t.Context())
					var unavailable *LockNotAvailableError
					var conflict *mvcc.WriteConflictError
					if beating && (err != nil || !errors.As(rivalErr, &unavailable)) || !beating && (rivalErr != nil || !errors.As(err, &conflict)) {
						t.Fatalf("holder: %v, rival: %v", err, rivalErr)
					}
				})
			}
		})
	}
}
