package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The statements that write are run over a transaction in memory. After every statement the index
// entries are checked against the rows, by reading the table through every index.

// accounts is id, owner (unique), amount (indexed).
func accounts() *catalog.TableDescriptor {
	t := testTable(7, 1, "id int", "owner text", "amount int")
	addIndex(t, true, 1)
	addIndex(t, false, 2)
	return t
}

func accountRow(id any, owner any, amount any) []expr.Scalar { return lits(id, owner, amount) }

func insertRows(t *catalog.TableDescriptor, rows ...[]expr.Scalar) *planner.Insert {
	v := &planner.Values{Base: tableColumns(t, all(t)...), Rows: rows}
	return &planner.Insert{Base: planner.Base{}, Table: t, Input: v}
}

// exec runs a statement and checks the table.
func exec(t *testing.T, table *catalog.TableDescriptor, txn *memTxn, n planner.Node) ([]string, int64, error) {
	t.Helper()
	rt := testRuntime(txn, table)
	rows, affected, err := runPlan(planOf(n), rt)
	if err == nil {
		checkIndexes(t, table, txn)
	}
	return rows, affected, err
}

func checkIndexes(t *testing.T, table *catalog.TableDescriptor, txn *memTxn) {
	t.Helper()
	want := inAnyOrder(contents(t, table, txn, &table.Primary))
	for i := range table.Indexes {
		got := inAnyOrder(contents(t, table, txn, &table.Indexes[i]))
		wantRows(t, got, want...)
	}
}

func contents(t *testing.T, table *catalog.TableDescriptor, txn *memTxn, ix *catalog.IndexDescriptor) []string {
	t.Helper()
	rows, _, err := runPlan(&planner.Plan{Root: wholeScan(table, ix)}, testRuntime(txn, table))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func mustExec(t *testing.T, table *catalog.TableDescriptor, txn *memTxn, n planner.Node, want int64) []string {
	t.Helper()
	rows, affected, err := exec(t, table, txn, n)
	if err != nil {
		t.Fatal(err)
	}
	if affected != want {
		t.Errorf("%d rows affected, want %d", affected, want)
	}
	return rows
}

func wantCode(t *testing.T, err error, code pgerror.Code) *pgerror.Error {
	t.Helper()
	var e *pgerror.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	return e
}

func TestInsert(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	n := insertRows(table, accountRow(1, "a", 10), accountRow(2, nil, nil), accountRow(3, nil, 10))
	n.Returning = []expr.Scalar{intCol(0), times(2, 2)}
	n.Base = ints(2)
	wantRows(t, mustExec(t, table, txn, n, 3), "1 20", "2 -", "3 20")
	wantRows(t, contents(t, table, txn, &table.Primary), "1 a 10", "2 - -", "3 - 10")

	// Inserting from the table itself sees the rows of before.
	copyAll := &planner.Insert{Table: table, Input: &planner.Project{
		Base: tableColumns(table, 0, 1, 2), Input: wholeScan(table, &table.Primary),
		Exprs: []expr.Scalar{intFn(func(in types.Row) int64 { return in[0].Int() + 100 }), &expr.Const{Typ: types.TText}, intCol(2)},
	}}
	mustExec(t, table, txn, copyAll, 3)
	if err := txn.commitError(); err != nil {
		t.Errorf("nothing was inserted twice, yet %v", err)
	}
}

func TestInsertConstraints(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	_, _, err := exec(t, table, txn, insertRows(table, accountRow(nil, "x", 1)))
	e := wantCode(t, err, pgerror.NotNullViolation)
	if e.Message != `null value in column "id" of relation "t7" violates not-null constraint` ||
		e.Detail != "Failing row contains (null, x, 1)." || e.Column != "id" || e.Table != "t7" || e.Schema != "public" {
		t.Errorf("%+v", e)
	}
	n := insertRows(table, accountRow(1, "x", -1))
	n.Checks = []planner.Check{
		{Name: "positive", Cond: cond(func(in types.Row) bool { return in[2].Int() > 0 })},
		{Name: "known", Cond: &expr.Const{Typ: types.TBool}}, // NULL passes
	}
	_, _, err = exec(t, table, txn, n)
	e = wantCode(t, err, pgerror.CheckViolation)
	if e.Message != `new row for relation "t7" violates check constraint "positive"` ||
		e.Detail != "Failing row contains (1, x, -1)." || e.Constraint != "positive" {
		t.Errorf("%+v", e)
	}
}

// Without EagerUnique keys that must be new are passed to the transaction; with it the statement fails,
// for duplicates of stored rows, of rows of the same statement, and of an earlier statement of the transaction.
func TestUniqueViolations(t *testing.T) {
	for _, c := range []struct {
		name       string
		rows       [][]expr.Scalar
		constraint string
		detail     string
	}{
		{"primary", [][]expr.Scalar{accountRow(1, "z", 0)}, "t7_pkey", "Key (id)=(1) already exists."},
		{"unique", [][]expr.Scalar{accountRow(9, "a", 0)}, "t7_idx2", "Key (owner)=(a) already exists."},
		{"same statement", [][]expr.Scalar{accountRow(8, "q", 0), accountRow(9, "q", 0)}, "t7_idx2", "Key (owner)=(q) already exists."},
		{"one of many", [][]expr.Scalar{accountRow(8, "q", 0), accountRow(1, "r", 0)}, "t7_pkey", "Key (id)=(1) already exists."},
	} {
		for _, eager := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, " eager ", eager), func(t *testing.T) {
				table, txn := accounts(), newMemTxn()
				mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10)), 1)
				rt := testRuntime(txn, table)
				rt.EagerUnique = eager
				_, _, err := runPlan(&planner.Plan{Root: insertRows(table, c.rows...)}, rt)
				if !eager {
					var exists *mvcc.KeyExistsError
					if err != nil || !errors.As(txn.commitError(), &exists) {
						t.Fatalf("statement %v, commit %v", err, txn.commitError())
					}
					err = UniqueViolation(context.Background(), rt.Resolver, rt.Resolver, 0, exists.Key)
				}
				e := wantCode(t, err, pgerror.UniqueViolation)
				if e.Constraint != c.constraint || e.Detail != c.detail || e.Table != "t7" {
					t.Errorf("%+v", e)
				}
			})
		}
	}
}

