package rowenc

import (
	"encoding/binary"
	"math"

	"github.com/percodb/percodb/sql/types"
)

// A range in a key is a string, escaped as strings are: rangeEmpty alone; or the lower bound, which is rangeNoLower or rangeLower with
// the value and its side, and the upper one, which is rangeUpper with the value and its side or rangeNoUpper. A multirange is a string
// of its ranges and multirangeEnd. Thus they order as PostgreSQL compares them.
const (
	multirangeEnd = 0x10
	rangeEmpty    = 0x11
	rangeNoLower  = 0x12
	rangeLower    = 0x13
	rangeUpper    = 0x11
	rangeNoUpper  = 0x12
	sideFirst     = 0x11 // of an inclusive lower or an exclusive upper bound
	sideSecond    = 0x12
)

// appendOrderedRange appends a range or multirange of type t.
func appendOrderedRange(dst []byte, t types.Type, d types.Datum) ([]byte, error) {
	rt := t.Ranges()
	var inner []byte
	var err error
	switch {
	case t.IsRange() && d.Kind() == types.KindRange:
		inner, err = appendRangeBounds(nil, rt, d.Range())
	case t.IsMultirange() && d.Kind() == types.KindArray:
		for _, e := range d.Array().Elems {
			if inner, err = appendRangeBounds(inner, rt, e.Range()); err != nil {
				return nil, err
			}
		}
		inner = append(inner, multirangeEnd)
	default:
		return nil, mismatch(classRange, d)
	}
	if err != nil {
		return nil, err
	}
	return appendOrderedBytes(append(dst, tagBytes), inner), nil
}

func appendRangeBounds(dst []byte, rt *types.RangeTypes, r *types.Range) ([]byte, error) {
	if r.Empty {
		return append(dst, rangeEmpty), nil
	}
	var err error
	if r.Lower.IsNull() {
		dst = append(dst, rangeNoLower)
	} else if dst, err = appendRangeBound(append(dst, rangeLower), rt, r.Lower, r.LowerInc); err != nil {
		return nil, err
	}
	if r.Upper.IsNull() {
		return append(dst, rangeNoUpper), nil
	}
	return appendRangeBound(append(dst, rangeUpper), rt, r.Upper, !r.UpperInc)
}

func appendRangeBound(dst []byte, rt *types.RangeTypes, d types.Datum, first bool) ([]byte, error) {
	dst, err := appendOrdered(dst, rt.Sub, d, false, false)
	if err != nil {
		return nil, err
	}
	if first {
		return append(dst, sideFirst), nil
	}
	return append(dst, sideSecond), nil
}

func decodeOrderedRange(b []byte, mask byte, t types.Type) (types.Datum, []byte, error) {
	inner, rest, err := decodeOrderedBytes(b, mask)
	if err != nil {
		return types.Null, nil, err
	}
	in := inner.Bytes()
	d, rt := types.Null, t.Ranges()
	if t.IsRange() {
		d, in, err = takeRangeBounds(in, rt)
	} else {
		ranges := []types.Datum{}
		for err == nil && len(in) > 0 && in[0] != multirangeEnd {
			if d, in, err = takeRangeBounds(in, rt); err == nil {
				ranges = append(ranges, d)
			}
		}
		if err == nil && len(in) == 0 {
			err = corrupt("multirange without end in key")
		}
		if err == nil {
			in = in[1:]
			d = types.NewArray(&types.Array{Elem: rt.Range, Elems: ranges})
		}
	}
	if err == nil && len(in) > 0 {
		err = corrupt("bytes after a range in key")
	}
	return d, rest, err
}

func takeRangeBounds(b []byte, rt *types.RangeTypes) (_ types.Datum, rest []byte, err error) {
	r := &types.Range{Sub: rt.Sub}
	tag, b, err := takeByte(b)
	switch {
	case err != nil:
		return types.Null, nil, err
	case tag == rangeEmpty:
		r.Empty = true
		return types.NewRange(r), b, nil
	case tag == rangeLower:
		if r.Lower, r.LowerInc, b, err = takeRangeBound(b, rt); err != nil {
			return types.Null, nil, err
		}
	case tag != rangeNoLower:
		return types.Null, nil, corrupt("bad range in key")
	}
	if tag, b, err = takeByte(b); err != nil {
		return types.Null, nil, err
	}
	switch tag {
	case rangeUpper:
		first := false
		if r.Upper, first, b, err = takeRangeBound(b, rt); err != nil {
			return types.Null, nil, err
		}
		r.UpperInc = !first
	case rangeNoUpper:
	default:
		return types.Null, nil, corrupt("bad range in key")
	}
	return types.NewRange(r), b, nil
}

func takeRangeBound(b []byte, rt *types.RangeTypes) (_ types.Datum, first bool, rest []byte, err error) {
	d, b, err := decodeOrdered(b, rt.Sub, classOf(rt.Sub), false)
	if err != nil {
		return types.Null, false, nil, err
	}
	side, b, err := takeByte(b)
	if err == nil && (d.IsNull() || side != sideFirst && side != sideSecond) {
		err = corrupt("bad bound of a range in key")
	}
	return d, side == sideFirst, b, err
}

func takeByte(b []byte) (byte, []byte, error) {
	if len(b) == 0 {
		return 0, nil, corrupt("range ends early")
	}
	return b[0], b[1:], nil
}

// The flags of a range in a value.
const (
	storedEmpty = 1 << iota
	storedLowerInc
	storedUpperInc
)

// appendRange appends what payloadRange describes.
func appendRange(dst []byte, r *types.Range) ([]byte, error) {
	flags := byte(0)
	if r.Empty {
		flags |= storedEmpty
	}
	if r.LowerInc {
		flags |= storedLowerInc
	}
	if r.UpperInc {
		flags |= storedUpperInc
	}
	body := binary.AppendUvarint([]byte{flags}, uint64(r.Sub.OID))
	var err error
	for _, d := range []types.Datum{r.Lower, r.Upper} {
		if body, err = AppendDatum(body, d); err != nil {
			return nil, err
		}
	}
	return append(binary.AppendUvarint(dst, uint64(len(body))), body...), nil
}

func decodeRange(b []byte, depth int) (types.Datum, []byte, error) {
	if depth == maxArrayDepth {
		return types.Null, nil, corrupt("depth of a range")
	}
	body, rest, err := takeBytes(b)
	if err != nil {
		return types.Null, nil, err
	}
	flags, body, err := takeByte(body)
	if err != nil {
		return types.Null, nil, err
	}
	oid, body, err := takeUvarint(body)
	if err != nil {
		return types.Null, nil, err
	}
	if oid > math.MaxUint32 || flags > storedEmpty|storedLowerInc|storedUpperInc {
		return types.Null, nil, corrupt("bad range")
	}
	r := &types.Range{Sub: types.Type{OID: types.OID(oid), Mod: -1}, Empty: flags&storedEmpty != 0,
		LowerInc: flags&storedLowerInc != 0, UpperInc: flags&storedUpperInc != 0}
	for _, d := range []*types.Datum{&r.Lower, &r.Upper} {
		if *d, body, err = decodeDatum(body, depth+1); err != nil {
			return types.Null, nil, err
		}
	}
	if len(body) != 0 {
		return types.Null, nil, corrupt("bytes after a range")
	}
	return types.NewRange(r), rest, nil
}
