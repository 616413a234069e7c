package expr

import (
	"slices"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// operands calls f for the place of every direct operand of s.
func operands(s Scalar, f func(*Scalar)) {
	list := func(xs []Scalar) {
		for i := range xs {
			f(&xs[i])
		}
	}
	switch s := s.(type) {
	case *Call:
		list(s.Args)
	case *Cast:
		f(&s.X)
	case *Parse:
		f(&s.X)
	case *And:
		list(s.Args)
	case *Or:
		list(s.Args)
	case *Not:
		f(&s.X)
	case *IsNull:
		f(&s.X)
	case *IsBool:
		f(&s.X)
	case *Compare:
		f(&s.L)
		f(&s.R)
	case *IsDistinct:
		f(&s.L)
		f(&s.R)
	case *RowCompare:
		list(s.L)
		list(s.R)
	case *Between:
		f(&s.X)
		f(&s.Low)
		f(&s.High)
	case *IntArith:
		f(&s.L)
		f(&s.R)
	case *FloatArith:
		f(&s.L)
		f(&s.R)
	case *InList:
		f(&s.X)
		list(s.List)
	case *TupleList:
		list(s.X)
		list(s.List)
	case *Like:
		f(&s.X)
		f(&s.Pattern)
	case *Quantified:
		f(&s.X)
		f(&s.Array) // Cond is over the element, not over this row
	default:
		moreOperands(s, f)
	}
}

func moreOperands(s Scalar, f func(*Scalar)) {
	list := func(xs []Scalar) {
		for i := range xs {
			f(&xs[i])
		}
	}
	optional := func(x *Scalar) {
		if *x != nil {
			f(x)
		}
	}
	switch s := s.(type) {
	case *Case:
		optional(&s.Operand)
		for i := range s.Whens {
			f(&s.Whens[i].Cond)
			f(&s.Whens[i].Then)
		}
		optional(&s.Else)
	case *Coalesce:
		list(s.Args)
	case *NullIf:
		f(&s.X)
		f(&s.Equal)
	case *MinMax:
		list(s.Args)
	case *Array:
		list(s.Elems)
	case *Record:
		list(s.Elems)
		optional(&s.Present)
	case *Field:
		f(&s.X)
	case *Subscript:
		f(&s.X)
		list(s.Index)
	case *Slice:
		f(&s.X)
		for i := range s.Low {
			optional(&s.Low[i])
			optional(&s.High[i])
		}
	case *InSubquery:
		list(s.X)
	case *QuantifiedSubquery:
		f(&s.X) // Cond is over the subquery's row, not over this one
	}
}

// shallow copies a node and its operand lists, so that changing operands of the copy leaves s alone.
func shallow(s Scalar) Scalar {
	cp := func(xs []Scalar) []Scalar { return append([]Scalar(nil), xs...) }
	switch s := s.(type) {
	case *Call:
		c := *s
		c.Args = cp(s.Args)
		return &c
	case *Cast:
		c := *s
		return &c
	case *Parse:
		c := *s
		return &c
	case *And:
		return &And{Args: cp(s.Args)}
	case *Or:
		return &Or{Args: cp(s.Args)}
	case *Not:
		c := *s
		return &c
	case *IsNull:
		c := *s
		return &c
	case *IsBool:
		c := *s
		return &c
	case *Compare:
		c := *s
		return &c
	case *IsDistinct:
		c := *s
		return &c
	case *RowCompare:
		return &RowCompare{Op: s.Op, L: cp(s.L), R: cp(s.R), Classes: s.Classes}
	case *Between:
		c := *s
		return &c
	case *IntArith:
		c := *s
		return &c
	case *FloatArith:
		c := *s
		return &c
	case *InList:
		c := *s
		c.List = cp(s.List)
		return &c
	case *TupleList:
		return &TupleList{X: cp(s.X), List: cp(s.List), Classes: s.Classes}
	case *Like:
		c := *s
		return &c
	case *Quantified:
		c := *s
		return &c
	}
	return shallowMore(s)
}

func shallowMore(s Scalar) Scalar {
	cp := func(xs []Scalar) []Scalar { return append([]Scalar(nil), xs...) }
	switch s := s.(type) {
	case *Case:
		c := *s
		c.Whens = append([]When(nil), s.Whens...)
		return &c
	case *Coalesce:
		return &Coalesce{Args: cp(s.Args), Typ: s.Typ}
	case *NullIf:
		c := *s
		return &c
	case *MinMax:
		return &MinMax{Greatest: s.Greatest, Args: cp(s.Args), Typ: s.Typ}
	case *Array:
		return &Array{Elems: cp(s.Elems), Typ: s.Typ, Nested: s.Nested}
	case *Record:
		c := *s
		c.Elems = cp(s.Elems)
		return &c
	case *Field:
		c := *s
		return &c
	case *Subscript:
		return &Subscript{X: s.X, Index: cp(s.Index), Typ: s.Typ}
	case *Slice:
		return &Slice{X: s.X, Low: cp(s.Low), High: cp(s.High)}
	case *ScalarSubquery:
		c := *s
		return &c
	case *Exists:
		c := *s
		return &c
	case *ArraySubquery:
		c := *s
		return &c
	case *InSubquery:
		c := *s
		c.X = cp(s.X)
		return &c
	case *QuantifiedSubquery:
		c := *s
		return &c
	case *Column:
		c := *s
		return &c
	}
	return s // leaves that no transformation changes: Const, Input, Outer, CaseValue
}

// isLeaf reports whether s has no operands.
func isLeaf(s Scalar) bool {
	switch s.(type) {
	case *Column, *Const, *Input, *Outer, *CaseValue, *ScalarSubquery, *Exists, *ArraySubquery:
		return true
	}
	return false
}

// Walk calls f for s and, where f returns true, for its operands. A subquery's own expressions are
// not visited.
func Walk(s Scalar, f func(Scalar) bool) {
	if s == nil || !f(s) || isLeaf(s) {
		return
	}
	operands(s, func(x *Scalar) { Walk(*x, f) })
}

// Rewrite returns s with f applied bottom-up. Nodes are copied; s is left alone. f may return its
// argument, which it owns.
func Rewrite(s Scalar, f func(Scalar) Scalar) Scalar {
	if s == nil {
		return nil
	}
	c := shallow(s)
	if !isLeaf(c) {
		operands(c, func(x *Scalar) { *x = Rewrite(*x, f) })
	}
	return f(c)
}

// RewriteTop returns s with f applied top-down: where f returns non-nil, that replaces the node
// and its operands are left alone.
func RewriteTop(s Scalar, f func(Scalar) (Scalar, error)) (Scalar, error) {
	if s == nil {
		return nil, nil
	}
	r, err := f(s)
	if err != nil || r != nil {
		return r, err
	}
	c := shallow(s)
	if isLeaf(c) {
		return c, nil
	}
	operands(c, func(x *Scalar) {
		if err == nil {
			*x, err = RewriteTop(*x, f)
		}
	})
	return c, err
}

// Clone returns a copy that shares no node that a rewrite would change.
func Clone(s Scalar) Scalar { return Rewrite(s, func(x Scalar) Scalar { return x }) }

// SubqueryOf returns the subquery of a subquery node, nil for any other.
func SubqueryOf(s Scalar) *Subquery {
	switch s := s.(type) {
	case *ScalarSubquery:
		return s.Sub
	case *Exists:
		return s.Sub
	case *ArraySubquery:
		return s.Sub
	case *InSubquery:
		return s.Sub
	case *QuantifiedSubquery:
		return s.Sub
	}
	return nil
}

// SetSubquery replaces the subquery of a subquery node.
func SetSubquery(s Scalar, sub *Subquery) {
	switch s := s.(type) {
	case *ScalarSubquery:
		s.Sub = sub
	case *Exists:
		s.Sub = sub
	case *ArraySubquery:
		s.Sub = sub
	case *InSubquery:
		s.Sub = sub
	case *QuantifiedSubquery:
		s.Sub = sub
	}
}

// HasSubquery reports whether s contains a subquery.
func HasSubquery(s Scalar) bool {
	found := false
	Walk(s, func(x Scalar) bool {
		found = found || SubqueryOf(x) != nil
		return !found
	})
	return found
}

// HasInput reports whether s contains a literal or parameter whose value each execution brings.
func HasInput(s Scalar) bool {
	found := false
	Walk(s, func(x Scalar) bool {
		_, ok := x.(*Input)
		found = found || ok
		return !found
	})
	return found
}

// Equal reports whether a and b are the same expression. A subquery is equal to itself only.
func Equal(a, b Scalar) bool { return EqualBy(a, b, nil) }

// EqualBy is Equal where same decides which subqueries are equal.
func EqualBy(a, b Scalar, same func(a, b *Subquery) bool) bool {
	return comparison{subqueries: same}.equal(a, b)
}

// Refers reports whether a is the expression b as it is written, so that it stands for b's value: in GROUP BY, ORDER BY and DISTINCT ON, and
// where the grouped expressions are used. That holds for volatile functions too, of which two calls are not Equal. same is as in EqualBy.
func Refers(a, b Scalar, same func(a, b *Subquery) bool) bool {
	return comparison{subqueries: same, volatile: true}.equal(a, b)
}

// Match is Equal where value decides whether an expression in a that is no constant may stand for a constant in pattern.
func Match(a, pattern Scalar, value func(a Scalar, c *Const) bool) bool {
	return comparison{value: value}.equal(a, pattern)
}

// comparison says what is equal beside equal nodes; a nil function: nothing.
type comparison struct {
	subqueries func(a, b *Subquery) bool
	value      func(a Scalar, c *Const) bool
	volatile   bool // calls of volatile functions
}

func (cmp comparison) equal(a, b Scalar) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	if c, ok := b.(*Const); ok && cmp.value != nil {
		if _, ok := a.(*Const); !ok {
			return cmp.value(a, c)
		}
	}
	switch a := a.(type) {
	case *Column:
		b, ok := b.(*Column)
		return ok && a.ID == b.ID && a.Ordinal == b.Ordinal
	case *Outer:
		b, ok := b.(*Outer)
		return ok && a.Level == b.Level && a.Ordinal == b.Ordinal
	case *Const:
		b, ok := b.(*Const)
		return ok && a.Typ == b.Typ && sameConst(a, b)
	case *Input:
		b, ok := b.(*Input)
		return ok && a.Param == b.Param && a.Slot == b.Slot && a.Cursor == b.Cursor && a.Typ == b.Typ
	case *CaseValue:
		_, ok := b.(*CaseValue)
		return ok
	}
	if sub := SubqueryOf(a); sub != nil {
		if other := SubqueryOf(b); cmp.subqueries == nil || other == nil || !cmp.subqueries(sub, other) || !sameSubqueryNode(a, b) {
			return false
		}
	} else if !sameNode(a, b) || !cmp.volatile && isVolatileCall(a) {
		return false
	}
	return slices.EqualFunc(children(a), children(b), cmp.equal)
}

