package builtin

import (
	"bytes"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func bitOps() []decl {
	return []decl{
		{sig: "&(bit,bit) bit", fn: bitLogic('&')}, {sig: "|(bit,bit) bit", fn: bitLogic('|')}, {sig: "#(bit,bit) bit", fn: bitLogic('#')},
		{sig: "~(bit) bit", fn: bitNot}, {sig: "<<(bit,int4) bit", fn: bitShift(1)}, {sig: ">>(bit,int4) bit", fn: bitShift(-1)},
		{sig: "||(varbit,varbit) varbit", fn: bitConcat},
	}
}

func bitFuncs() []decl {
	out := []decl{
		{sig: "bitand(bit,bit) bit", fn: bitLogic('&')}, {sig: "bitor(bit,bit) bit", fn: bitLogic('|')}, {sig: "bitxor(bit,bit) bit", fn: bitLogic('#')},
		{sig: "bitnot(bit) bit", fn: bitNot}, {sig: "bitshiftleft(bit,int4) bit", fn: bitShift(1)}, {sig: "bitshiftright(bit,int4) bit", fn: bitShift(-1)},
		{sig: "bitcat(varbit,varbit) varbit", fn: bitConcat},
		{sig: "length(bit) int4", fn: bitInt(func(s types.BitString) int { return s.Len })},
		{sig: "bit_length(bit) int4", fn: bitInt(func(s types.BitString) int { return s.Len })},
		{sig: "octet_length(bit) int4", fn: bitInt(func(s types.BitString) int { return len(s.Data) })},
		{sig: "bit_count(bit) int8", fn: bitInt(types.BitString.OnesCount)},
		{sig: "get_bit(bit,int4) int4", fn: bitGet}, {sig: "set_bit(bit,int4,int4) bit", fn: bitSet},
		{sig: "position(bit,bit) int4", fn: bitPosition},
		{sig: "substring(bit,int4,int4) bit", fn: bitSubstring}, {sig: "substring(bit,int4) bit", fn: bitSubstring},
		{sig: "overlay(bit,bit,int4,int4) bit", fn: bitOverlay}, {sig: "overlay(bit,bit,int4) bit", fn: bitOverlay},
		{sig: "bit(bit,int4,bool) bit", fn: bitLength(types.TBit)}, {sig: "varbit(varbit,int4,bool) varbit", fn: bitLength(types.TVarbit)},
		{sig: "bit(int4,int4) bit", fn: bitOfIntFunc(32)}, {sig: "bit(int8,int4) bit", fn: bitOfIntFunc(64)},
	}
	out = append(out, comparisonFuncs("bit", "bit", "bitcmp")...)
	return append(out, comparisonFuncs("varbit", "varbit", "varbitcmp")...)
}

func bitCasts() []typeCast {
	return []typeCast{
		{from: "bit", to: "varbit", context: Implicit}, {from: "varbit", to: "bit", context: Implicit},
		{from: "bit", to: "int4", context: Explicit, fn: bitToInt(32)}, {from: "bit", to: "int8", context: Explicit, fn: bitToInt(64)},
		{from: "int4", to: "bit", context: Explicit, withMod: bitOfInt(32), unnamed: true},
		{from: "int8", to: "bit", context: Explicit, withMod: bitOfInt(64), unnamed: true},
	}
}

func bitAggs() []aggDecl {
	var out []aggDecl
	for _, x := range []struct {
		name string
		op   byte
	}{{"bit_and", '&'}, {"bit_or", '|'}, {"bit_xor", '#'}} {
		out = append(out, aggDecl{sig: x.name + "(bit) bit", make: fixed(func() Accumulator { return &bitwiseBits{op: x.op} })})
	}
	return out
}

// bitResult returns a bit string after it is counted.
func bitResult(env *Env, s types.BitString) (types.Datum, error) {
	if err := env.Reserve(2 * len(s.Data)); err != nil {
		return types.Null, err
	}
	return types.Bits(s), nil
}

func bitInt(f func(types.BitString) int) Func {
	return fn1(func(a types.Datum) (types.Datum, error) { return types.Int(int64(f(a.Bits()))), nil })
}

// combineBits applies & | # to strings of equal length.
func combineBits(op byte, a, b types.BitString) (types.BitString, error) {
	if a.Len != b.Len {
		name := map[byte]string{'&': "AND", '|': "OR", '#': "XOR"}[op]
		return a, pgerror.New(pgerror.StringDataLengthMismatch, "cannot %s bit strings of different sizes", name)
	}
	for i, c := range b.Data {
		switch op {
		case '&':
			a.Data[i] &= c
		case '|':
			a.Data[i] |= c
		default:
			a.Data[i] ^= c
		}
	}
	return a, nil
}

func bitLogic(op byte) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		s, err := combineBits(op, a[0].Bits(), a[1].Bits())
		if err != nil {
			return types.Null, err
		}
		return bitResult(env, s)
	}
}

// bitwiseBits implements bit_and, bit_or and bit_xor of bit strings.
type bitwiseBits struct {
	op    byte
	some  bool
	value types.BitString
}

func (b *bitwiseBits) Add(_ *Env, a []types.Datum) (err error) {
	if a[0].IsNull() {
		return nil
	}
	s := a[0].Bits()
	if b.some {
		s, err = combineBits(b.op, s, b.value)
	}
	b.some, b.value = true, s
	return err
}

func (b *bitwiseBits) Result(*Env) (types.Datum, error) {
	if !b.some {
		return types.Null, nil
	}
	return types.Bits(b.value), nil
}

