package types

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// The types of network addresses.
const (
	OIDInet OID = 869
	OIDCidr OID = 650
)

func init() {
	register(&Methods{
		Info: Info{OIDInet, "inet", "inet", 1041, 0, -1, CategoryNetwork, true, KindBytes}, MinMax: true,
		Parse:  func(s string, _ int32, _ *Format) (Datum, error) { return parseInet(s, false) },
		Append: func(dst []byte, d Datum, _ *Format) []byte { return d.Inet().Append(dst, false) },
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			return receiveInet(b, "inet")
		},
		Send: func(dst []byte, d Datum) []byte { return sendInet(dst, d.Inet(), 0) },
	})
	register(&Methods{
		Info: Info{OIDCidr, "cidr", "cidr", 651, 0, -1, CategoryNetwork, false, KindBytes}, Borrows: OIDInet,
		Parse:  func(s string, _ int32, _ *Format) (Datum, error) { return parseInet(s, true) },
		Append: func(dst []byte, d Datum, _ *Format) []byte { return d.Inet().Append(dst, true) },
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			return receiveInet(b, "cidr")
		},
		Send: func(dst []byte, d Datum) []byte { return sendInet(dst, d.Inet(), 1) },
	})
}

// Inet is an inet or cidr: an address of 4 or 16 bytes, and the number of bits of its network.
type Inet struct {
	Addr []byte
	Bits int
}

// A datum is the family (4 or 6), the address of the network, its bits and the address: so the bytes order as PostgreSQL does.

// NewInet returns a datum of an inet or cidr.
func NewInet(n Inet) Datum {
	family := byte(4)
	if len(n.Addr) == 16 {
		family = 6
	}
	b := append(make([]byte, 0, 2+2*len(n.Addr)), family)
	b = append(b, n.Network()...)
	return Bytes(append(append(b, byte(n.Bits)), n.Addr...))
}

// Inet returns the value of an inet or cidr.
func (d Datum) Inet() Inet {
	b := d.Bytes()
	size := (len(b) - 2) / 2
	return Inet{Addr: b[2+size:], Bits: int(b[1+size])}
}

// MaxBits is the number of bits of the address.
func (n Inet) MaxBits() int { return 8 * len(n.Addr) }

// Family is 4 or 6.
func (n Inet) Family() int {
	if len(n.Addr) == 16 {
		return 6
	}
	return 4
}

// Mask returns the mask of the network.
func (n Inet) Mask() []byte {
	m := make([]byte, len(n.Addr))
	for i := range m {
		m[i] = byte(0xFF << (8 - min(8, max(0, n.Bits-8*i))))
	}
	return m
}

// Network returns the address of the network.
func (n Inet) Network() []byte {
	m := n.Mask()
	for i := range m {
		m[i] &= n.Addr[i]
	}
	return m
}

// Contains reports whether b's network is n's or part of it, whatever its size.
func (n Inet) Contains(b Inet) bool {
	return len(n.Addr) == len(b.Addr) && n.Bits <= b.Bits && bytes.Equal(n.Network(), Inet{b.Addr, n.Bits}.Network())
}

// Append appends the text form; always with the bits, or only if they are not all.
func (n Inet) Append(dst []byte, bits bool) []byte {
	dst = n.AppendHost(dst)
	if bits || n.Bits < n.MaxBits() {
		dst = strconv.AppendInt(append(dst, '/'), int64(n.Bits), 10)
	}
	return dst
}

// AppendHost appends the address alone.
func (n Inet) AppendHost(dst []byte) []byte {
	if len(n.Addr) == 4 {
		return appendOctets(dst, n.Addr)
	}
	words := make([]uint16, 8)
	for i := range words {
		words[i] = binary.BigEndian.Uint16(n.Addr[2*i:])
	}
	start, length := longestZeros(words)
	if length < 2 {
		start, length = -1, 0
	}
	dotted := start == 0 && (length == 6 || length == 7 && words[7] != 1 || length == 5 && words[5] == 0xFFFF)
	for i := 0; i < 8; i++ {
		switch {
		case i >= start && i < start+length:
			if i == start {
				dst = append(dst, ':')
			}
			continue
		case i > 0:
			dst = append(dst, ':')
		}
		if i == 6 && dotted {
			return appendOctets(dst, n.Addr[12:])
		}
		dst = strconv.AppendUint(dst, uint64(words[i]), 16)
	}
	if start >= 0 && start+length == 8 {
		dst = append(dst, ':')
	}
	return dst
}

func appendOctets(dst, octets []byte) []byte {
	for i, c := range octets {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = strconv.AppendUint(dst, uint64(c), 10)
	}
	return dst
}

// longestZeros returns the first of the longest runs of zeros.
func longestZeros(words []uint16) (start, length int) {
	for i := 0; i < len(words); i++ {
		n := 0
		for i+n < len(words) && words[i+n] == 0 {
			n++
		}
		if n > length {
			start, length = i, n
		}
		i += n
	}
	return start, length
}

// AppendAbbreviated appends the short form of a cidr: without the bytes after the network.
func (n Inet) AppendAbbreviated(dst []byte) []byte {
	net := n.Network()
	switch {
	case len(net) == 4 && n.Bits == 0:
		dst = append(dst, '0')
	case len(net) == 4:
		dst = appendOctets(dst, net[:(n.Bits+7)/8])
	case n.Bits == 0:
		dst = append(dst, "::"...)
	default:
		dst = abbreviateWords(dst, net, n.Bits)
	}
	return strconv.AppendInt(append(dst, '/'), int64(n.Bits), 10)
}

