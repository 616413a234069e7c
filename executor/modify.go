package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// modify is the common part of INSERT, UPDATE and DELETE. The first Next runs the whole statement, however many rows the
// caller will fetch; RETURNING's rows are kept and returned afterwards.
type modify struct {
	ex        *execution
	input     Operator
	writer    *tableWriter
	returning []expr.Scalar
	marks     bool      // RETURNING is over rows followed by replaced
	replaced  bool      // the row is one that ON CONFLICT has updated
	marked    types.Row // scratch
	out       types.Row
	results   rowBuffer
	at        int
	done      bool
	affected  int64
	triggers  *triggers
	views     []planner.ViewCheck                    // of rows that are written
	leaves    []*modify                              // those that write the partitions of a partitioned table
	report    func(context.Context, types.Row) error // takes the rows changed of a partition
	seen      *rowSet                                // rows that have been processed; nil: the input cannot repeat one, or pending has them
	key       []byte
	feed      *feed // where rows come from in any order; nil: from input
}

// init prepares a change, which is a part of its operator.
func (m *modify) init(ex *execution, input Operator, w *tableWriter, returning []expr.Scalar) {
	m.begin(ex, input, w, returning)
	ex.modifies = append(ex.modifies, m)
}

// begin is init for what is a part of another change.
func (m *modify) begin(ex *execution, input Operator, w *tableWriter, returning []expr.Scalar) {
	*m = modify{
		ex: ex, input: input, writer: w, returning: returning,
		out: make(types.Row, len(returning)), results: rowBuffer{mem: &ex.mem},
	}
	if ex.together {
		w.sink.pending = ex.pending
	}
}

// repeated reports whether the statement has changed an existing row before.
func (m *modify) repeated(old types.Row) (bool, error) {
	if !m.ex.together {
		return m.seen.add(old)
	}
	var err error
	if m.key, _, err = rowenc.AppendKey(m.key[:0], m.writer.table, &m.writer.table.Primary, old); err != nil {
		return false, err
	}
	_, again := m.ex.pending[string(m.key)]
	return again, nil
}

func (m *modify) Open(ctx context.Context) error {
	m.done, m.at = false, 0
	return m.input.Open(ctx)
}

func (m *modify) Close() error {
	m.writer.sink.discard()
	m.results.release()
	m.seen.release()
	err := m.triggers.release()
	return firstError(err, m.input.Close())
}

// next runs the statement by run if that is still to be done, and returns the next result.
func (m *modify) next(ctx context.Context, run func(context.Context) error) (types.Row, error) {
	if !m.done {
		m.ex.countChanges()
		if m.triggers != nil {
			m.triggers.sink = &m.writer.sink
		}
		if err := m.triggers.begin(ctx); err != nil {
			return nil, err
		}
		if err := run(ctx); err != nil {
			return nil, err
		}
		if m.ex.together {
			m.ex.finishing = append(m.ex.finishing, m)
		} else {
			if err := m.write(ctx); err != nil {
				return nil, err
			}
			if err := m.ex.keys.run(ctx); err != nil {
				return nil, err
			}
			if err := m.fire(ctx); err != nil {
				return nil, err
			}
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

// write passes what is still to be written to the transaction.
func (m *modify) write(ctx context.Context) error {
	if err := m.writer.sink.finish(ctx); err != nil {
		return err
	}
	for _, l := range m.leaves {
		if err := l.writer.sink.finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fire executes the triggers after the rows and the statement.
func (m *modify) fire(ctx context.Context) error {
	if m.triggers == nil && len(m.leaves) == 0 && len(m.ex.keys.triggers()) == 0 {
		return nil
	}
	return m.ex.fireAfter(ctx, m.allTriggers()...)
}

// allTriggers lists the triggers of the partitions, then those of the table.
func (m *modify) allTriggers() []*triggers {
	list := make([]*triggers, 0, len(m.leaves)+1)
	for _, l := range m.leaves {
		list = append(list, l.triggers)
	}
	return append(list, m.triggers)
}

// pass returns 42501 unless the policies let a row pass: an existing one, or a new one.
func (m *modify) pass(policies []planner.PolicyCheck, row types.Row, existing bool) error {
	for i := range policies {
		p := &policies[i]
		if p.Existing != existing {
			continue
		}
		if ok, err := m.ex.holds(p.Cond, row); ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		return policyViolation(m.writer.table, p)
	}
	return nil
}

// policyViolation is the error of a row that a policy does not let pass.
func policyViolation(t *catalog.TableDescriptor, p *planner.PolicyCheck) error {
	which := "row-level security policy"
	if p.Policy != "" {
		which += " \"" + p.Policy + "\""
	}
	if p.Existing {
		which += " (USING expression)"
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "new row violates %s for table \"%s\"", which, t.Name)
}

// passViews returns 44000 unless the views through which a row is written have it.
func (m *modify) passViews(ctx context.Context, row types.Row) error {
	for i := range m.views {
		v := &m.views[i]
		if ok, err := m.ex.holds(v.Cond, row); ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		e := pgerror.New(pgerror.WithCheckOption, "new row violates check option for view \"%s\"", v.View)
		return m.writer.withRow(ctx, e, row[:len(m.writer.table.Columns)])
	}
	return nil
}

// changed counts a row changed, which row begins with, and computes RETURNING over row.
func (m *modify) changed(ctx context.Context, row types.Row) error {
	m.affected++
	if m.report != nil {
		return m.report(ctx, row)
	}
	if err := m.passViews(ctx, row); err != nil {
		return err
	}
	if m.returning == nil {
		return nil
	}
	if m.marks {
		m.marked = append(append(m.marked[:0], row...), types.Bool(m.replaced))
		row = m.marked
	}
	if err := m.ex.evalAll(m.returning, row, m.out); err != nil {
		return err
	}
	return m.results.add(m.out)
}
