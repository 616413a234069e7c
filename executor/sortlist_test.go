package executor

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// A list has the order of comparisons for every combination of types that prefixes contain whole, in part, or not at all. Equal rows are in the
// order of arrival if there are many (test/sqllogic has the order of few).
func TestSortListOrdersLikeComparisons(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	value := map[types.Type]func() types.Datum{
		types.TInt2:   func() types.Datum { return types.Int(int64(int16(rng.Uint64()) >> rng.IntN(16))) },
		types.TInt4:   func() types.Datum { return types.Int(int64(int32(rng.Uint64()) >> rng.IntN(32))) },
		types.TInt8:   func() types.Datum { return types.Int(int64(rng.Uint64()) >> rng.IntN(64)) },
		types.TBool:   func() types.Datum { return types.Bool(rng.IntN(2) == 0) },
		types.TFloat8: func() types.Datum { return types.Float(float64(rng.IntN(9)-4) / float64(rng.IntN(4))) },
		types.TNumeric: func() types.Datum {
			return numerics(t, []string{"1", "1.0", "9007199254740993", "9007199254740992", "-3"}[rng.IntN(5)])[0]
		},
		types.TText: func() types.Datum {
			b := []byte("a common beginning\x00\x00b")
			return types.Text(string(b[:rng.IntN(len(b)+1)]))
		},
		types.TBPChar: func() types.Datum { return types.Text([]string{"a", "a  ", "b"}[rng.IntN(3)]) },
	}
	var kinds []types.Type
	for k := range value {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b types.Type) int { return int(a.OID) - int(b.OID) })
	ex := &execution{rt: &Runtime{}}
	ex.mem.limit = 1 << 30
	for round := range 300 {
		var keys []planner.SortKey
		for i := range 1 + rng.IntN(5) {
			keys = append(keys, key(i, kinds[rng.IntN(len(kinds))], rng.IntN(2) == 0, rng.IntN(2) == 0))
		}
		order := newOrdering(keys)
		list := newSortList(ex, &order)
		var want []types.Row
		for seq := range rng.IntN([]int{20, 300, 3000}[rng.IntN(3)]) {
			row := make(types.Row, len(keys), len(keys)+1)
			for i, k := range keys {
				if row[i] = types.Null; rng.IntN(6) > 0 {
					row[i] = value[k.Expr.Type()]()
				}
			}
			seq := types.Int(int64(seq))
			if err := list.add(row, types.Row{seq}); err != nil {
				t.Fatal(err)
			}
			want = append(want, append(row, seq))
		}
		slices.SortStableFunc(want, order.compare)
		if err := list.sort(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, row := range want {
			got := list.next()
			if order.compare(got, row) != 0 || len(want) >= leastDistributed && show(got) != show(row) {
				t.Fatalf("round %d, %v: row %d of %d is %s, want %s", round, keys, i, len(want), show(got), show(row))
			}
		}
		if list.next() != nil {
			t.Fatal("rows behind the last one")
		}
		list.release()
	}
	if ex.mem.used != 0 {
		t.Errorf("%d bytes are still booked", ex.mem.used)
	}
}

// A cancelled sort ends with the reason.
func TestSortListIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ex := &execution{rt: &Runtime{}}
	ex.mem.limit = 1 << 30
	for _, typ := range []types.Type{types.TInt8, types.TBPChar} { // by digits, by comparisons
		order := newOrdering([]planner.SortKey{key(0, typ, false, false)})
		list := newSortList(ex, &order)
		for i := range 10_000 {
			row := types.Row{types.Int(int64(i * 7919 % 10_000))}
			if typ == types.TBPChar {
				row[0] = types.Text(string(rune('a' + i%26)))
			}
			if err := list.add(row, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := list.sort(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", typ, err)
		}
	}
}
