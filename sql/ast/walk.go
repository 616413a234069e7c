package ast

// Visitor is called for the parts of a tree; any of its functions may be nil, and may change what it is
// given.
type Visitor struct {
	// Expr is called with every expression, before its parts.
	Expr func(Expr)
	// Table is called with every table that is named, except where the name is that of a WITH item in
	// sight.
	Table func(*TableRef)
	// Join is called with every join, before its sides.
	Join func(*Join)
	// List is called with every select list and RETURNING, which it may replace, before their entries.
	List func(*[]SelectItem)
	// Item is called with every entry of a select list or RETURNING, before its expression.
	Item func(*SelectItem)
	// Target is called with the table that a statement changes.
	Target func(*TableName)
}

// InspectStatement visits all that is in a query, or in a change of rows; other statements have no parts.
func InspectStatement(s Statement, v Visitor) {
	w := &walker{Visitor: v}
	w.statement(s)
}

// InspectExpr visits e and all that is in it, subqueries included.
func InspectExpr(e Expr, v Visitor) {
	w := &walker{Visitor: v}
	w.expr(e)
}

// InspectQuery visits all that is in q.
func InspectQuery(q *Query, v Visitor) {
	w := &walker{Visitor: v}
	w.query(q)
}

func (w *walker) statement(s Statement) {
	outer := len(w.ctes)
	defer func() { w.ctes = w.ctes[:outer] }()
	switch n := s.(type) {
	case *Query:
		w.query(n)
	case *Insert:
		w.with(n.With)
		w.target(&n.Table)
		w.query(n.Query)
		if c := n.OnConflict; c != nil {
			w.exprs(c.Columns)
			w.assignments(c.Set)
			w.expr(c.Where)
		}
		w.items(&n.Returning)
	case *Update:
		w.with(n.With)
		w.target(&n.Table)
		w.assignments(n.Set)
		w.tables(n.From)
		w.expr(n.Where)
		w.items(&n.Returning)
	case *Delete:
		w.with(n.With)
		w.target(&n.Table)
		w.tables(n.Using)
		w.expr(n.Where)
		w.items(&n.Returning)
	case *Merge:
		w.with(n.With)
		w.target(&n.Table)
		w.table(n.Source)
		w.expr(n.On)
		for i := range n.Whens {
			w.expr(n.Whens[i].Cond)
			w.assignments(n.Whens[i].Set)
			w.exprs(n.Whens[i].Values)
		}
	}
}

func (w *walker) target(name *TableName) {
	if w.Visitor.Target != nil {
		w.Visitor.Target(name)
	}
}

func (w *walker) assignments(list []Assignment) {
	for i := range list {
		w.expr(list[i].Value)
	}
}

func (w *walker) items(at *[]SelectItem) {
	if w.Visitor.List != nil {
		w.Visitor.List(at)
	}
	list := *at
	for i := range list {
		if w.Visitor.Item != nil {
			w.Visitor.Item(&list[i])
		}
		w.expr(list[i].Expr)
	}
}

func (w *walker) tables(list []TableExpr) {
	for _, t := range list {
		w.table(t)
	}
}

// walker keeps the names of WITH items in sight, innermost last.
type walker struct {
	Visitor
	ctes []string
}

func (w *walker) exprs(list []Expr) {
	for _, e := range list {
		w.expr(e)
	}
}

func (w *walker) expr(e Expr) {
	if e == nil {
		return
	}
	if w.Visitor.Expr != nil {
		w.Visitor.Expr(e)
	}
	switch n := e.(type) {
	case *Unary:
		w.expr(n.X)
	case *Binary:
		w.expr(n.L)
		w.expr(n.R)
	case *Like:
		w.exprs([]Expr{n.X, n.Pattern, n.Escape})
	case *IsTest:
		w.expr(n.X)
	case *IsDistinct:
		w.expr(n.L)
		w.expr(n.R)
	case *Between:
		w.exprs([]Expr{n.X, n.Low, n.High})
	case *InList:
		w.expr(n.X)
		w.exprs(n.List)
	case *Case:
		w.expr(n.Operand)
		for _, when := range n.Whens {
			w.expr(when.Cond)
			w.expr(when.Then)
		}
		w.expr(n.Else)
	case *Cast:
		w.expr(n.X)
	case *Call:
		w.call(n)
	case *Array:
		w.exprs(n.Elems)
	case *Row:
		w.exprs(n.Elems)
	case *Subscript:
		w.exprs([]Expr{n.X, n.Index, n.Low, n.High})
	case *Field:
		w.expr(n.X)
	case *AtTimeZone:
		w.expr(n.X)
		w.expr(n.Zone)
	case *Collate:
		w.expr(n.X)
	case *GroupingSet:
		w.exprs(n.Items)
	default:
		w.subquery(e)
	}
}

