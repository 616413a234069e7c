package builtin

import (
	"testing"
	"time"

	"github.com/percodb/percodb/sql/types"
)

// FuzzText calls every function of texts with arbitrary text. Goal: no panic, no hang, results of the
// declared type. Method: native fuzzing; the seeds run with the tests.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "äö\xff", "2024-02-29", "%_\\", "(a)(b)\\1", "FMYYYY-MM-DD", "999D99MI", "%1$s%-10I", "\\m", "[[:alpha:]", "a{1,300}", "İ"} {
		f.Add(s, "abc", int64(1))
		f.Add("Hello 2024-02-29", s, int64(-3))
	}
	env := &Env{Clock: func() int64 { return 0 }}
	f.Fuzz(func(t *testing.T, a, b string, n int64) {
		if types.ValidateText([]byte(a)) != nil || types.ValidateText([]byte(b)) != nil || len(a)+len(b) > 200 {
			t.Skip()
		}
		for name, list := range functions() {
			for _, o := range list {
				if o.Volatility != Volatile {
					callWithText(t, env, name, o, a, b, n)
				}
			}
		}
		for _, op := range []string{"~~", "~~*", "~", "~*", "||"} {
			o, err := ResolveOperator(op, types.TText, types.TText)
			if err != nil {
				t.Fatal(err)
			}
			callWithText(t, env, op, o, a, b, n)
		}
	})
}

// callWithText calls an overload of texts and integers with them.
func callWithText(t *testing.T, env *Env, name string, o *Overload, a, b string, n int64) {
	args := make([]types.Datum, len(o.Args))
	texts := []string{a, b}
	for i, at := range o.Args {
		switch at.OID {
		case types.OIDText:
			args[i] = types.Text(texts[i%2])
		case types.OIDInt4:
			args[i] = types.Int(int64(int32(n) % 100_000))
		case types.OIDInt8:
			args[i] = types.Int(n)
		case types.OIDTimestamp, types.OIDTimestamptz:
			args[i] = types.Int(n % (1 << 60))
		case types.OIDNumeric:
			args[i] = types.Decimal(types.NewNumeric(n))
		default:
			return
		}
	}
	if name == "repeat" || name == "lpad" || name == "rpad" || o.Fn == nil || len(args) == 0 || name == "factorial" {
		return
	}
	start := time.Now()
	d, err := o.Fn(env, args)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%s(%q, %q, %d) took %v", CallSignature(name, o.Args), a, b, n, took)
	}
	if err == nil && !d.IsNull() && d.Kind() != o.Ret.KindOf() {
		t.Errorf("%s(%q, %q, %d) has kind %d", CallSignature(name, o.Args), a, b, n, d.Kind())
	}
}
