package sql

import (
	"io"
	"sync"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// parsers keeps parsers with their buffers and TiDB's parser, which is costly to make.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// keepText is the longest text whose parser goes back to the pool: larger ones leave large buffers.
const keepText = 1 << 18

// Parse gives the tree of a lexed statement; strings in it alias the statement's text. Errors are
// *pgerror.Error with the position in the query text: 42601 for what PostgreSQL refuses, 0A000 for what
// percodb refuses, 54001 for what is nested too deeply. Statements PostgreSQL has and percodb does not
// know at all arrive as *ast.Unsupported. Safe for concurrent use.
func Parse(st *Statement) (ast.Statement, error) {
	return withParser(st.Text, st.base, st.tail, st.semicolon, (*parser).parse)
}

// ParseStatement parses a text that holds exactly one statement, such as a view's query in the catalog.
func ParseStatement(text string) (ast.Statement, error) {
	lexer := NewLexer()
	lexer.Reset(text)
	st, err := lexer.Next()
	if err == io.EOF {
		return nil, pgerror.New(pgerror.SyntaxError, "syntax error at end of input").At(1)
	}
	if err != nil {
		return nil, err
	}
	node, err := Parse(st)
	if err != nil {
		return nil, err
	}
	if st, err = lexer.Next(); err != io.EOF {
		if err == nil {
			err = pgerror.New(pgerror.SyntaxError, "the text holds more than one statement").At(st.base + 1)
		}
		return nil, err
	}
	return node, nil
}

// ParseExpr parses a text that is one expression, such as a column's default in the catalog. Its
// literals have no slots.
func ParseExpr(text string) (ast.Expr, error) {
	lexer := NewLexer()
	lexer.Reset(text)
	if lexer.err != nil {
		return nil, lexer.err
	}
	end := lexer.position(len(text)) - 1
	return withParser(text, 0, end, false, (*parser).parseExpr)
}

// withParser runs parse on a pooled parser. TiDB's parser is known to panic on odd input; such a
// panic is an error of the statement, with what happened as its cause.
func withParser[T any](text string, base, tail int, semicolon bool, parse func(*parser) (T, error)) (T, error) {
	p := parsers.Get().(*parser)
	var none T
	if err := p.reset(text, base, tail, semicolon); err != nil {
		parsers.Put(p)
		return none, err
	}
	node, err := parse(p)
	if len(text) <= keepText && cap(p.toks) <= keepTokens {
		clear(p.items)
		p.text = ""
		parsers.Put(p)
	}
	if err != nil {
		return none, err
	}
	return node, nil
}

// parse reads a whole statement.
func (p *parser) parse() (ast.Statement, error) {
	node := p.statement()
	if p.err == nil && !p.is(tokEOF) {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	if !p.tree {
		nameOutputs(node)
		return node, nil
	}
	return p.decode()
}

// parseExpr reads a whole text as one expression.
func (p *parser) parseExpr() (ast.Expr, error) {
	for i := range p.toks {
		p.toks[i].slot = pinned
	}
	p.emit("SELECT ")
	id, outer := p.begin()
	x := p.expr()
	p.end(id, outer, x)
	p.emitFromMark(id)
	if p.err == nil && !p.is(tokEOF) {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	if p.tree {
		if err := p.fillExpr(); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// statement reads a statement. It returns nil for one that TiDB's part of the tree completes at the top.
func (p *parser) statement() ast.Statement {
	if p.is('(') || queryWord(p.toks, p.pos) {
		if !p.isWord(kw.With) {
			p.query()
			return nil
		}
		pos := p.here()
		p.withClause()
		p.tree = true
		if isDML(p.cur().kw) {
			return p.dml()
		}
		p.queryBody(true, pos)
		return nil
	}
	if isDML(p.cur().kw) {
		return p.dml()
	}
	p.emit("SELECT ")
	id, outer := p.begin()
	st := p.utility()
	p.end(id, outer, st)
	p.emitFromMark(id)
	return st
}

func isDML(word kw.Word) bool { return word == kw.Insert || word == kw.Update || word == kw.Delete }

// inner reads the statement inside EXPLAIN, PREPARE and the like into dst.
func (p *parser) inner(dst *ast.Statement) {
	switch {
	case p.err != nil:
	case p.is('(') || queryWord(p.toks, p.pos) || isDML(p.cur().kw):
		p.hole(hole{stmt: dst})
		p.embedded()
		p.endHole()
	default:
		*dst = p.utility()
	}
}

// embedded reads a query or a data-modifying statement with its WITH and writes it for TiDB's grammar.
func (p *parser) embedded() {
	pos := p.here()
	with := p.isWord(kw.With)
	if with {
		p.withClause()
	}
	if isDML(p.cur().kw) {
		p.dml()
	} else {
		p.queryBody(with, pos)
	}
}
