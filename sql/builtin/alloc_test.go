package builtin

import (
	"testing"

	"github.com/percodb/percodb/sql/types"
)

func TestRowsDoNotAllocate(t *testing.T) {
	// Goal: aggregates of integers and floats, comparisons and patterns do not allocate per row.
	// Method: count allocations.
	env := &Env{}
	row := []types.Datum{types.Int(7)}
	for _, name := range []string{"sum", "min", "max", "count", "avg", "bit_or"} {
		for _, typ := range []types.Type{types.TInt4, types.TInt8} {
			agg, err := ResolveAggregate(name, []types.Type{typ})
			if err != nil {
				t.Fatal(err)
			}
			acc := agg.NewAccumulator()
			if n := testing.AllocsPerRun(100, func() { _ = acc.Add(env, row) }); n > 0 {
				t.Errorf("%s(%s) allocates %v times per row", name, typ, n)
			}
		}
	}
	decimal, _ := types.ParseText(types.TNumeric, "12345.67", nil)
	sum, err := ResolveAggregate("sum", []types.Type{types.TNumeric})
	if err != nil {
		t.Fatal(err)
	}
	acc := sum.NewAccumulator()
	args := []types.Datum{decimal}
	if n := testing.AllocsPerRun(1000, func() { _ = acc.Add(env, args) }); n > 0 {
		t.Errorf("sum(numeric) allocates %v times per row", n)
	}
	texts := []types.Datum{types.Text("hello world"), types.Text("%lo w%")}
	for _, op := range []string{"~~", "=", "<", "~"} {
		o, err := ResolveOperator(op, types.TText, types.TText)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = o.Fn(env, texts) }); n > 0 {
			t.Errorf("%s allocates %v times", op, n)
		}
	}
}

func BenchmarkOperators(b *testing.B) {
	env := &Env{}
	num, _ := types.ParseText(types.TNumeric, "12345.67", nil)
	for _, c := range []struct {
		name, op string
		t        types.Type
		args     []types.Datum
	}{
		{"int4+int4", "+", types.TInt4, []types.Datum{types.Int(3), types.Int(4)}},
		{"int8*int8", "*", types.TInt8, []types.Datum{types.Int(3), types.Int(4)}},
		{"numeric+numeric", "+", types.TNumeric, []types.Datum{num, num}},
		{"numeric*numeric", "*", types.TNumeric, []types.Datum{num, num}},
		{"numeric/numeric", "/", types.TNumeric, []types.Datum{num, num}},
		{"text=text", "=", types.TText, []types.Datum{types.Text("hello"), types.Text("world")}},
		{"text~~text", "~~", types.TText, []types.Datum{types.Text("hello world"), types.Text("h%o_w%d")}},
		{"text~text", "~", types.TText, []types.Datum{types.Text("hello world"), types.Text("^h.*d$")}},
	} {
		o, err := ResolveOperator(c.op, c.t, c.t)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = o.Fn(env, c.args)
			}
		})
	}
}

func TestCastsDoNotAllocate(t *testing.T) {
	// Goal: casts between numbers do not allocate, and widening casts are no-ops. Method: count allocations.
	env := &Env{}
	for _, c := range []struct{ from, to types.Type }{{types.TInt4, types.TInt8}, {types.TInt8, types.TInt4}, {types.TInt4, types.TFloat8}, {types.TTimestamp, types.TDate}} {
		cast, ok := FindCast(c.from, c.to, Assignment)
		if !ok {
			t.Fatalf("no cast from %s to %s", c.from, c.to)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = cast.Apply(env, types.Int(5)) }); n > 0 {
			t.Errorf("%s to %s allocates %v times", c.from, c.to, n)
		}
	}
	if cast, _ := FindCast(types.TInt4, types.TInt8, Implicit); !cast.NoOp() {
		t.Error("widening an integer is not for nothing")
	}
}
