package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// renameRelation renames a table, view or sequence, in the queries of the views that use it as well.
func (r *run) renameRelation(ctx context.Context, t *catalog.TableDescriptor, name string) error {
	if taken, err := r.nameTaken(ctx, t.Schema, name); err != nil || taken {
		return errorOr(err, relationExists(name))
	}
	if row, _ := t.RowType(); row != 0 {
		if err := r.freeTypeName(ctx, t.Schema, name); err != nil {
			return err
		}
	}
	t, err := r.nameRowType(ctx, t, t.Schema, name)
	if err != nil {
		return err
	}
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return err
	}
	next := t.Clone()
	next.Name = name
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	for _, view := range users {
		if err := r.renameInView(ctx, view, t, t.Schema, name); err != nil {
			return err
		}
	}
	if err := r.renameInPolicies(ctx, t, name); err != nil {
		return err
	}
	return r.renameInObservers(ctx, t, name)
}

// renameInView has a view's query name a relation by its new name. The old one stays as its alias, for
// the columns that are qualified by it.
func (r *run) renameInView(ctx context.Context, view, t *catalog.TableDescriptor, schema, name string) error {
	stmt, err := sql.ParseStatement(view.ViewQuery)
	if err != nil {
		return err
	}
	query, ok := stmt.(*ast.Query)
	if !ok {
		return pgerror.New(pgerror.InternalError, "query of view %q is a %T", view.Name, stmt)
	}
	ast.InspectQuery(query, ast.Visitor{Table: func(ref *ast.TableRef) {
		if ref.Name.Schema == t.Schema && ref.Name.Name == t.Name {
			ref.Name.Schema, ref.Name.Name = schema, name
			if ref.Alias == "" {
				ref.Alias = t.Name
			}
		}
	}, Expr: func(e ast.Expr) {
		if ref, ok := e.(*ast.ColumnRef); ok && len(ref.Parts) == 3 && ref.Parts[0] == t.Schema && ref.Parts[1] == t.Name {
			ref.Parts = ref.Parts[1:]
		}
	}})
	next := view.Clone()
	next.ViewQuery = query.String()
	return r.update(ctx, view, next, false)
}

func (r *run) renameColumn(ctx context.Context, t *catalog.TableDescriptor, n *ast.RenameColumn) error {
	ord := t.ColumnNamed(n.From)
	if ord < 0 && catalog.IsSystemColumn(n.From) {
		return noColumn(t, n.From, "rename", n.Position())
	}
	if err := notSystemColumn(t, n.To, n.Position()); err != nil {
		return err
	}
	if ord < 0 {
		return pgerror.New(pgerror.UndefinedColumn, "column %q does not exist", n.From).At(n.Position())
	}
	if t.ColumnNamed(n.To) >= 0 {
		return pgerror.New(pgerror.DuplicateColumn, "column %q of relation %q already exists", n.To, t.Name).At(n.Position())
	}
	next := t.Clone()
	next.Columns[ord].Name = n.To
	if t.HasQuery() {
		if err := r.nameOutputs(ctx, next); err != nil {
			return err
		}
	}
	if err := renameInGenerated(next, n.From, n.To); err != nil {
		return err
	}
	if err := renameColumnInObservers(next, n.From, n.To); err != nil {
		return err
	}
	if err := renameInTriggers(next, n.From, n.To); err != nil {
		return err
	}
	if err := r.renameColumnInPolicies(ctx, next, n.From, n.To); err != nil {
		return err
	}
	policies, err := r.brokenPolicies(ctx, t, next)
	if err != nil {
		return err
	}
	for _, use := range policies {
		if use.table.ID != t.ID {
			return pgerror.Unsupported("renaming a column that a policy's subquery uses", "Drop policy "+use.policy.Name+" first and create it again.").At(n.Position())
		}
	}
	if users, err := r.brokenObservers(ctx, t, next); err != nil {
		return err
	} else if len(users) > 0 {
		return pgerror.Unsupported("renaming a column that an observer uses",
			"Drop observer "+users[0].observer.Name+" first and create it again.").At(n.Position())
	}
	for i := range next.Checks {
		e, err := sql.ParseExpr(next.Checks[i].Expr)
		if err != nil {
			return err
		}
		ast.InspectExpr(e, ast.Visitor{Expr: func(e ast.Expr) {
			if ref, ok := e.(*ast.ColumnRef); ok && ref.Parts[len(ref.Parts)-1] == n.From {
				ref.Parts[len(ref.Parts)-1] = n.To
			}
		}})
		next.Checks[i].Expr = e.String()
	}
	err = r.mapIndexExpressions(ctx, next, func(e ast.Expr) {
		ast.InspectExpr(e, ast.Visitor{Expr: func(e ast.Expr) {
			if ref, ok := e.(*ast.ColumnRef); ok && ref.Parts[len(ref.Parts)-1] == n.From {
				ref.Parts[len(ref.Parts)-1] = n.To
			}
		}})
	})
	if err != nil {
		return err
	}
	if err := r.renameColumnInViews(ctx, t, next, ord); err != nil {
		return err
	}
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	return r.requireNoFieldUses(ctx, n.From, "column "+n.From+" of table "+t.Name, true)
}

