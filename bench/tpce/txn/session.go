package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

// Session is one connection to a server, replaced when it is lost. Not safe for concurrent use.
type Session struct {
	config *pgx.ConnConfig
	set    *Settings
	gen    *gen.Generator
	conn   *pgx.Conn // nil when it was lost
	trips  int       // of the current attempt
	// committing: the current attempt has sent its COMMIT, so that it may have committed even if it fails.
	committing bool
	frame      frame // emptied by its send
	// giveUp is when the current transaction stops waiting for an unavailable server; zero while it was available.
	giveUp time.Time
}

// Open connects to a server that holds the database of a generator. Close the session after use.
func Open(ctx context.Context, url string, set *Settings, g *gen.Generator) (*Session, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = ConnectTimeout
	s := &Session{config: config, set: set, gen: g}
	s.frame.s = s
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	return s, nil
}

// ConnectTimeout is how long one attempt to connect may take: a process that was stopped accepts
// connections and does not answer.
const ConnectTimeout = 10 * time.Second

// Close ends the connection.
func (s *Session) Close(ctx context.Context) {
	if s.conn != nil {
		_ = s.conn.Close(ctx) // committed data stays
		s.conn = nil
	}
}

// work is a transaction as its methods describe it.
type work struct {
	kind mix.Kind
	// try runs one attempt, from its BEGIN to its COMMIT, and reads everything that it needs again.
	try func(ctx context.Context) error
	// look determines whether the last attempt, whose COMMIT was not answered, has committed. It runs on a new
	// connection, while that COMMIT may still be running: a repetition must check inside its own transaction that it
	// has not. Nil if only a repetition can determine it, or it does not matter.
	look func(ctx context.Context) (bool, error)
	// once: without an answer the transaction is not repeated, and its outcome is Unknown.
	once bool
	// races: another concurrent transaction may have inserted the key. A repetition finds the row.
	races bool
}

// What try returns if the transaction did not end by its COMMIT.
var (
	errRolledBack  = errors.New("rolled back as it was drawn to be")
	errAlreadyDone = errors.New("an earlier attempt has committed")
)

// ErrOutage: a transaction was given up because its server was unavailable for longer than Settings.Outage.
var ErrOutage = errors.New("the server is away for too long")

// perform runs a transaction until its outcome is known.
func (s *Session) perform(ctx context.Context, w work) mix.Sample {
	sample := mix.Sample{Kind: w.kind, Started: time.Now()}
	s.giveUp = time.Time{}
	var err error
	sample.Outcome, err = s.settle(ctx, w, &sample)
	sample.Finished, sample.RoundTrips = time.Now(), s.trips
	if err != nil {
		sample.Err = fmt.Errorf("%s: %w", w.kind, err)
	}
	return sample
}

// settle makes attempts until one of them, or a look at the database, determines the transaction's outcome. The error
// is the reason why it Failed or is Unknown.
func (s *Session) settle(ctx context.Context, w work, sample *mix.Sample) (mix.Outcome, error) {
	var pause backoff
	doubt := false // an attempt may have committed
	for {
		err := s.attempt(ctx, w)
		switch {
		case err == nil:
			return mix.Committed, nil
		case errors.Is(err, errRolledBack):
			return mix.RolledBack, nil
		case errors.Is(err, errAlreadyDone):
			return mix.AlreadyDone, nil
		}
		trouble, code := classify(err, s.conn == nil)
		if w.races && code == uniqueViolation {
			trouble = conflict
		}
		lost := s.committing && (trouble == gone || trouble == undetermined)
		if trouble == gone && s.outlasted() && !errors.Is(err, ErrOutage) {
			err = errors.Join(ErrOutage, err)
		}
		switch {
		case lost && (w.once || ctx.Err() != nil):
			return mix.Unknown, err
		case ctx.Err() != nil:
			return unsettled(doubt), err
		case w.look != nil && (lost || doubt && code == uniqueViolation):
			doubt = true
			committed, lookErr := s.look(ctx, w)
			if lookErr != nil {
				return mix.Unknown, errors.Join(err, lookErr)
			}
			if committed {
				return mix.AlreadyDone, nil
			}
		case lost:
			doubt = true
		case trouble == fault:
			return unsettled(doubt), err
		}
		if len(sample.Aborts) >= s.set.maxRetries() && (lost || trouble != gone) || errors.Is(err, ErrOutage) {
			return unsettled(doubt), err
		}
		sample.Aborts = append(sample.Aborts, code)
		if err := pause.wait(ctx); err != nil {
			return unsettled(doubt), err
		}
	}
}

// unsettled is the outcome of a transaction that is given up.
func unsettled(doubt bool) mix.Outcome {
	if doubt {
		return mix.Unknown
	}
	return mix.Failed
}

// attempt runs a transaction once, and leaves the connection outside of any transaction.
func (s *Session) attempt(ctx context.Context, w work) error {
	s.trips, s.committing = 0, false
	s.frame.reset()
	if err := s.connect(ctx); err != nil {
		return err
	}
	err := w.try(ctx)
	if err == nil || s.conn == nil {
		return err
	}
	if !s.conn.IsClosed() && s.conn.PgConn().TxStatus() != 'I' {
		if _, undo := s.conn.Exec(ctx, "ROLLBACK"); undo != nil {
			s.Close(ctx)
		}
	}
	if s.conn != nil && s.conn.IsClosed() {
		s.conn = nil
	}
	return err
}

// outlasted reports that the server has been unavailable, in this transaction, for longer than the limit. The first
// call starts the time.
func (s *Session) outlasted() bool {
	if s.giveUp.IsZero() {
		s.giveUp = time.Now().Add(s.set.outage())
	}
	return !time.Now().Before(s.giveUp)
}

// connect opens a connection if there is none, with retries up to the limit of outages.
func (s *Session) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	var pause backoff
	for {
		over := s.outlasted()
		attempt, cancel := context.WithDeadline(ctx, s.giveUp)
		var err error
		s.conn, err = pgx.ConnectConfig(attempt, s.config)
		cancel()
		if err == nil {
			return nil
		}
		s.conn = nil
		if trouble, _ := classify(err, true); trouble == fault {
			return err
		} else if over {
			return errors.Join(ErrOutage, err)
		}
		if err := pause.wait(ctx); err != nil {
			return err
		}
	}
}

// look determines, on a new connection, whether the last attempt has committed.
func (s *Session) look(ctx context.Context, w work) (bool, error) {
	var pause backoff
	for {
		s.Close(ctx)
		if err := s.connect(ctx); err != nil {
			return false, err
		}
		committed, err := w.look(ctx)
		if err == nil {
			return committed, nil
		}
		if trouble, _ := classify(err, s.conn.IsClosed()); trouble == fault {
			return false, err
		} else if s.outlasted() {
			return false, errors.Join(ErrOutage, err)
		}
		if err := pause.wait(ctx); err != nil {
			return false, err
		}
	}
}
