package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// createExtension reads CREATE EXTENSION.
func (p *parser) createExtension(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Extension)
	st := &ast.CreateExtension{Pos: pos, IfNotExists: p.ifNotExists()}
	st.Name = p.colID()
	p.acceptWord(kw.With)
	for p.err == nil {
		o := ast.ExtensionOption{Pos: p.here(), Kind: upper(p.cur().kw)}
		switch {
		case p.acceptWord(kw.Schema):
			o.Value = p.colID()
		case p.acceptWord(kw.Version):
			o.Value = p.roleName()
		case p.acceptWord(kw.Cascade):
		default:
			return st
		}
		st.Options = append(st.Options, o)
	}
	return st
}

// alterExtension reads ALTER EXTENSION.
func (p *parser) alterExtension(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Extension)
	o := p.object("EXTENSION", plainWord)
	if c := p.objectChange("s"); c != nil {
		return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
	}
	if p.err != nil {
		return nil
	}
	st := &ast.AlterExtension{Pos: pos, Name: o.Name[0], Action: upper(p.cur().kw)}
	if p.acceptWord(kw.Update) {
		if p.acceptWord(kw.To) {
			version := p.roleName()
			st.Version = &version
		}
		return st
	}
	if !p.acceptWord(kw.Add) {
		p.expectWord(kw.Drop)
	}
	object := p.commented()
	st.Object = &object
	return st
}

// foreignOptions reads OPTIONS (…) if it is there.
func (p *parser) foreignOptions(alter bool) []ast.ForeignOption {
	if !p.acceptWord(kw.Options) {
		return nil
	}
	var list []ast.ForeignOption
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		o := ast.ForeignOption{Pos: p.here()}
		if word := p.cur().kw; alter && !isString(p.peek(1)) && (word == kw.Add || word == kw.Set || word == kw.Drop) {
			o.Action = upper(word)
			p.advance()
		}
		o.Name = p.colLabel()
		if o.Action != "DROP" {
			o.Value = p.stringLit()
		}
		list = append(list, o)
	}
	p.expect(')')
	return list
}

// dataWrapper reads CREATE or ALTER FOREIGN DATA WRAPPER.
func (p *parser) dataWrapper(pos ast.Pos, alter bool) ast.Statement {
	p.expectWords(kw.Foreign, kw.Data, kw.Wrapper)
	o := p.object("FOREIGN DATA WRAPPER", plainWord)
	if alter {
		if c := p.objectChange("ro"); c != nil {
			return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
		}
	}
	if p.err != nil {
		return nil
	}
	st := &ast.DataWrapper{Pos: pos, Alter: alter, Name: o.Name[0]}
	start := p.pos
	for p.err == nil {
		h := ast.HandlerOption{Pos: p.here()}
		switch {
		case p.acceptWord(kw.Handler):
			h.Kind, h.Name = "HANDLER", p.path()
		case p.acceptWord(kw.Validator):
			h.Kind, h.Name = "VALIDATOR", p.path()
		case p.acceptWords(kw.No, kw.Handler):
			h.Kind = "NO HANDLER"
		case p.acceptWords(kw.No, kw.Validator):
			h.Kind = "NO VALIDATOR"
		}
		if h.Kind == "" {
			break
		}
		st.Handlers = append(st.Handlers, h)
	}
	st.Options = p.foreignOptions(alter)
	if alter && p.pos == start {
		p.unexpected()
	}
	return st
}

// server reads CREATE or ALTER SERVER.
func (p *parser) server(pos ast.Pos, alter bool) ast.Statement {
	p.expectWord(kw.Server)
	st := &ast.Server{Pos: pos, Alter: alter, IfNotExists: !alter && p.ifNotExists()}
	o := p.object("SERVER", plainWord)
	if alter {
		if c := p.objectChange("ro"); c != nil {
			return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
		}
	}
	if p.err != nil {
		return nil
	}
	st.Name = o.Name[0]
	if !alter && p.acceptWord(kw.Type) {
		text := p.stringLit()
		st.Type = &text
	}
	start := p.pos
	if p.acceptWord(kw.Version) {
		st.Version = p.textOrNull()
		st.NoVersion = st.Version == nil
	}
	if !alter {
		p.expectWords(kw.Foreign, kw.Data, kw.Wrapper)
		st.Wrapper = p.colID()
	}
	st.Options = p.foreignOptions(alter)
	if alter && p.pos == start {
		p.unexpected()
	}
	return st
}

// userMapping reads CREATE or ALTER USER MAPPING.
func (p *parser) userMapping(pos ast.Pos, alter bool) ast.Statement {
	p.expectWords(kw.User, kw.Mapping)
	st := &ast.UserMapping{Pos: pos, Alter: alter, IfNotExists: !alter && p.ifNotExists()}
	p.expectWord(kw.For)
	st.Role = p.mappedRole()
	p.expectWord(kw.Server)
	st.Server = p.colID()
	st.Options = p.foreignOptions(alter)
	if alter && st.Options == nil {
		p.unexpected()
	}
	return st
}

// createForeignTable reads CREATE FOREIGN TABLE.
func (p *parser) createForeignTable(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Foreign, kw.Table)
	c := &ast.CreateTable{Pos: pos, IfNotExists: p.ifNotExists(), Elements: true}
	c.Name = p.tableName()
	p.relation = c.Name.Name
	if p.isWord(kw.Partition) {
		p.partitionOf(c)
	} else {
		p.tableElements(c)
		if p.acceptWord(kw.Inherits) {
			p.expect('(')
			c.Inherits = p.tableNames()
			p.expect(')')
		}
	}
	st := &ast.CreateForeignTable{Pos: pos, Table: c}
	p.expectWord(kw.Server)
	st.Server = p.colID()
	st.Options = p.foreignOptions(false)
	return st
}

