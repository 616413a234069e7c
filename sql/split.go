package sql

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/keyword"
)

// Lexer splits a query text into statements by lexing alone and gives each its plan cache key. It is
// reusable: after warming up, Next does not allocate for a statement whose literals need no decoding.
// Not safe for concurrent use.
type Lexer struct {
	scan  scanner
	toks  []token
	slots slotter
	stmt  Statement
	key   []byte
	lits  []Literal
	err   error // why the whole text is refused
	ascii bool
	// chars characters precede byte at: the cursor of position.
	at, chars int
}

// NewLexer returns an empty Lexer; Reset gives it a text.
func NewLexer() *Lexer { return &Lexer{} }

// keepTokens bounds the buffers a Lexer or a parser keeps between statements.
const keepTokens = 1 << 16

// Reset makes the Lexer start over with a text, which it reads without copying.
func (l *Lexer) Reset(text string) {
	l.scan = scanner{text: text}
	l.at, l.chars = 0, 0
	l.err = nil
	if cap(l.toks) > keepTokens {
		l.toks, l.lits, l.key = nil, nil, nil
	}
	l.ascii = isASCII(text)
	switch {
	case strings.IndexByte(text, 0) >= 0:
		l.err = invalidBytes("0x00")
	case !l.ascii && !utf8.ValidString(text):
		l.err = invalidUTF8(text)
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Next returns the next statement, io.EOF after the last one. Empty statements are skipped. The
// Statement belongs to the Lexer; its Key and Literals are valid until the next call. Errors are
// *pgerror.Error: 22021 for bytes that are not UTF-8, 42601 and 22025 for malformed tokens. After an
// error only Reset helps.
func (l *Lexer) Next() (*Statement, error) {
	if l.err != nil {
		return nil, l.err
	}
	semicolon, err := l.lexStatement()
	if err != nil {
		l.err = err
		return nil, err
	}
	n := len(l.toks) - 1 // the last one is the end mark
	if n == 0 {
		return nil, io.EOF
	}
	first, last := &l.toks[0], &l.toks[n-1]
	end := l.toks[n].start
	l.stmt = Statement{
		Text:      l.scan.text[first.start:last.end],
		Offset:    int(first.start),
		base:      l.position(int(first.start)) - 1,
		tail:      l.position(int(end)) - 1,
		semicolon: semicolon,
	}
	l.stmt.Params = paramCount(l.scan.text, l.toks)
	if !cacheable(l.toks) {
		return &l.stmt, nil
	}
	l.toks = foldMinimum(l.scan.text, l.toks)
	l.slots.assign(&l.scan, l.toks)
	if err := l.literals(); err != nil {
		l.err = err
		return nil, err
	}
	l.makeKey()
	return &l.stmt, nil
}

// lexStatement scans tokens up to a semicolon or the end of the text, skipping empty statements. The
// end mark stays as the last token.
func (l *Lexer) lexStatement() (semicolon bool, err error) {
	l.toks = l.toks[:0]
	var body bodyTracker
	for {
		l.toks = append(l.toks, token{})
		t := &l.toks[len(l.toks)-1]
		if e := l.scan.next(t); e != nil {
			return false, e
		}
		if t.kind == tokEOF {
			return false, nil
		}
		if l.toks[0].kw == keyword.Create {
			body.add(l.toks)
		}
		if t.kind == ';' && body.depth == 0 {
			if len(l.toks) > 1 {
				return true, nil
			}
			l.toks = l.toks[:0]
		}
	}
}

// bodyTracker follows what may hold semicolons within a CREATE statement: the parentheses of a rule's actions, and the body
// BEGIN ATOMIC … END of a function.
type bodyTracker struct {
	kind  keyword.Word // Rule, Function or Procedure; None for other statements
	depth int
}

// add takes the last of the statement's tokens into account.
func (b *bodyTracker) add(toks []token) {
	n := len(toks)
	t := &toks[n-1]
	if n == 2 || n == 4 && toks[1].kw == keyword.Or {
		b.kind = t.kw
	}
	switch {
	case b.kind == keyword.Rule && t.kind == '(':
		b.depth++
	case b.kind == keyword.Rule && t.kind == ')' && b.depth > 0:
		b.depth--
	case b.kind != keyword.Function && b.kind != keyword.Procedure:
	case b.depth == 0 && t.kw == keyword.Atomic && toks[n-2].kw == keyword.Begin, b.depth > 0 && t.kw == keyword.Case:
		b.depth++
	case b.depth > 0 && t.kw == keyword.End:
		b.depth--
	}
}

// position is the 1-based character position of a byte offset. Calls with rising offsets are cheap.
func (l *Lexer) position(offset int) int {
	if l.ascii {
		return offset + 1
	}
	if offset < l.at {
		l.at, l.chars = 0, 0
	}
	l.chars += utf8.RuneCountInString(l.scan.text[l.at:offset])
	l.at = offset
	return l.chars + 1
}

// cacheable reports whether the statement is one whose plan may be kept under its key.
func cacheable(toks []token) bool {
	if toks[0].kind == '(' {
		return true
	}
	switch toks[0].kw {
	case keyword.Select, keyword.Insert, keyword.Update, keyword.Delete, keyword.Values, keyword.With, keyword.Table:
		return true
	}
	return false
}

// paramCount is the highest $n of the tokens; numbers that are no parameter's count as none and are
// refused by the parser.
func paramCount(text string, toks []token) int {
	most := 0
	for i := range toks {
		if toks[i].kind == tokParam {
			if n := paramNumber(text[toks[i].start:toks[i].end]); n > most {
				most = n
			}
		}
	}
	return most
}

// maxParam is the highest parameter number the wire protocol can carry.
const maxParam = 65535

// paramNumber reads $n; 0 if n is none.
func paramNumber(raw string) int {
	n, err := strconv.Atoi(raw[1:])
	if err != nil || n > maxParam {
		return 0
	}
	return n
}

// literals fills the statement's Literals from its slotted tokens.
func (l *Lexer) literals() error {
	l.lits = l.lits[:0]
	for i := range l.toks {
		t := &l.toks[i]
		if t.kind != tokLiteral || int(t.slot) != len(l.lits) {
			continue // pinned, or an equal literal has the slot already
		}
		value, err := l.scan.literal(t)
		if err != nil {
			return err
		}
		l.lits = append(l.lits, Literal{Kind: t.lit, Value: value, Pos: l.position(int(t.start))})
	}
	l.stmt.Literals = l.lits
	return nil
}

// makeKey writes the plan cache key: the tokens in canonical form, one blank between two.
func (l *Lexer) makeKey() {
	key := l.key[:0]
	text := l.scan.text
	for i := range l.toks[:len(l.toks)-1] {
		t := &l.toks[i]
		if i > 0 {
			key = append(key, ' ')
		}
		switch t.kind {
		case tokIdent:
			for _, c := range []byte(text[t.start:t.end]) {
				key = append(key, lowerByte(c))
			}
		case tokQuoted:
			key = l.quotedKey(key, t)
		case tokLiteral:
			key = l.literalKey(key, t)
		case tokOp:
			op := text[t.start:t.end]
			if op == "!=" {
				op = "<>"
			}
			key = append(key, op...)
		default:
			key = append(key, text[t.start:t.end]...)
		}
	}
	l.key = key
	l.stmt.Key = key
}

// literalKey appends a slotted literal as ? with its kind (and its slot, where equal literals share
// one), a pinned one as itself. A question mark operator cannot be mistaken for it: a blank follows.
func (l *Lexer) literalKey(key []byte, t *token) []byte {
	if t.slot >= 0 {
		key = append(key, '?', literalKindMark(t.lit))
		if l.slots.shared {
			key = append(key, ':')
			key = strconv.AppendInt(key, int64(t.slot), 10)
		}
		return key
	}
	value, err := l.scan.literal(t)
	if err != nil {
		value = l.scan.text[t.start:t.end] // Parse refuses the statement
	}
	key = append(key, literalKindMark(t.lit), '\'')
	return append(appendDoubled(key, value, '\''), '\'')
}

func (l *Lexer) quotedKey(key []byte, t *token) []byte {
	name, err := l.scan.ident(t)
	if err != nil {
		name = l.scan.text[t.start:t.end] // Parse refuses the statement
	}
	if plainName(name) {
		return append(key, name...)
	}
	key = append(key, '"')
	return append(appendDoubled(key, name, '"'), '"')
}

// plainName reports whether an unquoted name would mean the same.
func plainName(name string) bool {
	if c := class(name[0]); c != classIdent {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !identChar(c) || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return len(name) > maxKeyword || keyword.Lookup([]byte(name)) == keyword.None
}

func appendDoubled(b []byte, s string, quote byte) []byte {
	for i := range len(s) {
		if s[i] == quote {
			b = append(b, quote)
		}
		b = append(b, s[i])
	}
	return b
}
