package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/collation"
)

// equiKey is an equality between two sides of a join.
type equiKey struct {
	left, right expr.Scalar
	cond        int // which condition it came from
}

// equiKeys picks from conditions those that equate the two sides.
func equiKeys(conds []expr.Scalar, left, right colSet) []equiKey {
	var out []equiKey
	for i, c := range conds {
		cmp, ok := c.(*expr.Compare)
		if !ok || cmp.Op != expr.EQ || !hashable(cmp) {
			continue
		}
		l, r := used(cmp.L), used(cmp.R)
		if l.empty() || r.empty() {
			continue
		}
		switch {
		case l.within(left) && r.within(right):
			out = append(out, equiKey{left: cmp.L, right: cmp.R, cond: i})
		case l.within(right) && r.within(left):
			out = append(out, equiKey{left: cmp.R, right: cmp.L, cond: i})
		}
	}
	return out
}

// hashable reports whether both sides of an equality have one representation, so that equal values
// hash alike.
func hashable(c *expr.Compare) bool {
	return c.L.Type().KindOf() == c.R.Type().KindOf() && !expr.HasSubquery(c.L) && !expr.HasSubquery(c.R)
}

// join plans a join: a group of inner joins in the cheapest order found, any other unchanged.
func (p *physical) join(j *joinRel, a ask) pnode {
	if j.kind == InnerJoin && !j.lateral {
		return p.joinGroup(j, a)
	}
	if j.lateral {
		return p.apply(j, a)
	}
	below := a
	for _, c := range j.on {
		below = below.with(used(c))
	}
	if driven, ok := p.drivenSemi(j, below.need); ok {
		return driven
	}
	left := p.plan(j.left, ask{need: sideNeed(below.need, j.left), want: a.want, limit: a.limit})
	leftSet, rightSet := setOf(left.cols), outputSet(j.right)
	rightNeed := sideNeed(below.need, j.right)
	keys := equiKeys(j.on, leftSet, rightSet)
	if s, ok := j.right.(*scanRel); ok && j.kind != FullJoin {
		if lk := p.lookup(s, j.on, leftSet, rightNeed, left.est.Rows); lk != nil {
			if lk.cost < p.scanCost(s, rightNeed)+p.scanRows(s)*hashCost+left.est.Rows*probeCost {
				return p.lookupJoin(j.kind, left, s, j.on, lk, rightNeed)
			}
		}
	}
	right := p.plan(j.right, ask{need: rightNeed})
	return p.equiJoin(j.kind, left, right, j.on, keys)
}

// drivenSemi turns a semi join around where the right side has few rows and an index of the left table
// finds their matches: the distinct right rows are then looked up, and the table is not read whole.
func (p *physical) drivenSemi(j *joinRel, need colSet) (pnode, bool) {
	s, ok := j.left.(*scanRel)
	if !ok || j.kind != SemiJoin || len(j.on) == 0 || isVirtual(s) {
		return pnode{}, false
	}
	rightSet := outputSet(j.right)
	keys := equiKeys(j.on, setOf(s.cols), rightSet)
	if len(keys) != len(j.on) {
		return pnode{}, false // a further condition in addition to the equalities: the key does not determine the right row
	}
	ids := make([]int, len(keys))
	var rightNeed colSet
	for i, k := range keys {
		c, ok := k.right.(*expr.Column)
		if !ok {
			return pnode{}, false
		}
		ids[i] = c.ID
		rightNeed.add(c.ID)
	}
	if p.roughRows(j.right)*batchedCost*2 > p.tableRows(s) {
		return pnode{}, false
	}
	leftNeed := sideNeed(need, s)
	right := p.shape(p.plan(j.right, ask{need: rightNeed}), ids)
	if p.err != nil {
		return pnode{}, false
	}
	lk := p.lookup(s, j.on, rightSet, leftNeed, right.est.Rows)
	if lk == nil || len(lk.conds) != len(j.on) ||
		lk.cost >= p.scanCost(s, leftNeed)+p.scanRows(s)*probeCost {
		return pnode{}, false
	}
	est := right.est
	est.Cost += est.Rows * hashCost
	distinct := pnode{cols: right.cols, est: est, node: &Distinct{Base: p.base(right.cols, est), Input: right.node}}
	return p.lookupJoin(InnerJoin, distinct, s, j.on, lk, leftNeed), true
}

