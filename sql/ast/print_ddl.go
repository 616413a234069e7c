package ast

// ddl writes the statements that change the schema.
func (p *printer) ddl(s Statement) {
	switch s := s.(type) {
	case *CreateTable:
		p.createTable(s)
	case *CreateIndex:
		p.createIndex(s)
	case *CreateView:
		p.createView(s)
	case *CreateSequence:
		p.str("CREATE ")
		p.persistence(s.Persistence)
		p.str("SEQUENCE ")
		p.when(s.IfNotExists, "IF NOT EXISTS ")
		p.tableName(s.Name)
		p.sequence(&s.SequenceOptions, " ")
	case *CreateSchema:
		p.createSchema(s)
	case *Drop:
		p.str("DROP " + s.Kind + " ")
		p.when(s.Concurrently, "CONCURRENTLY ")
		p.when(s.IfExists, "IF EXISTS ")
		p.tableNames(s.Names)
		p.when(s.Cascade, " CASCADE")
	case *MoveAll:
		p.str("ALTER " + s.Kind + " ALL IN TABLESPACE ")
		p.ident(s.From)
		if s.Owners != nil {
			p.str(" OWNED BY ")
			p.roles(s.Owners)
		}
		p.str(" SET TABLESPACE ")
		p.ident(s.To)
		p.when(s.NoWait, " NOWAIT")
	case *AlterTable:
		p.str("ALTER " + s.Kind + " ")
		p.when(s.IfExists, "IF EXISTS ")
		p.when(s.Only, "ONLY ")
		p.tableName(s.Name)
		for i, c := range s.Commands {
			p.when(i > 0, ",")
			p.str(" ")
			p.command(c)
		}
	case *Truncate:
		p.str("TRUNCATE ")
		p.relations(s.Tables)
		p.when(s.RestartIdentity, " RESTART IDENTITY")
		p.when(s.Cascade, " CASCADE")
	}
}

func (p *printer) createTable(s *CreateTable) {
	start := "CREATE "
	if s.Persistence != "" {
		start += string(s.Persistence) + " "
	}
	p.tableLike(start+"TABLE ", s)
}

// tableLike writes CREATE TABLE with its first words given.
func (p *printer) tableLike(start string, s *CreateTable) {
	p.str(start)
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.tableName(s.Name)
	switch {
	case s.OfType != nil:
		p.str(" OF ")
		p.typeName(s.OfType)
	case s.Parent != nil:
		p.str(" PARTITION OF ")
		p.tableName(*s.Parent)
	}
	if s.Elements {
		p.tableElements(s)
	} else {
		p.columns(s.AsColumns)
	}
	if s.Bound != nil {
		p.str(" ")
		p.partitionBound(s.Bound)
	}
	if len(s.Inherits) > 0 {
		p.str(" INHERITS (")
		p.tableNames(s.Inherits)
		p.str(")")
	}
	if s.Partition != nil {
		p.partitionBy(s.Partition)
	}
	p.tableOptions(s)
	switch {
	case s.AsQuery != nil:
		p.str(" AS ")
		p.query(s.AsQuery)
	case s.AsExecute != nil:
		p.str(" AS ")
		p.statement(s.AsExecute)
	}
	p.when(s.WithNoData, " WITH NO DATA")
	p.when(s.WithData, " WITH DATA")
}

// tableElements writes the columns and constraints of a table in their order.
func (p *printer) tableElements(s *CreateTable) {
	if len(s.Order) == 0 {
		p.when(s.OfType == nil && s.Parent == nil, " ()")
		return
	}
	p.str(" (")
	var c, k, l int
	for i, kind := range s.Order {
		p.when(i > 0, ", ")
		switch kind {
		case 'c':
			p.columnDef(&s.Columns[c])
			c++
		case 'k':
			p.constraint(&s.Constraints[k], false)
			k++
		default:
			p.str("LIKE ")
			p.tableName(s.Likes[l].Table)
			for _, option := range s.Likes[l].Options {
				p.str(" " + option)
			}
			l++
		}
	}
	p.str(")")
}

