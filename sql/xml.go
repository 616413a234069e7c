package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// xml reads a function for XML.
func (p *parser) xml(pos ast.Pos, word kw.Word) ast.Expr {
	p.notYet(pos, "XML", "Store XML as text.")
	p.advance()
	p.expect('(')
	x := &ast.XML{Pos: pos, Function: upper(word)}
	switch word {
	case kw.Xmlconcat:
		x.Args = p.exprList()
	case kw.Xmlelement:
		p.xmlElement(x)
	case kw.Xmlexists:
		x.Args = []ast.Expr{p.primary()}
		x.Args = append(x.Args, p.passing())
	case kw.Xmlforest:
		x.Attributes = p.xmlAttributes()
	case kw.Xmlparse:
		p.xmlOption(x)
		x.Args = []ast.Expr{p.expr()}
		if x.Preserve = p.acceptWords(kw.Preserve, kw.Whitespace); !x.Preserve {
			p.acceptWords(kw.Strip, kw.Whitespace)
		}
	case kw.Xmlpi:
		p.expectWord(kw.Name)
		x.Name = p.colLabel()
		if p.accept(',') {
			x.Args = []ast.Expr{p.expr()}
		}
	case kw.Xmlroot:
		p.xmlRoot(x)
	default:
		p.xmlOption(x)
		x.Args = []ast.Expr{p.expr()}
		p.expectWord(kw.As)
		x.Type = p.typeName()
	}
	p.expect(')')
	return x
}

// xmlElement reads NAME label [, XMLATTRIBUTES (…)] [, content, …].
func (p *parser) xmlElement(x *ast.XML) {
	p.expectWord(kw.Name)
	x.Name = p.colLabel()
	for p.accept(',') {
		if x.Attributes == nil && x.Args == nil && p.isWord(kw.Xmlattributes) {
			p.advance()
			p.expect('(')
			x.Attributes = p.xmlAttributes()
			p.expect(')')
			continue
		}
		x.Args = append(x.Args, p.expr())
	}
}

// xmlAttributes reads expression [AS label], ….
func (p *parser) xmlAttributes() []ast.SelectItem {
	var items []ast.SelectItem
	for first := true; first || p.accept(','); first = false {
		item := ast.SelectItem{Expr: p.expr()}
		if p.acceptWord(kw.As) {
			item.Name, item.Aliased = p.colLabel(), true
		}
		items = append(items, item)
	}
	return items
}

// xmlOption reads DOCUMENT or CONTENT.
func (p *parser) xmlOption(x *ast.XML) {
	if x.Content = p.acceptWord(kw.Content); !x.Content {
		p.expectWord(kw.Document)
	}
}

// xmlRoot reads x, VERSION value|NO VALUE [, STANDALONE YES|NO|NO VALUE].
func (p *parser) xmlRoot(x *ast.XML) {
	x.Args = []ast.Expr{p.expr()}
	p.expect(',')
	p.expectWord(kw.Version)
	if pos := p.here(); p.acceptWords(kw.No, kw.Value) {
		x.Args = append(x.Args, &ast.Null{Pos: pos})
	} else {
		x.Args = append(x.Args, p.expr())
	}
	if !p.accept(',') {
		return
	}
	p.expectWord(kw.Standalone)
	switch {
	case p.acceptWords(kw.No, kw.Value):
		x.Standalone = "NO VALUE"
	case p.acceptWord(kw.No):
		x.Standalone = "NO"
	default:
		p.expectWord(kw.Yes)
		x.Standalone = "YES"
	}
}

// passing reads PASSING [BY REF|VALUE] document [BY REF|VALUE].
func (p *parser) passing() ast.Expr {
	p.expectWord(kw.Passing)
	p.byMechanism()
	x := p.primary()
	p.byMechanism()
	return x
}

func (p *parser) byMechanism() {
	if !p.acceptWords(kw.By, kw.Ref) {
		p.acceptWords(kw.By, kw.Value)
	}
}

// xmlTable reads XMLTABLE (…) [alias].
func (p *parser) xmlTable(pos ast.Pos, lateral bool) *ast.XMLTable {
	p.notYet(pos, "XML", "Store XML as text.")
	p.advance()
	p.expect('(')
	t := &ast.XMLTable{Pos: pos, Lateral: lateral}
	if p.isWord(kw.Xmlnamespaces) {
		p.advance()
		p.expect('(')
		for first := true; first || p.accept(','); first = false {
			item := ast.SelectItem{}
			if p.acceptWord(kw.Default) {
				item.Expr = p.operators(precIs, true)
			} else {
				item.Expr = p.operators(precIs, true)
				p.expectWord(kw.As)
				item.Name, item.Aliased = p.colLabel(), true
			}
			t.Namespaces = append(t.Namespaces, item)
		}
		p.expect(')')
		p.expect(',')
	}
	t.Row = p.primary()
	t.Document = p.passing()
	p.expectWord(kw.Columns)
	for first := true; first || p.accept(','); first = false {
		t.Columns = append(t.Columns, p.xmlColumn())
	}
	p.expect(')')
	t.Alias, t.Names = p.alias()
	return t
}

// xmlColumn reads a column of XMLTABLE.
func (p *parser) xmlColumn() ast.XMLColumn {
	c := ast.XMLColumn{Name: p.colID()}
	if p.acceptWords(kw.For, kw.Ordinality) {
		return c
	}
	typ := p.typeName()
	c.Type = &typ
	for p.err == nil {
		switch {
		case p.acceptWord(kw.Default):
			c.Default = p.operators(precIs, true)
		case p.acceptWords(kw.Not, kw.Null):
			c.NotNull = true
		case p.acceptWord(kw.Null):
		case p.is(tokIdent) && kw.Fold(p.text[p.cur().start:p.cur().end]) == "path":
			p.advance()
			c.Path = p.operators(precIs, true)
		default:
			return c
		}
	}
	return c
}
