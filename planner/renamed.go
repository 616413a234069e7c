package planner

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// RenamedColumn is a column that has another name from now on.
type RenamedColumn struct {
	Table   *catalog.TableDescriptor // as it was
	Ordinal int
	To      string
	// Before finds relations as they were, After as they will be.
	Before, After catalog.Resolver
	Env           *builtin.Env
}

// RenamedRelation is a relation that has another name from now on, or is in another schema.
type RenamedRelation struct {
	Table        *catalog.TableDescriptor // as it was
	Schema, Name string
	// Before finds relations as they were, After as they will be.
	Before, After catalog.Resolver
	Env           *builtin.Env
}

// InQuery returns the text of a view's query that means the same as text when the relation has its new name. Where the query cannot name it so, its
// old name stays as an alias.
func (c *RenamedRelation) InQuery(ctx context.Context, text string) (string, error) {
	if c.Name != c.Table.Name {
		q, err := storedQuery(text)
		if err != nil {
			return "", err
		}
		if renamed, err := c.throughout(ctx, q); err != nil || renamed {
			return q.String(), err
		} // It may name the row type, which already has the new name.
	}
	q, err := storedQuery(text)
	if err != nil {
		return "", err
	}
	ast.InspectQuery(q, ast.Visitor{Table: func(ref *ast.TableRef) {
		if c.names(ref) && ref.Alias == "" {
			ref.Alias = c.Table.Name
		}
		c.rename(ref)
	}, Expr: func(e ast.Expr) {
		if ref, ok := e.(*ast.ColumnRef); ok && c.qualifies(ref) && len(ref.Parts) == 3 {
			ref.Parts = ref.Parts[1:]
		}
	}})
	return q.String(), nil
}

// throughout has a query name the relation and its columns by the new name. It reports whether the query means the same.
func (c *RenamedRelation) throughout(ctx context.Context, q *ast.Query) (bool, error) {
	before, err := meanings(ctx, q, c.Before, c.Env)
	if err != nil {
		return false, ctx.Err()
	}
	rows := false // a name of the whole row
	ast.InspectQuery(q, ast.Visitor{Table: c.renameWithAlias, Expr: func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.ColumnRef:
			meant, column := before[e]
			switch {
			case column && meant.relation == c.Table.ID && c.qualifies(e):
				e.Parts = []string{c.Name, e.Parts[len(e.Parts)-1]}
			case !column && e.Parts[len(e.Parts)-1] == c.Table.Name:
				rows = true
			}
		case *ast.Star:
			rows = rows || len(e.Table) > 0 && e.Table[len(e.Table)-1] == c.Table.Name
		}
	}})
	if rows {
		return false, nil
	}
	after, err := meanings(ctx, q, c.After, c.Env)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil && maps.Equal(before, after), nil
}

func (c *RenamedRelation) names(ref *ast.TableRef) bool {
	return ref.Name.Schema == c.Table.Schema && ref.Name.Name == c.Table.Name
}

func (c *RenamedRelation) rename(ref *ast.TableRef) {
	if c.names(ref) {
		ref.Name.Schema, ref.Name.Name = c.Schema, c.Name
	}
}

// renameWithAlias is rename for a reference whose alias is the relation's name, too: it has one because it names columns.
func (c *RenamedRelation) renameWithAlias(ref *ast.TableRef) {
	if c.names(ref) && ref.Alias == c.Table.Name {
		ref.Alias = c.Name
	}
	c.rename(ref)
}

// qualifies reports whether a name is qualified by the old name.
func (c *RenamedRelation) qualifies(ref *ast.ColumnRef) bool {
	last := len(ref.Parts) - 2
	return last >= 0 && ref.Parts[last] == c.Table.Name && (last == 0 || ref.Parts[last-1] == c.Table.Schema)
}

// DroppedColumn is a column that a table does not have any more.
type DroppedColumn struct {
	Table   *catalog.TableDescriptor // as it was
	Ordinal int
}

// InQuery returns the text of a view's query in which the table's columns have the names that they had: aliases of columns go by their order.
func (c *DroppedColumn) InQuery(text string) (string, error) {
	q, err := storedQuery(text)
	if err != nil {
		return "", err
	}
	place, changed := 0, false
	for i := range c.Ordinal {
		if !c.Table.Columns[i].Hidden {
			place++
		}
	}
	ast.InspectQuery(q, ast.Visitor{Table: func(ref *ast.TableRef) {
		if ref.Name.Schema == c.Table.Schema && ref.Name.Name == c.Table.Name && len(ref.Columns) > place {
			ref.Columns, changed = slices.Delete(slices.Clone(ref.Columns), place, place+1), true
		}
	}})
	if !changed {
		return text, nil
	}
	return q.String(), nil
}

