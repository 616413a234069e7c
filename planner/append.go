package planner

import (
	"math"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/partition"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
)

// Prune finds the leaves of a table that may have rows for which conditions hold.
type Prune struct {
	bounds *partition.Bounds
	parts  []pruned
	keys   int
	conds  *prunable
}

// pruned is a partition: an input of the Append, one that is partitioned itself, or none.
type pruned struct {
	below *Prune
	input int // -1: none
}

// prunable is a conjunction of tests of a partition key.
type prunable struct {
	tests []keyTest
	ors   [][]*prunable
}

// keyTest is a condition on one column of the key.
type keyTest struct {
	key     int
	op      expr.CmpOp
	value   expr.Scalar // nil: of IS [NOT] NULL
	each    bool        // value is an array, one of whose elements it equals
	notNull bool        // of IS NOT NULL
}

// Inputs sets in[i] for every input i of the Append that may have rows.
func (p *Prune) Inputs(ev *expr.Context, in []bool) error {
	marks := make([]bool, len(p.parts))
	if err := p.conds.match(p, ev, marks); err != nil {
		return err
	}
	for i, marked := range marks {
		switch part := &p.parts[i]; {
		case !marked:
		case part.below != nil:
			if err := part.below.Inputs(ev, in); err != nil {
				return err
			}
		case part.input >= 0:
			in[part.input] = true
		}
	}
	return nil
}

// match sets out[i] for every partition i that may have rows.
func (c *prunable) match(p *Prune, ev *expr.Context, out []bool) error {
	tests := make([]partition.Test, p.keys)
	for i := range c.tests {
		if possible, err := c.tests[i].add(&tests[c.tests[i].key], ev); err != nil || !possible {
			return err
		}
	}
	p.bounds.Match(tests, out)
	for _, or := range c.ors {
		any := make([]bool, len(out))
		for _, arm := range or {
			one := make([]bool, len(out))
			if err := arm.match(p, ev, one); err != nil {
				return err
			}
			for i := range any {
				any[i] = any[i] || one[i]
			}
		}
		for i := range out {
			out[i] = out[i] && any[i]
		}
	}
	return nil
}

// add adds the test to what is known of a column. It reports whether rows can pass.
func (k *keyTest) add(t *partition.Test, ev *expr.Context) (bool, error) {
	if k.value == nil {
		t.Null, t.NotNull = t.Null || !k.notNull, t.NotNull || k.notNull
		return !(t.Null && t.NotNull), nil
	}
	d, err := k.value.Eval(ev, nil)
	if err != nil || d.IsNull() {
		return false, err
	}
	t.NotNull = true
	switch {
	case k.each:
		var values []types.Datum
		for _, e := range d.Array().Elems {
			if !e.IsNull() {
				values = append(values, e.Clone())
			}
		}
		if !t.Equal || len(values) < len(t.Values) {
			t.Equal, t.Values = true, values
		}
	case k.op == expr.EQ:
		t.Equal, t.Values = true, []types.Datum{d.Clone()}
	case k.op == expr.GT, k.op == expr.GE:
		if t.Low == nil {
			t.Low = &partition.Limit{Value: d.Clone(), Inclusive: k.op == expr.GE}
		}
	default:
		if t.High == nil {
			t.High = &partition.Limit{Value: d.Clone(), Inclusive: k.op == expr.LE}
		}
	}
	return !t.Null, nil
}

// appendParts plans the read of a partitioned table.
func (p *physical) appendParts(s *scanRel, a ask) pnode {
	leaves := p.leaves(s.table)
	if p.err != nil {
		return p.nothing(outputSet(s), a)
	}
	var ids []int
	for _, id := range s.cols {
		if a.need.has(id) {
			ids = append(ids, id)
		}
	}
	origin := s.origin > 0 && a.need.has(s.origin)
	if origin {
		ids = append(ids, s.origin)
	}
	n := &Append{Table: s.table}
	prune, alone := p.prune(s, s.table, s.conds)
	place := map[uint64]int{}
	var parts []pnode
	for _, leaf := range leaves {
		place[leaf.ID] = len(parts)
		parts = append(parts, p.appendPart(s, leaf, a, ids))
	}
	if p.err != nil || len(parts) == 0 {
		return p.nothing(outputSet(s), a)
	}
	prune.connect(place)
	if prune.useful() {
		n.Prune, n.Alone = prune, alone
	}
	if len(parts) == 1 && n.Prune == nil {
		return parts[0]
	}
	out := pnode{cols: ids}
	ordered := len(a.want) > 0
	share := 1.0
	if n.Alone {
		share = 1 / float64(len(parts))
	}
	for _, part := range parts {
		n.Inputs = append(n.Inputs, part.node)
		out.est.Rows += part.est.Rows * share
		out.est.Cost += part.est.Cost * share
		ordered = ordered && satisfies(part.order, a.want)
	}
	out.est.Rows = math.Max(out.est.Rows, 1)
	if ordered {
		out.order = a.want
		if !n.Alone && len(parts) > 1 {
			for _, w := range a.want {
				n.Merge = append(n.Merge, SortKey{Expr: p.place(p.b.column(w.id, 0), ids), Desc: w.desc, NullsFirst: w.nullsFirst})
			}
		}
	}
	n.Base = p.base(ids, out.est)
	out.node = n
	return out
}

