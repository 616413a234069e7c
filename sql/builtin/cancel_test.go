package builtin

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/types"
)

// longValues are a small and a large value of each type.
func longValues() map[types.OID][2]types.Datum {
	text := types.Text(strings.Repeat("aB é-", 5<<20))
	hexadecimal := types.Text(`\x` + strings.Repeat("ab", 8<<20))
	digits, _ := types.ParseText(types.TNumeric, strings.Repeat("7", 60000)+"."+strings.Repeat("3", 6000), nil)
	elems := make([]types.Datum, 1<<20)
	for i := range elems {
		elems[i] = types.Text("a long element")
	}
	small := types.NewArray(&types.Array{Elem: types.TText, Elems: elems[:2]})
	return map[types.OID][2]types.Datum{
		types.OIDText: {types.Text("a"), text}, types.OIDBPChar: {types.Text("a"), text}, types.OIDVarchar: {types.Text("a"), text},
		types.OIDBytea:   {types.Bytes([]byte("a")), types.Bytes(bytes.Repeat([]byte{0xff, 'a', '\\'}, 8<<20))},
		types.OIDName:    {types.Text("hex"), types.Text("utf8")},
		types.OIDNumeric: {types.Decimal(apd.New(25, -1)), digits}, types.OIDUnknown: {hexadecimal, text},
		types.OIDInt4: {types.Int(1), types.Int(1 << 20)}, types.OIDInt8: {types.Int(1), types.Int(1 << 14)}, types.OIDInt2: {types.Int(1), types.Int(1 << 10)},
		types.OIDBool:   {types.Bool(true), types.Bool(false)},
		types.OIDFloat8: {types.Float(1.5), types.Float(1e300)}, types.OIDFloat4: {types.Float(1.5), types.Float(1e30)},
		types.TText.ArrayOf().OID: {small, types.NewArray(&types.Array{Elem: types.TText, Elems: elems})},
	}
}

// Goal: a cancel ends every function and operator. Method: call each overload with small and large arguments in all
// combinations, in a cancelled statement; it must end soon, with any result. Callers poll before a call with large
// arguments; this test omits that.
func TestCancelReachesEveryFunction(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	// Generous: a function that does not poll takes much longer for a value of 1 GB.
	const limit = 1500 * time.Millisecond
	values := longValues()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls, slowest := 0, time.Duration(0)
	call := func(o *Overload) {
		resolved, err := o.resolved(concrete(o.Args))
		if err != nil {
			return
		}
		for choice := range 1 << min(len(resolved.Args), 4) {
			args := make([]types.Datum, len(resolved.Args))
			for i, at := range resolved.Args {
				v, ok := values[at.OID]
				if !ok {
					return
				}
				args[i] = v[choice>>min(i, 3)&1]
			}
			took, err := time.Hour, error(nil)
			for n := 0; took > limit && n < 4; n++ { // A busy machine may hold up a call, but not each time.
				begin := time.Now()
				_, err = resolved.Fn(&Env{Ctx: ctx}, args)
				took = min(took, time.Since(begin))
			}
			calls++
			slowest = max(slowest, took)
			if took > limit {
				t.Errorf("%s, arguments %b: %v, error %v", CallSignature(o.Name, resolved.Args), choice, took, err)
			}
		}
	}
	for _, registry := range []overloads{functions(), operators()} {
		for _, name := range sortedNames(registry) {
			if name == "pg_sleep" {
				continue
			}
			for _, o := range registry[name] {
				call(o)
			}
		}
	}
	t.Logf("%d calls, the slowest took %v", calls, slowest)
	if calls < 1000 {
		t.Errorf("only %d calls: are the values right?", calls)
	}
}

// Goal: a cancel ends the array operators, which compare every element with every other. Method: arrays without a
// common element, or with the common element last.
func TestCancelReachesArrayOperators(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	array := func(from int64) types.Datum {
		elems := make([]types.Datum, 100_000)
		for i := range elems {
			elems[i] = types.Int(from + int64(i))
		}
		return types.NewArray(&types.Array{Elem: types.TInt4, Elems: elems})
	}
	low, high := array(0), array(1_000_000)
	for _, c := range []struct {
		operator string
		a, b     types.Datum
	}{{"&&", low, high}, {"@>", low, low}, {"<@", low, low}} {
		for _, o := range operators()[c.operator] {
			if len(o.Args) != 2 || o.Args[0].OID != types.OIDAnyArray {
				continue
			}
			resolved, err := o.resolved([]types.Type{types.TInt4.ArrayOf(), types.TInt4.ArrayOf()})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			_, err = resolved.Fn(&Env{Ctx: ctx}, []types.Datum{c.a, c.b})
			if took := time.Since(begin); err == nil || took > 10*time.Second {
				t.Errorf("%s ended after %v with %v", c.operator, took, err)
			}
		}
	}
}

// Goal: parsing the text of an array is limited by the statement's memory, and ends on a cancel. Method: a text of few
// bytes for each element, with too little memory, and with a cancelled statement.
func TestLongArrayTextIsBounded(t *testing.T) {
	text := types.Text("{" + strings.Repeat("1,", 4<<20) + "1}")
	array := types.TInt4.ArrayOf()
	cast, ok := FindCast(types.TText, array, Explicit)
	if !ok {
		t.Fatal("no cast")
	}
	account := memory.NewAccount(memory.NewPool("a test", 64<<20), 0)
	var exceeded *memory.ExceededError
	if _, err := cast.Apply(&Env{Memory: &account}, text); !errors.As(err, &exceeded) {
		t.Errorf("beyond the memory: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := cast.Apply(&Env{Ctx: ctx}, text); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if d, err := cast.Apply(&Env{Ctx: context.Background()}, text); err != nil || len(d.Array().Elems) != 4<<20+1 {
		t.Errorf("with all it needs: %v", err)
	}
}

// concrete replaces polymorphic types with concrete ones.
func concrete(args []types.Type) []types.Type {
	out := make([]types.Type, len(args))
	for i, t := range args {
		out[i] = t
		if t.OID == types.OIDAny || t.IsPolymorphic() {
			out[i] = types.TText
			if strings.HasSuffix(t.Info().Name, "array") && !strings.HasSuffix(t.Info().Name, "nonarray") {
				out[i] = types.TText.ArrayOf()
			}
		}
	}
	return out
}

// Goal: the work between two polls of an expression is bounded also if every call is short: a statement that computes
// for many rows ends soon after a cancel.
func TestStepPolls(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	env := &Env{Ctx: ctx}
	for i := range 1 << 20 {
		if _, err := stepNumeric(env, types.NewNumeric(1), nil); err != nil {
			if i > 100 {
				t.Fatalf("the poll came after %d calls", i)
			}
			return
		}
	}
	t.Fatal("no poll")
}
