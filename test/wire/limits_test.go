package wire_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// fatal reads up to the end of the connection and returns the last error.
func (r *raw) fatal() string {
	r.t.Helper()
	last := ""
	for {
		m, err := r.f.Receive()
		if err != nil {
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				r.t.Fatal("the server does not end the connection")
			}
			return last
		}
		if e, ok := m.(*pgproto3.ErrorResponse); ok {
			last = e.Severity + " " + e.Code + " " + e.Message
		}
	}
}

// Goal: a session whose transaction lasts longer than transaction_timeout ends, idle or not, in a block or not.
func TestTransactionTimeout(t *testing.T) {
	const want = "FATAL 25P04 terminating connection due to transaction timeout"
	for name, text := range map[string]string{
		"idle in a block":      "set transaction_timeout = '500ms'; begin",
		"idle, set within":     "begin; set transaction_timeout = '500ms'",
		"idle after an error":  "set transaction_timeout = '500ms'; begin; select 1/0",
		"a statement":          "set transaction_timeout = '500ms'; select pg_sleep(1000)",
		"a statement, in time": "set transaction_timeout = '500ms'; set statement_timeout = '100s'; begin; select pg_sleep(1000)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			for _, s := range strings.Split(text, "; ") {
				r.send(&pgproto3.Query{String: s})
			}
			if got := r.fatal(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Goal: with client_connection_check_interval, the statement of a client that has gone is canceled.
func TestConnectionCheck(t *testing.T) {
	r := dialRaw(t, map[string]string{"client_connection_check_interval": "20ms", "application_name": "leaves"})
	r.ready()
	watcher := connect(t, "")
	ctx := testContext(t)
	sessions := func(where string) (n int) {
		if err := watcher.QueryRow(ctx, "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and client_port = $1 and "+where,
			r.conn.LocalAddr().(*net.TCPAddr).Port).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	r.send(&pgproto3.Query{String: "select pg_sleep(1000)"})
	for sessions("state = 'active'") == 0 {
		time.Sleep(time.Millisecond)
	}
	r.conn.Close()
	for sessions("true") > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Goal: settings of limits are shown as PostgreSQL shows them, and refused as there.
func TestLimitSettings(t *testing.T) {
	conn := connect(t, "")
	ctx := testContext(t)
	for _, c := range [][3]string{
		{"transaction_timeout", "90000", "90s"},
		{"client_connection_check_interval", "2s", "2s"},
		{"tcp_keepalives_idle", "90", "90s"},
		{"tcp_keepalives_interval", "1min", "1min"},
		{"tcp_keepalives_count", "5", "5"},
		{"idle_session_timeout", "3600000", "1h"},
	} {
		if _, err := conn.Exec(ctx, "set "+c[0]+" = '"+c[1]+"'"); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := conn.QueryRow(ctx, "show "+c[0]).Scan(&got); err != nil || got != c[2] {
			t.Errorf("%s = %s is shown as %q, %v", c[0], c[1], got, err)
		}
	}
	for _, s := range []string{"set tcp_keepalives_idle = -1", "set tcp_keepalives_count = 'x'", "set transaction_timeout = '1x'"} {
		if _, err := conn.Exec(ctx, s); err == nil || failure(err)[:5] != "22023" {
			t.Errorf("%s: %v", s, err)
		}
	}
}
