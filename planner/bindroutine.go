package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// userRoutines returns the routines of users that a name may mean: those of a schema, "" for the search path.
func (b *binder) userRoutines(schema, name string) []builtin.UserRoutine {
	named := b.r.Routines().Named(name)
	if len(named) == 0 {
		return nil
	}
	path := []string{schema}
	if schema == "" {
		path = catalog.Path(b.r)
	}
	system := slices.Index(path, catalog.SystemSchema)
	var found []builtin.UserRoutine
	for i, s := range path {
		if catalog.IsTemporary(s) && schema == "" {
			continue // Only a name with the schema means a routine there.
		}
		for _, d := range named {
			if d.Schema == s {
				found = append(found, builtin.UserRoutine{Routine: d.Routine(), Place: i, System: system})
			}
		}
	}
	return found
}

// routineCall binds a call whose name may mean a routine of a user; nil if it means one of PostgreSQL's own, or an aggregate.
func (sc *scope) routineCall(f builtin.FuncName, e *ast.Call) (expr.Scalar, error) {
	if sc.aggregateOnly(f, e) {
		return nil, nil
	}
	mark := sc.mark()
	site, args, err := sc.site(e)
	if err != nil {
		return nil, err
	}
	m, err := f.MatchRoutine(site)
	if err != nil {
		return nil, at(err, int(e.Pos))
	}
	if m == nil || m.Routine.Kind == builtin.AggregateRoutine {
		sc.resetTo(mark)
		return nil, nil
	}
	if err := plainCall(f, m, e); err != nil {
		return nil, err
	}
	e.Routine = uint32(m.Routine.OID)
	call, args, err := sc.b.routineArgs(m, args, int(e.Pos))
	if err != nil {
		return nil, err
	}
	sc.b.notes.call(e, args)
	if m.Routine.Set {
		return sc.routineSet(call, args, int(e.Pos))
	}
	return sc.b.routineValue(call, args, int(e.Pos))
}

// aggregateOnly reports whether a call can mean no other routine of a user than an aggregate.
func (sc *scope) aggregateOnly(f builtin.FuncName, e *ast.Call) bool {
	other := func(u builtin.UserRoutine) bool { return u.Kind != builtin.AggregateRoutine }
	return !slices.ContainsFunc(f.User, other) || e.Star && len(e.Args) == 0
}

// site binds the arguments of a call, and describes it.
func (sc *scope) site(e *ast.Call) (builtin.CallSite, []expr.Scalar, error) {
	args, ts, err := sc.args(e.Args)
	return builtin.CallSite{Args: ts, Names: e.ArgNames, Variadic: e.Variadic}, args, err
}

// scopeMark is what binding arguments adds to a SELECT.
type scopeMark struct{ aggs, sets, windows, groupings int }

func (sc *scope) mark() scopeMark {
	if sc.sel == nil {
		return scopeMark{}
	}
	return scopeMark{len(sc.sel.aggs), len(sc.sel.sets), len(sc.sel.windows), len(sc.sel.groupings)}
}

// resetTo forgets what arguments have added, which are about to be bound again.
func (sc *scope) resetTo(m scopeMark) {
	if sc.sel != nil {
		sc.sel.aggs, sc.sel.sets = sc.sel.aggs[:m.aggs], sc.sel.sets[:m.sets]
		sc.sel.windows, sc.sel.groupings = sc.sel.windows[:m.windows], sc.sel.groupings[:m.groupings]
	}
}

