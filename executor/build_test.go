package executor

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// Every node that the planner declares has an operator. The declarations are read from its source,
// so that a node added there and forgotten here is found.
func TestEveryNodeHasAnOperator(t *testing.T) {
	table := testTable(1, 1, "a int")
	access := planner.Access{Table: table, Index: &table.Primary, Ordinals: []int{0}}
	in := func() planner.Node { return rowsOf(1, []any{1}) }
	nodes := []planner.Node{
		&planner.PointGet{Access: access, Key: lits(1)}, &planner.Scan{Access: access}, &planner.Append{Table: table, Inputs: []planner.Node{in()}}, rowsOf(1), series(t, lit(1), lit(2)),
		&planner.VirtualScan{Table: table}, &planner.Changes{Table: table}, &planner.CTEScan{}, &planner.WorkScan{},
		&planner.RecursiveUnion{Init: in(), Step: in()},
		&planner.HashJoin{Left: in(), Right: in()}, &planner.MergeJoin{Left: in(), Right: in()},
		&planner.LookupJoin{Left: in(), Access: access}, &planner.NestedLoopJoin{Left: in(), Right: in()},
		&planner.Apply{Left: in(), Right: in()},
		&planner.Filter{Input: in()}, &planner.Project{Input: in()}, &planner.ProjectSet{Input: in()},
		&planner.Aggregate{Input: in()}, &planner.Expand{Input: in()}, &planner.WindowAgg{Input: in()}, &planner.Sort{Input: in()}, &planner.TopN{Input: in()}, &planner.Limit{Input: in()},
		&planner.Distinct{Input: in()}, &planner.SetOp{Op: "UNION", Left: in(), Right: in()}, &planner.LockRows{Input: in()},
		&planner.Insert{Table: table, Input: in()}, &planner.Update{Table: table, Input: in()}, &planner.Delete{Table: table, Input: in()}, &planner.Merge{Table: table, Input: in()},
		&planner.InsteadOf{View: table, Input: in()},
	}
	var have []string
	for _, n := range nodes {
		if _, err := NewRunner(planOf(n)); err != nil {
			t.Errorf("%s: %v", nodeName(n), err)
		}
		have = append(have, nodeName(n))
	}
	declared := declaredNodes(t)
	slices.Sort(have)
	slices.Sort(declared)
	if !slices.Equal(have, declared) {
		t.Errorf("nodes tested   %v\nnodes declared %v", have, declared)
	}
}

// declaredNodes lists the structs of planner/node.go that embed Base.
func declaredNodes(t *testing.T) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), "../planner/node.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				if id, ok := field.Type.(*ast.Ident); ok && field.Names == nil && id.Name == "Base" {
					names = append(names, spec.Name.Name)
				}
			}
		}
		return true
	})
	return names
}

// EXPLAIN ANALYZE counts loops and rows by node, in subqueries and under Apply too.
func TestAnalysis(t *testing.T) {
	inner := rowsOf(1, []any{1}, []any{2})
	left := rowsOf(1, []any{1}, []any{2}, []any{3})
	apply := &planner.Apply{Base: ints(2), Left: left, Right: inner}
	never := rowsOf(1, []any{1})
	sub := &expr.Subquery{Plan: rowsOf(1, []any{5}), Types: []types.Type{types.TInt8}}
	first := &fn{types.TInt8, func(ev *expr.Context, in types.Row) (types.Datum, error) { return ev.Subqueries.Scalar(ev, sub, in) }}
	root := &planner.Limit{Base: ints(1), Limit: lit(5), Input: &planner.SetOp{
		Base: ints(1), Op: "UNION", All: true, Right: never,
		Left: &planner.Project{Base: ints(1), Input: apply, Exprs: []expr.Scalar{first}},
	}}
	plan := &planner.Plan{Root: root, Subqueries: 1}
	plan.SetProperties()
	r, a, err := NewAnalyzedRunner(plan)
	if err != nil {
		t.Fatal(err)
	}
	if n := runOnce(t, r, testRuntime(newMemTxn())); n != 5 {
		t.Fatalf("%d rows", n)
	}
	want := func(n planner.Node, loops, rows int64) {
		t.Helper()
		s, ran := a.Node(n)
		if ran != (loops > 0) || s.Loops != loops || s.Rows != rows || s.Time < s.Startup {
			t.Errorf("%s: ran %v, %+v, want %d loops and %d rows", nodeName(n), ran, s, loops, rows)
		}
	}
	want(root, 1, 5)
	want(left, 1, 3)
	want(inner, 3, 5)
	want(never, 0, 0)
	want(sub.Plan.(planner.Node), 1, 1)
}

// A runner may be kept: what one run leaves behind, in the middle too, does not show in the next.
func TestRunnerIsReused(t *testing.T) {
	input := rowsOf(2, []any{2, 1}, []any{1, 2}, []any{2, 3}, []any{3, 4})
	sub := &expr.Subquery{Plan: rowsOf(1, []any{2}), Types: []types.Type{types.TInt8}}
	inSub := &fn{types.TBool, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		found, _, _, err := ev.Subqueries.Contains(ev, sub, in[:1])
		return types.Bool(found), err
	}}
	filtered := &planner.Filter{Base: ints(2), Input: input, Cond: inSub}
	joined := &planner.HashJoin{Base: ints(4), Left: filtered, Right: input, LeftKeys: []expr.Scalar{intCol(0)}, RightKeys: []expr.Scalar{intCol(0)}}
	sorted := &planner.Sort{Base: ints(4), Input: joined, Keys: []planner.SortKey{key(1, types.TInt8, false, false), key(3, types.TInt8, false, false)}}
	grouped := &planner.Aggregate{Base: ints(2), Input: sorted, GroupBy: []expr.Scalar{intCol(1)}, Aggs: []planner.AggregateCall{call(t, "sum", intCol(3))}}
	plan := &planner.Plan{Root: &planner.SetOp{Base: ints(2), Op: "EXCEPT", Left: grouped, Right: &planner.CTEScan{Base: ints(2)}},
		CTEs: []planner.Node{rowsOf(2, []any{9, 9})}, Subqueries: 1}
	plan.SetProperties()
	r, err := NewRunner(plan)
	if err != nil {
		t.Fatal(err)
	}
	rt, ctx := testRuntime(newMemTxn()), context.Background()
	for round := range 4 {
		r.Bind(rt)
		if err := r.Open(ctx); err != nil {
			t.Fatal(err)
		}
		var got []string
		for len(got) < 2-round%2 {
			row, err := r.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, show(row))
		}
		wantRows(t, got, []string{"1 4", "3 4"}[:2-round%2]...)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if r.ex.mem.used != 0 {
			t.Errorf("%d bytes still booked", r.ex.mem.used)
		}
	}
}
