package planner

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// AggregateFunction is a function that an aggregate of a user calls.
type AggregateFunction struct {
	Name    string
	Ret     types.Type
	Strict  bool
	Routine *catalog.RoutineDescriptor // of a user; nil: Proc
	Proc    *builtin.Proc
}

// OID returns the function's number.
func (f *AggregateFunction) OID() types.OID {
	if f.Routine != nil {
		return f.Routine.OID()
	}
	return f.Proc.OID
}

// FindAggregateFunction finds a function by its name for arguments of the given types, which may be polymorphic.
//
// Errors: 42883 there is none, 42804 arguments would have to be converted by a function.
func FindAggregateFunction(path []string, args []types.Type, r catalog.Resolver) (*AggregateFunction, error) {
	full := strings.Join(path, ".")
	name, schema := path[len(path)-1], ""
	if len(path) > 1 {
		schema = path[len(path)-2]
	}
	b := &binder{r: r}
	f := builtin.FuncName{Schema: schema, Name: name, From: b.sources(), User: b.userRoutines(schema, name)}
	if schema != "" {
		f.From = r.Extensions().In(schema)
	}
	if slices.ContainsFunc(args, types.Type.IsPolymorphic) {
		return findPolymorphic(f, full, args, r)
	}
	m, err := f.MatchRoutine(builtin.CallSite{Args: args})
	if err != nil {
		return nil, err
	}
	if m != nil {
		call, want, err := m.Resolve(args)
		if err != nil {
			return nil, err
		}
		if err := asTheyAre(full, args, want); err != nil {
			return nil, err
		}
		d := r.Routines().ByOID(m.Routine.OID)
		return &AggregateFunction{Name: full, Ret: call.Ret, Strict: d.Strict, Routine: d}, nil
	}
	o, err := f.Resolve(args)
	if err != nil {
		return nil, err
	}
	p := builtin.ProcBySignature(o.Signature())
	if p == nil {
		return nil, pgerror.Unsupported("function "+full+" in an aggregate", "Write a function in SQL that calls it.")
	}
	if err := asTheyAre(full, args, o.Args); err != nil {
		return nil, err
	}
	return &AggregateFunction{Name: full, Ret: o.Ret, Strict: o.Strict, Proc: p}, nil
}

// findPolymorphic is FindAggregateFunction for polymorphic types: the function must have the same ones.
func findPolymorphic(f builtin.FuncName, full string, args []types.Type, r catalog.Resolver) (*AggregateFunction, error) {
	for _, u := range f.User {
		if builtin.SameArguments(u.InputTypes(), args) {
			return &AggregateFunction{Name: full, Ret: u.Ret, Strict: u.Strict, Routine: r.Routines().ByOID(u.OID)}, nil
		}
	}
	for _, p := range builtin.ProcsNamed(f.Name) {
		if slices.EqualFunc(p.Args, args, func(oid types.OID, t types.Type) bool { return oid == t.OID }) {
			return &AggregateFunction{Name: full, Ret: types.Type{OID: p.Ret, Mod: -1}, Strict: p.Value("proisstrict") == "t", Proc: p}, nil
		}
	}
	return nil, builtin.ErrNoFunction(full, args)
}

// asTheyAre requires that values of the types have can be passed for those of want.
func asTheyAre(name string, have, want []types.Type) error {
	for i := range have {
		if have[i].OID == want[i].OID {
			continue
		}
		if c, ok := builtin.FindCast(have[i], want[i], builtin.Implicit); !ok || !c.NoOp() {
			return pgerror.New(pgerror.DatatypeMismatch, "function %s requires run-time type coercion", builtin.CallSignature(name, want))
		}
	}
	return nil
}

// hasUserAggregate reports whether a name may mean an aggregate of a user.
func hasUserAggregate(f builtin.FuncName) bool {
	return slices.ContainsFunc(f.User, func(u builtin.UserRoutine) bool { return u.Kind == builtin.AggregateRoutine })
}

// resolveAggregate finds the aggregate that a call means, and returns its arguments: with those of a VARIADIC parameter in an array.
func (b *binder) resolveAggregate(f builtin.FuncName, e *ast.Call, args []expr.Scalar, ts []types.Type) (*builtin.Aggregate, []expr.Scalar, error) {
	if hasUserAggregate(f) {
		m, err := f.MatchRoutine(builtin.CallSite{Args: ts, Names: e.ArgNames, Variadic: e.Variadic})
		if err != nil {
			return nil, nil, err
		}
		if m != nil {
			e.Routine = uint32(m.Routine.OID)
			_, args, err = b.routineArgs(m, args, int(e.Pos))
			if err != nil {
				return nil, nil, err
			}
			agg, err := b.userAggregate(m, ts)
			return agg, args, err
		}
	}
	fn, err := f.ResolveAggregate(ts)
	if err != nil {
		return nil, nil, err
	}
	b.needFunction(fn)
	return fn, args, nil
}

// userAggregate returns the aggregate of a user that a call means.
func (b *binder) userAggregate(m *builtin.RoutineMatch, args []types.Type) (*builtin.Aggregate, error) {
	d := b.r.Routines().ByOID(m.Routine.OID)
	call, _, err := m.Resolve(args)
	if err != nil {
		return nil, err
	}
	a := d.Aggregate
	state, err := m.Actual(a.State, args)
	if err != nil {
		return nil, err
	}
	parts := &builtin.AggregateParts{Call: call, State: state, Initial: a.Initial, FinalExtra: a.FinalExtra}
	in := append([]types.Type{state}, call.Args...)
	if parts.Transition, err = b.partOf(a.Transition, in); err != nil {
		return nil, err
	}
	if a.Final != 0 {
		final := in[:1]
		if a.FinalExtra {
			final = in
		}
		if parts.Final, err = b.partOf(a.Final, final); err != nil {
			return nil, err
		}
	}
	b.called(call)
	agg := builtin.NewAggregate(parts)
	b.useRoutine(agg)
	for _, t := range append(in, call.Ret) {
		b.useType(t)
	}
	return agg, nil
}

// partOf returns the function with an OID for arguments of the given types.
func (b *binder) partOf(oid types.OID, args []types.Type) (*builtin.Overload, error) {
	if d := b.r.Routines().ByOID(oid); d != nil {
		f := builtin.FuncName{Schema: d.Schema, Name: d.Name, User: []builtin.UserRoutine{{Routine: d.Routine()}}}
		m, err := f.MatchRoutine(builtin.CallSite{Args: args})
		if err != nil {
			return nil, err
		}
		call, _, err := m.Resolve(args)
		if err != nil {
			return nil, err
		}
		fn := call.Overload()
		b.useRoutine(fn)
		return fn, nil
	}
	p := builtin.ProcByOID(oid)
	if p == nil {
		return nil, pgerror.New(pgerror.UndefinedFunction, "function with OID %d does not exist", oid)
	}
	fn, err := builtin.SystemFunc(p.Name).Resolve(args)
	if err != nil {
		return nil, err
	}
	b.needFunction(fn)
	return fn, nil
}
