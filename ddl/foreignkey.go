package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// maxKeyColumns is PostgreSQL's limit.
const maxKeyColumns = 32

// closeParents closes the tables that foreign keys among constraints of a table reference: transactions that write them must know of the
// foreign key. It must come before the statement's first write; outside of a block a transaction must begin afterwards.
func (r *run) closeParents(ctx context.Context, t *catalog.TableDescriptor, constraints []*ast.TableConstraint) (closed []*catalog.TableDescriptor, err error) {
	for _, c := range constraints {
		if c.Kind != ast.ForeignKey {
			continue
		}
		parent, err := r.find(ctx, c.References.Table)
		if err != nil {
			return nil, err
		}
		if parent == nil || parent.Kind != catalog.KindTable || t != nil && parent.ID == t.ID || r.ch.Created(parent.ID) {
			continue // What is wrong is reported later.
		}
		if err := r.ch.Close(ctx, parent); err != nil {
			return nil, err
		}
		closed = append(closed, parent)
	}
	return closed, nil
}

// constraintsOf lists the constraints of columns and tables that a CREATE TABLE has.
func constraintsOf(n *ast.CreateTable) []*ast.TableConstraint {
	var all []*ast.TableConstraint
	for i := range n.Columns {
		for j := range n.Columns[i].Constraints {
			all = append(all, &n.Columns[i].Constraints[j])
		}
	}
	for i := range n.Constraints {
		all = append(all, &n.Constraints[i])
	}
	return all
}

// addedBy lists the constraints that commands of ALTER TABLE add.
func addedBy(commands []ast.AlterCommand) []*ast.TableConstraint {
	var all []*ast.TableConstraint
	for _, cmd := range commands {
		switch n := cmd.(type) {
		case *ast.AddConstraint:
			all = append(all, &n.Constraint)
		case *ast.AddColumn:
			for i := range n.Column.Constraints {
				all = append(all, &n.Column.Constraints[i])
			}
		}
	}
	return all
}

// newForeignKey makes a foreign key of t and returns it with its parent.
func (r *run) newForeignKey(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) (k catalog.ForeignKeyDescriptor, parent *catalog.TableDescriptor, err error) {
	n := c.References
	if parent, err = r.parentOf(ctx, t, n.Table); err != nil {
		return k, nil, err
	}
	k.Parent, k.MatchFull, k.NotValid = parent.ID, n.Match == "FULL", c.NotValid
	k.OnDelete, k.OnUpdate = keyAction(n.OnDelete), keyAction(n.OnUpdate)
	k.Deferrable, k.Deferred = c.Deferrable, c.Deferred
	if k.Columns, err = keyColumnIDs(t, c.Columns); err != nil {
		return k, nil, err
	}
	for _, name := range n.DeleteColumns {
		ord := t.ColumnNamed(name)
		if ord < 0 {
			return k, nil, notInForeignKey(name)
		}
		if !slices.Contains(k.Columns, t.Columns[ord].ID) {
			return k, nil, pgerror.New(pgerror.InvalidColumnReference, "column %q referenced in ON DELETE SET action must be part of foreign key", name)
		}
		k.DeleteColumns = append(k.DeleteColumns, t.Columns[ord].ID)
	}
	for _, id := range k.Columns {
		if t.Columns[t.Ordinal(id)].Generated == "" {
			continue
		}
		invalid := ""
		if k.OnDelete >= catalog.KeySetNull {
			invalid = "ON DELETE"
		}
		if k.OnUpdate >= catalog.KeyCascade {
			invalid = "ON UPDATE"
		}
		if invalid != "" {
			return k, nil, pgerror.New(pgerror.SyntaxError, "invalid %s action for foreign key constraint containing generated column", invalid)
		}
	}
	if err := findParentIndex(parent, n, &k); err != nil {
		return k, nil, err
	}
	if err := r.mayReference(parent, k.ParentColumns); err != nil {
		return k, nil, err
	}
	if len(k.Columns) != len(k.ParentColumns) {
		return k, nil, pgerror.New(pgerror.InvalidForeignKey, "number of referencing and referenced columns for foreign key disagree")
	}
	taken := func(name string) bool { return constraintNamed(t, name) }
	switch k.Name = c.Name; {
	case k.Name == "":
		k.Name = chooseName(t.Name, joinColumns(c.Columns), "fkey", taken)
	case taken(k.Name):
		return k, nil, pgerror.New(pgerror.DuplicateObject, "constraint %q for relation %q already exists", k.Name, t.Name)
	}
	if err := requireComparable(t, parent, &k); err != nil {
		return k, nil, err
	}
	oid, err := r.ch.NewID(ctx)
	if err != nil {
		return k, nil, err
	}
	k.OID = uint32(oid)
	return k, parent, r.partsOfParent(ctx, t, &k, parent)
}

