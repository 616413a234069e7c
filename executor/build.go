package executor

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/internal/invariants"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// build makes the operators of a node and everything below it.
func (ex *execution) build(n planner.Node) (Operator, error) {
	op, err := ex.buildNode(n)
	if err != nil {
		return nil, err
	}
	if ex.analyze != nil {
		op = ex.analyze.measure(n, op)
	}
	if invariants.Enabled {
		op = &checked{op: op, name: nodeName(n), width: len(n.Columns())}
	}
	return op, nil
}

// buildNode is the one switch over all nodes there are.
func (ex *execution) buildNode(n planner.Node) (Operator, error) {
	switch n := n.(type) {
	case *planner.PointGet:
		return newPointGet(ex, n)
	case *planner.Scan:
		return newScan(ex, n)
	case *planner.Append:
		return newAppended(ex, n), nil
	case *planner.Values:
		return &values{ex: ex, rows: n.Rows, out: make(types.Row, len(n.Out))}, nil
	case *planner.SetFunc:
		return newSetFunc(ex, n), nil
	case *planner.Changes:
		return &changes{ex: ex, node: n}, nil
	case *planner.VirtualScan:
		return newVirtualScan(ex, n), nil
	case *planner.CTEScan:
		return &cteScan{ex: ex, cte: n.CTE, out: make(types.Row, len(n.Out))}, nil
	case *planner.WorkScan:
		return &workScan{work: ex.work(n.ID), out: make(types.Row, len(n.Out))}, nil
	case *planner.LookupJoin, *planner.Filter, *planner.Project, *planner.ProjectSet, *planner.Aggregate,
		*planner.Expand, *planner.WindowAgg, *planner.Sort, *planner.TopN, *planner.Limit, *planner.Distinct, *planner.LockRows,
		*planner.Insert, *planner.Update, *planner.Delete, *planner.Merge, *planner.InsteadOf:
		return ex.buildUnary(n)
	case *planner.HashJoin, *planner.MergeJoin, *planner.NestedLoopJoin, *planner.Apply, *planner.SetOp,
		*planner.RecursiveUnion:
		return ex.buildBinary(n)
	}
	return nil, pgerror.New(pgerror.InternalError, "no operator for plan node %s", nodeName(n))
}

// buildUnary makes nodes with one input.
func (ex *execution) buildUnary(n planner.Node) (Operator, error) {
	input, err := ex.build(n.Children()[0])
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *planner.LookupJoin:
		return newLookupJoin(ex, input, n)
	case *planner.Filter:
		return &filter{ex: ex, input: input, cond: n.Cond}, nil
	case *planner.Project:
		return &project{ex: ex, input: input, exprs: n.Exprs, out: make(types.Row, len(n.Exprs))}, nil
	case *planner.ProjectSet:
		return newProjectSet(ex, input, n), nil
	case *planner.Aggregate:
		return newAggregate(ex, input, n), nil
	case *planner.Expand:
		return &expand{ex: ex, input: input, node: n, out: make(types.Row, len(n.Out))}, nil
	case *planner.WindowAgg:
		return newWindow(ex, input, n), nil
	case *planner.Sort:
		return newSorter(ex, input, n), nil
	case *planner.TopN:
		return newTopN(ex, input, n), nil
	case *planner.Limit:
		if n.Ties != nil {
			return newTies(ex, input, n), nil
		}
		return &limit{ex: ex, input: input, limit: n.Limit, offset: n.Offset}, nil
	case *planner.Distinct:
		return newDistinct(ex, input, n), nil
	case *planner.LockRows:
		return newLockRows(ex, input, n), nil
	case *planner.Insert:
		return newInsert(ex, input, n)
	case *planner.Update:
		return newUpdate(ex, input, n), nil
	case *planner.Delete:
		return newDelete(ex, input, n), nil
	case *planner.Merge:
		return newMerge(ex, input, n), nil
	case *planner.InsteadOf:
		return newInsteadOf(ex, input, n), nil
	}
	return nil, pgerror.New(pgerror.InternalError, "no operator for plan node %s", nodeName(n))
}

// buildBinary makes nodes with two inputs.
func (ex *execution) buildBinary(n planner.Node) (Operator, error) {
	children := n.Children()
	left, err := ex.build(children[0])
	if err != nil {
		return nil, err
	}
	right, err := ex.build(children[1])
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *planner.HashJoin:
		return newHashJoin(ex, left, right, n), nil
	case *planner.MergeJoin:
		return newMergeJoin(ex, left, right, n), nil
	case *planner.NestedLoopJoin:
		return newNestedLoopJoin(ex, left, right, n), nil
	case *planner.Apply:
		return newApply(ex, left, right, n), nil
	case *planner.SetOp:
		return newSetOp(ex, left, right, n), nil
	case *planner.RecursiveUnion:
		return newRecursiveUnion(ex, left, right, n, ex.work(n.ID)), nil
	}
	return nil, pgerror.New(pgerror.InternalError, "no operator for plan node %s", nodeName(n))
}

// buildSubquery makes the operators of a subquery.
func (ex *execution) buildSubquery(sub *expr.Subquery) (Operator, error) {
	n, ok := sub.Plan.(planner.Node)
	if !ok {
		return nil, pgerror.New(pgerror.InternalError, "subquery %d has no plan", sub.ID)
	}
	return ex.build(n)
}

// work returns the work table of the RecursiveUnion with the given ID.
func (ex *execution) work(id int) *workTable {
	w := ex.workTable[id]
	if w == nil {
		if ex.workTable == nil {
			ex.workTable = make(map[int]*workTable)
		}
		w = &workTable{rows: rowBuffer{mem: &ex.mem}}
		ex.workTable[id] = w
	}
	return w
}

// nodeName is a node's type without its package.
func nodeName(n planner.Node) string {
	name := fmt.Sprintf("%T", n)
	return name[strings.LastIndexByte(name, '.')+1:]
}
