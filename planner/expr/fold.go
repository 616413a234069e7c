package expr

import (
	"github.com/percodb/percodb/sql/builtin"
)

// Fold simplifies one node whose operands are folded already: it evaluates immutable nodes over
// constants and drops what three-valued logic decides. A node whose evaluation fails is kept, so
// that the error comes only if the node is reached: CASE WHEN false THEN 1/0 END has none.
func Fold(s Scalar) Scalar {
	switch s := s.(type) {
	case *And:
		return foldAnd(s)
	case *Or:
		return foldOr(s)
	case *Case:
		return foldCase(s)
	case *Coalesce:
		return foldCoalesce(s)
	case *Not:
		if c, ok := s.X.(*Compare); ok {
			n := *c
			n.Op = c.Op.Negate()
			return &n
		}
	case *Call:
		if s.Fn.Volatility != builtin.Immutable {
			return s
		}
	case *Cast:
		if s.Fn == nil {
			if c, ok := s.X.(*Const); ok {
				return &Const{Value: c.Value, Typ: s.Typ}
			}
			return s
		}
		if s.Fn.Volatility() != builtin.Immutable {
			return s
		}
	case *Parse, *NullIf, *Column, *Input, *Outer, *Const, *CaseValue, *ScalarSubquery, *Exists, *ArraySubquery,
		*InSubquery, *QuantifiedSubquery, *Quantified:
		return s
	}
	if !allConst(s) {
		return s
	}
	d, err := s.Eval(&Context{Env: &builtin.Env{}}, nil)
	if err != nil {
		return s
	}
	return &Const{Value: d, Typ: s.Type()}
}

func allConst(s Scalar) bool {
	all := true
	operands(s, func(x *Scalar) {
		_, ok := (*x).(*Const)
		all = all && ok
	})
	return all
}

// foldAnd drops true arguments; a false one decides only where those before it cannot fail, which
// is not known here, so it cuts off the ones after it.
func foldAnd(a *And) Scalar {
	var args []Scalar
	for _, x := range a.Args {
		if inner, ok := x.(*And); ok {
			args = append(args, inner.Args...)
			continue
		}
		c, ok := x.(*Const)
		if ok && !c.Value.IsNull() && c.Value.Bool() {
			continue
		}
		args = append(args, x)
		if ok && !c.Value.IsNull() {
			if allLeaves(args) {
				return x
			}
			break
		}
	}
	switch len(args) {
	case 0:
		return boolConst(true)
	case 1:
		return args[0]
	}
	a.Args = args
	return a
}

func foldOr(o *Or) Scalar {
	var args []Scalar
	for _, x := range o.Args {
		if inner, ok := x.(*Or); ok {
			args = append(args, inner.Args...)
			continue
		}
		c, ok := x.(*Const)
		if ok && !c.Value.IsNull() && !c.Value.Bool() {
			continue
		}
		args = append(args, x)
		if ok && !c.Value.IsNull() {
			if allLeaves(args) {
				return x
			}
			break
		}
	}
	switch len(args) {
	case 0:
		return boolConst(false)
	case 1:
		return args[0]
	}
	o.Args = args
	return o
}

// allLeaves reports whether no argument could fail when it is evaluated: comparisons and tests of
// leaves cannot.
func allLeaves(args []Scalar) bool {
	for _, x := range args {
		if !cannotFail(x) {
			return false
		}
	}
	return true
}

func cannotFail(s Scalar) bool {
	switch s := s.(type) {
	case *Column, *Const, *Input, *Outer:
		return true
	case *Compare:
		return cannotFail(s.L) && cannotFail(s.R)
	case *IsNull:
		return cannotFail(s.X)
	case *IsBool:
		return cannotFail(s.X)
	case *Not:
		return cannotFail(s.X)
	case *And:
		return allLeaves(s.Args)
	case *Or:
		return allLeaves(s.Args)
	case *InList:
		return cannotFail(s.X) && allLeaves(s.List)
	}
	return false
}

// foldCase drops arms that a constant condition rules out.
func foldCase(c *Case) Scalar {
	if c.Operand != nil {
		return c
	}
	var whens []When
	for _, w := range c.Whens {
		k, ok := w.Cond.(*Const)
		if !ok {
			whens = append(whens, w)
			continue
		}
		if k.Value.IsNull() || !k.Value.Bool() {
			continue
		}
		if len(whens) == 0 {
			return w.Then
		}
		c.Whens, c.Else = whens, w.Then
		return c
	}
	if len(whens) == 0 {
		if c.Else == nil {
			return NewNull(c.Typ)
		}
		return c.Else
	}
	c.Whens = whens
	return c
}

// foldCoalesce drops NULL constants and what comes after a value.
func foldCoalesce(c *Coalesce) Scalar {
	var args []Scalar
	for _, x := range c.Args {
		k, ok := x.(*Const)
		if ok && k.Value.IsNull() {
			continue
		}
		args = append(args, x)
		if ok {
			break
		}
	}
	switch len(args) {
	case 0:
		return NewNull(c.Typ)
	case 1:
		return args[0]
	}
	c.Args = args
	return c
}

// IsFalse reports whether a condition is constant false or NULL, so that no row passes it.
func IsFalse(s Scalar) bool {
	c, ok := s.(*Const)
	return ok && (c.Value.IsNull() || !c.Value.Bool())
}

// IsTrue reports whether a condition is constant true.
func IsTrue(s Scalar) bool {
	c, ok := s.(*Const)
	return ok && !c.Value.IsNull() && c.Value.Bool()
}

// Volatile reports whether s calls a volatile function.
func Volatile(s Scalar) bool {
	found := false
	Walk(s, func(x Scalar) bool {
		if c, ok := x.(*Call); ok && c.Fn.Volatility == builtin.Volatile {
			found = true
		}
		return !found
	})
	return found
}

// IsStrict reports whether s is NULL whenever the columns for which null holds are NULL.
func IsStrict(s Scalar, null func(id int) bool) bool {
	switch s := s.(type) {
	case *Column:
		return null(s.ID)
	case *Compare:
		return IsStrict(s.L, null) || IsStrict(s.R, null)
	case *IntArith:
		return IsStrict(s.L, null) || IsStrict(s.R, null)
	case *FloatArith:
		return IsStrict(s.L, null) || IsStrict(s.R, null)
	case *Cast:
		return IsStrict(s.X, null)
	case *Parse:
		return IsStrict(s.X, null)
	case *Not:
		return IsStrict(s.X, null)
	case *Like:
		return IsStrict(s.X, null) || IsStrict(s.Pattern, null)
	case *InList:
		return IsStrict(s.X, null)
	case *Between:
		return IsStrict(s.X, null)
	case *Call:
		if !s.Fn.Strict {
			return false
		}
		for _, a := range s.Args {
			if IsStrict(a, null) {
				return true
			}
		}
	}
	return false
}

// RejectsNull reports whether condition s is false or NULL whenever the columns for which null holds
// are NULL.
func RejectsNull(s Scalar, null func(id int) bool) bool {
	switch s := s.(type) {
	case *And:
		for _, a := range s.Args {
			if RejectsNull(a, null) {
				return true
			}
		}
		return false
	case *Or:
		for _, a := range s.Args {
			if !RejectsNull(a, null) {
				return false
			}
		}
		return len(s.Args) > 0
	case *IsNull:
		return s.Not && IsStrict(s.X, null)
	case *IsBool:
		return !s.Not && IsStrict(s.X, null)
	case *Quantified:
		return !s.All && IsStrict(s.X, null)
	}
	return IsStrict(s, null)
}
