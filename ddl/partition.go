package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/partition"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// partitionedTable finds the parent of a partition that is created or attached.
func (r *run) partitionedTable(ctx context.Context, name ast.TableName) (*catalog.TableDescriptor, error) {
	parent, err := r.mustFind(ctx, name)
	if err != nil {
		return nil, err
	}
	if !parent.IsPartitioned() {
		return nil, pgerror.New(invalidObjectDefinition, "%q is not partitioned", parent.Name).At(name.Position())
	}
	return parent, r.mustOwn(parent)
}

// closeForPartition closes a partitioned table whose partitions are about to change, with its default partition and the parents of its foreign
// keys, and other tables. It must come before the statement's first write. It returns the table as of a snapshot that holds all there is.
func (r *run) closeForPartition(ctx context.Context, parent *catalog.TableDescriptor, others ...*catalog.TableDescriptor) (*catalog.TableDescriptor, error) {
	tables := append([]*catalog.TableDescriptor{parent}, others...)
	s, err := r.siblings(ctx, parent)
	if err != nil {
		return nil, err
	}
	if rest := s.rest(); rest != nil {
		tree, err := catalog.PartitionTree(ctx, r.r, rest)
		if err != nil {
			return nil, err
		}
		tables = append(tables, tree...)
	}
	for i := range parent.ForeignKeys {
		t, err := r.r.RelationByID(ctx, parent.ForeignKeys[i].Parent)
		if err != nil {
			return nil, err
		}
		if t != nil {
			tables = append(tables, t)
		}
	}
	tables, err = r.exclusiveAll(ctx, tables, 0)
	if err != nil {
		return nil, err
	}
	return tables[0], nil
}

