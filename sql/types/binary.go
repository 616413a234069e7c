package types

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// ValidateText returns 22021 unless b is UTF-8 without NUL, as texts must be.
func ValidateText(b []byte) error {
	for i := 0; i < len(b); {
		c := b[i]
		if c != 0 && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if c == 0 || r == utf8.RuneError && size <= 1 {
			return invalidBytes(b[i:])
		}
		i += size
	}
	return nil
}

// invalidBytes prints as many bytes as the first one announces.
func invalidBytes(b []byte) error {
	n := 1
	switch c := b[0]; {
	case c >= 0xF0 && c < 0xF8:
		n = 4
	case c >= 0xE0 && c < 0xF0:
		n = 3
	case c >= 0xC0 && c < 0xE0:
		n = 2
	}
	var text strings.Builder
	for i, c := range b[:min(n, len(b))] {
		if i > 0 {
			text.WriteByte(' ')
		}
		fmt.Fprintf(&text, "0x%02x", c)
	}
	return pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", text.String())
}

func badBinary(format string, args ...any) error {
	return pgerror.New(pgerror.InvalidBinaryRepresentation, format, args...)
}

// RequireBinary returns 42883 if values of a type have no binary form to send.
func RequireBinary(t Type) error {
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	if m := t.Methods(); t.OID != OIDACLItem && (m == nil || m.Send != nil) {
		return nil
	}
	return pgerror.New(pgerror.UndefinedFunction, "no binary output function available for type %s", t)
}

// AppendBinary appends the binary form of d, which is not NULL, as PostgreSQL's send functions do.
func AppendBinary(dst []byte, d Datum, t Type) []byte {
	switch t.OID {
	case OIDInt4, OIDDate, OIDOid, OIDRegclass, OIDRegtype, OIDRegnamespace, OIDRegrole, OIDRegproc, OIDRegprocedure, OIDRegoper, OIDRegoperator:
		return binary.BigEndian.AppendUint32(dst, uint32(d.n))
	case OIDInt8, OIDTime, OIDTimestamp, OIDTimestamptz:
		return binary.BigEndian.AppendUint64(dst, uint64(d.n))
	case OIDInt2:
		return binary.BigEndian.AppendUint16(dst, uint16(d.n))
	case OIDFloat8:
		if d.Float() != d.Float() {
			return append(dst, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0) // Go's NaN has a different bit pattern
		}
		return binary.BigEndian.AppendUint64(dst, uint64(d.n))
	case OIDFloat4:
		return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(d.Float())))
	case OIDBool:
		return append(dst, byte(d.n))
	case OIDNumeric:
		return appendNumericBinary(dst, d.Decimal())
	case OIDInterval:
		iv := d.Interval()
		dst = binary.BigEndian.AppendUint64(dst, uint64(iv.Micros))
		dst = binary.BigEndian.AppendUint32(dst, uint32(iv.Days))
		return binary.BigEndian.AppendUint32(dst, uint32(iv.Months))
	case OIDChar:
		if d.n == 0 {
			return append(dst, 0)
		}
		return append(dst, d.Bytes()...)
	case OIDJSONB:
		return jsonb.AppendText(append(dst, jsonbVersion), d.Bytes())
	case OIDJSONPath:
		return append(append(dst, jsonbVersion), d.Bytes()...)
	case OIDRecord:
		return appendRecordBinary(dst, d.Record())
	}
	if t.IsDomain() {
		return AppendBinary(dst, d, t.Def.base)
	}
	if t.IsComposite() {
		return appendRecordBinary(dst, d.Record())
	}
	if rt := t.Ranges(); rt != nil {
		return rt.appendBinary(dst, d)
	}
	if t.Def != nil && t.OID == t.Def.OID {
		return appendDefined(dst, t.Def, d, nil)
	}
	if m := t.Methods(); m != nil {
		return m.Send(dst, d)
	}
	if d.kind == KindArray {
		return appendArrayBinary(dst, d.Array(), t.Elem())
	}
	return append(dst, d.Bytes()...) // text and its kind, bytea, uuid, json
}

