package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
)

// Defaults of Runtime's zero values.
const (
	defaultMemoryLimitBytes = 256 << 20
	// defaultGroupSize is the largest group of rows taken together. Groups start small and double,
	// so that a query that stops early does not pay for rows it never shows.
	defaultGroupSize = 1024
	firstGroupSize   = 16
)

// ticksPerCheck is the number of rows between two checks of the context. A check is an atomic load and a call; a row
// costs some hundred nanoseconds, and tens of milliseconds where it calls functions of users: a cancel is noticed within some of them.
const ticksPerCheck = 16

// execution is the state that all operators of one tree share: the runtime of the current run, the expression context,
// the memory account, and the shared subtrees (WITH items, work tables, subqueries). Not safe for concurrent use.
type execution struct {
	plan *planner.Plan
	rt   *Runtime
	txn  Txn
	ev   expr.Context
	mem  statementMemory

	ticks    uint32
	maxGroup int
	analyze  *Analysis
	ctes     []*cteBuffer
	modifies []*modify // the changes of the plan; that of its root is the last
	// together: the plan has data-modifying WITH items. No change of it writes before all have been run; pending has the last change
	// of each key (nil for a deletion), and finishing the changes in the order in which they have run.
	together  bool
	pending   map[string][]byte
	finishing []*modify
	keys      *keyChecks // of foreign keys; nil: none is concerned
	fired     firedTriggers
	// rowsChanged is TriggerRunner.RowsChanged when the statement began to change rows.
	rowsChanged uint64
	changed     changedRows
	workTable   map[int]*workTable
	subplans    []*subplan
}

// bind makes rt the runtime of the next run.
func (ex *execution) bind(rt *Runtime) {
	ex.rt = rt
	ex.txn = rt.Txn
	ex.ev = expr.Context{Env: rt.Env, Inputs: rt.Inputs, Outer: ex.ev.Outer[:0], Subqueries: ex}
	ex.mem.begin(rt.MemoryLimitBytes, rt.Env.Memory, rt.Scratch)
	ex.maxGroup = rt.GroupSize
	if ex.maxGroup <= 0 {
		ex.maxGroup = defaultGroupSize
	}
	for _, m := range ex.modifies {
		m.affected = 0
		for _, l := range m.leaves {
			l.affected = 0
		}
	}
}

// eager reports whether unique keys are checked by the statement and not at commit. Where several changes write together, the commit could not
// tell which of them comes first.
func (ex *execution) eager() bool { return ex.rt.EagerUnique || ex.together }

// unbind drops references to the state of a run.
func (ex *execution) unbind() {
	if ex.rt != nil {
		ex.mem.end()
		ex.rt.Env.NextRow()
	}
	ex.rt, ex.txn = nil, nil
	ex.ev = expr.Context{Outer: ex.ev.Outer[:0]}
}

// tick is called once per row by every loop that may run long without returning a row. It returns the context's error,
// and releases the memory of expressions evaluated for the previous row.
func (ex *execution) tick(ctx context.Context) error {
	ex.ev.Env.NextRow()
	ex.ticks++
	if ex.ticks%ticksPerCheck != 0 {
		return nil
	}
	return ctx.Err()
}

// firstGroup is the size of the first group of an operator that works in groups.
func (ex *execution) firstGroup() int { return min(firstGroupSize, ex.maxGroup) }

// nextGroup is the size of the group after one of n.
func (ex *execution) nextGroup(n int) int { return min(2*n, ex.maxGroup) }
