package builtin

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// charset is an encoding of texts that PostgreSQL knows. Texts are UTF-8 here; the others are for convert and its kin.
type charset struct {
	name    string
	maxLen  int // bytes of a character
	aliases string
	// single has bytes as characters, multi others; both nil: texts in it cannot be converted.
	single *charmap.Charmap
	multi  encoding.Encoding
}

// charsets are by PostgreSQL's numbers.
var charsets = []charset{
	{name: "SQL_ASCII", maxLen: 1}, {name: "EUC_JP", maxLen: 3, multi: japanese.EUCJP},
	{name: "EUC_CN", maxLen: 2, multi: simplifiedchinese.GBK}, {name: "EUC_KR", maxLen: 2, multi: korean.EUCKR},
	{name: "EUC_TW", maxLen: 4}, {name: "EUC_JIS_2004", maxLen: 3},
	{name: "UTF8", maxLen: 4, aliases: "unicode"}, {name: "MULE_INTERNAL", maxLen: 4},
	{name: "LATIN1", maxLen: 1, aliases: "iso88591", single: charmap.ISO8859_1}, {name: "LATIN2", maxLen: 1, aliases: "iso88592", single: charmap.ISO8859_2},
	{name: "LATIN3", maxLen: 1, aliases: "iso88593", single: charmap.ISO8859_3}, {name: "LATIN4", maxLen: 1, aliases: "iso88594", single: charmap.ISO8859_4},
	{name: "LATIN5", maxLen: 1, aliases: "iso88599", single: charmap.ISO8859_9}, {name: "LATIN6", maxLen: 1, aliases: "iso885910", single: charmap.ISO8859_10},
	{name: "LATIN7", maxLen: 1, aliases: "iso885913", single: charmap.ISO8859_13}, {name: "LATIN8", maxLen: 1, aliases: "iso885914", single: charmap.ISO8859_14},
	{name: "LATIN9", maxLen: 1, aliases: "iso885915", single: charmap.ISO8859_15}, {name: "LATIN10", maxLen: 1, aliases: "iso885916", single: charmap.ISO8859_16},
	{name: "WIN1256", maxLen: 1, aliases: "windows1256", single: charmap.Windows1256},
	{name: "WIN1258", maxLen: 1, aliases: "windows1258 abc tcvn tcvn5712 vscii", single: charmap.Windows1258},
	{name: "WIN866", maxLen: 1, aliases: "alt windows866", single: charmap.CodePage866}, {name: "WIN874", maxLen: 1, aliases: "windows874", single: charmap.Windows874},
	{name: "KOI8R", maxLen: 1, aliases: "koi8", single: charmap.KOI8R}, {name: "WIN1251", maxLen: 1, aliases: "win windows1251", single: charmap.Windows1251},
	{name: "WIN1252", maxLen: 1, aliases: "windows1252", single: charmap.Windows1252}, {name: "ISO_8859_5", maxLen: 1, single: charmap.ISO8859_5},
	{name: "ISO_8859_6", maxLen: 1, single: charmap.ISO8859_6}, {name: "ISO_8859_7", maxLen: 1, single: charmap.ISO8859_7},
	{name: "ISO_8859_8", maxLen: 1, single: charmap.ISO8859_8}, {name: "WIN1250", maxLen: 1, aliases: "windows1250", single: charmap.Windows1250},
	{name: "WIN1253", maxLen: 1, aliases: "windows1253", single: charmap.Windows1253}, {name: "WIN1254", maxLen: 1, aliases: "windows1254", single: charmap.Windows1254},
	{name: "WIN1255", maxLen: 1, aliases: "windows1255", single: charmap.Windows1255}, {name: "WIN1257", maxLen: 1, aliases: "windows1257", single: charmap.Windows1257},
	{name: "KOI8U", maxLen: 1, single: charmap.KOI8U},
	{name: "SJIS", maxLen: 2, aliases: "mskanji shiftjis win932 windows932", multi: japanese.ShiftJIS},
	{name: "BIG5", maxLen: 2, aliases: "win950 windows950", multi: traditionalchinese.Big5},
	{name: "GBK", maxLen: 2, aliases: "win936 windows936", multi: simplifiedchinese.GBK}, {name: "UHC", maxLen: 2, aliases: "win949 windows949", multi: korean.EUCKR},
	{name: "GB18030", maxLen: 4, multi: simplifiedchinese.GB18030}, {name: "JOHAB", maxLen: 3}, {name: "SHIFT_JIS_2004", maxLen: 2},
}

// encodingUTF8 is PostgreSQL's number of the encoding of all texts.
const encodingUTF8 = 6

// charsetNamed returns the number of the encoding with a name, written as PostgreSQL reads it; -1: there is none.
func charsetNamed(name string) int {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r | 0x20
		}
		return -1
	}, name)
	for i := range charsets {
		if strings.ReplaceAll(strings.ToLower(charsets[i].name), "_", "") == plain {
			return i
		}
		for alias := range strings.FieldsSeq(charsets[i].aliases) {
			if alias == plain {
				return i
			}
		}
	}
	return -1
}

