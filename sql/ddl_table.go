package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// createTable reads CREATE TABLE from its TABLE on.
func (p *parser) createTable(pos ast.Pos, temporary bool) ast.Statement {
	p.expectWord(kw.Table)
	c := &ast.CreateTable{Pos: pos, Temporary: temporary, IfNotExists: p.ifNotExists()}
	c.Name = p.tableName()
	p.relation = c.Name.Name
	switch {
	case p.isWord(kw.Of):
		p.unsupported(p.here(), "CREATE TABLE … OF", "Name the columns.")
	case p.isWord(kw.Partition):
		p.unsupported(p.here(), "CREATE TABLE … PARTITION OF", "percodb splits tables into ranges by itself.")
	case p.is('(') && p.namesOnly():
		c.AsColumns = p.columnList()
	case p.is('('):
		p.tableElements(c)
	}
	elements := c.Columns != nil || c.Constraints != nil || p.toks[p.pos-1].kind == ')' && c.AsColumns == nil
	p.tableOptions(c)
	if elements {
		return c
	}
	p.expectWord(kw.As)
	if p.isWord(kw.Execute) {
		p.unsupported(p.here(), "CREATE TABLE … AS EXECUTE", "Write the query itself.")
	}
	p.requireQuery()
	c.AsQuery = p.query()
	if p.acceptWord(kw.With) {
		c.WithNoData = p.acceptWord(kw.No)
		p.expectWord(kw.Data)
	}
	return c
}

// namesOnly reports whether the parentheses hold column names without types, as in CREATE TABLE AS.
func (p *parser) namesOnly() bool {
	next := p.peek(2).kind
	return isColID(p.peek(1)) && (next == ',' || next == ')')
}

// tableOptions reads what may follow the columns.
func (p *parser) tableOptions(c *ast.CreateTable) {
	switch {
	case p.isWord(kw.Inherits):
		p.unsupported(p.here(), "Table inheritance", "Use a column that says the kind of row.")
	case p.isWord(kw.Partition):
		p.unsupported(p.here(), "PARTITION BY", "percodb splits tables into ranges by itself.")
	}
	if p.acceptWord(kw.Using) {
		p.colID()
	}
	if p.acceptWord(kw.With) {
		c.Options = p.storageOptions()
	} else if p.acceptWord(kw.Without) {
		if oids := p.colID(); oids != "oids" && p.err == nil {
			p.pos--
			p.unexpected()
		}
	}
	if p.isWord(kw.On) && p.peek(1).kw == kw.Commit {
		p.advance()
		p.advance()
		switch {
		case p.acceptWords(kw.Preserve, kw.Rows):
		case p.isWord(kw.Drop), p.isWord(kw.Delete):
			p.unsupported(p.here(), "ON COMMIT with another action than PRESERVE ROWS", "Drop or truncate the table in the transaction.")
		default:
			p.unexpected()
		}
	}
	p.tablespace()
}

// tableElements reads the columns and constraints of a table; there may be none.
func (p *parser) tableElements(c *ast.CreateTable) {
	p.expect('(')
	if p.accept(')') {
		return
	}
	for first := true; first || p.accept(','); first = false {
		switch {
		case p.isWord(kw.Like):
			p.unsupported(p.here(), "CREATE TABLE … LIKE", "Name the columns, or use CREATE TABLE … AS … WITH NO DATA.")
		case constraintWord(p.cur().kw):
			c.Constraints = append(c.Constraints, p.tableConstraint())
		default:
			c.Columns = append(c.Columns, p.columnDef())
		}
	}
	p.expect(')')
}

func constraintWord(word kw.Word) bool {
	switch word {
	case kw.Constraint, kw.Check, kw.Unique, kw.Primary, kw.Foreign, kw.Exclude:
		// EXCLUDE is no reserved word: a column may have its name.
		return true
	}
	return false
}

