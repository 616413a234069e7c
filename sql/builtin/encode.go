package builtin

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func errEncodingName(name string) error {
	return pgerror.New(pgerror.InvalidParameterValue, "unrecognized encoding: \"%s\"", name)
}

// base64Line is the number of bytes that a line of base64 encodes.
const base64Line = 57

func encodeBytes(env *Env, a []types.Datum) (types.Datum, error) {
	if err := checkEncodingName(a[1].Text()); err != nil {
		return types.Null, err
	}
	b := a[0].Bytes()
	out := valueBuilder{env: env}
	encode, n := hex.EncodeToString, pieceBytes
	switch strings.ToLower(a[1].Text()) {
	case "hex":
		if err := out.grow(2 * len(b)); err != nil {
			return types.Null, err
		}
	case "base64":
		encode, n = encodeBase64, base64Line*1024
	case "escape":
		encode = encodeEscape
	default:
		return types.Null, errEncodingName(a[1].Text())
	}
	left := len(b)
	err := eachPiece(env, b, n, func(part []byte) error {
		text := encode(part)
		left -= len(part)
		if err := out.grow(len(text) + 1); err != nil {
			return err
		}
		out.b = append(out.b, text...)
		if n != pieceBytes && left > 0 {
			out.b = append(out.b, '\n')
		}
		return nil
	})
	return types.Bytes(out.b), err
}

// encodeBase64 breaks lines after 76 characters, as MIME does.
func encodeBase64(b []byte) string {
	var out strings.Builder
	for line := 0; len(b) > 0; {
		n := min(3, len(b))
		var word uint32
		for i := range n {
			word |= uint32(b[i]) << (16 - 8*i)
		}
		for i := range 4 {
			if i > n {
				out.WriteByte('=')
			} else {
				out.WriteByte(base64Digits[word>>(18-6*i)&63])
			}
		}
		b = b[n:]
		if line += 4; line == 76 && len(b) > 0 {
			out.WriteByte('\n')
			line = 0
		}
	}
	return out.String()
}

// encodeEscape writes zero bytes and bytes with the high bit as \nnn and doubles backslashes.
func encodeEscape(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		switch {
		case c == 0 || c >= 0x80:
			out.Write([]byte{'\\', '0' + (c >> 6), '0' + (c >> 3 & 7), '0' + (c & 7)})
		case c == '\\':
			out.WriteString(`\\`)
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// checkEncodingName refuses long names before they are looked up.
func checkEncodingName(name string) error {
	if len(name) > 64 {
		return errEncodingName(piece(name[:64]))
	}
	return nil
}

func decodeBytes(env *Env, a []types.Datum) (types.Datum, error) {
	if err := checkEncodingName(a[1].Text()); err != nil {
		return types.Null, err
	}
	switch strings.ToLower(a[1].Text()) {
	case "hex":
		b, err := types.DecodeHex(a[0].Text())
		return types.Bytes(b), err
	case "base64":
		b, err := decodeBase64(env, a[0].Text())
		return types.Bytes(b), err
	case "escape":
		s := a[0].Text()
		if strings.HasPrefix(s, `\x`) { // the hex form has no prefix here
			return types.Null, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type bytea")
		}
		return types.ParseText(types.TBytea, s, nil)
	}
	return types.Null, errEncodingName(a[1].Text())
}

func decodeBase64(env *Env, s string) ([]byte, error) {
	out := make([]byte, 0, len(s)/4*3)
	var word uint32
	count, end := 0, 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if i%pieceBytes == 0 {
			if err := env.Step(4 * pieceBytes); err != nil {
				return nil, err
			}
		}
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		digit := 0
		if c == '=' {
			if end == 0 {
				if count != 2 && count != 3 {
					return nil, pgerror.New(pgerror.InvalidParameterValue, "unexpected \"=\" while decoding base64 sequence")
				}
				end = count - 1
			}
		} else if digit = strings.IndexByte(base64Digits, c); digit < 0 {
			_, n := utf8.DecodeRuneInString(s[i:])
			return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid symbol \"%s\" found while decoding base64 sequence", s[i:i+n])
		}
		word = word<<6 | uint32(digit)
		if count++; count == 4 {
			n := 3
			if end > 0 {
				n = end
			}
			for j := range n {
				out = append(out, byte(word>>(16-8*j)))
			}
			word, count = 0, 0
		}
	}
	if count != 0 {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid base64 end sequence").
			WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
	}
	return out, nil
}
