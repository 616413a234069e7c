package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// rule is one rewriting of the tree. Each leaves a tree that means the same.
type rule struct {
	name  string
	apply func(p *physical, r rel) rel
}

// rules are applied in this order, to the statement's tree and to those of its subqueries.
func rules() []rule {
	return []rule{
		{"inline WITH items", func(p *physical, r rel) rel { return p.inline(r) }},
		{"fold constants", func(p *physical, r rel) rel { return foldTree(r) }},
		{"subqueries to joins", func(p *physical, r rel) rel { return p.unnest(r) }},
		{"LATERAL to joins", func(p *physical, r rel) rel { return p.flattenLateral(r) }},
		{"project late", func(p *physical, r rel) rel { return projectLate(r) }},
		{"gate", func(p *physical, r rel) rel { return p.gate(r) }},
		{"push filters", func(p *physical, r rel) rel { return p.push(r, nil) }},
	}
}

// rewrite applies all rules to a tree and to the trees of the subqueries that stay in its expressions.
func (p *physical) rewrite(r rel) rel {
	for _, rule := range p.rules() {
		r = rule.apply(p, r)
		if p.b.opts.Trace != nil {
			p.b.opts.Trace(rule.name, p.b.describe(r))
		}
		if p.poll(); p.err != nil {
			return r
		}
	}
	p.rewriteSubqueries(r)
	return r
}

func (p *physical) rules() []rule {
	if p.ruleList == nil {
		p.ruleList = rules()
	}
	return p.ruleList
}

// rewriteSubqueries rewrites the trees of subqueries in expressions.
func (p *physical) rewriteSubqueries(r rel) {
	if p.b.subs == 0 {
		return
	}
	walkExprs(r, func(e expr.Scalar) { p.rewriteIn(e) })
}

// rewriteIn rewrites the subqueries of one expression.
func (p *physical) rewriteIn(e expr.Scalar) {
	if p.b.subs == 0 {
		return
	}
	expr.Walk(e, func(x expr.Scalar) bool {
		if sub := expr.SubqueryOf(x); sub != nil {
			sr := sub.Plan.(*subRel)
			if !sr.rewritten {
				sr.rewritten = true
				sr.root = p.rewrite(sr.root)
			}
		}
		return true
	})
}

// walkExprs calls f for every expression of the tree below r.
func walkExprs(r rel, f func(expr.Scalar)) {
	mapExprs(r, func(e expr.Scalar) expr.Scalar { f(e); return e })
	mapInputs(r, func(in rel) rel { walkExprs(in, f); return in })
}

// inline replaces WITH items that are read once.
func (p *physical) inline(r rel) rel {
	if !p.b.withs {
		return r
	}
	return p.b.inlineCTEs(r)
}

// foldTree folds the constants of conditions, so that the later rules detect conditions that are always false.
func foldTree(r rel) rel {
	switch r := r.(type) {
	case *filterRel:
		r.conds = foldConds(r.conds)
	case *joinRel:
		r.on = foldConds(r.on)
	}
	mapInputs(r, foldTree)
	return r
}

// foldConds folds conditions, drops those always true, and splits new conjunctions.
func foldConds(conds []expr.Scalar) []expr.Scalar {
	out := conds[:0]
	for _, c := range conds {
		if hasConst(c) {
			c = expr.Rewrite(c, expr.Fold)
		}
		c = orToIn(c)
		if expr.IsTrue(c) {
			continue
		}
		if expr.IsFalse(c) {
			// No row passes: the other conditions are not evaluated.
			return append(out[:0], c)
		}
		if _, ok := c.(*expr.And); ok {
			parts := expr.Conjuncts(nil, c)
			if i := slices.IndexFunc(parts, expr.IsFalse); i >= 0 { // Not the conjunction as a whole: it has a NULL.
				return append(out[:0], parts[i])
			}
			out = append(out[:len(out):len(out)], parts...)
			continue
		}
		out = append(out, c)
	}
	return out
}

// hasConst reports whether folding could do anything: only over a constant or a NOT.
func hasConst(e expr.Scalar) bool {
	found := false
	expr.Walk(e, func(x expr.Scalar) bool {
		switch x.(type) {
		case *expr.Const, *expr.Not:
			found = true
		}
		return !found
	})
	return found
}

