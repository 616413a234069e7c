package planner

import (
	"math"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
)

// sarg is a condition on one column that an index can serve: equality with a value, membership in a
// list, or a bound. Its values do not depend on the table's row.
type sarg struct {
	ord   int // the table column
	cond  int // index of the condition
	op    expr.CmpOp
	value expr.Scalar // of an EQ or a bound
	each  expr.Scalar // an array; the condition holds for each of its elements
	n     float64     // expected elements of each
	// exact: the span selects precisely the rows for which the condition is true, so that it need
	// not be tested again.
	exact bool
	coll  *collation.Collation // of the comparison
	// tuples are compared with several columns: ord is noColumn then.
	tuples *expr.TupleList
}

const noColumn = -2

// sargs finds the conditions of a scan that an index could serve.
func (p *physical) sargs(s *scanRel, conds []expr.Scalar) []sarg {
	var own colSet
	own.addList(s.cols)
	var out []sarg
	for i, c := range conds {
		out = p.appendSargs(out, s, own, c, i)
	}
	return slices.DeleteFunc(out, func(a sarg) bool {
		return a.ord >= 0 && a.ord < len(s.table.Columns) && !a.fits(s.table.Columns[a.ord].Type) // Beyond are the expressions of indexes.
	})
}

// fits reports whether the sarg's value can be a key of a column of type t. A record of another type than the column's has other fields; comparing the
// two is an error, which the condition answers.
func (a *sarg) fits(t types.Type) bool {
	switch {
	case !t.Underlying().IsRow():
		return true
	case a.each != nil:
		return a.each.Type().Elem().Underlying().OID == t.Underlying().OID
	}
	return a.value.Type().Underlying().OID == t.Underlying().OID
}

func (p *physical) appendSargs(out []sarg, s *scanRel, own colSet, cond expr.Scalar, i int) []sarg {
	switch c := cond.(type) {
	case *expr.Compare:
		if ord := p.ordinalOf(s, c.L); ord >= 0 && c.Op != expr.NE && independent(c.R, own) {
			out = append(out, sarg{ord: ord, cond: i, op: c.Op, value: c.R, coll: c.Class.Coll, exact: true})
		} else if ord := p.ordinalOf(s, c.R); ord >= 0 && c.Op != expr.NE && independent(c.L, own) {
			out = append(out, sarg{ord: ord, cond: i, op: c.Op.Commute(), value: c.L, coll: c.Class.Coll, exact: true})
		}
	case *expr.Between:
		if ord := p.ordinalOf(s, c.X); ord >= 0 && !c.Not && independent(c.Low, own) && independent(c.High, own) {
			out = append(out, sarg{ord: ord, cond: i, op: expr.GE, value: c.Low, coll: c.Class.Coll},
				sarg{ord: ord, cond: i, op: expr.LE, value: c.High, coll: c.Class.Coll})
		}
	case *expr.InList:
		if ord := p.ordinalOf(s, c.X); ord >= 0 && !c.Not && allIndependent(c.List, own) {
			t := c.Class
			if at := t.ArrayOf(); at.Valid() {
				out = append(out, sarg{ord: ord, cond: i, op: expr.EQ, n: float64(len(c.List)),
					each: &expr.Array{Elems: c.List, Typ: at}, coll: c.Class.Coll, exact: true})
			}
		}
	case *expr.TupleList:
		if allIndependent(c.List, own) {
			out = append(out, sarg{ord: noColumn, cond: i, tuples: c})
		}
	case *expr.Quantified:
		cmp, plain := c.Plain()
		if ord := p.ordinalOf(s, c.X); ord >= 0 && plain && cmp.Op == expr.EQ && !c.All && independent(c.Array, own) {
			out = append(out, sarg{ord: ord, cond: i, op: expr.EQ, n: 10, each: c.Array, coll: cmp.Class.Coll, exact: true})
		}
	case *expr.Call:
		return p.appendTruth(out, s, c, i)
	case *expr.Like:
		if low, high, ok := p.likeBounds(s, own, c, i); ok {
			return append(out, low, high)
		}
	case *expr.IsNull:
		return p.appendTruth(out, s, c, i)
	case *expr.Column:
		// A boolean column alone means that it is true.
		if ord := p.ordinalOf(s, c); ord >= 0 {
			out = append(out, sarg{ord: ord, cond: i, op: expr.EQ, value: expr.NewBool(true), exact: true})
		}
	case *expr.Not:
		if ord := p.ordinalOf(s, c.X); ord >= 0 {
			out = append(out, sarg{ord: ord, cond: i, op: expr.EQ, value: expr.NewBool(false), exact: true})
		}
	}
	return out
}

