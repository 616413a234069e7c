package planner

import (
	"context"
	"maps"
	"slices"

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
	stmt, err := sql.ParseStatement(text)
	if err != nil {
		return nil, nil, err
	}
	q, ok := stmt.(*ast.Query)
	if !ok {
		return nil, nil, pgerror.New(pgerror.DataCorrupted, "a view does not hold a query")
	}
	meant, err := meanings(ctx, q, c.Before, c.Env)
	return q, meant, err
}

// meanings finds which columns of relations the names in a stored query mean.
func meanings(ctx context.Context, q *ast.Query, r catalog.Resolver, env *builtin.Env) (map[*ast.ColumnRef]namedColumn, error) {
	meant := map[*ast.ColumnRef]namedColumn{}
	b := &binder{ctx: ctx, r: catalog.ForStored(r), env: env, noSlots: true, stored: 1, shallow: true}
	b.onName = func(ref *ast.ColumnRef, t *catalog.TableDescriptor, ordinal int) {
		meant[ref] = namedColumn{t.ID, ordinal}
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
	var names []string
	for i := range c.Table.Columns {
		if !c.Table.Columns[i].Hidden {
			names = append(names, c.Table.Columns[i].Name)
		}
	}
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
