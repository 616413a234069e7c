// Package sql turns PostgreSQL query texts into percodb's syntax tree.
//
//	text ── lex.go ──▶ tokens ── split.go ──▶ statements with their plan cache keys (slots.go)
//	     ── parse.go ──▶ sql/ast: query.go, from.go, expr.go, func.go, type.go, dml.go, ddl*.go, utility*.go,
//	                            object.go, routine.go, trigger.go, typedef.go, role.go, foreign.go, catalog.go, maintenance.go, observer.go
//
// A Meter (meter.go) bounds the time and the memory of all that.
//
// Invariants:
//  1. Two statements with equal keys have equal trees but for the values of slotted literals.
//  2. What PostgreSQL 15 refuses as syntax is refused, in its words, with the position in the query text.
//  3. No input panics, hangs or exhausts the stack: nesting is bounded (54001).
//  4. A tree printed by its String method parses back to an equal tree.
//
// The package does not resolve names or types.
package sql

import (
	"slices"

	"github.com/percodb/percodb/sql/ast"
)

// Literal is a constant extracted from a statement's text, in slot order.
type Literal struct {
	Kind  ast.LiteralKind
	Value string // decoded; may alias the text
	Pos   int    // 1-based character position in the query text
}

// Statement is one statement of a query text after lexing alone. Its Key is the plan cache key: the
// lexed text with literals replaced by their kinds; two statements with one Key have equal trees but for the values of
// their slotted literals. A statement whose key would exceed MaxKey has none.
type Statement struct {
	Key      []byte    // valid until the Lexer's next call; nil: no plan is kept
	Literals []Literal // valid until the Lexer's next call
	Planned  bool      // it is one of the statements that have plans
	Inner    bool      // it is part of another one, such as DECLARE, EXPLAIN or PREPARE
	Text     string    // this statement's own text, trimmed of blanks and comments
	Offset   int       // byte offset of Text in the query text
	Params   int       // the highest $n
	Strings  Strings   // how it is read

	parse func() (ast.Statement, error) // of a statement that another front end has read; nil: Parse parses Text

	base, tail int  // characters of the query text before Text and before what ended it
	semicolon  bool // a semicolon ended it
	owned      bool // Literals are the statement's own
}

// NewStatement makes a statement that another front end has read: parse gives what Parse is to give. key is the plan cache
// key, which must differ from all keys of this package's; nil for statements without plans. Statements with one key have equal
// trees but for the values of their literals with slots.
func NewStatement(parse func() (ast.Statement, error), key []byte, literals []Literal, text string, offset, params int) *Statement {
	return &Statement{parse: parse, Key: key, Literals: literals, Text: text, Offset: offset, Params: params, Planned: key != nil}
}

// Clone returns a copy that outlives the Lexer's next call. It shares the text.
func (s *Statement) Clone() *Statement {
	c := *s
	c.Key = slices.Clone(s.Key)
	if !s.owned {
		c.Literals = slices.Clone(s.Literals)
	}
	return &c
}
