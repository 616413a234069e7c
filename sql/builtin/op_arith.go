package builtin

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

type intOp func(a, b int64) (int64, error)
type floatOp func(a, b float64) (float64, error)
type numericOp func(a, b *apd.Decimal) (*apd.Decimal, error)

func intFunc(op intOp) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(op(a[0].Int(), a[1].Int())) }
}

func floatFunc(op floatOp) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return floatDatum(op(a[0].Float(), a[1].Float())) }
}

func numericFunc(op numericOp) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		out, err := op(a[0].Decimal(), a[1].Decimal())
		if err != nil {
			return types.Null, err
		}
		return types.Decimal(out), env.Step(multiplySteps(out))
	}
}

// multiplySteps is the cost in steps of an operation like a multiplication whose result is d.
func multiplySteps(d *apd.Decimal) int {
	words := d.Coeff.BitLen() / 64
	return 64 + words*words/4
}

// seriesNumericFunc is numericFunc for functions that compute a series.
func seriesNumericFunc(op numericOp) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		out, err := op(a[0].Decimal(), a[1].Decimal())
		return stepNumeric(env, out, err)
	}
}

// stepNumeric counts the steps of a function that computes a series.
func stepNumeric(env *Env, d *apd.Decimal, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	const shortSeries = 20_000
	return types.Decimal(d), env.Step(shortSeries + 16*multiplySteps(d))
}

// arithOps declares the operators on numbers.
func arithOps() []decl {
	out := intArithOps()
	for _, o := range []struct {
		op             string
		float4, float8 floatOp
		numeric        numericOp
	}{
		{"+", AddFloat4, AddFloat8, AddNumeric},
		{"-", SubFloat4, SubFloat8, SubNumeric},
		{"*", MulFloat4, MulFloat8, MulNumeric},
		{"/", DivFloat4, DivFloat8, DivNumeric},
	} {
		f8 := floatFunc(o.float8)
		out = append(out,
			decl{sig: o.op + "(float4,float4) float4", fn: floatFunc(o.float4)},
			decl{sig: o.op + "(float8,float8) float8", fn: f8},
			decl{sig: o.op + "(float4,float8) float8", fn: f8},
			decl{sig: o.op + "(float8,float4) float8", fn: f8},
			decl{sig: o.op + "(numeric,numeric) numeric", fn: numericFunc(o.numeric)})
	}
	out = append(out,
		decl{sig: "%(numeric,numeric) numeric", fn: numericFunc(ModNumeric)},
		decl{sig: "^(float8,float8) float8", fn: floatFunc(PowFloat8)},
		decl{sig: "^(numeric,numeric) numeric", fn: seriesNumericFunc(PowNumeric)},
		decl{sig: "|/(float8) float8", fn: sqrtFloat},
		decl{sig: "||/(float8) float8", fn: cbrtFloat})
	return append(out, signOps()...)
}

// signOps declares the prefix operators + - @ and ~.
func signOps() []decl {
	var out []decl
	for _, t := range []types.Type{types.TInt2, types.TInt4, types.TInt8} {
		name := t.Info().Name
		oid := t.OID
		neg := func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(NegInt(a[0].Int(), oid)) }
		abs := func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(AbsInt(a[0].Int(), oid)) }
		not := func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Int(^a[0].Int()), nil }
		out = append(out, unary("-", name, neg), unary("@", name, abs), unary("~", name, not), unary("+", name, same))
	}
	for _, name := range []string{"float4", "float8"} {
		neg := func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Float(-a[0].Float()), nil }
		abs := func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Float(math.Abs(a[0].Float())), nil }
		out = append(out, unary("-", name, neg), unary("@", name, abs), unary("+", name, same))
	}
	neg := func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.Decimal(NegNumeric(a[0].Decimal())), nil
	}
	return append(out, unary("-", "numeric", neg), unary("@", "numeric", absNumeric), unary("+", "numeric", same))
}

func unary(op, t string, fn Func) decl { return decl{sig: op + "(" + t + ") " + t, fn: fn} }

func same(_ *Env, a []types.Datum) (types.Datum, error) { return a[0], nil }

func absNumeric(_ *Env, a []types.Datum) (types.Datum, error) {
	d := a[0].Decimal()
	if d.Negative {
		d = NegNumeric(d)
	}
	return types.Decimal(d), nil
}