// encodingFuncs declares the functions on encodings.
func encodingFuncs() []decl {
	return []decl{
		{sig: "convert(bytea,name,name) bytea", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			b, err := convertEncoding(a[0].Bytes(), a[1].Text(), a[2].Text())
			return types.Bytes(b), err
		}},
		{sig: "convert_from(bytea,name) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			b, err := convertEncoding(a[0].Bytes(), a[1].Text(), "UTF8")
			return types.Text(string(b)), err
		}},
		{sig: "convert_to(text,name) bytea", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			b, err := convertEncoding(a[0].Bytes(), "UTF8", a[1].Text())
			return types.Bytes(b), err
		}},
		{sig: "length(bytea,name) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			from, err := charsetOf(a[1].Text(), "")
			if err != nil {
				return types.Null, err
			}
			text, err := from.decode(a[0].Bytes())
			return types.Int(int64(utf8.RuneCount(text))), err
		}},
		{sig: "pg_encoding_to_char(int4) name", flags: stable, fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if n := a[0].Int(); n >= 0 && n < int64(len(charsets)) {
				return types.Text(charsets[n].name), nil
			}
			return types.Text(""), nil
		}},
		{sig: "pg_char_to_encoding(name) int4", flags: stable, fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Int(int64(charsetNamed(a[0].Text()))), nil
		}},
		{sig: "pg_encoding_max_length(int4) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if n := a[0].Int(); n >= 0 && n < int64(len(charsets)) {
				return types.Int(int64(charsets[n].maxLen)), nil
			}
			return types.Null, nil
		}},
		{sig: "to_ascii(text) text", fn: func(*Env, []types.Datum) (types.Datum, error) {
			return types.Null, errNoASCII(&charsets[encodingUTF8])
		}},
	}
}

func errNoASCII(c *charset) error {
	return pgerror.New(pgerror.FeatureNotSupported, "encoding conversion from %s to ASCII not supported", c.name)
}

// charsetOf finds an encoding; which is "source ", "destination " or "".
func charsetOf(name, which string) (*charset, error) {
	n := charsetNamed(name)
	if n < 0 {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid %sencoding name \"%s\"", which, name)
	}
	return &charsets[n], nil
}

// convertEncoding converts a text between encodings, one of which is UTF-8 if they differ.
func convertEncoding(b []byte, source, destination string) ([]byte, error) {
	from, err := charsetOf(source, "source ")
	if err != nil {
		return nil, err
	}
	to, err := charsetOf(destination, "destination ")
	if err != nil {
		return nil, err
	}
	ascii := &charsets[0]
	if from == to || from == ascii || to == ascii {
		if from == &charsets[encodingUTF8] || from == ascii && to == &charsets[encodingUTF8] {
			return b, types.ValidateText(b)
		}
		return b, nil
	}
	if !from.converts() || !to.converts() || from.name != "UTF8" && to.name != "UTF8" {
		return nil, pgerror.New(pgerror.UndefinedFunction, "default conversion function for encoding \"%s\" to \"%s\" does not exist", from.name, to.name)
	}
	text, err := from.decode(b)
	if err != nil {
		return nil, err
	}
	return to.encode(text)
}

// converts reports whether texts can be converted from and to the encoding.
func (c *charset) converts() bool { return c.name == "UTF8" || c.single != nil || c.multi != nil }

// decode returns a text in UTF-8. Errors: 22021, 22P05.
func (c *charset) decode(b []byte) ([]byte, error) {
	switch {
	case c.single != nil:
		out := make([]byte, 0, len(b)+len(b)/2)
		for i, x := range b {
			r := c.single.DecodeByte(x)
			switch {
			case x == 0:
				return nil, c.errInvalid(b[i : i+1])
			case r == utf8.RuneError:
				return nil, errUntranslatable(b[i:i+1], c, &charsets[encodingUTF8])
			}
			out = utf8.AppendRune(out, r)
		}
		return out, nil
	case c.multi != nil:
		out, err := c.multi.NewDecoder().Bytes(b)
		if err != nil || strings.ContainsRune(string(out), utf8.RuneError) {
			return nil, c.errInvalid(b[:min(len(b), c.maxLen)])
		}
		return out, nil
	}
	return b, types.ValidateText(b)
}

// encode returns a text in UTF-8 as one in the encoding. Errors: 22021, 22P05.
func (c *charset) encode(text []byte) ([]byte, error) {
	if err := types.ValidateText(text); err != nil || c.name == "UTF8" {
		return text, err
	}
	var out []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		var b []byte
		switch {
		case r < utf8.RuneSelf:
			b = text[:1]
		case c.single != nil:
			if x, ok := c.single.EncodeRune(r); ok {
				b = []byte{x}
			}
		default:
			b, _ = c.multi.NewEncoder().Bytes(text[:size]) // An error leaves b empty.
		}
		if len(b) == 0 {
			return nil, errUntranslatable(text[:size], &charsets[encodingUTF8], c)
		}
		out, text = append(out, b...), text[size:]
	}
	return out, nil
}

// hexBytes returns bytes as PostgreSQL's messages have them: 0xe6 0x97 0xa5.
func hexBytes(b []byte) string {
	const digits = "0123456789abcdef"
	parts := make([]string, len(b))
	for i, x := range b {
		parts[i] = "0x" + string(digits[x>>4]) + string(digits[x&15])
	}
	return strings.Join(parts, " ")
}

func (c *charset) errInvalid(b []byte) error {
	return pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"%s\": %s", c.name, hexBytes(b))
}

func errUntranslatable(b []byte, from, to *charset) error {
	return pgerror.New(pgerror.UntranslatableCharacter, "character with byte sequence %s in encoding \"%s\" has no equivalent in encoding \"%s\"",
		hexBytes(b), from.name, to.name)
}
