package executor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// counter is an oracle that counts.
type counter struct{ last atomic.Uint64 }

func (c *counter) Now(context.Context) (tso.Timestamp, error) {
	return tso.Timestamp(c.last.Add(1) + 1<<40), nil
}

// openDB is percolator over one store in memory.
func openDB(t testing.TB) *percolator.DB {
	t.Helper()
	oracle := &counter{}
	store, err := kv.Open(context.Background(), kv.Options{
		Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true, CacheBytes: 64 << 20, ShardID: "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	db := percolator.New(store.Router(), oracle, percolator.Options{})
	t.Cleanup(func() {
		db.Close()
		store.Close()
	})
	return db
}

func begin(t testing.TB, db *percolator.DB) *percolator.Txn {
	t.Helper()
	txn, err := db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// autocommit runs one statement in a transaction of its own.
func autocommit(t testing.TB, db *percolator.DB, table *catalog.TableDescriptor, n planner.Node) ([]string, error) {
	t.Helper()
	txn := begin(t, db)
	rows, _, err := runPlan(planOf(n), testRuntime(txn, table))
	if err == nil {
		_, err = txn.Commit(context.Background())
	}
	return rows, err
}

// The same statements as over memory, over real transactions: what is written is read back in a
// later transaction and in the same one, a violation shows at commit with the key that explains it,
// and of two transactions that update a row one conflicts.
func TestOverPercolator(t *testing.T) {
	db, table := openDB(t), accounts()
	must := func(n planner.Node, want ...string) {
		t.Helper()
		rows, err := autocommit(t, db, table, n)
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, rows, want...)
	}
	must(insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20), accountRow(3, nil, 30)))
	must(wholeScan(table, &table.Primary), "1 a 10", "2 b 20", "3 - 30")
	must(wholeScan(table, &table.Indexes[1]), "1 a 10", "2 b 20", "3 - 30")

	_, err := autocommit(t, db, table, insertRows(table, accountRow(4, "d", 1), accountRow(5, "a", 1)))
	var exists *mvcc.KeyExistsError
	if !errors.As(err, &exists) {
		t.Fatalf("commit: %v", err)
	}
	e := UniqueViolation(context.Background(), oneTable{table}, oneTable{table}, 0, exists.Key)
	if e.Code != pgerror.UniqueViolation || e.Detail != "Key (owner)=(a) already exists." {
		t.Errorf("%+v", e)
	}
	// Twice in one statement.
	if _, err = autocommit(t, db, table, insertRows(table, accountRow(8, "x", 1), accountRow(8, "y", 1))); !errors.As(err, &exists) {
		t.Fatalf("commit: %v", err)
	}

	// Every key moves on by one; the insert of 2 goes over the delete of 2.
	must(updateAll(table, &table.Indexes[1], map[int]expr.Scalar{0: intFn(func(in types.Row) int64 { return in[0].Int() + 1 })}))
	must(wholeScan(table, &table.Primary), "2 a 10", "3 b 20", "4 - 30")

	one, two := begin(t, db), begin(t, db)
	for _, txn := range []*percolator.Txn{one, two} {
		raise := updateAll(table, &table.Indexes[1], map[int]expr.Scalar{2: intFn(func(in types.Row) int64 { return in[2].Int() + 1 })})
		if _, _, err := runPlan(&planner.Plan{Root: raise}, testRuntime(txn, table)); err != nil {
			t.Fatal(err)
		}
		wantRows(t, contentsOf(t, table, txn, &table.Indexes[1]), "2 a 11", "3 b 21", "4 - 31")
	}
	if _, err := one.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	var conflict *mvcc.WriteConflictError
	if _, err := two.Commit(context.Background()); !errors.As(err, &conflict) {
		t.Fatalf("commit: %v", err)
	}
}