// NegInt is -n for an integer type (22003).
func NegInt(n int64, t types.OID) (int64, error) {
	if n == math.MinInt64 {
		return 0, errInt8Range()
	}
	return NarrowInt(-n, t)
}

// AbsInt is abs(n) for an integer type (22003).
func AbsInt(n int64, t types.OID) (int64, error) {
	if n >= 0 {
		return n, nil
	}
	return NegInt(n, t)
}

// intArithOps declares + - * / of all pairs of integer types, % & | # of equal ones, and shifts.
func intArithOps() []decl {
	var out []decl
	width := map[string]int{"int2": 0, "int4": 1, "int8": 2}
	names := []string{"int2", "int4", "int8"}
	for _, o := range []struct {
		op      string
		byWidth [3]intOp
	}{
		{"+", [3]intOp{AddInt2, AddInt4, AddInt8}},
		{"-", [3]intOp{SubInt2, SubInt4, SubInt8}},
		{"*", [3]intOp{MulInt2, MulInt4, MulInt8}},
		{"/", [3]intOp{DivInt2, DivInt4, DivInt8}},
	} {
		for _, l := range names {
			for _, r := range names {
				w := max(width[l], width[r])
				out = append(out, decl{sig: o.op + "(" + l + "," + r + ") " + names[w], fn: intFunc(o.byWidth[w])})
			}
		}
	}
	for _, t := range names {
		both := "(" + t + "," + t + ") " + t
		bits := int64(16) << width[t]
		oid := mustType(t).OID
		out = append(out,
			decl{sig: "%" + both, fn: intFunc(ModInt)},
			decl{sig: "&" + both, fn: intFunc(func(a, b int64) (int64, error) { return a & b, nil })},
			decl{sig: "|" + both, fn: intFunc(func(a, b int64) (int64, error) { return a | b, nil })},
			decl{sig: "#" + both, fn: intFunc(func(a, b int64) (int64, error) { return a ^ b, nil })},
			decl{sig: "<<(" + t + ",int4) " + t, fn: intFunc(func(a, b int64) (int64, error) { return wrapInt(a<<shiftCount(b, bits), oid), nil })},
			decl{sig: ">>(" + t + ",int4) " + t, fn: intFunc(func(a, b int64) (int64, error) { return wrapInt(a>>shiftCount(b, bits), oid), nil })})
	}
	return out
}

// shiftCount masks a count as the processor does: PostgreSQL shifts smallint as a 32-bit word.
func shiftCount(n, bits int64) uint64 {
	if bits < 64 {
		return uint64(n) & 31
	}
	return uint64(n) & 63
}

// wrapInt truncates n to the bits of an integer type.
func wrapInt(n int64, t types.OID) int64 {
	switch t {
	case types.OIDInt2:
		return int64(int16(n))
	case types.OIDInt4:
		return int64(int32(n))
	}
	return n
}

func sqrtFloat(_ *Env, a []types.Datum) (types.Datum, error) {
	v := a[0].Float()
	if v < 0 {
		return types.Null, pgerror.New(invalidPowerArgument, "cannot take square root of a negative number")
	}
	return types.Float(math.Sqrt(v)), nil
}

func cbrtFloat(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Float(math.Cbrt(a[0].Float())), nil
}

// SQLSTATEs of arguments outside of a function's domain.
const (
	invalidLogArgument   pgerror.Code = "2201E"
	invalidPowerArgument pgerror.Code = "2201F"
	invalidWidthBucket   pgerror.Code = "2201G"
)

// PowFloat8 is power(double precision, double precision).
func PowFloat8(a, b float64) (float64, error) {
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		if a == 1 || b == 0 {
			return 1, nil
		}
		return math.NaN(), nil
	case a == 0 && b < 0:
		return 0, pgerror.New(invalidPowerArgument, "zero raised to a negative power is undefined")
	case a < 0 && math.Floor(b) != b:
		return 0, pgerror.New(invalidPowerArgument, "a negative number raised to a non-integer power yields a complex result")
	}
	r := powExact(a, b)
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return r, nil
	}
	if math.IsInf(r, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && a != 0 {
		return 0, errFloatUnderflow()
	}
	return r, nil
}
