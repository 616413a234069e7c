package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
)

// flattenLateral makes plain joins of LATERAL ones whose right side names the left one's columns in conditions and in the values that it
// computes only.
func (p *physical) flattenLateral(r rel) rel {
	if !p.b.laterals {
		return r
	}
	mapInputs(r, p.flattenLateral)
	j, ok := r.(*joinRel)
	if !ok || isGate(j) {
		return r
	}
	if out := flattenRow(j); out != nil {
		return out
	}
	if out := rotate(j); out != nil {
		return p.flattenLateral(out)
	}
	if !j.lateral || j.kind != InnerJoin && j.kind != LeftJoin {
		return r
	}
	pull := puller{free: freeColumns(j.right), hoist: j.kind == InnerJoin}
	right, ok := pull.up(j.right)
	if !ok || len(pull.on) == 0 && len(pull.hoisted) == 0 || hasVolatile(right) || j.kind == LeftJoin && !isPlainScan(right) {
		return r
	}
	on, ok := pull.inlineAll(j.on)
	if !ok {
		return r
	}
	var out rel
	if j.kind == InnerJoin { // The right side's conditions are tested before those of the join and above it, as they were.
		out = keep(&joinRel{kind: j.kind, left: j.left, right: right}, append(pull.on, on...))
	} else {
		out = &joinRel{kind: j.kind, left: j.left, right: right, on: append(on, pull.on...)}
	}
	for _, it := range pull.hoisted { // One may read another.
		out = &projectRel{input: out, items: []projection{it}}
	}
	return out
}

// rotate takes out of the right side of a LATERAL join what does not depend on the left side: A, LATERAL (B JOIN f(A) ON c) becomes
// (A, LATERAL f(A)) JOIN B ON c, so that B is read once and not for each row of A. nil: it is another join.
func rotate(j *joinRel) rel {
	if !j.lateral || j.kind != InnerJoin || hasVolatile(j.right) {
		return nil
	}
	right, conds := j.right, j.on
	if f, ok := right.(*filterRel); ok {
		right, conds = f.input, append(f.conds[:len(f.conds):len(f.conds)], conds...)
	}
	in, ok := right.(*joinRel)
	if !ok || in.kind != InnerJoin || in.lateral || isGate(in) {
		return nil
	}
	makes := outputSet(j.left)
	own, dependent := in.left, in.right
	if freeColumns(own).intersects(makes) {
		own, dependent = dependent, own
	}
	if freeColumns(own).intersects(makes) || !freeColumns(dependent).intersects(makes) {
		return nil
	}
	left := &joinRel{kind: InnerJoin, left: j.left, right: dependent, lateral: true}
	return keep(&joinRel{kind: InnerJoin, left: left, right: own, on: in.on}, conds)
}

// flattenRow makes columns of the left side's rows of a single row on the right side that is computed from other columns, as in
// LATERAL (SELECT a + b) or LATERAL (VALUES (a + b)). nil: it is another join.
func flattenRow(j *joinRel) rel {
	if j.kind != InnerJoin || freeColumns(j.right).empty() {
		return nil
	}
	steps, ok := singleRow(j.right)
	if !ok {
		return nil
	}
	out := j.left
	for _, items := range steps {
		for _, it := range items {
			if expr.Volatile(it.e) || expr.HasSubquery(it.e) {
				return nil
			}
		}
		out = &projectRel{input: out, items: items}
	}
	return keep(out, j.on)
}

// singleRow returns what computes a single row, step by step; false: r yields other rows.
func singleRow(r rel) (steps [][]projection, ok bool) {
	switch r := r.(type) {
	case *projectRel:
		steps, ok = singleRow(r.input)
		return append(steps, r.items), ok
	case *valuesRel:
		if len(r.rows) != 1 {
			return nil, false
		}
		if len(r.cols) == 0 {
			return nil, true
		}
		items := make([]projection, len(r.cols))
		for i, id := range r.cols {
			items[i] = projection{id: id, e: r.rows[0][i]}
		}
		return [][]projection{items}, true
	}
	return nil, false
}

