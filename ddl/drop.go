package ddl

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

func (r *run) drop(ctx context.Context, n *ast.Drop) error {
	if n.Concurrently && !r.alone {
		return pgerror.New(pgerror.ActiveSQLTransaction, "DROP INDEX CONCURRENTLY cannot run inside a transaction block")
	}
	switch {
	case n.Concurrently && len(n.Names) > 1:
		return pgerror.New(pgerror.FeatureNotSupported, "DROP INDEX CONCURRENTLY does not support dropping multiple objects")
	case n.Concurrently && n.Cascade:
		return pgerror.New(pgerror.FeatureNotSupported, "DROP INDEX CONCURRENTLY does not support CASCADE")
	}
	switch n.Kind {
	case "INDEX":
		return r.dropIndex(ctx, n)
	case "SCHEMA":
		return r.dropSchema(ctx, n)
	}
	d := newDropping(r)
	for _, name := range n.Names {
		t, err := r.dropTarget(ctx, n, name)
		if err != nil {
			return err
		}
		if t == nil {
			if err := r.noticeDropAbsent(ctx, n.Kind, name); err != nil {
				return err
			}
			continue
		}
		d.addTarget(t)
	}
	if again, err := d.closePartitioned(ctx); err != nil {
		return err
	} else if again {
		return r.drop(ctx, n)
	}
	return d.run(ctx, n.Cascade)
}

// closePartitioned closes the partitioned tables that stay and lose partitions. It reports whether the targets are to be looked up again, as of
// a snapshot that was taken afterwards.
func (d *dropping) closePartitioned(ctx context.Context) (again bool, err error) {
	for _, t := range d.targets {
		if !t.IsPartition() || d.has(t.PartitionOf.Parent) || d.r.ch.Created(t.PartitionOf.Parent) || d.r.ch.Closed(t.PartitionOf.Parent) {
			continue
		}
		parent, err := d.r.r.RelationByID(ctx, t.PartitionOf.Parent)
		if err != nil {
			return false, err
		}
		if err := d.r.ch.Close(ctx, parent); err != nil {
			return false, err
		}
		again = d.r.alone
	}
	if again {
		err = d.r.begin(ctx)
	}
	return again, err
}

// noticeDropAbsent reports what DROP IF EXISTS did not find: the object, or the schema it would be in.
func (r *run) noticeDropAbsent(ctx context.Context, kind string, name ast.TableName) error {
	if name.Schema != "" {
		if ok, err := r.r.SchemaExists(ctx, name.Schema); err != nil {
			return err
		} else if !ok {
			r.noticeAbsent("schema %q does not exist, skipping", name.Schema)
			return nil
		}
	}
	r.noticeAbsent("%s %q does not exist, skipping", strings.ToLower(kind), name.Name)
	return nil
}

// dropTarget finds the object of DROP; nil if there is none and IF EXISTS is specified.
func (r *run) dropTarget(ctx context.Context, n *ast.Drop, name ast.TableName) (*catalog.TableDescriptor, error) {
	kind := strings.ToLower(n.Kind)
	t, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if t == nil {
		if name.Schema != "" {
			if ok, err := r.r.SchemaExists(ctx, name.Schema); err != nil || !ok && !n.IfExists {
				return nil, errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Schema).At(name.Position()))
			}
		}
		if n.IfExists {
			return nil, nil
		}
		if _, ix, err := catalog.FindIndex(ctx, r.r, name.Schema, name.Name); err != nil || ix != nil {
			return nil, errorOr(err, pgerror.New(pgerror.WrongObjectType, "%q is not a %s", name.Name, kind).
				WithHint("Use DROP INDEX to remove an index.").At(name.Position()))
		}
		return nil, pgerror.New(pgerror.UndefinedTable, "%s %q does not exist", kind, name.Name).At(name.Position())
	}
	if t.Kind == catalog.KindVirtual {
		return nil, permissionDenied(t.Name)
	}
	if is := kindWord(t); is != kind {
		return nil, pgerror.New(pgerror.WrongObjectType, "%q is not a %s", t.Name, kind).
			WithHint("Use DROP " + strings.ToUpper(is) + " to remove a " + is + ".").At(name.Position())
	}
	return t, nil
}

