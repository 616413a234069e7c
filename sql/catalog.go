package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// createOperator reads CREATE OPERATOR [CLASS|FAMILY].
func (p *parser) createOperator(pos ast.Pos, orReplace bool) ast.Statement {
	switch {
	case p.acceptWords(kw.Operator, kw.Class):
		return p.operatorClass(pos)
	case p.acceptWords(kw.Operator, kw.Family):
		st := &ast.OperatorFamily{Pos: pos, Name: p.path()}
		p.expectWord(kw.Using)
		st.Method = p.colID()
		return st
	}
	return p.define(pos, orReplace)
}

func (p *parser) operatorClass(pos ast.Pos) ast.Statement {
	st := &ast.OperatorClass{Pos: pos, Name: p.path()}
	st.Default = p.acceptWord(kw.Default)
	p.expectWords(kw.For, kw.Type)
	st.Type = p.typeName()
	p.expectWord(kw.Using)
	st.Method = p.colID()
	if p.acceptWord(kw.Family) {
		st.Family = p.path()
	}
	p.expectWord(kw.As)
	st.Items = p.operatorItems(false)
	return st
}

// operatorItems reads the items of an operator class or family; those that are dropped have types alone.
func (p *parser) operatorItems(drop bool) []ast.OperatorItem {
	var list []ast.OperatorItem
	for first := true; first || p.accept(','); first = false {
		o := ast.OperatorItem{Pos: p.here(), Kind: upper(p.cur().kw)}
		switch {
		case !drop && p.acceptWord(kw.Storage):
			o.Storage = p.typePointer()
			list = append(list, o)
			continue
		case p.acceptWord(kw.Operator), p.acceptWord(kw.Function):
			o.Number = p.iconst()
		default:
			p.unexpected()
		}
		switch {
		case drop:
			o.Types = p.typeList()
		case o.Kind == "OPERATOR":
			p.operatorItem(&o)
		default:
			if p.is('(') {
				o.Types = p.typeList()
			}
			f := p.object("FUNCTION", routineName)
			o.Function = &f
		}
		list = append(list, o)
	}
	return list
}

func (p *parser) operatorItem(o *ast.OperatorItem) {
	o.Operator = p.operatorPath()
	if p.is('(') {
		o.Operands = p.operandTypes()
	}
	switch {
	case p.acceptWords(kw.For, kw.Search):
		o.Search = true
	case p.acceptWords(kw.For, kw.Order, kw.By):
		o.Order = p.path()
	}
	p.acceptWord(kw.Recheck)
}

// iconst reads an integer without a sign.
func (p *parser) iconst() string {
	if t := p.cur(); t.kind != tokLiteral || t.lit != ast.LiteralInt4 {
		p.unexpected()
		return ""
	}
	return p.signedNumber()
}

func (p *parser) typeList() []ast.TypeName {
	p.expect('(')
	list := []ast.TypeName{p.typeName()}
	for p.accept(',') {
		list = append(list, p.typeName())
	}
	p.expect(')')
	return list
}

// alterOperator reads ALTER OPERATOR [CLASS|FAMILY].
func (p *parser) alterOperator(pos ast.Pos) ast.Statement {
	kind, form := p.objectKind()
	o := p.object(kind, form)
	if kind == "OPERATOR" {
		return p.alterObject(pos, o, "osd")
	}
	if kind == "OPERATOR FAMILY" && (p.isWord(kw.Add) || p.isWord(kw.Drop)) {
		st := &ast.OperatorFamily{Pos: pos, Name: o.Name, Method: o.Using, Action: upper(p.cur().kw)}
		p.advance()
		st.Items = p.operatorItems(st.Action == "DROP")
		return st
	}
	return p.alterObject(pos, o, "ros")
}

// createCast reads CREATE CAST.
func (p *parser) createCast(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Cast)
	p.expect('(')
	st := &ast.CreateCast{Pos: pos, From: p.typeName()}
	p.expectWord(kw.As)
	st.To = p.typeName()
	p.expect(')')
	switch {
	case p.acceptWords(kw.Without, kw.Function):
	case p.acceptWords(kw.With, kw.Inout):
		st.InOut = true
	default:
		st.Function = p.withFunction()
	}
	switch {
	case p.acceptWords(kw.As, kw.Implicit):
		st.Context = "IMPLICIT"
	case p.acceptWords(kw.As, kw.Assignment):
		st.Context = "ASSIGNMENT"
	}
	return st
}

func (p *parser) withFunction() *ast.Object {
	p.expectWords(kw.With, kw.Function)
	f := p.object("FUNCTION", routineName)
	return &f
}

// createTransform reads CREATE [OR REPLACE] TRANSFORM.
func (p *parser) createTransform(pos ast.Pos, orReplace bool) ast.Statement {
	p.expectWords(kw.Transform, kw.For)
	st := &ast.CreateTransform{Pos: pos, OrReplace: orReplace, Type: p.typeName()}
	p.expectWord(kw.Language)
	st.Language = p.colID()
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		switch {
		case st.From == nil && p.acceptWords(kw.From, kw.Sql):
			st.From = p.withFunction()
		case st.To == nil && p.acceptWords(kw.To, kw.Sql):
			st.To = p.withFunction()
		default:
			p.unexpected()
		}
	}
	p.expect(')')
	return st
}