// importSchema reads IMPORT FOREIGN SCHEMA.
func (p *parser) importSchema(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Foreign, kw.Schema)
	st := &ast.ImportForeignSchema{Pos: pos, Schema: p.colID()}
	switch {
	case p.acceptWords(kw.Limit, kw.To):
		st.Filter = "LIMIT TO"
	case p.acceptWord(kw.Except):
		st.Filter = "EXCEPT"
	}
	if st.Filter != "" {
		p.expect('(')
		for first := true; first || p.accept(','); first = false {
			st.Tables = append(st.Tables, p.tableName())
		}
		p.expect(')')
	}
	p.expectWords(kw.From, kw.Server)
	st.Server = p.colID()
	p.expectWord(kw.Into)
	st.Into = p.colID()
	st.Options = p.foreignOptions(false)
	return st
}

// createPublication reads CREATE PUBLICATION.
func (p *parser) createPublication(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Publication)
	st := &ast.Publication{Pos: pos, Name: p.colID()}
	if p.acceptWord(kw.For) {
		if st.AllTables = p.acceptWords(kw.All, kw.Tables); !st.AllTables {
			st.Objects = p.publicationObjects()
		}
	}
	st.Options = p.withDefinitions()
	return st
}

func (p *parser) withDefinitions() []ast.DefItem {
	if !p.acceptWord(kw.With) {
		return nil
	}
	return p.definitions()
}

// alterPublication reads ALTER PUBLICATION.
func (p *parser) alterPublication(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Publication)
	o := p.object("PUBLICATION", plainWord)
	if c := p.objectChange("ro"); c != nil || p.err != nil {
		if p.err != nil {
			return nil
		}
		return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
	}
	st := &ast.Publication{Pos: pos, Name: o.Name[0], Action: upper(p.cur().kw)}
	switch {
	case p.acceptWord(kw.Set):
		if p.is('(') {
			st.Options = p.definitions()
			return st
		}
	case p.acceptWord(kw.Add), p.acceptWord(kw.Drop):
	default:
		p.unexpected()
	}
	st.Objects = p.publicationObjects()
	return st
}

// publicationObjects reads the tables and schemas of a publication.
func (p *parser) publicationObjects() []ast.PublicationObject {
	var list []ast.PublicationObject
	schemas := false
	for first := true; first || p.accept(','); first = false {
		o := ast.PublicationObject{Pos: p.here()}
		switch {
		case p.acceptWords(kw.Tables, kw.In, kw.Schema):
			schemas = true
		case p.acceptWord(kw.Table):
			schemas = false
		case first:
			p.unexpected()
		}
		switch {
		case !schemas:
			r := p.relationName()
			o.Table = &r
			if p.is('(') {
				o.Columns = p.columnList()
			}
			if p.acceptWord(kw.Where) {
				p.expect('(')
				o.Where = p.expr()
				p.expect(')')
			}
		case p.acceptWord(kw.CurrentSchema):
			o.Current = true
		default:
			o.Schema = p.colID()
		}
		list = append(list, o)
	}
	return list
}

// relationName reads [ONLY] table [*].
func (p *parser) relationName() ast.Relation {
	r := ast.Relation{Only: p.acceptWord(kw.Only)}
	parens := r.Only && p.accept('(')
	r.TableName = p.tableName()
	if parens {
		p.expect(')')
	}
	if !r.Only {
		p.acceptOp('*')
	}
	return r
}

func (p *parser) relationNames() []ast.Relation {
	list := []ast.Relation{p.relationName()}
	for p.accept(',') {
		list = append(list, p.relationName())
	}
	return list
}

// createSubscription reads CREATE SUBSCRIPTION.
func (p *parser) createSubscription(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Subscription)
	st := &ast.CreateSubscription{Pos: pos, Name: p.colID()}
	p.expectWord(kw.Connection)
	st.Connection = p.stringLit()
	p.expectWord(kw.Publication)
	st.Publications = p.names()
	st.Options = p.withDefinitions()
	return st
}

// alterSubscription reads ALTER SUBSCRIPTION.
func (p *parser) alterSubscription(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Subscription)
	o := p.object("SUBSCRIPTION", plainWord)
	if c := p.objectChange("ro"); c != nil || p.err != nil {
		if p.err != nil {
			return nil
		}
		return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
	}
	st := &ast.AlterSubscription{Pos: pos, Name: o.Name[0]}
	switch {
	case p.isWord(kw.Set) && p.peek(1).kind == '(':
		p.advance()
		st.Action, st.Options = "SET", p.definitions()
	case p.acceptWord(kw.Skip):
		st.Action, st.Options = "SKIP", p.definitions()
	case p.acceptWord(kw.Connection):
		st.Action, st.Connection = "CONNECTION", p.stringLit()
	case p.acceptWords(kw.Refresh, kw.Publication):
		st.Action, st.Options = "REFRESH PUBLICATION", p.withDefinitions()
	case p.isWord(kw.Add), p.isWord(kw.Drop), p.isWord(kw.Set):
		st.Action = upper(p.cur().kw) + " PUBLICATION"
		p.advance()
		p.expectWord(kw.Publication)
		st.Publications = p.names()
		st.Options = p.withDefinitions()
	case p.acceptWord(kw.Enable):
		st.Action = "ENABLE"
	case p.acceptWord(kw.Disable):
		st.Action = "DISABLE"
	default:
		p.unexpected()
	}
	return st
}