// dropping is a set of relations to be dropped, with their dependents.
type dropping struct {
	r       *run
	targets []*catalog.TableDescriptor // named, or owned by a named one
	// dependents are others that use a target; why explains each.
	dependents []*catalog.TableDescriptor
	why        []string
	// defaults are columns of other tables fed by a dropped sequence.
	defaults []defaultUse
	// observers are those, of tables that stay, whose statements name a target.
	observers []observerUse
	// policies are those, of tables that stay, whose conditions name a target.
	policies []policyUse
	// references are the foreign keys, of tables that stay, to a target.
	references []catalog.Reference
	// routines are those whose bodies in SQL's standard form name a target.
	routines []*catalog.RoutineDescriptor
	// rows are what depends on row types, but for views.
	rows []rowTypeUses
	// others describes what has been dropped already.
	others []string
	// quiet: the statement's notice has been sent.
	quiet bool
	// changing is the descriptor that the statement is about to give a table: the table's observers are dropped from it. nil: none.
	changing *catalog.TableDescriptor
}

type defaultUse struct {
	table    *catalog.TableDescriptor
	column   uint32
	sequence string
}

func newDropping(r *run) *dropping { return &dropping{r: r} }

func (d *dropping) has(id uint64) bool {
	same := func(t *catalog.TableDescriptor) bool { return t.ID == id }
	return slices.ContainsFunc(d.targets, same) || slices.ContainsFunc(d.dependents, same)
}

func (d *dropping) addTarget(t *catalog.TableDescriptor) {
	if !d.has(t.ID) {
		d.targets = append(d.targets, t)
	}
}

// addDependent adds a view and the views on it.
func (d *dropping) addDependent(ctx context.Context, view *catalog.TableDescriptor, why string) error {
	if d.has(view.ID) {
		return nil
	}
	d.dependents, d.why = append(d.dependents, view), append(d.why, why)
	return d.addViewsOn(ctx, view)
}

// addObserver adds an observer that uses what is dropped.
func (d *dropping) addObserver(use observerUse, what string) {
	if slices.ContainsFunc(d.observers, func(have observerUse) bool { return have.observer.ID == use.observer.ID }) {
		return
	}
	d.observers = append(d.observers, use)
	d.why = append(d.why, "observer "+use.observer.Name+" on table "+use.table.Name+" depends on "+what)
}

func (d *dropping) addViewsOn(ctx context.Context, t *catalog.TableDescriptor) error {
	views, err := d.r.viewsOn(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, v := range views {
		if err := d.addDependent(ctx, v, d.r.describe(ctx, v)+" depends on "+d.r.describe(ctx, t)); err != nil {
			return err
		}
	}
	return nil
}

// run drops the targets: alone, or with cascade all that depends on them.
func (d *dropping) run(ctx context.Context, cascade bool) error {
	if err := d.collect(ctx); err != nil {
		return err
	}
	if !cascade && len(d.why)+len(d.defaults) > 0 {
		t := d.targets[0]
		return d.refuse(ctx, d.r.describe(ctx, t))
	}
	return d.cascade(ctx)
}

// cascade drops the targets with all that depends on them.
func (d *dropping) cascade(ctx context.Context) error {
	if len(d.rows) > 0 {
		rest, err := d.dropRowTypeUses(ctx)
		if err != nil {
			return err
		}
		return rest.run(ctx, true)
	}
	return d.execute(ctx)
}

// collect finds what depends on the targets. The partitions of a table go with it.
func (d *dropping) collect(ctx context.Context) error {
	for _, t := range slices.Clone(d.targets) {
		tree, err := catalog.PartitionTree(ctx, d.r.r, t)
		if err != nil {
			return err
		}
		for _, part := range tree {
			d.addTarget(part)
		}
	}
	if err := d.addOwned(ctx); err != nil {
		return err
	}
	for _, t := range slices.Clone(d.targets) {
		if err := d.addViewsOn(ctx, t); err != nil {
			return err
		}
	}
	if err := d.addRowTypeUses(ctx); err != nil {
		return err
	}
	if err := d.findDefaults(ctx); err != nil {
		return err
	}
	if err := d.findReferences(ctx); err != nil {
		return err
	}
	for _, t := range append(slices.Clone(d.targets), d.dependents...) {
		for _, f := range d.r.standardOn(t) {
			if !slices.Contains(d.routines, f) {
				d.routines = append(d.routines, f)
				d.why = append(d.why, "function "+d.r.routineSignature(f)+" depends on "+d.r.describe(ctx, t))
			}
		}
		users, err := d.r.observersOn(ctx, t.ID)
		if err != nil {
			return err
		}
		for _, use := range users {
			if !d.has(use.table.ID) {
				d.addObserver(use, d.r.describe(ctx, t))
			}
		}
		policies, err := d.r.policiesOn(ctx, t.ID)
		if err != nil {
			return err
		}
		for _, use := range policies {
			if !d.has(use.table.ID) {
				d.addPolicy(ctx, use, d.r.describe(ctx, t))
			}
		}
	}
	return nil
}

// addOwned adds the sequences that the targets' columns own.
func (d *dropping) addOwned(ctx context.Context) error {
	all, err := d.r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Kind == catalog.KindSequence && s.Sequence.OwnerTable != 0 && d.has(s.Sequence.OwnerTable) {
			d.addTarget(s)
		}
	}
	return nil
}

