package ast

// query writes a query with what surrounds it.
func (p *printer) query(q *Query) {
	p.with(q.With)
	p.body(q.Body)
	if len(q.OrderBy) > 0 {
		p.str(" ")
		p.orderBy(q.OrderBy)
	}
	if q.Limit != nil {
		p.str(" LIMIT ")
		p.expr(q.Limit)
	}
	if q.Offset != nil {
		p.str(" OFFSET ")
		p.expr(q.Offset)
	}
	for _, lock := range q.Locking {
		p.str(" FOR " + lock.Strength)
		if len(lock.Of) > 0 {
			p.str(" OF ")
			p.idents(lock.Of, ", ")
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
	}
	p.str(" ")
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
	case *DerivedTable:
		p.when(t.Lateral, "LATERAL ")
		p.subquery(t.Query)
		p.alias(t.Alias, t.Columns)
	case *TableFunc:
		p.when(t.Lateral, "LATERAL ")
		p.call(t.Call)
		p.when(t.Ordinality, " WITH ORDINALITY")
		p.alias(t.Alias, t.Columns)
		p.columnDefs(t)
	case *Join:
		p.join(t)
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
	}
	if j.Alias != "" {
		p.str(") AS ")
		p.ident(j.Alias)
	}
}

func (p *printer) tableName(t TableName) {
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
