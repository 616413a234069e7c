package percolator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// lockRows locks the rows [from, to) in requests of a thousand.
func lockRows(t *testing.T, txn *Txn, opts LockOptions, from, to int) {
	t.Helper()
	for ; from < to; from += 1000 {
		keys := make([][]byte, 0, 1000)
		for i := from; i < min(from+1000, to); i++ {
			keys = append(keys, rowKey(i))
		}
		if _, err := txn.AcquireLocks(t.Context(), opts, keys...); err != nil {
			t.Fatal(err)
		}
	}
}

func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Goal: beyond the first tens of thousands, a pessimistic lock takes a few bytes in the store and its transaction
// together, and draws about that much from the pool; it works as other locks. Method: the heap before and after 50,000
// locks; a rival; a savepoint; the commit.
func TestPackedLocksAreSmall(t *testing.T) {
	pool := memory.NewPool("row locks", 1<<30)
	c := newCluster(t, nil)
	db := c.db(Options{LockMemory: pool}, nil)
	txn := mustBeginTxn(t, db, pessimistic)
	const first, n = 40_000, 50_000
	lockRows(t, txn, LockOptions{}, 0, first)
	before, drawn := heapBytes(), txn.locks.account.Used()
	lockRows(t, txn, LockOptions{}, first, first+n)
	took, drew := (heapBytes()-before)/n, (txn.locks.account.Used()-drawn)/n
	t.Logf("%d bytes a lock, %d drawn", took, drew)
	if took > 32 || drew > 40 || drew < took/2 {
		t.Error("a lock takes more, or draws more or less")
	}

	rival := mustBeginTxn(t, db, pessimistic)
	var notAvailable *LockNotAvailableError
	if _, err := rival.AcquireLocks(t.Context(), LockOptions{NoWait: true}, rowKey(first+n/2)); !errors.As(err, &notAvailable) || notAvailable.Lock.StartTS != txn.StartTS() {
		t.Fatalf("a rival that does not wait: %v", err)
	}
	skipped, err := rival.AcquireLocks(t.Context(), LockOptions{SkipLocked: true}, rowKey(first+n-1), rowKey(first+n))
	if err != nil || !skipped[0] || skipped[1] {
		t.Fatalf("a rival that skips: %v, %v", skipped, err)
	}
	must(t, rival.Rollback(t.Context()))

	sp := txn.Savepoint()
	if count := txn.Counts().Locks; count != first+n {
		t.Fatalf("%d locks", count)
	}
	drawn = txn.locks.account.Used()
	lockRows(t, txn, LockOptions{}, first+n, first+2*n)
	txn.RollbackTo(sp)
	if locks := len(c.locks()); locks != first+n || txn.locks.account.Used() > drawn+64<<10 {
		t.Fatalf("after a rollback to a savepoint: %d locks, %d bytes more drawn", locks, txn.locks.account.Used()-drawn)
	}

	waits := make(chan error, 1)
	waiting := mustBeginTxn(t, db, pessimistic)
	go func() {
		_, err := waiting.AcquireLocks(context.Background(), LockOptions{}, rowKey(first+7))
		waits <- err
	}()
	for waiters := 0; waiters == 0; {
		for _, l := range c.locks() {
			waiters += len(l.Waiters)
		}
	}
	must(t, txn.Put(rowKey(first+7), []byte("1")))
	mustCommit(t, txn)
	if err := <-waits; !errors.Is(err, ErrRestartStatement) && err != nil {
		t.Fatal(err)
	}
	if waiting.ReadTS() <= txn.StartTS() {
		t.Error("who has waited reads as of before the commit")
	}
	must(t, waiting.Rollback(t.Context()))
	if locks, used := len(c.locks()), pool.Used(); locks != 0 || used != 0 {
		t.Errorf("at the end: %d locks, %d bytes drawn", locks, used)
	}
}

// Goal: packed locks without writes end with their transaction, exclusive and shared, with and without another write,
// on one store and on two. Method: few unpacked locks; the locks that are left.
func TestPackedLocksEnd(t *testing.T) {
	const n = 3000
	for _, bounds := range [][]string{nil, {"row001000"}} {
		for name, end := range map[string]func(t *testing.T, txn *Txn){
			"rollback": func(t *testing.T, txn *Txn) { must(t, txn.Rollback(t.Context())) },
			"read":     func(t *testing.T, txn *Txn) { mustCommit(t, txn) },
			"write": func(t *testing.T, txn *Txn) {
				must(t, txn.Put(rowKey(1500), []byte("1")))
				must(t, txn.Put(rowKey(n+1), []byte("1")))
				mustCommit(t, txn)
			},
			"conflict": func(t *testing.T, txn *Txn) {
				must(t, txn.Insert(rowKey(n+2), []byte("1"))) // it exists
				if _, err := txn.Commit(t.Context()); err == nil {
					t.Fatal("no conflict")
				}
			},
		} {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d stores, %s, shared=%v", len(bounds)+1, name, shared), func(t *testing.T) {
					pool := memory.NewPool("row locks", 1<<30)
					c := newClusterWith(t, nil, kv.Options{PackLocks: -1}, bounds...)
					db := c.db(Options{PackLocks: 10, LockMemory: pool}, nil)
					setup := mustBegin(t, db)
					must(t, setup.Put(rowKey(n+2), []byte("1")))
					mustCommit(t, setup)
					txn := mustBeginTxn(t, db, pessimistic)
					lockRows(t, txn, LockOptions{}, 0, 1)
					lockRows(t, txn, LockOptions{Shared: shared}, 1, n)
					if used := pool.Used(); used == 0 {
						t.Error("nothing is drawn")
					}
					end(t, txn)
					db.waitIdle()
					if locks := len(c.locks()); locks != 0 || pool.Used() != 0 {
						t.Errorf("%d locks are left, %d bytes drawn", locks, pool.Used())
					}
				})
			}
		}
	}
}