// appendPart plans the read of one leaf, whose row is precisely the columns ids.
func (p *physical) appendPart(s *scanRel, leaf *catalog.TableDescriptor, a ask, ids []int) pnode {
	part := p.partOf(s, leaf)
	origin := &expr.Const{Value: types.Int(int64(leaf.OID())), Typ: types.TOid}
	for _, c := range s.conds {
		part.conds = append(part.conds, expr.Rewrite(c, func(x expr.Scalar) expr.Scalar {
			if col, ok := x.(*expr.Column); ok && s.origin > 0 && col.ID == s.origin {
				return origin
			}
			return x
		}))
	}
	in := p.scan(part, a)
	if p.err != nil || equalInts(in.cols, ids) {
		return in
	}
	exprs := make([]expr.Scalar, len(ids))
	for i, id := range ids {
		switch {
		case id == s.origin && s.origin > 0:
			exprs[i] = origin
		case indexOf(in.cols, id) < 0: // The hidden key of another leaf.
			exprs[i] = expr.NewNull(p.b.cols[id].Type)
		default:
			exprs[i] = p.place(p.b.column(id, 0), in.cols)
		}
	}
	est := in.est
	est.Cost += est.Rows * emitCost
	return pnode{node: &Project{Base: p.base(ids, est), Input: in.node, Exprs: exprs}, cols: ids, order: in.order, est: est}
}

// prune makes what finds the partitions of t, the table of s or one below it, that may have rows for which conditions hold. alone: it is one at
// most.
func (p *physical) prune(s *scanRel, t *catalog.TableDescriptor, conds []expr.Scalar) (out *Prune, alone bool) {
	parts, err := catalog.PartitionsOf(p.b.ctx, p.b.r, t)
	if err != nil {
		p.fail(err)
		return &Prune{}, false
	}
	list := make([]catalog.PartitionBound, len(parts))
	for i, part := range parts {
		list[i] = part.PartitionOf.Bound
	}
	out = &Prune{keys: len(t.Partitioning.Keys)}
	if out.bounds, err = partition.New(t, list); err != nil {
		p.fail(err)
		return out, false
	}
	scan := p.partOf(s, t)
	p.indexed(scan)
	out.conds = p.prunable(scan, conds)
	alone = out.conds.single(out.keys)
	for _, part := range parts {
		if !part.IsPartitioned() {
			out.parts = append(out.parts, pruned{input: int(part.ID)})
			continue
		}
		below, one := p.prune(s, part, conds)
		out.parts = append(out.parts, pruned{below: below, input: -1})
		alone = alone && one
	}
	return out, alone
}

// single reports whether the tests admit one key at most.
func (c *prunable) single(keys int) bool {
	fixed := map[int]bool{}
	for i := range c.tests {
		if t := &c.tests[i]; !t.each && (t.value != nil && t.op == expr.EQ || t.value == nil && !t.notNull) {
			fixed[t.key] = true
		}
	}
	return len(fixed) == keys
}

// prunable finds the tests of the partition key of a scan's table among conditions.
func (p *physical) prunable(s *scanRel, conds []expr.Scalar) *prunable {
	out := &prunable{}
	var own colSet
	own.addList(s.cols)
	keyOf := func(ord int) int {
		for i := range s.table.Partitioning.Keys {
			if s.table.Ordinal(s.table.Partitioning.Keys[i].ColumnID) == ord {
				return i
			}
		}
		return -1
	}
	for _, c := range conds {
		if expr.HasSubquery(c) || expr.Volatile(c) {
			continue
		}
		switch x := c.(type) {
		case *expr.Or:
			var arms []*prunable
			for _, arg := range x.Args {
				arms = append(arms, p.prunable(s, expr.Conjuncts(nil, arg)))
			}
			out.ors = append(out.ors, arms)
			continue
		case *expr.IsNull:
			if key := keyOf(p.ordinalOf(s, x.X)); key >= 0 {
				out.tests = append(out.tests, keyTest{key: key, notNull: x.Not})
				continue
			}
		}
		for _, a := range p.appendSargs(nil, s, own, c, 0) {
			key := -1
			if a.ord >= 0 {
				key = keyOf(a.ord)
			}
			if key < 0 || !sameKeyOrder(s.table, key, &a) {
				continue
			}
			t := keyTest{key: key, op: a.op, each: a.each != nil}
			if t.each {
				t.value = p.compile(a.each, nil)
			} else {
				t.value = p.compile(a.value, nil)
			}
			out.tests = append(out.tests, t)
		}
	}
	return out
}

// sameKeyOrder reports whether a condition compares in the collation of a column of the partition key.
func sameKeyOrder(t *catalog.TableDescriptor, key int, a *sarg) bool {
	return collation.SameOrder(a.coll, t.Partitioning.Keys[key].Coll)
}