func bitNot(env *Env, a []types.Datum) (types.Datum, error) {
	s := a[0].Bits()
	for i := range s.Data {
		s.Data[i] = ^s.Data[i]
	}
	if rest := s.Len % 8; rest > 0 {
		s.Data[len(s.Data)-1] &= 0xFF << (8 - rest)
	}
	return bitResult(env, s)
}

// bitShift shifts to the left (1) or right (-1); the length stays.
func bitShift(sign int64) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		s, by := a[0].Bits(), a[1].Int()*sign
		n := int(min(max(by, -by), int64(s.Len)))
		if by >= 0 {
			s = s.Slice(n, s.Len).Resize(s.Len)
		} else {
			s = types.NewBitString(n).Concat(s.Slice(0, s.Len-n))
		}
		return bitResult(env, s)
	}
}

func bitConcat(env *Env, a []types.Datum) (types.Datum, error) {
	if err := env.Reserve(2 * (len(a[0].Bytes()) + len(a[1].Bytes()))); err != nil {
		return types.Null, err
	}
	return types.Bits(a[0].Bits().Concat(a[1].Bits())), nil
}

func bitIndex(s types.BitString, n int64) error {
	if n >= 0 && n < int64(s.Len) {
		return nil
	}
	return pgerror.New(pgerror.ArraySubscriptError, "bit index %d out of valid range (0..%d)", n, s.Len-1)
}

func bitGet(_ *Env, a []types.Datum) (types.Datum, error) {
	s := a[0].Bits()
	if err := bitIndex(s, a[1].Int()); err != nil {
		return types.Null, err
	}
	return types.Int(int64(s.Bit(int(a[1].Int())))), nil
}

func bitSet(env *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Bits(), a[1].Int()
	if err := bitIndex(s, n); err != nil {
		return types.Null, err
	}
	mask := byte(0x80) >> (n % 8)
	switch a[2].Int() {
	case 0:
		s.Data[n/8] &^= mask
	case 1:
		s.Data[n/8] |= mask
	default:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "new bit must be 0 or 1")
	}
	return bitResult(env, s)
}

// bitPosition finds the first place, from 1, of a string in another one; 0 if it is not there.
func bitPosition(env *Env, a []types.Datum) (types.Datum, error) {
	s, part := a[0].Bits(), a[1].Bits()
	// PostgreSQL does not find an empty string in an empty one.
	if s.Len == 0 || part.Len > s.Len {
		return types.Int(0), nil
	}
	for at := 0; at+part.Len <= s.Len; at++ {
		if err := env.Step(1 + len(part.Data)/16); err != nil {
			return types.Null, err
		}
		if part.Len > 0 && s.Bit(at) != part.Bit(0) {
			continue
		}
		if bytes.Equal(s.Slice(at, at+part.Len).Data, part.Data) {
			return types.Int(int64(at + 1)), nil
		}
	}
	return types.Int(0), nil
}

// bitPart returns the n bits from the place start on, from 1; places outside do not count. A negative n is all.
func bitPart(s types.BitString, start, n int64) types.BitString {
	end := int64(s.Len) + 1
	if n >= 0 {
		end = min(end, start+n)
	}
	start = max(start, 1)
	if start >= end {
		return types.BitString{}
	}
	return s.Slice(int(start-1), int(end-1))
}

func bitSubstring(env *Env, a []types.Datum) (types.Datum, error) {
	n := int64(-1)
	if len(a) == 3 {
		if n = a[2].Int(); n < 0 {
			return types.Null, errNegativeSubstring()
		}
	}
	return bitResult(env, bitPart(a[0].Bits(), a[1].Int(), n))
}

func bitOverlay(env *Env, a []types.Datum) (types.Datum, error) {
	s, part, start := a[0].Bits(), a[1].Bits(), a[2].Int()
	n := int64(part.Len)
	if len(a) == 4 {
		n = a[3].Int()
	}
	if start <= 0 {
		return types.Null, errNegativeSubstring()
	}
	if start+n != int64(int32(start+n)) {
		return types.Null, errInt4Range()
	}
	return bitResult(env, bitPart(s, 1, start-1).Concat(part).Concat(bitPart(s, start+n, -1)))
}

func bitLength(t types.Type) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		to := t
		to.Mod = int32(a[1].Int())
		return ApplyMod(a[0], to, a[2].Bool())
	}
}

// bitToInt reads at most size bits as an integer in two's complement.
func bitToInt(size int) Func {
	return fn1(func(a types.Datum) (types.Datum, error) {
		s := a.Bits()
		if s.Len > size {
			if size == 32 {
				return types.Null, errInt4Range()
			}
			return types.Null, errInt8Range()
		}
		var n uint64
		for i := range s.Len {
			n = n<<1 | uint64(s.Bit(i))
		}
		if size == 32 {
			return types.Int(int64(int32(n))), nil
		}
		return types.Int(int64(n)), nil
	})
}

// bitOfInt returns the lowest bits of an integer; more bits than it has repeat its sign. Without modifier it is one bit.
func bitOfInt(size int) func(mod int32) Func {
	return func(mod int32) Func {
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			if mod <= 0 {
				mod = 1
			}
			if err := env.Reserve(int(mod) / 4); err != nil {
				return types.Null, err
			}
			n := a[0].Int()
			s := types.NewBitString(int(mod))
			for i := range s.Len {
				if place := min(s.Len-1-i, size-1); n>>place&1 != 0 {
					s.Data[i/8] |= 0x80 >> (i % 8)
				}
			}
			return types.Bits(s), nil
		}
	}
}

func bitOfIntFunc(size int) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		return bitOfInt(size)(int32(a[1].Int()))(env, a[:1])
	}
}
