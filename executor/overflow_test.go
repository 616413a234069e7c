package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// overflowPlans keep a thing for each of some 3,000 different keys: groups with aggregates that mind
// the order of rows, DISTINCT, DISTINCT ON and UNION, over keys that are columns, texts and computed.
func overflowPlans(t testing.TB) map[string]planner.Node {
	rng := rand.New(rand.NewPCG(3, 3))
	half := func() *planner.Values {
		v := &planner.Values{Base: columns(types.TInt8, types.TText)}
		for range 5000 {
			row := []any{rng.IntN(4000), fmt.Sprint("text ", rng.IntN(3))}
			if rng.IntN(10) == 0 {
				row[rng.IntN(2)] = nil
			}
			v.Rows = append(v.Rows, lits(row...))
		}
		return v
	}
	a, b := half(), half()
	twice := times(0, 2)
	distinct := call(t, "count", col(1, types.TText))
	distinct.Distinct = true
	ordered := call(t, "string_agg", col(1, types.TText), lit(","))
	aggs := []planner.AggregateCall{call(t, "count"), distinct, ordered}
	group := func(keys ...expr.Scalar) planner.Node {
		base := columns(types.TInt8, types.TInt8, types.TInt8, types.TText)
		if len(keys) == 2 {
			base = columns(types.TInt8, types.TText, types.TInt8, types.TInt8, types.TText)
		}
		return &planner.Aggregate{Base: base, Input: a, GroupBy: keys, Aggs: aggs}
	}
	return map[string]planner.Node{
		"group":          group(intCol(0)),
		"group computed": group(twice),
		"group wide":     group(intCol(0), col(1, types.TText)),
		"distinct":       &planner.Distinct{Base: a.Base, Input: a},
		"distinct on":    &planner.Distinct{Base: a.Base, Input: a, On: []expr.Scalar{twice}},
		"union":          &planner.SetOp{Base: a.Base, Op: "UNION", Left: a, Right: b},
	}
}

// Groups and distinct rows too many for memory come out as they do with room, DISTINCT ON and the
// aggregates with the rows in the order of arrival; nothing stays behind, nor when the reader stops or
// the statement is cancelled; a runner may be used again, and tells that it had a file.
func TestKeysOverflow(t *testing.T) {
	for name, n := range overflowPlans(t) {
		t.Run(name, func(t *testing.T) {
			want := inAnyOrder(mustRun(t, n))
			for _, limit := range []int64{64 << 10, 128 << 10} {
				r, a, err := NewAnalyzedRunner(planOf(n))
				if err != nil {
					t.Fatal(err)
				}
				rt := testRuntime(newMemTxn())
				rt.MemoryLimitBytes, rt.TempDir = limit, t.TempDir()
				for _, rows := range []int{2, len(want) - 1, len(want) + 1} {
					got := takeRows(t, r, rt, rows)
					wantNothingLeft(t, &r.ex, rt)
					if rows > len(want) && !slices.Equal(inAnyOrder(got), want) {
						t.Fatalf("limit %d: %d rows differ from the %d in memory", limit, len(got), len(want))
					}
				}
				if stats, _ := a.Node(n); stats.TempBytes == 0 {
					t.Errorf("limit %d: it had room", limit)
				}
			}
		})
	}
}

// takeRows runs a plan as far as to its first rows.
func takeRows(t *testing.T, r *Runner, rt *Runtime, n int) (rows []string) {
	t.Helper()
	r.Bind(rt)
	defer r.Close()
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(rows) < n {
		row, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if row == nil {
			break
		}
		rows = append(rows, show(row))
	}
	return rows
}

// A cancel comes through in whatever turn it is.
func TestOverflowIsCancelled(t *testing.T) {
	for name, n := range overflowPlans(t) {
		r, err := NewRunner(planOf(n))
		if err != nil {
			t.Fatal(err)
		}
		for at := 1; ; at += 7 {
			rt := testRuntime(newMemTxn())
			rt.MemoryLimitBytes, rt.TempDir = 64<<10, t.TempDir()
			r.Bind(rt)
			ctx := &countdown{t.Context(), at}
			err := r.Open(ctx)
			for row := (types.Row{}); row != nil && err == nil; {
				row, err = r.Next(ctx)
			}
			err = errors.Join(err, r.Close())
			wantNothingLeft(t, &r.ex, rt)
			if err == nil {
				if at < 30 {
					t.Errorf("%s: only %d looks at the context", name, at)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, look %d: %v", name, at, err)
			}
		}
	}
}

// Keys whose hashes are all the same in the bits that divide them still come to an end: every turn
// settles what there is room for.
func TestOverflowOfEqualHashes(t *testing.T) {
	input := &planner.Values{Base: ints(1)}
	for i := range 3000 {
		// The hash of an integer key is mix, whose inverse is at hand.
		input.Rows = append(input.Rows, lits(int(unmix(uint64(i)<<(maxPartDepth*partBits+partBits)))))
	}
	n := &planner.Distinct{Base: ints(1), Input: input}
	rt := testRuntime(newMemTxn())
	rt.MemoryLimitBytes, rt.TempDir = 64<<10, t.TempDir()
	got, _, err := runPlan(planOf(n), rt)
	if err != nil || len(got) != 3000 {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// unmix is the inverse of mix.
func unmix(v uint64) uint64 {
	v ^= v >> 33
	v *= inverse(0xc4ceb9fe1a85ec53)
	v ^= v >> 33
	v *= inverse(0xff51afd7ed558ccd)
	return v ^ v>>33
}

// inverse is the inverse of an odd number modulo 2^64.
func inverse(a uint64) uint64 {
	x := a
	for range 6 {
		x *= 2 - a*x
	}
	return x
}