// connect replaces the ids of leaves by the places of their inputs.
func (p *Prune) connect(place map[uint64]int) {
	for i := range p.parts {
		part := &p.parts[i]
		if part.below != nil {
			part.below.connect(place)
		} else if at, ok := place[uint64(part.input)]; ok {
			part.input = at
		} else {
			part.input = -1
		}
	}
}

// useful reports whether there is any test.
func (p *Prune) useful() bool {
	if p.conds.any() {
		return true
	}
	for i := range p.parts {
		if b := p.parts[i].below; b != nil && b.useful() {
			return true
		}
	}
	return false
}

// correlated reports whether a test has a value of an enclosing row.
func (p *Prune) correlated() bool {
	if p.conds.correlated() {
		return true
	}
	return slices.ContainsFunc(p.parts, func(part pruned) bool { return part.below != nil && part.below.correlated() })
}

func (c *prunable) correlated() bool {
	found := false
	for i := range c.tests {
		expr.Walk(c.tests[i].value, func(x expr.Scalar) bool {
			_, outer := x.(*expr.Outer)
			found = found || outer
			return !found
		})
	}
	for _, or := range c.ors {
		found = found || slices.ContainsFunc(or, (*prunable).correlated)
	}
	return found
}

func (c *prunable) any() bool {
	if len(c.tests) > 0 {
		return true
	}
	return slices.ContainsFunc(c.ors, func(or []*prunable) bool {
		return !slices.ContainsFunc(or, func(arm *prunable) bool { return !arm.any() })
	})
}

// partitionStats puts the statistics of the leaves together: their rows, and of the columns those of the leaf with the most rows.
func (p *physical) partitionStats(t *catalog.TableDescriptor) *catalog.TableStats {
	sum := &catalog.TableStats{}
	var most *catalog.TableStats
	var leaf *catalog.TableDescriptor
	for _, part := range p.leaves(t) {
		st, err := p.b.r.Stats(p.b.ctx, part.ID)
		if err != nil {
			p.fail(err)
			return sum
		}
		sum.Rows += st.Rows
		sum.Deleted += st.Deleted
		if most == nil || st.Rows > most.Rows {
			most, leaf = st, part
		}
	}
	if most == nil || most.Rows == 0 {
		return sum
	}
	sum.Columns = map[uint32]catalog.ColumnStats{}
	for i := range t.Columns {
		ord := leaf.InheritedColumn(&t.Columns[i])
		if ord < 0 {
			continue
		}
		if c, ok := most.Columns[leaf.Columns[ord].ID]; ok {
			sum.Columns[t.Columns[i].ID] = c
		}
	}
	return sum
}

// touched is the number of leaves that a lookup by the conditions of a join reads: one, if they fix the partition key.
func (p *physical) touched(s *scanRel, on []expr.Scalar) float64 {
	var own colSet
	own.addList(s.cols)
	var sargs []sarg
	for i, c := range append(s.conds[:len(s.conds):len(s.conds)], on...) {
		sargs = p.appendSargs(sargs, s, own, c, i)
	}
	for i := range s.table.Partitioning.Keys {
		k := &s.table.Partitioning.Keys[i]
		if eq := equalityOn(sargs, s.table.Ordinal(k.ColumnID), k.Coll); eq == nil || eq.each != nil {
			return float64(max(len(p.leaves(s.table)), 1))
		}
	}
	return 1
}

// lookupParts joins a partitioned table by reading, for each left row, the leaves that may have rows for it.
func (p *physical) lookupParts(kind JoinKind, left pnode, s *scanRel, on []expr.Scalar, lk *lookupPath, need colSet) pnode {
	inner := *s
	inner.conds = s.conds[:len(s.conds):len(s.conds)]
	var own colSet
	own.addList(s.cols)
	var rest []expr.Scalar
	need = need.clone()
	for _, c := range on {
		if expr.HasSubquery(c) || expr.Volatile(c) || s.secured && !leakproof(c) {
			rest = append(rest, c)
			addOwn(c, own, &need)
			continue
		}
		inner.conds = append(inner.conds, expr.Clone(c))
	}
	p.outer = append(p.outer, left.cols)
	right := p.appendParts(&inner, ask{need: need})
	p.outer = p.outer[:len(p.outer)-1]
	if p.err != nil {
		return left
	}
	both := append(append(make([]int, 0, len(left.cols)+len(right.cols)), left.cols...), right.cols...)
	cols := both
	if kind == SemiJoin || kind == AntiJoin {
		cols = left.cols
	}
	sel := p.joinSelectivity(rest, left.est.Rows, 1)
	est := Estimate{Rows: joinRows(kind, left.est.Rows, lk.rows, sel), Cost: left.est.Cost + lk.cost}
	return pnode{cols: cols, order: keptOrder(kind, left.order, lk.unique), est: est, node: &Apply{Base: p.base(cols, est), Kind: kind,
		Left: left.node, Right: right.node, On: p.conjunction(rest, both)}}
}
