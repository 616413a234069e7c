package session

import "github.com/percodb/percodb/sql/builtin"

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

// pipelines decides for each statement of a pipeline whether those before it run again.
type pipelines struct {
	tx      *transaction
	portals *portals
	runner  *statementRunner
	env     *builtin.Env
}

// pipelineState is what a transaction keeps of the statements since the last Sync.
type pipelineState struct {
	first    *portal // the only one so far, which may run again
	reads    bool    // first changes and locks nothing
	executed int
}

// shared reports whether the running statement shares its transaction with others of the pipeline.
func (p *pipelineState) shared() bool { return p.executed > 0 && p.first == nil }

// join adds a statement that is about to run to the pipeline; repeatable: it may be executed twice.
func (p *pipelines) join(r *run, repeatable bool, w ResultWriter) error {
	reads := r.portal.prepared.plan != nil && r.portal.prepared.plan.ReadOnly
	p.tx.pipeline.executed++
	if p.tx.pipeline.executed > 1 {
		return p.share(reads, w)
	}
	if repeatable {
		p.tx.pipeline.first, p.tx.pipeline.reads = r.portal, reads
		p.portals.repeatable = r.portal
		r.policy, r.begun = first, true
		if reads {
			w.Begin(0)
		} else {
			w.Begin(changeBytes)
		}
	}
	return nil
}

// share prepares the pipeline's transaction for a second statement. The first, which ran as if it were alone, runs
// again: with locks, and with its unique keys checked, so that its error precedes the results of others.
func (p *pipelines) share(nextReads bool, w ResultWriter) error {
	po := p.tx.pipeline.first
	p.tx.pipeline.first, p.portals.repeatable = nil, nil
	if po != nil {
		po.run.policy = shared
	}
	switch {
	case p.tx.txn == nil || p.tx.txn.Pessimistic():
		w.Commit()
		return nil
	case po == nil || p.tx.pipeline.reads && nextReads:
		w.Commit()
		if !nextReads && p.mayBeReplaced() {
			p.anew(p.tx.replace)
		}
		return nil
	case !w.Revoke(): // Its result has been sent.
		if err := p.tx.txn.CheckNew(p.env.Ctx); err != nil {
			return p.tx.nameViolation(p.env.Ctx, err)
		}
		return nil
	}
	p.anew(p.tx.startOver)
	if err := p.repeat(po, w); err != nil {
		return err
	}
	w.Commit()
	return nil
}

// mayBeReplaced reports whether the client cannot notice that another transaction replaces this one.
func (p *pipelines) mayBeReplaced() bool {
	if !p.tx.modes.Isolation.PerStatement() || p.tx.txn.Wrote() || p.tx.changed {
		return false
	}
	return !p.portals.reading()
}

// anew has end make way for another transaction in the midst of a pipeline.
func (p *pipelines) anew(end func()) {
	executed := p.tx.pipeline.executed
	end()
	p.tx.pipeline.executed = executed
}

// repeat runs a portal of the pipeline, which has run alone, in the transaction that it shares with others now.
func (p *pipelines) repeat(po *portal, w ResultWriter) error {
	po.run.repeat()
	return p.runner.execute(p.env.Ctx, &po.run, w)
}
