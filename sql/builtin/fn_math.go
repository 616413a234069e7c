package builtin

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// float1 adapts a function of one float that cannot fail.
func float1(f func(float64) float64) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Float(f(a[0].Float())), nil }
}

// float1e is float1 with errors.
func float1e(f func(float64) (float64, error)) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) { return floatDatum(f(a[0].Float())) }
}

// trig adapts a function that is undefined at infinity.
func trig(f func(float64) float64) Func {
	return float1e(func(v float64) (float64, error) {
		if math.IsInf(v, 0) {
			return 0, errInputRange()
		}
		r := f(v)
		if math.IsInf(r, 0) {
			return 0, errFloatOverflow()
		}
		return r, nil
	})
}

// unboundedTrig is trig for functions with poles.
func unboundedTrig(f func(float64) float64) Func {
	return float1e(func(v float64) (float64, error) {
		if math.IsInf(v, 0) {
			return 0, errInputRange()
		}
		return f(v), nil
	})
}

// arc adapts a function on [-1, 1].
func arc(f func(float64) float64) Func {
	return float1e(func(v float64) (float64, error) {
		if v < -1 || v > 1 {
			return 0, errInputRange()
		}
		return f(v), nil
	})
}

func errInputRange() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "input is out of range")
}

func numeric1(f func(*apd.Decimal) (*apd.Decimal, error)) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		out, err := f(a[0].Decimal())
		return stepNumeric(env, out, err)
	}
}

func mathFuncs() []decl {
	out := []decl{
		{sig: "pi() float8", fn: func(*Env, []types.Datum) (types.Datum, error) { return types.Float(math.Pi), nil }},
		{sig: "random() float8", flags: volatile, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			return types.Float(env.rand().Float64()), nil
		}},
		{sig: "setseed(float8) void", flags: volatile, fn: setSeed},
		{sig: "cbrt(float8) float8", fn: cbrtFloat},
		{sig: "sqrt(float8) float8", fn: sqrtFloat}, {sig: "sqrt(numeric) numeric", fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			out, err := SqrtNumeric(env, a[0].Decimal())
			return stepNumeric(env, out, err)
		}},
		{sig: "exp(float8) float8", fn: float1e(expFloat)}, {sig: "exp(numeric) numeric", fn: numeric1(ExpNumeric)},
		{sig: "ln(float8) float8", fn: float1e(logFloat(logExact))}, {sig: "ln(numeric) numeric", fn: numeric1(LnNumeric)},
		{sig: "log(numeric,numeric) numeric", fn: seriesNumericFunc(LogNumeric)},
		{sig: "div(numeric,numeric) numeric", fn: numericFunc(DivTruncNumeric)},
		{sig: "round(float8) float8", fn: float1(math.RoundToEven)}, {sig: "round(numeric) numeric", fn: roundTo(types.RoundNumeric)},
		{sig: "round(numeric,int4) numeric", fn: roundTo(types.RoundNumeric)},
		{sig: "trunc(float8) float8", fn: float1(math.Trunc)}, {sig: "trunc(numeric) numeric", fn: roundTo(types.TruncNumeric)},
		{sig: "trunc(numeric,int4) numeric", fn: roundTo(types.TruncNumeric)},
		{sig: "sign(float8) float8", fn: float1(signFloat)}, {sig: "sign(numeric) numeric", fn: numeric1(signNumeric)},
		{sig: "floor(float8) float8", fn: float1(math.Floor)}, {sig: "floor(numeric) numeric", fn: numeric1(floorNumeric)},
		{sig: "degrees(float8) float8", fn: float1e(func(v float64) (float64, error) { return DivFloat8(v, math.Pi/180) })},
		{sig: "radians(float8) float8", fn: float1e(func(v float64) (float64, error) { return MulFloat8(v, math.Pi/180) })},
		{sig: "scale(numeric) int4", fn: numericScale},
		{sig: "min_scale(numeric) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return numericScale(nil, []types.Datum{types.Decimal(trimScale(a[0].Decimal()))})
		}},
		{sig: "trim_scale(numeric) numeric", fn: numeric1(func(d *apd.Decimal) (*apd.Decimal, error) { return trimScale(d), nil })},
		{sig: "factorial(int8) numeric", fn: factorial},
		{sig: "atan2(float8,float8) float8", fn: floatFunc(func(a, b float64) (float64, error) { return atan2Exact(a, b), nil })},
		{sig: "atan2d(float8,float8) float8", fn: floatFunc(func(a, b float64) (float64, error) {
			return atan2Exact(a, b) / atanExact(1) * 45, nil
		})},
		{sig: "width_bucket(float8,float8,float8,int4) int4", fn: widthBucketFloat},
		{sig: "width_bucket(numeric,numeric,numeric,int4) int4", fn: widthBucketNumeric},
		{sig: "width_bucket(anycompatible,anycompatiblearray) int4", bind: widthBucketArray},
	}
	for _, name := range []string{"ceil", "ceiling"} {
		out = append(out, decl{sig: name + "(float8) float8", fn: float1(math.Ceil)}, decl{sig: name + "(numeric) numeric", fn: numeric1(ceilNumeric)})
	}
	for _, name := range []string{"power", "pow"} {
		out = append(out, decl{sig: name + "(float8,float8) float8", fn: floatFunc(PowFloat8)},
			decl{sig: name + "(numeric,numeric) numeric", fn: seriesNumericFunc(PowNumeric)})
	}
	for _, name := range []string{"log", "log10"} {
		out = append(out, decl{sig: name + "(float8) float8", fn: float1e(logFloat(log10Exact))},
			decl{sig: name + "(numeric) numeric", fn: numeric1(func(d *apd.Decimal) (*apd.Decimal, error) {
				return LogNumeric(types.NewNumeric(10), d)
			})})
	}
	out = append(out, absModFuncs()...)
	return append(out, trigFuncs()...)
}

