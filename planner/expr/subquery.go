package expr

import (
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

type (
	// ScalarSubquery is (SELECT …) as a value.
	ScalarSubquery struct{ Sub *Subquery }
	// Exists is EXISTS (…).
	Exists struct{ Sub *Subquery }
	// ArraySubquery is ARRAY(SELECT …).
	ArraySubquery struct {
		Sub *Subquery
		Typ types.Type // the array's
	}
	// InSubquery is (X…) [NOT] IN (SELECT …), the pairs compared for equality under Classes, which
	// are also the types of the subquery's columns. An uncorrelated one is probed by hash.
	InSubquery struct {
		X       []Scalar
		Sub     *Subquery
		Classes []types.Type
		Not     bool
	}
	// QuantifiedSubquery is X op ANY|ALL (SELECT …). Cond compares X, seen as CaseValue, with
	// columns 0… of the subquery's row; for a row on the left X is a Record.
	QuantifiedSubquery struct {
		X    Scalar
		Sub  *Subquery
		Cond Scalar // over the subquery's row
		All  bool
		Op   string // for EXPLAIN
	}
)

// Type returns the type of the subquery's column.
func (s *ScalarSubquery) Type() types.Type { return s.Sub.Types[0] }

// Type is boolean.
func (*Exists) Type() types.Type { return types.TBool }

// Type returns the array's type.
func (s *ArraySubquery) Type() types.Type { return s.Typ }

// Type is boolean.
func (*InSubquery) Type() types.Type { return types.TBool }

// Type is boolean.
func (*QuantifiedSubquery) Type() types.Type { return types.TBool }

// Eval runs the subquery.
func (s *ScalarSubquery) Eval(ev *Context, in types.Row) (types.Datum, error) {
	return ev.Subqueries.Scalar(ev, s.Sub, in)
}

// Eval runs the subquery up to its first row.
func (s *Exists) Eval(ev *Context, in types.Row) (types.Datum, error) {
	found, err := ev.Subqueries.Exists(ev, s.Sub, in)
	return types.Bool(found), err
}

// Eval collects the subquery's values.
func (s *ArraySubquery) Eval(ev *Context, in types.Row) (types.Datum, error) {
	rows, err := ev.Subqueries.Rows(ev, s.Sub, in)
	if err != nil {
		return types.Null, err
	}
	elems := make([]types.Datum, len(rows))
	for i, r := range rows {
		elems[i] = r[0]
	}
	if s.Sub.Types[0].IsArray() {
		return builtin.ArrayOfArrays(s.Typ.Elem(), elems)
	}
	return types.NewArray(&types.Array{Elem: s.Typ.Elem(), Elems: elems}), nil
}

// Eval answers as SQL's IN: a miss is NULL where a NULL could have matched.
func (s *InSubquery) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x := ev.push(len(s.X))
	defer ev.pop(len(s.X))
	hasNull := false
	for i, e := range s.X {
		d, err := e.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		x[i] = d
		hasNull = hasNull || d.IsNull()
	}
	if !s.Sub.Correlated && len(s.X) == 1 {
		return s.probe(ev, x)
	}
	rows, err := ev.Subqueries.Rows(ev, s.Sub, in)
	if err != nil {
		return types.Null, err
	}
	null := false
	for _, r := range rows {
		switch equal, unknown := s.rowEqual(x, r); {
		case equal:
			return types.Bool(!s.Not), nil
		case unknown:
			null = true
		}
	}
	if null {
		return types.Null, nil
	}
	return types.Bool(s.Not), nil
}

// probe looks up x in the runner's hash table.
func (s *InSubquery) probe(ev *Context, x types.Row) (types.Datum, error) {
	found, hasNull, empty, err := ev.Subqueries.Contains(ev, s.Sub, x)
	switch {
	case err != nil:
		return types.Null, err
	case empty:
		return types.Bool(s.Not), nil
	case x[0].IsNull():
		return types.Null, nil
	case found:
		return types.Bool(!s.Not), nil
	case hasNull:
		return types.Null, nil
	}
	return types.Bool(s.Not), nil
}

// rowEqual compares two rows of one shape; unknown: no pair differs, but some pair holds a NULL.
func (s *InSubquery) rowEqual(x, r types.Row) (equal, unknown bool) {
	for i := range x {
		if x[i].IsNull() || r[i].IsNull() {
			unknown = true
		} else if types.Compare(x[i], r[i], s.Classes[i]) != 0 {
			return false, false
		}
	}
	return !unknown, unknown
}

// Eval tests the rows until one decides.
func (s *QuantifiedSubquery) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x, err := s.X.Eval(ev, in)
	if err != nil {
		return types.Null, err
	}
	rows, err := ev.Subqueries.Rows(ev, s.Sub, in)
	if err != nil {
		return types.Null, err
	}
	saved := ev.caseValue
	defer func() { ev.caseValue = saved }()
	null := false
	for _, r := range rows {
		ev.caseValue = x
		d, err := s.Cond.Eval(ev, r)
		switch {
		case err != nil:
			return types.Null, err
		case d.IsNull():
			null = true
		case d.Bool() != s.All:
			return d, nil
		}
	}
	if null {
		return types.Null, nil
	}
	return types.Bool(s.All), nil
}
