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

// hstoreKey binds the subscript of an hstore, of which there is one.
func (sc *scope) hstoreKey(first *ast.Subscript, n int) (expr.Scalar, error) {
	if n > 1 || first.Slice {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "hstore allows only one subscript").At(int(first.Pos))
	}
	key, err := sc.expr(first.Index)
	if err != nil {
		return nil, err
	}
	return sc.b.coerce(key, types.TText, castAssignment, startOf(first.Index))
}

// hstoreSubscript binds X[key] of an hstore.
func (sc *scope) hstoreSubscript(x expr.Scalar, steps []*ast.Subscript) (expr.Scalar, error) {
	key, err := sc.hstoreKey(steps[0], len(steps))
	if err != nil {
		return nil, err
	}
	fn, err := builtin.HstoreFetch()
	if err != nil {
		return nil, err
	}
	return expr.NewCall(fn, []expr.Scalar{x, key}), nil
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

// leads returns how many subscripts a path to a part begins with.
func leads(path []ast.Step) int {
	n := slices.IndexFunc(path, func(s ast.Step) bool { return s.Subscript == nil })
	if n < 0 {
		return len(path)
	}
	return n
}

// sliced reports whether one of the subscripts is a slice.
func sliced(path []ast.Step) bool {
	return slices.ContainsFunc(path, func(s ast.Step) bool { return s.Subscript.Slice })
}

// step returns the type of the part that the path's first steps lead to, and the steps behind these.
func (t *assignTarget) step(typ types.Type, path []ast.Step) (types.Type, []ast.Step, error) {
	whole := typ.Underlying()
	switch n := leads(path); {
	case n > 0 && whole.OID == types.OIDJSONB && n == len(path):
		return whole, nil, nil
	case n > 0 && whole.OID == types.OIDHstore && n == len(path):
		return types.TText, nil, nil
	case n > 0 && assignableParts(whole):
		if sliced(path[:n]) {
			return whole, path[n:], nil
		}
		part, _ := builtin.FixedParts(whole)
		return part, path[n:], nil
	case n > 0 && whole.IsArray():
		return builtin.ArrayPartType(whole, sliced(path[:n])), path[n:], nil
	case n > 0 && whole.OID != types.OIDJSONB:
		return typ, nil, errNoSubscripts(whole, t.pos)
	}
	field := path[leads(path)].Field
	if !whole.IsComposite() {
		return typ, nil, pgerror.New(pgerror.DatatypeMismatch, "cannot assign to field \"%s\" of column \"%s\" because its type %s is not a composite type",
			field, t.col.Name, builtin.TypeName(typ)).At(t.pos)
	}
	i := whole.Def.FieldNamed(field)
	if i < 0 {
		return typ, nil, pgerror.New(pgerror.UndefinedColumn, "cannot assign to field \"%s\" of column \"%s\" because there is no such column in data type %s",
			field, t.col.Name, builtin.TypeName(typ)).At(t.pos)
	}
	return whole.Def.Fields[i].Type, path[1:], nil
}

// assignableParts reports whether the parts of a type's fixed number can be assigned.
func assignableParts(t types.Type) bool {
	_, n := builtin.FixedParts(t)
	return n > 0 && t.OID != types.OIDName
}

// check refuses parts of columns that have none.
func (t *assignTarget) check() (err error) {
	typ, path := t.col.Type, t.part
	for len(path) > 0 && err == nil {
		typ, path, err = t.step(typ, path)
	}
	return err
}

// errDefault is the error for DEFAULT as the value of a part.
func (t *assignTarget) errDefault() error {
	what := "an array element"
	if t.part[0].Subscript == nil {
		what = "a subfield"
	}
	return pgerror.New(pgerror.FeatureNotSupported, "cannot set %s to DEFAULT", what).At(t.pos)
}

// valueType returns the type of what is assigned. The target has been checked.
func (t *assignTarget) valueType() types.Type {
	typ, path := t.col.Type, t.part
	for len(path) > 0 {
		typ, path, _ = t.step(typ, path)
	}
	return typ
}

// mismatch is the error for a value whose type cannot be assigned. pos is that of the value.
func (t *assignTarget) mismatch(from types.Type, pos int) error {
	message, name := "column \"%s\" is of type %s but expression is of type %s", t.col.Name
	if t.part != nil {
		last := t.part[len(t.part)-1]
		if message, pos = "subscripted assignment to \"%s\" requires type %s but expression is of type %s", t.pos; last.Subscript == nil {
			message, name = "subfield \"%s\" is of type %s but expression is of type %s", last.Field
		} else if i := lastField(t.part); i >= 0 {
			name = t.part[i].Field
		}
	}
	return pgerror.New(pgerror.DatatypeMismatch, message, name, builtin.TypeName(t.valueType()), builtin.TypeName(from)).
		WithHint("You will need to rewrite or cast the expression.").At(pos)
}

// lastField returns the index of the last field of a path, -1 without one.
func lastField(path []ast.Step) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Subscript == nil {
			return i
		}
	}
	return -1
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
	return b.assignAt(sc, t, t.col.Type, t.part, old, value)
}

