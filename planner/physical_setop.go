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
		if t.table.IsPartitioned() {
			below.need.addList(t.cols)
			below.need.add(t.originColumn(p.b))
			continue
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
		n.Targets = append(n.Targets, p.lockTarget(t, in.cols))
	}
	return pnode{node: n, cols: in.cols, order: in.order, est: in.est}
}

// lockTarget finds the key of a scan's row in a row of the given columns.
func (p *physical) lockTarget(t *scanRel, cols []int) LockTarget {
	lt := LockTarget{Table: t.table}
	if t.table.IsPartitioned() {
		lt.Parts, lt.Origin = map[int64]LockTarget{}, indexOf(cols, t.origin)
		for _, leaf := range p.leaves(t.table) {
			lt.Parts[int64(leaf.OID())] = p.lockTarget(p.partOf(t, leaf), cols)
		}
		return lt
	}
	lt.Guarded = p.guarded(t.table)
	for i := range t.table.Primary.Columns {
		id := t.cols[t.table.Ordinal(t.table.Primary.Columns[i].ColumnID)]
		at := indexOf(cols, id)
		if at < 0 {
			p.fail(lacksKey(t.table, t.table))
		}
		lt.KeyOrdinals = append(lt.KeyOrdinals, at)
	}
	return lt
}
