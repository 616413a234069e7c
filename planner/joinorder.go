package planner

import (
	"math"

	"github.com/percodb/percodb/planner/expr"
)

// exhaustiveUpTo is the number of tables up to which all left-deep orders are compared; beyond it
// tables are added one by one, the cheapest connected one first.
const exhaustiveUpTo = 6

// joinGroup is a tree of inner joins, flattened: sources that may be joined in any order, and all conditions.
type joinGroup struct {
	p      *physical
	leaves []leaf
	conds  []groupCond
	need   colSet // columns needed above, and by any condition
}

// leaf is a source of a join group.
type leaf struct {
	r     rel
	scan  *scanRel // set if it is a plain table
	makes colSet
	need  colSet
	plan  pnode // of a leaf that is no plain table
	rows  float64
	cost  float64 // reading it on its own
}

// groupCond is a condition of a join group and the leaves it reads.
type groupCond struct {
	e      expr.Scalar
	leaves colSet
	equi   bool
	sel    float64
}

// flatten collects the leaves and conditions of nested inner joins.
func (g *joinGroup) flatten(r rel, conds []expr.Scalar) []expr.Scalar {
	switch j := r.(type) {
	case *joinRel:
		if j.kind == InnerJoin && !j.lateral {
			conds = g.flatten(j.left, append(conds, j.on...))
			return g.flatten(j.right, conds)
		}
	case *filterRel:
		if in, ok := j.input.(*joinRel); ok && in.kind == InnerJoin && !in.lateral {
			return g.flatten(in, append(conds, j.conds...))
		}
	}
	g.leaves = append(g.leaves, leaf{r: r})
	return conds
}

// joinGroup orders and plans a group of inner joins.
func (p *physical) joinGroup(j *joinRel, a ask) pnode {
	g := &joinGroup{p: p, leaves: make([]leaf, 0, 4)}
	conds := g.flatten(j, nil)
	for _, c := range conds {
		if expr.IsFalse(c) {
			return p.nothing(outputSet(j), a)
		}
	}
	g.need = a.need.clone()
	for _, c := range conds {
		addUsed(c, &g.need)
	}
	for i := range g.leaves {
		g.prepare(&g.leaves[i])
	}
	g.connect(conds)
	if p.err != nil {
		return pnode{node: &Values{}}
	}
	order, cost := g.bestOrder()
	if ordered, ok := g.orderedPlan(a, cost); ok {
		return ordered
	}
	return g.build(order, nil, 0)
}

// prepare computes the properties and cost of a leaf.
func (g *joinGroup) prepare(l *leaf) {
	p := g.p
	outputs(l.r, &l.makes)
	g.need.each(func(id int) {
		if l.makes.has(id) {
			l.need.add(id)
		}
	})
	if s, ok := l.r.(*scanRel); ok && !falseScan(s) {
		l.scan = s
		l.rows = math.Max(p.scanRows(s), 1)
		l.cost = p.scanCost(s, l.need)
		return
	}
	l.plan = p.plan(l.r, ask{need: l.need})
	l.rows, l.cost = math.Max(l.plan.est.Rows, 1), l.plan.est.Cost
}

func falseScan(s *scanRel) bool {
	for _, c := range s.conds {
		if expr.IsFalse(c) {
			return true
		}
	}
	return false
}

// scanRows guesses how many rows of a table pass its conditions.
func (p *physical) scanRows(s *scanRel) float64 {
	rows := unknownRows
	if !isVirtual(s) {
		rows = p.tableRows(s)
	}
	sargs := p.sargs(s, s.conds)
	for _, ix := range uniqueIndexes(s.table) {
		whole := ix.Where == nil
		for i := range ix.Columns {
			eq := equalityOn(sargs, s.table.Ordinal(ix.Columns[i].ColumnID), ix.Columns[i].Coll)
			whole = whole && eq != nil && eq.each == nil
		}
		if whole {
			return 1
		}
	}
	return rows * p.selectivityOf(s.conds)
}

// connect finds which leaves each condition reads.
func (g *joinGroup) connect(conds []expr.Scalar) {
	g.conds = make([]groupCond, 0, len(conds))
	for _, e := range conds {
		c := groupCond{e: e}
		u := used(e)
		for i := range g.leaves {
			if u.intersects(g.leaves[i].makes) {
				c.leaves.add(i)
			}
		}
		cmp, ok := e.(*expr.Compare)
		c.equi = ok && cmp.Op == expr.EQ
		c.sel = g.p.pairSelectivity(e, 0, 0)
		if c.equi && g.bound(cmp) {
			c.sel = 1 // both sides equal one constant: the condition filters nothing
		}
		g.conds = append(g.conds, c)
	}
}

// bound reports whether both columns of an equality are fixed to constants by conditions of their own.
func (g *joinGroup) bound(c *expr.Compare) bool { return g.fixed(c.L) && g.fixed(c.R) }

