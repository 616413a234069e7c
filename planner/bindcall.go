package planner

import (
	"cmp"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// functionCall binds a call that names a function.
func (sc *scope) functionCall(e *ast.Call) (expr.Scalar, error) {
	if t := sc.b.constructed(e); t.Valid() {
		return sc.constructor(t, e)
	}
	f, err := sc.b.funcName(e)
	if err != nil {
		return nil, err
	}
	if f.User != nil && e.Syntax == 0 {
		if x, err := sc.routineCall(f, e); x != nil || err != nil {
			return x, err
		}
	}
	name, pos := f.Name, int(e.Pos)
	switch {
	case e.Syntax == ast.GroupingSyntax:
		return sc.grouping(e)
	case len(e.Within) > 0:
		return sc.withinGroup(f, e)
	case e.Over != nil && !(f.IsOrderedSet() && !f.IsWindow()):
		return sc.windowCall(f, e)
	case f.IsOrderedSet() && e.ArgNames == nil && (len(e.Args) > 0 || !f.IsWindow()):
		return nil, sc.withoutWithin(f, e)
	}
	plain := e.ArgNames == nil // None of the special forms has names for its arguments.
	switch name {
	case "coalesce", "greatest", "least", "nullif":
		if plain && len(e.Name) == 1 && !e.Star && !e.Distinct {
			if name != "coalesce" {
				return sc.conditional(name, e)
			}
			return sc.withoutSets("COALESCE", func() (expr.Scalar, error) { return sc.conditional(name, e) })
		}
	}
	if plain && f.IsAggregate() || hasUserAggregate(f) {
		return sc.aggregate(f, e)
	}
	if plain && f.IsWindow() {
		return nil, sc.withoutOver(f, e)
	}
	if e.Distinct || e.Filter != nil || len(e.OrderBy) > 0 || e.Star {
		if err := sc.mustExist(f, e); err != nil {
			return nil, err
		}
		return nil, notAggregate(f.String(), e)
	}
	if e.Variadic {
		return sc.variadicCall(f, e)
	}
	if f.IsSet() {
		return sc.setReturning(f, e)
	}
	args, ts, err := sc.args(e.Args)
	if err != nil {
		return nil, err
	}
	if e.ArgNames != nil {
		return sc.b.namedCall(f, e.ArgNames, args, ts, pos)
	}
	return sc.b.function(f, args, ts, pos)
}

// constructed returns the user-defined range or multirange type of which a call is the constructor; the zero Type if it is none.
func (b *binder) constructed(e *ast.Call) types.Type {
	if e.ArgNames != nil || e.Star || e.Distinct || e.Filter != nil || len(e.OrderBy) > 0 || len(e.Within) > 0 || e.Over != nil || e.Variadic {
		return types.Type{}
	}
	var t types.Type
	switch len(e.Name) {
	case 1:
		if !b.bareName(e.Name[0]).Exists() {
			t = catalog.FindType(b.r, "", e.Name[0])
		}
	case 2:
		t = catalog.FindType(b.r, e.Name[0], e.Name[1])
	}
	if t.Ranges() == nil {
		return types.Type{}
	}
	return t
}

// constructor binds a call of the function that makes values of a user-defined range or multirange type.
func (sc *scope) constructor(t types.Type, e *ast.Call) (expr.Scalar, error) {
	args, ts, err := sc.args(e.Args)
	if err != nil {
		return nil, err
	}
	fn, err := builtin.ResolveConstructor(t, ts)
	if err != nil {
		return nil, at(err, int(e.Pos))
	}
	sc.b.useType(t)
	if err := sc.b.coerceArgs(fn, args, int(e.Pos)); err != nil {
		return nil, err
	}
	return expr.NewCall(fn, args), nil
}

// variadicCall binds a call whose last argument is an array of arguments.
func (sc *scope) variadicCall(f builtin.FuncName, e *ast.Call) (expr.Scalar, error) {
	pos := int(e.Pos)
	e, err := sc.inPlace(f, e)
	if err != nil {
		return nil, err
	}
	args, ts, err := sc.args(e.Args)
	if err != nil {
		return nil, err
	}
	fn, err := f.ResolveVariadic(ts)
	if err != nil {
		if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.DatatypeMismatch {
			pos = startOf(e.Args[len(e.Args)-1])
		}
		return nil, at(err, pos)
	}
	sc.b.needFunction(fn)
	if err := sc.b.coerceArgs(fn, args, pos); err != nil {
		return nil, err
	}
	return collated(expr.NewCall(fn, args), pos, args...)
}

// bareName is a function's name that is written without a schema.
func (b *binder) bareName(name string) builtin.FuncName {
	return builtin.FuncName{Name: name, From: b.sources(), User: b.userRoutines("", name), Casts: b.casts()}
}

// sources returns where functions and operators come from that are named without a schema.
func (b *binder) sources() builtin.Sources { return b.r.Extensions().Sources(catalog.Path(b.r)) }

// funcName returns the name of a called function, and where the function may come from: pg_catalog and extensions.
func (b *binder) funcName(e *ast.Call) (builtin.FuncName, error) {
	name := e.Name
	if e.Syntax >= ast.ExtractSyntax && e.Syntax <= ast.OverlapsSyntax {
		name = []string{catalog.SystemSchema, name[0]}
	}
	switch {
	case len(name) == 1:
		return b.bareName(name[0]), nil
	case len(name) == 2 && name[0] == catalog.SystemSchema:
		f := builtin.SystemFunc(name[1])
		f.Schema, f.Casts = catalog.SystemSchema, b.casts()
		return f, nil
	case len(e.Name) == 2:
		if _, exists := b.r.Grants().Schemas[e.Name[0]]; !exists {
			return builtin.FuncName{}, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", e.Name[0]).At(int(e.Pos))
		}
		b.needSchema(ast.TableName{Pos: e.Pos, Schema: e.Name[0]})
		return builtin.FuncName{Schema: e.Name[0], Name: e.Name[1], From: b.r.Extensions().In(e.Name[0]), User: b.userRoutines(e.Name[0], e.Name[1]), Casts: b.casts()}, nil
	}
	full := e.Name[0]
	for _, part := range e.Name[1:] {
		full += "." + part
	}
	return builtin.FuncName{}, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", full).At(int(e.Pos))
}

// mustExist refuses a call of a function that there is not.
func (sc *scope) mustExist(f builtin.FuncName, e *ast.Call) error {
	_, ts, err := sc.args(e.Args)
	if err != nil || f.IsSet() {
		return err
	}
	_, err = f.Resolve(ts)
	return at(err, int(e.Pos))
}

func notAggregate(name string, e *ast.Call) error {
	what := "DISTINCT"
	switch {
	case e.Filter != nil:
		what = "FILTER"
	case len(e.OrderBy) > 0:
		what = "ORDER BY"
	case e.Star:
		what = name + "(*)"
		return pgerror.New(pgerror.WrongObjectType, "%s specified, but %s is not an aggregate function", what, name).At(int(e.Pos))
	}
	return pgerror.New(pgerror.WrongObjectType, "%s specified, but %s is not an aggregate function", what, name).At(int(e.Pos))
}

// args binds arguments and returns their types.
func (sc *scope) args(list []ast.Expr) ([]expr.Scalar, []types.Type, error) {
	args := make([]expr.Scalar, len(list))
	ts := make([]types.Type, len(list))
	for i, a := range list {
		x, err := sc.expr(a)
		if err != nil {
			return nil, nil, err
		}
		args[i], ts[i] = x, x.Type()
	}
	return args, ts, nil
}

// function binds a call of a plain function. Arguments are coerced in place.
func (b *binder) function(f builtin.FuncName, args []expr.Scalar, ts []types.Type, pos int) (expr.Scalar, error) {
	fn, err := f.Resolve(ts)
	if err != nil {
		return nil, at(err, pos)
	}
	b.needFunction(fn)
	if err := b.coerceArgs(fn, args, pos); err != nil {
		return nil, err
	}
	if fn.Name == "pg_collation_for" {
		return b.collationFor(args[0])
	}
	return collated(expr.NewCall(fn, args), pos, args...)
}

// conditional binds COALESCE, GREATEST, LEAST and NULLIF.
func (sc *scope) conditional(name string, e *ast.Call) (expr.Scalar, error) {
	args, _, err := sc.args(e.Args)
	if err != nil {
		return nil, err
	}
	if name == "nullif" {
		if len(args) != 2 {
			return nil, pgerror.New(pgerror.SyntaxError, "NULLIF takes two arguments").At(int(e.Pos))
		}
		return sc.b.nullIf(args[0], args[1], int(e.Pos))
	}
	if len(args) == 0 {
		return nil, pgerror.New(pgerror.SyntaxError, "%s takes at least one argument", name).At(int(e.Pos))
	}
	pos := make([]int, len(args))
	for i := range args {
		pos[i] = startOf(e.Args[i])
	}
	context := map[string]string{"coalesce": "COALESCE", "greatest": "GREATEST", "least": "LEAST"}[name]
	t, err := sc.b.unify(args, pos, context)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		args[0] = sc.b.textIfUnknown(args[0])
		t = args[0].Type()
	}
	if name == "coalesce" {
		return &expr.Coalesce{Args: args, Typ: t}, nil
	}
	if !t.Ordered() {
		return nil, pgerror.New(pgerror.UndefinedFunction, "could not identify a comparison function for type %s", t)
	}
	if err := requireCollation(t, "string comparison"); err != nil {
		return nil, err
	}
	return &expr.MinMax{Greatest: name == "greatest", Args: args, Typ: t}, nil
}