// roughRows estimates a tree's rows without planning it, low if it is unknown.
func (p *physical) roughRows(r rel) float64 {
	switch r := r.(type) {
	case *scanRel:
		return p.scanRows(r)
	case *valuesRel:
		return float64(len(r.rows))
	case *filterRel:
		return p.roughRows(r.input) * p.selectivityOf(r.conds)
	case *projectRel, *sortRel, *distinctRel, *barrierRel:
		return p.roughRows(input(r))
	}
	return 1
}

func setOf(ids []int) colSet {
	var s colSet
	s.addList(ids)
	return s
}

// sideNeed returns the needed columns that one side produces.
func sideNeed(need colSet, side rel) colSet {
	makes := outputSet(side)
	var out colSet
	need.each(func(id int) {
		if makes.has(id) {
			out.add(id)
		}
	})
	return out
}

// joinRows guesses how many rows a join yields.
func joinRows(kind JoinKind, left, right, sel float64) float64 {
	rows := left * right * sel
	switch kind {
	case LeftJoin:
		rows = math.Max(rows, left)
	case FullJoin:
		rows = math.Max(rows, left+right)
	case SemiJoin:
		rows = math.Min(rows, left)
	case AntiJoin:
		rows = math.Max(left-math.Min(rows, left), left/10)
	}
	return math.Max(rows, 1)
}

// equiJoin joins two planned sides by hash where there is an equality, by merging where both arrive
// in its order, else by testing all pairs.
func (p *physical) equiJoin(kind JoinKind, left, right pnode, conds []expr.Scalar, keys []equiKey) pnode {
	if p.err != nil {
		return left
	}
	both := append(append(make([]int, 0, len(left.cols)+len(right.cols)), left.cols...), right.cols...)
	cols := both
	if kind == SemiJoin || kind == AntiJoin {
		cols = left.cols
	}
	est := Estimate{Rows: joinRows(kind, left.est.Rows, right.est.Rows, p.joinSelectivity(conds, left.est.Rows, right.est.Rows))}
	if len(keys) == 0 {
		est.Cost = left.est.Cost + right.est.Cost + left.est.Rows*right.est.Rows*pairCost
		return pnode{cols: cols, order: keptOrder(kind, left.order, false), est: est, node: &NestedLoopJoin{Base: p.base(cols, est), Kind: kind,
			Left: left.node, Right: right.node, On: p.conjunction(conds, both)}}
	}
	rest := make([]expr.Scalar, 0, len(conds))
next:
	for i, c := range conds {
		for _, k := range keys {
			if k.cond == i {
				continue next
			}
		}
		rest = append(rest, c)
	}
	if m, ok := p.mergeJoin(kind, left, right, both, cols, rest, keys, est.Rows); ok {
		return m
	}
	lk, rk := make([]expr.Scalar, len(keys)), make([]expr.Scalar, len(keys))
	for i, k := range keys {
		lk[i], rk[i] = p.compile(k.left, left.cols), p.compile(k.right, right.cols)
	}
	est.Cost = left.est.Cost + right.est.Cost + right.est.Rows*hashCost + left.est.Rows*probeCost + est.Rows*emitCost
	n := &HashJoin{Base: p.base(cols, est), Kind: kind, Left: left.node, Right: right.node,
		LeftKeys: lk, RightKeys: rk, On: p.conjunction(rest, both), Kept: right.est.Rows}
	if n.SingleKeys() {
		n.Kept = math.Min(n.Kept, p.keyValues(keys))
	}
	if parts, ok := p.partitionWise(n, cols, keys); ok {
		return pnode{cols: cols, est: est, node: parts}
	}
	return pnode{cols: cols, est: est, node: n}
}

// keyValues guesses the number of different keys on the right side.
func (p *physical) keyValues(keys []equiKey) float64 {
	n := 1.0
	for _, k := range keys {
		n *= p.sideDistinct(k.right)
	}
	return n
}

