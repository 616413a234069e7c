package ddl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// ofRoutine reports whether a kind of objects is one of routines.
func ofRoutine(kind string) bool {
	switch kind {
	case "FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE":
		return true
	}
	return false
}

// isOfKind reports whether the word of a statement may mean a routine.
func isOfKind(word string, d *catalog.RoutineDescriptor) bool {
	switch word {
	case "FUNCTION":
		return d.Kind != builtin.ProcedureRoutine
	case "PROCEDURE":
		return d.Kind == builtin.ProcedureRoutine
	case "AGGREGATE":
		return d.Kind == builtin.AggregateRoutine
	}
	return true
}

// notFoundWord is the word of messages about a routine that is not found.
func notFoundWord(kind string) string {
	switch kind {
	case "PROCEDURE":
		return "procedure"
	case "AGGREGATE":
		return "aggregate"
	}
	return "function"
}

// routinesIn lists the routines that a name may mean: those of its schema, or those that the search path finds first.
func (r *run) routinesIn(name ast.TableName) (found []*catalog.RoutineDescriptor) {
	path := []string{name.Schema}
	if name.Schema == "" {
		path = r.path
	}
	for _, schema := range path {
		for _, d := range r.r.Routines().Named(name.Name) {
			hidden := slices.ContainsFunc(found, func(have *catalog.RoutineDescriptor) bool {
				return builtin.SameArguments(have.InputTypes(), d.InputTypes())
			})
			if d.Schema == schema && !hidden {
				found = append(found, d)
			}
		}
	}
	return found
}

// absentRoutine is the error for a routine that does not exist. notice is what IF EXISTS reports.
type absentRoutine struct {
	err    *pgerror.Error
	notice string
}

func (e *absentRoutine) Error() string { return e.err.Error() }

// routine finds the routine of a user that a statement names.
//
// Errors: *absentRoutine, 42725, 42809.
func (r *run) routine(ctx context.Context, o *ast.Object) (*catalog.RoutineDescriptor, error) {
	name := nameOf(o)
	full := strings.Join(o.Name, ".")
	if err := r.useSchema(name); err != nil {
		return nil, err
	}
	if name.Schema != "" {
		ok, err := r.r.SchemaExists(ctx, name.Schema)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &absentRoutine{pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Schema),
				"schema \"" + name.Schema + "\" does not exist, skipping"}
		}
	}
	if o.Signature == nil {
		return r.soleRoutine(o, name, full)
	}
	args, err := r.signatureTypes(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.signedRoutine(o, name, full, args)
}

// soleRoutine finds a routine by its name alone.
func (r *run) soleRoutine(o *ast.Object, name ast.TableName, full string) (*catalog.RoutineDescriptor, error) {
	found := slices.DeleteFunc(r.routinesIn(name), func(d *catalog.RoutineDescriptor) bool { return !isOfKind(o.Kind, d) })
	system := 0
	if o.Kind != "PROCEDURE" && (name.Schema == "" || name.Schema == catalog.SystemSchema) {
		system = len(builtin.ProcsNamed(name.Name))
	}
	word := strings.ToLower(o.Kind)
	switch {
	case len(found)+system > 1:
		return nil, pgerror.New(pgerror.AmbiguousFunction, "%s name %q is not unique", word, full).
			WithHint("Specify the argument list to select the " + word + " unambiguously.")
	case system == 1:
		return nil, r.refuseSystem(o, builtin.ProcsNamed(name.Name)[0])
	case len(found) == 1:
		return found[0], nil
	}
	return nil, &absentRoutine{pgerror.New(pgerror.UndefinedFunction, "could not find a %s named %q", notFoundWord(o.Kind), full),
		notFoundWord(o.Kind) + " " + full + "() does not exist, skipping"}
}

