package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/collation"
)

// tuplePath describes how the leading columns of an index are fixed by a list of tuples, and by single values of other
// conditions between them.
type tuplePath struct {
	cond  int  // which condition the list is
	whole bool // the key contains all of the tuples' columns, so no part of the condition remains to be tested
	list  *expr.TupleList
	parts []tuplePart
}

// tuplePart is one index column: the field-th of the tuples, or eq's value.
type tuplePart struct {
	field int
	eq    *sarg
}

// tuplePaths calls consider with the paths through an index that a list of tuples gives.
func (p *physical) tuplePaths(s *scanRel, ix *catalog.IndexDescriptor, sargs []sarg, need colSet, want []orderKey, total, rows, limit float64, consider func(path)) {
	for i := range sargs {
		list := sargs[i].tuples
		if list == nil {
			continue
		}
		t := &tuplePath{cond: sargs[i].cond, list: list}
		fields, sel := 0, 1.0
		for j := range ix.Columns {
			ord := s.table.Ordinal(ix.Columns[j].ColumnID)
			part := tuplePart{field: p.fieldOf(s, list, ord, ix.Columns[j].Coll)}
			if part.field >= 0 {
				fields++
			} else if part.eq = equalityOn(sargs, ord, ix.Columns[j].Coll); part.eq == nil || part.eq.each != nil {
				break
			}
			t.parts = append(t.parts, part)
			sel *= math.Min(1/math.Max(p.distinct(s, ord), 1), 1)
		}
		if fields == 0 {
			continue
		}
		t.whole = fields == len(list.X)
		spans := float64(list.Len())
		entries := math.Max(math.Min(total*sel*spans, total), 1)
		if len(t.parts) == len(ix.Columns) && (ix.Unique || ix == &s.table.Primary) {
			entries = math.Min(entries, spans)
		}
		a := path{index: ix, rows: math.Max(rows, 1), tuples: t, where: p.predicateOf(s, ix), fetch: !covers(s, ix, need), fetchCost: batchedCost}
		a.setOrder(s, want, true)
		a.price(entries, spans, p.entryCost(s), limit, want)
		consider(a)
	}
}

// fieldOf returns which of the tuples' columns a table column is whose keys have collation c, -1 for none.
func (p *physical) fieldOf(s *scanRel, list *expr.TupleList, ord int, c *collation.Collation) int {
	for i, x := range list.X {
		if p.ordinalOf(s, x) == ord && !x.Type().Underlying().IsRow() && collation.SameOrder(list.Classes[i].Coll, c) {
			return i
		}
	}
	return -1
}

// tupleSpans compiles a path's tuples.
func (p *physical) tupleSpans(t *tuplePath) []KeySpan {
	width := len(t.list.X)
	parts := make([]KeyPart, t.list.Len()*len(t.parts))
	spans := make([]KeySpan, t.list.Len())
	for i := range spans {
		eq := parts[:len(t.parts):len(t.parts)]
		parts = parts[len(t.parts):]
		for j, part := range t.parts {
			value := expr.Scalar(nil)
			if part.field >= 0 {
				value = t.list.List[i*width+part.field]
			} else {
				value = part.eq.value
			}
			eq[j].Value = p.compile(value, nil)
		}
		spans[i].Eq = eq
	}
	return spans
}

// settles reports whether the path's key decides a condition.
func (t *tuplePath) settles(cond int) bool {
	if t.whole && t.cond == cond {
		return true
	}
	for _, part := range t.parts {
		if part.eq != nil && part.eq.cond == cond && part.eq.exact {
			return true
		}
	}
	return false
}
