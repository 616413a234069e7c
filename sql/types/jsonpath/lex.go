package jsonpath

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// kind is the kind of a token.
type kind uint8

const (
	end    kind = iota
	mark        // an operator or punctuation: text
	word        // a name without quotes
	str         // a string in quotes
	number      // text
	variable
)

type token struct {
	kind kind
	text string // decoded
	raw  string // what errors say they are near: the token as it is written, unless it is a name
}

// is reports whether t is the mark or the word s. Words are compared without case, true, false and null with.
func (t *token) is(s string) bool {
	if t.kind == mark {
		return t.text == s
	}
	if t.kind != word {
		return false
	}
	if s == "true" || s == "false" || s == "null" {
		return t.text == s
	}
	return strings.EqualFold(t.text, s)
}

const special = "?%$.[]{}()|&!=<>@#,*:-+/\\\" \t\n\r\f"

type lexer struct {
	in  string
	pos int
}

func syntax(message, near string) error {
	if near == "" {
		return pgerror.New(pgerror.SyntaxError, "%s at end of jsonpath input", message)
	}
	return pgerror.New(pgerror.SyntaxError, "%s at or near \"%s\" of jsonpath input", message, near)
}

// next reads a token.
func (l *lexer) next() (token, error) {
	if err := l.skipBlanks(); err != nil || l.pos == len(l.in) {
		return token{}, err
	}
	c := l.in[l.pos]
	switch {
	case c == '"':
		return l.quoted(l.pos, str)
	case c == '$':
		return l.dollar()
	case isDigit(c), c == '.' && l.pos+1 < len(l.in) && isDigit(l.in[l.pos+1]):
		return l.number()
	case strings.IndexByte(special, c) < 0 || c == '\\':
		return l.word(l.pos, l.pos, word)
	}
	for _, m := range []string{"**", "||", "&&", "==", "!=", "<>", "<=", ">=", string(c)} {
		if strings.HasPrefix(l.in[l.pos:], m) {
			l.pos += len(m)
			text := m
			switch m {
			case "<>":
				text = "!="
			case "=":
				text = "=="
			}
			return token{kind: mark, text: text, raw: m}, nil
		}
	}
	return token{}, syntax("syntax error", string(c))
}

