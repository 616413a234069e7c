package types

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
)

// The limits of PostgreSQL's numeric: decimal digits before and after the point.
const (
	MaxNumericIntegerDigits = 131072
	MaxNumericScale         = 16383
)

// smallPow10 holds 10^0 … 10^63; read only.
var smallPow10 = makePow10(64)

func makePow10(n int) []apd.BigInt {
	out := make([]apd.BigInt, n)
	out[0].SetInt64(1)
	ten := apd.NewBigInt(10)
	for i := 1; i < n; i++ {
		out[i].Mul(&out[i-1], ten)
	}
	return out
}

// Pow10 returns 10^n, which must not be changed.
func Pow10(n int) *apd.BigInt {
	if n < len(smallPow10) {
		return &smallPow10[n]
	}
	return new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(n)), nil)
}

// The special numerics; they must not be changed.
var (
	NumericNaN    = &apd.Decimal{Form: apd.NaN}
	NumericInf    = &apd.Decimal{Form: apd.Infinite}
	NumericNegInf = &apd.Decimal{Form: apd.Infinite, Negative: true}
)

// NewNumeric returns n as a numeric of scale 0.
func NewNumeric(n int64) *apd.Decimal { return apd.New(n, 0) }

// errNumericOverflow is the error for a value that no numeric can hold.
func errNumericOverflow() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value overflows numeric format")
}

// parseNumeric reads a decimal number, NaN or an infinity and applies a modifier.
func parseNumeric(s string, mod int32) (Datum, error) {
	d, err := scanNumeric(trimSpace(s))
	if err != nil {
		return Null, err
	}
	if d == nil {
		return Null, badSyntax("numeric", s)
	}
	if mod >= 4 {
		if d, err = LimitNumeric(d, mod); err != nil {
			return Null, err
		}
	}
	return Decimal(d), nil
}

// scanNumeric returns nil without error for a text that is not a number.
func scanNumeric(s string) (*apd.Decimal, error) {
	if v, ok := specialNumeric(s); ok {
		return v, nil
	}
	rest := s
	negative := false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		negative = rest[0] == '-'
		rest = rest[1:]
	}
	mantissa, exponent, ok, err := splitExponent(rest)
	if !ok || err != nil {
		return nil, err
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if whole == "" && frac == "" || whole != "" && !allDigits(whole) || frac != "" && !allDigits(frac) {
		return nil, nil
	}
	return buildNumeric(whole, frac, exponent, negative)
}

func specialNumeric(s string) (*apd.Decimal, bool) {
	if s == "" || s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		return nil, false
	}
	switch strings.ToLower(s) {
	case "nan":
		return NumericNaN, true
	case "inf", "+inf", "infinity", "+infinity":
		return NumericInf, true
	case "-inf", "-infinity":
		return NumericNegInf, true
	}
	return nil, false
}

// splitExponent splits "12e3" into "12" and 3.
func splitExponent(s string) (mantissa string, exponent int, ok bool, err error) {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return s, 0, true, nil
	}
	digits := s[i+1:]
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		digits = digits[1:]
	}
	if !allDigits(digits) {
		return "", 0, false, nil
	}
	const limit = 1 << 30
	n, convErr := strconv.Atoi(s[i+1:])
	if convErr != nil || n >= limit || n <= -limit {
		return "", 0, false, errNumericOverflow()
	}
	return s[:i], n, true, nil
}

func buildNumeric(whole, frac string, exponent int, negative bool) (*apd.Decimal, error) {
	whole = strings.TrimLeft(whole, "0")
	scale := max(0, len(frac)-exponent)
	d := &apd.Decimal{Exponent: -int32(scale)}
	if scale > MaxNumericScale {
		return nil, errNumericOverflow()
	}
	significant := strings.TrimLeft(frac, "0")
	if whole == "" && significant == "" {
		return d, nil
	}
	integerDigits := len(whole) + exponent
	if whole == "" {
		integerDigits = exponent - (len(frac) - len(significant))
	}
	if integerDigits > MaxNumericIntegerDigits {
		return nil, errNumericOverflow()
	}
	setDigits(&d.Coeff, whole, frac)
	if up := exponent - len(frac); up > 0 {
		d.Coeff.Mul(&d.Coeff, Pow10(up))
	}
	d.Negative = negative
	return d, nil
}

// setDigits sets c to the number whose digits are a followed by b.
func setDigits(c *apd.BigInt, a, b string) {
	if len(a)+len(b) <= 19 {
		var n uint64
		for i := 0; i < len(a); i++ {
			n = n*10 + uint64(a[i]-'0')
		}
		for i := 0; i < len(b); i++ {
			n = n*10 + uint64(b[i]-'0')
		}
		c.SetUint64(n)
		return
	}
	c.SetString(a+b, 10)
}

