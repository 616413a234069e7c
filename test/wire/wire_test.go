// Package wire_test tests a complete server in the test's process as clients use it: through pgx, and message by
// message through pgproto3. PostgreSQL 15 is the reference.
package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/node"
)

// exchangeTimeout bounds every exchange, so that a server that does not answer fails a test at once.
const exchangeTimeout = 2 * time.Minute

// address is that of the shared server; each test has its own table names.
var address string

// logged is the shared server's log.
var logged logBuffer

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if at := os.Getenv("PERCODB_WIRE_TEST_ADDRESS"); at != "" {
		address = at // Another server, such as PostgreSQL, to verify the expectations.
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "percodb-wire")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	n, err := node.Start(context.Background(), options(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer n.Close(context.Background())
	address = n.Addr().String()
	return m.Run()
}

func options(dir string) node.Options {
	return node.Options{
		Role: node.RoleAll, Data: dir, Listen: "127.0.0.1:0", Version: "15.8",
		Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

func url(params string) string {
	return "postgres://postgres@" + address + "/percodb?sslmode=disable" + params
}

// connect opens a pgx connection to the shared server. params extend the URL: "&x=y".
func connect(t testing.TB, params string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url(params))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// testContext bounds a test.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	t.Cleanup(cancel)
	return ctx
}

// execAll runs statements that must succeed.
func execAll(t testing.TB, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := conn.Exec(testContext(t), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// raw is a client that sends single messages.
type raw struct {
	t    testing.TB
	conn net.Conn
	f    *pgproto3.Frontend
}

// dialRaw connects and reads the server's answer to the startup packet.
func dialRaw(t testing.TB, params map[string]string) *raw {
	t.Helper()
	r := dialSilent(t)
	all := map[string]string{"user": "postgres", "database": "percodb"}
	for k, v := range params {
		all[k] = v
	}
	r.send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: all})
	return r
}

func dialSilent(t testing.TB) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		t.Fatal(err)
	}
	return &raw{t: t, conn: conn, f: pgproto3.NewFrontend(conn, conn)}
}

// open is dialRaw up to ReadyForQuery.
func open(t testing.TB) *raw {
	t.Helper()
	r := dialRaw(t, nil)
	r.ready()
	return r
}

func (r *raw) send(messages ...pgproto3.FrontendMessage) {
	r.t.Helper()
	for _, m := range messages {
		r.f.Send(m)
	}
	if err := r.f.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// ready returns the answers up to ReadyForQuery, one line each.
func (r *raw) ready() string {
	r.t.Helper()
	var b strings.Builder
	for {
		m, err := r.f.Receive()
		if err != nil {
			r.t.Fatalf("after %q: %v", b.String(), err)
		}
		b.WriteString(describe(m))
		b.WriteByte('\n')
		if _, ok := m.(*pgproto3.ReadyForQuery); ok {
			return b.String()
		}
	}
}

// next returns the next answer.
func (r *raw) next() string {
	r.t.Helper()
	m, err := r.f.Receive()
	if err != nil {
		r.t.Fatal(err)
	}
	return describe(m)
}

// end returns the answers up to the end of the connection.
func (r *raw) end() string {
	r.t.Helper()
	var b strings.Builder
	for {
		m, err := r.f.Receive()
		if err != nil {
			if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
				r.t.Fatalf("the server neither answers nor hangs up; so far %q", b.String())
			}
			return b.String()
		}
		b.WriteString(describe(m))
		b.WriteByte('\n')
	}
}

// query runs one simple query.
func (r *raw) query(text string) string {
	r.t.Helper()
	r.send(&pgproto3.Query{String: text})
	return r.ready()
}

// expect compares a transcript; want is indented as the test is.
func expect(t testing.TB, what, got, want string) {
	t.Helper()
	want = indent.ReplaceAllString(strings.TrimLeft(want, "\n"), "")
	if got != want {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", what, got, want)
	}
}

// indent is that of transcripts in the source.
var indent = regexp.MustCompile(`(?m)^\t+`)

// describe formats a message as one line.
func describe(m pgproto3.BackendMessage) string {
	switch m := m.(type) {
	case *pgproto3.ReadyForQuery:
		return "ready " + string(m.TxStatus)
	case *pgproto3.CommandComplete:
		return "complete " + string(m.CommandTag)
	case *pgproto3.DataRow:
		return "row " + string(bytes.Join(m.Values, []byte("|")))
	case *pgproto3.RowDescription:
		var b strings.Builder
		b.WriteString("columns")
		for _, f := range m.Fields {
			fmt.Fprintf(&b, " %s:%d/%d", f.Name, f.DataTypeOID, f.Format)
		}
		return b.String()
	case *pgproto3.ParameterDescription:
		return fmt.Sprint("params ", m.ParameterOIDs)
	case *pgproto3.ErrorResponse:
		return strings.TrimRight(fmt.Sprintf("%s %s %s", strings.ToLower(m.Severity), m.Code, m.Message), " ")
	case *pgproto3.NoticeResponse:
		return fmt.Sprintf("%s %s %s", strings.ToLower(m.Severity), m.Code, m.Message)
	case *pgproto3.ParameterStatus:
		return fmt.Sprintf("setting %s=%s", m.Name, m.Value)
	case *pgproto3.NotificationResponse:
		return fmt.Sprintf("notification %s %q", m.Channel, m.Payload)
	case *pgproto3.CopyData:
		return fmt.Sprintf("data %q", m.Data)
	case *pgproto3.CopyInResponse:
		return fmt.Sprintf("copyin %d %v", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyOutResponse:
		return fmt.Sprintf("copyout %d %v", m.OverallFormat, m.ColumnFormatCodes)
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."))
}

// isAlive checks that the server still answers.
func isAlive(t testing.TB) {
	t.Helper()
	var one int
	if err := connect(t, "").QueryRow(testContext(t), "select 1").Scan(&one); err != nil || one != 1 {
		t.Fatalf("the server does not go on: %d, %v", one, err)
	}
}

var _ io.Writer = (*logBuffer)(nil)

func describeFields(e pgproto3.ErrorResponse) string {
	return fmt.Sprintf("%s pos=%d %s.%s.%s constraint=%s detail=%q hint=%q",
		e.Code, e.Position, e.SchemaName, e.TableName, e.ColumnName, e.ConstraintName, e.Detail, e.Hint)
}
