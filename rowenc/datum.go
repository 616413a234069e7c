package rowenc

import (
	"encoding/binary"
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/types"
)

// payload is the representation of a datum's bytes in a value: four bits.
type payload uint8

const (
	payloadNull         payload = 0 // in rows only where absence would mean ColumnDescriptor.Missing
	payloadFalse        payload = 1
	payloadTrue         payload = 2
	payloadInt          payload = 3  // zigzag varint
	payloadFloat32      payload = 4  // 4 bytes, little-endian: doubles that fit
	payloadFloat64      payload = 5  // 8 bytes, little-endian
	payloadBytes        payload = 6  // uvarint length, bytes
	payloadDecimal      payload = 7  // zigzag varint exponent, zigzag varint coefficient
	payloadBigDecimal   payload = 8  // zigzag varint exponent, sign byte, uvarint length, big-endian bytes
	payloadOtherDecimal payload = 9  // one byte: 0 NaN, 1 infinity, 2 -infinity
	payloadInterval     payload = 10 // zigzag varints: months, days, microseconds
	// payloadArray: uvarint oid, zigzag varint modifier, uvarint length of the rest, uvarint count, datums, and the dimensions unless there is
	// one with the lower bound 1: for each uvarint length, zigzag varint lower bound.
	payloadArray payload = 11
	// payloadRow: uvarint length of the rest, uvarint count, for each field that is not NULL uvarint id and datum.
	payloadRow payload = 12
	// payloadRange: uvarint length of the rest, flags, uvarint oid of the subtype, lower and upper bound as datums.
	payloadRange payload = 13
)

// maxArrayDepth bounds the recursion of decoding. Arrays hold arrays only where their elements are of a domain over arrays.
const maxArrayDepth = 1000

// EncodeDatum returns d alone, self-describing: for ColumnDescriptor.Missing and statistics.
func EncodeDatum(d types.Datum) ([]byte, error) { return AppendDatum(nil, d) }

// AppendDatum appends what EncodeDatum returns.
func AppendDatum(dst []byte, d types.Datum) ([]byte, error) {
	p, err := payloadOf(d)
	if err != nil {
		return nil, err
	}
	return appendPayload(append(dst, byte(p)), p, d)
}

// DecodeDatum is the inverse of EncodeDatum. The datum may alias b.
func DecodeDatum(b []byte) (types.Datum, error) {
	d, rest, err := decodeDatum(b, 0)
	if err == nil && len(rest) != 0 {
		return types.Null, corrupt("bytes after a datum")
	}
	return d, err
}

func decodeDatum(b []byte, depth int) (types.Datum, []byte, error) {
	if len(b) == 0 {
		return types.Null, nil, corrupt("empty datum")
	}
	if b[0] > byte(payloadRange) {
		return types.Null, nil, corrupt("unknown kind of datum")
	}
	return decodePayload(b[1:], payload(b[0]), depth)
}

// payloadOf chooses the payload for d. It fails for a datum that cannot be stored.
func payloadOf(d types.Datum) (payload, error) {
	switch d.Kind() {
	case types.KindNull:
		return payloadNull, nil
	case types.KindBool:
		if d.Bool() {
			return payloadTrue, nil
		}
		return payloadFalse, nil
	case types.KindInt:
		return payloadInt, nil
	case types.KindFloat:
		if f := d.Float(); float64(float32(f)) == f {
			return payloadFloat32, nil
		}
		return payloadFloat64, nil
	case types.KindBytes:
		return payloadBytes, nil
	case types.KindDecimal:
		switch dec := d.Decimal(); {
		case dec.Form != apd.Finite:
			return payloadOtherDecimal, nil
		case dec.Coeff.IsInt64():
			return payloadDecimal, nil
		}
		return payloadBigDecimal, nil
	case types.KindInterval:
		return payloadInterval, nil
	case types.KindArray:
		return payloadArray, nil
	case types.KindRow:
		return payloadRow, nil
	case types.KindRange:
		return payloadRange, nil
	}
	return 0, mismatch(classNone, d)
}

func appendPayload(dst []byte, p payload, d types.Datum) ([]byte, error) {
	switch p {
	case payloadInt:
		return binary.AppendVarint(dst, d.Int()), nil
	case payloadBytes:
		b := d.Bytes()
		return append(binary.AppendUvarint(dst, uint64(len(b))), b...), nil
	case payloadFloat32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(d.Float()))), nil
	case payloadFloat64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(d.Float())), nil
	case payloadDecimal:
		dec := d.Decimal()
		coefficient := dec.Coeff.Int64()
		if dec.Negative {
			coefficient = -coefficient
		}
		return binary.AppendVarint(binary.AppendVarint(dst, int64(dec.Exponent)), coefficient), nil
	case payloadBigDecimal:
		dec := d.Decimal()
		dst = binary.AppendVarint(dst, int64(dec.Exponent))
		dst = append(dst, signByte(dec.Negative))
		b := dec.Coeff.Bytes()
		return append(binary.AppendUvarint(dst, uint64(len(b))), b...), nil
	case payloadOtherDecimal:
		switch dec := d.Decimal(); {
		case dec.Form != apd.Infinite:
			return append(dst, 0), nil
		default:
			return append(dst, 1+signByte(dec.Negative)), nil
		}
	case payloadInterval:
		iv := d.Interval()
		dst = binary.AppendVarint(dst, int64(iv.Months))
		dst = binary.AppendVarint(dst, int64(iv.Days))
		return binary.AppendVarint(dst, iv.Micros), nil
	case payloadArray:
		return appendArray(dst, d.Array())
	case payloadRow:
		return appendRow(dst, d.Record())
	case payloadRange:
		return appendRange(dst, d.Range())
	}
	return dst, nil
}