// updateAll sets columns of all rows read through an index.
func updateAll(table *catalog.TableDescriptor, ix *catalog.IndexDescriptor, set map[int]expr.Scalar) *planner.Update {
	n := &planner.Update{Table: table, Input: wholeScan(table, ix)}
	for i, c := range table.Columns {
		e, ok := set[i]
		if ok {
			n.Changed = append(n.Changed, i)
		} else {
			e = col(i, c.Type)
		}
		n.Set = append(n.Set, e)
	}
	return n
}

func TestUpdate(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20), accountRow(3, nil, 30)), 3)
	plus := func(ord int, by int64) expr.Scalar {
		return intFn(func(in types.Row) int64 { return in[ord].Int() + by })
	}

	// Through the index that the update moves rows along: each row once.
	mustExec(t, table, txn, updateAll(table, &table.Indexes[1], map[int]expr.Scalar{2: plus(2, 15)}), 3)
	wantRows(t, contents(t, table, txn, &table.Primary), "1 a 25", "2 b 35", "3 - 45")

	// Every row takes the primary key of the next one.
	mustExec(t, table, txn, updateAll(table, &table.Primary, map[int]expr.Scalar{0: plus(0, 1)}), 3)
	wantRows(t, contents(t, table, txn, &table.Primary), "2 a 25", "3 b 35", "4 - 45")

	// Two rows swap a unique key.
	swap := &fn{types.TText, func(_ *expr.Context, in types.Row) (types.Datum, error) {
		return types.Text(map[int64]string{2: "b", 3: "a", 4: "c"}[in[0].Int()]), nil
	}}
	mustExec(t, table, txn, updateAll(table, &table.Primary, map[int]expr.Scalar{1: swap}), 3)
	wantRows(t, contents(t, table, txn, &table.Primary), "2 b 25", "3 a 35", "4 c 45")
	if err := txn.commitError(); err != nil {
		t.Error(err)
	}

	// Two rows become one.
	rt := testRuntime(txn, table)
	rt.EagerUnique = true
	_, _, err := runPlan(&planner.Plan{Root: updateAll(table, &table.Primary, map[int]expr.Scalar{0: lit(7)})}, rt)
	wantCode(t, err, pgerror.UniqueViolation)
}

// A row that the join brings twice is updated once, with the first partner, and RETURNING sees the
// new row and the partner.
func TestUpdateFrom(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20)), 2)
	other := rowsOf(2, []any{1, 100}, []any{1, 200}, []any{2, 300})
	scan := wholeScan(table, &table.Primary)
	n := &planner.Update{
		Base: ints(3), Table: table, Changed: []int{2},
		Input: &planner.NestedLoopJoin{Base: join(scan, other), Left: scan, Right: other,
			On: cond(func(in types.Row) bool { return in[0].Int() == in[3].Int() })},
		Set:       []expr.Scalar{intCol(0), col(1, types.TText), intCol(4)},
		Returning: []expr.Scalar{intCol(0), intCol(2), intCol(4)},
	}
	wantRows(t, mustExec(t, table, txn, n, 2), "1 100 100", "2 300 300")

	// The planner may read the other table first and look this one up by its unique key.
	looked := &planner.LookupJoin{
		Base: join(other, scan), Left: other, Keys: []expr.Scalar{intCol(0)}, Unique: true,
		Access: planner.Access{Table: table, Index: &table.Primary, Ordinals: all(table)},
	}
	n.Input = &planner.Project{
		Base: join(scan, other), Input: looked,
		Exprs: []expr.Scalar{intCol(2), col(3, types.TText), intCol(4), intCol(0), intCol(1)},
	}
	wantRows(t, mustExec(t, table, txn, n, 2), "1 100 100", "2 300 300")
	del := &planner.Delete{Table: table, Input: n.Input}
	mustExec(t, table, txn, del, 2)
}

