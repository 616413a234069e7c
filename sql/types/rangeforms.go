package types

import (
	"encoding/binary"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

const rangeSpaces = " \t\n\r\v\f"

// rangeReader reads the text form of a range.
type rangeReader struct {
	whole, rest string
}

func (r *rangeReader) malformed(detail string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "malformed range literal: \"%s\"", r.whole).WithDetail("%s", detail)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// parse reads the text form of a range.
func (rt *RangeTypes) parse(s string, f *Format) (Datum, error) {
	r := &rangeReader{whole: s, rest: strings.TrimLeft(s, rangeSpaces)}
	if hasPrefixFold(r.rest, "empty") {
		if strings.TrimLeft(r.rest[len("empty"):], rangeSpaces) != "" {
			return Null, r.malformed("Junk after \"empty\" key word.")
		}
		return rt.EmptyRange(), nil
	}
	if !strings.HasPrefix(r.rest, "[") && !strings.HasPrefix(r.rest, "(") {
		return Null, r.malformed("Missing left parenthesis or bracket.")
	}
	lowerInc := r.rest[0] == '['
	r.rest = r.rest[1:]
	lower, lowerSet, err := r.bound()
	if err != nil {
		return Null, err
	}
	if r.rest[0] != ',' {
		return Null, r.malformed("Missing comma after lower bound.")
	}
	r.rest = r.rest[1:]
	upper, upperSet, err := r.bound()
	if err != nil {
		return Null, err
	}
	if r.rest[0] == ',' {
		return Null, r.malformed("Too many commas.")
	}
	upperInc := r.rest[0] == ']'
	if strings.TrimLeft(r.rest[1:], rangeSpaces) != "" {
		return Null, r.malformed("Junk after right parenthesis or bracket.")
	}
	var bounds [2]Datum
	for i, b := range []struct {
		text string
		set  bool
	}{{lower, lowerSet}, {upper, upperSet}} {
		if b.set {
			if bounds[i], err = ParseText(rt.Sub, b.text, f); err != nil {
				return Null, err
			}
		}
	}
	return rt.Make(bounds[0], bounds[1], lowerInc, upperInc)
}

// bound reads a bound up to the character that ends it, which remains; set is false if there is none.
func (r *rangeReader) bound() (text string, set bool, err error) {
	var b []byte
	inQuotes := false
	for i := 0; i < len(r.rest); i++ {
		c := r.rest[i]
		if !inQuotes && (c == ',' || c == ')' || c == ']') {
			set = i > 0
			r.rest = r.rest[i:]
			return string(b), set, nil
		}
		switch {
		case c == '\\':
			if i++; i == len(r.rest) {
				return "", false, r.malformed("Unexpected end of input.")
			}
			b = append(b, r.rest[i])
		case c == '"' && inQuotes && i+1 < len(r.rest) && r.rest[i+1] == '"':
			b = append(b, c)
			i++
		case c == '"':
			inQuotes = !inQuotes
		default:
			b = append(b, c)
		}
	}
	return "", false, r.malformed("Unexpected end of input.")
}

// append appends the text form of a range.
func (rt *RangeTypes) append(dst []byte, r *Range, f *Format) []byte {
	if r.Empty {
		return append(dst, "empty"...)
	}
	open, end := byte('('), byte(')')
	if r.LowerInc {
		open = '['
	}
	if r.UpperInc {
		end = ']'
	}
	dst = rt.appendBound(append(dst, open), r.Lower, f)
	dst = rt.appendBound(append(dst, ','), r.Upper, f)
	return append(dst, end)
}

func (rt *RangeTypes) appendBound(dst []byte, d Datum, f *Format) []byte {
	if d.IsNull() {
		return dst
	}
	start := len(dst)
	dst = AppendText(dst, d, rt.Sub, f)
	for _, c := range dst[start:] {
		if strings.IndexByte("\"\\()[],", c) >= 0 || isSpace(c) {
			return quoteFrom(dst, start, "")
		}
	}
	if len(dst) == start {
		return quoteFrom(dst, start, "")
	}
	return dst
}

// parseMulti reads the text form of a multirange.
func (rt *RangeTypes) parseMulti(s string, f *Format) (Datum, error) {
	malformed := func(detail string) error {
		return pgerror.New(pgerror.InvalidTextRepresentation, "malformed multirange literal: \"%s\"", s).WithDetail("%s", detail)
	}
	rest := strings.TrimLeft(s, rangeSpaces)
	if !strings.HasPrefix(rest, "{") {
		return Null, malformed("Missing left brace.")
	}
	rest = strings.TrimLeft(rest[1:], rangeSpaces)
	var ranges []Datum
	for n := 0; ; n++ {
		switch {
		case rest == "":
			return Null, malformed("Unexpected end of input.")
		case rest[0] == '}' && n == 0:
		case hasPrefixFold(rest, "empty"):
			rest = rest[len("empty"):]
		case rest[0] == '[' || rest[0] == '(':
			end := rangeEnd(rest)
			if end < 0 {
				return Null, malformed("Unexpected end of input.")
			}
			d, err := rt.parse(rest[:end], f)
			if err != nil {
				return Null, err
			}
			ranges, rest = append(ranges, d), rest[end:]
		default:
			return Null, malformed("Expected range start.")
		}
		if err := f.poll(n + 1); err != nil {
			return Null, err
		}
		rest = strings.TrimLeft(rest, rangeSpaces)
		if rest == "" {
			return Null, malformed("Unexpected end of input.")
		}
		last := rest[0] == '}'
		if !last && rest[0] != ',' {
			return Null, malformed("Expected comma or end of multirange.")
		}
		rest = strings.TrimLeft(rest[1:], rangeSpaces)
		if last {
			break
		}
	}
	if rest != "" {
		return Null, malformed("Junk after closing right brace.")
	}
	return rt.Multirange(ranges, nil)
}

// rangeEnd returns the length of the range with which s begins, -1 if it does not end.
func rangeEnd(s string) int {
	inQuotes := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			inQuotes = !inQuotes
		case (c == ')' || c == ']') && !inQuotes:
			return i + 1
		}
	}
	return -1
}

