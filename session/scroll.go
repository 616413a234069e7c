package session

import (
	"context"
	"math"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// scrollBytes is up to how much a cursor keeps that was declared neither SCROLL nor NO SCROLL: one over few rows goes back as in PostgreSQL, one
// over many costs no more than one that only goes forward.
const scrollBytes = 1 << 20

// scroll is the place of a cursor among its rows, and those that it has read, so that it can go back to them.
type scroll struct {
	rows    *executor.RowList // nil: it goes forward only
	bounded bool              // rows are dropped beyond scrollBytes
	pos     int64             // of the current row, from 1; 0: before the first one; read+1: after the last one
	read    int64             // how many rows the query has given
	width   int               // of the rows that are shown; what is behind in those of the query are keys (planner.Position)
	keys    types.Row         // of the row that was shown last, in storage of its own
}

// show sends a row of the query, and keeps its keys.
func (s *scroll) show(row types.Row, w ResultWriter) error {
	if len(row) > s.width {
		s.keys = row[s.width:].Clone()
	}
	return w.Row(row[:s.width])
}

// stop makes the cursor one that goes forward only.
func (s *scroll) stop() {
	if s.rows != nil {
		_ = s.rows.Close() // Rows that are not read any more.
		s.rows = nil
	}
}

// reader passes the rows of a cursor's query on, and keeps them.
type reader struct {
	ResultWriter
	s *scroll
}

func (r *reader) Row(row types.Row) error {
	r.s.read++
	if r.s.rows != nil {
		if err := r.s.rows.Add(row); err != nil {
			return err
		}
		if r.s.bounded && r.s.rows.Bytes() > scrollBytes {
			r.s.stop()
		}
	}
	return r.s.show(row, r.ResultWriter)
}

// movement is one FETCH or MOVE of a cursor.
type movement struct {
	c   *cursors
	ctx context.Context
	po  *portal
	w   ResultWriter // of the rows that are shown
}

// discarded takes the rows that are passed over.
var discarded = &rowCollector{discard: true}

// run moves the cursor, and returns how many rows it has shown.
func (m *movement) run(n *ast.Fetch) (int64, error) {
	count := n.Count
	if n.All {
		count = math.MaxInt64
	}
	switch n.Direction {
	case "NEXT", "FORWARD":
		return m.by(count)
	case "PRIOR", "BACKWARD":
		return m.by(-count)
	case "RELATIVE":
		return m.relative(count, n.Move)
	case "FIRST":
		return m.absolute(1)
	case "LAST":
		return m.absolute(-1)
	}
	return m.absolute(count)
}

// by shows the next rows, those before for a negative count, and the current one for 0.
func (m *movement) by(count int64) (int64, error) {
	switch {
	case count > 0:
		return m.forward(count, m.w)
	case count < 0:
		return m.backward(-count, m.w)
	}
	return m.current()
}

// current shows the row that the cursor is on.
func (m *movement) current() (int64, error) {
	s := &m.po.scroll
	if s.pos < 1 || s.pos > s.read {
		return 0, nil
	}
	if m.w == discarded {
		return 1, nil
	}
	return 1, m.show(s.pos, m.w)
}

// relative passes over all rows but the last one.
func (m *movement) relative(count int64, move bool) (shown int64, err error) {
	switch {
	case count > 0:
		if _, err = m.forward(count-1, discarded); err == nil {
			shown, err = m.forward(1, m.w)
		}
	case count < 0:
		if _, err = m.backward(-count-1, discarded); err == nil {
			shown, err = m.backward(1, m.w)
		}
	default:
		return m.current()
	}
	return shown, err
}

// absolute shows the row at a place, from the end for a negative one.
func (m *movement) absolute(place int64) (int64, error) {
	s := &m.po.scroll
	if place < 0 {
		if _, err := m.forward(math.MaxInt64, discarded); err != nil {
			return 0, err
		}
		return m.relative(place, false)
	}
	if place <= s.pos && s.pos > 0 {
		if s.rows == nil {
			return 0, forwardOnly()
		}
		s.pos = max(place-1, 0)
	}
	if place == 0 {
		return 0, nil
	}
	return m.relative(place-s.pos, false)
}

// forward shows up to count following rows.
func (m *movement) forward(count int64, w ResultWriter) (shown int64, err error) {
	s := &m.po.scroll
	for shown < count && s.pos < s.read {
		if err := m.show(s.pos+1, w); err != nil {
			return shown, err
		}
		s.pos++
		shown++
	}
	if shown < count && s.pos == s.read {
		limit := 0 // all
		if count < math.MaxInt32 {
			limit = int(count - shown)
		}
		rows, err := m.c.pull(m.ctx, m.po, limit, &reader{w, s})
		shown += rows
		s.pos = s.read
		if err != nil {
			return shown, err
		}
	}
	if shown < count {
		s.pos = s.read + 1
	}
	return shown, nil
}

// backward shows up to count rows before the current one, the nearest first.
func (m *movement) backward(count int64, w ResultWriter) (shown int64, err error) {
	s := &m.po.scroll
	if s.rows == nil {
		return 0, forwardOnly()
	}
	for ; shown < count && s.pos > 1; shown++ {
		s.pos--
		if err := m.show(s.pos, w); err != nil {
			return shown, err
		}
	}
	if shown < count {
		s.pos = 0
	}
	return shown, nil
}

// show shows a row that has been read.
func (m *movement) show(pos int64, w ResultWriter) error {
	s := &m.po.scroll
	if s.rows == nil {
		return forwardOnly()
	}
	row, err := s.rows.At(pos - 1)
	if err != nil {
		return err
	}
	return s.show(row, w)
}

func forwardOnly() error {
	return pgerror.New(pgerror.ObjectNotInPrerequisite, "cursor can only scan forward").
		WithHint("Declare it with SCROLL option to enable backward scan.")
}