// signedRoutine finds a routine by its name and argument types.
func (r *run) signedRoutine(o *ast.Object, name ast.TableName, full string, args []types.Type) (*catalog.RoutineDescriptor, error) {
	signature := builtin.CallSignature(full, args)
	for _, d := range r.routinesIn(name) {
		all := make([]types.Type, len(d.Params))
		for i := range d.Params {
			all[i] = d.Params[i].Type
		}
		if !builtin.SameArguments(d.InputTypes(), args) && !(d.Kind == builtin.ProcedureRoutine && builtin.SameArguments(all, args)) {
			continue
		}
		if isOfKind(o.Kind, d) {
			return d, nil
		}
		if o.Kind == "AGGREGATE" {
			return nil, pgerror.New(pgerror.WrongObjectType, "function %s is not an aggregate", signature)
		}
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a %s", signature, strings.ToLower(o.Kind))
	}
	if name.Schema == "" || name.Schema == catalog.SystemSchema {
		for _, p := range builtin.ProcsNamed(name.Name) {
			if slices.EqualFunc(p.Args, args, func(oid types.OID, t types.Type) bool { return oid == t.OID }) {
				return nil, r.refuseSystem(o, p)
			}
		}
	}
	internal := make([]string, len(args))
	for i, t := range args {
		internal[i] = r.writtenType(o, i, t)
	}
	return nil, &absentRoutine{pgerror.New(pgerror.UndefinedFunction, "%s %s does not exist", notFoundWord(o.Kind), signature),
		notFoundWord(o.Kind) + " " + full + "(" + strings.Join(internal, ",") + ") does not exist, skipping"}
}

// writtenType is a type as PostgreSQL's notices of IF EXISTS have it: words of the grammar as pg_catalog's names.
func (r *run) writtenType(o *ast.Object, i int, t types.Type) string {
	n := 0
	for j := range o.Signature.Params {
		p := &o.Signature.Params[j]
		if p.Mode == "OUT" {
			continue
		}
		if n++; n-1 != i {
			continue
		}
		name := strings.Join(p.Type.Name, ".")
		if p.Type.Keyword {
			name = catalog.SystemSchema + "." + name
		}
		return name + strings.Repeat("[]", p.Type.Array)
	}
	return builtin.TypeName(t)
}

// refuseSystem is the error for a statement about one of PostgreSQL's own functions.
func (r *run) refuseSystem(o *ast.Object, p *builtin.Proc) error {
	if !r.access.Superuser() {
		return mustBeOwner("function", p.Name)
	}
	return pgerror.Unsupported(o.Kind+" "+p.Name, "It is part of percodb.")
}

// signatureTypes resolves the types of a signature's input parameters.
func (r *run) signatureTypes(ctx context.Context, o *ast.Object) ([]types.Type, error) {
	var args []types.Type
	for i := range o.Signature.Params {
		p := &o.Signature.Params[i]
		if p.Mode == "OUT" {
			continue
		}
		if p.Type.Percent {
			t, err := r.columnType(ctx, &p.Type)
			if err != nil {
				return nil, err
			}
			args = append(args, t)
			continue
		}
		t, err := planner.ResolveType(&p.Type, r.r)
		if e, ok := errors.AsType[*pgerror.Error](err); ok && (e.Code == pgerror.UndefinedObject || e.Code == pgerror.InvalidSchemaName) {
			bare := unplaced(e).(*pgerror.Error)
			return nil, &absentRoutine{bare, bare.Message + ", skipping"}
		}
		if err != nil {
			return nil, unplaced(err)
		}
		args = append(args, t.Base())
	}
	return args, nil
}

// ownedRoutine finds a routine that the user may change.
func (r *run) ownedRoutine(ctx context.Context, o *ast.Object) (*catalog.RoutineDescriptor, error) {
	d, err := r.routine(ctx, o)
	if absent, ok := err.(*absentRoutine); ok {
		return nil, absent.err
	}
	if err == nil && !r.access.Owns(d.OwnerOID()) {
		return nil, mustBeOwner(d.Kind.String(), d.Name)
	}
	return d, err
}

// alterRoutine is ALTER FUNCTION, PROCEDURE and ROUTINE with options.
func (r *run) alterRoutine(ctx context.Context, n *ast.AlterFunction) error {
	d, err := r.ownedRoutine(ctx, &n.Function)
	if err != nil {
		return err
	}
	if d.Kind == builtin.AggregateRoutine {
		return pgerror.New(pgerror.WrongObjectType, "%q is an aggregate function", d.Name)
	}
	next := d.Clone()
	o, err := r.routineOptions(next, n.Options, false)
	if err != nil {
		return err
	}
	if err := o.apply(next); err != nil {
		return err
	}
	return r.putRoutine(ctx, next)
}