// findDefaults finds the columns, of tables that stay, whose default is a dropped sequence.
func (d *dropping) findDefaults(ctx context.Context) error {
	all, err := d.r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, s := range d.targets {
		if s.Kind != catalog.KindSequence {
			continue
		}
		for _, t := range all {
			if t.Kind != catalog.KindTable || d.has(t.ID) {
				continue
			}
			for i := range t.Columns {
				if c := &t.Columns[i]; c.Sequence == s.ID || usesSequence(c.Default, s.ID) {
					d.defaults = append(d.defaults, defaultUse{t, c.ID, d.r.displayed(ctx, s)})
				}
			}
		}
	}
	return nil
}

func (d *dropping) refuse(ctx context.Context, what string) error {
	lines := slices.Clone(d.why)
	for _, u := range d.defaults {
		lines = append(lines, "default value for column "+u.table.Columns[u.table.Ordinal(u.column)].Name+
			" of "+d.r.describe(ctx, u.table)+" depends on sequence "+u.sequence)
	}
	return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
		WithDetail("%s", strings.Join(lines, "\n")).
		WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
}

func (d *dropping) execute(ctx context.Context) error {
	others := d.others
	slices.SortStableFunc(d.defaults, func(a, b defaultUse) int { return cmp.Compare(a.table.ID, b.table.ID) })
	var next *catalog.TableDescriptor // of the table at hand
	for i, u := range d.defaults {
		if next == nil {
			next = u.table.Clone()
		}
		col := &next.Columns[next.Ordinal(u.column)]
		others = append(others, "default value for column "+col.Name+" of "+d.r.describe(ctx, u.table))
		col.Default, col.Sequence, col.Identity = "", 0, ""
		if i+1 < len(d.defaults) && d.defaults[i+1].table.ID == u.table.ID {
			continue
		}
		if err := d.r.ch.Update(ctx, u.table, next, false); err != nil {
			return err
		}
		next = nil
	}
	for _, t := range d.dependents {
		others = append(others, d.r.describe(ctx, t))
	}
	for _, ref := range d.references {
		others = append(others, referenceText(ref))
	}
	if err := d.r.dropAll(ctx, d.references); err != nil {
		return err
	}
	if err := d.unlinkTargets(ctx); err != nil {
		return err
	}
	for _, f := range d.routines {
		others = append(others, "function "+d.r.routineSignature(f))
	}
	for _, use := range d.observers {
		others = append(others, "observer "+use.observer.Name+" on table "+use.table.Name)
		if err := d.removeObserver(ctx, use); err != nil {
			return err
		}
	}
	for _, use := range d.policies {
		others = append(others, d.r.policyText(ctx, use))
		if err := d.removePolicy(ctx, use); err != nil {
			return err
		}
	}
	if !d.quiet {
		d.r.noticeCascade(others)
	}
	if err := d.r.dropFound(ctx, d.routines); err != nil {
		return err
	}
	for _, t := range append(slices.Clone(d.dependents), d.targets...) {
		if t.Kind == catalog.KindTable {
			if err := d.r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID}); err != nil {
				return err
			}
			for i := range t.Observers {
				if err := d.r.ch.ForgetObserver(ctx, t.Observers[i].ID); err != nil {
					return err
				}
			}
		}
		if err := d.r.ch.Drop(ctx, t); err != nil {
			return err
		}
	}
	if err := d.r.look(ctx); err != nil {
		return err
	}
	return d.unlinkPartitions(ctx)
}

