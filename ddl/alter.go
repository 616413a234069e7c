package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func (r *run) alter(ctx context.Context, n *ast.AlterTable) error {
	if n.Kind == "INDEX" {
		return r.alterIndex(ctx, n)
	}
	t, err := r.find(ctx, n.Name)
	if err != nil {
		return err
	}
	if t == nil {
		if n.Kind == "TABLE" {
			// PostgreSQL's ALTER TABLE takes an index's name too.
			if owner, ix, err := catalog.FindIndex(ctx, r.r, n.Name.Schema, n.Name.Name); err != nil || ix != nil {
				return r.alterIndexCommands(ctx, n, owner, ix, err)
			}
		}
		if n.IfExists {
			r.noticeAbsent("relation %q does not exist, skipping", n.Name.Name)
			return nil
		}
		_, err := r.mustFind(ctx, n.Name)
		return err
	}
	if err := requireAlterable(t, n); err != nil {
		return err
	}
	if err := r.requireInherited(ctx, t, n.Commands); err != nil {
		return err
	}
	for _, cmd := range n.Commands {
		if err := refuseTyped(t, cmd); err != nil {
			return err
		}
	}
	if len(n.Commands) == 1 {
		if c, ok := n.Commands[0].(*ast.TableCommand); ok && c.Action == "ATTACH PARTITION" {
			return r.attachPartition(ctx, t, c)
		} else if ok && c.Action == "DETACH PARTITION" {
			return r.detachPartition(ctx, t, c)
		}
	}
	if t.IsPartitioned() {
		return r.alterPartitioned(ctx, t, n)
	}
	if err := r.closeRelated(ctx, t, n.Commands); err != nil {
		return err
	}
	if needs := r.dataCommands(ctx, t, n.Commands); needs > 0 {
		if t, err = r.exclusive(ctx, t, needs); err != nil {
			return err
		}
	}
	retyped := 0
	for _, cmd := range inPasses(n.Commands) {
		if t, err = r.current(ctx, t); err != nil {
			return err
		}
		if retypes(cmd) {
			if retyped++; retyped == 1 {
				if err := r.alterTypes(ctx, t, retypings(n.Commands)); err != nil {
					return err
				}
			}
			continue
		}
		if err := r.alterOne(ctx, t, cmd); err != nil {
			return err
		}
	}
	return nil
}

// current returns the descriptor as this statement has left it. The result of exclusive, with its reserved index ids, is
// used until the first update, which is based on it.
func (r *run) current(ctx context.Context, t *catalog.TableDescriptor) (*catalog.TableDescriptor, error) {
	now, err := r.r.RelationByID(ctx, t.ID)
	if err != nil || now.Version == t.Version {
		return t, err
	}
	return now, nil
}

// withKeysOf returns t with the foreign keys that the descriptor has now: others than those of t have been dropped. It keeps the index ids that
// exclusive has reserved.
func (r *run) withKeysOf(ctx context.Context, t *catalog.TableDescriptor) (*catalog.TableDescriptor, error) {
	now, err := r.current(ctx, t)
	if err != nil || now == t {
		return t, err
	}
	c := t.Clone()
	c.Version, c.WriterVersion, c.ForeignKeys, c.Referencing = now.Version, now.WriterVersion, now.ForeignKeys, now.Referencing
	return c, nil
}

func requireAlterable(t *catalog.TableDescriptor, n *ast.AlterTable) error {
	switch {
	case t.Kind == catalog.KindVirtual:
		return permissionDenied(t.Name)
	case n.Kind == "VIEW" && t.Kind != catalog.KindView:
		return pgerror.New(pgerror.WrongObjectType, "%q is not a view", t.Name).At(n.Name.Position())
	case n.Kind == "MATERIALIZED VIEW" && !t.Materialized:
		return pgerror.New(pgerror.WrongObjectType, "%q is not a materialized view", t.Name).At(n.Name.Position())
	case n.Kind == "SEQUENCE" && t.Kind != catalog.KindSequence:
		return pgerror.New(pgerror.WrongObjectType, "%q is not a sequence", t.Name).At(n.Name.Position())
	}
	if t.Materialized || t.Kind == catalog.KindView {
		return requireViewAlterable(t, n)
	}
	if t.Kind == catalog.KindTable {
		return nil
	}
	for _, cmd := range n.Commands {
		switch cmd.(type) {
		case *ast.RenameTo, *ast.SetStorage, *ast.SetSequence:
		default:
			return pgerror.New(pgerror.WrongObjectType, "ALTER action cannot be performed on relation %q", t.Name).
				WithDetail("This operation is not supported for %ss.", kindWord(t))
		}
	}
	return nil
}

