package session

import (
	"errors"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/sql/ast"
)

// The statements of the extended protocol between two Syncs share a transaction unless BEGIN was given.
// Nobody can know of the first that others follow, so it runs as if it were alone: optimistic, its
// unique keys left to the commit, its result held back, so that it can run again when the commit meets
// a conflict (S2).
//
//	Execute (first) ─▶ optimistic, held ─▶ Sync: commit; on a conflict again, with locks
//	                        │
//	                        └▶ Execute (second): the first again, with locks, then the second
//
// Queries are not run again for the sake of other queries. A pipeline that changes something behind
// several of them, or behind one whose result has left, is optimistic to its end: at snapshot isolation
// it cannot get back what it has read, and hears 40001 where others wait.

// pipelineUse says how a statement joins a pipeline.
type pipelineUse struct {
	again bool // it may run twice
	reads bool // it changes and locks nothing
}

// joinPipeline takes note of a statement about to run in the implicit transaction.
func (s *Session) joinPipeline(po *portal, use pipelineUse, w ResultWriter) error {
	if s.tx.phase.explicit() || s.tx.alone == po {
		return nil
	}
	s.tx.executions++
	if s.tx.executions > 1 {
		return s.notAlone(use, w)
	}
	if use.again {
		s.tx.alone, s.tx.aloneReads = po, use.reads
		if use.reads {
			w.Begin(0)
		} else {
			w.Begin(changeBytes)
		}
	}
	return nil
}

// notAlone has what ran as if it were alone run as the first of several: with locks, and with its
// unique keys looked at, so that its error comes before the results of others.
func (s *Session) notAlone(next pipelineUse, w ResultWriter) error {
	first := s.tx.alone
	s.tx.alone = nil
	switch {
	case s.tx.txn == nil || s.tx.txn.Pessimistic():
		w.Commit()
		return nil
	case first == nil || s.tx.aloneReads && next.reads:
		w.Commit()
		if !next.reads && s.mayStartOver() {
			s.startOverPipeline()
		}
		return nil
	case !w.Revoke(): // Its result has gone to the client.
		if err := s.tx.txn.CheckNew(s.ctx); err != nil {
			return s.describeCommitError(s.ctx, err)
		}
		return nil
	}
	s.startOverPipeline()
	first.run, first.done = nil, false
	if _, err := s.executeAgain(first, w); err != nil {
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
	for _, po := range s.portals {
		if po.reads() {
			return false
		}
	}
	return true
}

// startOverPipeline is startOver in the midst of a pipeline.
func (s *Session) startOverPipeline() {
	executions := s.tx.executions
	s.startOver()
	s.tx.executions = executions
}

// executeAgain runs a portal of the pipeline another time.
func (s *Session) executeAgain(po *portal, w ResultWriter) (bool, error) {
	if po.prepared.plan == nil {
		return false, s.runPortalUtility(po, w)
	}
	p := po.prepared
	if err := s.current(s.ctx, p); err != nil {
		return false, err
	}
	po.exec = execution{plan: p.plan, literals: p.statement.Literals, params: po.params, formats: po.formats, held: true}
	po.run = &po.exec
	return s.pullPortal(po, 0, w)
}

// executeUtility runs a portal of a statement without plan. EXECUTE of a change may run again, as the
// change itself may.
func (s *Session) executeUtility(po *portal, maxRows int, w ResultWriter) (suspended bool, err error) {
	if po.taken != nil {
		return s.sendTaken(po, maxRows, w)
	}
	if err := s.joinPipeline(po, pipelineUse{again: maxRows == 0 && s.executesChange(po.prepared.tree)}, w); err != nil {
		return false, err
	}
	if maxRows > 0 && s.utilityColumns(po.prepared.tree) != nil {
		return s.takeUtility(po, maxRows, w)
	}
	for attempt := 0; ; attempt++ {
		err := s.runPortalUtility(po, w)
		if err == nil || s.tx.alone != po || !s.retryAlone(po, err, attempt, w) {
			return false, err
		}
	}
}

// takeUtility runs a statement without plan whose rows are asked for in parts.
func (s *Session) takeUtility(po *portal, maxRows int, w ResultWriter) (suspended bool, err error) {
	columns := s.utilityColumns(po.prepared.tree)
	taker := &taker{ResultWriter: w, rows: executor.NewRowStore(columns, &executor.Runtime{Env: &s.env})}
	if err := s.runPortalUtility(po, taker); err != nil {
		return false, errors.Join(err, taker.rows.Close())
	}
	po.columns, po.tag, po.taken = columns, taker.tag, taker.rows
	return s.sendTaken(po, maxRows, w)
}

// sendTaken sends the next rows of those taken.
func (s *Session) sendTaken(po *portal, maxRows int, w ResultWriter) (suspended bool, err error) {
	if err := w.Columns(po.columns, po.formats, false); err != nil {
		return false, err
	}
	for sent := 0; maxRows == 0 || sent < maxRows; sent++ {
		row, err := po.taken.Next()
		if err != nil {
			return false, err
		}
		if row == nil {
			return false, w.Complete(po.tag)
		}
		if err := w.Row(row); err != nil {
			return false, err
		}
	}
	return true, nil
}

// executesChange reports whether a statement is EXECUTE of a plan that writes or locks.
func (s *Session) executesChange(tree ast.Statement) bool {
	n, ok := tree.(*ast.Execute)
	if !ok {
		return false
	}
	p := s.statements[n.Name]
	return p != nil && p.plan != nil && !p.plan.plan.ReadOnly
}

func (s *Session) runPortalUtility(po *portal, w ResultWriter) error {
	s.formats = po.formats
	tag, err := s.runUtility(s.ctx, po.prepared.tree, w)
	s.formats = nil
	if err != nil {
		return err
	}
	return s.completeUtility(tag, w)
}

// retryAlone is retry for the statement that has its implicit transaction for itself.
func (s *Session) retryAlone(po *portal, err error, attempt int, w ResultWriter) bool {
	if !s.retry(err, attempt, w) {
		return false
	}
	s.tx.alone, s.tx.executions = po, 1
	po.run, po.done = nil, false
	return true
}

// Sync ends the implicit transaction of a pipeline. The error is for the client; the session goes on.
func (s *Session) Sync(w ResultWriter) error {
	if po := s.deferred; po != nil {
		s.deferred = nil
		s.alone = true
		err := s.executeNow(po, 0, w)
		s.alone = false
		if err != nil {
			return err
		}
	}
	defer w.Commit()
	if s.tx.phase.explicit() {
		return nil
	}
	alone := s.tx.alone
	if s.tx.txn == nil {
		s.endTxn(true)
		return nil
	}
	s.ctx.arm(s.settings.statementTimeout)
	defer s.endStatement()
	err := s.commitTxn(s.ctx)
	for attempt := 0; err != nil && alone != nil && s.retryAlone(alone, err, attempt, w); attempt++ {
		s.startStatement()
		if _, err = s.executeAgain(alone, w); err == nil {
			err = s.commitTxn(s.ctx)
		}
	}
	if err != nil {
		w.Abandon()
		return s.reportError(err)
	}
	return nil
}
