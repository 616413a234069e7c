package ast

import "strings"

func statementString(s Statement) string {
	var p printer
	p.statement(s)
	return p.String()
}

// statement writes a statement.
func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *Query:
		p.query(s)
	case *Insert:
		p.insert(s)
	case *Update:
		p.update(s)
	case *Delete:
		p.delete(s)
	case *Merge:
		p.merge(s)
	case *Prepare:
		p.prepare(s)
	case *Execute:
		p.str("EXECUTE ")
		p.ident(s.Name)
		if len(s.Args) > 0 {
			p.str(" ")
			p.parens(s.Args)
		}
	case *Deallocate:
		p.nameOrAll("DEALLOCATE ", s.Name)
	case *Explain:
		p.explain(s)
	case *Copy:
		p.copy(s)
	case *DeclareCursor:
		p.declare(s)
	case *Fetch:
		p.fetch(s)
	case *CloseCursor:
		p.nameOrAll("CLOSE ", s.Name)
	case *Analyze:
		p.str("ANALYZE")
		p.utilityOptions(s.Options)
		p.maintained(s.Tables, s.Columns)
	case *Vacuum:
		p.str("VACUUM")
		p.utilityOptions(s.Options)
		p.maintained(s.Tables, s.Columns)
	case *Discard:
		p.str("DISCARD " + s.What)
	case *LockTable:
		p.str("LOCK TABLE ")
		p.relations(s.Tables)
		p.str(" IN " + s.Mode + " MODE")
		p.when(s.NoWait, " NOWAIT")
	default:
		if !p.session(s) && !p.objects(s) && !p.routines(s) && !p.triggers(s) && !p.typeStatements(s) && !p.roleStatements(s) &&
			!p.foreign(s) && !p.catalogObjects(s) && !p.observers(s) && !p.maintenance(s) {
			p.ddl(s)
		}
	}
}

func (p *printer) maintained(tables []TableName, columns [][]string) {
	for i, name := range tables {
		p.when(i == 0, " ")
		p.when(i > 0, ", ")
		p.tableName(name)
		if columns != nil {
			p.columns(columns[i])
		}
	}
}

func (p *printer) nameOrAll(verb, name string) {
	p.str(verb)
	if name == "" {
		p.str("ALL")
		return
	}
	p.ident(name)
}

func (p *printer) insert(s *Insert) {
	p.with(s.With)
	p.str("INSERT INTO ")
	p.tableName(s.Table)
	p.alias(s.Alias, nil)
	p.insertColumns(s.Columns, s.Overriding)
	if s.Query == nil {
		p.str(" DEFAULT VALUES")
	} else {
		p.str(" ")
		p.query(s.Query)
	}
	if s.OnConflict != nil {
		p.onConflict(s.OnConflict)
	}
	p.returning(s.Returning)
}

func (p *printer) onConflict(c *OnConflict) {
	if c.AnyKey {
		p.anyKey(c)
		return
	}
	p.str(" ON CONFLICT")
	for i := range c.Infer {
		p.when(i == 0, " (")
		p.when(i > 0, ", ")
		p.indexColumn(&c.Infer[i])
	}
	p.when(len(c.Infer) > 0, ")")
	p.where(c.TargetWhere)
	if c.Constraint != "" {
		p.str(" ON CONSTRAINT ")
		p.ident(c.Constraint)
	}
	if !c.DoUpdate {
		p.str(" DO NOTHING")
		return
	}
	p.str(" DO UPDATE SET ")
	p.assignments(c.Set)
	p.where(c.Where)
}

// anyKey writes MySQL's clauses, which PostgreSQL's grammar does not have.
func (p *printer) anyKey(c *OnConflict) {
	if c.Replace {
		p.str(" ON DUPLICATE KEY REPLACE")
		return
	}
	p.str(" ON DUPLICATE KEY UPDATE ")
	p.assignments(c.Set)
}

func (p *printer) assignments(list []Assignment) {
	for i, a := range list {
		if i > 0 {
			p.str(", ")
		}
		p.when(a.List, "(")
		for j, name := range a.Columns {
			p.when(j > 0, ", ")
			p.ident(name)
			if a.Parts != nil {
				p.steps(a.Parts[j])
			}
		}
		p.when(a.List, ")")
		p.str(" = ")
		p.expr(a.Value)
	}
}