// SingleKeys reports whether the join keeps one right row of those with equal keys, since it returns left rows that have any or none.
func (n *HashJoin) SingleKeys() bool {
	return n.On == nil && (n.Kind == SemiJoin || n.Kind == AntiJoin)
}

// mergeJoin merges sides that arrive ordered by all keys in one order. It saves the hash table, which
// is worth it when both sides are long.
func (p *physical) mergeJoin(kind JoinKind, left, right pnode, both, cols []int, rest []expr.Scalar, keys []equiKey, rows float64) (pnode, bool) {
	if len(left.order) == 0 || len(right.order) == 0 || math.Min(left.est.Rows, right.est.Rows) < mergeFrom {
		return pnode{}, false
	}
	n := &MergeJoin{Kind: kind, Left: left.node, Right: right.node, On: p.conjunction(rest, both)}
	li, ri := 0, 0
	for len(n.LeftKeys) < len(keys) {
		for li < len(left.order) && left.order[li].fixed {
			li++
		}
		for ri < len(right.order) && right.order[ri].fixed {
			ri++
		}
		if li == len(left.order) || ri == len(right.order) {
			return pnode{}, false
		}
		lo, ro := left.order[li], right.order[ri]
		k := keyBetween(keys, lo.id, ro.id)
		if k == nil || lo.desc != ro.desc || !collation.SameOrder(lo.coll, ro.coll) || (lo.nullsFirst != ro.nullsFirst && !(lo.noNulls && ro.noNulls)) {
			return pnode{}, false
		}
		// Both sides come in the order of the keys, whatever collation the join compares them in: equality is the same in all.
		if !collation.SameOrder(k.left.Type().Coll, lo.coll) {
			return pnode{}, false
		}
		n.LeftKeys = append(n.LeftKeys, p.compile(k.left, left.cols))
		n.RightKeys = append(n.RightKeys, p.compile(k.right, right.cols))
		n.Desc = append(n.Desc, lo.desc)
		li, ri = li+1, ri+1
	}
	est := Estimate{Rows: rows, Cost: left.est.Cost + right.est.Cost + (left.est.Rows+right.est.Rows)*emitCost + rows*emitCost}
	n.Base = p.base(cols, est)
	return pnode{node: n, cols: cols, order: keptOrder(kind, left.order, false), est: est}, true
}

// mergeFrom is the number of rows on the shorter side from which merging is chosen over hashing.
const mergeFrom = 2000

func keyBetween(keys []equiKey, left, right int) *equiKey {
	for i := range keys {
		l, lok := keys[i].left.(*expr.Column)
		r, rok := keys[i].right.(*expr.Column)
		if lok && rok && l.ID == left && r.ID == right {
			return &keys[i]
		}
	}
	return nil
}

// joinSelectivity guesses which share of all pairs passes.
func (p *physical) joinSelectivity(conds []expr.Scalar, left, right float64) float64 {
	sel := 1.0
	for _, c := range conds {
		sel *= p.pairSelectivity(c, left, right)
	}
	return sel
}

func (p *physical) pairSelectivity(c expr.Scalar, left, right float64) float64 {
	cmp, ok := c.(*expr.Compare)
	if !ok || cmp.Op != expr.EQ {
		return p.selectivity(c)
	}
	return 1 / math.Max(math.Max(p.sideDistinct(cmp.L), p.sideDistinct(cmp.R)), 1)
}

// sideDistinct guesses the number of values of one side of an equality.
func (p *physical) sideDistinct(e expr.Scalar) float64 {
	if c, ok := e.(*expr.Column); ok && c.ID >= 0 {
		info := &p.b.cols[c.ID]
		if info.scan != nil {
			return p.distinct(info.scan, info.ordinal)
		}
		return unknownDistinct
	}
	if isLeaf(e) {
		return 1
	}
	return unknownDistinct
}

