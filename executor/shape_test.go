package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func key(i int, t types.Type, desc, nullsFirst bool) planner.SortKey {
	return planner.SortKey{Expr: col(i, t), Desc: desc, NullsFirst: nullsFirst}
}

// Sort and TopN are compared with a stable sort of the standard library over random rows, for
// integers and text, both directions, NULLs at both ends. Where keys are equal, only the keys are compared.
func TestSortAndTopN(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for round := range 300 {
		var rows [][]any
		for i := range rng.IntN(40) {
			row := []any{rng.IntN(4) - 2, fmt.Sprintf("%.*s", rng.IntN(12), "aaaaaaaabab"), i}
			if rng.IntN(5) == 0 {
				row[0] = nil
			}
			if rng.IntN(5) == 0 {
				row[1] = nil
			}
			rows = append(rows, row)
		}
		k0 := key(0, types.TInt8, rng.IntN(2) == 0, rng.IntN(2) == 0)
		k1 := key(1, types.TText, rng.IntN(2) == 0, rng.IntN(2) == 0)
		keys, ords := []planner.SortKey{k0, k1}, []int{0, 1}
		if rng.IntN(2) == 0 {
			keys, ords = []planner.SortKey{k1, k0}, []int{1, 0}
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b []any) int {
			for i, k := range keys {
				if c := compareAny(a[ords[i]], b[ords[i]], k); c != 0 {
					return c
				}
			}
			return 0
		})
		input := rowsOf(3, rows...)
		input.Base = columns(types.TInt8, types.TText, types.TInt8)
		sorted := &planner.Sort{Base: input.Base, Input: input, Keys: keys}
		wantOrder(t, mustRun(t, sorted), showAll(want))

		// A sort of which the first key is done already.
		first := &planner.Sort{Base: input.Base, Input: input, Keys: keys[:1]}
		wantOrder(t, mustRun(t, &planner.Sort{Base: input.Base, Input: first, Keys: keys, Presorted: 1}), showAll(want))

		n, skip := rng.IntN(10), rng.IntN(5)
		top := &planner.TopN{Base: input.Base, Input: input, Keys: keys, Limit: lit(n), Offset: lit(skip)}
		from := min(skip, len(want))
		wantRows(t, withoutLast(mustRun(t, top)), withoutLast(showAll(want[from:min(from+n, len(want))]))...)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// wantOrder checks that got has the rows of want, in an order that differs at most among rows that differ in the last column only.
func wantOrder(t testing.TB, got, want []string) {
	t.Helper()
	wantRows(t, withoutLast(got), withoutLast(want)...)
	wantRows(t, slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))...)
}

// withoutLast cuts the last column off rows.
func withoutLast(rows []string) (out []string) {
	for _, row := range rows {
		out = append(out, row[:strings.LastIndexByte(row, ' ')])
	}
	return out
}

func compareAny(a, b any, k planner.SortKey) int {
	c := 0
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil || b == nil:
		if (a == nil) == k.NullsFirst {
			return -1
		}
		return 1
	default:
		if x, ok := a.(int); ok {
			c = cmp.Compare(x, b.(int))
		} else {
			c = cmp.Compare(a.(string), b.(string))
		}
	}
	if k.Desc {
		return -c
	}
	return c
}

func showAll(rows [][]any) (out []string) {
	for _, r := range rows {
		var row types.Row
		for _, v := range r {
			row = append(row, datum(v))
		}
		out = append(out, show(row))
	}
	return out
}

