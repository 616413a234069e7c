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
	pointCost    = 15.0 // an individual lookup by key
	batchedCost  = 9.0  // a lookup by key among many: anywhere in the table
	deletedCost  = 1.0  // passing a deleted row that garbage collection has not taken yet
	spanCost     = 15.0 // starting a span
	filterCost   = 0.3  // testing one row
	hashCost     = 3.0  // putting a row into a hash table
	probeCost    = 2.0
	pairCost     = 0.3  // testing a pair of rows
	sortCost     = 0.25 // per row and doubling
	applyCost    = 20.0 // restarting the right side
	emitCost     = 0.5  // computing a row
	subqueryCost = 50.0
)

// tableStats returns the statistics of a scan's table.
func (p *physical) tableStats(s *scanRel) *catalog.TableStats {
	if s.stats == nil {
		st, err := p.b.r.Stats(p.b.ctx, s.table.ID)
		if err != nil {
			p.fail(err)
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
	id := s.table.Columns[ord].ID
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
		if ix.Unique && len(ix.Columns) == 1 && ix.Columns[0].ColumnID == id && ix.State == catalog.IndexPublic {
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
		if e.Not {
			return 1 - betweenSelectivity
		}
		return betweenSelectivity
	case *expr.Like:
		if e.Not {
			return 1 - likeSelectivity
		}
		return likeSelectivity
	case *expr.IsNull:
		if e.Not {
			return 1 - nullSelectivity
		}
		return nullSelectivity
	}
	return otherSelectivity
}

func (p *physical) compareSelectivity(c *expr.Compare) float64 {
	switch c.Op {
	case expr.EQ:
		return math.Min(p.equalTo(c.L), p.equalTo(c.R))
	case expr.NE:
		return 1 - math.Min(p.equalTo(c.L), p.equalTo(c.R))
	}
	return rangeSelectivity
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

func (p *physical) selectivityOf(conds []expr.Scalar) float64 {
	s := 1.0
	for _, c := range conds {
		s *= p.selectivity(c)
	}
	return s
}
