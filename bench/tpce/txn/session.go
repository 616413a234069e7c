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

// Session is one connection to a server, made anew when it is lost. It is not for concurrent use.
type Session struct {
	config *pgx.ConnConfig
	set    *Settings
	gen    *gen.Generator
	conn   *pgx.Conn // nil when it was lost
	trips  int       // of the attempt under way
	// committing: the attempt under way has sent its COMMIT, so that it may have committed even if it fails.
	committing bool
	frame      frame // emptied by its send
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
	config.ConnectTimeout = connectTimeout
	s := &Session{config: config, set: set, gen: g}
	s.frame.s = s
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	return s, nil
}

// connectTimeout is how long one attempt to connect may take: a process that was stopped accepts
// connections and does not answer.
const connectTimeout = 10 * time.Second

// Close ends the connection.
func (s *Session) Close(ctx context.Context) {
	if s.conn != nil {
		_ = s.conn.Close(ctx) // what was to be kept is committed
		s.conn = nil
	}
}

// work is a transaction as its methods describe it.
type work struct {
	kind mix.Kind
	// try runs one attempt, from its BEGIN to its COMMIT, and finds everything it needs anew.
	try func(ctx context.Context) error
	// look finds out whether the last attempt, whose COMMIT was not answered, has committed. It is asked on a
	// new connection. Nil if a repetition finds out by itself or does not matter.
	look func(ctx context.Context) (bool, error)
	// once: without an answer the transaction is not repeated, and its outcome is Unknown.
	once bool
	// races: that a key is there already may be the doing of another transaction at the same time. A
	// repetition finds the row.
	races bool
}

// What try returns when the transaction ended in another way than by its COMMIT.
var (
	errRolledBack  = errors.New("rolled back as it was drawn to be")
	errAlreadyDone = errors.New("an earlier attempt has committed")
)

// perform runs a transaction until it is settled.
func (s *Session) perform(ctx context.Context, w work) mix.Sample {
	sample := mix.Sample{Kind: w.kind, Started: time.Now()}
	var err error
	sample.Outcome, err = s.settle(ctx, w, &sample)
	sample.Finished, sample.RoundTrips = time.Now(), s.trips
	if err != nil {
		sample.Err = fmt.Errorf("%s: %w", w.kind, err)
	}
	return sample
}

// settle makes attempts until one of them, or a look at the database, says what became of the transaction.
// The error says why it Failed or is Unknown.
func (s *Session) settle(ctx context.Context, w work, sample *mix.Sample) (mix.Outcome, error) {
	var pause backoff
	var until time.Time // when a server that is gone is given up
	doubt := false      // an attempt may have committed
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
		if trouble == gone && until.IsZero() {
			until = time.Now().Add(s.set.outage())
		}
		switch {
		case lost && (w.once || ctx.Err() != nil):
			return mix.Unknown, err
		case ctx.Err() != nil:
			return mix.Failed, err
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
		if len(sample.Aborts) >= s.set.maxRetries() && (lost || trouble != gone) || trouble == gone && time.Now().After(until) {
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

// connect makes a connection if there is none, for as long as an outage may last.
func (s *Session) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	var pause backoff
	for until := time.Now().Add(s.set.outage()); ; {
		var err error
		if s.conn, err = pgx.ConnectConfig(ctx, s.config); err == nil {
			return nil
		}
		s.conn = nil
		if trouble, _ := classify(err, true); trouble == fault || time.Now().After(until) {
			return err
		}
		if err := pause.wait(ctx); err != nil {
			return err
		}
	}
}

// look finds out, on a new connection, whether the last attempt has committed.
func (s *Session) look(ctx context.Context, w work) (bool, error) {
	var pause backoff
	for until := time.Now().Add(s.set.outage()); ; {
		s.Close(ctx)
		if err := s.connect(ctx); err != nil {
			return false, err
		}
		committed, err := w.look(ctx)
		if err == nil {
			return committed, nil
		}
		if trouble, _ := classify(err, s.conn.IsClosed()); trouble == fault || time.Now().After(until) {
			return false, err
		}
		if err := pause.wait(ctx); err != nil {
			return false, err
		}
	}
}