// parentOf finds the table that a foreign key of t references.
func (r *run) parentOf(ctx context.Context, t *catalog.TableDescriptor, name ast.TableName) (*catalog.TableDescriptor, error) {
	parent, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	own := name.Name == t.Name && (name.Schema == "" || name.Schema == t.Schema)
	switch {
	case parent != nil && parent.ID == t.ID, parent == nil && own:
		return t, nil
	case parent == nil:
		return nil, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(name))
	case parent.Kind == catalog.KindVirtual:
		return nil, permissionDenied(parent.Name)
	case parent.Kind != catalog.KindTable || parent.Materialized:
		return nil, pgerror.New(pgerror.WrongObjectType, "referenced relation %q is not a table", parent.Name)
	case t.Temporary() && !parent.Temporary():
		return nil, pgerror.New(pgerror.InvalidTableDefinition, "constraints on temporary tables may reference only temporary tables")
	case !t.Temporary() && (parent.Temporary() || parent.Unlogged && !t.Unlogged):
		return nil, pgerror.New(pgerror.InvalidTableDefinition, "constraints on permanent tables may reference only permanent tables")
	}
	return parent, nil
}

func keyAction(words string) catalog.KeyAction {
	for a := catalog.KeyRestrict; a <= catalog.KeySetDefault; a++ {
		if a.String() == words {
			return a
		}
	}
	return catalog.KeyNoAction
}

func notInForeignKey(column string) error {
	return pgerror.New(pgerror.UndefinedColumn, "column %q referenced in foreign key constraint does not exist", column)
}

// keyColumnIDs returns the ids of columns that a foreign key names.
func keyColumnIDs(t *catalog.TableDescriptor, names []string) ([]uint32, error) {
	if len(names) > maxKeyColumns {
		return nil, pgerror.New(pgerror.TooManyColumns, "cannot have more than %d keys in a foreign key", maxKeyColumns)
	}
	var ids []uint32
	for _, name := range names {
		ord := t.ColumnNamed(name)
		if ord < 0 {
			return nil, notInForeignKey(name)
		}
		ids = append(ids, t.Columns[ord].ID)
	}
	return ids, nil
}