func absModFuncs() []decl {
	var out []decl
	for _, t := range []string{"int2", "int4", "int8"} {
		oid := mustType(t).OID
		out = append(out,
			decl{sig: "abs(" + t + ") " + t, fn: func(_ *Env, a []types.Datum) (types.Datum, error) { return intDatum(AbsInt(a[0].Int(), oid)) }},
			decl{sig: "mod(" + t + "," + t + ") " + t, fn: intFunc(ModInt)})
		if t != "int2" {
			out = append(out, decl{sig: "gcd(" + t + "," + t + ") " + t, fn: intFunc(func(a, b int64) (int64, error) { return gcdInt(a, b, oid) })},
				decl{sig: "lcm(" + t + "," + t + ") " + t, fn: intFunc(func(a, b int64) (int64, error) { return lcmInt(a, b, oid) })})
		}
	}
	for _, t := range []string{"float4", "float8"} {
		out = append(out, decl{sig: "abs(" + t + ") " + t, fn: float1(math.Abs)})
	}
	return append(out, decl{sig: "abs(numeric) numeric", fn: absNumeric}, decl{sig: "mod(numeric,numeric) numeric", fn: numericFunc(ModNumeric)},
		decl{sig: "gcd(numeric,numeric) numeric", fn: seriesNumericFunc(gcdNumeric)}, decl{sig: "lcm(numeric,numeric) numeric", fn: seriesNumericFunc(lcmNumeric)})
}

func trigFuncs() []decl {
	var out []decl
	add := func(name string, fn Func) { out = append(out, decl{sig: name + "(float8) float8", fn: fn}) }
	add("sin", trig(sinExact))
	add("cos", trig(cosExact))
	add("tan", trig(tanExact))
	add("cot", unboundedTrig(func(v float64) float64 { return 1 / tanExact(v) }))
	add("asin", arc(asinExact))
	add("acos", arc(acosExact))
	add("atan", float1(atanExact))
	add("sinh", float1(math.Sinh))
	add("cosh", float1(math.Cosh))
	add("tanh", float1(math.Tanh))
	add("asinh", float1(math.Asinh))
	add("acosh", float1e(func(v float64) (float64, error) {
		if v < 1 {
			return 0, errInputRange()
		}
		return math.Acosh(v), nil
	}))
	add("atanh", arc(math.Atanh))
	add("sind", trig(sinDegrees))
	add("cosd", trig(cosDegrees))
	add("tand", unboundedTrig(tanDegrees))
	add("cotd", unboundedTrig(cotDegrees))
	add("asind", arc(arcSinDegrees))
	add("acosd", arc(arcCosDegrees))
	add("atand", float1(func(v float64) float64 { return atanExact(v) / atanExact(1) * 45 }))
	return out
}