func (g *joinGroup) fixed(e expr.Scalar) bool {
	col, ok := e.(*expr.Column)
	if !ok || col.ID < 0 {
		return false
	}
	for i := range g.leaves {
		if s := g.leaves[i].scan; s != nil && s.ordinalOf(col) >= 0 {
			for _, c := range s.conds {
				if at, _, values := equalities(c); at != nil && at.ID == col.ID && len(values) == 1 {
					return true
				}
			}
		}
	}
	return false
}

// step is the state of an order under construction.
type step struct {
	rows, cost float64
	last       int
	prev       int // mask before last was added
	valid      bool
}

// bestOrder returns the cheapest order found and its cost.
func (g *joinGroup) bestOrder() ([]int, float64) {
	if len(g.leaves) <= exhaustiveUpTo {
		return g.exhaustive()
	}
	return g.greedy(g.smallest())
}

// smallest is the leaf with the fewest rows.
func (g *joinGroup) smallest() int {
	best := 0
	for i := range g.leaves {
		if g.leaves[i].rows < g.leaves[best].rows {
			best = i
		}
	}
	return best
}

// exhaustive compares all left-deep orders by dynamic programming. A table that is not connected to those before it is
// considered only if no other is connected.
func (g *joinGroup) exhaustive() ([]int, float64) {
	n := len(g.leaves)
	steps := make([]step, 1<<n)
	for i := range g.leaves {
		steps[1<<i] = step{rows: g.leaves[i].rows, cost: g.leaves[i].cost, last: i, valid: true}
	}
	for mask := 1; mask < 1<<n; mask++ {
		if !steps[mask].valid {
			continue
		}
		done := colSet{low: uint64(mask)}
		any := g.anyConnected(done, n)
		for i := 0; i < n; i++ {
			if mask&(1<<i) != 0 || (any && !g.connected(done, i)) {
				continue
			}
			rows, cost := g.extend(done, steps[mask].rows, steps[mask].cost, i)
			to := &steps[mask|1<<i]
			if !to.valid || cost < to.cost {
				*to = step{rows: rows, cost: cost, last: i, prev: mask, valid: true}
			}
		}
	}
	order := make([]int, n)
	mask := 1<<n - 1
	cost := steps[mask].cost
	for at := n - 1; at >= 0; at-- {
		order[at] = steps[mask].last
		mask = steps[mask].prev
	}
	return order, cost
}

// greedy starts with a leaf and adds the connected leaf that leaves the fewest rows, the cheaper one
// on a tie.
func (g *joinGroup) greedy(first int) ([]int, float64) {
	n := len(g.leaves)
	order := make([]int, 0, n)
	order = append(order, first)
	var done colSet
	done.add(first)
	rows, cost := g.leaves[first].rows, g.leaves[first].cost
	for len(order) < n {
		any := g.anyConnected(done, n)
		best, bestRows, bestCost := -1, 0.0, 0.0
		for i := 0; i < n; i++ {
			if done.has(i) || (any && !g.connected(done, i)) {
				continue
			}
			r, c := g.extend(done, rows, cost, i)
			if best < 0 || r < bestRows || (r == bestRows && c < bestCost) {
				best, bestRows, bestCost = i, r, c
			}
		}
		order = append(order, best)
		done.add(best)
		rows, cost = bestRows, bestCost
	}
	return order, cost
}

func (g *joinGroup) anyConnected(done colSet, n int) bool {
	for i := 0; i < n; i++ {
		if !done.has(i) && g.connected(done, i) {
			return true
		}
	}
	return false
}

// connected reports whether a condition links leaf i to those done and to no other.
func (g *joinGroup) connected(done colSet, i int) bool {
	for k := range g.conds {
		c := &g.conds[k]
		if c.leaves.has(i) && c.leaves.intersects(done) && g.ready(c, done, i) {
			return true
		}
	}
	return false
}

// ready reports whether a condition reads only leaf i and those done.
func (g *joinGroup) ready(c *groupCond, done colSet, i int) bool {
	with := done.clone()
	with.add(i)
	return c.leaves.within(with)
}

// extend estimates adding leaf i to a join of those done.
func (g *joinGroup) extend(done colSet, rows, cost float64, i int) (float64, float64) {
	l := &g.leaves[i]
	sel, equi := 1.0, false
	for k := range g.conds {
		c := &g.conds[k]
		if c.leaves.has(i) && c.leaves.intersects(done) && g.ready(c, done, i) {
			sel *= c.sel
			equi = equi || c.equi
		}
	}
	out := math.Max(rows*l.rows*sel, 1)
	var join float64
	if equi {
		small, large := math.Min(rows, l.rows), math.Max(rows, l.rows)
		join = l.cost + small*hashCost + large*probeCost
	} else {
		join = l.cost + rows*l.rows*pairCost
	}
	if lk := g.lookup(done, i, rows); lk != nil {
		join = math.Min(join, lk.cost)
	}
	return out, cost + join + out*emitCost
}

