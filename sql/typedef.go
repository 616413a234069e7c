package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// createType reads CREATE TYPE.
func (p *parser) createType(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Type)
	t := &ast.CreateType{Pos: pos, Name: p.path()}
	switch {
	case p.is('('):
		p.notYet(pos, "CREATE TYPE of a base type", "Use a built-in type with a CHECK constraint.")
		return &ast.Define{Pos: pos, Kind: "TYPE", Name: t.Name, Items: p.definitions()}
	case !p.acceptWord(kw.As):
		p.notYet(pos, "CREATE TYPE of a shell type", "")
	case p.acceptWord(kw.Enum):
		t.Kind = "ENUM"
		p.expect('(')
		if !p.is(')') {
			t.Labels = p.stringsUntilEnd()
		}
		p.expect(')')
	case p.acceptWord(kw.Range):
		t.Kind = "RANGE"
		t.Items = p.definitions()
	default:
		t.Kind = "COMPOSITE"
		if p.is('(') && p.peek(1).kind == ')' {
			p.advance()
			p.advance()
			break
		}
		t.Attributes = p.columnTypes()
	}
	return t
}

// createDomain reads CREATE DOMAIN.
func (p *parser) createDomain(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Domain)
	d := &ast.CreateDomain{Pos: pos, Name: p.path()}
	p.acceptWord(kw.As)
	d.Column.Pos = p.here()
	d.Column.Type = p.typeName()
	for p.columnConstraint(&d.Column) {
	}
	return d
}

// alterType reads ALTER TYPE.
func (p *parser) alterType(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Type)
	namePos := p.here()
	name := p.path()
	if c := p.objectChange("rosd"); c != nil {
		typ := ast.TypeName{Pos: namePos, Name: name}
		return &ast.AlterObject{Pos: pos, Object: ast.Object{Pos: namePos, Kind: "TYPE", Types: []*ast.TypeName{&typ}}, Change: *c}
	}
	switch {
	case p.acceptWords(kw.Rename, kw.Attribute):
		r := &ast.RenameAttribute{Pos: pos, Name: name, From: p.colID()}
		p.expectWord(kw.To)
		r.To = p.colID()
		r.Cascade = p.cascade()
		return r
	case p.acceptWords(kw.Rename, kw.Value):
		old := p.stringLit()
		p.expectWord(kw.To)
		return &ast.AlterEnum{Pos: pos, Name: name, Old: &old, Value: p.stringLit()}
	case p.acceptWords(kw.Add, kw.Value):
		return p.addEnumValue(&ast.AlterEnum{Pos: pos, Name: name})
	}
	a := &ast.AlterType{Pos: pos, Name: name}
	for first := true; first || p.accept(','); first = false {
		a.Changes = append(a.Changes, p.attributeChange())
	}
	return a
}

func (p *parser) addEnumValue(a *ast.AlterEnum) ast.Statement {
	a.IfNotExists = p.ifNotExists()
	a.Value = p.stringLit()
	if p.isWord(kw.Before) || p.isWord(kw.After) {
		a.Place = upper(p.cur().kw)
		p.advance()
		a.Neighbour = p.stringLit()
	}
	return a
}

func (p *parser) attributeChange() ast.AttributeChange {
	c := ast.AttributeChange{Pos: p.here(), Action: upper(p.cur().kw)}
	switch {
	case p.acceptWords(kw.Add, kw.Attribute):
		c.Attribute.Name = p.colID()
		c.Attribute.Type = p.typeName()
	case p.acceptWords(kw.Drop, kw.Attribute):
		c.IfExists = p.ifExists()
		c.Attribute.Name = p.colID()
	case p.acceptWords(kw.Alter, kw.Attribute):
		c.Attribute.Name = p.colID()
		p.acceptWords(kw.Set, kw.Data)
		p.expectWord(kw.Type)
		c.Attribute.Type = p.typeName()
	default:
		p.unexpected()
	}
	if c.Action != "DROP" && p.acceptWord(kw.Collate) {
		c.Attribute.Collation = p.path()
	}
	c.Cascade = p.cascade()
	return c
}

// alterDomain reads ALTER DOMAIN.
func (p *parser) alterDomain(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Domain)
	namePos := p.here()
	name := p.path()
	if c := p.objectChange("ros"); c != nil {
		typ := ast.TypeName{Pos: namePos, Name: name}
		return &ast.AlterObject{Pos: pos, Object: ast.Object{Pos: namePos, Kind: "DOMAIN", Types: []*ast.TypeName{&typ}}, Change: *c}
	}
	a := &ast.AlterDomain{Pos: pos, Name: name}
	switch {
	case p.acceptWords(kw.Set, kw.Default):
		a.Action, a.Default = "SET DEFAULT", p.expr()
	case p.acceptWords(kw.Drop, kw.Default):
		a.Action = "DROP DEFAULT"
	case p.acceptWords(kw.Set, kw.Not, kw.Null):
		a.Action = "SET NOT NULL"
	case p.acceptWords(kw.Drop, kw.Not, kw.Null):
		a.Action = "DROP NOT NULL"
	case p.acceptWord(kw.Add):
		k := p.tableConstraint()
		a.Action, a.Constraint = "ADD", &k
	case p.acceptWords(kw.Drop, kw.Constraint):
		a.Action, a.IfExists = "DROP CONSTRAINT", p.ifExists()
		a.Old = p.colID()
		a.Cascade = p.cascade()
	case p.acceptWords(kw.Validate, kw.Constraint):
		a.Action, a.Old = "VALIDATE CONSTRAINT", p.colID()
	case p.acceptWords(kw.Rename, kw.Constraint):
		a.Action, a.Old = "RENAME CONSTRAINT", p.colID()
		p.expectWord(kw.To)
		a.New = p.colID()
	default:
		p.unexpected()
	}
	return a
}

// define reads CREATE of the objects that a list of definitions makes.
func (p *parser) define(pos ast.Pos, orReplace bool) ast.Statement {
	kind, _ := p.objectKind()
	d := &ast.Define{Pos: pos, Kind: kind, OrReplace: orReplace}
	switch kind {
	case "AGGREGATE":
		d.Name = p.functionName()
		if !p.is('(') || p.peek(1).kind != tokIdent && p.peek(1).kind != tokQuoted || p.peek(2).kind != tokOp || p.peek(2).sub != '=' {
			d.Signature = p.aggregateSignature()
			break
		}
		d.Items = p.oldAggregate()
		return d
	case "OPERATOR":
		d.Name = p.operatorPath()
	case "COLLATION":
		d.IfNotExists = p.ifNotExists()
		d.Name = p.path()
		if p.acceptWord(kw.From) {
			d.From = p.path()
			return d
		}
	default:
		d.Name = p.path()
	}
	d.Items = p.definitions()
	return d
}

// oldAggregate reads the definitions of an aggregate in the form without a signature: all have values, and no name is a
// keyword.
func (p *parser) oldAggregate() []ast.DefItem {
	p.expect('(')
	var items []ast.DefItem
	for first := true; first || p.accept(','); first = false {
		item := ast.DefItem{Pos: p.here()}
		if t := p.cur(); t.kind == tokIdent && t.kw != kw.None {
			p.unexpected()
		}
		item.Name = p.colLabel()
		if !p.acceptOp('=') {
			p.unexpected()
			break
		}
		item.Value = p.defValue()
		items = append(items, item)
	}
	p.expect(')')
	return items
}