// requireViewAlterable fails for the commands that a view or a materialized view does not have.
func requireViewAlterable(t *catalog.TableDescriptor, n *ast.AlterTable) error {
	for _, cmd := range n.Commands {
		action := ""
		switch c := cmd.(type) {
		case *ast.RenameTo, *ast.RenameColumn, *ast.SetStorage:
			continue
		case *ast.AddColumn:
			action = "ADD COLUMN"
		case *ast.DropColumn:
			action = "DROP COLUMN"
		case *ast.AddConstraint:
			action = "ADD CONSTRAINT"
		case *ast.DropConstraint:
			action = "DROP CONSTRAINT"
		case *ast.AlterColumn:
			action = "ALTER COLUMN"
			if t.Kind == catalog.KindView && (c.SetDefault != nil || c.DropDefault) {
				continue
			}
			switch {
			case c.SetType != nil:
				action = "ALTER COLUMN ... SET DATA TYPE"
			case c.SetNotNull:
				action = "ALTER COLUMN ... SET NOT NULL"
			case c.SetDefault != nil:
				action = "ALTER COLUMN ... SET DEFAULT"
			}
		case *ast.TableCommand:
			action = strings.Replace(c.Action, "ROW LEVEL SECURITY", "ROW SECURITY", 1)
		}
		return pgerror.New(pgerror.WrongObjectType, "%s cannot be performed on relation %q", strings.TrimSpace("ALTER action "+action), t.Name).
			WithDetail("This operation is not supported for %ss.", kindWord(t))
	}
	return nil
}

// dataCommands returns how many index ids the commands that depend on the table's rows may fill, 0
// when none of them does.
func (r *run) dataCommands(ctx context.Context, t *catalog.TableDescriptor, commands []ast.AlterCommand) int {
	indexes, needs := len(t.Indexes)+1, 0
	for _, cmd := range commands {
		switch n := cmd.(type) {
		case *ast.AddColumn:
			if !r.columnNeedsRows(ctx, &n.Column) {
				continue
			}
			for i := range n.Column.Constraints {
				if n.Column.Constraints[i].Kind != ast.Check {
					indexes++
				}
			}
			needs += 2 * indexes
		case *ast.AddConstraint:
			indexes++
			needs += indexes
		case *ast.TableCommand:
			if n.Action == "VALIDATE CONSTRAINT" {
				needs += indexes
			}
		case *ast.AlterColumn:
			if n.SetType != nil || n.SetNotNull || n.Drop == "EXPRESSION" {
				needs += indexes
			}
		case *ast.DropConstraint:
			if t.HasPrimaryKey() && t.Primary.Name == n.Name {
				needs += indexes
			}
		case *ast.DropColumn:
			if ord := t.ColumnNamed(n.Name); ord >= 0 && holdsColumn(&t.Primary, t.Columns[ord].ID) {
				needs += indexes
			}
		}
	}
	return needs
}

// columnNeedsRows reports whether adding a column reads or writes the existing rows. A default that cannot be bound
// fails later.
func (r *run) columnNeedsRows(ctx context.Context, def *ast.ColumnDef) bool {
	typ, serial, err := columnType(def, r.r)
	if err != nil || serial || def.Generated != nil || typ.HasDomain() || def.Identity != "" || len(def.Constraints) > 0 || def.NotNull && def.Default == nil {
		return true
	}
	if def.Default == nil {
		return false
	}
	bound, err := r.bind(ctx, nil, def.Default, types.Type{}, inDefault)
	return err != nil || def.NotNull || expr.Volatile(bound)
}

