package rowenc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// class groups types by how their values are encoded in keys.
type class uint8

const (
	classNone class = iota // not allowed in keys
	classInt
	classBool
	classFloat
	classBytes
	classBlankPadded // bytes, trailing blanks without meaning
	classUUID
	classDecimal
	classInterval
	classJSONB
	classTSQuery // bytes, of which the last do not count
	classRow
	classRange
	classCollated // bytes: the key of a collation, then the text
	classCollatedPadded
	classFolded // bytes in lower case
	classCollatedFolded
)

// The first byte of an encoded column. Values start with 0x01…0xFE, complemented or not, so that
// the two NULL markers sort below and above them.
const (
	tagNullFirst = 0x00
	tagNullLast  = 0xFF

	// Integers: 0x08…0x0F negative with 8…1 bytes, 0x10…0xEF the value itself, 0xF0…0xF7 positive
	// with 1…8 bytes.
	tagIntNegative8 = 0x08
	tagIntSmall     = 0x10
	tagIntSmallEnd  = 0xEF
	tagIntPositive1 = 0xF0
	smallIntMin     = -16
	smallIntMax     = smallIntMin + tagIntSmallEnd - tagIntSmall

	tagFalse = 0x10
	tagTrue  = 0x11
	tagFloat = 0x10
	tagBytes = 0x10
	tagUUID  = 0x10
)

// Strings are escaped so that their terminator is one byte: 00 → 01 01, 01 → 01 02, end → 00. Both
// escapes sort between 00 and 02, where the escaped bytes belong.
const (
	bytesEnd    = 0x00
	bytesEscape = 0x01
)

const microsPerDay = 24 * 60 * 60 * 1_000_000

func classOf(t types.Type) class {
	t = t.Underlying()
	switch t.OID {
	case types.OIDInt4, types.OIDInt8, types.OIDInt2, types.OIDOid, types.OIDDate, types.OIDTime,
		types.OIDTimestamp, types.OIDTimestamptz, types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator:
		return classInt
	case types.OIDText, types.OIDVarchar, types.OIDBytea, types.OIDName, types.OIDChar, types.OIDUnknown:
		if !t.Coll.ByBytes() {
			return classCollated
		}
		return classBytes
	case types.OIDBPChar:
		if !t.Coll.ByBytes() {
			return classCollatedPadded
		}
		return classBlankPadded
	case types.OIDCitext:
		if !t.Coll.ByBytes() {
			return classCollatedFolded
		}
		return classFolded
	case types.OIDBool:
		return classBool
	case types.OIDFloat4, types.OIDFloat8:
		return classFloat
	case types.OIDUUID:
		return classUUID
	case types.OIDNumeric:
		return classDecimal
	case types.OIDInterval:
		return classInterval
	case types.OIDJSONB:
		return classJSONB
	case types.OIDTSQuery:
		return classTSQuery
	}
	switch {
	case t.IsEnum():
		return classBytes // the position of the label
	case t.IsComposite():
		for i := range t.Def.Fields {
			if classOf(t.Def.Fields[i].Type) == classNone {
				return classNone
			}
		}
		return classRow
	}
	if rt := t.Ranges(); rt != nil {
		if classOf(rt.Sub) == classNone {
			return classNone
		}
		return classRange
	}
	if m := t.Methods(); m != nil && !m.Unordered {
		if m.Kind == types.KindInt {
			return classInt
		}
		return classBytes
	}
	if elem := t.Elem(); elem.Valid() {
		if c := classOf(elem); c != classNone {
			return classArray | c
		}
	}
	return classNone
}

// Indexable reports whether columns of type t may be part of an index.
func Indexable(t types.Type) bool { return classOf(t) != classNone }