// push moves conditions down the tree, as near to the tables as they may go, and on the way makes
// inner joins of outer joins whose extended rows a condition rejects. conds come from above.
func (p *physical) push(r rel, conds []expr.Scalar) rel {
	switch r := r.(type) {
	case *filterRel:
		return p.push(r.input, append(append([]expr.Scalar(nil), r.conds...), conds...))
	case *scanRel:
		return p.pushScan(r, conds)
	case *joinRel:
		return p.pushJoin(r, conds)
	case *projectRel:
		return p.pushProject(r, conds)
	case *aggRel:
		return p.pushAggregate(r, conds)
	case *distinctRel:
		down, stay := split(conds, func(c expr.Scalar) bool { return used(c).within(setOf(r.on)) && !hazard(c) })
		r.input = p.push(r.input, down)
		return keep(r, stay)
	case *windowRel:
		// A condition over the partition's keys keeps or drops whole partitions.
		others := outputSet(r).minus(setOf(r.partition))
		down, stay := split(conds, func(c expr.Scalar) bool { return !used(c).intersects(others) && !hazard(c) })
		r.input = p.push(r.input, down)
		return keep(r, stay)
	case *projectSetRel:
		makes := outputSet(r.input)
		down, stay := split(conds, func(c expr.Scalar) bool { return !usesMade(c, r, makes) && !hazard(c) })
		r.input = p.push(r.input, down)
		return keep(r, stay)
	case *sortRel:
		r.input = p.push(r.input, conds)
		return r
	case *barrierRel:
		return p.pushBarrier(r, conds)
	case *setOpRel:
		return p.pushSetOp(r, conds)
	}
	mapInputs(r, func(in rel) rel { return p.push(in, nil) })
	return keep(r, conds)
}

func usesMade(c expr.Scalar, r *projectSetRel, below colSet) bool {
	var made colSet
	for i := range r.sets {
		made.add(r.sets[i].id)
	}
	return used(c).intersects(made)
}

// keep puts conditions above r.
func keep(r rel, conds []expr.Scalar) rel {
	if len(conds) == 0 {
		return r
	}
	return &filterRel{input: r, conds: conds}
}

// hazard reports whether a condition must be evaluated exactly where it was written.
func hazard(c expr.Scalar) bool { return expr.Volatile(c) }