func (p *printer) tableOptions(s *CreateTable) {
	if s.Method != "" {
		p.str(" USING ")
		p.ident(s.Method)
	}
	if len(s.Options) > 0 {
		p.str(" WITH ")
		p.options(s.Options, "=")
	}
	p.when(s.OnCommit != "", " ON COMMIT "+s.OnCommit)
	p.tablespace(s.Tablespace)
}

func (p *printer) nullsDistinct(written, not bool) {
	if written {
		p.str(" NULLS ")
		p.when(not, "NOT ")
		p.str("DISTINCT")
	}
}

func (p *printer) tablespace(name string) {
	if name != "" {
		p.str(" TABLESPACE ")
		p.ident(name)
	}
}

func (p *printer) partitionBy(by *PartitionBy) {
	p.str(" PARTITION BY ")
	p.ident(by.Strategy)
	p.str(" (")
	for i := range by.Keys {
		p.when(i > 0, ", ")
		p.indexColumn(&by.Keys[i])
	}
	p.str(")")
}

func (p *printer) partitionBound(b *PartitionBound) {
	switch {
	case b.Default:
		p.str("DEFAULT")
	case b.In != nil:
		p.str("FOR VALUES IN ")
		p.parens(b.In)
	case b.From != nil:
		p.str("FOR VALUES FROM ")
		p.parens(b.From)
		p.str(" TO ")
		p.parens(b.To)
	default:
		p.str("FOR VALUES WITH (MODULUS ")
		p.int(int64(b.Modulus))
		p.str(", REMAINDER ")
		p.int(int64(b.Remainder))
		p.str(")")
	}
}

func (p *printer) columnDef(c *ColumnDef) {
	p.ident(c.Name)
	switch {
	case c.Untyped:
		p.str(" WITH OPTIONS")
	case c.TypeName != "":
		p.str(" ")
		p.ident(c.TypeName)
	default:
		p.str(" ")
		p.typeName(&c.Type)
	}
	if c.Compression != "" {
		p.str(" COMPRESSION ")
		p.ident(c.Compression)
	}
	for i := range c.Written {
		p.columnAttribute(c, &c.Written[i])
	}
}

// columnAttribute writes a constraint or attribute of a column.
func (p *printer) columnAttribute(c *ColumnDef, a *ColumnAttribute) {
	p.str(" ")
	if a.Name != "" && a.Kind != "CONSTRAINT" {
		p.str("CONSTRAINT ")
		p.ident(a.Name)
		p.str(" ")
	}
	switch a.Kind {
	case "COLLATE":
		p.str("COLLATE ")
		p.idents(c.Collation, ".")
	case "DEFAULT":
		p.str("DEFAULT ")
		p.operand(c.Default)
	case "IDENTITY":
		p.str("GENERATED " + c.Identity + " AS IDENTITY")
		if c.Sequence != nil {
			p.str(" (")
			p.sequence(c.Sequence, "")
			p.str(")")
		}
	case "GENERATED":
		p.str("GENERATED ALWAYS AS (")
		p.expr(c.Generated)
		p.str(") STORED")
	case "CONSTRAINT":
		p.constraint(&c.Constraints[a.Constraint], true)
	default:
		p.str(a.Kind)
	}
}