// apply runs the right side for every left row.
func (p *physical) apply(j *joinRel, a ask) pnode {
	below := a
	for _, c := range j.on {
		below = below.with(used(c))
	}
	rightNeed := sideNeed(below.need, j.right)
	if isGate(j) {
		return p.gated(j, a, rightNeed)
	}
	below = below.with(freeColumns(j.right))
	left := p.plan(j.left, ask{need: sideNeed(below.need, j.left), want: a.want, limit: a.limit})
	if p.err != nil {
		return left
	}
	p.outer = append(p.outer, left.cols)
	right := p.plan(j.right, ask{need: rightNeed})
	p.outer = p.outer[:len(p.outer)-1]
	if p.err != nil {
		return left
	}
	if joined, ok := p.gatherLateral(j, left, right, rightNeed, a); ok {
		return joined
	}
	both := append(append([]int(nil), left.cols...), right.cols...)
	cols := both
	if j.kind == SemiJoin || j.kind == AntiJoin {
		cols = left.cols
	}
	est := Estimate{
		Rows: joinRows(j.kind, left.est.Rows, right.est.Rows, p.selectivityOf(j.on)),
		Cost: left.est.Cost + left.est.Rows*(applyCost+right.est.Cost),
	}
	return pnode{cols: cols, order: keptOrder(j.kind, left.order, false), est: est, node: &Apply{Base: p.base(cols, est), Kind: j.kind,
		Left: left.node, Right: right.node, On: p.conjunction(j.on, both)}}
}

// gated runs the right side if the conditions of the one empty row on the left hold.
func (p *physical) gated(j *joinRel, a ask, need colSet) pnode {
	left := p.plan(j.left, ask{})
	p.outer = append(p.outer, left.cols)
	a.need = need
	right := p.plan(j.right, a)
	p.outer = p.outer[:len(p.outer)-1]
	if p.err != nil {
		return left
	}
	est := right.est
	return pnode{cols: right.cols, order: right.order, est: est, node: &Apply{Base: p.base(right.cols, est), Kind: InnerJoin,
		Left: left.node, Right: right.node}}
}

// lookupPath is a way to read a table by index for each row of another side.
type lookupPath struct {
	index  *catalog.IndexDescriptor
	keys   []expr.Scalar
	conds  []int // conditions among on that the keys settle
	own    []int // conditions of the scan that the keys settle
	unique bool
	fetch  bool
	rows   float64 // per left row, before further conditions
	cost   float64 // for all left rows
}

// scanCost is the cost of reading a table alone.
func (p *physical) scanCost(s *scanRel, need colSet) float64 {
	if s.table.Kind == catalog.KindVirtual {
		return unknownRows
	}
	full := need.clone()
	for _, c := range s.conds {
		addUsed(c, &full)
	}
	pa := p.choosePath(s, s.conds, full, nil, 0)
	return pa.cost
}

// lookup finds the best index of s whose leading columns are fixed by equalities with columns of
// left; nil when there is none.
func (p *physical) lookup(s *scanRel, on []expr.Scalar, left, need colSet, leftRows float64) *lookupPath {
	if s.table.Kind == catalog.KindVirtual {
		return nil
	}
	p.indexed(s)
	var own colSet
	own.addList(s.cols)
	var sargs []sarg
	for i, c := range on {
		if s.secured && !leakproof(c) {
			continue
		}
		if cmp, ok := c.(*expr.Compare); ok && cmp.Op == expr.EQ && !expr.HasSubquery(c) {
			sargs = p.appendSargs(sargs, s, own, c, i)
		}
	}
	if len(sargs) == 0 {
		return nil
	}
	for i, c := range s.conds {
		if cmp, ok := c.(*expr.Compare); ok && cmp.Op == expr.EQ && !expr.HasSubquery(c) {
			sargs = p.appendSargs(sargs, s, own, c, len(on)+i)
		}
	}
	full := need.clone()
	for _, c := range on {
		addOwn(c, own, &full)
	}
	for _, c := range s.conds {
		addOwn(c, own, &full)
	}
	var best *lookupPath
	try := func(ix *catalog.IndexDescriptor) {
		if lk := p.lookupBy(s, ix, sargs, len(on), left, full, leftRows); lk != nil && (best == nil || lk.cost < best.cost) {
			best = lk
		}
	}
	try(&s.table.Primary)
	for i := range s.table.Indexes {
		if p.usable(s, i, append(s.conds[:len(s.conds):len(s.conds)], on...)) {
			try(&s.table.Indexes[i])
		}
	}
	if best != nil && s.table.IsPartitioned() {
		best.cost = best.cost*p.touched(s, on) + leftRows*applyCost
	}
	return best
}

