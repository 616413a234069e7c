package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// CREATE, DROP and COMMENT ON CAST.

// createCast is CREATE CAST.
func (r *run) createCast(ctx context.Context, n *ast.CreateCast) error {
	from, err := r.castType(&n.From)
	if err != nil {
		return err
	}
	to, err := r.castType(&n.To)
	if err != nil {
		return err
	}
	d := &catalog.CastDescriptor{From: from, To: to, Context: builtin.Explicit, Method: 'b'}
	for _, side := range []struct {
		what string
		t    types.Type
	}{{"source", from}, {"target", to}} {
		if side.t.Category() == types.CategoryPseudo && !side.t.Underlying().IsComposite() {
			return pgerror.New(pgerror.WrongObjectType, "%s data type %s is a pseudo-type", side.what, builtin.TypeName(side.t))
		}
	}
	if !r.ownsType(from) && !r.ownsType(to) {
		return pgerror.New(pgerror.InsufficientPrivilege, "must be owner of type %s or type %s", r.shownType(from), r.shownType(to))
	}
	for _, t := range []types.Type{from, to} {
		if err := r.mayUseType(t); err != nil {
			return err
		}
	}
	switch {
	case from.IsDomain():
		r.warn(pgerror.New(pgerror.WrongObjectType, "cast will be ignored because the source data type is a domain"))
	case to.IsDomain():
		r.warn(pgerror.New(pgerror.WrongObjectType, "cast will be ignored because the target data type is a domain"))
	}
	arguments := 0
	switch {
	case n.Function != nil:
		d.Method = 'f'
		if d.Function, arguments, err = r.castFunction(ctx, n.Function, from, to); err != nil {
			return err
		}
	case n.InOut:
		d.Method = 'i'
	default:
		if err := r.requireSameBytes(from, to); err != nil {
			return err
		}
	}
	switch n.Context {
	case "IMPLICIT":
		d.Context = builtin.Implicit
	case "ASSIGNMENT":
		d.Context = builtin.Assignment
	}
	switch {
	case from.OID == to.OID && arguments < 2:
		return invalidObject("source data type and target data type are the same")
	case r.r.Operations().FindCast(from, to) != nil, builtin.HasCast(from, to):
		return pgerror.New(pgerror.DuplicateObject, "cast from type %s to type %s already exists", builtin.TypeName(from), builtin.TypeName(to))
	}
	if err := r.requireNoConversion(ctx, from, to); err != nil {
		return err
	}
	if d.ID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	return r.putCast(ctx, d)
}

func invalidObject(format string, args ...any) *pgerror.Error {
	return pgerror.New(invalidObjectDefinition, format, args...)
}