// constraint writes a constraint of a table or, without its columns, of a column.
func (p *printer) constraint(c *TableConstraint, ofColumn bool) {
	if c.Name != "" {
		p.str("CONSTRAINT ")
		p.ident(c.Name)
		p.str(" ")
	}
	switch c.Kind {
	case PrimaryKey:
		p.str("PRIMARY KEY")
	case Unique:
		p.str("UNIQUE")
		p.nullsDistinct(c.Nulls, c.NotNulls)
	case Check:
		p.str("CHECK (")
		p.expr(c.Check)
		p.str(")")
	case ForeignKey:
		p.when(!ofColumn, "FOREIGN KEY")
	case Exclude:
		p.exclude(c)
	}
	switch {
	case c.UsingIndex != "":
		p.str(" USING INDEX ")
		p.ident(c.UsingIndex)
	case !ofColumn:
		p.columns(c.Columns)
	}
	if c.References != nil {
		p.when(!ofColumn, " ")
		p.references(c.References)
	}
	p.indexParameters(c)
	if c.Where != nil {
		p.str(" WHERE (")
		p.expr(c.Where)
		p.str(")")
	}
	for _, attribute := range c.Attributes {
		p.str(" " + attribute)
	}
}

func (p *printer) exclude(c *TableConstraint) {
	p.str("EXCLUDE")
	if c.Method != "" {
		p.str(" USING ")
		p.ident(c.Method)
	}
	p.str(" (")
	for i := range c.Exclude {
		p.when(i > 0, ", ")
		p.indexColumn(&c.Exclude[i].IndexColumn)
		p.str(" WITH ")
		p.operator(c.Exclude[i].Operator, c.Exclude[i].Qualified)
	}
	p.str(")")
}

// included writes INCLUDE's list, if there is one.
func (p *printer) included(columns []IndexColumn) {
	for i := range columns {
		p.when(i == 0, " INCLUDE (")
		p.when(i > 0, ", ")
		p.indexColumn(&columns[i])
	}
	p.when(len(columns) > 0, ")")
}

// indexParameters writes what is said about the index of a constraint.
func (p *printer) indexParameters(c *TableConstraint) {
	p.included(c.Include)
	if len(c.Options) > 0 {
		p.str(" WITH ")
		p.options(c.Options, "=")
	}
	if c.Tablespace != "" {
		p.str(" USING INDEX TABLESPACE ")
		p.ident(c.Tablespace)
	}
}

func (p *printer) references(r *References) {
	p.str("REFERENCES ")
	p.tableName(r.Table)
	p.columns(r.Columns)
	p.when(r.Match != "", " MATCH "+r.Match)
	p.when(r.OnDelete != "", " ON DELETE "+r.OnDelete)
	p.columns(r.DeleteColumns)
	p.when(r.OnUpdate != "", " ON UPDATE "+r.OnUpdate)
	p.columns(r.UpdateColumns)
}

// sequence writes a sequence's options; before stands in front of the first.
func (p *printer) sequence(o *SequenceOptions, before string) {
	next := func(s string) {
		p.str(before + s)
		before = " "
	}
	number := func(s string, n *int64) {
		if n != nil {
			next(s + " ")
			p.int(*n)
		}
	}
	flag := func(yes bool, s string) {
		if yes {
			next(s)
		}
	}
	order := o.Order
	if order == nil {
		order = sequenceOrder
	}
	for _, option := range order {
		switch option {
		case "AS":
			if o.Type != nil {
				next("AS ")
				p.typeName(o.Type)
			}
		case "INCREMENT":
			number(option, o.Increment)
		case "MINVALUE":
			number(option, o.Min)
			flag(o.NoMin, "NO MINVALUE")
		case "MAXVALUE":
			number(option, o.Max)
			flag(o.NoMax, "NO MAXVALUE")
		case "START":
			number(option, o.Start)
		case "CACHE":
			number(option, o.Cache)
		case "CYCLE":
			flag(o.Cycle, "CYCLE")
			flag(o.NoCycle, "NO CYCLE")
		case "OWNED":
			if o.OwnedBy != nil {
				next("OWNED BY ")
				p.idents(o.OwnedBy, ".")
			}
		case "NAME":
			if o.Name != nil {
				next("SEQUENCE NAME ")
				p.idents(o.Name, ".")
			}
		case "RESTART":
			flag(o.Restart, "RESTART")
			if o.RestartWith != nil {
				p.str(" WITH ")
				p.int(*o.RestartWith)
			}
		default:
			next(option)
		}
	}
}

