package executor

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Scans of random spans are compared with a filter over the rows themselves: through a primary key
// of two columns, a descending index with NULLs first and a unique one; forward and back; covering
// and with fetch; in groups of one and of many.
func TestScanSpans(t *testing.T) {
	table := testTable(7, 2, "a int", "b int", "c int")
	addIndex(table, false, 2, 0)
	table.Indexes[0].Columns[0].Desc, table.Indexes[0].Columns[0].NullsFirst = true, true
	addIndex(table, true, 1, 2)
	txn := newMemTxn()
	rt := testRuntime(txn, table)
	in := NewInserter(table, nil, nil, nil, rt)
	var rows []types.Row
	for a := range 6 {
		for b := range 6 {
			row := types.Row{datum(a), datum(b), datum((a*b + a) % 11)}
			if (a+b)%4 == 0 {
				row[2] = types.Null
			}
			if a > 0 && a != b {
				continue // (b, c) is unique where c is not NULL
			}
			rows = append(rows, row)
			if err := in.Insert(context.Background(), row); err != nil {
				t.Fatal(err)
			}
		}
	}
	indexes := []*catalog.IndexDescriptor{&table.Primary, &table.Indexes[0], &table.Indexes[1]}
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 2000 {
		ix := indexes[rng.IntN(len(indexes))]
		c := randomScan(rng, table, ix)
		rt.GroupSize = []int{0, 1, 2}[rng.IntN(3)]
		got, _, err := runPlan(&planner.Plan{Root: c.node}, rt)
		if err != nil {
			t.Fatal(err)
		}
		want := c.expected(table, ix, rows)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, %s, reverse %v, fetch %v, spans %+v\n got %q\nwant %q", round, ix.Name, c.node.Reverse, c.node.Fetch, c.specs, got, want)
		}
	}
}

// spanSpec is a span as the test understands it: values per leading column, then bounds.
type spanSpec struct {
	eq        [][]any // one column each; several values: any of them
	low, high any     // nil: none
	incl      [2]bool
}

type scanCase struct {
	specs []spanSpec
	node  *planner.Scan
}

func randomScan(rng *rand.Rand, table *catalog.TableDescriptor, ix *catalog.IndexDescriptor) scanCase {
	n := wholeScan(table, ix)
	n.Reverse = rng.IntN(2) == 0
	n.Limit = rng.IntN(3)
	if ix.ID != table.Primary.ID && rng.IntN(2) == 0 {
		// What the index holds of itself.
		n.Fetch = false
		n.Ordinals = []int{0, 1}
		if first := table.Ordinal(ix.Columns[0].ColumnID); first > 1 {
			n.Ordinals = append(n.Ordinals, first)
		}
		n.Base = tableColumns(table, n.Ordinals...)
	}
	c := scanCase{node: n}
	for range rng.IntN(3) {
		var s spanSpec
		var ks planner.KeySpan
		for range rng.IntN(len(ix.Columns) + 1) {
			vs := []any{rng.IntN(6)}
			part := planner.KeyPart{Value: lit(vs[0])}
			switch rng.IntN(8) {
			case 0:
				vs = []any{nil}
				part.Value = lit(nil)
			case 1, 2, 3:
				vs = append(vs, rng.IntN(6), nil, rng.IntN(6))
				arr := &types.Array{Elem: types.TInt8}
				for _, v := range vs {
					arr.Elems = append(arr.Elems, datum(v))
				}
				part = planner.KeyPart{Each: true, Value: &expr.Const{Value: types.NewArray(arr), Typ: types.TInt8.ArrayOf()}}
			}
			s.eq = append(s.eq, vs)
			ks.Eq = append(ks.Eq, part)
		}
		if len(ks.Eq) < len(ix.Columns) {
			if rng.IntN(2) == 0 {
				s.low, s.incl[0] = rng.IntN(6), rng.IntN(2) == 0
				ks.Low = &planner.Bound{Value: lit(s.low), Inclusive: s.incl[0]}
			}
			if rng.IntN(2) == 0 {
				s.high, s.incl[1] = rng.IntN(6), rng.IntN(2) == 0
				ks.High = &planner.Bound{Value: lit(s.high), Inclusive: s.incl[1]}
			}
		}
		c.specs = append(c.specs, s)
		n.Spans = append(n.Spans, ks)
	}
	return c
}

