package mysql

import (
	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
)

// query converts a SELECT, VALUES, TABLE or set operation.
func (c *converter) query(node tidb.Node) *ast.Query {
	switch n := node.(type) {
	case *tidb.SubqueryExpr:
		return c.query(n.Query)
	case *tidb.SelectStmt:
		q := &ast.Query{Pos: c.pos(n), With: c.with(n.With), Body: c.selectBody(n)}
		c.endings(q, n.OrderBy, n.Limit)
		c.locking(q, n.LockInfo)
		return q
	case *tidb.SetOprStmt:
		q := &ast.Query{Pos: c.pos(n), With: c.with(n.With), Body: c.setOperation(n.SelectList.Selects)}
		if n.SelectList.With != nil || n.SelectList.OrderBy != nil || n.SelectList.Limit != nil {
			q.Body = &ast.Nested{Query: c.nested(n.SelectList)}
		}
		c.endings(q, n.OrderBy, n.Limit)
		return q
	}
	c.refuse(node, "this form of a query", "Write it as SELECT.")
	return &ast.Query{}
}

func (c *converter) nested(n *tidb.SetOprSelectList) *ast.Query {
	q := &ast.Query{Pos: c.pos(n), With: c.with(n.With), Body: c.setOperation(n.Selects)}
	c.endings(q, n.OrderBy, n.Limit)
	if inner, ok := q.Body.(*ast.Nested); ok && q.With == nil && q.OrderBy == nil && q.Limit == nil {
		return inner.Query
	}
	return q
}

// endings converts ORDER BY and LIMIT.
func (c *converter) endings(q *ast.Query, order *tidb.OrderByClause, limit *tidb.Limit) {
	q.OrderBy = c.orderBy(order)
	if limit == nil {
		return
	}
	q.Limit = c.value(limit.Count)
	if limit.Offset != nil {
		q.Offset = c.value(limit.Offset)
	}
}

// orderBy converts ORDER BY: NULL is MySQL's smallest value.
func (c *converter) orderBy(n *tidb.OrderByClause) []ast.OrderItem {
	if n == nil {
		return nil
	}
	var out []ast.OrderItem
	for _, item := range n.Items {
		out = append(out, ast.OrderItem{Expr: c.item(item.Expr), Desc: item.Desc, Nulls: true, NullsFirst: !item.Desc})
	}
	return out
}

// item converts an item of ORDER BY or GROUP BY, which may be an output column's number.
func (c *converter) item(n tidb.ExprNode) ast.Expr {
	if p, ok := n.(*tidb.PositionExpr); ok {
		if p.P != nil {
			c.refuse(n, "a parameter as the number of an output column", "Name the column.")
		}
		return c.integer(n, uint64(max(p.N, 0)))
	}
	x := c.value(n)
	if lit, ok := x.(*ast.Literal); ok {
		c.refuse(n, "ordering or grouping by the constant "+lit.String(), "Leave it out.")
	}
	return x
}

// operation is what joins a SELECT to those before it.
func operation(n tidb.Node) tidb.SetOprType {
	var op *tidb.SetOprType
	switch n := n.(type) {
	case *tidb.SelectStmt:
		op = n.AfterSetOperator
	case *tidb.SetOprSelectList:
		op = n.AfterSetOperator
	}
	if op == nil {
		return tidb.Union
	}
	return *op
}

// setOperation converts a chain; INTERSECT binds more strongly than UNION and EXCEPT.
func (c *converter) setOperation(selects []tidb.Node) ast.QueryBody {
	var body ast.QueryBody
	for i := 0; i < len(selects); {
		op := operation(selects[i])
		term := c.side(selects[i])
		for i++; i < len(selects); i++ {
			inner := operation(selects[i])
			if inner != tidb.Intersect && inner != tidb.IntersectAll {
				break
			}
			term = &ast.SetOp{Op: "INTERSECT", All: inner == tidb.IntersectAll, L: term, R: c.side(selects[i])}
		}
		if body == nil {
			body = term
			continue
		}
		joined := &ast.SetOp{Op: "UNION", All: op == tidb.UnionAll || op == tidb.ExceptAll, L: body, R: term}
		if op == tidb.Except || op == tidb.ExceptAll {
			joined.Op = "EXCEPT"
		}
		body = joined
	}
	return body
}

