package ast

// query writes a query with what surrounds it.
func (p *printer) query(q *Query) {
	p.with(q.With)
	p.body(q.Body)
	if len(q.OrderBy) > 0 {
		p.str(" ")
		p.orderBy(q.OrderBy)
	}
	if q.Limit != nil && !q.Ties {
		p.str(" LIMIT ")
		p.expr(q.Limit)
	}
	p.when(q.All, " LIMIT ALL")
	if q.Offset != nil {
		p.str(" OFFSET ")
		p.expr(q.Offset)
	}
	if q.Ties {
		p.str(" FETCH FIRST ")
		p.operand(q.Limit)
		p.str(" ROWS WITH TIES")
	}
	for _, lock := range q.Locking {
		p.str(" FOR " + lock.Strength)
		if len(lock.Of) > 0 {
			p.str(" OF ")
			p.tableNames(lock.Of)
		}
		if lock.Wait != "" {
			p.str(" " + lock.Wait)
		}
	}
}

func (p *printer) with(w *With) {
	if w == nil {
		return
	}
	p.str("WITH ")
	p.when(w.Recursive, "RECURSIVE ")
	for i, cte := range w.CTEs {
		if i > 0 {
			p.str(", ")
		}
		p.ident(cte.Name)
		p.columns(cte.Columns)
		p.str(" AS ")
		if cte.Materialized != nil {
			p.when(!*cte.Materialized, "NOT ")
			p.str("MATERIALIZED ")
		}
		p.str("(")
		p.statement(cte.Statement)
		p.str(")")
		p.searchAndCycle(&cte)
	}
	p.str(" ")
}

func (p *printer) searchAndCycle(cte *CTE) {
	if s := cte.Search; s != nil {
		p.str(" SEARCH ")
		if s.Breadth {
			p.str("BREADTH FIRST BY ")
		} else {
			p.str("DEPTH FIRST BY ")
		}
		p.idents(s.Columns, ", ")
		p.str(" SET ")
		p.ident(s.Set)
	}
	if c := cte.Cycle; c != nil {
		p.str(" CYCLE ")
		p.idents(c.Columns, ", ")
		p.str(" SET ")
		p.ident(c.Mark)
		if c.To != nil {
			p.str(" TO ")
			p.constant(c.To)
			p.str(" DEFAULT ")
			p.constant(c.Default)
		}
		p.str(" USING ")
		p.ident(c.Using)
	}
}

// constant writes a constant where the grammar takes no cast: a type before a string has a form of its own.
func (p *printer) constant(x Expr) {
	c, ok := x.(*Cast)
	if !ok {
		p.expr(x)
		return
	}
	typ := c.Type
	if typ.Keyword && len(typ.Name) == 1 && typ.Name[0] == "interval" && len(typ.Mods) > 0 && typ.Mods[0] != IntervalFull {
		p.str("interval ")
		p.expr(c.X)
		p.intervalFields(typ.Mods)
		return
	}
	p.typeName(&typ)
	p.str(" ")
	p.expr(c.X)
}

func bodyString(b QueryBody) string {
	var p printer
	p.body(b)
	return p.String()
}

func (p *printer) body(b QueryBody) {
	switch b := b.(type) {
	case *Select:
		p.selectBody(b)
	case *Values:
		p.str("VALUES ")
		for i, row := range b.Rows {
			if i > 0 {
				p.str(", ")
			}
			p.parens(row)
		}
	case *SetOp:
		p.setOp(b)
	case *Nested:
		p.subquery(b.Query)
	}
}

// setOp writes a set operation; the left sides of a chain go without parentheses.
func (p *printer) setOp(b *SetOp) {
	left, chain := b.L.(*SetOp)
	if chain && (b.Op != "INTERSECT" || left.Op == "INTERSECT") {
		p.setOp(left)
	} else {
		p.setOperand(b.L)
	}
	p.str(" " + b.Op + " ")
	p.when(b.All, "ALL ")
	p.setOperand(b.R)
}

func (p *printer) setOperand(b QueryBody) {
	if _, ok := b.(*SetOp); ok {
		p.str("(")
		p.body(b)
		p.str(")")
		return
	}
	p.body(b)
}

func (p *printer) selectBody(s *Select) {
	p.str("SELECT")
	p.when(s.Distinct, " DISTINCT")
	if len(s.DistinctOn) > 0 {
		p.str(" ON ")
		p.parens(s.DistinctOn)
	}
	p.selectItems(s.Columns)
	if s.Into != nil {
		p.str(" INTO ")
		p.when(s.Into.Persistence != "", string(s.Into.Persistence)+" ")
		p.str("TABLE ")
		p.tableName(s.Into.Name)
	}
	if len(s.From) > 0 {
		p.str(" FROM ")
		p.tables(s.From)
	}
	if s.AsOf != nil {
		p.str(" AS OF SYSTEM TIME ")
		p.expr(s.AsOf)
	}
	p.where(s.Where)
	if len(s.GroupBy) > 0 {
		p.str(" GROUP BY ")
		p.when(s.GroupSets, "DISTINCT ")
		p.list(s.GroupBy)
	}
	if s.Having != nil {
		p.str(" HAVING ")
		p.expr(s.Having)
	}
	for i := range s.Windows {
		if i == 0 {
			p.str(" WINDOW ")
		} else {
			p.str(", ")
		}
		p.ident(s.Windows[i].Name)
		p.str(" AS ")
		p.window(&s.Windows[i].Window, false)
	}
}