// sequenceOrder is the order of options that have no order of their own.
var sequenceOrder = []string{"AS", "INCREMENT", "MINVALUE", "MAXVALUE", "START", "CACHE", "CYCLE", "OWNED", "NAME", "RESTART"}

func (p *printer) persistence(x Persistence) { p.when(x != "", string(x)+" ") }

func (p *printer) createSchema(s *CreateSchema) {
	p.str("CREATE SCHEMA")
	p.when(s.IfNotExists, " IF NOT EXISTS")
	if !s.Unnamed {
		p.str(" ")
		p.ident(s.Name)
	}
	if s.Owner != nil {
		p.str(" AUTHORIZATION ")
		p.role(s.Owner)
	}
	for _, element := range s.Elements {
		p.str(" ")
		p.statement(element)
	}
}

func (p *printer) createView(s *CreateView) {
	p.str("CREATE ")
	p.when(s.OrReplace, "OR REPLACE ")
	p.persistence(s.Persistence)
	p.when(s.Recursive, "RECURSIVE ")
	p.str("VIEW ")
	p.tableName(s.Name)
	p.columns(s.Columns)
	if s.Options != nil {
		p.str(" WITH ")
		p.options(s.Options, "=")
	}
	p.str(" AS ")
	p.query(s.Query)
	p.when(s.CheckOption != "", " WITH "+s.CheckOption+" CHECK OPTION")
}

func (p *printer) createIndex(s *CreateIndex) {
	p.str("CREATE ")
	p.when(s.Unique, "UNIQUE ")
	p.str("INDEX ")
	p.when(s.Concurrently, "CONCURRENTLY ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	if s.Name != "" {
		p.ident(s.Name)
		p.str(" ")
	}
	p.str("ON ")
	p.when(s.Only, "ONLY ")
	p.tableName(s.Table)
	if s.Method != "" {
		p.str(" USING ")
		p.ident(s.Method)
	}
	p.str(" (")
	for i := range s.Columns {
		if i > 0 {
			p.str(", ")
		}
		p.indexColumn(&s.Columns[i])
	}
	p.str(")")
	p.included(s.Include)
	p.nullsDistinct(s.Nulls, s.NotNulls)
	if s.Options != nil {
		p.str(" WITH ")
		p.options(s.Options, "=")
	}
	p.tablespace(s.Tablespace)
	p.where(s.Where)
}

func (p *printer) indexColumn(c *IndexColumn) {
	if c.Expr == nil {
		p.ident(c.Name)
	} else if c.Call {
		p.expr(c.Expr)
	} else {
		p.str("(")
		p.expr(c.Expr)
		p.str(")")
	}
	if len(c.Collation) > 0 {
		p.str(" COLLATE ")
		p.idents(c.Collation, ".")
	}
	if len(c.OpClass) > 0 {
		p.str(" ")
		p.idents(c.OpClass, ".")
		if c.Options != nil {
			p.options(c.Options, "=")
		}
	}
	p.when(c.Desc, " DESC")
	p.when(c.Asc, " ASC")
	p.when(c.Nulls && c.NullsFirst, " NULLS FIRST")
	p.when(c.Nulls && !c.NullsFirst, " NULLS LAST")
}

func commandString(c AlterCommand) string {
	var p printer
	p.command(c)
	return p.String()
}

