package types

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/percodb/percodb/sql/pgerror"
)

// The types of bit strings.
const (
	OIDBit    OID = 1560
	OIDVarbit OID = 1562
)

// The types without modifier.
var (
	TBit    = Type{OID: OIDBit, Mod: -1}
	TVarbit = Type{OID: OIDVarbit, Mod: -1}
)

func init() {
	register(&Methods{
		Info:   Info{OIDBit, "bit", "bit", 1561, 0, -1, CategoryBit, false, KindBytes},
		Parse:  func(s string, mod int32, f *Format) (Datum, error) { return parseBits(s, mod, f, limitBit) },
		Append: appendBits, Receive: receiveBits(limitBit), Send: sendBits,
		ModIn: bitMod("bit"), ModOut: bitModString("bit"), Limit: limitBit,
	})
	register(&Methods{
		Info:    Info{OIDVarbit, "varbit", "bit varying", 1563, 0, -1, CategoryBit, true, KindBytes},
		Aliases: []string{"bit varying"},
		Parse:   func(s string, mod int32, f *Format) (Datum, error) { return parseBits(s, mod, f, limitVarbit) },
		Append:  appendBits, Receive: receiveBits(limitVarbit), Send: sendBits,
		ModIn: bitMod("varbit"), ModOut: bitModString("bit varying"), Limit: limitVarbit,
	})
}

// maxBits is the greatest length of a bit string that a modifier may name.
const maxBits = 10485760 * 8

// BitString is the value of a bit or bit varying: Len bits, the first is the highest of Data[0]. The bits after the last are 0.
type BitString struct {
	Len  int
	Data []byte
}

// A bit string's datum is its bytes, with 00 FF for the byte 00, and 00 and the number of bits of the last byte at the end. So a
// string that begins another one orders before it, and otherwise the bytes decide. The empty string has no bytes.
const bitZero = 0xFF

// Bits returns a bit string's datum.
func Bits(s BitString) Datum {
	if s.Len == 0 {
		return Bytes(nil)
	}
	out := make([]byte, 0, len(s.Data)+2)
	for _, c := range s.Data {
		if out = append(out, c); c == 0 {
			out = append(out, bitZero)
		}
	}
	return Bytes(append(out, 0, byte((s.Len-1)%8+1)))
}

// Bits returns the value of a bit string's datum.
func (d Datum) Bits() BitString {
	b := d.Bytes()
	if len(b) == 0 {
		return BitString{}
	}
	s := BitString{Data: make([]byte, 0, len(b)-2)}
	end := len(b) - 2
	for i := 0; i < end; i++ {
		if s.Data = append(s.Data, b[i]); b[i] == 0 {
			i++
		}
	}
	s.Len = 8*(len(s.Data)-1) + int(b[end+1])
	return s
}

// NewBitString returns n bits that are 0.
func NewBitString(n int) BitString { return BitString{Len: n, Data: make([]byte, (n+7)/8)} }

// Bit returns a bit.
func (s BitString) Bit(i int) int { return int(s.Data[i/8]>>(7-i%8)) & 1 }

// OnesCount returns the number of bits that are 1.
func (s BitString) OnesCount() (n int) {
	for _, c := range s.Data {
		n += bits.OnesCount8(c)
	}
	return n
}

// Slice returns the bits from the lowth up to the highth.
func (s BitString) Slice(low, high int) BitString {
	out := NewBitString(high - low)
	out.put(0, BitString{Len: high - low, Data: s.Data[low/8:]}, low%8)
	return out
}

// Concat returns a and b.
func (s BitString) Concat(b BitString) BitString {
	out := NewBitString(s.Len + b.Len)
	copy(out.Data, s.Data)
	out.put(s.Len, b, 0)
	return out
}

// put stores the bits of s, without the first skip ones of its first byte, at a place where the bits are 0.
func (s BitString) put(at int, from BitString, skip int) {
	for i := 0; i < from.Len; {
		// As many bits as the bytes on both sides have in common.
		source, target := skip+i, at+i
		n := min(8-source%8, 8-target%8, from.Len-i)
		c := from.Data[source/8] << (source % 8) >> (8 - n) << (8 - n)
		s.Data[target/8] |= c >> (target % 8)
		i += n
	}
}

