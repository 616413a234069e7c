package executor

import (
	"errors"
	"slices"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// aggregation computes the aggregate calls of a node over groups of rows.
type aggregation struct {
	ex    *execution
	calls []aggCall
	out   types.Row // group key, then results
	held  int64     // booked for states
	args  int64     // booked by the buffers of groups at work, for DISTINCT and ORDER BY
	none  types.Row // a row of NULLs
	// free are states of groups to come, made together; made is the number of groups that they were made for.
	free []callState
	made int
}

// maxStates is how many groups' states are made together.
const maxStates = 64

// aggCall is one aggregate call, with scratch space for its arguments.
type aggCall struct {
	*planner.AggregateCall
	args  types.Row
	types []types.Type
	order ordering
	// column is the ordinal of the only argument where it is a plain column and each value goes straight to the accumulator;
	// -1 otherwise.
	column int
}

// groupState is the state of one group, by call.
type groupState []callState

// callState is one call's state. It is small: of many groups, each row finds another one.
type callState struct {
	acc   builtin.Accumulator
	*kept // nil: the call keeps nothing
}

// kept is what a call keeps beside its accumulator. DISTINCT keeps the arguments seen; ORDER BY keeps all arguments
// until the group is complete.
type kept struct {
	seen *keySet
	rows *orderedArgs
	// direct are the values of the direct arguments of an ordered-set aggregate, once the group has a row.
	direct types.Row
}

// stateBytes is the approximate cost of a group per call: the state and its accumulator.
const stateBytes = 96

func newAggregation(ex *execution, n *planner.Aggregate) aggregation {
	a := aggregation{ex: ex, out: make(types.Row, len(n.GroupBy)+len(n.Aggs)), calls: make([]aggCall, len(n.Aggs)),
		none: make(types.Row, len(n.Input.Columns()))}
	for i := range n.Aggs {
		c := &n.Aggs[i]
		a.calls[i] = aggCall{AggregateCall: c, args: make(types.Row, len(c.Args)), column: plainArgument(c)}
		if len(c.OrderBy) > 0 {
			a.calls[i].order = newOrdering(replayOrder(c))
		}
		for _, arg := range c.Args {
			a.calls[i].types = append(a.calls[i].types, arg.Type())
		}
	}
	return a
}

// plainArgument returns aggCall.column.
func plainArgument(c *planner.AggregateCall) int {
	if len(c.Args) != 1 || len(c.Direct) > 0 || c.Filter != nil || c.Distinct || len(c.OrderBy) > 0 || c.Func.OrderMatters {
		return -1
	}
	if col, ok := c.Args[0].(*expr.Column); ok {
		return col.Ordinal
	}
	return -1
}

// replayOrder is the order in which a call with ORDER BY takes its arguments. With DISTINCT the
// arguments follow as further keys, so that equal ones lie together.
func replayOrder(c *planner.AggregateCall) []planner.SortKey {
	keys := slices.Clone(c.OrderBy)
	if c.Distinct {
		for _, arg := range c.Args {
			keys = append(keys, planner.SortKey{Expr: arg})
		}
	}
	return keys
}

// drop gives up a group that was not finished; nil is none.
func (s groupState) drop() (err error) {
	for i := range s {
		switch st := &s[i]; {
		case st.kept == nil:
		case st.seen != nil:
			st.seen.release()
		case st.rows != nil:
			err = firstError(err, st.rows.release())
		}
	}
	return err
}

// release returns the memory that states were charged for.
func (a *aggregation) release() {
	a.ex.mem.shrink(a.held)
	a.held, a.args, a.free, a.made = 0, 0, nil, 0
}

// newState makes the state of a new group.
func (a *aggregation) newState() (groupState, error) {
	n := int64(len(a.calls)) * stateBytes
	if err := a.ex.mem.grow(n); err != nil {
		return nil, err
	}
	a.held += n
	if len(a.free) == 0 {
		a.made = min(max(2*a.made, 1), maxStates)
		a.free = make([]callState, a.made*len(a.calls))
	}
	s := groupState(a.free[:len(a.calls):len(a.calls)])
	a.free = a.free[len(a.calls):]
	for i := range a.calls {
		c := &a.calls[i]
		st := &s[i]
		st.acc = c.Func.NewAccumulator()
		switch {
		case len(c.OrderBy) > 0:
			st.kept = &kept{rows: newOrderedArgs(a.ex, c)}
		case c.Distinct && c.Func.FirstByOrder == 0: // min and max do not care
			st.kept = &kept{seen: &keySet{cols: wholeRow(c.types), keys: rowBuffer{mem: &a.ex.mem}}}
		case len(c.Direct) > 0:
			st.kept = &kept{}
		}
	}
	return s, nil
}

// add takes a row into a group.
func (a *aggregation) add(s groupState, row types.Row) error {
	for i := range a.calls {
		c := &a.calls[i]
		if c.column >= 0 {
			if c.args[0] = row[c.column]; c.Func.NullsIgnored && c.args[0].IsNull() {
				continue
			}
			if err := s[i].acc.Add(a.ex.ev.Env, c.args); err != nil {
				return err
			}
			continue
		}
		if len(c.Direct) > 0 {
			if err := a.evalDirect(&s[i], c, row); err != nil {
				return err
			}
		}
		if c.Filter != nil {
			ok, err := a.ex.holds(c.Filter, row)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		for j, arg := range c.Args {
			d, err := arg.Eval(&a.ex.ev, row)
			if err != nil {
				return err
			}
			c.args[j] = d
		}
		if err := a.addTo(&s[i], c, row); err != nil {
			return err
		}
	}
	return nil
}

// addTo gives the arguments in c to one call's state.
func (a *aggregation) addTo(st *callState, c *aggCall, row types.Row) error {
	if c.Func.NullsIgnored && c.args[0].IsNull() {
		return nil
	}
	switch {
	case st.kept == nil:
	case st.rows != nil:
		before := st.rows.rows.buf.held
		err := st.rows.add(a.ex.ev.Ctx, row, c.args)
		a.args += st.rows.rows.buf.held - before
		return err
	case st.seen != nil:
		before := st.seen.keys.held
		_, added, err := st.seen.add(c.args)
		a.args += st.seen.keys.held - before
		if !added || err != nil {
			return err
		}
	}
	if c.Func.OrderMatters {
		// Aggregates that depend on the order of rows keep their arguments: string_agg, array_agg.
		n := int64(c.args.Size())
		if err := a.ex.mem.grow(n); err != nil {
			return err
		}
		a.held += n
	}
	return st.acc.Add(a.ex.ev.Env, c.args)
}

// result finishes a group: its key followed by the calls' results.
func (a *aggregation) result(key types.Row, s groupState) (types.Row, error) {
	n := copy(a.out, key)
	for i := range a.calls {
		st := &s[i]
		if st.kept != nil && st.rows != nil {
			if err := errors.Join(a.replay(st, &a.calls[i]), st.rows.release()); err != nil {
				return nil, err
			}
		}
		if st.kept != nil && st.seen != nil {
			st.seen.release()
		}
		d, err := st.acc.Result(a.ex.ev.Env)
		if err != nil {
			return nil, err
		}
		a.out[n+i] = d
	}
	return a.out, nil
}
