package percolator

import (
	"context"
	"testing"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
)

func existsAtCommit(t *testing.T, txn *Txn, key, guard string) bool {
	t.Helper()
	exists, err := txn.ExistsAtCommit(context.Background(), []byte(key), []byte(guard))
	if err != nil {
		t.Fatal(err)
	}
	return exists
}

// Goal: a child is committed only if its parent has existed from the snapshot to the commit, whatever others do in between, with the child on any
// store, in memory and from a file; and nothing is locked afterwards.
func TestExistsAtCommit(t *testing.T) {
	ctx := context.Background()
	remove := func(t *testing.T, db *DB) *Txn {
		x := mustBeginTxn(t, db, TxnOptions{Pessimistic: true, Isolation: ReadCommitted})
		if err := lock(x, "a-guard"); err != nil {
			t.Fatal(err)
		}
		x.Delete([]byte("a"))
		return x
	}
	cases := []struct {
		name      string
		meanwhile func(t *testing.T, db *DB)
		conflict  bool
	}{
		{"nothing", func(*testing.T, *DB) {}, false},
		{"the parent is changed", func(t *testing.T, db *DB) {
			x := mustBegin(t, db)
			mustPut(t, x, "a=changed")
			mustCommit(t, x)
		}, false},
		{"others share the guard", func(t *testing.T, db *DB) {
			if err := lockAs(mustBeginTxn(t, db, pessimistic), LockOptions{Shared: true}, "a-guard"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"another is about to delete the parent", func(t *testing.T, db *DB) { remove(t, db) }, true},
		{"the parent is deleted", func(t *testing.T, db *DB) { mustCommit(t, remove(t, db)) }, true},
		{"the guard was locked", func(t *testing.T, db *DB) {
			x := mustBeginTxn(t, db, pessimistic)
			if err := lock(x, "a-guard"); err != nil {
				t.Fatal(err)
			}
			mustPut(t, x, "b=other")
			mustCommit(t, x)
		}, true},
	}
	for _, tc := range cases {
		for _, child := range []string{"b", "z"} {
			for _, opts := range []Options{{}, {SpillBytes: 1}} {
				c := newCluster(t, nil, "m")
				db := c.db(opts, nil)
				seed := mustBegin(t, db)
				mustPut(t, seed, "a=parent")
				mustCommit(t, seed)
				one := mustBegin(t, db)
				for range 2 { // as by two foreign keys
					if !existsAtCommit(t, one, "a", "a-guard") {
						t.Fatal("the parent does not exist")
					}
				}
				tc.meanwhile(t, db)
				mustPut(t, one, child+"=child", child+"x=child")
				_, err := one.Commit(ctx)
				if tc.conflict {
					wantConflict(t, err)
					if e, _ := errkind.As[*mvcc.WriteConflictError](err); e == nil || e.Cause != mvcc.CauseWrite {
						t.Errorf("%s, child %s: %v: it has lost no lock", tc.name, child, err)
					}
				} else if err != nil {
					t.Fatalf("%s, child %s: %v", tc.name, child, err)
				}
			}
		}
	}
}

// Goal: a transaction that has left a guard to the commit may lock it afterwards, as LockKeys and as AcquireLocks do.
func TestExistsAtCommitAndLocked(t *testing.T) {
	ctx := context.Background()
	db := newCluster(t, nil).db(Options{}, nil)
	seed := mustBegin(t, db)
	mustPut(t, seed, "a=parent")
	mustCommit(t, seed)
	for name, lockGuard := range map[string]func(x *Txn) error{
		"LockKeys": func(x *Txn) error { return x.LockKeys(ctx, []byte("a-guard")) },
		"exclusive": func(x *Txn) error {
			x.BeginLocking()
			return lock(x, "a-guard")
		},
		"shared": func(x *Txn) error {
			x.BeginLocking()
			return lockAs(x, LockOptions{Shared: true}, "a-guard")
		},
	} {
		for _, changed := range []bool{false, true} {
			x := mustBegin(t, db)
			if !existsAtCommit(t, x, "a", "a-guard") {
				t.Fatal("the parent does not exist")
			}
			if changed {
				y := mustBeginTxn(t, db, pessimistic)
				if err := lock(y, "a-guard"); err != nil {
					t.Fatal(err)
				}
				mustPut(t, y, "c=other")
				mustCommit(t, y)
			}
			err := lockGuard(x)
			if err == nil {
				mustPut(t, x, "b=child")
				_, err = x.Commit(ctx)
			}
			if changed {
				wantConflict(t, err)
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			x.Rollback(ctx)
		}
	}
}

// Goal: what cannot be left to the commit is not.
func TestExistsAtCommitRefuses(t *testing.T) {
	db := newCluster(t, nil).db(Options{}, nil)
	seed := mustBegin(t, db)
	mustPut(t, seed, "a=parent")
	mustCommit(t, seed)
	if existsAtCommit(t, mustBegin(t, db), "absent", "absent-guard") {
		t.Error("an absent key exists")
	}
	if existsAtCommit(t, mustBeginTxn(t, db, pessimistic), "a", "a-guard") {
		t.Error("a pessimistic transaction locks nothing")
	}
	large := mustBegin(t, db)
	if err := large.Put([]byte("b"), make([]byte, maxBytesAtCommit)); err != nil {
		t.Fatal(err)
	}
	if existsAtCommit(t, large, "a", "a-guard") {
		t.Error("a large transaction locks nothing")
	}
	many := mustBegin(t, db)
	for range maxSharesAtCommit {
		if !existsAtCommit(t, many, "a", "a-guard") {
			t.Fatal("the parent does not exist")
		}
	}
	if existsAtCommit(t, many, "a", "a-guard") {
		t.Error("any number of guards is left to the commit")
	}
}