func signByte(negative bool) byte {
	if negative {
		return 1
	}
	return 0
}

func appendRow(dst []byte, r *types.Record) ([]byte, error) {
	count := 0
	for _, f := range r.Fields {
		if !f.IsNull() {
			count++
		}
	}
	body := binary.AppendUvarint(nil, uint64(count))
	for i, f := range r.Fields {
		if f.IsNull() {
			continue
		}
		var err error
		if body, err = AppendDatum(binary.AppendUvarint(body, uint64(r.ID(i))), f); err != nil {
			return nil, err
		}
	}
	return append(binary.AppendUvarint(dst, uint64(len(body))), body...), nil
}

func decodeRow(b []byte, depth int) (types.Datum, []byte, error) {
	if depth == maxArrayDepth {
		return types.Null, nil, corrupt("depth of a record")
	}
	body, rest, err := takeBytes(b)
	if err != nil {
		return types.Null, nil, err
	}
	count, body, err := takeUvarint(body)
	if err != nil {
		return types.Null, nil, err
	}
	if count > uint64(len(body)) {
		return types.Null, nil, corrupt("bad record")
	}
	ids, fields := make([]uint32, count), make(types.Row, count)
	for i := range fields {
		var id uint64
		if id, body, err = takeUvarint(body); err != nil {
			return types.Null, nil, err
		}
		if id == 0 || id > math.MaxUint32 {
			return types.Null, nil, corrupt("field of a record")
		}
		ids[i] = uint32(id)
		if fields[i], body, err = decodeDatum(body, depth+1); err != nil {
			return types.Null, nil, err
		}
	}
	if len(body) != 0 {
		return types.Null, nil, corrupt("bytes after a record")
	}
	return types.NewStoredRecord(ids, fields), rest, nil
}

func appendArray(dst []byte, a *types.Array) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(a.Elem.OID))
	dst = binary.AppendVarint(dst, int64(a.Elem.Mod))
	body := binary.AppendUvarint(nil, uint64(len(a.Elems)))
	for _, e := range a.Elems {
		var err error
		if body, err = AppendDatum(body, e); err != nil {
			return nil, err
		}
	}
	body = appendDims(body, a)
	return append(binary.AppendUvarint(dst, uint64(len(body))), body...), nil
}

// skipPayload returns b without a payload of kind p.
func skipPayload(b []byte, p payload) ([]byte, error) {
	switch p {
	case payloadNull, payloadFalse, payloadTrue:
		return b, nil
	case payloadInt:
		return skipVarint(b)
	case payloadFloat32:
		return skipN(b, 4)
	case payloadFloat64:
		return skipN(b, 8)
	case payloadBytes:
		_, rest, err := takeBytes(b)
		return rest, err
	case payloadRow, payloadRange:
		_, rest, err := takeBytes(b)
		return rest, err
	case payloadOtherDecimal:
		return skipN(b, 1)
	case payloadDecimal:
		return skipVarints(b, 2)
	case payloadInterval:
		return skipVarints(b, 3)
	case payloadBigDecimal:
		b, err := skipVarint(b)
		if err == nil {
			b, err = skipN(b, 1)
		}
		if err == nil {
			_, b, err = takeBytes(b)
		}
		return b, err
	case payloadArray:
		b, err := skipVarints(b, 2)
		if err == nil {
			_, b, err = takeBytes(b)
		}
		return b, err
	}
	return nil, corrupt("unknown kind of datum")
}

func skipVarint(b []byte) ([]byte, error) {
	for i, c := range b {
		if c < 0x80 {
			return b[i+1:], nil
		}
	}
	return nil, corrupt("value ends early")
}

func skipVarints(b []byte, n int) (_ []byte, err error) {
	for ; n > 0 && err == nil; n-- {
		b, err = skipVarint(b)
	}
	return b, err
}

func takeUvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, corrupt("bad length")
	}
	return v, b[n:], nil
}

func takeVarint(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, corrupt("bad integer")
	}
	return v, b[n:], nil
}

// takeInt32 takes a varint that was made from an int32.
func takeInt32(b []byte) (int32, []byte, error) {
	v, b, err := takeVarint(b)
	if err == nil && v != int64(int32(v)) {
		err = corrupt("integer out of range")
	}
	return int32(v), b, err
}