// tableConstraint reads [CONSTRAINT name] and a constraint on a table.
func (p *parser) tableConstraint() ast.TableConstraint {
	k := ast.TableConstraint{Pos: p.here()}
	if p.acceptWord(kw.Constraint) {
		k.Name = p.colID()
	}
	switch t := p.cur(); t.kw {
	case kw.Check:
		p.checkConstraint(&k)
	case kw.Unique, kw.Primary:
		p.keyConstraint(&k)
		if p.acceptWords(kw.Using, kw.Index) {
			k.UsingIndex = p.colID()
		} else {
			k.Columns = p.columnList()
			p.indexParameters()
		}
	case kw.Foreign:
		p.expectWords(kw.Foreign, kw.Key)
		k.Kind = ast.ForeignKey
		k.Columns = p.columnList()
		k.References = p.references()
	case kw.Exclude:
		p.unsupported(p.posOf(t), "EXCLUDE constraints", "Check for conflicts in the transaction.")
	default:
		p.unexpected()
	}
	for p.constraintAttribute(&k) {
	}
	return k
}

// keyConstraint reads UNIQUE or PRIMARY KEY.
func (p *parser) keyConstraint(k *ast.TableConstraint) {
	if p.acceptWord(kw.Unique) {
		k.Kind = ast.Unique
		p.nullsDistinct()
		return
	}
	p.expectWords(kw.Primary, kw.Key)
	k.Kind = ast.PrimaryKey
}

func (p *parser) checkConstraint(k *ast.TableConstraint) {
	p.expectWord(kw.Check)
	k.Kind = ast.Check
	p.expect('(')
	k.Check = p.expr()
	p.expect(')')
	p.acceptWords(kw.No, kw.Inherit)
}

// indexParameters reads what PostgreSQL lets one say about the index of a constraint.
func (p *parser) indexParameters() {
	if p.isWord(kw.Include) {
		p.unsupported(p.here(), "INCLUDE in a constraint", "Create a unique index with INCLUDE.")
	}
	if p.acceptWord(kw.With) {
		p.storageOptions()
	}
	if p.acceptWords(kw.Using, kw.Index) {
		p.expectWord(kw.Tablespace)
		p.colID()
	}
}

// constraintAttribute reads one attribute of a constraint and reports whether there was one.
func (p *parser) constraintAttribute(k *ast.TableConstraint) bool {
	switch {
	case p.acceptWords(kw.Not, kw.Deferrable):
	case p.acceptWord(kw.Deferrable):
		k.Deferrable = true
	case p.acceptWords(kw.Initially, kw.Immediate):
	case p.acceptWords(kw.Initially, kw.Deferred):
		k.Deferrable = true
	case p.acceptWords(kw.Not, kw.Valid):
		k.NotValid = true
	case p.acceptWords(kw.No, kw.Inherit):
	default:
		return false
	}
	return true
}

// references reads REFERENCES.
func (p *parser) references() *ast.References {
	p.expectWord(kw.References)
	r := &ast.References{Table: p.tableName()}
	if p.is('(') {
		r.Columns = p.columnList()
	}
	if p.acceptWord(kw.Match) {
		switch word := p.cur().kw; word {
		case kw.Full, kw.Simple:
			r.Match = upper(word)
			p.advance()
		case kw.Partial:
			p.unsupported(p.here(), "MATCH PARTIAL", "Use MATCH FULL or MATCH SIMPLE.")
		default:
			p.unexpected()
		}
	}
	for p.isWord(kw.On) && (p.peek(1).kw == kw.Delete || p.peek(1).kw == kw.Update) {
		p.advance()
		dst := &r.OnDelete
		if p.isWord(kw.Update) {
			dst = &r.OnUpdate
		}
		p.advance()
		if *dst != "" {
			p.pos--
			p.unexpected()
			return r
		}
		*dst = p.keyAction()
	}
	return r
}

func (p *parser) keyAction() string {
	switch {
	case p.acceptWords(kw.No, kw.Action):
		return "NO ACTION"
	case p.acceptWord(kw.Restrict):
		return "RESTRICT"
	case p.acceptWord(kw.Cascade):
		return "CASCADE"
	case p.acceptWords(kw.Set, kw.Null):
		p.refuseActionColumns()
		return "SET NULL"
	case p.acceptWords(kw.Set, kw.Default):
		p.refuseActionColumns()
		return "SET DEFAULT"
	}
	p.unexpected()
	return ""
}

