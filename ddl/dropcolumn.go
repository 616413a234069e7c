package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// alterDropColumn drops a column with the indexes and constraints that name it. Rows keep its bytes, which are not read
// any more, unless the column was part of the primary key, which is dropped with it.
func (r *run) alterDropColumn(ctx context.Context, t *catalog.TableDescriptor, n *ast.DropColumn) error {
	ord := t.ColumnNamed(n.Name)
	if ord < 0 {
		if n.IfExists && !catalog.IsSystemColumn(n.Name) {
			r.noticeAbsent("column %q of relation %q does not exist, skipping", n.Name, t.Name)
			return nil
		}
		return noColumn(t, n.Name, "drop", n.Position())
	}
	if err := r.requireNoRowKeys(ctx, t, "DROP COLUMN"); err != nil {
		return err
	}
	id := t.Columns[ord].ID
	t, err := r.dropGeneratedFrom(ctx, t, n)
	if err != nil {
		return err
	}
	if t, err = r.dropColumnKeys(ctx, t, n, id); err != nil {
		return err
	}
	ord = t.Ordinal(id)
	if holdsColumn(&t.Primary, id) {
		// The rows must lie elsewhere before the column goes.
		if err := r.dropPrimaryKey(ctx, t); err != nil {
			return err
		}
		if t, err = r.current(ctx, t); err != nil {
			return err
		}
		ord = t.Ordinal(id)
	}
	triggers, err := triggersNaming(t, &t.Columns[ord])
	if err != nil {
		return err
	}
	if len(triggers) > 0 && !n.Cascade {
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop column %s of table %s because other objects depend on it", n.Name, t.Name).
			WithDetail("%s", triggers[0].line).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	next := t.Clone()
	for _, u := range triggers {
		next.Triggers = slices.DeleteFunc(next.Triggers, func(g catalog.TriggerDescriptor) bool { return g.Name == u.name })
	}
	next.Columns = append(next.Columns[:ord], next.Columns[ord+1:]...)
	// What is bound to the table without the column finds neither its indexes nor its checks.
	dropped, err := withoutKeysOn(t, next, ord)
	if err != nil {
		return err
	}
	if err := r.dropAliases(ctx, t, ord); err != nil {
		return err
	}
	if err := r.dropBroken(ctx, t, next, "column "+n.Name+" of table "+t.Name, n.Cascade); err != nil {
		return err
	}
	for _, ix := range dropped {
		if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: ix}); err != nil {
			return err
		}
	}
	err = r.dropBuilds(ctx, next, func(b *catalog.IndexBuild) (bool, error) {
		return namesColumn(t.WithBuild(b), &b.Index, &t.Columns[ord])
	})
	if err != nil {
		return err
	}
	if seq := t.Columns[ord].Sequence; seq != 0 {
		if err := r.dropOwnedSequence(ctx, seq); err != nil {
			return err
		}
	}
	if err := r.update(ctx, t, next, len(next.Observers) < len(t.Observers)); err != nil {
		return err
	}
	return r.dropFieldUses(ctx, n.Name, "column "+n.Name+" of table "+t.Name, n.Cascade)
}

// withoutKeysOn removes the indexes and checks from next that name a column of t, and returns the ids of the indexes.
func withoutKeysOn(t, next *catalog.TableDescriptor, ord int) (dropped []uint32, err error) {
	next.Indexes = nil
	for i := range t.Indexes {
		names, err := namesColumn(t, &t.Indexes[i], &t.Columns[ord])
		if err != nil {
			return nil, err
		}
		if names {
			dropped = append(dropped, t.Indexes[i].ID)
		} else {
			next.Indexes = append(next.Indexes, t.Indexes[i])
		}
	}
	pruneComputed(next)
	next.Checks, err = checksWithout(t, t.Columns[ord].Name)
	return dropped, err
}

// dropAliases removes the alias that views give a column, which would become that of the next one.
func (r *run) dropAliases(ctx context.Context, t *catalog.TableDescriptor, ord int) error {
	users, err := r.viewsOn(ctx, t.ID)
	if err != nil {
		return err
	}
	c := planner.DroppedColumn{Table: t, Ordinal: ord}
	var changed []changedView
	for _, view := range users {
		text, err := c.InQuery(view.ViewQuery)
		if err != nil {
			return err
		}
		changed = append(changed, changedView{view, text})
	}
	return r.storeViews(ctx, changed)
}

// dropColumnKeys drops the foreign keys over a column, and, if cascade permits it, those to it.
func (r *run) dropColumnKeys(ctx context.Context, t *catalog.TableDescriptor, n *ast.DropColumn, id uint32) (*catalog.TableDescriptor, error) {
	what := "column " + n.Name + " of table " + t.Name
	err := r.dropReferences(ctx, t, what, what, n.Cascade, func(k *catalog.ForeignKeyDescriptor) bool {
		return slices.Contains(k.ParentColumns, id) && !(k.Parent == t.ID && slices.Contains(k.Columns, id) && t.ForeignKeyNamed(k.Name) != nil)
	})
	if err != nil {
		return nil, err
	}
	for {
		if t, err = r.withKeysOf(ctx, t); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(t.ForeignKeys, func(k catalog.ForeignKeyDescriptor) bool { return slices.Contains(k.Columns, id) })
		if at < 0 {
			return t, nil
		}
		if err := r.dropForeignKey(ctx, t, t.ForeignKeys[at].Name); err != nil {
			return nil, err
		}
	}
}

func holdsColumn(ix *catalog.IndexDescriptor, id uint32) bool {
	return slices.Contains(ix.Include, id) ||
		slices.ContainsFunc(ix.Inverted, func(c catalog.InvertedColumn) bool { return c.ColumnID == id }) ||
		slices.ContainsFunc(ix.Exclude, func(e catalog.ExcludeElement) bool { return e.ColumnID == id }) ||
		slices.ContainsFunc(ix.Columns, func(c catalog.IndexColumn) bool { return c.ColumnID == id })
}

// checksWithout returns the checks that do not name a column.
func checksWithout(t *catalog.TableDescriptor, column string) ([]catalog.CheckDescriptor, error) {
	var kept []catalog.CheckDescriptor
	for _, check := range t.Checks {
		e, err := sql.ParseExpr(check.Expr)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(columnNames(e), column) {
			kept = append(kept, check)
		}
	}
	return kept, nil
}

func (r *run) dropOwnedSequence(ctx context.Context, id uint64) error {
	seq, err := r.r.RelationByID(ctx, id)
	if err != nil || seq == nil {
		return err
	}
	return r.ch.Drop(ctx, seq)
}