// findParentIndex sets the columns that a foreign key references, and the unique index over them.
func findParentIndex(parent *catalog.TableDescriptor, n *ast.References, k *catalog.ForeignKeyDescriptor) (err error) {
	if len(n.Columns) == 0 {
		if parent.PrimaryKey() != nil && !parent.HasPrimaryKey() {
			return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot use a deferrable primary key for referenced table %q", parent.Name)
		}
		if !parent.HasPrimaryKey() {
			return pgerror.New(pgerror.UndefinedObject, "there is no primary key for referenced table %q", parent.Name)
		}
		for _, c := range parent.Primary.Columns {
			k.ParentColumns = append(k.ParentColumns, c.ColumnID)
		}
		k.ParentIndex = parent.Primary.OID
		return nil
	}
	if k.ParentColumns, err = keyColumnIDs(parent, n.Columns); err != nil {
		return err
	}
	for i, id := range k.ParentColumns {
		if slices.Contains(k.ParentColumns[:i], id) {
			return pgerror.New(pgerror.InvalidForeignKey, "foreign key referenced-columns list must not contain duplicates")
		}
	}
	over := func(ix *catalog.IndexDescriptor) bool {
		return (ix.Unique || ix.Deferrable && ix.Exclude == nil) && ix.Where == nil && ix.OID != 0 && !ix.Incomplete && ix.State == catalog.IndexPublic && len(ix.Columns) == len(k.ParentColumns) &&
			!slices.ContainsFunc(ix.Columns, func(c catalog.IndexColumn) bool { return !slices.Contains(k.ParentColumns, c.ColumnID) })
	}
	if over(&parent.Primary) {
		k.ParentIndex = parent.Primary.OID
		return nil
	}
	deferrable := false
	for i := range parent.Indexes {
		if !over(&parent.Indexes[i]) {
			continue
		}
		if !parent.Indexes[i].Deferrable {
			k.ParentIndex = parent.Indexes[i].OID
			return nil
		}
		deferrable = true
	}
	if deferrable {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot use a deferrable unique constraint for referenced table %q", parent.Name)
	}
	return pgerror.New(pgerror.InvalidForeignKey, "there is no unique constraint matching given keys for referenced table %q", parent.Name)
}

// mayReference checks the privilege REFERENCES, on the table or on each of the columns.
func (r *run) mayReference(parent *catalog.TableDescriptor, columns []uint32) error {
	if r.access.Superuser() || r.access.Relation(parent, acl.References, false) != 0 {
		return nil
	}
	for _, id := range columns {
		if r.access.Column(parent, parent.Ordinal(id), acl.References) == 0 {
			return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for table %s", parent.Name)
		}
	}
	return nil
}

// requireComparable fails unless the columns of a foreign key can be compared with those they reference.
func requireComparable(t, parent *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) error {
	for i, id := range k.Columns {
		from, to := &t.Columns[t.Ordinal(id)], &parent.Columns[parent.Ordinal(k.ParentColumns[i])]
		if planner.CanReference(from.Type, to.Type) {
			continue
		}
		a, b := from.Type.Base(), to.Type.Base()
		return pgerror.New(pgerror.DatatypeMismatch, "foreign key constraint %q cannot be implemented", k.Name).
			WithDetail("Key columns %q and %q are of incompatible types: %s and %s.", from.Name, to.Name, a.String(), b.String())
	}
	return nil
}

// linkParents lists t among the tables that reference the parents of its foreign keys, and, unless a foreign key does, no longer.
func (r *run) linkParents(ctx context.Context, t *catalog.TableDescriptor, parents ...uint64) error {
	for i, id := range parents {
		if id == t.ID || slices.Contains(parents[:i], id) {
			continue
		}
		parent, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if parent == nil {
			continue
		}
		references := slices.ContainsFunc(t.ForeignKeys, func(k catalog.ForeignKeyDescriptor) bool { return k.Parent == id })
		if references == slices.Contains(parent.Referencing, t.ID) {
			continue
		}
		next := parent.Clone()
		if references {
			next.Referencing = append(next.Referencing, t.ID)
		} else {
			next.Referencing = slices.DeleteFunc(next.Referencing, func(child uint64) bool { return child == t.ID })
		}
		if err := r.update(ctx, parent, next, references); err != nil {
			return err
		}
	}
	return nil
}

// addForeignKey adds a foreign key, which all rows satisfy unless it is NOT VALID. Both tables must be closed.
func (r *run) addForeignKey(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	next := t.Clone()
	k, parent, err := r.newForeignKey(ctx, next, c)
	if err != nil {
		return err
	}
	if !k.NotValid && !r.alone && parent.ID != t.ID {
		tree, err := catalog.PartitionTree(ctx, r.r, parent)
		if err != nil {
			return err
		}
		for _, part := range tree {
			if r.ch.Created(part.ID) {
				continue
			}
			if err := r.requireUnchanged(ctx, part); err != nil {
				return err
			}
		}
	}
	next.ForeignKeys = append(next.ForeignKeys, k)
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	if err := r.linkParents(ctx, next, k.Parent); err != nil || k.NotValid {
		return err
	}
	return r.verifyForeignKey(ctx, next, &k)
}

