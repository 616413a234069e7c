//go:build !race

package percolator

import (
	"fmt"
	"testing"
)

// Goal: the allocation budgets of the two basic paths. Method: count them, on a store in memory; the store's share is
// included.
func TestAllocationBudgets(t *testing.T) {
	c := newCluster(t, nil)
	db := c.db(Options{}, nil)
	base := mustBegin(t, db)
	for i := range 1000 {
		mustPut(t, base, fmt.Sprintf("key%04d=value", i))
	}
	mustCommit(t, base)
	ctx := t.Context()
	key := []byte("key0500")
	value := []byte("another value")
	for _, tc := range []struct {
		name   string
		budget float64
		run    func() error
	}{
		{"begin and point read", 6, func() error {
			txn, err := db.Begin(ctx)
			if err == nil {
				_, err = txn.Get(ctx, key)
			}
			return err
		}},
		{"begin and one-key write", 16, func() error {
			txn, err := db.Begin(ctx)
			if err == nil {
				err = txn.Put(key, value)
			}
			if err == nil {
				_, err = txn.Commit(ctx)
			}
			return err
		}},
		{"pessimistic one-row update", 26, func() error {
			txn, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true})
			if err == nil {
				err = txn.BeginStatement(ctx)
			}
			if err == nil {
				_, err = txn.Get(ctx, key)
			}
			if err == nil {
				_, err = txn.AcquireLocks(ctx, LockOptions{}, key)
			}
			if err == nil {
				err = txn.Put(key, value)
			}
			if err == nil {
				_, err = txn.Commit(ctx)
			}
			return err
		}},
	} {
		allocs := testing.AllocsPerRun(200, func() {
			if err := tc.run(); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %.0f allocations", tc.name, allocs)
		if allocs > tc.budget {
			t.Errorf("%s: %.0f allocations, the budget is %.0f", tc.name, allocs, tc.budget)
		}
	}
}

func BenchmarkPointRead(b *testing.B) {
	db, ctx := benchDB(b), b.Context()
	key := []byte("key0500")
	b.ReportAllocs()
	for b.Loop() {
		txn, err := db.Begin(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := txn.Get(ctx, key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOneKeyWrite(b *testing.B) {
	db, ctx := benchDB(b), b.Context()
	key, value := []byte("key0500"), make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		txn, err := db.Begin(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := txn.Put(key, value); err != nil {
			b.Fatal(err)
		}
		if _, err := txn.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPessimisticUpdate(b *testing.B) {
	db, ctx := benchDB(b), b.Context()
	key, value := []byte("key0500"), make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		txn, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := txn.Get(ctx, key); err != nil {
			b.Fatal(err)
		}
		if _, err := txn.AcquireLocks(ctx, LockOptions{}, key); err != nil {
			b.Fatal(err)
		}
		if err := txn.Put(key, value); err != nil {
			b.Fatal(err)
		}
		if _, err := txn.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func benchDB(b *testing.B) *DB {
	db := newCluster(b, nil).db(Options{}, nil)
	base := mustBegin(b, db)
	for i := range 1000 {
		mustPut(b, base, fmt.Sprintf("key%04d=value", i))
	}
	mustCommit(b, base)
	return db
}
