package session

import (
	"context"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// declareCursor makes a portal of a query. A cursor WITH HOLD takes all its rows at once, so that it
// can outlive the transaction; any other reads as it is fetched from, and only forward.
func (s *Session) declareCursor(ctx context.Context, n *ast.DeclareCursor) error {
	if !s.inBlock() && !n.Hold {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	if n.Binary {
		return pgerror.Unsupported("BINARY cursor", "Ask for binary results in the extended protocol.")
	}
	if s.portals.byName[n.Name] != nil {
		return pgerror.New(pgerror.DuplicateCursor, "cursor %q already exists", n.Name)
	}
	s.lexer.Reset(n.Text)
	st, err := s.lexer.Next()
	if err != nil {
		return err
	}
	p := &prepared{statement: st.Clone()}
	if err := s.prepare(ctx, p, false); err != nil {
		return err
	}
	po := &portal{name: n.Name, prepared: p, cursor: true}
	po.depth, po.fresh = len(s.tx.savepoints), true
	po.run = run{planned: true, plan: p.plan, literals: p.statement.Literals, keeps: true}
	if err := s.openCursor(ctx, po, n.Hold); err != nil {
		po.close()
		return err
	}
	s.portals.add(po)
	return nil
}

// openCursor starts a cursor's query: from here on it shows what there is now. One that locks rows takes
// its locks now, and keeps its rows: when it must run again because a row has changed, none has been shown.
func (s *Session) openCursor(ctx context.Context, po *portal, outlives bool) error {
	if !outlives && po.prepared.plan.Locks == "" {
		return s.open(ctx, &po.run)
	}
	po.run.maxRows = keepRows
	if _, err := s.executePlan(ctx, &po.run, &rowCollector{discard: true}); err != nil || !outlives {
		return err
	}
	po.outlives = true
	return po.run.runner.Detach(ctx)
}

// fetch moves a cursor forward and, unless it is MOVE, sends the rows.
func (s *Session) fetch(ctx context.Context, n *ast.Fetch, w ResultWriter) (Tag, error) {
	po := s.portals.cursor(n.Name)
	if po == nil {
		return Tag{}, pgerror.New(pgerror.InvalidCursorName, "cursor %q does not exist", n.Name)
	}
	count, err := forwardCount(n)
	if err != nil {
		return Tag{}, err
	}
	out := w
	if n.Move {
		out = &rowCollector{discard: true}
	} else if err := w.Columns(s.columns(po.prepared), s.formats, s.simple); err != nil {
		return Tag{}, err
	}
	rows, err := s.pullCursor(ctx, po, count, out)
	if err != nil {
		return Tag{}, err
	}
	if n.Move {
		return Tag{Verb: "MOVE", Rows: rows}, nil
	}
	return Tag{Verb: "FETCH", Rows: rows}, nil
}

// forwardCount returns how many rows to move on, 0 for all that remain.
func forwardCount(n *ast.Fetch) (int, error) {
	switch n.Direction {
	case "NEXT", "FORWARD":
		if n.All {
			return 0, nil
		}
		if n.Count > 0 {
			return int(n.Count), nil
		}
	}
	return 0, pgerror.New(pgerror.ObjectNotInPrerequisite, "cursor can only scan forward").
		WithHint("percodb's cursors go forward: use FETCH NEXT, FORWARD n or FORWARD ALL.")
}

func (s *Session) pullCursor(ctx context.Context, po *portal, count int, w ResultWriter) (int64, error) {
	if po.done {
		return 0, nil
	}
	po.run.maxRows, po.run.quiet = count, true
	tag, err := s.executePlan(ctx, &po.run, w)
	if err != nil {
		return 0, err
	}
	po.done = !po.run.suspended
	return tag.Rows, nil
}

// holdPortals keeps what open queries of the transaction still have to show as it is, before the
// statement of r changes something. What it reads for them are no reads of that statement: they are not
// repeated when the statement runs again.
func (s *Session) holdPortals(ctx context.Context, r *run) error {
	for _, po := range s.portals.byName {
		if &po.run == r || !po.reads() {
			continue
		}
		err := po.run.runner.Hold(ctx)
		s.tx.txn.KeepReads()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) closeCursor(n *ast.CloseCursor) (Tag, error) {
	if n.Name == "" {
		s.portals.removeCursors()
		return verb("CLOSE CURSOR ALL"), nil
	}
	po := s.portals.byName[n.Name]
	if po == nil {
		return Tag{}, pgerror.New(pgerror.InvalidCursorName, "cursor %q does not exist", n.Name)
	}
	s.portals.remove(n.Name)
	return verb("CLOSE CURSOR"), nil
}