// Goal: a rollback to a savepoint releases the locks acquired since, and no others, for any interleaving of the keys.
// Method: packed locks on all even rows, then on all odd ones, in several requests.
func TestPackedLocksSinceSavepoint(t *testing.T) {
	const n = 2*maxRequestKeys + 2000
	c := newClusterWith(t, nil, kv.Options{PackLocks: -1})
	db := c.db(Options{PackLocks: 10}, nil)
	txn := mustBeginTxn(t, db, pessimistic)
	lockEach := func(rest int) {
		var keys [][]byte
		for i := range n {
			keys = append(keys, rowKey(2*i+rest))
		}
		if _, err := txn.AcquireLocks(t.Context(), LockOptions{}, keys...); err != nil {
			t.Fatal(err)
		}
	}
	lockEach(0)
	sp := txn.Savepoint()
	lockEach(1)
	txn.RollbackTo(sp)
	locks := c.locks()
	if len(locks) != n || txn.Counts().Locks != n {
		t.Fatalf("%d locks in the store, %d in the transaction, want %d", len(locks), txn.Counts().Locks, n)
	}
	for i, l := range locks {
		if string(l.Key) != string(rowKey(2*i)) {
			t.Fatalf("%s is locked, want %s", l.Key, rowKey(2*i))
		}
	}
	must(t, txn.Rollback(t.Context()))
	if locks := c.locks(); len(locks) != 0 {
		t.Errorf("%d locks are left", len(locks))
	}
}

// Goal: the rows of a large write set over two stores stay locked by packed locks, also after restarts of the stores,
// and the outcome that readers and rivals then decide applies to all of them. Method: a client that crashes before or
// after its commit point.
func TestPackedLocksOfCrashedClient(t *testing.T) {
	const n = 20_000
	for _, commits := range []bool{true, false} {
		for _, restarts := range []bool{true, false} {
			t.Run(fmt.Sprintf("commits=%v, restarts=%v", commits, restarts), func(t *testing.T) {
				c := newClusterWith(t, nil, kv.Options{PackLocks: 100}, string(rowKey(n/2)))
				dead := &dyingPermit{dies: !commits}
				db := c.db(Options{SpillBytes: 1 << 16, DrainTimeout: 10 * time.Millisecond}, func(s kv.Shard) kv.Shard {
					return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
						switch r := req.(type) {
						case *kv.CommitRequest:
							if !r.Primary {
								return errLost
							}
						case *kv.RollbackRequest, *kv.ResolveLockRequest:
							return errLost
						}
						return nil
					}}
				})
				txn := mustBegin(t, db)
				for i := range n {
					must(t, txn.Put(rowKey(i), []byte("1")))
				}
				txn.SetCommitPermit(dead)
				if _, err := txn.Commit(t.Context()); commits != (err == nil) {
					t.Fatal(err)
				}
				if locks := len(c.locks()); locks < n-1 {
					t.Fatalf("%d locks are left to others", locks)
				}
				must(t, db.Close()) // its client is dead
				for i := 0; restarts && i < len(c.stores); i++ {
					c.stores[i].Close()
					c.open(i)
				}
				c.step.advance(20 * db.opts.LockTTL)
				other := c.db(Options{}, nil)
				want := 0
				if commits {
					want = n
				}
				if rows, sum := contents(t, mustBegin(t, other)); rows != want || sum != int64(want) {
					t.Fatalf("%d rows, want %d", rows, want)
				}
				rival := mustBegin(t, other)
				must(t, rival.Put(rowKey(n-1), []byte("2")))
				mustCommit(t, rival)
				if got := mustGet(t, mustBegin(t, other), string(rowKey(n-1))); got != "2" {
					t.Errorf("a row is %q after it was written", got)
				}
			})
		}
	}
}

// dyingPermit refuses the commit, when all keys are locked, if its client crashes before the commit point.
type dyingPermit struct{ dies bool }

func (p *dyingPermit) MaxCommitTS() (tso.Timestamp, error) {
	if p.dies {
		return 1, nil
	}
	return 0, nil
}

func (p *dyingPermit) Renew(context.Context) error { return errLost }

// Goal: who locks many rows that a dead transaction has locked frees them in a few steps. Method: a transaction without
// heartbeats that has locked 5000 rows, and one that locks the same; count the requests.
func TestManyLocksOfTheDead(t *testing.T) {
	const n = 5000
	for _, bounds := range [][]string{nil, {"row002500"}} {
		c := newCluster(t, nil, bounds...)
		dead := mustBeginTxn(t, c.db(Options{}, nil), pessimistic)
		lockRows(t, dead, LockOptions{}, 0, n)
		c.step.advance(time.Minute)
		var requests atomic.Int32
		db := c.db(Options{}, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(context.Context, any) error { requests.Add(1); return nil }}
		})
		txn := mustBeginTxn(t, db, pessimistic)
		lockRows(t, txn, LockOptions{}, 0, n)
		if requests := requests.Load(); requests > 100 {
			t.Errorf("%d requests", requests)
		}
		must(t, txn.Rollback(t.Context()))
	}
}
