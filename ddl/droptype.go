package ddl

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// dropTypes is DROP TYPE.
func (r *run) dropTypes(ctx context.Context, n *ast.DropObjects) error {
	var targets []*catalog.TypeDescriptor
	for i := range n.Objects {
		written := n.Objects[i].Types[0]
		d, err := r.droppedType(ctx, written, n.IfExists)
		if err != nil {
			return err
		}
		if d != nil && n.Objects[i].Kind == "DOMAIN" && d.Kind != types.Domain {
			return notDomain(builtin.TypeName(d.Type()))
		}
		if d != nil && !slices.Contains(targets, d) {
			targets = append(targets, d)
		}
	}
	for _, d := range targets {
		if d = r.r.Types().ByOID(types.OID(d.ID)); d == nil {
			continue // dropped with one before
		}
		if err := r.dropType(ctx, d, n.Cascade); err != nil {
			return err
		}
	}
	return nil
}

// droppedType finds a type that the user may drop; nil if there is none and IF EXISTS is specified.
func (r *run) droppedType(ctx context.Context, written *ast.TypeName, ifExists bool) (*catalog.TypeDescriptor, error) {
	name := pathName(written.Pos, written.Name)
	d, t, err := r.userType(ctx, name)
	if row, ok := err.(*rowType); ok {
		kind := r.describe(ctx, row.relation)
		return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because %s requires it", row.relation.Name, kind).
			WithHint("You can drop " + kind + " instead.")
	}
	if pg, ok := err.(*pgerror.Error); ok && (pg.Code == pgerror.UndefinedObject || pg.Code == pgerror.InvalidSchemaName) {
		if ifExists {
			return nil, r.noticeDropAbsent(ctx, "TYPE", name)
		}
		return nil, pg
	}
	if err != nil {
		return nil, err
	}
	shown := builtin.TypeName(t)
	switch {
	case d == nil:
		return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because it is required by the database system", shown)
	case !r.access.Owns(d.OwnerOID()) && !r.access.OwnsSchema(d.Schema):
		return nil, mustBeOwner("type", shown)
	case t.IsMultirange():
		rng := builtin.TypeName(t.Ranges().Range)
		return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because type %s requires it", shown, rng).
			WithHint("You can drop type " + rng + " instead.")
	case t.IsArray() || written.Array > 0:
		scalar := builtin.TypeName(d.Type())
		return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because type %s requires it", builtin.TypeName(d.Defined().ArrayType()), scalar).
			WithHint("You can drop type " + scalar + " instead.")
	}
	return d, nil
}

// typeDropping is what dropping a type drops with it.
type typeDropping struct {
	columns []columnUse
	tables  []typedTable
	others  []typeUses
	domains []domainUse
	fields  []fieldUse
	// routines have arguments or results of the type, or use it in another way.
	routines []*catalog.RoutineDescriptor
	// operations are the operators, casts and classes that have the type, or use what is dropped.
	operations operationSet
	names      func(*catalog.RoutineDescriptor) string // of routines
	// ofType are the operations among those as describe lists them.
	ofType []operationUse
	// lines are further dependents as messages list them: views on what is dropped.
	lines []string
	// what is the statement, for messages.
	what string
}

// fieldUse is an attribute of a composite type that has a type, or arrays of it.
type fieldUse struct {
	typ   *catalog.TypeDescriptor
	field types.Field
	array bool
}

// domainUse is what depends on a type in a domain: all of it, if the type is below it, or constraints and the default, which name the
// type. A range type depends on that of its bounds in the same way.
type domainUse struct {
	domain *catalog.TypeDescriptor
	within *typeDropping // what depends on the domain, if that depends on the type as a whole; else nil
	check  types.OID     // the constraint; 0: the default
	array  bool          // it is the array type on which the domain depends
}

// what names the dependent as messages do.
func (u *domainUse) what() string {
	name := builtin.TypeName(u.domain.Type())
	if u.within != nil {
		return "type " + name
	}
	for _, c := range u.domain.Checks {
		if c.OID == u.check {
			return "constraint " + c.Name
		}
	}
	return "default value for domain " + name
}

type typeUses struct {
	relation *catalog.TableDescriptor
	uses     []typeUse
}