// between returns the conditions that adding leaf i makes testable.
func (g *joinGroup) between(done colSet, i int) []expr.Scalar {
	var out []expr.Scalar
	for k := range g.conds {
		c := &g.conds[k]
		if c.leaves.has(i) && c.leaves.intersects(done) && g.ready(c, done, i) {
			out = append(out, c.e)
		}
	}
	return out
}

// lookup finds an index of leaf i that the leaves done can drive.
func (g *joinGroup) lookup(done colSet, i int, rows float64) *lookupPath {
	l := &g.leaves[i]
	if l.scan == nil {
		return nil
	}
	conds := g.between(done, i)
	if len(conds) == 0 {
		return nil
	}
	var left colSet
	done.each(func(k int) { left.addAll(g.leaves[k].makes) })
	return g.p.lookup(l.scan, conds, left, l.need, rows)
}

// build makes the nodes for an order. If an order of rows is requested (want), the first leaf delivers it, and only
// joins that preserve it are used.
func (g *joinGroup) build(order []int, want []orderKey, limit float64) pnode {
	var done colSet
	done.add(order[0])
	at := g.leafPlan(order[0], want, limit)
	at = g.filterAlone(at, order[0])
	for _, i := range order[1:] {
		if len(want) > 0 {
			at = g.addKept(at, done, i, math.Min(limit, g.leaves[order[0]].rows))
		} else {
			at = g.add(at, done, i)
		}
		done.add(i)
	}
	return at
}

// leafPlan plans a leaf on its own.
func (g *joinGroup) leafPlan(i int, want []orderKey, limit float64) pnode {
	l := &g.leaves[i]
	if l.scan != nil {
		return g.p.scan(l.scan, ask{need: l.need, want: want, limit: limit})
	}
	return l.plan
}

// filterAlone applies the conditions that read one leaf, or none, and could not be pushed into it.
func (g *joinGroup) filterAlone(in pnode, i int) pnode {
	var conds []expr.Scalar
	for k := range g.conds {
		c := &g.conds[k]
		if c.leaves.empty() || (c.leaves.count() == 1 && c.leaves.has(i)) {
			conds = append(conds, c.e)
		}
	}
	return g.filtered(in, conds)
}

// filterOnly applies the conditions of a later leaf that read it alone.
func (g *joinGroup) filterOnly(in pnode, i int) pnode {
	var conds []expr.Scalar
	for k := range g.conds {
		if c := &g.conds[k]; c.leaves.count() == 1 && c.leaves.has(i) {
			conds = append(conds, c.e)
		}
	}
	return g.filtered(in, conds)
}

// filtered puts a filter on a plan where there are conditions.
func (g *joinGroup) filtered(in pnode, conds []expr.Scalar) pnode {
	if len(conds) == 0 || g.p.err != nil {
		return in
	}
	est := Estimate{Rows: math.Max(in.est.Rows*g.p.selectivityOf(conds), 1), Cost: in.est.Cost + in.est.Rows*g.p.condCost(conds)}
	return pnode{cols: in.cols, order: in.order, est: est, node: &Filter{Base: g.p.base(in.cols, est), Input: in.node,
		Cond: g.p.conjunction(conds, in.cols)}}
}

// addKept joins leaf i so that the rows stay in their order: by lookup, or, if it is small, by reading it once and
// testing it for each row. rows is the expected number of rows requested.
func (g *joinGroup) addKept(at pnode, done colSet, i int, rows float64) pnode {
	p, l := g.p, &g.leaves[i]
	if p.err != nil {
		return at
	}
	conds := g.between(done, i)
	if byKey, _ := g.keptCost(done, i, rows); byKey {
		joined := p.lookupJoin(InnerJoin, at, l.scan, conds, p.lookup(l.scan, conds, setOf(at.cols), l.need, at.est.Rows), l.need)
		if n, ok := joined.node.(*LookupJoin); ok {
			n.Limit = rowHint(rows)
		}
		return joined
	}
	right := g.filterOnly(g.leafPlan(i, nil, 0), i)
	if p.err != nil {
		return at
	}
	return p.equiJoin(InnerJoin, at, right, conds, nil)
}

// keptCost is the cost of joining leaf i to the given number of rows that stay in their order, and whether by lookup:
// each row individually, whereas other plans look up many together.
func (g *joinGroup) keptCost(done colSet, i int, rows float64) (lookup bool, cost float64) {
	l := &g.leaves[i]
	cost = l.cost + rows*l.rows*pairCost
	if g.hasAlone(i) {
		return false, cost
	}
	if lk := g.lookup(done, i, rows); lk != nil && 2*lk.cost < cost {
		return true, 2 * lk.cost
	}
	return false, cost
}

