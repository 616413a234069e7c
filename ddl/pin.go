package ddl

import (
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// pin fixes the meaning of the names in a view's query: every relation gets its schema and is recorded in
// view.DependsOn, every star is replaced by its columns.
func (r *run) pin(ctx context.Context, q *ast.Query, view *catalog.TableDescriptor) error {
	var failed error
	ast.InspectQuery(q, ast.Visitor{Table: func(t *ast.TableRef) {
		desc, err := r.mustFind(ctx, t.Name)
		if err != nil {
			failed = err
			return
		}
		t.Name.Schema = desc.Schema
		if !slices.Contains(view.DependsOn, desc.ID) {
			view.DependsOn = append(view.DependsOn, desc.ID)
		}
	}, Expr: func(e ast.Expr) {
		if pos := changesCall(e); pos > 0 && failed == nil {
			failed = pgerror.Unsupported("percodb.changes in a view", "Call it in the statements of the client that handles the changes.").At(pos)
		}
	}})
	if failed != nil {
		return failed
	}
	p := &pinner{r: r, ctx: ctx, items: columnsOf{}}
	if _, err := p.query(q, nil); err != nil {
		return err
	}
	ast.InspectQuery(q, ast.Visitor{Expr: func(e ast.Expr) {
		if sub := subquery(e); sub != nil && failed == nil {
			_, failed = p.query(sub, p.items)
		}
	}})
	return failed
}

// changesCall returns the position of e if it is a call of percodb.changes, otherwise 0.
func changesCall(e ast.Expr) int {
	call, ok := e.(*ast.Call)
	if !ok || len(call.Name) != 2 || call.Name[0] != catalog.OwnSchema || call.Name[1] != "changes" {
		return 0
	}
	return call.Position()
}

// subquery returns the query in an expression, if its columns matter: those of EXISTS do not.
func subquery(e ast.Expr) *ast.Query {
	switch n := e.(type) {
	case *ast.InSubquery:
		return n.Query
	case *ast.Quantified:
		return n.Query
	case *ast.Subquery:
		return n.Query
	case *ast.ArraySubquery:
		return n.Query
	}
	return nil
}

// pinner spells stars out. Its methods return the names of output columns.
type pinner struct {
	r   *run
	ctx context.Context
	// items are the WITH items of the whole query, for subqueries in expressions.
	items columnsOf
}

// source is a table in sight of a select list.
type source struct {
	alias string
	cols  []string
}

// columnsOf are WITH items in sight with their columns.
type columnsOf map[string][]string

func (p *pinner) query(q *ast.Query, ctes columnsOf) ([]string, error) {
	if q.With != nil {
		inner := columnsOf{}
		for name, cols := range ctes {
			inner[name] = cols
		}
		ctes = inner
		for i := range q.With.CTEs {
			cte := &q.With.CTEs[i]
			sub, ok := cte.Statement.(*ast.Query)
			if !ok {
				return nil, pgerror.New(pgerror.FeatureNotSupported, "views must not contain data-modifying statements in WITH")
			}
			if q.With.Recursive {
				// The item names itself; the columns of its first part are known before the star of
				// the second is met.
				ctes[cte.Name] = renamed(p.firstNames(sub, ctes), cte.Columns)
			}
			cols, err := p.query(sub, ctes)
			if err != nil {
				return nil, err
			}
			ctes[cte.Name] = renamed(cols, cte.Columns)
			p.items[cte.Name] = ctes[cte.Name]
		}
	}
	return p.body(q.Body, ctes)
}

// firstNames returns the output names of the leftmost part of a query, as far as they are known.
func (p *pinner) firstNames(q *ast.Query, ctes columnsOf) []string {
	body := q.Body
	for {
		switch b := body.(type) {
		case *ast.SetOp:
			body = b.L
		case *ast.Nested:
			body = b.Query.Body
		default:
			cols, err := p.body(body, ctes)
			if err != nil {
				return nil
			}
			return cols
		}
	}
}

func renamed(cols, names []string) []string {
	out := slices.Clone(cols)
	copy(out, names)
	return out
}

func (p *pinner) body(b ast.QueryBody, ctes columnsOf) ([]string, error) {
	switch n := b.(type) {
	case *ast.Select:
		return p.selectList(n, ctes)
	case *ast.Values:
		var names []string
		if len(n.Rows) > 0 {
			for i := range n.Rows[0] {
				names = append(names, "column"+formatInt(int64(i+1)))
			}
		}
		return names, nil
	case *ast.SetOp:
		left, err := p.body(n.L, ctes)
		if err != nil {
			return nil, err
		}
		_, err = p.body(n.R, ctes)
		return left, err
	case *ast.Nested:
		return p.query(n.Query, ctes)
	}
	return nil, pgerror.New(pgerror.InternalError, "query body %T", b)
}

func (p *pinner) selectList(n *ast.Select, ctes columnsOf) ([]string, error) {
	var sources []source
	for _, t := range n.From {
		found, err := p.table(t, ctes)
		if err != nil {
			return nil, err
		}
		sources = append(sources, found...)
	}
	var items []ast.SelectItem
	for _, item := range n.Columns {
		star, ok := item.Expr.(*ast.Star)
		if !ok {
			items = append(items, item)
			continue
		}
		expanded, err := expand(star, sources)
		if err != nil {
			return nil, err
		}
		items = append(items, expanded...)
	}
	n.Columns = items
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].Name
	}
	return names, nil
}

