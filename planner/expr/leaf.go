package expr

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

type (
	// Column is a column of the input row. While the planner works, ID names the column and Ordinal
	// is meaningless; in a finished plan Ordinal is its place in the row.
	Column struct {
		ID      int
		Ordinal int
		Typ     types.Type
		Name    string // for EXPLAIN: qualified where that helps
		Pos     int    // where the text names it, for errors; 0: nowhere
	}
	// Outer is a column of an enclosing query's current row. Level 1 is the innermost enclosing
	// query, so that a subplan means the same at any depth.
	Outer struct {
		Level   int
		Ordinal int
		Typ     types.Type
		Name    string
	}
	// Const is a value that is part of the plan.
	Const struct {
		Value types.Datum
		Typ   types.Type
	}
	// Input is a parameter's or slotted literal's value: Context.Inputs[Index]. Index is given when
	// the plan is finished.
	Input struct {
		Index int
		Param int // 1-based parameter number, 0 for a literal
		Slot  int // the literal's, when Param is 0
		// Cursor is the 1-based number of a part of a cursor's position, 0 for a parameter or literal.
		Cursor int
		Typ    types.Type
		Pos    int
	}
	// CaseValue is the value that the enclosing Case or NullIf computed once.
	CaseValue struct{ Typ types.Type }
)

// True, False and their kind are shared constants.
func boolConst(b bool) *Const { return &Const{Value: types.Bool(b), Typ: types.TBool} }

// NewBool makes a boolean constant.
func NewBool(b bool) *Const { return boolConst(b) }

// NewNull makes a NULL of type t.
func NewNull(t types.Type) *Const { return &Const{Typ: t} }

// Type returns the column's type.
func (c *Column) Type() types.Type { return c.Typ }

// Type returns the column's type.
func (o *Outer) Type() types.Type { return o.Typ }

// Type returns the constant's type.
func (c *Const) Type() types.Type { return c.Typ }

// Type returns the type the value is brought in.
func (i *Input) Type() types.Type { return i.Typ }

// Type returns the type of the value computed once.
func (c *CaseValue) Type() types.Type { return c.Typ }

// Eval returns the column's value.
func (c *Column) Eval(_ *Context, in types.Row) (types.Datum, error) { return in[c.Ordinal], nil }

// Eval returns the outer column's value.
func (o *Outer) Eval(ev *Context, _ types.Row) (types.Datum, error) {
	i := len(ev.Outer) - o.Level
	if i < 0 || o.Ordinal >= len(ev.Outer[i]) {
		return types.Null, pgerror.New(pgerror.InternalError, "no outer row at level %d for column %s", o.Level, o.Name)
	}
	return ev.Outer[i][o.Ordinal], nil
}

// Eval returns the constant.
func (c *Const) Eval(*Context, types.Row) (types.Datum, error) { return c.Value, nil }

// Eval returns the execution's value.
func (i *Input) Eval(ev *Context, _ types.Row) (types.Datum, error) { return ev.Inputs[i.Index], nil }

// Eval returns the value computed once.
func (c *CaseValue) Eval(ev *Context, _ types.Row) (types.Datum, error) { return ev.caseValue, nil }

// eval is Eval without the indirect call for the commonest leaves.
func eval(s Scalar, ev *Context, in types.Row) (types.Datum, error) {
	switch s := s.(type) {
	case *Column:
		return in[s.Ordinal], nil
	case *Input:
		return ev.Inputs[s.Index], nil
	case *Const:
		return s.Value, nil
	}
	return s.Eval(ev, in)
}

// EvalBool evaluates a condition; NULL counts as false.
func EvalBool(s Scalar, ev *Context, in types.Row) (bool, error) {
	switch s := s.(type) {
	case *Compare:
		holds, _, err := s.condition(ev, in)
		return holds, err
	case *And:
		return s.holds(ev, in)
	}
	d, err := eval(s, ev, in)
	if err != nil {
		return false, err
	}
	return !d.IsNull() && d.Bool(), nil
}
