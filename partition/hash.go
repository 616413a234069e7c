package partition

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/percodb/percodb/sql/types"
)

// hashSeed is PostgreSQL's HASH_PARTITION_SEED.
const hashSeed = 0x7A5B22367996DCFD

// Hashable reports whether rows can be divided by the hash of values of a type.
func Hashable(t types.Type) bool { return hasher(t) != nil }

// hasher returns PostgreSQL's extended hash function of a type with the partition seed; nil if the type has none here.
func hasher(t types.Type) func(types.Datum) uint64 {
	t = t.Underlying()
	if t.IsArray() {
		return nil
	}
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDOid, types.OIDDate, types.OIDBool:
		return func(d types.Datum) uint64 { return hashWord(uint32(d.Int())) }
	case types.OIDInt8, types.OIDTimestamp, types.OIDTimestamptz, types.OIDTime:
		return func(d types.Datum) uint64 { return hashInt8(d.Int()) }
	case types.OIDText, types.OIDVarchar, types.OIDUUID, types.OIDBytea, types.OIDName:
		return func(d types.Datum) uint64 { return hashBytes(d.Bytes()) }
	case types.OIDBPChar:
		return func(d types.Datum) uint64 { return hashBytes(types.TrimBPChar(d.Bytes())) }
	case types.OIDFloat4, types.OIDFloat8:
		return hashFloat
	}
	return nil
}

// hashRow is PostgreSQL's compute_partition_hash_value.
func hashRow(hashers []func(types.Datum) uint64, key []types.Datum) uint64 {
	var h uint64
	for i, d := range key {
		if !d.IsNull() {
			h ^= hashers[i](d) + 0x49a0f4dd15e5a8e3 + h<<54 + h>>7
		}
	}
	return h
}

func hashInt8(n int64) uint64 {
	low, high := uint32(n), uint32(n>>32)
	if n < 0 {
		high = ^high
	}
	return hashWord(low ^ high)
}

func hashFloat(d types.Datum) uint64 {
	f := d.Float()
	if f == 0 {
		return hashSeed
	}
	if math.IsNaN(f) {
		f = math.Float64frombits(0x7FF8000000000000)
	}
	return hashBytes(binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
}

// jenkins is the state of Bob Jenkins' lookup3, as PostgreSQL's hash_bytes_extended uses it.
type jenkins struct{ a, b, c uint32 }

func newJenkins(n int) *jenkins {
	init := 0x9e3779b9 + uint32(n) + 3923095
	seed := uint64(hashSeed)
	h := &jenkins{init + uint32(seed>>32), init + uint32(seed), init}
	h.mix()
	return h
}

func (h *jenkins) mix() {
	a, b, c := h.a, h.b, h.c
	a -= c
	a ^= bits.RotateLeft32(c, 4)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 6)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 8)
	b += a
	a -= c
	a ^= bits.RotateLeft32(c, 16)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 19)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 4)
	b += a
	h.a, h.b, h.c = a, b, c
}

func (h *jenkins) sum() uint64 {
	a, b, c := h.a, h.b, h.c
	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return uint64(b)<<32 | uint64(c)
}

// hashWord is hash_uint32_extended.
func hashWord(k uint32) uint64 {
	h := newJenkins(4)
	h.a += k
	return h.sum()
}

// hashBytes is hash_bytes_extended.
func hashBytes(k []byte) uint64 {
	h := newJenkins(len(k))
	for len(k) >= 12 {
		h.a += binary.LittleEndian.Uint32(k)
		h.b += binary.LittleEndian.Uint32(k[4:])
		h.c += binary.LittleEndian.Uint32(k[8:])
		h.mix()
		k = k[12:]
	}
	for i, x := range k {
		switch {
		case i < 4:
			h.a += uint32(x) << (8 * i)
		case i < 8:
			h.b += uint32(x) << (8 * (i - 4))
		default: // The lowest byte is that of the length.
			h.c += uint32(x) << (8 * (i - 7))
		}
	}
	return h.sum()
}