// appendMulti appends the text form of a multirange.
func (rt *RangeTypes) appendMulti(dst []byte, d Datum, f *Format) []byte {
	dst = append(dst, '{')
	for i, e := range d.Array().Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rt.append(dst, e.Range(), f)
	}
	return append(dst, '}')
}

// The flags of a range's binary form.
const (
	rangeEmpty    = 0x01
	rangeLowerInc = 0x02
	rangeUpperInc = 0x04
	rangeLowerInf = 0x08
	rangeUpperInf = 0x10
)

// flags returns the first byte of the binary form.
func (r *Range) flags() byte {
	if r.Empty {
		return rangeEmpty
	}
	var flags byte
	for _, x := range []struct {
		set bool
		bit byte
	}{{r.LowerInc, rangeLowerInc}, {r.UpperInc, rangeUpperInc}, {r.Lower.IsNull(), rangeLowerInf}, {r.Upper.IsNull(), rangeUpperInf}} {
		if x.set {
			flags |= x.bit
		}
	}
	return flags
}

// send appends the binary form of a range.
func (rt *RangeTypes) send(dst []byte, r *Range) []byte {
	dst = append(dst, r.flags())
	for _, d := range []Datum{r.Lower, r.Upper} {
		if !d.IsNull() {
			dst = appendSized(dst, d, rt.Sub)
		}
	}
	return dst
}

// receive reads the binary form of a range.
func (rt *RangeTypes) receive(b []byte, f *Format) (Datum, error) {
	if len(b) == 0 {
		return Null, pgerror.New(pgerror.ProtocolViolation, "no data left in message")
	}
	flags := b[0]
	b = b[1:]
	var bounds [2]Datum
	for i, unbounded := range []byte{rangeLowerInf, rangeUpperInf} {
		if flags&(rangeEmpty|unbounded) != 0 {
			continue
		}
		body, rest, err := takeSized(b)
		if err != nil {
			return Null, err
		}
		if bounds[i], err = ParseBinary(rt.Sub, body, f); err != nil {
			return Null, err
		}
		b = rest
	}
	if len(b) > 0 {
		return Null, badBinary("incorrect binary data format")
	}
	if flags&rangeEmpty != 0 {
		return rt.EmptyRange(), nil
	}
	return rt.Make(bounds[0], bounds[1], flags&rangeLowerInc != 0, flags&rangeUpperInc != 0)
}

// appendBinary appends the binary form of a range or multirange.
func (rt *RangeTypes) appendBinary(dst []byte, d Datum) []byte {
	if d.kind == KindRange {
		return rt.send(dst, d.Range())
	}
	return rt.sendMulti(dst, d)
}

// parseBinary reads the binary form of a value of t, the range or the multirange type.
func (rt *RangeTypes) parseBinary(t Type, b []byte, f *Format) (Datum, error) {
	if t.OID == rt.Range.OID {
		return rt.receive(b, f)
	}
	return rt.receiveMulti(b, f)
}

// takeSized takes a length and that many bytes.
func takeSized(b []byte) (body, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errShortMessage()
	}
	n := int32(binary.BigEndian.Uint32(b))
	if b = b[4:]; n < 0 || int(n) > len(b) {
		return nil, nil, errShortMessage()
	}
	return b[:n:n], b[n:], nil
}

// sendMulti appends the binary form of a multirange.
func (rt *RangeTypes) sendMulti(dst []byte, d Datum) []byte {
	ranges := d.Array().Elems
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(ranges)))
	for _, r := range ranges {
		dst = appendSized(dst, r, rt.Range)
	}
	return dst
}

// receiveMulti reads the binary form of a multirange.
func (rt *RangeTypes) receiveMulti(b []byte, f *Format) (Datum, error) {
	if len(b) < 4 {
		return Null, errShortMessage()
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)/4) {
		return Null, errShortMessage()
	}
	ranges := make([]Datum, n)
	for i := range ranges {
		body, rest, err := takeSized(b)
		if err != nil {
			return Null, err
		}
		if ranges[i], err = rt.receive(body, f); err != nil {
			return Null, err
		}
		b = rest
		if err := f.poll(i + 1); err != nil {
			return Null, err
		}
	}
	if len(b) > 0 {
		return Null, badBinary("incorrect binary data format")
	}
	return rt.Multirange(ranges, nil)
}
