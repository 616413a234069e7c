package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// alter reads ALTER.
func (p *parser) alter(pos ast.Pos) ast.Statement {
	kind := p.cur().kw
	if kind != kw.Table && kind != kw.Index && kind != kw.View && kind != kw.Sequence {
		if kind == kw.Schema {
			return p.refuse(pos, "ALTER SCHEMA", "Create another schema.")
		}
		return p.refuseObject(pos, "ALTER")
	}
	p.advance()
	if p.acceptWords(kw.All, kw.In) {
		p.unsupported(pos, "ALTER … ALL IN TABLESPACE", "percodb has no tablespaces.")
	}
	a := &ast.AlterTable{Pos: pos, Kind: upper(kind)}
	a.IfExists = p.ifExists()
	if kind == kw.Table {
		p.acceptWord(kw.Only)
	}
	a.Name = p.tableName()
	if kind == kw.Table {
		p.acceptOp('*')
	}
	for first := true; first || p.accept(','); first = false {
		a.Commands = append(a.Commands, p.alterCommand(kind))
	}
	return a
}

// alterCommand reads one command of ALTER TABLE, INDEX, VIEW or SEQUENCE.
func (p *parser) alterCommand(kind kw.Word) ast.AlterCommand {
	pos := p.here()
	switch {
	case p.isWord(kw.Rename):
		return p.rename(pos, kind)
	case kind == kw.Sequence && !p.isWord(kw.Set) && !p.isWord(kw.Owner):
		s := &ast.SetSequence{Pos: pos}
		start := p.pos
		for p.sequenceOption(&s.SequenceOptions, true) {
		}
		if p.pos == start {
			p.unexpected()
		}
		return s
	case kind != kw.Sequence && p.acceptWord(kw.Alter):
		return p.alterColumn(pos)
	case kind == kw.Table && p.acceptWord(kw.Add):
		return p.addCommand(pos)
	case kind == kw.Table && p.acceptWord(kw.Drop):
		return p.dropCommand(pos)
	}
	return p.storageCommand(pos)
}

func (p *parser) rename(pos ast.Pos, kind kw.Word) ast.AlterCommand {
	p.expectWord(kw.Rename)
	if p.acceptWord(kw.To) {
		return &ast.RenameTo{Name: p.colID()}
	}
	if kind == kw.Table && p.acceptWord(kw.Constraint) {
		r := &ast.RenameConstraint{Pos: pos, From: p.colID()}
		p.expectWord(kw.To)
		r.To = p.colID()
		return r
	}
	if kind != kw.Table && kind != kw.View {
		p.unexpected()
	}
	p.acceptWord(kw.Column)
	r := &ast.RenameColumn{Pos: pos, From: p.colID()}
	p.expectWord(kw.To)
	r.To = p.colID()
	return r
}

func (p *parser) addCommand(pos ast.Pos) ast.AlterCommand {
	if constraintWord(p.cur().kw) && p.cur().kw != kw.Exclude {
		return &ast.AddConstraint{Constraint: p.tableConstraint()}
	}
	p.acceptWord(kw.Column)
	add := &ast.AddColumn{IfNotExists: p.ifNotExists()}
	add.Column = p.columnDef()
	return add
}

func (p *parser) dropCommand(pos ast.Pos) ast.AlterCommand {
	if p.acceptWord(kw.Constraint) {
		d := &ast.DropConstraint{Pos: pos, IfExists: p.ifExists(), Name: p.colID()}
		d.Cascade = p.cascade()
		return d
	}
	p.acceptWord(kw.Column)
	d := &ast.DropColumn{Pos: pos, IfExists: p.ifExists(), Name: p.colID()}
	d.Cascade = p.cascade()
	return d
}