// ParseBinary reads a value of type t from its binary form, applying t's modifier. The datum may
// alias b. A nil format is the default one.
//
// Errors: 22P03 for an invalid form, and the errors of the type's input function for a value out of range.
func ParseBinary(t Type, b []byte, f *Format) (Datum, error) {
	if want := fixedSize(t.OID); want > 0 && len(b) != want {
		if len(b) < want {
			return Null, pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
		}
		return Null, badBinary("incorrect binary data format")
	}
	switch t.OID {
	case OIDInt4:
		return Int(int64(int32(binary.BigEndian.Uint32(b)))), nil
	case OIDOid, OIDRegclass, OIDRegtype, OIDRegnamespace, OIDRegrole, OIDRegproc, OIDRegprocedure, OIDRegoper, OIDRegoperator:
		return Int(int64(binary.BigEndian.Uint32(b))), nil
	case OIDInt8:
		return Int(int64(binary.BigEndian.Uint64(b))), nil
	case OIDInt2:
		return Int(int64(int16(binary.BigEndian.Uint16(b)))), nil
	case OIDFloat8:
		return Float(math.Float64frombits(binary.BigEndian.Uint64(b))), nil
	case OIDFloat4:
		return Float(float64(math.Float32frombits(binary.BigEndian.Uint32(b)))), nil
	case OIDBool:
		return Bool(b[0] != 0), nil
	case OIDJSON, OIDJSONB, OIDJSONPath:
		return parseJSONBinary(t, b, f)
	case OIDUUID, OIDBytea:
		return Bytes(b), nil
	case OIDNumeric:
		return parseNumericBinary(b, t.Mod)
	case OIDDate, OIDTime, OIDTimestamp, OIDTimestamptz, OIDInterval:
		return parseTimeBinary(t, b)
	case OIDChar:
		if b[0] == 0 {
			b = nil
		}
		return Bytes(b), nil
	case OIDVoid:
		return Bytes(nil), nil
	}
	return parseVariableBinary(t, b, f)
}

func parseVariableBinary(t Type, b []byte, f *Format) (Datum, error) {
	if t.IsDomain() {
		v, err := ParseBinary(t.Def.base, b, f)
		return checked(t.Def, v, err, f)
	}
	if t.IsString() {
		if err := ValidateText(b); err != nil {
			return Null, err
		}
		return ParseText(t, Bytes(b).Text(), f)
	}
	if elem := t.Elem(); elem.Valid() {
		d, err := parseArrayBinary(elem, b, f)
		if err == nil && t.IsVector() {
			err = checkVector(t, d.Array())
		}
		return d, err
	}
	if m := t.Methods(); m != nil {
		return m.receive(b, t.Mod, f)
	}
	if rt := t.Ranges(); rt != nil {
		return rt.parseBinary(t, b, f)
	}
	if t.OID == OIDACLItem {
		return Null, pgerror.New(pgerror.UndefinedFunction, "no binary input function available for type %s", t)
	}
	if t.IsComposite() {
		return parseRecordBinary(t.Def, b, f)
	}
	if t.IsEnum() {
		if err := ValidateText(b); err != nil {
			return Null, err
		}
		if f == nil {
			f = &defaultFormat
		}
		return parseDefined(t.Def, Bytes(b).Text(), f)
	}
	return Null, pgerror.New(pgerror.FeatureNotSupported, "binary input of type %s is not supported", t)
}

// fixedSize returns the size of a type's binary form, 0 if it varies.
func fixedSize(oid OID) int {
	switch oid {
	case OIDInt4, OIDOid, OIDRegclass, OIDRegtype, OIDRegnamespace, OIDRegrole, OIDRegproc, OIDRegprocedure, OIDRegoper, OIDRegoperator, OIDFloat4, OIDDate:
		return 4
	case OIDInt8, OIDFloat8, OIDTime, OIDTimestamp, OIDTimestamptz:
		return 8
	case OIDInt2:
		return 2
	case OIDBool, OIDChar:
		return 1
	case OIDUUID, OIDInterval:
		return 16
	}
	return 0
}

func parseTimeBinary(t Type, b []byte) (Datum, error) {
	switch t.OID {
	case OIDDate:
		days := int64(int32(binary.BigEndian.Uint32(b)))
		if DateFinite(days) && !ValidDate(days) {
			return Null, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range")
		}
		return Int(days), nil
	case OIDInterval:
		return NewInterval(LimitInterval(Interval{
			Micros: int64(binary.BigEndian.Uint64(b)),
			Days:   int32(binary.BigEndian.Uint32(b[8:])),
			Months: int32(binary.BigEndian.Uint32(b[12:])),
		}, t.Mod)), nil
	}
	n := int64(binary.BigEndian.Uint64(b))
	if t.OID == OIDTime {
		if n < 0 || n > MicrosPerDay {
			return Null, pgerror.New(pgerror.DatetimeFieldOverflow, "time out of range")
		}
		return Int(RoundMicros(n, t.Mod)), nil
	}
	if TimestampFinite(n) && !ValidTimestamp(n) {
		return Null, pgerror.New(pgerror.DatetimeFieldOverflow, "timestamp out of range")
	}
	return Int(RoundTimestamp(n, t.Mod)), nil
}

