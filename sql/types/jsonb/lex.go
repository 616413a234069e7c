package jsonb

import (
	"unicode/utf8"
)

// token is the kind of a lexical element.
type token uint8

const (
	tokNone token = iota
	tokEnd
	tokString
	tokNumber
	tokTrue
	tokFalse
	tokNull
	tokBeginObject
	tokEndObject
	tokBeginArray
	tokEndArray
	tokComma
	tokColon
)

// lexer splits a JSON text into tokens.
type lexer struct {
	in        string
	tok       token // the present one, or the last one before an error
	start     int   // of the token
	end       int   // of the token; after an error, of what the message shows
	line      int
	lineStart int
	// decode: strings are unescaped into text, and refused if that is not possible.
	decode bool
	text   string // of the string token, if decode
	buf    []byte
}

// next reads a token.
func (l *lexer) next() error {
	i := l.end
	for i < len(l.in) && isSpace(l.in[i]) {
		if i++; l.in[i-1] == '\n' {
			l.line++
			l.lineStart = i
		}
	}
	l.start = i
	if i == len(l.in) {
		l.end, l.tok = i, tokEnd
		return nil
	}
	if t := punctuation(l.in[i]); t != tokNone {
		l.end, l.tok = i+1, t
		return nil
	}
	switch c := l.in[i]; {
	case c == '"':
		return l.string(i + 1)
	case c == '-' || c >= '0' && c <= '9':
		return l.number(i)
	}
	return l.word(i)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func punctuation(c byte) token {
	switch c {
	case '{':
		return tokBeginObject
	case '}':
		return tokEndObject
	case '[':
		return tokBeginArray
	case ']':
		return tokEndArray
	case ',':
		return tokComma
	case ':':
		return tokColon
	}
	return tokNone
}

// isWord reports whether c continues a token that is not a string.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= utf8.RuneSelf
}

func (l *lexer) word(i int) error {
	end := i
	for end < len(l.in) && isWord(l.in[end]) {
		end++
	}
	if end == i {
		end++
	}
	l.end = end
	switch l.in[i:end] {
	case "true":
		l.tok = tokTrue
	case "false":
		l.tok = tokFalse
	case "null":
		l.tok = tokNull
	default:
		return l.errToken()
	}
	return nil
}

func (l *lexer) number(i int) error {
	end, ok := scanNumber(l.in, i)
	for ; end < len(l.in) && isWord(l.in[end]); end++ {
		ok = false
	}
	l.end = end
	if !ok {
		return l.errToken()
	}
	l.tok = tokNumber
	return nil
}

// scanNumber returns the end of the number at i, and whether it is one.
func scanNumber(s string, i int) (end int, ok bool) {
	if s[i] == '-' {
		i++
	}
	ok = true
	switch {
	case i < len(s) && s[i] == '0':
		i++
	case i < len(s) && s[i] >= '1' && s[i] <= '9':
		i = skipDigits(s, i)
	default:
		ok = false
	}
	if i < len(s) && s[i] == '.' {
		from := i + 1
		if i = skipDigits(s, from); i == from {
			ok = false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		from := i
		if i = skipDigits(s, from); i == from {
			ok = false
		}
	}
	return i, ok
}

func skipDigits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// string reads a string whose first character is at i.
func (l *lexer) string(i int) error {
	begin := i
	for i < len(l.in) {
		switch c := l.in[i]; {
		case c == '"':
			l.tok, l.end = tokString, i+1
			l.text = l.in[begin:i]
			return nil
		case c == '\\':
			return l.escaped(begin, i)
		case c < ' ':
			return l.errControl(i)
		}
		i++
	}
	l.end = i
	return l.errToken()
}

// escaped reads the rest of a string that contains escapes; the first is at i.
func (l *lexer) escaped(begin, i int) error {
	high := rune(-1) // a high surrogate that waits for its partner
	l.buf = append(l.buf[:0], l.in[begin:i]...)
	for i < len(l.in) {
		switch c := l.in[i]; {
		case c == '"':
			if high >= 0 {
				return l.errSurrogate(i, lowExpected)
			}
			l.tok, l.end = tokString, i+1
			l.text = l.in[begin:i]
			if l.decode {
				l.text = string(l.buf)
			}
			return nil
		case c < ' ':
			return l.errControl(i)
		case c == '\\':
			var err error
			if i, high, err = l.escape(i+1, high); err != nil {
				return err
			}
		default:
			if high >= 0 {
				return l.errSurrogate(i, lowExpected)
			}
			l.buf = append(l.buf, c)
			i++
		}
	}
	l.end = i
	return l.errToken()
}

// escape reads what is behind a backslash, at i. It returns the position behind and the high surrogate that waits.
func (l *lexer) escape(i int, high rune) (int, rune, error) {
	if i == len(l.in) {
		l.end = i
		return i, high, l.errToken()
	}
	if l.in[i] == 'u' {
		return l.codePoint(i, high)
	}
	if high >= 0 {
		return i, high, l.errSurrogate(i, lowExpected)
	}
	c := unescape(l.in[i])
	if c == 0 {
		return i, high, l.errEscape(i)
	}
	l.buf = append(l.buf, c)
	return i + 1, high, nil
}

// unescape returns the character that a backslash and c stand for, 0 if there is none.
func unescape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// codePoint reads u and four hexadecimal digits at i.
func (l *lexer) codePoint(i int, high rune) (int, rune, error) {
	r := rune(0)
	for range 4 {
		if i++; i == len(l.in) {
			l.end = i
			return i, high, l.errToken()
		}
		digit := hexValue(l.in[i])
		if digit < 0 {
			return i, high, l.errHex(i)
		}
		r = r<<4 | digit
	}
	if !l.decode {
		return i + 1, -1, nil
	}
	switch {
	case r >= 0xD800 && r <= 0xDBFF:
		if high >= 0 {
			return i, high, l.errSurrogate(i, highUnexpected)
		}
		return i + 1, r, nil
	case r >= 0xDC00 && r <= 0xDFFF:
		if high < 0 {
			return i, high, l.errSurrogate(i, lowExpected)
		}
		r = (high-0xD800)<<10 + (r - 0xDC00) + 0x10000
	case high >= 0:
		return i, high, l.errSurrogate(i, lowExpected)
	case r == 0:
		return i, high, l.errZero(i)
	}
	l.buf = utf8.AppendRune(l.buf, r)
	return i + 1, -1, nil
}

func hexValue(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}