func (w *walker) subquery(e Expr) {
	switch n := e.(type) {
	case *InSubquery:
		w.expr(n.X)
		w.query(n.Query)
	case *Quantified:
		w.expr(n.X)
		w.query(n.Query)
		w.expr(n.Array)
	case *Exists:
		w.query(n.Query)
	case *Subquery:
		w.query(n.Query)
	case *ArraySubquery:
		w.query(n.Query)
	}
}

func (w *walker) call(n *Call) {
	w.exprs(n.Args)
	w.order(n.OrderBy)
	w.expr(n.Filter)
	w.order(n.Within)
	if n.Over != nil {
		w.window(n.Over)
	}
}

func (w *walker) window(n *Window) {
	w.exprs(n.PartitionBy)
	w.order(n.OrderBy)
	if n.Frame != nil {
		w.expr(n.Frame.Start.Offset)
		w.expr(n.Frame.End.Offset)
	}
}

func (w *walker) order(items []OrderItem) {
	for i := range items {
		w.expr(items[i].Expr)
	}
}

func (w *walker) query(q *Query) {
	if q == nil {
		return
	}
	outer := len(w.ctes)
	defer func() { w.ctes = w.ctes[:outer] }()
	w.with(q.With)
	w.body(q.Body)
	w.order(q.OrderBy)
	w.expr(q.Limit)
	w.expr(q.Offset)
}

// with visits the items of a WITH clause, which are in sight afterwards.
func (w *walker) with(with *With) {
	if with == nil {
		return
	}
	if with.Recursive {
		for i := range with.CTEs {
			w.ctes = append(w.ctes, with.CTEs[i].Name)
		}
	}
	for i := range with.CTEs {
		if inner, ok := with.CTEs[i].Statement.(*Query); ok {
			w.query(inner)
		}
		w.ctes = append(w.ctes, with.CTEs[i].Name)
	}
}

func (w *walker) body(b QueryBody) {
	switch n := b.(type) {
	case *Select:
		w.exprs(n.DistinctOn)
		w.items(&n.Columns)
		w.tables(n.From)
		w.expr(n.Where)
		w.exprs(n.GroupBy)
		w.expr(n.Having)
		for i := range n.Windows {
			w.window(&n.Windows[i].Window)
		}
	case *Values:
		for _, row := range n.Rows {
			w.exprs(row)
		}
	case *SetOp:
		w.body(n.L)
		w.body(n.R)
	case *Nested:
		w.query(n.Query)
	}
}

func (w *walker) table(t TableExpr) {
	switch n := t.(type) {
	case *TableRef:
		if w.Visitor.Table != nil && !w.isCTE(n) {
			w.Visitor.Table(n)
		}
		if n.Sample != nil {
			w.exprs(n.Sample.Args)
			w.expr(n.Sample.Seed)
		}
	case *DerivedTable:
		w.query(n.Query)
	case *TableFunc:
		w.expr(n.Call)
	case *RowsFrom:
		for i := range n.Functions {
			w.expr(n.Functions[i].Call)
		}
	case *Join:
		if w.Visitor.Join != nil {
			w.Visitor.Join(n)
		}
		w.table(n.L)
		w.table(n.R)
		w.expr(n.On)
	}
}

func (w *walker) isCTE(t *TableRef) bool {
	if t.Name.Schema != "" {
		return false
	}
	for _, name := range w.ctes {
		if name == t.Name.Name {
			return true
		}
	}
	return false
}
