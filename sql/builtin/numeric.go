package builtin

import (
	"math"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Limits of PostgreSQL's numeric results: minimum significant digits, maximum digits after the point.
const (
	minSignificantDigits = 16
	maxDisplayScale      = 1000
)

func numericDatum(d *apd.Decimal, err error) (types.Datum, error) {
	if err != nil {
		return types.Null, err
	}
	return types.Decimal(d), nil
}

func isNaN(d *apd.Decimal) bool { return d.Form == apd.NaN || d.Form == apd.NaNSignaling }
func isInf(d *apd.Decimal) bool { return d.Form == apd.Infinite }

// signum is -1, 0 or 1; infinities have a sign.
func signum(d *apd.Decimal) int {
	switch {
	case d.Form == apd.Finite && d.Coeff.Sign() == 0:
		return 0
	case d.Negative:
		return -1
	}
	return 1
}

func infinity(sign int) *apd.Decimal {
	if sign < 0 {
		return types.NumericNegInf
	}
	return types.NumericInf
}

// AddNumeric is numeric + numeric.
func AddNumeric(a, b *apd.Decimal) (*apd.Decimal, error) { return addNumeric(a, b, b.Negative) }

// SubNumeric is numeric - numeric.
func SubNumeric(a, b *apd.Decimal) (*apd.Decimal, error) { return addNumeric(a, b, !b.Negative) }

// addNumeric adds to a the absolute value of b with the given sign.
func addNumeric(a, b *apd.Decimal, bNegative bool) (*apd.Decimal, error) {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		switch {
		case isNaN(a) || isNaN(b), isInf(a) && isInf(b) && a.Negative != bNegative:
			return types.NumericNaN, nil
		case isInf(a):
			return a, nil
		case bNegative:
			return types.NumericNegInf, nil
		}
		return types.NumericInf, nil
	}
	out := &apd.Decimal{Exponent: min(a.Exponent, b.Exponent)}
	var space [2]apd.BigInt
	ac, bc := scaledTo(a, out.Exponent, &space[0]), scaledTo(b, out.Exponent, &space[1])
	switch {
	case a.Negative == bNegative:
		out.Coeff.Add(ac, bc)
		out.Negative = a.Negative
	case ac.Cmp(bc) >= 0:
		out.Coeff.Sub(ac, bc)
		out.Negative = a.Negative
	default:
		out.Coeff.Sub(bc, ac)
		out.Negative = bNegative
	}
	if out.Coeff.Sign() == 0 {
		out.Negative = false
	}
	return types.CheckNumeric(out)
}

// scaledTo returns d's coefficient for a lower exponent.
func scaledTo(d *apd.Decimal, exponent int32, space *apd.BigInt) *apd.BigInt {
	if d.Exponent == exponent {
		return &d.Coeff
	}
	return space.Mul(&d.Coeff, types.Pow10(int(d.Exponent-exponent)))
}

// MulNumeric is numeric * numeric.
func MulNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		sign := signum(a) * signum(b)
		if isNaN(a) || isNaN(b) || sign == 0 {
			return types.NumericNaN, nil
		}
		return infinity(sign), nil
	}
	out := &apd.Decimal{Exponent: a.Exponent + b.Exponent, Negative: a.Negative != b.Negative}
	out.Coeff.Mul(&a.Coeff, &b.Coeff)
	if out.Coeff.Sign() == 0 {
		out.Negative = false
	}
	if scale := -int(out.Exponent); scale > types.MaxNumericScale {
		out = types.RoundNumeric(out, types.MaxNumericScale)
	}
	return types.CheckNumeric(out)
}

// specialQuotient handles NaN, infinities and zero divisors; nil for finite operands.
func specialQuotient(a, b *apd.Decimal) (*apd.Decimal, error) {
	switch {
	case isNaN(a) || isNaN(b):
		return types.NumericNaN, nil
	case signum(b) == 0:
		return nil, ErrDivisionByZero()
	case isInf(a) && isInf(b):
		return types.NumericNaN, nil
	case isInf(a):
		return infinity(signum(a) * signum(b)), nil
	case isInf(b):
		return types.NewNumeric(0), nil
	}
	return nil, nil
}

// DivNumeric is numeric / numeric, with PostgreSQL's choice of digits after the point.
func DivNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	if q, err := specialQuotient(a, b); q != nil || err != nil {
		return q, err
	}
	return types.CheckNumeric(quotient(a, b, divisionScale(a, b), true))
}

// quotient divides finite numbers to a scale, rounding halves away from zero or truncating.
func quotient(a, b *apd.Decimal, scale int, round bool) *apd.Decimal {
	out := &apd.Decimal{Exponent: -int32(scale), Negative: a.Negative != b.Negative}
	// a·10^ae / b·10^be = q·10^-scale, so q = a·10^(ae-be+scale) / b.
	shift := int(a.Exponent) - int(b.Exponent) + scale
	var num, den, rem apd.BigInt
	num.Set(&a.Coeff)
	den.Set(&b.Coeff)
	if shift >= 0 {
		num.Mul(&num, types.Pow10(shift))
	} else {
		den.Mul(&den, types.Pow10(-shift))
	}
	out.Coeff.QuoRem(&num, &den, &rem)
	if round {
		rem.Add(&rem, &rem)
		if rem.Cmp(&den) >= 0 {
			out.Coeff.Add(&out.Coeff, types.Pow10(0))
		}
	}
	if out.Coeff.Sign() == 0 {
		out.Negative = false
	}
	return out
}