func isVolatileCall(e Scalar) bool {
	c, ok := e.(*Call)
	return ok && c.Fn.Volatility == builtin.Volatile
}

// sameSubqueryNode compares the fields other than the operands and the subquery.
func sameSubqueryNode(a, b Scalar) bool {
	switch a := a.(type) {
	case *ScalarSubquery:
		_, ok := b.(*ScalarSubquery)
		return ok
	case *Exists:
		_, ok := b.(*Exists)
		return ok
	case *ArraySubquery:
		_, ok := b.(*ArraySubquery)
		return ok
	case *InSubquery:
		b, ok := b.(*InSubquery)
		return ok && a.Not == b.Not && slices.Equal(a.Classes, b.Classes)
	case *QuantifiedSubquery:
		b, ok := b.(*QuantifiedSubquery)
		return ok && a.All == b.All && a.Op == b.Op && Equal(a.Cond, b.Cond)
	}
	return false
}

func sameConst(a, b *Const) bool {
	if a.Value.IsNull() || b.Value.IsNull() {
		return a.Value.IsNull() && b.Value.IsNull()
	}
	if a.Typ.OID == types.OIDUnknown {
		return a.Value.Text() == b.Value.Text()
	}
	return types.Compare(a.Value, b.Value, a.Typ) == 0
}

