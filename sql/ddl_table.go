package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// createTable reads CREATE TABLE from its TABLE on.
func (p *parser) createTable(pos ast.Pos, persistence ast.Persistence) ast.Statement {
	p.expectWord(kw.Table)
	c := &ast.CreateTable{Pos: pos, Persistence: persistence, IfNotExists: p.ifNotExists()}
	c.Name = p.tableName()
	p.relation = c.Name.Name
	switch {
	case p.isWord(kw.Of):
		p.advance()
		typ := ast.TypeName{Pos: p.here(), Name: p.path()}
		c.OfType = &typ
		if p.is('(') {
			p.typedElements(c)
		}
		c.Elements = true
	case p.isWord(kw.Partition):
		p.partitionOf(c)
		c.Elements = true
	case p.is('(') && p.namesOnly():
		c.AsColumns = p.columnList()
	case p.is('('):
		p.tableElements(c)
		c.Elements = true
	}
	p.tableOptions(c)
	if !c.Elements {
		p.createTableAs(c)
	}
	return c
}

// createTableAs reads what follows CREATE TABLE name (columns) options.
func (p *parser) createTableAs(c *ast.CreateTable) {
	p.expectWord(kw.As)
	if pos := p.here(); p.acceptWord(kw.Execute) {
		if st, ok := p.execute(pos).(*ast.Execute); ok {
			c.AsExecute = st
		}
	} else {
		p.requireQuery()
		c.AsQuery = p.query()
	}
	if p.acceptWord(kw.With) {
		c.WithNoData = p.acceptWord(kw.No)
		c.WithData = !c.WithNoData
		p.expectWord(kw.Data)
	}
}

// namesOnly reports whether the parentheses hold column names without types, as in CREATE TABLE AS.
func (p *parser) namesOnly() bool {
	next := p.peek(2).kind
	return isColID(p.peek(1)) && (next == ',' || next == ')')
}

// partitionOf reads PARTITION OF parent [(elements)] bound.
func (p *parser) partitionOf(c *ast.CreateTable) {
	p.expectWords(kw.Partition, kw.Of)
	parent := p.tableName()
	c.Parent = &parent
	if p.is('(') {
		p.typedElements(c)
	}
	c.Bound = p.partitionBound()
}

// typedElements reads the columns, which have no types, and constraints of a typed table or a partition.
func (p *parser) typedElements(c *ast.CreateTable) {
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		if constraintWord(p.cur().kw) {
			p.addConstraintTo(c)
			continue
		}
		col := ast.ColumnDef{Pos: p.here(), Name: p.colID(), Untyped: true}
		p.acceptWords(kw.With, kw.Options)
		for p.columnConstraint(&col) {
		}
		c.Columns, c.Order = append(c.Columns, col), append(c.Order, 'c')
	}
	p.expect(')')
}

func (p *parser) addConstraintTo(c *ast.CreateTable) {
	c.Constraints, c.Order = append(c.Constraints, p.tableConstraint()), append(c.Order, 'k')
}

// partitionBound reads FOR VALUES … or DEFAULT.
func (p *parser) partitionBound() *ast.PartitionBound {
	b := &ast.PartitionBound{Pos: p.here()}
	if b.Default = p.acceptWord(kw.Default); b.Default {
		return b
	}
	p.expectWords(kw.For, kw.Values)
	switch {
	case p.acceptWord(kw.In):
		b.In = p.exprParens()
	case p.acceptWord(kw.From):
		b.From = p.exprParens()
		p.expectWord(kw.To)
		b.To = p.exprParens()
	case p.acceptWord(kw.With):
		p.hashBound(b)
	default:
		p.unexpected()
	}
	return b
}

// exprParens reads (expression, …).
func (p *parser) exprParens() []ast.Expr {
	p.expect('(')
	list := p.exprList()
	p.expect(')')
	return list
}

// hashBound reads (MODULUS n, REMAINDER m).
func (p *parser) hashBound(b *ast.PartitionBound) {
	p.expect('(')
	given := map[string]bool{}
	for first := true; first || p.accept(','); first = false {
		pos := p.here()
		name := p.nonReserved()
		n := p.cur()
		if n.kind != tokLiteral || n.lit != ast.LiteralInt4 {
			p.unexpected()
			return
		}
		value := int(p.intLit())
		switch {
		case given[name]:
			p.failAt(pos, pgerror.DuplicateObject, "%s for hash partition provided more than once", name)
		case name == "modulus":
			b.Modulus = value
		case name == "remainder":
			b.Remainder = value
		default:
			p.failAt(pos, pgerror.SyntaxError, `unrecognized hash partition bound specification "%s"`, name)
		}
		given[name] = true
	}
	p.expect(')')
	switch {
	case !given["modulus"]:
		p.failAt(b.Pos, pgerror.SyntaxError, "modulus for hash partition must be specified")
	case !given["remainder"]:
		p.failAt(b.Pos, pgerror.SyntaxError, "remainder for hash partition must be specified")
	}
}

