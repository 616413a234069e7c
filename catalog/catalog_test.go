package catalog

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/percodb/percodb/percolator"
)

// Goal: I1: schema changes are part of their transaction: visible to itself, invisible to others before the commit and
// to older snapshots after it, undone by a rollback. Method: concurrent transactions.
func TestChangesAreTransactional(t *testing.T) {
	ctx := context.Background()
	c := newCatalog(t, newDB(t), Options{})
	older := begin(t, c.db)
	g := c.NewGuard()
	txn := begin(t, c.db)
	g.Reset(txn)
	ch, err := g.Change(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sp := txn.Savepoint()
	if err := ch.Create(ctx, tableNamed(t, c, "undone")); err != nil {
		t.Fatal(err)
	}
	if find(t, c, txn, "undone") == nil {
		t.Fatal("own change not seen")
	}
	txn.RollbackTo(sp)
	if find(t, c, txn, "undone") != nil {
		t.Fatal("change seen after rollback to savepoint")
	}
	made := tableNamed(t, c, "t")
	if err := ch.Create(ctx, made); err != nil {
		t.Fatal(err)
	}
	if find(t, c, begin(t, c.db), "t") != nil {
		t.Fatal("uncommitted change seen by another transaction")
	}
	_, err = g.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if find(t, c, older, "t") != nil {
		t.Fatal("change seen by an older snapshot")
	}
	if diff := cmp.Diff(made, find(t, c, begin(t, c.db), "t")); diff != "" {
		t.Fatal(diff)
	}
	second := newCatalog(t, c.db, Options{})
	if diff := cmp.Diff(made, find(t, second, begin(t, c.db), "t")); diff != "" {
		t.Fatal("after reopening:", diff)
	}
}

// Goal: dropping and renaming free exactly the old names; old snapshots still see the old schema.
func TestDropAndRename(t *testing.T) {
	ctx := context.Background()
	c := newCatalog(t, newDB(t), Options{})
	a, b := mustCreate(t, c, "a"), mustCreate(t, c, "b")
	older := begin(t, c.db)
	err := run(t, c, func(_ *percolator.Txn, ch *Change) error {
		if err := ch.Drop(ctx, a); err != nil {
			return err
		}
		renamed := b.Clone()
		renamed.Name = "a"
		return ch.Update(ctx, b, renamed, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	now := begin(t, c.db)
	if got := find(t, c, now, "a"); got == nil || got.ID != b.ID || got.WriterVersion != b.WriterVersion || got.Version == b.Version {
		t.Fatalf("a is %+v", got)
	}
	if find(t, c, now, "b") != nil || find(t, c, older, "a").ID != a.ID || find(t, c, older, "b").ID != b.ID {
		t.Fatal("names point wrong")
	}
}

// Goal: of two concurrent creations of one name in different processes one fails, and the schema is consistent.
func TestNamesAreUniqueAcrossProcesses(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	c1, c2 := newCatalog(t, db, Options{Shared: true}), newCatalog(t, db, Options{Shared: true})
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, c := range []*Catalog{c1, c2} {
		g := c.NewGuard()
		g.Reset(begin(t, db))
		desc := tableNamed(t, c, "t")
		wg.Go(func() {
			ch, err := g.Change(ctx)
			if err == nil {
				err = ch.Create(ctx, desc)
			}
			if err == nil {
				_, err = g.Commit(ctx)
			} else {
				g.Done(ctx, 0, nil)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("want one failure, got %v and %v", errs[0], errs[1])
	}
	if find(t, c1, begin(t, db), "t") == nil {
		t.Fatal("nobody won")
	}
}

// Goal: a store of another catalog format is refused. Method: change the key.
func TestFormatIsChecked(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	newCatalog(t, db, Options{})
	txn := begin(t, db)
	_ = txn.Put(keyFormat, []byte("99"))
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, err := New(ctx, db, Options{}); !errors.As(err, &format) || format.Found != "99" {
		t.Fatalf("got %v", err)
	}
}

// Goal: I3: numbers are never assigned twice, with any number of callers, also after crashes.
func TestNumbersAreUnique(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	seen := map[uint64]bool{}
	seenRows := map[int64]bool{}
	var mu sync.Mutex
	for range 3 { // each round is a process that dies without closing
		c, err := New(ctx, db, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					id, err := c.NewID(ctx)
					row, err2 := c.NextRowID(ctx, 1)
					mu.Lock()
					if err != nil || err2 != nil || seen[id] || seenRows[row] || id < firstUserOID {
						t.Errorf("id %d, row %d, %v, %v", id, row, err, err2)
					}
					seen[id], seenRows[row] = true, true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}

// Goal: stored statistics can be read, with a new plan version and without failing writers.
func TestStatistics(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	c := newCatalog(t, db, Options{})
	desc := mustCreate(t, c, "t")
	want := &TableStats{Rows: 1000, Columns: map[uint32]ColumnStats{1: {Distinct: 10, Low: []byte{3, 2}, Histogram: [][]byte{{1}, {2}}}}}
	err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.PutStats(ctx, desc, want) })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{c, newCatalog(t, db, Options{})} {
		r, err := c.At(ctx, begin(t, db))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Stats(ctx, desc.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(TableStats{})); diff != "" {
			t.Fatal(diff)
		}
		now, _ := r.RelationByID(ctx, desc.ID)
		if now.Version == desc.Version || now.WriterVersion != desc.WriterVersion {
			t.Fatalf("versions %d/%d, were %d/%d", now.Version, now.WriterVersion, desc.Version, desc.WriterVersion)
		}
	}
	c.stats.note(changedTable{c.database, desc.ID}, 600)
	if stale, err := c.Stale(ctx); err != nil || len(stale) != 0 {
		t.Fatal(stale, err)
	}
	c.stats.note(changedTable{c.database, desc.ID}, 200)
	if stale, err := c.Stale(ctx); err != nil || len(stale) != 1 || stale[0] != desc.ID {
		t.Fatal(stale, err)
	}
}

// Goal: after a commit whose answer was lost the schema is the stored one, and no table stays
// closed. Method: commit, and report an unknown outcome to the guard.
func TestLostCommitOfAChange(t *testing.T) {
	ctx := context.Background()
	c := newCatalog(t, newDB(t), Options{})
	old := mustCreate(t, c, "t")
	for _, committed := range []bool{true, false} {
		g := c.NewGuard()
		txn := begin(t, c.db)
		g.Reset(txn)
		ch, err := g.Change(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Close(ctx, old); err != nil {
			t.Fatal(err)
		}
		next := old.Clone()
		next.Comment = "changed"
		if err := ch.Update(ctx, old, next, true); err != nil {
			t.Fatal(err)
		}
		if committed {
			if err := g.enter(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := txn.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			old = next
		}
		g.Done(ctx, 0, &percolator.UndeterminedError{})
		writer := begin(t, c.db)
		now := find(t, c, writer, "t")
		if now.Version != old.Version || now.Comment != "changed" {
			t.Fatalf("committed %v: schema is %+v", committed, now)
		}
		g.Reset(writer)
		g.Writes(now, 1)
		if err := g.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		_ = writer.Put([]byte("\x02k"), nil)
		if _, err := g.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: unchanged descriptors are shared between snapshots. Method: compare pointers.
func TestUnchangedDescriptorsAreShared(t *testing.T) {
	c := newCatalog(t, newDB(t), Options{})
	mustCreate(t, c, "a")
	before := find(t, c, begin(t, c.db), "a")
	mustCreate(t, c, "b")
	if after := find(t, c, begin(t, c.db), "a"); after != before {
		t.Fatal("a was read again")
	}
}

// Goal: between the commit of a schema change and its publication the old schema is not used for a snapshot that has the
// new one, and a statement without a snapshot detects that it read too late.
func TestSchemaBetweenCommitAndPublication(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	for name, opts := range map[string]Options{"one process": {}, "shared": {Shared: true}} {
		t.Run(name, func(t *testing.T) {
			c := newCatalog(t, db, opts)
			before := c.Latest()
			if ok, err := c.InForce(ctx, before, 0); !ok || err != nil {
				t.Fatalf("in force before: %v, %v", ok, err)
			}
			table := tableNamed(t, c, "between"+name)
			g := c.NewGuard()
			txn := begin(t, db)
			g.Reset(txn)
			ch, err := g.Change(ctx)
			if err == nil {
				err = ch.Create(ctx, table)
			}
			if err == nil {
				err = g.enter(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			ts, err := txn.Commit(ctx)
			if err != nil {
				t.Fatal(err)
			}
			reader := begin(t, db)
			if find(t, c, reader, table.Name) == nil {
				t.Error("a snapshot behind the commit has the schema before it")
			}
			if ok, err := c.InForce(ctx, before, 0); ok || err != nil {
				t.Errorf("in force after the commit: %v, %v", ok, err)
			}
			g.Done(ctx, ts, nil)
			if ok, err := c.InForce(ctx, before, 0); ok || err != nil {
				t.Errorf("in force after the publication: %v, %v", ok, err)
			}
			if !opts.Shared {
				if ok, err := c.InForce(ctx, c.Latest(), 0); !ok || err != nil {
					t.Errorf("the new one is not in force: %v, %v", ok, err)
				}
			}
		})
	}
}

// Goal: a transaction that has waited for a row continues with an advanced snapshot, although the schema of another
// table has changed in the meantime: its reads of the schema are not among the reads that must be unchanged.
func TestSchemaChangesDoNotHoldSnapshotsBack(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	key := []byte("\x02k")
	for name, level := range map[string]percolator.Isolation{"snapshot": percolator.SnapshotIsolation, "serializable": percolator.Serializable} {
		t.Run(name, func(t *testing.T) {
			c := newCatalog(t, db, Options{Shared: true}) // which reads the schema's version in every transaction
			txn, err := db.BeginTxn(ctx, percolator.TxnOptions{Pessimistic: true, Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			defer txn.Close()
			find(t, c, txn, "other")
			if err := txn.BeginStatement(ctx); err != nil { // Reads of the running statement are made again.
				t.Fatal(err)
			}
			mustCreate(t, c, "created meanwhile, "+name)
			err = c.retry(ctx, func(other *percolator.Txn) error { return other.Put(key, []byte("v")) })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := txn.AcquireLocks(ctx, percolator.LockOptions{}, key); err != nil && !errors.Is(err, percolator.ErrRestartStatement) {
				t.Errorf("lock of a row that has changed: %v", err)
			}
			if find(t, c, txn, "created meanwhile, "+name) == nil {
				t.Error("the snapshot has moved, its schema has not")
			}
		})
	}
}
