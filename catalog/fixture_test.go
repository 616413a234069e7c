package catalog

import (
	"context"
	"testing"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// newDB opens a store in memory.
func newDB(t testing.TB) *percolator.DB {
	return newDBUnder(t, func(o tso.Oracle) tso.Oracle { return o })
}

// newDBUnder is newDB whose transactions ask what wrap makes of the store's oracle.
func newDBUnder(t testing.TB, wrap func(tso.Oracle) tso.Oracle) *percolator.DB {
	t.Helper()
	db, _ := openDB(t, wrap)
	return db
}

// openDB is newDBUnder that also returns the graph of waits for row locks.
func openDB(t testing.TB, wrap func(tso.Oracle) tso.Oracle) (*percolator.DB, *waitgraph.Local) {
	t.Helper()
	oracle := &tsotest.ClockOracle{}
	store, err := kv.Open(context.Background(), kv.Options{Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true})
	if err != nil {
		t.Fatal(err)
	}
	db := percolator.New(store.Router(), wrap(oracle), percolator.Options{})
	t.Cleanup(func() {
		db.Close()
		store.Close()
	})
	return db, store.WaitGraph()
}

func newCatalog(t testing.TB, db *percolator.DB, opts Options) *Catalog {
	t.Helper()
	c, err := New(context.Background(), db, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func begin(t testing.TB, db *percolator.DB) *percolator.Txn {
	t.Helper()
	txn, err := db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// run has f change the schema in a transaction of its own, and returns what Commit returned.
func run(t testing.TB, c *Catalog, f func(txn *percolator.Txn, ch *Change) error) error {
	t.Helper()
	ctx := context.Background()
	g := c.NewGuard()
	txn := begin(t, c.db)
	g.Reset(txn)
	ch, err := g.Change(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := f(txn, ch); err != nil {
		t.Fatal(err)
	}
	_, err = g.Commit(ctx)
	return err
}

// tableNamed makes a table with one column.
func tableNamed(t testing.TB, c *Catalog, name string) *TableDescriptor {
	t.Helper()
	id, err := c.NewID(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return &TableDescriptor{
		ID: id, Kind: KindTable, Schema: PublicSchema, Name: name, NextColumnID: 2, NextIndexID: 2,
		Columns: []ColumnDescriptor{{ID: 1, Name: "a", Type: types.TInt4, NotNull: true}},
		Primary: IndexDescriptor{ID: 1, Name: name + "_pkey", Unique: true, Constraint: true, Columns: []IndexColumn{{ColumnID: 1}}},
	}
}

func mustCreate(t testing.TB, c *Catalog, name string) *TableDescriptor {
	t.Helper()
	desc := tableNamed(t, c, name)
	err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.Create(context.Background(), desc) })
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

// find looks a table up as txn sees it.
func find(t testing.TB, c *Catalog, txn *percolator.Txn, name string) *TableDescriptor {
	t.Helper()
	r, err := c.At(context.Background(), txn)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := r.Relation(context.Background(), "", name)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}