// sameNode compares the fields other than the operands.
func sameNode(a, b Scalar) bool {
	switch a := a.(type) {
	case *Call:
		b, ok := b.(*Call)
		return ok && a.Fn.Same(b.Fn)
	case *Cast:
		b, ok := b.(*Cast)
		return ok && a.Typ == b.Typ
	case *Parse:
		b, ok := b.(*Parse)
		return ok && a.Typ == b.Typ
	case *And:
		_, ok := b.(*And)
		return ok
	case *Or:
		_, ok := b.(*Or)
		return ok
	case *Not:
		_, ok := b.(*Not)
		return ok
	case *IsNull:
		b, ok := b.(*IsNull)
		return ok && a.Not == b.Not
	case *IsBool:
		b, ok := b.(*IsBool)
		return ok && a.Not == b.Not && a.Want == b.Want
	case *Compare:
		b, ok := b.(*Compare)
		return ok && a.Op == b.Op && a.Class == b.Class
	case *IsDistinct:
		b, ok := b.(*IsDistinct)
		return ok && a.Not == b.Not && a.Class == b.Class
	case *RowCompare:
		b, ok := b.(*RowCompare)
		return ok && a.Op == b.Op && len(a.L) == len(b.L)
	case *Between:
		b, ok := b.(*Between)
		return ok && a.Not == b.Not && a.Class == b.Class
	case *IntArith:
		b, ok := b.(*IntArith)
		return ok && a.Op == b.Op && a.Typ == b.Typ
	case *FloatArith:
		b, ok := b.(*FloatArith)
		return ok && a.Op == b.Op
	case *InList:
		b, ok := b.(*InList)
		return ok && a.Not == b.Not && a.Class == b.Class
	case *TupleList:
		b, ok := b.(*TupleList)
		return ok && slices.Equal(a.Classes, b.Classes)
	case *Like:
		b, ok := b.(*Like)
		return ok && a.Not == b.Not
	}
	return sameMoreNode(a, b)
}

