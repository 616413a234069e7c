package types

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// The types of hardware addresses. Datums are 6 and 8 bytes.
const (
	OIDMacaddr  OID = 829
	OIDMacaddr8 OID = 774
)

func init() {
	register(&Methods{
		Info:  Info{OIDMacaddr, "macaddr", "macaddr", 1040, 0, 6, CategoryUser, false, KindBytes},
		Parse: parseMacaddr, Append: appendMacaddr, Receive: receiveFixed(6), Send: sendBytes,
	})
	register(&Methods{
		Info:  Info{OIDMacaddr8, "macaddr8", "macaddr8", 775, 0, 8, CategoryUser, false, KindBytes},
		Parse: parseMacaddr8, Append: appendMacaddr, Send: sendBytes,
		Receive: func(b []byte, mod int32, f *Format) (Datum, error) {
			if len(b) == 6 {
				return Bytes(WidenMacaddr(b)), nil
			}
			return receiveFixed(8)(b, mod, f)
		},
	})
}

// WidenMacaddr returns the macaddr8 of a macaddr.
func WidenMacaddr(b []byte) []byte { return []byte{b[0], b[1], b[2], 0xFF, 0xFE, b[3], b[4], b[5]} }

func appendMacaddr(dst []byte, d Datum, _ *Format) []byte {
	const digits = "0123456789abcdef"
	for i, c := range d.Bytes() {
		if i > 0 {
			dst = append(dst, ':')
		}
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// parseMacaddr reads six octets with : or - between them, of any number of digits; or 12 digits in two or three groups, or in one.
func parseMacaddr(s string, _ int32, _ *Format) (Datum, error) {
	text := trimSpace(s)
	for _, sep := range []string{":", "-"} {
		parts := strings.Split(text, sep)
		if len(parts) != 6 {
			continue
		}
		out := make([]byte, 6)
		for i, p := range parts {
			v := 0
			for j := 0; j < len(p); j++ {
				n, ok := bitDigit(p[j])
				if !ok {
					return Null, badSyntax("macaddr", s)
				}
				v = min(v<<4|int(n), 1<<20)
			}
			if p == "" {
				return Null, badSyntax("macaddr", s)
			}
			if v > 0xFF {
				return Null, pgerror.New(pgerror.NumericValueOutOfRange, "invalid octet value in \"macaddr\" value: \"%s\"", s)
			}
			out[i] = byte(v)
		}
		return Bytes(out), nil
	}
	for _, form := range []struct {
		sep   string
		parts int
	}{{":", 2}, {"-", 2}, {".", 3}, {"-", 3}, {"", 1}} {
		parts := []string{text}
		if form.sep != "" {
			parts = strings.Split(text, form.sep)
		}
		if len(parts) != form.parts {
			continue
		}
		if b, ok := hexGroups(parts, 12/form.parts); ok {
			return Bytes(b), nil
		}
	}
	return Null, badSyntax("macaddr", s)
}

// hexGroups joins groups of hexadecimal digits of one length.
func hexGroups(parts []string, digits int) ([]byte, bool) {
	var out []byte
	for _, p := range parts {
		if len(p) != digits {
			return nil, false
		}
		for i := 0; i < len(p); i += 2 {
			high, ok1 := bitDigit(p[i])
			low, ok2 := bitDigit(p[i+1])
			if !ok1 || !ok2 {
				return nil, false
			}
			out = append(out, high<<4|low)
		}
	}
	return out, true
}

// parseMacaddr8 reads 6 or 8 bytes of two digits each, with one kind of separator anywhere between them.
func parseMacaddr8(s string, _ int32, _ *Format) (Datum, error) {
	text := trimSpace(s)
	var out []byte
	sep := byte(0)
	for i := 0; i < len(text); {
		if i+1 >= len(text) {
			return Null, badSyntax("macaddr8", s)
		}
		b, ok := hexGroups([]string{text[i : i+2]}, 2)
		if !ok || len(out) == 8 {
			return Null, badSyntax("macaddr8", s)
		}
		out = append(out, b[0])
		if i += 2; i == len(text) || text[i] != ':' && text[i] != '-' && text[i] != '.' {
			continue
		}
		if sep == 0 {
			sep = text[i]
		}
		if text[i] != sep {
			return Null, badSyntax("macaddr8", s)
		}
		i++
	}
	switch len(out) {
	case 6:
		return Bytes(WidenMacaddr(out)), nil
	case 8:
		return Bytes(out), nil
	}
	return Null, badSyntax("macaddr8", s)
}
