package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

const (
	// termSelectivity is the share of rows with a term of which there are no statistics, and searchSelectivity that of rows that a search of
	// unknown values finds.
	termSelectivity   = 0.01
	searchSelectivity = 0.005
	// recheckCost is the cost of testing the conditions of an inverted index for a row that it has found.
	recheckCost = 1.0
)

// commuted are the operators of a search with the indexed value on the right.
var commuted = map[string]string{"@>": "<@", "<@": "@>", "&&": "&&", "=": "=", "@@": "@@", "@@@": "@@@", "%": "%"}

// invertedScan plans a scan by an inverted index, if that costs less than best. All conditions are tested for the rows that are found.
func (p *physical) invertedScan(s *scanRel, best *path, need colSet, a ask) (pnode, bool) {
	if best.point || p.err != nil {
		return pnode{}, false
	}
	var chosen *Scan
	cost, rows := best.cost, 0.0
	total := p.tableRows(s)
	for i := range s.table.Indexes {
		ix := &s.table.Indexes[i]
		if ix.Inverted == nil || ix.State != catalog.IndexPublic || !p.includes(s, i, s.conds) {
			continue
		}
		searches, share := p.searches(s, ix)
		if len(searches) == 0 || p.err != nil {
			continue
		}
		found := math.Max(total*share, 1)
		// The rows of a term are read in the order of the primary key, so that those of the table are close to each other if they are many.
		c := spanCost*float64(1+len(searches)) + found*(2+batchedCost+recheckCost)
		if len(a.want) > 0 {
			c += sortPrice(found)
		}
		if c < cost*0.999 {
			cost, rows = c, found
			chosen = &Scan{Access: Access{Table: s.table, Alias: s.alias, Index: ix, Fetch: true, Policies: s.policies}, Inverted: searches}
		}
	}
	if chosen == nil {
		return pnode{}, false
	}
	cols, ords := s.delivered(need)
	chosen.Ordinals = ords
	est := Estimate{Rows: math.Max(math.Min(rows, total*p.selectivityOf(s.conds)), 1), Cost: cost}
	chosen.Base = p.base(cols, est)
	chosen.Filter = p.conjunction(s.conds, cols)
	return pnode{node: chosen, cols: cols, est: est}, true
}

// searches lists the conditions of a scan that an inverted index serves, and guesses the share of rows that they find together.
func (p *physical) searches(s *scanRel, ix *catalog.IndexDescriptor) (list []InvertedSearch, share float64) {
	share = 1
	for _, cond := range s.conds {
		left, op, right, ok := operation(cond)
		if !ok {
			continue
		}
		search, value, ok := p.searchOf(s, ix, left, op, right)
		if !ok {
			if op, ok = commuted[op]; ok {
				search, value, ok = p.searchOf(s, ix, right, op, left)
			}
		}
		if !ok {
			continue
		}
		found := p.searchShare(s, ix, &search, value)
		share *= found
		search.Value = p.compile(value, nil)
		list = append(list, search)
	}
	return list, share
}

// operation takes a condition as an operator with two operands.
func operation(cond expr.Scalar) (left expr.Scalar, op string, right expr.Scalar, ok bool) {
	switch c := cond.(type) {
	case *expr.Call:
		if len(c.Args) == 2 {
			return c.Args[0], c.Fn.Name, c.Args[1], true
		}
	case *expr.Like:
		return c.X, "~~", c.Pattern, !c.Not
	case *expr.Compare:
		return c.L, c.Op.String(), c.R, c.Op == expr.EQ
	}
	return nil, "", nil, false
}

