package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
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
	if (kind == kw.Table || kind == kw.Index || kind == kw.Materialized) && p.isWord(kw.All) {
		return p.moveAll(pos, relationKinds[kind])
	}
	a := &ast.AlterTable{Pos: pos, Kind: relationKinds[kind]}
	a.IfExists = p.ifExists()
	if kind == kw.Table || kind == kw.Foreign {
		a.Only = p.acceptWord(kw.Only)
	}
	a.Name = p.tableName()
	p.relation = a.Name.Name
	if (kind == kw.Table || kind == kw.Foreign) && !a.Only {
		p.acceptOp('*')
	}
	switch {
	case p.isWord(kw.Rename):
		a.Commands = []ast.AlterCommand{p.rename(p.here(), kind)}
		return a
	case p.acceptWords(kw.Set, kw.Schema):
		a.Commands = []ast.AlterCommand{&ast.SetStorage{Pos: pos, Action: "SET SCHEMA", Name: p.colID()}}
		return a
	}
	if no := p.isWord(kw.No); (kind == kw.Index || kind == kw.Materialized) && !a.IfExists && (p.isWord(kw.Depends) || no && p.peek(1).kw == kw.Depends) {
		p.notYet(pos, "DEPENDS ON EXTENSION", "Drop the object with the extension.")
		c := &ast.TableCommand{Pos: p.here(), Action: "DEPENDS ON EXTENSION"}
		if no {
			p.advance()
			c.Action = "NO DEPENDS ON EXTENSION"
		}
		p.expectWords(kw.Depends, kw.On, kw.Extension)
		c.Name = p.colID()
		a.Commands = []ast.AlterCommand{c}
		return a
	}
	if kind == kw.Sequence && !p.isWord(kw.Set) && !p.isWord(kw.Owner) && !p.isWord(kw.Add) && !p.isWord(kw.Alter) && !p.isWord(kw.Drop) {
		a.Commands = []ast.AlterCommand{p.alterSequence()}
		return a
	}
	for first := true; first || p.accept(','); first = false {
		c := p.alterCommand(kind)
		if attach, ok := c.(*ast.TableCommand); ok && attach.Action == "ATTACH PARTITION" && (attach.Bound == nil) != (kind == kw.Index) {
			p.unexpected() // A partition of an index has no bound, any other has one.
		}
		a.Commands = append(a.Commands, c)
	}
	return a
}

// moveAll reads ALTER of all relations of a kind in a tablespace, from ALL on.
func (p *parser) moveAll(pos ast.Pos, kind string) ast.Statement {
	p.expectWords(kw.All, kw.In, kw.Tablespace)
	p.notYet(pos, "ALTER … ALL IN TABLESPACE", "percodb has no tablespaces.")
	m := &ast.MoveAll{Pos: pos, Kind: kind, From: p.colID()}
	if p.acceptWords(kw.Owned, kw.By) {
		for first := true; first || p.accept(','); first = false {
			m.Owners = append(m.Owners, p.role())
		}
	}
	p.expectWords(kw.Set, kw.Tablespace)
	m.To = p.colID()
	m.NoWait = p.acceptWord(kw.Nowait)
	return m
}

