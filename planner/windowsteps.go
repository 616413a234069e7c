package planner

import (
	"cmp"
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
)

// windowSteps stacks the windows that are used above root, each over rows sorted for it. Windows whose keys begin alike
// follow each other, so that rows are sorted once for several of them, and the one nearest to the order of the result
// comes last.
func (sb *selectBinder) windowSteps(root rel) rel {
	if !sb.sel.windowed() {
		return root
	}
	k := &windowKeys{b: sb.b, have: outputSet(root), proj: &projectRel{}}
	k.rank(sb)
	var used []*windowRel
	for _, w := range sb.sel.windows {
		r := k.window(w)
		if r.calls = w.calls; len(r.calls) > 0 {
			used = append(used, r)
		}
	}
	if len(k.proj.items) > 0 {
		k.proj.input = root
		root = k.proj
		for i := range sb.targets {
			if j := slices.IndexFunc(k.proj.items, func(it projection) bool { return expr.Equal(it.e, sb.targets[i].e) }); j >= 0 {
				sb.targets[i].e = sb.b.column(k.proj.items[j].id, 0)
			}
		}
	}
	slices.SortStableFunc(used, k.compare)
	for _, r := range used {
		r.input = root
		if keys := r.sortKeys(sb.b); len(keys) > 0 {
			r.input = &sortRel{input: root, keys: keys}
		}
		root = r
	}
	return root
}

// windowKeys gives the keys of windows columns, and ranks in the order in which the statement sorts by them.
type windowKeys struct {
	b     *binder
	have  colSet
	proj  *projectRel // computes keys that are no columns
	ranks []expr.Scalar
}

// rank ranks the expressions that the SELECT orders and groups by before those of windows.
func (k *windowKeys) rank(sb *selectBinder) {
	for _, o := range sb.order {
		k.rankOf(sb.targets[o.target].e)
	}
	for _, g := range sb.groups {
		if id := sb.groupID(g); id >= 0 {
			g = sb.b.column(id, 0)
		}
		k.rankOf(g)
	}
	for _, t := range sb.on {
		k.rankOf(sb.targets[t].e)
	}
	for _, w := range sb.sel.windows {
		for i := range w.order {
			k.rankOf(w.order[i].Expr)
		}
		for _, x := range w.partition {
			k.rankOf(x)
		}
	}
}

func (k *windowKeys) rankOf(e expr.Scalar) int {
	i := slices.IndexFunc(k.ranks, func(x expr.Scalar) bool { return expr.Equal(x, e) })
	if i < 0 {
		i = len(k.ranks)
		k.ranks = append(k.ranks, e)
	}
	return i
}

// column returns the column of a key.
func (k *windowKeys) column(e expr.Scalar) *expr.Column {
	if c, ok := e.(*expr.Column); ok && k.have.has(c.ID) {
		return c
	}
	for i := range k.proj.items {
		if expr.Equal(k.proj.items[i].e, e) {
			return k.b.column(k.proj.items[i].id, 0)
		}
	}
	id := k.b.newColumn("window key", e.Type())
	k.proj.items = append(k.proj.items, projection{id: id, e: expr.Clone(e)})
	k.ranks[k.rankOf(e)] = k.b.column(id, 0)
	return k.b.column(id, 0)
}

// window makes the step of a window, without its calls.
func (k *windowKeys) window(w *windowDef) *windowRel {
	r := &windowRel{frame: w.frame}
	for _, x := range w.partition {
		r.partition = append(r.partition, k.column(x).ID)
	}
	for _, o := range w.order {
		r.order = append(r.order, SortKey{Expr: k.column(o.Expr), Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	return r
}

// sortKeys is the order in which the window takes its rows: partitions together, each in the window's order.
func (r *windowRel) sortKeys(b *binder) []SortKey {
	var keys []SortKey
	for _, id := range r.partition {
		keys = append(keys, SortKey{Expr: b.column(id, 0)})
	}
	for _, o := range r.order {
		if id := o.Expr.(*expr.Column).ID; !slices.Contains(r.partition, id) {
			keys = append(keys, SortKey{Expr: b.column(id, 0), Desc: o.Desc, NullsFirst: o.NullsFirst})
		}
	}
	return keys
}

// compare orders windows: keys of high rank first, of those with equal beginnings the longest first.
func (k *windowKeys) compare(x, y *windowRel) int {
	a, b := x.sortKeys(k.b), y.sortKeys(k.b)
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(k.rankOf(b[i].Expr), k.rankOf(a[i].Expr)); c != 0 {
			return c
		}
		if c := compareBool(b[i].Desc, a[i].Desc); c != 0 {
			return c
		}
		if c := compareBool(b[i].NullsFirst, a[i].NullsFirst); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(b), len(a))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// streams reports whether the results for a row depend on few rows after it, so that a LIMIT above needs few rows.
func (r *windowRel) streams() bool {
	if len(r.order) == 0 || r.frame.End.Kind > ast.CurrentRow {
		return false
	}
	return !slices.ContainsFunc(r.calls, func(c windowing) bool { return c.call.Func != nil && c.call.Func.Kind.NeedsPartition() })
}
