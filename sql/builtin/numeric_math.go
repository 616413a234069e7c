package builtin

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The transcendental functions on numeric compute with guard digits and round to the scale that
// PostgreSQL chooses, which depends on an estimate of the result's weight.

const (
	guardDigits = 12
	// maxLnResult bounds |ln(result)| of what a numeric may hold, as PostgreSQL does.
	maxLnResult = 6000
	log10e      = 0.434294481903252
	ln10        = 2.302585092994046
)

func clampScale(scale int, atLeast ...int) int {
	for _, s := range atLeast {
		scale = max(scale, s)
	}
	return min(max(scale, 0), maxDisplayScale)
}

func errNumericOverflow() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value overflows numeric format")
}

func numericZero(scale int) *apd.Decimal { return &apd.Decimal{Exponent: -int32(scale)} }

// SqrtNumeric is sqrt(numeric).
func SqrtNumeric(env *Env, a *apd.Decimal) (*apd.Decimal, error) {
	switch {
	case isNaN(a):
		return a, nil
	case signum(a) < 0:
		return nil, pgerror.New(invalidPowerArgument, "cannot take square root of a negative number")
	case isInf(a):
		return a, nil
	}
	weight, _ := leadingGroup(a)
	return sqrtToScale(env, a, clampScale(minSignificantDigits-(weight*2+1), -int(a.Exponent)))
}

// sqrtToScale is the root of a finite number that is not negative.
func sqrtToScale(env *Env, a *apd.Decimal, scale int) (*apd.Decimal, error) {
	// floor(sqrt(a·10^2(scale+1))) has one digit more than the result.
	var c apd.BigInt
	shift := 2*(scale+1) + int(a.Exponent)
	if shift >= 0 {
		c.Mul(&a.Coeff, types.Pow10(shift))
	} else {
		c.Quo(&a.Coeff, types.Pow10(-shift))
	}
	root := &apd.Decimal{Exponent: -int32(scale + 1)}
	r, err := wholeSqrt(env, c.MathBigInt())
	if err != nil {
		return nil, err
	}
	root.Coeff.SetMathBigInt(r)
	return types.RoundNumeric(root, scale), nil
}

// wholeSqrt returns the integer part of the root of n >= 0, by Newton's method with a precision that doubles in each
// step, so that all steps together take little more than one division.
func wholeSqrt(env *Env, n *big.Int) (*big.Int, error) {
	if n.BitLen() <= 1024 {
		return new(big.Int).Sqrt(n), nil
	}
	// With c = (bits-1)/2, root is within 1 of the root of n shifted right by 2c-2d, for d = c>>s.
	c := (n.BitLen() - 1) / 2
	root, top, d := big.NewInt(1), new(big.Int), 0
	for s := bits.Len(uint(c)) - 1; s >= 0; s-- {
		e := d
		d = c >> s
		top.Rsh(n, uint(2*c-e-d+1))
		top.Quo(top, root)
		root.Lsh(root, uint(d-e-1))
		root.Add(root, top)
		if err := env.Step(d / 64 * (d / 64) / 4); err != nil {
			return nil, err
		}
	}
	if top.Mul(root, root).Cmp(n) > 0 {
		root.Sub(root, big.NewInt(1))
	}
	return root, nil
}

// approx returns a's value as a float, ±Inf if it is out of range.
func approx(a *apd.Decimal) float64 {
	v, err := a.Float64()
	if err != nil && v == 0 && a.Exponent >= 0 {
		return math.Inf(signum(a))
	}
	return v
}

// ExpNumeric is exp(numeric).
func ExpNumeric(a *apd.Decimal) (*apd.Decimal, error) {
	switch {
	case isNaN(a):
		return a, nil
	case isInf(a) && a.Negative:
		return types.NewNumeric(0), nil
	case isInf(a):
		return a, nil
	}
	v := approx(a)
	weight := max(-2000, min(2000, v*log10e))
	scale := clampScale(minSignificantDigits-int(weight), -int(a.Exponent))
	return expToScale(func(prec uint) *big.Float { return floatOf(a, prec) }, v, scale)
}

// expToScale computes e^x to a scale; v approximates x, and exponent computes x to a precision.
func expToScale(exponent func(prec uint) *big.Float, v float64, scale int) (*apd.Decimal, error) {
	if math.Abs(v) >= maxLnResult {
		if v > 0 {
			return nil, errNumericOverflow()
		}
		return numericZero(scale), nil
	}
	digits := scale + int(v*log10e) + guardDigits
	if digits < 1 {
		return numericZero(scale), nil
	}
	prec := digitBits(digits)
	x := exponent(prec + guardBits) // |x| has 13 bits before the point.
	return types.CheckNumeric(numericOf(bigExp(x, prec), scale))
}

