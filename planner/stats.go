package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
)

// Defaults for unknown quantities. They are PostgreSQL's if it has one.
const (
	unknownRows        = 1000.0 // a table never analysed
	unknownDistinct    = 200.0
	equalSelectivity   = 0.005
	rangeSelectivity   = 1.0 / 3
	betweenSelectivity = 0.05
	likeSelectivity    = 0.05
	nullSelectivity    = 0.01
	otherSelectivity   = 0.5
	setFuncRows        = 1000.0
	changesRows        = 100.0
	recursiveGrowth    = 10.0 // rows of a recursive query over its first term
)

// Costs, in rows read in sequence: such a row takes about 0.12 µs, and the others were measured
// against it over tables of 100,000 rows with EXPLAIN ANALYZE.
const (
	pointCost     = 15.0 // an individual lookup by key
	batchedCost   = 9.0  // a lookup by key among many: anywhere in the table
	neighbourCost = 3.0  // a lookup by key beside the one before
	deletedCost   = 1.0  // passing a deleted row that garbage collection has not taken yet
	spanCost      = 15.0 // starting a span
	filterCost    = 0.3  // testing one row
	hashCost      = 3.0  // putting a row into a hash table
	probeCost     = 2.0
	pairCost      = 0.3  // testing a pair of rows
	sortCost      = 0.25 // per row and doubling
	applyCost     = 20.0 // restarting the right side
	emitCost      = 0.5  // computing a row
	subqueryCost  = 50.0
)

// tableStats returns the statistics of a scan's table.
func (p *physical) tableStats(s *scanRel) *catalog.TableStats {
	if s.stats == nil {
		st, err := p.b.r.Stats(p.b.ctx, s.table.ID)
		if err != nil {
			p.fail(err)
		}
		if s.table.IsPartitioned() && p.err == nil {
			st = p.partitionStats(s.table)
		}
		if st == nil {
			st = &catalog.TableStats{}
		}
		s.stats = st
	}
	return s.stats
}

func (p *physical) tableRows(s *scanRel) float64 {
	if n := p.tableStats(s).Rows; n > 0 {
		return n
	}
	return unknownRows
}

// entryCost is the cost of reading an entry of the table, or of an index, including the deleted ones between the
// entries. Tables that serve as queues have many of them.
func (p *physical) entryCost(s *scanRel) float64 {
	return 1 + filterCost + deletedCost*p.tableStats(s).Deleted/p.tableRows(s)
}

// distinct guesses the number of different values of a table column.
func (p *physical) distinct(s *scanRel, ord int) float64 {
	st := p.tableStats(s)
	rows := p.tableRows(s)
	id := s.table.ColumnAt(ord).ID
	if c, ok := st.Columns[id]; ok && c.Distinct > 0 {
		return math.Min(c.Distinct, rows)
	}
	if uniqueAlone(s.table, id) {
		return rows
	}
	return math.Min(unknownDistinct, math.Max(rows/5, 1))
}

// uniqueAlone reports whether a column is a unique key by itself.
func uniqueAlone(t *catalog.TableDescriptor, id uint32) bool {
	if len(t.Primary.Columns) == 1 && t.Primary.Columns[0].ColumnID == id {
		return true
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if ix.Unique && ix.Where == nil && len(ix.Columns) == 1 && ix.Columns[0].ColumnID == id && ix.State == catalog.IndexPublic {
			return true
		}
	}
	return false
}

// columnDistinct guesses the number of different values of any column.
func (p *physical) columnDistinct(id int, rows float64) float64 {
	info := &p.b.cols[id]
	if info.scan != nil {
		return math.Min(p.distinct(info.scan, info.ordinal), math.Max(rows, 1))
	}
	return math.Min(unknownDistinct, math.Max(rows, 1))
}

// selectivity guesses the share of rows that pass a condition.
func (p *physical) selectivity(e expr.Scalar) float64 {
	switch e := e.(type) {
	case *expr.Const:
		if expr.IsTrue(e) {
			return 1
		}
		return 0
	case *expr.And:
		s := 1.0
		for _, a := range e.Args {
			s *= p.selectivity(a)
		}
		return s
	case *expr.Or:
		miss := 1.0
		for _, a := range e.Args {
			miss *= 1 - p.selectivity(a)
		}
		return 1 - miss
	case *expr.Not:
		return 1 - p.selectivity(e.X)
	case *expr.Compare:
		return p.compareSelectivity(e)
	case *expr.InList:
		s := math.Min(float64(len(e.List))*p.equalTo(e.X), 0.9)
		if e.Not {
			return 1 - s
		}
		return s
	case *expr.TupleList:
		s := float64(e.Len())
		for _, x := range e.X {
			s *= p.equalTo(x)
		}
		return math.Min(s, 0.9)
	case *expr.Quantified:
		if e.Op == "=" && !e.All {
			return math.Min(10*p.equalTo(e.X), 0.9)
		}
	case *expr.Between:
		s := betweenSelectivity
		if scan, ord := p.columnOf(e.X); scan != nil {
			s = p.rangeShare(scan, ord, e.Low, e.High)
		}
		if e.Not {
			return 1 - s
		}
		return s
	case *expr.Like:
		if e.Not {
			return 1 - likeSelectivity
		}
		return likeSelectivity
	case *expr.IsNull:
		if e.Not {
			return 1 - p.nullShare(e.X)
		}
		return p.nullShare(e.X)
	}
	return otherSelectivity
}

