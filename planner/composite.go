package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// compositeFields are the fields of a value of a composite type.
func compositeFields(x expr.Scalar) []expr.Scalar {
	fields := x.Type().Def.Fields
	out := make([]expr.Scalar, len(fields))
	rec, isRecord := expr.Unlabel(x).(*expr.Record)
	for i := range fields {
		if isRecord {
			out[i] = labelled(rec.Elems[i], fields[i].Type)
			continue
		}
		operand := x
		if i > 0 {
			operand = expr.Clone(x)
		}
		out[i] = &expr.Field{X: operand, Index: i, Name: fields[i].Name, Typ: fields[i].Type}
	}
	return out
}

// labelled gives the value of an attribute the attribute's collation.
func labelled(x expr.Scalar, t types.Type) expr.Scalar {
	if have := x.Type(); have.Coll != t.Coll {
		return &expr.Cast{X: x, Typ: have.Collated(t.Coll), Implicit: true}
	}
	return x
}

// compositeField binds (x).name of a value of a composite type.
func compositeField(x expr.Scalar, e *ast.Field) (expr.Scalar, error) {
	d := x.Type().Def
	i := d.FieldNamed(e.Name)
	if rec, ok := x.(*expr.Record); ok && i < 0 && rec.Names != nil {
		if ref, ok := e.X.(*ast.ColumnRef); ok { // a whole row
			return nil, undefinedColumn(ref.Parts[len(ref.Parts)-1], e.Name, startOf(e))
		}
	}
	if i < 0 {
		return nil, pgerror.New(pgerror.UndefinedColumn, "column \"%s\" not found in data type %s", e.Name, builtin.TypeName(x.Type())).At(startOf(e))
	}
	if rec, ok := expr.Unlabel(x).(*expr.Record); ok {
		return labelled(rec.Elems[i], d.Fields[i].Type), nil
	}
	return &expr.Field{X: x, Index: i, Name: e.Name, Typ: d.Fields[i].Type}, nil
}

// valueFor binds an expression whose value is to be one of type t: the fields of ROW() take the types of t's.
func (sc *scope) valueFor(e ast.Expr, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	row, ok := e.(*ast.Row)
	below := t.Underlying()
	if !ok || !below.IsComposite() {
		return sc.expr(e)
	}
	elems, err := sc.rowElems(row, below.Def, how)
	if err != nil {
		return nil, err
	}
	return sc.b.recordAs(expr.NewRecord(elems, nil), below, how, pos)
}

// rowElems binds the fields of ROW(), for a value of type of; nil: for any.
func (sc *scope) rowElems(e *ast.Row, of *types.Defined, how castContext) (elems []expr.Scalar, err error) {
	for _, item := range e.Elems {
		stars, ok, err := sc.rowStar(item)
		if err != nil {
			return nil, err
		}
		if !ok {
			var x expr.Scalar
			if n := len(elems); of != nil && n < len(of.Fields) {
				x, err = sc.valueFor(item, of.Fields[n].Type, how, startOf(item))
			} else {
				x, err = sc.expr(item)
			}
			if err != nil {
				return nil, err
			}
			stars = []expr.Scalar{x}
		}
		elems = append(elems, stars...)
	}
	return elems, nil
}

// rowStar expands t.* and (x).* among the fields of ROW().
func (sc *scope) rowStar(e ast.Expr) (elems []expr.Scalar, ok bool, err error) {
	var targets []target
	switch e := e.(type) {
	case *ast.Star:
		if len(e.Table) == 0 {
			return nil, false, nil
		}
		targets, err = sc.b.expandStar(sc, nil, e)
	case *ast.Field:
		if e.Name != "*" {
			return nil, false, nil
		}
		targets, err = sc.b.expandFields(sc, nil, e)
	default:
		return nil, false, nil
	}
	for i := range targets {
		elems = append(elems, targets[i].e)
	}
	return elems, true, err
}

// recordAs makes a record a value of a composite type, field by field.
func (b *binder) recordAs(rec *expr.Record, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	fields := t.Def.Fields
	cannot := pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", builtin.TypeName(rec.Type()), builtin.TypeName(t)).At(pos)
	switch {
	case len(rec.Elems) < len(fields):
		return nil, cannot.WithDetail("Input has too few columns.")
	case len(rec.Elems) > len(fields):
		return nil, cannot.WithDetail("Input has too many columns.")
	}
	elems := make([]expr.Scalar, len(fields))
	for i, x := range rec.Elems {
		y, err := b.coerce(x, fields[i].Type, how, posOf(x, pos))
		if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.CannotCoerce {
			return nil, cannot.WithDetail("Cannot cast type %s to %s in column %d.", builtin.TypeName(x.Type()), builtin.TypeName(fields[i].Type), i+1)
		}
		if err != nil {
			return nil, err
		}
		elems[i] = y
	}
	out := expr.NewRecord(elems, nil)
	out.Typ, out.Present = t, rec.Present
	return out, nil
}
