package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// alter reads ALTER.
func (p *parser) alter(pos ast.Pos) ast.Statement {
	kind := p.cur().kw
	if kind != kw.Table && kind != kw.Index && kind != kw.View && kind != kw.Sequence {
		return p.alterOther(pos)
	}
	return p.alterRelation(pos, kind)
}

// relationKinds are the kinds of relations that ALTER has commands for.
var relationKinds = map[kw.Word]string{
	kw.Table: "TABLE", kw.Index: "INDEX", kw.View: "VIEW", kw.Sequence: "SEQUENCE", kw.Foreign: "FOREIGN TABLE", kw.Materialized: "MATERIALIZED VIEW",
}

// alterRelation reads ALTER of a relation from its kind on.
func (p *parser) alterRelation(pos ast.Pos, kind kw.Word) ast.Statement {
	p.advance()
	switch kind {
	case kw.Foreign:
		p.expectWord(kw.Table)
	case kw.Materialized:
		p.expectWord(kw.View)
	}
	if p.acceptWords(kw.All, kw.In) {
		p.unsupported(pos, "ALTER … ALL IN TABLESPACE", "percodb has no tablespaces.")
	}
	a := &ast.AlterTable{Pos: pos, Kind: relationKinds[kind]}
	a.IfExists = p.ifExists()
	if kind == kw.Table {
		p.acceptWord(kw.Only)
	}
	a.Name = p.tableName()
	p.relation = a.Name.Name
	if kind == kw.Table {
		p.acceptOp('*')
	}
	switch {
	case p.isWord(kw.Rename):
		a.Commands = []ast.AlterCommand{p.rename(p.here(), kind)}
		return a
	case p.acceptWords(kw.Set, kw.Schema):
		a.Commands = []ast.AlterCommand{&ast.SetStorage{Pos: pos, What: "SET SCHEMA " + ast.QuoteIdent(p.colID())}}
		return a
	}
	if kind == kw.Sequence && !p.isWord(kw.Set) && !p.isWord(kw.Owner) {
		a.Commands = []ast.AlterCommand{p.alterSequence()}
		return a
	}
	for first := true; first || p.accept(','); first = false {
		a.Commands = append(a.Commands, p.alterCommand(kind))
	}
	return a
}

// alterOther reads ALTER of the objects that percodb does not have, and ALTER SCHEMA.
func (p *parser) alterOther(pos ast.Pos) ast.Statement {
	word, next := p.cur().kw, p.peek(1).kw
	if word == kw.Schema {
		p.notYet(pos, "ALTER SCHEMA", "Create another schema.")
		p.advance()
		return p.alterObject(pos, p.object("SCHEMA", plainWord), "ro")
	}
	p.lacking(pos, "ALTER")
	switch word {
	case kw.Function, kw.Procedure, kw.Routine, kw.Aggregate:
		return p.alterRoutine(pos)
	case kw.Type:
		return p.alterType(pos)
	case kw.Domain:
		return p.alterDomain(pos)
	case kw.Policy:
		return p.alterPolicy(pos)
	case kw.Event:
		return p.alterEventTrigger(pos)
	case kw.Trigger, kw.Rule:
		kind, form := p.objectKind()
		if word == kw.Rule {
			return p.alterObject(pos, p.object(kind, form), "r")
		}
		return p.alterObject(pos, p.object(kind, form), "re")
	case kw.Role, kw.Group:
		return p.alterRole(pos)
	case kw.User:
		if next == kw.Mapping {
			return p.userMapping(pos, true)
		}
		return p.alterRole(pos)
	case kw.Default:
		return p.defaultPrivileges(pos)
	case kw.Operator:
		return p.alterOperator(pos)
	case kw.Text:
		return p.alterTextSearch(pos)
	}
	return p.alterStored(pos, word)
}

// alterStored reads ALTER of the objects whose changes are few.
func (p *parser) alterStored(pos ast.Pos, word kw.Word) ast.Statement {
	switch word {
	case kw.Foreign:
		if p.peek(1).kw == kw.Table {
			return p.alterRelation(pos, kw.Foreign)
		}
		return p.dataWrapper(pos, true)
	case kw.Materialized:
		return p.alterRelation(pos, kw.Materialized)
	case kw.Server:
		return p.server(pos, true)
	case kw.Extension:
		return p.alterExtension(pos)
	case kw.Publication:
		return p.alterPublication(pos)
	case kw.Subscription:
		return p.alterSubscription(pos)
	case kw.Database:
		return p.alterDatabase(pos)
	case kw.Tablespace:
		return p.alterTablespace(pos)
	case kw.Statistics:
		return p.alterStatistics(pos)
	}
	kind, form := p.objectKind()
	switch kind {
	case "COLLATION":
		return p.alterObject(pos, p.object(kind, form), "rosv")
	case "CONVERSION":
		return p.alterObject(pos, p.object(kind, form), "ros")
	case "LANGUAGE":
		return p.alterObject(pos, p.object(kind, form), "ro")
	case "LARGE OBJECT":
		return p.alterObject(pos, p.object(kind, form), "o")
	}
	p.unexpected()
	return nil
}

