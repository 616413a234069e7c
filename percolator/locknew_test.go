package percolator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// asked counts the requests of a kind that shards receive, and lets a test inspect them.
type asked struct {
	mu                      sync.Mutex
	locks, reads, mustBeNew int
}

func (a *asked) wrap(s kv.Shard) kv.Shard {
	return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch req := req.(type) {
		case *kv.AcquireLocksRequest:
			a.locks++
		case []byte, *kv.BatchGetRequest:
			a.reads++
		case *kv.PrewriteRequest:
			for i := range req.Mutations {
				if req.Mutations[i].MustBeNew {
					a.mustBeNew++
				}
			}
		}
		return nil
	}}
}

func (a *asked) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.locks, a.reads, a.mustBeNew = 0, 0, 0
}

func (a *asked) counts() [3]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return [3]int{a.locks, a.reads, a.mustBeNew}
}

func lockNew(txn *Txn, keys ...string) (int, error) {
	var list [][]byte
	for _, key := range keys {
		list = append(list, []byte(key))
	}
	return txn.LockNew(context.Background(), list...)
}

func mustLockNew(t *testing.T, txn *Txn, want int, keys ...string) {
	t.Helper()
	if taken, err := lockNew(txn, keys...); err != nil || taken != want {
		t.Fatalf("LockNew(%q) = %d, %v, want %d", keys, taken, err, want)
	}
}

// Goal: keys that are to be inserted cost one request for each shard, and the commit does not check again; existing
// keys are found wherever they are. Method: requests are counted; then keys that exist, that occur twice, that the
// transaction itself has inserted or removed, with and without their locks, at a statement's second attempt, and after
// a rollback to a savepoint.
func TestLockNew(t *testing.T) {
	eachRealCluster(t, func(t *testing.T, c *cluster) {
		var n asked
		db := c.db(Options{}, n.wrap)
		seed := mustBegin(t, db)
		mustPut(t, seed, "k/old=1", "q/old=1")
		mustCommit(t, seed)

		txn := mustBeginTxn(t, db, pessimistic)
		n.reset()
		var keys []string
		for i := range 30 {
			keys = append(keys, fmt.Sprintf("%c/%02d", 'a'+25-i%25, i))
		}
		mustLockNew(t, txn, -1, keys...)
		if got, want := n.counts(), [3]int{1 + len(c.stores), 0, 0}; got != want {
			t.Errorf("requests for locks, reads, keys to be looked for: %d, want %d", got, want)
		}
		for _, key := range keys {
			if err := txn.Insert([]byte(key), []byte("new")); err != nil {
				t.Fatal(err)
			}
		}
		mustLockNew(t, txn, 1, "k/x", "k/old", "k/x")
		mustLockNew(t, txn, 2, "k/y", "k/z", "k/y", "q/old")
		mustLockNew(t, txn, 1, "k/u", keys[7])
		if err := txn.Delete([]byte(keys[7])); err != nil {
			t.Fatal(err)
		}
		mustLockNew(t, txn, -1, keys[7])
		if err := lock(txn, "q/old", "q/none"); err != nil { // as for an update
			t.Fatal(err)
		}
		mustLockNew(t, txn, 1, "q/none", "q/old")
		if err := txn.Delete([]byte("q/old")); err != nil {
			t.Fatal(err)
		}
		mustLockNew(t, txn, -1, "q/none", "q/old")
		// An index created in the same block has entries that are not locked.
		if err := txn.Insert([]byte("q/loose"), []byte("1")); err != nil {
			t.Fatal(err)
		}
		mustLockNew(t, txn, 0, "q/loose")
		if err := txn.Insert([]byte("q/looser"), []byte("1")); err != nil {
			t.Fatal(err)
		}
		n.reset()
		mustCommit(t, txn)
		if got := n.counts()[2]; got != 1 {
			t.Errorf("the commit looks for %d keys, want the one that was not locked", got)
		}
	})
}

