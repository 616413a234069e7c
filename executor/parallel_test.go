package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// parallelAggregate is an aggregate over a filter over all of a table of (id, group, value), the planner's judgement included.
func parallelAggregate(t testing.TB, scan *planner.Scan, grouped bool, cond expr.Scalar) *planner.Aggregate {
	scan.Est = planner.Estimate{Rows: 1000, Cost: 1000}
	filter := &planner.Filter{Base: planner.Base{Out: scan.Out, Est: scan.Est}, Input: scan, Cond: cond}
	n := &planner.Aggregate{Input: filter, Aggs: []planner.AggregateCall{call(t, "count"), call(t, "sum", intCol(2)), call(t, "min", intCol(2)), call(t, "max", intCol(0)),
		call(t, "sum", intCol(2)), call(t, "max", intCol(2))}}
	n.Aggs[4].Distinct, n.Aggs[5].Distinct = true, true
	if n.Base = ints(6); grouped {
		n.Base, n.GroupBy = ints(7), []expr.Scalar{intCol(1)}
	} else {
		n.Scalar = true
	}
	return n
}

// parallelJoin is an aggregate over a join of a table with itself.
func parallelJoin(t testing.TB, kind planner.JoinKind, left, right *planner.Scan, cond expr.Scalar) *planner.Aggregate {
	left.Est, right.Est = planner.Estimate{Rows: 1000, Cost: 1000}, planner.Estimate{Rows: 1000, Cost: 1000}
	filter := &planner.Filter{Base: planner.Base{Out: right.Out, Est: right.Est}, Input: right, Cond: cond}
	join := &planner.HashJoin{Kind: kind, Left: left, Right: filter, LeftKeys: []expr.Scalar{intCol(1)}, RightKeys: []expr.Scalar{intCol(1)}}
	join.Base, join.Est = ints(6), left.Est
	sum := call(t, "sum", intCol(0))
	if kind == planner.SemiJoin || kind == planner.AntiJoin {
		join.Out = left.Out
	} else {
		sum = call(t, "sum", intCol(5))
	}
	return &planner.Aggregate{Base: ints(3), Input: join, Scalar: true, Aggs: []planner.AggregateCall{call(t, "count"), sum, call(t, "max", intCol(2))}}
}

// parallelTop selects rows of a table by value, then by id.
func parallelTop(scan *planner.Scan, limit int) *planner.TopN {
	scan.Est = planner.Estimate{Rows: 1000, Cost: 1000}
	return &planner.TopN{Base: planner.Base{Out: scan.Out}, Input: scan, Limit: lit(limit), Offset: lit(3),
		Keys: []planner.SortKey{key(2, types.TInt8, true, false), key(0, types.TInt8, false, false)}}
}

// parallelSort sorts a table by group, then by value and id.
func parallelSort(scan *planner.Scan) *planner.Sort {
	scan.Est = planner.Estimate{Rows: 1000, Cost: 1000}
	return &planner.Sort{Base: planner.Base{Out: scan.Out}, Input: scan, Keys: []planner.SortKey{key(1, types.TInt8, false, true), key(2, types.TInt8, true, false),
		key(0, types.TInt8, false, false)}}
}

// Goal: workers change nothing but the order of groups. Method: random tables and filters, aggregated, joined, sorted and selected from with up to four workers and with none; the
// memory is enough, or so little that the rows are read again without workers.
func TestWorkersAggregateLikeOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 150 {
		table, txn := testTable(7, 1, "id int", "g int", "v int"), newMemTxn()
		rt := testRuntime(txn, table)
		in := NewInserter(table, nil, nil, nil, rt)
		groups := 1 + rng.IntN(200)
		for range rng.IntN(800) {
			row := types.Row{datum(rng.IntN(1 << rng.IntN(40))), datum(rng.IntN(groups)), datum(rng.IntN(1000) - 500)}
			if rng.IntN(5) == 0 {
				row[2] = types.Null
			}
			if rng.IntN(20) == 0 {
				row[1] = types.Null
			}
			if err := in.Insert(context.Background(), row); err != nil {
				t.Fatal(err)
			}
		}
		limit := int64(rng.IntN(3))
		some := cond(func(row types.Row) bool { return row[2].IsNull() || row[2].Int()%3 < limit })
		whole := func() *planner.Scan { return wholeScan(table, &table.Primary) }
		plan := planOf(parallelAggregate(t, whole(), round%5 == 0, some))
		switch round % 5 {
		case 2:
			plan = planOf(parallelJoin(t, []planner.JoinKind{planner.InnerJoin, planner.LeftJoin, planner.SemiJoin, planner.AntiJoin}[rng.IntN(4)], whole(), whole(), some))
		case 3:
			plan = planOf(parallelTop(whole(), rng.IntN(30)))
		case 4:
			plan = planOf(parallelSort(whole()))
		}
		want, _, err := runPlan(plan, rt)
		if err != nil {
			t.Fatal(err)
		}
		if round%5 < 3 {
			slices.Sort(want)
		}
		txn.beside = true
		for workers := range 4 {
			rt.Parallel, rt.MemoryLimitBytes = planner.Parallelism{Workers: workers + 1}, []int64{0, 64 << 10}[rng.IntN(2)]
			rt.TempDir = t.TempDir()
			got, _, err := runPlan(plan, rt)
			if err != nil {
				t.Fatal(err)
			}
			if round%5 < 3 {
				slices.Sort(got)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d, %d workers:\n got %q\nwant %q", round, workers+1, got, want)
			}
		}
	}
}

