package sqllogic

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// boolOID is the type number of boolean on the wire.
const boolOID = 16

// rowSeparator stands between the values of a row in resultmode rowwise.
const rowSeparator = " | "

// result collects the values of one query in their compared form. One result
// is reused for all records of a run: reset keeps its memory.
type result struct {
	columns int
	text    []byte // all values, one after the other
	ends    []int  // where each value ends in text
	order   []int  // the value numbers in compared order
	scratch []byte // what sum hashes
}

func (r *result) reset(columns int) {
	r.columns = columns
	r.text = r.text[:0]
	r.ends = r.ends[:0]
}

// values returns the number of values.
func (r *result) values() int { return len(r.ends) }

// value returns value i, in the order received. It is valid until reset.
func (r *result) value(i int) []byte {
	start := 0
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.text[start:r.ends[i]]
}

// add appends one value in the format of its column's letter. A nil value is NULL. exact keeps what the classic format
// drops: letters outside ASCII, and what follows the integer in an integer column.
func (r *result) add(value []byte, letter byte, oid uint32, exact bool) {
	switch {
	case value == nil:
		r.text = append(r.text, "NULL"...)
	case letter == 'R':
		r.text = appendReal(r.text, value)
	case letter == 'I' && oid == boolOID:
		if len(value) == 1 && value[0] == 't' {
			r.text = append(r.text, '1')
		} else {
			r.text = append(r.text, '0')
		}
	case letter == 'I' && !exact:
		r.text = appendInteger(r.text, value)
	case len(value) == 0:
		r.text = append(r.text, "(empty)"...)
	case exact:
		r.text = appendUnicode(r.text, value)
	default:
		r.text = appendASCII(r.text, value)
	}
	r.ends = append(r.ends, len(r.text))
}

// appendInteger prints the integer that value begins with, or 0, as SQLite converts values. Parts of its corpus declare
// text columns as I.
func appendInteger(dst, value []byte) []byte {
	n := 0
	if n < len(value) && (value[n] == '-' || value[n] == '+') {
		n++
	}
	zero := true
	for n < len(value) && '0' <= value[n] && value[n] <= '9' {
		zero = zero && value[n] == '0'
		n++
	}
	if zero {
		return append(dst, '0')
	}
	return append(dst, value[:n]...)
}

// appendReal prints a number with three decimals. NaN, infinities and other texts stay as the server sent them.
func appendReal(dst, value []byte) []byte {
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, value...)
	}
	return strconv.AppendFloat(dst, f, 'f', 3, 64)
}

func appendASCII(dst, value []byte) []byte {
	for _, c := range value {
		if c < ' ' || c > '~' {
			c = '@'
		}
		dst = append(dst, c)
	}
	return dst
}

func appendUnicode(dst, value []byte) []byte {
	for len(value) > 0 {
		c, size := utf8.DecodeRune(value)
		if unicode.IsControl(c) || (c == utf8.RuneError && size == 1) {
			dst = append(dst, '@')
		} else {
			dst = append(dst, value[:size]...)
		}
		value = value[size:]
	}
	return dst
}

// arrange computes the order in which values are compared.
func (r *result) arrange(mode sortMode) {
	r.order = r.order[:0]
	n := r.values()
	if mode == sortRows && r.columns > 0 {
		n /= r.columns
	}
	for i := range n {
		r.order = append(r.order, i)
	}
	switch mode {
	case sortValues:
		slices.SortFunc(r.order, func(a, b int) int { return bytes.Compare(r.value(a), r.value(b)) })
	case sortRows:
		slices.SortFunc(r.order, r.compareRows)
		r.expandRows()
	}
}

func (r *result) compareRows(a, b int) int {
	for c := range r.columns {
		if d := bytes.Compare(r.value(a*r.columns+c), r.value(b*r.columns+c)); d != 0 {
			return d
		}
	}
	return 0
}

// expandRows converts an order of rows to the order of their values, in place, from the last row backwards.
func (r *result) expandRows() {
	rows := len(r.order)
	r.order = slices.Grow(r.order, rows*(r.columns-1))[:rows*r.columns]
	for i := rows - 1; i >= 0; i-- {
		row := r.order[i]
		for c := range r.columns {
			r.order[i*r.columns+c] = row*r.columns + c
		}
	}
}

// sum returns the MD5 of all values in compared order, each with a newline.
func (r *result) sum() (digest [md5.Size]byte) {
	r.scratch = r.scratch[:0]
	for _, i := range r.order {
		r.scratch = append(r.scratch, r.value(i)...)
		r.scratch = append(r.scratch, '\n')
	}
	return md5.Sum(r.scratch)
}

// matches reports whether the values, in compared order, are those that the record expects.
func (r *result) matches(rec *record, digest [md5.Size]byte) bool {
	if rec.hash != "" {
		var sum [2 * md5.Size]byte
		hex.Encode(sum[:], digest[:])
		return r.values() == rec.hashCount && string(sum[:]) == rec.hash
	}
	if rec.rowwise {
		return slices.Equal(r.lines(true), rec.expected)
	}
	if r.values() != len(rec.expected) {
		return false
	}
	for n, i := range r.order {
		if string(r.value(i)) != rec.expected[n] {
			return false
		}
	}
	return true
}

// lines returns the result in the format of a test file.
func (r *result) lines(rowwise bool) []string {
	perLine := 1
	if rowwise && r.columns > 0 {
		perLine = r.columns
	}
	lines := make([]string, 0, len(r.order)/perLine)
	var line []byte
	for n, i := range r.order {
		if n%perLine > 0 {
			line = append(line, rowSeparator...)
		}
		line = append(line, r.value(i)...)
		if n%perLine == perLine-1 {
			lines = append(lines, string(line))
			line = line[:0]
		}
	}
	return lines
}
