package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// foreignStatement reads a statement that percodb does not support, by its first word; anything else is a syntax error.
func (p *parser) foreignStatement(word kw.Word, pos ast.Pos) ast.Statement {
	lacks := func(hint string) { p.notYet(pos, upper(word), hint) }
	switch word {
	case kw.Grant, kw.Revoke:
		return p.grant(pos, word == kw.Revoke)
	case kw.Reassign:
		return p.reassign(pos)
	case kw.Do:
		return p.do(pos)
	case kw.Call:
		return p.callProcedure(pos)
	case kw.Reindex:
		return p.reindex(pos)
	case kw.Cluster:
		return p.cluster(pos)
	case kw.Checkpoint:
		return &ast.Checkpoint{Pos: pos}
	case kw.Refresh:
		return p.refresh(pos)
	case kw.Load:
		return &ast.Load{Pos: pos, File: p.stringLit()}
	case kw.Security:
		return p.securityLabel(pos)
	case kw.Import:
		lacks("")
		return p.importSchema(pos)
	}
	p.pos--
	p.unexpected()
	return nil
}

// notification reads LISTEN, UNLISTEN, NOTIFY and NOTIFY OBSERVER behind the first word.
func (p *parser) notification(word kw.Word, pos ast.Pos) ast.Statement {
	switch {
	case word == kw.Listen:
		return &ast.Listen{Pos: pos, Channel: p.colID()}
	case word == kw.Notify:
		if st := p.notifyObserver(pos); st != nil {
			return st
		}
		return p.notify(pos)
	case p.acceptOp('*'):
		return &ast.Unlisten{Pos: pos}
	}
	return &ast.Unlisten{Pos: pos, Channel: p.colID()}
}

// notify reads NOTIFY behind its word.
func (p *parser) notify(pos ast.Pos) ast.Statement {
	st := &ast.Notify{Pos: pos, Channel: p.colID()}
	if p.accept(',') {
		text := p.stringLit()
		st.Payload = &text
	}
	return st
}

// utilityOptions reads (option [value], …) as written.
func (p *parser) utilityOptions() []ast.StorageOption {
	p.expect('(')
	var list []ast.StorageOption
	for first := true; first || p.accept(','); first = false {
		list = append(list, p.writtenOption())
	}
	p.expect(')')
	return list
}

// writtenOption reads an option with its value as written.
func (p *parser) writtenOption() ast.StorageOption {
	var o ast.StorageOption
	start := p.pos
	o.Name, o.Value = p.utilityOption()
	if p.err == nil && p.pos > start+1 {
		o.Written = p.textSince(p.toks[start+1].start)
	}
	return o
}

// reindex reads REINDEX.
func (p *parser) reindex(pos ast.Pos) ast.Statement {
	st := &ast.Reindex{Pos: pos}
	if p.is('(') {
		st.Options = p.utilityOptions()
	}
	word := p.cur().kw
	switch word {
	case kw.Table, kw.Index, kw.Schema, kw.System, kw.Database:
		p.advance()
	default:
		p.unexpected()
	}
	st.Kind = upper(word)
	st.Concurrently = p.acceptWord(kw.Concurrently)
	if word == kw.Table || word == kw.Index {
		st.Name = p.tableName()
	} else {
		st.Name = ast.TableName{Pos: p.here(), Name: p.colID()}
	}
	return st
}

// cluster reads CLUSTER in its three forms.
func (p *parser) cluster(pos ast.Pos) ast.Statement {
	st := &ast.Cluster{Pos: pos}
	if p.is('(') {
		st.Options = p.utilityOptions()
	} else if p.acceptWord(kw.Verbose) {
		st.Options = []ast.StorageOption{{Name: "verbose"}}
	}
	if p.is(tokEOF) || p.is(';') {
		return st
	}
	name := p.tableName()
	switch {
	case p.acceptWord(kw.Using):
		st.Index = p.colID()
	case name.Schema == "" && p.acceptWord(kw.On):
		st.Index = name.Name
		name = p.tableName()
	}
	st.Table = &name
	return st
}

// createMaterializedView reads CREATE [UNLOGGED] MATERIALIZED VIEW.
func (p *parser) createMaterializedView(pos ast.Pos, unlogged bool) ast.Statement {
	p.expectWords(kw.Materialized, kw.View)
	st := &ast.CreateMaterializedView{Pos: pos, Unlogged: unlogged, IfNotExists: p.ifNotExists()}
	st.Name = p.tableName()
	if p.is('(') {
		st.Columns = p.columnList()
	}
	if p.acceptWord(kw.Using) {
		st.Method = p.colID()
	}
	if p.acceptWord(kw.With) {
		st.Options = p.storageOptions()
	}
	st.Tablespace = p.tablespace()
	p.expectWord(kw.As)
	p.requireQuery()
	st.Query = p.query()
	st.WithNoData = p.withNoData()
	return st
}

