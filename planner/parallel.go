package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
)

// Parallelism is what a session permits: up to so many workers beside its own goroutine, where reading the input costs more than
// parallelCosts times SetupCost.
type Parallelism struct {
	Workers   int
	SetupCost float64
}

// parallelGroup is how many rows a group must have on average for workers to be worth it: each has groups of its own, which are combined.
const parallelGroup = 32

// parallelCosts relates parallel_setup_cost, which starts processes in PostgreSQL, to the cost of reading a row here: by default 10,000
// rows, about a millisecond, are worth another goroutine.
const parallelCosts = 10

// Workers returns how many goroutines compute the aggregate beside the session's own; 0: none.
func (n *Aggregate) Workers(p Parallelism) int {
	in := n.Input.Estimate()
	if !n.Parallel || in.Cost < parallelCosts*p.SetupCost || in.Rows < parallelGroup*n.Est.Rows && p.SetupCost > 0 {
		return 0
	}
	return max(p.Workers, 0)
}

// setParallel sets AnyOrder and Parallel.
func (n *Aggregate) setParallel() {
	n.AnyOrder, n.Parallel = !n.Ordered, !n.Ordered && len(n.Empties) == 0
	for i := range n.Aggs {
		c := &n.Aggs[i]
		if c.Func.Combine == nil || len(c.OrderBy) > 0 || len(c.Direct) > 0 {
			n.AnyOrder = false
		}
		n.Parallel = n.Parallel && !c.Distinct && parallelSafe(c.Filter) && allParallelSafe(c.Args)
	}
	n.Parallel = n.Parallel && n.AnyOrder && allParallelSafe(n.GroupBy) && parallelRows(n.Input)
}

// parallelRows reports whether the rows of a node can be computed by several goroutines, each from a part of a table.
func parallelRows(n Node) bool {
	switch n := n.(type) {
	case *Scan:
		return !n.Fetch && !n.WholeKeys && parallelSafe(n.Filter)
	case *Filter:
		return parallelSafe(n.Cond) && parallelRows(n.Input)
	case *Project:
		return allParallelSafe(n.Exprs) && parallelRows(n.Input)
	}
	return false
}

func allParallelSafe(es []expr.Scalar) bool {
	for _, e := range es {
		if !parallelSafe(e) {
			return false
		}
	}
	return true
}

// parallelSafe reports whether an expression needs nothing but its row, the statement's parameters and the session's formats.
func parallelSafe(e expr.Scalar) bool {
	safe := true
	expr.Walk(e, func(x expr.Scalar) bool {
		switch x := x.(type) {
		case *expr.Outer, *expr.Parse:
			safe = false
		case *expr.Call:
			safe = safe && x.Fn.Volatility == builtin.Immutable
		case *expr.Cast:
			safe = safe && (x.Fn == nil || x.Fn.Volatility() == builtin.Immutable)
		}
		safe = safe && expr.SubqueryOf(x) == nil
		return safe
	})
	return safe
}
