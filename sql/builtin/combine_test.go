package builtin

import (
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/sql/types"
)

// Goal: an aggregate that can be combined has the same result however its rows are divided. Method: random values, NULLs among them, of each
// argument type; all of them in one accumulator, and in several ones that are combined, some without a row, some of which take integers in
// groups.
func TestCombinedAggregates(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	values := map[string]func() types.Datum{
		"int2": func() types.Datum { return types.Int(int64(rng.IntN(200) - 100)) },
		"int4": func() types.Datum { return types.Int(int64(rng.Int32()) - 1<<30) },
		"int8": func() types.Datum { return types.Int(int64(rng.Uint64())) },
		"text": func() types.Datum { return types.Text(string(rune('a' + rng.IntN(26)))) },
		"bool": func() types.Datum { return types.Bool(rng.IntN(3) > 0) },
		"numeric": func() types.Datum {
			d := types.NewNumeric(int64(rng.IntN(1<<40) - 1<<39))
			d.Exponent = -int32(rng.IntN(6))
			return types.Decimal(d)
		},
		"float8": func() types.Datum { return types.Float(rng.Float64()) },
		"date":   func() types.Datum { return types.Int(int64(rng.IntN(10000))) },
	}
	env, tested := &Env{}, 0
	for name, value := range values {
		typ := types.Type{Mod: -1}
		for _, info := range types.Infos() {
			if info.Name == name {
				typ.OID = info.OID
			}
		}
		for _, aggregate := range []string{"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or", "bit_xor"} {
			agg, err := ResolveAggregate(aggregate, []types.Type{typ})
			if err != nil || agg.Combine == nil || agg.Args[0].OID != typ.OID && agg.Args[0].OID != types.OIDAny {
				continue
			}
			tested++
			for range 50 {
				whole, parts := agg.NewAccumulator(), make([]Accumulator, 1+rng.IntN(4))
				for i := range parts {
					parts[i] = agg.NewAccumulator()
				}
				grouped := make([][]int64, len(parts))
				for range rng.IntN(30) {
					args := []types.Datum{value()}
					if rng.IntN(6) == 0 {
						args[0] = types.Null
					}
					takers, at := []Accumulator{whole}, rng.IntN(len(parts))
					if agg.AddInts != nil && !args[0].IsNull() && at%2 == 0 {
						grouped[at] = append(grouped[at], args[0].Int())
					} else {
						takers = append(takers, parts[at])
					}
					for _, acc := range takers {
						if err := acc.Add(env, args); err != nil {
							t.Fatal(err)
						}
					}
				}
				for i, ints := range grouped {
					if agg.AddInts == nil {
						break
					}
					if err := agg.AddInts(parts[i], ints); err != nil {
						t.Fatal(err)
					}
				}
				for _, part := range parts[1:] {
					if err := agg.Combine(parts[0], part); err != nil {
						t.Fatal(err)
					}
				}
				want, err := whole.Result(env)
				if err != nil {
					t.Fatal(err)
				}
				got, err := parts[0].Result(env)
				if err != nil {
					t.Fatal(err)
				}
				if text := func(d types.Datum) string { return string(types.AppendText(nil, d, agg.Ret, &env.Format)) }; got.IsNull() != want.IsNull() ||
					!got.IsNull() && text(got) != text(want) {
					t.Fatalf("%s(%s): %v, want %v", aggregate, name, got, want)
				}
			}
		}
	}
	if tested < 25 {
		t.Errorf("%d aggregates", tested)
	}
}
