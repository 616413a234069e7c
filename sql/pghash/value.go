package pghash

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// Hash32 hashes a value that is not NULL to 32 bits. Error: 42883, values of its type cannot be hashed.
func Hash32(d types.Datum, t types.Type) (int32, error) {
	h, err := hasher{}.value(d, t)
	return int32(h), err
}

// Hash64 hashes a value that is not NULL to 64 bits. Error: 42883, values of its type cannot be hashed.
func Hash64(d types.Datum, t types.Type, seed uint64) (uint64, error) {
	return hasher{seed: seed, extended: true}.value(d, t)
}

// Hashable reports whether values of a type can be hashed; of anonymous records that depends on the values.
func Hashable(t types.Type) bool {
	t = t.Underlying()
	switch {
	case t.Ranges() != nil:
		return Hashable(t.Ranges().Sub)
	case t.IsComposite():
		for i := range t.Def.Fields {
			if !Hashable(t.Def.Fields[i].Type) {
				return false
			}
		}
		return true
	case t.Elem().Valid() && t.OID != types.OIDOidvector:
		return Hashable(t.Elem())
	}
	return t.IsEnum() || t.IsRow() || scalars[t.OID]
}

// scalars are the types without parts that value hashes.
var scalars = map[types.OID]bool{
	types.OIDBool: true, types.OIDInt2: true, types.OIDInt4: true, types.OIDInt8: true, types.OIDDate: true, types.OIDOid: true, types.OIDXid: true,
	types.OIDCid: true, types.OIDRegclass: true, types.OIDRegtype: true, types.OIDRegproc: true, types.OIDRegprocedure: true, types.OIDRegoper: true,
	types.OIDRegoperator: true, types.OIDRegnamespace: true, types.OIDRegrole: true, types.OIDRegcollation: true, types.OIDTime: true,
	types.OIDTimestamp: true, types.OIDTimestamptz: true, types.OIDLSN: true, types.OIDXid8: true, types.OIDFloat4: true, types.OIDFloat8: true,
	types.OIDNumeric: true, types.OIDChar: true, types.OIDText: true, types.OIDVarchar: true, types.OIDName: true, types.OIDBytea: true,
	types.OIDUUID: true, types.OIDMacaddr: true, types.OIDMacaddr8: true, types.OIDBPChar: true, types.OIDTimetz: true, types.OIDInterval: true,
	types.OIDInet: true, types.OIDCidr: true, types.OIDTid: true, types.OIDACLItem: true, types.OIDJSONB: true, types.OIDOidvector: true,
}

// typeName is a type's name in messages.
func typeName(t types.Type) string {
	if info := t.Info(); info != nil {
		return info.SQLName
	}
	return t.Base().String()
}

// hasher hashes values as PostgreSQL's hash operator classes do: to 64 bits with a seed if it is extended, else to 32 bits.
type hasher struct {
	seed     uint64
	extended bool
}

// cut drops the bits that the hash has not.
func (h hasher) cut(v uint64) uint64 {
	if h.extended {
		return v
	}
	return v & math.MaxUint32
}

func (h hasher) bytes(b []byte) (uint64, error)  { return h.cut(hashBytes(b, h.seed)), nil }
func (h hasher) uint32(n uint32) (uint64, error) { return h.cut(hashUint32(n, h.seed)), nil }
func (h hasher) int64(n int64) (uint64, error)   { return h.cut(hashInt64(n, h.seed)), nil }

