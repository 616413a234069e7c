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
	next := t.Clone()
	next.Name = name
	users, err := r.renamedViews(ctx, t, next)
	if err != nil {
		return err
	}
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	if err := r.storeViews(ctx, users); err != nil {
		return err
	}
	if err := r.renameInPolicies(ctx, t, name); err != nil {
		return err
	}
	return r.renameInObservers(ctx, t, name)
}

// renamedViews returns the views on a relation as they are when it has another name, or is in another schema.
func (r *run) renamedViews(ctx context.Context, t, next *catalog.TableDescriptor) ([]changedView, error) {
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	c := planner.RenamedRelation{Table: t, Schema: next.Schema, Name: next.Name, Before: r.r, After: moved{r.r, t, next}, Env: r.Env}
	var changed []changedView
	for _, view := range users {
		text, err := c.InQuery(ctx, view.ViewQuery)
		if err != nil {
			return nil, err
		}
		changed = append(changed, changedView{view, text})
	}
	return changed, nil
}

// changedView is a view that gets another text.
type changedView struct {
	view *catalog.TableDescriptor
	text string
}

func (r *run) storeViews(ctx context.Context, changed []changedView) error {
	for _, c := range changed {
		if c.text == c.view.ViewQuery {
			continue
		}
		next := c.view.Clone()
		next.ViewQuery = c.text
		if err := r.update(ctx, c.view, next, false); err != nil {
			return err
		}
	}
	return nil
}

// moved is a resolver in which a relation has another name.
type moved struct {
	catalog.Resolver
	from, to *catalog.TableDescriptor
}

func (m moved) Relation(ctx context.Context, schema, name string) (*catalog.TableDescriptor, error) {
	switch {
	case schema == m.to.Schema && name == m.to.Name:
		return m.to, nil
	case schema == m.from.Schema && name == m.from.Name:
		return nil, nil
	}
	return m.Resolver.Relation(ctx, schema, name)
}

func (m moved) RelationByID(ctx context.Context, id uint64) (*catalog.TableDescriptor, error) {
	if id == m.to.ID {
		return m.to, nil
	}
	return m.Resolver.RelationByID(ctx, id)
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
	return r.requireFieldUnnamed(ctx, n.From, "column "+n.From+" of table "+t.Name)
}

// renameColumnInViews has the queries of views name a column by the name that it has in next.
func (r *run) renameColumnInViews(ctx context.Context, t, next *catalog.TableDescriptor, ord int) error {
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return err
	}
	c := planner.RenamedColumn{Table: t, Ordinal: ord, To: next.Columns[ord].Name, Before: r.r, After: replaced{r.r, next}, Env: r.Env}
	var changed []changedView
	for _, view := range users {
		text, err := c.InQuery(ctx, view.ViewQuery)
		if err != nil {
			return err
		}
		changed = append(changed, changedView{view, text})
	}
	return r.storeViews(ctx, changed)
}

func (r *run) renameConstraint(ctx context.Context, t *catalog.TableDescriptor, n *ast.RenameConstraint) error {
	if constraintNamed(t, n.To) {
		return constraintExists(t, n.To)
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
		if renamed, err := r.renameAsIndex(ctx, n); renamed || err != nil {
			return err
		}
		if n.IfExists {
			r.noticeAbsent("relation %q does not exist, skipping", n.Name.Name)
			return nil
		}
		return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(n.Name)).At(n.Name.Position())
	}
	return r.alterIndexCommands(ctx, n, t, ix, nil)
}

// renameAsIndex is ALTER INDEX … RENAME of a table, a view or a sequence, which PostgreSQL permits, and of an index whose build has failed. It
// reports whether there is one.
func (r *run) renameAsIndex(ctx context.Context, n *ast.AlterTable) (bool, error) {
	if len(n.Commands) != 1 {
		return false, nil
	}
	to, ok := n.Commands[0].(*ast.RenameTo)
	if !ok {
		return false, nil
	}
	if t, build, err := catalog.FindBuild(ctx, r.r, n.Name.Schema, n.Name.Name); err != nil {
		return false, err
	} else if build != nil {
		return true, r.renameBuild(ctx, t, build, to.Name)
	}
	t, err := r.find(ctx, n.Name)
	if err != nil || t == nil || t.Kind == catalog.KindVirtual {
		return false, err
	}
	return true, r.renameRelation(ctx, t, to.Name)
}

// renameBuild renames an index whose build has failed.
func (r *run) renameBuild(ctx context.Context, t *catalog.TableDescriptor, build *catalog.IndexBuild, name string) error {
	if !build.Failed() {
		return &catalog.BuildingError{Table: t.ID, Name: t.Name}
	}
	if taken, err := r.nameTaken(ctx, t.Schema, name); err != nil || taken {
		return errorOr(err, relationExists(name))
	}
	next := t.Clone()
	for i := range next.Builds {
		if next.Builds[i].Index.OID == build.Index.OID {
			next.Builds[i].Index.Name = name
		}
	}
	return r.update(ctx, t, next, false)
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
			if c.Column != "" || c.Number != "" {
				if err := r.alterIndexStatistics(ctx, t, ix, c); err != nil {
					return err
				}
				continue
			}
			if c.Action == "SET" || c.Action == "RESET" {
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
