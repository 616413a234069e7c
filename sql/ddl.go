package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// create reads CREATE.
func (p *parser) create(pos ast.Pos) ast.Statement {
	orReplace := p.acceptWords(kw.Or, kw.Replace)
	if !orReplace {
		switch p.cur().kw {
		case kw.Unique, kw.Index:
			return p.createIndex(pos)
		case kw.Schema:
			return p.createSchema(pos)
		}
	}
	start := p.pos
	persistence := p.persistence()
	switch {
	case p.isWord(kw.Table) && !orReplace:
		return p.createTable(pos, persistence)
	case p.isWord(kw.Sequence) && !orReplace:
		return p.createSequence(pos, persistence)
	case p.isWord(kw.View), p.isWord(kw.Recursive):
		return p.createView(pos, orReplace, persistence)
	}
	if persistence == ast.Unlogged && p.isWord(kw.Materialized) {
		p.lacking(pos, "CREATE")
		return p.createMaterializedView(pos, true)
	}
	if p.pos != start {
		p.unexpected()
		return nil
	}
	if p.acceptObserver() {
		return p.createObserver(pos, orReplace)
	}
	return p.createObject(pos, orReplace)
}

// createObject reads CREATE of the objects that percodb does not have.
func (p *parser) createObject(pos ast.Pos, orReplace bool) ast.Statement {
	word, next := p.cur().kw, p.peek(1).kw
	p.lacking(pos, "CREATE")
	switch {
	case word == kw.Function, word == kw.Procedure:
		return p.createFunction(pos, orReplace)
	case word == kw.Trigger, word == kw.Constraint:
		return p.createTrigger(pos, orReplace)
	case word == kw.Rule:
		return p.createRule(pos, orReplace)
	case word == kw.Aggregate:
		return p.define(pos, orReplace)
	case word == kw.Transform:
		return p.createTransform(pos, orReplace)
	case word == kw.Trusted, word == kw.Procedural, word == kw.Language:
		return p.createLanguage(pos, orReplace)
	case orReplace:
	case word == kw.Operator:
		return p.createOperator(pos, false)
	case word == kw.Type:
		return p.createType(pos)
	case word == kw.Domain:
		return p.createDomain(pos)
	case word == kw.Policy:
		return p.createPolicy(pos)
	case word == kw.Event:
		return p.createEventTrigger(pos)
	case word == kw.Collation, word == kw.Text:
		return p.define(pos, false)
	case word == kw.User && next == kw.Mapping:
		return p.userMapping(pos, false)
	case word == kw.Role, word == kw.User, word == kw.Group:
		return p.createRole(pos)
	case word == kw.Foreign && next == kw.Table:
		return p.createForeignTable(pos)
	default:
		return p.createStored(pos, word)
	}
	p.unexpected()
	return nil
}

// createStored reads CREATE of the objects that have neither OR REPLACE nor a form in common with others.
func (p *parser) createStored(pos ast.Pos, word kw.Word) ast.Statement {
	switch word {
	case kw.Foreign:
		return p.dataWrapper(pos, false)
	case kw.Server:
		return p.server(pos, false)
	case kw.Extension:
		return p.createExtension(pos)
	case kw.Publication:
		return p.createPublication(pos)
	case kw.Subscription:
		return p.createSubscription(pos)
	case kw.Materialized:
		return p.createMaterializedView(pos, false)
	case kw.Database:
		return p.createDatabase(pos)
	case kw.Tablespace:
		return p.createTablespace(pos)
	case kw.Cast:
		return p.createCast(pos)
	case kw.Conversion, kw.Default:
		return p.createConversion(pos)
	case kw.Access:
		return p.createAccessMethod(pos)
	case kw.Statistics:
		return p.createStatistics(pos)
	}
	p.unexpected()
	return nil
}

func (p *parser) ifNotExists() bool {
	if !p.acceptWords(kw.If, kw.Not) {
		return false
	}
	p.expectWord(kw.Exists)
	return true
}

func (p *parser) ifExists() bool {
	if !p.isWord(kw.If) || p.peek(1).kw != kw.Exists {
		return false
	}
	p.advance()
	p.advance()
	return true
}

// cascade reads [CASCADE|RESTRICT].
func (p *parser) cascade() bool {
	if p.acceptWord(kw.Cascade) {
		return true
	}
	p.acceptWord(kw.Restrict)
	return false
}