// ordinalOf returns the table column that e is, -1 if it is none.
func (s *scanRel) ordinalOf(e expr.Scalar) int {
	c, ok := expr.Unlabel(e).(*expr.Column)
	if !ok {
		return -1
	}
	if s.part {
		return indexOf(s.cols, c.ID)
	}
	// The column IDs of any other scan are consecutive.
	if i := c.ID - s.cols[0]; i >= 0 && i < len(s.cols) {
		return i
	}
	return -1
}

func isVirtual(s *scanRel) bool { return s.table.Kind == catalog.KindVirtual }

// independent reports whether a value can be computed before the table is read.
func independent(e expr.Scalar, own colSet) bool {
	if isLeaf(e) {
		c, ok := e.(*expr.Column)
		return !ok || !own.has(c.ID)
	}
	return !used(e).intersects(own) && !expr.Volatile(e)
}

func allIndependent(es []expr.Scalar, own colSet) bool {
	for _, e := range es {
		if !independent(e, own) {
			return false
		}
	}
	return true
}

// path is one way to read a table.
type path struct {
	index   *catalog.IndexDescriptor
	eq      []*sarg    // of the leading columns
	tuples  *tuplePath // in eq's place
	low     *sarg
	high    *sarg
	point   bool // at most one row
	fetch   bool
	reverse bool
	order   []orderKey
	ordered bool // the requested order is delivered
	// prefix is the number of leading keys of the requested order that are delivered, if it is not delivered whole. runs is the expected
	// number of rows that agree in them.
	prefix int
	runs   float64
	rows   float64
	cost   float64
	// where is the predicate of the index, nil for none.
	where expr.Scalar
	// fetchCost is the cost of the row of an entry.
	fetchCost float64
}

// choosePath picks the cheapest way to read a scan.
func (p *physical) choosePath(s *scanRel, conds []expr.Scalar, need colSet, want []orderKey, limit float64) path {
	p.indexed(s)
	sargs := p.sargs(s, conds)
	total := p.tableRows(s)
	rows := total * p.selectivityOf(conds)
	best := p.indexPath(s, &s.table.Primary, sargs, need, want, total, rows, limit)
	consider := func(alt path) {
		if alt.useful() && alt.better(&best) {
			best = alt
		}
	}
	p.tuplePaths(s, &s.table.Primary, sargs, need, want, total, rows, limit, consider)
	for i := range s.table.Indexes {
		if !p.usable(s, i, conds) {
			continue
		}
		ix := &s.table.Indexes[i]
		consider(p.indexPath(s, ix, sargs, need, want, total, rows, limit))
		p.tuplePaths(s, ix, sargs, need, want, total, rows, limit, consider)
	}
	return best
}

// useful: an index path must provide a key, an order, or narrower rows.
func (a *path) useful() bool {
	return len(a.eq) > 0 || a.tuples != nil || a.low != nil || a.high != nil || a.ordered || a.prefix > 0 || !a.fetch || a.index.Where != nil
}

// better prefers a point, then the lower cost; on a tie the one already chosen stays.
func (a *path) better(b *path) bool {
	if a.point != b.point {
		return a.point
	}
	return a.cost < b.cost*0.999
}

