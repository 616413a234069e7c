package mysql

import (
	"slices"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
)

// single is the only table of a clause; nil, and a refusal, for joins.
func (c *converter) single(refs *tidb.TableRefsClause, what string) (*tidb.TableName, string) {
	if refs != nil && refs.TableRefs != nil && refs.TableRefs.Right == nil {
		if source, ok := refs.TableRefs.Left.(*tidb.TableSource); ok {
			if t, ok := source.Source.(*tidb.TableName); ok {
				alias := ""
				if source.AsName.O != "" {
					alias = c.name(source.AsName.O)
				}
				return t, alias
			}
		}
	}
	c.refuse(refs, what+" of several tables", "Change one table, and name the rows with IN (SELECT …).")
	return nil, ""
}

// insert converts INSERT and REPLACE.
func (c *converter) insert(n *tidb.InsertStmt) *ast.Insert {
	ins := &ast.Insert{Pos: c.pos(n)}
	t, alias := c.single(n.Table, "INSERT")
	if t == nil {
		return ins
	}
	ins.Table, ins.Alias = c.table(t), alias
	if len(n.PartitionNames) > 0 {
		c.refuse(n, "PARTITION of a table", "Leave it out.")
	}
	for _, col := range n.Columns {
		ins.Columns = append(ins.Columns, ast.InsertColumn{Pos: c.pos(col), Name: c.name(col.Name.O)})
	}
	c.insertSource(n, ins)
	switch {
	case n.IsReplace:
		ins.OnConflict = &ast.OnConflict{AnyKey: true, Replace: true, DoUpdate: true}
	case len(n.OnDuplicate) > 0:
		if n.IgnoreErr {
			c.refuse(n, "IGNORE with ON DUPLICATE KEY UPDATE", "Use one of them.")
		}
		c.inserted = ins.Table.Name
		if alias != "" {
			c.inserted = alias
		}
		ins.OnConflict = &ast.OnConflict{AnyKey: true, DoUpdate: true, Set: c.assignments(n.OnDuplicate)}
		c.inserted = ""
	case n.IgnoreErr:
		ins.OnConflict = &ast.OnConflict{}
	}
	return ins
}

// insertSource converts what is inserted.
func (c *converter) insertSource(n *tidb.InsertStmt, ins *ast.Insert) {
	if n.Select != nil {
		ins.Query = c.query(n.Select)
		return
	}
	if len(n.Lists) == 1 && len(n.Lists[0]) == 0 {
		return // DEFAULT VALUES
	}
	values := &ast.Values{Rows: make([][]ast.Expr, 0, len(n.Lists))}
	for _, row := range n.Lists {
		if len(row) == 0 {
			c.refuse(n, "several rows of VALUES ()", "Insert them one by one.")
		}
		values.Rows = append(values.Rows, c.values(row))
	}
	ins.Query = &ast.Query{Body: values}
}

// assignments converts SET. MySQL assigns from left to right, and an expression sees the new values of the columns
// before it; percodb computes all from the old row. What would show the difference is refused.
func (c *converter) assignments(list []*tidb.Assignment) []ast.Assignment {
	var out []ast.Assignment
	assigned := map[string]bool{}
	for _, a := range list {
		value := c.value(a.Expr)
		ast.InspectExpr(value, ast.Visitor{Expr: func(x ast.Expr) {
			ref, ok := x.(*ast.ColumnRef)
			if ok && ref.Parts[0] != "excluded" && assigned[ref.Parts[len(ref.Parts)-1]] {
				c.refuse(a.Expr, "an assignment that reads the column \""+ref.Parts[len(ref.Parts)-1]+"\", which is assigned before it",
					"Assign that column last: expressions see the old row.")
			}
		}})
		name := c.name(a.Column.Name.O)
		if assigned[name] { // the last assignment holds
			out = slices.DeleteFunc(out, func(earlier ast.Assignment) bool { return earlier.Columns[0] == name })
		}
		assigned[name] = true
		out = append(out, ast.Assignment{Pos: c.pos(a), Columns: []string{name}, Value: value})
	}
	return out
}

func (c *converter) update(n *tidb.UpdateStmt) *ast.Update {
	u := &ast.Update{Pos: c.pos(n), With: c.with(n.With)}
	t, alias := c.single(n.TableRefs, "UPDATE")
	if t == nil {
		return u
	}
	c.rowsOnly(n, n.IgnoreErr, n.Order, n.Limit)
	u.Table, u.Alias = c.table(t), alias
	u.Set = c.assignments(n.List)
	if n.Where != nil {
		u.Where = c.condition(n.Where)
	}
	return u
}

func (c *converter) delete(n *tidb.DeleteStmt) *ast.Delete {
	d := &ast.Delete{Pos: c.pos(n), With: c.with(n.With)}
	if n.IsMultiTable {
		c.refuse(n, "DELETE of several tables", "Delete from one table, and name the rows with IN (SELECT …).")
		return d
	}
	t, alias := c.single(n.TableRefs, "DELETE")
	if t == nil {
		return d
	}
	c.rowsOnly(n, n.IgnoreErr, n.Order, n.Limit)
	d.Table, d.Alias = c.table(t), alias
	if n.Where != nil {
		d.Where = c.condition(n.Where)
	}
	return d
}

// rowsOnly refuses what UPDATE and DELETE do not have.
func (c *converter) rowsOnly(n tidb.Node, ignore bool, order *tidb.OrderByClause, limit *tidb.Limit) {
	if ignore {
		c.refuse(n, "IGNORE in UPDATE and DELETE", "Leave it out.")
	}
	if order != nil || limit != nil {
		c.refuse(n, "ORDER BY and LIMIT in UPDATE and DELETE", "Name the rows with WHERE key IN (SELECT … LIMIT …).")
	}
}
