package expr

import (
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

type (
	// Call calls a builtin function or operator. Args have the overload's argument types.
	Call struct {
		Fn   *builtin.Overload
		Args []Scalar
	}
	// Cast converts X to Typ; without Fn it only gives the value another type of one representation.
	Cast struct {
		X        Scalar
		Typ      types.Type
		Fn       *builtin.Cast
		Implicit bool // not written in the statement
		// Collate is where COLLATE gives the value another collation; 0: the node is a cast.
		Collate int
	}
	// Parse parses text as a value of Typ when it is evaluated: for constants whose meaning depends on the session (time
	// zone, date order, names) or the time ('now').
	Parse struct {
		X   Scalar
		Typ types.Type
		Pos int
	}
)

// Type returns what the overload returns.
func (c *Call) Type() types.Type { return c.Fn.Ret }

// Type returns the target.
func (c *Cast) Type() types.Type { return c.Typ }

// Type returns the target.
func (p *Parse) Type() types.Type { return p.Typ }

// Eval evaluates the arguments, and calls unless a strict overload got a NULL.
func (c *Call) Eval(ev *Context, in types.Row) (types.Datum, error) {
	n := len(c.Args)
	args := ev.push(n)
	null, large := false, false
	counted := ev.Env.Counted()
	for i, a := range c.Args {
		d, err := eval(a, ev, in)
		if err != nil {
			ev.pop(n)
			return types.Null, err
		}
		args[i] = d
		null = null || d.IsNull()
		large = large || d.Large()
	}
	if null && c.Fn.Strict {
		ev.pop(n)
		return types.Null, nil
	}
	var d types.Datum
	var err error
	if large {
		d, err = callLarge(ev.Env, c.Fn.Ret, args, counted, func() (types.Datum, error) { return c.Fn.Fn(ev.Env, args) })
	} else {
		before := ev.Env.Counted()
		if d, err = c.Fn.Fn(ev.Env, args); err == nil && d.Large() {
			err = ev.Env.Settle(before, d.Size())
		}
	}
	ev.pop(n)
	return d, err
}

// callLarge makes a call with large arguments; counted is the reservation before they were evaluated. A result that may
// be large is assumed to have the arguments' size until it is known. If it is not large, the arguments are garbage then.
func callLarge(env *builtin.Env, ret types.Type, args types.Row, counted int64, call func() (types.Datum, error)) (types.Datum, error) {
	size := 0
	for i := range args {
		size += args[i].ShallowSize()
	}
	if err := env.Step(size); err != nil {
		return types.Null, err
	}
	before := env.Counted()
	switch ret.KindOf() {
	case types.KindBytes, types.KindArray, types.KindRow, types.KindRange:
		if err := env.Reserve(min(size, builtin.MaxValueBytes)); err != nil {
			return types.Null, err
		}
	}
	taken := env.Counted() - before
	d, err := call()
	switch {
	case err != nil:
		return types.Null, err
	case d.Large():
		if env.Counted()-before > taken { // The function has reserved its memory itself.
			env.Release(taken)
		}
		return d, env.Settle(before, d.Size())
	case d.Kind() == types.KindBytes:
		d = d.Clone() // A piece of an argument would keep all of it.
	}
	env.Release(env.Counted() - counted)
	return d, nil
}

// Eval converts; NULL stays NULL.
func (c *Cast) Eval(ev *Context, in types.Row) (types.Datum, error) {
	counted := ev.Env.Counted()
	d, err := eval(c.X, ev, in)
	if err != nil || c.Fn == nil || d.IsNull() && c.Fn.Strict() {
		return d, err
	}
	if d.Large() {
		return callLarge(ev.Env, c.Typ, types.Row{d}, counted, func() (types.Datum, error) { return c.Fn.Apply(ev.Env, d) })
	}
	if d, err = c.Fn.Apply(ev.Env, d); err == nil && d.Large() {
		err = ev.Env.Settle(counted, d.Size())
	}
	return d, err
}

// Eval parses.
func (p *Parse) Eval(ev *Context, in types.Row) (types.Datum, error) {
	counted := ev.Env.Counted()
	d, err := eval(p.X, ev, in)
	if err != nil || d.IsNull() {
		return d, err
	}
	if d.Large() {
		return callLarge(ev.Env, p.Typ, types.Row{d}, counted, func() (types.Datum, error) {
			return types.ParseText(p.Typ, d.Text(), &ev.Env.Format)
		})
	}
	return types.ParseText(p.Typ, d.Text(), &ev.Env.Format)
}

// Unlabel returns the operand of a cast without effect.
func Unlabel(s Scalar) Scalar {
	for {
		c, ok := s.(*Cast)
		if !ok || c.Fn != nil {
			return s
		}
		s = c.X
	}
}

// NewCall makes the node for a call of an overload: a comparison, arithmetic or LIKE of the common types gets a special
// node, which calls no function and makes no argument slice.
func NewCall(fn *builtin.Overload, args []Scalar) Scalar {
	if len(args) == 2 && isOperator(fn.Name) {
		if op := ParseCmpOp(fn.Name); op != 0 {
			if class, ok := CompareClass(fn.Args[0], fn.Args[1]); ok {
				return NewCompare(op, Unlabel(args[0]), Unlabel(args[1]), class)
			}
		}
		if op := ParseArithOp(fn.Name); op != 0 {
			switch {
			case isInteger(fn.Args[0]) && isInteger(fn.Args[1]) && isInteger(fn.Ret):
				return &IntArith{Op: op, L: args[0], R: args[1], Typ: fn.Ret}
			case op != Mod && fn.Args[0].OID == types.OIDFloat8 && fn.Args[1].OID == types.OIDFloat8:
				return &FloatArith{Op: op, L: args[0], R: args[1]}
			}
		}
		if (fn.Name == "~~" || fn.Name == "!~~") && fn.Args[0].OID == types.OIDText {
			return &Like{X: Unlabel(args[0]), Pattern: Unlabel(args[1]), Not: fn.Name == "!~~"}
		}
	}
	return &Call{Fn: fn, Args: args}
}

func isInteger(t types.Type) bool {
	return t.OID == types.OIDInt4 || t.OID == types.OIDInt8 || t.OID == types.OIDInt2
}

// CompareClass returns the type under which values of l and r compare, when they do so as they are.
func CompareClass(l, r types.Type) (types.Type, bool) {
	if m := l.Underlying().Methods(); m != nil && m.NoEquality {
		return types.Type{}, false // Its operators compare something else than the datums.
	}
	l, r = l.Underlying(), r.Underlying()
	switch {
	case isInteger(l) && isInteger(r):
		return types.TInt8, true
	case l.OID == r.OID:
		if isInteger(l) {
			return types.TInt8, true
		}
		return l.Base(), true
	case l.KindOf() == types.KindFloat && r.KindOf() == types.KindFloat:
		return types.TFloat8, true
	}
	return types.Type{}, false
}
