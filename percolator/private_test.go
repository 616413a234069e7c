package percolator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

func private(txn *Txn, prefix string) {
	txn.AddPrivateSpan(kv.Span{Start: []byte(prefix + "/"), End: []byte(prefix + "0")})
}

func mustInsert(t *testing.T, txn *Txn, keys ...string) {
	t.Helper()
	for _, key := range keys {
		must(t, txn.Insert([]byte(key), []byte("1")))
	}
}

// Goal: keys of tables that the transaction has created are not locked by any statement, and keys of other tables are;
// a key that is inserted twice is still found, among the keys of one call and among those written before. Method:
// requests are counted, on one store and on several; keys in and out of order, inserted, locked, removed and inserted
// again, mixed with others.
func TestPrivateKeysAreNotLocked(t *testing.T) {
	eachRealCluster(t, func(t *testing.T, c *cluster) {
		ctx := context.Background()
		var n asked
		db := c.db(Options{}, n.wrap)
		seed := mustBegin(t, db)
		mustPut(t, seed, "q/old=1")
		mustCommit(t, seed)

		txn := mustBeginTxn(t, db, pessimistic)
		private(txn, "k")
		private(txn, "m")
		private(txn, "b")
		private(txn, "m/1") // an index of a table that is new itself
		mustLockNew(t, txn, -1, "k/2", "m/1", "k/3", "m/2", "b/1")
		mustInsert(t, txn, "k/2", "m/1", "k/3", "m/2", "b/1")
		mustLockNew(t, txn, -1, "k/5", "k/1", "k/4")
		mustInsert(t, txn, "k/5", "k/1", "k/4")
		mustLockNew(t, txn, 2, "k/6", "k/7", "k/6")
		mustLockNew(t, txn, 1, "k/8", "k/3", "k/2")
		mustLockNew(t, txn, 0, "m/1")
		must(t, txn.Delete([]byte("k/3")))
		mustLockNew(t, txn, -1, "k/3")
		mustInsert(t, txn, "k/3")
		must(t, txn.VerifyNew(ctx))
		for _, opts := range []LockOptions{{}, {SkipLocked: true}, {Shared: true}} {
			if skipped, err := txn.AcquireLocks(ctx, opts, []byte("k/1"), []byte("m/1")); err != nil || skipped != nil {
				t.Fatalf("%+v: skipped %v, %v", opts, skipped, err)
			}
		}
		if got := n.counts(); got != [3]int{} {
			t.Errorf("%d requests for locks, reads, keys to be looked for; want none", got)
		}
		if held := c.locks(); len(held) != 0 {
			t.Errorf("locks %v", held)
		}

		mustLockNew(t, txn, -1, "k/x", "q/new")
		mustLockNew(t, txn, 1, "k/y", "q/old", "k/1")
		mustLockNew(t, txn, 1, "k/z", "k/1", "q/old")
		mustInsert(t, txn, "q/new")
		if txn.locks.loose {
			t.Error("keys in no private span are looked up in the write buffer")
		}
		if len(txn.locks.held) != 2 {
			t.Errorf("%d keys locked, want those in no private span", len(txn.locks.held))
		}
		mustCommit(t, txn)
		after := mustBegin(t, db)
		defer after.Close()
		if got := mustGet(t, after, "k/3") + mustGet(t, after, "q/new"); got != "11" {
			t.Errorf("committed %q", got)
		}
	})
}

// Goal: after a rollback to a savepoint from before a table was created its keys are locked as usual, because another
// transaction may create it; a later savepoint changes nothing. A key that was inserted without a lock is still found.
func TestPrivateSpanEndsWithItsSavepoint(t *testing.T) {
	ctx := context.Background()
	c := newCluster(t, nil)
	db := c.db(Options{}, nil)
	txn := mustBeginTxn(t, db, pessimistic)
	private(txn, "m")
	mustPut(t, txn, "descriptor of m=1")
	mustInsert(t, txn, "m/1")
	before := txn.Savepoint()
	private(txn, "k")
	mustPut(t, txn, "descriptor of k=1")
	later := txn.Savepoint()
	mustLockNew(t, txn, -1, "k/1")
	mustInsert(t, txn, "k/1")
	txn.RollbackTo(later)
	mustLockNew(t, txn, -1, "k/1")
	mustInsert(t, txn, "k/1")
	if held := c.locks(); len(held) != 0 {
		t.Fatalf("locks %v", held)
	}
	txn.RollbackTo(before)
	mustLockNew(t, txn, -1, "k/1", "m/2")
	if _, err := txn.AcquireLocks(ctx, LockOptions{}, []byte("k/2"), []byte("m/1")); err != nil {
		t.Fatal(err)
	}
	if held := c.locks(); len(held) != 2 {
		t.Errorf("locks %v, want k/1 and k/2", held)
	}
	mustLockNew(t, txn, 0, "m/1")
	mustCommit(t, txn)
}

// Goal: checking the uniqueness of private keys beyond the transaction's share of memory costs a merge, not a search of
// each run for each key, and the error names the duplicate. Method: keys in random order; lookups are counted; one key
// twice, far apart.
func TestPrivateKeysLargerThanMemory(t *testing.T) {
	ctx := context.Background()
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprint("twice ", twice), func(t *testing.T) {
			db := newCluster(t, nil).db(spilling, nil)
			txn := mustBeginTxn(t, db, pessimistic)
			private(txn, "row")
			const n = 20_000
			order := rand.New(rand.NewPCG(1, 2)).Perm(n)
			if twice {
				order = append(order, 77)
			}
			insert := func(numbers []int) error {
				var keys [][]byte
				for _, i := range numbers {
					keys = append(keys, fmt.Appendf(nil, "row/%06d", i))
				}
				taken, err := txn.LockNew(ctx, keys...)
				if err == nil && taken >= 0 {
					err = &mvcc.KeyExistsError{Key: keys[taken]}
				}
				for _, key := range keys {
					err = errors.Join(err, txn.Insert(key, []byte("1")))
				}
				return err
			}
			for i := 0; i < len(order); i += 512 {
				must(t, insert(order[i:min(i+512, len(order))]))
			}
			if txn.buf.spilled == nil || txn.private.lookups*lookupEntries > n+2*maxRuns*lookupEntries {
				t.Errorf("%d lookups in runs", txn.private.lookups)
			}
			err := txn.VerifyNew(ctx)
			exists, _ := errors.AsType[*mvcc.KeyExistsError](err)
			switch {
			case !twice:
				must(t, err)
				must(t, insert([]int{n, n + 1}))
				canceled, cancel := context.WithCancel(ctx)
				cancel()
				txn.private.unverified = true
				if err := txn.VerifyNew(canceled); !errors.Is(err, context.Canceled) {
					t.Errorf("after a cancel: %v", err)
				}
				if err := insert([]int{123}); err == nil { // a small statement looks a key up
					t.Error("a key that the transaction has written is new")
				}
			case exists == nil || string(exists.Key) != "row/000077":
				t.Errorf("VerifyNew: %v", err)
			}
			must(t, txn.Rollback(ctx))
		})
	}
}