func (l *lexer) skipBlanks() error {
	for l.pos < len(l.in) {
		switch {
		case strings.IndexByte(" \t\n\r\f", l.in[l.pos]) >= 0:
			l.pos++
		case strings.HasPrefix(l.in[l.pos:], "/*"):
			n := strings.Index(l.in[l.pos+2:], "*/")
			if n < 0 {
				l.pos = len(l.in)
				return syntax("unexpected end of comment", "")
			}
			l.pos += n + 4
		default:
			return nil
		}
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) dollar() (token, error) {
	from := l.pos
	l.pos++
	if l.pos < len(l.in) && l.in[l.pos] == '"' {
		return l.quoted(from, variable)
	}
	if l.pos < len(l.in) && strings.IndexByte(special, l.in[l.pos]) < 0 {
		return l.word(from, l.pos, variable)
	}
	return token{kind: mark, text: "$", raw: "$"}, nil
}

// number reads 0, 12, 1.5, 1., .5, 1e3.
func (l *lexer) number() (token, error) {
	from := l.pos
	i := from
	if l.in[i] == '0' {
		i++
	} else {
		i = l.digits(i)
	}
	if i < len(l.in) && l.in[i] == '.' {
		i = l.digits(i + 1)
	}
	ok := true
	if i < len(l.in) && (l.in[i] == 'e' || l.in[i] == 'E') {
		j := i + 1
		if j < len(l.in) && (l.in[j] == '+' || l.in[j] == '-') {
			j++
		}
		if i = l.digits(j); i == j {
			ok = false
		}
	}
	if !ok {
		return token{}, syntax("invalid numeric literal", l.in[from:i])
	}
	if i < len(l.in) && (strings.IndexByte(special, l.in[i]) < 0 || l.in[i] == '\\') {
		_, n := utf8.DecodeRuneInString(l.in[i:])
		return token{}, syntax("trailing junk after numeric literal", l.in[from:i+n])
	}
	l.pos = i
	return token{kind: number, text: l.in[from:i], raw: l.in[from:i]}, nil
}

func (l *lexer) digits(i int) int {
	for i < len(l.in) && isDigit(l.in[i]) {
		i++
	}
	return i
}

// word reads a name that begins at i; the token begins at from.
func (l *lexer) word(from, i int, k kind) (token, error) {
	var b []byte
	for i < len(l.in) && (strings.IndexByte(special, l.in[i]) < 0 || l.in[i] == '\\') {
		if l.in[i] != '\\' {
			b = append(b, l.in[i])
			i++
			continue
		}
		var err error
		if b, i, err = l.escape(b, i+1); err != nil {
			return token{}, err
		}
	}
	l.pos = i
	// Errors show what ended the name, as PostgreSQL's scanner has it then: the blanks, or nothing.
	rest := strings.TrimLeft(l.in[i:], " \t\n\r\f")
	raw := l.in[i : len(l.in)-len(rest)]
	if k == variable {
		raw = l.in[from:i]
	}
	return token{kind: k, text: string(b), raw: raw}, nil
}

// quoted reads a string in quotes; the token begins at from, with the quote or with $.
func (l *lexer) quoted(from int, k kind) (token, error) {
	i := strings.IndexByte(l.in[from:], '"') + from + 1
	var b []byte
	for i < len(l.in) {
		switch c := l.in[i]; c {
		case '"':
			l.pos = i + 1
			return token{kind: k, text: string(b), raw: l.in[from:l.pos]}, nil
		case '\\':
			var err error
			if b, i, err = l.escape(b, i+1); err != nil {
				return token{}, err
			}
		default:
			b = append(b, c)
			i++
		}
	}
	return token{}, syntax("unexpected end of quoted string", "")
}

// escape reads what is behind a backslash, at i.
func (l *lexer) escape(b []byte, i int) ([]byte, int, error) {
	if i == len(l.in) {
		return nil, 0, syntax("unexpected end after backslash", "")
	}
	switch c := l.in[i]; c {
	case 'b':
		return append(b, '\b'), i + 1, nil
	case 'f':
		return append(b, '\f'), i + 1, nil
	case 'n':
		return append(b, '\n'), i + 1, nil
	case 'r':
		return append(b, '\r'), i + 1, nil
	case 't':
		return append(b, '\t'), i + 1, nil
	case 'v':
		return append(b, '\v'), i + 1, nil
	case 'x':
		n, err := strconv.ParseUint(l.in[i+1:min(i+3, len(l.in))], 16, 8)
		if err != nil || i+3 > len(l.in) {
			return nil, 0, syntax("invalid hexadecimal character sequence", l.in[i-1:min(i+3, len(l.in))])
		}
		return l.rune(b, rune(n), i+3)
	case 'u':
		r, next, err := l.unicode(i)
		if err != nil {
			return nil, 0, err
		}
		if r >= 0xD800 && r <= 0xDBFF && strings.HasPrefix(l.in[next:], `\u`) {
			low, after, err := l.unicode(next + 1)
			if err != nil {
				return nil, 0, err
			}
			if low >= 0xDC00 && low <= 0xDFFF {
				return l.rune(b, (r-0xD800)<<10+(low-0xDC00)+0x10000, after)
			}
			if low >= 0xD800 && low <= 0xDBFF {
				return nil, 0, errPair("Unicode high surrogate must not follow a high surrogate.")
			}
		}
		return l.rune(b, r, next)
	}
	_, n := utf8.DecodeRuneInString(l.in[i:])
	return append(b, l.in[i:i+n]...), i + n, nil
}

func errPair(detail string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s", "jsonpath").WithDetail("%s", detail)
}

func (l *lexer) rune(b []byte, r rune, next int) ([]byte, int, error) {
	switch {
	case r == 0:
		return nil, 0, pgerror.New(pgerror.UntranslatableCharacter, "unsupported Unicode escape sequence").
			WithDetail("\\u0000 cannot be converted to text.")
	case r >= 0xD800 && r <= 0xDFFF:
		return nil, 0, errPair("Unicode low surrogate must follow a high surrogate.")
	case r > utf8.MaxRune:
		return nil, 0, syntax("invalid Unicode escape sequence", l.in[:next])
	}
	return utf8.AppendRune(b, r), next, nil
}

// unicode reads u and four digits, or u and one to six digits in braces, at i.
func (l *lexer) unicode(i int) (rune, int, error) {
	digits, next := l.in[i+1:min(i+5, len(l.in))], i+5
	if strings.HasPrefix(digits, "{") {
		n := strings.IndexByte(l.in[i:], '}')
		if n < 0 {
			return 0, 0, syntax("invalid Unicode escape sequence", l.in[i-1:])
		}
		digits, next = l.in[i+2:i+n], i+n+1
	} else if len(digits) < 4 {
		return 0, 0, syntax("invalid Unicode escape sequence", l.in[i-1:])
	}
	r, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) > 6 {
		return 0, 0, syntax("invalid Unicode escape sequence", l.in[i-1:min(next, len(l.in))])
	}
	return rune(r), next, nil
}
