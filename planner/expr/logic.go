package expr

import "github.com/percodb/percodb/sql/types"

type (
	// And is the conjunction of Args under three-valued logic.
	And struct {
		Args []Scalar
		// Test: only whether the conjunction is true matters, so NULL decides as false does.
		Test bool
	}
	// Or is the disjunction of Args under three-valued logic.
	Or struct{ Args []Scalar }
	// Not is the negation of X; NULL stays NULL.
	Not struct{ X Scalar }
	// IsNull is X IS [NOT] NULL. Over a row value it is SQL's: all fields NULL, or with Not none.
	IsNull struct {
		X   Scalar
		Not bool
	}
	// IsBool is X IS [NOT] TRUE or FALSE; UNKNOWN is IsNull.
	IsBool struct {
		X    Scalar
		Want bool
		Not  bool
	}
)

// Type is boolean.
func (*And) Type() types.Type { return types.TBool }

// Type is boolean.
func (*Or) Type() types.Type { return types.TBool }

// Type is boolean.
func (*Not) Type() types.Type { return types.TBool }

// Type is boolean.
func (*IsNull) Type() types.Type { return types.TBool }

// Type is boolean.
func (*IsBool) Type() types.Type { return types.TBool }

// Eval stops at the first false argument.
func (a *And) Eval(ev *Context, in types.Row) (types.Datum, error) {
	null := false
	for _, x := range a.Args {
		d, err := x.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		switch {
		case d.IsNull() && !a.Test:
			null = true
		case d.IsNull() || !d.Bool():
			return d, nil
		}
	}
	if null {
		return types.Null, nil
	}
	return types.Bool(true), nil
}

// holds is Eval for a condition, of which NULL and false are the same.
func (a *And) holds(ev *Context, in types.Row) (bool, error) {
	all := true
	for _, x := range a.Args {
		var holds, null bool
		var err error
		if c, ok := x.(*Compare); ok {
			holds, null, err = c.condition(ev, in)
		} else {
			var d types.Datum
			d, err = x.Eval(ev, in)
			holds, null = !d.IsNull() && d.Bool(), d.IsNull()
		}
		switch {
		case err != nil:
			return false, err
		case null && a.Test:
			return false, nil
		case null:
			all = false // A later argument may still fail.
		case !holds:
			return false, nil
		}
	}
	return all, nil
}

// Eval stops at the first true argument.
func (o *Or) Eval(ev *Context, in types.Row) (types.Datum, error) {
	null := false
	for _, x := range o.Args {
		d, err := x.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		if d.IsNull() {
			null = true
		} else if d.Bool() {
			return d, nil
		}
	}
	if null {
		return types.Null, nil
	}
	return types.Bool(false), nil
}

// Eval negates.
func (n *Not) Eval(ev *Context, in types.Row) (types.Datum, error) {
	d, err := n.X.Eval(ev, in)
	if err != nil || d.IsNull() {
		return types.Null, err
	}
	return types.Bool(!d.Bool()), nil
}

// Eval tests for NULL.
func (n *IsNull) Eval(ev *Context, in types.Row) (types.Datum, error) {
	d, err := eval(n.X, ev, in)
	if err != nil {
		return types.Null, err
	}
	if d.Kind() == types.KindRow {
		for _, f := range d.Record().Fields {
			if f.IsNull() == n.Not {
				return types.Bool(false), nil
			}
		}
		return types.Bool(true), nil
	}
	return types.Bool(d.IsNull() != n.Not), nil
}

// Eval tests for a truth value; the result is never NULL.
func (b *IsBool) Eval(ev *Context, in types.Row) (types.Datum, error) {
	d, err := b.X.Eval(ev, in)
	if err != nil {
		return types.Null, err
	}
	is := !d.IsNull() && d.Bool() == b.Want
	return types.Bool(is != b.Not), nil
}

// NewAnd joins conjuncts, flattening nested ones; nil for none.
func NewAnd(conds ...Scalar) Scalar {
	switch len(conds) {
	case 0:
		return nil
	case 1:
		return conds[0]
	}
	return &And{Args: conds}
}

// Conjuncts appends the parts of a conjunction to dst.
func Conjuncts(dst []Scalar, s Scalar) []Scalar {
	if s == nil {
		return dst
	}
	if a, ok := s.(*And); ok {
		for _, x := range a.Args {
			dst = Conjuncts(dst, x)
		}
		return dst
	}
	return append(dst, s)
}