func (c *scanCase) expected(table *catalog.TableDescriptor, ix *catalog.IndexDescriptor, rows []types.Row) []string {
	var hits []types.Row
	for _, r := range rows {
		hit := len(c.specs) == 0
		for i := range c.specs {
			hit = hit || c.specs[i].holds(table, ix, r)
		}
		if hit {
			hits = append(hits, r)
		}
	}
	columns := slices.Concat(ix.Columns, table.Primary.Columns)
	slices.SortFunc(hits, func(a, b types.Row) int {
		for _, k := range columns {
			i := table.Ordinal(k.ColumnID)
			o := newOrdering([]planner.SortKey{key(i, types.TInt8, k.Desc, k.NullsFirst)})
			if d := o.compareKey(0, a[i], b[i]); d != 0 {
				return d
			}
		}
		return 0
	})
	if c.node.Reverse {
		slices.Reverse(hits)
	}
	var out []string
	for _, r := range hits {
		var row types.Row
		for _, o := range c.node.Ordinals {
			row = append(row, r[o])
		}
		out = append(out, show(row))
	}
	return out
}

func (s *spanSpec) holds(table *catalog.TableDescriptor, ix *catalog.IndexDescriptor, r types.Row) bool {
	for i, vs := range s.eq {
		d := r[table.Ordinal(ix.Columns[i].ColumnID)]
		if d.IsNull() || !slices.Contains(vs, any(int(d.Int()))) {
			return false
		}
	}
	if s.low == nil && s.high == nil {
		return true
	}
	d := r[table.Ordinal(ix.Columns[len(s.eq)].ColumnID)]
	if d.IsNull() {
		return false
	}
	v := int(d.Int())
	if s.low != nil && (v < s.low.(int) || v == s.low.(int) && !s.incl[0]) {
		return false
	}
	return s.high == nil || v < s.high.(int) || v == s.high.(int) && s.incl[1]
}

// Whole keys of a unique index are read in groups of points, not by scans, each key once.
func TestManyPointsAreBatched(t *testing.T) {
	table, txn := testTable(7, 1, "id int", "v text"), newMemTxn()
	rt := testRuntime(txn, table)
	in := NewInserter(table, nil, nil, nil, rt)
	arr := &types.Array{Elem: types.TInt8}
	for i := range 100 {
		if err := in.Insert(context.Background(), types.Row{datum(i), datum("v")}); err != nil {
			t.Fatal(err)
		}
		arr.Elems = append(arr.Elems, datum(2*i), datum(2*i))
	}
	n := wholeScan(table, &table.Primary, planner.KeySpan{Eq: []planner.KeyPart{{Each: true,
		Value: &expr.Const{Value: types.NewArray(arr), Typ: types.TInt8.ArrayOf()}}}})
	rows, _, err := runPlan(planOf(n), rt)
	if err != nil || len(rows) != 50 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if txn.scans != 0 || txn.batchKey != 100 || txn.batches > 4 {
		t.Errorf("%d scans, %d keys in %d batches", txn.scans, txn.batchKey, txn.batches)
	}
}

// A point get by a unique index fetches the row; a NULL key finds nothing and asks nothing; an
// entry without row is reported as corruption.
func TestPointGet(t *testing.T) {
	table, txn := accounts(), newMemTxn()
	mustExec(t, table, txn, insertRows(table, accountRow(1, "a", 10), accountRow(2, nil, 20)), 2)
	get := func(v any) *planner.PointGet {
		return &planner.PointGet{Base: tableColumns(table, 2, 0), Key: lits(v),
			Access: planner.Access{Table: table, Index: &table.Indexes[0], Ordinals: []int{2, 0}, Fetch: true}}
	}
	rt := testRuntime(txn, table)
	run := func(n planner.Node) []string {
		t.Helper()
		rows, _, err := runPlan(planOf(n), rt)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	wantRows(t, run(get("a")), "10 1")
	wantRows(t, run(get("b")))
	txn.gets = 0
	wantRows(t, run(get(nil)))
	if txn.gets != 0 {
		t.Error("a NULL key was looked up")
	}
	filtered := get("a")
	filtered.Filter = cond(func(in types.Row) bool { return in[0].Int() > 10 })
	wantRows(t, run(filtered))

	for k := range txn.data {
		// The row's key is the shortest one with its index id.
		if k[2] == 1 {
			delete(txn.data, k)
		}
	}
	_, _, err := runPlan(&planner.Plan{Root: get("a")}, rt)
	wantCode(t, err, pgerror.DataCorrupted)
	_, _, err = runPlan(&planner.Plan{Root: wholeScan(table, &table.Indexes[1])}, rt)
	wantCode(t, err, pgerror.DataCorrupted)
}
