package rowenc

import (
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/types"
)

// A finite numeric 0.d1d2…dk × 10^E, d1 and dk not 0, is: tag, E as an ordered integer, the digits in
// pairs as bytes 1…100 (the last pair filled up with 0), and 00. A negative one has all but its tag
// complemented.
const (
	tagDecimalNegInf   = 0x08
	tagDecimalNegative = 0x10
	tagDecimalZero     = 0x18
	tagDecimalPositive = 0x20
	tagDecimalPosInf   = 0x28
	tagDecimalNaN      = 0x30

	decimalEnd = 0x00
	// maxDecimalExponent bounds E: PostgreSQL's numeric has at most 131072 digits before the
	// point and 16383 after it.
	maxDecimalExponent = 1 << 18
)

func appendOrderedDecimal(dst []byte, d *apd.Decimal) []byte {
	switch {
	case d.Form == apd.NaN || d.Form == apd.NaNSignaling:
		return append(dst, tagDecimalNaN)
	case d.Form == apd.Infinite && d.Negative:
		return append(dst, tagDecimalNegInf)
	case d.Form == apd.Infinite:
		return append(dst, tagDecimalPosInf)
	case d.Coeff.Sign() == 0:
		return append(dst, tagDecimalZero)
	}
	var buf [64]byte
	var digits []byte
	if d.Coeff.IsUint64() {
		digits = strconv.AppendUint(buf[:0], d.Coeff.Uint64(), 10)
	} else {
		digits = d.Coeff.Append(buf[:0], 10)
	}
	exponent := int64(len(digits)) + int64(d.Exponent)
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	tag := byte(tagDecimalPositive)
	if d.Negative {
		tag = tagDecimalNegative
	}
	dst = append(dst, tag)
	start := len(dst)
	dst = appendOrderedInt(dst, exponent)
	for i := 0; i < len(digits); i += 2 {
		pair := (digits[i] - '0') * 10
		if i+1 < len(digits) {
			pair += digits[i+1] - '0'
		}
		dst = append(dst, pair+1)
	}
	dst = append(dst, decimalEnd)
	if d.Negative {
		complement(dst[start:])
	}
	return dst
}

// canonicalDecimal reports whether d equals the result of decodeOrderedDecimal for its key: no trailing zeros after the
// point, no exponent above 0.
func canonicalDecimal(d *apd.Decimal) bool {
	if d.Form != apd.Finite {
		return true
	}
	if d.Exponent >= 0 || d.Coeff.Sign() == 0 {
		return d.Exponent == 0
	}
	if d.Coeff.IsUint64() {
		return d.Coeff.Uint64()%10 != 0
	}
	var rem, ten apd.BigInt
	rem.Rem(&d.Coeff, ten.SetInt64(10))
	return rem.Sign() != 0
}

// decimalBody splits b, which starts with the tag of a non-zero finite numeric, at the numeric's end.
func decimalBody(b []byte, mask byte) (exponent int64, pairs, rest []byte, inner byte, err error) {
	inner = mask
	if b[0]^mask == tagDecimalNegative {
		inner = ^mask
	}
	exponent, pairs, err = decodeOrderedInt(b[1:], inner)
	if err != nil {
		return 0, nil, nil, 0, err
	}
	for i, c := range pairs {
		switch c ^= inner; {
		case c == decimalEnd && i > 0:
			return exponent, pairs[:i], pairs[i+1:], inner, nil
		case c == decimalEnd || c > 100:
			return 0, nil, nil, 0, corrupt("bad digit of a numeric in key")
		}
	}
	return 0, nil, nil, 0, corrupt("numeric without end in key")
}

func skipOrderedDecimal(b []byte, mask byte) ([]byte, error) {
	switch b[0] ^ mask {
	case tagDecimalNaN, tagDecimalNegInf, tagDecimalPosInf, tagDecimalZero:
		return b[1:], nil
	case tagDecimalNegative, tagDecimalPositive:
		_, _, rest, _, err := decimalBody(b, mask)
		return rest, err
	}
	return nil, corrupt("bad numeric in key")
}

func decodeOrderedDecimal(b []byte, mask byte) (types.Datum, []byte, error) {
	d := new(apd.Decimal)
	switch tag := b[0] ^ mask; tag {
	case tagDecimalZero:
		return types.Decimal(d), b[1:], nil
	case tagDecimalNaN:
		d.Form = apd.NaN
		return types.Decimal(d), b[1:], nil
	case tagDecimalNegInf, tagDecimalPosInf:
		d.Form, d.Negative = apd.Infinite, tag == tagDecimalNegInf
		return types.Decimal(d), b[1:], nil
	case tagDecimalNegative, tagDecimalPositive:
		d.Negative = tag == tagDecimalNegative
	default:
		return types.Null, nil, corrupt("bad numeric in key")
	}
	exponent, pairs, rest, inner, err := decimalBody(b, mask)
	if err != nil {
		return types.Null, nil, err
	}
	if exponent > maxDecimalExponent || exponent < -maxDecimalExponent {
		return types.Null, nil, corrupt("exponent of a numeric in key")
	}
	digits := make([]byte, 0, 2*len(pairs)+max(int(exponent), 0))
	for _, c := range pairs {
		pair := (c ^ inner) - 1
		digits = append(digits, '0'+pair/10, '0'+pair%10)
	}
	if digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	for int64(len(digits)) < exponent {
		digits = append(digits, '0')
	}
	if _, ok := d.Coeff.SetString(string(digits), 10); !ok {
		return types.Null, nil, corrupt("digits of a numeric in key")
	}
	d.Exponent = int32(exponent - int64(len(digits)))
	return types.Decimal(d), rest, nil
}
