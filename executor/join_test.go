package executor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// The joins must agree: over random inputs with duplicates and NULLs, every method yields the
// multiset that a loop written here yields, for every kind it knows, with and without a residual
// condition, with groups of one row and of many.
func TestJoinMethodsAgree(t *testing.T) {
	kinds := []planner.JoinKind{planner.InnerJoin, planner.LeftJoin, planner.FullJoin, planner.SemiJoin, planner.AntiJoin}
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		left, right := randomSide(rng), randomSide(rng)
		for _, kind := range kinds {
			for _, residual := range []bool{false, true} {
				c := joinCase{kind: kind, left: left, right: right, residual: residual}
				want := inAnyOrder(c.naive())
				for name, n := range c.nodes() {
					for _, group := range []int{0, 1, 3} {
						rt := testRuntime(c.store(n))
						rt.GroupSize = group
						got, _, err := runPlan(planOf(n), rt)
						if err != nil {
							t.Fatal(err)
						}
						if got = inAnyOrder(got); !slices.Equal(got, want) {
							t.Fatalf("seed %d, kind %d, residual %v, %s, group %d:\nleft  %v\nright %v\n got %q\nwant %q",
								seed, kind, residual, name, group, left, right, got, want)
						}
					}
				}
			}
		}
	}
}

// side is the rows of one input: a key that may be NULL and a number.
type side [][]any

func randomSide(rng *rand.Rand) side {
	s := side{}
	for i := range rng.IntN(12) {
		row := []any{rng.IntN(5), i}
		if rng.IntN(6) == 0 {
			row[0] = nil
		}
		s = append(s, row)
	}
	return s
}

type joinCase struct {
	kind        planner.JoinKind
	left, right side
	residual    bool
	table       *catalog.TableDescriptor
}

// on is the residual condition over the joined row: the numbers' sum is even.
func (c *joinCase) on() expr.Scalar {
	if !c.residual {
		return nil
	}
	return cond(func(in types.Row) bool { return (in[1].Int()+in[3].Int())%2 == 0 })
}

func (c *joinCase) match(l, r []any) bool {
	return l[0] != nil && l[0] == r[0] && (!c.residual || (l[1].(int)+r[1].(int))%2 == 0)
}

func (c *joinCase) naive() (out []string) {
	row := func(vs ...any) string {
		var r types.Row
		for _, v := range vs {
			r = append(r, datum(v))
		}
		return show(r)
	}
	matched := make([]bool, len(c.right))
	for _, l := range c.left {
		found := false
		for i, r := range c.right {
			if !c.match(l, r) {
				continue
			}
			found, matched[i] = true, true
			if c.kind != planner.SemiJoin && c.kind != planner.AntiJoin {
				out = append(out, row(l[0], l[1], r[0], r[1]))
			}
		}
		switch {
		case found == (c.kind == planner.SemiJoin) && (c.kind == planner.SemiJoin || c.kind == planner.AntiJoin):
			out = append(out, row(l[0], l[1]))
		case !found && (c.kind == planner.LeftJoin || c.kind == planner.FullJoin):
			out = append(out, row(l[0], l[1], nil, nil))
		}
	}
	for i, r := range c.right {
		if c.kind == planner.FullJoin && !matched[i] {
			out = append(out, row(nil, nil, r[0], r[1]))
		}
	}
	return out
}

// nodes makes the case's plan by every method.
func (c *joinCase) nodes() map[string]planner.Node {
	left, right := rowsOf(2, c.left...), rowsOf(2, c.right...)
	left.Base, right.Base = ints(2), ints(2)
	base := join(left, right)
	if c.kind == planner.SemiJoin || c.kind == planner.AntiJoin {
		base = left.Base
	}
	keys := []expr.Scalar{intCol(0)}
	// A key of two columns takes the road without exact hashes.
	wide := []expr.Scalar{intCol(0), intFn(func(types.Row) int64 { return 7 })}
	equal := cond(func(in types.Row) bool {
		return !in[0].IsNull() && !in[2].IsNull() && in[0].Int() == in[2].Int() && (!c.residual || (in[1].Int()+in[3].Int())%2 == 0)
	})
	nodes := map[string]planner.Node{
		"hash":      &planner.HashJoin{Base: base, Kind: c.kind, Left: left, Right: right, LeftKeys: keys, RightKeys: keys, On: c.on()},
		"hash wide": &planner.HashJoin{Base: base, Kind: c.kind, Left: left, Right: right, LeftKeys: wide, RightKeys: wide, On: c.on()},
		"nested":    &planner.NestedLoopJoin{Base: base, Kind: c.kind, Left: left, Right: right, On: equal},
	}
	for _, desc := range []bool{false, true} {
		for _, nullsFirst := range []bool{false, true} {
			order := []planner.SortKey{{Expr: intCol(0), Desc: desc, NullsFirst: nullsFirst}}
			nodes[fmt.Sprintf("merge %v %v", desc, nullsFirst)] = &planner.MergeJoin{
				Base: base, Kind: c.kind, LeftKeys: keys, RightKeys: keys, Desc: []bool{desc}, On: c.on(),
				Left:  &planner.Sort{Base: left.Base, Input: left, Keys: order},
				Right: &planner.Sort{Base: right.Base, Input: right, Keys: order},
			}
		}
	}
	if c.kind == planner.FullJoin {
		return nodes
	}
	nodes["apply"] = c.apply(base, left, right)
	c.table = testTable(5, 0, "k int", "n int")
	addIndex(c.table, false, 0)
	addIndex(c.table, false, 0, 1)
	for i := range c.table.Indexes {
		ix := &c.table.Indexes[i]
		nodes["lookup "+ix.Name] = &planner.LookupJoin{
			Base: base, Kind: c.kind, Left: left, Keys: keys, On: c.on(),
			Access: planner.Access{Table: c.table, Index: ix, Ordinals: []int{0, 1}, Fetch: i == 0},
		}
	}
	return nodes
}