// divisionScale gives a quotient at least 16 significant digits and the scales of its operands. It
// counts in groups of four digits from the point, as PostgreSQL stores them.
func divisionScale(a, b *apd.Decimal) int {
	aWeight, aFirst := leadingGroup(a)
	bWeight, bFirst := leadingGroup(b)
	weight := aWeight - bWeight
	if aFirst <= bFirst {
		weight--
	}
	scale := minSignificantDigits - weight*4
	return min(max(scale, -int(a.Exponent), -int(b.Exponent), 0), maxDisplayScale)
}

// leadingGroup returns the weight (as a power of 10000) and the value of the first base-10000 digit.
func leadingGroup(d *apd.Decimal) (weight, first int) {
	if d.Coeff.Sign() == 0 {
		return 0, 0
	}
	digits := int(apd.NumDigits(&d.Coeff))
	top := digits + int(d.Exponent) - 1 // the first digit's power of ten
	weight = int(floorDiv(int64(top), 4))
	take := top - weight*4 + 1
	var c apd.BigInt
	if digits >= take {
		c.Quo(&d.Coeff, types.Pow10(digits-take))
	} else {
		c.Mul(&d.Coeff, types.Pow10(take-digits))
	}
	return weight, int(c.Int64())
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// ModNumeric is numeric % numeric; the result has a's sign.
func ModNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	switch {
	case isNaN(a) || isNaN(b):
		return types.NumericNaN, nil
	case signum(b) == 0:
		return nil, ErrDivisionByZero()
	case isInf(a):
		return types.NumericNaN, nil
	case isInf(b):
		return a, nil
	}
	out := &apd.Decimal{Exponent: min(a.Exponent, b.Exponent), Negative: a.Negative}
	var space [2]apd.BigInt
	out.Coeff.Rem(scaledTo(a, out.Exponent, &space[0]), scaledTo(b, out.Exponent, &space[1]))
	if out.Coeff.Sign() == 0 {
		out.Negative = false
	}
	return out, nil
}

// DivTruncNumeric is div(numeric, numeric): the quotient's integer part.
func DivTruncNumeric(a, b *apd.Decimal) (*apd.Decimal, error) {
	if q, err := specialQuotient(a, b); q != nil || err != nil {
		return q, err
	}
	return types.CheckNumeric(quotient(a, b, 0, false))
}

// NegNumeric is -numeric.
func NegNumeric(a *apd.Decimal) *apd.Decimal {
	if isNaN(a) || signum(a) == 0 {
		return a
	}
	return new(apd.Decimal).Neg(a)
}

// NumericToInt rounds a numeric, halves away from zero, to an integer type (22003, 0A000).
func NumericToInt(d *apd.Decimal, to types.OID) (int64, error) {
	if d.Form != apd.Finite {
		what := "infinity"
		if isNaN(d) {
			what = "NaN"
		}
		return 0, pgerror.New(pgerror.FeatureNotSupported, "cannot convert %s to %s", what, types.Type{OID: to, Mod: -1})
	}
	n, ok := numericInt64(types.RoundNumeric(d, 0))
	if !ok {
		return 0, errIntRange(to)
	}
	return NarrowInt(n, to)
}

// numericInt64 returns the value of a numeric of scale 0.
func numericInt64(d *apd.Decimal) (int64, bool) {
	if d.Exponent != 0 || !d.Coeff.IsUint64() {
		return 0, false
	}
	n := d.Coeff.Uint64()
	if d.Negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// NumericToFloat converts to double precision or real (22003).
func NumericToFloat(d *apd.Decimal, to types.Type) (float64, error) {
	switch {
	case isNaN(d):
		return math.NaN(), nil
	case isInf(d):
		return math.Inf(signum(d)), nil
	}
	var space [64]byte
	v, err := types.ParseText(to, string(types.AppendNumeric(space[:0], d)), nil)
	return v.Float(), err
}

// FloatToNumeric converts through the given number of significant digits: 15 for double precision, 6 for real.
func FloatToNumeric(v float64, digits int) (*apd.Decimal, error) {
	switch {
	case math.IsNaN(v):
		return types.NumericNaN, nil
	case math.IsInf(v, 0):
		return infinity(int(math.Copysign(1, v))), nil
	}
	var space [32]byte
	text := strconv.AppendFloat(space[:0], v, 'g', digits, 64)
	d, err := types.ParseText(types.TNumeric, string(text), nil)
	if err != nil {
		return nil, err
	}
	return d.Decimal(), nil
}
