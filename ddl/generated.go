package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// inGenerated is the place of generation expressions, as errors name it.
const inGenerated = "column generation expressions"

// setGenerated checks the expression of a generated column of t, which has all its columns, and stores its text.
func (r *run) setGenerated(ctx context.Context, t *catalog.TableDescriptor, column string, e ast.Expr) error {
	col := &t.Columns[t.ColumnNamed(column)]
	for _, name := range columnNames(e) {
		if ord := t.ColumnNamed(name); ord >= 0 && (t.Columns[ord].Generated != "" || name == column) {
			return pgerror.New(invalidObjectDefinition, "cannot use generated column %q in column generation expression", name).
				WithDetail("A generated column cannot reference another generated column.").At(e.Position())
		}
	}
	bound, err := r.bind(ctx, t, e, col.Type, inGenerated)
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.DatatypeMismatch {
		from, err := r.bind(ctx, t, e, types.Type{}, inGenerated)
		if err != nil {
			return err
		}
		base := from.Type().Base()
		return pgerror.New(pgerror.DatatypeMismatch, "column %q is of type %s but default expression is of type %s",
			col.Name, col.Type.String(), base.String()).WithHint("You will need to rewrite or cast the expression.").At(e.Position())
	}
	if err != nil {
		return err
	}
	if !expr.Immutable(bound) {
		return pgerror.New(invalidObjectDefinition, "generation expression is not immutable")
	}
	col.Generated = r.pinned(e)
	return nil
}

// addGenerated sets the expressions of the generated columns of a new table.
func (b *builder) addGenerated(ctx context.Context, n *ast.CreateTable) error {
	for i := range n.Columns {
		if def := &n.Columns[i]; def.Generated != nil {
			b.t.Columns[b.t.ColumnNamed(def.Name)].Generated = "NULL" // for those that name it
		}
	}
	for i := range n.Columns {
		if def := &n.Columns[i]; def.Generated != nil {
			if err := b.setGenerated(ctx, b.t, def.Name, def.Generated); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillGenerated rewrites every row of t with the value of the generated column that next has last.
func (r *run) fillGenerated(ctx context.Context, t, next *catalog.TableDescriptor) error {
	renumber(next)
	all, err := planner.BindGenerated(ctx, next, r.r, r.Env)
	if err != nil {
		return err
	}
	col, bound := &next.Columns[len(next.Columns)-1], all[len(all)-1].Value
	ev := r.evaluator(ctx)
	err = r.rewrite(ctx, t, next, func(row types.Row) (types.Row, error) {
		row = append(row[:len(row):len(row)], types.Null)
		d, err := ev.eval(bound, row)
		if err == nil && d.IsNull() && col.NotNull {
			err = containsNulls(next, len(next.Columns)-1)
		}
		row[len(row)-1] = d
		return row, err
	})
	if err != nil {
		return err
	}
	if err := r.dropIndexes(ctx, t); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// generatedFrom lists the generated columns of t that are computed from a column.
func generatedFrom(t *catalog.TableDescriptor, column string) (names []string, err error) {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Generated == "" {
			continue
		}
		e, err := sql.ParseExpr(c.Generated)
		if err != nil {
			return nil, err
		}
		if slices.Contains(columnNames(e), column) {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

// dropGeneratedFrom drops the generated columns that are computed from a column, if cascade permits it.
func (r *run) dropGeneratedFrom(ctx context.Context, t *catalog.TableDescriptor, n *ast.DropColumn) (*catalog.TableDescriptor, error) {
	names, err := generatedFrom(t, n.Name)
	if err != nil || len(names) == 0 {
		return t, err
	}
	what := "column " + n.Name + " of table " + t.Name
	var others []string
	d := newDropping(r)
	for _, name := range names {
		others = append(others, "column "+name+" of table "+t.Name)
		d.why = append(d.why, "column "+name+" of table "+t.Name+" depends on "+what)
	}
	if !n.Cascade {
		return nil, d.refuse(ctx, what)
	}
	r.noticeCascade(others)
	for _, name := range names {
		if err := r.alterDropColumn(ctx, t, &ast.DropColumn{Pos: n.Pos, Name: name, Cascade: true}); err != nil {
			return nil, err
		}
		if t, err = r.current(ctx, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// renameInGenerated renames a column in the expressions of generated columns.
func renameInGenerated(t *catalog.TableDescriptor, from, to string) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Generated == "" {
			continue
		}
		e, err := sql.ParseExpr(c.Generated)
		if err != nil {
			return err
		}
		ast.InspectExpr(e, ast.Visitor{Expr: func(e ast.Expr) {
			if ref, ok := e.(*ast.ColumnRef); ok && ref.Parts[len(ref.Parts)-1] == from {
				ref.Parts[len(ref.Parts)-1] = to
			}
		}})
		c.Generated = e.String()
	}
	return nil
}

// dropExpression is ALTER COLUMN … DROP EXPRESSION: the column keeps its values.
func (r *run) dropExpression(ctx context.Context, t, next *catalog.TableDescriptor, ord int, n *ast.AlterColumn) error {
	if next.Columns[ord].Generated == "" {
		if n.IfExists {
			r.noticeAbsent("column %q of relation %q is not a stored generated column, skipping", n.Name, t.Name)
			return nil
		}
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "column %q of relation %q is not a stored generated column", n.Name, t.Name)
	}
	next.Columns[ord].Generated = ""
	return r.update(ctx, t, next, true)
}