// The prefix of a sort key must never contradict the order it stands for.
func TestSortPrefixes(t *testing.T) {
	inf := func(s int) types.Datum {
		return types.Float(map[int]float64{1: posInf(), -1: -posInf(), 0: posInf() - posInf()}[s])
	}
	values := map[types.Type][]types.Datum{
		types.TInt8:   {types.Int(-1 << 63), types.Int(-1), types.Int(0), types.Int(1), types.Int(1<<63 - 1)},
		types.TFloat8: {inf(-1), types.Float(-2), types.Float(-1e-300), types.Float(0), types.Float(1), inf(1), inf(0)},
		types.TText:   {types.Text(""), types.Text("\x00"), types.Text("a"), types.Text("a\x00"), types.Text("abcdefgh"), types.Text("abcdefghi"), types.Text("b")},
		types.TBool:   {types.Bool(false), types.Bool(true)},
		types.TNumeric: numerics(t, "-Infinity", "-1e400", "-12345678901234567890.1", "-1.50", "-1.5", "-0.1", "0", "0.00", "-0", "1e-400", "0.1",
			"0.10", "0.3", "1", "1.000000000000000000000001", "9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740994",
			"12345678901234567890.1", "12345678901234567890.2", "1e400", "2e400", "Infinity", "NaN"),
		types.TBPChar: {types.Text("a"), types.Text("a   "), types.Text("a b")},
	}
	for typ, vs := range values {
		vs = append(vs, types.Null)
		for _, desc := range []bool{false, true} {
			for _, nullsFirst := range []bool{false, true} {
				o := newOrdering([]planner.SortKey{key(0, typ, desc, nullsFirst)})
				for _, a := range vs {
					for _, b := range vs {
						ra, rb := types.Row{a}, types.Row{b}
						p, c := o.prefix(ra).compare(o.prefix(rb)), cmp.Compare(o.compare(ra, rb), 0)
						if p != 0 && p != c {
							t.Errorf("%v: prefixes of %s and %s compare as %d, the values as %d", typ, show(ra), show(rb), p, c)
						}
					}
				}
			}
		}
	}
}