// insertColumns writes the target columns of INSERT and OVERRIDING.
func (p *printer) insertColumns(columns []InsertColumn, overriding string) {
	for i, col := range columns {
		p.when(i == 0, " (")
		p.when(i > 0, ", ")
		p.ident(col.Name)
		p.steps(col.Part)
	}
	p.when(len(columns) > 0, ")")
	if overriding != "" {
		p.str(" OVERRIDING " + overriding + " VALUE")
	}
}

// steps writes the way into a part of a column.
func (p *printer) steps(steps []Step) {
	for _, step := range steps {
		if step.Subscript != nil {
			p.bounds(step.Subscript)
			continue
		}
		p.str(".")
		p.ident(step.Field)
	}
}

func (p *printer) merge(s *Merge) {
	p.with(s.With)
	p.str("MERGE INTO ")
	p.when(s.Only, "ONLY ")
	p.tableName(s.Table)
	p.alias(s.Alias, nil)
	p.str(" USING ")
	p.table(s.Source)
	p.str(" ON ")
	p.expr(s.On)
	for i := range s.Whens {
		w := &s.Whens[i]
		p.str(" WHEN ")
		p.when(!w.Matched, "NOT ")
		p.str("MATCHED")
		if w.Cond != nil {
			p.str(" AND ")
			p.expr(w.Cond)
		}
		p.str(" THEN " + w.Action)
		switch {
		case w.Action == "UPDATE":
			p.str(" SET ")
			p.assignments(w.Set)
		case w.Action == "INSERT" && w.Values == nil:
			p.insertColumns(w.Columns, w.Overriding)
			p.str(" DEFAULT VALUES")
		case w.Action == "INSERT":
			p.insertColumns(w.Columns, w.Overriding)
			p.str(" VALUES ")
			p.parens(w.Values)
		}
	}
}

func (p *printer) returning(items []SelectItem) {
	if len(items) > 0 {
		p.str(" RETURNING")
		p.selectItems(items)
	}
}

func (p *printer) update(s *Update) {
	p.with(s.With)
	p.str("UPDATE ")
	p.when(s.Only, "ONLY ")
	p.tableName(s.Table)
	p.alias(s.Alias, nil)
	p.str(" SET ")
	p.assignments(s.Set)
	if len(s.From) > 0 {
		p.str(" FROM ")
		p.tables(s.From)
	}
	p.where(s.Where)
	p.returning(s.Returning)
}

func (p *printer) delete(s *Delete) {
	p.with(s.With)
	p.str("DELETE FROM ")
	p.when(s.Only, "ONLY ")
	p.tableName(s.Table)
	p.alias(s.Alias, nil)
	if len(s.Using) > 0 {
		p.str(" USING ")
		p.tables(s.Using)
	}
	p.where(s.Where)
	p.returning(s.Returning)
}

func (p *printer) prepare(s *Prepare) {
	p.str("PREPARE ")
	p.ident(s.Name)
	for i := range s.Types {
		if i == 0 {
			p.str(" (")
		} else {
			p.str(", ")
		}
		p.typeName(&s.Types[i])
	}
	p.when(len(s.Types) > 0, ")")
	p.str(" AS ")
	p.statement(s.Statement)
}

func (p *printer) explain(s *Explain) {
	p.str("EXPLAIN")
	p.utilityOptions(s.Options)
	p.str(" ")
	p.statement(s.Statement)
}

func (p *printer) copy(s *Copy) {
	p.str("COPY ")
	switch {
	case s.Query != nil:
		p.subquery(s.Query)
	case s.DML != nil:
		p.str("(")
		p.statement(s.DML)
		p.str(")")
	default:
		p.tableName(s.Table)
		p.columns(s.Columns)
	}
	if s.From {
		p.str(" FROM ")
	} else {
		p.str(" TO ")
	}
	p.when(s.Program, "PROGRAM ")
	if s.File != nil {
		p.quoted(*s.File)
	}
	p.str(s.Source)
	if s.Old {
		for _, o := range s.Options {
			p.str(" " + o.Written)
		}
	} else if len(s.Options) > 0 {
		p.str(" WITH ")
		p.options(s.Options, " ")
	}
	p.where(s.Where)
}