// add joins leaf i to the joined leaves.
func (g *joinGroup) add(at pnode, done colSet, i int) pnode {
	p, l := g.p, &g.leaves[i]
	if p.err != nil {
		return at
	}
	conds := g.between(done, i)
	left := setOf(at.cols)
	alone := g.hasAlone(i)
	if l.scan != nil && !alone {
		lk := p.lookup(l.scan, conds, left, l.need, at.est.Rows)
		if lk != nil && lk.cost < g.hashCostOf(at, l) {
			return p.lookupJoin(InnerJoin, at, l.scan, conds, lk, l.need)
		}
	}
	right := g.filterOnly(g.leafPlan(i, nil, 0), i)
	if p.err != nil {
		return at
	}
	keys := equiKeys(conds, left, setOf(right.cols))
	// The hash table is built of the smaller side; nested loops keep the smaller side too.
	if right.est.Rows > at.est.Rows {
		for k := range keys {
			keys[k].left, keys[k].right = keys[k].right, keys[k].left
		}
		return p.equiJoin(InnerJoin, right, at, conds, keys)
	}
	return p.equiJoin(InnerJoin, at, right, conds, keys)
}

func (g *joinGroup) hasAlone(i int) bool {
	for k := range g.conds {
		if c := &g.conds[k]; c.leaves.count() == 1 && c.leaves.has(i) {
			return true
		}
	}
	return false
}

// hashCostOf is the cost of joining leaf l by hash.
func (g *joinGroup) hashCostOf(at pnode, l *leaf) float64 {
	small, large := math.Min(at.est.Rows, l.rows), math.Max(at.est.Rows, l.rows)
	return l.cost + small*hashCost + large*probeCost
}

// orderedPlan tries, for a query that needs few rows in an order that one table's index delivers, to start with that
// table and join the others row by row: most of the first is then never read.
func (g *joinGroup) orderedPlan(a ask, cost float64) (pnode, bool) {
	if len(a.want) == 0 || a.limit == 0 {
		return pnode{}, false
	}
	first := -1
	for i := range g.leaves {
		if g.leaves[i].scan != nil && g.leaves[i].makes.has(a.want[0].id) {
			first = i
		}
	}
	if first < 0 || isVirtual(g.leaves[first].scan) {
		return pnode{}, false
	}
	for _, w := range a.want {
		if !g.leaves[first].makes.has(w.id) {
			return pnode{}, false
		}
	}
	order := g.keptFrom(first, a.limit)
	// Joins may drop rows: as many more are read.
	_, rows := g.rowsOf(order)
	share := math.Min(rows/math.Max(g.leaves[first].rows, 1), 1)
	limit := a.limit / math.Max(share, 0.001)
	s := g.leaves[first].scan
	need := g.leaves[first].need.clone()
	for _, c := range s.conds {
		addUsed(c, &need)
	}
	pa := g.p.choosePath(s, s.conds, need, a.want, limit)
	if !pa.ordered {
		return pnode{}, false
	}
	if pa.cost+g.keptJoins(order, math.Min(limit, pa.rows)) > cost+sortPrice(rows) {
		return pnode{}, false
	}
	return g.build(order, a.want, limit), true
}

// keptJoins is the cost of joining the leaves of an order to the first of them row by row.
func (g *joinGroup) keptJoins(order []int, read float64) float64 {
	var done colSet
	done.add(order[0])
	total := 0.0
	for _, i := range order[1:] {
		_, cost := g.keptCost(done, i, read)
		total += cost
		done.add(i)
	}
	return total
}

// rowsOf estimates the rows of a whole order.
func (g *joinGroup) rowsOf(order []int) (cost, rows float64) {
	var done colSet
	done.add(order[0])
	rows, cost = g.leaves[order[0]].rows, g.leaves[order[0]].cost
	for _, i := range order[1:] {
		rows, cost = g.extend(done, rows, cost, i)
		done.add(i)
	}
	return cost, rows
}

// keptFrom orders the leaves behind the first by the price of joining them to so many rows, connected ones
// before others.
func (g *joinGroup) keptFrom(first int, rows float64) []int {
	order := []int{first}
	var done colSet
	done.add(first)
	for n := len(g.leaves); len(order) < n; {
		any := g.anyConnected(done, n)
		best, bestCost := -1, 0.0
		for i := range g.leaves {
			if done.has(i) || (any && !g.connected(done, i)) {
				continue
			}
			if _, cost := g.keptCost(done, i, rows); best < 0 || cost < bestCost {
				best, bestCost = i, cost
			}
		}
		order = append(order, best)
		done.add(best)
	}
	return order
}
