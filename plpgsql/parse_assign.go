package plpgsql

import (
	"strings"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// variable finds the variable that a name at the current token begins with, and returns how many parts of the name, and how many tokens
// the name has; used is 0 if there is no variable, tokens if there is no name.
func (p *parser) variable() (v int, parts []string, used, tokens int) {
	at := p.pos
	if t := p.cur(); t.Kind != sql.TokenParam && !isName(t) {
		return -1, nil, 0, 0
	}
	parts = p.dotted()
	tokens = p.pos - at
	p.pos = at
	v, used = p.names.lookup(parts, p.isRecord)
	return v, parts, used, tokens
}

// assignment reads target := value; nil: the statement is none.
func (p *parser) assignment() stmt {
	v, parts, used, tokens := p.variable()
	after := p.peek(tokens)
	sign := isSymbol(after, ":=") || isSymbol(after, "=") || isSymbol(after, "[") || isSymbol(after, ".")
	switch {
	case !sign && (len(parts) == 1 || used == 0):
		return nil
	case used == 0 && isSymbol(after, "[") && len(parts) == 1 && (parts[0] == "case" || parts[0] == "if"):
		return nil
	case used == 0:
		p.unknownVariable(parts)
	}
	s := &assignStmt{place: p.here()}
	start := p.cur().Start
	if p.f.vars[v].constant {
		p.failAt(start, "22005", "variable \"%s\" is declared CONSTANT", p.f.vars[v].name)
	}
	p.pos += 2*used - 1
	path := p.pos
	p.findSign()
	text := p.toks[path].Start // where the path begins
	signEnd := p.cur().End
	noPath := p.pos == path
	p.advance()
	value := p.cur().Start
	end := p.endOfStatement()
	e := &expression{text: trimRight(p.text[start:end]), kind: assignExpr, target: &target{variable: v, offset: start}}
	switch {
	case value == end:
		e.names, e.id = p.names, p.f.exprs
		p.f.exprs++
		e.refused = pgerror.New(pgerror.SyntaxError, "assignment source returned 0 columns")
	case noPath:
		p.parseQuery(e, "SELECT ", trimRight(p.text[value:end]), value)
		e.shift += len([]rune(p.text[start:value]))
	default:
		query := p.text[text:signEnd]
		if strings.HasSuffix(query, ":=") {
			query = strings.TrimSuffix(query, ":=") + " ="
		}
		p.parseQuery(e, "UPDATE t SET v", query+trimRight(p.text[signEnd:end]), text)
		e.shift += len([]rune(p.text[start:text]))
		p.takePath(e)
	}
	s.value = e
	return s
}

// findSign goes on to the sign of an assignment.
func (p *parser) findSign() {
	for level := 0; ; p.advance() {
		switch t := p.cur(); {
		case isSymbol(t, "["), isSymbol(t, "("):
			level++
		case isSymbol(t, "]"), isSymbol(t, ")"):
			level--
		case t.Kind == sql.TokenEnd, isSymbol(t, ";"):
			p.syntaxError()
		case level == 0 && (isSymbol(t, ":=") || isSymbol(t, "=")):
			return
		case level == 0 && !isSymbol(t, ".") && t.Kind != sql.TokenName && t.Kind != sql.TokenQuoted:
			p.syntaxError()
		}
	}
}

// endOfStatement goes on behind the next semicolon, and returns its place.
func (p *parser) endOfStatement() int {
	for level := 0; ; p.advance() {
		switch t := p.cur(); {
		case isSymbol(t, "["), isSymbol(t, "("):
			level++
		case isSymbol(t, "]"), isSymbol(t, ")"):
			if level--; level < 0 {
				p.unexpected("mismatched parentheses")
			}
		case t.Kind == sql.TokenEnd, isSymbol(t, ";"):
			if level > 0 {
				p.unexpected("mismatched parentheses")
			}
			if t.Kind == sql.TokenEnd {
				p.syntaxError()
			}
			p.advance()
			return t.Start
		}
	}
}

func trimRight(s string) string { return strings.TrimRight(s, " \t\n\r\f\v") }

// takePath takes the target of an assignment, which was parsed as one to a column.
func (p *parser) takePath(e *expression) {
	u, ok := e.query.(*ast.Update)
	if !ok || len(u.Set) != 1 || len(u.Set[0].Columns) != 1 || u.Set[0].List || len(u.Set[0].Parts) != 1 {
		if e.refused == nil {
			p.syntaxError()
		}
		return
	}
	set := &u.Set[0]
	path := set.Parts[0]
	if p.isRecord(e.target.variable) && len(path) > 0 && path[0].Subscript == nil {
		e.target.field, path = path[0].Field, path[1:]
	}
	e.target.path = path
	e.query = &ast.Query{Body: &ast.Select{Columns: []ast.SelectItem{{Expr: set.Value, Name: "value"}}}}
}

func (p *parser) unknownVariable(parts []string) {
	p.failAt(p.cur().Start, pgerror.SyntaxError, "\"%s\" is not a known variable", strings.Join(parts, "."))
}