// dropForeignKey drops a foreign key of t, with its parts of the tables below t.
func (r *run) dropForeignKey(ctx context.Context, t *catalog.TableDescriptor, name string) error {
	next := t.Clone()
	oid, parent := next.ForeignKeyNamed(name).OID, next.ForeignKeyNamed(name).Parent
	next.ForeignKeys = slices.DeleteFunc(next.ForeignKeys, func(k catalog.ForeignKeyDescriptor) bool { return k.Name == name })
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	if err := r.linkParents(ctx, next, parent); err != nil {
		return err
	}
	return r.forParts(ctx, t.ID, func(part *catalog.TableDescriptor) error {
		for i := range part.ForeignKeys {
			if k := &part.ForeignKeys[i]; k.Inherited == oid {
				return r.dropForeignKey(ctx, part, k.Name)
			}
		}
		return nil
	})
}

// dropReferences drops the foreign keys that depend on a part of t, or fails if there are some and cascade is not set. what names that part.
func (r *run) dropReferences(ctx context.Context, t *catalog.TableDescriptor, what, on string, cascade bool, depends func(*catalog.ForeignKeyDescriptor) bool) error {
	all, err := catalog.ReferencesTo(ctx, r.r, t)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(ref catalog.Reference) bool { return ref.Key.Inherited != 0 || !depends(ref.Key) })
	if len(all) == 0 {
		return nil
	}
	d := newDropping(r)
	d.addReferences(all, on)
	if !cascade {
		return d.refuse(ctx, what)
	}
	var others []string
	for _, ref := range all {
		others = append(others, referenceText(ref))
	}
	r.noticeCascade(others)
	return r.dropAll(ctx, all)
}

// dropAll drops foreign keys.
func (r *run) dropAll(ctx context.Context, all []catalog.Reference) error {
	for _, ref := range all {
		now, err := r.r.RelationByID(ctx, ref.Table.ID)
		if err != nil {
			return err
		}
		if now.ForeignKeyNamed(ref.Key.Name) == nil {
			continue // It went with another one.
		}
		if err := r.dropForeignKey(ctx, now, ref.Key.Name); err != nil {
			return err
		}
	}
	return nil
}

func referenceText(ref catalog.Reference) string {
	return "constraint " + ref.Key.Name + " on table " + ref.Table.Name
}

// addReferences adds foreign keys that depend on what is dropped.
func (d *dropping) addReferences(all []catalog.Reference, on string) {
	for _, ref := range all {
		if slices.ContainsFunc(d.references, func(have catalog.Reference) bool { return have.Key.OID == ref.Key.OID }) {
			continue
		}
		d.references = append(d.references, ref)
		d.why = append(d.why, referenceText(ref)+" depends on "+on)
	}
}

// findReferences adds the foreign keys, of tables that stay, to those that are dropped.
func (d *dropping) findReferences(ctx context.Context) error {
	for _, t := range d.targets {
		if t.Kind != catalog.KindTable {
			continue
		}
		all, err := d.r.declaredTo(ctx, t)
		if err != nil {
			return err
		}
		d.addReferences(slices.DeleteFunc(all, func(ref catalog.Reference) bool { return d.has(ref.Table.ID) }), "table "+t.Name)
	}
	return nil
}

// unlinkTargets removes the tables to be dropped from the parents that stay.
func (d *dropping) unlinkTargets(ctx context.Context) error {
	for _, t := range d.targets {
		if len(t.ForeignKeys) == 0 {
			continue
		}
		without := t.Clone()
		without.ForeignKeys = nil
		var parents []uint64
		for i := range t.ForeignKeys {
			if p := t.ForeignKeys[i].Parent; !d.has(p) {
				parents = append(parents, p)
			}
		}
		if err := d.r.linkParents(ctx, without, parents...); err != nil {
			return err
		}
	}
	return nil
}