// usesOf finds what depends on a type. describe lists it as messages do.
func (r *run) usesOf(ctx context.Context, d *catalog.TypeDescriptor) (*typeDropping, error) {
	found := &typeDropping{routines: r.routinesWith(d), names: r.routineSignature, what: "DROP TYPE … CASCADE"}
	var err error
	if found.columns, err = r.columnsOf(ctx, d); err != nil {
		return nil, err
	}
	if found.tables, err = r.typedTablesOf(ctx, d); err != nil {
		return nil, err
	}
	if err := r.addRelationUses(ctx, found, typeDependency(d)); err != nil {
		return nil, err
	}
	if found.domains, err = r.domainUses(ctx, d); err != nil {
		return nil, err
	}
	for _, other := range r.r.Types().All() {
		for _, f := range other.Fields {
			if f.Type.OID == types.OID(d.ID) || f.Type.OID == types.OID(d.ArrayID) {
				found.fields = append(found.fields, fieldUse{other, f, f.Type.OID == types.OID(d.ArrayID)})
			}
		}
	}
	if m := r.multirangeOf(d); m != nil {
		of, err := r.usesOf(ctx, m)
		if err != nil {
			return nil, err
		}
		found.columns, found.others = append(found.columns, of.columns...), append(found.others, of.others...)
		found.domains, found.fields = append(found.domains, of.domains...), append(found.fields, of.fields...)
	}
	if err := r.addTypeOperations(ctx, found, d); err != nil {
		return nil, err
	}
	slices.SortStableFunc(found.others, byRelation)
	return found, nil
}

func byRelation(a, b typeUses) int { return cmp.Compare(a.relation.ID, b.relation.ID) }

// addRelationUses adds what of relations depends on a type or a collation, beside the columns that have been found.
func (r *run) addRelationUses(ctx context.Context, found *typeDropping, on dependency) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Kind != catalog.KindTable && t.Kind != catalog.KindView {
			continue
		}
		uses, err := r.dependents(t, on, found.columns)
		if err != nil {
			return err
		}
		if len(uses) > 0 {
			found.others = append(found.others, typeUses{t, uses})
		}
	}
	slices.SortStableFunc(found.others, byRelation)
	return nil
}

// onType ends the line of what depends on a type, or on its array type.
func onType(d *catalog.TypeDescriptor) func(array bool) string {
	return func(array bool) string {
		if array {
			return " depends on type " + builtin.TypeName(d.Defined().ArrayType())
		}
		return " depends on type " + builtin.TypeName(d.Type())
	}
}

// describe lists the dependents: dependsOn, unless it is nil, ends each line with what it depends on. What depends on the array type comes
// first, then what was made first.
func (f *typeDropping) describe(dependsOn func(array bool) string) (lines []string) {
	type dependent struct {
		array  bool
		id     uint64
		within []string
	}
	var all []dependent
	add := func(what string, array bool, id uint64, within ...string) {
		if dependsOn != nil {
			what += dependsOn(array)
		}
		all = append(all, dependent{array, id, append([]string{what}, within...)})
	}
	for _, u := range f.columns {
		add("column "+u.column.Name+" of table "+u.table.Name, u.column.Type.IsArray(), u.table.ID)
	}
	for _, u := range f.tables {
		within := u.lines
		if dependsOn == nil {
			within = nil
			for _, line := range u.lines {
				what, _, _ := strings.Cut(line, " depends on ")
				within = append(within, what)
			}
		}
		add("table "+u.table.Name, false, u.table.ID, within...)
	}
	for _, u := range f.fields {
		add("column "+u.field.Name+" of composite type "+builtin.TypeName(u.typ.Type()), u.array, u.typ.ID)
	}
	for _, u := range f.domains {
		var within []string
		if u.within != nil && dependsOn != nil {
			within = u.within.describe(onType(u.domain))
		} else if u.within != nil {
			within = u.within.describe(nil)
		}
		add(u.what(), u.array, u.domain.ID, within...)
	}
	for _, u := range f.routines {
		add("function "+f.names(u), false, u.ID)
	}
	for _, u := range f.ofType {
		add(u.what, u.array, u.id, u.within(dependsOn != nil)...)
	}
	for _, u := range f.others {
		for _, use := range u.uses {
			add(use.what, false, u.relation.ID)
		}
	}
	slices.SortStableFunc(all, func(a, b dependent) int {
		switch {
		case a.array == b.array:
			return cmp.Compare(a.id, b.id)
		case a.array:
			return -1
		}
		return 1
	})
	for _, u := range all {
		lines = append(lines, u.within...)
	}
	return lines
}

