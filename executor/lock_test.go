package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// lockedNames prints the locked keys as index(columns), in order, each once.
func lockedNames(t *testing.T, table *catalog.TableDescriptor, txn *memTxn) string {
	t.Helper()
	var names []string
	for _, key := range txn.locked {
		name, err := rowenc.NameKey(context.Background(), oneTable{table}, key)
		if name == nil || err != nil {
			t.Fatalf("key %x: %v", key, err)
		}
		names = append(names, name.Index.Name+"("+name.Texts()+")")
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// runLocking runs a plan with locks and returns the rows of its root.
func runLocking(t *testing.T, table *catalog.TableDescriptor, txn *memTxn, n planner.Node) (rows []string, err error) {
	t.Helper()
	rt := testRuntime(txn, table)
	rt.Lock, rt.EagerUnique = true, true
	r, err := Build(planOf(n), rt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(context.Background()); err != nil {
		return nil, err
	}
	for {
		row, err := r.Next(context.Background())
		if row == nil || err != nil {
			return rows, err
		}
		rows = append(rows, fmt.Sprint(row[0].Int()))
	}
}

// Goal: what a pessimistic statement locks: rows that it changes, unique keys that it takes or frees,
// and nothing else. Method: each kind of statement over a table with a unique index on name.
func TestStatementsLockWhatTheyChange(t *testing.T) {
	setName := func(name string) []expr.Scalar {
		return []expr.Scalar{intCol(0), &expr.Const{Value: types.Text(name), Typ: types.TText}, intCol(2)}
	}
	for _, c := range []struct {
		name string
		node func(table *catalog.TableDescriptor) planner.Node
		want string
	}{
		{"insert", func(table *catalog.TableDescriptor) planner.Node { return insertRows(table, accountRow(9, "z", 1)) },
			"t7_idx2(z) t7_pkey(9)"},
		{"insert without name", func(table *catalog.TableDescriptor) planner.Node { return insertRows(table, accountRow(9, nil, 1)) },
			"t7_pkey(9)"},
		{"update of a column without index", func(table *catalog.TableDescriptor) planner.Node {
			return &planner.Update{Table: table, Input: wholeScan(table, &table.Primary), Set: []expr.Scalar{intCol(0), col(1, types.TText), lit(7)}, Changed: []int{2}}
		}, "t7_pkey(1) t7_pkey(2)"},
		{"update of a unique key", func(table *catalog.TableDescriptor) planner.Node {
			one := &planner.Limit{Base: tableColumns(table, 0, 1, 2), Input: wholeScan(table, &table.Primary), Limit: lit(1)}
			return &planner.Update{Table: table, Input: one, Set: setName("y"), Changed: []int{1}}
		}, "t7_idx2(a) t7_idx2(y) t7_pkey(1)"},
		{"delete", func(table *catalog.TableDescriptor) planner.Node {
			return &planner.Delete{Table: table, Input: wholeScan(table, &table.Primary)}
		}, "t7_idx2(a) t7_idx2(b) t7_pkey(1) t7_pkey(2)"},
		{"on conflict do nothing", func(table *catalog.TableDescriptor) planner.Node {
			n := insertRows(table, accountRow(1, "a", 1), accountRow(9, "z", 1))
			n.OnConflict = &planner.OnConflict{}
			return n
		}, "t7_idx2(z) t7_pkey(9)"},
		{"on conflict do update by name", func(table *catalog.TableDescriptor) planner.Node {
			n := insertRows(table, accountRow(8, "a", 1))
			n.OnConflict = &planner.OnConflict{Arbiters: []*catalog.IndexDescriptor{&table.Indexes[0]}, DoUpdate: true,
				Set: []expr.Scalar{intCol(0), col(1, types.TText), intCol(5)}, Changed: []int{2}}
			return n
		}, "t7_idx2(a) t7_pkey(1)"},
	} {
		table, txn := accounts(), newMemTxn()
		mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20)), 2)
		if _, err := runLocking(t, table, txn, c.node(table)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := lockedNames(t, table, txn); got != c.want {
			t.Errorf("%s locked %s, want %s", c.name, got, c.want)
		}
	}
}

// Goal: a statement that meets a changed row hands the restart on, and has asked for locks in groups.
func TestLocksInGroupsAndRestart(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	rows := make([][]expr.Scalar, 100)
	for i := range rows {
		rows[i] = accountRow(i, nil, 1)
	}
	mustExec(t, table, txn, insertRows(table, rows...), 100)
	n := &planner.Update{Table: table, Input: wholeScan(table, &table.Primary), Set: []expr.Scalar{intCol(0), col(1, types.TText), lit(7)}, Changed: []int{2}}
	if _, err := runLocking(t, table, txn, n); err != nil {
		t.Fatal(err)
	}
	if txn.calls != 3 { // 16, 32, 52
		t.Errorf("%d calls for 100 rows, want 3", txn.calls)
	}
	txn.changed = map[string]bool{string(txn.locked[50]): true}
	if _, err := runLocking(t, table, txn, n); !errors.Is(err, percolator.ErrRestartStatement) {
		t.Errorf("a changed row: %v", err)
	}
	if _, err := runLocking(t, table, txn, n); err != nil {
		t.Errorf("the second run: %v", err)
	}
}

// Goal: FOR UPDATE locks the rows that pass, SHARE in its own strength; SKIP LOCKED leaves out rows of
// others, NOWAIT reports them; under a LIMIT no row is locked that is not shown.
func TestLockRows(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20), accountRow(3, "c", 20)), 3)
	locking := func(strength, wait string, cut bool) *planner.LockRows {
		return &planner.LockRows{
			Base: tableColumns(table, 0, 1, 2), Input: wholeScan(table, &table.Primary), Strength: strength, Wait: wait, Cut: cut,
			Targets: []planner.LockTarget{{Table: table, KeyOrdinals: []int{0}}},
		}
	}
	check := func(what string, n planner.Node, rows, locks string, opts percolator.LockOptions) {
		t.Helper()
		txn.locked = nil
		got, err := runLocking(t, table, txn, n)
		if err != nil || strings.Join(got, " ") != rows || lockedNames(t, table, txn) != locks || txn.asked != opts {
			t.Errorf("%s: rows %v, locked %s as %+v, %v", what, got, lockedNames(t, table, txn), txn.asked, err)
		}
	}
	check("all", locking("UPDATE", "", false), "1 2 3", "t7_pkey(1) t7_pkey(2) t7_pkey(3)", percolator.LockOptions{})
	check("share", locking("KEY SHARE", "", false), "1 2 3", "t7_pkey(1) t7_pkey(2) t7_pkey(3)", percolator.LockOptions{Shared: true})
	first := string(txn.locked[0])
	txn.others = map[string]bool{first: true}
	one := &planner.Limit{Base: tableColumns(table, 0, 1, 2), Input: locking("UPDATE", "SKIP LOCKED", true), Limit: lit(1)}
	check("limit 1 skip locked", one, "2", "t7_pkey(2)", percolator.LockOptions{SkipLocked: true})
	check("skip locked", locking("UPDATE", "SKIP LOCKED", false), "2 3", "t7_pkey(2) t7_pkey(3)", percolator.LockOptions{SkipLocked: true})
	var taken *percolator.LockNotAvailableError
	if _, err := runLocking(t, table, txn, locking("UPDATE", "NOWAIT", false)); !errors.As(err, &taken) || string(taken.Key) != first {
		t.Errorf("nowait: %v", err)
	}
}