// assignAt returns old, of type typ, with another value at the end of a path.
func (b *binder) assignAt(sc *scope, t *assignTarget, typ types.Type, path []ast.Step, old, value expr.Scalar) (expr.Scalar, error) {
	if len(path) == 0 {
		return value, nil
	}
	inner, rest, err := t.step(typ, path)
	if err != nil {
		return nil, err
	}
	var x expr.Scalar
	if path[0].Subscript == nil {
		x, err = b.assignField(sc, t, typ, path, undomain(old), value)
	} else {
		x, err = b.assignElement(sc, t, typ, path[:len(path)-len(rest)], undomain(old), func(element expr.Scalar) (expr.Scalar, error) {
			return b.assignAt(sc, t, inner, rest, element, value)
		})
	}
	if err != nil {
		return nil, err
	}
	return b.coerce(x, typ, castAssignment, t.pos)
}

// assignField is assignAt for a path that begins with a field.
func (b *binder) assignField(sc *scope, t *assignTarget, typ types.Type, path []ast.Step, old, value expr.Scalar) (expr.Scalar, error) {
	whole := typ.Underlying()
	i := whole.Def.FieldNamed(path[0].Field)
	f := whole.Def.Fields[i]
	if len(path) > 1 {
		var err error
		field := &expr.Field{X: expr.Clone(old), Index: i, Name: f.Name, Typ: f.Type}
		if value, err = b.assignAt(sc, t, f.Type, path[1:], field, value); err != nil {
			return nil, err
		}
	}
	return expr.NewCall(builtin.FieldAssignment(whole.Base(), i), []expr.Scalar{old, value}), nil
}

// assignElement is assignAt for subscripts; assign makes the new value of the part that they lead to, of its old one.
func (b *binder) assignElement(sc *scope, t *assignTarget, typ types.Type, part []ast.Step, old expr.Scalar, assign func(element expr.Scalar) (expr.Scalar, error)) (expr.Scalar, error) {
	whole := typ.Underlying()
	if whole.OID == types.OIDJSONB {
		value, err := assign(nil)
		if err != nil {
			return nil, err
		}
		return b.assignJSONB(sc, part, old, value)
	}
	if whole.OID == types.OIDHstore {
		value, err := assign(expr.NewNull(types.TText))
		if err != nil {
			return nil, err
		}
		return b.assignHstore(sc, part, old, value)
	}
	if assignableParts(whole) {
		return b.assignFixed(sc, whole, part, old, assign)
	}
	bounds, err := sc.arrayBounds(part)
	if err != nil {
		return nil, err
	}
	element := &expr.Subscript{X: expr.Clone(old), Typ: whole.Elem()}
	for _, x := range bounds.high {
		if x != nil {
			element.Index = append(element.Index, expr.Clone(x))
		}
	}
	value, err := assign(element)
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

// assignFixed is assignElement for a type with a fixed number of parts.
func (b *binder) assignFixed(sc *scope, whole types.Type, part []ast.Step, old expr.Scalar, assign func(element expr.Scalar) (expr.Scalar, error)) (expr.Scalar, error) {
	index := expr.Scalar(&expr.Const{Value: types.Int(0), Typ: types.TInt4})
	if first := part[0].Subscript; !first.Slice {
		var err error
		if index, err = sc.arrayIndex(first.Index); err != nil {
			return nil, err
		}
	}
	element := expr.NewCall(builtin.FixedSubscript(whole.Base(), 1), []expr.Scalar{expr.Clone(old), expr.Clone(index)})
	value, err := assign(element)
	if err != nil {
		return nil, err
	}
	return expr.NewCall(builtin.FixedAssignment(whole.Base(), sliced(part), len(part) > 1), []expr.Scalar{old, value, index}), nil
}

func (b *binder) assignHstore(sc *scope, part []ast.Step, old, value expr.Scalar) (expr.Scalar, error) {
	key, err := sc.hstoreKey(part[0].Subscript, len(part))
	if err != nil {
		return nil, err
	}
	return expr.NewCall(builtin.HstoreAssignment(), []expr.Scalar{old, value, key}), nil
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
