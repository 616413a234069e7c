package expr

import (
	"strconv"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

type (
	// Case is CASE. With Operand, each Cond compares a CaseValue with something.
	Case struct {
		Operand Scalar // nil: searched
		Whens   []When
		Else    Scalar // nil: NULL
		Typ     types.Type
	}
	// Coalesce is the first of Args that is not NULL.
	Coalesce struct {
		Args []Scalar
		Typ  types.Type
	}
	// NullIf is X, or NULL where Equal holds; Equal sees X as CaseValue.
	NullIf struct {
		X     Scalar
		Equal Scalar
	}
	// MinMax is GREATEST or LEAST of Args; NULLs are left out.
	MinMax struct {
		Greatest bool
		Args     []Scalar
		Typ      types.Type
	}
	// Array is ARRAY[…].
	Array struct {
		Elems  []Scalar
		Typ    types.Type // the array's
		Nested bool       // Elems are arrays of Typ
	}
	// Record is ROW(…).
	Record struct {
		Elems []Scalar
		Names []string   // of a whole-row reference's columns; nil otherwise
		Typ   types.Type // a composite type of as many fields, or record
		// Present is NULL where the whole record is, as that of a table in an outer join; nil: it never is.
		Present Scalar
		types   []types.Type
	}
	// Field is a field of a record whose shape is known.
	Field struct {
		X     Scalar
		Index int
		Name  string
		Typ   types.Type
	}
)

// When is an arm of a Case.
type When struct{ Cond, Then Scalar }

// NewRecord makes a Record.
func NewRecord(elems []Scalar, names []string) *Record {
	r := &Record{Elems: elems, Names: names, Typ: types.TRecord, types: make([]types.Type, len(elems))}
	for i, x := range elems {
		r.types[i] = x.Type()
	}
	return r
}

// FieldName returns the name of a field: f1, f2 and so on unless it has one.
func (r *Record) FieldName(i int) string {
	if r.Names != nil {
		return r.Names[i]
	}
	return "f" + strconv.Itoa(i+1)
}

// Type returns the common type of the arms.
func (c *Case) Type() types.Type { return c.Typ }

// Type returns the common type of the arguments.
func (c *Coalesce) Type() types.Type { return c.Typ }

// Type returns X's type.
func (n *NullIf) Type() types.Type { return n.X.Type() }

// Type returns the common type of the arguments.
func (m *MinMax) Type() types.Type { return m.Typ }

// Type returns the array's type.
func (a *Array) Type() types.Type { return a.Typ }

// Type is record, or the composite type.
func (r *Record) Type() types.Type { return r.Typ }

// Type returns the field's type.
func (f *Field) Type() types.Type { return f.Typ }

// Eval evaluates arms until one holds; later ones are not evaluated.
func (c *Case) Eval(ev *Context, in types.Row) (types.Datum, error) {
	if c.Operand != nil {
		v, err := c.Operand.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		saved := ev.caseValue
		defer func() { ev.caseValue = saved }()
		return c.arms(ev, in, &v)
	}
	return c.arms(ev, in, nil)
}

func (c *Case) arms(ev *Context, in types.Row, operand *types.Datum) (types.Datum, error) {
	for i := range c.Whens {
		if operand != nil {
			ev.caseValue = *operand
		}
		ok, err := EvalBool(c.Whens[i].Cond, ev, in)
		if err != nil {
			return types.Null, err
		}
		if ok {
			return c.Whens[i].Then.Eval(ev, in)
		}
	}
	if c.Else == nil {
		return types.Null, nil
	}
	return c.Else.Eval(ev, in)
}

// Eval stops at the first value.
func (c *Coalesce) Eval(ev *Context, in types.Row) (types.Datum, error) {
	for _, x := range c.Args {
		d, err := x.Eval(ev, in)
		if err != nil || !d.IsNull() {
			return d, err
		}
	}
	return types.Null, nil
}

// Eval computes X once.
func (n *NullIf) Eval(ev *Context, in types.Row) (types.Datum, error) {
	v, err := n.X.Eval(ev, in)
	if err != nil {
		return types.Null, err
	}
	saved := ev.caseValue
	ev.caseValue = v
	equal, err := EvalBool(n.Equal, ev, in)
	ev.caseValue = saved
	if err != nil || equal {
		return types.Null, err
	}
	return v, nil
}

// Eval evaluates all arguments.
func (m *MinMax) Eval(ev *Context, in types.Row) (types.Datum, error) {
	best := types.Null
	for _, x := range m.Args {
		d, err := x.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		if d.IsNull() {
			continue
		}
		if best.IsNull() {
			best = d
			continue
		}
		c, err := compareDatums(d, best, m.Typ, false)
		if err != nil {
			return types.Null, err
		}
		if (c > 0) == m.Greatest && c != 0 {
			best = d
		}
	}
	return best, nil
}

// Eval builds a new array.
func (a *Array) Eval(ev *Context, in types.Row) (types.Datum, error) {
	elems := make([]types.Datum, len(a.Elems))
	for i, x := range a.Elems {
		d, err := x.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		elems[i] = d
	}
	if a.Nested {
		return types.NestArrays(a.Typ.Elem(), elems)
	}
	return types.NewArray(&types.Array{Elem: a.Typ.Elem(), Elems: elems}), nil
}

// Eval builds a new record.
func (r *Record) Eval(ev *Context, in types.Row) (types.Datum, error) {
	if r.Present != nil {
		if d, err := r.Present.Eval(ev, in); err != nil || d.IsNull() {
			return types.Null, err
		}
	}
	row := make(types.Row, len(r.Elems))
	for i, x := range r.Elems {
		d, err := x.Eval(ev, in)
		if err != nil {
			return types.Null, err
		}
		row[i] = d
	}
	if r.Typ.Def != nil {
		return r.Typ.Def.Row(row), nil
	}
	return types.NewNamedRecord(r.types, r.Names, row), nil
}

// Eval takes the field; of NULL it is NULL.
func (f *Field) Eval(ev *Context, in types.Row) (types.Datum, error) {
	d, err := f.X.Eval(ev, in)
	if err != nil || d.IsNull() {
		return types.Null, err
	}
	rec := d.Record().Fields
	if f.Index >= len(rec) {
		return types.Null, pgerror.New(pgerror.InternalError, "record has %d fields, field %d wanted", len(rec), f.Index+1)
	}
	return rec[f.Index], nil
}
