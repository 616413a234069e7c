package percolator

import (
	"errors"
	"testing"

	"github.com/percodb/percodb/kv"
)

// Goal: the transactions of a process that has ended are finished long before their TTL passes, each as whoever met its
// locks later would: those of others stay. Method: owners that crash at different points of a commit over three stores.
func TestEndProcess(t *testing.T) {
	for _, tc := range []struct {
		name      string
		twoPhases bool
		dies      func(req any) error // instead of sending a request
		want      string
	}{
		{"an async commit with all its locks", false, nil, "a=1 k=1 z=1"},
		{"an async commit whose primary is not locked", false, func(req any) error {
			if prewriteOf(req, "a") != nil {
				return errLost
			}
			return nil
		}, ""},
		{"an async commit of which a secondary is not locked", false, func(req any) error {
			if prewriteOf(req, "z") != nil {
				return errLost
			}
			return nil
		}, ""},
		{"two phases before the commit", true, nil, ""},
		{"two phases without the primary's lock", true, func(req any) error {
			if prewriteOf(req, "a") != nil {
				return errLost
			}
			return nil
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := threeStores(t)
			c.twoPhases = tc.twoPhases
			prewriteAndDie(t, c, tc.dies)
			if len(c.locks()) == 0 {
				t.Fatal("the crashed client has left no lock")
			}
			db := c.db(Options{}, nil)
			if n, err := db.EndProcess(t.Context(), ownerProcess+1, nil); n != 0 || err != nil {
				t.Fatalf("of another process: %d locks, %v", n, err)
			}
			if _, err := db.EndProcess(t.Context(), ownerProcess, nil); err != nil {
				t.Fatal(err)
			}
			db.waitIdle()
			if locks := c.locks(); len(locks) != 0 {
				t.Errorf("locks are left: %v", locks)
			}
			if got := c.content(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Goal: after its commit point a transaction of two phases is committed everywhere.
func TestEndProcessAfterTheCommitPoint(t *testing.T) {
	c := threeStores(t)
	c.twoPhases = true
	o := newOwner(c, func(req any) error {
		if r, ok := req.(*kv.CommitRequest); ok && !r.Primary {
			return errLost
		}
		return nil
	}, nil)
	txn := mustBegin(t, o.DB)
	mustPut(t, txn, "a=1", "k=1", "z=1")
	mustCommit(t, txn)
	o.waitIdle()
	db := c.db(Options{}, nil)
	if n, err := db.EndProcess(t.Context(), ownerProcess, nil); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if locks, got := c.locks(), c.content(); len(locks) != 0 || got != "a=1 k=1 z=1" {
		t.Error(locks, got)
	}
}

// Goal: of a process that may be alive, what sessions hold is left, and other locks are removed, also in the same page.
func TestEndProcessLeavesHolds(t *testing.T) {
	c := newCluster(t, nil)
	owner := c.db(Options{Process: ownerProcess}, nil)
	hold, err := owner.Hold(t.Context(), []byte("b"), HoldOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release(t.Context())
	txn := mustBeginTxn(t, owner, TxnOptions{Pessimistic: true})
	if _, err := txn.AcquireLocks(t.Context(), LockOptions{}, []byte("a"), []byte("c")); err != nil {
		t.Fatal(err)
	}
	db := c.db(Options{}, nil)
	if n, err := db.EndProcess(t.Context(), ownerProcess, func(key []byte) bool { return string(key) == "b" }); n != 2 || err != nil {
		t.Errorf("%d locks were removed, %v", n, err)
	}
	if err := hold.Confirm(t.Context()); err != nil {
		t.Errorf("the session's lock: %v", err)
	}
}

// Goal: pessimistic locks of a process that has ended are free at once, also packed ones and shared ones; one that was
// taken for ended has its transactions fail, or commit what nobody else has changed.
func TestEndProcessWithPessimisticLocks(t *testing.T) {
	c := newClusterWith(t, nil, kv.Options{PackLocks: 10}, string(rowKey(500)))
	owner := c.db(Options{Process: ownerProcess}, nil)
	txn := mustBeginTxn(t, owner, TxnOptions{Pessimistic: true})
	lockRows(t, txn, LockOptions{}, 0, 1000)
	sharing := mustBeginTxn(t, owner, TxnOptions{Pessimistic: true})
	lockRows(t, sharing, LockOptions{Shared: true}, 2000, 2010)
	db := c.db(Options{}, nil)
	own := mustBeginTxn(t, db, TxnOptions{Pessimistic: true})
	lockRows(t, own, LockOptions{Shared: true}, 2000, 2020)

	if n, err := db.EndProcess(t.Context(), ownerProcess, nil); n != 1010 || err != nil {
		t.Fatal(n, err)
	}
	if n := len(c.locks()); n != 20 {
		t.Errorf("%d locks, want those of the process that lives", n)
	}
	other := mustBeginTxn(t, db, TxnOptions{Pessimistic: true})
	lockRows(t, other, LockOptions{NoWait: true}, 0, 10)
	must(t, other.Put(rowKey(1), []byte("other")))
	mustCommit(t, other)

	must(t, txn.Put(rowKey(1), []byte("late")))
	if _, err := txn.Commit(t.Context()); err == nil {
		t.Error("a transaction has committed over a change of what it had locked")
	}
	own.Close()
}

// Goal: a store that does not answer does not keep the locks on others from being removed.
func TestEndProcessWithoutAStore(t *testing.T) {
	c := threeStores(t)
	owner := c.db(Options{Process: ownerProcess}, nil)
	for _, key := range []string{"a", "k", "z"} {
		txn := mustBeginTxn(t, owner, TxnOptions{Pessimistic: true})
		must(t, lock(txn, key))
	}
	c.stores[1].Close()
	db := c.db(impatient, nil)
	if n, err := db.EndProcess(t.Context(), ownerProcess, nil); n != 2 || err == nil || errors.Is(err, errLost) {
		t.Fatal(n, err)
	}
}