func setSeed(env *Env, a []types.Datum) (types.Datum, error) {
	seed := a[0].Float()
	if !(seed >= -1 && seed <= 1) {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "setseed parameter %s is out of allowed range [-1,1]",
			types.AppendText(nil, a[0], types.TFloat8, nil))
	}
	env.rand().Seed(seed)
	return types.Text(""), nil
}

func expFloat(v float64) (float64, error) {
	r := expExact(v)
	if math.IsInf(r, 0) && !math.IsInf(v, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && !math.IsInf(v, 0) {
		return 0, errFloatUnderflow()
	}
	return r, nil
}

func logFloat(f func(float64) float64) func(float64) (float64, error) {
	return func(v float64) (float64, error) {
		switch {
		case v == 0:
			return 0, pgerror.New(invalidLogArgument, "cannot take logarithm of zero")
		case v < 0:
			return 0, pgerror.New(invalidLogArgument, "cannot take logarithm of a negative number")
		}
		return f(v), nil
	}
}

func signFloat(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func signNumeric(d *apd.Decimal) (*apd.Decimal, error) {
	if isNaN(d) {
		return d, nil
	}
	return types.NewNumeric(int64(signum(d))), nil
}

// roundTo rounds or truncates to a number of digits, within the limits of a numeric.
func roundTo(f func(*apd.Decimal, int) *apd.Decimal) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		scale := int64(0)
		if len(a) == 2 {
			scale = min(max(a[1].Int(), -types.MaxNumericIntegerDigits-1), types.MaxNumericScale)
		}
		return numericDatum(types.CheckNumeric(f(a[0].Decimal(), int(scale))))
	}
}

func floorNumeric(d *apd.Decimal) (*apd.Decimal, error) {
	t := types.TruncNumeric(d, 0)
	if d.Negative && types.CompareNumeric(t, d) != 0 {
		return SubNumeric(t, types.NewNumeric(1))
	}
	return t, nil
}

func ceilNumeric(d *apd.Decimal) (*apd.Decimal, error) {
	t := types.TruncNumeric(d, 0)
	if !d.Negative && types.CompareNumeric(t, d) != 0 {
		return AddNumeric(t, types.NewNumeric(1))
	}
	return t, nil
}

func numericScale(_ *Env, a []types.Datum) (types.Datum, error) {
	d := a[0].Decimal()
	if d.Form != apd.Finite {
		return types.Null, nil
	}
	return types.Int(int64(-d.Exponent)), nil
}

// trimScale removes trailing zeros after the point.
func trimScale(d *apd.Decimal) *apd.Decimal {
	if d.Form != apd.Finite || d.Exponent == 0 {
		return d
	}
	if d.Coeff.Sign() == 0 {
		return types.NewNumeric(0)
	}
	var r apd.Decimal
	r.Reduce(d)
	if r.Exponent > 0 {
		return types.TruncNumeric(d, 0)
	}
	return &r
}

func factorial(env *Env, a []types.Datum) (types.Datum, error) {
	n := a[0].Int()
	if n < 0 {
		return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "factorial of a negative number is undefined")
	}
	if n > 32177 {
		return types.Null, errNumericOverflow()
	}
	d := types.NewNumeric(1)
	for i := int64(2); i <= n; i++ {
		if i%256 == 0 && env.Context().Err() != nil {
			return types.Null, errCanceled(env)
		}
		d.Coeff.Mul(&d.Coeff, apd.NewBigInt(i))
	}
	return numericDatum(types.CheckNumeric(d))
}

func gcdInt(a, b int64, t types.OID) (int64, error) {
	for b != 0 {
		if b == -1 { // MinInt64 % -1 would trap
			a, b = 1, 0
			break
		}
		a, b = b, a%b
	}
	return AbsInt(a, t)
}

func lcmInt(a, b int64, t types.OID) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	g, err := gcdInt(a, b, t)
	if err != nil {
		return 0, err
	}
	r, err := MulInt8(a/g, b)
	if err != nil {
		return 0, errIntRange(t)
	}
	if r < 0 {
		return NegInt(r, t)
	}
	return NarrowInt(r, t)
}

func gcdNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		return types.NumericNaN, nil
	}
	out := &apd.Decimal{Exponent: min(a.Exponent, b.Exponent)}
	var space [2]apd.BigInt
	ac, bc := scaledTo(a, out.Exponent, &space[0]), scaledTo(b, out.Exponent, &space[1])
	switch {
	case ac.Sign() == 0:
		out.Coeff.Set(bc)
	case bc.Sign() == 0:
		out.Coeff.Set(ac)
	default:
		out.Coeff.GCD(nil, nil, ac, bc)
	}
	return out, nil
}

func lcmNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		return types.NumericNaN, nil
	}
	scale := int(-min(a.Exponent, b.Exponent))
	if signum(a) == 0 || signum(b) == 0 {
		return numericZero(scale), nil
	}
	g, err := gcdNumeric(a, b)
	if err != nil {
		return nil, err
	}
	r, err := MulNumeric(quotient(a, g, 0, false), b)
	if err != nil {
		return nil, err
	}
	if r.Negative {
		r = NegNumeric(r)
	}
	return types.RoundNumeric(r, scale), nil
}

func errWidthBucket(what string) error { return pgerror.New(invalidWidthBucket, "%s", what) }

func widthBucketFloat(_ *Env, a []types.Datum) (types.Datum, error) {
	v, low, high, count := a[0].Float(), a[1].Float(), a[2].Float(), a[3].Int()
	switch {
	case count <= 0:
		return types.Null, errWidthBucket("count must be greater than zero")
	case math.IsNaN(v) || math.IsNaN(low) || math.IsNaN(high):
		return types.Null, errWidthBucket("operand, lower bound, and upper bound cannot be NaN")
	case math.IsInf(low, 0) || math.IsInf(high, 0):
		return types.Null, errWidthBucket("lower and upper bounds must be finite")
	case low == high:
		return types.Null, errWidthBucket("lower bound cannot equal upper bound")
	}
	if low > high {
		v, low, high = -v, -low, -high
	}
	switch {
	case v < low:
		return types.Int(0), nil
	case v >= high:
		return intDatum(checkInt4(count + 1))
	}
	// Halves keep the span in range when the bounds are the extremes. Like PostgreSQL 15's, a quotient
	// that rounds to 1 lands in the bucket above.
	bucket := int64(float64(count) * ((v/2 - low/2) / (high/2 - low/2)))
	return intDatum(checkInt4(bucket + 1))
}

func widthBucketNumeric(_ *Env, a []types.Datum) (types.Datum, error) {
	v, low, high, count := a[0].Decimal(), a[1].Decimal(), a[2].Decimal(), a[3].Int()
	switch {
	case count <= 0:
		return types.Null, errWidthBucket("count must be greater than zero")
	case isNaN(v) || isNaN(low) || isNaN(high):
		return types.Null, errWidthBucket("operand, lower bound, and upper bound cannot be NaN")
	case isInf(low) || isInf(high):
		return types.Null, errWidthBucket("lower and upper bounds must be finite")
	}
	order := types.CompareNumeric(low, high)
	if order == 0 {
		return types.Null, errWidthBucket("lower bound cannot equal upper bound")
	}
	below, above := types.CompareNumeric(v, low), types.CompareNumeric(v, high)
	if order > 0 {
		below, above = -below, -above
	}
	switch {
	case below < 0:
		return types.Int(0), nil
	case above >= 0:
		return intDatum(checkInt4(count + 1))
	}
	part, err := SubNumeric(v, low)
	if err != nil {
		return types.Null, err
	}
	span, err := SubNumeric(high, low)
	if err != nil {
		return types.Null, err
	}
	if part, err = MulNumeric(part, types.NewNumeric(count)); err != nil {
		return types.Null, err
	}
	bucket, err := DivNumeric(part, span) // rounds, as in PostgreSQL, maybe up to count
	if err != nil {
		return types.Null, err
	}
	n, _ := numericInt64(types.TruncNumeric(bucket, 0))
	return intDatum(checkInt4(n + 1))
}

// widthBucketArray counts the thresholds, sorted upwards, that the operand reaches.
func widthBucketArray(o *Overload) Func {
	elem := o.Args[0]
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[1].Array().NDims() > 1 {
			return types.Null, pgerror.New(pgerror.ArraySubscriptError, "thresholds must be one-dimensional array")
		}
		thresholds := a[1].Array().Elems
		for _, t := range thresholds {
			if t.IsNull() {
				return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "thresholds array must not contain NULLs")
			}
		}
		if !elem.Ordered() {
			return types.Null, errIncomparable(elem)
		}
		low, high := 0, len(thresholds)
		for low < high {
			mid := (low + high) / 2
			if types.Compare(a[0], thresholds[mid], elem) < 0 {
				high = mid
			} else {
				low = mid + 1
			}
		}
		return types.Int(int64(low)), nil
	}
}
