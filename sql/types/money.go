package types

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/percodb/percodb/sql/pgerror"
)

// OIDMoney is the type of amounts: hundredths, in the currency format of the locale C.
const OIDMoney OID = 790

func init() {
	register(&Methods{
		Info: Info{OIDMoney, "money", "money", 791, 0, 8, CategoryNumeric, false, KindInt}, MinMax: true,
		Parse: parseMoney, Append: appendMoney,
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			if err := requireSize(b, 8); err != nil {
				return Null, err
			}
			return Int(int64(binary.BigEndian.Uint64(b))), nil
		},
		Send: func(dst []byte, d Datum) []byte { return binary.BigEndian.AppendUint64(dst, uint64(d.n)) },
	})
}

// moneyReader reads an amount. The value is kept negative: there is one negative number more.
type moneyReader struct {
	text     string
	at       int
	negative bool
	value    int64
}

// shift appends a decimal digit to the value; false if it overflows.
func (r *moneyReader) shift(digit int64) bool {
	high, low := bits.Mul64(uint64(-r.value), 10)
	if high != 0 || low > 1<<63 || low+uint64(digit) > 1<<63 {
		return false
	}
	r.value = -int64(low + uint64(digit))
	return true
}

func (r *moneyReader) cur() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *moneyReader) skip(c byte) bool {
	if r.cur() != c {
		return false
	}
	r.at++
	return true
}

func (r *moneyReader) skipSpace() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

// head reads what may precede the digits.
func (r *moneyReader) head() {
	r.skipSpace()
	r.skip('$')
	r.skipSpace()
	switch {
	case r.skip('-'), r.skip('('):
		r.negative = true
	default:
		r.skip('+')
	}
	r.skipSpace()
	r.skip('$')
	r.skipSpace()
}

// digits reads the digits, rounded to hundredths; false if the value overflows.
func (r *moneyReader) digits() bool {
	point, decimals := false, 0
	for ; ; r.at++ {
		c := r.cur()
		switch {
		case isDigit(c) && (!point || decimals < 2):
			if !r.shift(int64(c - '0')) {
				return false
			}
			if point {
				decimals++
			}
			continue
		case c == '.' && !point:
			point = true
			continue
		case c == ',':
			continue
		}
		break
	}
	round := isDigit(r.cur()) && r.cur() >= '5'
	if round && r.value == math.MinInt64 {
		return false
	}
	if round {
		r.value--
	}
	for ; decimals < 2; decimals++ {
		if !r.shift(0) {
			return false
		}
	}
	for isDigit(r.cur()) {
		r.at++
	}
	return true
}

func parseMoney(s string, _ int32, _ *Format) (Datum, error) {
	r := &moneyReader{text: s}
	r.head()
	inRange := r.digits()
	for inRange && r.at < len(s) {
		switch c := s[r.at]; {
		case isSpace(c), c == ')', c == '+', c == '$':
		case c == '-':
			r.negative = true
		default:
			return Null, badSyntax("money", s)
		}
		r.at++
	}
	if !inRange || !r.negative && r.value == math.MinInt64 {
		return Null, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type money", s)
	}
	if !r.negative {
		r.value = -r.value
	}
	return Int(r.value), nil
}

func appendMoney(dst []byte, d Datum, _ *Format) []byte {
	n := uint64(d.n)
	if d.n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	dst = append(dst, '$')
	var space [20]byte
	whole := strconv.AppendUint(space[:0], n/100, 10)
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c)
	}
	return append(dst, '.', '0'+byte(n%100/10), '0'+byte(n%10))
}
