package check

import (
	"context"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// fixture is a store with one table: a key, a NOT NULL column, a unique and a plain index.
type fixture struct {
	t       *testing.T
	db      *percolator.DB
	catalog *catalog.Catalog
	table   *catalog.TableDescriptor
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctx := context.Background()
	oracle := &tsotest.ClockOracle{}
	store, err := kv.Open(ctx, kv.Options{Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, db: percolator.New(store.Router(), oracle, percolator.Options{})}
	t.Cleanup(func() {
		f.db.Close()
		store.Close()
	})
	if f.catalog, err = catalog.New(ctx, f.db, catalog.Options{}); err != nil {
		t.Fatal(err)
	}
	f.table = &catalog.TableDescriptor{
		ID: 16390, Kind: catalog.KindTable, Schema: catalog.PublicSchema, Name: "t", NextColumnID: 4, NextIndexID: 4,
		Columns: []catalog.ColumnDescriptor{{ID: 1, Name: "a", Type: types.TInt4, NotNull: true}, {ID: 2, Name: "b", Type: types.TText, NotNull: true}, {ID: 3, Name: "c", Type: types.TInt4}},
		Primary: catalog.IndexDescriptor{ID: 1, Name: "t_pkey", Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}},
		Indexes: []catalog.IndexDescriptor{
			{ID: 2, Name: "t_b_key", Unique: true, Columns: []catalog.IndexColumn{{ColumnID: 2}}, Include: []uint32{3}},
			{ID: 3, Name: "t_c_idx", Columns: []catalog.IndexColumn{{ColumnID: 3, Desc: true}}},
		},
	}
	f.change(f.table)
	return f
}

// change creates relations.
func (f *fixture) change(all ...*catalog.TableDescriptor) {
	f.t.Helper()
	ctx := context.Background()
	g := f.catalog.NewGuard()
	txn, err := f.db.Begin(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	g.Reset(txn)
	ch, err := g.Change(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, t := range all {
		if err := ch.Create(ctx, t); err != nil {
			f.t.Fatal(err)
		}
	}
	_, err = g.Commit(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
}

// write has write put and delete keys in one transaction.
func (f *fixture) write(write func(txn *percolator.Txn)) {
	f.t.Helper()
	txn, err := f.db.Begin(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	write(txn)
	if _, err := txn.Commit(context.Background()); err != nil {
		f.t.Fatal(err)
	}
}

func row(a int64, b string, c int64) types.Row {
	return types.Row{types.Int(a), types.Text(b), types.Int(c)}
}

// put writes a row with its entries.
func (f *fixture) put(txn *percolator.Txn, r types.Row) {
	f.t.Helper()
	value, err := rowenc.AppendRow(nil, f.table, r)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = txn.Put(f.key(&f.table.Primary, r), value)
	for i := range f.table.Indexes {
		ix := &f.table.Indexes[i]
		_ = txn.Put(f.key(ix, r), f.entry(ix, r))
	}
}

func (f *fixture) key(ix *catalog.IndexDescriptor, r types.Row) []byte {
	f.t.Helper()
	key, _, err := rowenc.AppendKey(nil, f.table, ix, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return key
}

func (f *fixture) entry(ix *catalog.IndexDescriptor, r types.Row) []byte {
	f.t.Helper()
	value, err := rowenc.AppendEntry(nil, f.table, ix, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return value
}

// problems runs the check and returns what it found, without keys, in order.
func (f *fixture) problems() (string, Summary) {
	f.t.Helper()
	txn, err := f.db.Begin(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	var lines []string
	resolver, err := f.catalog.At(context.Background(), txn)
	if err != nil {
		f.t.Fatal(err)
	}
	sum, err := Run(context.Background(), Source{resolver, txn, &builtin.Env{}}, Report{Finding: func(p Finding) error {
		problem, _, _ := strings.Cut(p.Problem, ": ")
		lines = append(lines, p.Relation+" "+p.Index+" "+strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, problem))
		return nil
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n"), sum
}

// Goal: a sound table passes, and every kind of damage is found and named. Method: damage one thing at
// a time.
func TestDamageIsFound(t *testing.T) {
	unique := func(f *fixture) *catalog.IndexDescriptor { return &f.table.Indexes[0] }
	plain := func(f *fixture) *catalog.IndexDescriptor { return &f.table.Indexes[1] }
	for _, tc := range []struct {
		name   string
		damage func(f *fixture, txn *percolator.Txn)
		want   string // parts of the findings, one a line
	}{
		{"nothing", func(*fixture, *percolator.Txn) {}, ""},
		{"entry lost", func(f *fixture, txn *percolator.Txn) { _ = txn.Delete(f.key(plain(f), row(5, "r5", 50))) }, "t_c_idx row has no entry"},
		{"row lost", func(f *fixture, txn *percolator.Txn) { _ = txn.Delete(f.key(&f.table.Primary, row(5, "r5", 50))) },
			"t_b_key points at a row that is not there\nt_c_idx points at a row that is not there"},
		{"entry too many", func(f *fixture, txn *percolator.Txn) {
			_ = txn.Put(f.key(unique(f), row(5, "other", 50)), f.entry(unique(f), row(5, "other", 50)))
		}, "t_b_key is not the entry of the row it points at"},
		{"entry of another row", func(f *fixture, txn *percolator.Txn) {
			_ = txn.Put(f.key(unique(f), row(5, "r5", 50)), f.entry(unique(f), row(6, "r5", 50)))
		}, "t_b_key entry\nt_b_key is not the entry"},
		{"included column stale", func(f *fixture, txn *percolator.Txn) {
			_ = txn.Put(f.key(unique(f), row(5, "r5", 50)), f.entry(unique(f), row(5, "r5", 51)))
		}, "t_b_key entry"},
		{"row garbage", func(f *fixture, txn *percolator.Txn) {
			_ = txn.Put(f.key(&f.table.Primary, row(5, "", 0)), []byte{9, 9})
		},
			"stored row cannot be decoded"},
		{"NULL", func(f *fixture, txn *percolator.Txn) {
			r := types.Row{types.Int(50000), types.Null, types.Null}
			f.put(txn, r)
		}, "column \"b\" is NULL"},
		{"entry garbage", func(f *fixture, txn *percolator.Txn) { _ = txn.Put(f.key(unique(f), row(5, "r5", 50)), []byte{1}) },
			"t_b_key entry\nt_b_key stored row cannot be decoded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.write(func(txn *percolator.Txn) {
				for i := range int64(3000) {
					f.put(txn, row(i, "r"+string(rune('0'+i%10))+strings.Repeat("x", int(i/10)%7)+time.Duration(i).String(), i*10))
				}
				f.put(txn, row(5, "r5", 50))
				// The row 5 of the loop was overwritten: its entries go.
				_ = txn.Delete(f.key(unique(f), row(5, "r5"+time.Duration(5).String(), 50)))
			})
			f.write(func(txn *percolator.Txn) { tc.damage(f, txn) })
			got, sum := f.problems()
			lines := strings.Split(got, "\n")
			wants := strings.Split(tc.want, "\n")
			if tc.want == "" {
				if got != "" || sum.Rows != 3000 || sum.Entries != 6000 || sum.Tables != 1 {
					t.Fatalf("%+v: %s", sum, got)
				}
				return
			}
			if len(lines) != len(wants) || sum.Findings != int64(len(wants)) {
				t.Fatalf("want %d findings, got:\n%s", len(wants), got)
			}
			for i := range wants {
				if !strings.Contains(lines[i], wants[i]) {
					t.Fatalf("want %q, got %q", wants[i], lines[i])
				}
			}
		})
	}
}

// Goal: descriptors and sequences that contradict themselves are found.
func TestBadDescriptorsAreFound(t *testing.T) {
	f := newFixture(t)
	seq := func(id uint64, name string, q catalog.SequenceDescriptor) *catalog.TableDescriptor {
		q.ValueID, q.Type = id, types.TInt8
		return &catalog.TableDescriptor{ID: id, Kind: catalog.KindSequence, Schema: catalog.PublicSchema, Name: name, Sequence: &q}
	}
	bad := f.table.Clone()
	bad.ID, bad.Name, bad.NextIndexID = 16400, "bad", 3
	bad.Columns[2].ID, bad.Columns[2].Sequence = 2, 99999
	f.change(
		seq(16401, "fine", catalog.SequenceDescriptor{Start: 1, First: 1, Increment: 1, Min: 1, Max: 10}),
		seq(16402, "outside", catalog.SequenceDescriptor{Start: 1, First: 100, Increment: 1, Min: 1, Max: 10}),
		seq(16403, "still", catalog.SequenceDescriptor{Start: 1, First: 1, Increment: 0, Min: 1, Max: 10}),
	)
	got, _ := f.problems()
	for _, want := range []string{"public.outside  value  is outside", "public.still  options contradict"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "fine") {
		t.Error(got)
	}
	k := &checker{resolver: mustAt(t, f), Report: Report{Finding: func(p Finding) error { got += p.String() + "\n"; return nil }}}
	got = ""
	if err := k.descriptor(context.Background(), bad); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not the one its name leads to", "sequence 99999", "has id 2 after 2", "id 3 is taken"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func mustAt(t *testing.T, f *fixture) catalog.Resolver {
	t.Helper()
	txn, err := f.db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.catalog.At(context.Background(), txn)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Goal: a row whose parent is missing, a parent that does not know of a foreign key, and one that lists a table without, are found; NULLs and
// existing parents are not. Method: a table that references the fixture's, and rows written without the executor.
func TestForeignKeys(t *testing.T) {
	f := newFixture(t)
	parent := &catalog.TableDescriptor{
		ID: 16410, Kind: catalog.KindTable, Schema: catalog.PublicSchema, Name: "parent", NextColumnID: 2, NextIndexID: 2,
		Columns: []catalog.ColumnDescriptor{{ID: 1, Name: "a", Type: types.TInt4, NotNull: true}},
		Primary: catalog.IndexDescriptor{ID: 1, Name: "parent_pkey", OID: 16501, Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}},
	}
	child := &catalog.TableDescriptor{
		ID: 16411, Kind: catalog.KindTable, Schema: catalog.PublicSchema, Name: "child", NextColumnID: 3, NextIndexID: 2,
		Columns: []catalog.ColumnDescriptor{{ID: 1, Name: "a", Type: types.TInt4, NotNull: true}, {ID: 2, Name: "p", Type: types.TInt8}},
		Primary: catalog.IndexDescriptor{ID: 1, Name: "child_pkey", OID: 16502, Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}},
		ForeignKeys: []catalog.ForeignKeyDescriptor{
			{OID: 16500, Name: "fk", Columns: []uint32{2}, Parent: parent.ID, ParentColumns: []uint32{1}, ParentIndex: 16501},
			{OID: 16503, Name: "later", Columns: []uint32{2}, Parent: parent.ID, ParentColumns: []uint32{1}, ParentIndex: 16501, NotValid: true},
		},
		Referencing: []uint64{16390},
	}
	f.change(parent, child)
	f.write(func(txn *percolator.Txn) {
		for _, r := range []types.Row{{types.Int(1), types.Int(1)}, {types.Int(2), types.Null}, {types.Int(3), types.Int(9)}} {
			f.table = child
			f.put(txn, r)
		}
		f.table = parent
		f.put(txn, types.Row{types.Int(1)})
	})
	got, _ := f.problems()
	if strings.Count(got, "public.child") != 3 || strings.Contains(got, "later") || !strings.Contains(got, "foreign key") || !strings.Contains(got, "is listed") {
		t.Errorf("found\n%s", got)
	}
}

// Goal: rows that conflict under a deferrable unique key or an exclusion constraint are found, and others are not. Method: a table with both, and
// rows written without the executor.
func TestLateKeys(t *testing.T) {
	f := newFixture(t)
	table := &catalog.TableDescriptor{
		ID: 16420, Kind: catalog.KindTable, Schema: catalog.PublicSchema, Name: "late", NextColumnID: 4, NextIndexID: 4,
		Columns: []catalog.ColumnDescriptor{{ID: 1, Name: "id", Type: types.TInt4, NotNull: true}, {ID: 2, Name: "a", Type: types.TInt4}, {ID: 3, Name: "b", Type: types.TInt4}},
		Primary: catalog.IndexDescriptor{ID: 1, Name: "late_pkey", OID: 16601, Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}},
		Indexes: []catalog.IndexDescriptor{
			{ID: 2, Name: "late_a", OID: 16602, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 2}}, LateKey: catalog.LateKey{Deferrable: true}},
			{ID: 3, Name: "late_b", OID: 16603, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 2}}, LateKey: catalog.LateKey{
				Exclude: []catalog.ExcludeElement{{ColumnID: 2, Operator: "="}, {ColumnID: 3, Operator: "<>"}},
			}},
		},
	}
	f.change(table)
	f.write(func(txn *percolator.Txn) {
		f.table = table
		for _, r := range []types.Row{
			{types.Int(1), types.Int(1), types.Int(1)}, {types.Int(2), types.Int(2), types.Int(1)}, {types.Int(3), types.Int(2), types.Int(1)},
			{types.Int(4), types.Null, types.Int(1)}, {types.Int(5), types.Null, types.Int(2)},
		} {
			f.put(txn, r)
		}
	})
	got, _ := f.problems()
	if strings.Count(got, "late_a conflicts") != 2 || strings.Contains(got, "late_b") {
		t.Errorf("found\n%s", got)
	}
}
