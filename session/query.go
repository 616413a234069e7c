package session

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// Query runs the statements of a simple query. Those outside a block share one implicit transaction
// that ends with the text, as PostgreSQL has it (55.2.2.1). The error is for the client; the session
// goes on.
func (s *Session) Query(text string, w ResultWriter) error {
	s.ctx.arm(s.settings.statementTimeout)
	defer s.endStatement()
	s.dropUnnamed()
	s.simple = true
	err := s.query(text, w)
	s.simple = false
	if err != nil {
		return s.reportError(err)
	}
	return nil
}

func (s *Session) query(text string, w ResultWriter) error {
	if err := validText(text); err != nil {
		return err
	}
	in := s.read(text)
	st, err := in.Next()
	if err == io.EOF {
		return w.Empty()
	}
	if err != nil {
		return err
	}
	if in.onlyOne(st) {
		in.sendNotices(w)
		return s.runSingle(st, w)
	}
	return s.queryMany(st, w)
}

// queryMany runs several statements. All are parsed before the first runs, so that a syntax error
// anywhere means that nothing has happened.
func (s *Session) queryMany(first *sql.Statement, w ResultWriter) error {
	statements := []*sql.Statement{first.Clone()}
	for {
		st, err := s.text.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		statements = append(statements, st.Clone())
	}
	if len(statements) == 1 {
		return s.runSingle(statements[0], w)
	}
	for _, st := range statements {
		if _, err := sql.Parse(st); err != nil {
			return err
		}
	}
	s.text.sendNotices(w)
	for i, st := range statements {
		// The last statement of an implicit transaction commits it.
		s.tx.phase.on(share)
		if err := s.runInBlock(st, w); err != nil {
			return err
		}
		if i == len(statements)-1 {
			break
		}
	}
	if s.tx.phase.explicit() {
		return nil
	}
	return s.commitTxn(s.ctx)
}

// runInBlock runs one of several statements that share a transaction.
func (s *Session) runInBlock(st *sql.Statement, w ResultWriter) error {
	s.startStatement()
	if err := noParams(st); err != nil {
		return err
	}
	plan, tree, err := s.planStatement(s.ctx, st, nil)
	if err != nil {
		return err
	}
	if plan == nil {
		tag, err := s.runUtility(s.ctx, tree, w)
		if err != nil {
			return err
		}
		return s.completeUtility(tag, w)
	}
	if plan, err = s.freshPlan(s.ctx, plan, st); err != nil {
		return err
	}
	tag, err := s.runPlan(s.ctx, &execution{plan: plan, literals: st.Literals, announce: true}, w)
	if err != nil {
		return err
	}
	return w.Complete(tag)
}

// freshPlan begins the snapshot of a statement that shares its transaction, and returns its plan as it
// is under that.
func (s *Session) freshPlan(ctx context.Context, plan *cachedPlan, st *sql.Statement) (*cachedPlan, error) {
	if s.tx.phase == failed {
		return nil, failedBlockError()
	}
	if err := s.nextStatement(ctx); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if ok, err := plan.holds(ctx, s.tx.resolver); ok || err != nil {
		return plan, err
	}
	plan, _, err := s.planStatement(ctx, st, nil)
	return plan, err
}

// lockFirst has a statement that asks for locks itself run in a transaction that takes them at once,
// and reports whether that begins anew.
func (s *Session) lockFirst(plan *cachedPlan) bool {
	if plan == nil || plan.plan.Locks == "" || s.tx.pessimistic || s.inBlock() || s.tx.queried {
		return false
	}
	s.forgetUnused()
	s.tx.pessimistic = true
	return true
}

// runSingle runs the one statement of a text: outside a block it is a transaction of its own, run
// again on a conflict (S1, S2).
func (s *Session) runSingle(st *sql.Statement, w ResultWriter) error {
	if s.tx.phase.explicit() {
		return s.runInBlock(st, w)
	}
	if err := noParams(st); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		s.startStatement()
		s.alone = true
		plan, tree, err := s.planStatement(s.ctx, st, nil)
		s.alone = false
		if err != nil {
			return err
		}
		if plan == nil {
			return s.runSingleUtility(tree, w)
		}
		if s.lockFirst(plan) {
			continue
		}
		again, err := s.runAlone(&execution{plan: plan, literals: st.Literals, announce: true}, attempt, w)
		if !again {
			return err
		}
	}
}

// runAlone runs a plan as a transaction of its own and completes it. It reports whether a conflict
// asks for another attempt.
func (s *Session) runAlone(e *execution, attempt int, w ResultWriter) (again bool, err error) {
	if !e.plan.plan.ReadOnly {
		e.held = true
		w.Begin(changeBytes)
		defer w.Commit()
	} else if s.tx.latest {
		w.Begin(0)
		defer w.Commit()
	}
	tag, err := s.runPlan(s.ctx, e, w)
	if err == nil {
		err = s.commitTxn(s.ctx)
	}
	if err == nil {
		return false, w.Complete(tag)
	}
	return s.retry(err, attempt, w), err
}

// noParams refuses parameters in a simple query, which has no values for them. Those of a statement to
// be prepared are its own.
func noParams(st *sql.Statement) error {
	if st.Params == 0 || len(st.Key) == 0 {
		return nil
	}
	return pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", st.Params)
}

// retry decides whether a statement that failed with err runs again, and prepares for it: the next
// attempt waits for its rows instead of finding at its end that they have changed.
func (s *Session) retry(err error, attempt int, w ResultWriter) bool {
	if !retryable(err) || s.tx.asOf != 0 || s.ctx.Err() != nil || !w.Revoke() {
		w.Revoke() // An error is not to be preceded by half a result where that can be helped.
		return false
	}
	s.deps.Metrics.StatementRetries.Inc()
	s.startOver()
	return s.backoff(attempt)
}

// startOver rolls back a transaction that is run again, this time with locks. Portals that wait for
// their turn in the pipeline have read nothing yet.
func (s *Session) startOver() {
	portals := s.portals
	s.portals = map[string]*portal{}
	s.abortTxn()
	s.portals = portals
	s.tx.pessimistic = true
}

// runSingleUtility runs a statement without plan outside a block.
func (s *Session) runSingleUtility(tree ast.Statement, w ResultWriter) error {
	tag, err := s.runUtility(s.ctx, tree, w)
	if err != nil {
		return err
	}
	if !s.tx.phase.explicit() {
		if err := s.commitTxn(s.ctx); err != nil {
			return err
		}
	}
	return s.completeUtility(tag, w)
}

// completeUtility sends the tag, save where the statement has sent its own (EXECUTE of a query).
func (s *Session) completeUtility(tag Tag, w ResultWriter) error {
	if tag.Verb == "" {
		return nil
	}
	return w.Complete(tag)
}

// explainCancel puts the reason in the place of a bare context error.
func (s *Session) explainCancel(err error) error {
	if s.ctx.cause() == nil {
		return err
	}
	switch ToPGError(err).Code {
	case pgerror.QueryCanceled,
		pgerror.ConnectionFailure,                              // a store's silence may be the cancel's doing
		pgerror.SerializationFailure, pgerror.DeadlockDetected: // had there been time, it would have been tried again
		return s.ctx.cause()
	}
	return err
}

// validText refuses what is no UTF-8, and the character zero, as PostgreSQL does.
func validText(text string) error {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return nil
	}
	at := 0
	for at < len(text) && text[at] != 0 {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x%02x", text[at])
}