// storageOptions reads (name [= value], …).
func (p *parser) storageOptions() []ast.StorageOption {
	p.expect('(')
	var list []ast.StorageOption
	for first := true; first || p.accept(','); first = false {
		o := ast.StorageOption{Name: p.colLabel()}
		if p.accept('.') {
			o.Name += "." + p.colLabel()
		}
		if p.acceptOp('=') {
			start := p.cur().start
			o.Value = p.optionValue()
			o.Written = p.textSince(start)
		}
		list = append(list, o)
	}
	p.expect(')')
	return list
}

// optionValue reads a word, number or string as text.
func (p *parser) optionValue() string {
	t := p.cur()
	switch {
	case isString(t):
		return p.stringLit()
	case isColLabel(t):
		return p.colLabel()
	case t.kind == tokOp && p.peek(1).kind != tokLiteral:
		return p.symbol()
	}
	return p.signedNumber()
}

// signedNumber reads a number with an optional sign as text.
func (p *parser) signedNumber() string {
	sign := ""
	if p.acceptOp('-') {
		sign = "-"
	} else {
		p.acceptOp('+')
	}
	t := p.cur()
	if t.kind != tokLiteral || t.sub != styleNumber {
		p.unexpected()
		return ""
	}
	p.advance()
	return sign + p.literalValue(t)
}

// createIndex reads CREATE [UNIQUE] INDEX.
func (p *parser) createIndex(pos ast.Pos) ast.Statement {
	c := &ast.CreateIndex{Pos: pos, Unique: p.acceptWord(kw.Unique)}
	p.expectWord(kw.Index)
	c.Concurrently = p.acceptWord(kw.Concurrently)
	c.IfNotExists = p.ifNotExists()
	if !p.isWord(kw.On) {
		c.Name = p.colID()
	} else if c.IfNotExists {
		p.unexpected()
	}
	p.expectWord(kw.On)
	r := p.relationName()
	c.Only, c.Table = r.Only, r.TableName
	if p.acceptWord(kw.Using) {
		c.Method = p.colID()
	}
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		c.Columns = append(c.Columns, p.indexColumn())
	}
	p.expect(')')
	if p.acceptWord(kw.Include) {
		c.Include = p.includedColumns()
	}
	c.Nulls, c.NotNulls = p.nullsDistinct()
	if p.acceptWord(kw.With) {
		c.Options = p.storageOptions()
	}
	c.Tablespace = p.tablespace()
	if p.acceptWord(kw.Where) {
		c.Where = p.expr()
	}
	return c
}

// includedColumns reads INCLUDE's list, where PostgreSQL's grammar takes what it takes for a key.
func (p *parser) includedColumns() []ast.IndexColumn {
	p.expect('(')
	var columns []ast.IndexColumn
	for first := true; first || p.accept(','); first = false {
		c := p.indexColumn()
		if c.Expr != nil || c.Collation != nil || c.OpClass != nil || c.Desc || c.NullsFirst {
			p.notYet(c.Pos, "Anything but a column's name in INCLUDE", "Make it a key of the index.")
		}
		columns = append(columns, c)
	}
	p.expect(')')
	return columns
}

// nullsDistinct reads NULLS [NOT] DISTINCT, if it is there.
func (p *parser) nullsDistinct() (written, not bool) {
	if !p.isWord(kw.Nulls) {
		return false, false
	}
	p.advance()
	not = p.acceptWord(kw.Not)
	p.expectWord(kw.Distinct)
	return true, not
}

// tablespace reads TABLESPACE name, which has no meaning here, if it is there.
func (p *parser) tablespace() string {
	if !p.acceptWord(kw.Tablespace) {
		return ""
	}
	return p.colID()
}

// indexKey reads a column or an expression, and its collation.
func (p *parser) indexKey() ast.IndexColumn {
	c := ast.IndexColumn{Pos: p.here()}
	parens := p.is('(')
	x, isName := p.indexExpr()
	if ref, ok := x.(*ast.ColumnRef); isName && ok {
		c.Name = ref.Parts[0]
	} else {
		c.Expr, c.Call = x, !parens
	}
	if p.acceptWord(kw.Collate) {
		c.Collation = p.path()
	}
	return c
}

