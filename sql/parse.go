package sql

import (
	"io"
	"sync"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// parsers keeps parsers with their buffers.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// keepText is the longest text whose parser goes back to the pool: larger ones leave large buffers.
const keepText = 1 << 18

// Parse gives the tree of a lexed statement; strings in it alias the statement's text. Errors are
// *pgerror.Error with the position in the query text: 42601 for what PostgreSQL refuses, 0A000 for what
// percodb refuses, 54001 for what is nested too deeply; or those of m, which may be nil. What m has drawn for the tree, the
// caller gives back. Safe for concurrent use.
func Parse(st *Statement, m *Meter) (ast.Statement, error) {
	if st.parse != nil {
		return st.parse()
	}
	return withParser(st, m, (*parser).parse)
}

// ParseStatement parses a text that holds exactly one statement, such as a view's query in the catalog.
func ParseStatement(text string) (ast.Statement, error) {
	return parseOne(text, (*parser).parse)
}

func parseOne(text string, parse func(*parser) (ast.Statement, error)) (ast.Statement, error) {
	lexer := NewLexer()
	lexer.Reset(text)
	st, err := lexer.Next()
	if err == io.EOF {
		return nil, pgerror.New(pgerror.SyntaxError, "syntax error at end of input").At(1)
	}
	if err != nil {
		return nil, err
	}
	node, err := withParser(st, nil, parse)
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
	return withParser(&Statement{Text: text, tail: lexer.position(len(text)) - 1}, nil, (*parser).parseExpr)
}

// withParser runs parse on a pooled parser.
func withParser[T any](st *Statement, m *Meter, parse func(*parser) (T, error)) (T, error) {
	p := parsers.Get().(*parser)
	var node, none T
	var err error
	if e := p.reset(st, m); e != nil {
		err = e
	} else {
		node, err = parse(p)
	}
	p.releaseTokens()
	if len(st.Text) <= keepText && cap(p.toks) <= keepTokens {
		p.text, p.meter = "", nil
		parsers.Put(p)
	}
	if err != nil {
		return none, m.explain(err)
	}
	return node, nil
}

// ParseTree gives the tree of a text that holds exactly one statement, whether percodb supports all of it or not.
func ParseTree(text string) (ast.Statement, error) {
	return parseOne(text, (*parser).parseTree)
}

// parse reads a whole statement that percodb supports.
func (p *parser) parse() (ast.Statement, error) {
	node, err := p.parseTree()
	if err == nil && p.refused != nil {
		return nil, p.refused
	}
	return node, err
}

// parseTree reads a whole statement.
func (p *parser) parseTree() (ast.Statement, error) {
	node := p.statement()
	if p.err == nil && !p.is(tokEOF) {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	return node, nil
}

// parseExpr reads a whole text as one expression.
func (p *parser) parseExpr() (ast.Expr, error) {
	for i := range p.toks {
		p.toks[i].slot = pinned
	}
	x := p.expr()
	if p.err == nil && !p.is(tokEOF) {
		p.unexpected()
	}
	if p.err != nil {
		return nil, p.err
	}
	if p.refused != nil {
		return nil, p.refused
	}
	return x, nil
}

// statement reads a statement.
func (p *parser) statement() ast.Statement {
	if p.is('(') || queryWord(p.toks, p.pos) || isDML(p.cur().kw) {
		return p.embedded()
	}
	return p.utility()
}

func isDML(word kw.Word) bool {
	return word == kw.Insert || word == kw.Update || word == kw.Delete || word == kw.Merge
}

// inner reads the statement inside EXPLAIN, PREPARE and the like.
func (p *parser) inner() ast.Statement {
	if p.err != nil {
		return nil
	}
	return p.statement()
}

// embedded reads a query or a data-modifying statement, with its WITH.
func (p *parser) embedded() ast.Statement {
	var with *ast.With
	if p.isWord(kw.With) {
		with = p.withClause()
	}
	if isDML(p.cur().kw) {
		return p.dml(with)
	}
	q, _ := p.queryBody(with)
	return q
}

// ParseBody parses the statements of a text. Positions of errors are in it.
func ParseBody(text string) ([]ast.Statement, error) {
	lexer := NewLexer()
	lexer.Reset(text)
	var all []ast.Statement
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		stmt, err := Parse(st, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, stmt)
	}
}

// ParseStandardBody parses a body in SQL's standard form: RETURN expression, which is taken as a query, or BEGIN ATOMIC … END.
func ParseStandardBody(text string) ([]ast.Statement, error) {
	stmt, err := ParseStatement("CREATE PROCEDURE body() " + text)
	if err != nil {
		return nil, err
	}
	f, ok := stmt.(*ast.CreateFunction)
	switch {
	case !ok:
		return nil, pgerror.New(pgerror.InternalError, "body %s", text)
	case f.Return != nil:
		return []ast.Statement{returned(f.Return)}, nil
	}
	for i, s := range f.Body {
		if r, ok := s.(*ast.ReturnStatement); ok {
			f.Body[i] = returned(r.Value)
		}
	}
	return f.Body, nil
}

// returned is the query of RETURN.
func returned(e ast.Expr) *ast.Query {
	return &ast.Query{Body: &ast.Select{Columns: []ast.SelectItem{{Expr: e}}}}
}