// plainCall refuses what only aggregates have, and procedures.
func plainCall(f builtin.FuncName, m *builtin.RoutineMatch, e *ast.Call) error {
	r := m.Routine
	name := builtin.CallSignature(f.String(), r.InputTypes())
	switch {
	case r.Kind == builtin.ProcedureRoutine:
		return pgerror.New(pgerror.WrongObjectType, "%s is a procedure", name).WithHint("To call a procedure, use CALL.").At(int(e.Pos))
	case len(e.Within) > 0:
		return pgerror.New(pgerror.WrongObjectType, "WITHIN GROUP specified, but %s is not an aggregate function", f).At(int(e.Pos))
	case e.Over != nil:
		return pgerror.New(pgerror.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function", f).At(int(e.Pos))
	case e.Distinct || e.Filter != nil || len(e.OrderBy) > 0 || e.Star:
		return notAggregate(f.String(), e)
	}
	return nil
}

// routineArgs returns the call of a routine that the statement names, and its arguments as routineSlots does.
func (b *binder) routineArgs(m *builtin.RoutineMatch, given []expr.Scalar, pos int) (*builtin.RoutineCall, []expr.Scalar, error) {
	call, args, err := b.routineSlots(m, given, pos)
	if err == nil {
		b.useRoutine(call.Overload())
	}
	return call, args, err
}

// routineSlots returns the call of a routine and its arguments, coerced, with defaults in the place of those that are omitted.
func (b *binder) routineSlots(m *builtin.RoutineMatch, given []expr.Scalar, pos int) (*builtin.RoutineCall, []expr.Scalar, error) {
	slots := make([]expr.Scalar, m.Slots())
	for i, place := range m.Places {
		slots[place] = given[i]
	}
	for _, slot := range m.Omitted {
		x, err := b.defaultArgument(m.Param(slot))
		if err != nil {
			return nil, nil, err
		}
		slots[slot] = x
	}
	ts := make([]types.Type, len(slots))
	for i, x := range slots {
		ts[i] = x.Type()
	}
	call, coerce, err := m.Resolve(ts)
	if err != nil {
		return nil, nil, at(err, pos)
	}
	for i, t := range coerce {
		if slots[i], err = b.coerce(slots[i], t.Base(), castImplicit, posOf(slots[i], pos)); err != nil {
			return nil, nil, err
		}
	}
	if m.Spread >= 0 {
		slots = append(slots[:m.Spread:m.Spread], &expr.Array{Elems: slots[m.Spread:], Typ: call.Args[len(call.Args)-1]})
	}
	slots = builtin.Slotted(m, slots)
	if c, err := inputCollation(slots, nil); err != nil {
		return nil, nil, err
	} else if c != nil && call.Columns == nil && call.Ret.Collatable() {
		collated := *call
		collated.Ret.Coll = c
		call = &collated
	}
	for _, t := range append(slices.Clone(call.Args), call.Ret) {
		b.useType(t)
	}
	return call, slots, nil
}

// useRoutine records that the statement calls a routine of a user: whoever runs it needs EXECUTE.
func (b *binder) useRoutine(fn function) {
	use := fn.Use()
	b.useExtension(use)
	d := b.r.Routines().ByOID(use.Routine.OID)
	if d == nil || slices.ContainsFunc(b.needs, func(n *Need) bool { return n.Routine != nil && n.Routine.ID == d.ID && !n.Behind }) {
		return
	}
	b.needs = append(b.needs, &Need{Routine: d, Privileges: acl.Execute})
}

// defaultArgument binds the default of a parameter.
func (b *binder) defaultArgument(p *builtin.RoutineParam) (expr.Scalar, error) {
	return b.catalogExpr(p.Default, nil, func(sc *scope, e ast.Expr) (expr.Scalar, error) {
		sc.in("DEFAULT expressions", false, false)
		x, err := sc.expr(e)
		if err != nil || p.Type.IsPolymorphic() {
			return x, err
		}
		return b.coerce(x, p.Type, castAssignment, 0)
	})
}

// routineValue binds a call of a function that returns one value.
func (b *binder) routineValue(call *builtin.RoutineCall, args []expr.Scalar, pos int) (expr.Scalar, error) {
	if x := b.inlineValue(call, args); x != nil {
		return x, nil
	}
	b.called(call)
	return expr.NewCall(call.Overload(), args), nil
}

// called notes that the plan calls a routine when it is executed.
func (b *binder) called(call *builtin.RoutineCall) {
	b.routines = true
	if call.Routine.Volatility == builtin.Volatile {
		b.volatile = true
	}
}

// routineSet binds a call of a function that returns a set in a select list.
func (sc *scope) routineSet(call *builtin.RoutineCall, args []expr.Scalar, pos int) (expr.Scalar, error) {
	if err := sc.maySet(pos); err != nil {
		return nil, err
	}
	sc.setPos = pos
	sc.b.called(call)
	fn := call.SetFunc()
	id := sc.b.newColumn(fn.Name, fn.Ret)
	sc.b.cols[id].fields = fn.Columns
	sc.sel.sets = append(sc.sel.sets, setProjection{id: id, fn: fn, args: args})
	return sc.b.column(id, pos), nil
}

// routineTable binds a call of a routine of a user in FROM; nil if it means one of PostgreSQL's own functions.
func (b *binder) routineTable(sc *scope, f builtin.FuncName, t *ast.TableFunc) (rel, []int, error) {
	if sc.aggregateOnly(f, t.Call) {
		return nil, nil, nil
	}
	site, args, err := sc.site(t.Call)
	if err != nil {
		return nil, nil, err
	}
	m, err := f.MatchRoutine(site)
	if err != nil {
		return nil, nil, at(err, int(t.Call.Pos))
	}
	if m == nil || m.Routine.Kind == builtin.AggregateRoutine {
		return nil, nil, nil
	}
	if err := plainCall(f, m, t.Call); err != nil {
		return nil, nil, err
	}
	t.Call.Routine = uint32(m.Routine.OID)
	call, args, err := b.routineArgs(m, args, int(t.Call.Pos))
	if err != nil {
		return nil, nil, err
	}
	b.notes.call(t.Call, args)
	if call, err = b.defineColumns(call, t); err != nil {
		return nil, nil, err
	}
	if !t.Ordinality && !b.apart {
		if r, cols, err := b.inlineTable(call, args); r != nil || err != nil {
			return r, cols, err
		}
	}
	if !m.Routine.Set && call.Columns == nil && !call.Ret.Underlying().IsComposite() {
		x, err := b.routineValue(call, args, int(t.Call.Pos))
		if err != nil {
			return nil, nil, err
		}
		name := f.Name
		if fn := call.SetFunc(); fn.Column != "" {
			name = fn.Column
		}
		one := b.setFuncItem(name, builtin.One(name, x.Type()), []expr.Scalar{x}, t.Ordinality)
		return one, one.cols, nil
	}
	b.called(call)
	item := b.setFuncItem(f.Name, call.SetFunc(), args, t.Ordinality)
	return item, item.cols, nil
}

// defineColumns applies a column definition list.
func (b *binder) defineColumns(call *builtin.RoutineCall, t *ast.TableFunc) (*builtin.RoutineCall, error) {
	record := call.Ret.OID == types.OIDRecord
	switch {
	case len(t.ColumnDefs) == 0 && record && call.Columns == nil:
		return nil, pgerror.New(pgerror.SyntaxError,
			"a column definition list is required for functions returning \"record\"").At(int(t.Call.Pos))
	case len(t.ColumnDefs) == 0:
		return call, nil
	case record && call.Columns != nil:
		return nil, pgerror.New(pgerror.SyntaxError, "a column definition list is redundant for a function with OUT parameters").At(t.ColumnDefs[0].Type.Position())
	case !record && call.Ret.Underlying().IsComposite():
		return nil, pgerror.New(pgerror.SyntaxError,
			"a column definition list is redundant for a function returning a named composite type").At(t.ColumnDefs[0].Type.Position())
	case !record:
		return nil, pgerror.New(pgerror.SyntaxError,
			"a column definition list is only allowed for functions returning \"record\"").At(t.ColumnDefs[0].Type.Position())
	}
	defined := *call
	for i := range t.ColumnDefs {
		typ, err := b.typeOf(t.ColumnDefs[i].Type)
		if err != nil {
			return nil, err
		}
		defined.Columns = append(defined.Columns, builtin.SetColumn{Name: t.ColumnDefs[i].Name, Type: typ})
	}
	return &defined, nil
}