// alterSequence reads the options of ALTER SEQUENCE.
func (p *parser) alterSequence() ast.AlterCommand {
	s := &ast.SetSequence{Pos: p.here()}
	start := p.pos
	for p.sequenceOption(&s.SequenceOptions) {
	}
	if p.pos == start {
		p.unexpected()
	}
	return s
}

// alterCommand reads one command of ALTER TABLE, INDEX, VIEW or SEQUENCE.
func (p *parser) alterCommand(kind kw.Word) ast.AlterCommand {
	pos := p.here()
	switch {
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
		return p.refuseCommand(pos, "ALTER CONSTRAINT", "Drop the constraint and add it again.")
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
		p.columnType(a)
	case p.acceptWords(kw.Set, kw.Statistics):
		return accepted(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" SET STATISTICS "+p.signedNumber())
	case p.acceptWords(kw.Set, kw.Storage), p.acceptWords(kw.Set, kw.Compression):
		what := upper(p.toks[p.pos-1].kw)
		return accepted(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" SET "+what+" "+ast.QuoteIdent(p.colID()))
	case p.isWord(kw.Set) && p.peek(1).kind == '(', p.isWord(kw.Reset) && p.peek(1).kind == '(':
		return p.optionsCommand(pos, "ALTER COLUMN "+ast.QuoteIdent(a.Name)+" ")
	case p.acceptWords(kw.Add, kw.Generated), p.acceptWords(kw.Set, kw.Generated), p.acceptWords(kw.Drop, kw.Identity),
		p.acceptWords(kw.Drop, kw.Expression), p.isWord(kw.Restart), p.isWord(kw.Set) && sequenceWord(p.peek(1).kw):
		return p.refuseCommand(pos, "Changing an identity or generated column", "Add a new column in its place.")
	default:
		p.unexpected()
	}
	return a
}

// sequenceWord reports whether a word begins an option of a sequence.
func sequenceWord(word kw.Word) bool {
	switch word {
	case kw.As, kw.Increment, kw.Minvalue, kw.Maxvalue, kw.Start, kw.Cache, kw.Cycle, kw.Owned, kw.No, kw.Restart,
		kw.Sequence:
		return true
	}
	return false
}

func (p *parser) columnType(a *ast.AlterColumn) {
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

// refuseCommand refuses a command that percodb does not have.
func (p *parser) refuseCommand(pos ast.Pos, what, hint string) ast.AlterCommand {
	p.unsupported(pos, what, hint)
	return nil
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
	return p.foreignCommand(pos)
}

// foreignCommand refuses by name the commands about what percodb does not have.
func (p *parser) foreignCommand(pos ast.Pos) ast.AlterCommand {
	switch {
	case p.acceptWords(kw.Set, kw.Tablespace):
		return p.refuseCommand(pos, "SET TABLESPACE", "percodb has no tablespaces.")
	case p.acceptWords(kw.Set, kw.Access, kw.Method):
		return p.refuseCommand(pos, "SET ACCESS METHOD", "percodb has one storage.")
	case p.acceptWords(kw.Enable, kw.Row), p.acceptWords(kw.Disable, kw.Row), p.acceptWords(kw.Force, kw.Row),
		p.acceptWords(kw.No, kw.Force):
		return p.refuseCommand(pos, "ROW LEVEL SECURITY", "Filter in a view.")
	case p.acceptWords(kw.Enable, kw.Trigger), p.acceptWords(kw.Disable, kw.Trigger), p.acceptWords(kw.Enable, kw.Always),
		p.acceptWords(kw.Enable, kw.Replica), p.acceptWords(kw.Enable, kw.Rule), p.acceptWords(kw.Disable, kw.Rule):
		return p.refuseCommand(pos, "ALTER TABLE with a trigger or rule", "percodb has no triggers.")
	case p.acceptWord(kw.Inherit), p.acceptWords(kw.No, kw.Inherit), p.acceptWord(kw.Of), p.acceptWords(kw.Not, kw.Of):
		return p.refuseCommand(pos, "Table inheritance", "Use a column that says the kind of row.")
	case p.acceptWords(kw.Validate, kw.Constraint):
		return p.refuseCommand(pos, "VALIDATE CONSTRAINT", "Drop the constraint and add it again.")
	case p.acceptWords(kw.Attach, kw.Partition), p.acceptWords(kw.Detach, kw.Partition):
		return p.refuseCommand(pos, "ALTER TABLE … PARTITION", "percodb splits tables into ranges by itself.")
	case p.acceptWord(kw.Depends), p.acceptWords(kw.No, kw.Depends):
		return p.refuseCommand(pos, "DEPENDS ON EXTENSION", "percodb has no extensions.")
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