// createConversion reads CREATE [DEFAULT] CONVERSION.
func (p *parser) createConversion(pos ast.Pos) ast.Statement {
	st := &ast.CreateConversion{Pos: pos, Default: p.acceptWord(kw.Default)}
	p.expectWord(kw.Conversion)
	st.Name = p.path()
	p.expectWord(kw.For)
	st.For = p.stringLit()
	p.expectWord(kw.To)
	st.To = p.stringLit()
	p.expectWord(kw.From)
	st.Function = p.path()
	return st
}

// createLanguage reads CREATE [OR REPLACE] [TRUSTED] [PROCEDURAL] LANGUAGE.
func (p *parser) createLanguage(pos ast.Pos, orReplace bool) ast.Statement {
	st := &ast.CreateLanguage{Pos: pos, OrReplace: orReplace, Trusted: p.acceptWord(kw.Trusted)}
	p.acceptWord(kw.Procedural)
	p.expectWord(kw.Language)
	st.Name = p.colID()
	if !p.acceptWord(kw.Handler) {
		return st
	}
	st.Handler = p.path()
	if p.acceptWord(kw.Inline) {
		st.Inline = p.path()
	}
	if p.acceptWord(kw.Validator) {
		st.Validator = p.path()
	} else {
		st.NoValidator = p.acceptWords(kw.No, kw.Validator)
	}
	return st
}

// createAccessMethod reads CREATE ACCESS METHOD.
func (p *parser) createAccessMethod(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Access, kw.Method)
	st := &ast.CreateAccessMethod{Pos: pos, Name: p.colID()}
	p.expectWord(kw.Type)
	if st.Type = upper(p.cur().kw); !p.acceptWord(kw.Index) {
		p.expectWord(kw.Table)
	}
	p.expectWord(kw.Handler)
	st.Handler = p.path()
	return st
}

// createStatistics reads CREATE STATISTICS.
func (p *parser) createStatistics(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Statistics)
	st := &ast.CreateStatistics{Pos: pos, IfNotExists: p.ifNotExists()}
	st.Name = p.path()
	if p.is('(') {
		st.Kinds = p.columnList()
	}
	p.expectWord(kw.On)
	for first := true; first || p.accept(','); first = false {
		item := ast.IndexColumn{Pos: p.here()}
		parens := p.is('(')
		x, isName := p.indexExpr()
		if ref, ok := x.(*ast.ColumnRef); isName && ok {
			item.Name = ref.Parts[0]
		} else {
			item.Expr, item.Call = x, !parens
		}
		st.Items = append(st.Items, item)
	}
	p.expectWord(kw.From)
	st.From = p.fromList()
	return st
}

// alterStatistics reads ALTER STATISTICS.
func (p *parser) alterStatistics(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Statistics)
	ifExists := p.ifExists()
	o := p.object("STATISTICS", pathName)
	if p.acceptWords(kw.Set, kw.Statistics) {
		return &ast.AlterStatistics{Pos: pos, IfExists: ifExists, Name: o.Name, Target: p.signedNumber()}
	}
	if ifExists {
		p.unexpected()
		return nil
	}
	return p.alterObject(pos, o, "ros")
}

// alterTextSearch reads ALTER TEXT SEARCH ….
func (p *parser) alterTextSearch(pos ast.Pos) ast.Statement {
	kind, form := p.objectKind()
	o := p.object(kind, form)
	if kind == "TEXT SEARCH DICTIONARY" && p.is('(') {
		return &ast.AlterTextSearch{Pos: pos, Name: o.Name, Items: p.definitions()}
	}
	st := &ast.AlterTextSearch{Pos: pos, Name: o.Name, Action: upper(p.cur().kw)}
	if kind != "TEXT SEARCH CONFIGURATION" || !p.acceptWords(kw.Add, kw.Mapping) && !p.acceptWords(kw.Alter, kw.Mapping) && !p.acceptWords(kw.Drop, kw.Mapping) {
		return p.alterObject(pos, o, "ros")
	}
	st.IfExists = st.Action == "DROP" && p.ifExists()
	if st.Action == "ALTER" && !p.isWord(kw.For) {
		p.textSearchReplace(st)
		return st
	}
	p.expectWord(kw.For)
	st.Tokens = p.names()
	switch {
	case st.Action == "DROP":
	case st.Action == "ALTER" && p.isWord(kw.Replace):
		p.textSearchReplace(st)
	default:
		p.expectWord(kw.With)
		st.Dictionaries = p.paths()
	}
	return st
}

// textSearchReplace reads REPLACE dictionary WITH dictionary.
func (p *parser) textSearchReplace(st *ast.AlterTextSearch) {
	p.expectWord(kw.Replace)
	st.Replace = p.path()
	p.expectWord(kw.With)
	st.Dictionaries = [][]string{p.path()}
}

func (p *parser) paths() [][]string {
	list := [][]string{p.path()}
	for p.accept(',') {
		list = append(list, p.path())
	}
	return list
}
