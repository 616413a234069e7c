package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// requireInherited refuses commands that would make a partition differ from its parent.
func (r *run) requireInherited(ctx context.Context, t *catalog.TableDescriptor, commands []ast.AlterCommand) error {
	if !t.IsPartition() {
		return nil
	}
	for _, cmd := range commands {
		switch n := cmd.(type) {
		case *ast.AddColumn:
			return pgerror.New(pgerror.WrongObjectType, "cannot add column to a partition")
		case *ast.DropColumn:
			if t.ColumnNamed(n.Name) >= 0 {
				return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop inherited column %q", n.Name)
			}
		case *ast.RenameColumn:
			if t.ColumnNamed(n.From) >= 0 {
				return pgerror.New(pgerror.InvalidTableDefinition, "cannot rename inherited column %q", n.From)
			}
		case *ast.AlterColumn:
			if err := r.requireColumnInherited(ctx, t, n); err != nil {
				return err
			}
		case *ast.DropConstraint:
			if inheritedConstraint(t, n.Name) {
				return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop inherited constraint %q of relation %q", n.Name, t.Name)
			}
		case *ast.RenameConstraint:
			if inheritedConstraint(t, n.From) {
				return pgerror.New(pgerror.InvalidTableDefinition, "cannot rename inherited constraint %q", n.From)
			}
		case *ast.TableCommand:
			if k := t.ForeignKeyNamed(n.Name); k != nil && k.Inherited != 0 && n.Action == "ALTER CONSTRAINT" {
				return r.derivedConstraint(ctx, t, k)
			}
		}
	}
	return nil
}

// requireColumnInherited refuses changes of a column that a partition has from its parent.
func (r *run) requireColumnInherited(ctx context.Context, t *catalog.TableDescriptor, n *ast.AlterColumn) error {
	if t.ColumnNamed(n.Name) < 0 {
		return nil
	}
	switch {
	case n.SetType != nil:
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot alter inherited column %q", n.Name)
	case n.Drop == "EXPRESSION" && t.Columns[t.ColumnNamed(n.Name)].Generated != "":
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop generation expression from inherited column")
	case n.DropNotNull:
		parent, err := r.r.RelationByID(ctx, t.PartitionOf.Parent)
		if err != nil || parent == nil {
			return err
		}
		if ord := parent.ColumnNamed(n.Name); ord >= 0 && parent.Columns[ord].NotNull {
			return pgerror.New(pgerror.InvalidTableDefinition, "column %q is marked NOT NULL in parent table", n.Name)
		}
	}
	return nil
}

// derivedConstraint is the error of changing a foreign key that belongs to one of a partitioned table.
func (r *run) derivedConstraint(ctx context.Context, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) error {
	top, err := catalog.DeclaredKey(ctx, r.r, t, k)
	if err != nil {
		return err
	}
	return pgerror.New(pgerror.InvalidTableDefinition, "cannot alter constraint %q on relation %q", k.Name, t.Name).
		WithDetail("Constraint %q is derived from constraint %q of relation %q.", k.Name, top.Key.Name, top.Table.Name).
		WithHint("You may alter the constraint it derives from, instead.")
}

func inheritedConstraint(t *catalog.TableDescriptor, name string) bool {
	if ix := t.IndexNamed(name); ix != nil && ix.Parent != 0 {
		return true
	}
	if k := t.ForeignKeyNamed(name); k != nil && k.Inherited != 0 {
		return true
	}
	return slices.ContainsFunc(t.Checks, func(c catalog.CheckDescriptor) bool { return c.Name == name && c.Inherited })
}

