package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// closeRelated closes the tables that commands concern beside t: the parents of foreign keys that they add or validate, and the other tables of
// foreign keys over columns whose type they change. It must come before the statement's first write; outside of a block a transaction must
// begin afterwards.
func (r *run) closeRelated(ctx context.Context, t *catalog.TableDescriptor, commands []ast.AlterCommand) error {
	if _, err := r.closeParents(ctx, t, addedBy(commands)); err != nil {
		return err
	}
	for _, cmd := range commands {
		var others []uint64
		switch n := cmd.(type) {
		case *ast.TableCommand:
			if k := t.ForeignKeyNamed(n.Name); k != nil && n.Action == "VALIDATE CONSTRAINT" {
				others = append(others, k.Parent)
			}
		case *ast.AlterColumn:
			if ord := t.ColumnNamed(n.Name); ord >= 0 && n.SetType != nil {
				all, err := r.keysOver(ctx, t, t.Columns[ord].ID)
				if err != nil {
					return err
				}
				for _, ref := range all {
					others = append(others, ref.Table.ID, ref.Key.Parent)
				}
			}
		}
		for _, id := range others {
			if err := r.closeOther(ctx, t, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeOther closes a table other than t. In a block its rows must be those of the block's snapshot.
func (r *run) closeOther(ctx context.Context, t *catalog.TableDescriptor, id uint64) error {
	if id == t.ID || r.ch.Created(id) || r.ch.Closed(id) {
		return nil
	}
	other, err := r.r.RelationByID(ctx, id)
	if err != nil || other == nil {
		return err
	}
	if err := r.ch.Close(ctx, other); err != nil || r.alone {
		return err
	}
	return r.requireUnchanged(ctx, other)
}

// keysOver lists the foreign keys over a column of t: its own, and those that reference the column.
func (r *run) keysOver(ctx context.Context, t *catalog.TableDescriptor, column uint32) ([]catalog.Reference, error) {
	all, err := catalog.ReferencesTo(ctx, r.r, t)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(ref catalog.Reference) bool {
		return !slices.Contains(ref.Key.ParentColumns, column) && !(ref.Table.ID == t.ID && slices.Contains(ref.Key.Columns, column))
	})
	for i := range t.ForeignKeys {
		k := &t.ForeignKeys[i]
		if k.Parent != t.ID && slices.Contains(k.Columns, column) {
			all = append(all, catalog.Reference{Table: t, Key: k})
		}
	}
	return all, nil
}

// refitKeys checks that foreign keys over a column of t still hold after its type has changed. All their tables are closed.
func (r *run) refitKeys(ctx context.Context, t *catalog.TableDescriptor, column uint32) error {
	all, err := r.keysOver(ctx, t, column)
	if err != nil {
		return err
	}
	for _, ref := range all {
		parent, err := r.r.RelationByID(ctx, ref.Key.Parent)
		if err != nil {
			return err
		}
		if err := requireComparable(ref.Table, parent, ref.Key); err != nil {
			return err
		}
		if ref.Key.NotValid {
			continue
		}
		if err := r.verifyForeignKey(ctx, ref.Table, ref.Key); err != nil {
			return err
		}
	}
	return nil
}

// validateConstraint is VALIDATE CONSTRAINT.
func (r *run) validateConstraint(ctx context.Context, t *catalog.TableDescriptor, n *ast.TableCommand) error {
	next := t.Clone()
	if k := next.ForeignKeyNamed(n.Name); k != nil {
		if !k.NotValid {
			return nil
		}
		if err := r.verifyForeignKey(ctx, t, k); err != nil {
			return err
		}
		k.NotValid = false
		return r.update(ctx, t, next, false)
	}
	at := slices.IndexFunc(next.Checks, func(c catalog.CheckDescriptor) bool { return c.Name == n.Name })
	switch {
	case at >= 0 && next.Checks[at].NotValid:
		if err := r.verifyRows(ctx, t, t, next.Checks[at:at+1], nil); err != nil {
			return err
		}
		next.Checks[at].NotValid = false
		return r.update(ctx, t, next, false)
	case at >= 0:
		return nil
	case constraintNamed(t, n.Name):
		return pgerror.New(pgerror.WrongObjectType, "constraint %q of relation %q is not a foreign key or check constraint", n.Name, t.Name)
	}
	return noConstraint(t, n.Name)
}

func noConstraint(t *catalog.TableDescriptor, name string) error {
	return pgerror.New(pgerror.UndefinedObject, "constraint %q of relation %q does not exist", name, t.Name)
}

// alterConstraint is ALTER CONSTRAINT.
func (r *run) alterConstraint(ctx context.Context, t *catalog.TableDescriptor, n *ast.TableCommand) error {
	if err := inheritedPart(t, n.Name, "alter"); err != nil {
		return err
	}
	next := t.Clone()
	k := next.ForeignKeyNamed(n.Name)
	if k == nil {
		if constraintNamed(t, n.Name) {
			return pgerror.New(pgerror.WrongObjectType, "constraint %q of relation %q is not a foreign key constraint", n.Name, t.Name)
		}
		return noConstraint(t, n.Name)
	}
	k.Deferred = slices.Contains(n.Attributes, "INITIALLY DEFERRED")
	k.Deferrable = k.Deferred || slices.Contains(n.Attributes, "DEFERRABLE")
	return r.update(ctx, t, next, false)
}

// commentConstraint is COMMENT ON CONSTRAINT of a table.
func (r *run) commentConstraint(ctx context.Context, n *ast.Comment, text string) error {
	t, err := r.mustFindTable(ctx, pathName(n.Pos, n.On))
	if err != nil {
		return err
	}
	name := n.Name[len(n.Name)-1]
	next := t.Clone()
	if k := next.ForeignKeyNamed(name); k != nil {
		k.Comment = text
		return r.update(ctx, t, next, false)
	}
	if at := slices.IndexFunc(next.Checks, func(c catalog.CheckDescriptor) bool { return c.Name == name }); at >= 0 {
		next.Checks[at].Comment = text
		return r.update(ctx, t, next, false)
	}
	if ix := next.IndexNamed(name); ix != nil && ix.Constraint {
		ix.ConstraintComment = text
		return r.update(ctx, t, next, false)
	}
	return pgerror.New(pgerror.UndefinedObject, "constraint %q for table %q does not exist", name, t.Name)
}