// alterRoutineObject is ALTER FUNCTION … RENAME TO, OWNER TO, SET SCHEMA and DEPENDS ON EXTENSION.
func (r *run) alterRoutineObject(ctx context.Context, n *ast.AlterObject) error {
	d, err := r.ownedRoutine(ctx, &n.Object)
	if err != nil {
		return err
	}
	switch {
	case n.Change.Owner != nil:
		return r.changeOwner(&d.Owned, d.Schema, *n.Change.Owner, func(owner uint32) error { return r.passRoutine(ctx, d, owner) })
	case n.Change.Rename != "":
		return r.moveRoutine(ctx, d, d.Schema, n.Change.Rename)
	case n.Change.Schema != "":
		if err := r.requireSchema(ctx, n.Change.Schema, ast.TableName{Schema: n.Change.Schema, Name: d.Name}); err != nil {
			return unplaced(err)
		}
		if catalog.IsTemporary(n.Change.Schema) {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
		}
		if n.Change.Schema == d.Schema {
			return r.mayCreateIn(d.Schema)
		}
		return r.moveRoutine(ctx, d, n.Change.Schema, d.Name)
	}
	return pgerror.Unsupported("DEPENDS ON EXTENSION", "Drop the routine with the extension.").At(n.Position())
}

// passRoutine gives a routine to another role.
func (r *run) passRoutine(ctx context.Context, d *catalog.RoutineDescriptor, owner uint32) error {
	next := d.Clone()
	next.Owned = d.GivenTo(owner)
	return r.putRoutine(ctx, next)
}

// moveRoutine gives a routine another name or schema, in the expressions that are stored as well.
func (r *run) moveRoutine(ctx context.Context, d *catalog.RoutineDescriptor, schema, name string) error {
	if err := r.mayCreateIn(schema); err != nil {
		return err
	}
	if r.r.Routines().Find(schema, name, d.InputTypes()) != nil {
		return pgerror.New(duplicateFunction, "function %s already exists in schema %q", builtin.CallSignature(name, d.InputTypes()), schema)
	}
	if err := r.renameCalls(ctx, d, schema, name); err != nil {
		return err
	}
	next := d.Clone()
	next.Schema, next.Name = schema, name
	return r.putRoutine(ctx, next)
}

// renameCalls has stored expressions call a routine by the name that it is about to get.
func (r *run) renameCalls(ctx context.Context, d *catalog.RoutineDescriptor, schema, name string) error {
	overloads := 0
	for _, other := range r.r.Routines().Named(d.Name) {
		if other.Schema == d.Schema {
			overloads++
		}
	}
	return r.rewriteStored(ctx, func(e ast.Expr) (changed bool, _ error) {
		c, ok := e.(*ast.Call)
		if !ok || len(c.Name) != 2 || c.Name[0] != d.Schema || c.Name[1] != d.Name {
			return false, nil
		}
		if overloads > 1 {
			return false, pgerror.Unsupported("giving another name to one of several functions of a name that stored expressions call",
				"Drop what calls "+d.Name+" first and create it again.")
		}
		c.Name = []string{schema, name}
		return true, nil
	})
}

// rewriteStored calls rewrite with each part of the expressions and queries that are stored, and stores those that it has changed.
func (r *run) rewriteStored(ctx context.Context, rewrite func(e ast.Expr) (changed bool, _ error)) error {
	var failed error
	changed := false
	visitor := ast.Visitor{Expr: func(e ast.Expr) {
		if failed != nil {
			return
		}
		part, err := rewrite(e)
		changed, failed = changed || part, err
	}}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Kind == catalog.KindVirtual || t.Kind == catalog.KindSequence {
			continue
		}
		next := t.Clone()
		changed = false
		if err := r.mapExpressions(next, func(_ typeUse, inspect func(ast.Visitor)) { inspect(visitor) }); err != nil {
			return err
		}
		if changed && failed == nil {
			if err := r.ch.Update(ctx, t, next, false); err != nil {
				return err
			}
		}
	}
	for _, typ := range r.r.Types().All() {
		if typ.Kind != types.Domain {
			continue
		}
		next := typ.Clone()
		changed = false
		if err := mapDomain(next, func(_ types.OID, inspect func(ast.Visitor)) { inspect(visitor) }); err != nil {
			return err
		}
		if changed && failed == nil {
			if err := r.ch.PutType(ctx, next); err != nil {
				return err
			}
		}
	}
	return failed
}

// commentRoutine is COMMENT ON FUNCTION, PROCEDURE, ROUTINE and AGGREGATE.
func (r *run) commentRoutine(ctx context.Context, o *ast.Object, text string) error {
	d, err := r.ownedRoutine(ctx, o)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	return r.putRoutine(ctx, next)
}