// side converts one operand of a set operation.
func (c *converter) side(node tidb.Node) ast.QueryBody {
	var q *ast.Query
	if n, ok := node.(*tidb.SetOprSelectList); ok {
		q = c.nested(n)
	} else {
		q = c.query(node)
	}
	if q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Locking == nil {
		return q.Body
	}
	return &ast.Nested{Query: q}
}

func (c *converter) with(n *tidb.WithClause) *ast.With {
	if n == nil {
		return nil
	}
	w := &ast.With{Recursive: n.IsRecursive}
	for _, cte := range n.CTEs {
		w.CTEs = append(w.CTEs, ast.CTE{
			Pos: c.pos(cte), Name: c.name(cte.Name.O), Columns: c.names(cte.ColNameList), Statement: c.query(cte.Query),
		})
	}
	return w
}

// selectBody converts a SELECT without ORDER BY and LIMIT, or VALUES.
func (c *converter) selectBody(n *tidb.SelectStmt) ast.QueryBody {
	if n.SelectIntoOpt != nil {
		c.refuse(n, "SELECT … INTO", "Use COPY in PostgreSQL's dialect.")
	}
	if n.Kind == tidb.SelectStmtKindValues {
		v := &ast.Values{Pos: c.pos(n)}
		for _, row := range n.Lists {
			v.Rows = append(v.Rows, c.values(row.Values))
		}
		return v
	}
	s := &ast.Select{Pos: c.pos(n), Distinct: n.Distinct}
	if o := n.SelectStmtOpts; o != nil {
		if o.CalcFoundRows {
			c.refuse(n, "SQL_CALC_FOUND_ROWS", "Count the rows with a second query.")
		}
		if o.StraightJoin {
			c.notice("STRAIGHT_JOIN has no effect: the planner chooses the order of joins")
		}
	}
	if len(n.TableHints) > 0 {
		c.notice("optimizer hints have no effect")
	}
	if n.Kind == tidb.SelectStmtKindTable {
		s.Columns = []ast.SelectItem{{Expr: &ast.Star{}}}
	} else {
		s.Columns = c.fields(n.Fields)
	}
	if n.From != nil {
		s.From = c.from(n.From.TableRefs)
	}
	if n.Where != nil {
		s.Where = c.condition(n.Where)
	}
	if n.GroupBy != nil {
		s.GroupBy = c.groupBy(n.GroupBy)
	}
	if n.Having != nil {
		s.Having = c.condition(n.Having.Expr)
	}
	for i := range n.WindowSpecs {
		w := c.window(&n.WindowSpecs[i])
		w.Parens = false
		s.Windows = append(s.Windows, ast.NamedWindow{Name: c.name(n.WindowSpecs[i].Name.O), Window: *w})
	}
	return s
}

func (c *converter) groupBy(n *tidb.GroupByClause) []ast.Expr {
	var items []ast.Expr
	for _, item := range n.Items {
		items = append(items, c.item(item.Expr))
	}
	if n.Rollup {
		return []ast.Expr{&ast.GroupingSet{Kind: "ROLLUP", Items: items}}
	}
	return items
}

func (c *converter) fields(list *tidb.FieldList) []ast.SelectItem {
	var out []ast.SelectItem
	for _, f := range list.Fields {
		if f.WildCard != nil {
			star := &ast.Star{Pos: c.pos(f)}
			for _, part := range []tidb.CIStr{f.WildCard.Schema, f.WildCard.Table} {
				if part.O != "" {
					star.Table = append(star.Table, c.name(part.O))
				}
			}
			out = append(out, ast.SelectItem{Expr: star})
			continue
		}
		item := ast.SelectItem{Expr: c.value(f.Expr), Aliased: true}
		ref, column := item.Expr.(*ast.ColumnRef)
		switch {
		case f.AsName.O != "":
			item.Name = c.name(f.AsName.O)
		case column:
			item.Name, item.Aliased = ref.Parts[len(ref.Parts)-1], false
		default:
			item.Name = computedName(f)
		}
		out = append(out, item)
	}
	return out
}

// computedName is MySQL's name for an output column without an alias: its text, for a string its content.
func computedName(f *tidb.SelectField) string {
	name := f.OriginalText()
	if k, ok := f.Expr.(*constant); ok {
		if s, ok := k.value.(string); ok {
			name = s
		}
	}
	if name = cut(name); name == "" {
		return "?column?"
	}
	return name
}

