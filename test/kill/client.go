package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/test/history"
)

// statementTimeout bounds a statement. It is longer than any fault; the outcome of a statement that exceeds it is
// unknown.
const statementTimeout = 30 * time.Second

// The isolation levels as SQL calls them.
const (
	readCommitted  = "read committed"
	repeatableRead = "repeatable read"
	serializable   = "serializable"
)

// world is what the clients of a round share.
type world struct {
	addrs     []string
	dump      func(ctx context.Context) string // writes the goroutines of all processes to files, which it names
	clock     atomic.Int64                     // orders beginnings and ends
	committed atomic.Int64                     // acknowledged transactions
	timeouts  atomic.Int64

	mu         sync.Mutex
	unexpected map[string]string // statement and SQLSTATE → the error
	slow       string            // what ran while a transaction took long
}

func (w *world) now() int64 { return w.clock.Add(1) }

// client is a session: one connection at a time, to any SQL process. Not safe for concurrent use.
type client struct {
	id   int
	w    *world
	rand *rand.Rand
	conn *pgx.Conn
	// expects reports whether an error is one that the client's workload may receive beside those that all may; nil: none is.
	expects func(state string) bool
}

// querier runs statements of a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// connect connects, if necessary repeatedly.
func (c *client) connect(ctx context.Context) error {
	for c.conn == nil {
		config, err := pgx.ParseConfig(urlOf(c.w.addrs[c.rand.IntN(len(c.w.addrs))]))
		if err != nil {
			return err
		}
		if c.rand.IntN(2) == 0 {
			config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		}
		if c.conn, err = pgx.ConnectConfig(ctx, config); err == nil {
			return nil
		}
		c.conn = nil
		if !sleep(ctx, time.Duration(5+c.rand.IntN(45))*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

func (c *client) close() {
	if c.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.conn.Close(ctx) // The server may be gone.
		c.conn = nil
	}
}

// transaction runs body in a block and returns its outcome (I2), and the error that aborted it. An unknown outcome has
// an error, too.
func (c *client) transaction(ctx context.Context, level string, body func(ctx context.Context, q querier) error) (history.Outcome, error) {
	if err := c.connect(ctx); err != nil {
		return history.Aborted, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	defer c.watch(level).Stop()
	if _, err := c.conn.Exec(ctx, "begin isolation level "+level); err != nil {
		c.lostBy(err)
		return history.Aborted, err
	}
	if err := body(ctx, c.conn); err != nil {
		c.note("statement", err)
		if !c.lostBy(err) {
			if _, err := c.conn.Exec(ctx, "rollback"); err != nil {
				c.lostBy(err)
			}
		}
		return history.Aborted, err
	}
	tag, err := c.conn.Exec(ctx, "commit")
	switch {
	case err == nil && tag.String() == "COMMIT":
		c.w.committed.Add(1)
		return history.Committed, nil
	case err == nil:
		return history.Aborted, fmt.Errorf("COMMIT was answered with %s", tag)
	}
	c.note("commit", err)
	return c.outcomeOf(err), err
}

// single runs one statement outside of blocks.
func (c *client) single(ctx context.Context, statement func(ctx context.Context, q querier) error) (history.Outcome, error) {
	if err := c.connect(ctx); err != nil {
		return history.Aborted, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	defer c.watch("autocommit").Stop()
	err := statement(ctx, c.conn)
	if err == nil {
		c.w.committed.Add(1)
		return history.Committed, nil
	}
	c.note("autocommit", err)
	return c.outcomeOf(err), err
}

// outcomeOf returns the outcome of a transaction whose COMMIT failed.
func (c *client) outcomeOf(err error) history.Outcome {
	lost := c.lostBy(err)
	if lost || state(err) == "" || isVague(state(err)) {
		return history.Unknown
	}
	return history.Aborted
}

// isVague reports whether an error leaves open whether the commit happened: connection exceptions, a shutdown, an
// unknown completion, a canceled statement, an internal error.
func isVague(state string) bool {
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57") || state == "40003" || strings.HasPrefix(state, "XX")
}

// watch records what runs if the transaction that begins now takes more than half of statementTimeout.
func (c *client) watch(kind string) *time.Timer {
	pid, port, begun := c.conn.PgConn().PID(), c.conn.Config().Port, time.Now()
	return time.AfterFunc(statementTimeout/2, func() {
		c.w.lookAround(fmt.Sprintf("session %d at port %d (%s, client %d) since %s", pid, port, kind, c.id, begun.Format(time.StampMilli)))
	})
}

// lookAround adds the state of the servers to the report of a hang.
func (w *world) lookAround(who string) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout/2)
	defer cancel()
	story := fmt.Sprintf("%s: slow: %s\n", time.Now().Format(time.StampMilli), who)
	story += w.dump(ctx)
	for _, addr := range w.addrs {
		for _, q := range []string{
			"select pid, state, isolation, start_ts, read_ts, age::text, locks, writes from percodb.transactions",
			"select key, kind, holder, pid, is_primary, age::text, ttl::text, waiters, shard from percodb.locks",
		} {
			story += addr + ": " + q + "\n" + rowsOf(ctx, addr, q)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow += story
}

// rowsOf returns the result of a query as text, or the error.
func rowsOf(ctx context.Context, addr, query string) string {
	conn, err := pgx.Connect(ctx, urlOf(addr))
	if err != nil {
		return err.Error() + "\n"
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err.Error() + "\n"
	}
	defer rows.Close()
	text := ""
	for rows.Next() {
		for _, value := range rows.RawValues() {
			text += "  " + string(value)
		}
		text += "\n"
	}
	if rows.Err() != nil {
		text += rows.Err().Error() + "\n"
	}
	return text
}

// lostBy drops the connection if err has made it unusable.
func (c *client) lostBy(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		c.w.timeouts.Add(1)
	}
	if !c.conn.IsClosed() && state(err) != "" && !isVague(state(err)) {
		return false
	}
	c.close()
	return true
}

// state returns the SQLSTATE of a server's error, "" for others.
func state(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// isExpected reports whether a client may receive the error while processes are killed (I3).
func isExpected(state string) bool {
	switch state {
	case "", "40001", "40P01", "40003", "55P03", "25P02", "23503", "23505", "53300", "72000":
		return true
	}
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P")
}

// note records errors that no client should receive.
func (c *client) note(where string, err error) {
	code := state(err)
	if isExpected(code) || c.expects != nil && c.expects(code) {
		return
	}
	var pgErr *pgconn.PgError
	errors.As(err, &pgErr)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.unexpected[where+" "+code] = fmt.Sprintf("%s: %s (%s) detail %q hint %q", where, pgErr.Message, code, pgErr.Detail, pgErr.Hint)
}

// final reads the final contents, if necessary repeatedly.
func (c *client) final(ctx context.Context, read func(ctx context.Context, q querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	for {
		outcome, err := c.transaction(ctx, repeatableRead, read)
		if outcome == history.Committed {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("cannot be read within %v after the last fault: %w", recoverWithin, err)
		}
		if code := state(err); code != "" && !isExpected(code) {
			return err
		}
	}
}