// Resize returns s cut off, or with zeros at the end.
func (s BitString) Resize(n int) BitString {
	if n <= s.Len {
		return s.Slice(0, n)
	}
	return s.Concat(NewBitString(n - s.Len))
}

// parseBits reads binary digits, perhaps after a b, or hexadecimal digits after an x.
func parseBits(s string, mod int32, f *Format, limit func(Datum, int32, bool) (Datum, error)) (Datum, error) {
	digits, hex := s, false
	if s != "" {
		switch s[0] {
		case 'b', 'B':
			digits = s[1:]
		case 'x', 'X':
			digits, hex = s[1:], true
		}
	}
	per := 1
	if hex {
		per = 4
	}
	v := NewBitString(len(digits) * per)
	for i := 0; i < len(digits); i++ {
		if err := f.poll(i); err != nil {
			return Null, err
		}
		n, ok := bitDigit(digits[i])
		if !hex && n > 1 {
			ok = false
		}
		if !ok {
			return Null, badDigit(digits[i:], hex)
		}
		at := i * per
		v.Data[at/8] |= n << (8 - per - at%8)
	}
	return limit(Bits(v), mod, false)
}

func bitDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func badDigit(rest string, hex bool) error {
	kind := "binary"
	if hex {
		kind = "hexadecimal"
	}
	for _, r := range rest {
		return pgerror.New(pgerror.InvalidTextRepresentation, "\"%c\" is not a valid %s digit", r, kind)
	}
	return nil
}

func appendBits(dst []byte, d Datum, _ *Format) []byte {
	s := d.Bits()
	for i := range s.Len {
		dst = append(dst, '0'+byte(s.Bit(i)))
	}
	return dst
}

func sendBits(dst []byte, d Datum) []byte {
	s := d.Bits()
	return append(binary.BigEndian.AppendUint32(dst, uint32(s.Len)), s.Data...)
}

func receiveBits(limit func(Datum, int32, bool) (Datum, error)) func([]byte, int32, *Format) (Datum, error) {
	return func(b []byte, mod int32, _ *Format) (Datum, error) {
		if len(b) < 4 {
			return Null, errShortMessage()
		}
		n := int(int32(binary.BigEndian.Uint32(b)))
		if n < 0 {
			return Null, badBinary("invalid length in external bit string")
		}
		if err := requireSize(b[4:], (n+7)/8); err != nil {
			return Null, err
		}
		return limit(Bits(BitString{Len: n, Data: b[4:]}.Slice(0, n)), mod, false)
	}
}

func bitMod(name string) func([]int) (int32, error) {
	return func(mods []int) (int32, error) {
		switch {
		case len(mods) != 1:
			return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid type modifier")
		case mods[0] < 1:
			return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s must be at least 1", name)
		case mods[0] > maxBits:
			return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s cannot exceed %d", name, maxBits)
		}
		return int32(mods[0]), nil
	}
}

func bitModString(name string) func(int32) string {
	return func(mod int32) string { return name + "(" + strconv.Itoa(int(mod)) + ")" }
}

// limitBit brings a bit string to the length of bit(n); unless explicit it must have it.
func limitBit(d Datum, mod int32, explicit bool) (Datum, error) {
	if mod <= 0 {
		return d, nil
	}
	s := d.Bits()
	switch {
	case s.Len == int(mod):
		return d, nil
	case !explicit:
		return Null, pgerror.New(pgerror.StringDataLengthMismatch, "bit string length %d does not match type bit(%d)", s.Len, mod)
	}
	return Bits(s.Resize(int(mod))), nil
}

// limitVarbit cuts a bit string off after n bits; unless explicit it may not be longer.
func limitVarbit(d Datum, mod int32, explicit bool) (Datum, error) {
	if mod <= 0 {
		return d, nil
	}
	s := d.Bits()
	switch {
	case s.Len <= int(mod):
		return d, nil
	case !explicit:
		return Null, pgerror.New(pgerror.StringDataRightTruncation, "bit string too long for type bit varying(%d)", mod)
	}
	return Bits(s.Slice(0, int(mod))), nil
}