// indexPath determines what an index can do.
func (p *physical) indexPath(s *scanRel, ix *catalog.IndexDescriptor, sargs []sarg, need colSet, want []orderKey, total, rows, limit float64) path {
	a := path{index: ix, rows: math.Max(rows, 1)}
	sel, spans, eachSeen, bounded := 1.0, 1.0, false, 0
	for i := range ix.Columns {
		ord := s.table.Ordinal(ix.Columns[i].ColumnID)
		eq := equalityOn(sargs, ord, ix.Columns[i].Coll)
		if eq == nil {
			a.low, a.high = boundsOn(sargs, ord, ix.Columns[i].Coll)
			bounded = ord
			break
		}
		a.eq = append(a.eq, eq)
		per := p.equalPer(s, ord, eq)
		if eq.each != nil {
			eachSeen = true
			spans *= math.Max(eq.n, 1)
			per *= math.Max(eq.n, 1)
		}
		sel *= math.Min(per, 1)
	}
	whole := len(a.eq) == len(ix.Columns)
	unique := ix.Unique || ix == &s.table.Primary
	a.point = whole && unique && !eachSeen
	switch {
	case a.low != nil || a.high != nil:
		sel *= p.rangeShare(s, bounded, a.low.valueOf(), a.high.valueOf())
	}
	if where := p.predicateOf(s, ix); where != nil {
		sel *= p.partialShare(s, &a, where)
		a.where = where
	}
	entries := math.Max(total*sel, 1)
	if whole && unique {
		entries = math.Min(entries, spans)
	}
	a.fetch, a.fetchCost = !covers(s, ix, need), p.fetchCost(s, ix)
	a.setOrder(s, want, eachSeen)
	if a.prefix > 0 {
		a.runs = math.Max(a.rows/p.prefixDistinct(a.order, want[:a.prefix], a.rows), 1)
	}
	a.price(entries, spans, p.entryCost(s), limit, want)
	return a
}

// equalPer guesses the share of rows with one value of an equality.
func (p *physical) equalPer(s *scanRel, ord int, eq *sarg) float64 {
	if eq.each == nil {
		if share, ok := p.equalShare(s, ord, eq.value); ok {
			return share
		}
	}
	return 1 / math.Max(p.distinct(s, ord), 1)
}

// fetchCost is the cost of reading a row by an entry of the index. Where the index is in the order of the primary key, neighbours in it are
// neighbours in the table.
func (p *physical) fetchCost(s *scanRel, ix *catalog.IndexDescriptor) float64 {
	c := p.tableStats(s).Columns[ix.Columns[0].ColumnID].Correlation
	return batchedCost - (batchedCost-neighbourCost)*c*c
}

// valueOf returns the value of a bound, nil for none.
func (a *sarg) valueOf() expr.Scalar {
	if a == nil {
		return nil
	}
	return a.value
}

// price estimates the cost of reading a path, perRow each entry and up to limit rows when the order is right.
func (a *path) price(entries, spans, perRow, limit float64, want []orderKey) {
	if a.point {
		a.rows, a.cost = 1, pointCost
		if a.fetch {
			a.cost += pointCost
		}
		return
	}
	a.rows = math.Min(a.rows, entries)
	read, sorted := entries, a.rows
	switch {
	case limit <= 0:
	case limit < a.rows && (a.ordered || len(want) == 0):
		read = math.Max(entries*limit/a.rows, 1)
	case a.prefix > 0 && limit+a.runs < a.rows:
		sorted = limit + a.runs
		read = math.Max(entries*sorted/a.rows, 1)
	}
	if a.fetch {
		perRow += a.fetchCost
	}
	a.cost = spans*spanCost + read*perRow
	switch {
	case len(want) == 0 || a.ordered:
	case a.prefix > 0:
		a.cost += sorted * sortCost * math.Log2(a.runs+2)
	default:
		a.cost += sortPrice(a.rows)
	}
}

func sortPrice(rows float64) float64 {
	return rows * sortCost * math.Log2(rows+2)
}

// equalityOn picks the condition that fixes a column of an index in collation c: a single value before a list.
func equalityOn(sargs []sarg, ord int, c *collation.Collation) *sarg {
	var best *sarg
	for i := range sargs {
		if a := &sargs[i]; a.ord == ord && a.op == expr.EQ && collation.SameOrder(a.coll, c) && (best == nil || (best.each != nil && a.each == nil)) {
			best = a
		}
	}
	return best
}

// boundsOn picks one lower and one upper bound of a column of an index in collation c.
func boundsOn(sargs []sarg, ord int, c *collation.Collation) (low, high *sarg) {
	for i := range sargs {
		a := &sargs[i]
		if a.ord != ord || !collation.SameOrder(a.coll, c) {
			continue
		}
		switch a.op {
		case expr.GT, expr.GE:
			if low == nil {
				low = a
			}
		case expr.LT, expr.LE:
			if high == nil {
				high = a
			}
		}
	}
	return low, high
}