func numerics(t *testing.T, texts ...string) (out []types.Datum) {
	for _, text := range texts {
		d, err := types.ParseText(types.TNumeric, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func posInf() float64 { var zero float64; return 1 / zero }

func TestLimit(t *testing.T) {
	input := rowsOf(1, []any{1}, []any{2}, []any{3}, []any{4})
	limit := func(l, o expr.Scalar) planner.Node {
		return &planner.Limit{Base: input.Base, Input: input, Limit: l, Offset: o}
	}
	null := &expr.Const{Typ: types.TInt8}
	wantRows(t, mustRun(t, limit(lit(2), nil)), "1", "2")
	wantRows(t, mustRun(t, limit(lit(2), lit(3))), "4")
	wantRows(t, mustRun(t, limit(null, lit(3))), "4")
	wantRows(t, mustRun(t, limit(lit(9), null)), "1", "2", "3", "4")
	wantRows(t, mustRun(t, limit(lit(0), nil)))
	wantRows(t, mustRun(t, limit(nil, lit(9))))
	for _, c := range []struct {
		n    planner.Node
		code pgerror.Code
	}{
		{limit(lit(-1), nil), pgerror.InvalidRowCountInLimit},
		{limit(nil, lit(-1)), pgerror.InvalidRowCountInOffset},
		{&planner.TopN{Base: input.Base, Input: input, Keys: []planner.SortKey{key(0, types.TInt8, false, false)}, Limit: lit(-1)}, pgerror.InvalidRowCountInLimit},
	} {
		_, _, err := runPlan(planOf(c.n), testRuntime(newMemTxn()))
		wantCode(t, err, c.code)
	}
}

// Set operations are compared with their definition over multisets.
func TestSetOps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		count := func(rows [][]any) map[string]int {
			m := map[string]int{}
			for _, r := range showAll(rows) {
				m[r]++
			}
			return m
		}
		random := func() (rows [][]any) {
			for range rng.IntN(8) {
				row := []any{rng.IntN(3), "x"}
				if rng.IntN(4) == 0 {
					row[1] = nil
				}
				rows = append(rows, row)
			}
			return rows
		}
		left, right := random(), random()
		l, r := count(left), count(right)
		for _, op := range []string{"UNION", "INTERSECT", "EXCEPT"} {
			for _, all := range []bool{false, true} {
				var want []string
				for _, row := range showAll(append(slices.Clone(left), right...)) {
					if slices.Contains(want, row) {
						continue
					}
					n := map[string]int{"UNION": l[row] + r[row], "INTERSECT": min(l[row], r[row]), "EXCEPT": max(l[row]-r[row], 0)}[op]
					if !all && op == "EXCEPT" && r[row] > 0 {
						n = 0
					}
					if !all {
						n = min(n, 1)
					}
					want = append(want, slices.Repeat([]string{row}, n)...)
				}
				a, b := rowsOf(2, left...), rowsOf(2, right...)
				a.Base, b.Base = columns(types.TInt8, types.TText), columns(types.TInt8, types.TText)
				got := mustRun(t, &planner.SetOp{Base: a.Base, Op: op, All: all, Left: a, Right: b})
				if !slices.Equal(inAnyOrder(got), inAnyOrder(want)) {
					t.Fatalf("%s all=%v of %v and %v: got %q, want %q", op, all, left, right, got, want)
				}
			}
		}
	}
}

func TestDistinct(t *testing.T) {
	input := rowsOf(2, []any{1, 1}, []any{1, 1}, []any{nil, 2}, []any{1, 2}, []any{nil, 2}, []any{1, 1})
	input.Base = ints(2)
	distinct := func(on []expr.Scalar, ordered bool) planner.Node {
		return &planner.Distinct{Base: input.Base, Input: input, On: on, Ordered: ordered}
	}
	wantRows(t, mustRun(t, distinct(nil, false)), "1 1", "- 2", "1 2")
	wantRows(t, mustRun(t, distinct([]expr.Scalar{intCol(0)}, false)), "1 1", "- 2")
	wantRows(t, mustRun(t, distinct([]expr.Scalar{intCol(0)}, true)), "1 1", "- 2", "1 2", "- 2", "1 1")
}

// fibonacci is a recursion without end, of which a reader takes a few rows; the item runs no
// further than its readers, and two readers see the same rows.
func TestRecursiveCTE(t *testing.T) {
	step := &planner.Project{Base: ints(2), Input: &planner.WorkScan{Base: ints(2), ID: 3}, Exprs: []expr.Scalar{
		intCol(1), intFn(func(in types.Row) int64 { return in[0].Int() + in[1].Int() }),
	}}
	union := &planner.RecursiveUnion{Base: ints(2), ID: 3, Init: rowsOf(2, []any{0, 1}), Step: step, All: true}
	reader := func(n int) planner.Node {
		return &planner.Limit{Base: ints(2), Input: &planner.CTEScan{Base: ints(2)}, Limit: lit(n)}
	}
	plan := &planner.Plan{CTEs: []planner.Node{union}, Root: &planner.SetOp{Base: ints(2), Op: "UNION", All: true, Left: reader(3), Right: reader(5)}}
	rows, _, err := runPlan(plan, testRuntime(newMemTxn()))
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, rows, "0 1", "1 1", "1 2", "0 1", "1 1", "1 2", "2 3", "3 5")

	// UNION stops at rows seen before: counting modulo 4 ends.
	step.Exprs = []expr.Scalar{intFn(func(in types.Row) int64 { return (in[0].Int() + 1) % 4 }), intCol(1)}
	union.All = false
	wantRows(t, mustRun(t, union), "0 1", "1 1", "2 1", "3 1")
}

