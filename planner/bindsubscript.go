package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// jsonbStep binds a subscript of a jsonb as text; index is set if it is an integer.
func (sc *scope) jsonbStep(e *ast.Subscript) (step expr.Scalar, index bool, err error) {
	if e.Slice {
		pos := e.High
		if pos == nil {
			pos = e.Low
		}
		err := pgerror.New(pgerror.DatatypeMismatch, "jsonb subscript does not support slices")
		if pos != nil {
			err = err.At(startOf(pos))
		}
		return nil, false, err
	}
	pos := startOf(e.Index)
	x, err := sc.expr(e.Index)
	if err != nil {
		return nil, false, err
	}
	switch t := x.Type(); {
	case t.OID == types.OIDInt4 || t.OID == types.OIDInt2:
		x, err = sc.b.explicit(x, types.TText, pos)
		return x, true, err
	case t.OID == types.OIDUnknown || t.Category() == types.CategoryString:
		x, err = sc.b.coerce(x, types.TText, castImplicit, pos)
		return x, false, err
	}
	return nil, false, pgerror.New(pgerror.DatatypeMismatch, "subscript type %s is not supported", builtin.TypeName(x.Type())).
		WithHint("jsonb subscript must be coercible to either integer or text.").At(pos)
}

// jsonbSubscript binds X[Index] of a jsonb.
func (sc *scope) jsonbSubscript(x expr.Scalar, e *ast.Subscript) (expr.Scalar, error) {
	step, _, err := sc.jsonbStep(e)
	if err != nil {
		return nil, err
	}
	fn, err := builtin.ResolveFunc("jsonb_extract_path", []types.Type{types.TJSONB, types.TText})
	if err != nil {
		return nil, err
	}
	return expr.NewCall(fn, []expr.Scalar{x, step}), nil
}

// parts returns the subscripts of an assignment's ith column, nil if it is whole.
func parts(a *ast.Assignment, i int) []ast.Step {
	if a.Parts == nil {
		return nil
	}
	return a.Parts[i]
}

// assignTarget is a column to which an assignment is made, or a part of it.
type assignTarget struct {
	col  *catalog.ColumnDescriptor
	part []ast.Step // nil: the whole column
	pos  int
}

// check refuses parts of columns that have none.
func (t *assignTarget) check() error {
	typ := t.col.Type.Underlying()
	for _, s := range t.part {
		switch {
		case s.Subscript == nil:
			return pgerror.New(pgerror.DatatypeMismatch, "cannot assign to field \"%s\" of column \"%s\" because its type %s is not a composite type",
				s.Field, t.col.Name, builtin.TypeName(typ)).At(t.pos)
		case typ.OID != types.OIDJSONB && !typ.IsArray():
			return errNoSubscripts(typ, t.pos)
		}
	}
	return nil
}

// errDefault is the error for DEFAULT as the value of a part.
func (t *assignTarget) errDefault() error {
	return pgerror.New(pgerror.FeatureNotSupported, "cannot set an array element to DEFAULT").At(t.pos)
}

// valueType returns the type of what is assigned.
func (t *assignTarget) valueType() types.Type {
	if t.part == nil {
		return t.col.Type
	}
	whole := t.col.Type.Underlying()
	if whole.OID == types.OIDJSONB {
		return whole
	}
	return builtin.ArrayPartType(whole, slices.ContainsFunc(t.part, func(s ast.Step) bool { return s.Subscript.Slice }))
}

// mismatch is the error for a value whose type cannot be assigned. pos is that of the value.
func (t *assignTarget) mismatch(from types.Type, pos int) error {
	message := "column \"%s\" is of type %s but expression is of type %s"
	if t.part != nil {
		message, pos = "subscripted assignment to \"%s\" requires type %s but expression is of type %s", t.pos
	}
	return pgerror.New(pgerror.DatatypeMismatch, message, t.col.Name, builtin.TypeName(t.valueType()), builtin.TypeName(from)).
		WithHint("You will need to rewrite or cast the expression.").At(pos)
}

// assign coerces a value to the type of the target.
func (b *binder) assign(x expr.Scalar, t *assignTarget, pos int) (expr.Scalar, error) {
	y, err := b.coerce(x, t.valueType(), castAssignment, posOf(x, pos))
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.CannotCoerce {
		return nil, t.mismatch(x.Type(), pos)
	}
	return y, err
}

// assignPart binds the assignment of value to a part of a column whose value is old.
func (b *binder) assignPart(sc *scope, t *assignTarget, old, value expr.Scalar) (expr.Scalar, error) {
	x, err := b.assignInto(sc, t, undomain(old), value)
	if err != nil {
		return nil, err
	}
	return b.coerce(x, t.col.Type, castAssignment, t.pos)
}

// assignInto is assignPart without the constraints of a domain.
func (b *binder) assignInto(sc *scope, t *assignTarget, old, value expr.Scalar) (expr.Scalar, error) {
	whole := t.col.Type.Underlying()
	if whole.OID == types.OIDJSONB {
		return b.assignJSONB(sc, t.part, old, value)
	}
	bounds, err := sc.arrayBounds(t.part)
	if err != nil {
		return nil, err
	}
	args := []expr.Scalar{old, value}
	for i := range bounds.high {
		for _, x := range []expr.Scalar{bounds.low[i], bounds.high[i]} {
			if x != nil {
				args = append(args, x)
			}
		}
	}
	return expr.NewCall(builtin.ArrayAssignment(whole.Base(), bounds.slice, bounds.written), args), nil
}

func (b *binder) assignJSONB(sc *scope, part []ast.Step, old, value expr.Scalar) (expr.Scalar, error) {
	args := []expr.Scalar{old, value}
	array := false
	for i, s := range part {
		step, index, err := sc.jsonbStep(s.Subscript)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			array = index
		}
		args = append(args, step)
	}
	return expr.NewCall(builtin.JSONBAssignment(len(part), array), args), nil
}
