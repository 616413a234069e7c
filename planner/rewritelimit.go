package planner

import (
	"github.com/percodb/percodb/planner/expr"
)

// projectLate moves the computation of columns above a LIMIT, so that only the rows that pass are computed; columns that
// the ORDER BY below needs stay there.
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

// gate moves conditions that read no column of the rows below out of a filter and tests them once, before any row is
// read: WHERE 1 = 0 then reads nothing.
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

// isGate reports whether j was made by gate.
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