// withNoData reads [WITH [NO] DATA].
func (p *parser) withNoData() bool {
	if !p.acceptWord(kw.With) {
		return false
	}
	no := p.acceptWord(kw.No)
	p.expectWord(kw.Data)
	return no
}

// refresh reads REFRESH MATERIALIZED VIEW.
func (p *parser) refresh(pos ast.Pos) ast.Statement {
	p.expectWords(kw.Materialized, kw.View)
	st := &ast.RefreshMaterializedView{Pos: pos, Concurrently: p.acceptWord(kw.Concurrently)}
	st.Name = p.tableName()
	st.WithNoData = p.withNoData()
	return st
}

// createDatabase reads CREATE DATABASE.
func (p *parser) createDatabase(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Database)
	st := &ast.Database{Pos: pos, Name: p.colID()}
	p.acceptWord(kw.With)
	for p.databaseOption(&st.Options) {
	}
	return st
}

// databaseOption reads an option of a database and reports whether there was one.
func (p *parser) databaseOption(list *[]ast.DatabaseOption) bool {
	o := ast.DatabaseOption{Pos: p.here()}
	switch t := p.cur(); {
	case p.acceptWords(kw.Connection, kw.Limit):
		o.Name = "CONNECTION LIMIT"
	case t.kind == tokIdent && t.kw == kw.None, t.kw == kw.Encoding, t.kw == kw.Location, t.kw == kw.Owner, t.kw == kw.Tablespace, t.kw == kw.Template:
		o.Name = p.colID()
	default:
		return false
	}
	p.acceptOp('=')
	switch t := p.cur(); {
	case p.acceptWord(kw.Default):
		o.Default = true
	case isString(t), isColLabel(t):
		o.Text = &ast.Text{Value: p.settingValue()}
	default:
		o.Number = p.signedNumber()
	}
	*list = append(*list, o)
	return p.err == nil
}

// alterDatabase reads ALTER DATABASE.
func (p *parser) alterDatabase(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Database)
	o := p.object("DATABASE", plainWord)
	c := p.objectChange("rov")
	switch {
	case p.err != nil:
		return nil
	case c != nil:
		return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
	case p.acceptWords(kw.Set, kw.Tablespace):
		return &ast.AlterDatabaseSet{Pos: pos, Name: o.Name[0], Tablespace: p.colID()}
	case p.isWord(kw.Set), p.isWord(kw.Reset):
		return &ast.AlterDatabaseSet{Pos: pos, Name: o.Name[0], Set: p.settingClause()}
	}
	st := &ast.Database{Pos: pos, Alter: true, Name: o.Name[0]}
	p.acceptWord(kw.With)
	for p.databaseOption(&st.Options) {
	}
	return st
}

// createTablespace reads CREATE TABLESPACE.
func (p *parser) createTablespace(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Tablespace)
	st := &ast.CreateTablespace{Pos: pos, Name: p.colID()}
	if p.acceptWord(kw.Owner) {
		owner := p.role()
		st.Owner = &owner
	}
	p.expectWord(kw.Location)
	st.Location = p.stringLit()
	if p.acceptWord(kw.With) {
		st.Options = p.storageOptions()
	}
	return st
}

// alterTablespace reads ALTER TABLESPACE.
func (p *parser) alterTablespace(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Tablespace)
	o := p.object("TABLESPACE", plainWord)
	if c := p.objectChange("ro"); c != nil {
		return &ast.AlterObject{Pos: pos, Object: o, Change: *c}
	}
	if p.err != nil {
		return nil
	}
	st := &ast.AlterTablespace{Pos: pos, Name: o.Name[0], Reset: p.acceptWord(kw.Reset)}
	if !st.Reset {
		p.expectWord(kw.Set)
	}
	st.Options = p.storageOptions()
	return st
}

// preparedTransaction reads the name behind PREPARE TRANSACTION and its kin.
func (p *parser) preparedTransaction(pos ast.Pos, action string) ast.Statement {
	p.advance()
	return &ast.PreparedTransaction{Pos: pos, Action: action, Name: p.stringLit()}
}