// lnWeight estimates the decimal weight of ln(a).
func lnWeight(a *apd.Decimal) int {
	if signum(a) <= 0 {
		return 0
	}
	v := approx(a)
	if v >= 0.9 && v <= 1.1 {
		x, _ := SubNumeric(a, types.NewNumeric(1))
		if signum(x) == 0 {
			return 0
		}
		weight, first := leadingGroup(x)
		return weight*4 + int(math.Log10(float64(first)))
	}
	digits := int(apd.NumDigits(&a.Coeff))
	var top apd.BigInt
	keep := min(digits, 8)
	top.Quo(&a.Coeff, types.Pow10(digits-keep))
	ln := math.Log(float64(top.Int64())) + float64(digits-keep+int(a.Exponent))*ln10
	return int(math.Log10(math.Abs(ln)))
}

func checkLogArgument(a *apd.Decimal) error {
	switch signum(a) {
	case -1:
		return pgerror.New(invalidLogArgument, "cannot take logarithm of a negative number")
	case 0:
		return pgerror.New(invalidLogArgument, "cannot take logarithm of zero")
	}
	return nil
}

// LnNumeric is ln(numeric).
func LnNumeric(a *apd.Decimal) (*apd.Decimal, error) {
	if isNaN(a) {
		return a, nil
	}
	if err := checkLogArgument(a); err != nil {
		return nil, err
	}
	if isInf(a) {
		return a, nil
	}
	weight := lnWeight(a)
	scale := clampScale(minSignificantDigits-weight, -int(a.Exponent))
	return numericOf(lnFloat(a, digitBits(scale+max(weight, 0)+guardDigits)), scale), nil
}

// lnFloat is ln(a) of a finite a > 0.
func lnFloat(a *apd.Decimal, prec uint) *big.Float {
	// If a is close to 1, the digits in which they agree are lost.
	lost := 0
	if v := approx(a); v > 0.9 && v < 1.1 {
		if d, _ := SubNumeric(a, types.NewNumeric(1)); signum(d) != 0 {
			lost = max(0, -int(apd.NumDigits(&d.Coeff))-int(d.Exponent)+1)
		}
	}
	return bigLn(floatOf(a, prec+guardBits+digitBits(lost)), prec)
}

// LogNumeric is log(base, a).
func LogNumeric(base, a *apd.Decimal) (*apd.Decimal, error) {
	if isNaN(base) || isNaN(a) {
		return types.NumericNaN, nil
	}
	if err := checkLogArgument(base); err != nil {
		return nil, err
	}
	if err := checkLogArgument(a); err != nil {
		return nil, err
	}
	switch {
	case isInf(base) && isInf(a):
		return types.NumericNaN, nil
	case isInf(base):
		return types.NewNumeric(0), nil
	case isInf(a):
		return a, nil
	}
	baseWeight, weight := lnWeight(base), lnWeight(a)
	scale := clampScale(minSignificantDigits-(weight-baseWeight), -int(base.Exponent), -int(a.Exponent))
	prec := digitBits(scale + max(weight-baseWeight, 0) + guardDigits)
	lnBase := lnFloat(base, prec)
	if lnBase.Sign() == 0 {
		return nil, ErrDivisionByZero()
	}
	return numericOf(new(big.Float).SetPrec(prec).Quo(lnFloat(a, prec), lnBase), scale), nil
}

// PowNumeric is power(numeric, numeric).
func PowNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		return powSpecial(a, b)
	}
	whole := types.TruncNumeric(b, 0)
	isInt := types.CompareNumeric(whole, b) == 0
	switch {
	case signum(a) == 0 && signum(b) < 0:
		return nil, pgerror.New(invalidPowerArgument, "zero raised to a negative power is undefined")
	case signum(a) < 0 && !isInt:
		return nil, pgerror.New(invalidPowerArgument, "a negative number raised to a non-integer power yields a complex result")
	}
	if n, ok := numericInt64(whole); ok && isInt && n == int64(int32(n)) {
		return powInt(a, n, clampScale(minSignificantDigits, -int(a.Exponent)))
	}
	if signum(a) == 0 {
		return numericZero(minSignificantDigits), nil
	}
	return powByLog(a, b, isInt)
}

// powSpecial handles NaN and infinities as C99's pow does.
func powSpecial(a, b *apd.Decimal) (*apd.Decimal, error) {
	one := types.NewNumeric(1)
	isOne := a.Form == apd.Finite && types.CompareNumeric(a, one) == 0
	switch {
	case signum(b) == 0 && !isNaN(b), isOne:
		return one, nil
	case isNaN(a) || isNaN(b):
		return types.NumericNaN, nil
	case signum(a) == 0 && signum(b) < 0:
		return nil, pgerror.New(invalidPowerArgument, "zero raised to a negative power is undefined")
	case isInf(b):
		if signum(a) == 0 {
			return types.NewNumeric(0), nil
		}
		abs := a
		if a.Negative {
			abs = NegNumeric(a)
		}
		switch c := types.CompareNumeric(abs, one); {
		case c == 0:
			return one, nil
		case c > 0 == (signum(b) > 0):
			return types.NumericInf, nil
		}
		return types.NewNumeric(0), nil
	}
	// a is infinite, b finite and not zero.
	if signum(b) < 0 {
		if a.Negative && types.CompareNumeric(types.TruncNumeric(b, 0), b) != 0 {
			return nil, pgerror.New(invalidPowerArgument, "a negative number raised to a non-integer power yields a complex result")
		}
		return types.NewNumeric(0), nil
	}
	if !a.Negative {
		return types.NumericInf, nil
	}
	whole := types.TruncNumeric(b, 0)
	if types.CompareNumeric(whole, b) != 0 {
		return nil, pgerror.New(invalidPowerArgument, "a negative number raised to a non-integer power yields a complex result")
	}
	if whole.Coeff.Bit(0) == 1 {
		return types.NumericNegInf, nil
	}
	return types.NumericInf, nil
}