// aggregate binds an aggregate call and returns the column it will be. It belongs to the innermost
// query whose columns its arguments name, which may be an enclosing one.
func (sc *scope) aggregate(f builtin.FuncName, e *ast.Call) (expr.Scalar, error) {
	bind := sc.aggregateCall
	if len(e.Within) > 0 {
		bind = sc.orderedSetCall
	}
	call, deepest, err := bind(f, e)
	if err != nil {
		return nil, err
	}
	sc.b.notes.call(e, append(slices.Clone(call.Direct), call.Args...))
	owner := sc.ownerOf(deepest)
	sc.b.touch(owner.depth)
	pos := int(e.Pos)
	switch {
	case owner.inAgg:
		return nil, nestedAggregate(pos)
	case !owner.aggsOK || owner.sel == nil:
		return nil, aggNotAllowed(owner.clause, pos)
	}
	if at, nested := call.reads(owner.sel.computed()); nested {
		return nil, nestedAggregate(at)
	}
	for i := range owner.sel.aggs {
		if sameAggregate(&owner.sel.aggs[i].call, call) {
			return sc.b.column(owner.sel.aggs[i].id, pos), nil
		}
	}
	id := sc.b.newColumn(f.Name, call.Func.Ret)
	owner.sel.aggs = append(owner.sel.aggs, aggregation{id: id, call: *call, name: f.Name, pos: pos})
	return sc.b.column(id, pos), nil
}

