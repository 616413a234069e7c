package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
)

func (p *physical) setOp(r *setOpRel, a ask) pnode {
	limit := 0.0
	if r.op == "UNION" && r.all {
		limit = a.limit
	}
	if r.op == "UNION" && !r.all {
		keepDuplicates(r.left)
		keepDuplicates(r.right)
	}
	left, right := p.exact(r.left, r.leftCols, limit), p.exact(r.right, r.rightCols, limit)
	rows := left.est.Rows
	switch r.op {
	case "UNION":
		rows += right.est.Rows
	case "INTERSECT":
		rows = math.Min(rows, right.est.Rows)
	}
	est := Estimate{Rows: math.Max(rows, 1), Cost: left.est.Cost + right.est.Cost + rows*hashCost}
	return pnode{cols: r.cols, est: est, node: &SetOp{Base: p.base(r.cols, est), Op: r.op, All: r.all,
		Left: left.node, Right: right.node}}
}

// keepDuplicates spares a UNION whose rows another UNION makes distinct from doing so itself.
func keepDuplicates(r rel) {
	for {
		if p, ok := r.(*projectRel); ok && keepsDistinct(p) {
			r = p.input
			continue
		}
		u, ok := r.(*setOpRel)
		if !ok || u.op != "UNION" || u.all {
			return
		}
		u.all = true
		keepDuplicates(u.right)
		r = u.left
	}
}

// keepsDistinct reports whether rows are equal before a projection if and only if they are afterwards: it gives columns new names, or integers
// another size. A cast from citext to text makes equal values different.
func keepsDistinct(p *projectRel) bool {
	for i := range p.items {
		e := p.items[i].e
		if c, ok := e.(*expr.Cast); ok && isInt(c.Typ) && isInt(c.X.Type()) {
			e = c.X
		}
		if _, ok := e.(*expr.Column); !ok {
			return false
		}
	}
	return true
}

func (p *physical) lock(r *lockRel, a ask) pnode {
	below := a.clone()
	for _, t := range r.targets {
		if nullable(r.input, t) {
			p.fail(pgerror.New(pgerror.FeatureNotSupported, "FOR %s cannot be applied to the nullable side of an outer join", r.strength))
			return pnode{node: &Values{}}
		}
		for i := range t.table.Primary.Columns {
			below.need.add(t.cols[t.table.Ordinal(t.table.Primary.Columns[i].ColumnID)])
		}
	}
	in := p.plan(r.input, below)
	if p.err != nil {
		return in
	}
	n := &LockRows{Base: p.base(in.cols, in.est), Input: in.node, Strength: r.strength, Wait: r.wait, Cut: a.limit > 0}
	for _, t := range r.targets {
		if t.table.Kind == catalog.KindVirtual {
			continue
		}
		lt := LockTarget{Table: t.table, Guarded: p.guarded(t.table)}
		for i := range t.table.Primary.Columns {
			id := t.cols[t.table.Ordinal(t.table.Primary.Columns[i].ColumnID)]
			lt.KeyOrdinals = append(lt.KeyOrdinals, indexOf(in.cols, id))
		}
		n.Targets = append(n.Targets, lt)
	}
	return pnode{node: n, cols: in.cols, order: in.order, est: in.est}
}