// unlinkPartitions removes the partitions that were dropped from the partitioned tables that stay.
func (d *dropping) unlinkPartitions(ctx context.Context) error {
	for _, t := range d.targets {
		if !t.IsPartition() || d.has(t.PartitionOf.Parent) {
			continue
		}
		if parent, err := d.r.r.RelationByID(ctx, t.PartitionOf.Parent); err != nil {
			return err
		} else if parent != nil && !d.r.ch.Created(parent.ID) {
			if err := d.r.ch.Close(ctx, parent); err != nil {
				return err
			}
		}
		if err := d.r.link(ctx, t.PartitionOf.Parent, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// removeObserver drops an observer of a table that stays.
func (d *dropping) removeObserver(ctx context.Context, use observerUse) error {
	ids := []uint64{use.observer.ID}
	if d.changing != nil && d.changing.ID == use.table.ID {
		return d.r.removeFrom(ctx, use.table, d.changing, ids)
	}
	now, err := d.r.r.RelationByID(ctx, use.table.ID) // which may have lost another observer
	if err != nil {
		return err
	}
	return d.r.removeObservers(ctx, now, ids)
}

func (r *run) dropIndex(ctx context.Context, n *ast.Drop) error {
	for _, name := range n.Names {
		t, ix, err := catalog.FindIndex(ctx, r.r, name.Schema, name.Name)
		if err != nil {
			return err
		}
		if ix == nil {
			if dropped, err := r.dropFailedIndex(ctx, name); dropped || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		switch {
		case ix == nil && n.IfExists:
			if err := r.noticeDropAbsent(ctx, n.Kind, name); err != nil {
				return err
			}
			continue
		case ix == nil:
			if other, err := r.find(ctx, name); err != nil {
				return err
			} else if other != nil {
				is := kindWord(other)
				return pgerror.New(pgerror.WrongObjectType, "%q is not an index", name.Name).
					WithHint("Use DROP " + strings.ToUpper(is) + " to remove a " + is + ".").At(name.Position())
			}
			return pgerror.New(pgerror.UndefinedObject, "index %q does not exist", name.Name).At(name.Position())
		case ix.Parent != 0:
			return r.partOfIndexKept(ctx, t, ix)
		case ix.Constraint:
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop index %s because constraint %s on table %s requires it", ix.Name, ix.Name, t.Name).
				WithHint("You can drop constraint " + ix.Name + " on table " + t.Name + " instead.")
		}
		oid := ix.OID
		err = r.dropReferences(ctx, t, "index "+ix.Name, "index "+ix.Name, n.Cascade, func(k *catalog.ForeignKeyDescriptor) bool { return k.ParentIndex == oid })
		if err != nil {
			return err
		}
		if t, err = r.current(ctx, t); err != nil {
			return err
		}
		next := t.Clone()
		if err := r.removeIndex(ctx, next, ix); err != nil {
			return err
		}
		if err := r.update(ctx, t, next, false); err != nil {
			return err
		}
		if err := r.dropIndexBelow(ctx, t.ID, oid); err != nil {
			return err
		}
	}
	return nil
}

// dropFailedIndex drops an index whose build has failed. It reports whether there is one.
func (r *run) dropFailedIndex(ctx context.Context, name ast.TableName) (bool, error) {
	t, build, err := catalog.FindBuild(ctx, r.r, name.Schema, name.Name)
	switch {
	case err != nil || build == nil:
		return false, err
	case !build.Failed():
		return false, &catalog.BuildingError{Table: t.ID, Name: t.Name}
	}
	return true, r.removeFailed(ctx, t, build.Index.OID)
}

// dropIndexBelow drops the parts of an index that was one of a partitioned table.
func (r *run) dropIndexBelow(ctx context.Context, id uint64, oid uint32) error {
	return r.forParts(ctx, id, func(part *catalog.TableDescriptor) error {
		ix := part.PartOfIndex(oid)
		if ix == nil {
			return nil
		}
		below := ix.OID
		next := part.Clone()
		if err := r.removeIndex(ctx, next, ix); err != nil {
			return err
		}
		if err := r.update(ctx, part, next, false); err != nil {
			return err
		}
		return r.dropIndexBelow(ctx, part.ID, below)
	})
}

// partOfIndexKept is the error of dropping a part of an index.
func (r *run) partOfIndexKept(ctx context.Context, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
	parent, err := r.r.RelationByID(ctx, t.PartitionOf.Parent)
	if err != nil {
		return err
	}
	of := parent.IndexByOID(ix.Parent).Name
	return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop index %s because index %s requires it", ix.Name, of).
		WithHint("You can drop index " + of + " instead.")
}

func (r *run) dropSchema(ctx context.Context, n *ast.Drop) error {
	for _, name := range n.Names {
		schema := name.Name
		ok, err := r.r.SchemaExists(ctx, schema)
		if err != nil {
			return err
		}
		if !ok {
			if n.IfExists {
				r.noticeAbsent("schema %q does not exist, skipping", schema)
				continue
			}
			return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", schema).At(name.Position())
		}
		if systemSchema(schema) {
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop schema %s because it is required by the database system", schema)
		}
		if err := r.emptySchema(ctx, schema, n.Cascade); err != nil {
			return err
		}
		if err := r.forgetDefaults(ctx, func(d *catalog.DefaultGrant) bool { return d.Schema == r.schemaID(schema) }); err != nil {
			return err
		}
		if err := r.ch.DropSchema(ctx, schema); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// emptySchema drops the contents of a schema, if cascade permits it.
func (r *run) emptySchema(ctx context.Context, schema string, cascade bool) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	d := newDropping(r)
	var why []string
	for _, t := range all {
		if t.Schema != schema {
			continue
		}
		d.addTarget(t)
		if t.Kind != catalog.KindSequence || t.Sequence.OwnerTable == 0 {
			why = append(why, r.describe(ctx, t)+" depends on schema "+schema)
		}
	}
	kept := r.typesIn(schema)
	for _, t := range kept {
		lines, err := r.schemaType(ctx, t, schema)
		if err != nil {
			return err
		}
		why = append(why, lines...)
	}
	orders := r.collationsIn(schema)
	for _, o := range orders {
		lines, err := r.schemaCollation(ctx, o)
		if err != nil {
			return err
		}
		why = append(why, lines...)
	}
	operations := r.operationsIn(func(in string, _ uint32) bool { return in == schema })
	for _, what := range operations.shown(r) {
		why = append(why, what+" depends on schema "+schema)
	}
	operationUses, err := r.operationUses(ctx, operations, schema)
	if err != nil {
		return err
	}
	why = append(why, operationUses.lines...)
	functions := r.routinesWhere(func(f *catalog.RoutineDescriptor) bool { return f.Schema == schema })
	for _, f := range functions {
		why = append(why, "function "+r.routineSignature(f)+" depends on schema "+schema)
	}
	search := r.textSearchWhere(func(d *catalog.TextSearchDescriptor) bool { return d.Schema == schema })
	for _, d := range search {
		why = append(why, d.Kind()+" "+r.textSearchName(d)+" depends on schema "+schema)
	}
	searchUses, err := r.textSearchUses(ctx, search, schema)
	if err != nil {
		return err
	}
	why = append(why, searchUses.lines...)
	installed := r.extensionsIn(schema)
	for _, e := range installed {
		why = append(why, "extension "+e.Name+" depends on schema "+schema)
	}
	if len(why)+len(d.targets) == 0 {
		return nil
	}
	if err := d.collect(ctx); err != nil {
		return err
	}
	if !cascade {
		d.why = append(why, d.why...)
		return d.refuse(ctx, "schema "+schema)
	}
	for _, line := range why {
		what, _, _ := strings.Cut(line, " depends on ")
		d.others = append(d.others, what)
	}
	if len(d.targets) == 0 {
		r.noticeCascade(d.others)
	} else if err := d.cascade(ctx); err != nil {
		return err
	}
	if err := r.dropFoundOperations(ctx, operations); err != nil {
		return err
	}
	if err := r.dropFound(ctx, functions); err != nil {
		return err
	}
	for _, t := range kept {
		found, err := r.usesOf(ctx, t)
		if err != nil {
			return err
		}
		if err := r.dropTypeWith(ctx, t, found); err != nil {
			return err
		}
	}
	if err := r.dropFoundTextSearch(ctx, search); err != nil {
		return err
	}
	for _, o := range orders {
		found, err := r.collationUses(ctx, o)
		if err != nil {
			return err
		}
		if err := r.dropCollationWith(ctx, o, found); err != nil {
			return err
		}
	}
	for _, e := range installed {
		if err := r.dropExtension(ctx, e, true); err != nil {
			return err
		}
	}
	return nil
}

// noticeCascade reports which other objects are dropped, as PostgreSQL does.
func (r *run) noticeCascade(others []string) {
	switch len(others) {
	case 0:
	case 1:
		r.notice(pgerror.SuccessfulCompletion, "drop cascades to %s", others[0])
	default:
		r.Report.Notice(pgerror.New(pgerror.SuccessfulCompletion, "drop cascades to %d other objects", len(others)).
			WithDetail("drop cascades to %s", strings.Join(others, "\ndrop cascades to ")))
	}
}