// value hashes a value that is not NULL. Error: 42883, its type has no hash function.
func (h hasher) value(d types.Datum, t types.Type) (uint64, error) {
	t = t.Underlying()
	switch t.OID {
	case types.OIDBool:
		if d.Bool() {
			return h.uint32(1)
		}
		return h.uint32(0)
	case types.OIDInt2, types.OIDInt4, types.OIDDate, types.OIDOid, types.OIDXid, types.OIDCid, types.OIDRegclass, types.OIDRegtype, types.OIDRegproc,
		types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegcollation:
		return h.uint32(uint32(d.Int()))
	case types.OIDInt8, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz:
		return h.int64(d.Int())
	case types.OIDLSN, types.OIDXid8:
		return h.int64(int64(d.Uint64()))
	case types.OIDFloat4, types.OIDFloat8:
		return h.float(d.Float())
	case types.OIDNumeric:
		return h.numeric(d)
	case types.OIDChar:
		return h.uint32(uint32(int32(int8(append(types.AppendBinary(nil, d, t), 0)[0]))))
	case types.OIDText, types.OIDVarchar, types.OIDName, types.OIDBytea, types.OIDUUID, types.OIDMacaddr, types.OIDMacaddr8:
		return h.bytes(d.Bytes())
	case types.OIDBPChar:
		return h.bytes([]byte(strings.TrimRight(d.Text(), " ")))
	case types.OIDTimetz:
		return h.timetz(d.Timetz())
	case types.OIDInterval:
		return h.interval(d.Interval())
	case types.OIDInet, types.OIDCidr:
		return h.inet(d.Inet())
	case types.OIDTid:
		b := d.Bytes()
		return h.bytes([]byte{b[1], b[0], b[3], b[2], b[5], b[4]})
	case types.OIDACLItem:
		it := d.ACLItem()
		sum := uint32(it.Rights) + it.Grantee + it.Grantor
		if h.seed == 0 {
			return uint64(sum), nil
		}
		return h.uint32(sum)
	case types.OIDJSONB:
		return h.jsonb(d.Bytes()), nil
	case types.OIDOidvector:
		var b []byte
		for _, e := range d.Array().Elems {
			b = binary.LittleEndian.AppendUint32(b, uint32(e.Int()))
		}
		return h.bytes(b)
	}
	switch {
	case t.IsEnum():
		if label, _, ok := t.Def.Label(d); ok {
			return h.uint32(uint32(label.OID))
		}
	case t.Ranges() != nil && t.Ranges().Multi.OID == t.OID:
		return h.sequence(d.Array().Elems, 1, func(int) types.Type { return t.Ranges().Range })
	case t.Ranges() != nil:
		return h.rangeValue(d.Range())
	case t.IsRow():
		r := d.Record()
		return h.sequence(r.Fields, 0, func(i int) types.Type { return r.Types[i] })
	case t.Elem().Valid():
		return h.sequence(d.Array().Elems, 1, func(int) types.Type { return t.Elem() })
	}
	kind := "a hash"
	if h.extended {
		kind = "an extended hash"
	}
	return 0, pgerror.New(pgerror.UndefinedFunction, "could not identify %s function for type %s", kind, typeName(t))
}

// sequence hashes the elements of an array, record or multirange.
func (h hasher) sequence(elems []types.Datum, sum uint64, typeOf func(i int) types.Type) (uint64, error) {
	for i, e := range elems {
		v := uint64(0)
		if !e.IsNull() {
			var err error
			if v, err = h.value(e, typeOf(i)); err != nil {
				return 0, err
			}
		}
		sum = h.cut(sum<<5 - sum + v)
	}
	return sum, nil
}

