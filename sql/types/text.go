package types

import (
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// nameLen is PostgreSQL's NAMEDATALEN less the terminator.
const nameLen = 63

// TruncateName truncates s to a name's 63 bytes at a character boundary.
func TruncateName(s string) string {
	if len(s) <= nameLen {
		return s
	}
	n := nameLen
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// appendInternalChar writes a byte, one outside of ASCII as \ooo.
func appendInternalChar(dst, b []byte) []byte {
	if len(b) == 1 && b[0] >= utf8.RuneSelf {
		c := b[0]
		return append(dst, '\\', '0'+(c>>6), '0'+(c>>3&7), '0'+(c&7))
	}
	return append(dst, b...)
}

// charPrefix returns the byte length of the first n characters of s, len(s) if it has fewer.
func charPrefix(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// varcharInput applies varchar(n): the excess must be blanks.
func varcharInput(s string, mod int32) (Datum, error) {
	return LimitVarchar(s, mod, false)
}

// LimitVarchar truncates s to a varchar's modifier. Unless explicit (a cast's truncation), truncating anything but
// blanks is 22001.
func LimitVarchar(s string, mod int32, explicit bool) (Datum, error) {
	n := int(mod) - 4
	if mod < 4 || len(s) <= n {
		return Text(s), nil
	}
	keep := charPrefix(s, n)
	if !explicit && !onlyBlanks(s[keep:]) {
		return Null, pgerror.New(pgerror.StringDataRightTruncation, "value too long for type character varying(%d)", n)
	}
	return Text(s[:keep]), nil
}

func onlyBlanks(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != ' ' {
			return false
		}
	}
	return true
}

func bpcharInput(s string, mod int32) (Datum, error) { return LimitBPChar(s, mod, false) }

// blanks pad most values of char(n).
const blanks = "                                                                                                    "

// LimitBPChar truncates or pads s to a char(n)'s n characters. Unless explicit, truncating anything but blanks is
// 22001.
func LimitBPChar(s string, mod int32, explicit bool) (Datum, error) {
	n := int(mod) - 4
	if mod < 4 {
		return Text(s), nil
	}
	chars := utf8.RuneCountInString(s)
	switch {
	case chars > n:
		keep := charPrefix(s, n)
		if !explicit && !onlyBlanks(s[keep:]) {
			return Null, pgerror.New(pgerror.StringDataRightTruncation, "value too long for type character(%d)", n)
		}
		return Text(s[:keep]), nil
	case chars < n:
		if s == "" && n <= len(blanks) {
			return Text(blanks[:n]), nil
		}
		b := append(make([]byte, 0, len(s)+n-chars), s...)
		for pad := n - chars; pad > 0; pad -= len(blanks) {
			b = append(b, blanks[:min(pad, len(blanks))]...)
		}
		return Bytes(b), nil
	}
	return Text(s), nil
}

// TrimBPChar removes the trailing blanks of a char(n), which are not significant.
func TrimBPChar(s []byte) []byte {
	n := len(s)
	for n > 0 && s[n-1] == ' ' {
		n--
	}
	return s[:n]
}

// parseInternalChar is "char"'s input: the first byte, which may be written \ooo.
func parseInternalChar(s string) Datum {
	if len(s) == 4 && s[0] == '\\' && isOctal(s[1]) && isOctal(s[2]) && isOctal(s[3]) {
		c := (s[1]-'0')<<6 | (s[2]-'0')<<3 | (s[3] - '0')
		if c == 0 {
			return Text("")
		}
		return Bytes([]byte{c})
	}
	if len(s) > 1 {
		s = s[:1]
	}
	return Text(s)
}