// tableOptions reads what may follow the columns.
func (p *parser) tableOptions(c *ast.CreateTable) {
	if pos := p.here(); c.Elements && c.Parent == nil && c.OfType == nil && p.acceptWord(kw.Inherits) {
		p.notYet(pos, "Table inheritance", inheritanceHint)
		p.expect('(')
		c.Inherits = p.tableNames()
		p.expect(')')
	}
	if c.Elements && p.isWord(kw.Partition) {
		c.Partition = p.partitionBy()
	}
	if p.acceptWord(kw.Using) {
		c.Method = p.colID()
	}
	if p.acceptWord(kw.With) {
		c.Options = p.storageOptions()
	} else if p.acceptWord(kw.Without) {
		if oids := p.colID(); oids != "oids" && p.err == nil {
			p.pos--
			p.unexpected()
		}
	}
	if p.acceptWords(kw.On, kw.Commit) {
		p.onCommit(c)
	}
	c.Tablespace = p.tablespace()
}

func (p *parser) onCommit(c *ast.CreateTable) {
	switch {
	case p.acceptWords(kw.Preserve, kw.Rows):
		c.OnCommit = "PRESERVE ROWS"
	case p.acceptWords(kw.Delete, kw.Rows):
		c.OnCommit = "DELETE ROWS"
	case p.acceptWord(kw.Drop):
		c.OnCommit = "DROP"
	default:
		p.unexpected()
	}
}

// partitionBy reads PARTITION BY strategy (keys).
func (p *parser) partitionBy() *ast.PartitionBy {
	by := &ast.PartitionBy{Pos: p.here()}
	p.expectWords(kw.Partition, kw.By)
	by.Strategy = p.colID()
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		by.Keys = append(by.Keys, p.partitionKey())
	}
	p.expect(')')
	return by
}

// partitionKey reads a column or expression with an optional collation and operator class.
func (p *parser) partitionKey() ast.IndexColumn {
	key := p.indexKey()
	if isColID(p.cur()) {
		key.OpClass = p.path()
	}
	return key
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
			c.Likes, c.Order = append(c.Likes, p.likeTable()), append(c.Order, 'l')
		case constraintWord(p.cur().kw):
			p.addConstraintTo(c)
		default:
			c.Columns, c.Order = append(c.Columns, p.columnDef()), append(c.Order, 'c')
		}
	}
	p.expect(')')
}

// likeTable reads LIKE table with its options.
func (p *parser) likeTable() ast.LikeTable {
	like := ast.LikeTable{Pos: p.here()}
	p.expectWord(kw.Like)
	like.Table = p.tableName()
	for p.isWord(kw.Including) || p.isWord(kw.Excluding) {
		option := upper(p.cur().kw)
		p.advance()
		switch word := p.cur().kw; word {
		case kw.Comments, kw.Compression, kw.Constraints, kw.Defaults, kw.Identity, kw.Generated, kw.Indexes, kw.Statistics,
			kw.Storage, kw.All:
			p.advance()
			like.Options = append(like.Options, option+" "+upper(word))
		default:
			p.unexpected()
			return like
		}
	}
	return like
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
		if k.Kind == ast.PrimaryKey || !k.Nulls {
			if p.acceptWords(kw.Using, kw.Index) {
				k.UsingIndex = p.colID()
				break
			}
		}
		k.Columns = p.columnList()
		p.indexParameters(&k, true)
	case kw.Foreign:
		p.expectWords(kw.Foreign, kw.Key)
		k.Kind = ast.ForeignKey
		k.Columns = p.columnList()
		k.References = p.references()
	case kw.Exclude:
		p.excludeConstraint(&k)
	default:
		p.unexpected()
	}
	for p.constraintAttribute(&k) {
	}
	return k
}

