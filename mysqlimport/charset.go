package mysqlimport

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// charsets are MySQL's character sets beside those that are UTF-8.
var charsets = map[string]encoding.Encoding{
	"latin1": charmap.Windows1252, "latin2": charmap.ISO8859_2, "latin5": charmap.ISO8859_9, "latin7": charmap.ISO8859_13,
	"cp1250": charmap.Windows1250, "cp1251": charmap.Windows1251, "cp1256": charmap.Windows1256, "cp1257": charmap.Windows1257,
	"cp850": charmap.CodePage850, "cp852": charmap.CodePage852, "cp866": charmap.CodePage866,
	"koi8r": charmap.KOI8R, "koi8u": charmap.KOI8U, "greek": charmap.ISO8859_7, "hebrew": charmap.ISO8859_8,
	"macroman": charmap.Macintosh, "tis620": charmap.Windows874,
	"sjis": japanese.ShiftJIS, "cp932": japanese.ShiftJIS, "ujis": japanese.EUCJP, "eucjpms": japanese.EUCJP,
	"euckr": korean.EUCKR, "gbk": simplifiedchinese.GBK, "gb2312": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030,
	"big5": traditionalchinese.Big5,
	"ucs2": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "utf16": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"utf16le": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "utf32": utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM),
}

// isUTF8 reports whether a character set's strings are UTF-8.
func isUTF8(set string) bool { return strings.HasPrefix(set, "utf8") || set == "ascii" }

// decoder decodes the strings of one character set.
type decoder struct {
	set string
	dec *encoding.Decoder
}

// decode returns the UTF-8 of text. The result is valid until the next call if it is not text itself.
func (d *decoder) decode(set string, text []byte) ([]byte, error) {
	if isUTF8(set) {
		return text, nil
	}
	if d.set != set || d.dec == nil {
		enc := charsets[set]
		if enc == nil {
			return nil, fmt.Errorf("the character set %s is not known", set)
		}
		d.set, d.dec = set, enc.NewDecoder()
	}
	out, err := d.dec.Bytes(text)
	if err != nil {
		return nil, fmt.Errorf("a string is not of the character set %s: %w", set, err)
	}
	if i := strings.IndexRune(string(out), utf8.RuneError); i >= 0 {
		return nil, fmt.Errorf("a string has a character that is not of the character set %s", set)
	}
	return out, nil
}
