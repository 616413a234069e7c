package expr

import (
	"slices"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Fold simplifies one node whose operands are folded already: it evaluates immutable nodes over constants and removes
// what three-valued logic decides. A node whose evaluation fails is kept, so that the error occurs only if the node is
// reached: CASE WHEN false THEN 1/0 END has none.
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
		if n := foldNot(s); n != nil {
			return n
		}
	case *Between:
		if surelyNull(s.X) || surelyNull(s.Low) || surelyNull(s.High) {
			return foldBetween(s)
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
	if isStrict(s) && anyNull(s) {
		// As PostgreSQL does: operands that are not constant are not evaluated, whatever they would raise.
		if !anyConstant(s) {
			return NewNull(s.Type())
		}
		operands(s, func(x *Scalar) {
			if !isConstant(*x) {
				*x = NewNull((*x).Type())
			}
		})
	}
	if !allConst(s) {
		return s
	}
	d, err := s.Eval(&Context{Env: builtin.NewConstantEnv()}, nil)
	if err != nil {
		return s
	}
	return &Const{Value: d, Typ: s.Type()}
}

// isStrict reports whether s is NULL when any of its operands is.
func isStrict(s Scalar) bool {
	switch s := s.(type) {
	case *Call:
		return s.Fn.Strict
	case *Compare, *IntArith, *FloatArith, *Like, *Not:
		return true
	case *Cast:
		return s.Fn == nil || s.Fn.Strict()
	}
	return false
}

func anyNull(s Scalar) bool {
	found := false
	operands(s, func(x *Scalar) { found = found || surelyNull(*x) })
	return found
}

// surelyNull reports whether s, which is folded, is NULL, or a constant expression that is NULL unless it fails.
func surelyNull(s Scalar) bool {
	return isNull(s) || isStrict(s) && anyNull(s) && isConstant(s)
}

// foldNot moves NOT into what it negates, as far as that decides more; nil: it stays.
func foldNot(n *Not) Scalar {
	negated := func(args []Scalar) []Scalar {
		out := make([]Scalar, len(args))
		for i := range args {
			out[i] = Fold(&Not{X: args[i]})
		}
		return out
	}
	switch x := n.X.(type) {
	case *Compare:
		c := *x
		c.Op = x.Op.Negate()
		return &c
	case *Not:
		return x.X
	case *And:
		return foldOr(&Or{Args: negated(x.Args)})
	case *Or:
		return foldAnd(&And{Args: negated(x.Args)})
	}
	return nil
}

// foldBetween divides a BETWEEN one of whose operands is NULL into its comparisons, as PostgreSQL reads it: a comparison with NULL does not
// evaluate the other operand.
func foldBetween(b *Between) Scalar {
	low, high := Fold(NewCompare(GE, b.X, b.Low, b.Class)), Fold(NewCompare(LE, b.X, b.High, b.Class))
	if b.Not {
		return foldOr(&Or{Args: []Scalar{Fold(&Not{X: low}), Fold(&Not{X: high})}})
	}
	return foldAnd(&And{Args: []Scalar{low, high}})
}

// anyConstant reports whether an operand is computed from constants and parameters alone and has not been folded,
// perhaps because it fails: PostgreSQL evaluates it, and its error is the statement's error if s is reached.
func anyConstant(s Scalar) bool {
	found := false
	operands(s, func(x *Scalar) { found = found || !isLeaf(*x) && isConstant(*x) })
	return found
}

func isConstant(s Scalar) bool {
	constant := true
	Walk(s, func(x Scalar) bool {
		switch x := x.(type) {
		case *Const, *Input:
		case *Call:
			constant = constant && x.Fn.Volatility == builtin.Immutable
		case *Cast:
			constant = constant && (x.Fn == nil || x.Fn.Volatility() == builtin.Immutable)
		case *Parse, *Quantified, *InSubquery, *QuantifiedSubquery:
			constant = false
		default:
			constant = constant && !isLeaf(x)
		}
		return constant
	})
	return constant
}

func allConst(s Scalar) bool {
	all := true
	operands(s, func(x *Scalar) {
		_, ok := (*x).(*Const)
		all = all && ok
	})
	return all
}

// foldAnd drops true arguments, and all of them for a false one: as PostgreSQL does, whatever the
// others would raise.
func foldAnd(a *And) Scalar {
	var args []Scalar
	for _, x := range a.Args {
		if inner, ok := x.(*And); ok {
			args = append(args, inner.Args...)
			continue
		}
		if c, ok := x.(*Const); ok && !c.Value.IsNull() {
			if !c.Value.Bool() {
				return x
			}
			continue
		}
		args = appendOneNull(args, x)
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

// foldOr drops false arguments, and all of them for a true one.
func foldOr(o *Or) Scalar {
	var args []Scalar
	for _, x := range o.Args {
		if inner, ok := x.(*Or); ok {
			args = append(args, inner.Args...)
			continue
		}
		if c, ok := x.(*Const); ok && !c.Value.IsNull() {
			if c.Value.Bool() {
				return x
			}
			continue
		}
		args = appendOneNull(args, x)
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

// appendOneNull appends x, unless it is a NULL and there is one already.
func appendOneNull(args []Scalar, x Scalar) []Scalar {
	if isNull(x) {
		for _, a := range args {
			if isNull(a) {
				return args
			}
		}
	}
	return append(args, x)
}

func isNull(s Scalar) bool {
	c, ok := s.(*Const)
	return ok && c.Value.IsNull()
}

// foldCase drops arms that a constant condition rules out.
func foldCase(c *Case) Scalar {
	if c.Operand != nil {
		if isNull(c.Operand) { // It equals nothing.
			return foldCase(&Case{Else: c.Else, Typ: c.Typ})
		}
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

// foldCoalesce removes NULL constants and the arguments after a value.
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

// Immutable reports whether s depends on nothing but its columns: every function that it calls is immutable.
func Immutable(s Scalar) bool {
	stable := false
	Walk(s, func(x Scalar) bool {
		switch x := x.(type) {
		case *Call:
			stable = stable || x.Fn.Volatility != builtin.Immutable
		case *Cast:
			stable = stable || x.Fn != nil && x.Fn.Varies()
		}
		return !stable
	})
	return !stable
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
	case *TupleList:
		return slices.ContainsFunc(s.X, func(x Scalar) bool { return IsStrict(x, null) })
	}
	return IsStrict(s, null)
}

// Mutable reports whether the value of s may depend on more than its operands: on the session, or on when it is evaluated. immutableInput says of
// which types that does not hold for reading texts.
func Mutable(s Scalar, immutableInput func(types.Type) bool) bool {
	found := false
	Walk(s, func(x Scalar) bool {
		switch x := x.(type) {
		case *Call:
			found = found || x.Fn.Volatility != builtin.Immutable
		case *Cast:
			found = found || x.Fn != nil && x.Fn.Varies()
		case *Parse:
			found = found || !immutableInput(x.Typ)
		}
		return !found
	})
	return found
}