// command writes one command of ALTER TABLE.
func (p *printer) command(c AlterCommand) {
	dropped := func(what, name string, ifExists, cascade bool) {
		p.str("DROP " + what + " ")
		p.when(ifExists, "IF EXISTS ")
		p.ident(name)
		p.when(cascade, " CASCADE")
	}
	renamed := func(what, from, to string) {
		p.str("RENAME " + what + " ")
		p.ident(from)
		p.str(" TO ")
		p.ident(to)
	}
	switch c := c.(type) {
	case *AddColumn:
		p.str("ADD COLUMN ")
		p.when(c.IfNotExists, "IF NOT EXISTS ")
		p.columnDef(&c.Column)
	case *DropColumn:
		dropped("COLUMN", c.Name, c.IfExists, c.Cascade)
	case *AlterColumn:
		p.alterColumn(c)
	case *AddConstraint:
		p.str("ADD ")
		p.constraint(&c.Constraint, false)
	case *DropConstraint:
		dropped("CONSTRAINT", c.Name, c.IfExists, c.Cascade)
	case *RenameTo:
		p.str("RENAME TO ")
		p.ident(c.Name)
	case *RenameColumn:
		renamed("COLUMN", c.From, c.To)
	case *RenameConstraint:
		renamed("CONSTRAINT", c.From, c.To)
	case *SetSequence:
		p.sequence(&c.SequenceOptions, "")
	case *SetStorage:
		p.setStorage(c)
	case *TableCommand:
		p.tableCommand(c)
	}
}

func (p *printer) setStorage(c *SetStorage) {
	switch {
	case c.Column != "":
		p.str("ALTER COLUMN ")
		p.ident(c.Column)
		p.str(" ")
	case c.Number != "":
		p.str("ALTER COLUMN " + c.Number + " ")
	}
	p.str(c.Action)
	if c.Name != "" {
		p.str(" ")
		p.ident(c.Name)
	}
	p.when(c.Value != "", " "+c.Value)
	if c.Owner != nil {
		p.str(" ")
		p.role(c.Owner)
	}
	if c.Options != nil {
		p.str(" ")
		p.options(c.Options, "=")
	}
}

func (p *printer) alterColumn(c *AlterColumn) {
	p.str("ALTER COLUMN ")
	p.ident(c.Name)
	switch {
	case c.SetDefault != nil:
		p.str(" SET DEFAULT ")
		p.expr(c.SetDefault)
	case c.SetType != nil:
		p.str(" TYPE ")
		p.typeName(c.SetType)
		if c.Collation != nil {
			p.str(" COLLATE ")
			p.idents(c.Collation, ".")
		}
		if c.Using != nil {
			p.str(" USING ")
			p.expr(c.Using)
		}
	case c.DropDefault:
		p.str(" DROP DEFAULT")
	case c.SetNotNull:
		p.str(" SET NOT NULL")
	case c.DropNotNull:
		p.str(" DROP NOT NULL")
	case c.Options != nil:
		p.foreignOptions(c.Options)
	case c.Drop != "":
		p.str(" DROP " + c.Drop)
		p.when(c.IfExists, " IF EXISTS")
	case c.AddIdentity != "":
		p.str(" ADD GENERATED " + c.AddIdentity + " AS IDENTITY")
		if c.Sequence != nil {
			p.str(" (")
			p.sequence(c.Sequence, "")
			p.str(")")
		}
	}
	for _, o := range c.IdentityOptions {
		switch {
		case o.Generated != "":
			p.str(" SET GENERATED " + o.Generated)
		case o.Set:
			p.str(" SET ")
			p.sequence(o.Sequence, "")
		default:
			p.sequence(o.Sequence, " ")
		}
	}
}

func (p *printer) tableCommand(c *TableCommand) {
	if c.Action == "OPTIONS" {
		p.foreignOptions(c.Options)
		return
	}
	p.str(c.Action)
	if c.Name != "" {
		p.str(" ")
		p.ident(c.Name)
	}
	if c.Table != nil {
		p.str(" ")
		p.tableName(*c.Table)
	}
	if c.Bound != nil {
		p.str(" ")
		p.partitionBound(c.Bound)
	}
	p.when(c.Mode != "", " "+c.Mode)
	for _, attribute := range c.Attributes {
		p.str(" " + attribute)
	}
}
