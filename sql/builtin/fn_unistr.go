package builtin

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// unistr replaces \XXXX, \+XXXXXX, \uXXXX and \UXXXXXXXX by the characters that they name, and \\ by a backslash.
func unistr(_ *Env, a []types.Datum) (types.Datum, error) {
	s := a[0].Text()
	if !strings.Contains(s, `\`) {
		return a[0], nil
	}
	out := make([]byte, 0, len(s))
	var high rune // half of a pair of surrogates
	for len(s) > 0 {
		if s[0] != '\\' || strings.HasPrefix(s, `\\`) {
			if high != 0 {
				return types.Null, errSurrogatePair()
			}
			out = append(out, s[0])
			s = s[1+boolInt(s[0] == '\\'):]
			continue
		}
		r, n, err := unicodeEscape(s)
		if err != nil {
			return types.Null, err
		}
		s = s[n:]
		switch {
		case r == 0 || r > utf8.MaxRune:
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "invalid Unicode code point: %04X", r)
		case high != 0:
			if r = utf16.DecodeRune(high, r); r == utf8.RuneError {
				return types.Null, errSurrogatePair()
			}
			high = 0
		case utf16.IsSurrogate(r) && r < 0xDC00:
			high = r
			continue
		case utf16.IsSurrogate(r):
			return types.Null, errSurrogatePair()
		}
		out = utf8.AppendRune(out, r)
	}
	if high != 0 {
		return types.Null, errSurrogatePair()
	}
	return types.Text(string(out)), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unicodeEscape reads the escape with which s begins: its code point, and its length.
func unicodeEscape(s string) (r rune, n int, err error) {
	for _, form := range [...]struct {
		prefix string
		digits int
	}{{`\+`, 6}, {`\u`, 4}, {`\U`, 8}, {`\`, 4}} {
		n := len(form.prefix) + form.digits
		if !strings.HasPrefix(s, form.prefix) || len(s) < n {
			continue
		}
		digits := s[len(form.prefix):n]
		if v, err := strconv.ParseUint(digits, 16, 32); err == nil {
			return rune(min(v, utf8.MaxRune+1)), n, nil
		}
	}
	return 0, 0, pgerror.New(pgerror.SyntaxError, "invalid Unicode escape").
		WithHint(`Unicode escapes must be \XXXX, \+XXXXXX, \uXXXX, or \UXXXXXXXX.`)
}

func errSurrogatePair() error {
	return pgerror.New(pgerror.SyntaxError, "invalid Unicode surrogate pair")
}