// abbreviateWords appends the words of a network that its bits need.
func abbreviateWords(dst, net []byte, bits int) []byte {
	words := make([]uint16, max(2, (bits+15)/16))
	for i := range words {
		words[i] = binary.BigEndian.Uint16(net[2*i:])
	}
	start, length := longestZeros(words)
	dotted := length != len(words) && start == 0 && (length == 6 || length == 5 && words[5] == 0xFFFF || length == 7 && net[14] != 0 && net[15] != 1)
	begin := len(dst)
	for i, w := range words {
		switch {
		case length > 0 && i >= start && i < start+length:
			if i == start {
				dst = append(dst, ':')
			}
			if i == len(words)-1 {
				dst = append(dst, ':')
			}
		case dotted && i > 5:
			dst = append(dst, ":."[i-6])
			dst = strconv.AppendUint(dst, uint64(w>>8), 10)
			if i != 7 || bits > 120 {
				dst = strconv.AppendUint(append(dst, '.'), uint64(w&0xFF), 10)
			}
		default:
			if len(dst) > begin {
				dst = append(dst, ':')
			}
			dst = strconv.AppendUint(dst, uint64(w), 16)
		}
	}
	return dst
}

func parseInet(s string, cidr bool) (Datum, error) {
	name := "inet"
	if cidr {
		name = "cidr"
	}
	var n Inet
	ok := false
	if strings.IndexByte(s, ':') >= 0 {
		n, ok = parseInet6(s)
	} else {
		n, ok = parseInet4(s, cidr)
	}
	if !ok {
		return Null, badSyntax(name, s)
	}
	if cidr && !bytes.Equal(n.Addr, n.Network()) {
		return Null, pgerror.New(pgerror.InvalidTextRepresentation, "invalid cidr value: \"%s\"", s).
			WithDetail("Value has bits set to right of mask.")
	}
	return NewInet(n), nil
}

// networkBits reads the digits after a slash.
func networkBits(s string, most int, leadingZeros bool) (int, bool) {
	if !allDigits(s) || len(s) > 1 && s[0] == '0' && !leadingZeros {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= most
}

func parseInet6(s string) (Inet, bool) {
	addr, width, hasBits := strings.Cut(s, "/")
	a, err := netip.ParseAddr(addr)
	if err != nil || a.Zone() != "" {
		return Inet{}, false
	}
	b := a.As16()
	n := Inet{Addr: b[:], Bits: 128}
	if hasBits {
		var ok bool
		if n.Bits, ok = networkBits(width, 128, false); !ok {
			return Inet{}, false
		}
	}
	return n, true
}

// parseInet4 reads one to four octets. Without bits, those of an inet are 32, for all four octets only; those of a cidr follow from the
// class of the network.
func parseInet4(s string, cidr bool) (Inet, bool) {
	addr, width, hasBits := strings.Cut(s, "/")
	octets := strings.Split(addr, ".")
	if cidr && len(addr) > 2 && (strings.HasPrefix(addr, "0x") || strings.HasPrefix(addr, "0X")) {
		octets = hexOctets(addr[2:])
	}
	if len(octets) > 4 || len(octets) == 0 {
		return Inet{}, false
	}
	n := Inet{Addr: make([]byte, 4)}
	for i, o := range octets {
		v, err := strconv.Atoi(o)
		if !allDigits(o) || err != nil || v > 255 {
			return Inet{}, false
		}
		n.Addr[i] = byte(v)
	}
	if hasBits {
		var ok bool
		n.Bits, ok = networkBits(width, 32, true)
		return n, ok && (cidr || n.Bits/8 <= len(octets))
	}
	if !cidr {
		n.Bits = 32
		return n, len(octets) == 4
	}
	switch first := n.Addr[0]; {
	case first >= 240:
		n.Bits = 32
	case first >= 224:
		n.Bits = 8
	case first >= 192:
		n.Bits = 24
	case first >= 128:
		n.Bits = 16
	default:
		n.Bits = 8
	}
	n.Bits = max(n.Bits, 8*len(octets))
	if n.Bits == 8 && n.Addr[0] == 224 {
		n.Bits = 4
	}
	return n, true
}

// hexOctets splits hexadecimal digits into octets; a last digit alone is the high half of one.
func hexOctets(s string) []string {
	var out []string
	for i := 0; i < len(s); i += 2 {
		part := s[i:min(i+2, len(s))]
		if len(part) == 1 {
			part += "0"
		}
		v, err := strconv.ParseUint(part, 16, 8)
		if err != nil {
			return nil
		}
		out = append(out, strconv.FormatUint(v, 10))
	}
	return out
}

// The families of the binary form.
const (
	sentInet4 = 2
	sentInet6 = 3
)

func sendInet(dst []byte, n Inet, cidr byte) []byte {
	family := byte(sentInet4)
	if len(n.Addr) == 16 {
		family = sentInet6
	}
	return append(append(dst, family, byte(n.Bits), cidr, byte(len(n.Addr))), n.Addr...)
}

func receiveInet(b []byte, name string) (Datum, error) {
	if len(b) < 4 {
		return Null, errShortMessage()
	}
	size := 4
	switch b[0] {
	case sentInet4:
	case sentInet6:
		size = 16
	default:
		return Null, badBinary("invalid address family in external \"%s\" value", name)
	}
	if int(b[1]) > 8*size {
		return Null, badBinary("invalid bits in external \"%s\" value", name)
	}
	if int(b[3]) != size {
		return Null, badBinary("invalid length in external \"%s\" value", name)
	}
	if err := requireSize(b[4:], size); err != nil {
		return Null, err
	}
	n := Inet{Addr: b[4:], Bits: int(b[1])}
	if name == "cidr" && !bytes.Equal(n.Addr, n.Network()) {
		return Null, badBinary("invalid external \"cidr\" value").(*pgerror.Error).WithDetail("Value has bits set to right of mask.")
	}
	return NewInet(n), nil
}
