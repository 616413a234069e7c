package executor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// prefixJoin is a join of left rows (a key, a number) with the rows of a table that have the key, by an
// index that is not unique, with and without fetch.
type prefixJoin struct {
	txn   *memTxn
	nodes map[string]*planner.LookupJoin
}

// newPrefixJoin makes one. counts says how many rows each key has, size how long their values are; on may
// be nil.
func newPrefixJoin(t *testing.T, kind planner.JoinKind, left side, counts []int, size int, on expr.Scalar) *prefixJoin {
	right := testTable(9, 1, "id int", "k int", "v text")
	addIndex(right, false, 1)
	covering := addIndex(right, false, 1)
	covering.Include = []uint32{3}
	j := &prefixJoin{txn: newMemTxn(), nodes: map[string]*planner.LookupJoin{}}
	in := NewInserter(right, nil, nil, nil, testRuntime(j.txn))
	id := 0
	for k, n := range counts {
		for range n {
			id++
			if err := in.Insert(t.Context(), types.Row{datum(id), datum(k), datum(strings.Repeat("v", size))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	base := columns(types.TInt8, types.TInt8, types.TInt8, types.TText)
	if kind == planner.SemiJoin || kind == planner.AntiJoin {
		base = columns(types.TInt8, types.TInt8)
	}
	for i, name := range []string{"fetch", "covering"} {
		j.nodes[name] = &planner.LookupJoin{Base: base, Kind: kind, Left: rowsOf(2, left...), Keys: []expr.Scalar{intCol(0)}, On: on,
			Access: planner.Access{Table: right, Index: &right.Indexes[i], Ordinals: []int{0, 2}, Fetch: i == 0}}
	}
	return j
}

// naivePrefixJoin lists the joined rows, values as their lengths. A last condition lets pass the last row of
// each key alone.
func naivePrefixJoin(kind planner.JoinKind, left side, counts []int, size int, last bool) (out []string) {
	first := make([]int, len(counts)+1)
	for k, n := range counts {
		first[k+1] = first[k] + n
	}
	for _, l := range left {
		var ids []int
		if k, ok := l[0].(int); ok && k < len(counts) {
			for id := first[k] + 1; id <= first[k+1]; id++ {
				if !last || id == first[k+1] {
					ids = append(ids, id)
				}
			}
		}
		row := show(types.Row{datum(l[0]), datum(l[1])})
		switch kind {
		case planner.SemiJoin, planner.AntiJoin:
			if (len(ids) > 0) == (kind == planner.SemiJoin) {
				out = append(out, row)
			}
		default:
			for _, id := range ids {
				out = append(out, fmt.Sprintf("%s %d %d", row, id, size))
			}
			if len(ids) == 0 && kind == planner.LeftJoin {
				out = append(out, row+" - 0")
			}
		}
	}
	return out
}

// Goal: lookups of prefixes in groups yield what a loop over the left rows does, in that order, whatever
// order the left rows come in, however often a key comes, and whether or not what they find can be kept.
// Method: random keys with none to hundreds of rows of a few bytes to many kilobytes.
func TestScanLookupJoinKeepsOrder(t *testing.T) {
	kinds := []planner.JoinKind{planner.InnerJoin, planner.LeftJoin, planner.SemiJoin, planner.AntiJoin}
	for seed := range uint64(18) {
		rng := rand.New(rand.NewPCG(seed, 5))
		size := []int{1, 100, 40_000}[seed%3]
		counts := make([]int, 1+rng.IntN(40))
		lastOf := map[int64]bool{}
		total := 0
		for k := range counts {
			counts[k] = rng.IntN(4)
			if rng.IntN(6) == 0 {
				counts[k] = rng.IntN(200)
			}
			if size > 1000 {
				counts[k] = min(counts[k], 30)
			}
			if total += counts[k]; counts[k] > 0 {
				lastOf[int64(total)] = true
			}
		}
		var left side
		for i := range rng.IntN(80) {
			row := []any{rng.IntN(len(counts) + 2), i}
			if rng.IntN(8) == 0 {
				row[0] = nil
			}
			left = append(left, row)
		}
		if rng.IntN(2) == 0 {
			slices.SortStableFunc(left, func(a, b []any) int { return sortKey(a) - sortKey(b) })
		}
		for _, kind := range kinds {
			last := rng.IntN(2) == 0
			var on expr.Scalar
			if last {
				on = cond(func(in types.Row) bool { return lastOf[in[2].Int()] })
			}
			j := newPrefixJoin(t, kind, left, counts, size, on)
			want := naivePrefixJoin(kind, left, counts, size, last)
			for name, n := range j.nodes {
				for _, group := range []int{0, 1, 5} {
					rt := testRuntime(j.txn)
					rt.GroupSize = group
					got := runPrefixJoin(t, n, rt)
					if !slices.Equal(got, want) {
						t.Fatalf("seed %d, kind %d, %s, group %d, size %d, last %v:\nleft %v\nrows %v\n got %q\nwant %q",
							seed, kind, name, group, size, last, left, counts, got, want)
					}
				}
			}
		}
	}
}

func sortKey(row []any) int {
	if k, ok := row[0].(int); ok {
		return k
	}
	return -1
}

func buildLookup(t *testing.T, n *planner.LookupJoin, rt *Runtime) (*execution, Operator) {
	t.Helper()
	ex := &execution{}
	ex.bind(&Runtime{Env: &builtin.Env{}})
	ex.bind(rt)
	op, err := ex.build(n)
	if err != nil {
		t.Fatal(err)
	}
	return ex, op
}

// runPrefixJoin runs the plan, twice with one tree, and shows the rows with the lengths of their values.
func runPrefixJoin(t *testing.T, n *planner.LookupJoin, rt *Runtime) (out []string) {
	t.Helper()
	ex, op := buildLookup(t, n, rt)
	for range 2 {
		out = nil
		if err := op.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		for {
			row, err := op.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if row == nil {
				break
			}
			if s := show(row[:2]); len(row) == 2 {
				out = append(out, s)
			} else {
				length := 0
				if !row[3].IsNull() {
					length = len(row[3].Bytes())
				}
				out = append(out, fmt.Sprintf("%s %s %d", s, show(row[2:3]), length))
			}
		}
		if err := op.Close(); err != nil {
			t.Fatal(err)
		}
		if ex.mem.used != 0 {
			t.Fatalf("%d bytes are still booked", ex.mem.used)
		}
	}
	return out
}

// Goal: prefixes are scanned together and their rows fetched together, but who stops early, or wants
// one row of each, has not caused all there is to be read. Method: what the transaction was asked for is
// counted.
func TestScanLookupJoinReadsLittle(t *testing.T) {
	var left side
	counts := make([]int, 100)
	for i := range 100 {
		left, counts[i] = append(left, []any{(i * 37) % 100, i}), 3
	}
	large := []int{0, 5000, 5000, 5000}
	few := side{[]any{1, 0}, []any{2, 1}, []any{1, 2}, []any{3, 3}}
	for _, tc := range []struct {
		name                    string
		kind                    planner.JoinKind
		left                    side
		counts                  []int
		rows                    int // to be taken
		scans, scanned, fetched int // at most
		batches                 int
	}{
		{"all", planner.InnerJoin, left, counts, 1000, 3, 300, 300, 6},
		{"the first of much", planner.InnerJoin, few, large, 1, 1, 20, 20, 1},
		{"one of each of much", planner.SemiJoin, few, large, 1000, 4, 260, 260, 10},
		{"none of each of much", planner.AntiJoin, few, large, 1000, 4, 260, 260, 10},
	} {
		for name, n := range newPrefixJoin(t, tc.kind, tc.left, tc.counts, 1, nil).nodes {
			j := newPrefixJoin(t, tc.kind, tc.left, tc.counts, 1, nil)
			_, op := buildLookup(t, n, testRuntime(j.txn))
			if err := op.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range tc.rows {
				if row, err := op.Next(t.Context()); row == nil || err != nil {
					break
				}
			}
			if err := op.Close(); err != nil {
				t.Fatal(err)
			}
			if x := j.txn; x.scans > tc.scans || x.scanned > tc.scanned || x.batchKey > tc.fetched || x.batches > tc.batches {
				t.Errorf("%s, %s: %d scans of %d entries, %d rows fetched in %d batches", tc.name, name, x.scans, x.scanned, x.batchKey, x.batches)
			}
		}
	}
}

// Goal: an error while prefixes are read comes out, and gives the memory back. Method: the context ends after
// so many calls.
func TestScanLookupJoinIsCanceled(t *testing.T) {
	j := newPrefixJoin(t, planner.InnerJoin, side{[]any{0, 0}, []any{1, 1}}, []int{2000, 2000}, 1, cond(func(types.Row) bool { return false }))
	for name, n := range j.nodes {
		ctx, cancel := context.WithCancel(t.Context())
		ex, op := buildLookup(t, n, testRuntime(j.txn))
		if err := op.Open(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if row, err := op.Next(ctx); row != nil || err != context.Canceled {
			t.Errorf("%s: %v, %v", name, row, err)
		}
		if err := op.Close(); err != nil || ex.mem.used != 0 {
			t.Errorf("%s: %v, %d bytes are still booked", name, err, ex.mem.used)
		}
	}
}