func (p *physical) compareSelectivity(c *expr.Compare) float64 {
	col, value, op := c.L, c.R, c.Op
	scan, ord := p.columnOf(col)
	if scan == nil {
		col, value, op = c.R, c.L, c.Op.Commute()
		scan, ord = p.columnOf(col)
	}
	switch op {
	case expr.EQ:
		return p.equalSelectivity(scan, ord, c, value)
	case expr.NE:
		return 1 - p.equalSelectivity(scan, ord, c, value)
	}
	switch {
	case scan == nil || !used(value).empty():
		return rangeSelectivity
	case op == expr.GT || op == expr.GE:
		return p.rangeShare(scan, ord, value, nil)
	}
	return p.rangeShare(scan, ord, nil, value)
}

// equalSelectivity guesses the share of rows for which c, an equality or inequality with value, finds equal values.
func (p *physical) equalSelectivity(scan *scanRel, ord int, c *expr.Compare, value expr.Scalar) float64 {
	if scan != nil {
		if share, ok := p.equalShare(scan, ord, value); ok {
			return share
		}
	}
	return math.Min(p.equalTo(c.L), p.equalTo(c.R))
}

// columnOf returns the table column that e is; nil if it is none.
func (p *physical) columnOf(e expr.Scalar) (*scanRel, int) {
	c, ok := expr.Unlabel(e).(*expr.Column)
	if !ok || c.ID < 0 || c.ID >= len(p.b.cols) {
		return nil, 0
	}
	info := &p.b.cols[c.ID]
	return info.scan, info.ordinal
}

// nullShare guesses the share of rows where e is NULL.
func (p *physical) nullShare(e expr.Scalar) float64 {
	scan, ord := p.columnOf(e)
	if scan == nil || isVirtual(scan) || p.tableStats(scan).Rows == 0 {
		return nullSelectivity
	}
	return p.tableStats(scan).Columns[scan.table.ColumnAt(ord).ID].NullFraction
}

// equalTo guesses the share of rows where e equals a given value.
func (p *physical) equalTo(e expr.Scalar) float64 {
	if c, ok := e.(*expr.Column); ok && c.ID >= 0 {
		if info := &p.b.cols[c.ID]; info.scan != nil {
			return 1 / math.Max(p.distinct(info.scan, info.ordinal), 1)
		}
		return 1 / unknownDistinct
	}
	if isLeaf(e) {
		return 1
	}
	return equalSelectivity
}

// selectivityOf guesses the share of rows that pass all conditions. A lower and an upper bound of one column are one range.
func (p *physical) selectivityOf(conds []expr.Scalar) float64 {
	s := 1.0
	for i, c := range conds {
		if scan, ord, low, high := p.pairOf(conds, i); scan != nil {
			if low != nil {
				s *= p.rangeShare(scan, ord, low, high)
			}
			continue
		}
		s *= p.selectivity(c)
	}
	return s
}

// maxPaired is the number of conditions up to which bounds are paired.
const maxPaired = 100

// pairOf finds the range that the i-th condition makes with another one, the first lower and the first upper bound of a column; nil if
// it makes none. For the later of the two, low and high are nil.
func (p *physical) pairOf(conds []expr.Scalar, i int) (scan *scanRel, ord int, low, high expr.Scalar) {
	scan, ord, value, lower := p.boundOf(conds[i])
	if scan == nil || len(conds) > maxPaired {
		return nil, 0, nil, nil
	}
	firstOf := func(wantLower bool) (int, expr.Scalar) {
		for j := range conds {
			if s, o, v, l := p.boundOf(conds[j]); s == scan && o == ord && l == wantLower {
				return j, v
			}
		}
		return -1, nil
	}
	own, _ := firstOf(lower)
	other, bound := firstOf(!lower)
	switch {
	case own != i || other < 0:
		return nil, 0, nil, nil
	case other < i:
		return scan, ord, nil, nil
	case lower:
		return scan, ord, value, bound
	}
	return scan, ord, bound, value
}

// boundOf takes a condition as a bound of a table column by a value; nil if it is none.
func (p *physical) boundOf(c expr.Scalar) (scan *scanRel, ord int, value expr.Scalar, lower bool) {
	cmp, ok := c.(*expr.Compare)
	if !ok || cmp.Op == expr.EQ || cmp.Op == expr.NE {
		return nil, 0, nil, false
	}
	op, value := cmp.Op, cmp.R
	if scan, ord = p.columnOf(cmp.L); scan == nil {
		op, value = op.Commute(), cmp.L
		scan, ord = p.columnOf(cmp.R)
	}
	if scan == nil || !used(value).empty() {
		return nil, 0, nil, false
	}
	return scan, ord, value, op == expr.GT || op == expr.GE
}
