package tsearch

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// wordReader reads the words of the text forms of vectors and queries: in single quotes, or up to a blank.
type wordReader struct {
	whole, rest string
	query       bool // the operators of a query end a word
	web         bool // a query of a web search: no quotes, no escapes
}

// syntaxError is the error for a text that cannot be read.
func (r *wordReader) syntaxError() error {
	what := "tsvector"
	if r.query {
		what = "tsquery"
	}
	return pgerror.New(pgerror.SyntaxError, "syntax error in %s: \"%s\"", what, r.whole)
}

// space reports whether s begins with white space, and its size.
func space(s string) (int, bool) {
	if s == "" {
		return 0, false
	}
	if c := s[0]; c < utf8.RuneSelf {
		return 1, c == ' ' || c >= '\t' && c <= '\r'
	}
	r, n := utf8.DecodeRuneInString(s)
	return n, unicode.IsSpace(r) && r != 0x85 && r != 0xa0 && r != 0x2007 && r != 0x202f
}

// trimSpace returns s without the white space before it.
func trimSpace(s string) string {
	for {
		n, ok := space(s)
		if !ok {
			return s
		}
		s = s[n:]
	}
}

// ends reports whether the rest ends a word that is not quoted.
func (r *wordReader) ends() bool {
	if r.rest == "" {
		return true
	}
	if _, ok := space(r.rest); ok {
		return true
	}
	if r.query && strings.IndexByte("!&|()<", r.rest[0]) >= 0 && !r.web {
		return true
	}
	return r.web && (strings.IndexByte("!&|()<\"", r.rest[0]) >= 0)
}

// word reads a word; false at the end of the text.
func (r *wordReader) word() (string, bool, error) {
	r.rest = trimSpace(r.rest)
	switch {
	case r.rest == "":
		return "", false, nil
	case r.rest[0] == '\'' && !r.web:
		r.rest = r.rest[1:]
		w, err := r.quoted()
		return w, true, err
	case r.ends():
		return "", false, r.syntaxError()
	}
	start := r.rest
	var out []byte // nil: the word is a part of start
	for first := true; ; first = false {
		if !first && (r.ends() || r.rest[0] == ':') {
			break
		}
		if r.rest[0] == '\\' && !r.web {
			if out == nil {
				out = append(make([]byte, 0, 64), start[:len(start)-len(r.rest)]...)
			}
			if r.rest = r.rest[1:]; r.rest == "" {
				return "", false, r.noEscaped()
			}
		}
		_, n := utf8.DecodeRuneInString(r.rest)
		if out != nil {
			out = append(out, r.rest[:n]...)
		}
		r.rest = r.rest[n:]
	}
	if out != nil {
		return string(out), true, nil
	}
	return start[:len(start)-len(r.rest)], true, nil
}

func (r *wordReader) noEscaped() error {
	return pgerror.New(pgerror.SyntaxError, "there is no escaped character: \"%s\"", r.whole)
}

// quoted reads a word up to the quote that ends it.
func (r *wordReader) quoted() (string, error) {
	var out []byte
	for {
		i := strings.IndexAny(r.rest, `'\`)
		if i < 0 {
			return "", r.syntaxError()
		}
		out = append(out, r.rest[:i]...)
		c := r.rest[i]
		r.rest = r.rest[i+1:]
		switch {
		case c == '\\':
			if r.rest == "" {
				return "", r.noEscaped()
			}
			_, n := utf8.DecodeRuneInString(r.rest)
			out, r.rest = append(out, r.rest[:n]...), r.rest[n:]
		case strings.HasPrefix(r.rest, "'"):
			out, r.rest = append(out, '\''), r.rest[1:]
		case len(out) == 0:
			return "", r.syntaxError()
		default:
			return string(out), nil
		}
	}
}

// positions reads what may follow a word: a colon and positions with weights.
func (r *wordReader) positions() ([]Position, error) {
	if !strings.HasPrefix(r.rest, ":") {
		return nil, nil
	}
	var out []Position
	for {
		r.rest = r.rest[1:] // the colon or comma
		digits := 0
		for digits < len(r.rest) && isDigit(r.rest[digits]) {
			digits++
		}
		if digits == 0 {
			return nil, r.syntaxError()
		}
		p := At(leadingInt(r.rest[:digits]), 0)
		if p.Pos() == 0 {
			return nil, pgerror.New(pgerror.SyntaxError, "wrong position info in tsvector: \"%s\"", r.whole)
		}
		r.rest = r.rest[digits:]
		comma, err := r.weight(&p)
		if out = append(out, p); err != nil || !comma {
			return out, err
		}
	}
}

// weight reads the weight of a position, and reports whether a comma follows.
func (r *wordReader) weight(p *Position) (comma bool, err error) {
	for r.rest != "" {
		c := r.rest[0]
		switch n, blank := space(r.rest); {
		case c == ',':
			return true, nil
		case blank:
			return false, nil
		case c == '*', c|0x20 >= 'a' && c|0x20 <= 'd' && c >= 'A':
			if p.Weight() != 0 {
				return false, r.syntaxError()
			}
			w := 3
			if c != '*' {
				w = int('d' - (c | 0x20))
			}
			*p = At(p.Pos(), w)
			r.rest = r.rest[n:]
		case isDigit(c):
			r.rest = r.rest[1:]
		default:
			return false, r.syntaxError()
		}
	}
	return false, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// leadingInt is C's atoi of digits: a number beyond 64 bits is the largest, and 32 bits remain.
func leadingInt(digits string) int {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		n = 1<<63 - 1
	}
	if i := int(int32(n)); i >= 0 {
		return i
	}
	return int(int32(n)) & MaxPosition
}

// ParseVector reads the text form of a vector.
//
// Errors: 42601, 54000.
func ParseVector(s string) (Vector, error) {
	r := wordReader{whole: s, rest: s}
	var list []Lexeme
	total := 0
	for {
		w, ok, err := r.word()
		if err != nil {
			return nil, err
		}
		if !ok {
			return NewVector(list)
		}
		pos, err := r.positions()
		if err != nil {
			return nil, err
		}
		if len(w) > MaxWord {
			return nil, pgerror.New(pgerror.ProgramLimitExceeded, "word is too long (%d bytes, max %d bytes)", len(w), MaxWord)
		}
		if total > MaxText {
			return nil, pgerror.New(pgerror.ProgramLimitExceeded, "string is too long for tsvector (%d bytes, max %d bytes)", total, MaxText)
		}
		list, total = append(list, Lexeme{w, pos}), total+len(w)
	}
}

// appendWord appends a word in quotes.
func appendWord(dst []byte, w string) []byte {
	dst = append(dst, '\'')
	for i := 0; i < len(w); i++ {
		if w[i] == '\'' || w[i] == '\\' {
			dst = append(dst, w[i])
		}
		dst = append(dst, w[i])
	}
	return append(dst, '\'')
}

// AppendText appends the text form.
func (v Vector) AppendText(dst []byte) []byte {
	for i, l := range v {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendWord(dst, l.Word)
		for j, p := range l.Pos {
			sep := byte(',')
			if j == 0 {
				sep = ':'
			}
			dst = strconv.AppendInt(append(dst, sep), int64(p.Pos()), 10)
			if w := p.Weight(); w > 0 {
				dst = append(dst, "DCBA"[w])
			}
		}
	}
	return dst
}
