package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
)

// keyParts makes the constraints that stand for a foreign key of t at the tables below the partitioned one that it references, which are given.
func (r *run) keyParts(ctx context.Context, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor, below []*catalog.TableDescriptor) error {
	var names []string
	for _, id := range k.Columns {
		names = append(names, t.ColumnByID(id).Name)
	}
	used := func(name string) bool {
		return name == k.Name || constraintNamed(t, name) || slices.ContainsFunc(k.Parts, func(p catalog.ForeignKeyPart) bool { return p.Name == name })
	}
	for _, part := range below {
		if k.HasPart(part.ID) {
			continue
		}
		oid, err := r.ch.NewID(ctx)
		if err != nil {
			return err
		}
		k.Parts = append(k.Parts, catalog.ForeignKeyPart{OID: uint32(oid), Name: chooseName(t.Name, joinColumns(names), "fkey", used), Table: part.ID})
	}
	return nil
}

// partsOfParent makes all constraints that stand for a foreign key of t, which references parent.
func (r *run) partsOfParent(ctx context.Context, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor, parent *catalog.TableDescriptor) error {
	tree, err := catalog.PartitionTree(ctx, r.r, parent)
	if err != nil {
		return err
	}
	k.Parts = nil
	return r.keyParts(ctx, t, k, tree[1:])
}

// declaredTo lists the foreign keys that reference rows of t, without those that are parts of others.
func (r *run) declaredTo(ctx context.Context, t *catalog.TableDescriptor) ([]catalog.Reference, error) {
	all, err := catalog.ReferencesToRows(ctx, r.r, t)
	return slices.DeleteFunc(all, func(ref catalog.Reference) bool { return ref.Key.Inherited != 0 }), err
}

// referToPartition has the foreign keys to a partitioned table extend to a new partition of it.
func (r *run) referToPartition(ctx context.Context, parent *catalog.TableDescriptor, id uint64) error {
	return r.changeParts(ctx, parent, id, func(t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor, tree []*catalog.TableDescriptor) error {
		return r.keyParts(ctx, t, k, tree)
	})
}

// leavePartition ends what the foreign keys to a partitioned table have to do with a partition of it, which none of their rows references.
func (r *run) leavePartition(ctx context.Context, parent *catalog.TableDescriptor, id uint64) error {
	return r.changeParts(ctx, parent, id, func(_ *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor, tree []*catalog.TableDescriptor) error {
		k.Parts = slices.DeleteFunc(k.Parts, func(p catalog.ForeignKeyPart) bool {
			return slices.ContainsFunc(tree, func(t *catalog.TableDescriptor) bool { return t.ID == p.Table })
		})
		return nil
	})
}

// changeParts changes the parts of the foreign keys to a partitioned table, for the table with an id and all below it.
func (r *run) changeParts(ctx context.Context, parent *catalog.TableDescriptor, id uint64,
	change func(*catalog.TableDescriptor, *catalog.ForeignKeyDescriptor, []*catalog.TableDescriptor) error) error {
	refs, err := r.declaredTo(ctx, parent)
	if err != nil || len(refs) == 0 {
		return err
	}
	part, err := r.r.RelationByID(ctx, id)
	if err != nil || part == nil {
		return err
	}
	tree, err := catalog.PartitionTree(ctx, r.r, part)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		t, err := r.r.RelationByID(ctx, ref.Table.ID)
		if err != nil {
			return err
		}
		next := t.Clone()
		if err := change(next, next.ForeignKeyNamed(ref.Key.Name), tree); err != nil {
			return err
		}
		if err := r.update(ctx, t, next, false); err != nil {
			return err
		}
	}
	return nil
}

// closeReferencing closes the tables whose rows may reference those of t.
func (r *run) closeReferencing(ctx context.Context, t *catalog.TableDescriptor) error {
	refs, err := catalog.ReferencesToRows(ctx, r.r, t)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if err := r.closeOther(ctx, t, ref.Table.ID); err != nil {
			return err
		}
	}
	return nil
}

// requireUnreferenced fails if a row references one of a partition that is about to leave its parent. The tables concerned are closed.
func (r *run) requireUnreferenced(ctx context.Context, t *catalog.TableDescriptor) error {
	parent, err := r.r.RelationByID(ctx, t.PartitionOf.Parent)
	if err != nil {
		return err
	}
	refs, err := catalog.ReferencesToRows(ctx, r.r, parent)
	if err != nil || len(refs) == 0 {
		return err
	}
	tree, err := catalog.PartitionTree(ctx, r.r, t)
	if err != nil {
		return err
	}
	within := map[uint64]bool{}
	for _, part := range tree {
		within[part.ID] = true
	}
	for _, ref := range refs {
		if ref.Table.IsPartitioned() {
			continue
		}
		if err := r.scanReferences(ctx, ref.Table, ref.Key, &leaving{t, within}); err != nil {
			return err
		}
	}
	return nil
}

// leaving is a partition that is about to leave its parent, and the ids of its tables.
type leaving struct {
	partition *catalog.TableDescriptor
	within    map[uint64]bool
}

// disinherit makes a part of a foreign key one of t itself.
func (r *run) disinherit(ctx context.Context, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) error {
	if k.Inherited == 0 {
		return nil
	}
	k.Inherited = 0
	parent := t
	if k.Parent != t.ID {
		var err error
		if parent, err = r.r.RelationByID(ctx, k.Parent); err != nil || parent == nil {
			return err
		}
	}
	tree, err := catalog.PartitionTree(ctx, r.r, parent)
	if err != nil {
		return err
	}
	below := slices.DeleteFunc(tree[1:], func(part *catalog.TableDescriptor) bool { return part.ID == t.ID })
	return r.keyParts(ctx, t, k, below)
}

// inheritedPart refuses to change one of the constraints that stand for a foreign key of t at partitions.
func inheritedPart(t *catalog.TableDescriptor, name, verb string) error {
	for i := range t.ForeignKeys {
		if slices.ContainsFunc(t.ForeignKeys[i].Parts, func(p catalog.ForeignKeyPart) bool { return p.Name == name }) {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot %s inherited constraint %q of relation %q", verb, name, t.Name)
		}
	}
	return nil
}
