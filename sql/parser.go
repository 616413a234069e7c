package sql

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// parser reads one statement's tokens by recursive descent, operators by precedence climbing. There is a file for
// each family of statements.
//
// Errors are sticky: the first one is kept and moves the parser to the end mark, where nothing matches.
type parser struct {
	scanner
	toks      []token // the end mark is last
	pos       int     // index of the current token
	tail      int     // characters of the query text before the statement's end
	semicolon bool    // what ended the statement, for the error message
	ascii     bool
	at, chars int // cursor of position

	relation string               // the table that DDL is about, for messages
	partial  struct{ at, to int } // where acceptWords began and had to stop, for the error's position

	itemDepth int // the depth of the operators of a select item, 0 outside of one
	// similarDepth is the depth of the operators of SUBSTRING's first argument, which a SIMILAR without TO ends.
	similarDepth int
	bareCall     bool // the next call is one of FROM: no FILTER or OVER belongs to it

	depth   int // nesting of expressions and queries
	queries int // read so far
	ops     int // operators of the outermost expression
	err     *pgerror.Error
	// refused is the first thing the statement has that PostgreSQL's grammar knows and percodb does not support yet.
	refused *pgerror.Error
	slots   slotter
	// names holds the parts of the statement's names, one behind the other: most have one or two.
	parts []string
}

// Limits that keep the recursion over a tree, here and in the planner, far from the stack's end.
const (
	maxDepth     = 2000
	maxOperators = 100_000
)

// reset gives the parser a statement's text.
func (p *parser) reset(st *Statement, m *Meter) *pgerror.Error {
	p.scanner = newScanner(st.Text, st.base, st.Strings, m)
	p.toks, p.pos, p.tail, p.semicolon = p.toks[:0], 0, st.tail, st.semicolon
	p.ascii, p.at, p.chars = isASCII(st.Text), 0, 0
	p.partial.at = -1
	p.depth, p.queries, p.ops, p.err, p.itemDepth, p.similarDepth, p.bareCall = 0, 0, 0, nil, 0, 0, false
	p.refused, p.parts = nil, nil // a tree keeps its names
	var err *pgerror.Error
	for {
		n := len(p.toks)
		if n == cap(p.toks) {
			if p.toks, err = p.growTokens(p.toks); err != nil {
				return err
			}
		}
		p.toks = p.toks[:n+1]
		t := &p.toks[n]
		if err := p.next(t); err != nil {
			return err
		}
		if t.kind == tokEOF {
			break
		}
	}
	if p.toks, err = foldMinimum(&p.scanner, p.toks); err != nil {
		return err
	}
	if err := p.matchBrackets(); err != nil {
		return err
	}
	if cacheable(p.toks) {
		_, err = p.slots.assign(&p.scanner, p.toks)
	}
	return err
}

// matchBrackets links each bracket to its partner. One without a partner stays unlinked and is a
// syntax error when the parser gets there.
func (p *parser) matchBrackets() *pgerror.Error {
	var few [64]int32
	stack := few[:0]
	for i := range p.toks {
		if i&pollMask == pollMask {
			if err := p.meter.poll(); err != nil {
				return err
			}
		}
		t := &p.toks[i]
		switch t.kind {
		case '(', '[':
			stack = append(stack, int32(i))
		case ')', ']':
			if len(stack) == 0 {
				return nil
			}
			open := stack[len(stack)-1]
			if p.toks[open].kind != t.kind-(')'-'(') && !(t.kind == ']' && p.toks[open].kind == '[') {
				return nil
			}
			stack = stack[:len(stack)-1]
			p.toks[open].aux, t.aux = int32(i), open
		}
	}
	return nil
}

// cur is the current token, the end mark when all are read.
func (p *parser) cur() *token { return &p.toks[p.pos] }

// peek is the token n after the current one.
func (p *parser) peek(n int) *token {
	if p.pos+n >= len(p.toks) {
		return &p.toks[len(p.toks)-1]
	}
	return &p.toks[p.pos+n]
}

func (p *parser) is(kind tokenKind) bool { return p.toks[p.pos].kind == kind }

func (p *parser) isWord(w kw.Word) bool { return p.toks[p.pos].kw == w }

// isOp reports whether the current token is the one-character operator c.
func (p *parser) isOp(c byte) bool { t := p.cur(); return t.kind == tokOp && t.sub == c }

func (p *parser) advance() {
	if p.pos < len(p.toks)-1 {
		if p.pos++; p.pos&pollMask == pollMask {
			p.drawTree()
		}
	}
}

// nodeBytes is about what the tree takes for each token.
const nodeBytes = 64

// drawTree draws the memory of the tree that the next tokens become.
func (p *parser) drawTree() {
	if err := p.meter.grow(pollTokens * nodeBytes); err != nil {
		p.fail(err)
	}
}