func (r *run) putCast(ctx context.Context, d *catalog.CastDescriptor) error {
	if err := r.ch.PutCast(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

func (r *run) castType(name *ast.TypeName) (types.Type, error) {
	t, err := planner.ResolveType(name, r.r)
	return t.Base(), unplaced(err)
}

// ownsType reports whether the user has the privileges of a type's owner.
func (r *run) ownsType(t types.Type) bool {
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	if d := r.r.Types().ByOID(t.OID); d != nil {
		return r.access.Owns(d.OwnerOID())
	}
	return r.access.Superuser()
}

// castFunction finds the function of a cast, and returns the number of its arguments.
func (r *run) castFunction(ctx context.Context, o *ast.Object, from, to types.Type) (types.OID, int, error) {
	f, err := r.namedFunction(ctx, o)
	if err != nil {
		return 0, 0, err
	}
	args := f.args
	switch {
	case len(args) < 1 || len(args) > 3:
		err = invalidObject("cast function must take one to three arguments")
	case !sameOrBinary(from, args[0]) && args[0].OID != types.OIDAny:
		err = invalidObject("argument of cast function must match or be binary-coercible from source data type")
	case len(args) > 1 && args[1].OID != types.OIDInt4:
		err = invalidObject("second argument of cast function must be type %s", "integer")
	case len(args) > 2 && args[2].OID != types.OIDBool:
		err = invalidObject("third argument of cast function must be type %s", "boolean")
	case !sameOrBinary(f.ret, to) || to.IsPolymorphic() || f.ret.IsPolymorphic() && f.ret.OID != to.OID:
		err = invalidObject("return data type of cast function must match or be binary-coercible to target data type")
	case f.kind != builtin.FunctionRoutine:
		err = invalidObject("cast function must be a normal function")
	case f.set:
		err = invalidObject("cast function must not return a set")
	default:
		err = f.callable("A cast")
	}
	return f.oid, len(args), err
}

// namedFunction finds a function that a statement names, with or without its arguments, which the user may call.
func (r *run) namedFunction(ctx context.Context, o *ast.Object) (foundFunction, error) {
	d, err := r.routine(ctx, o)
	if absent, ok := err.(*absentRoutine); ok {
		err = absent.err
	}
	if err == nil {
		return foundFunction{oid: d.OID(), routine: d, args: d.InputTypes(), ret: d.Ret, set: d.Set, kind: d.Kind}, planner.RoutineDenied(r.access, d)
	}
	p := r.systemRoutine(ctx, o)
	if p == nil {
		return foundFunction{}, err
	}
	f := foundFunction{oid: p.OID, ret: types.Type{OID: p.Ret, Mod: -1}, set: p.Value("proretset") == "t", kind: builtin.RoutineKind(p.Kind)}
	for _, oid := range p.Args {
		f.args = append(f.args, types.Type{OID: oid, Mod: -1})
	}
	return f, r.mayCallSystem(f)
}

// systemRoutine finds the function of PostgreSQL that a statement names; nil if there is none, or several.
func (r *run) systemRoutine(ctx context.Context, o *ast.Object) *builtin.Proc {
	name := nameOf(o)
	if name.Schema != "" && name.Schema != catalog.SystemSchema {
		return nil
	}
	named := builtin.ProcsNamed(name.Name)
	if o.Signature == nil {
		if len(named) != 1 {
			return nil
		}
		return named[0]
	}
	args, err := r.signatureTypes(ctx, o)
	if err != nil {
		return nil
	}
	if f, ok := r.systemFunction(catalog.SystemSchema, name.Name, args); ok {
		return builtin.ProcByOID(f.oid)
	}
	return nil
}

// requireSameBytes checks that a cast may be WITHOUT FUNCTION.
func (r *run) requireSameBytes(from, to types.Type) error {
	either := func(is func(types.Type) bool) bool { return is(from) || is(to) }
	switch {
	case !r.access.Superuser():
		return pgerror.New(pgerror.InsufficientPrivilege, "must be superuser to create a cast WITHOUT FUNCTION")
	case from.Info() != nil && to.Info() != nil && !samePhysical(from, to):
		return invalidObject("source and target data types are not physically compatible")
	case either(types.Type.IsComposite):
		return invalidObject("composite data types are not binary-compatible")
	case either(types.Type.IsEnum):
		return invalidObject("enum data types are not binary-compatible")
	case either(types.Type.IsArray):
		return invalidObject("array data types are not binary-compatible")
	case either(types.Type.IsDomain):
		return invalidObject("domain data types must not be marked binary-compatible")
	case !builtin.SameBytes(from, to):
		return pgerror.Unsupported("A cast from "+builtin.TypeName(from)+" to "+builtin.TypeName(to)+" WITHOUT FUNCTION", "Write a function in SQL.")
	}
	return nil
}

// samePhysical reports whether PostgreSQL stores values of two types alike.
func samePhysical(from, to types.Type) bool { return from.Info().Len == to.Info().Len }

// requireNoConversion fails if an index or a generated column holds what a conversion through the text form has made, which the new cast would
// replace.
func (r *run) requireNoConversion(ctx context.Context, from, to types.Type) error {
	found, err := r.boundUses(ctx, func(use builtin.Use) bool { return use.From == from.OID && use.To == to.OID && from.OID != 0 }, nil, "")
	if err != nil {
		return err
	}
	for _, line := range found.lines {
		if what, _, _ := strings.Cut(line, " depends on "); strings.HasPrefix(what, "index ") || strings.HasPrefix(what, "column ") {
			return pgerror.Unsupported("A cast between types of which "+what+" holds conversions through the text form", "Drop "+what+" first, and create it again.")
		}
	}
	return nil
}

// findCast finds the cast between two types that a statement names: one of a user, or system.
//
// Errors: *absentOperator.
func (r *run) findCast(o *ast.Object) (d *catalog.CastDescriptor, from, to types.Type, err error) {
	if from, err = r.castType(o.Types[0]); err == nil {
		to, err = r.castType(o.Types[1])
	}
	if err != nil {
		return nil, from, to, absentBy(unplaced(err))
	}
	if d = r.r.Operations().FindCast(from, to); d != nil || builtin.HasCast(from, to) {
		return d, from, to, nil
	}
	e := pgerror.New(pgerror.UndefinedObject, "cast from type %s to type %s does not exist", builtin.TypeName(from), builtin.TypeName(to))
	return nil, from, to, &absentOperator{e, e.Message + ", skipping"}
}

// mayChangeCast fails unless the user owns one of a cast's types.
func (r *run) mayChangeCast(d *catalog.CastDescriptor, from, to types.Type) error {
	if !r.ownsType(from) && !r.ownsType(to) {
		return pgerror.New(pgerror.InsufficientPrivilege, "must be owner of type %s or type %s", r.shownType(from), r.shownType(to))
	}
	return nil
}

// dropCasts is DROP CAST.
func (r *run) dropCasts(ctx context.Context, n *ast.DropObjects) error {
	var s operationSet
	for i := range n.Objects {
		d, from, to, err := r.findCast(&n.Objects[i])
		if absent, ok := err.(*absentOperator); ok {
			if !n.IfExists {
				return absent.err
			}
			r.noticeAbsent("%s", absent.notice)
			continue
		}
		if err == nil {
			err = r.mayChangeCast(d, from, to)
		}
		if err != nil {
			return err
		}
		if d == nil {
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop cast from %s to %s because it is required by the database system", builtin.TypeName(from), builtin.TypeName(to))
		}
		s.add(operationSet{casts: []*catalog.CastDescriptor{d}})
	}
	return r.dropOperationList(ctx, s, n.Cascade)
}

// commentCast is COMMENT ON CAST.
func (r *run) commentCast(ctx context.Context, o *ast.Object, text string) error {
	d, from, to, err := r.findCast(o)
	if absent, ok := err.(*absentOperator); ok {
		return absent.err
	}
	if err == nil {
		err = r.mayChangeCast(d, from, to)
	}
	if err != nil {
		return err
	}
	if d == nil {
		return pgerror.Unsupported("COMMENT ON a cast of PostgreSQL", "It is part of percodb.")
	}
	next := *d
	next.Comment = text
	return r.putCast(ctx, &next)
}