// apply filters the right side by the outer row.
func (c *joinCase) apply(base planner.Base, left, right *planner.Values) planner.Node {
	outer := &expr.Outer{Level: 1, Ordinal: 0, Typ: types.TInt8}
	correlated := &fn{types.TBool, func(ev *expr.Context, in types.Row) (types.Datum, error) {
		o, err := outer.Eval(ev, in)
		return types.Bool(err == nil && !o.IsNull() && !in[0].IsNull() && o.Int() == in[0].Int()), err
	}}
	return &planner.Apply{
		Base: base, Kind: c.kind, Left: left, On: c.on(),
		Right: &planner.Filter{Base: right.Base, Input: right, Cond: correlated},
	}
}

// store is a transaction that holds the right side as the rows of table.
func (c *joinCase) store(n planner.Node) *memTxn {
	txn := newMemTxn()
	if _, ok := n.(*planner.LookupJoin); !ok {
		return txn
	}
	in := NewInserter(c.table, nil, nil, nil, testRuntime(txn))
	for _, r := range c.right {
		if err := in.Insert(context.Background(), types.Row{datum(r[0]), datum(r[1]), types.Null}); err != nil {
			panic(err)
		}
	}
	return txn
}

// A lookup join by a whole unique key, through the primary key and through a unique index with
// fetch and without, keeps the left order and reads each different key of a group once.
func TestUniqueLookupJoin(t *testing.T) {
	right := testTable(9, 1, "id int", "code int", "v text")
	addIndex(right, true, 1)
	covering := addIndex(right, true, 1)
	covering.Include = []uint32{3}
	byCode := &right.Indexes[0] // the second addIndex moved it
	left := rowsOf(2, []any{3, 1}, []any{1, 2}, []any{nil, 3}, []any{9, 4}, []any{1, 5}, []any{2, 6})
	cases := []struct {
		index *catalog.IndexDescriptor
		fetch bool
		key   expr.Scalar
	}{
		{&right.Primary, false, intCol(0)},
		{byCode, true, times(0, 10)},
		{covering, false, times(0, 10)},
	}
	for _, c := range cases {
		txn := newMemTxn()
		in := NewInserter(right, nil, nil, nil, testRuntime(txn))
		for _, id := range []int{1, 2, 3} {
			if err := in.Insert(t.Context(), types.Row{datum(id), datum(10 * id), datum(fmt.Sprint("v", id))}); err != nil {
				t.Fatal(err)
			}
		}
		n := &planner.LookupJoin{
			Base: columns(types.TInt8, types.TInt8, types.TInt8, types.TText), Kind: planner.LeftJoin, Left: left, Unique: true,
			Access: planner.Access{Table: right, Index: c.index, Ordinals: []int{0, 2}, Fetch: c.fetch},
			Keys:   []expr.Scalar{c.key},
		}
		got, _, err := runPlan(planOf(n), testRuntime(txn))
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, got, "3 1 3 v3", "1 2 1 v1", "- 3 - -", "9 4 - -", "1 5 1 v1", "2 6 2 v2")
		if c.index == &right.Primary && (txn.batches != 1 || txn.batchKey != 4) {
			t.Errorf("%d batches of %d keys, want one of 4", txn.batches, txn.batchKey)
		}
	}
}

// times multiplies a column, keeping NULL.
func times(ord int, by int64) expr.Scalar {
	return &fn{types.TInt8, func(_ *expr.Context, in types.Row) (types.Datum, error) {
		if in[ord].IsNull() {
			return types.Null, nil
		}
		return types.Int(in[ord].Int() * by), nil
	}}
}