// Goal: a row changed by its primary key is locked before it is read, so that nothing is read in vain.
// Method: the key has changed since the snapshot; the run ends without a read, and the next reads once.
func TestWholeRowGetLocksFirst(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20)), 2)
	get := &planner.PointGet{Base: tableColumns(table, 0, 1, 2), Key: []expr.Scalar{lit(2)},
		Access: planner.Access{Table: table, Index: &table.Primary, Ordinals: all(table)}}
	n := &planner.Update{Table: table, Input: get, Set: []expr.Scalar{intCol(0), col(1, types.TText), lit(7)}, Changed: []int{2}}
	if _, err := runLocking(t, table, txn, n); err != nil {
		t.Fatal(err)
	}
	if got := lockedNames(t, table, txn); got != "t7_pkey(2)" || txn.calls != 1 {
		t.Errorf("locked %s in %d calls", got, txn.calls)
	}
	txn.changed, txn.gets = map[string]bool{string(txn.locked[0]): true}, 0
	if _, err := runLocking(t, table, txn, n); !errors.Is(err, percolator.ErrRestartStatement) || txn.gets != 0 {
		t.Errorf("a changed row: %v after %d reads", err, txn.gets)
	}
	if _, err := runLocking(t, table, txn, n); err != nil || txn.gets != 1 {
		t.Errorf("the second run: %v after %d reads", err, txn.gets)
	}
}
