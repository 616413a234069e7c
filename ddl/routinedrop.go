package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// dropRoutines is DROP FUNCTION, PROCEDURE, ROUTINE and AGGREGATE.
func (r *run) dropRoutines(ctx context.Context, n *ast.DropObjects) error {
	var targets []*catalog.RoutineDescriptor
	for i := range n.Objects {
		o := &n.Objects[i]
		d, err := r.routine(ctx, o)
		if absent, ok := err.(*absentRoutine); ok {
			if !n.IfExists {
				return absent.err
			}
			r.noticeAbsent("%s", absent.notice)
			continue
		}
		switch {
		case err != nil:
			return err
		case o.Kind == "FUNCTION" && d.Kind == builtin.AggregateRoutine:
			return pgerror.New(pgerror.WrongObjectType, "%q is an aggregate function", d.Name).WithHint("Use DROP AGGREGATE to drop aggregate functions.")
		case !r.access.Owns(d.OwnerOID()) && !r.access.OwnsSchema(d.Schema):
			return mustBeOwner(d.Kind.String(), d.Name)
		}
		if !slices.Contains(targets, d) {
			targets = append(targets, d)
		}
	}
	return r.dropRoutineList(ctx, targets, n.Cascade)
}

// dropRoutineList drops routines, with cascade what depends on them as well.
func (r *run) dropRoutineList(ctx context.Context, targets []*catalog.RoutineDescriptor, cascade bool) error {
	if len(targets) == 0 {
		return nil
	}
	found, err := r.routineUses(ctx, targets)
	if err != nil {
		return err
	}
	triggers, err := r.triggersExecuting(ctx, targets)
	if err != nil {
		return err
	}
	for i := range triggers {
		found.lines = append(found.lines, triggers[i].line)
	}
	if len(found.lines) > 0 && !cascade {
		what := "function " + r.routineSignature(targets[0])
		e := pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what)
		if len(targets) > 1 {
			e = pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
		}
		return e.WithDetail("%s", joinLines(found.lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	others := make([]string, len(found.lines))
	for i, line := range found.lines {
		others[i], _, _ = strings.Cut(line, " depends on ")
	}
	r.noticeCascade(others)
	if err := r.dropDependents(ctx, &found.typeDropping); err != nil {
		return err
	}
	if err := r.dropTriggers(ctx, triggers); err != nil {
		return err
	}
	for _, d := range targets {
		if r.r.Routines().ByOID(d.OID()) == nil {
			continue // It was dropped with another one.
		}
		err := r.removeMembers(ctx, func(catalog.FamilyOperator) bool { return false }, func(m catalog.FamilyFunction) bool { return m.Function == d.OID() })
		if err != nil {
			return err
		}
		if err := r.ch.DropRoutine(ctx, d); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// routineUses finds what depends on routines.
func (r *run) routineUses(ctx context.Context, targets []*catalog.RoutineDescriptor) (*extensionDropping, error) {
	operations := r.onFunctions(targets)
	found, err := r.boundUses(ctx, func(use builtin.Use) bool {
		return use.Routine != nil && slices.ContainsFunc(targets, func(d *catalog.RoutineDescriptor) bool { return d.OID() == use.Routine.OID })
	}, targets, "")
	if err != nil || operations.empty() {
		return found, err
	}
	return found, r.addOperationUses(ctx, found, operations, func(o *operationSet) string { return r.functionOf(o, targets) })
}

// boundUses finds what depends on objects of users. Stored expressions and queries are bound, which tells the objects that they use. routines
// are those among the objects: they do not depend on themselves. The relations of a schema that is dropped are not looked through; "" is none.
func (r *run) boundUses(ctx context.Context, of func(builtin.Use) bool, routines []*catalog.RoutineDescriptor, dropped string) (*extensionDropping, error) {
	deps, probing := *r.Deps, *r
	env := builtin.Env{}
	if r.Env != nil {
		env = *r.Env
	}
	probing.Deps, deps.Env = &deps, &env
	p := &extensionProbe{run: &probing}
	p.found.what = "DROP FUNCTION … CASCADE"
	env.ObjectUsed = func(use builtin.Use) {
		if of(use) {
			p.used = append(p.used, use)
		}
	}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *catalog.TableDescriptor) int { return int(int64(a.ID) - int64(b.ID)) })
	for _, t := range all {
		if t.Kind == catalog.KindVirtual || t.Kind == catalog.KindSequence || t.Schema == dropped {
			continue
		}
		if err := p.relation(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, typ := range r.r.Types().All() {
		if err := p.userType(ctx, typ); err != nil {
			return nil, err
		}
	}
	if err := p.viewsOverViews(ctx); err != nil {
		return nil, err
	}
	for _, d := range r.r.Routines().All() {
		if err := p.routineUse(ctx, d, routines); err != nil {
			return nil, err
		}
	}
	return &p.found, nil
}

// viewsOverViews adds the views that read those that are found.
func (p *extensionProbe) viewsOverViews(ctx context.Context) error {
	dropping := newDropping(p.run)
	for _, u := range p.found.others {
		if u.relation.HasQuery() {
			dropping.addTarget(u.relation)
		}
	}
	for _, t := range slices.Clone(dropping.targets) {
		if err := dropping.addViewsOn(ctx, t); err != nil {
			return err
		}
	}
	if err := dropping.addRowTypeUses(ctx); err != nil {
		return err
	}
	p.found.lines = append(p.found.lines, dropping.why...)
	return nil
}

// routineUse finds the uses in a routine: its defaults, its body in SQL's standard form, the functions of an aggregate.
func (p *extensionProbe) routineUse(ctx context.Context, d *catalog.RoutineDescriptor, targets []*catalog.RoutineDescriptor) error {
	if slices.Contains(targets, d) {
		return nil
	}
	what := "function " + p.routineSignature(d)
	found := false
	if a := d.Aggregate; a != nil {
		for _, t := range targets {
			if oid := t.OID(); !found && (oid == a.Transition || oid == a.Final || oid == a.Combine) {
				found = true
				p.depends(what, builtin.Use{Kind: "function", Routine: t.Routine()})
			}
		}
	}
	for i := range d.Params {
		if text := d.Params[i].Default; text != "" && !found {
			var err error
			found, err = p.uses(ctx, what, func() error {
				_, err := p.bindText(ctx, nil, text, types.Type{}, inDefault)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	if d.Standard && !found {
		var err error
		found, err = p.uses(ctx, what, func() error { return p.bindStandard(ctx, d) })
		if err != nil {
			return err
		}
	}
	if found {
		p.found.routines = append(p.found.routines, d)
	}
	return nil
}

// bindStandard binds the statements of a body in SQL's standard form: queries alone, without what a plan uses, such as indexes of tables.
func (p *extensionProbe) bindStandard(ctx context.Context, d *catalog.RoutineDescriptor) error {
	statements, err := planner.RoutineStatements(d)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(statements, func(s ast.Statement) bool { _, query := s.(*ast.Query); return !query }) {
		_, err := planner.ExprUses(ctx, catalog.StoredExpr{Routine: d}, p.r, p.Env)
		return err
	}
	_, err = planner.CheckRoutine(ctx, d, catalog.ForStored(p.r), p.Env)
	return err
}

// standardOn lists the routines whose body in SQL's standard form names a relation.
func (r *run) standardOn(t *catalog.TableDescriptor) (found []*catalog.RoutineDescriptor) {
	for _, d := range r.r.Routines().All() {
		if !d.Standard || !strings.Contains(d.Body, ast.QuoteIdent(t.Name)) {
			continue
		}
		statements, err := sql.ParseStandardBody(d.Body)
		if err != nil {
			continue
		}
		named := false
		note := func(name *ast.TableName) { named = named || name.Schema == t.Schema && name.Name == t.Name }
		for _, stmt := range statements {
			ast.InspectStatement(stmt, ast.Visitor{Table: func(ref *ast.TableRef) { note(&ref.Name) }, Target: note})
		}
		if named {
			found = append(found, d)
		}
	}
	return found
}

// routinesWith lists the routines that have an argument, a result or a state of a type, or of its array type.
func (r *run) routinesWith(d *catalog.TypeDescriptor) (found []*catalog.RoutineDescriptor) {
	of := func(t types.Type) bool {
		return t.OID == types.OID(d.ID) || d.ArrayID != 0 && t.OID == types.OID(d.ArrayID)
	}
	for _, f := range r.r.Routines().All() {
		if of(f.Ret) || f.Aggregate != nil && of(f.Aggregate.State) ||
			slices.ContainsFunc(f.Params, func(p builtin.RoutineParam) bool { return of(p.Type) }) {
			found = append(found, f)
		}
	}
	return found
}

// routinesWhere lists the routines for which a condition holds.
func (r *run) routinesWhere(is func(d *catalog.RoutineDescriptor) bool) []*catalog.RoutineDescriptor {
	return slices.DeleteFunc(slices.Clone(r.r.Routines().All()), func(d *catalog.RoutineDescriptor) bool { return !is(d) })
}

// dropFound drops routines that depend on what is dropped, as far as they are still there.
func (r *run) dropFound(ctx context.Context, found []*catalog.RoutineDescriptor) error {
	for _, d := range found {
		if now := r.r.Routines().ByOID(d.OID()); now != nil {
			if err := r.quiet().dropRoutineList(ctx, []*catalog.RoutineDescriptor{now}, true); err != nil {
				return err
			}
			if err := r.look(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// quiet returns a run that gives no notices.
func (r *run) quiet() *run {
	quiet, deps := *r, *r.Deps
	deps.Report = silent{}
	quiet.Deps = &deps
	return &quiet
}