func (p *parser) indexColumn() ast.IndexColumn {
	c := p.indexKey()
	if isColID(p.cur()) && !p.isWord(kw.Asc) && !p.isWord(kw.Desc) && !p.isWord(kw.Nulls) {
		c.OpClass = p.path()
		if p.is('(') {
			p.notYet(p.here(), "An operator class with parameters", "Leave the parameters out.")
			c.Options = p.storageOptions()
		}
	}
	if c.Desc = p.acceptWord(kw.Desc); !c.Desc {
		c.Asc = p.acceptWord(kw.Asc)
	}
	c.NullsFirst = c.Desc
	if c.Nulls = p.isWord(kw.Nulls) && p.peek(1).kw != kw.Not && p.peek(1).kw != kw.Distinct; c.Nulls {
		p.advance()
		if c.NullsFirst = p.acceptWord(kw.First); !c.NullsFirst {
			p.expectWord(kw.Last)
		}
	}
	return c
}

// createView reads CREATE VIEW.
func (p *parser) createView(pos ast.Pos, orReplace bool, persistence ast.Persistence) ast.Statement {
	c := &ast.CreateView{Pos: pos, OrReplace: orReplace, Persistence: persistence}
	c.Recursive = p.acceptWord(kw.Recursive)
	p.expectWord(kw.View)
	c.Name = p.tableName()
	if p.is('(') || c.Recursive {
		c.Columns = p.columnList()
	}
	if p.acceptWord(kw.With) {
		c.Options = p.storageOptions()
	}
	p.expectWord(kw.As)
	start := p.cur().start
	p.requireQuery()
	c.Query = p.query()
	c.Text = p.textSince(start)
	if pos := p.here(); p.acceptWord(kw.With) {
		if c.Recursive {
			p.notYet(pos, "WITH CHECK OPTION of a recursive view", "Its rows cannot be changed.")
		}
		if c.CheckOption = "CASCADED"; p.acceptWord(kw.Local) {
			c.CheckOption = "LOCAL"
		} else {
			p.acceptWord(kw.Cascaded)
		}
		p.expectWords(kw.Check, kw.Option)
	}
	return c
}

// requireQuery refuses what does not begin a query.
func (p *parser) requireQuery() {
	if !p.is('(') && !queryWord(p.toks, p.pos) {
		p.unexpected()
	}
}

// textSince is the statement's text from an offset to the last token read.
func (p *parser) textSince(start int32) string {
	if p.err != nil || p.pos == 0 {
		return ""
	}
	return p.text[start:p.toks[p.pos-1].end]
}

func (p *parser) createSequence(pos ast.Pos, persistence ast.Persistence) ast.Statement {
	p.expectWord(kw.Sequence)
	c := &ast.CreateSequence{Pos: pos, Persistence: persistence, IfNotExists: p.ifNotExists()}
	c.Name = p.tableName()
	for p.sequenceOption(&c.SequenceOptions) {
	}
	return c
}

// sequenceOption reads one option of a sequence and reports whether there was one.
func (p *parser) sequenceOption(o *ast.SequenceOptions) bool {
	broken := false
	number := func(noise kw.Word) *int64 {
		if noise != kw.None {
			p.acceptWord(noise)
		}
		pos, at := p.here(), p.cur()
		if p.isOp('-') || p.isOp('+') {
			at = p.peek(1)
		}
		if at.kind == tokLiteral && at.lit == ast.LiteralNumeric {
			p.later(pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type bigint: \"%s\"", p.signedNumber()).At(int(pos)))
			broken = true
			return nil
		}
		n := p.intLit()
		return &n
	}
	t := p.cur()
	repeated, option := false, upper(t.kw)
	p.advance()
	before := *o
	switch t.kw {
	case kw.As:
		typ := p.typeName()
		repeated, o.Type = o.Type != nil, &typ
	case kw.Increment:
		repeated, o.Increment = o.Increment != nil, number(kw.By)
	case kw.Minvalue:
		repeated, o.Min = o.Min != nil || o.NoMin, number(kw.None)
	case kw.Maxvalue:
		repeated, o.Max = o.Max != nil || o.NoMax, number(kw.None)
	case kw.Start:
		repeated, o.Start = o.Start != nil, number(kw.With)
	case kw.Cache:
		repeated, o.Cache = o.Cache != nil, number(kw.None)
	case kw.Cycle:
		repeated, o.Cycle = o.Cycle || o.NoCycle, true
	case kw.Owned:
		p.expectWord(kw.By)
		repeated, o.OwnedBy = o.OwnedBy != nil, p.path()
	case kw.Sequence:
		p.expectWord(kw.Name)
		repeated, option, o.Name = o.Name != nil, "NAME", p.path()
	case kw.No:
		option = upper(p.cur().kw)
		repeated = p.sequenceNo(o)
	case kw.Restart:
		repeated, o.Restart = o.Restart, true
		if p.isWord(kw.With) || p.isOp('-') || p.is(tokLiteral) {
			o.RestartWith = number(kw.With)
		}
	default:
		if t.kind != tokEOF {
			p.pos--
		}
		return false
	}
	if repeated {
		p.later(pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(int(p.posOf(t))))
	}
	if repeated || broken {
		*o, option = before, p.textSince(t.start)
	}
	o.Order = append(o.Order, option)
	return p.err == nil
}

