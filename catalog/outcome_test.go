package catalog

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Goal: the schemas that a process has after changes of its own, without having read them, are what is stored, in the changed database and in
// others. Method: changes of every fate in one process, with two databases open; after each, what is cached of the version in force is compared with
// what another catalog reads. One process has the store for itself, the other one shares it.
func TestOutcomesAreWhatIsStored(t *testing.T) {
	for _, shared := range []bool{false, true} {
		ctx := context.Background()
		db := newDB(t)
		c := newCatalog(t, db, Options{Shared: shared})
		other := c.Database(template1OID)
		var table *TableDescriptor
		steps := []struct {
			name string
			do   func(txn *percolator.Txn, ch *Change) error
		}{
			{"create", func(_ *percolator.Txn, ch *Change) error { table = tableNamed(t, c, "t"); return ch.Create(ctx, table) }},
			{"replace", func(_ *percolator.Txn, ch *Change) error {
				next := table.Clone()
				next.Name = "u"
				err := ch.Update(ctx, table, next, false)
				table = next
				return err
			}},
			{"undo", func(txn *percolator.Txn, ch *Change) error {
				if _, err := ch.Resolver(ctx); err != nil {
					return err
				}
				sp := txn.Savepoint()
				if err := ch.Create(ctx, tableNamed(t, c, "undone")); err != nil {
					return err
				}
				if _, err := ch.Resolver(ctx); err != nil { // caches the version that is undone
					return err
				}
				txn.RollbackTo(sp)
				return ch.CreateSchema(ctx, "s", Owned{})
			}},
			{"reserve", func(_ *percolator.Txn, ch *Change) error {
				_, err := ch.Reserve(ctx, table.ID, 2)
				return err
			}},
			{"database", func(_ *percolator.Txn, ch *Change) error {
				d := ch.catalog.last().databases.ByOID(template1OID).Clone()
				d.Comment = "changed"
				return ch.PutDatabase(ctx, d)
			}},
			{"drop", func(_ *percolator.Txn, ch *Change) error { return ch.Drop(ctx, ch.catalog.last().byID[table.ID]) }},
		}
		for _, step := range steps {
			for _, each := range []*Catalog{c, other} { // so that it is cached before the change
				txn := begin(t, db)
				if _, err := each.At(ctx, txn); err != nil {
					t.Fatal(err)
				}
				txn.Close()
			}
			if err := run(t, c, step.do); err != nil {
				t.Fatal(step.name, err)
			}
			txn := begin(t, db)
			version, err := getNumber(ctx, txn, keyVersion)
			if err != nil {
				t.Fatal(err)
			}
			if r := c.Latest(); r == nil || r.Version() != version {
				t.Errorf("shared %v, %s: a statement that reads without a timestamp is planned under another schema than the one in force", shared, step.name)
			}
			for _, each := range []*Catalog{c, other} {
				cached := each.recent(version, 0)
				if cached == nil {
					t.Errorf("shared %v, %s: the schema of database %d is not cached", shared, step.name, each.database)
					continue
				}
				rows, err := readSchemaRows(ctx, txn, each.spans, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(cached.rows.rows, rows.rows) {
					t.Errorf("shared %v, %s: the schema of database %d has the rows\n%q, stored are\n%q", shared, step.name, each.database, cached.rows.rows, rows.rows)
				}
				fresh, err := each.newSnapshot(ctx, version, rows, nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(cached.byID) != len(fresh.byID) || len(cached.schemas) != len(fresh.schemas) || cached.database.Comment != fresh.database.Comment {
					t.Errorf("shared %v, %s: %d relations, %d schemas, want %d, %d", shared, step.name, len(cached.byID), len(cached.schemas), len(fresh.byID), len(fresh.schemas))
				}
				for id, want := range fresh.byID {
					if got := cached.byID[id]; got == nil || !reflect.DeepEqual(encode(got), encode(want)) {
						t.Errorf("shared %v, %s: relation %d: %+v, want %+v", shared, step.name, id, got, want)
					}
				}
			}
			txn.Close()
		}
	}
}

// Goal: the commit of a transaction that has not written the schema's version says nothing about the schema. Method: while one is open that has
// queued keys for garbage collection, another process creates a table; a snapshot from between the two commits shows it.
func TestChangeWithoutVersion(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	ours, theirs := newCatalog(t, db, Options{Shared: true}), newCatalog(t, db, Options{Shared: true})
	var between *percolator.Txn
	err := run(t, ours, func(_ *percolator.Txn, ch *Change) error {
		if _, err := ch.Resolver(ctx); err != nil {
			return err
		}
		mustCreate(t, theirs, "theirs")
		between = begin(t, db)
		return ch.DropSpan(ctx, DroppedSpan{Table: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer between.Close()
	if find(t, ours, between, "theirs") == nil {
		t.Error("a table that was created before the snapshot is missing")
	}
}

// Goal: the rows of a schema with a transaction's writes are those that a scan of the transaction finds.
func TestRowsWithWrites(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	spans := []kv.Span{wordSpan("a"), wordSpan("c")}
	txn := begin(t, db)
	for _, key := range []string{"\x01a/1", "\x01a/2", "\x01b/1", "\x01c/1"} {
		_ = txn.Put([]byte(key), []byte("old"))
	}
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	txn = begin(t, db)
	defer txn.Close()
	stored, err := readSchemaRows(ctx, txn, spans, nil)
	if err != nil || len(stored.rows) != 3 {
		t.Fatalf("%q %v", stored.rows, err)
	}
	if same, wrote, err := stored.with(txn, spans); same != stored || wrote || err != nil {
		t.Errorf("without writes: %v %v", wrote, err)
	}
	for _, key := range []string{"\x01a/0", "\x01a/2", "\x01b/1", "\x01c/2"} {
		_ = txn.Put([]byte(key), []byte("new"))
	}
	_ = txn.Delete([]byte("\x01a/1"))
	_ = txn.Delete([]byte("\x01c/3"))
	_ = txn.Put([]byte("\x01c/2"), []byte("newer"))
	got, wrote, err := stored.with(txn, spans)
	if err != nil || !wrote {
		t.Fatal(wrote, err)
	}
	want, err := readSchemaRows(ctx, txn, spans, stored)
	if err != nil || !reflect.DeepEqual(got.rows, want.rows) || len(want.rows) != 4 {
		t.Errorf("%q, want %q %v", got.rows, want.rows, err)
	}
}

// dropping is an oracle that calls drop once, after it has taken a timestamp.
type dropping struct {
	tso.Oracle
	drop func()
}

func (d *dropping) Now(ctx context.Context) (tso.Timestamp, error) {
	ts, err := d.Oracle.Now(ctx)
	if f := d.drop; f != nil {
		d.drop = nil
		f()
	}
	return ts, err
}

// Goal: what an attempt has foreseen that met a conflict is not published. Method: another process drops the table between the snapshot and the commit of a
// reservation, whose next attempt finds nothing to change.
func TestReserveInADroppedTable(t *testing.T) {
	ctx := context.Background()
	var oracle *dropping
	db := newDBUnder(t, func(o tso.Oracle) tso.Oracle {
		oracle = &dropping{Oracle: o}
		return oracle
	})
	c := newCatalog(t, db, Options{Shared: true, Lease: time.Minute, PollInterval: time.Hour})
	table := mustCreate(t, c, "t")
	version, err := c.NewID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	g := c.NewGuard()
	g.Reset(begin(t, db))
	defer g.Done(ctx, 0, nil)
	ch, err := g.Change(ctx)
	if err != nil {
		t.Fatal(err)
	}
	oracle.drop = func() {
		txn := begin(t, db)
		for _, key := range [][]byte{c.space.idKey(wordRelation, table.ID), c.space.nameKey(table.Schema, table.Name)} {
			if err := txn.Delete(key); err != nil {
				t.Error(err)
			}
		}
		if err := putNumber(txn, keyVersion, version); err != nil {
			t.Error(err)
		}
		if _, err := txn.Commit(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := ch.Reserve(ctx, table.ID, 1); err != nil {
		t.Fatal(err)
	}
	if oracle.drop != nil {
		t.Fatal("the table is there")
	}
	if r := c.Latest(); r != nil && r.Version() != version {
		t.Errorf("the schema has the version %d, and the process takes it for %d", version, r.Version())
	}
}
