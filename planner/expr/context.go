package expr

import (
	"context"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Context is the state of one execution of a plan for its expressions. Not safe for concurrent use.
type Context struct {
	Ctx context.Context
	Env *builtin.Env
	// Inputs are the values of parameters and of slotted literals, in the order of Plan.Inputs.
	Inputs types.Row
	// Outer holds the current rows of the enclosing queries, outermost first.
	Outer []types.Row
	// Subqueries runs subplans; set by the executor.
	Subqueries SubqueryRunner

	// args is a stack of argument slices, so that calls allocate none.
	args []types.Datum
	// caseValue is the value of CaseValue.
	caseValue types.Datum
	// memo contains what expressions compute once per execution: hash sets, compiled patterns.
	memo map[Scalar]any
}

// Begin begins another execution: of expressions that are evaluated once for each values of the inputs.
func (ev *Context) Begin(inputs types.Row) {
	ev.Inputs = inputs
	if ev.memo != nil {
		clear(ev.memo)
	}
}

// remember keeps v for the rest of the execution.
func (ev *Context) remember(s Scalar, v any) {
	if ev.memo == nil {
		ev.memo = make(map[Scalar]any)
	}
	ev.memo[s] = v
}

// push reserves n argument slots and returns them; pop releases them. A slice stays valid when the stack grows, because
// growing copies and the old array remains.
func (ev *Context) push(n int) []types.Datum {
	top := len(ev.args)
	if top+n > cap(ev.args) {
		grown := make([]types.Datum, top, 2*cap(ev.args)+n+8)
		copy(grown, ev.args)
		ev.args = grown
	}
	ev.args = ev.args[:top+n]
	return ev.args[top : top+n : top+n]
}

func (ev *Context) pop(n int) { ev.args = ev.args[:len(ev.args)-n] }