// AddedColumn is a column that a table has from now on.
type AddedColumn struct {
	Table *catalog.TableDescriptor // as it was
	Name  string
	// Before finds relations as they were, After as they will be.
	Before, After catalog.Resolver
	Env           *builtin.Env
}

// InQuery returns the text of a view's query that means the same as text when the table has the new column. Where its name would be in the way, the
// query gives it another one.
func (c *AddedColumn) InQuery(ctx context.Context, text string) (string, error) {
	q, err := storedQuery(text)
	if err != nil {
		return "", err
	}
	before, err := meanings(ctx, q, c.Before, c.Env)
	if err != nil {
		return text, ctx.Err() // It is broken already.
	}
	same := func() bool {
		after, err := meanings(ctx, q, c.After, c.Env)
		return err == nil && maps.Equal(before, after)
	}
	joins, err := c.aliasInJoins(ctx, q)
	if err != nil {
		return "", err
	}
	if !c.alias(q, false) && !joins && same() {
		return text, nil
	}
	if !same() {
		c.alias(q, true)
		if ctx.Err() == nil && !same() {
			return "", pgerror.Unsupported("ADD COLUMN of a name that a view uses for other columns", "Drop the view first, and create it again.")
		}
	}
	return q.String(), ctx.Err()
}

// alias gives the column an alias in references to the table that name columns, if all in the others, too. It reports whether there are any.
func (c *AddedColumn) alias(q *ast.Query, all bool) (found bool) {
	ast.InspectQuery(q, ast.Visitor{Table: func(ref *ast.TableRef) {
		if ref.Name.Schema != c.Table.Schema || ref.Name.Name != c.Table.Name || len(ref.Columns) == 0 && !all {
			return
		}
		found = true
		names := visibleNames(c.Table)
		copy(names, ref.Columns)
		name := c.Name
		for n := 1; slices.Contains(names, name) || all && n == 1; n++ {
			name = c.Name + "_" + strconv.Itoa(n)
		}
		if ref.Alias == "" {
			ref.Alias = c.Table.Name
		}
		ref.Columns = append(names, name)
	}})
	return found
}

// aliasInJoins gives the column an alias in joins whose columns have names by their order. It reports whether there are any.
func (c *AddedColumn) aliasInJoins(ctx context.Context, q *ast.Query) (found bool, err error) {
	b := verbatimBinder(ctx, c.Before, c.Env)
	if _, err := b.bindQuery(q, nil, true); err != nil {
		return false, err
	}
	ast.InspectQuery(q, ast.Visitor{Join: func(j *ast.Join) {
		if len(j.Columns) == 0 || err != nil {
			return
		}
		columns, ok := c.joined(b.notes, j)
		if !ok {
			err = pgerror.Unsupported("ADD COLUMN of a table in a natural join whose columns a view gives names", "Drop the view first, and create it again.")
			return
		}
		for at, column := range columns {
			if !column.added || at > len(j.Columns) {
				continue
			}
			name := c.Name
			for n := 1; slices.Contains(j.Columns, name); n++ {
				name = c.Name + "_" + strconv.Itoa(n)
			}
			j.Columns, found = slices.Insert(slices.Clone(j.Columns), at, name), true
		}
	}})
	return found, err
}

// joinedColumn is a column of a FROM item.
type joinedColumn struct {
	name  string
	added bool
}

// joined lists the columns that a FROM item will have. It fails for NATURAL, whose columns the new one may be among.
func (c *AddedColumn) joined(notes *bindNotes, t ast.TableExpr) (columns []joinedColumn, ok bool) {
	join, isJoin := t.(*ast.Join)
	if !isJoin {
		for _, name := range notes.columns[t] {
			columns = append(columns, joinedColumn{name: name})
		}
		if ref, table := t.(*ast.TableRef); table && ref.Name.Schema == c.Table.Schema && ref.Name.Name == c.Table.Name {
			columns = append(columns, joinedColumn{c.Name, true})
		}
		return columns, true
	}
	for _, name := range join.Using {
		columns = append(columns, joinedColumn{name: name})
	}
	for _, side := range []ast.TableExpr{join.L, join.R} {
		of, known := c.joined(notes, side)
		if !known {
			return nil, false
		}
		for _, column := range of {
			if column.added || !slices.Contains(join.Using, column.name) {
				columns = append(columns, column)
			}
		}
	}
	return columns, !join.Natural
}