// excludeConstraint reads EXCLUDE [USING method] (element WITH operator, …) with what may follow.
func (p *parser) excludeConstraint(k *ast.TableConstraint) {
	p.expectWord(kw.Exclude)
	k.Kind = ast.Exclude
	if p.acceptWord(kw.Using) {
		k.Method = p.colID()
	}
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		e := ast.ExcludeElement{IndexColumn: p.indexColumn()}
		p.expectWord(kw.With)
		e.Operator, e.Qualified = p.operatorName()
		k.Exclude = append(k.Exclude, e)
	}
	p.expect(')')
	p.indexParameters(k, true)
	if p.acceptWord(kw.Where) {
		p.expect('(')
		k.Where = p.expr()
		p.expect(')')
	}
}

// keyConstraint reads UNIQUE [NULLS [NOT] DISTINCT] or PRIMARY KEY.
func (p *parser) keyConstraint(k *ast.TableConstraint) {
	if p.acceptWord(kw.Unique) {
		k.Kind = ast.Unique
		k.Nulls, k.NotNulls = p.nullsDistinct()
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
}

// indexParameters reads what PostgreSQL lets one say about the index of a constraint; INCLUDE of those on tables only.
func (p *parser) indexParameters(k *ast.TableConstraint, ofTable bool) {
	if ofTable && p.acceptWord(kw.Include) {
		p.expect('(')
		for first := true; first || p.accept(','); first = false {
			k.Include = append(k.Include, ast.IndexColumn{Pos: p.here(), Name: p.colID()})
		}
		p.expect(')')
	}
	if p.acceptWord(kw.With) {
		k.Options = p.storageOptions()
	}
	if p.acceptWords(kw.Using, kw.Index) {
		p.expectWord(kw.Tablespace)
		k.Tablespace = p.colID()
	}
}

// constraintAttribute reads one attribute of a constraint and reports whether there was one.
func (p *parser) constraintAttribute(k *ast.TableConstraint) bool {
	switch {
	case p.acceptWords(kw.Not, kw.Deferrable):
		k.Attributes = append(k.Attributes, "NOT DEFERRABLE")
	case p.acceptWord(kw.Deferrable):
		k.Deferrable = true
		k.Attributes = append(k.Attributes, "DEFERRABLE")
	case p.acceptWords(kw.Initially, kw.Immediate):
		k.Attributes = append(k.Attributes, "INITIALLY IMMEDIATE")
	case p.acceptWords(kw.Initially, kw.Deferred):
		k.Deferrable, k.Deferred = true, true
		k.Attributes = append(k.Attributes, "INITIALLY DEFERRED")
	case p.acceptWords(kw.Not, kw.Valid):
		k.NotValid = true
		k.Attributes = append(k.Attributes, "NOT VALID")
	case p.acceptWords(kw.No, kw.Inherit):
		k.Attributes = append(k.Attributes, "NO INHERIT")
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
			p.failAt(p.here(), pgerror.FeatureNotSupported, "MATCH PARTIAL not yet implemented")
		default:
			p.unexpected()
		}
	}
	on := ast.Pos(0)
	for p.isWord(kw.On) && (p.peek(1).kw == kw.Delete || p.peek(1).kw == kw.Update) {
		on = p.here()
		p.advance()
		dst, columns := &r.OnDelete, &r.DeleteColumns
		if p.isWord(kw.Update) {
			dst, columns = &r.OnUpdate, &r.UpdateColumns
		}
		p.advance()
		if *dst != "" {
			p.pos--
			p.unexpected()
			return r
		}
		*dst = p.keyAction(columns)
		if r.UpdateColumns != nil {
			p.failAt(on, pgerror.FeatureNotSupported, "a column list with %s is only supported for ON DELETE actions", r.OnUpdate)
		}
	}
	return r
}

func (p *parser) keyAction(columns *[]string) string {
	switch {
	case p.acceptWords(kw.No, kw.Action):
		return "NO ACTION"
	case p.acceptWord(kw.Restrict):
		return "RESTRICT"
	case p.acceptWord(kw.Cascade):
		return "CASCADE"
	case p.acceptWords(kw.Set, kw.Null):
		*columns = p.actionColumns()
		return "SET NULL"
	case p.acceptWords(kw.Set, kw.Default):
		*columns = p.actionColumns()
		return "SET DEFAULT"
	}
	p.unexpected()
	return ""
}

