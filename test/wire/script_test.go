package wire_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// script runs statements of several sessions, one line each, and checks how each ends.
//
//	a: update t set n = 1 → UPDATE 1
//	b: update t set n = 2 → waits
//	a: commit → COMMIT
//	b → UPDATE 1
//
// Whether a statement waits for a lock of another session is read from the server's views, so that nothing depends on
// time. Rows are (1,x) (2,y), errors their SQLSTATE and message. Lines that begin with "percodb" are not run on
// PostgreSQL.
type script struct {
	t        testing.TB
	ctx      context.Context
	observer *pgx.Conn
	waiting  string // whether the session with process id $1 waits
	postgres bool
	// mode is how statements are sent; the zero value prepares them.
	mode     pgx.QueryExecMode
	sessions map[string]*scripted
}

type scripted struct {
	conn    *pgx.Conn
	pending chan string
}

func newScript(t testing.TB) *script {
	t.Helper()
	s := &script{
		t: t, ctx: testContext(t), observer: connect(t, ""), sessions: map[string]*scripted{}, mode: pgx.QueryExecModeExec,
		waiting: "select cardinality(pg_blocking_pids($1::int)) > 0",
	}
	var version string
	if err := s.observer.QueryRow(s.ctx, "select version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if s.postgres = !strings.Contains(version, "percodb"); s.postgres {
		s.waiting = "select count(*) > 0 from pg_locks where pid = $1::int and not granted"
	}
	return s
}

func (s *script) run(lines string) {
	s.t.Helper()
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			s.line(line)
		}
	}
}

func (s *script) line(line string) {
	s.t.Helper()
	if rest, only := strings.CutPrefix(line, "percodb "); only {
		if s.postgres {
			return
		}
		line = rest
	}
	left, want, _ := strings.Cut(line, " → ")
	name, statement, sends := strings.Cut(left, ": ")
	session := s.sessions[name]
	if session == nil {
		session = &scripted{conn: connect(s.t, "")}
		s.sessions[name] = session
	}
	if sends {
		if session.pending != nil {
			s.t.Fatalf("%s: the statement before still waits", line)
		}
		session.pending = make(chan string, 1)
		go func() { session.pending <- s.execute(session.conn, statement) }()
	}
	if got := s.answer(session, want == "waits"); want != "" && got != want {
		s.t.Fatalf("%s: got %s", line, got)
	}
}

// answer returns how the running statement ends, or "waits".
func (s *script) answer(session *scripted, mayWait bool) string {
	s.t.Helper()
	for {
		select {
		case got := <-session.pending:
			session.pending = nil
			return got
		case <-s.ctx.Done():
			s.t.Fatal("no answer")
		case <-time.After(time.Millisecond):
		}
		var waits bool
		if err := s.observer.QueryRow(s.ctx, s.waiting, session.conn.PgConn().PID()).Scan(&waits); err != nil {
			s.t.Fatal(err)
		}
		if waits && mayWait {
			return "waits"
		}
	}
}

// execute returns a statement's rows, tag or error as one line.
func (s *script) execute(conn *pgx.Conn, statement string) string {
	if strings.HasPrefix(statement, "prepare ") { // pgx would want its arguments.
		results, err := conn.PgConn().Exec(s.ctx, statement).ReadAll()
		if err != nil {
			return describeError(err)
		}
		return results[0].CommandTag.String()
	}
	rows, err := conn.Query(s.ctx, statement, s.mode)
	if err != nil {
		return describeError(err)
	}
	var b strings.Builder
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return describeError(err)
		}
		for i, v := range values {
			b.WriteString([]string{",", " ("}[min(1, 1-min(i, 1))])
			fmt.Fprint(&b, v)
		}
		b.WriteString(")")
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return describeError(err)
	}
	if len(rows.FieldDescriptions()) > 0 {
		return strings.TrimSpace("rows" + b.String())
	}
	return rows.CommandTag().String()
}

func describeError(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return "error " + pg.Code + " " + pg.Message
	}
	return "error " + err.Error()
}

// connection returns a session's connection, which it opens on first use.
func (s *script) connection(name string) *pgx.Conn { return s.sessions[name].conn }
