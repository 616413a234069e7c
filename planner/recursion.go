package planner

import (
	"slices"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// invalidRecursion is PostgreSQL's SQLSTATE for recursion of a wrong form.
const invalidRecursion pgerror.Code = "42P19"

// recursiveOrder returns the items of WITH RECURSIVE in an order in which each refers only to earlier ones and to itself, and which of them
// refer to themselves. The forms of these are checked.
func recursiveOrder(w *ast.With) (order []*ast.CTE, recurses map[*ast.CTE]bool, err error) {
	recurses = map[*ast.CTE]bool{}
	needs := make([]map[string]bool, len(w.CTEs))
	for i := range w.CTEs {
		named := map[string]bool{}
		ast.InspectStatement(w.CTEs[i].Statement, ast.Visitor{Table: func(t *ast.TableRef) {
			if t.Name.Schema == "" {
				named[t.Name.Name] = true
			}
		}})
		recurses[&w.CTEs[i]] = named[w.CTEs[i].Name]
		delete(named, w.CTEs[i].Name)
		needs[i] = named
	}
	placed := make([]bool, len(w.CTEs))
	for range w.CTEs {
		next := slices.IndexFunc(placed, func(done bool) bool { return !done })
		first := next
		for ; next < len(placed); next++ {
			if !placed[next] && !anyNamed(w, placed, needs[next]) {
				break
			}
		}
		if next == len(placed) {
			return nil, nil, pgerror.New(pgerror.FeatureNotSupported, "mutual recursion between WITH items is not implemented").
				At(int(w.CTEs[first].Pos))
		}
		placed[next] = true
		order = append(order, &w.CTEs[next])
	}
	for _, def := range order {
		if !recurses[def] {
			continue
		}
		if err := checkRecursion(def); err != nil {
			return nil, nil, err
		}
	}
	return order, recurses, nil
}

// anyNamed reports whether an item that is not placed yet has one of the names.
func anyNamed(w *ast.With, placed []bool, names map[string]bool) bool {
	for i := range w.CTEs {
		if !placed[i] && names[w.CTEs[i].Name] {
			return true
		}
	}
	return false
}

// checkRecursion checks that an item that refers to itself has the form that the iteration requires.
func checkRecursion(def *ast.CTE) error {
	body, ok := def.Statement.(*ast.Query)
	if !ok {
		return pgerror.New(invalidRecursion, "recursive query \"%s\" must not contain data-modifying statements", def.Name).At(int(def.Pos))
	}
	u, ok := body.Body.(*ast.SetOp)
	if !ok || u.Op != "UNION" {
		return pgerror.New(invalidRecursion,
			"recursive query \"%s\" does not have the form non-recursive-term UNION [ALL] recursive-term", def.Name).At(int(def.Pos))
	}
	c := &recursionCheck{name: def.Name, within: "a subquery"}
	if body.With != nil {
		c.items(body.With)
	}
	if c.err == nil {
		c.err = checkDecoration(body)
	}
	c.within = "its non-recursive term"
	c.body(u.L)
	c.within = ""
	c.body(u.R)
	return c.err
}

// checkDecoration refuses the clauses of a recursive query that PostgreSQL does not implement either.
func checkDecoration(body *ast.Query) error {
	refused := func(what string, pos int) error {
		return pgerror.New(pgerror.FeatureNotSupported, "%s in a recursive query is not implemented", what).At(pos)
	}
	switch {
	case len(body.OrderBy) > 0:
		return refused("ORDER BY", startOf(body.OrderBy[0].Expr))
	case body.Offset != nil:
		return refused("OFFSET", startOf(body.Offset))
	case body.Limit != nil:
		return refused("LIMIT", startOf(body.Limit))
	case len(body.Locking) > 0:
		return refused("FOR UPDATE/SHARE", 0)
	}
	return nil
}

// recursionCheck visits the terms of a recursive query for references to it, in the order in which PostgreSQL finds them.
type recursionCheck struct {
	name   string
	within string // where a reference must not stand: "a subquery"; empty: here it may
	hidden int    // WITH items of the same name that hide it
	refs   int
	err    error
}

// under visits a part in which a reference must not stand.
func (c *recursionCheck) under(within string, visit func()) {
	outer := c.within
	if outer == "" {
		c.within = within
	}
	visit()
	c.within = outer
}

func (c *recursionCheck) ref(t *ast.TableRef) {
	if c.err != nil || c.hidden > 0 || t.Name.Schema != "" || t.Name.Name != c.name {
		return
	}
	if c.within != "" {
		c.err = pgerror.New(invalidRecursion, "recursive reference to query \"%s\" must not appear within %s", c.name, c.within).At(int(t.Pos))
	} else if c.refs++; c.refs > 1 {
		c.err = pgerror.New(invalidRecursion, "recursive reference to query \"%s\" must not appear more than once", c.name).At(int(t.Pos))
	}
}

// items visits the items of a WITH clause; what follows is visited with their names in sight.
func (c *recursionCheck) items(w *ast.With) {
	if w.Recursive {
		c.hideBy(w)
	}
	for i := range w.CTEs {
		if q, ok := w.CTEs[i].Statement.(*ast.Query); ok {
			c.query(q)
		}
		if !w.Recursive && w.CTEs[i].Name == c.name {
			c.hidden++
		}
	}
}

func (c *recursionCheck) hideBy(w *ast.With) {
	for i := range w.CTEs {
		if w.CTEs[i].Name == c.name {
			c.hidden++
		}
	}
}

func (c *recursionCheck) query(q *ast.Query) {
	outer := c.hidden
	if q.With != nil {
		c.items(q.With)
	}
	c.body(q.Body)
	for i := range q.OrderBy {
		c.expr(q.OrderBy[i].Expr)
	}
	c.expr(q.Limit)
	c.expr(q.Offset)
	c.hidden = outer
}

func (c *recursionCheck) body(body ast.QueryBody) {
	switch n := body.(type) {
	case *ast.Nested:
		c.query(n.Query)
	case *ast.Values:
		for _, row := range n.Rows {
			c.exprs(row)
		}
	case *ast.SetOp:
		c.setOp(n)
	case *ast.Select:
		for i := range n.Columns {
			c.expr(n.Columns[i].Expr)
		}
		for _, t := range n.From {
			c.table(t)
		}
		c.expr(n.Where)
		c.exprs(n.GroupBy)
		c.expr(n.Having)
		c.exprs(n.DistinctOn)
	}
}

// setOp visits both sides: the rows of one round say nothing on those that all rounds have in common, or lack.
func (c *recursionCheck) setOp(n *ast.SetOp) {
	left, right := func() { c.body(n.L) }, func() { c.body(n.R) }
	switch {
	case n.Op == "INTERSECT" && n.All:
		c.under("INTERSECT", left)
		c.under("INTERSECT", right)
	case n.Op == "EXCEPT":
		if n.All {
			c.under("EXCEPT", left)
		} else {
			left()
		}
		c.under("EXCEPT", right)
	default:
		left()
		right()
	}
}

func (c *recursionCheck) table(t ast.TableExpr) {
	switch n := t.(type) {
	case *ast.TableRef:
		c.ref(n)
	case *ast.DerivedTable:
		c.query(n.Query)
	case *ast.TableFunc:
		if n.Call != nil {
			c.expr(n.Call)
		}
		c.expr(n.Expr)
	case *ast.RowsFrom:
		for i := range n.Functions {
			c.table(&n.Functions[i])
		}
	case *ast.XMLTable:
		c.expr(n.Document)
	case *ast.Join:
		side := func(t ast.TableExpr, outer bool) {
			if outer {
				c.under("an outer join", func() { c.table(t) })
			} else {
				c.table(t)
			}
		}
		side(n.L, n.Kind == ast.RightJoin || n.Kind == ast.FullJoin)
		side(n.R, n.Kind == ast.LeftJoin || n.Kind == ast.FullJoin)
		c.expr(n.On)
	}
}

func (c *recursionCheck) exprs(list []ast.Expr) {
	for _, e := range list {
		c.expr(e)
	}
}

// expr visits the subqueries of an expression; every table that an expression names stands in one.
func (c *recursionCheck) expr(e ast.Expr) {
	if e == nil {
		return
	}
	outer := c.within
	c.within = "a subquery"
	ast.InspectExpr(e, ast.Visitor{Table: c.ref})
	c.within = outer
}
