package types

import (
	"bytes"
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/percodb/percodb/sql/collation"
)

// OIDCitext is the type of texts that compare without regard for case, of the extension citext. A datum is the text as it was written:
// equal values may differ, so that comparing, hashing and the keys of indexes use what FoldLower returns.
const (
	OIDCitext      OID = FirstExtensionOID + 12
	oidCitextArray OID = FirstExtensionOID + 13
)

// TCitext is the type citext.
var TCitext = Type{OID: OIDCitext, Mod: -1}

func init() {
	register(&Methods{
		Info: Info{OIDCitext, "citext", "citext", oidCitextArray, 0, -1, CategoryString, false, KindBytes}, Extension: "citext",
		Parse:  func(s string, _ int32, _ *Format) (Datum, error) { return Text(s), nil },
		Append: func(dst []byte, d Datum, _ *Format) []byte { return append(dst, d.Bytes()...) },
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			return Bytes(b), ValidateText(b)
		},
		Send: sendBytes,
	})
}

// FoldVersion names the tables of FoldLower: another version may fold other letters.
const FoldVersion = "unicode-" + unicode.Version

// FoldLower converts a text to lower case character by character, without the special cases that change lengths. It returns s itself if
// there is nothing to convert.
func FoldLower(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.Map(unicode.ToLower, s)
		}
	}
	return s
}

// FoldedCitext returns what a value of citext compares by.
func FoldedCitext(d Datum) []byte {
	b := d.Bytes()
	for i, c := range b {
		if c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return append(bytes.Clone(b[:i]), bytes.Map(unicode.ToLower, b[i:])...)
		}
	}
	return b
}

// compareCitext orders the folded texts. By bytes it makes no copies: characters order as their bytes do.
func compareCitext(a, b Datum, c *collation.Collation) int {
	if !c.ByBytes() {
		return c.Compare(FoldedCitext(a), FoldedCitext(b))
	}
	x, y := a.Bytes(), b.Bytes()
	for len(x) > 0 && len(y) > 0 {
		r, n := utf8.DecodeRune(x)
		s, m := utf8.DecodeRune(y)
		if r != s {
			if order := cmp.Compare(unicode.ToLower(r), unicode.ToLower(s)); order != 0 {
				return order
			}
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Compare(len(x), len(y))
}

// hashCitext hashes the folded text, without a copy if it is short.
func hashCitext(d Datum) uint64 {
	var buf [128]byte
	b := d.Bytes()
	if len(b) > len(buf) {
		return xxhash.Sum64(FoldedCitext(d))
	}
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return xxhash.Sum64(FoldedCitext(d))
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	return xxhash.Sum64(buf[:len(b)])
}