// alterColumn reads ALTER [COLUMN] behind its ALTER.
func (p *parser) alterColumn(pos ast.Pos) ast.AlterCommand {
	if p.isWord(kw.Constraint) {
		return p.refuseCommand(pos, "ALTER CONSTRAINT")
	}
	p.acceptWord(kw.Column)
	a := &ast.AlterColumn{Pos: pos, Name: p.colID()}
	switch {
	case p.acceptWords(kw.Set, kw.Default):
		a.SetDefault = p.expr()
	case p.acceptWords(kw.Drop, kw.Default):
		a.DropDefault = true
	case p.acceptWords(kw.Set, kw.Not, kw.Null):
		a.SetNotNull = true
	case p.acceptWords(kw.Drop, kw.Not, kw.Null):
		a.DropNotNull = true
	case p.acceptWords(kw.Set, kw.Data, kw.Type), p.acceptWord(kw.Type):
		p.alterType(a)
	case p.acceptWords(kw.Set, kw.Statistics):
		return accepted(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" SET STATISTICS "+p.signedNumber())
	case p.acceptWords(kw.Set, kw.Storage), p.acceptWords(kw.Set, kw.Compression):
		what := upper(p.toks[p.pos-1].kw)
		return accepted(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" SET "+what+" "+ast.QuoteIdent(p.colLabel()))
	case p.isWord(kw.Set) && p.peek(1).kind == '(', p.isWord(kw.Reset) && p.peek(1).kind == '(':
		return p.optionsCommand(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" ")
	case p.isWord(kw.Set), p.isWord(kw.Add), p.isWord(kw.Drop), p.isWord(kw.Restart):
		return p.refuseCommand(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" "+upper(p.cur().kw)+" "+strings.ToUpper(p.wordAt(1)))
	default:
		p.unexpected()
	}
	return a
}

// wordAt is the text of the word n tokens ahead, "" if there is none.
func (p *parser) wordAt(n int) string {
	if t := p.peek(n); t.kind == tokIdent {
		return p.text[t.start:t.end]
	}
	return ""
}

func (p *parser) alterType(a *ast.AlterColumn) {
	typ := p.typeName()
	a.SetType = &typ
	if p.isWord(kw.Collate) {
		p.unsupported(p.here(), "Changing a column's collation", "percodb compares text by its bytes.")
	}
	if p.acceptWord(kw.Using) {
		a.Using = p.expr()
	}
}

func accepted(pos ast.Pos, what string) ast.AlterCommand {
	return &ast.SetStorage{Pos: pos, What: what, Accepted: true}
}

// refuseCommand skips a command that the executor refuses by name.
func (p *parser) refuseCommand(pos ast.Pos, what string) ast.AlterCommand {
	for depth := 0; !p.is(tokEOF) && (depth > 0 || !p.is(',')); p.advance() {
		switch p.cur().kind {
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	return &ast.SetStorage{Pos: pos, What: strings.TrimSpace(what)}
}

// optionsCommand reads SET (…) or RESET (…).
func (p *parser) optionsCommand(pos ast.Pos, prefix string) ast.AlterCommand {
	verb := upper(p.cur().kw)
	p.advance()
	return accepted(pos, prefix+verb+" "+ast.FormatOptions(p.storageOptions()))
}

// storageCommand reads the commands about owners, storage and what percodb does not have.
func (p *parser) storageCommand(pos ast.Pos) ast.AlterCommand {
	switch {
	case p.acceptWords(kw.Owner, kw.To):
		return accepted(pos, "OWNER TO "+ast.QuoteIdent(p.nonReserved()))
	case p.isWord(kw.Set) && p.peek(1).kind == '(', p.isWord(kw.Reset) && p.peek(1).kind == '(':
		return p.optionsCommand(pos, "")
	case p.acceptWords(kw.Set, kw.Logged):
		return accepted(pos, "SET LOGGED")
	case p.acceptWords(kw.Set, kw.Unlogged):
		return accepted(pos, "SET UNLOGGED")
	case p.acceptWords(kw.Set, kw.Without, kw.Cluster):
		return accepted(pos, "SET WITHOUT CLUSTER")
	case p.acceptWords(kw.Cluster, kw.On):
		return accepted(pos, "CLUSTER ON "+ast.QuoteIdent(p.colID()))
	case p.acceptWords(kw.Replica, kw.Identity):
		return p.replicaIdentity(pos)
	}
	switch word := p.cur().kw; word {
	case kw.Set, kw.Enable, kw.Disable, kw.Inherit, kw.No, kw.Of, kw.Not, kw.Force, kw.Validate, kw.Attach, kw.Detach,
		kw.Depends:
		what := upper(word)
		if second := p.wordAt(1); second != "" {
			what += " " + strings.ToUpper(second)
		}
		return p.refuseCommand(pos, what)
	}
	p.unexpected()
	return nil
}

func (p *parser) replicaIdentity(pos ast.Pos) ast.AlterCommand {
	switch {
	case p.acceptWord(kw.Nothing):
		return accepted(pos, "REPLICA IDENTITY NOTHING")
	case p.acceptWord(kw.Full):
		return accepted(pos, "REPLICA IDENTITY FULL")
	case p.acceptWord(kw.Default):
		return accepted(pos, "REPLICA IDENTITY DEFAULT")
	}
	p.expectWords(kw.Using, kw.Index)
	return accepted(pos, "REPLICA IDENTITY USING INDEX "+ast.QuoteIdent(p.colID()))
}