func (r *run) alterOne(ctx context.Context, t *catalog.TableDescriptor, cmd ast.AlterCommand) error {
	switch n := cmd.(type) {
	case *ast.AddColumn:
		return r.alterAddColumn(ctx, t, n)
	case *ast.DropColumn:
		return r.alterDropColumn(ctx, t, n)
	case *ast.AlterColumn:
		return r.alterColumn(ctx, t, n)
	case *ast.AddConstraint:
		return r.alterAddConstraint(ctx, t, &n.Constraint)
	case *ast.DropConstraint:
		return r.alterDropConstraint(ctx, t, n)
	case *ast.RenameTo:
		return r.renameRelation(ctx, t, n.Name)
	case *ast.SetSequence:
		return r.alterSequence(ctx, t, n)
	case *ast.RenameColumn:
		return r.renameColumn(ctx, t, n)
	case *ast.RenameConstraint:
		return r.renameConstraint(ctx, t, n)
	case *ast.TableCommand:
		if _, trigger := triggerStates[n.Action]; trigger {
			return r.enableTrigger(ctx, t, n)
		}
		switch n.Action {
		case "VALIDATE CONSTRAINT":
			return r.validateConstraint(ctx, t, n)
		case "ALTER CONSTRAINT":
			return r.alterConstraint(ctx, t, n)
		case "OF", "NOT OF":
			return r.alterOfType(ctx, t, n)
		}
		return r.alterRowSecurity(ctx, t, n.Action)
	case *ast.SetStorage:
		if n.Action == "OWNER TO" {
			return r.alterOwner(ctx, t, *n.Owner)
		}
		if t.Kind == catalog.KindView && (n.Action == "SET" || n.Action == "RESET") {
			next := t.Clone()
			if err := setViewOptions(next, n.Options, n.Action == "RESET"); err != nil {
				return err
			}
			if err := r.mayCheck(ctx, next); err != nil {
				return err
			}
			return r.update(ctx, t, next, false)
		}
		if n.Column != "" || n.Number != "" {
			return r.alterColumnStorage(ctx, t, n)
		}
		switch n.Action {
		case "SET LOGGED", "SET UNLOGGED":
			return r.alterLogged(ctx, t, n.Action == "SET UNLOGGED")
		case "SET SCHEMA":
			return r.setSchema(ctx, t, n.Name, n.Pos)
		case "SET", "RESET":
			return r.alterOptions(ctx, t, n)
		case "REPLICA IDENTITY USING INDEX", "REPLICA IDENTITY FULL", "REPLICA IDENTITY NOTHING", "REPLICA IDENTITY DEFAULT":
			return r.setReplicaIdentity(ctx, t, n)
		case "CLUSTER ON", "SET WITHOUT CLUSTER":
			return r.setClustered(ctx, t, n.Name)
		}
		return nil // The others have no effect here.
	}
	return pgerror.New(pgerror.InternalError, "command %T of ALTER TABLE", cmd)
}

// alterAddConstraint adds a constraint to a table that may hold rows.
func (r *run) alterAddConstraint(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	if c.UsingIndex != "" {
		return r.constraintFromIndex(ctx, t, c)
	}
	switch c.Kind {
	case ast.Check:
		return r.addCheck(ctx, t, c)
	case ast.PrimaryKey:
		return r.addPrimaryKey(ctx, t, c)
	case ast.Unique:
		return r.addUnique(ctx, t, c)
	case ast.Exclude:
		return r.addExclusion(ctx, t, c)
	}
	return r.addForeignKey(ctx, t, c)
}

func (r *run) addUnique(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	taken, err := r.relationTaken(ctx, t.Schema, nil)
	if err != nil {
		return err
	}
	next := t.Clone()
	ix, err := r.keyIndex(ctx, next, c, "unique", next.NextIndexID, taken)
	if err != nil {
		return err
	}
	return r.addIndex(ctx, t, next, ix)
}

