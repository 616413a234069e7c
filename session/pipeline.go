package session

import (
	"errors"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/sql/ast"
)

// The statements of the extended protocol between two Syncs share a transaction unless BEGIN was given. When the first runs
// it is not known whether others follow. So it runs as if it were alone: optimistically, its unique keys left to the commit,
// its result revocable, so that it can run again when the commit meets a conflict (S2).
//
//	Execute (first) ─▶ optimistic, revocable ─▶ Sync: commit; after a conflict again, with locks
//	                        │
//	                        └▶ Execute (second): the first again, with locks, then the second
//
// Queries are not run again for the sake of other queries. A pipeline that changes something behind several of them, or
// behind one whose result has been sent, is optimistic to its end: at snapshot isolation it cannot revoke what it has read,
// and answers 40001 where others wait.

// pipeline is what a session knows of the statements between two Syncs.
type pipeline struct {
	first    *portal // the only one so far, which may run again
	reads    bool    // first changes and locks nothing
	executed int
}

// shared reports whether the running statement shares its transaction with others of the pipeline.
func (p *pipeline) shared() bool { return p.executed > 0 && p.first == nil }

// joinPipeline adds a statement that is about to run to the pipeline; repeatable: it may be executed twice.
func (s *Session) joinPipeline(r *run, repeatable bool, w ResultWriter) error {
	reads := r.portal.prepared.plan != nil && r.portal.prepared.plan.ReadOnly
	s.tx.pipeline.executed++
	if s.tx.pipeline.executed > 1 {
		return s.shareWithFirst(reads, w)
	}
	if repeatable {
		s.tx.pipeline.first, s.tx.pipeline.reads = r.portal, reads
		s.portals.repeatable = r.portal
		r.policy, r.begun = first, true
		if reads {
			w.Begin(0)
		} else {
			w.Begin(changeBytes)
		}
	}
	return nil
}

// shareWithFirst prepares the pipeline's transaction for a second statement. The first, which ran as if it were alone, runs
// again: with locks, and with its unique keys checked, so that its error precedes the results of others.
func (s *Session) shareWithFirst(nextReads bool, w ResultWriter) error {
	po := s.tx.pipeline.first
	s.tx.pipeline.first, s.portals.repeatable = nil, nil
	if po != nil {
		po.run.policy = shared
	}
	switch {
	case s.tx.txn == nil || s.tx.txn.Pessimistic():
		w.Commit()
		return nil
	case po == nil || s.tx.pipeline.reads && nextReads:
		w.Commit()
		if !nextReads && s.mayStartOver() {
			s.startOverPipeline()
		}
		return nil
	case !w.Revoke(): // Its result has been sent.
		if err := s.tx.txn.CheckNew(s.ctx); err != nil {
			return s.describeCommitError(s.ctx, err)
		}
		return nil
	}
	s.startOverPipeline()
	if err := s.repeatPortal(po, w); err != nil {
		return err
	}
	w.Commit()
	return nil
}

// mayStartOver reports whether the transaction may be replaced by another without anybody noticing.
func (s *Session) mayStartOver() bool {
	if !s.tx.modes.isolation.perStatement() || s.tx.txn.Wrote() || s.tx.changed {
		return false
	}
	return !s.portals.reading()
}

// startOverPipeline is startOver in the midst of a pipeline.
func (s *Session) startOverPipeline() {
	executed := s.tx.pipeline.executed
	s.startOver()
	s.tx.pipeline.executed = executed
}

// repeatPortal runs a portal of the pipeline, which has run alone, in the transaction that it shares with others now.
func (s *Session) repeatPortal(po *portal, w ResultWriter) error {
	po.run.repeat()
	return s.execute(s.ctx, &po.run, w)
}

// takeUtility runs a statement without plan whose rows are asked for in parts.
func (s *Session) takeUtility(po *portal, maxRows int, w ResultWriter) error {
	columns := s.utilityColumns(po.prepared.tree)
	taker := &taker{ResultWriter: w, rows: executor.NewRowStore(columns, &executor.Runtime{Env: &s.env})}
	if err := s.execute(s.ctx, &po.run, taker); err != nil {
		return errors.Join(err, taker.rows.Close())
	}
	po.columns, po.run.tag, po.taken = columns, taker.tag, taker.rows
	return s.sendTaken(po, maxRows, w)
}

// sendTaken sends the next rows of those taken.
func (s *Session) sendTaken(po *portal, maxRows int, w ResultWriter) error {
	if err := w.Columns(po.columns, po.formats, false); err != nil {
		return err
	}
	for sent := 0; maxRows == 0 || sent < maxRows; sent++ {
		row, err := po.taken.Next()
		if err != nil {
			return err
		}
		if row == nil {
			return w.Complete(po.run.tag)
		}
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return w.Suspended()
}

// executesChange reports whether a statement is EXECUTE of a plan that writes or locks.
func (s *Session) executesChange(tree ast.Statement) bool {
	n, ok := tree.(*ast.Execute)
	if !ok {
		return false
	}
	p := s.statements.named[n.Name]
	return p != nil && p.plan != nil && !p.plan.ReadOnly
}

// Sync ends the implicit transaction of a pipeline. The error is for the client; the session goes on.
func (s *Session) Sync(w ResultWriter) error {
	if po := s.deferred; po != nil {
		s.deferred = nil
		if err := s.executePortal(po, 0, true, w); err != nil {
			return err
		}
	}
	defer w.Commit()
	if s.tx.phase.explicit() {
		return nil
	}
	if s.tx.txn == nil {
		s.endTxn(true)
		return nil
	}
	s.beginMessage()
	defer s.endMessage()
	var err error
	if po := s.tx.pipeline.first; po != nil {
		// The run goes on with its commit, which is all that is missing, unless that meets a conflict.
		po.run.policy = alone
		err = s.execute(s.ctx, &po.run, w)
	} else {
		err = s.commitTxn(s.ctx)
	}
	if err != nil {
		w.Abandon()
		return s.reportError(err)
	}
	return nil
}