// A recursion without end is stopped by the context, and by the memory limit.
func TestEndlessRecursionStops(t *testing.T) {
	step := &planner.Filter{Base: ints(1), Input: &planner.WorkScan{Base: ints(1)}, Cond: lit(true)}
	union := &planner.RecursiveUnion{Base: ints(1), Init: rowsOf(1, []any{1}), Step: step, All: true}
	count := func(ctx context.Context, rt *Runtime) error {
		r, err := Build(planOf(union), rt)
		if err != nil {
			return err
		}
		defer r.Close()
		if err := r.Open(ctx); err != nil {
			return err
		}
		for {
			if row, err := r.Next(ctx); row == nil || err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := count(ctx, testRuntime(newMemTxn())); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes = 1 << 16
	input := rowsOf(1, slices.Repeat([][]any{{1}}, 10000)...)
	distinctRows := rowsOf(1)
	for i := range 10000 {
		distinctRows.Rows = append(distinctRows.Rows, lits(i))
	}
	for _, n := range []planner.Node{
		&planner.Distinct{Base: ints(1), Input: distinctRows, KeepsOrder: true},
		&planner.NestedLoopJoin{Base: ints(2), Left: input, Right: input},
	} {
		_, _, err := runPlan(planOf(n), rt)
		if e := wantCode(t, err, pgerror.OutOfMemory); e.Hint == "" {
			t.Errorf("%T: no hint", n)
		}
	}
}

// Subqueries: scalar, EXISTS, rows and hashed IN, correlated and not. An uncorrelated one runs once
// however many rows ask.
func TestSubqueries(t *testing.T) {
	runs := 0
	counted := cond(func(types.Row) bool { runs++; return true })
	inner := &planner.Filter{Base: ints(1), Input: rowsOf(1, []any{2}, []any{nil}, []any{3}), Cond: counted}
	sub := &expr.Subquery{ID: 1, Plan: inner, Types: []types.Type{types.TInt8}}
	eval := func(typ types.Type, f func(ev *expr.Context, in types.Row) (types.Datum, error)) []string {
		t.Helper()
		input := rowsOf(1, []any{1}, []any{2}, []any{3})
		return mustRun(t, &planner.Project{Base: columns(typ), Input: input, Exprs: []expr.Scalar{&fn{typ, f}}})
	}

	wantRows(t, eval(types.TBool, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		found, hasNull, empty, err := ev.Subqueries.Contains(ev, sub, in)
		if !hasNull || empty {
			t.Errorf("hasNull %v, empty %v", hasNull, empty)
		}
		return types.Bool(found), err
	}), "false", "true", "true")
	if runs != 3 {
		t.Errorf("the subquery read %d rows, want its 3 once", runs)
	}
	wantRows(t, eval(types.TInt8, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		rows, err := ev.Subqueries.Rows(ev, sub, in)
		return types.Int(int64(len(rows))), err
	}), "3", "3", "3")
	wantRows(t, eval(types.TBool, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		found, err := ev.Subqueries.Exists(ev, sub, in)
		return types.Bool(found), err
	}), "true", "true", "true")

	less := &fn{types.TBool, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		return types.Bool(!in[0].IsNull() && in[0].Int() < ev.Outer[0][0].Int()), nil
	}}
	correlated := &expr.Subquery{ID: 0, Correlated: true, Types: sub.Types,
		Plan: &planner.Filter{Base: ints(1), Input: rowsOf(1, []any{2}, []any{nil}), Cond: less}}
	wantRows(t, eval(types.TInt8, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		return ev.Subqueries.Scalar(ev, correlated, in)
	}), "-", "-", "2")

	input := rowsOf(1, []any{1})
	_, _, err := runPlan(&planner.Plan{Root: &planner.Project{Base: ints(1), Input: input, Exprs: []expr.Scalar{&fn{types.TInt8,
		func(ev *expr.Context, in types.Row) (types.Datum, error) { return ev.Subqueries.Scalar(ev, sub, in) }}}}},
		testRuntime(newMemTxn()))
	wantCode(t, err, pgerror.CardinalityViolation)
}