// sequenceNo reads what follows NO and reports whether it was said before.
func (p *parser) sequenceNo(o *ast.SequenceOptions) (repeated bool) {
	switch {
	case p.acceptWord(kw.Minvalue):
		repeated, o.NoMin = o.NoMin || o.Min != nil, true
	case p.acceptWord(kw.Maxvalue):
		repeated, o.NoMax = o.NoMax || o.Max != nil, true
	case p.acceptWord(kw.Cycle):
		repeated, o.NoCycle = o.Cycle || o.NoCycle, true
	default:
		p.unexpected()
	}
	return repeated
}

func (p *parser) createSchema(pos ast.Pos) ast.Statement {
	p.expectWord(kw.Schema)
	c := &ast.CreateSchema{Pos: pos, IfNotExists: p.ifNotExists()}
	if !p.isWord(kw.Authorization) {
		c.Name = p.colID()
	}
	if p.acceptWord(kw.Authorization) {
		role := p.role()
		c.Owner = &role
		if c.Unnamed = c.Name == ""; c.Unnamed {
			c.Name = role.Name
		}
	} else if c.Name == "" {
		p.unexpected()
	}
	p.schemaElements(c)
	return c
}

// schemaElements reads the objects that CREATE SCHEMA makes.
func (p *parser) schemaElements(c *ast.CreateSchema) {
	for p.err == nil && (p.isWord(kw.Create) || p.isWord(kw.Grant)) {
		st := p.utility()
		switch st.(type) {
		case *ast.CreateTable, *ast.CreateIndex, *ast.CreateSequence, *ast.CreateTrigger, *ast.Grant, *ast.CreateView, nil:
		default:
			p.unexpected()
		}
		c.Elements = append(c.Elements, st)
	}
}

// dropKinds are the objects DROP knows.
var dropKinds = map[kw.Word]bool{kw.Table: true, kw.Index: true, kw.View: true, kw.Sequence: true, kw.Schema: true}

// drop reads DROP.
func (p *parser) drop(pos ast.Pos) ast.Statement {
	if p.acceptObserver() {
		return p.dropObserver(pos)
	}
	kind := p.cur().kw
	materialized := kind == kw.Materialized && p.peek(1).kw == kw.View
	if !dropKinds[kind] && !materialized {
		return p.dropObjects(pos)
	}
	p.advance()
	d := &ast.Drop{Pos: pos, Kind: upper(kind)}
	if materialized {
		p.advance()
		d.Kind = "MATERIALIZED VIEW"
	}
	d.Concurrently = kind == kw.Index && p.acceptWord(kw.Concurrently)
	d.IfExists = p.ifExists()
	if kind == kw.Schema {
		for first := true; first || p.accept(','); first = false {
			d.Names = append(d.Names, ast.TableName{Pos: p.here(), Name: p.colID()})
		}
	} else {
		d.Names = p.tableNames()
	}
	d.Cascade = p.cascade()
	return d
}

// truncate reads TRUNCATE.
func (p *parser) truncate(pos ast.Pos) ast.Statement {
	p.acceptWord(kw.Table)
	t := &ast.Truncate{Pos: pos}
	t.Tables = p.relationNames()
	if !p.acceptWords(kw.Continue, kw.Identity) {
		t.RestartIdentity = p.acceptWords(kw.Restart, kw.Identity)
	}
	t.Cascade = p.cascade()
	return t
}

// boolOption reads an option's value as a Boolean; an option without a value is on.
func (p *parser) boolOption(pos ast.Pos, name, value string) bool {
	switch strings.ToLower(value) {
	case "", "true", "on", "1":
		return true
	case "false", "off", "0":
		return false
	}
	p.later(pgerror.New(pgerror.SyntaxError, "%s requires a Boolean value", name).At(int(pos)))
	return false
}