// decorrelate takes the conditions that name outer columns out of a subquery's filters, so that they
// become the join's. False where outer columns are named elsewhere.
func (p *physical) decorrelate(r rel, free colSet) (rel, []expr.Scalar, bool) {
	if free.empty() {
		return r, nil, true
	}
	pull := puller{free: free}
	out, ok := pull.up(r)
	if !ok {
		return r, nil, false
	}
	return out, pull.on, true
}

// puller takes out of a tree what names the columns in free. It copies the part of the tree it changes, so that a failed attempt leaves the
// tree alone.
type puller struct {
	free colSet
	on   []expr.Scalar // the conditions that name them
	// hoist: computed columns that name them are taken out as well, into hoisted; what reads these is given their expressions.
	hoist   bool
	hoisted []projection
	// nested: conditions with subqueries are taken out as well, where they read columns in free only. An anti join cannot take them: a row
	// of the left side that they reject has no match, which it keeps.
	nested bool
}

func (u *puller) up(r rel) (rel, bool) {
	switch r := r.(type) {
	case *filterRel:
		in, ok := u.up(r.input)
		if !ok {
			return r, false
		}
		stay, ok := u.split(r.conds)
		return keep(in, stay), ok
	case *projectRel:
		in, ok := u.up(r.input)
		if !ok {
			return r, false
		}
		var stay []projection
		for _, it := range r.items {
			if !u.named(it.e) {
				stay = append(stay, it)
				continue
			}
			if !u.hoist || expr.HasSubquery(it.e) || expr.Volatile(it.e) {
				return r, false
			}
			u.hoisted = append(u.hoisted, it)
		}
		return project(in, stay), true
	case *sortRel:
		return u.up(r.input)
	case *scanRel:
		scan := *r
		var ok bool
		scan.conds, ok = u.split(r.conds)
		return &scan, ok
	case *joinRel:
		if r.kind != InnerJoin || r.lateral {
			return r, !freeColumns(r).intersects(u.free)
		}
		j := &joinRel{kind: r.kind}
		var ok bool
		if j.left, ok = u.up(r.left); !ok {
			return r, false
		}
		if j.right, ok = u.up(r.right); !ok {
			return r, false
		}
		j.on, ok = u.split(r.on)
		return j, ok
	}
	return r, !freeColumns(r).intersects(u.free)
}

// project adds columns to r, if there are some.
func project(r rel, items []projection) rel {
	if len(items) == 0 {
		return r
	}
	return &projectRel{input: r, items: items}
}

// named reports whether an expression reads a column that is taken out, or one of free.
func (u *puller) named(e expr.Scalar) bool {
	reads := used(e)
	return reads.intersects(u.free) || slices.ContainsFunc(u.hoisted, func(it projection) bool { return reads.has(it.id) })
}

// split takes those of conds into u.on that name outer columns, and returns the others; false if one of them cannot be moved.
func (u *puller) split(conds []expr.Scalar) (stay []expr.Scalar, ok bool) {
	for _, c := range conds {
		switch {
		case !u.named(c):
			stay = append(stay, c)
		case expr.Volatile(c) || expr.HasSubquery(c) && !(u.nested && used(c).within(u.free)):
			return nil, false
		default:
			u.on = append(u.on, u.inline(c))
		}
	}
	return stay, true
}

// inlineAll gives conditions above the tree the expressions of hoisted columns; false if one has them in a subquery.
func (u *puller) inlineAll(conds []expr.Scalar) ([]expr.Scalar, bool) {
	out := make([]expr.Scalar, 0, len(conds))
	for _, c := range conds {
		if len(u.hoisted) > 0 && expr.HasSubquery(c) && u.named(c) {
			return nil, false
		}
		out = append(out, u.inline(c))
	}
	return out, true
}

// inline gives an expression those of the hoisted columns that it reads, the last ones first: they may read others. No subquery reads them.
func (u *puller) inline(e expr.Scalar) expr.Scalar {
	for i := len(u.hoisted) - 1; i >= 0; i-- {
		one := projectRel{items: u.hoisted[i : i+1]}
		e, _ = one.substitute(e)
	}
	return e
}
