package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// array binds ARRAY[…]; want is the type that an enclosing cast requires, or zero. The elements are arrays if one of them is.
func (sc *scope) array(e *ast.Array, want types.Type) (expr.Scalar, error) {
	elems := make([]expr.Scalar, len(e.Elems))
	pos := make([]int, len(e.Elems))
	nested := false
	for i := range e.Elems {
		var x expr.Scalar
		var err error
		inner, isArray := e.Elems[i].(*ast.Array)
		if isArray {
			x, err = sc.array(inner, want)
		} else {
			x, err = sc.expr(e.Elems[i])
		}
		if err != nil {
			return nil, err
		}
		nested = nested || isArray || x.Type().IsArray() && !x.Type().IsVector()
		elems[i], pos[i] = x, startOf(e.Elems[i])
	}
	if want.Valid() {
		return sc.b.arrayOf(elems, pos, want, nested)
	}
	if len(elems) == 0 {
		return nil, pgerror.New(pgerror.IndeterminateDatatype, "cannot determine type of empty array").
			WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].").At(int(e.Pos))
	}
	t, err := sc.b.unify(elems, pos, "ARRAY")
	if err != nil {
		return nil, err
	}
	if nested {
		if !t.IsArray() {
			return nil, pgerror.New(pgerror.UndefinedObject, "could not find element type for data type %s", t).At(int(e.Pos))
		}
		return &expr.Array{Elems: elems, Typ: t, Nested: true}, nil
	}
	at := t.ArrayOf()
	if !at.Valid() {
		return nil, pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", t).At(int(e.Pos))
	}
	return &expr.Array{Elems: elems, Typ: at}, nil
}

// arrayOf casts the elements of ARRAY[…]::t.
func (b *binder) arrayOf(elems []expr.Scalar, pos []int, t types.Type, nested bool) (expr.Scalar, error) {
	elem := t.Elem()
	if nested {
		elem = t
	}
	for i := range elems {
		x, err := b.coerce(elems[i], elem, castExplicit, pos[i])
		if err != nil {
			return nil, err
		}
		elems[i] = x
	}
	return &expr.Array{Elems: elems, Typ: t, Nested: nested}, nil
}

// subscript binds X[i][j]…, whose subscripts in a row are of one array.
func (sc *scope) subscript(e *ast.Subscript) (expr.Scalar, error) {
	steps := []*ast.Subscript{e}
	for first := e; !first.Parens; {
		next, ok := first.X.(*ast.Subscript)
		if !ok {
			break
		}
		first, steps = next, append(steps, next)
	}
	first := steps[len(steps)-1]
	x, err := sc.expr(first.X)
	if err != nil {
		return nil, err
	}
	x = undomain(x)
	t := x.Type()
	if t.OID == types.OIDJSONB {
		for i := len(steps) - 1; i >= 0 && err == nil; i-- {
			x, err = sc.jsonbSubscript(x, steps[i])
		}
		return x, err
	}
	if t.OID == types.OIDHstore {
		return sc.hstoreSubscript(x, steps)
	}
	if _, n := builtin.FixedParts(t); n > 0 {
		return sc.fixedSubscript(x, steps)
	}
	if !t.IsArray() {
		return nil, errNoSubscripts(t, startOf(first.X))
	}
	parts := make([]ast.Step, len(steps))
	for i, s := range steps {
		parts[len(steps)-1-i].Subscript = s
	}
	bounds, err := sc.arrayBounds(parts)
	if err != nil {
		return nil, err
	}
	if !bounds.slice {
		return &expr.Subscript{X: x, Index: bounds.high, Typ: t.Elem()}, nil
	}
	return &expr.Slice{X: x, Low: bounds.low, High: bounds.high}, nil
}

func errNoSubscripts(t types.Type, pos int) error {
	return pgerror.New(pgerror.DatatypeMismatch, "cannot subscript type %s because it does not support subscripting", builtin.TypeName(t)).At(pos)
}

// arrayBounds are the subscripts of an array: indexes in high, or, if one is a slice, bounds, nil where they are open.
type arrayBounds struct {
	slice     bool
	low, high []expr.Scalar
	written   []builtin.ArraySubscript
}

// arrayBounds binds subscripts. Beside slices, an index stands for the bounds from 1 to it.
func (sc *scope) arrayBounds(steps []ast.Step) (*arrayBounds, error) {
	if err := types.CheckNDims(len(steps)); err != nil {
		return nil, err
	}
	out := &arrayBounds{low: make([]expr.Scalar, len(steps)), high: make([]expr.Scalar, len(steps))}
	for _, s := range steps {
		out.slice = out.slice || s.Subscript.Slice
	}
	for i, s := range steps {
		high := s.Subscript.High
		if !s.Subscript.Slice {
			high = s.Subscript.Index
			if out.slice {
				out.low[i] = &expr.Const{Value: types.Int(1), Typ: types.TInt4}
			}
		}
		var err error
		if s.Subscript.Low != nil {
			if out.low[i], err = sc.arrayIndex(s.Subscript.Low); err != nil {
				return nil, err
			}
		}
		if high != nil {
			if out.high[i], err = sc.arrayIndex(high); err != nil {
				return nil, err
			}
		}
		out.written = append(out.written, builtin.ArraySubscript{Low: out.low[i] != nil, High: out.high[i] != nil})
	}
	return out, nil
}

func (sc *scope) arrayIndex(e ast.Expr) (expr.Scalar, error) {
	x, err := sc.expr(e)
	if err != nil {
		return nil, err
	}
	out, err := sc.b.coerce(x, types.TInt4, castAssignment, startOf(e))
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.CannotCoerce {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "array subscript must have type integer").At(startOf(e))
	}
	return out, err
}

// fixedSubscript binds X[i] of a type with a fixed number of parts. The subscripts are from the last to the first.
func (sc *scope) fixedSubscript(x expr.Scalar, steps []*ast.Subscript) (expr.Scalar, error) {
	args := []expr.Scalar{x}
	for _, s := range slices.Backward(steps) {
		if s.Slice {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "slices of fixed-length arrays not implemented")
		}
		i, err := sc.arrayIndex(s.Index)
		if err != nil {
			return nil, err
		}
		args = append(args, i)
	}
	return expr.NewCall(builtin.FixedSubscript(x.Type().Base(), len(steps)), args), nil
}