// ownerOf returns the scope of the query that an aggregate belongs to whose arguments name columns down to depth deepest; -1: none.
func (sc *scope) ownerOf(deepest int) *scope {
	for deepest >= 0 && sc.outer != nil && sc.depth > deepest {
		sc = sc.outer
	}
	return sc
}

func nestedAggregate(pos int) error {
	return pgerror.New(pgerror.Grouping, "aggregate function calls cannot be nested").At(pos)
}

// computed are the columns that a query's aggregates and calls of GROUPING are.
func (s *selectState) computed() colSet {
	var ids colSet
	for i := range s.aggs {
		ids.add(s.aggs[i].id)
	}
	for i := range s.groupings {
		ids.add(s.groupings[i].id)
	}
	return ids
}

// reads reports whether the call reads one of the aggregates, and where. Both then belong to one query, although the
// inner one may have been bound by a subquery none of whose own columns it names.
func (c *AggregateCall) reads(aggs colSet) (pos int, found bool) {
	var look func(e expr.Scalar) expr.Scalar
	look = func(e expr.Scalar) expr.Scalar {
		expr.Walk(e, func(x expr.Scalar) bool {
			if found {
				return false
			}
			if col, ok := x.(*expr.Column); ok {
				if aggs.has(col.ID) {
					pos, found = col.Pos, true
				}
			} else if sub := expr.SubqueryOf(x); sub != nil {
				if sr := sub.Plan.(*subRel); sr.free.intersects(aggs) {
					rewriteAll(sr.root, look)
				}
			}
			return !found
		})
		return e
	}
	mapAggregate(c, look)
	return pos, found
}