func (p *parser) accept(kind tokenKind) bool {
	if !p.is(kind) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) acceptWord(w kw.Word) bool {
	if !p.isWord(w) {
		return false
	}
	p.advance()
	return true
}

// acceptWords accepts all of the words in order or none of them.
func (p *parser) acceptWords(words ...kw.Word) bool {
	for i, w := range words {
		if p.peek(i).kw != w {
			if p.partial.at != p.pos || p.partial.to < p.pos+i {
				p.partial.at, p.partial.to = p.pos, p.pos+i
			}
			return false
		}
	}
	p.pos += len(words)
	return true
}

func (p *parser) acceptOp(c byte) bool {
	if !p.isOp(c) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(kind tokenKind) {
	if !p.accept(kind) {
		p.unexpected()
	}
}

func (p *parser) expectWord(w kw.Word) {
	if !p.acceptWord(w) {
		p.unexpected()
	}
}

func (p *parser) expectWords(words ...kw.Word) {
	for _, w := range words {
		p.expectWord(w)
	}
}

// fail keeps the first error and stops the parser.
func (p *parser) fail(err *pgerror.Error) {
	if p.err == nil {
		p.err = err
	}
	p.pos = len(p.toks) - 1
}

func (p *parser) failAt(pos ast.Pos, code pgerror.Code, format string, args ...any) {
	if p.err == nil {
		p.fail(pgerror.New(code, format, args...).At(int(pos)))
	}
}

// notYet notes something that percodb does not support yet, and goes on: the tree holds it, and syntax errors
// behind it come first, as they do in PostgreSQL. Parse refuses the statement, ParseTree does not.
func (p *parser) notYet(pos ast.Pos, what, hint string) {
	if p.err == nil && p.refused == nil {
		p.refused = pgerror.Unsupported(what, hint).At(int(pos))
	}
}

// later notes an error that PostgreSQL finds behind its grammar: Parse gives it, ParseTree does not.
func (p *parser) later(err *pgerror.Error) {
	if p.err == nil && p.refused == nil {
		p.refused = err
	}
}

// unsupported refuses something PostgreSQL has and percodb does not.
func (p *parser) unsupported(pos ast.Pos, what, hint string) {
	if p.err == nil {
		p.fail(pgerror.Unsupported(what, hint).At(int(pos)))
	}
}

// unexpected reports the current token as a syntax error, in PostgreSQL's words.
func (p *parser) unexpected() { p.unexpectedAs("syntax error") }

// unexpectedAs is unexpected with words of its own for what is wrong.
func (p *parser) unexpectedAs(what string) {
	if p.err != nil {
		return
	}
	if p.partial.at == p.pos && p.partial.to < len(p.toks) {
		p.pos = p.partial.to // the words before it were right
	}
	t := p.cur()
	switch {
	case t.kind != tokEOF:
		p.failAt(p.posOf(t), pgerror.SyntaxError, `%s at or near "%s"`, what, p.text[t.start:t.end])
	case p.semicolon:
		p.failAt(ast.Pos(p.tail+1), pgerror.SyntaxError, `%s at or near ";"`, what)
	default:
		p.failAt(ast.Pos(p.tail+1), pgerror.SyntaxError, "%s at end of input", what)
	}
}

// here is the position of the current token.
func (p *parser) here() ast.Pos { return p.posOf(p.cur()) }

// posOf is a token's 1-based character position in the query text.
func (p *parser) posOf(t *token) ast.Pos {
	offset := int(t.start)
	if p.ascii {
		return ast.Pos(p.base + offset + 1)
	}
	if offset < p.at {
		p.chars -= utf8.RuneCountInString(p.text[offset:p.at])
	} else {
		p.chars += utf8.RuneCountInString(p.text[p.at:offset])
	}
	p.at = offset
	return ast.Pos(p.base + p.chars + 1)
}

// enter counts a level of nesting; leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.tooDeep()
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) tooDeep() {
	if p.err == nil {
		p.fail(pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Nest expressions and subqueries less deeply."))
	}
}

// name reads the identifier of a token, whatever its kind.
func (p *parser) name(t *token) string {
	name, err := p.ident(t)
	if err != nil {
		p.fail(err)
	}
	return name
}

func isColID(t *token) bool {
	return t.kind == tokQuoted || t.kind == tokIdent && t.kw.Category() <= kw.ColumnName
}

func isTypeFuncName(t *token) bool {
	c := t.kw.Category()
	return t.kind == tokQuoted || t.kind == tokIdent && (c <= kw.Unreserved || c == kw.TypeFunc)
}

func isColLabel(t *token) bool { return t.kind == tokQuoted || t.kind == tokIdent }

// joined reports whether PostgreSQL's scanner takes the current word and the next for one token, which is no name.
func (p *parser) joined() bool {
	switch p.cur().kw {
	case kw.Not:
		switch p.peek(1).kw {
		case kw.Between, kw.In, kw.Like, kw.Ilike, kw.Similar:
			return true
		}
	case kw.Nulls:
		return p.peek(1).kw == kw.First || p.peek(1).kw == kw.Last
	case kw.With:
		return p.peek(1).kw == kw.Time || p.peek(1).kw == kw.Ordinality
	}
	return false
}

// colID reads the name of a column, table or the like.
func (p *parser) colID() string {
	t := p.cur()
	if !isColID(t) || p.joined() {
		p.unexpected()
		return ""
	}
	p.advance()
	return p.name(t)
}

// colLabel reads a name in a place where any word is one.
func (p *parser) colLabel() string {
	t := p.cur()
	if !isColLabel(t) || p.joined() {
		p.unexpected()
		return ""
	}
	p.advance()
	return p.name(t)
}

// nonReserved reads a word that no reserved keyword is: a role, a setting's value, a type of object.
func (p *parser) nonReserved() string {
	if t := p.cur(); t.kind == tokIdent && t.kw.Category() == kw.Reserved {
		p.unexpected()
		return ""
	}
	return p.colLabel()
}

// path reads a possibly qualified name.
func (p *parser) path() []string {
	from := p.beginName()
	p.parts = append(p.parts, p.colID())
	for p.accept('.') {
		p.parts = append(p.parts, p.colLabel())
	}
	return p.parts[from:len(p.parts):len(p.parts)]
}

// Sizes of the array that names are taken from: small for a statement with one name, doubled by the next ones.
const minParts, maxParts = 4, 64

// beginName makes place for a name of usual length and returns where its parts begin in p.parts.
func (p *parser) beginName() int {
	if cap(p.parts)-len(p.parts) < 3 {
		p.parts = make([]string, 0, min(max(minParts, 2*cap(p.parts)), maxParts))
	}
	return len(p.parts)
}

// single is a name of one part.
func (p *parser) single(name string) []string {
	from := p.beginName()
	p.parts = append(p.parts, name)
	return p.parts[from : from+1 : from+1]
}

// tableName reads [[database.]schema.]name.
func (p *parser) tableName() ast.TableName {
	name := ast.TableName{Pos: p.here()}
	first := p.colID()
	if !p.accept('.') {
		name.Name = first
		return name
	}
	name.Schema, name.Name = first, p.colLabel()
	if !p.accept('.') {
		return name
	}
	name.Database, name.Schema, name.Name = name.Schema, name.Name, p.colLabel()
	if p.is('.') {
		parts := []string{name.Database, name.Schema, name.Name}
		for p.accept('.') {
			parts = append(parts, p.colLabel())
		}
		p.failAt(name.Pos, pgerror.SyntaxError, "improper qualified name (too many dotted names): %s", dotted(parts))
	}
	p.later(pgerror.New(pgerror.FeatureNotSupported, "cross-database references are not implemented: \"%s.%s.%s\"",
		name.Database, name.Schema, name.Name).At(int(name.Pos)))
	return name
}

// tableNames reads a comma-separated list of tables.
func (p *parser) tableNames() []ast.TableName {
	names := []ast.TableName{p.tableName()}
	for p.accept(',') {
		names = append(names, p.tableName())
	}
	return names
}

// columnList reads (a, b, …).
func (p *parser) columnList() []string {
	p.expect('(')
	names := p.names()
	p.expect(')')
	return names
}

// stringLit reads a string constant.
func (p *parser) stringLit() string {
	t := p.cur()
	if !isString(t) {
		p.unexpected()
		return ""
	}
	p.advance()
	return p.literalValue(t)
}

func (p *parser) literalValue(t *token) string {
	value, err := p.literal(t)
	if err != nil {
		p.fail(err)
	}
	return value
}

// isString reports whether t is a string constant; N'x' is one with a type of its own.
func isString(t *token) bool {
	return t.kind == tokLiteral && t.lit == ast.LiteralString && t.sub&styleMask != styleNational
}

// smallInt reads an integer of four bytes, perhaps with a sign.
func (p *parser) smallInt() int64 {
	t := p.cur()
	if p.isOp('-') || p.isOp('+') {
		t = p.peek(1)
	}
	if t.kind == tokLiteral && t.lit != ast.LiteralInt4 {
		p.failAt(p.posOf(t), pgerror.SyntaxError, `syntax error at or near "%s"`, p.text[t.start:t.end])
		return 0
	}
	return p.intLit()
}

// intLit reads an integer with an optional sign.
func (p *parser) intLit() int64 {
	t := p.peek(0)
	if p.isOp('-') || p.isOp('+') {
		t = p.peek(1)
	}
	text := p.signedNumber()
	if p.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		p.failAt(p.posOf(t), pgerror.NumericValueOutOfRange, `value "%s" is out of range for type bigint`, text)
	case err != nil:
		p.failAt(p.posOf(t), pgerror.SyntaxError, `syntax error at or near "%s"`, p.text[t.start:t.end])
	}
	return n
}
