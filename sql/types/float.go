package types

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

func parseFloat8(s string) (Datum, error) {
	v, err := parseFloat(s, 64, "double precision")
	return Float(v), err
}

func parseFloat4(s string) (Datum, error) {
	v, err := parseFloat(s, 32, "real")
	return Float(v), err
}

// parseFloat accepts what C's strtod accepts. A value that rounds to zero or infinity is out of range.
func parseFloat(s string, bits int, typeName string) (float64, error) {
	num := trimSpace(s)
	if v, ok := specialFloat(num); ok {
		return v, nil
	}
	if num == "" || !floatSyntax(num) {
		return 0, badSyntax(typeName, s)
	}
	if isHexFloat(num) && !strings.ContainsAny(num, "pP") {
		num += "p0"
	}
	v, err := strconv.ParseFloat(num, bits)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, badSyntax(typeName, s)
	}
	if err != nil || v == 0 && hasNonZeroDigit(num) {
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "\"%s\" is out of range for type %s", num, typeName)
	}
	return v, nil
}

func specialFloat(s string) (float64, bool) {
	switch strings.ToLower(s) {
	case "nan", "+nan", "-nan":
		return math.NaN(), true
	case "inf", "+inf", "infinity", "+infinity":
		return math.Inf(1), true
	case "-inf", "-infinity":
		return math.Inf(-1), true
	}
	return 0, false
}

// floatSyntax rejects what Go accepts but C does not: underscores, and Go's names of special values.
func floatSyntax(s string) bool {
	digits := strings.TrimLeft(s, "+-")
	return digits != "" && (isDigit(digits[0]) || digits[0] == '.') && !strings.Contains(s, "_")
}

func isHexFloat(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0' && s[1]|0x20 == 'x'
}

// hasNonZeroDigit considers only the mantissa.
func hasNonZeroDigit(s string) bool {
	hex := isHexFloat(s)
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if !hex && c == 'e' || hex && c == 'p' {
			return false
		}
		if s[i] >= '1' && s[i] <= '9' || hex && c >= 'a' && c <= 'f' {
			return true
		}
	}
	return false
}

// appendFloat writes v as PostgreSQL does: the shortest digits that read back to v, in exponent form
// below 1e-4 and from 1e15 (real: 1e6); or, when cut > 0, cut digits fewer than extra_float_digits=1
// would allow, as C's %g.
func appendFloat(dst []byte, v float64, size, cut int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	digits, least, limit := 15, 1e-4, 1e15
	if size == 32 {
		digits, least, limit = 6, float64(float32(1e-4)), 1e6
	}
	if cut > 0 {
		return appendPrintfG(dst, v, max(1, digits+1-cut))
	}
	if abs := math.Abs(v); v == 0 || abs >= least && abs < limit {
		return strconv.AppendFloat(dst, v, 'f', -1, size)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, size)
	// PostgreSQL does not use digits exactly between two floats, although they would be read back as v.
	for digits := significantDigits(dst[start:]); isHalfway(dst[start:], v, size); digits++ {
		dst = strconv.AppendFloat(dst[:start], v, 'e', digits, size)
	}
	return dst
}

// significantDigits counts the digits of a number in exponent form.
func significantDigits(text []byte) int {
	n := bytes.IndexByte(text, 'e')
	if text[0] == '-' {
		n--
	}
	if n > 1 {
		n-- // the point
	}
	return n
}

// isHalfway reports whether a decimal in exponent form, which is read back as v, is the middle between v and a
// neighbour of it. That requires an even mantissa, to which ties round, and a number so large that the middle is an
// integer of few digits.
func isHalfway(text []byte, v float64, size int) bool {
	mantissa, exponent := uint64(0), 0
	least := uint64(1) << 52
	if size == 32 {
		b := math.Float32bits(float32(v))
		least = 1 << 23
		mantissa, exponent = uint64(b&(1<<23-1))|least, int(b>>23&0xFF)-150
	} else {
		b := math.Float64bits(v)
		mantissa, exponent = b&(1<<52-1)|least, int(b>>52&0x7FF)-1075
	}
	if mantissa&1 != 0 || exponent < 1 {
		return false
	}
	digits, power := uint64(0), 0 // the decimal is digits * 10^power
	for i, c := range text {
		if c == 'e' {
			exp, err := strconv.Atoi(string(text[i+1:]))
			if err != nil {
				return false
			}
			power += exp
			break
		}
		if c == '.' {
			power -= bytes.IndexByte(text, 'e') - i - 1
		} else if c != '-' {
			digits = digits*10 + uint64(c-'0')
		}
	}
	for digits != 0 && digits%10 == 0 {
		digits, power = digits/10, power+1
	}
	if power < 0 || power > 27 {
		return false // not an integer; 5^28 has more digits than a mantissa
	}
	// Both are an odd number times a power of two.
	twos := bits.TrailingZeros64(digits)
	odd := digits >> twos
	for range power {
		hi, lo := bits.Mul64(odd, 5)
		if hi != 0 {
			return false
		}
		odd = lo
	}
	twos += power
	return twos == exponent-1 && (odd == 2*mantissa+1 || odd == 2*mantissa-1) ||
		mantissa == least && twos == exponent-2 && odd == 4*mantissa-1
}

// appendPrintfG is C's %.*g.
func appendPrintfG(dst []byte, v float64, precision int) []byte {
	return strconv.AppendFloat(dst, v, 'g', precision, 64)
}
