package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// collatesBy returns a visitor that calls f with each COLLATE of a collation in stored expressions.
func collatesBy(d *catalog.CollationDescriptor, f func(*ast.Collate)) ast.Visitor {
	return ast.Visitor{Expr: func(e ast.Expr) {
		if c, ok := e.(*ast.Collate); ok && len(c.Name) == 2 && c.Name[0] == d.Schema && c.Name[1] == d.Name {
			f(c)
		}
	}}
}

// collationDependency is a collation, on which columns and keys of indexes of the collation depend.
func collationDependency(d *catalog.CollationDescriptor) dependency {
	is := func(c *collation.Collation) bool { return c != nil && uint64(c.OID) == d.ID }
	return dependency{
		uses:   func(found func()) ast.Visitor { return collatesBy(d, func(*ast.Collate) { found() }) },
		ofType: func(t types.Type) bool { return is(t.Coll) },
		ofKey:  func(c *catalog.IndexColumn) bool { return is(c.Coll) },
	}
}

// dropCollations is DROP COLLATION.
func (r *run) dropCollations(ctx context.Context, n *ast.DropObjects) error {
	var targets []*catalog.CollationDescriptor
	for i := range n.Objects {
		d, err := r.droppedCollation(ctx, &n.Objects[i], n.IfExists)
		if err != nil {
			return err
		}
		if d != nil && !slices.Contains(targets, d) {
			targets = append(targets, d)
		}
	}
	return r.dropCollationList(ctx, targets, n.Cascade)
}

// droppedCollation finds a collation that the user may drop; nil if there is none and IF EXISTS is specified.
func (r *run) droppedCollation(ctx context.Context, o *ast.Object, ifExists bool) (*catalog.CollationDescriptor, error) {
	c, err := r.findCollation(o.Pos, o.Name)
	if pg, ok := err.(*pgerror.Error); ok && ifExists && (pg.Code == pgerror.UndefinedObject || pg.Code == pgerror.InvalidSchemaName) {
		return nil, r.noticeDropAbsent(ctx, "COLLATION", pathName(o.Pos, o.Name))
	}
	if err != nil {
		return nil, err
	}
	d := r.r.Collations().ByOID(c.OID)
	switch {
	case d == nil && !r.access.Superuser():
		return nil, mustBeOwner("collation", c.Name)
	case d == nil:
		return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop collation %s because it is required by the database system", ast.QuoteIdent(c.Name))
	case !r.access.Owns(d.OwnerOID()) && !r.access.OwnsSchema(d.Schema):
		return nil, mustBeOwner("collation", d.Name)
	}
	return d, nil
}

// shownCollation is how messages call a collation.
func (r *run) shownCollation(d *catalog.CollationDescriptor) string {
	return "collation " + catalog.WrittenCollation(r.r, d.Collation())
}

