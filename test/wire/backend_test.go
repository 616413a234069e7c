package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/node"
)

// failure returns the SQLSTATE and message of an error, "" for none.
func failure(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code + " " + pgErr.Message
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestCancelBackend(t *testing.T) {
	// Goal: pg_cancel_backend cancels the running statement of another session and no later one.
	victim, other := connect(t, ""), connect(t, "")
	ctx := testContext(t)
	slept := make(chan error, 1)
	go func() {
		_, err := victim.Exec(ctx, "select pg_sleep(20)")
		slept <- err
	}()
	waitActive(t, other, victim.PgConn().PID())
	var ok bool
	if err := other.QueryRow(ctx, "select pg_cancel_backend($1)", victim.PgConn().PID()).Scan(&ok); err != nil || !ok {
		t.Fatalf("cancel: %v, %v", ok, err)
	}
	if got := failure(<-slept); got != "57014 canceling statement due to user request" {
		t.Errorf("the statement ended with %q", got)
	}
	if _, err := victim.Exec(ctx, "select 1"); err != nil {
		t.Errorf("the next statement: %v", err)
	}
	if _, err := other.Exec(ctx, "select pg_cancel_backend(pg_backend_pid())"); failure(err) != "57014 canceling statement due to user request" {
		t.Errorf("a session that cancels itself: %q", failure(err))
	}
}

func TestTerminateBackend(t *testing.T) {
	// Goal: pg_terminate_backend ends a session in any state: its client receives FATAL 57P01, its transaction is
	// rolled back, and with a timeout the caller learns that it has ended.
	other := connect(t, "")
	ctx := testContext(t)
	execAll(t, other, "drop table if exists terminated", "create table terminated (id int primary key)")
	terminate := func(pid uint32) {
		t.Helper()
		var ok bool
		if err := other.QueryRow(ctx, "select pg_terminate_backend($1, 10000)", pid).Scan(&ok); err != nil || !ok {
			t.Fatalf("terminate: %v, %v", ok, err)
		}
	}
	const bye = "fatal 57P01 terminating connection due to administrator command\n"

	idle := open(t)
	pid := idle.pid()
	idle.query("begin; insert into terminated values (1)")
	terminate(pid)
	if got := idle.end(); got != bye {
		t.Errorf("idle in a block: %q", got)
	}

	busy := open(t)
	pid = busy.pid()
	busy.send(&pgproto3.Query{String: "begin; insert into terminated values (2); select pg_sleep(20)"})
	waitActive(t, other, pid)
	terminate(pid)
	if got := busy.end(); !strings.HasSuffix(got, bye) || strings.Contains(got, "error") {
		t.Errorf("in a statement: %q", got)
	}

	extended := open(t)
	pid = extended.pid()
	extended.send(parse("", "select pg_sleep(20)"), bind("", ""), execute("", 0), syncing)
	waitActive(t, other, pid)
	terminate(pid)
	if got := extended.end(); !strings.HasSuffix(got, bye) || strings.Contains(got, "error") {
		t.Errorf("in the extended protocol: %q", got)
	}

	self := open(t)
	self.send(&pgproto3.Query{String: "select pg_terminate_backend(pg_backend_pid())"})
	if got := self.end(); !strings.HasSuffix(got, bye) || strings.Contains(got, "error") {
		t.Errorf("itself: %q", got)
	}

	var n int
	if err := other.QueryRow(ctx, "select count(*) from terminated").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows are left of transactions that were cut off (%v)", n, err)
	}
}

func TestBackendsThatAreNone(t *testing.T) {
	c := open(t)
	expect(t, "cancel", c.query("select pg_cancel_backend(2000000000)"), `
		columns pg_cancel_backend:16/0
		warning 01000 PID 2000000000 is not a PostgreSQL backend process
		row f
		complete SELECT 1
		ready I
	`)
	expect(t, "terminate", c.query("select pg_terminate_backend(-1), pg_terminate_backend(null)"), `
		columns pg_terminate_backend:16/0 pg_terminate_backend:16/0
		warning 01000 PID -1 is not a PostgreSQL backend process
		row f|
		complete SELECT 1
		ready I
	`)
	got := c.query("select pg_terminate_backend(1, -1)")
	if !strings.Contains(got, `error 22003 "timeout" must not be negative`) {
		t.Errorf("a negative timeout: %q", got)
	}
}

// waitActive waits until a session runs a statement.
func waitActive(t *testing.T, c *pgx.Conn, pid uint32) {
	t.Helper()
	for deadline := time.Now().Add(exchangeTimeout); ; time.Sleep(2 * time.Millisecond) {
		var state string
		if err := c.QueryRow(testContext(t), "select state from pg_stat_activity where pid = $1", pid).Scan(&state); err != nil {
			t.Fatal(err)
		}
		if state == "active" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("session %d is %s", pid, state)
		}
	}
}

// pid returns the session's process id.
func (r *raw) pid() uint32 {
	r.t.Helper()
	var pid uint32
	if _, err := fmt.Sscanf(r.query("select pg_backend_pid()"), "columns pg_backend_pid:23/0\nrow %d", &pid); err != nil {
		r.t.Fatal(err)
	}
	return pid
}

func TestConnectionLimits(t *testing.T) {
	// Goal: max_connections clients are served; clients that send no startup packet
	// are bounded, and block no other client once they have disconnected.
	opts := options(t.TempDir())
	opts.MaxConnections, opts.ReservedConnections = 4, 1
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	ctx := testContext(t)
	dial := func(user string) (*pgx.Conn, error) {
		return pgx.Connect(ctx, fmt.Sprintf("postgres://%s@%s/percodb?sslmode=disable", user, n.Addr()))
	}
	var conns []*pgx.Conn
	for range 3 {
		c, err := dial("postgres")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		conns = append(conns, c)
	}
	operator, err := dial("postgres")
	if err != nil {
		t.Fatalf("the operator: %v", err)
	}
	defer operator.Close(ctx)
	if _, err := dial("postgres"); !strings.Contains(failure(err), "53300 sorry, too many clients already") {
		t.Errorf("beyond all slots: %q", failure(err))
	}
	var most, reserved string
	if err := operator.QueryRow(ctx, "select current_setting('max_connections'), current_setting('superuser_reserved_connections')").Scan(&most, &reserved); err != nil || most != "4" || reserved != "1" {
		t.Errorf("settings: %s, %s, %v", most, reserved, err)
	}
	if _, err := operator.Exec(ctx, "set max_connections = 5"); failure(err) != `55P02 parameter "max_connections" cannot be changed without restarting the server` {
		t.Errorf("SET: %q", failure(err))
	}
	conns[0].Close(ctx)
	operator.Close(ctx)
	untilSucceeds(t, func() error { _, err := dial("postgres"); return err })

	var silent []net.Conn
	for range 64 { // The minimum number that may be starting at once.
		c, err := net.Dial("tcp", n.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	untilSucceeds(t, func() error {
		if _, err := dial("postgres"); strings.Contains(failure(err), "53300 sorry, too many clients already") {
			return nil
		}
		return fmt.Errorf("one more than may start at once: %q", failure(err))
	})
	for _, c := range silent {
		c.Close()
	}
	untilSucceeds(t, func() error { _, err := dial("postgres"); return err })
}

// untilSucceeds repeats f until it succeeds.
func untilSucceeds(t *testing.T, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(exchangeTimeout); ; time.Sleep(5 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
