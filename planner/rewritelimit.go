package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// projectLate moves the computation of columns above a LIMIT, so that only the rows that pass are
// computed; what the ORDER BY below needs stays there.
func projectLate(r rel) rel {
	mapInputs(r, projectLate)
	l, ok := r.(*limitRel)
	if !ok {
		return r
	}
	place := &l.input
	var keys colSet
	if s, ok := l.input.(*sortRel); ok {
		place = &s.input
		for _, k := range s.keys {
			addUsed(k.Expr, &keys)
		}
	}
	p, ok := (*place).(*projectRel)
	if !ok {
		return r
	}
	late := &projectRel{input: l}
	var early []projection
	for _, it := range p.items {
		if keys.has(it.id) {
			early = append(early, it)
		} else {
			late.items = append(late.items, it)
		}
	}
	if len(late.items) == 0 {
		return r
	}
	if p.items = early; len(early) == 0 {
		*place = p.input
	}
	return late
}

// gate takes conditions that read no column of the rows below out of a filter and tests them once,
// before anything is read: WHERE 1 = 0 then reads nothing.
func (p *physical) gate(r rel) rel {
	mapInputs(r, p.gate)
	f, ok := r.(*filterRel)
	if !ok {
		return r
	}
	if _, trivial := f.input.(*valuesRel); trivial {
		return r
	}
	makes := outputSet(f.input)
	gates, rest := split(f.conds, func(c expr.Scalar) bool {
		if _, constant := c.(*expr.Const); constant || hazard(c) {
			return false
		}
		return !used(c).intersects(makes)
	})
	if len(gates) == 0 {
		return r
	}
	one := &valuesRel{rows: [][]expr.Scalar{{}}}
	return &joinRel{kind: InnerJoin, lateral: true, left: &filterRel{input: one, conds: gates}, right: keep(f.input, rest)}
}

// isGate reports whether j is what gate makes.
func isGate(j *joinRel) bool {
	if !j.lateral || j.kind != InnerJoin || len(j.on) > 0 {
		return false
	}
	f, ok := j.left.(*filterRel)
	if !ok {
		return false
	}
	v, ok := f.input.(*valuesRel)
	return ok && len(v.cols) == 0 && len(v.rows) == 1
}

// orToIn makes a list of equalities over one column an IN, which an index can serve.
func orToIn(c expr.Scalar) expr.Scalar {
	or, ok := c.(*expr.Or)
	if !ok {
		return c
	}
	var x *expr.Column
	var class types.Type
	var list []expr.Scalar
	for _, a := range or.Args {
		col, cl, values := equalities(a)
		if col == nil || (x != nil && (x.ID != col.ID || class != cl)) {
			return c
		}
		x, class = col, cl
		list = append(list, values...)
	}
	return expr.NewInList(x, list, class, false)
}

// equalities reads col = value and col IN (values) over constants.
func equalities(e expr.Scalar) (*expr.Column, types.Type, []expr.Scalar) {
	switch e := e.(type) {
	case *expr.Compare:
		if e.Op != expr.EQ {
			break
		}
		if col, ok := e.L.(*expr.Column); ok && col.ID >= 0 && fixedValue(e.R) {
			return col, e.Class, []expr.Scalar{e.R}
		}
		if col, ok := e.R.(*expr.Column); ok && col.ID >= 0 && fixedValue(e.L) {
			return col, e.Class, []expr.Scalar{e.L}
		}
	case *expr.InList:
		col, ok := e.X.(*expr.Column)
		if !ok || e.Not || col.ID < 0 {
			break
		}
		for _, v := range e.List {
			if !fixedValue(v) {
				return nil, types.Type{}, nil
			}
		}
		return col, e.Class, e.List
	}
	return nil, types.Type{}, nil
}

// fixedValue reports whether e is one value for the whole execution.
func fixedValue(e expr.Scalar) bool {
	switch e.(type) {
	case *expr.Const, *expr.Input:
		return true
	}
	return false
}
