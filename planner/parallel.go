package planner

import (
	"math"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Parallelism is what a session permits: up to so many workers beside its own goroutine, where reading the input costs more than
// parallelCosts times SetupCost.
type Parallelism struct {
	Workers   int
	SetupCost float64
}

// parallelGroup is how many rows a group, or a value of DISTINCT, must have on average for workers to be worth it: each has groups of its own,
// which are made and combined in addition. With ten rows a group, two goroutines take a third more CPU than one and hardly less time.
// The rows of a hash table's side are copied once more: at most one of parallelBuild rows that are read.
const (
	parallelGroup = 16
	parallelBuild = 4
)

// parallelCosts relates parallel_setup_cost, which starts processes in PostgreSQL, to the cost of reading a row here: by default 10,000
// rows, about a millisecond, are worth another goroutine.
const parallelCosts = 10

// parallelOrder is how many times that cost reading must have where rows are brought into an order: those that are equal in it come out in
// another order at each execution if goroutines collect them. As in PostgreSQL, whose tables below min_parallel_table_scan_size are read by
// one process, small tables answer the same each time.
const parallelOrder = 5

// feedCost is the estimated cost of an input from which on a feed is worth its setup.
const feedCost = 256

// Feed says how an operator that reads all of its input may take the rows, other than one after the other.
type Feed struct {
	// Fed: it takes them in any order, and to compute them needs nothing that is read, so that the store can pass them as it comes to
	// them. Parallel: they can also come from parts of the table by several goroutines.
	Fed, Parallel bool
}

// of returns the number of workers that take the rows of in.
func (p Parallelism) of(f Feed, in Node) int {
	if !f.Parallel || in.Estimate().Cost < parallelCosts*p.SetupCost {
		return 0
	}
	return max(p.Workers, 0)
}

// ofOrdered is of for an operator that brings the rows into an order.
func (p Parallelism) ofOrdered(f Feed, in Node) int {
	if in.Estimate().Cost < parallelOrder*parallelCosts*p.SetupCost {
		return 0
	}
	return p.of(f, in)
}

// Workers returns how many goroutines read and change rows beside the session's own; 0: none.
func (n *Update) Workers(p Parallelism) int { return p.of(n.Feed, n.Input) }

// Workers returns how many goroutines read rows to be deleted beside the session's own; 0: none.
func (n *Delete) Workers(p Parallelism) int { return p.of(n.Feed, n.Input) }

// Workers returns how many goroutines compute the aggregate beside the session's own; 0: none.
func (n *Aggregate) Workers(p Parallelism) int {
	if n.Input.Estimate().Rows < parallelGroup*n.Kept && p.SetupCost > 0 {
		return 0
	}
	return p.of(n.Feed, n.Input)
}

// keptValues guesses how many values the DISTINCT call with most of them keeps in all groups, at least their number.
func (p *physical) keptValues(aggs []aggregation, groups, rows float64) float64 {
	n := groups
	for i := range aggs {
		call := &aggs[i].call
		if !call.Distinct {
			continue
		}
		values := 1.0
		for _, arg := range call.Args {
			if c, ok := arg.(*expr.Column); ok {
				values *= p.columnDistinct(c.ID, rows)
			} else {
				values *= rows
			}
		}
		n = math.Max(n, math.Min(groups*values, rows))
	}
	return n
}

// Workers returns how many goroutines select rows beside the session's own; 0: none.
func (n *TopN) Workers(p Parallelism) int { return p.ofOrdered(n.Feed, n.Input) }

// Workers returns how many goroutines read and sort rows beside the session's own; 0: none.
func (n *Sort) Workers(p Parallelism) int { return p.ofOrdered(n.Feed, n.Input) }

// Workers returns how many goroutines read the right side beside the session's own; 0: none.
func (n *HashJoin) Workers(p Parallelism) int {
	if n.Right.Estimate().Cost < parallelBuild*n.Kept && p.SetupCost > 0 {
		return 0
	}
	return p.of(n.Build, n.Right)
}

// setFeed sets how an aggregate takes its rows.
func (n *Aggregate) setFeed() {
	n.Feed = feedOf(n.Input)
	n.Parallel = n.Parallel && len(n.Empties) == 0 && allSafe(n.GroupBy, false)
	n.Fed = n.Fed && !n.Ordered && allSafe(n.GroupBy, true)
	for i := range n.Aggs {
		c := &n.Aggs[i]
		n.Fed = n.Fed && c.Func.Combine != nil && len(c.OrderBy) == 0 && len(c.Direct) == 0 && safe(c.Filter, true) && allSafe(c.Args, true)
		n.Parallel = n.Parallel && (!c.Distinct || allIntegers(c.Args)) && safe(c.Filter, false) && allSafe(c.Args, false)
	}
	n.Parallel = n.Parallel && n.Fed
}

// allIntegers reports whether all values are of types represented by integers, of which equal ones have the same text.
func allIntegers(es []expr.Scalar) bool {
	for _, e := range es {
		if e.Type().KindOf() != types.KindInt {
			return false
		}
	}
	return true
}

// setFeed sets how a selection of the first rows takes its rows.
func (n *TopN) setFeed() { n.Feed = feedOfOrdering(n.Input, n.Keys) }

// setFeed sets how a sort takes its rows. One that begins with a part of its input takes them in order.
func (n *Sort) setFeed() {
	if n.Feed = (Feed{}); n.Presorted == 0 {
		n.Feed = feedOfOrdering(n.Input, n.Keys)
	}
}

// feedOfOrdering returns how an operator takes rows in any order to bring them into that of keys.
func feedOfOrdering(in Node, keys []SortKey) Feed {
	f := feedOf(in)
	for i := range keys {
		f.Fed = f.Fed && safe(keys[i].Expr, true)
		f.Parallel = f.Parallel && f.Fed && safe(keys[i].Expr, false)
	}
	return f
}

// setFeed sets how a hash join takes the rows of its right side.
func (n *HashJoin) setFeed() {
	n.Build = feedOf(n.Right)
	n.Build.Fed = n.Build.Fed && n.Kind != FullJoin && allSafe(n.RightKeys, true)
	n.Build.Parallel = n.Build.Parallel && n.Build.Fed && allSafe(n.RightKeys, false)
}

// setFeed sets how an UPDATE takes its rows: in any order if each row makes its new one, and nothing else is done with either.
func (n *Update) setFeed() {
	n.Feed = Feed{}
	if n.Returning != nil || n.Observed != nil || n.Triggers != nil || n.References != nil || n.Indexed != nil || n.Parts != nil ||
		n.Bound != nil || len(n.Policies)+len(n.Views)+len(n.Generated) > 0 || !n.Input.Properties().EachRowOnce {
		return
	}
	n.Feed = feedOf(n.Input)
	n.Fed = n.Fed && allSafe(n.Set, true)
	n.Parallel = n.Parallel && n.Fed && allSafe(n.Set, false)
	for i := range n.Checks {
		n.Fed = n.Fed && safe(n.Checks[i].Cond, true)
		n.Parallel = n.Parallel && n.Fed && safe(n.Checks[i].Cond, false)
	}
}

// setFeed sets how a DELETE takes its rows: in any order if nothing else is done with them.
func (n *Delete) setFeed() {
	n.Feed = Feed{}
	if n.Returning != nil || n.Observed != nil || n.Triggers != nil || n.References != nil || n.Indexed != nil || n.Parts != nil ||
		!n.Input.Properties().EachRowOnce {
		return
	}
	n.Feed = feedOf(n.Input)
	n.Parallel = n.Parallel && n.Fed
}

func feedOf(in Node) Feed {
	return Feed{Fed: in.Estimate().Cost >= feedCost && feeds(in, true), Parallel: feeds(in, false)}
}

// feeds reports whether a node is a scan, or above one, whose rows can be passed to a function.
func feeds(n Node, outer bool) bool {
	switch n := n.(type) {
	case *Scan:
		return !n.Fetch && !n.WholeKeys && !n.Reverse && safe(n.Filter, outer)
	case *Filter:
		return safe(n.Cond, outer) && feeds(n.Input, outer)
	case *Project:
		return allSafe(n.Exprs, outer) && feeds(n.Input, outer)
	case *HashJoin:
		return n.Kind != FullJoin && safe(n.On, outer) && allSafe(n.LeftKeys, outer) && feeds(n.Left, outer)
	}
	return false
}

func allSafe(es []expr.Scalar, outer bool) bool {
	for _, e := range es {
		if !safe(e, outer) {
			return false
		}
	}
	return true
}

// safe reports whether an expression needs nothing but its row, the statement's parameters, the session's formats and, if outer is set, the
// rows of enclosing queries: neither the catalog nor the session, and it reads no table.
func safe(e expr.Scalar, outer bool) bool {
	ok := true
	expr.Walk(e, func(x expr.Scalar) bool {
		ok = ok && safeNode(x, outer)
		return ok
	})
	return ok
}

// safeNode is safe for an expression without its operands.
func safeNode(x expr.Scalar, outer bool) bool {
	switch x := x.(type) {
	case *expr.Outer:
		return outer
	case *expr.Parse:
		return false
	case *expr.Call:
		return x.Fn.Volatility == builtin.Immutable && x.Fn.Call == nil // Only the session executes functions of users.
	case *expr.Cast:
		return x.Fn == nil || x.Fn.Volatility() == builtin.Immutable
	}
	return expr.SubqueryOf(x) == nil
}