func (r *run) addExclusion(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	taken, err := r.relationTaken(ctx, t.Schema, nil)
	if err != nil {
		return err
	}
	next := t.Clone()
	ix, err := r.newExclusion(ctx, next, c, taken)
	if err != nil {
		return err
	}
	return r.addIndex(ctx, t, next, ix)
}

// addIndex fills a new index and gives it to the table. t must be closed to writers.
func (r *run) addIndex(ctx context.Context, t, next *catalog.TableDescriptor, ix catalog.IndexDescriptor) error {
	if r.tree != nil {
		if !t.IsPartitioned() {
			return r.beginBuild(ctx, t, next, catalog.IndexBuild{Index: ix, Root: r.tree.root})
		}
		ix.Incomplete = len(t.Partitioning.Partitions) > 0
	}
	next.NextIndexID = ix.ID + 1
	next.Indexes = append(next.Indexes, ix)
	if err := r.backfill(ctx, next, []*catalog.IndexDescriptor{&next.Indexes[len(next.Indexes)-1]}); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// constraintFromIndex is ADD CONSTRAINT … UNIQUE|PRIMARY KEY USING INDEX.
func (r *run) constraintFromIndex(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	ix := t.IndexNamed(c.UsingIndex)
	switch {
	case ix == nil:
		return pgerror.New(pgerror.UndefinedObject, "index %q does not exist", c.UsingIndex).At(c.Position())
	case !ix.Unique:
		return pgerror.New(pgerror.WrongObjectType, "%q is not a unique index", c.UsingIndex).At(c.Position())
	case ix.Constraint:
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "index %q is already associated with a constraint", c.UsingIndex).At(c.Position())
	case ix.Where != nil:
		return pgerror.New(pgerror.WrongObjectType, "%q is a partial index", c.UsingIndex).
			WithDetail("Cannot create a primary key or unique constraint using such an index.").At(c.Position())
	case slices.ContainsFunc(ix.Columns, func(k catalog.IndexColumn) bool { return t.ColumnByID(k.ColumnID).Expr != nil }):
		return pgerror.New(pgerror.WrongObjectType, "index %q contains expressions", c.UsingIndex).
			WithDetail("Cannot create a primary key or unique constraint using such an index.").At(c.Position())
	}
	for i := range ix.Columns {
		k := &ix.Columns[i]
		if k.Desc || k.NullsFirst || k.OpClass != "" || k.OpClassID != 0 || k.Coll != t.ColumnByID(k.ColumnID).Type.Coll {
			return pgerror.New(pgerror.WrongObjectType, "index %q column number %d does not have default sorting behavior", c.UsingIndex, i+1).
				WithDetail("Cannot create a primary key or unique constraint using such an index.").At(c.Position())
		}
	}
	name := c.Name
	if name == "" {
		name = ix.Name
	}
	if c.Kind == ast.PrimaryKey {
		columns := make([]string, len(ix.Columns))
		for i := range ix.Columns {
			columns[i] = t.Columns[t.Ordinal(ix.Columns[i].ColumnID)].Name
		}
		without := t.Clone()
		without.Indexes = removeIndex(without.Indexes, ix.Name)
		if err := r.update(ctx, t, without, true); err != nil {
			return err
		}
		return r.addPrimaryKeyAs(ctx, without, &ast.TableConstraint{Pos: c.Pos, Name: name, Kind: ast.PrimaryKey, Columns: columns,
			Deferrable: c.Deferrable, Deferred: c.Deferred}, ix.OID)
	}
	next := t.Clone()
	at := next.IndexNamed(c.UsingIndex)
	if name != ix.Name {
		if taken, err := r.nameTaken(ctx, t.Schema, name); err != nil || taken {
			return errorOr(err, relationExists(name))
		}
		r.notice(pgerror.SuccessfulCompletion, "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index %q to %q", ix.Name, name)
	}
	at.Name, at.Constraint = name, true
	if c.Deferrable {
		return r.makeDeferrable(ctx, t, next, at, c.Deferred)
	}
	return r.update(ctx, t, next, false)
}