// actionColumns reads the columns that SET NULL or SET DEFAULT acts on, if they are named.
func (p *parser) actionColumns() []string {
	if !p.is('(') {
		return nil
	}
	return p.columnList()
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
			c.TypeName, c.Type.Name = c.Type.Name[0], []string{serial}
		}
	}
	if p.acceptWord(kw.Compression) {
		if c.Compression = "default"; !p.acceptWord(kw.Default) {
			c.Compression = p.colID()
		}
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
	written := func(kind string) {
		c.Written = append(c.Written, ast.ColumnAttribute{Name: k.Name, Kind: kind, Constraint: len(c.Constraints) - 1})
	}
	add := func() {
		c.Constraints = append(c.Constraints, k)
		written("CONSTRAINT")
	}
	switch t := p.cur(); {
	case p.acceptWords(kw.Not, kw.Null):
		c.NotNull = true
		p.conflictingNull(c, t)
		written("NOT NULL")
	case p.acceptWord(kw.Null):
		c.Null = true
		p.conflictingNull(c, t)
		written("NULL")
	case t.kw == kw.Unique, t.kw == kw.Primary:
		p.keyConstraint(&k)
		p.indexParameters(&k, false)
		add()
	case t.kw == kw.Check:
		p.checkConstraint(&k)
		if p.acceptWords(kw.No, kw.Inherit) {
			k.Attributes = []string{"NO INHERIT"}
		}
		add()
	case t.kw == kw.References:
		k.Kind = ast.ForeignKey
		k.References = p.references()
		add()
	case p.acceptWord(kw.Default):
		x := p.operators(precIs, true)
		if p.repeated(c.Default != nil, t, "multiple default values specified for", c) {
			written(p.textSince(t.start))
			break
		}
		c.Default = x
		written("DEFAULT")
	case t.kw == kw.Generated:
		written(p.generated(c))
	case !named && p.isWord(kw.Collate):
		c.CollateAt = p.here()
		p.advance()
		c.Collation = p.path()
		written("COLLATE")
	case !named && p.columnAttribute(c):
	default:
		if named {
			p.unexpected()
		}
		return false
	}
	return p.err == nil
}

// columnAttribute reads an attribute of the constraint before it and reports whether there was one.
func (p *parser) columnAttribute(c *ast.ColumnDef) bool {
	if p.isWord(kw.No) || p.isWord(kw.Not) && p.peek(1).kw == kw.Valid {
		return false
	}
	k := &ast.TableConstraint{}
	if n := len(c.Constraints); n > 0 {
		k = &c.Constraints[n-1]
	}
	if !p.constraintAttribute(k) {
		return false
	}
	last := len(k.Attributes) - 1
	c.Written = append(c.Written, ast.ColumnAttribute{Kind: k.Attributes[last]})
	k.Attributes = k.Attributes[:last]
	return true
}

func (p *parser) conflictingNull(c *ast.ColumnDef, t *token) {
	p.repeated(c.NotNull && c.Null, t, "conflicting NULL/NOT NULL declarations for", c)
}

// repeated reports whether a column has a clause a second time, which is an error behind the grammar.
func (p *parser) repeated(again bool, t *token, problem string, c *ast.ColumnDef) bool {
	if again {
		p.later(pgerror.New(pgerror.SyntaxError, "%s column \"%s\" of table \"%s\"", problem, c.Name, p.relation).At(int(p.posOf(t))))
	}
	return again
}

// generated reads GENERATED … AS IDENTITY and GENERATED ALWAYS AS (…) STORED, and says which it is, or gives its text if it
// was there before.
func (p *parser) generated(c *ast.ColumnDef) string {
	t := p.cur()
	p.expectWord(kw.Generated)
	always := p.acceptWord(kw.Always)
	if !always {
		p.expectWords(kw.By, kw.Default)
	}
	p.expectWord(kw.As)
	if always && p.accept('(') {
		x := p.expr()
		p.expect(')')
		p.expectWord(kw.Stored)
		if p.repeated(c.Generated != nil, t, "multiple generation clauses specified for", c) {
			return p.textSince(t.start)
		}
		c.Generated = x
		return "GENERATED"
	}
	p.expectWord(kw.Identity)
	var options *ast.SequenceOptions
	if p.accept('(') {
		options = &ast.SequenceOptions{}
		for p.sequenceOption(options) {
		}
		p.expect(')')
	}
	if p.repeated(c.Identity != "", t, "multiple identity specifications for", c) {
		return p.textSince(t.start)
	}
	c.Sequence, c.Identity = options, "BY DEFAULT"
	if always {
		c.Identity = "ALWAYS"
	}
	return "IDENTITY"
}