// renameColumnInViews has the queries of views name a column by the name that it has in next.
func (r *run) renameColumnInViews(ctx context.Context, t, next *catalog.TableDescriptor, ord int) error {
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return err
	}
	c := planner.RenamedColumn{Table: t, Ordinal: ord, To: next.Columns[ord].Name, Before: r.r, After: replaced{r.r, next}, Env: r.Env}
	for _, view := range users {
		changed := view.Clone()
		if changed.ViewQuery, err = c.InQuery(ctx, view.ViewQuery); err != nil {
			return err
		}
		if changed.ViewQuery == view.ViewQuery {
			continue
		}
		if err := r.update(ctx, view, changed, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) renameConstraint(ctx context.Context, t *catalog.TableDescriptor, n *ast.RenameConstraint) error {
	if constraintNamed(t, n.To) {
		return pgerror.New(pgerror.DuplicateObject, "constraint %q for relation %q already exists", n.To, t.Name).At(n.Position())
	}
	if err := inheritedPart(t, n.From, "rename"); err != nil {
		return err
	}
	next := t.Clone()
	for i := range next.Checks {
		if next.Checks[i].Name == n.From {
			next.Checks[i].Name = n.To
			return r.update(ctx, t, next, false)
		}
	}
	if k := next.ForeignKeyNamed(n.From); k != nil {
		k.Name = n.To
		return r.update(ctx, t, next, false)
	}
	ix := next.IndexNamed(n.From)
	if ix == nil || !ix.Constraint {
		return pgerror.New(pgerror.UndefinedObject, "constraint %q for table %q does not exist", n.From, t.Name).At(n.Position())
	}
	if taken, err := r.nameTaken(ctx, t.Schema, n.To); err != nil || taken {
		return errorOr(err, relationExists(n.To))
	}
	ix.Name = n.To
	return r.update(ctx, t, next, false)
}

// alterIndex is ALTER INDEX.
func (r *run) alterIndex(ctx context.Context, n *ast.AlterTable) error {
	t, ix, err := catalog.FindIndex(ctx, r.r, n.Name.Schema, n.Name.Name)
	if err != nil {
		return err
	}
	if ix == nil {
		if n.IfExists {
			r.noticeAbsent("relation %q does not exist, skipping", n.Name.Name)
			return nil
		}
		return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(n.Name)).At(n.Name.Position())
	}
	return r.alterIndexCommands(ctx, n, t, ix, nil)
}

func (r *run) alterIndexCommands(ctx context.Context, n *ast.AlterTable, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, err error) error {
	if err != nil {
		return err
	}
	for _, cmd := range n.Commands {
		switch c := cmd.(type) {
		case *ast.TableCommand:
			if c.Action != "ATTACH PARTITION" || !t.IsPartitioned() {
				return pgerror.New(pgerror.WrongObjectType, "ALTER action %s cannot be performed on relation %q", c.Action, n.Name.Name).
					WithDetail("This operation is not supported for indexes.")
			}
			return r.attachIndex(ctx, t, ix, c)
		case *ast.RenameTo:
			if taken, err := r.nameTaken(ctx, t.Schema, c.Name); err != nil || taken {
				return errorOr(err, relationExists(c.Name))
			}
			next := t.Clone()
			next.IndexNamed(ix.Name).Name = c.Name
			if err := r.update(ctx, t, next, false); err != nil {
				return err
			}
		case *ast.SetStorage:
			if c.Action == "OWNER TO" {
				r.Report.Notice(pgerror.New(pgerror.Warning, "cannot change owner of index %q", ix.Name).
					WithHint("Change the ownership of the index's table, instead."))
				continue
			}
			if c.Column == "" && (c.Action == "SET" || c.Action == "RESET") {
				next := t.Clone()
				if err := setIndexOptions(next.IndexNamed(ix.Name), c); err != nil {
					return err
				}
				if err := r.update(ctx, t, next, false); err != nil {
					return err
				}
				continue
			}
			if c.Action == "SET SCHEMA" {
				return pgerror.Unsupported("ALTER INDEX "+c.String(), "percodb has nothing that it would change.").At(c.Position())
			}
		default:
			return pgerror.New(pgerror.WrongObjectType, "ALTER action cannot be performed on relation %q", n.Name.Name).
				WithDetail("This operation is not supported for indexes.")
		}
	}
	return nil
}
