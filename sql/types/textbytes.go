package types

import "bytes"

// textCap is the maximum of TextBytes' estimate.
const textCap = 1 << 40

// TextBytes estimates the length of the text form of an array, a record or a range before it is made; 0 for other values. Each level of
// nested records doubles the quotes and backslashes of the one below, so the length is exponential in their depth.
func (d Datum) TextBytes() int {
	switch d.kind {
	case KindArray, KindRow, KindRange:
		n, _ := d.textBytes()
		return n
	}
	return 0
}

// textBytes also returns the number of quotes and backslashes among the bytes.
func (d Datum) textBytes() (length, quotes int) {
	const scalar, digits = 32, 3 // bytes of a value of fixed size, and of each byte of a numeric
	var elems Row
	switch d.kind {
	case KindBytes:
		b := d.Bytes()
		return 2 * len(b), bytes.Count(b, []byte{'"'}) + bytes.Count(b, []byte{'\\'}) + 1 // bytea has two digits for each
	case KindDecimal:
		return digits * d.Size(), 0
	case KindArray:
		elems = d.Array().Elems
	case KindRow:
		elems = d.Record().Fields
	case KindRange:
		elems = Row{d.Range().Lower, d.Range().Upper}
	default:
		return scalar, 0
	}
	length = 2
	for _, e := range elems {
		n, q := e.textBytes()
		length = min(length+n+q+3, textCap)
		quotes = min(quotes+2*q+2, textCap)
	}
	return length, quotes
}
