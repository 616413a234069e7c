package tsparser

import (
	"strings"
	"unicode"
)

// classOf reports whether a character is of a class of PostgreSQL's in the C.UTF-8 locale.
func classOf(k class, c rune) bool {
	switch k {
	case ascii:
		return c < 0x80 && isASCIILetter(c)
	case letter:
		return isAlpha(c)
	case digit:
		return c >= '0' && c <= '9'
	case alnum:
		return c >= '0' && c <= '9' || isAlpha(c)
	case notAlnum:
		return !(c >= '0' && c <= '9' || isAlpha(c))
	case special:
		return c >= 0x80 && unicode.In(c, unicode.Mn, unicode.Me, unicode.Mc)
	case white:
		return c == ' ' || c >= '\t' && c <= '\r' || c >= 0x80 && unicode.IsSpace(c) && c != 0x85 && c != 0xa0 && c != 0x2007 && c != 0x202f
	case hexDigit:
		return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	case urlChar:
		return c > ' ' && c < 0x7f && !strings.ContainsRune("\"<>\\^`{|}", c)
	}
	return false
}

func isASCIILetter(c rune) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isAlpha is C's iswalpha: digits of other scripts are letters.
func isAlpha(c rune) bool {
	if c < 0x80 {
		return isASCIILetter(c)
	}
	return unicode.IsLetter(c) || unicode.In(c, unicode.Nd, unicode.Nl, unicode.Other_Alphabetic)
}