// The sign words of a numeric's binary form.
const (
	numericPositive = 0x0000
	numericNegative = 0x4000
	numericNaNSign  = 0xC000
	numericInfSign  = 0xD000
	numericNInfSign = 0xF000
	numericInfScale = 0x20 // the display scale PostgreSQL sends with an infinity
)

// appendNumericBinary writes the count of base-10000 digits, the weight of the first, the sign, the
// display scale, and the digits.
func appendNumericBinary(dst []byte, d *apd.Decimal) []byte {
	if d.Form != apd.Finite {
		sign := uint16(numericNaNSign)
		if d.Form == apd.Infinite {
			sign = numericInfSign
			if d.Negative {
				sign = numericNInfSign
			}
		}
		dst = append(dst, 0, 0, 0, 0)
		dst = binary.BigEndian.AppendUint16(dst, sign)
		if d.Form == apd.Infinite {
			return append(dst, 0, numericInfScale)
		}
		return append(dst, 0, 0)
	}
	var space [64]byte
	digits := appendCoeff(space[:0], &d.Coeff)
	scale := -int(d.Exponent)
	// The digits before the point fill whole groups of four from the point leftwards.
	whole := len(digits) - scale
	weight := int(floorDiv(int64(whole)-1, 4))
	sign := uint16(numericPositive)
	if d.Negative {
		sign = numericNegative
	}
	head := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	count, kept := 0, 0
	for at := whole - 4*(weight+1); at < len(digits); at += 4 {
		group := uint16(0)
		for j := at; j < at+4; j++ {
			group *= 10
			if j >= 0 && j < len(digits) {
				group += uint16(digits[j] - '0')
			}
		}
		if count == 0 && group == 0 {
			weight--
			continue
		}
		dst = binary.BigEndian.AppendUint16(dst, group)
		if count++; group != 0 {
			kept = count
		}
	}
	dst = dst[:head+8+2*kept]
	if kept == 0 {
		weight, sign = 0, numericPositive
	}
	binary.BigEndian.PutUint16(dst[head:], uint16(kept))
	binary.BigEndian.PutUint16(dst[head+2:], uint16(int16(weight)))
	binary.BigEndian.PutUint16(dst[head+4:], sign)
	binary.BigEndian.PutUint16(dst[head+6:], uint16(scale))
	return dst
}

func parseNumericBinary(b []byte, mod int32) (Datum, error) {
	if len(b) < 8 {
		return Null, pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
	}
	count := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	var special *apd.Decimal
	switch sign {
	case numericPositive, numericNegative:
	case numericNaNSign:
		special = NumericNaN
	case numericInfSign:
		special = NumericInf
	case numericNInfSign:
		special = NumericNegInf
	default:
		return Null, badBinary("invalid sign in external \"numeric\" value")
	}
	if scale > MaxNumericScale {
		return Null, badBinary("invalid scale in external \"numeric\" value")
	}
	if len(b) < 8+2*count {
		return Null, pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
	}
	d := special
	if special == nil {
		digits := b[8 : 8+2*count]
		text := make([]byte, 0, 4*count)
		for i := 0; i < len(digits); i += 2 {
			group := binary.BigEndian.Uint16(digits[i:])
			if group > 9999 {
				return Null, badBinary("invalid digit in external \"numeric\" value")
			}
			text = append(text, byte('0'+group/1000), byte('0'+group/100%10), byte('0'+group/10%10), byte('0'+group%10))
		}
		d = groupsToNumeric(text, weight, count, scale, sign == numericNegative)
	}
	limited, err := LimitNumeric(d, mod)
	if err != nil {
		return Null, err
	}
	return Decimal(limited), nil
}

// groupsToNumeric makes the numeric whose base-10000 digits, the first of the given weight, are the
// decimal text; digits beyond the scale are cut off.
func groupsToNumeric(text []byte, weight, count, scale int, negative bool) *apd.Decimal {
	d := &apd.Decimal{Negative: negative}
	if len(text) == 0 {
		d.Negative = false
		d.Exponent = -int32(scale)
		return d
	}
	setDigits(&d.Coeff, string(text), "")
	exponent := 4 * (weight + 1 - count)
	if exponent > 0 {
		d.Coeff.Mul(&d.Coeff, Pow10(exponent))
		exponent = 0
	}
	d.Exponent = int32(exponent)
	if d.Coeff.Sign() == 0 {
		d.Negative = false
	}
	return TruncNumeric(d, scale)
}