// CheckNumeric returns d, or 22003 when it has more digits than a numeric holds.
func CheckNumeric(d *apd.Decimal) (*apd.Decimal, error) {
	if d.Form == apd.Finite && d.Coeff.BitLen() > 64 {
		if digits := apd.NumDigits(&d.Coeff) + int64(d.Exponent); digits > MaxNumericIntegerDigits {
			return nil, errNumericOverflow()
		}
	}
	return d, nil
}

// RoundNumeric returns d with the given scale, halves rounded away from zero. A negative scale
// rounds before the point; the result's scale is then 0.
func RoundNumeric(d *apd.Decimal, scale int) *apd.Decimal { return rescale(d, scale, true) }

// TruncNumeric is RoundNumeric without rounding.
func TruncNumeric(d *apd.Decimal, scale int) *apd.Decimal { return rescale(d, scale, false) }

func rescale(d *apd.Decimal, scale int, round bool) *apd.Decimal {
	have := -int(d.Exponent)
	if d.Form != apd.Finite || have == scale {
		return d
	}
	out := &apd.Decimal{Negative: d.Negative, Exponent: -int32(max(scale, 0))}
	if have < scale {
		out.Coeff.Mul(&d.Coeff, Pow10(scale-have))
		return out
	}
	drop := have - scale
	if int64(drop) > apd.NumDigits(&d.Coeff)+1 {
		out.Negative = false
		return out
	}
	var rem apd.BigInt
	unit := Pow10(drop)
	out.Coeff.QuoRem(&d.Coeff, unit, &rem)
	if round {
		rem.Add(&rem, &rem)
		if rem.Cmp(unit) >= 0 {
			out.Coeff.Add(&out.Coeff, &smallPow10[0])
		}
	}
	if scale < 0 {
		out.Coeff.Mul(&out.Coeff, Pow10(-scale))
	}
	if out.Coeff.Sign() == 0 {
		out.Negative = false
	}
	return out
}

// LimitNumeric rounds d to a modifier's scale; 22003 when the result has too many digits.
func LimitNumeric(d *apd.Decimal, mod int32) (*apd.Decimal, error) {
	if mod < 4 || d.Form == apd.NaN {
		return d, nil
	}
	precision, scale := NumericMod(mod)
	if d.Form == apd.Infinite {
		return nil, pgerror.New(pgerror.NumericValueOutOfRange, "numeric field overflow").WithDetail(
			"A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
	}
	d = RoundNumeric(d, scale)
	if d.Coeff.Sign() == 0 {
		return d, nil
	}
	integerDigits := precision - scale
	if apd.NumDigits(&d.Coeff)+int64(d.Exponent) > int64(integerDigits) {
		power := "10^" + strconv.Itoa(integerDigits)
		if integerDigits == 0 {
			power = "1"
		}
		return nil, pgerror.New(pgerror.NumericValueOutOfRange, "numeric field overflow").WithDetail(
			"A field with precision %d, scale %d must round to an absolute value less than %s.", precision, scale, power)
	}
	return d, nil
}

// AppendNumeric appends d's text form.
func AppendNumeric(dst []byte, d *apd.Decimal) []byte {
	switch {
	case d.Form == apd.Infinite && d.Negative:
		return append(dst, "-Infinity"...)
	case d.Form == apd.Infinite:
		return append(dst, "Infinity"...)
	case d.Form != apd.Finite:
		return append(dst, "NaN"...)
	}
	if d.Negative && d.Coeff.Sign() != 0 {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst = appendCoeff(dst, &d.Coeff)
	digits, scale := len(dst)-start, -int(d.Exponent)
	if scale <= 0 {
		return dst
	}
	for ; digits <= scale; digits++ {
		dst = append(dst, '0')
		copy(dst[start+1:], dst[start:])
		dst[start] = '0'
	}
	dst = append(dst, 0)
	point := len(dst) - 1 - scale
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst
}

func appendCoeff(dst []byte, c *apd.BigInt) []byte {
	if c.IsUint64() {
		return strconv.AppendUint(dst, c.Uint64(), 10)
	}
	return c.Append(dst, 10)
}

// CompareNumeric orders numerics: -Infinity, finite values, Infinity, NaN (which equals itself).
func CompareNumeric(a, b *apd.Decimal) int {
	if a.Form != apd.Finite || b.Form != apd.Finite {
		return numericRank(a) - numericRank(b)
	}
	if a.Exponent == b.Exponent && a.Negative == b.Negative {
		if a.Negative {
			return b.Coeff.Cmp(&a.Coeff)
		}
		return a.Coeff.Cmp(&b.Coeff)
	}
	return a.Cmp(b)
}

func numericRank(d *apd.Decimal) int {
	switch {
	case d.Form == apd.Finite:
		return 0
	case d.Form == apd.Infinite && d.Negative:
		return -1
	case d.Form == apd.Infinite:
		return 1
	}
	return 2
}
