package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
)

// unnest makes semi and anti joins of the conditions EXISTS, NOT EXISTS and IN over subqueries, so
// that they are joined once instead of run for every row.
func (p *physical) unnest(r rel) rel {
	if p.b.subs == 0 {
		return r
	}
	mapInputs(r, p.unnest)
	switch r := r.(type) {
	case *filterRel:
		return keep(p.joinEach(r.input, r.conds))
	case *joinRel:
		return p.unnestOn(r)
	}
	return r
}

// joinEach joins the subqueries of those conditions over left that can be joined, and returns the other conditions.
func (p *physical) joinEach(left rel, conds []expr.Scalar) (rel, []expr.Scalar) {
	var rest []expr.Scalar
	for _, c := range conds {
		if j := p.toJoin(left, c); j != nil {
			left = j
		} else {
			rest = append(rest, c)
		}
	}
	return left, rest
}

// unnestOn joins the subqueries of a join's conditions over one side to that side, where the condition drops that side's rows
// only; those over both sides of an inner join to its result.
func (p *physical) unnestOn(j *joinRel) rel {
	left, right := outputSet(j.left), outputSet(j.right)
	var toLeft, toRight, above, on []expr.Scalar
	for _, c := range j.on {
		if !expr.HasSubquery(c) {
			on = append(on, c)
			continue
		}
		switch side := sideOf(used(c), left, right); {
		case side == 'l' && (j.kind == InnerJoin || j.kind == SemiJoin):
			toLeft = append(toLeft, c)
		case side == 'r' && j.kind != FullJoin:
			toRight = append(toRight, c)
		case j.kind == InnerJoin && !j.lateral:
			above = append(above, c)
		default:
			on = append(on, c)
		}
	}
	j.left, toLeft = p.joinEach(j.left, toLeft)
	j.right, toRight = p.joinEach(j.right, toRight)
	out, above := p.joinEach(j, above)
	j.on = slices.Concat(on, toLeft, toRight, above)
	return out
}

// toJoin converts a condition over left to a join; it returns nil if that is not possible.
func (p *physical) toJoin(left rel, c expr.Scalar) *joinRel {
	switch c := c.(type) {
	case *expr.Exists:
		return p.existsJoin(SemiJoin, left, c.Sub)
	case *expr.Not:
		switch x := c.X.(type) {
		case *expr.Exists:
			return p.existsJoin(AntiJoin, left, x.Sub)
		case *expr.InSubquery:
			if !x.Not {
				return p.notInJoin(left, x)
			}
		}
	case *expr.InSubquery:
		if c.Not {
			return p.notInJoin(left, c)
		}
		return p.inJoin(SemiJoin, left, c)
	}
	return nil
}

// existsJoin joins with the subquery's rows: its select list, order and duplicates do not matter.
func (p *physical) existsJoin(kind JoinKind, left rel, sub *expr.Subquery) *joinRel {
	sr := sub.Plan.(*subRel)
	root := stripShape(sr.root)
	pull := puller{free: sr.free, nested: kind == SemiJoin}
	root, ok := pull.up(root)
	if !ok {
		return nil
	}
	on, nested := split(pull.on, func(c expr.Scalar) bool { return !expr.HasSubquery(c) })
	if len(on) == 0 {
		return nil // uncorrelated: one probe answers for all rows
	}
	return &joinRel{kind: kind, left: keep(p.joinEach(left, nested)), right: root, on: on}
}

// stripShape removes steps that do not change whether there is a row.
func stripShape(r rel) rel {
	for {
		switch s := r.(type) {
		case *sortRel:
			r = s.input
		case *projectRel:
			r = s.input
		case *distinctRel:
			r = s.input
		case *windowRel:
			r = s.input
		default:
			return r
		}
	}
}

// inJoin joins on the equality of IN, which in a condition's place may treat NULL as false.
func (p *physical) inJoin(kind JoinKind, left rel, in *expr.InSubquery) *joinRel {
	sr := in.Sub.Plan.(*subRel)
	for _, x := range in.X {
		if expr.HasSubquery(x) || expr.Volatile(x) {
			return nil
		}
	}
	root, on, ok := p.decorrelate(sr.root, sr.free)
	if !ok {
		return nil
	}
	for i, x := range in.X {
		on = append(on, expr.NewCompare(expr.EQ, x, p.b.column(sr.cols[i], 0), in.Classes[i]))
	}
	return &joinRel{kind: kind, left: left, right: root, on: on}
}

// notInJoin makes an anti join of NOT IN where no NULL can come from either side; otherwise NOT IN
// is not the negation of a match.
func (p *physical) notInJoin(left rel, in *expr.InSubquery) *joinRel {
	sr := in.Sub.Plan.(*subRel)
	for i, x := range in.X {
		if !p.neverNull(x, left) || !p.neverNull(p.b.column(sr.cols[i], 0), sr.root) {
			return nil
		}
	}
	return p.inJoin(AntiJoin, left, in)
}

// neverNull reports whether an expression over r's rows cannot be NULL: a NOT NULL column that no
// outer join below r extends.
func (p *physical) neverNull(e expr.Scalar, r rel) bool {
	c, ok := e.(*expr.Column)
	return ok && c.ID >= 0 && p.b.cols[c.ID].notNull && !extended(r, c.ID)
}

// extended reports whether a column comes from the NULL-extended side of an outer join in r, or from a step that this
// function does not analyze.
func extended(r rel, id int) bool {
	switch r := r.(type) {
	case *scanRel:
		return false
	case *joinRel:
		inRight := outputSet(r.right).has(id)
		switch r.kind {
		case FullJoin:
			return true
		case LeftJoin:
			if inRight {
				return true
			}
		}
		if inRight {
			return extended(r.right, id)
		}
		return extended(r.left, id)
	case *filterRel, *sortRel, *limitRel, *distinctRel, *projectRel, *barrierRel:
		return extended(input(r), id)
	}
	return true
}

// hasVolatile reports whether an expression below r is to be evaluated for each pair of rows.
func hasVolatile(r rel) bool {
	found := false
	walkExprs(r, func(e expr.Scalar) { found = found || e != nil && expr.Volatile(e) })
	return found
}

// isPlainScan reports whether r reads one table, so that a join can look its rows up by index as a run for each row does.
func isPlainScan(r rel) bool {
	if f, ok := r.(*filterRel); ok {
		r = f.input
	}
	_, ok := r.(*scanRel)
	return ok
}
