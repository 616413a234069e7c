package executor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Goal: the results over a frame of rows are right whether or not a partition fits into memory, which is kept within its
// limit and given back. Method: random partitions, offsets and exclusions; the expected values are computed from all rows.
func TestWindowFramesAndMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	first, err := builtin.ResolveWindowFunc("first_value", []types.Type{types.TInt8})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 24 {
		limit := []int64{256 << 10, 64 << 20}[round%2]
		var rows [][]any
		for part := range 1 + rng.IntN(3) {
			for range rng.IntN(4000) {
				rows = append(rows, []any{part, len(rows), strings.Repeat("x", rng.IntN(200))})
			}
		}
		before, after := rng.IntN(30), rng.IntN(30)
		start, end := ast.OffsetPreceding, ast.OffsetFollowing
		if rng.IntN(3) == 0 {
			start = ast.UnboundedPreceding
			before = len(rows)
		}
		exclude := ast.ExcludeNone
		if rng.IntN(3) == 0 && start == ast.OffsetPreceding {
			exclude = ast.ExcludeCurrentRow
		}
		input := rowsOf(3, rows...)
		input.Base = columns(types.TInt8, types.TInt8, types.TText)
		n := &planner.WindowAgg{
			Base: columns(types.TInt8, types.TInt8, types.TText, types.TInt8, types.TInt8, types.TInt8), Input: input,
			PartitionBy: []expr.Scalar{intCol(0)}, OrderBy: []planner.SortKey{key(1, types.TInt8, false, false)},
			Frame: planner.WindowFrame{Mode: ast.FrameRows, Exclude: exclude,
				Start: planner.WindowBound{Kind: start, Offset: lit(before)}, End: planner.WindowBound{Kind: end, Offset: lit(after)}},
		}
		for _, name := range []string{"count", "max"} {
			n.Calls = append(n.Calls, planner.WindowCall{Agg: call(t, name, intCol(1)).Func, Args: []expr.Scalar{intCol(1)}})
		}
		n.Calls = append(n.Calls, planner.WindowCall{Func: first, Args: []expr.Scalar{intCol(1)}})
		var want []string
		for i := range rows {
			var in []int
			for j := max(0, i-before); j <= min(len(rows)-1, i+after); j++ {
				if rows[j][0] == rows[i][0] && (j != i || exclude == ast.ExcludeNone) {
					in = append(in, j)
				}
			}
			if len(in) == 0 {
				want = append(want, fmt.Sprint(rows[i][1], " 0 NULL NULL"))
			} else {
				want = append(want, fmt.Sprint(rows[i][1], " ", len(in), " ", slices.Max(in), " ", in[0]))
			}
		}
		out := &planner.Project{Base: ints(4), Input: n, Exprs: []expr.Scalar{intCol(1), intCol(3), intCol(4), intCol(5)}}
		rt := testRuntime(newMemTxn())
		rt.MemoryLimitBytes, rt.TempDir = limit, t.TempDir()
		got, _, err := runPlan(planOf(out), rt)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if !slices.Equal(got, want) {
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("round %d, row %d of %d: got %s, want %s", round, i, len(want), got[i], want[i])
				}
			}
			t.Fatalf("round %d: %d rows, want %d", round, len(got), len(want))
		}
	}
}