func contentsOf(t *testing.T, table *catalog.TableDescriptor, txn Txn, ix *catalog.IndexDescriptor) []string {
	t.Helper()
	rows, _, err := runPlan(&planner.Plan{Root: wholeScan(table, ix)}, testRuntime(txn, table))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Two transactions insert one key on conflict: both see no row, and the second to commit is told of
// a write conflict, which the session answers by running the statement again.
func TestRacingUpserts(t *testing.T) {
	db, table := openDB(t), accounts()
	add := []expr.Scalar{intCol(0), col(1, types.TText), intFn(func(in types.Row) int64 { return in[2].Int() + in[5].Int() })}
	n := upsert(insertRows(table, accountRow(1, "a", 10)), []*catalog.IndexDescriptor{&table.Primary}, add...)
	one, two := begin(t, db), begin(t, db)
	for _, txn := range []*percolator.Txn{one, two} {
		if _, _, err := runPlan(planOf(n), testRuntime(txn, table)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := one.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	var conflict *mvcc.WriteConflictError
	if _, err := two.Commit(context.Background()); !errors.As(err, &conflict) {
		t.Fatalf("commit: %v", err)
	}
	rows, err := autocommit(t, db, table, n)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, rows, "1 20")
}

// A statement that scans while it writes, many pages of rows, sees none of its own writes.
func TestHalloween(t *testing.T) {
	db, table := openDB(t), accounts()
	txn := begin(t, db)
	in := NewInserter(table, nil, nil, nil, testRuntime(txn, table))
	const rows = 5000
	for i := range int64(rows) {
		if err := in.Insert(context.Background(), types.Row{types.Int(i), types.Text(fmt.Sprint("o", i)), types.Int(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := txn.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	txn = begin(t, db)
	for round := range int64(2) {
		raise := updateAll(table, &table.Indexes[1], map[int]expr.Scalar{2: intFn(func(in types.Row) int64 { return in[2].Int() + 10000 })})
		_, affected, err := runPlan(&planner.Plan{Root: raise}, testRuntime(txn, table))
		if err != nil || affected != rows {
			t.Fatalf("%d rows updated, %v", affected, err)
		}
		double := &planner.Insert{Table: table, Input: &planner.Project{
			Base: tableColumns(table, all(table)...), Input: &planner.Filter{
				Base: tableColumns(table, all(table)...), Input: wholeScan(table, &table.Indexes[1]),
				Cond: cond(func(in types.Row) bool { return in[0].Int() < rows }),
			},
			Exprs: []expr.Scalar{intFn(func(in types.Row) int64 { return in[0].Int() + (round+1)*rows }), lit(nil), intCol(2)},
		}}
		double.Input.(*planner.Project).Exprs[1] = &expr.Const{Typ: types.TText}
		if _, affected, err = runPlan(&planner.Plan{Root: double}, testRuntime(txn, table)); err != nil || affected != rows {
			t.Fatalf("%d rows inserted, %v", affected, err)
		}
		// Along one iterator, which has the sink write at once.
		along := updateAll(table, &table.Indexes[1], map[int]expr.Scalar{2: intFn(func(in types.Row) int64 { return in[2].Int() + 7 })})
		along.Input.(*planner.Scan).Fetch = false
		along.Input.(*planner.Scan).Index = &table.Primary
		if _, affected, err = runPlan(&planner.Plan{Root: along}, testRuntime(txn, table)); err != nil || affected != 2*rows {
			t.Fatalf("%d rows updated, %v", affected, err)
		}
		undo := &planner.Delete{Table: table, Input: &planner.Filter{
			Base: tableColumns(table, all(table)...), Input: wholeScan(table, &table.Primary),
			Cond: cond(func(in types.Row) bool { return in[0].Int() >= rows }),
		}}
		if _, affected, err = runPlan(&planner.Plan{Root: undo}, testRuntime(txn, table)); err != nil || affected != rows {
			t.Fatalf("%d rows deleted, %v", affected, err)
		}
	}
	if _, err := txn.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := contentsOf(t, table, begin(t, db), &table.Indexes[1])
	if len(got) != rows || got[0] != "0 o0 20014" {
		t.Errorf("%d rows, first %q", len(got), got[0])
	}
}

// A suspended query shows, after Hold, what was there before other statements of its transaction
// wrote: read along an iterator, fetched through an index, joined, and before its first row.
func TestHold(t *testing.T) {
	db, table := openDB(t), accounts()
	if _, err := autocommit(t, db, table, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20), accountRow(3, "c", 30))); err != nil {
		t.Fatal(err)
	}
	scan, fetch := wholeScan(table, &table.Primary), wholeScan(table, &table.Indexes[1])
	lookup := &planner.LookupJoin{Base: join(scan, scan), Left: scan, Keys: []expr.Scalar{intCol(0)}, Unique: true,
		Access: planner.Access{Table: table, Index: &table.Primary, Ordinals: all(table)}}
	for _, n := range []planner.Node{scan, fetch, lookup} {
		want, err := autocommit(t, db, table, n)
		if err != nil {
			t.Fatal(err)
		}
		for before := range 3 {
			txn, ctx := begin(t, db), context.Background()
			rt := testRuntime(txn, table)
			rt.GroupSize = 1
			r, err := Build(planOf(n), rt)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Open(ctx); err != nil {
				t.Fatal(err)
			}
			var got []string
			pull := func(rows int) {
				for range rows {
					row, err := r.Next(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if row != nil {
						got = append(got, show(row))
					}
				}
			}
			pull(before)
			for range 2 { // holding twice is holding once
				if err := r.Hold(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for _, change := range []planner.Node{
				updateAll(table, &table.Primary, map[int]expr.Scalar{2: lit(5)}),
				&planner.Delete{Table: table, Input: scan},
				insertRows(table, accountRow(9, "z", 1)),
			} {
				if _, _, err := runPlan(&planner.Plan{Root: change}, testRuntime(txn, table)); err != nil {
					t.Fatal(err)
				}
			}
			pull(5)
			wantRows(t, got, want...)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// BenchmarkPointSelectOverStore is the whole of a point read below the session.
func BenchmarkPointSelectOverStore(b *testing.B) {
	db, table := openDB(b), testTable(7, 1, "id int", "owner text", "amount int")
	txn := begin(b, db)
	in := NewInserter(table, nil, nil, nil, testRuntime(txn, table))
	for i := range int64(100000) {
		if err := in.Insert(context.Background(), types.Row{types.Int(i), types.Text("o"), types.Int(i)}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := txn.Commit(context.Background()); err != nil {
		b.Fatal(err)
	}
	n := &planner.PointGet{
		Base: tableColumns(table, 2), Access: planner.Access{Table: table, Index: &table.Primary, Ordinals: []int{2}},
		Key: []expr.Scalar{&expr.Input{Typ: types.TInt8}},
	}
	r, err := NewRunner(planOf(n))
	if err != nil {
		b.Fatal(err)
	}
	rt := testRuntime(nil, table)
	rt.Inputs = make(types.Row, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rt.Txn = begin(b, db)
		rt.Inputs[0] = types.Int(int64(i*7919) % 100000)
		if runOnce(b, r, rt) != 1 {
			b.Fatal("no row")
		}
	}
}

// BenchmarkLoad is COPY below the session: rows of three columns with a primary key.
func BenchmarkLoad(b *testing.B) {
	db := openDB(b)
	table := testTable(7, 1, "id int", "owner text", "amount int")
	row := types.Row{types.Null, types.Text("somebody with a name"), types.Int(1)}
	b.ReportAllocs()
	var txn *percolator.Txn
	var in *Inserter
	for i := 0; b.Loop(); i++ {
		if i%10000 == 0 {
			if txn != nil {
				if _, err := txn.Commit(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			txn = begin(b, db)
			in = NewInserter(table, nil, nil, nil, testRuntime(txn, table))
		}
		row[0] = types.Int(int64(i))
		if err := in.Insert(context.Background(), row); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScanOverStore is SELECT id, amount FROM t WHERE amount % 2 = 0 over 100,000 rows.
func BenchmarkScanOverStore(b *testing.B) {
	db, table := openDB(b), testTable(7, 1, "id int", "owner text", "amount int")
	addIndex(table, false, 2)
	const rows = 100000
	txn := begin(b, db)
	in := NewInserter(table, nil, nil, nil, testRuntime(txn, table))
	for i := range int64(rows) {
		if err := in.Insert(context.Background(), types.Row{types.Int(i), types.Text("somebody with a name"), types.Int(i)}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := txn.Commit(context.Background()); err != nil {
		b.Fatal(err)
	}
	even := cond(func(in types.Row) bool { return in[1].Int()%2 == 0 })
	for _, c := range []struct {
		name     string
		index    *catalog.IndexDescriptor
		fetch    bool
		ordinals []int
	}{
		{"primary", &table.Primary, false, []int{0, 2}},
		{"covering", &table.Indexes[0], false, []int{0, 2}},
		{"fetch", &table.Indexes[0], true, []int{0, 2}},
		{"keys", &table.Primary, false, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := &planner.Scan{Base: tableColumns(table, c.ordinals...), Filter: even,
				Access: planner.Access{Table: table, Index: c.index, Ordinals: c.ordinals, Fetch: c.fetch}}
			if c.ordinals == nil {
				n.Filter = nil
			}
			r, err := NewRunner(planOf(n))
			if err != nil {
				b.Fatal(err)
			}
			rt := testRuntime(nil, table)
			b.ReportAllocs()
			for b.Loop() {
				rt.Txn = begin(b, db)
				runOnce(b, r, rt)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
