package session

import (
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
	if err := s.query(text, w); err != nil {
		return s.reportError(err)
	}
	return nil
}

func (s *Session) query(text string, w ResultWriter) error {
	if err := validText(text); err != nil {
		return err
	}
	in := s.text.reset(text, s.settings)
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
	mark := s.meter.Drawn()
	for _, st := range statements {
		if _, err := sql.Parse(st, s.meter); err != nil {
			return err
		}
		s.meter.Release(mark)
	}
	s.text.sendNotices(w)
	for i, st := range statements {
		// The last statement of an implicit transaction commits it.
		s.tx.phase.on(share)
		if i > 0 {
			s.interrupts.next(s.settings.StatementTimeout)
		}
		if err := s.runText(st, w); err != nil {
			return err
		}
		s.meter.Release(mark)
		if i == len(statements)-1 {
			break
		}
	}
	if s.tx.phase.explicit() {
		return nil
	}
	return s.tx.commit(s.env.Ctx)
}

// runText runs a statement of a simple query. Outside a block, a statement that is the whole text is a transaction of its
// own.
func (s *Session) runText(st *sql.Statement, w ResultWriter) error {
	r := &s.simple
	*r = run{} // A literal with values would be made elsewhere and copied: most of it is zero.
	r.policy, r.text, r.announce, r.completes, r.latest = alone, st, true, true, true
	if s.tx.phase.shared() {
		r.policy, r.latest = shared, false
	}
	return s.runner.execute(s.env.Ctx, r, w)
}

// noParams refuses parameters in a simple query, which has no values for them, unless planning has failed because of a relation, which is looked up
// before. Those of a statement to be prepared are its own.
func noParams(st *sql.Statement, err error) error {
	if st.Params == 0 || !st.Planned {
		return err
	}
	if pg, ok := err.(*pgerror.Error); err == nil || ok && pg.Code != pgerror.UndefinedTable {
		return pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", st.Params)
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