func (h hasher) float(f float64) (uint64, error) {
	switch {
	case f == 0:
		return h.seed, nil
	case math.IsNaN(f):
		return h.bytes(binary.LittleEndian.AppendUint64(nil, 0x7ff8000000000000))
	}
	return h.bytes(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
}

// numeric hashes the digits of base 10000 between the zeros at both ends, and the weight of the first.
func (h hasher) numeric(d types.Datum) (uint64, error) {
	const header = 8 // of the binary form: the number of digits, the weight, the sign, the scale
	sent := types.AppendBinary(nil, d, types.TNumeric)
	if sign := binary.BigEndian.Uint16(sent[4:]); sign&0xc000 == 0xc000 {
		return h.seed, nil // NaN and the infinities
	}
	weight := int64(int16(binary.BigEndian.Uint16(sent[2:])))
	var digits []byte // as PostgreSQL has them in memory
	zeros := 0
	for b := sent[header:]; len(b) >= 2; b = b[2:] {
		digit := binary.BigEndian.Uint16(b)
		switch {
		case digit == 0 && len(digits) == 0:
			weight--
			continue
		case digit == 0:
			zeros++
		default:
			zeros = 0
		}
		digits = binary.LittleEndian.AppendUint16(digits, digit)
	}
	if len(digits) == 0 {
		return h.cut(h.seed - 1), nil
	}
	return h.cut(hashBytes(digits[:len(digits)-2*zeros], h.seed) ^ uint64(weight)), nil
}

func (h hasher) timetz(t types.Timetz) (uint64, error) {
	return h.cut(hashInt64(t.Micros, h.seed) ^ hashUint32(uint32(t.West), h.seed)), nil
}

// interval hashes the lower half of the length in microseconds, of months of 30 days.
func (h hasher) interval(iv types.Interval) (uint64, error) {
	return h.int64(iv.Micros + (int64(iv.Days)+30*int64(iv.Months))*types.MicrosPerDay)
}

func (h hasher) inet(n types.Inet) (uint64, error) {
	family := byte(2)
	if len(n.Addr) == 16 {
		family = 3
	}
	return h.bytes(append([]byte{family, byte(n.Bits)}, n.Addr...))
}

// The flags of a range in PostgreSQL's form, which its hash includes.
const (
	rangeFlagEmpty = 1 << iota
	rangeFlagLowerInc
	rangeFlagUpperInc
	rangeFlagLowerInfinite
	rangeFlagUpperInfinite
)

func (h hasher) rangeValue(r *types.Range) (uint64, error) {
	flags := uint32(0)
	for _, f := range []struct {
		set  bool
		flag uint32
	}{
		{r.Empty, rangeFlagEmpty}, {r.LowerInc, rangeFlagLowerInc}, {r.UpperInc, rangeFlagUpperInc},
		{!r.Empty && r.Lower.IsNull(), rangeFlagLowerInfinite}, {!r.Empty && r.Upper.IsNull(), rangeFlagUpperInfinite},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	var bounds [2]uint64
	for i, b := range []types.Datum{r.Lower, r.Upper} {
		if b.IsNull() {
			continue
		}
		var err error
		if bounds[i], err = h.value(b, r.Sub); err != nil {
			return 0, err
		}
	}
	sum := h.cut(hashUint32(flags, h.seed)) ^ bounds[0]
	return rotateHash(sum, h.extended) ^ bounds[1], nil
}

// The bits by which the hash of a jsonb tells arrays from objects.
const (
	jsonbHashArray  = 0x40000000
	jsonbHashObject = 0x20000000
)

// jsonb hashes a document: a scalar counts as an array of one, and what is empty is not distinguished.
func (h hasher) jsonb(v jsonb.Value) uint64 {
	if v.IsContainer() && v.Len() == 0 {
		return h.seed
	}
	sum := uint64(0)
	if !v.IsContainer() {
		sum = h.container(sum, jsonbHashArray)
	}
	return h.jsonbValue(sum, v)
}

func (h hasher) container(sum, bit uint64) uint64 { return h.cut(sum ^ (bit<<32 | bit)) }

func (h hasher) jsonbValue(sum uint64, v jsonb.Value) uint64 {
	switch v.Kind() {
	case jsonb.Array:
		sum = h.container(sum, jsonbHashArray)
		for i := range v.Len() {
			sum = h.jsonbValue(sum, v.Elem(i))
		}
		return sum
	case jsonb.Object:
		sum = h.container(sum, jsonbHashObject)
		v.Members(func(key []byte, member jsonb.Value) bool {
			sum = rotateHash(sum, h.extended) ^ h.cut(hashBytes(key, h.seed))
			sum = h.jsonbValue(sum, member)
			return true
		})
		return sum
	}
	return rotateHash(sum, h.extended) ^ h.jsonbScalar(v)
}

func (h hasher) jsonbScalar(v jsonb.Value) uint64 {
	const null, isTrue, isFalse = 1, 2, 4
	switch v.Kind() {
	case jsonb.String:
		return h.cut(hashBytes(v.Text(), h.seed))
	case jsonb.Number:
		d, err := types.ParseText(types.TNumeric, string(v.Text()), nil)
		if err != nil {
			return 0 // A number of jsonb is a numeric.
		}
		sum, _ := h.numeric(d) // It never fails.
		return sum
	case jsonb.True, jsonb.False:
		truth := v.Kind() == jsonb.True
		switch {
		case h.extended && h.seed != 0 && truth:
			return hashUint32(1, h.seed)
		case h.extended && h.seed != 0:
			return hashUint32(0, h.seed)
		case truth:
			return isTrue
		}
		return isFalse
	}
	return h.cut(h.seed + null)
}
