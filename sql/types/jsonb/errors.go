package jsonb

import (
	"fmt"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// MaxDepth is the maximum nesting of arrays and objects.
const MaxDepth = 10000

const (
	lowExpected    = "Unicode low surrogate must follow a high surrogate."
	highUnexpected = "Unicode high surrogate must not follow a high surrogate."
)

// ErrTooDeep returns 54001 for a value that is nested deeper than MaxDepth.
func ErrTooDeep() error {
	return pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
		WithHint("JSON values nest 10000 levels deep at most.")
}

// fail makes a 22P02 at the present token.
func (l *lexer) fail(detail string, args ...any) error {
	e := pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type json").WithDetail(detail, args...)
	e.Where = l.where()
	return e
}

// where shows the line up to the end of the token, at most 50 bytes of it.
func (l *lexer) where() string {
	const shown = 50
	from := l.lineStart
	for l.end-from >= shown {
		_, n := utf8.DecodeRuneInString(l.in[from:])
		from += n
	}
	prefix, suffix := "...", ""
	if from-l.lineStart <= 3 {
		from, prefix = l.lineStart, ""
	}
	if l.tok != tokEnd && l.end < len(l.in) && l.in[l.end] != '\n' && l.in[l.end] != '\r' {
		suffix = "..."
	}
	return fmt.Sprintf("JSON data, line %d: %s%s%s", l.line+1, prefix, l.in[from:l.end], suffix)
}

func (l *lexer) errToken() error {
	return l.fail("Token \"%s\" is invalid.", l.in[l.start:l.end])
}

// endAt sets the end of what a message shows behind the character at i.
func (l *lexer) endAt(i int) {
	_, n := utf8.DecodeRuneInString(l.in[i:])
	l.end = i + n
}

func (l *lexer) errControl(i int) error {
	l.end = i
	return l.fail("Character with value 0x%02x must be escaped.", l.in[i])
}

func (l *lexer) errEscape(i int) error {
	l.endAt(i)
	return l.fail("Escape sequence \"\\%s\" is invalid.", l.in[i:l.end])
}

func (l *lexer) errHex(i int) error {
	l.endAt(i)
	return l.fail("\"\\u\" must be followed by four hexadecimal digits.")
}

func (l *lexer) errSurrogate(i int, detail string) error {
	l.endAt(i)
	return l.fail("%s", detail)
}

func (l *lexer) errZero(i int) error {
	l.endAt(i)
	e := pgerror.New(pgerror.UntranslatableCharacter, "unsupported Unicode escape sequence").
		WithDetail("\\u0000 cannot be converted to text.")
	e.Where = l.where()
	return e
}

// errExpected is the error for a token where the grammar has no place for it.
func (l *lexer) errExpected(what string) error {
	if l.tok == tokEnd {
		return l.fail("The input string ended unexpectedly.")
	}
	return l.fail("Expected %s, but found \"%s\".", what, l.in[l.start:l.end])
}