// from converts a FROM clause; its outermost comma-separated tables become items of their own.
func (c *converter) from(n *tidb.Join) []ast.TableExpr {
	if n == nil {
		return nil
	}
	if n.Right == nil {
		if left, ok := n.Left.(*tidb.Join); ok {
			return c.from(left)
		}
		return []ast.TableExpr{c.tableExpr(n.Left)}
	}
	if plainCross(n) && !n.ExplicitParens {
		var items []ast.TableExpr
		if left, ok := n.Left.(*tidb.Join); ok && !left.ExplicitParens {
			items = c.from(left)
		} else {
			items = []ast.TableExpr{c.tableExpr(n.Left)}
		}
		return append(items, c.tableExpr(n.Right))
	}
	return []ast.TableExpr{c.join(n)}
}

// plainCross reports whether a join is a comma or CROSS JOIN.
func plainCross(n *tidb.Join) bool {
	return n.Tp == tidb.CrossJoin && n.On == nil && len(n.Using) == 0 && !n.NaturalJoin
}

func (c *converter) tableExpr(node tidb.ResultSetNode) ast.TableExpr {
	switch n := node.(type) {
	case *tidb.Join:
		if n.Right == nil {
			return c.tableExpr(n.Left)
		}
		return c.join(n)
	case *tidb.TableSource:
		return c.tableSource(n)
	case *tidb.TableName:
		return &ast.TableRef{Pos: c.pos(n), Name: c.table(n)}
	}
	c.refuse(node, "this item of FROM", "Write it as a table or a subquery.")
	return &ast.TableRef{}
}

func (c *converter) tableSource(n *tidb.TableSource) ast.TableExpr {
	alias := ""
	if n.AsName.O != "" {
		alias = c.name(n.AsName.O)
	}
	switch source := n.Source.(type) {
	case *tidb.TableName:
		return &ast.TableRef{Pos: c.pos(source), Name: c.table(source), Alias: alias, Columns: c.names(n.ColumnNames)}
	case *tidb.Join:
		if alias == "" {
			return c.tableExpr(source)
		}
	case *tidb.SelectStmt, *tidb.SetOprStmt:
		if alias == "" {
			c.refuse(n, "a subquery in FROM without an alias", "Give it an alias.")
		}
		return &ast.DerivedTable{Pos: c.pos(n), Lateral: n.Lateral, Query: c.query(source), Alias: alias, Columns: c.names(n.ColumnNames)}
	}
	c.refuse(n, "this item of FROM", "Write it as a table or a subquery.")
	return &ast.TableRef{}
}

func (c *converter) join(n *tidb.Join) *ast.Join {
	j := &ast.Join{Pos: c.pos(n), L: c.tableExpr(n.Left), R: c.tableExpr(n.Right), Natural: n.NaturalJoin}
	switch n.Tp {
	case tidb.LeftJoin:
		j.Kind = ast.LeftJoin
	case tidb.RightJoin:
		j.Kind = ast.RightJoin
	default:
		if n.On == nil && len(n.Using) == 0 && !n.NaturalJoin {
			j.Kind = ast.CrossJoin
		}
	}
	if n.StraightJoin {
		c.notice("STRAIGHT_JOIN has no effect: the planner chooses the order of joins")
	}
	if n.On != nil {
		j.On = c.condition(n.On.Expr)
	}
	for _, col := range n.Using {
		j.Using = append(j.Using, c.name(col.Name.O))
	}
	return j
}

func (c *converter) locking(q *ast.Query, n *tidb.SelectLockInfo) {
	if n == nil || n.LockType == tidb.SelectLockNone {
		return
	}
	l := ast.Locking{Strength: "UPDATE"}
	switch n.LockType {
	case tidb.SelectLockForShare, tidb.SelectLockForShareNoWait, tidb.SelectLockForShareSkipLocked:
		l.Strength = "SHARE"
	case tidb.SelectLockForUpdateWaitN:
		c.refuse(nil, "FOR UPDATE WAIT", "Use SET lock_timeout.")
	}
	switch n.LockType {
	case tidb.SelectLockForUpdateNoWait, tidb.SelectLockForShareNoWait:
		l.Wait = "NOWAIT"
	case tidb.SelectLockForUpdateSkipLocked, tidb.SelectLockForShareSkipLocked:
		l.Wait = "SKIP LOCKED"
	}
	for _, t := range n.Tables {
		l.Of = append(l.Of, c.table(t))
	}
	q.Locking = []ast.Locking{l}
}