func aggNotAllowed(clause string, pos int) error {
	if clause == "FROM" {
		return pgerror.New(pgerror.Grouping, "aggregate functions are not allowed in FROM clause of their own query level").At(pos)
	}
	return pgerror.New(pgerror.Grouping, "aggregate functions are not allowed in %s", clause).At(pos)
}

// enterAggregate begins the binding of an aggregate's arguments: it tracks the scopes that they name until leave is called.
func (sc *scope) enterAggregate() (named *tracker, leave func()) {
	named = &tracker{depth: sc.depth, deepest: -1}
	sc.b.trackers = append(sc.b.trackers, named)
	wasInAgg, setsOK := sc.inAgg, sc.setsOK
	sc.inAgg, sc.setsOK = true, false
	return named, func() {
		sc.inAgg, sc.setsOK = wasInAgg, setsOK
		sc.b.trackers = sc.b.trackers[:len(sc.b.trackers)-1]
	}
}

// aggregateCall binds arguments, FILTER and ORDER BY, and reports the deepest scope they name.
func (sc *scope) aggregateCall(f builtin.FuncName, e *ast.Call) (*AggregateCall, int, error) {
	named, leave := sc.enterAggregate()
	defer leave()
	args, ts, err := sc.args(e.Args)
	if err != nil {
		return nil, 0, err
	}
	if len(args) == 0 && !e.Star {
		return nil, 0, pgerror.New(pgerror.WrongObjectType, "%s(*) must be used to call a parameterless aggregate function", f).At(int(e.Pos))
	}
	filter, err := sc.filter(e.Filter)
	if err != nil {
		return nil, 0, err
	}
	fn, args, err := sc.b.resolveAggregate(f, e, args, ts)
	if err != nil {
		return nil, 0, at(err, int(e.Pos))
	}
	for i := range args {
		if args[i], err = sc.b.coerce(args[i], fn.Args[i].Base(), castImplicit, startOf(e.Args[i])); err != nil {
			return nil, 0, err
		}
		if e.Distinct {
			if err := requireEquality(args[i].Type(), startOf(e.Args[i])); err != nil {
				return nil, 0, err
			}
		}
	}
	if fn, err = collatedAggregate(fn, args); err != nil {
		return nil, 0, err
	}
	call := &AggregateCall{Func: fn, Args: args, Distinct: e.Distinct, Filter: filter}
	for i := range args {
		if t := args[i].Type(); e.Distinct && !t.Ordered() {
			return nil, 0, pgerror.New(pgerror.UndefinedFunction, "could not identify an ordering operator for type %s", t).
				WithDetail("Aggregates with DISTINCT must be able to sort their inputs.").At(startOf(e.Args[i]))
		}
	}
	for _, it := range e.OrderBy {
		x, err := sc.expr(it.Expr)
		if err != nil {
			return nil, 0, err
		}
		x = sc.b.textIfUnknown(x)
		if err := requireOrder(x.Type(), startOf(it.Expr)); err != nil {
			return nil, 0, err
		}
		if e.Distinct && !among(args, x) {
			return nil, 0, pgerror.New(pgerror.InvalidColumnReference,
				"in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list").At(startOf(it.Expr))
		}
		call.OrderBy = append(call.OrderBy, SortKey{Expr: asArgument(args, x), Desc: it.Desc, NullsFirst: it.NullsFirst})
	}
	if e.Distinct && fn.OrderMatters {
		call.sortDistinct()
	}
	return call, named.deepest, nil
}

// sortDistinct sorts by the arguments that ORDER BY leaves out: PostgreSQL removes duplicates by sorting, which the result shows.
func (c *AggregateCall) sortDistinct() {
	for _, x := range c.Args {
		if _, constant := x.(*expr.Const); !constant && !slices.ContainsFunc(c.OrderBy, func(k SortKey) bool { return expr.Equal(k.Expr, x) }) {
			c.OrderBy = append(c.OrderBy, SortKey{Expr: expr.Clone(x)})
		}
	}
}

// filter binds FILTER; nil for none.
func (sc *scope) filter(e ast.Expr) (expr.Scalar, error) {
	if e == nil {
		return nil, nil
	}
	clause, winsOK := sc.clause, sc.winsOK
	sc.clause, sc.winsOK = "FILTER", false
	defer func() { sc.clause, sc.winsOK = clause, winsOK }()
	return sc.boolean(e, "FILTER")
}