// alterPartitioned is ALTER TABLE of a partitioned table: the commands are executed for it, and those about columns and constraints for all tables
// below it.
func (r *run) alterPartitioned(ctx context.Context, t *catalog.TableDescriptor, n *ast.AlterTable) error {
	for _, cmd := range n.Commands {
		if err := r.requireCarried(ctx, t, n, cmd); err != nil {
			return err
		}
	}
	if err := r.closeRelated(ctx, t, n.Commands); err != nil {
		return err
	}
	tree := []*catalog.TableDescriptor{t}
	if carried(n) {
		var err error
		if tree, err = catalog.PartitionTree(ctx, r.r, t); err != nil {
			return err
		}
	}
	if r.dataCommands(ctx, t, n.Commands) > 0 {
		if _, err := r.exclusiveAll(ctx, tree, 16*(len(t.Indexes)+2)*len(n.Commands)); err != nil {
			return err
		}
	}
	for _, cmd := range inPasses(n.Commands) {
		if err := r.alterTree(ctx, t.ID, n.Only, cmd); err != nil {
			return err
		}
		if c, ok := cmd.(*ast.AlterColumn); ok && c.SetType != nil {
			if err := r.refitTree(ctx, t, c.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// refitTree is refitKeys for a column that a partitioned table and all below it have.
func (r *run) refitTree(ctx context.Context, t *catalog.TableDescriptor, column string) error {
	tree, err := catalog.PartitionTree(ctx, r.r, t)
	if err != nil {
		return err
	}
	for _, part := range tree {
		now, err := r.r.RelationByID(ctx, part.ID)
		if err != nil {
			return err
		}
		if err := r.refitKeys(ctx, now, now.Columns[now.ColumnNamed(column)].ID); err != nil {
			return err
		}
	}
	return nil
}

// carried reports whether a statement changes the tables below the one it names.
func carried(n *ast.AlterTable) bool {
	return slices.ContainsFunc(n.Commands, func(cmd ast.AlterCommand) bool {
		switch cmd.(type) {
		case *ast.AddColumn, *ast.DropColumn, *ast.AlterColumn, *ast.AddConstraint, *ast.DropConstraint, *ast.RenameColumn, *ast.RenameConstraint, *ast.TableCommand:
			return true
		}
		return false
	})
}

// requireCarried refuses commands that the tables below t cannot follow.
func (r *run) requireCarried(ctx context.Context, t *catalog.TableDescriptor, n *ast.AlterTable, cmd ast.AlterCommand) error {
	parts := len(t.Partitioning.Partitions) > 0
	key := func(column, verb string) error {
		tree, err := catalog.PartitionTree(ctx, r.r, t)
		if err != nil {
			return err
		}
		for _, below := range tree {
			if !below.IsPartitioned() {
				continue
			}
			if in, err := r.inPartitionKeyOf(below, column); err != nil {
				return err
			} else if in {
				return pgerror.New(pgerror.InvalidTableDefinition, "cannot %s column %q because it is part of the partition key of relation %q", verb, column, below.Name)
			}
		}
		return nil
	}
	switch c := cmd.(type) {
	case *ast.AddColumn:
		switch {
		case n.Only && parts:
			return pgerror.New(pgerror.InvalidTableDefinition, "column must be added to child tables too")
		case c.Column.Identity != "" && parts:
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot recursively add identity column to table that has child tables")
		}
	case *ast.DropColumn:
		if n.Only && parts {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot drop column from only the partitioned table when partitions exist").
				WithHint("Do not specify the ONLY keyword.")
		}
		return key(c.Name, "drop")
	case *ast.AlterColumn:
		return requireColumnCarried(t, c, n.Only && parts, key)
	case *ast.AddConstraint:
		switch {
		case c.Constraint.UsingIndex != "":
			return pgerror.New(pgerror.FeatureNotSupported, "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables")
		case c.Constraint.Kind == ast.Check && slices.Contains(c.Constraint.Attributes, "NO INHERIT"):
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot add NO INHERIT constraint to partitioned table %q", t.Name)
		case c.Constraint.Kind == ast.Check && n.Only && parts:
			return pgerror.New(pgerror.InvalidTableDefinition, "constraint must be added to child tables too")
		case c.Constraint.Kind == ast.ForeignKey && c.Constraint.NotValid:
			return pgerror.New(pgerror.WrongObjectType, "cannot add NOT VALID foreign key on partitioned table %q referencing relation %q", t.Name, c.Constraint.References.Table.Name).
				WithDetail("This feature is not yet supported on partitioned tables.")
		case c.Constraint.Kind == ast.ForeignKey && n.Only:
			return pgerror.New(pgerror.WrongObjectType, "cannot use ONLY for foreign key on partitioned table %q referencing relation %q", t.Name, c.Constraint.References.Table.Name)
		}
	case *ast.DropConstraint:
		if n.Only && parts {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot remove constraint from only the partitioned table when partitions exist").
				WithHint("Do not specify the ONLY keyword.")
		}
	case *ast.RenameConstraint:
		if n.Only && parts && slices.ContainsFunc(t.Checks, func(k catalog.CheckDescriptor) bool { return k.Name == c.From && !k.NoInherit }) {
			return pgerror.New(pgerror.InvalidTableDefinition, "inherited constraint %q must be renamed in child tables too", c.From)
		}
	case *ast.TableCommand:
		at := slices.IndexFunc(t.Checks, func(k catalog.CheckDescriptor) bool { return k.Name == c.Name && k.NotValid })
		if n.Only && parts && c.Action == "VALIDATE CONSTRAINT" && at >= 0 {
			return pgerror.New(pgerror.InvalidTableDefinition, "constraint must be validated on child tables too")
		}
	}
	return nil
}

// requireColumnCarried is requireCarried for a change of a column; apart: the tables below keep theirs.
func requireColumnCarried(t *catalog.TableDescriptor, c *ast.AlterColumn, apart bool, key func(column, verb string) error) error {
	switch {
	case c.SetType != nil:
		if err := key(c.Name, "alter"); err != nil {
			return err
		}
		if apart {
			return pgerror.New(pgerror.InvalidTableDefinition, "type of inherited column %q must be changed in child tables too", c.Name)
		}
	case c.DropNotNull && apart:
		return pgerror.New(pgerror.InvalidTableDefinition, "cannot remove constraint from only the partitioned table when partitions exist").
			WithHint("Do not specify the ONLY keyword.")
	case c.SetNotNull && apart:
		return pgerror.New(pgerror.InvalidTableDefinition, "constraint must be added to child tables too").WithHint("Do not specify the ONLY keyword.")
	case c.Drop == "EXPRESSION" && apart:
		return pgerror.New(pgerror.FeatureNotSupported, "ALTER TABLE / DROP EXPRESSION must be applied to child tables too")
	}
	return nil
}

// alterTree executes a command for a partitioned table, and for the tables below it.
func (r *run) alterTree(ctx context.Context, id uint64, only bool, cmd ast.AlterCommand) error {
	t, err := r.toFill(ctx, id)
	if err != nil {
		return err
	}
	switch n := cmd.(type) {
	case *ast.AddConstraint:
		return r.addConstraintToTree(ctx, t, only, &n.Constraint)
	case *ast.DropConstraint:
		return r.dropConstraintOfTree(ctx, t, n)
	case *ast.AddColumn:
		return r.addColumnToTree(ctx, t, n)
	}
	if err := r.alterOne(ctx, t, cmd); err != nil || only {
		return err
	}
	switch n := cmd.(type) {
	case *ast.DropColumn, *ast.RenameColumn:
	case *ast.AlterColumn:
		if n.AddIdentity != "" || n.Drop == "IDENTITY" || n.IdentityOptions != nil {
			return nil // Partitions have no identity columns.
		}
	case *ast.RenameConstraint:
		return r.carryToChecks(ctx, t, n.From, func(part *catalog.TableDescriptor) error { return r.alterTree(ctx, part.ID, false, n) })
	case *ast.TableCommand:
		return r.carryCommand(ctx, t, n)
	default:
		return nil
	}
	return r.forParts(ctx, id, func(part *catalog.TableDescriptor) error {
		if part.IsPartitioned() {
			return r.alterTree(ctx, part.ID, false, cmd)
		}
		return r.alterOne(ctx, part, cmd)
	})
}

// carryCommand executes a command about a constraint or triggers of t, as it was, for the parts of these that the partitions have.
func (r *run) carryCommand(ctx context.Context, t *catalog.TableDescriptor, n *ast.TableCommand) error {
	if _, trigger := triggerStates[n.Action]; trigger {
		return r.carryTriggerState(ctx, t, n)
	}
	switch n.Action {
	case "VALIDATE CONSTRAINT":
		return r.carryToChecks(ctx, t, n.Name, func(part *catalog.TableDescriptor) error { return r.alterTree(ctx, part.ID, false, n) })
	case "ALTER CONSTRAINT":
		k := t.ForeignKeyNamed(n.Name)
		return r.forParts(ctx, t.ID, func(part *catalog.TableDescriptor) error {
			at := slices.IndexFunc(part.ForeignKeys, func(o catalog.ForeignKeyDescriptor) bool { return o.Inherited == k.OID })
			if at < 0 {
				return nil
			}
			own := *n
			own.Name = part.ForeignKeys[at].Name
			return r.alterTree(ctx, part.ID, false, &own)
		})
	}
	return nil
}

// carryToChecks calls f with each partition that has inherited a check of t.
func (r *run) carryToChecks(ctx context.Context, t *catalog.TableDescriptor, name string, f func(part *catalog.TableDescriptor) error) error {
	named := func(c catalog.CheckDescriptor) bool { return c.Name == name }
	if !slices.ContainsFunc(t.Checks, named) {
		return nil
	}
	return r.forParts(ctx, t.ID, func(part *catalog.TableDescriptor) error {
		if !slices.ContainsFunc(part.Checks, func(c catalog.CheckDescriptor) bool { return named(c) && c.Inherited }) {
			return nil
		}
		return f(part)
	})
}

// carryTriggerState is enableTrigger for the triggers of the partitions that belong to those of t.
func (r *run) carryTriggerState(ctx context.Context, t *catalog.TableDescriptor, n *ast.TableCommand) error {
	for i := range t.Triggers {
		g := &t.Triggers[i]
		if n.Mode == "" && g.Name != n.Name {
			continue
		}
		err := r.forParts(ctx, t.ID, func(part *catalog.TableDescriptor) error {
			at := slices.IndexFunc(part.Triggers, func(o catalog.TriggerDescriptor) bool { return o.Inherited == g.OID })
			if at < 0 {
				return nil
			}
			own := *n
			own.Name, own.Mode = part.Triggers[at].Name, ""
			return r.alterTree(ctx, part.ID, false, &own)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forParts calls f with each partition of a table, as it is then.
func (r *run) forParts(ctx context.Context, id uint64, f func(part *catalog.TableDescriptor) error) error {
	t, err := r.r.RelationByID(ctx, id)
	if err != nil || !t.IsPartitioned() {
		return err
	}
	for _, partID := range t.Partitioning.Partitions {
		part, err := r.toFill(ctx, partID)
		if err != nil {
			return err
		}
		if err := f(part); err != nil {
			return err
		}
	}
	return nil
}

// addColumnToTree adds a column, and then its constraints.
func (r *run) addColumnToTree(ctx context.Context, t *catalog.TableDescriptor, n *ast.AddColumn) error {
	bare := *n
	bare.Column.Constraints = nil
	if t.ColumnNamed(n.Column.Name) >= 0 {
		return r.alterAddColumn(ctx, t, &bare)
	}
	if err := r.alterAddColumn(ctx, t, &bare); err != nil {
		return err
	}
	if err := r.addColumnBelow(ctx, t.ID, &bare); err != nil {
		return err
	}
	for _, c := range n.Column.Constraints {
		if len(c.Columns) == 0 && c.Kind != ast.Check {
			c.Columns = []string{n.Column.Name}
		}
		now, err := r.r.RelationByID(ctx, t.ID)
		if err != nil {
			return err
		}
		if err := r.addConstraintToTree(ctx, now, false, &c); err != nil {
			return err
		}
	}
	return nil
}

// addColumnBelow adds the column that a partitioned table has got to the tables below it. They share a sequence that it has.
func (r *run) addColumnBelow(ctx context.Context, id uint64, n *ast.AddColumn) error {
	top, err := r.r.RelationByID(ctx, id)
	if err != nil {
		return err
	}
	col := top.Columns[top.ColumnNamed(n.Column.Name)]
	var sequence *catalog.TableDescriptor
	if col.Sequence != 0 {
		if sequence, err = r.r.RelationByID(ctx, col.Sequence); err != nil {
			return err
		}
	}
	var add func(t *catalog.TableDescriptor) error
	add = func(t *catalog.TableDescriptor) error {
		var err error
		if sequence == nil {
			err = r.alterAddColumn(ctx, t, n)
		} else {
			err = r.addSharing(ctx, t, col, sequence)
		}
		if err != nil {
			return err
		}
		return r.forParts(ctx, t.ID, add)
	}
	return r.forParts(ctx, id, add)
}

// addSharing adds a column to a partition whose values come from the sequence of its parent's column.
func (r *run) addSharing(ctx context.Context, t *catalog.TableDescriptor, col catalog.ColumnDescriptor, sequence *catalog.TableDescriptor) error {
	b := &builder{run: r, t: t.Clone(), pending: map[string]bool{}}
	own := catalog.ColumnDescriptor{Name: col.Name, Type: col.Type, NotNull: col.NotNull, Default: col.Default}
	if err := b.appendColumn(own, 0); err != nil {
		return err
	}
	return r.fillByRewriting(ctx, t, b.t, func() (types.Datum, error) {
		v, err := r.Catalog.NextVal(ctx, sequence)
		return types.Int(v), err
	})
}

// addConstraintToTree adds a constraint to a partitioned table, and its parts to the tables below it.
func (r *run) addConstraintToTree(ctx context.Context, t *catalog.TableDescriptor, only bool, c *ast.TableConstraint) error {
	if c.Kind == ast.Exclude {
		return pgerror.New(pgerror.FeatureNotSupported, "exclusion constraints are not supported on partitioned tables").At(c.Position())
	}
	if err := r.alterAddConstraint(ctx, t, c); err != nil {
		return err
	}
	now, err := r.r.RelationByID(ctx, t.ID)
	if err != nil {
		return err
	}
	switch c.Kind {
	case ast.Check:
		return r.carryCheck(ctx, now, &now.Checks[len(now.Checks)-1])
	case ast.ForeignKey:
		return r.forParts(ctx, now.ID, func(part *catalog.TableDescriptor) error {
			return r.carryForeignKey(ctx, now, &now.ForeignKeys[len(now.ForeignKeys)-1], part.ID)
		})
	}
	ix := &now.Primary
	if c.Kind == ast.Unique || c.Deferrable {
		ix = &now.Indexes[len(now.Indexes)-1]
	}
	if err := requirePartitionKey(now, ix); err != nil {
		return err
	}
	if !only {
		return r.carryBelow(ctx, now.ID, ix.OID)
	}
	return r.markIncomplete(ctx, now, ix.OID)
}

// markIncomplete notes that no partition has a part of a new index yet.
func (r *run) markIncomplete(ctx context.Context, t *catalog.TableDescriptor, oid uint32) error {
	if len(t.Partitioning.Partitions) == 0 {
		return nil
	}
	next := t.Clone()
	next.IndexByOID(oid).Incomplete = true
	return r.update(ctx, t, next, false)
}

// carryCheck adds a check to the tables below t, whose rows must satisfy it.
func (r *run) carryCheck(ctx context.Context, t *catalog.TableDescriptor, c *catalog.CheckDescriptor) error {
	return r.forParts(ctx, t.ID, func(part *catalog.TableDescriptor) error {
		next := part.Clone()
		own := *c
		at := slices.IndexFunc(next.Checks, func(o catalog.CheckDescriptor) bool { return o.Name == c.Name })
		switch {
		case at >= 0 && next.Checks[at].Expr != c.Expr:
			return pgerror.New(pgerror.DuplicateObject, "constraint %q for relation %q already exists", c.Name, part.Name)
		case at >= 0:
			r.notice(pgerror.SuccessfulCompletion, "merging constraint %q with inherited definition", c.Name)
			next.Checks[at].Inherited, next.Checks[at].Local = true, false
		case constraintNamed(next, c.Name):
			return pgerror.New(pgerror.DuplicateObject, "constraint %q for relation %q already exists", c.Name, part.Name)
		default:
			id, err := r.ch.NewID(ctx)
			if err != nil {
				return err
			}
			own.OID, own.Inherited, own.Local, own.Comment = uint32(id), true, false, ""
			next.Checks = append(next.Checks, own)
			if !own.NotValid && !part.IsPartitioned() {
				if err := r.verifyRows(ctx, next, next, []catalog.CheckDescriptor{own}, nil); err != nil {
					return err
				}
			}
		}
		if err := r.update(ctx, part, next, true); err != nil {
			return err
		}
		return r.carryCheck(ctx, next, c)
	})
}

// dropConstraintOfTree drops a constraint of a partitioned table with its parts.
func (r *run) dropConstraintOfTree(ctx context.Context, t *catalog.TableDescriptor, n *ast.DropConstraint) error {
	ix, k := t.IndexNamed(n.Name), t.ForeignKeyNamed(n.Name)
	if err := r.alterDropConstraint(ctx, t, n); err != nil {
		return err
	}
	return r.forParts(ctx, t.ID, func(part *catalog.TableDescriptor) error {
		name := ""
		switch {
		case ix != nil:
			if own := part.PartOfIndex(ix.OID); own != nil {
				name = own.Name
			}
		case k != nil:
			at := slices.IndexFunc(part.ForeignKeys, func(o catalog.ForeignKeyDescriptor) bool { return o.Inherited == k.OID })
			if at >= 0 {
				name = part.ForeignKeys[at].Name
			}
		default:
			at := slices.IndexFunc(part.Checks, func(c catalog.CheckDescriptor) bool { return c.Name == n.Name && c.Inherited })
			if at >= 0 && part.Checks[at].Local {
				next := part.Clone()
				next.Checks[at].Inherited = false
				return r.update(ctx, part, next, false)
			}
			if at >= 0 {
				name = n.Name
			}
		}
		if name == "" {
			return nil
		}
		own := *n
		own.Name = name
		return r.dropConstraintOfTree(ctx, part, &own)
	})
}

// createIndexOnTree is CREATE INDEX of a partitioned table.
func (r *run) createIndexOnTree(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateIndex) error {
	if n.Concurrently {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot create index on partitioned table %q concurrently", t.Name)
	}
	tree := []*catalog.TableDescriptor{t}
	if !n.Only {
		var err error
		if tree, err = catalog.PartitionTree(ctx, r.r, t); err != nil {
			return err
		}
	}
	online, err := r.buildsOnline(ctx, tree...)
	if err != nil {
		return err
	}
	if online {
		r.ch.ForBuild()
	}
	if tree, err = r.exclusiveAll(ctx, tree, 2); err != nil {
		return err
	}
	t = tree[0]
	next := t.Clone()
	ix, err := r.newIndex(ctx, next, n)
	if err != nil {
		return err
	}
	if err := requirePartitionKey(next, &ix); err != nil {
		return err
	}
	r.noticeMethod(&ix)
	if online && !n.Only {
		r.tree = &treeBuild{root: ix.OID}
		for _, part := range tree {
			if !part.IsPartitioned() {
				r.tree.parts++
			}
		}
	}
	if err := r.addIndex(ctx, t, next, ix); err != nil {
		return err
	}
	if n.Only {
		return r.markIncomplete(ctx, next, ix.OID)
	}
	if err := r.carryBelow(ctx, t.ID, ix.OID); err != nil || r.tree == nil {
		return err
	}
	return r.completeTree(ctx, t.ID, ix.OID)
}

// completeTree notes of an index and of those of partitions below it whether all partitions have a part of it.
func (r *run) completeTree(ctx context.Context, id uint64, oid uint32) error {
	err := r.forParts(ctx, id, func(part *catalog.TableDescriptor) error {
		if own := part.PartOfIndex(oid); own != nil && part.IsPartitioned() {
			return r.completeTree(ctx, part.ID, own.OID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.completeIndex(ctx, id, oid)
}

// attachIndex is ALTER INDEX … ATTACH PARTITION.
func (r *run) attachIndex(ctx context.Context, parent *catalog.TableDescriptor, ix *catalog.IndexDescriptor, n *ast.TableCommand) error {
	t, part, err := catalog.FindIndex(ctx, r.r, n.Table.Schema, n.Table.Name)
	if err != nil {
		return err
	}
	fail := func(detail string, args ...any) error {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot attach index %q as a partition of index %q", part.Name, ix.Name).WithDetail(detail, args...)
	}
	switch {
	case part == nil:
		return pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(*n.Table))
	case part.Parent == ix.OID:
		return nil
	case part.Parent != 0:
		return fail("Index %q is already attached to another index.", part.Name)
	case !t.IsPartition() || t.PartitionOf.Parent != parent.ID:
		return fail("Index %q is not an index on any partition of table %q.", part.Name, parent.Name)
	}
	if other := t.PartOfIndex(ix.OID); other != nil {
		return fail("Another index is already attached for partition %q.", t.Name)
	}
	next := t.Clone()
	want := mapIndex(parent, ix, next)
	own := next.IndexByOID(part.OID)
	if found := sameIndexAs(own, &want); !found {
		return fail("The index definitions do not match.")
	}
	own.Parent = ix.OID
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	return r.completeIndex(ctx, parent.ID, ix.OID)
}

// completeIndex notes that all partitions have a part of an index, if they have.
func (r *run) completeIndex(ctx context.Context, id uint64, oid uint32) error {
	t, err := r.r.RelationByID(ctx, id)
	if err != nil {
		return err
	}
	missing := false
	err = r.forParts(ctx, id, func(part *catalog.TableDescriptor) error {
		ix := part.PartOfIndex(oid)
		missing = missing || ix == nil || ix.Incomplete
		return nil
	})
	if err != nil || missing {
		return err
	}
	next := t.Clone()
	ix := next.IndexByOID(oid)
	ix.Incomplete = false
	if err := r.update(ctx, t, next, false); err != nil || ix.Parent == 0 {
		return err
	}
	return r.completeIndex(ctx, t.PartitionOf.Parent, ix.Parent)
}
