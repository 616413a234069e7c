package expr

import "github.com/percodb/percodb/sql/types"

// Quantified is X op ANY|ALL (Array). Cond compares X, seen as CaseValue, with the element, which is column 0 of a
// separate row.
type Quantified struct {
	X, Array Scalar
	Cond     Scalar
	All      bool
	Op       string
}

// Type is boolean.
func (*Quantified) Type() types.Type { return types.TBool }

// Eval tests the elements until one decides. An equality that is a plain comparison reads the
// array directly.
func (q *Quantified) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x, err := eval(q.X, ev, in)
	if err != nil {
		return types.Null, err
	}
	a, err := eval(q.Array, ev, in)
	if err != nil || a.IsNull() {
		return types.Null, err
	}
	elems := a.Array().Elems
	if len(elems) == 0 {
		return types.Bool(q.All), nil
	}
	if c, ok := q.Plain(); ok {
		return q.compare(c, x, elems), nil
	}
	saved := ev.caseValue
	defer func() { ev.caseValue = saved }()
	null := false
	for i := range elems {
		ev.caseValue = x
		d, err := q.Cond.Eval(ev, elems[i:i+1:i+1])
		switch {
		case err != nil:
			return types.Null, err
		case d.IsNull():
			null = true
		case d.Bool() != q.All:
			return d, nil
		}
	}
	if null {
		return types.Null, nil
	}
	return types.Bool(q.All), nil
}

// Plain reports whether Cond compares X with the element as they are, without an error.
func (q *Quantified) Plain() (*Compare, bool) {
	c, ok := q.Cond.(*Compare)
	if !ok {
		return nil, false
	}
	_, lok := c.L.(*CaseValue)
	_, rok := c.R.(*Column)
	return c, lok && rok && c.kind != types.KindRow && c.kind != types.KindArray
}

func (q *Quantified) compare(c *Compare, x types.Datum, elems []types.Datum) types.Datum {
	null := x.IsNull()
	for i := range elems {
		if x.IsNull() || elems[i].IsNull() {
			null = true
			continue
		}
		if c.Op.holds(types.Compare(x, elems[i], c.Class)) != q.All {
			return types.Bool(!q.All)
		}
	}
	if null {
		return types.Null
	}
	return types.Bool(q.All)
}