func sameMoreNode(a, b Scalar) bool {
	switch a := a.(type) {
	case *Quantified:
		b, ok := b.(*Quantified)
		return ok && a.All == b.All
	case *Case:
		b, ok := b.(*Case)
		return ok && len(a.Whens) == len(b.Whens) && (a.Operand == nil) == (b.Operand == nil) &&
			(a.Else == nil) == (b.Else == nil) && a.Typ == b.Typ
	case *Coalesce:
		_, ok := b.(*Coalesce)
		return ok
	case *NullIf:
		_, ok := b.(*NullIf)
		return ok
	case *MinMax:
		b, ok := b.(*MinMax)
		return ok && a.Greatest == b.Greatest
	case *Array:
		b, ok := b.(*Array)
		return ok && a.Typ == b.Typ && a.Nested == b.Nested
	case *Record:
		b, ok := b.(*Record)
		return ok && a.Typ.Same(b.Typ) && (a.Present == nil) == (b.Present == nil)
	case *Field:
		b, ok := b.(*Field)
		return ok && a.Index == b.Index
	case *Subscript:
		_, ok := b.(*Subscript)
		return ok
	case *Slice:
		b, ok := b.(*Slice)
		return ok && sameOpen(a.Low, b.Low) && sameOpen(a.High, b.High)
	}
	return false
}

// sameOpen reports whether the same bounds of two slices are open.
func sameOpen(a, b []Scalar) bool {
	return slices.EqualFunc(a, b, func(x, y Scalar) bool { return (x == nil) == (y == nil) })
}

// children returns the operands of s.
func children(s Scalar) []Scalar {
	var out []Scalar
	operands(s, func(x *Scalar) { out = append(out, *x) })
	return out
}