// visibleNames are the names of a table's columns.
func visibleNames(t *catalog.TableDescriptor) []string {
	var names []string
	for i := range t.Columns {
		if !t.Columns[i].Hidden {
			names = append(names, t.Columns[i].Name)
		}
	}
	return names
}

// storedQuery parses the query of a view.
func storedQuery(text string) (*ast.Query, error) {
	stmt, err := sql.ParseStatement(text)
	if err != nil {
		return nil, err
	}
	q, ok := stmt.(*ast.Query)
	if !ok {
		return nil, pgerror.New(pgerror.DataCorrupted, "a view does not hold a query")
	}
	return q, nil
}

// wholeRow is the ordinal of a name that means the row.
const wholeRow = -1

// namedColumn is a column of a relation.
type namedColumn struct {
	relation uint64
	ordinal  int
}

// InQuery returns the text of a view's query that means the same as text when the column has its new name. Where a name in it would then mean
// something else, as in JOIN … USING, the query gives the table's columns the names that they had.
func (c *RenamedColumn) InQuery(ctx context.Context, text string) (string, error) {
	q, before, err := c.names(ctx, text)
	if err != nil {
		return "", err
	}
	from, changed := c.Table.Columns[c.Ordinal].Name, map[*ast.ColumnRef]bool{}
	for ref, meant := range before {
		if last := len(ref.Parts) - 1; meant == (namedColumn{c.Table.ID, c.Ordinal}) && ref.Parts[last] == from {
			ref.Parts[last], changed[ref] = c.To, true
		}
	}
	ast.InspectQuery(q, ast.Visitor{Item: func(it *ast.SelectItem) {
		// An output column keeps its name, which may be that of what it is computed from.
		ast.InspectExpr(it.Expr, ast.Visitor{Expr: func(e ast.Expr) {
			if ref, ok := e.(*ast.ColumnRef); ok && changed[ref] && it.Name == from {
				it.Aliased = true
			}
		}})
	}})
	after, err := meanings(ctx, q, c.After, c.Env)
	if err == nil && maps.Equal(before, after) {
		return q.String(), nil
	}
	return c.keepingNames(ctx, text)
}

// names parses a query and finds what its names mean.
func (c *RenamedColumn) names(ctx context.Context, text string) (*ast.Query, map[*ast.ColumnRef]namedColumn, error) {
	q, err := storedQuery(text)
	if err != nil {
		return nil, nil, err
	}
	meant, err := meanings(ctx, q, c.Before, c.Env)
	return q, meant, err
}

// meanings finds which columns of relations the names in a stored query mean.
func meanings(ctx context.Context, q *ast.Query, r catalog.Resolver, env *builtin.Env) (map[*ast.ColumnRef]namedColumn, error) {
	meant := map[*ast.ColumnRef]namedColumn{}
	b := &binder{ctx: ctx, r: catalog.ForStored(r), env: env, noSlots: true, stored: 1, shallow: true}
	b.onName = func(ref *ast.ColumnRef, t *catalog.TableDescriptor, ordinal int) {
		now := namedColumn{t.ID, ordinal}
		if was, ok := meant[ref]; ok && was != now {
			now.ordinal = wholeRow
		}
		meant[ref] = now
	}
	_, err := b.bindQuery(q, nil, true)
	return meant, err
}

// keepingNames has a query name the columns of the table as they were, by an alias.
func (c *RenamedColumn) keepingNames(ctx context.Context, text string) (string, error) {
	q, _, err := c.names(ctx, text)
	if err != nil {
		return "", err
	}
	names := visibleNames(c.Table)
	ast.InspectQuery(q, ast.Visitor{Table: func(ref *ast.TableRef) {
		if ref.Name.Schema == c.Table.Schema && ref.Name.Name == c.Table.Name {
			if ref.Alias == "" {
				ref.Alias = c.Table.Name
			}
			ref.Columns = append(slices.Clip(ref.Columns), names[len(ref.Columns):]...)
		}
	}})
	_, err = meanings(ctx, q, c.After, c.Env)
	return q.String(), err
}