// dropCollationList drops collations, with cascade what depends on them as well.
func (r *run) dropCollationList(ctx context.Context, targets []*catalog.CollationDescriptor, cascade bool) error {
	var lines, others []string
	uses := make([]*typeDropping, len(targets))
	for i, d := range targets {
		found, err := r.collationUses(ctx, d)
		if err != nil {
			return err
		}
		uses[i] = found
		lines = append(lines, found.describe(func(bool) string { return " depends on " + r.shownCollation(d) })...)
		lines = append(lines, found.lines...)
		others = append(others, found.describe(nil)...)
		for _, line := range found.lines {
			what, _, _ := strings.Cut(line, " depends on ")
			others = append(others, what)
		}
	}
	if len(lines) > 0 && !cascade {
		err := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
		if len(targets) == 1 {
			err = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", r.shownCollation(targets[0]))
		}
		return err.WithDetail("%s", joinLines(lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	r.noticeCascade(others)
	for i, d := range targets {
		if err := r.dropCollationWith(ctx, d, uses[i]); err != nil {
			return err
		}
	}
	return nil
}

// dropCollationWith drops a collation and what depends on it.
func (r *run) dropCollationWith(ctx context.Context, d *catalog.CollationDescriptor, found *typeDropping) error {
	if err := r.dropDependents(ctx, found); err != nil {
		return err
	}
	if err := r.ch.DropCollation(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// collationUses finds what depends on a collation.
func (r *run) collationUses(ctx context.Context, d *catalog.CollationDescriptor) (*typeDropping, error) {
	on := collationDependency(d)
	found := &typeDropping{what: "DROP COLLATION … CASCADE", names: r.routineSignature}
	found.routines, _ = r.standardWith(d, func(*ast.Collate) {})
	var err error
	if found.columns, err = r.columnsWhere(ctx, on.ofType); err != nil {
		return nil, err
	}
	slices.Reverse(found.columns) // As PostgreSQL lists those of one table.
	if err := r.addRelationUses(ctx, found, on); err != nil {
		return nil, err
	}
	for _, typ := range r.r.Types().All() {
		for _, f := range typ.Fields {
			if on.ofType(f.Type) {
				found.fields = append(found.fields, fieldUse{typ, f, false})
			}
		}
		if err := r.addDomainUses(ctx, found, typ, on); err != nil {
			return nil, err
		}
	}
	return found, r.addViewsOnFound(ctx, found)
}

// addDomainUses adds what of a domain or of a range type depends on a collation.
func (r *run) addDomainUses(ctx context.Context, found *typeDropping, typ *catalog.TypeDescriptor, on dependency) error {
	if typ.Kind != types.Domain && typ.Kind != types.RangeKind {
		return nil
	}
	if on.ofType(typ.Parent) {
		within, err := r.usesOf(ctx, typ)
		if err != nil {
			return err
		}
		within.without(found)
		found.domains = append(found.domains, domainUse{domain: typ, within: within})
		return nil
	}
	uses, err := domainExpressionUses(typ, on)
	found.domains = append(found.domains, uses...)
	return err
}

// without removes what another list has, or will have since it depends on the same collation.
func (f *typeDropping) without(other *typeDropping) {
	f.columns = slices.DeleteFunc(f.columns, func(u columnUse) bool {
		return slices.ContainsFunc(other.columns, func(o columnUse) bool { return o.table.ID == u.table.ID && o.column.ID == u.column.ID })
	})
	f.others = slices.DeleteFunc(f.others, func(u typeUses) bool {
		return slices.ContainsFunc(other.others, func(o typeUses) bool { return o.relation.ID == u.relation.ID && o.relation.HasQuery() })
	})
	f.domains = slices.DeleteFunc(f.domains, func(u domainUse) bool { return u.within != nil && u.domain.Kind == types.Domain })
}

// addViewsOnFound adds the views on columns and on views that are dropped.
func (r *run) addViewsOnFound(ctx context.Context, found *typeDropping) error {
	dropping := newDropping(r)
	for _, u := range found.others {
		if u.relation.HasQuery() {
			dropping.addTarget(u.relation)
		}
	}
	for _, t := range slices.Clone(dropping.targets) {
		if err := dropping.addViewsOn(ctx, t); err != nil {
			return err
		}
	}
	found.lines = dropping.why
	for _, u := range found.columns {
		next := u.table.Clone()
		next.Columns = slices.DeleteFunc(next.Columns, func(c catalog.ColumnDescriptor) bool { return c.ID == u.column.ID })
		next.Indexes = slices.DeleteFunc(next.Indexes, func(ix catalog.IndexDescriptor) bool { return indexNeeds(u.table, &ix, &u.column) })
		pruneComputed(next)
		if holdsColumn(&next.Primary, u.column.ID) { // Such a column is not dropped.
			continue
		}
		views, err := r.brokenViews(ctx, u.table, next)
		if err != nil {
			return err
		}
		for _, v := range views {
			if !dropping.has(v.ID) {
				dropping.addTarget(v)
				found.lines = append(found.lines, r.describe(ctx, v)+" depends on column "+u.column.Name+" of table "+u.table.Name)
			}
		}
	}
	return nil
}

// standardWith returns the routines whose body in SQL's standard form names a collation, and their bodies after change.
func (r *run) standardWith(d *catalog.CollationDescriptor, change func(*ast.Collate)) (found []*catalog.RoutineDescriptor, bodies []string) {
	for _, f := range r.r.Routines().All() {
		if !f.Standard {
			continue
		}
		statements, err := sql.ParseStandardBody(f.Body)
		if err != nil {
			continue
		}
		named := false
		for _, stmt := range statements {
			ast.InspectStatement(stmt, collatesBy(d, func(c *ast.Collate) {
				named = true
				change(c)
			}))
		}
		if named {
			found, bodies = append(found, f), append(bodies, againStandard(f.Body, statements))
		}
	}
	return found, bodies
}

// rewriteRoutine changes the expressions that a function keeps as text, the defaults of its parameters and a body in SQL's standard form, by a
// visitor, and writes them again.
func rewriteRoutine(d *catalog.RoutineDescriptor, visitor ast.Visitor) error {
	for i := range d.Params {
		if text := &d.Params[i].Default; *text != "" {
			e, err := sql.ParseExpr(*text)
			if err != nil {
				return err
			}
			ast.InspectExpr(e, visitor)
			*text = e.String()
		}
	}
	if !d.Standard {
		return nil
	}
	statements, err := sql.ParseStandardBody(d.Body)
	if err != nil {
		return err
	}
	for _, stmt := range statements {
		ast.InspectStatement(stmt, visitor)
	}
	d.Body = againStandard(d.Body, statements)
	return nil
}

// againStandard is the body in SQL's standard form of statements that were read from text and have been changed.
func againStandard(text string, statements []ast.Statement) string {
	stmt, err := sql.ParseStatement("CREATE PROCEDURE body() " + text)
	n, ok := stmt.(*ast.CreateFunction)
	if err != nil || !ok {
		return text
	}
	return standardBody(n, statements)
}

// collationsIn lists the collations of a schema.
func (r *run) collationsIn(schema string) (found []*catalog.CollationDescriptor) {
	for _, d := range r.r.Collations().All() {
		if d.Schema == schema {
			found = append(found, d)
		}
	}
	return found
}

// collationsOf lists the collations that belong to one of the roles.
func (r *run) collationsOf(roles []uint32) (found []*catalog.CollationDescriptor) {
	for _, d := range r.r.Collations().All() {
		if slices.Contains(roles, d.OwnerOID()) {
			found = append(found, d)
		}
	}
	return found
}

// schemaCollation describes a collation of a schema that is to be dropped, and what outside of the schema depends on it.
func (r *run) schemaCollation(ctx context.Context, d *catalog.CollationDescriptor) ([]string, error) {
	found, err := r.collationUses(ctx, d)
	if err != nil {
		return nil, err
	}
	found.columns = slices.DeleteFunc(found.columns, func(u columnUse) bool { return u.table.Schema == d.Schema })
	found.others = slices.DeleteFunc(found.others, func(u typeUses) bool { return u.relation.Schema == d.Schema })
	found.domains = slices.DeleteFunc(found.domains, func(u domainUse) bool { return u.domain.Schema == d.Schema })
	found.fields = slices.DeleteFunc(found.fields, func(u fieldUse) bool { return u.typ.Schema == d.Schema })
	found.routines = slices.DeleteFunc(found.routines, func(f *catalog.RoutineDescriptor) bool { return f.Schema == d.Schema })
	lines := []string{r.shownCollation(d) + " depends on schema " + d.Schema}
	return append(lines, found.describe(func(bool) string { return " depends on " + r.shownCollation(d) })...), nil
}