// searchOf returns the search of a condition in the column that x is, if a class of the index serves it and the value narrows the rows.
func (p *physical) searchOf(s *scanRel, ix *catalog.IndexDescriptor, x expr.Scalar, op string, value expr.Scalar) (InvertedSearch, expr.Scalar, bool) {
	ord := p.ordinalOf(s, x)
	if ord < 0 || !valueOnly(value) {
		return InvertedSearch{}, nil, false
	}
	typ := p.typeOf(value)
	for i, c := range ix.Inverted {
		class := inverted.Class(c.Class)
		if s.table.Ordinal(c.ColumnID) != ord || !class.Serves(op, typ) {
			continue
		}
		narrows := ofValue("inverted_narrows", ix, i, op, typ, types.TBool, func(env *builtin.Env, d types.Datum) (types.Datum, error) {
			q, err := class.Search(env, op, d, typ)
			return types.Bool(err == nil && !q.All), err
		})
		if p.test(s, expr.NewCall(narrows, []expr.Scalar{value})) {
			return InvertedSearch{Column: i, Op: op, Type: typ}, value, true
		}
	}
	return InvertedSearch{}, nil, false
}

// ofValue is a function of the value of a search. Its name is its identity.
func ofValue(name string, ix *catalog.IndexDescriptor, column int, op string, in, out types.Type, f func(*builtin.Env, types.Datum) (types.Datum, error)) *builtin.Overload {
	return &builtin.Overload{Name: name + " " + ix.Name + " " + string(rune('a'+column)) + " " + op, Args: []types.Type{in}, Ret: out, Strict: true, Volatility: builtin.Immutable,
		Fn: func(env *builtin.Env, args []types.Datum) (types.Datum, error) { return f(env, args[0]) }}
}

// searchShare guesses the share of rows that a search finds.
func (p *physical) searchShare(s *scanRel, ix *catalog.IndexDescriptor, search *InvertedSearch, value expr.Scalar) float64 {
	class, op, typ, column := inverted.Class(ix.Inverted[search.Column].Class), search.Op, search.Type, search.Column
	rows, stats := p.tableRows(s), p.tableStats(s).Columns[ix.Columns[0].ColumnID]
	terms := newTermShares(stats, rows)
	share := p.guessShare(s, expr.NewCall(ofValue("inverted_share", ix, column, op, typ, types.TFloat8, func(env *builtin.Env, d types.Datum) (types.Datum, error) {
		q, err := class.Search(env, op, d, typ)
		if err != nil {
			return types.Null, err
		}
		return types.Float(math.Max(terms.of(q, column), 1/rows)), nil
	}), []expr.Scalar{value}))
	if share < 0 {
		return searchSelectivity
	}
	return share
}

// termShares are the shares of rows that have the terms of an inverted index.
type termShares struct {
	common map[string]float64
	other  float64 // of any other term
}

func newTermShares(stats catalog.ColumnStats, rows float64) *termShares {
	t := &termShares{common: map[string]float64{}, other: termSelectivity}
	if stats.Distinct == 0 {
		return t
	}
	left := stats.Terms
	for _, c := range stats.Common {
		if d, err := rowenc.DecodeDatum(c.Value); err == nil {
			t.common[string(d.Bytes())] = c.Fraction
			left -= c.Fraction
		}
	}
	t.other = math.Max(left/math.Max(stats.Distinct-float64(len(stats.Common)), 1), 1/rows)
	if n := len(stats.Common); n > 0 {
		t.other = math.Min(t.other, stats.Common[n-1].Fraction)
	}
	return t
}

// of guesses the share of rows that satisfy a query over a column, taking terms as independent.
func (t *termShares) of(q *inverted.Query, column int) float64 {
	switch {
	case q.All:
		return 1
	case q.And != nil:
		share := 1.0
		for _, x := range q.And {
			share *= t.of(x, column)
		}
		return share
	case q.Or != nil:
		miss := 1.0
		for _, x := range q.Or {
			miss *= 1 - t.of(x, column)
		}
		return 1 - miss
	case q.Term == nil:
		return 0
	}
	share, ok := t.common[string(inverted.InColumn(column, q.Term))]
	if !ok {
		share = t.other
	}
	if q.Prefix {
		share = math.Min(10*share, 1)
	}
	return share
}