// powInt is a to an integer power, to a scale.
func powInt(a *apd.Decimal, n int64, scale int) (*apd.Decimal, error) {
	switch n {
	case 0:
		return types.RoundNumeric(types.NewNumeric(1), scale), nil
	case 1:
		return types.RoundNumeric(a, scale), nil
	}
	if signum(a) == 0 {
		return numericZero(scale), nil
	}
	log := (math.Log10(leadingFloat(a)) + float64(trailingPower(a))) * float64(n)
	switch {
	case log > 3*math.MaxInt16*4:
		return nil, errNumericOverflow()
	case log+1 < float64(-scale) || log+1 < -maxDisplayScale:
		return numericZero(scale), nil
	}
	digits := 1 + scale + int(log) + int(math.Log(math.Abs(float64(n)))) + guardDigits
	if digits < 1 {
		return numericZero(scale), nil
	}
	if m := absInt(n); apd.NumDigits(&a.Coeff)*m <= int64(max(digits, exactDigits)) {
		return exactPower(a, n, scale)
	}
	prec := digitBits(digits) + guardBits + uint(2*bits.Len64(uint64(absInt(n)))) // Each squaring may double the error.
	result := powerFloat(floatOf(a, prec), absInt(n), prec)
	if n < 0 {
		result.Quo(new(big.Float).SetPrec(prec).SetInt64(1), result)
	}
	if result.MantExp(nil) > types.MaxNumericIntegerDigits*4 {
		return nil, errNumericOverflow()
	}
	return types.CheckNumeric(numericOf(result, scale))
}

// exactDigits is the number of digits up to which powers are computed exactly, and rounded once.
const exactDigits = 1000

// exactPower computes a to the power n with all digits of a to the power |n|.
func exactPower(a *apd.Decimal, n int64, scale int) (*apd.Decimal, error) {
	m := absInt(n)
	power := &apd.Decimal{Negative: a.Negative && m%2 == 1, Exponent: a.Exponent * int32(m)}
	power.Coeff.Exp(&a.Coeff, apd.NewBigInt(m), nil)
	if n < 0 {
		return types.CheckNumeric(quotient(types.NewNumeric(1), power, scale, true))
	}
	return types.CheckNumeric(types.RoundNumeric(power, scale))
}

// powerFloat is x to the power m by squaring.
func powerFloat(x *big.Float, m int64, prec uint) *big.Float {
	result := new(big.Float).SetPrec(prec).SetInt64(1)
	square := new(big.Float).SetPrec(prec).Set(x)
	for {
		if m&1 == 1 {
			result.Mul(result, square)
		}
		if m >>= 1; m == 0 {
			return result
		}
		square.Mul(square, square)
	}
}

func absInt(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// leadingFloat and trailingPower split |a| into its first 16 digits and a power of ten.
func leadingFloat(a *apd.Decimal) float64 {
	digits := int(apd.NumDigits(&a.Coeff))
	var top apd.BigInt
	top.Quo(&a.Coeff, types.Pow10(max(0, digits-minSignificantDigits)))
	return float64(top.Int64())
}

func trailingPower(a *apd.Decimal) int {
	return max(0, int(apd.NumDigits(&a.Coeff))-minSignificantDigits) + int(a.Exponent)
}

// powByLog is exp(b·ln|a|).
func powByLog(a, b *apd.Decimal, isInt bool) (*apd.Decimal, error) {
	negative := a.Negative && isInt && b.Exponent == 0 && b.Coeff.Bit(0) == 1
	if a.Negative {
		a = NegNumeric(a)
	}
	// The estimate has as few digits as PostgreSQL's, because the scale depends on it.
	few := 8 - lnWeight(a)
	product, err := MulNumeric(numericOf(lnFloat(a, 48), few), b)
	if err != nil {
		return nil, err
	}
	estimate := approx(types.RoundNumeric(product, few))
	if math.Abs(estimate) > 1.01*maxLnResult {
		if estimate > 0 {
			return nil, errNumericOverflow()
		}
		return numericZero(maxDisplayScale), nil
	}
	weight := estimate * log10e
	scale := clampScale(minSignificantDigits-int(weight), -int(a.Exponent), -int(b.Exponent))
	r, err := expToScale(func(prec uint) *big.Float {
		return new(big.Float).SetPrec(prec).Mul(lnFloat(a, prec+guardBits), floatOf(b, prec+guardBits))
	}, estimate, scale)
	if err == nil && negative {
		r = NegNumeric(r)
	}
	return r, err
}
