package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// windowDef is a window of a SELECT: an entry of its WINDOW clause, or the specification of an OVER. Its expressions are
// bound after all calls, by bindWindows.
type windowDef struct {
	ast  *ast.Window
	name string // "": of an OVER

	partition []expr.Scalar
	order     []SortKey
	frame     WindowFrame
	calls     []windowing
}

// mapExprs replaces every expression of a window and of its calls by f of it.
func (w *windowDef) mapExprs(f func(expr.Scalar) expr.Scalar) {
	for i := range w.calls {
		mapWindowCall(&w.calls[i].call, f)
	}
	for i := range w.order {
		w.order[i].Expr = f(w.order[i].Expr)
	}
	for i := range w.partition {
		w.partition[i] = f(w.partition[i])
	}
}

// windowed reports whether the SELECT calls window functions.
func (s *selectState) windowed() bool {
	return slices.ContainsFunc(s.windows, func(w *windowDef) bool { return len(w.calls) > 0 })
}

// withoutWindows refuses an expression that reads a window function of the SELECT.
func (s *selectState) withoutWindows(e expr.Scalar, clause string) error {
	pos, found := 0, false
	expr.Walk(e, func(x expr.Scalar) bool {
		if c, ok := x.(*expr.Column); ok && !found {
			for _, w := range s.windows {
				if slices.ContainsFunc(w.calls, func(call windowing) bool { return call.id == c.ID }) {
					pos, found = c.Pos, true
				}
			}
		}
		return !found
	})
	if !found {
		return nil
	}
	return windowNotAllowed(clause, pos)
}

func windowNotAllowed(clause string, pos int) error {
	return pgerror.New(pgerror.WindowingError, "window functions are not allowed in %s", clause).At(pos)
}

// withoutOver is the error of a window function without OVER.
func (sc *scope) withoutOver(f builtin.FuncName, e *ast.Call) error {
	_, ts, err := sc.args(e.Args)
	if err != nil {
		return err
	}
	if _, err := builtin.ResolveWindowFunc(f.Name, ts); err != nil {
		return at(err, int(e.Pos))
	}
	return pgerror.New(pgerror.WrongObjectType, "window function %s requires an OVER clause", f).At(int(e.Pos))
}

// windowCall binds a call with OVER and returns the column it will be.
func (sc *scope) windowCall(f builtin.FuncName, e *ast.Call) (expr.Scalar, error) {
	pos := int(e.Pos)
	call, ret, err := sc.windowFunction(f, e)
	if err != nil {
		return nil, err
	}
	sc.b.notes.call(e, call.Args)
	switch {
	case sc.inWin:
		return nil, pgerror.New(pgerror.WindowingError, "window function calls cannot be nested").At(pos)
	case !sc.winsOK || sc.sel == nil:
		return nil, windowNotAllowed(sc.clause, pos)
	case sc.inAgg:
		return nil, pgerror.New(pgerror.Grouping, "aggregate function calls cannot contain window function calls").At(pos)
	}
	w, err := sc.sel.window(e.Over)
	if err != nil {
		return nil, err
	}
	sc.b.touch(sc.depth)
	for i := range w.calls {
		if sameWindowCall(&w.calls[i].call, call) && !(sc.clause == "SELECT" && slices.ContainsFunc(call.Args, expr.Volatile)) {
			return sc.b.column(w.calls[i].id, pos), nil
		}
	}
	id := sc.b.newColumn(f.Name, ret)
	w.calls = append(w.calls, windowing{id: id, call: *call})
	return sc.b.column(id, pos), nil
}

func sameWindowCall(a, b *WindowCall) bool {
	sameFunc := a.Func != nil && b.Func != nil && a.Func.Kind == b.Func.Kind && a.Func.Ret == b.Func.Ret ||
		a.Agg != nil && b.Agg != nil && a.Agg.Name == b.Agg.Name && a.Agg.Ret == b.Agg.Ret
	return sameFunc && slices.EqualFunc(a.Args, b.Args, expr.Equal) && expr.Equal(a.Filter, b.Filter)
}

