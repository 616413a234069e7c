package expr

import (
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a list of tuples is what the disjunction it stands for is, under three-valued logic. Method: random
// lists and rows with many NULLs, beside And and Or of Compare.
func TestTupleListAgainstOr(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	class := []types.Type{types.TInt8, types.TText, types.TFloat8}
	value := func(i int) types.Datum {
		switch n := r.IntN(4); {
		case n == 0 && r.IntN(3) == 0:
			return types.Null
		case i == 0:
			return types.Int(int64(n))
		case i == 1:
			return types.Text(string(rune('a' + n)))
		default:
			return types.Float(float64(n))
		}
	}
	seen := map[string]int{}
	for range 3000 {
		width := 1 + r.IntN(3)
		list, or := &TupleList{Classes: class[:width]}, &Or{}
		for i := range width {
			list.X = append(list.X, &Column{Ordinal: i, Typ: class[i]})
		}
		for range 1 + r.IntN(12) {
			and := &And{}
			for i := range width {
				c := &Const{Value: value(i), Typ: class[i]}
				list.List = append(list.List, c)
				and.Args = append(and.Args, NewCompare(EQ, list.X[i], c, class[i]))
			}
			or.Args = append(or.Args, and)
		}
		ev := &Context{Env: &builtin.Env{}}
		for range 20 {
			row := make(types.Row, width)
			for i := range row {
				row[i] = value(i)
			}
			got, err := list.Eval(ev, row)
			if err != nil {
				t.Fatal(err)
			}
			want, err := or.Eval(ev, row)
			if err != nil {
				t.Fatal(err)
			}
			name := func(d types.Datum) string {
				if d.IsNull() {
					return "NULL"
				}
				return map[bool]string{false: "false", true: "true"}[d.Bool()]
			}
			if name(got) != name(want) {
				t.Fatalf("%v over %v: %s, want %s", list, row, name(got), name(want))
			}
			seen[name(got)]++
		}
	}
	if seen["NULL"] < 1000 || seen["true"] < 1000 || seen["false"] < 1000 {
		t.Errorf("results %v: too few of some", seen)
	}
}