// exclusiveAll is exclusive for several tables, each of which gets index ids.
func (r *run) exclusiveAll(ctx context.Context, tables []*catalog.TableDescriptor, indexes int) ([]*catalog.TableDescriptor, error) {
	out := slices.Clone(tables)
	for _, t := range tables {
		if r.ch.Created(t.ID) {
			continue
		}
		if err := r.ch.Close(ctx, t); err != nil {
			return nil, err
		}
		if !r.alone {
			if err := r.requireUnchanged(ctx, t); err != nil {
				return nil, err
			}
		}
	}
	if !r.alone {
		return out, nil
	}
	first := make([]uint32, len(tables))
	for i, t := range tables {
		var err error
		if indexes > 0 {
			if first[i], err = r.ch.Reserve(ctx, t.ID, uint32(indexes)); err != nil {
				return nil, err
			}
		}
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	for i, t := range tables {
		fresh, err := r.r.RelationByID(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		if fresh == nil {
			return nil, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", t.Name)
		}
		if out[i] = fresh.Clone(); first[i] > 0 {
			out[i].NextIndexID = first[i]
			if r.reserved == nil {
				r.reserved = map[uint64]uint32{}
			}
			r.reserved[t.ID] = first[i]
		}
	}
	return out, nil
}

// toFill returns a table as it is now, with NextIndexID the first of the ids that exclusiveAll has given it, unless it was returned before.
func (r *run) toFill(ctx context.Context, id uint64) (*catalog.TableDescriptor, error) {
	t, err := r.r.RelationByID(ctx, id)
	if first, ok := r.reserved[id]; ok && err == nil {
		delete(r.reserved, id)
		t = t.Clone()
		t.NextIndexID = first
	}
	return t, err
}

// createPartition is CREATE TABLE … PARTITION OF: b has no columns yet.
func (b *builder) createPartition(ctx context.Context, n *ast.CreateTable, parent *catalog.TableDescriptor) error {
	if err := requireSameLife(b.t, parent, "create a %s relation as partition of %s relation %q"); err != nil {
		return err
	}
	if err := b.inheritColumns(ctx, n, parent); err != nil {
		return err
	}
	if err := b.inheritChecks(ctx, n, parent); err != nil {
		return err
	}
	if err := b.addConstraints(ctx, n, nil); err != nil {
		return err
	}
	if n.Partition != nil {
		if err := b.addPartitioning(ctx, n.Partition); err != nil {
			return err
		}
	}
	s, err := b.siblings(ctx, parent)
	if err != nil {
		return err
	}
	bound, err := b.partitionBound(ctx, parent, n.Bound)
	if err != nil {
		return err
	}
	if err := s.requireRoom(parent, b.t.Name, &bound, n.Bound); err != nil {
		return err
	}
	b.t.PartitionOf = &catalog.PartitionOf{Parent: parent.ID, Bound: bound}
	if err := b.inheritIndexes(ctx, parent); err != nil {
		return err
	}
	if err := b.inheritForeignKeys(ctx, parent); err != nil {
		return err
	}
	if err := b.run.inheritTriggers(ctx, b.t, parent); err != nil {
		return err
	}
	if rest := s.rest(); rest != nil && !bound.Default {
		if err := b.requireNotInDefault(ctx, parent, rest, &bound, func(*catalog.TableDescriptor) *catalog.TableDescriptor { return rest }); err != nil {
			return err
		}
	}
	if err := b.create(ctx); err != nil {
		return err
	}
	if err := b.link(ctx, parent.ID, b.t.ID); err != nil {
		return err
	}
	return b.referToPartition(ctx, parent, b.t.ID)
}

// requireSameLife fails if one of a partition and its parent is temporary.
func requireSameLife(t, parent *catalog.TableDescriptor, format string) error {
	words := map[bool]string{true: "temporary", false: "permanent"}
	if t.Temporary() == parent.Temporary() {
		return nil
	}
	return pgerror.New(pgerror.WrongObjectType, "cannot "+format, words[t.Temporary()], words[parent.Temporary()], parent.Name)
}

// link lists a partition in its parent, or, if the partition is not one of the parent any more, no longer.
func (r *run) link(ctx context.Context, parentID, id uint64) error {
	parent, err := r.r.RelationByID(ctx, parentID)
	if err != nil || parent == nil {
		return err
	}
	part, err := r.r.RelationByID(ctx, id)
	if err != nil {
		return err
	}
	next := parent.Clone()
	next.Partitioning.Partitions = slices.DeleteFunc(next.Partitioning.Partitions, func(o uint64) bool { return o == id })
	if part != nil && part.IsPartition() && part.PartitionOf.Parent == parentID {
		next.Partitioning.Partitions = append(next.Partitioning.Partitions, id)
	}
	return r.update(ctx, parent, next, true)
}

// requireNotInDefault fails if the default partition has rows of a new one; named returns the partition that the error names, of the one that
// holds a row.
func (r *run) requireNotInDefault(ctx context.Context, parent, rest *catalog.TableDescriptor, bound *catalog.PartitionBound,
	named func(holder *catalog.TableDescriptor) *catalog.TableDescriptor) error {
	one, err := partition.New(parent, []catalog.PartitionBound{*bound})
	if err != nil {
		return err
	}
	tree, err := catalog.PartitionTree(ctx, r.r, rest)
	if err != nil {
		return err
	}
	for _, t := range tree {
		if t.IsPartitioned() {
			continue
		}
		keys, err := planner.BindPartitionKey(ctx, t, parent, r.r, r.Env)
		if err != nil {
			return err
		}
		if err := planner.AuthorizeCalls(r.Env, keys...); err != nil {
			return err
		}
		ev := &expr.Context{Ctx: ctx, Env: r.Env}
		key := make([]types.Datum, len(keys))
		err = r.scanRows(ctx, t, "checking default partition", func(row types.Row) error {
			for i, k := range keys {
				var err error
				if key[i], err = k.Eval(ev, row); err != nil {
					return err
				}
			}
			if one.Find(key) < 0 {
				return nil
			}
			e := pgerror.New(pgerror.CheckViolation, "updated partition constraint for default partition %q would be violated by some row", named(t).Name)
			e.Schema, e.Table = named(t).Schema, named(t).Name
			return e
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// attachPartition is ALTER TABLE … ATTACH PARTITION.
func (r *run) attachPartition(ctx context.Context, parent *catalog.TableDescriptor, n *ast.TableCommand) error {
	t, err := r.mustFindTable(ctx, *n.Table)
	if err != nil {
		return err
	}
	if err := r.mustOwn(t); err != nil {
		return err
	}
	if !parent.IsPartitioned() {
		return pgerror.New(invalidObjectDefinition, "table %q is not partitioned", parent.Name)
	}
	if t.OfType != 0 {
		return pgerror.New(pgerror.WrongObjectType, "cannot attach a typed table as partition")
	}
	if err := r.attachable(ctx, t, parent); err != nil {
		return err
	}
	tree, err := catalog.PartitionTree(ctx, r.r, t)
	if err != nil {
		return err
	}
	for _, part := range tree {
		if err := requireUnobserved(part, "ATTACH PARTITION", "Drop its observers first."); err != nil {
			return err
		}
	}
	if parent, err = r.closeForPartition(ctx, parent); err != nil {
		return err
	}
	if tree, err = r.exclusiveAll(ctx, tree, (len(parent.Indexes)+2)*(len(t.Indexes)+len(parent.Indexes)+2)); err != nil {
		return err
	}
	t = tree[0]
	s, err := r.siblings(ctx, parent)
	if err != nil {
		return err
	}
	bound, err := r.partitionBound(ctx, parent, n.Bound)
	if err != nil {
		return err
	}
	if err := s.requireRoom(parent, t.Name, &bound, n.Bound); err != nil {
		return err
	}
	if err := fitsParent(t, parent); err != nil {
		return err
	}
	for _, part := range tree {
		if err := r.requireWithin(ctx, part, parent, t.ID, &bound); err != nil {
			return err
		}
	}
	if rest := s.rest(); rest != nil && !bound.Default {
		if err := r.requireNotInDefault(ctx, parent, rest, &bound, func(holder *catalog.TableDescriptor) *catalog.TableDescriptor { return holder }); err != nil {
			return err
		}
	}
	next := t.Clone()
	next.PartitionOf = &catalog.PartitionOf{Parent: parent.ID, Bound: bound}
	for i := range next.Checks {
		if inherited := slices.ContainsFunc(parent.Checks, func(c catalog.CheckDescriptor) bool { return c.Name == next.Checks[i].Name && !c.NoInherit }); inherited {
			next.Checks[i].Inherited, next.Checks[i].Local = true, false
		}
	}
	if err := r.inheritTriggers(ctx, next, parent); err != nil {
		return err
	}
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	if err := r.link(ctx, parent.ID, t.ID); err != nil {
		return err
	}
	if err := r.carryAll(ctx, parent, t.ID); err != nil {
		return err
	}
	return r.referToPartition(ctx, parent, t.ID)
}

// attachable refuses tables that cannot become a partition.
func (r *run) attachable(ctx context.Context, t, parent *catalog.TableDescriptor) error {
	if t.IsPartition() {
		return pgerror.New(pgerror.WrongObjectType, "%q is already a partition", t.Name)
	}
	for i := range t.Triggers {
		if g := &t.Triggers[i]; g.Row && (g.OldTable != "" || g.NewTable != "") {
			return pgerror.New(pgerror.FeatureNotSupported, "trigger \"%s\" prevents table \"%s\" from becoming a partition", g.Name, t.Name).
				WithDetail("ROW triggers with transition tables are not supported on partitions.")
		}
	}
	above, err := catalog.PartitionAncestors(ctx, r.r, parent)
	if err != nil {
		return err
	}
	if t.ID == parent.ID || slices.ContainsFunc(above, func(a *catalog.TableDescriptor) bool { return a.ID == t.ID }) {
		return pgerror.New(pgerror.DuplicateTable, "circular inheritance not allowed").
			WithDetail("%q is already a child of %q.", parent.Name, t.Name)
	}
	return requireSameLife(t, parent, "attach a %s relation as partition of %s relation %q")
}

// fitsParent fails unless a table has the columns and checks of its parent.
func fitsParent(t, parent *catalog.TableDescriptor) error {
	for i := range t.Columns {
		if c := &t.Columns[i]; !c.Hidden && parent.ColumnNamed(c.Name) < 0 {
			return pgerror.New(pgerror.DatatypeMismatch, "table %q contains column %q not found in parent %q", t.Name, c.Name, parent.Name).
				WithDetail("The new partition may contain only the columns present in parent.")
		}
	}
	for i := range parent.Columns {
		c := &parent.Columns[i]
		if c.Hidden {
			continue
		}
		ord := t.ColumnNamed(c.Name)
		switch {
		case ord < 0:
			return pgerror.New(pgerror.DatatypeMismatch, "child table is missing column %q", c.Name)
		case t.Columns[ord].Type.OID != c.Type.OID || t.Columns[ord].Type.Mod != c.Type.Mod:
			return pgerror.New(pgerror.DatatypeMismatch, "child table %q has different type for column %q", t.Name, c.Name)
		case t.Columns[ord].Type.Coll != c.Type.Coll:
			return pgerror.New("42P21", "child table %q has different collation for column %q", t.Name, c.Name)
		case c.NotNull && !t.Columns[ord].NotNull:
			return pgerror.New(pgerror.DatatypeMismatch, "column %q in child table must be marked NOT NULL", c.Name)
		case c.Generated != "" && t.Columns[ord].Generated == "":
			return pgerror.New(pgerror.DatatypeMismatch, "column %q in child table must be a generated column", c.Name)
		case c.Generated != t.Columns[ord].Generated:
			return pgerror.New(pgerror.DatatypeMismatch, "column %q in child table has a conflicting generation expression", c.Name)
		}
	}
	for i := range parent.Checks {
		c := &parent.Checks[i]
		at := slices.IndexFunc(t.Checks, func(o catalog.CheckDescriptor) bool { return o.Name == c.Name })
		switch {
		case c.NoInherit:
		case at < 0:
			return pgerror.New(pgerror.DatatypeMismatch, "child table is missing constraint %q", c.Name)
		case t.Checks[at].Expr != c.Expr:
			return pgerror.New(pgerror.DatatypeMismatch, "child table %q has different definition for check constraint %q", t.Name, c.Name)
		}
	}
	return nil
}

// requireWithin fails unless the rows of t, which is the table with the given id or one below it, belong to the partition that this becomes.
func (r *run) requireWithin(ctx context.Context, t, parent *catalog.TableDescriptor, id uint64, bound *catalog.PartitionBound) error {
	if t.IsPartitioned() {
		return nil
	}
	check, err := planner.BindPartitionCheckOf(ctx, t, parent, id, bound, r.r, r.Env)
	if err != nil {
		return err
	}
	ev := &expr.Context{Ctx: ctx, Env: r.Env}
	return r.scanRows(ctx, t, "checking partition", func(row types.Row) error {
		if ok, err := check.Holds(ev, row); ok || err != nil {
			return err
		}
		e := pgerror.New(pgerror.CheckViolation, "partition constraint of relation %q is violated by some row", t.Name)
		e.Schema, e.Table = t.Schema, t.Name
		return e
	})
}

func isPartitionOf(t, parent *catalog.TableDescriptor) bool {
	return t.IsPartition() && t.PartitionOf.Parent == parent.ID
}

func notPartition(t, parent *catalog.TableDescriptor) error {
	return pgerror.New(pgerror.UndefinedTable, "relation %q is not a partition of relation %q", t.Name, parent.Name)
}

// detachPartition is ALTER TABLE … DETACH PARTITION.
func (r *run) detachPartition(ctx context.Context, parent *catalog.TableDescriptor, n *ast.TableCommand) error {
	if !parent.IsPartitioned() {
		return pgerror.New(invalidObjectDefinition, "table %q is not partitioned", parent.Name)
	}
	t, err := r.mustFind(ctx, *n.Table)
	if err != nil {
		return err
	}
	s, err := r.siblings(ctx, parent)
	if err != nil {
		return err
	}
	switch {
	case n.Mode == "CONCURRENTLY" && !r.alone:
		return pgerror.New(pgerror.ActiveSQLTransaction, "ALTER TABLE ... DETACH CONCURRENTLY cannot run inside a transaction block")
	case n.Mode == "CONCURRENTLY" && s.rest() != nil:
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot detach partitions concurrently when a default partition exists")
	case !isPartitionOf(t, parent):
		return notPartition(t, parent)
	case n.Mode == "FINALIZE":
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "partition %q of %q is not pending detach", t.Name, parent.Name)
	}
	tree, err := catalog.PartitionTree(ctx, r.r, t)
	if err != nil {
		return err
	}
	for _, table := range append([]*catalog.TableDescriptor{parent}, tree...) {
		if r.ch.Created(table.ID) {
			continue
		}
		if err := r.ch.Close(ctx, table); err != nil { // No rows are read, so that those that others have changed may stay.
			return err
		}
	}
	if err := r.closeReferencing(ctx, parent); err != nil {
		return err
	}
	if r.alone {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	was := t
	if t, err = r.r.RelationByID(ctx, t.ID); err != nil {
		return err
	}
	if t == nil || !isPartitionOf(t, parent) { // Another process has detached or dropped it before the tables were closed.
		return notPartition(was, parent)
	}
	if err := r.requireUnreferenced(ctx, t); err != nil {
		return err
	}
	next := t.Clone()
	next.PartitionOf = nil
	next.Primary.Parent = 0
	for i := range next.Indexes {
		next.Indexes[i].Parent = 0
	}
	for i := range next.Checks {
		next.Checks[i].Inherited, next.Checks[i].Local = false, false
	}
	for i := range next.ForeignKeys {
		if err := r.disinherit(ctx, next, &next.ForeignKeys[i]); err != nil {
			return err
		}
	}
	dropped := slices.DeleteFunc(slices.Clone(next.Triggers), func(g catalog.TriggerDescriptor) bool { return g.Inherited == 0 })
	next.Triggers = slices.DeleteFunc(next.Triggers, func(g catalog.TriggerDescriptor) bool { return g.Inherited != 0 })
	if err := r.leavePartition(ctx, parent, t.ID); err != nil {
		return err
	}
	if now, err := r.r.RelationByID(ctx, t.ID); err != nil {
		return err
	} else if now.Version != t.Version { // It references its own parent.
		t = now
	}
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	for i := range dropped {
		if err := r.dropTriggerBelow(ctx, t.ID, dropped[i].OID); err != nil {
			return err
		}
	}
	return r.link(ctx, parent.ID, t.ID)
}