// windowFunction binds the function, its arguments and FILTER, and returns the type of its values.
func (sc *scope) windowFunction(f builtin.FuncName, e *ast.Call) (*WindowCall, types.Type, error) {
	args, ts, filter, err := sc.windowArgs(e)
	if err != nil {
		return nil, types.Type{}, err
	}
	pos := int(e.Pos)
	call := &WindowCall{Args: args, Filter: filter}
	var want []types.Type
	var ret types.Type
	switch {
	case e.ArgNames == nil && f.IsWindow():
		call.Func, err = builtin.ResolveWindowFunc(f.Name, ts)
		if err == nil {
			want, ret = call.Func.Args, call.Func.Ret
			sc.b.needFunction(call.Func)
		}
	case e.ArgNames == nil && f.IsAggregate() || hasUserAggregate(f):
		call.Agg, args, err = sc.b.resolveAggregate(f, e, args, ts)
		if err == nil {
			want, ret, call.Args = call.Agg.Args, call.Agg.Ret, args
		}
	default:
		if e.ArgNames != nil {
			_, _, err = f.ResolveNamed(e.ArgNames, ts, e.Variadic)
		} else {
			_, err = sc.b.function(f, args, ts, pos)
		}
		if f.IsSet() && e.ArgNames == nil {
			_, err = f.ResolveSet(ts)
		}
		if err == nil {
			err = pgerror.New(pgerror.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function", f)
		}
	}
	if err == nil {
		err = checkWindowCall(call, f.Name, e)
	}
	if err != nil {
		return nil, ret, at(err, pos)
	}
	for i := range args {
		if args[i], err = sc.b.coerce(args[i], want[i].Base(), castImplicit, startOf(e.Args[min(i, len(e.Args)-1)])); err != nil {
			return nil, ret, err
		}
	}
	return call, ret, nil
}

// windowArgs binds the arguments and FILTER of a call with OVER.
func (sc *scope) windowArgs(e *ast.Call) (args []expr.Scalar, ts []types.Type, filter expr.Scalar, err error) {
	was := sc.inWin
	sc.inWin = true
	defer func() { sc.inWin = was }()
	if args, ts, err = sc.args(e.Args); err != nil {
		return nil, nil, nil, err
	}
	filter, err = sc.filter(e.Filter)
	return args, ts, filter, err
}

// checkWindowCall refuses what calls with OVER cannot have.
func checkWindowCall(call *WindowCall, name string, e *ast.Call) error {
	const unsupported = pgerror.FeatureNotSupported
	switch {
	case call.Func != nil && len(e.Within) > 0:
		return pgerror.New(pgerror.WrongObjectType, "window function %s cannot have WITHIN GROUP", name)
	case len(e.Within) > 0:
		return pgerror.New(pgerror.WrongObjectType, "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP", name)
	case e.Distinct:
		return pgerror.New(unsupported, "DISTINCT is not implemented for window functions").WithHint("Compute it in a subquery over the distinct rows.")
	case call.Agg != nil && len(call.Args) == 0 && !e.Star:
		return pgerror.New(pgerror.WrongObjectType, "%s(*) must be used to call a parameterless aggregate function", name)
	case len(e.OrderBy) > 0:
		return pgerror.New(unsupported, "aggregate ORDER BY is not implemented for window functions").WithHint("Write ORDER BY in the window.")
	case call.Func != nil && e.Filter != nil:
		return pgerror.New(unsupported, "FILTER is not implemented for non-aggregate window functions").WithHint("Use CASE in the argument.")
	}
	return nil
}

// window finds the window that an OVER means, or adds it.
func (s *selectState) window(over *ast.Window) (*windowDef, error) {
	if over.Name != "" && !over.Parens {
		for _, w := range s.windows {
			if w.name == over.Name {
				return w, nil
			}
		}
		return nil, noWindow(over.Name, int(over.Pos))
	}
	text := ast.WindowFingerprint(over)
	for _, w := range s.windows {
		if ast.WindowFingerprint(w.ast) == text {
			return w, nil
		}
	}
	w := &windowDef{ast: over}
	s.windows = append(s.windows, w)
	return w, nil
}

func noWindow(name string, pos int) error {
	return pgerror.New(pgerror.UndefinedObject, "window \"%s\" does not exist", name).At(pos)
}

// bindWindows binds all windows, those that nothing uses too.
func (sb *selectBinder) bindWindows() error {
	for i, w := range sb.sel.windows {
		for _, earlier := range sb.sel.windows[:i] {
			if w.name != "" && w.name == earlier.name {
				return pgerror.New(pgerror.WindowingError, "window \"%s\" is already defined", w.name).At(int(w.ast.Pos))
			}
		}
		if err := sb.bindWindow(w, sb.sel.windows[:i]); err != nil {
			return err
		}
	}
	return nil
}

// bindWindow binds a window, which may refer to those defined before it.
func (sb *selectBinder) bindWindow(w *windowDef, earlier []*windowDef) error {
	pos := int(w.ast.Pos)
	base := (*windowDef)(nil)
	if name := w.ast.Name; name != "" {
		i := slices.IndexFunc(earlier, func(e *windowDef) bool { return e.name == name })
		if i < 0 {
			return noWindow(name, pos)
		}
		base = earlier[i]
	}
	sb.sc.in("window definitions", true, false)
	sb.sc.winsOK = false
	for _, it := range w.ast.OrderBy {
		x, err := sb.windowKey(it.Expr)
		if err == nil {
			err = requireOrder(x.Type(), startOf(it.Expr))
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(w.order, func(k SortKey) bool { return expr.Equal(k.Expr, x) }) {
			w.order = append(w.order, SortKey{Expr: x, Desc: it.Desc, NullsFirst: it.NullsFirst})
		}
	}
	for _, e := range w.ast.PartitionBy {
		x, err := sb.windowKey(e)
		if err == nil {
			err = requireEquality(x.Type(), startOf(e))
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(w.partition, func(have expr.Scalar) bool { return expr.Equal(have, x) }) {
			w.partition = append(w.partition, x)
		}
	}
	if base != nil {
		if err := w.inherit(base); err != nil {
			return at(err, pos)
		}
	}
	return sb.bindFrame(w)
}

func (sb *selectBinder) windowKey(e ast.Expr) (expr.Scalar, error) {
	x, err := sb.sc.expr(e)
	if err == nil && x.Type().OID == types.OIDUnknown {
		return sb.b.coerce(x, types.TText, castImplicit, startOf(e))
	}
	return x, err
}

// inherit takes what w does not say from the window that it names.
func (w *windowDef) inherit(base *windowDef) error {
	name := w.ast.Name
	switch {
	case len(w.partition) > 0:
		return pgerror.New(pgerror.WindowingError, "cannot override PARTITION BY clause of window \"%s\"", name)
	case len(w.order) > 0 && len(base.order) > 0:
		return pgerror.New(pgerror.WindowingError, "cannot override ORDER BY clause of window \"%s\"", name)
	case base.ast.Frame != nil:
		err := pgerror.New(pgerror.WindowingError, "cannot copy window \"%s\" because it has a frame clause", name)
		if w.name == "" && len(w.order) == 0 && w.ast.Frame == nil {
			err = err.WithHint("Omit the parentheses in this OVER clause.")
		}
		return err
	}
	for _, x := range base.partition {
		w.partition = append(w.partition, expr.Clone(x))
	}
	if len(w.order) == 0 {
		for _, k := range base.order {
			w.order = append(w.order, SortKey{Expr: expr.Clone(k.Expr), Desc: k.Desc, NullsFirst: k.NullsFirst})
		}
	}
	return nil
}

// bindFrame binds the frame clause; without one the frame ends with the last row equal to the current one.
func (sb *selectBinder) bindFrame(w *windowDef) error {
	f := w.ast.Frame
	if f == nil {
		w.frame = WindowFrame{Mode: ast.FrameRange, Start: WindowBound{Kind: ast.UnboundedPreceding}, End: WindowBound{Kind: ast.CurrentRow}}
		return nil
	}
	w.frame = WindowFrame{Mode: f.Mode, Start: WindowBound{Kind: f.Start.Kind}, End: WindowBound{Kind: f.End.Kind}, Exclude: f.Exclude}
	pos := int(w.ast.Pos)
	switch {
	case f.Mode == ast.FrameRange && (f.Start.Offset != nil || f.End.Offset != nil) && len(w.order) != 1:
		return pgerror.New(pgerror.WindowingError, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column").At(pos)
	case f.Mode == ast.FrameGroups && len(w.order) == 0:
		return pgerror.New(pgerror.WindowingError, "GROUPS mode requires an ORDER BY clause").At(pos)
	}
	if err := sb.bindBound(w, f.Start.Offset, &w.frame.Start); err != nil {
		return err
	}
	return sb.bindBound(w, f.End.Offset, &w.frame.End)
}

// bindBound binds the offset of a bound.
func (sb *selectBinder) bindBound(w *windowDef, e ast.Expr, b *WindowBound) error {
	if e == nil {
		return nil
	}
	mode := string(w.frame.Mode)
	sc := sb.sc
	sc.in("window "+mode, false, false)
	sb.b.limits = append(sb.b.limits, limitScope{depth: sc.depth})
	x, err := sb.offset(e)
	last := len(sb.b.limits) - 1
	named := sb.b.limits[last].named
	sb.b.limits = sb.b.limits[:last]
	if err != nil {
		return err
	}
	from, want, how := x.Type(), types.TInt8, castAssignment
	if w.frame.Mode == ast.FrameRange {
		if b.InRange, err = builtin.ResolveInRange(w.order[0].Expr.Type(), from); err != nil {
			return at(err, startOf(e))
		}
		want, how = b.InRange.Offset, castImplicit
	}
	b.Offset, err = sb.b.coerce(x, want, how, startOf(e))
	if err == nil && from.OID == types.OIDUnknown {
		sb.b.notes.coerced([]ast.Expr{e}, []expr.Scalar{b.Offset})
	}
	if pe, ok := err.(*pgerror.Error); ok && (pe.Code == pgerror.DatatypeMismatch || pe.Code == pgerror.CannotCoerce) {
		return pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type %s, not type %s", mode, builtin.TypeName(want), builtin.TypeName(from)).At(startOf(e))
	}
	if err == nil && named {
		return pgerror.New(pgerror.InvalidColumnReference, "argument of %s must not contain variables", mode).At(startOf(e))
	}
	return err
}

// offset binds the offset of a bound. Window functions in it are refused as in the rest of a definition.
func (sb *selectBinder) offset(e ast.Expr) (expr.Scalar, error) {
	x, err := sb.sc.expr(e)
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.WindowingError {
		return nil, windowNotAllowed("window definitions", pe.Position)
	}
	return x, err
}
