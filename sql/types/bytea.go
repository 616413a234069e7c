package types

import (
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

const hexDigits = "0123456789abcdef"

// parseBytea reads the hex form (\x0a0b, blanks between bytes allowed) or the escape form.
func parseBytea(s string) (Datum, error) {
	if len(s) >= 2 && s[0] == '\\' && s[1] == 'x' {
		b, err := DecodeHex(s[2:])
		return Bytes(b), err
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] != '\\':
			b = append(b, s[i])
			i++
		case i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && isOctal(s[i+2]) && isOctal(s[i+3]):
			b = append(b, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 4
		case i+1 < len(s) && s[i+1] == '\\':
			b = append(b, '\\')
			i += 2
		default:
			return Null, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
	}
	return Bytes(b), nil
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// DecodeHex reads pairs of hexadecimal digits, blanks between pairs allowed (22023 otherwise).
func DecodeHex(s string) ([]byte, error) {
	b := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); {
		if c := s[i]; c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		hi, err := hexDigit(s, i)
		if err != nil {
			return nil, err
		}
		i++
		if i >= len(s) {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		lo, err := hexDigit(s, i)
		if err != nil {
			return nil, err
		}
		i++
		b = append(b, hi<<4|lo)
	}
	return b, nil
}

func hexDigit(s string, i int) (byte, error) {
	if v := unhex(s[i]); v < 16 {
		return v, nil
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", s[i:i+size])
}

// unhex returns a hexadecimal digit's value, 255 for anything else.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

func appendBytea(dst, b []byte, escape bool) []byte {
	if escape {
		return appendByteaEscape(dst, b)
	}
	dst = append(dst, '\\', 'x')
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

func appendByteaEscape(dst, b []byte) []byte {
	for _, c := range b {
		switch {
		case c == '\\':
			dst = append(dst, '\\', '\\')
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '\\', '0'+(c>>6), '0'+(c>>3&7), '0'+(c&7))
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// parseUUID reads 32 hexadecimal digits, with hyphens allowed after every fourth and braces around.
func parseUUID(s string) (Datum, error) {
	src := s
	braces := len(src) > 0 && src[0] == '{'
	if braces {
		src = src[1:]
	}
	var b [16]byte
	i := 0
	for n := range b {
		if i+1 >= len(src) {
			return Null, badSyntax("uuid", s)
		}
		hi, lo := unhex(src[i]), unhex(src[i+1])
		if hi > 15 || lo > 15 {
			return Null, badSyntax("uuid", s)
		}
		b[n] = hi<<4 | lo
		i += 2
		if i < len(src) && src[i] == '-' && n%2 == 1 && n < 15 {
			i++
		}
	}
	rest := src[i:]
	if braces && rest != "}" || !braces && rest != "" {
		return Null, badSyntax("uuid", s)
	}
	return Bytes(b[:]), nil
}

func appendUUID(dst, b []byte) []byte {
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}