// appendOrdered appends d, of a column of type t, so that bytes order as values do.
func appendOrdered(dst []byte, t types.Type, d types.Datum, desc, nullsFirst bool) ([]byte, error) {
	if d.IsNull() {
		if nullsFirst {
			return append(dst, tagNullFirst), nil
		}
		return append(dst, tagNullLast), nil
	}
	start := len(dst)
	c := classOf(t)
	switch c {
	case classInt:
		if d.Kind() != types.KindInt {
			return nil, mismatch(c, d)
		}
		dst = appendOrderedInt(dst, d.Int())
	case classBytes, classBlankPadded, classFolded, classTSQuery:
		if d.Kind() != types.KindBytes {
			return nil, mismatch(c, d)
		}
		dst = appendOrderedBytes(append(dst, tagBytes), significant(c, d))
	case classCollated, classCollatedPadded, classCollatedFolded:
		if d.Kind() != types.KindBytes {
			return nil, mismatch(c, d)
		}
		dst = appendCollated(dst, t.Underlying().Coll, significant(c, d))
	case classBool:
		if d.Kind() != types.KindBool {
			return nil, mismatch(c, d)
		}
		if d.Bool() {
			dst = append(dst, tagTrue)
		} else {
			dst = append(dst, tagFalse)
		}
	case classFloat:
		if d.Kind() != types.KindFloat {
			return nil, mismatch(c, d)
		}
		dst = binary.BigEndian.AppendUint64(append(dst, tagFloat), orderedFloatBits(d.Float()))
	case classUUID:
		if d.Kind() != types.KindBytes || len(d.Bytes()) != 16 {
			return nil, mismatch(c, d)
		}
		dst = append(append(dst, tagUUID), d.Bytes()...)
	case classDecimal:
		if d.Kind() != types.KindDecimal {
			return nil, mismatch(c, d)
		}
		dst = appendOrderedDecimal(dst, d.Decimal())
	case classInterval:
		if d.Kind() != types.KindInterval {
			return nil, mismatch(c, d)
		}
		days, micros := intervalOrder(d.Interval())
		dst = appendOrderedInt(appendOrderedInt(dst, days), micros)
	case classJSONB:
		if d.Kind() != types.KindBytes {
			return nil, mismatch(c, d)
		}
		var err error
		if dst, err = appendOrderedJSONB(dst, d.JSONB(), true); err != nil {
			return nil, err
		}
	case classRow:
		if d.Kind() != types.KindRow {
			return nil, mismatch(c, d)
		}
		var err error
		if dst, err = appendOrderedRow(dst, t.Underlying().Def, d.Record()); err != nil {
			return nil, err
		}
	case classRange:
		var err error
		if dst, err = appendOrderedRange(dst, t.Underlying(), d); err != nil {
			return nil, err
		}
	default:
		if c&classArray == 0 {
			return nil, unsupportedKey(t)
		}
		if d.Kind() != types.KindArray {
			return nil, mismatch(c, d)
		}
		var err error
		if dst, err = appendOrderedArray(dst, d.Array(), t.Underlying().Elem()); err != nil {
			return nil, err
		}
	}
	if desc {
		complement(dst[start:])
	}
	return dst, nil
}

// significant returns what of a text a key of class c contains.
func significant(c class, d types.Datum) []byte {
	switch c {
	case classBlankPadded, classCollatedPadded:
		return bytes.TrimRight(d.Bytes(), " ")
	case classFolded, classCollatedFolded:
		return types.FoldedCitext(d)
	case classTSQuery:
		return tsearch.QueryOrder(d.Bytes())
	}
	return d.Bytes()
}

// appendCollated appends a text that orders by the rules of a collation, and by its bytes where they do not decide.
func appendCollated(dst []byte, c *collation.Collation, text []byte) []byte {
	var buf [256]byte
	dst = appendOrderedBytes(append(dst, tagBytes), c.AppendKey(buf[:0], text))
	return appendOrderedBytes(dst, text)
}

