package mysql

import (
	"io"

	"github.com/percodb/percodb/sql"
)

// Lexer gives the statements of a MySQL text one by one, as sql.Lexer does for PostgreSQL's. It is reusable. Not safe for
// concurrent use.
type Lexer struct {
	text       string
	parsed     bool
	statements []Statement
	err        error
	next       int
	slots      slotter
}

// NewLexer makes a Lexer that draws from m, which may be nil.
func NewLexer(m *sql.Meter) *Lexer { return &Lexer{slots: slotter{meter: m}} }

// Reset makes the Lexer start over with a text.
func (l *Lexer) Reset(text string) { *l = Lexer{text: text, slots: l.slots} }

// Next returns the next statement and its notices, io.EOF after the last one. The whole text is parsed by the first call.
func (l *Lexer) Next() (*sql.Statement, []string, error) {
	if !l.parsed {
		l.parsed = true
		l.statements, l.err = parse(l.text, l.slots.meter)
	}
	if l.err != nil {
		return nil, nil, l.err
	}
	if l.next == len(l.statements) {
		return nil, nil, io.EOF
	}
	st := &l.statements[l.next]
	l.next++
	return l.slots.statement(st), st.Notices, nil
}

// More reports whether statements are left, which one MySQL statement may have become.
func (l *Lexer) More() bool { return l.next < len(l.statements) }
