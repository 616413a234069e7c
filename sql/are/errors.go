package are

import "errors"

// The errors of Compile, in PostgreSQL's words.
var (
	errPattern   = errors.New("invalid regexp (reg version 0.8)")
	errCollate   = errors.New("invalid collating element")
	errClass     = errors.New("invalid character class")
	errEscape    = errors.New("invalid escape \\ sequence")
	errBackref   = errors.New("invalid backreference number")
	errBracket   = errors.New("brackets [] not balanced")
	errParen     = errors.New("parentheses () not balanced")
	errBrace     = errors.New("braces {} not balanced")
	errBounds    = errors.New("invalid repetition count(s)")
	errRange     = errors.New("invalid character range")
	errRepeat    = errors.New("quantifier operand invalid")
	errOption    = errors.New("invalid embedded option")
	errTooBig    = errors.New("regular expression is too complex")
	errTooNested = errTooBig
)

// syntaxError carries an error of the pattern out of the parser.
type syntaxError struct{ err error }

func fail(err error) { panic(syntaxError{err}) }
