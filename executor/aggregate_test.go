package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func call(t testing.TB, name string, args ...expr.Scalar) planner.AggregateCall {
	t.Helper()
	var ts []types.Type
	for _, a := range args {
		ts = append(ts, a.Type())
	}
	f, err := builtin.ResolveAggregate(name, ts)
	if err != nil {
		t.Fatal(err)
	}
	return planner.AggregateCall{Func: f, Args: args}
}

// Grouping is compared with maps over random rows: hashed by one integer, by two columns, and over
// sorted input; with FILTER and DISTINCT.
func TestAggregateAgainstMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		var rows [][]any
		for range rng.IntN(30) {
			row := []any{rng.IntN(4), rng.IntN(5)}
			for i := range row {
				if rng.IntN(6) == 0 {
					row[i] = nil
				}
			}
			rows = append(rows, row)
		}
		want := groupNaively(rows)
		distinct := call(t, "count", intCol(1))
		distinct.Distinct = true
		filtered := call(t, "count")
		filtered.Filter = cond(func(in types.Row) bool { return in[1].Int() > 2 })
		aggs := []planner.AggregateCall{call(t, "count"), call(t, "sum", intCol(1)), call(t, "max", intCol(1)), distinct, filtered}
		input := rowsOf(2, rows...)
		input.Base = ints(2)
		sorted := &planner.Sort{Base: ints(2), Input: input, Keys: []planner.SortKey{key(0, types.TInt8, false, false)}}
		for _, n := range []*planner.Aggregate{
			{Base: ints(6), Input: input, GroupBy: []expr.Scalar{intCol(0)}},
			{Base: ints(6), Input: sorted, GroupBy: []expr.Scalar{intCol(0)}, Ordered: true},
		} {
			n.Aggs = aggs
			if got := inAnyOrder(mustRun(t, n)); !slices.Equal(got, want) {
				t.Fatalf("%v ordered=%v\n got %q\nwant %q", rows, n.Ordered, got, want)
			}
		}
		wide := &planner.Aggregate{Base: ints(7), Input: input, GroupBy: []expr.Scalar{intCol(0), lit("x")}, Aggs: aggs}
		for i, row := range inAnyOrder(mustRun(t, wide)) {
			if want := fmt.Sprintf("%s x %s", want[i][:1], want[i][2:]); row != want {
				t.Fatalf("two keys: got %q, want %q", row, want)
			}
		}
	}
}

// groupNaively computes count(*), sum, max, count(DISTINCT) and count(*) FILTER (> 2) by group.
func groupNaively(rows [][]any) []string {
	type group struct {
		count, sum, max, filtered int
		seen                      map[int]bool
	}
	groups := map[any]*group{}
	for _, r := range rows {
		g := groups[r[0]]
		if g == nil {
			g = &group{seen: map[int]bool{}}
			groups[r[0]] = g
		}
		g.count++
		if v, ok := r[1].(int); ok {
			if len(g.seen) == 0 || v > g.max {
				g.max = v
			}
			g.sum += v
			g.seen[v] = true
			if v > 2 {
				g.filtered++
			}
		}
	}
	var out []string
	for k, g := range groups {
		sum, most := any(g.sum), any(g.max)
		if len(g.seen) == 0 {
			sum, most = nil, nil
		}
		out = append(out, showAll([][]any{{k, g.count, sum, most, len(g.seen), g.filtered}})...)
	}
	return inAnyOrder(out)
}

// Without GROUP BY there is one row, of no input too.
func TestScalarAggregate(t *testing.T) {
	n := &planner.Aggregate{Base: ints(2), Input: rowsOf(1), Scalar: true, Aggs: []planner.AggregateCall{call(t, "count"), call(t, "min", intCol(0))}}
	wantRows(t, mustRun(t, n), "0 -")
	n.Input = rowsOf(1, []any{3}, []any{2})
	wantRows(t, mustRun(t, n), "2 2")
	grouped := &planner.Aggregate{Base: ints(2), Input: rowsOf(1), GroupBy: []expr.Scalar{intCol(0)}, Aggs: n.Aggs[:1]}
	wantRows(t, mustRun(t, grouped))
}

// ORDER BY in the call decides the order, also against DISTINCT, which keeps one of equals.
func TestAggregateOrderBy(t *testing.T) {
	input := rowsOf(2, []any{"b", 1}, []any{"a", 2}, []any{nil, 3}, []any{"b", 4}, []any{"c", 0})
	input.Base = columns(types.TText, types.TInt8)
	text := col(0, types.TText)
	byNumber := call(t, "string_agg", text, lit(","))
	byNumber.OrderBy = []planner.SortKey{key(1, types.TInt8, true, false)}
	distinct := call(t, "string_agg", text, lit(","))
	distinct.Distinct = true
	distinct.OrderBy = []planner.SortKey{key(0, types.TText, true, false)}
	arrival := call(t, "string_agg", text, lit(","))
	arrival.Distinct = true
	n := &planner.Aggregate{Base: columns(types.TText, types.TText, types.TText), Input: input, Scalar: true,
		Aggs: []planner.AggregateCall{byNumber, distinct, arrival}}
	wantRows(t, mustRun(t, n), "b,a,b,c c,b,a b,a,c")
}

// Rows that an aggregate takes in an order continue in a temporary file, from which they come in the same order; a type that a file
// cannot hold, or a directory that does not exist, ends the statement.
func TestAggregateOrderBySpills(t *testing.T) {
	const rows = 40000
	input := series(t, lit(1), lit(rows))
	scrambled := &fn{types.TInt8, func(_ *expr.Context, in types.Row) (types.Datum, error) {
		return types.Int(in[0].Int() * 7919 % rows), nil
	}}
	max, err := builtin.ResolveOrderedSet("percentile_disc", []types.Type{types.TFloat8}, []types.Type{types.TInt8})
	if err != nil {
		t.Fatal(err)
	}
	n := &planner.Aggregate{Base: ints(1), Input: input, Scalar: true, Aggs: []planner.AggregateCall{{
		Func: max, Direct: []expr.Scalar{&expr.Const{Value: types.Float(0.25), Typ: types.TFloat8}},
		Args: []expr.Scalar{scrambled}, OrderBy: []planner.SortKey{{Expr: scrambled}},
	}}}
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes, rt.TempDir = 1<<20, t.TempDir()
	for range 2 {
		r, err := Build(planOf(n), rt)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		row, err := r.Next(t.Context())
		if err != nil || row[0].Int() != rows/4-1 {
			t.Fatalf("got %v, %v", row, err)
		}
		if err := r.Close(); err != nil || r.ex.mem.used != 0 {
			t.Errorf("%d bytes left, %v", r.ex.mem.used, err)
		}
	}
	rt.TempDir += "/missing"
	r, err := Build(planOf(n), rt)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = r.Next(t.Context())
	wantCode(t, err, pgerror.IOError)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkAggregate sums 10,000 rows in 100 groups of an integer key.
func BenchmarkAggregate(b *testing.B) {
	input := &planner.Values{Base: ints(2)}
	for i := range 10000 {
		input.Rows = append(input.Rows, lits(i%100, i))
	}
	benchPlan(b, &planner.Aggregate{
		Base: ints(3), Input: input, GroupBy: []expr.Scalar{intCol(0)},
		Aggs: []planner.AggregateCall{call(b, "count"), call(b, "max", intCol(1))},
	}, 10000)
}
