// Package expr implements bound scalar expressions: names are ordinals, every node has a type, every implicit cast is a
// node. A Scalar is plain data, shared by all executions of a plan; the state of an execution (parameters, outer rows,
// the session) is in the Context.
package expr

import (
	"fmt"

	"github.com/percodb/percodb/sql/types"
)

// Scalar is a bound, typed expression over an input row. Safe for concurrent use.
type Scalar interface {
	Type() types.Type
	// Eval computes the value. The result may alias the input row and is valid as long as it.
	Eval(ev *Context, in types.Row) (types.Datum, error)
	// String prints the expression for EXPLAIN, with column names.
	String() string
}

// SubqueryRunner executes a subquery of an expression. The plan is the planner's Node, opaque
// here so that expr stays below planner.
type SubqueryRunner interface {
	// Scalar returns the single value of sub for the given outer row (NULL when empty; 21000 when
	// there is more than one row).
	Scalar(ev *Context, sub *Subquery, in types.Row) (types.Datum, error)
	// Exists reports whether sub yields a row.
	Exists(ev *Context, sub *Subquery, in types.Row) (bool, error)
	// Rows returns all rows of sub; they belong to the runner and stay valid for the statement.
	// An uncorrelated subquery is run once per statement.
	Rows(ev *Context, sub *Subquery, in types.Row) ([]types.Row, error)
	// Contains probes a hashed, uncorrelated, single-column subquery for v under the equality of
	// type t: found, and whether the subquery yielded a NULL, and whether it is empty.
	Contains(ev *Context, sub *Subquery, v types.Row) (found, hasNull, empty bool, err error)
}

// Subquery is a subplan inside an expression. ID is unique in the plan.
type Subquery struct {
	ID         int
	Plan       any // planner.Node
	Correlated bool
	Types      []types.Type // of its output columns
	Source     fmt.Stringer // the statement's text of it, nil for none
}