func (p *parser) refuseActionColumns() {
	if p.is('(') {
		p.unsupported(p.here(), "A foreign key action on some of the columns", "Let it act on all of them.")
	}
}

// serialTypes are the names of the types that make a column draw from a sequence.
var serialTypes = map[string]string{
	"serial": "serial4", "serial4": "serial4", "bigserial": "serial8", "serial8": "serial8",
	"smallserial": "serial2", "serial2": "serial2",
}

// columnDef reads a column with its constraints.
func (p *parser) columnDef() ast.ColumnDef {
	c := ast.ColumnDef{Pos: p.here(), Name: p.colID()}
	c.Type = p.typeName()
	if len(c.Type.Name) == 1 && c.Type.Array == 0 {
		if serial := serialTypes[c.Type.Name[0]]; serial != "" {
			c.Type.Name = []string{serial}
		}
	}
	if p.isWord(kw.Compression) {
		p.advance()
		p.colLabel()
	}
	for p.columnConstraint(&c) {
	}
	return c
}

// columnConstraint reads one constraint of a column and reports whether there was one.
func (p *parser) columnConstraint(c *ast.ColumnDef) bool {
	k := ast.TableConstraint{Pos: p.here(), Columns: []string{c.Name}}
	named := p.acceptWord(kw.Constraint)
	if named {
		k.Name = p.colID()
	}
	switch t := p.cur(); {
	case p.acceptWords(kw.Not, kw.Null):
		c.NotNull = true
		p.conflictingNull(c, t)
	case p.acceptWord(kw.Null):
		c.Null = true
		p.conflictingNull(c, t)
	case t.kw == kw.Unique, t.kw == kw.Primary:
		p.keyConstraint(&k)
		p.indexParameters()
		c.Constraints = append(c.Constraints, k)
	case t.kw == kw.Check:
		p.checkConstraint(&k)
		c.Constraints = append(c.Constraints, k)
	case t.kw == kw.References:
		k.Kind = ast.ForeignKey
		k.References = p.references()
		c.Constraints = append(c.Constraints, k)
	case p.acceptWord(kw.Default):
		p.onlyOnce(c.Default != nil, t, "multiple default values specified for", c)
		c.Default = p.operators(precIs, true)
	case t.kw == kw.Generated:
		p.generated(c)
	case !named && p.acceptWord(kw.Collate):
		c.Collation = p.path()
	case !named && len(c.Constraints) > 0 && p.constraintAttribute(&c.Constraints[len(c.Constraints)-1]):
	default:
		if named {
			p.unexpected()
		}
		return false
	}
	return p.err == nil
}

func (p *parser) conflictingNull(c *ast.ColumnDef, t *token) {
	p.onlyOnce(c.NotNull && c.Null, t, "conflicting NULL/NOT NULL declarations for", c)
}

// onlyOnce refuses a clause of a column that was there before.
func (p *parser) onlyOnce(again bool, t *token, problem string, c *ast.ColumnDef) {
	if again {
		p.failAt(p.posOf(t), pgerror.SyntaxError, "%s column \"%s\" of table \"%s\"", problem, c.Name, p.relation)
	}
}

// generated reads GENERATED … AS IDENTITY and GENERATED ALWAYS AS (…) STORED.
func (p *parser) generated(c *ast.ColumnDef) {
	t := p.cur()
	p.expectWord(kw.Generated)
	always := p.acceptWord(kw.Always)
	if !always {
		p.expectWords(kw.By, kw.Default)
	}
	p.expectWord(kw.As)
	if always && p.accept('(') {
		p.onlyOnce(c.Generated != nil, t, "multiple generation clauses specified for", c)
		c.Generated = p.expr()
		p.expect(')')
		p.expectWord(kw.Stored)
		return
	}
	p.expectWord(kw.Identity)
	p.onlyOnce(c.Identity != "", t, "multiple identity specifications for", c)
	c.Identity = "BY DEFAULT"
	if always {
		c.Identity = "ALWAYS"
	}
	if p.accept('(') {
		c.Sequence = &ast.SequenceOptions{}
		for p.sequenceOption(c.Sequence) {
		}
		p.expect(')')
	}
}
