package executor

import (
	"context"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// modify is the common part of INSERT, UPDATE and DELETE. The first Next runs the whole statement, however many rows the
// caller will fetch; RETURNING's rows are kept and returned afterwards.
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
		if err := m.writer.sink.finish(ctx); err != nil {
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
