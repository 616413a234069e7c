package ast

// ddl writes the statements that change the schema.
func (p *printer) ddl(s Statement) {
	switch s := s.(type) {
	case *CreateTable:
		p.createTable(s)
	case *CreateIndex:
		p.createIndex(s)
	case *CreateView:
		p.str("CREATE ")
		p.when(s.OrReplace, "OR REPLACE ")
		p.str("VIEW ")
		p.tableName(s.Name)
		p.columns(s.Columns)
		p.str(" AS ")
		p.query(s.Query)
	case *CreateSequence:
		p.str("CREATE SEQUENCE ")
		p.when(s.IfNotExists, "IF NOT EXISTS ")
		p.tableName(s.Name)
		p.sequence(&s.SequenceOptions, " ")
	case *CreateSchema:
		p.str("CREATE SCHEMA ")
		p.when(s.IfNotExists, "IF NOT EXISTS ")
		p.ident(s.Name)
	case *Drop:
		p.str("DROP " + s.Kind + " ")
		p.when(s.Concurrently, "CONCURRENTLY ")
		p.when(s.IfExists, "IF EXISTS ")
		p.tableNames(s.Names)
		p.when(s.Cascade, " CASCADE")
	case *AlterTable:
		p.str("ALTER " + s.Kind + " ")
		p.when(s.IfExists, "IF EXISTS ")
		p.tableName(s.Name)
		for i, c := range s.Commands {
			p.when(i > 0, ",")
			p.str(" ")
			p.command(c)
		}
	case *Truncate:
		p.str("TRUNCATE ")
		p.tableNames(s.Tables)
		p.when(s.RestartIdentity, " RESTART IDENTITY")
		p.when(s.Cascade, " CASCADE")
	case *Comment:
		p.comment(s)
	}
}

func (p *printer) comment(s *Comment) {
	p.str("COMMENT ON " + s.Kind + " ")
	if s.Kind == "CONSTRAINT" {
		last := len(s.Name) - 1
		p.ident(s.Name[last])
		p.str(" ON ")
		p.idents(s.Name[:last], ".")
	} else {
		p.idents(s.Name, ".")
	}
	if s.Text == nil {
		p.str(" IS NULL")
		return
	}
	p.str(" IS ")
	p.quoted(*s.Text)
}

func (p *printer) createTable(s *CreateTable) {
	p.str("CREATE ")
	p.when(s.Temporary, "TEMPORARY ")
	p.str("TABLE ")
	p.when(s.IfNotExists, "IF NOT EXISTS ")
	p.tableName(s.Name)
	if s.AsQuery == nil {
		p.str(" (")
		for i := range s.Columns {
			if i > 0 {
				p.str(", ")
			}
			p.columnDef(&s.Columns[i])
		}
		for i := range s.Constraints {
			if i > 0 || len(s.Columns) > 0 {
				p.str(", ")
			}
			p.constraint(&s.Constraints[i], false)
		}
		p.str(")")
	} else {
		p.columns(s.AsColumns)
	}
	if len(s.Options) > 0 {
		p.str(" WITH ")
		p.options(s.Options, "=")
	}
	if s.AsQuery != nil {
		p.str(" AS ")
		p.query(s.AsQuery)
		p.when(s.WithNoData, " WITH NO DATA")
	}
}

func (p *printer) columnDef(c *ColumnDef) {
	p.ident(c.Name)
	p.str(" ")
	p.typeName(&c.Type)
	if len(c.Collation) > 0 {
		p.str(" COLLATE ")
		p.idents(c.Collation, ".")
	}
	p.when(c.NotNull, " NOT NULL")
	p.when(c.Null, " NULL")
	if c.Default != nil {
		p.str(" DEFAULT ")
		p.operand(c.Default)
	}
	if c.Identity != "" {
		p.str(" GENERATED " + c.Identity + " AS IDENTITY")
		if c.Sequence != nil {
			p.str(" (")
			p.sequence(c.Sequence, "")
			p.str(")")
		}
	}
	if c.Generated != nil {
		p.str(" GENERATED ALWAYS AS (")
		p.expr(c.Generated)
		p.str(") STORED")
	}
	for i := range c.Constraints {
		p.str(" ")
		p.constraint(&c.Constraints[i], true)
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
	case Check:
		p.str("CHECK (")
		p.expr(c.Check)
		p.str(")")
	case ForeignKey:
		p.when(!ofColumn, "FOREIGN KEY")
	}
	if c.UsingIndex != "" {
		p.str(" USING INDEX ")
		p.ident(c.UsingIndex)
	} else if !ofColumn {
		p.columns(c.Columns)
	}
	if c.References != nil {
		p.when(!ofColumn, " ")
		p.references(c.References)
	}
	p.when(c.Deferrable, " DEFERRABLE")
	p.when(c.NotValid, " NOT VALID")
}

func (p *printer) references(r *References) {
	p.str("REFERENCES ")
	p.tableName(r.Table)
	p.columns(r.Columns)
	p.when(r.Match != "", " MATCH "+r.Match)
	p.when(r.OnDelete != "", " ON DELETE "+r.OnDelete)
	p.when(r.OnUpdate != "", " ON UPDATE "+r.OnUpdate)
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
	if o.Type != nil {
		next("AS ")
		p.typeName(o.Type)
	}
	number("INCREMENT", o.Increment)
	number("MINVALUE", o.Min)
	flag(o.NoMin, "NO MINVALUE")
	number("MAXVALUE", o.Max)
	flag(o.NoMax, "NO MAXVALUE")
	number("START", o.Start)
	number("CACHE", o.Cache)
	flag(o.Cycle, "CYCLE")
	flag(o.NoCycle, "NO CYCLE")
	if o.OwnedBy != nil {
		next("OWNED BY ")
		p.idents(o.OwnedBy, ".")
	}
	flag(o.Restart, "RESTART")
	if o.RestartWith != nil {
		p.str(" WITH ")
		p.int(*o.RestartWith)
	}
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
	if len(s.Include) > 0 {
		p.str(" INCLUDE")
		p.columns(s.Include)
	}
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
		p.str(c.What)
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
	}
}
