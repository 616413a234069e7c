package session

import (
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/pgerror"
)

// Query runs the statements of a simple query. Those outside a block share one implicit transaction
// that ends with the text, as PostgreSQL has it (55.2.2.1). The error is for the client; the session
// goes on.
func (s *Session) Query(text string, w ResultWriter) error {
	s.beginMessage()
	defer s.endMessage()
	s.statements.remove("")
	s.portals.remove("")
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
		return s.runText(st, w)
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
		return s.runText(statements[0], w)
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
		if err := s.runText(st, w); err != nil {
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

// runText runs a statement of a simple query. Outside a block, a statement that is the whole text is a transaction of its
// own.
func (s *Session) runText(st *sql.Statement, w ResultWriter) error {
	r := &s.texts
	*r = run{policy: alone, text: st, announce: true, completes: true, latest: true}
	if s.inBlock() {
		r.policy, r.latest = shared, false
	}
	return s.execute(s.ctx, r, w)
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
	plan, _, err := s.planStatement(ctx, st, nil, false)
	return plan, err
}

// lockFirst has a statement that asks for locks itself run in a transaction that takes them at once,
// and reports whether that begins anew.
func (s *Session) lockFirst(plan *cachedPlan) bool {
	if plan == nil || plan.Locks == "" || s.tx.pessimistic || s.inBlock() || s.tx.queried {
		return false
	}
	s.forgetUnused()
	s.tx.pessimistic = true
	return true
}

// noParams refuses parameters in a simple query, which has no values for them. Those of a statement to
// be prepared are its own.
func noParams(st *sql.Statement) error {
	if st.Params == 0 || len(st.Key) == 0 {
		return nil
	}
	return pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", st.Params)
}

// explainCancel puts the reason in the place of a bare context error.
func (s *Session) explainCancel(err error) error {
	cause := interruption(s.ctx)
	if cause == nil {
		return err
	}
	switch ToPGError(err).Code {
	case pgerror.QueryCanceled,
		pgerror.ConnectionFailure,                              // a store's silence may be the cancel's doing
		pgerror.SerializationFailure, pgerror.DeadlockDetected: // had there been time, it would have been tried again
		return cause
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