// asArgument returns the argument that x is, cast implicitly to the type of the aggregate's parameter, and by which PostgreSQL sorts: the two
// may order differently. It returns x if there is none.
func asArgument(args []expr.Scalar, x expr.Scalar) expr.Scalar {
	for _, a := range args {
		if c, ok := a.(*expr.Cast); ok && c.Implicit && c.Fn != nil && x.Type().IsString() && expr.Equal(x, c.X) {
			return expr.Clone(a)
		}
	}
	return x
}

func among(list []expr.Scalar, x expr.Scalar) bool {
	for _, y := range list {
		if expr.Equal(x, y) {
			return true
		}
		// The argument may have been cast to the aggregate's type.
		if c, ok := y.(*expr.Cast); ok && c.Implicit && expr.Equal(x, c.X) {
			return true
		}
	}
	return false
}

func sameAggregate(a, b *AggregateCall) bool {
	if a.Func.Name != b.Func.Name || a.Func.Ret != b.Func.Ret || a.Distinct != b.Distinct || len(a.Args) != len(b.Args) ||
		!slices.EqualFunc(a.Direct, b.Direct, expr.Equal) || len(a.OrderBy) != len(b.OrderBy) || !expr.Equal(a.Filter, b.Filter) {
		return false
	}
	for i := range a.Args {
		if !expr.Equal(a.Args[i], b.Args[i]) {
			return false
		}
	}
	for i := range a.OrderBy {
		x, y := a.OrderBy[i], b.OrderBy[i]
		if x.Desc != y.Desc || x.NullsFirst != y.NullsFirst || !expr.Equal(x.Expr, y.Expr) {
			return false
		}
	}
	return true
}

const moveToLateral = "You might be able to move the set-returning function into a LATERAL FROM item."

// withoutSets refuses the set-returning functions that bind finds in a construct that does not evaluate all of its operands.
func (sc *scope) withoutSets(construct string, bind func() (expr.Scalar, error)) (expr.Scalar, error) {
	before := sc.setPos
	sc.setPos = 0
	x, err := bind()
	if err == nil && sc.setPos != 0 {
		err = pgerror.New(pgerror.FeatureNotSupported, "set-returning functions are not allowed in %s", construct).WithHint(moveToLateral).At(sc.setPos)
	}
	sc.setPos = before
	return x, err
}

// setReturning binds a set-returning function in a select list: it becomes a column of the step
// that runs all of them in lockstep.
func (sc *scope) setReturning(f builtin.FuncName, e *ast.Call) (expr.Scalar, error) {
	pos := int(e.Pos)
	if err := sc.maySet(pos); err != nil {
		return nil, err
	}
	fn, args, err := sc.setCall(f, e)
	sc.setPos = pos
	if err != nil {
		return nil, err
	}
	sc.b.notes.call(e, args)
	for i := range sc.sel.sets {
		// Equal calls run in lockstep and give the same values. In GROUP BY and ORDER BY they are one if volatile, too.
		if sc.clause == "SELECT" && slices.ContainsFunc(args, expr.Volatile) {
			break
		}
		if s := &sc.sel.sets[i]; s.fn.Name == f.Name && slices.Equal(s.fn.Args, fn.Args) && slices.EqualFunc(s.args, args, expr.Equal) {
			return sc.b.column(s.id, pos), nil
		}
	}
	id := sc.b.newColumn(f.Name, fn.Ret)
	sc.b.cols[id].fields = fn.Columns
	sc.sel.sets = append(sc.sel.sets, setProjection{id: id, fn: fn, args: args})
	return sc.b.column(id, pos), nil
}

// maySet refuses a set-returning function where there may be none.
func (sc *scope) maySet(pos int) error {
	switch {
	case sc.inWin:
		return pgerror.New(pgerror.FeatureNotSupported, "window function calls cannot contain set-returning function calls").WithHint(moveToLateral).At(pos)
	case sc.inAgg && sc.sel != nil:
		return pgerror.New(pgerror.FeatureNotSupported, "aggregate function calls cannot contain set-returning function calls").WithHint(moveToLateral).At(pos)
	case !sc.setsOK || sc.sel == nil:
		clause := sc.clause
		if clause == "" {
			clause = "this place"
		}
		return pgerror.New(pgerror.FeatureNotSupported, "set-returning functions are not allowed in %s", clause).At(pos)
	}
	return nil
}