func split(conds []expr.Scalar, down func(expr.Scalar) bool) (yes, no []expr.Scalar) {
	for _, c := range conds {
		if down(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

// pushScan gives a table its conditions; those with subqueries stay above, so that the cheap ones
// are tested first, by index or in the scan.
func (p *physical) pushScan(s *scanRel, conds []expr.Scalar) rel {
	var stay []expr.Scalar
	for _, c := range conds {
		if (!expr.HasSubquery(c) || p.keyWorthy(s, c)) && (!s.secured || leakproof(c)) {
			s.conds = append(s.conds, c)
		} else {
			stay = append(stay, c)
		}
	}
	return keep(s, stay)
}

// keyWorthy reports whether a condition with a subquery can serve as an index key: a column compared
// with something that does not read the table.
func (p *physical) keyWorthy(s *scanRel, c expr.Scalar) bool {
	cmp, ok := c.(*expr.Compare)
	return ok && cmp.Op == expr.EQ && len(p.sargs(s, []expr.Scalar{cmp})) > 0
}

// pushProject rewrites conditions over computed columns to conditions over the columns' expressions.
func (p *physical) pushProject(r *projectRel, conds []expr.Scalar) rel {
	var made colSet
	opaque := false
	for i := range r.items {
		made.add(r.items[i].id)
		opaque = opaque || expr.Volatile(r.items[i].e)
	}
	var down, stay []expr.Scalar
	for _, c := range conds {
		switch {
		case hazard(c) || opaque:
			stay = append(stay, c)
		case !used(c).intersects(made):
			down = append(down, c)
		default:
			if x, ok := r.substitute(c); ok {
				down = append(down, x)
			} else {
				stay = append(stay, c)
			}
		}
	}
	r.input = p.push(r.input, down)
	return keep(r, stay)
}

// substitute replaces computed columns by their expressions; false where a subquery reads one, or
// an expression holds a subquery, which would then run twice.
func (r *projectRel) substitute(c expr.Scalar) (expr.Scalar, bool) {
	ok := true
	out := expr.Rewrite(c, func(x expr.Scalar) expr.Scalar {
		if sub := expr.SubqueryOf(x); sub != nil {
			for i := range r.items {
				ok = ok && !sub.Plan.(*subRel).free.has(r.items[i].id)
			}
		}
		col, isCol := x.(*expr.Column)
		if !isCol {
			return x
		}
		for i := range r.items {
			if r.items[i].id == col.ID {
				if expr.HasSubquery(r.items[i].e) {
					ok = false
					return x
				}
				return expr.Clone(r.items[i].e)
			}
		}
		return x
	})
	return out, ok
}

// pushAggregate moves conditions over group keys below the grouping. Without keys there is one row whatever the input,
// so no condition may be moved.
func (p *physical) pushAggregate(r *aggRel, conds []expr.Scalar) rel {
	if r.scalar || len(r.empties) > 0 {
		r.input = p.push(r.input, nil)
		return keep(r, conds)
	}
	keys := &projectRel{}
	var ids colSet
	for _, g := range r.groups {
		ids.add(g.id)
		if c, ok := g.e.(*expr.Column); !ok || c.ID != g.id {
			keys.items = append(keys.items, g)
		}
	}
	var down, stay []expr.Scalar
	for _, c := range conds {
		u := used(c)
		makes := outputSet(r)
		x, ok := c, true
		if len(keys.items) > 0 {
			x, ok = keys.substitute(c)
		}
		own := u.minus(u.minus(makes)) // of the grouping's columns, those read
		if ok && own.within(ids) && !hazard(c) {
			down = append(down, x)
		} else {
			stay = append(stay, c)
		}
	}
	r.input = p.push(r.input, down)
	return keep(r, stay)
}

// pushSetOp filters both sides.
func (p *physical) pushSetOp(r *setOpRel, conds []expr.Scalar) rel {
	left, right := &projectRel{}, &projectRel{}
	for i, id := range r.cols {
		left.items = append(left.items, projection{id: id, e: p.b.column(r.leftCols[i], 0)})
		right.items = append(right.items, projection{id: id, e: p.b.column(r.rightCols[i], 0)})
	}
	var l, rr, stay []expr.Scalar
	for _, c := range conds {
		x, xok := left.substitute(c)
		y, yok := right.substitute(c)
		if xok && yok && !hazard(c) && !expr.HasSubquery(c) {
			l, rr = append(l, x), append(rr, y)
		} else {
			stay = append(stay, c)
		}
	}
	r.left, r.right = p.push(r.left, l), p.push(r.right, rr)
	return keep(r, stay)
}

// pushJoin distributes conditions over a join's sides.
func (p *physical) pushJoin(j *joinRel, conds []expr.Scalar) rel {
	left, right := outputSet(j.left), outputSet(j.right)
	p.simplifyOuter(j, conds, left, right)
	// simplifyOuter may have swapped the sides.
	left, right = outputSet(j.left), outputSet(j.right)
	var toLeft, toRight, on, stay []expr.Scalar
	for _, c := range conds {
		u := used(c)
		switch side := sideOf(u, left, right); {
		case hazard(c):
			stay = append(stay, c)
		case side == 'l' && j.kind != FullJoin:
			toLeft = append(toLeft, c)
		case side == 'r' && j.kind == InnerJoin:
			toRight = append(toRight, c)
		case j.kind == InnerJoin && !expr.HasSubquery(c):
			on = append(on, c)
		default:
			stay = append(stay, c)
		}
	}
	for _, c := range j.on {
		side := sideOf(used(c), left, right)
		switch {
		case hazard(c):
			on = append(on, c)
		case side == 'l' && (j.kind == InnerJoin || j.kind == SemiJoin):
			toLeft = append(toLeft, c)
		case side == 'r' && j.kind != FullJoin:
			toRight = append(toRight, c)
		default:
			on = append(on, c)
		}
	}
	j.on = on
	if j.kind == InnerJoin || j.kind == SemiJoin {
		p.narrow(j.left, on)
	}
	if j.kind == InnerJoin || j.kind == SemiJoin || j.kind == LeftJoin {
		p.narrow(j.right, on)
	}
	if j.kind == InnerJoin && !j.lateral {
		p.propagate(j, &toLeft, &toRight, left, right)
	}
	j.left, j.right = p.push(j.left, toLeft), p.push(j.right, toRight)
	return keep(j, stay)
}

// sideOf reports whether columns come from the left side alone ('l'), the right alone ('r'), both or neither (0). A
// condition over neither belongs to no side.
func sideOf(u, left, right colSet) byte {
	l, r := u.intersects(left), u.intersects(right)
	switch {
	case l && !r:
		return 'l'
	case r && !l:
		return 'r'
	}
	return 0
}

// simplifyOuter turns an outer join into a narrower one where a condition above rejects the rows
// that it extends with NULLs.
func (p *physical) simplifyOuter(j *joinRel, conds []expr.Scalar, left, right colSet) {
	if j.kind != LeftJoin && j.kind != FullJoin {
		return
	}
	rejects := func(side colSet) bool {
		for _, c := range conds {
			if expr.RejectsNull(c, side.has) {
				return true
			}
		}
		return false
	}
	switch {
	case j.kind == LeftJoin && rejects(right):
		j.kind = InnerJoin
	case j.kind == FullJoin:
		l, r := rejects(left), rejects(right)
		switch {
		case l && r:
			j.kind = InnerJoin
		case l:
			j.kind = LeftJoin
		case r:
			j.kind = LeftJoin
			j.left, j.right = j.right, j.left
		}
	}
}

// narrow is simplifyOuter for the joins of which a side of a join consists: its rows that the conditions reject match nothing.
func (p *physical) narrow(r rel, conds []expr.Scalar) {
	switch r := r.(type) {
	case *filterRel:
		p.narrow(r.input, conds)
	case *joinRel:
		p.simplifyOuter(r, conds, outputSet(r.left), outputSet(r.right))
		if r.kind != FullJoin {
			p.narrow(r.left, conds)
		}
		if r.kind == InnerJoin {
			p.narrow(r.right, conds)
		}
	}
}

// propagate carries a constant over an equality: a.x = b.y and a.x = 5 make b.y = 5, which may be an
// index key there.
func (p *physical) propagate(j *joinRel, toLeft, toRight *[]expr.Scalar, left, right colSet) {
	for _, c := range j.on {
		eq, ok := c.(*expr.Compare)
		if !ok || eq.Op != expr.EQ {
			continue
		}
		l, lok := eq.L.(*expr.Column)
		r, rok := eq.R.(*expr.Column)
		if !lok || !rok || l.ID < 0 || r.ID < 0 {
			continue
		}
		if left.has(r.ID) {
			l, r = r, l
		}
		if !left.has(l.ID) || !right.has(r.ID) {
			continue
		}
		derive(*toLeft, toRight, l, r, eq.Class)
		derive(*toRight, toLeft, r, l, eq.Class)
	}
}

// derive copies the constants that from is equal to, over to the column to.
func derive(known []expr.Scalar, dst *[]expr.Scalar, from, to *expr.Column, class types.Type) {
	for _, c := range known {
		eq, ok := c.(*expr.Compare)
		if !ok || eq.Op != expr.EQ || eq.Class != class {
			continue
		}
		var value expr.Scalar
		if col, ok := eq.L.(*expr.Column); ok && col.ID == from.ID {
			value = eq.R
		} else if col, ok := eq.R.(*expr.Column); ok && col.ID == from.ID {
			value = eq.L
		}
		switch value.(type) {
		case *expr.Const, *expr.Input:
		default:
			continue
		}
		x := expr.NewCompare(expr.EQ, expr.Clone(to), value, class)
		if !among(*dst, x) {
			*dst = append(*dst, x)
		}
	}
}