// alterOther reads ALTER of the objects that percodb does not have, and ALTER SCHEMA.
func (p *parser) alterOther(pos ast.Pos) ast.Statement {
	word, next := p.cur().kw, p.peek(1).kw
	if word == kw.Schema {
		p.advance()
		return p.alterObject(pos, p.object("SCHEMA", plainWord), "ro")
	}
	if word == kw.Database {
		st := p.alterDatabase(pos)
		if o, ok := st.(*ast.AlterObject); ok && o.Change.Version {
			p.notYet(pos, "ALTER DATABASE ... REFRESH COLLATION VERSION", "Collations have no versions to refresh; see REINDEX.")
		}
		return st
	}
	if p.acceptObserver() {
		return p.alterObserver(pos)
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
	case p.acceptWord(kw.Alter):
		return p.alterColumn(pos)
	case p.acceptWord(kw.Add):
		return p.addCommand(pos)
	case p.acceptWord(kw.Drop):
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
	if kind == kw.Index || kind == kw.Sequence {
		p.unexpected()
	}
	p.acceptWord(kw.Column)
	r := &ast.RenameColumn{Pos: pos, From: p.colID()}
	p.expectWord(kw.To)
	r.To = p.colID()
	return r
}

func (p *parser) addCommand(pos ast.Pos) ast.AlterCommand {
	if next := p.peek(1); constraintWord(p.cur().kw) && (!p.isWord(kw.Exclude) || next.kind == '(' || next.kw == kw.Using) {
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
	if p.acceptWord(kw.Constraint) {
		c := &ast.TableCommand{Pos: pos, Action: "ALTER CONSTRAINT", Name: p.colID()}
		var k ast.TableConstraint
		for p.constraintAttribute(&k) {
		}
		c.Attributes = k.Attributes
		return c
	}
	p.acceptWord(kw.Column)
	a := &ast.AlterColumn{Pos: pos}
	if t := p.cur(); t.kind == tokLiteral && t.lit == ast.LiteralInt4 {
		number := p.iconst()
		p.expectWords(kw.Set, kw.Statistics)
		return &ast.SetStorage{Pos: pos, Number: number, Action: "SET STATISTICS", Value: p.signedNumber()}
	}
	a.Name = p.colID()
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
		return &ast.SetStorage{Pos: pos, Column: a.Name, Action: "SET STATISTICS", Value: p.signedNumber()}
	case p.acceptWords(kw.Set, kw.Storage), p.acceptWords(kw.Set, kw.Compression):
		return &ast.SetStorage{Pos: pos, Column: a.Name, Action: "SET " + upper(p.toks[p.pos-1].kw), Name: p.colID()}
	case p.isWord(kw.Set) && p.peek(1).kind == '(', p.isWord(kw.Reset) && p.peek(1).kind == '(':
		return p.optionsCommand(&ast.SetStorage{Pos: pos, Column: a.Name})
	case p.isWord(kw.Options):
		p.notYet(pos, "OPTIONS", "percodb has no foreign tables.")
		a.Options = p.foreignOptions(true)
	case p.isWord(kw.Add), p.isWord(kw.Drop), p.isWord(kw.Restart), p.isWord(kw.Set):
		p.alterIdentity(a)
	default:
		p.unexpected()
	}
	return a
}

// alterIdentity reads the changes of an identity or generated column.
func (p *parser) alterIdentity(a *ast.AlterColumn) {
	switch {
	case p.acceptWords(kw.Add, kw.Generated):
		if a.AddIdentity = "ALWAYS"; !p.acceptWord(kw.Always) {
			p.expectWords(kw.By, kw.Default)
			a.AddIdentity = "BY DEFAULT"
		}
		p.expectWords(kw.As, kw.Identity)
		if p.accept('(') {
			a.Sequence = &ast.SequenceOptions{}
			for p.sequenceOption(a.Sequence) {
			}
			p.expect(')')
		}
	case p.acceptWords(kw.Drop, kw.Identity):
		a.Drop, a.IfExists = "IDENTITY", p.ifExists()
	case p.acceptWords(kw.Drop, kw.Expression):
		a.Drop, a.IfExists = "EXPRESSION", p.ifExists()
	default:
		p.identityOptions(a)
	}
}

// identityOptions reads RESTART and SET of the options of an identity column.
func (p *parser) identityOptions(a *ast.AlterColumn) {
	for p.err == nil && (p.isWord(kw.Set) || p.isWord(kw.Restart)) {
		var o ast.IdentityOption
		if p.acceptWord(kw.Set) && p.acceptWord(kw.Generated) {
			if o.Generated = "ALWAYS"; !p.acceptWord(kw.Always) {
				p.expectWords(kw.By, kw.Default)
				o.Generated = "BY DEFAULT"
			}
		} else {
			pos, set := p.here(), p.pos > 0 && p.toks[p.pos-1].kw == kw.Set
			o.Sequence, o.Set = &ast.SequenceOptions{}, set
			if !p.sequenceOption(o.Sequence) {
				p.unexpected()
			}
			if word := setOption(o.Sequence); set && word != "" {
				p.failAt(pos, pgerror.SyntaxError, "sequence option \"%s\" not supported here", word)
			}
		}
		a.IdentityOptions = append(a.IdentityOptions, o)
	}
	if len(a.IdentityOptions) == 0 {
		p.unexpected()
	}
}

// setOption names the option that SET does not take, "" for others.
func setOption(o *ast.SequenceOptions) string {
	switch {
	case o.Type != nil:
		return "as"
	case o.Restart:
		return "restart"
	case o.OwnedBy != nil:
		return "owned_by"
	}
	return ""
}

func (p *parser) columnType(a *ast.AlterColumn) {
	typ := p.typeName()
	a.SetType = &typ
	if p.acceptWord(kw.Collate) {
		a.Collation = p.path()
	}
	if p.acceptWord(kw.Using) {
		a.Using = p.expr()
	}
}

// optionsCommand reads SET (…) or RESET (…).
func (p *parser) optionsCommand(c *ast.SetStorage) ast.AlterCommand {
	c.Action = upper(p.cur().kw)
	p.advance()
	c.Options = p.storageOptions()
	return c
}

// storageCommand reads the commands about owners, storage and what percodb does not have.
func (p *parser) storageCommand(pos ast.Pos) ast.AlterCommand {
	c := &ast.SetStorage{Pos: pos}
	switch {
	case p.acceptWords(kw.Owner, kw.To):
		owner := p.role()
		c.Action, c.Owner = "OWNER TO", &owner
	case p.isWord(kw.Set) && p.peek(1).kind == '(', p.isWord(kw.Reset) && p.peek(1).kind == '(':
		return p.optionsCommand(c)
	case p.acceptWords(kw.Set, kw.Logged):
		c.Action = "SET LOGGED"
	case p.acceptWords(kw.Set, kw.Unlogged):
		c.Action = "SET UNLOGGED"
	case p.acceptWords(kw.Set, kw.Without, kw.Oids):
		c.Action = "SET WITHOUT OIDS"
	case p.acceptWords(kw.Set, kw.Without, kw.Cluster):
		c.Action = "SET WITHOUT CLUSTER"
	case p.acceptWords(kw.Cluster, kw.On):
		c.Action, c.Name = "CLUSTER ON", p.colID()
	case p.acceptWords(kw.Replica, kw.Identity):
		p.replicaIdentity(c)
	default:
		return p.foreignCommand(pos)
	}
	return c
}

// foreignCommand reads the commands about what percodb does not have.
func (p *parser) foreignCommand(pos ast.Pos) ast.AlterCommand {
	c := &ast.TableCommand{Pos: pos}
	lacks := func(what, hint string) { p.notYet(pos, what, hint) }
	named := func(action string) ast.AlterCommand {
		c.Action, c.Name = action, p.colID()
		return c
	}
	switch {
	case p.acceptWords(kw.Set, kw.Tablespace):
		lacks("SET TABLESPACE", "percodb has no tablespaces.")
		return named("SET TABLESPACE")
	case p.acceptWords(kw.Set, kw.Access, kw.Method):
		lacks("SET ACCESS METHOD", "percodb has one storage.")
		return named("SET ACCESS METHOD")
	case p.acceptWords(kw.Validate, kw.Constraint):
		return named("VALIDATE CONSTRAINT")
	case p.isWord(kw.Options):
		lacks("OPTIONS", "percodb has no foreign tables.")
		c.Action, c.Options = "OPTIONS", p.foreignOptions(true)
		return c
	}
	if action := p.rowSecurity(); action != "" {
		c.Action = action
		return c
	}
	return p.relationCommand(c)
}

// rowSecurity reads the commands about row level security; "" if there is none.
func (p *parser) rowSecurity() string {
	for _, verb := range [][]kw.Word{{kw.Enable}, {kw.Disable}, {kw.Force}, {kw.No, kw.Force}} {
		if p.acceptWords(append(verb, kw.Row, kw.Level, kw.Security)...) {
			words := ""
			for _, w := range verb {
				words += upper(w) + " "
			}
			return words + "ROW LEVEL SECURITY"
		}
	}
	return ""
}

// inheritanceHint says what to use instead of inheritance.
const inheritanceHint = "Use partitions (PARTITION BY), or a view over the tables."

// relationCommand reads the commands about inheritance, partitions, triggers and rules.
func (p *parser) relationCommand(c *ast.TableCommand) ast.AlterCommand {
	inheritance := func() { p.notYet(c.Pos, "Table inheritance", inheritanceHint) }
	other := func(action string) ast.AlterCommand {
		name := p.tableName()
		c.Action, c.Table = action, &name
		return c
	}
	switch {
	case p.acceptWord(kw.Inherit):
		inheritance()
		return other("INHERIT")
	case p.acceptWords(kw.No, kw.Inherit):
		inheritance()
		return other("NO INHERIT")
	case p.acceptWord(kw.Of):
		return other("OF")
	case p.acceptWords(kw.Not, kw.Of):
		c.Action = "NOT OF"
		return c
	case p.acceptWords(kw.Attach, kw.Partition):
		other("ATTACH PARTITION")
		if p.isWord(kw.For) || p.isWord(kw.Default) {
			c.Bound = p.partitionBound()
		}
		return c
	case p.acceptWords(kw.Detach, kw.Partition):
		other("DETACH PARTITION")
		if p.acceptWord(kw.Concurrently) {
			c.Mode = "CONCURRENTLY"
		} else if p.acceptWord(kw.Finalize) {
			c.Mode = "FINALIZE"
		}
		return c
	}
	return p.triggerCommand(c)
}

// triggerCommand reads the commands that enable and disable triggers and rules.
func (p *parser) triggerCommand(c *ast.TableCommand) ast.AlterCommand {
	c.Action = upper(p.cur().kw)
	enable := p.acceptWord(kw.Enable)
	if !enable {
		p.expectWord(kw.Disable)
	}
	if enable && (p.isWord(kw.Always) || p.isWord(kw.Replica)) {
		c.Action += " " + upper(p.cur().kw)
		p.advance()
	}
	plain := c.Action == "ENABLE" || c.Action == "DISABLE"
	c.Action += " " + upper(p.cur().kw)
	if trigger := p.acceptWord(kw.Trigger); !trigger {
		p.notYet(c.Pos, "ALTER TABLE with a rule", "percodb has no rules.")
		p.expectWord(kw.Rule)
	} else if plain && (p.isWord(kw.All) || p.isWord(kw.User)) {
		c.Mode = upper(p.cur().kw)
		p.advance()
		return c
	}
	c.Name = p.colID()
	return c
}

func (p *parser) replicaIdentity(c *ast.SetStorage) {
	switch {
	case p.acceptWord(kw.Nothing):
		c.Action = "REPLICA IDENTITY NOTHING"
	case p.acceptWord(kw.Full):
		c.Action = "REPLICA IDENTITY FULL"
	case p.acceptWord(kw.Default):
		c.Action = "REPLICA IDENTITY DEFAULT"
	default:
		p.expectWords(kw.Using, kw.Index)
		c.Action, c.Name = "REPLICA IDENTITY USING INDEX", p.colID()
	}
}
