package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// asOfAhead reports whether AS OF SYSTEM TIME follows, which PostgreSQL does not have: there OF would be
// an alias, and SYSTEM behind it an error.
func (p *parser) asOfAhead() bool {
	return p.isWord(kw.As) && p.peek(1).kw == kw.Of && p.peek(2).kw == kw.System && p.peek(3).kw == kw.Time
}

// asOfTime reads AS OF SYSTEM TIME expression.
func (p *parser) asOfTime() ast.Expr {
	p.pos += 4
	pos, queries := p.here(), p.queries
	x := p.expr()
	if p.queries > queries {
		p.unsupported(pos, "A subquery in AS OF SYSTEM TIME", "Give a timestamp, or an interval such as '-10s'.")
	}
	return x
}

// alterSystem reads ALTER SYSTEM SET name TO value, and RESET.
func (p *parser) alterSystem(pos ast.Pos) ast.Statement {
	p.advance()
	st := &ast.AlterSystem{Pos: pos}
	if p.acceptWord(kw.Reset) {
		st.Default = true
		if p.acceptWord(kw.All) {
			st.Name = "all"
			return st
		}
		st.Name = p.settingName()
		return st
	}
	p.expectWord(kw.Set)
	set := &ast.Set{Pos: pos, Name: p.settingName()}
	if !p.acceptWord(kw.To) {
		p.expectAssign()
	}
	p.setValue(set)
	st.Name, st.Values, st.Default = set.Name, set.Values, set.Default
	return st
}