// Rows without columns are rows: what is counted by count(*) must not be taken for the end.
func TestRowsWithoutColumns(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, "b", 20)), 2)
	virtual := testTable(3, 1, "a int")
	virtual.Rows = func(_ context.Context, _ catalog.Resolver, _ catalog.SystemView, yield func(types.Row) error) error {
		return errors.Join(yield(types.Row{types.Int(1)}), yield(types.Row{types.Int(2)}))
	}
	scan := &planner.Scan{Access: planner.Access{Table: table, Index: &table.Indexes[1]}}
	nodes := map[string]planner.Node{
		"values":  &planner.Values{Rows: make([][]expr.Scalar, 2)},
		"scan":    scan,
		"fetch":   &planner.Scan{Access: planner.Access{Table: table, Index: &table.Indexes[1], Fetch: true}},
		"cte":     &planner.CTEScan{},
		"virtual": &planner.VirtualScan{Table: virtual},
		"sort":    &planner.Sort{Input: scan, Keys: []planner.SortKey{{Expr: lit(1)}}},
		"topn":    &planner.TopN{Input: scan, Keys: []planner.SortKey{{Expr: lit(1)}}, Limit: lit(5)},
		"union":   &planner.SetOp{Op: "UNION", All: true, Left: scan, Right: &planner.Values{}},
		"nested":  &planner.NestedLoopJoin{Left: scan, Right: &planner.Values{Rows: make([][]expr.Scalar, 1)}},
		"hash":    &planner.HashJoin{Left: scan, Right: &planner.Values{Rows: make([][]expr.Scalar, 1)}, LeftKeys: lits(1), RightKeys: lits(1)},
		"merge":   &planner.MergeJoin{Left: scan, Right: &planner.Values{Rows: make([][]expr.Scalar, 1)}, LeftKeys: lits(1), RightKeys: lits(1), Desc: []bool{false}},
		"apply":   &planner.Apply{Left: scan, Right: &planner.Values{Rows: make([][]expr.Scalar, 1)}},
		"lookup":  &planner.LookupJoin{Left: scan, Keys: lits(1), Access: planner.Access{Table: table, Index: &table.Primary}},
	}
	for name, n := range nodes {
		count := &planner.Aggregate{Base: ints(1), Input: n, Scalar: true, Aggs: []planner.AggregateCall{call(t, "count")}}
		rows, _, err := runPlan(&planner.Plan{Root: count, CTEs: []planner.Node{scan}}, testRuntime(txn, table))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rows, []string{"2"}) {
			t.Errorf("%s: %q rows, want 2", name, rows)
		}
	}
	for _, all := range []bool{false, true} {
		one := mustRun(t, &planner.Distinct{Input: &planner.Values{Rows: make([][]expr.Scalar, 3)}, Ordered: all})
		if len(one) != 1 {
			t.Errorf("distinct ordered=%v: %d rows, want 1", all, len(one))
		}
	}
}

// A sort larger than memory goes through a file and yields what it would have yielded in memory:
// NULLs, runs of presorted input, and nothing is left behind in the directory, nor in the account.
func TestSortSpills(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	input := &planner.Values{Base: columns(types.TInt8, types.TText, types.TInt8)}
	for i := range 20000 {
		row := []any{rng.IntN(50), fmt.Sprintf("%0*d", 1+rng.IntN(300), rng.IntN(100)), i}
		if rng.IntN(20) == 0 {
			row[1] = nil
		}
		if row[0] == 7 {
			row[0] = nil
		}
		input.Rows = append(input.Rows, lits(row...))
	}
	keys := []planner.SortKey{key(0, types.TInt8, true, true), key(1, types.TText, false, false)}
	whole := &planner.Sort{Base: input.Base, Input: input, Keys: keys}
	first := &planner.Sort{Base: input.Base, Input: input, Keys: keys[:1]}
	want := mustRun(t, whole)
	for _, n := range []planner.Node{whole, &planner.Sort{Base: input.Base, Input: first, Keys: keys, Presorted: 1}} {
		for _, limit := range []int64{64 << 10, 1 << 20} {
			rt := testRuntime(newMemTxn())
			rt.MemoryLimitBytes, rt.TempDir = limit, t.TempDir()
			got, _, err := runPlan(planOf(n), rt)
			if err != nil {
				t.Fatal(err)
			}
			wantOrder(t, got, want)
			if left, err := os.ReadDir(rt.TempDir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		}
	}
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes, rt.TempDir = 1<<16, t.TempDir()+"/missing"
	_, _, err := runPlan(&planner.Plan{Root: whole}, rt)
	wantCode(t, err, pgerror.IOError)
}
