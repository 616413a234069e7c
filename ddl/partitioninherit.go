package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// inheritColumns gives a new partition the columns of its parent, with what the statement says of them.
func (b *builder) inheritColumns(ctx context.Context, n *ast.CreateTable, parent *catalog.TableDescriptor) error {
	for i := range parent.Columns {
		c := parent.Columns[i]
		if c.Hidden {
			continue
		}
		col := catalog.ColumnDescriptor{Name: c.Name, Type: c.Type, NotNull: c.NotNull, Default: c.Default, Generated: c.Generated}
		if err := b.appendColumn(col, 0); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i := range n.Columns {
		def := &n.Columns[i]
		ord := b.t.ColumnNamed(def.Name)
		switch {
		case ord < 0:
			return pgerror.New(pgerror.UndefinedColumn, "column %q does not exist", def.Name)
		case seen[def.Name]:
			return pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", def.Name).At(def.Position())
		case def.Identity != "":
			return pgerror.New(pgerror.FeatureNotSupported, "identity columns are not supported on partitions")
		case def.Generated != nil:
			return pgerror.New(pgerror.FeatureNotSupported, "generated columns are not supported on partitions")
		}
		seen[def.Name] = true
		col := &b.t.Columns[ord]
		col.NotNull = col.NotNull || def.NotNull
		if def.Default != nil {
			var err error
			if col.Default, err = b.defaultText(ctx, col.Name, def.Default, col.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritChecks gives a new partition the checks of its parent. Those of the statement with the same name and condition are merged.
func (b *builder) inheritChecks(ctx context.Context, n *ast.CreateTable, parent *catalog.TableDescriptor) error {
	own := map[string]*ast.TableConstraint{}
	for _, c := range constraintsOf(n) {
		if c.Kind == ast.Check && c.Name != "" {
			own[c.Name] = c
		}
	}
	for i := range parent.Checks {
		c := parent.Checks[i]
		if c.NoInherit {
			continue
		}
		id, err := b.ch.NewID(ctx)
		if err != nil {
			return err
		}
		c.OID, c.Inherited, c.Local, c.NotValid, c.Comment = uint32(id), true, false, false, ""
		if mine := own[c.Name]; mine != nil {
			if b.pinned(mine.Check) != c.Expr {
				return pgerror.New(pgerror.DuplicateObject, "constraint %q for relation %q already exists", c.Name, b.t.Name).At(mine.Position())
			}
			b.notice(pgerror.SuccessfulCompletion, "merging constraint %q with inherited definition", c.Name)
			c.Local = true
			removeConstraint(n, mine)
		}
		b.t.Checks = append(b.t.Checks, c)
	}
	return nil
}

// removeConstraint takes a constraint out of a CREATE TABLE.
func removeConstraint(n *ast.CreateTable, c *ast.TableConstraint) {
	for i := range n.Constraints {
		if &n.Constraints[i] == c {
			n.Constraints = slices.Delete(slices.Clone(n.Constraints), i, i+1)
			return
		}
	}
	for i := range n.Columns {
		for j := range n.Columns[i].Constraints {
			if &n.Columns[i].Constraints[j] == c {
				n.Columns[i].Constraints = slices.Delete(slices.Clone(n.Columns[i].Constraints), j, j+1)
				return
			}
		}
	}
}

// inheritIndexes gives a new partition a part of each index of its parent.
func (b *builder) inheritIndexes(ctx context.Context, parent *catalog.TableDescriptor) error {
	if parent.HasPrimaryKey() {
		if err := b.inheritIndex(ctx, parent, &parent.Primary); err != nil {
			return err
		}
	}
	for i := range parent.Indexes {
		if err := b.inheritIndex(ctx, parent, &parent.Indexes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) inheritIndex(ctx context.Context, parent *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
	part := mapIndex(parent, ix, b.t)
	if have := sameIndex(b.t, &part); have != nil {
		have.Parent = ix.OID
		return nil
	}
	id, err := b.ch.NewID(ctx)
	if err != nil {
		return err
	}
	part.OID, part.Name = uint32(id), partIndexName(b.t, parent, ix, b.taken)
	b.pending[part.Name] = true
	if ix == &parent.Primary {
		if b.t.PrimaryKey() != nil {
			return multiplePrimaryKeys(b.t.Name)
		}
		if last := len(b.t.Columns) - 1; last >= 0 && b.t.Columns[last].Hidden {
			b.t.Columns = b.t.Columns[:last]
		}
		part.ID = b.t.Primary.ID
		b.t.Primary = part
		return requirePartitionKey(b.t, &b.t.Primary)
	}
	if part.DeclaredPrimary && b.t.PrimaryKey() != nil {
		return multiplePrimaryKeys(b.t.Name)
	}
	part.ID = b.t.NextIndexID
	b.t.NextIndexID++
	b.t.Indexes = append(b.t.Indexes, part)
	return requirePartitionKey(b.t, &part)
}

// partIndexName chooses the name of a part of an index.
func partIndexName(t, parent *catalog.TableDescriptor, ix *catalog.IndexDescriptor, taken func(string) bool) string {
	if ix == &parent.Primary || ix.ID == parent.Primary.ID || ix.DeclaredPrimary {
		return chooseName(t.Name, "", "pkey", taken)
	}
	var names []string
	for i := range ix.Columns {
		names = append(names, indexNamePart(parent.ColumnByID(ix.Columns[i].ColumnID)))
	}
	for _, id := range ix.Include {
		names = append(names, parent.ColumnByID(id).Name)
	}
	label := "idx"
	if ix.Constraint {
		label = "key"
	}
	return chooseName(t.Name, joinColumns(names), label, taken)
}

// indexNamePart is what a key contributes to the name of an index.
func indexNamePart(c *catalog.ColumnDescriptor) string {
	if c.Expr == nil {
		return c.Name
	}
	if e, err := sql.ParseExpr(c.Expr.SQL); err == nil {
		return sql.ExprName(e)
	}
	return "expr"
}

// mapIndex makes the part that t has of an index of parent, without its name and numbers. It adds the expressions of the index to t.
func mapIndex(parent *catalog.TableDescriptor, ix *catalog.IndexDescriptor, t *catalog.TableDescriptor) catalog.IndexDescriptor {
	part := catalog.IndexDescriptor{Unique: ix.Unique, Constraint: ix.Constraint, Where: ix.Where, Method: ix.Method, Options: ix.Options,
		NullsNotDistinct: ix.NullsNotDistinct, Parent: ix.OID,
		LateKey: catalog.LateKey{Deferrable: ix.Deferrable, Deferred: ix.Deferred, DeclaredPrimary: ix.DeclaredPrimary}}
	for i := range ix.Columns {
		k := ix.Columns[i]
		k.ColumnID = mapColumn(parent, k.ColumnID, t)
		part.Columns = append(part.Columns, k)
	}
	for _, id := range ix.Include {
		part.Include = append(part.Include, mapColumn(parent, id, t))
	}
	for _, c := range ix.Inverted {
		c.ColumnID = mapColumn(parent, c.ColumnID, t)
		part.Inverted = append(part.Inverted, c)
	}
	return part
}

// mapColumn returns the id of a column of parent in t, to which an expression is added.
func mapColumn(parent *catalog.TableDescriptor, id uint32, t *catalog.TableDescriptor) uint32 {
	c := parent.ColumnByID(id)
	if ord := parent.Ordinal(id); ord < len(parent.Columns) {
		return t.Columns[t.InheritedColumn(c)].ID
	}
	if c.Expr != nil {
		for i := range t.Computed {
			if o := &t.Computed[i]; o.Expr != nil && o.Expr.SQL == c.Expr.SQL {
				return o.ID
			}
		}
	}
	own := *c
	own.ID = t.NextColumnID
	t.NextColumnID++
	t.Computed = append(t.Computed, own)
	return own.ID
}

// sameIndex finds an index of t that can be the given part of an index of its parent; nil if there is none.
func sameIndex(t *catalog.TableDescriptor, part *catalog.IndexDescriptor) *catalog.IndexDescriptor {
	if t.HasPrimaryKey() && sameIndexAs(&t.Primary, part) {
		return &t.Primary
	}
	for i := range t.Indexes {
		if sameIndexAs(&t.Indexes[i], part) {
			return &t.Indexes[i]
		}
	}
	return nil
}

// sameIndexAs reports whether an index can be the given part of an index of the parent.
func sameIndexAs(o, part *catalog.IndexDescriptor) bool {
	sameKey := func(a, b catalog.IndexColumn) bool {
		return a.ColumnID == b.ColumnID && a.Desc == b.Desc && a.NullsFirst == b.NullsFirst && a.Coll == b.Coll && a.OpClass == b.OpClass && a.OpClassID == b.OpClassID
	}
	return o.Parent == 0 && o.Name != "" && o.Exclude == nil && o.Deferrable == part.Deferrable && o.Deferred == part.Deferred && (o.DeclaredPrimary || !part.DeclaredPrimary) &&
		o.NullsNotDistinct == part.NullsNotDistinct && o.Unique == part.Unique && (o.Constraint || !part.Constraint) && o.Method == part.Method &&
		slices.EqualFunc(o.Columns, part.Columns, sameKey) && slices.Equal(o.Include, part.Include) && slices.Equal(o.Inverted, part.Inverted) &&
		(o.Where == nil) == (part.Where == nil) && (o.Where == nil || o.Where.SQL == part.Where.SQL)
}

// inheritForeignKeys gives a new partition the foreign keys of its parent.
func (b *builder) inheritForeignKeys(ctx context.Context, parent *catalog.TableDescriptor) error {
	for i := range parent.ForeignKeys {
		k, err := b.mapForeignKey(ctx, parent, &parent.ForeignKeys[i], b.t)
		if err != nil {
			return err
		}
		b.t.ForeignKeys = append(b.t.ForeignKeys, k)
	}
	return nil
}

// mapForeignKey makes the foreign key that t has of its parent.
func (r *run) mapForeignKey(ctx context.Context, parent *catalog.TableDescriptor, of *catalog.ForeignKeyDescriptor, t *catalog.TableDescriptor) (catalog.ForeignKeyDescriptor, error) {
	k := *of
	k.Inherited, k.Comment = of.OID, ""
	k.Columns, k.DeleteColumns, k.Parts = nil, nil, nil
	for _, id := range of.Columns {
		k.Columns = append(k.Columns, mapColumn(parent, id, t))
	}
	for _, id := range of.DeleteColumns {
		k.DeleteColumns = append(k.DeleteColumns, mapColumn(parent, id, t))
	}
	taken := func(name string) bool { return constraintNamed(t, name) }
	if taken(k.Name) {
		var names []string
		for _, id := range k.Columns {
			names = append(names, t.ColumnByID(id).Name)
		}
		k.Name = chooseName(t.Name, joinColumns(names), "fkey", taken)
	}
	id, err := r.ch.NewID(ctx)
	k.OID = uint32(id)
	return k, err
}

// inheritTriggers gives t, which the caller owns, the triggers for each row of its parent.
func (r *run) inheritTriggers(ctx context.Context, t, parent *catalog.TableDescriptor) error {
	for i := range parent.Triggers {
		if g := &parent.Triggers[i]; g.Row {
			if err := r.inheritTrigger(ctx, t, parent, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) inheritTrigger(ctx context.Context, t, parent *catalog.TableDescriptor, g *catalog.TriggerDescriptor) error {
	if t.TriggerNamed(g.Name) != nil {
		return pgerror.New(pgerror.DuplicateObject, "trigger \"%s\" for relation \"%s\" already exists", g.Name, t.Name)
	}
	own := *g
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	own.OID, own.Inherited, own.Comment, own.Columns = uint32(id), g.OID, "", nil
	if g.ConstraintOID != 0 {
		if own.ConstraintOID, err = r.newOID(ctx); err != nil {
			return err
		}
	}
	for _, id := range g.Columns {
		own.Columns = append(own.Columns, mapColumn(parent, id, t))
	}
	t.Triggers = append(t.Triggers, own)
	sortTriggers(t)
	return nil
}

// carryTrigger gives all tables below t its trigger g.
func (r *run) carryTrigger(ctx context.Context, t *catalog.TableDescriptor, g *catalog.TriggerDescriptor) error {
	parts, err := catalog.PartitionsOf(ctx, r.r, t)
	if err != nil || !g.Row {
		return err
	}
	for _, part := range parts {
		next := part.Clone()
		next.Triggers = slices.DeleteFunc(next.Triggers, func(o catalog.TriggerDescriptor) bool { return o.Inherited == g.OID })
		if err := r.inheritTrigger(ctx, next, t, g); err != nil {
			return err
		}
		if err := r.update(ctx, part, next, true); err != nil {
			return err
		}
		if err := r.carryTrigger(ctx, next, next.TriggerNamed(g.Name)); err != nil {
			return err
		}
	}
	return nil
}

// dropTriggerBelow drops the triggers of the tables below one that belong to its trigger with an OID.
func (r *run) dropTriggerBelow(ctx context.Context, id uint64, oid uint32) error {
	t, err := r.r.RelationByID(ctx, id)
	if err != nil || t == nil {
		return err
	}
	parts, err := catalog.PartitionsOf(ctx, r.r, t)
	if err != nil {
		return err
	}
	for _, part := range parts {
		at := slices.IndexFunc(part.Triggers, func(g catalog.TriggerDescriptor) bool { return g.Inherited == oid })
		if at < 0 {
			continue
		}
		below := part.Triggers[at].OID
		next := part.Clone()
		next.Triggers = slices.Delete(next.Triggers, at, at+1)
		if err := r.update(ctx, part, next, true); err != nil {
			return err
		}
		if err := r.dropTriggerBelow(ctx, part.ID, below); err != nil {
			return err
		}
	}
	return nil
}

// carryAll gives an attached partition its parts of the indexes and foreign keys of its parent. The tables are closed.
func (r *run) carryAll(ctx context.Context, parent *catalog.TableDescriptor, id uint64) error {
	var oids []uint32
	if parent.HasPrimaryKey() {
		oids = append(oids, parent.Primary.OID)
	}
	for i := range parent.Indexes {
		oids = append(oids, parent.Indexes[i].OID)
	}
	for _, oid := range oids {
		if err := r.carryIndex(ctx, parent, parent.IndexByOID(oid), id); err != nil {
			return err
		}
	}
	for i := range parent.ForeignKeys {
		if err := r.carryForeignKey(ctx, parent, &parent.ForeignKeys[i], id); err != nil {
			return err
		}
	}
	return nil
}

// carryIndex gives a partition, and the tables below it, their parts of an index of parent.
func (r *run) carryIndex(ctx context.Context, parent *catalog.TableDescriptor, ix *catalog.IndexDescriptor, id uint64) error {
	t, err := r.toFill(ctx, id)
	if err != nil {
		return err
	}
	next := t.Clone()
	part := mapIndex(parent, ix, next)
	if have := sameIndex(next, &part); have != nil {
		have.Parent = ix.OID
		if err := r.update(ctx, t, next, false); err != nil {
			return err
		}
		return r.carryBelow(ctx, id, have.OID)
	}
	taken, err := r.relationTaken(ctx, t.Schema, nil)
	if err != nil {
		return err
	}
	if ix == &parent.Primary || ix.ID == parent.Primary.ID {
		c := &ast.TableConstraint{Kind: ast.PrimaryKey, Name: partIndexName(t, parent, ix, taken)}
		for i := range part.Columns {
			c.Columns = append(c.Columns, t.ColumnByID(part.Columns[i].ColumnID).Name)
		}
		if err := r.addPrimaryKeyAs(ctx, t, c, 0); err != nil {
			return err
		}
		if t, err = r.r.RelationByID(ctx, id); err != nil {
			return err
		}
		next = t.Clone()
		next.Primary.Parent = ix.OID
		if err := r.update(ctx, t, next, false); err != nil {
			return err
		}
		return r.carryBelow(ctx, id, next.Primary.OID)
	}
	oid, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	part.ID, part.OID, part.Name = next.NextIndexID, uint32(oid), partIndexName(t, parent, ix, taken)
	if err := requirePartitionKey(next, &part); err != nil {
		return err
	}
	if err := r.addIndex(ctx, t, next, part); err != nil {
		return err
	}
	return r.carryBelow(ctx, id, part.OID)
}

// carryBelow is carryIndex for the partitions of a table.
func (r *run) carryBelow(ctx context.Context, id uint64, oid uint32) error {
	t, err := r.r.RelationByID(ctx, id)
	if err != nil || !t.IsPartitioned() {
		return err
	}
	for _, id := range t.Partitioning.Partitions {
		part, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if part.PartOfIndex(oid) != nil {
			continue
		}
		if err := r.carryIndex(ctx, t, t.IndexByOID(oid), id); err != nil {
			return err
		}
	}
	return nil
}

// carryForeignKey gives a partition, and the tables below it, a foreign key of parent, which their rows satisfy.
func (r *run) carryForeignKey(ctx context.Context, parent *catalog.TableDescriptor, of *catalog.ForeignKeyDescriptor, id uint64) error {
	t, err := r.r.RelationByID(ctx, id)
	if err != nil {
		return err
	}
	next := t.Clone()
	k, err := r.mapForeignKey(ctx, parent, of, next)
	if err != nil {
		return err
	}
	have := slices.IndexFunc(next.ForeignKeys, func(o catalog.ForeignKeyDescriptor) bool {
		return o.Inherited == 0 && o.Parent == k.Parent && slices.Equal(o.Columns, k.Columns) && slices.Equal(o.ParentColumns, k.ParentColumns) &&
			o.OnDelete == k.OnDelete && o.OnUpdate == k.OnUpdate && o.Deferrable == k.Deferrable && o.MatchFull == k.MatchFull
	})
	if have >= 0 {
		next.ForeignKeys[have].Inherited, next.ForeignKeys[have].Parts = of.OID, nil
		k = next.ForeignKeys[have]
	} else {
		next.ForeignKeys = append(next.ForeignKeys, k)
	}
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	if err := r.linkParents(ctx, next, k.Parent); err != nil {
		return err
	}
	if have < 0 && !k.NotValid && !t.IsPartitioned() {
		if err := r.verifyForeignKey(ctx, next, &k); err != nil {
			return err
		}
	}
	if !next.IsPartitioned() {
		return nil
	}
	for _, part := range next.Partitioning.Partitions {
		if err := r.carryForeignKey(ctx, next, &k, part); err != nil {
			return err
		}
	}
	return nil
}