func (sc *scope) setCall(f builtin.FuncName, e *ast.Call) (*builtin.SetFunc, []expr.Scalar, error) {
	args, ts, err := sc.args(e.Args)
	if err != nil {
		return nil, nil, err
	}
	if e.ArgNames != nil {
		list, places, err := f.ResolveNamed(e.ArgNames, ts, false)
		if err != nil {
			return nil, nil, at(err, int(e.Pos))
		}
		args, ts = positional(list, places, args)
	}
	fn, err := f.ResolveSet(ts)
	if err != nil {
		return nil, nil, at(err, int(e.Pos))
	}
	sc.b.needFunction(fn)
	for i := range args {
		pos := int(e.Pos)
		if i < len(e.Args) {
			pos = startOf(e.Args[i])
		}
		if args[i], err = sc.b.coerce(args[i], fn.Args[i].Base(), castImplicit, pos); err != nil {
			return nil, nil, err
		}
	}
	c, err := inputCollation(args, nil)
	if c != nil && fn.Columns == nil && fn.Ret.Collatable() {
		collated := *fn
		collated.Ret.Coll = c
		fn = &collated
	}
	return fn, args, err
}

// cast binds X::T.
func (sc *scope) cast(e *ast.Cast) (expr.Scalar, error) {
	t, err := sc.b.typeOf(e.Type)
	if err != nil {
		return nil, err
	}
	if arr, ok := e.X.(*ast.Array); ok && t.Underlying().IsArray() {
		x, err := sc.array(arr, t.Underlying())
		if err != nil || t.IsArray() {
			return x, err
		}
		return sc.b.explicit(x, t, int(e.Pos)) // a domain
	}
	x, err := sc.valueFor(e.X, t, castExplicit, int(e.Pos))
	if err != nil {
		return nil, err
	}
	if t.OID == types.OIDUnknown || t.Info() == nil || t.Category() == types.CategoryPseudo {
		if t.OID != types.OIDVoid && t.OID != types.OIDRecord {
			return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", x.Type().Base(), t).At(int(e.Pos))
		}
	}
	pos := int(e.Pos)
	if x.Type().OID == types.OIDUnknown {
		pos = posOf(x, pos)
	}
	return sc.b.explicit(x, t, pos)
}

// explicit is a written cast. A literal that already has the type keeps a label, so that it is not taken for a bare
// literal of another type later.
func (b *binder) explicit(x expr.Scalar, t types.Type, pos int) (expr.Scalar, error) {
	if in, ok := x.(*expr.Input); ok && in.Param == 0 && in.Typ.OID != types.OIDUnknown && in.Typ.OID != t.OID {
		if c, ok := b.casts().Find(in.Typ, t, castExplicit); ok && c.Match() == nil {
			y, err := b.applyMod(b.newCast(x, t.Base(), c, castExplicit), t, castExplicit, pos)
			return y, err
		}
	}
	out, err := b.coerce(x, t, castExplicit, pos)
	if err != nil {
		return nil, err
	}
	return withoutMod(out, t), nil
}

// withoutMod labels an expression as of a type that has no modifier, where the expression's has one.
func withoutMod(x expr.Scalar, t types.Type) expr.Scalar {
	if have := x.Type(); have.OID != t.OID || have.Mod < 0 || t.Mod >= 0 {
		return x
	}
	return &expr.Cast{X: x, Typ: t}
}

// tableFuncName is funcName for a function in FROM, which may be percodb.changes.
func (b *binder) tableFuncName(c *ast.Call) (builtin.FuncName, error) {
	if isChanges(c) {
		return builtin.FuncName{Schema: c.Name[0], Name: c.Name[1]}, nil
	}
	return b.funcName(c)
}

