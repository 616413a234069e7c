package executor

import (
	"context"
	"slices"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// modify is what INSERT, UPDATE and DELETE share. The first Next runs the whole statement, whoever
// asks for how many of its rows; RETURNING's rows are kept and handed out afterwards.
type modify struct {
	ex        *execution
	input     Operator
	writer    *tableWriter
	returning []expr.Scalar
	out       types.Row
	results   rowBuffer
	at        int
	done      bool
}

func newModify(ex *execution, input Operator, w *tableWriter, returning []expr.Scalar) modify {
	return modify{
		ex: ex, input: input, writer: w, returning: returning,
		out: make(types.Row, len(returning)), results: rowBuffer{mem: &ex.mem},
	}
}

func (m *modify) Open(ctx context.Context) error {
	m.done, m.at = false, 0
	return m.input.Open(ctx)
}

func (m *modify) Close() error {
	m.writer.sink.discard()
	m.results.release()
	return m.input.Close()
}

// next runs the statement by run if that is still to be done, and returns the next result.
func (m *modify) next(ctx context.Context, run func(context.Context) error) (types.Row, error) {
	if !m.done {
		if err := run(ctx); err != nil {
			return nil, err
		}
		if err := m.writer.sink.flush(ctx); err != nil {
			return nil, err
		}
		m.done = true
	}
	if m.at == len(m.results.rows) {
		return nil, nil
	}
	row := m.results.rows[m.at]
	m.at++
	return row, nil
}

// changed counts a row changed and computes RETURNING over row.
func (m *modify) changed(row types.Row) error {
	m.ex.affected++
	if m.returning == nil {
		return nil
	}
	if err := m.ex.evalAll(m.returning, row, m.out); err != nil {
		return err
	}
	return m.results.add(m.out)
}

// anySubquery reports whether an expression has a subquery, which reads tables when it is evaluated.
func anySubquery(es []expr.Scalar) bool { return slices.ContainsFunc(es, expr.HasSubquery) }

// atMostOne reports whether a node yields one row at most.
func atMostOne(n planner.Node) bool {
	switch n := n.(type) {
	case *planner.PointGet:
		return true
	case *planner.Values:
		return len(n.Rows) <= 1
	case *planner.Filter, *planner.Project, *planner.Limit, *planner.TopN, *planner.Sort, *planner.LockRows:
		return atMostOne(n.Children()[0])
	}
	return false
}

// readsAhead reports whether a statement may write each row as it comes, because nothing that it
// reads later can show it: the input is one iterator, which sees the transaction's writes as they
// were when it began. It spares holding a second list of all changes.
func readsAhead(p *planner.Plan, n planner.Node) bool {
	if p.Subqueries > 0 || len(p.CTEs) > 0 {
		return false
	}
	switch n := n.(type) {
	case *planner.Filter, *planner.Project, *planner.Limit, *planner.Sort, *planner.TopN:
		return readsAhead(p, n.Children()[0])
	case *planner.Scan:
		return !n.Fetch && !wholeKeys(n) && len(n.Spans) <= 1 && (len(n.Spans) == 0 || !hasEach(&n.Spans[0]))
	}
	return false
}

func hasEach(s *planner.KeySpan) bool {
	return slices.ContainsFunc(s.Eq, func(part planner.KeyPart) bool { return part.Each })
}

// mayRead reports whether a node, or an expression in it, may read a table. Expressions are not
// looked into: any subquery in the plan counts.
func mayRead(p *planner.Plan, n planner.Node, tableID uint64) bool {
	return p.Subqueries > 0 || len(p.CTEs) > 0 || readsTable(n, tableID)
}

func readsTable(n planner.Node, tableID uint64) bool {
	switch n := n.(type) {
	case *planner.PointGet:
		return n.Table.ID == tableID
	case *planner.Scan:
		return n.Table.ID == tableID
	case *planner.LookupJoin:
		if n.Table.ID == tableID {
			return true
		}
	}
	for _, child := range n.Children() {
		if readsTable(child, tableID) {
			return true
		}
	}
	return false
}

// eachRowOnce reports whether a node yields each row of a table once at most. A join does not even
// where its keys are unique: the planner is free to put the table on either side.
func eachRowOnce(n planner.Node) bool {
	switch n := n.(type) {
	case *planner.PointGet, *planner.Scan:
		return true
	case *planner.Filter, *planner.Project, *planner.Limit, *planner.TopN, *planner.Sort, *planner.LockRows:
		return eachRowOnce(n.Children()[0])
	case *planner.HashJoin:
		return keepsLeft(n.Kind) && eachRowOnce(n.Left)
	case *planner.MergeJoin:
		return keepsLeft(n.Kind) && eachRowOnce(n.Left)
	case *planner.NestedLoopJoin:
		return keepsLeft(n.Kind) && eachRowOnce(n.Left)
	case *planner.Apply:
		return keepsLeft(n.Kind) && eachRowOnce(n.Left)
	case *planner.LookupJoin:
		return keepsLeft(n.Kind) && eachRowOnce(n.Left)
	}
	return false
}

// keepsLeft reports whether a join yields each left row once at most.
func keepsLeft(k planner.JoinKind) bool { return k == planner.SemiJoin || k == planner.AntiJoin }
