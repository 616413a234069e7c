package sql

import "github.com/percodb/percodb/sql/ast"

// Literal is a constant extracted from a statement's text, in slot order.
type Literal struct {
	Kind  ast.LiteralKind
	Value string // decoded; may alias the text
	Pos   int    // 1-based character position in the query text
}

// Statement is one statement of a query text after lexing alone. Its Key is the plan cache key: the
// lexed text with literals replaced by their kinds (dialect.md, "What the side table buys"); two
// statements with one Key have equal trees but for the values of their slotted literals.
type Statement struct {
	Key      []byte    // valid until the Lexer's next call
	Literals []Literal // valid until the Lexer's next call
	Text     string    // this statement's own text, trimmed of blanks and comments
	Offset   int       // byte offset of Text in the query text
	Params   int       // the highest $n
}