// tableFunc binds a function in FROM.
func (b *binder) tableFunc(sc *scope, t *ast.TableFunc) (rel, error) {
	if t.Ordinality && len(t.ColumnDefs) > 0 {
		return nil, pgerror.New(pgerror.SyntaxError, "WITH ORDINALITY cannot be used with a column definition list").
			WithHint("Put the column definition list inside ROWS FROM().").At(t.ColumnDefs[0].Type.Position())
	}
	f, err := b.tableFuncName(t.Call)
	if err != nil {
		return nil, err
	}
	// Arguments see the items to the left: a function in FROM is always lateral.
	inner := newScope(b, sc)
	saved := sc.clause
	sc.in("functions in FROM", false, false)
	inner.in("functions in FROM", false, false)
	b.inlined = nil
	r, cols, err := b.tableFuncRel(inner, f, t)
	fn := b.inlined
	sc.clause = saved
	if err != nil {
		return nil, err
	}
	alias := t.Alias
	if alias == "" {
		alias = f.Name
	}
	item := nsItem{alias: alias, rel: true, open: true, unlockable: "a function"}
	set, ok := r.(*setFuncRel)
	if ok {
		fn = set.fn
	}
	if ok && !t.Ordinality && fn.Ret.IsRow() && fn.Ret.Underlying().IsComposite() {
		item.of = fn.Ret.Underlying()
	}
	records := isChanges(t.Call) || fn != nil && fn.Columns != nil
	item.scalar = !records && !t.Ordinality
	for i, id := range cols {
		colName := b.cols[id].Name
		// The column of a function that returns no records is named by its alias.
		if i == 0 && t.Alias != "" && !records && (fn == nil || fn.Column == "") {
			colName = t.Alias
		}
		b.cols[id].Name, b.cols[id].Table = colName, alias
		item.cols = append(item.cols, nsCol{name: colName, id: id})
	}
	if err := b.rename(&item, t.Columns, alias, int(t.Pos)); err != nil {
		return nil, err
	}
	b.notes.item(t, &item)
	return r, sc.addItem(item)
}

func (b *binder) tableFuncRel(sc *scope, f builtin.FuncName, t *ast.TableFunc) (rel, []int, error) {
	if f.User != nil {
		if r, cols, err := b.routineTable(sc, f, t); r != nil || err != nil {
			return r, cols, err
		}
	}
	name, pos := f.Name, int(t.Pos)
	if builtin.NeedsColumns(name) || builtin.TakesColumns(name) && len(t.ColumnDefs) > 0 {
		return b.recordFunc(sc, f, t)
	}
	if len(t.ColumnDefs) > 0 {
		return nil, nil, pgerror.New(pgerror.SyntaxError,
			"a column definition list is only allowed for functions returning \"record\"").At(pos)
	}
	if isChanges(t.Call) {
		return b.changes(sc, t)
	}
	if !f.IsSet() {
		x, err := sc.expr(t.Call)
		if err != nil {
			return nil, nil, err
		}
		if x.Type().Underlying().IsComposite() {
			one := b.setFuncItem(name, builtin.One(name, x.Type()), []expr.Scalar{x}, t.Ordinality)
			return one, one.cols, nil
		}
		row := []expr.Scalar{sc.b.textIfUnknown(x)}
		cols := []int{b.newColumn(name, row[0].Type())}
		if t.Ordinality {
			row = append(row, &expr.Const{Value: types.Int(1), Typ: types.TInt8})
			cols = append(cols, b.newColumn("ordinality", types.TInt8))
		}
		return &valuesRel{rows: [][]expr.Scalar{row}, cols: cols}, cols, nil
	}
	if name == "unnest" && len(t.Call.Args) > 1 && t.Call.ArgNames == nil {
		all, err := b.unnestMany(sc, t)
		if err != nil {
			return nil, nil, err
		}
		return all, all.cols, nil
	}
	fn, args, err := sc.setCall(f, t.Call)
	if err != nil {
		return nil, nil, err
	}
	b.notes.call(t.Call, args)
	item := b.setFuncItem(name, fn, args, t.Ordinality)
	return item, item.cols, nil
}

// setFuncItem returns the step that yields the rows of a set-returning function in FROM, with new columns.
func (b *binder) setFuncItem(name string, fn *builtin.SetFunc, args []expr.Scalar, ordinality bool) *setFuncRel {
	f := &setFuncRel{fn: fn, args: args, ordinality: ordinality, name: name}
	for _, c := range fn.Columns {
		f.cols = append(f.cols, b.newColumn(c.Name, c.Type))
	}
	if fn.Columns == nil {
		f.cols = append(f.cols, b.newColumn(cmp.Or(fn.Column, name), fn.Ret))
	}
	if ordinality {
		f.cols = append(f.cols, b.newColumn("ordinality", types.TInt8))
	}
	return f
}
