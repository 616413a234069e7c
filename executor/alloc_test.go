package executor

import (
	"context"
	"testing"

	"github.com/percodb/percodb/internal/invariants"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// The statements that pgbench measures must cost next to nothing above the transaction: run again
// and again through one Runner, as a session runs a prepared statement, they are held to budgets of
// allocations. The transaction here allocates nothing of its own.
func TestAllocationBudgets(t *testing.T) {
	if invariants.Enabled {
		t.Skip("checked operators allocate")
	}
	table := testTable(7, 1, "id int", "owner text", "amount int")
	history := testTable(8, 0, "id int", "note text")
	txn := &flatTxn{memTxn: newMemTxn()}
	rt := testRuntime(txn, table)
	in := NewInserter(table, nil, nil, nil, rt)
	for id := range int64(10) {
		if err := in.Insert(context.Background(), types.Row{types.Int(id), types.Text("owner"), types.Int(id)}); err != nil {
			t.Fatal(err)
		}
	}
	txn.discard = true
	rt.Inputs = types.Row{types.Int(5), types.Int(3)}
	param := func(i int) expr.Scalar { return &expr.Input{Index: i, Typ: types.TInt8} }
	get := &planner.PointGet{
		Base:   tableColumns(table, 0, 1, 2),
		Access: planner.Access{Table: table, Index: &table.Primary, Ordinals: all(table)},
		Key:    []expr.Scalar{param(0)},
	}
	for _, c := range []struct {
		name   string
		n      planner.Node
		rows   int
		budget float64
	}{
		{"point select", &planner.Project{Base: ints(1), Input: get, Exprs: []expr.Scalar{intCol(2)}}, 1, 0},
		{"one-row update", &planner.Update{Table: table, Input: get, Changed: []int{2},
			Set: []expr.Scalar{intCol(0), col(1, types.TText), param(1)}}, 0, 0.1},
		{"one-row insert", &planner.Insert{Table: history, Input: &planner.Values{Base: tableColumns(history, all(history)...),
			Rows: [][]expr.Scalar{{param(0), lit("note"), lit(nil)}}}}, 0, 0.1},
		{"one-row delete", &planner.Delete{Table: table, Input: get}, 0, 0.1},
	} {
		r, err := NewRunner(planOf(c.n))
		if err != nil {
			t.Fatal(err)
		}
		run := func() {
			if n := runOnce(t, r, rt); n != c.rows {
				t.Fatalf("%s: %d rows, want %d", c.name, n, c.rows)
			}
		}
		run()
		if got := testing.AllocsPerRun(1000, run); got > c.budget {
			t.Errorf("%s: %v allocations, budget %v", c.name, got, c.budget)
		}
	}
}

// runOnce runs a plan through a runner that is kept, and counts its rows.
func runOnce(t testing.TB, r *Runner, rt *Runtime) (n int) {
	ctx := context.Background()
	r.Bind(rt)
	if err := r.Open(ctx); err != nil {
		t.Fatal(err)
	}
	for {
		row, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if row == nil {
			break
		}
		n++
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// flatTxn is a memTxn that, once told to, forgets writes.
type flatTxn struct {
	*memTxn
	discard bool
}

func (t *flatTxn) Put(key, value []byte) error {
	if t.discard {
		return nil
	}
	return t.memTxn.Put(key, value)
}

func (t *flatTxn) Insert(key, value []byte) error { return t.Put(key, value) }

func (t *flatTxn) Delete(key []byte) error {
	if t.discard {
		return nil
	}
	return t.memTxn.Delete(key)
}

// BenchmarkPointSelect is SELECT amount FROM t WHERE id = $1 above the transaction.
func BenchmarkPointSelect(b *testing.B) {
	table := testTable(7, 1, "id int", "owner text", "amount int")
	txn := newMemTxn()
	rt := testRuntime(txn, table)
	in := NewInserter(table, nil, nil, nil, rt)
	if err := in.Insert(context.Background(), types.Row{types.Int(5), types.Text("owner"), types.Int(1)}); err != nil {
		b.Fatal(err)
	}
	rt.Inputs = types.Row{types.Int(5)}
	r, err := NewRunner(&planner.Plan{Root: &planner.PointGet{
		Base:   tableColumns(table, 2),
		Access: planner.Access{Table: table, Index: &table.Primary, Ordinals: []int{2}},
		Key:    []expr.Scalar{&expr.Input{Typ: types.TInt8}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if runOnce(b, r, rt) != 1 {
			b.Fatal("no row")
		}
	}
}

// BenchmarkFilterProject reports the time per row of a filter and a projection over a source that
// evaluates constants.
func BenchmarkFilterProject(b *testing.B) {
	input := &planner.Values{Base: ints(3)}
	for i := range 10000 {
		input.Rows = append(input.Rows, lits(i, i%100, 7))
	}
	filtered := &planner.Filter{Base: ints(3), Input: input, Cond: cond(func(in types.Row) bool { return in[1].Int() < 50 })}
	benchPlan(b, &planner.Project{Base: ints(2), Input: filtered, Exprs: []expr.Scalar{intCol(0), intCol(2)}}, 10000)
}

func benchPlan(b *testing.B, n planner.Node, rows int) {
	rt := testRuntime(newMemTxn())
	r, err := NewRunner(planOf(n))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		runOnce(b, r, rt)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}

// BenchmarkHashJoin joins 10,000 rows to 1,000 by an integer.
func BenchmarkHashJoin(b *testing.B) {
	left, right := &planner.Values{Base: ints(2)}, &planner.Values{Base: ints(2)}
	for i := range 10000 {
		left.Rows = append(left.Rows, lits(i, i%1000))
	}
	for i := range 1000 {
		right.Rows = append(right.Rows, lits(i, i))
	}
	benchPlan(b, &planner.HashJoin{
		Base: ints(4), Left: left, Right: right,
		LeftKeys: []expr.Scalar{intCol(1)}, RightKeys: []expr.Scalar{intCol(0)},
	}, 11000)
}
