package jsonb

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// The limits of numeric: digits before and behind the point.
const (
	maxIntegerDigits = 131072
	maxScale         = 16383
)

func errNumberOverflow() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "value overflows numeric format")
}

// canonicalNumber returns the text that numeric has for a JSON number: without exponent, and without the sign of zero.
func canonicalNumber(s string) (string, error) {
	negative := s[0] == '-'
	digits := strings.TrimPrefix(s, "-")
	if len(digits) < maxScale && !strings.ContainsAny(digits, "eE") {
		if negative && strings.Trim(digits, "0.") == "" {
			return digits, nil
		}
		return s, nil
	}
	mantissa, exponent := digits, 0
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		const limit = 1 << 30
		n, err := strconv.Atoi(digits[i+1:])
		if err != nil || n >= limit || n <= -limit {
			return "", errNumberOverflow()
		}
		mantissa, exponent = digits[:i], n
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	return shiftPoint(whole, frac, exponent, negative)
}

// shiftPoint writes whole.frac times ten to the exponent.
func shiftPoint(whole, frac string, exponent int, negative bool) (string, error) {
	scale := max(0, len(frac)-exponent)
	if scale > maxScale {
		return "", errNumberOverflow()
	}
	all := strings.TrimLeft(whole+frac, "0")
	if all == "" {
		negative = false
	}
	// The number is all, times ten to the power of exponent-len(frac).
	if up := exponent - len(frac); up > 0 && all != "" {
		if len(all)+up > maxIntegerDigits {
			return "", errNumberOverflow()
		}
		all += strings.Repeat("0", up)
	}
	if len(all)-scale > maxIntegerDigits {
		return "", errNumberOverflow()
	}
	if len(all) <= scale {
		all = strings.Repeat("0", scale+1-len(all)) + all
	}
	if scale > 0 {
		all = all[:len(all)-scale] + "." + all[len(all)-scale:]
	}
	if negative {
		all = "-" + all
	}
	return all, nil
}

// splitNumber returns a canonical number's sign (-1, 0, 1) and the significant digits before and behind the point.
func splitNumber(s []byte) (sign int, whole, frac []byte) {
	sign = 1
	if len(s) > 0 && s[0] == '-' {
		sign, s = -1, s[1:]
	}
	whole = s
	for i, c := range s {
		if c == '.' {
			whole, frac = s[:i], s[i+1:]
			break
		}
	}
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for len(frac) > 0 && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	if len(whole) == 0 && len(frac) == 0 {
		sign = 0
	}
	return sign, whole, frac
}