func complement(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

func appendOrderedInt(dst []byte, v int64) []byte {
	if v >= smallIntMin && v <= smallIntMax {
		return append(dst, byte(v-smallIntMin+tagIntSmall))
	}
	var n int
	if v < 0 {
		n = byteLen(uint64(^v))
		dst = append(dst, byte(tagIntNegative8+8-n))
	} else {
		n = byteLen(uint64(v))
		dst = append(dst, byte(tagIntPositive1-1+n))
	}
	for shift := (n - 1) * 8; shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// byteLen returns how many bytes hold v; at least one.
func byteLen(v uint64) int { return max((bits.Len64(v)+7)/8, 1) }

func appendOrderedBytes(dst, b []byte) []byte {
	for {
		i := indexSpecial(b)
		if i < 0 {
			dst = append(dst, b...)
			return append(dst, bytesEnd)
		}
		dst = append(dst, b[:i]...)
		dst = append(dst, bytesEscape, b[i]+1)
		b = b[i+1:]
	}
}

// indexSpecial returns the place of the first byte that must be escaped, or -1.
func indexSpecial(b []byte) int {
	for i, c := range b {
		if c <= bytesEscape {
			return i
		}
	}
	return -1
}

// orderedFloatBits maps floats to integers of the same order; -0 goes with 0, NaN sorts last.
func orderedFloatBits(f float64) uint64 {
	if f != f {
		return math.MaxUint64
	}
	if f == 0 {
		f = 0
	}
	u := math.Float64bits(f)
	if u>>63 != 0 {
		return ^u
	}
	return u | 1<<63
}

func floatOfOrderedBits(u uint64) float64 {
	switch {
	case u == math.MaxUint64:
		return math.NaN()
	case u>>63 != 0:
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}

// intervalOrder returns the value by which PostgreSQL compares intervals: the length, with months of 30 days and days of
// 24 hours, as whole days and the rest.
func intervalOrder(iv types.Interval) (days, micros int64) {
	days, micros = int64(iv.Months)*30+int64(iv.Days), iv.Micros
	whole := micros / microsPerDay
	micros -= whole * microsPerDay
	if micros < 0 {
		whole, micros = whole-1, micros+microsPerDay
	}
	return days + whole, micros
}

// intervalOfOrder returns the plainest interval of a given length.
func intervalOfOrder(days, micros int64) types.Interval {
	if days == int64(int32(days)) {
		return types.Interval{Days: int32(days), Micros: micros}
	}
	return types.Interval{Months: int32(days / 30), Days: int32(days % 30), Micros: micros}
}

// lossy reports whether the key encoding of d cannot give back d exactly.
func lossy(t types.Type, d types.Datum) bool {
	t = t.Underlying()
	switch d.Kind() {
	case types.KindRow:
		for i, f := range d.Record().Fields {
			if lossy(t.Def.Fields[i].Type, f) {
				return true
			}
		}
	case types.KindRange:
		sub := t.Ranges().Sub
		return lossy(sub, d.Range().Lower) || lossy(sub, d.Range().Upper)
	case types.KindBytes:
		switch t.OID {
		case types.OIDJSONB:
			return lossyJSONB(d.JSONB())
		case types.OIDTSQuery:
			return tsearch.HasFlags(d.Bytes())
		case types.OIDCitext:
			return !bytes.Equal(types.FoldedCitext(d), d.Bytes())
		}
		b := d.Bytes()
		return t.OID == types.OIDBPChar && len(b) > 0 && b[len(b)-1] == ' '
	case types.KindFloat:
		f := d.Float()
		return f == 0 && math.Signbit(f)
	case types.KindDecimal:
		return !canonicalDecimal(d.Decimal())
	case types.KindInterval:
		return intervalOfOrder(intervalOrder(d.Interval())) != d.Interval()
	case types.KindArray:
		elem := t.Elem()
		if rt := t.Ranges(); rt != nil {
			elem = rt.Range
		}
		return slices.ContainsFunc(d.Array().Elems, func(e types.Datum) bool { return lossy(elem, e) })
	}
	return false
}

// skipOrdered returns b without its first column, which has class c.
func skipOrdered(b []byte, c class, desc bool) ([]byte, error) {
	if len(b) == 0 {
		return nil, corrupt("key ends early")
	}
	if b[0] == tagNullFirst || b[0] == tagNullLast {
		return b[1:], nil
	}
	mask := maskOf(desc)
	switch c {
	case classInt:
		return skipOrderedInt(b, mask)
	case classInterval:
		b, err := skipOrderedInt(b, mask)
		if err != nil {
			return nil, err
		}
		return skipOrderedInt(b, mask)
	case classBool:
		return b[1:], nil
	case classFloat:
		return skipN(b, 9)
	case classUUID:
		return skipN(b, 17)
	case classBytes, classBlankPadded, classFolded, classTSQuery, classRow, classRange:
		return skipString(b[1:], mask)
	case classCollated, classCollatedPadded, classCollatedFolded:
		text, err := skipString(b[1:], mask)
		if err != nil {
			return nil, err
		}
		return skipString(text, mask)
	case classDecimal:
		return skipOrderedDecimal(b, mask)
	case classJSONB:
		return skipOrderedJSONB(b, mask)
	}
	if c&classArray != 0 {
		return skipOrderedArray(b, c, desc)
	}
	return nil, corrupt("key column of a type that is not indexed")
}

// skipString returns what follows the end of a string.
func skipString(b []byte, mask byte) ([]byte, error) {
	end := bytes.IndexByte(b, bytesEnd^mask)
	if end < 0 {
		return nil, corrupt("string without end in key")
	}
	return b[end+1:], nil
}

func maskOf(desc bool) byte {
	if desc {
		return 0xFF
	}
	return 0
}

func skipN(b []byte, n int) ([]byte, error) {
	if len(b) < n {
		return nil, corrupt("key ends early")
	}
	return b[n:], nil
}

// orderedIntLen returns the length of an integer's encoding by its first byte, 0 if the byte does not start an integer.
func orderedIntLen(tag byte) int {
	switch {
	case tag >= tagIntSmall && tag <= tagIntSmallEnd:
		return 1
	case tag >= tagIntPositive1 && tag < tagIntPositive1+8:
		return int(tag-tagIntPositive1) + 2
	case tag >= tagIntNegative8 && tag < tagIntSmall:
		return 9 - int(tag-tagIntNegative8)
	}
	return 0
}

func skipOrderedInt(b []byte, mask byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, corrupt("key ends early")
	}
	n := orderedIntLen(b[0] ^ mask)
	if n == 0 {
		return nil, corrupt("bad integer in key")
	}
	return skipN(b, n)
}

func decodeOrderedInt(b []byte, mask byte) (int64, []byte, error) {
	if len(b) == 0 {
		return 0, nil, corrupt("key ends early")
	}
	tag := b[0] ^ mask
	n := orderedIntLen(tag)
	if n == 0 || len(b) < n {
		return 0, nil, corrupt("bad integer in key")
	}
	if n == 1 {
		return int64(tag) - tagIntSmall + smallIntMin, b[1:], nil
	}
	var v int64
	if tag < tagIntSmall {
		v = -1
	}
	for _, c := range b[1:n] {
		v = v<<8 | int64(c^mask)
	}
	if (v < 0) != (tag < tagIntSmall) {
		return 0, nil, corrupt("integer out of range in key")
	}
	return v, b[n:], nil
}

// decodeOrdered decodes the first column of b, of type t. The datum may alias b.
func decodeOrdered(b []byte, t types.Type, c class, desc bool) (types.Datum, []byte, error) {
	if len(b) == 0 {
		return types.Null, nil, corrupt("key ends early")
	}
	if b[0] == tagNullFirst || b[0] == tagNullLast {
		return types.Null, b[1:], nil
	}
	mask := maskOf(desc)
	switch c {
	case classInt:
		v, rest, err := decodeOrderedInt(b, mask)
		return types.Int(v), rest, err
	case classBytes, classBlankPadded, classFolded:
		return decodeOrderedBytes(b, mask)
	case classTSQuery:
		d, rest, err := decodeOrderedBytes(b, mask)
		if err != nil {
			return types.Null, nil, err
		}
		q, ok := tsearch.QueryOfOrder(d.Bytes())
		if !ok {
			return types.Null, nil, corrupt("bad tsquery in key")
		}
		return types.Bytes(q), rest, nil
	case classCollated, classCollatedPadded, classCollatedFolded:
		if b[0]^mask != tagBytes {
			return types.Null, nil, corrupt("bad string in key")
		}
		text, err := skipString(b[1:], mask)
		if err != nil {
			return types.Null, nil, err
		}
		return decodeString(text, mask)
	case classRow:
		return decodeOrderedRow(b, mask, t.Underlying().Def)
	case classRange:
		return decodeOrderedRange(b, mask, t.Underlying())
	case classBool:
		tag := b[0] ^ mask
		if tag != tagTrue && tag != tagFalse {
			return types.Null, nil, corrupt("bad boolean in key")
		}
		return types.Bool(tag == tagTrue), b[1:], nil
	case classFloat:
		if len(b) < 9 || b[0]^mask != tagFloat {
			return types.Null, nil, corrupt("bad float in key")
		}
		u := binary.BigEndian.Uint64(b[1:])
		if desc {
			u = ^u
		}
		return types.Float(floatOfOrderedBits(u)), b[9:], nil
	case classUUID:
		if len(b) < 17 || b[0]^mask != tagUUID {
			return types.Null, nil, corrupt("bad uuid in key")
		}
		return types.Bytes(unmasked(b[1:17], mask)), b[17:], nil
	case classDecimal:
		return decodeOrderedDecimal(b, mask)
	case classInterval:
		return decodeOrderedInterval(b, mask)
	case classJSONB:
		return decodeOrderedJSONB(b, mask)
	}
	if c&classArray != 0 {
		return decodeOrderedArray(b, t, c, desc)
	}
	return types.Null, nil, corrupt("key column of a type that is not indexed")
}

// unmasked returns b itself, or a copy with the mask taken off.
func unmasked(b []byte, mask byte) []byte {
	if mask == 0 {
		return b
	}
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = c ^ mask
	}
	return out
}

func decodeOrderedBytes(b []byte, mask byte) (types.Datum, []byte, error) {
	if b[0]^mask != tagBytes {
		return types.Null, nil, corrupt("bad string in key")
	}
	return decodeString(b[1:], mask)
}

// decodeString decodes a string up to its end.
func decodeString(b []byte, mask byte) (types.Datum, []byte, error) {
	end := bytes.IndexByte(b, bytesEnd^mask)
	if end < 0 {
		return types.Null, nil, corrupt("string without end in key")
	}
	body, rest := unmasked(b[:end], mask), b[end+1:]
	if bytes.IndexByte(body, bytesEscape) < 0 {
		return types.Bytes(body), rest, nil
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		c := body[i]
		if c == bytesEscape {
			i++
			if i == len(body) || body[i] < 1 || body[i] > 2 {
				return types.Null, nil, corrupt("bad escape in key")
			}
			c = body[i] - 1
		}
		out = append(out, c)
	}
	return types.Bytes(out), rest, nil
}

func decodeOrderedInterval(b []byte, mask byte) (types.Datum, []byte, error) {
	days, b, err := decodeOrderedInt(b, mask)
	if err != nil {
		return types.Null, nil, err
	}
	micros, b, err := decodeOrderedInt(b, mask)
	if err != nil {
		return types.Null, nil, err
	}
	const maxDays = (math.MaxInt32+1)*31 + math.MaxInt64/microsPerDay
	if micros < 0 || micros >= microsPerDay || days > maxDays || days < -maxDays {
		return types.Null, nil, corrupt("bad interval in key")
	}
	return types.NewInterval(intervalOfOrder(days, micros)), b, nil
}