func appendArrayBinary(dst []byte, a *Array, elem Type) []byte {
	if !elem.Valid() {
		elem = a.Elem
	}
	nulls := uint32(0)
	for _, d := range a.Elems {
		if d.IsNull() {
			nulls = 1
		}
	}
	dims := a.AllDims()
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(dims)))
	dst = binary.BigEndian.AppendUint32(dst, nulls)
	dst = binary.BigEndian.AppendUint32(dst, uint32(elem.OID))
	for _, d := range dims {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Len))
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Low))
	}
	for _, d := range a.Elems {
		dst = appendSized(dst, d, elem)
	}
	return dst
}

// appendSized appends a datum's binary form after its length, -1 for NULL.
func appendSized(dst []byte, d Datum, t Type) []byte {
	if d.IsNull() {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	head := len(dst)
	dst = AppendBinary(append(dst, 0, 0, 0, 0), d, t)
	binary.BigEndian.PutUint32(dst[head:], uint32(len(dst)-head-4))
	return dst
}

func appendRecordBinary(dst []byte, r *Record) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(r.Fields)))
	for i, d := range r.Fields {
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Types[i].OID))
		dst = appendSized(dst, d, r.Types[i])
	}
	return dst
}

func errShortArray() error {
	return pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
}

func parseArrayBinary(elem Type, b []byte, f *Format) (Datum, error) {
	dims, b, err := arrayHeader(elem, b)
	if err != nil {
		return Null, err
	}
	n, err := CheckDims(dims)
	if err != nil || n == 0 {
		return NewArray(&Array{Elem: elem, Elems: []Datum{}}), err
	}
	if n > len(b)/4 {
		return Null, errShortArray()
	}
	elems := make([]Datum, n)
	for i := range elems {
		if err := f.poll(i); err != nil {
			return Null, err
		}
		if len(b) < 4 {
			return Null, errShortArray()
		}
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size == -1 {
			if err := CheckNull(elem, f); err != nil {
				return Null, err
			}
			continue
		}
		if size < 0 || int(size) > len(b) {
			return Null, errShortArray()
		}
		if elems[i], err = ParseBinary(elem, b[:size:size], f); err != nil {
			return Null, err
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return Null, badBinary("incorrect binary data format")
	}
	return NewDimArray(elem, elems, dims), nil
}

// arrayHeader reads the dimensions of an array's binary form, and returns the elements.
func arrayHeader(elem Type, b []byte) (dims []Dim, rest []byte, err error) {
	const head, perDim = 12, 8
	if len(b) < head {
		return nil, nil, errShortArray()
	}
	n, flags, oid := int32(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:]), OID(binary.BigEndian.Uint32(b[8:]))
	if n < 0 {
		return nil, nil, badBinary("invalid number of dimensions: %d", n)
	}
	if err := CheckNDims(int(n)); err != nil {
		return nil, nil, err
	}
	if flags > 1 {
		return nil, nil, badBinary("invalid array flags")
	}
	if oid != elem.OID {
		return nil, nil, pgerror.New(pgerror.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			oid, Type{OID: oid, Mod: -1}, elem.OID, elem.Base())
	}
	if b = b[head:]; len(b) < int(n)*perDim {
		return nil, nil, errShortArray()
	}
	for range n {
		dims = append(dims, Dim{Len: int32(binary.BigEndian.Uint32(b)), Low: int32(binary.BigEndian.Uint32(b[4:]))})
		b = b[perDim:]
	}
	return dims, b, nil
}

// BinaryElements returns the maximum number of elements of the array whose binary form is b.
func BinaryElements(b []byte) int {
	const head, perDim, elementHeader = 12, 8, 4
	most := max(len(b)-head, 0) / elementHeader
	if len(b) < head+perDim {
		return 0
	}
	n := 1
	end := min(len(b), head+perDim*int(min(binary.BigEndian.Uint32(b), MaxArrayDims)))
	for i := head; i+perDim <= end; i += perDim {
		n = int(min(int64(n)*int64(binary.BigEndian.Uint32(b[i:])), int64(most)))
	}
	return min(n, most)
}