// Goal: of two transactions that insert one key the second waits, and then fails or inserts, depending on the outcome
// of the first, at once and without a snapshot error; at each level. Method: the first commits or rolls back while the
// second waits.
func TestLockNewWaits(t *testing.T) {
	for _, level := range []Isolation{SnapshotIsolation, ReadCommitted, Serializable} {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprint(level, " ", commits), func(t *testing.T) {
				c := newCluster(t, realOracle(t))
				asks := make(chan struct{}, 16)
				db := c.db(Options{}, func(s kv.Shard) kv.Shard {
					return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
						if req, ok := req.(*kv.AcquireLocksRequest); ok && string(req.Keys[0]) == "k" {
							asks <- struct{}{}
						}
						return nil
					}}
				})
				first, second := mustBeginTxn(t, db, pessimistic), mustBeginTxn(t, db, TxnOptions{Pessimistic: true, Isolation: level})
				mustLockNew(t, first, -1, "k")
				if err := first.Insert([]byte("k"), []byte("1")); err != nil {
					t.Fatal(err)
				}
				<-asks
				var taken int
				done := make(chan error, 1)
				go func() {
					done <- statement(context.Background(), second, func() (err error) {
						taken, err = lockNew(second, "a", "k")
						return err
					})
				}()
				<-asks
				want := -1
				if commits {
					want = 1
					mustCommit(t, first)
				} else {
					first.Rollback(context.Background())
				}
				if err := <-done; err != nil || taken != want {
					t.Fatalf("taken %d, %v, want %d", taken, err, want)
				}
			})
		}
	}
}

// Goal: what was checked under a lock is not relied on when the lock is lost. Method: a lock is lost without its
// owner's knowledge, or released by a rollback to a savepoint, and another transaction inserts the key; the first, if
// it still inserts it, must not commit, nor may a serializable one that has read that it was absent.
func TestProto_T_PES_10(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		insertElsewhere := func(t *testing.T, db *DB) {
			t.Helper()
			other := mustBegin(t, db)
			if err := other.Insert([]byte("k"), []byte("other")); err != nil {
				t.Fatal(err)
			}
			mustCommit(t, other)
		}
		wantConflict := func(t *testing.T, txn *Txn) {
			t.Helper()
			var conflict *mvcc.WriteConflictError
			if _, err := txn.Commit(context.Background()); !errors.As(err, &conflict) {
				t.Fatalf("%v, want a conflict", err)
			}
		}
		t.Run("lost", func(t *testing.T) {
			db := open(t, realOracle(t)).db(Options{}, nil)
			txn := mustBeginTxn(t, db, pessimistic)
			mustLockNew(t, txn, -1, "k")
			if err := txn.Insert([]byte("k"), []byte("mine")); err != nil {
				t.Fatal(err)
			}
			txn.release(context.Background(), [][]byte{[]byte("k")}, goesOn)
			insertElsewhere(t, db)
			wantConflict(t, txn)
		})
		t.Run("given up", func(t *testing.T) {
			db := open(t, realOracle(t)).db(Options{}, nil)
			txn := mustBeginTxn(t, db, TxnOptions{Pessimistic: true, Isolation: Serializable})
			if err := lock(txn, "primary"); err != nil {
				t.Fatal(err)
			}
			sp := txn.Savepoint()
			mustLockNew(t, txn, -1, "k")
			txn.RollbackTo(sp)
			insertElsewhere(t, db)
			mustPut(t, txn, "primary=1")
			wantConflict(t, txn)
		})
	})
}

// Goal: positions of locked keys are found, also after some of them have been removed. Method: random additions and
// truncations next to a map.
func TestKeyIndex(t *testing.T) {
	l := lockSet{packFrom: math.MaxInt}
	want := map[string]int{}
	for i := range 3000 {
		if i%700 == 699 {
			keep := len(l.held) / 3
			for _, h := range l.held[keep:] {
				delete(want, string(h.key))
			}
			l.truncate(keep, nil, func([][]byte) {})
		}
		key := fmt.Sprint("key", i*i%4099)
		if _, held := want[key]; !held {
			want[key] = len(l.held)
		}
		l.add([]byte(key), grant{at: 1}, &LockOptions{})
		if i%50 == 0 {
			for j := range 4099 {
				key := fmt.Sprint("key", j)
				at, held := want[key]
				if got := l.find([]byte(key)); held && got != at || !held && got != -1 {
					t.Fatalf("%s is at %d, want %d (%v)", key, got, at, held)
				}
			}
		}
	}
}