// An error or a panic in a worker ends all of them. The error is that of a run without workers.
func TestWorkersFail(t *testing.T) {
	table, txn := testTable(7, 1, "id int", "g int", "v int"), newMemTxn()
	rt := testRuntime(txn, table)
	in := NewInserter(table, nil, nil, nil, rt)
	for i := range 500 {
		if err := in.Insert(context.Background(), types.Row{datum(i), datum(i % 3), datum(i)}); err != nil {
			t.Fatal(err)
		}
	}
	txn.beside = true
	rt.Parallel.Workers = 3
	failing := planOf(parallelAggregate(t, wholeScan(table, &table.Primary), true, &fn{types.TBool, func(_ *expr.Context, in types.Row) (types.Datum, error) {
		if in[0].Int() >= 100 && in[0].Int()%50 == 0 {
			return types.Null, pgerror.New(pgerror.DivisionByZero, "at %d", in[0].Int())
		}
		return types.Bool(true), nil
	}}))
	_, _, err := runPlan(failing, rt)
	if wantCode(t, err, pgerror.DivisionByZero); !strings.Contains(err.Error(), "at 100") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := planOf(parallelAggregate(t, wholeScan(table, &table.Primary), true, cond(func(in types.Row) bool {
		if in[0].Int() == 300 {
			cancel()
		}
		return true
	})))
	r, err := Build(cancelled, rt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Open(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A filter whose columns are decoded before the others passes the same rows, also where it is given up because it passes most of them.
func TestEarlyFilter(t *testing.T) {
	table, txn := testTable(7, 1, "id int", "a text", "b int", "c text"), newMemTxn()
	rt := testRuntime(txn, table)
	in := NewInserter(table, nil, nil, nil, rt)
	for i := range 1500 {
		row := types.Row{datum(i), datum("a"), datum(i % 100), datum("c")}
		if i%3 == 0 {
			row[1] = types.Null
		}
		if i%7 == 0 {
			row[2] = types.Null
		}
		if err := in.Insert(context.Background(), row); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int64{0, 1, 50, 95, 100} {
		var got [2][]string
		for i := range got {
			scan := wholeScan(table, &table.Primary)
			scan.Est.Cost = float64(i * 1000)
			scan.Filter = &expr.Compare{Op: expr.LT, L: &expr.Column{Ordinal: 2, Typ: types.TInt8}, R: lit(int(limit)), Class: types.TInt8}
			if e, err := newEarlyFilter(scan); err != nil || (e != nil) != (i == 1) {
				t.Fatalf("early filter: %v, %v", e != nil, err)
			}
			rows, _, err := runPlan(planOf(scan), rt)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = rows
		}
		if !slices.Equal(got[0], got[1]) {
			t.Fatalf("limit %d:\n got %q\nwant %q", limit, got[1], got[0])
		}
	}
}

// Goal: an UPDATE or DELETE with workers leaves what one without leaves. Method: random tables with an index and filters; the memory of workers is
// enough, or so little that the rows are read again without them.
func TestWorkersChangeLikeOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for round := range 100 {
		seed, limit, n, deletes, indexed := rng.Uint64(), rng.IntN(1200), rng.IntN(1500), round%2 == 0, round%3 > 0
		some := &expr.Compare{Op: expr.LT, L: intCol(2), R: lit(limit), Class: types.TInt8}
		var want []string
		for workers := range 4 {
			table, txn := testTable(7, 1, "id int", "g int", "v int"), newMemTxn()
			if indexed {
				addIndex(table, false, 2)
			}
			rt := testRuntime(txn, table)
			in, rows := NewInserter(table, nil, nil, nil, rt), rand.New(rand.NewPCG(seed, 1))
			for i := range n {
				if err := in.Insert(context.Background(), types.Row{datum(i * i), datum(rows.IntN(9)), datum(rows.IntN(1000))}); err != nil {
					t.Fatal(err)
				}
			}
			txn.beside = workers > 0
			rt.Parallel, rt.MemoryLimitBytes = planner.Parallelism{Workers: workers}, []int64{0, 32 << 10}[rng.IntN(2)]
			scan := wholeScan(table, &table.Primary)
			scan.Est, scan.Filter = planner.Estimate{Rows: 1000, Cost: 1000}, some
			var change planner.Node = &planner.Delete{Table: table, Input: scan}
			if !deletes {
				change = &planner.Update{Table: table, Input: scan, Set: []expr.Scalar{intCol(0), intCol(1), lit(5)}, Changed: []int{2}}
			}
			_, affected, err := runPlan(planOf(change), rt)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{fmt.Sprint(affected)}
			for _, ix := range append([]catalog.IndexDescriptor{table.Primary}, table.Indexes...) {
				left, _, err := runPlan(planOf(wholeScan(table, &ix)), rt)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, left...)
			}
			if workers == 0 {
				want = got
			} else if !slices.Equal(got, want) {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Fatalf("round %d, %d workers: the row at %d differs in\n got %.1000q\nwant %.1000q", round, workers, at, got[at:], want[at:])
			}
		}
	}
}

func TestMergeRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		var lists [2][]int
		next, ordered := 0, rng.IntN(4) > 0
		for range rng.IntN(40) {
			l := &lists[rng.IntN(2)]
			var run []int
			for range rng.IntN(5) {
				next += 1 + rng.IntN(3)
				run = append(run, next)
			}
			if rng.IntN(2) == 0 {
				*l = append(*l, run...)
			} else {
				*l = append(run, *l...)
			}
		}
		if !ordered {
			for _, l := range lists {
				rng.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
			}
		}
		want := slices.Concat(lists[0], lists[1])
		slices.Sort(want)
		got := mergeRuns(slices.Clone(lists[0]), slices.Clone(lists[1]), cmp.Compare[int])
		if ordered && !slices.IsSorted(got) {
			t.Fatalf("%v: %v", lists, got)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("%v: %v", lists, got)
		}
	}
}