// covers reports whether an index contains all the requested columns: its own, the primary key's and the included ones.
// The primary index contains the row.
func covers(s *scanRel, ix *catalog.IndexDescriptor, need colSet) bool {
	if ix == &s.table.Primary {
		return true
	}
	for ord, id := range s.cols {
		if !need.has(id) {
			continue
		}
		cid := s.table.ColumnAt(ord).ID
		if inIndex(ix, cid) || inIndex(&s.table.Primary, cid) {
			continue
		}
		included := false
		for _, inc := range ix.Include {
			included = included || inc == cid
		}
		if !included {
			return false
		}
	}
	return true
}

// setOrder determines the order that the index delivers, and whether it, or its reverse, is the requested one.
func (a *path) setOrder(s *scanRel, want []orderKey, each bool) {
	for i := range a.index.Columns {
		c := &a.index.Columns[i]
		ord := s.table.Ordinal(c.ColumnID)
		a.order = append(a.order, orderKey{id: s.columnID(ord), desc: c.Desc, nullsFirst: c.NullsFirst, coll: c.Coll,
			// A column fixed to one value is in any order.
			fixed: i < len(a.eq) && a.eq[i].each == nil,
			// For a column that is never NULL the position of NULLs is irrelevant.
			noNulls: s.table.ColumnAt(ord).NotNull || inIndex(&s.table.Primary, c.ColumnID) ||
				i < len(a.eq) || (i == len(a.eq) && (a.low != nil || a.high != nil))})
	}
	// Entries of one key lie in the order of the primary key.
	if a.index != &s.table.Primary && !a.index.Unique {
		for i := range s.table.Primary.Columns {
			c := &s.table.Primary.Columns[i]
			if ord := s.table.Ordinal(c.ColumnID); !inIndex(a.index, c.ColumnID) {
				a.order = append(a.order, orderKey{id: s.cols[ord], desc: c.Desc, nullsFirst: c.NullsFirst, coll: c.Coll, noNulls: true})
			}
		}
	}
	a.markUnique(s)
	if len(want) == 0 || a.point {
		a.ordered = a.point && len(want) > 0
		return
	}
	if satisfies(a.order, want) {
		a.ordered = true
		return
	}
	reversed := reverseOrder(a.order)
	if satisfies(reversed, want) {
		a.ordered, a.reverse, a.order = true, true, reversed
		return
	}
	forward, backward := commonPrefix(a.order, want), commonPrefix(reversed, want)
	if a.prefix = forward; backward > forward {
		a.prefix, a.reverse, a.order = backward, true, reversed
	}
}

// markUnique marks the key from which on the order has no ties: the whole key of a unique index that contains no NULL,
// and the primary key at the end of any other.
func (a *path) markUnique(s *scanRel) {
	if a.index != &s.table.Primary && a.index.Unique {
		for i := range a.order {
			if !a.order[i].noNulls {
				return
			}
		}
	}
	a.order[len(a.order)-1].unique = true
}

// partialShare guesses which share of the rows that the key selects have an entry in a partial index.
func (p *physical) partialShare(s *scanRel, a *path, where expr.Scalar) float64 {
	var conds []expr.Scalar
next:
	for _, c := range expr.Conjuncts(nil, where) {
		for _, eq := range a.eq {
			if eq.ord < len(s.cols) && used(c).has(s.cols[eq.ord]) {
				continue next // It selects the same rows.
			}
		}
		conds = append(conds, c)
	}
	return p.selectivityOf(conds)
}

// rest returns the conditions of a scan that the path's key and the predicate of its index do not settle.
func (p *physical) rest(s *scanRel, pa *path) []expr.Scalar {
	conds := s.conds
	settled := func(i int) bool {
		if pa.where != nil && p.implied(s, []expr.Scalar{pa.where}, conds[i]) {
			return true
		}
		if pa.tuples != nil && pa.tuples.settles(i) {
			return true
		}
		for _, e := range pa.eq {
			if e.cond == i && e.exact {
				return true
			}
		}
		return (pa.low != nil && pa.low.cond == i && pa.low.exact) || (pa.high != nil && pa.high.cond == i && pa.high.exact)
	}
	var out []expr.Scalar
	for i, c := range conds {
		if !settled(i) {
			out = append(out, c)
		}
	}
	return out
}