// addOwn adds the columns of own that e reads.
func addOwn(e expr.Scalar, own colSet, s *colSet) {
	used(e).each(func(id int) {
		if own.has(id) {
			s.add(id)
		}
	})
}

func (p *physical) lookupBy(s *scanRel, ix *catalog.IndexDescriptor, sargs []sarg, nOn int, left, need colSet, leftRows float64) *lookupPath {
	lk := &lookupPath{index: ix}
	sel, joined := 1.0, false
	for i := range ix.Columns {
		ord := s.table.Ordinal(ix.Columns[i].ColumnID)
		var eq *sarg
		for k := range sargs {
			if sargs[k].ord == ord && collation.SameOrder(sargs[k].coll, ix.Columns[i].Coll) && used(sargs[k].value).within(left) && (eq == nil || sargs[k].cond < nOn) {
				eq = &sargs[k]
			}
		}
		if eq == nil {
			break
		}
		lk.keys = append(lk.keys, eq.value)
		if eq.cond < nOn {
			lk.conds = append(lk.conds, eq.cond)
			joined = true
		} else {
			lk.own = append(lk.own, eq.cond-nOn)
		}
		sel /= math.Max(p.distinct(s, ord), 1)
	}
	if !joined {
		return nil
	}
	lk.unique = len(lk.keys) == len(ix.Columns) && (ix.Unique || ix == &s.table.Primary)
	lk.fetch = !covers(s, ix, need)
	lk.rows = math.Max(p.tableRows(s)*sel, 0.01)
	perLeft := batchedCost + lk.rows*p.entryCost(s)
	if lk.unique {
		lk.rows = math.Min(lk.rows, 1)
		perLeft = batchedCost
	}
	if lk.fetch {
		perLeft += batchedCost * lk.rows
	}
	lk.cost = leftRows * perLeft
	return lk
}

// lookupJoin makes the node for a lookup path.
func (p *physical) lookupJoin(kind JoinKind, left pnode, s *scanRel, on []expr.Scalar, lk *lookupPath, need colSet) pnode {
	if p.err != nil {
		return left
	}
	if s.table.IsPartitioned() {
		return p.lookupParts(kind, left, s, on, lk, need)
	}
	var rest []expr.Scalar
	var own colSet
	own.addList(s.cols)
	need = need.clone()
	for i, c := range on {
		if indexOf(lk.conds, i) < 0 {
			rest = append(rest, c)
			addOwn(c, own, &need)
		}
	}
	sel := p.joinSelectivity(rest, left.est.Rows, 1)
	joined := len(rest)
	for i, c := range s.conds {
		if indexOf(lk.own, i) < 0 {
			rest = append(rest, c)
			addUsed(c, &need)
			sel *= p.selectivity(c)
		}
	}
	if s.secured { // The policies come first.
		rest = append(rest[joined:len(rest):len(rest)], rest[:joined]...)
	}
	rcols, ords := s.delivered(need)
	both := append(append(make([]int, 0, len(left.cols)+len(rcols)), left.cols...), rcols...)
	cols := both
	if kind == SemiJoin || kind == AntiJoin {
		cols = left.cols
	}
	est := Estimate{Rows: joinRows(kind, left.est.Rows, lk.rows, sel), Cost: left.est.Cost + lk.cost}
	n := &LookupJoin{Base: p.base(cols, est), Kind: kind, Left: left.node,
		Access: Access{Table: s.table, Alias: s.alias, Index: lk.index, Ordinals: ords, Fetch: !covers(s, lk.index, need),
			Policies: s.policies},
		Keys: p.compileAll(lk.keys, left.cols), On: p.conjunction(rest, both)}
	return pnode{node: n, cols: cols, order: keptOrder(kind, left.order, lk.unique), est: est}
}

// keptOrder is the left side's order after a join that keeps it. Full joins have no order: rows of
// the right side alone come last.
func keptOrder(kind JoinKind, order []orderKey, unique bool) []orderKey {
	switch {
	case kind == FullJoin:
		return nil
	case unique || kind == SemiJoin || kind == AntiJoin:
		return order
	}
	return repeated(order)
}