// makeDeferrable makes a unique index of next that of a deferrable constraint: it is built anew, since its entries have another form.
func (r *run) makeDeferrable(ctx context.Context, t, next *catalog.TableDescriptor, ix *catalog.IndexDescriptor, deferred bool) error {
	if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: ix.ID}); err != nil {
		return err
	}
	ix.ID, ix.Unique, ix.Deferrable, ix.Deferred = next.NextIndexID, false, true, deferred
	next.NextIndexID++
	if err := r.backfill(ctx, next, []*catalog.IndexDescriptor{ix}); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

func errorOr(err error, other *pgerror.Error) error {
	if err != nil {
		return err
	}
	return other
}

func removeIndex(indexes []catalog.IndexDescriptor, name string) []catalog.IndexDescriptor {
	var kept []catalog.IndexDescriptor
	for _, ix := range indexes {
		if ix.Name != name {
			kept = append(kept, ix)
		}
	}
	return kept
}

// addCheck adds a CHECK constraint that all rows satisfy.
func (r *run) addCheck(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	next := t.Clone()
	check, err := r.newCheck(ctx, next, c)
	if err != nil {
		return err
	}
	next.Checks = append(next.Checks, check)
	if check.NotValid {
		return r.update(ctx, t, next, true)
	}
	if err := r.verifyRows(ctx, next, next, []catalog.CheckDescriptor{check}, nil); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// alterDropConstraint is DROP CONSTRAINT: a check, a unique index, or the primary key.
func (r *run) alterDropConstraint(ctx context.Context, t *catalog.TableDescriptor, n *ast.DropConstraint) error {
	next := t.Clone()
	for i := range next.Checks {
		if next.Checks[i].Name == n.Name {
			next.Checks = append(next.Checks[:i], next.Checks[i+1:]...)
			return r.update(ctx, t, next, false)
		}
	}
	if t.ForeignKeyNamed(n.Name) != nil {
		return r.dropForeignKey(ctx, t, n.Name)
	}
	if err := inheritedPart(t, n.Name, "drop"); err != nil {
		return err
	}
	ix := t.IndexNamed(n.Name)
	if ix != nil && ix.Constraint {
		oid, what := ix.OID, "constraint "+ix.Name+" on table "+t.Name
		err := r.dropReferences(ctx, t, what, "index "+ix.Name, n.Cascade, func(k *catalog.ForeignKeyDescriptor) bool { return k.ParentIndex == oid })
		if err != nil {
			return err
		}
		if t, err = r.withKeysOf(ctx, t); err != nil {
			return err
		}
		next = t.Clone()
	}
	switch {
	case ix == nil || !ix.Constraint:
		if n.IfExists {
			r.noticeAbsent("constraint %q of relation %q does not exist, skipping", n.Name, t.Name)
			return nil
		}
		return pgerror.New(pgerror.UndefinedObject, "constraint %q of relation %q does not exist", n.Name, t.Name).At(n.Position())
	}
	if err := r.dropGroupedBy(ctx, t, ix, n.Cascade); err != nil {
		return err
	}
	if ix.ID == t.Primary.ID {
		return r.dropPrimaryKey(ctx, t)
	}
	if err := r.removeIndex(ctx, next, ix); err != nil {
		return err
	}
	return r.update(ctx, t, next, false)
}

// dropGroupedBy handles the views that group by a primary key and read other columns, which it determines: an error, or with cascade they are
// dropped.
func (r *run) dropGroupedBy(ctx context.Context, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, cascade bool) error {
	key := t.PrimaryKey()
	if key == nil || key.OID != ix.OID {
		return nil
	}
	without := t.Clone()
	at := without.PrimaryKey()
	at.Constraint, at.DeclaredPrimary = false, false
	return r.dropBroken(ctx, t, without, "constraint "+ix.Name+" on table "+t.Name, cascade)
}