// takeBytes takes a length and that many bytes.
func takeBytes(b []byte) (body, rest []byte, err error) {
	n, b, err := takeUvarint(b)
	if err != nil {
		return nil, nil, err
	}
	if n > uint64(len(b)) {
		return nil, nil, corrupt("value ends early")
	}
	return b[:n:n], b[n:], nil
}

// decodePayload decodes a payload at the start of b. The datum may alias b.
func decodePayload(b []byte, p payload, depth int) (types.Datum, []byte, error) {
	switch p {
	case payloadNull:
		return types.Null, b, nil
	case payloadFalse:
		return types.Bool(false), b, nil
	case payloadTrue:
		return types.Bool(true), b, nil
	case payloadInt:
		if len(b) > 0 && b[0] < 0x80 {
			u := uint64(b[0])
			return types.Int(int64(u>>1) ^ -int64(u&1)), b[1:], nil
		}
		v, rest, err := takeVarint(b)
		return types.Int(v), rest, err
	case payloadBytes:
		body, rest, err := takeBytes(b)
		return types.Bytes(body), rest, err
	case payloadFloat32:
		if len(b) < 4 {
			return types.Null, nil, corrupt("value ends early")
		}
		return types.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), b[4:], nil
	case payloadFloat64:
		if len(b) < 8 {
			return types.Null, nil, corrupt("value ends early")
		}
		return types.Float(math.Float64frombits(binary.LittleEndian.Uint64(b))), b[8:], nil
	case payloadDecimal, payloadBigDecimal, payloadOtherDecimal:
		d := new(apd.Decimal)
		rest, err := decodeDecimal(d, b, p)
		return types.Decimal(d), rest, err
	case payloadInterval:
		return decodeInterval(b)
	case payloadArray:
		return decodeArray(b, depth)
	case payloadRow:
		return decodeRow(b, depth)
	case payloadRange:
		return decodeRange(b, depth)
	}
	return types.Null, nil, corrupt("unknown kind of datum")
}

func decodeDecimal(d *apd.Decimal, b []byte, p payload) (rest []byte, err error) {
	if p == payloadOtherDecimal {
		if len(b) == 0 || b[0] > 2 {
			return nil, corrupt("bad numeric")
		}
		d.Form, d.Negative = apd.Infinite, b[0] == 2
		if b[0] == 0 {
			d.Form = apd.NaN
		}
		return b[1:], nil
	}
	if d.Exponent, b, err = takeInt32(b); err != nil {
		return nil, err
	}
	if d.Exponent > maxDecimalExponent || d.Exponent < -maxDecimalExponent {
		return nil, corrupt("exponent of a numeric")
	}
	if p == payloadDecimal {
		v, b, err := takeVarint(b)
		if err != nil {
			return nil, err
		}
		d.Negative = v < 0
		if v < 0 {
			d.Coeff.SetUint64(-uint64(v))
		} else {
			d.Coeff.SetUint64(uint64(v))
		}
		return b, nil
	}
	if len(b) == 0 || b[0] > 1 {
		return nil, corrupt("bad numeric")
	}
	d.Negative = b[0] == 1
	body, b, err := takeBytes(b[1:])
	if err != nil {
		return nil, err
	}
	d.Coeff.SetBytes(body)
	return b, nil
}

func decodeInterval(b []byte) (types.Datum, []byte, error) {
	var iv types.Interval
	var err error
	if iv.Months, b, err = takeInt32(b); err != nil {
		return types.Null, nil, err
	}
	if iv.Days, b, err = takeInt32(b); err != nil {
		return types.Null, nil, err
	}
	if iv.Micros, b, err = takeVarint(b); err != nil {
		return types.Null, nil, err
	}
	return types.NewInterval(iv), b, nil
}

func decodeArray(b []byte, depth int) (types.Datum, []byte, error) {
	if depth == maxArrayDepth {
		return types.Null, nil, corrupt("array in an array")
	}
	oid, b, err := takeUvarint(b)
	if err != nil {
		return types.Null, nil, err
	}
	mod, b, err := takeInt32(b)
	if err != nil {
		return types.Null, nil, err
	}
	body, rest, err := takeBytes(b)
	if err != nil {
		return types.Null, nil, err
	}
	count, body, err := takeUvarint(body)
	if err != nil {
		return types.Null, nil, err
	}
	if count > uint64(len(body)) || oid > math.MaxUint32 {
		return types.Null, nil, corrupt("bad array")
	}
	elem, elems := types.Type{OID: types.OID(oid), Mod: mod}, make([]types.Datum, count)
	for i := range elems {
		if elems[i], body, err = decodeDatum(body, depth+1); err != nil {
			return types.Null, nil, err
		}
	}
	if len(body) == 0 {
		return types.NewArray(&types.Array{Elem: elem, Elems: elems}), rest, nil
	}
	dims, err := takeDims(body)
	if err != nil {
		return types.Null, nil, err
	}
	d, err := arrayOf(elem, elems, dims)
	return d, rest, err
}