// expand turns a star into column references.
func expand(star *ast.Star, sources []source) ([]ast.SelectItem, error) {
	var items []ast.SelectItem
	matched := false
	for _, s := range sources {
		if len(star.Table) > 0 && star.Table[len(star.Table)-1] != s.alias {
			continue
		}
		matched = true
		if s.cols == nil {
			return nil, pgerror.Unsupported("* over this FROM clause in a view", "Name the columns.").At(star.Position())
		}
		for _, col := range s.cols {
			ref := &ast.ColumnRef{Parts: []string{col}}
			if s.alias != "" {
				ref.Parts = []string{s.alias, col}
			}
			items = append(items, ast.SelectItem{Expr: ref, Name: col})
		}
	}
	if !matched && len(star.Table) > 0 {
		return nil, pgerror.New(pgerror.UndefinedTable, "missing FROM-clause entry for table %q", star.Table[len(star.Table)-1]).At(star.Position())
	}
	return items, nil
}

// table returns the sources that an item of FROM adds. nil columns: not known here.
func (p *pinner) table(t ast.TableExpr, ctes columnsOf) ([]source, error) {
	switch n := t.(type) {
	case *ast.TableRef:
		cols, err := p.tableColumns(n, ctes)
		alias := n.Alias
		if alias == "" {
			alias = n.Name.Name
		}
		return []source{{alias, renamed(cols, n.Columns)}}, err
	case *ast.DerivedTable:
		cols, err := p.query(n.Query, ctes)
		return []source{{n.Alias, renamed(cols, n.Columns)}}, err
	case *ast.Join:
		return p.join(n, ctes)
	case *ast.TableFunc:
		alias := n.Alias
		if alias == "" {
			alias = n.Call.Name[len(n.Call.Name)-1]
		}
		var cols []string
		if len(n.Columns) > 0 {
			cols = n.Columns
		} else if !n.Ordinality && len(n.ColumnDefs) == 0 && (alias != "unnest" || len(n.Call.Args) == 1) {
			cols = []string{alias}
		}
		return []source{{alias, cols}}, nil
	case *ast.RowsFrom:
		first := n.Functions[0].Call.Name
		return []source{{cmp.Or(n.Alias, first[len(first)-1]), n.Columns}}, nil
	}
	return nil, pgerror.New(pgerror.InternalError, "table expression %T", t)
}

func (p *pinner) tableColumns(n *ast.TableRef, ctes columnsOf) ([]string, error) {
	if n.Name.Schema == "" {
		if cols, ok := ctes[n.Name.Name]; ok {
			return cols, nil
		}
	}
	desc, err := p.r.mustFind(p.ctx, n.Name)
	if err != nil {
		return nil, err
	}
	cols := []string{}
	for i := range desc.Columns {
		if !desc.Columns[i].Hidden {
			cols = append(cols, desc.Columns[i].Name)
		}
	}
	return cols, nil
}

// join returns the sources that a join adds. With USING or NATURAL the common columns come first and belong to no side,
// so the sides are combined, under no alias.
func (p *pinner) join(n *ast.Join, ctes columnsOf) ([]source, error) {
	left, err := p.table(n.L, ctes)
	if err != nil {
		return nil, err
	}
	right, err := p.table(n.R, ctes)
	if err != nil {
		return nil, err
	}
	if len(n.Using) == 0 && !n.Natural {
		return append(left, right...), nil
	}
	common := n.Using
	if n.Natural {
		common = nil
		for _, col := range allColumns(left) {
			if slices.Contains(allColumns(right), col) {
				common = append(common, col)
			}
		}
	}
	merged := []source{{cols: slices.Clone(common)}}
	for _, s := range append(left, right...) {
		merged = append(merged, source{s.alias, slices.DeleteFunc(slices.Clone(s.cols), func(c string) bool { return slices.Contains(common, c) })})
	}
	return merged, nil
}

func allColumns(sources []source) []string {
	var cols []string
	for _, s := range sources {
		cols = append(cols, s.cols...)
	}
	return cols
}
