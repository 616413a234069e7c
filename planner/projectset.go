package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// projectSortKeys computes keys of ORDER BY below the set-returning functions of the select list, if it needs none of them, so that rows are sorted
// before each becomes several (projectSet).
func (sb *selectBinder) projectSortKeys(root rel) rel {
	var made colSet
	for i := range sb.sel.sets {
		made.add(sb.sel.sets[i].id)
	}
	keys := &projectRel{input: root}
	for _, o := range sb.order {
		t := &sb.targets[o.target]
		var reads colSet
		addUsed(t.e, &reads)
		if _, ok := t.e.(*expr.Column); ok || reads.intersects(made) || t.e.Type().Coll.IsExplicit() || t.e.Type() == types.TUnknown {
			continue
		}
		id := sb.b.newColumn(t.name, t.e.Type())
		keys.items = append(keys.items, projection{id: id, e: t.e})
		t.e = sb.b.column(id, t.pos)
	}
	if len(keys.items) == 0 {
		return root
	}
	return keys
}

// projectSet calls set-returning functions. If its rows are to have an order of other columns, it sorts its input: the rows of one input row stay
// together, and there are fewer to sort, as in PostgreSQL (make_sort_input_target).
func (p *physical) projectSet(r *projectSetRel, a ask) pnode {
	var made colSet
	for i := range r.sets {
		made.add(r.sets[i].id)
	}
	below := ask{need: a.need.minus(made)}
	if !slices.ContainsFunc(a.want, func(k orderKey) bool { return made.has(k.id) }) {
		below.want = a.want
	}
	for i := range r.sets {
		for _, e := range r.sets[i].args {
			addUsed(e, &below.need)
		}
	}
	in := p.inOrder(r.input, below)
	cols := append([]int(nil), in.cols...)
	exprs := make([]expr.Scalar, len(cols), len(cols)+len(r.sets))
	sets := make([]*SetFunc, len(cols), len(cols)+len(r.sets))
	for i, id := range in.cols {
		exprs[i] = p.place(p.b.column(id, 0), in.cols)
	}
	est := Estimate{Rows: in.est.Rows * setFuncRows / 10, Cost: in.est.Cost + in.est.Rows*setFuncRows*emitCost}
	for i := range r.sets {
		s := &r.sets[i]
		cols = append(cols, s.id)
		exprs = append(exprs, expr.NewNull(p.b.cols[s.id].Type))
		sets = append(sets, &SetFunc{Base: p.base([]int{s.id}, est), Func: s.fn, Args: p.compileAll(s.args, in.cols)})
	}
	return pnode{cols: cols, order: below.want, est: est, node: &ProjectSet{Base: p.base(cols, est), Input: in.node, Exprs: exprs, Sets: sets}}
}

// inOrder plans rows in the order that is asked for.
func (p *physical) inOrder(r rel, a ask) pnode {
	if len(a.want) == 0 {
		return p.plan(r, a)
	}
	keys := make([]SortKey, len(a.want))
	for i, k := range a.want {
		c := p.b.column(k.id, 0)
		c.Typ.Coll = k.coll
		keys[i] = SortKey{Expr: c, Desc: k.desc, NullsFirst: k.nullsFirst}
	}
	return p.sort(&sortRel{input: r, keys: keys}, a)
}