func TestDelete(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, nil, 20), accountRow(3, "c", 30)), 3)
	n := &planner.Delete{Base: ints(1), Table: table, Returning: []expr.Scalar{intCol(2)}, Input: &planner.Filter{
		Base: tableColumns(table, 0, 1, 2), Input: wholeScan(table, &table.Indexes[1]),
		Cond: cond(func(in types.Row) bool { return in[2].Int() < 30 }),
	}}
	wantRows(t, mustExec(t, table, txn, n, 2), "10", "20")
	wantRows(t, contents(t, table, txn, &table.Primary), "3 c 30")
	mustExec(t, table, txn, &planner.Delete{Table: table, Input: wholeScan(table, &table.Primary)}, 1)
	if len(txn.data) != 0 {
		t.Errorf("%d keys are left", len(txn.data))
	}
}

// A table without primary key gets row ids, and never asks whether a row is new.
func TestRowID(t *testing.T) {
	table, txn := testTable(4, 0, "a int"), newMemTxn()
	mustExec(t, table, txn, insertRows(table, lits(5, nil), lits(5, nil)), 2)
	wantRows(t, contents(t, table, txn, &table.Primary), "5 1", "5 2")
}

func upsert(n *planner.Insert, arbiters []*catalog.IndexDescriptor, set ...expr.Scalar) *planner.Insert {
	n.OnConflict = &planner.OnConflict{Arbiters: arbiters, DoUpdate: set != nil, Set: set, Changed: []int{0, 1, 2}}
	n.Returning = []expr.Scalar{intCol(0), intCol(2)}
	n.Base = ints(2)
	return n
}

func TestOnConflict(t *testing.T) {
	keep := []expr.Scalar{intCol(0), col(1, types.TText), intFn(func(in types.Row) int64 { return in[2].Int() + in[5].Int() })}
	for _, eager := range []bool{false, true} {
		table, txn := accounts(), newMemTxn()
		run := func(n planner.Node) ([]string, error) {
			rt := testRuntime(txn, table)
			rt.EagerUnique = eager
			rows, _, err := runPlan(planOf(n), rt)
			return rows, err
		}
		must := func(n planner.Node, want ...string) {
			t.Helper()
			rows, err := run(n)
			if err != nil {
				t.Fatal(err)
			}
			wantRows(t, rows, want...)
			checkIndexes(t, table, txn)
		}
		must(upsert(insertRows(table, accountRow(1, "a", 10), accountRow(1, "b", 11), accountRow(2, "a", 12), accountRow(3, nil, 1), accountRow(4, nil, 1)), nil),
			"1 10", "3 1", "4 1")
		primary := []*catalog.IndexDescriptor{&table.Primary}
		owner := []*catalog.IndexDescriptor{&table.Indexes[0]}
		must(upsert(insertRows(table, accountRow(1, "x", 5), accountRow(6, "f", 6)), primary, keep...), "1 15", "6 6")
		must(upsert(insertRows(table, accountRow(9, "a", 5), accountRow(5, "e", 7)), owner, keep...), "1 20", "5 7")

		// Where keeps the row as it is, and does not return it.
		n := upsert(insertRows(table, accountRow(1, "x", 5)), primary, keep...)
		n.OnConflict.Where = cond(func(in types.Row) bool { return in[2].Int() > 100 })
		must(n)

		_, err := run(upsert(insertRows(table, accountRow(1, "x", 5), accountRow(1, "y", 5)), primary, keep...))
		wantCode(t, err, pgerror.CardinalityViolation)
		_, err = run(upsert(insertRows(table, accountRow(40, "x", 5), accountRow(40, "y", 5)), primary, keep...))
		wantCode(t, err, pgerror.CardinalityViolation)
		if err := txn.commitError(); err != nil {
			t.Error(err)
		}
		// A conflict with another index than the arbiter is an error.
		_, err = run(upsert(insertRows(table, accountRow(70, "a", 5)), primary, keep...))
		if !eager {
			err = txn.commitError()
			var exists *mvcc.KeyExistsError
			if !errors.As(err, &exists) {
				t.Fatal(err)
			}
			continue
		}
		wantCode(t, err, pgerror.UniqueViolation)
	}
}

// An update on conflict that moves the row frees its key for a later row of the statement.
func TestOnConflictMovesRow(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10)), 1)
	set := []expr.Scalar{intFn(func(in types.Row) int64 { return in[0].Int() + 100 }), col(1, types.TText), intCol(5)}
	n := upsert(insertRows(table, accountRow(1, "b", 5), accountRow(1, "c", 6)), []*catalog.IndexDescriptor{&table.Primary}, set...)
	wantRows(t, mustExec(t, table, txn, n, 2), "101 5", "1 6")
	wantRows(t, contents(t, table, txn, &table.Primary), "1 c 6", "101 a 5")
}