func (p *printer) where(x Expr) {
	if x != nil {
		p.str(" WHERE ")
		p.expr(x)
	}
}

// selectItems writes output columns, each with a blank before it.
func (p *printer) selectItems(items []SelectItem) {
	for i, item := range items {
		p.when(i > 0, ",")
		p.str(" ")
		p.expr(item.Expr)
		if item.Aliased {
			p.str(" AS ")
			p.ident(item.Name)
		}
	}
}

func (p *printer) tables(list []TableExpr) {
	for i, t := range list {
		if i > 0 {
			p.str(", ")
		}
		p.table(t)
	}
}

func tableString(t TableExpr) string {
	var p printer
	p.table(t)
	return p.String()
}

func (p *printer) table(t TableExpr) {
	switch t := t.(type) {
	case *TableRef:
		p.when(t.Only, "ONLY ")
		p.tableName(t.Name)
		p.alias(t.Alias, t.Columns)
		p.sample(t.Sample)
	case *DerivedTable:
		p.when(t.Lateral, "LATERAL ")
		p.subquery(t.Query)
		p.alias(t.Alias, t.Columns)
	case *TableFunc:
		p.when(t.Lateral, "LATERAL ")
		p.tableFunc(t)
		p.when(t.Ordinality, " WITH ORDINALITY")
		p.alias(t.Alias, t.Columns)
		p.columnDefs(t)
	case *RowsFrom:
		p.when(t.Lateral, "LATERAL ")
		p.str("ROWS FROM (")
		for i := range t.Functions {
			p.when(i > 0, ", ")
			p.tableFunc(&t.Functions[i])
			p.columnDefs(&t.Functions[i])
		}
		p.str(")")
		p.when(t.Ordinality, " WITH ORDINALITY")
		p.alias(t.Alias, t.Columns)
	case *XMLTable:
		p.when(t.Lateral, "LATERAL ")
		p.xmlTable(t)
		p.alias(t.Alias, t.Names)
	case *Join:
		p.join(t)
	}
}

func (p *printer) tableFunc(t *TableFunc) {
	switch c := t.Expr.(type) {
	case nil:
		p.call(t.Call)
	case *Cast:
		p.when(!c.Treat, "CAST(")
		p.when(c.Treat, "TREAT(")
		p.expr(c.X)
		p.str(" AS ")
		p.typeName(&c.Type)
		p.str(")")
	default:
		p.expr(c)
	}
}

func (p *printer) sample(s *Sample) {
	if s == nil {
		return
	}
	p.str(" TABLESAMPLE ")
	p.idents(s.Method, ".")
	p.parens(s.Args)
	if s.Seed != nil {
		p.str(" REPEATABLE (")
		p.expr(s.Seed)
		p.str(")")
	}
}

func (p *printer) alias(name string, columns []string) {
	if name == "" {
		return
	}
	p.str(" AS ")
	p.ident(name)
	p.columns(columns)
}

func (p *printer) columnDefs(t *TableFunc) {
	if len(t.ColumnDefs) == 0 {
		return
	}
	p.when(t.Alias == "", " AS")
	p.str(" (")
	for i := range t.ColumnDefs {
		if i > 0 {
			p.str(", ")
		}
		p.ident(t.ColumnDefs[i].Name)
		p.str(" ")
		p.typeName(&t.ColumnDefs[i].Type)
		p.collation(t.ColumnDefs[i].Collation)
	}
	p.str(")")
}

func (p *printer) join(j *Join) {
	p.when(j.Alias != "", "(")
	p.table(j.L)
	p.when(j.Natural, " NATURAL")
	p.str([...]string{" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN "}[j.Kind])
	if right, ok := j.R.(*Join); ok && right.Alias == "" {
		p.str("(")
		p.join(right)
		p.str(")")
	} else {
		p.table(j.R)
	}
	if j.On != nil {
		p.str(" ON ")
		p.expr(j.On)
	}
	if len(j.Using) > 0 {
		p.str(" USING")
		p.columns(j.Using)
		p.alias(j.UsingAlias, nil)
	}
	if j.Alias != "" {
		p.str(")")
		p.alias(j.Alias, j.Columns)
	}
}

func (p *printer) tableName(t TableName) {
	if t.Database != "" {
		p.ident(t.Database)
		p.str(".")
	}
	if t.Schema != "" {
		p.ident(t.Schema)
		p.str(".")
	}
	p.ident(t.Name)
}

func (p *printer) tableNames(names []TableName) {
	for i, name := range names {
		if i > 0 {
			p.str(", ")
		}
		p.tableName(name)
	}
}

// String prints the name, qualified if it was.
func (t TableName) String() string {
	var p printer
	p.tableName(t)
	return p.String()
}