func (p *printer) declare(s *DeclareCursor) {
	p.str("DECLARE ")
	p.ident(s.Name)
	p.when(s.Binary, " BINARY")
	p.when(s.Insensitive, " INSENSITIVE")
	p.when(s.Asensitive, " ASENSITIVE")
	p.when(s.NoScroll, " NO SCROLL")
	p.when(s.Scroll, " SCROLL")
	p.str(" CURSOR")
	p.when(s.Hold, " WITH HOLD")
	p.str(" FOR ")
	p.query(s.Query)
}

func (p *printer) fetch(s *Fetch) {
	if s.Move {
		p.str("MOVE " + s.Direction)
	} else {
		p.str("FETCH " + s.Direction)
	}
	switch {
	case s.All:
		p.str(" ALL")
	case s.Direction == "ABSOLUTE" || s.Direction == "RELATIVE" || s.Direction == "FORWARD" || s.Direction == "BACKWARD":
		p.str(" ")
		p.int(s.Count)
	}
	p.str(" FROM ")
	p.ident(s.Name)
}

// session writes the statements about transactions and settings and reports whether s is one.
func (p *printer) session(s Statement) bool {
	switch s := s.(type) {
	case *Begin:
		p.when(!s.Start, "BEGIN")
		p.when(s.Start, "START TRANSACTION")
		p.modes(s.Modes)
	case *SetTransaction:
		if s.Session {
			p.str("SET SESSION CHARACTERISTICS AS TRANSACTION")
		} else {
			p.str("SET TRANSACTION")
		}
		p.modes(s.Modes)
		if s.Snapshot != "" {
			p.str(" SNAPSHOT ")
			p.quoted(s.Snapshot)
		}
	case *Commit:
		p.str("COMMIT")
		p.when(s.Chain, " AND CHAIN")
	case *Rollback:
		p.str("ROLLBACK")
		p.when(s.Chain, " AND CHAIN")
	case *Savepoint:
		p.str("SAVEPOINT ")
		p.ident(s.Name)
	case *ReleaseSavepoint:
		p.str("RELEASE SAVEPOINT ")
		p.ident(s.Name)
	case *RollbackTo:
		p.str("ROLLBACK TO SAVEPOINT ")
		p.ident(s.Name)
	case *Set:
		p.set(s)
	case *AlterSystem:
		p.str("ALTER SYSTEM ")
		p.set(&Set{Name: s.Name, Values: s.Values, Default: s.Default})
	case *SetConstraints:
		p.str("SET CONSTRAINTS ")
		p.when(len(s.Names) == 0, "ALL")
		p.tableNames(s.Names)
		if s.Deferred {
			p.str(" DEFERRED")
		} else {
			p.str(" IMMEDIATE")
		}
	case *Show:
		p.str("SHOW ")
		if s.Name == "all" {
			p.str("ALL")
		} else {
			p.setting(s.Name)
		}
	default:
		return false
	}
	return true
}

func (p *printer) modes(m TransactionModes) {
	gap := " "
	add := func(yes bool, s string) {
		if yes {
			p.str(gap + s)
			gap = ", "
		}
	}
	add(m.Isolation != "", "ISOLATION LEVEL "+strings.ToUpper(m.Isolation))
	add(m.ReadOnly != nil && *m.ReadOnly, "READ ONLY")
	add(m.ReadOnly != nil && !*m.ReadOnly, "READ WRITE")
	add(m.Deferrable != nil && *m.Deferrable, "DEFERRABLE")
	add(m.Deferrable != nil && !*m.Deferrable, "NOT DEFERRABLE")
	if m.AsOf != nil {
		add(true, "AS OF SYSTEM TIME ")
		p.expr(m.AsOf)
	}
}

func (p *printer) set(s *Set) {
	switch {
	case s.Default && s.Name == "all":
		p.str("RESET ALL")
		return
	case s.Reset:
		p.str("RESET ")
		p.setting(s.Name)
		return
	}
	p.str("SET ")
	p.when(s.Local, "LOCAL ")
	if s.Interval != nil {
		p.str("TIME ZONE ")
		p.constant(s.Interval)
		return
	}
	p.setting(s.Name)
	if s.Current {
		p.str(" FROM CURRENT")
		return
	}
	p.str(" TO ")
	p.when(s.Default, "DEFAULT")
	for i, v := range s.Values {
		if i > 0 {
			p.str(", ")
		}
		p.quoted(v)
	}
}