// dropType drops a type, with cascade what depends on it as well.
func (r *run) dropType(ctx context.Context, d *catalog.TypeDescriptor, cascade bool) error {
	found, err := r.usesOf(ctx, d)
	if err != nil {
		return err
	}
	if lines := found.describe(onType(d)); len(lines) > 0 && !cascade {
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop type %s because other objects depend on it", builtin.TypeName(d.Type())).
			WithDetail("%s", joinLines(lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	r.noticeCascade(found.describe(nil))
	return r.dropTypeWith(ctx, d, found)
}

// dropTypeWith drops a type and what depends on it.
func (r *run) dropTypeWith(ctx context.Context, d *catalog.TypeDescriptor, found *typeDropping) error {
	if err := r.dropDependents(ctx, found); err != nil {
		return err
	}
	if m := r.multirangeOf(d); m != nil {
		if err := r.ch.DropType(ctx, m); err != nil {
			return err
		}
	}
	if err := r.ch.DropType(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// dropDependents drops what depends on a type or an extension.
func (r *run) dropDependents(ctx context.Context, found *typeDropping) error {
	for _, u := range found.columns {
		now, err := r.r.RelationByID(ctx, u.table.ID)
		if err != nil {
			return err
		}
		if now != nil && holdsColumn(&now.Primary, u.column.ID) {
			return pgerror.Unsupported(found.what+" of that of a primary key",
				"Drop column "+u.column.Name+" of table "+u.table.Name+" first.")
		}
	}
	if err := r.dropFoundOperations(ctx, found.operations); err != nil {
		return err
	}
	if err := r.dropFound(ctx, found.routines); err != nil {
		return err
	}
	for _, u := range found.tables {
		if err := r.dropWithDependents(ctx, u.table.ID); err != nil {
			return err
		}
	}
	for _, u := range found.others {
		if err := r.dropUses(ctx, u); err != nil {
			return err
		}
	}
	for _, u := range found.fields {
		now := r.r.Types().ByOID(types.OID(u.typ.ID))
		if now == nil {
			continue
		}
		if err := r.requireUnused(ctx, now, found.what+" of that of an attribute"); err != nil {
			return err
		}
		next := now.Clone()
		next.Fields = slices.DeleteFunc(next.Fields, func(f types.Field) bool { return f.ID == u.field.ID })
		if err := r.changeComposite(ctx, now, next); err != nil {
			return err
		}
	}
	for _, u := range found.domains {
		if err := r.dropDomainUse(ctx, u); err != nil {
			return err
		}
	}
	for _, u := range found.columns {
		if err := r.dropColumnNumber(ctx, u.table.ID, u.column.ID); err != nil {
			return err
		}
	}
	return nil
}

// dropWithDependents drops a relation that depends on a type which is dropped, and what depends on it.
func (r *run) dropWithDependents(ctx context.Context, relation uint64) error {
	now, err := r.r.RelationByID(ctx, relation)
	if err != nil || now == nil {
		return err
	}
	dropping := newDropping(r)
	dropping.addTarget(now)
	dropping.quiet = true
	return dropping.run(ctx, true)
}

// dropColumnNumber drops a column of a table with all that depends on it, if the table still has it.
func (r *run) dropColumnNumber(ctx context.Context, table uint64, column uint32) error {
	now, err := r.r.RelationByID(ctx, table)
	if err != nil || now == nil || now.Ordinal(column) < 0 {
		return err
	}
	return r.alterDropColumn(ctx, now, &ast.DropColumn{Name: now.ColumnByID(column).Name, Cascade: true})
}

// dropDomainUse drops what of a domain depends on a type.
func (r *run) dropDomainUse(ctx context.Context, u domainUse) error {
	now := r.r.Types().ByOID(types.OID(u.domain.ID))
	switch {
	case now == nil:
		return nil
	case u.within != nil:
		return r.dropTypeWith(ctx, now, u.within)
	}
	next := now.Clone()
	if u.check == 0 {
		next.Default = ""
	} else {
		next.Checks = slices.DeleteFunc(next.Checks, func(c types.DomainCheck) bool { return c.OID == u.check })
	}
	return r.addType(ctx, next)
}

// domainUses lists the domains that depend on a type.
func (r *run) domainUses(ctx context.Context, d *catalog.TypeDescriptor) (uses []domainUse, err error) {
	for _, other := range r.r.Types().All() {
		if other.Kind != types.Domain && other.Kind != types.RangeKind || other == d {
			continue
		}
		if oid := other.Parent.OID; oid == types.OID(d.ID) || oid == types.OID(d.ArrayID) {
			within, err := r.usesOf(ctx, other)
			if err != nil {
				return nil, err
			}
			uses = append(uses, domainUse{domain: other, within: within, array: oid == types.OID(d.ArrayID)})
			continue
		}
		named, err := domainExpressionUses(other, typeDependency(d))
		if err != nil {
			return nil, err
		}
		uses = append(uses, named...)
	}
	return uses, nil
}

// domainExpressionUses lists the expressions of a domain that name a type or a collation.
func domainExpressionUses(d *catalog.TypeDescriptor, on dependency) (uses []domainUse, err error) {
	err = mapDomain(d.Clone(), func(check types.OID, inspect func(ast.Visitor)) {
		found := false
		inspect(on.uses(func() { found = true }))
		if found {
			uses = append(uses, domainUse{domain: d, check: check})
		}
	})
	return uses, err
}

// dropUses drops what of a relation depends on a type.
func (r *run) dropUses(ctx context.Context, u typeUses) error {
	now, err := r.r.RelationByID(ctx, u.relation.ID)
	if err != nil || now == nil {
		return err
	}
	whole := slices.ContainsFunc(u.uses, func(use typeUse) bool { return use.relation })
	if now.HasQuery() || whole {
		return r.dropWithDependents(ctx, now.ID)
	}
	next := now.Clone()
	var observers []uint64
	var computed []string
	for _, use := range u.uses {
		switch {
		case use.column != 0:
			next.Columns[next.Ordinal(use.column)].Default = ""
		case use.check != 0:
			next.Checks = slices.DeleteFunc(next.Checks, func(c catalog.CheckDescriptor) bool { return c.OID == use.check })
		case use.index != 0:
			for i := range now.Indexes {
				if now.Indexes[i].OID == use.index {
					if err := r.removeIndex(ctx, next, &now.Indexes[i]); err != nil {
						return err
					}
				}
			}
		case use.trigger != 0:
			next.Triggers = slices.DeleteFunc(next.Triggers, func(g catalog.TriggerDescriptor) bool { return g.OID == use.trigger })
		case use.policy != 0:
			next.Policies = slices.DeleteFunc(next.Policies, func(p catalog.PolicyDescriptor) bool { return p.OID == use.policy })
		case use.observer != 0:
			observers = append(observers, use.observer)
		case use.computed != 0:
			computed = append(computed, now.Columns[now.Ordinal(use.computed)].Name)
		}
	}
	if err := r.update(ctx, now, next, false); err != nil {
		return err
	}
	for _, name := range computed {
		if now, err = r.r.RelationByID(ctx, u.relation.ID); err != nil {
			return err
		}
		if err := r.alterDropColumn(ctx, now, &ast.DropColumn{Name: name, Cascade: true}); err != nil {
			return err
		}
	}
	if len(observers) == 0 {
		return nil
	}
	if now, err = r.r.RelationByID(ctx, u.relation.ID); err != nil {
		return err
	}
	return r.removeObservers(ctx, now, observers)
}

// typesIn lists the types of a schema.
func (r *run) typesIn(schema string) (found []*catalog.TypeDescriptor) {
	for _, d := range r.r.Types().All() {
		if d.Schema == schema {
			found = append(found, d)
		}
	}
	return found
}

// schemaType describes a type of a schema that is to be dropped, and what outside of the schema depends on the type.
func (r *run) schemaType(ctx context.Context, d *catalog.TypeDescriptor, schema string) ([]string, error) {
	found, err := r.usesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	found.columns = slices.DeleteFunc(found.columns, func(u columnUse) bool { return u.table.Schema == schema })
	found.tables = slices.DeleteFunc(found.tables, func(u typedTable) bool { return u.table.Schema == schema })
	found.others = slices.DeleteFunc(found.others, func(u typeUses) bool { return u.relation.Schema == schema })
	found.routines = slices.DeleteFunc(found.routines, func(d *catalog.RoutineDescriptor) bool { return d.Schema == schema })
	lines := []string{"type " + builtin.TypeName(d.Type()) + " depends on schema " + schema}
	return append(lines, found.describe(onType(d))...), nil
}
