package wire_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/node"
)

// auditedServer is a server with TLS, rules and an audit log.
type auditedServer struct {
	*secured
	path string
}

func startAudited(t *testing.T, rules string, change ...func(*node.Options)) *auditedServer {
	t.Helper()
	s := &auditedServer{path: filepath.Join(t.TempDir(), "audit.log")}
	s.secured = startSecuredWith(t, rules, func(o *node.Options) {
		o.Audit = s.path
		for _, f := range change {
			f(o)
		}
	})
	return s
}

// events waits until the audit log has an event that the last wanted kind names, and returns what it has.
func (s *auditedServer) events(last func(*audit.Event) bool) []audit.Event {
	s.t.Helper()
	deadline := time.Now().Add(exchangeTimeout)
	for {
		text, err := os.ReadFile(s.path)
		s.must(err)
		var all []audit.Event
		found := false
		for line := range strings.Lines(string(text)) {
			var e audit.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
			all = append(all, e)
			found = found || last(&e)
		}
		if found {
			return all
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the log does not have the event: %s", text)
		}
		time.Sleep(time.Millisecond) // It polls for the event, of another session.
	}
}

// Goal: the audit log has a line for each connection, refusal, change of roles, privileges, the schema and the system, with its outcome, and
// no password. Method: a session that does each of them, successfully or not.
func TestAuditLog(t *testing.T) {
	s := startAudited(t, "hostssl all app all cert\nhost all barred all reject\nhost all all all scram-sha-256\n")
	s.clientNamed("app")
	execAll(t, s.admin, "create role carol login password 'sesame-1'", "create role staff", "grant staff to app")
	conn, err := s.connect(s.tls("app", "app") + " application_name=audited")
	s.must(err)
	var ok bool
	for _, c := range []struct{ sql, state string }{
		{"create table audited_t (a int)", ""},
		{"create table audited_t (a int)", "42P07"},
		{"select * from audited_t", ""},
		{"insert into audited_t values (1)", ""},
		{"alter role carol password 'sesame-2' /* sesame-3 */", ""},
		{"grant select on audited_t to staff", ""},
		{"set role staff", ""},
		{"drop table audited_t", "42501"},
		{"reset role", ""},
		{"set role nobody", "22023"},
		{"select set_config('role', 'nobody', false)", "22023"},
		{"select set_config('role', 'staff', false)", ""},
		{"set session authorization default", ""},
		{"begin", ""}, {"drop table audited_t", ""}, {"rollback", ""},
		{"alter system set percodb.gc_life = '1h'", ""},
		{"select pg_cancel_backend(0)", ""},
		{"select pg_reload_conf()", ""},
	} {
		_, err := conn.Exec(testContext(t), c.sql, pgx.QueryExecModeSimpleProtocol)
		if got := failure(err); (err != nil) != (c.state != "") || !strings.HasPrefix(got, c.state) {
			t.Errorf("%s: %v, want %s", c.sql, err, c.state)
		}
	}
	_, err = conn.Exec(testContext(t), "create index on audited_t (a)") // extended protocol
	s.must(err)
	var pid uint32
	s.must(conn.QueryRow(testContext(t), "select pg_backend_pid()").Scan(&pid))
	s.must(s.admin.QueryRow(testContext(t), "select pg_terminate_backend($1, 60000)", pid).Scan(&ok))
	var all []audit.Event
	for _, user := range []string{"carol", "barred", "nobody"} {
		if _, err := s.connect("sslmode=disable password=sesame-4 user=" + user); err == nil {
			t.Errorf("%s: let in", user)
		}
		// The client is answered before its refusal is logged.
		all = s.events(func(e *audit.Event) bool { return e.Event == audit.Refused && e.User == user })
	}
	var got []string
	for _, e := range all {
		if e.User == "app" || e.Event == audit.Refused || e.Event == audit.Function {
			got = append(got, strings.Join(strings.Fields(strings.Join([]string{
				string(e.Event), e.User, e.Role, e.Method, e.TLS, e.Certificate, e.Application, e.Class, e.Command, e.Text, strings.Join(e.Arguments, " "), e.Result, e.SQLState, e.Reason,
				map[bool]string{true: "…"}[e.Transaction]}, " ")), " "))
		}
	}
	want := strings.Split(`connect app cert TLSv1.3 CN=app audited
statement app ddl CREATE TABLE create table audited_t (a int) 00000
statement app ddl create table audited_t (a int) 42P07
statement app role ALTER ROLE ALTER ROLE carol PASSWORD '********' 00000
statement app role GRANT grant select on audited_t to staff 00000
role app staff
statement app set SET set role staff 00000
statement app staff ddl drop table audited_t 42501
role app app
statement app staff set RESET reset role 00000
statement app set set role nobody 22023
function app set_config role nobody 22023
role app staff
role app app
statement app staff set RESET set session authorization default 00000
statement app ddl DROP TABLE drop table audited_t 00000 …
transaction app ROLLBACK
statement app system ALTER SYSTEM alter system set percodb.gc_life = '1h' 00000
function app pg_cancel_backend 0 false 00000
function app pg_reload_conf true 00000
statement app ddl CREATE INDEX create index on audited_t (a) 00000
disconnect app TLSv1.3 CN=app 57P01
function postgres pg_terminate_backend PID true 00000
login_failed carol 28P01 the password is wrong
login_failed barred 28000
login_failed nobody 28P01 role "nobody" does not exist`, "\n")
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if pidText := strings.Fields(g); strings.HasPrefix(w, "function postgres") && len(pidText) == 6 {
			g = strings.Replace(g, " "+pidText[3]+" ", " PID ", 1)
		}
		if g != w {
			t.Errorf("line %d:\ngot  %s\nwant %s", i, g, w)
		}
	}
	text, err := os.ReadFile(s.path)
	s.must(err)
	if strings.Contains(string(text), "sesame") || s.log.contains("sesame") || strings.Contains(string(text), "SCRAM-SHA-256$") {
		t.Error("a password is logged")
	}
}

// Goal: every client that is not let in is logged with the reason at the default level.
func TestEveryRefusalIsLogged(t *testing.T) {
	s := startAudited(t, "host all tls all scram-sha-256\nhost all all all trust\n", func(o *node.Options) { o.Access.Timeout = time.Second })
	execAll(t, s.admin, "create role nologin", "create role full2 login connection limit 0", "create role out login password 'x' valid until '2001-01-01'",
		"revoke connect on database percodb from public", "create role outside login")
	for _, c := range []struct{ params, reason string }{
		{"user=nologin", `role \"nologin\" is not permitted to log in`},
		{"user=full2", `permission denied for database`},
		{"user=outside", `permission denied for database`},
		{"user=nobody", `role \"nobody\" does not exist`},
		{"user=app dbname=elsewhere", `database \"elsewhere\" does not exist`},
		{"user=app options='-c nothing=1'", `unrecognized configuration parameter \"nothing\"`},
	} {
		if _, err := s.connect("sslmode=disable " + c.params); err == nil {
			t.Errorf("%s: let in", c.params)
		}
		s.logs(c.reason)
	}
	execAll(t, s.admin, "grant connect on database percodb to full2")
	if _, err := s.connect("sslmode=disable user=full2"); err == nil {
		t.Error("the limit of connections was exceeded")
	}
	s.logs(`too many connections for role \"full2\"`)
	for _, c := range []struct {
		sent   []byte
		reason string
	}{
		{nil, "no startup packet has come"},
		{[]byte{0, 0, 0, 8, 4}, "the startup packet is incomplete"},
		{[]byte{0, 0, 0, 1}, "invalid length of startup packet"},
		{[]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f, 'x', 'x', 'x', 'x', 'x'}, "could not accept SSL connection"},
		{append(startupPacket(t, "tls"), framed('Q', "select 1\x00")...), "expected SASL response"},
		{[]byte{0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 2}, "no session has the key of a cancel request for process 1"},
	} {
		conn, err := net.Dial("tcp", s.addr())
		s.must(err)
		_, err = conn.Write(c.sent)
		s.must(err)
		s.logs(c.reason)
		conn.Close()
	}
	// A client that does not trust the server's certificate.
	if _, err := s.connect("user=app sslmode=verify-full"); err == nil {
		t.Error("an unknown authority was trusted")
	}
	s.logs("remote error: tls")
	for _, reason := range []string{"57014", "28000", "53300", "3D000", "42501"} {
		s.events(func(e *audit.Event) bool { return e.Event == audit.Refused && e.SQLState == reason })
	}
}

// logs waits until the server's log has a text.
func (s *secured) logs(text string) {
	s.t.Helper()
	deadline := time.Now().Add(exchangeTimeout)
	for !s.log.contains(text) && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // It polls for what another goroutine logs.
	}
	if !s.log.contains(text) {
		s.t.Errorf("%s is not logged: %s", text, s.log.buf.String())
	}
}

// Goal: a disk of the audit log that is full ends no connection and no statement, and the server's log says that events are missing.
func TestFullAuditDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	dir := t.TempDir()
	var log logBuffer
	opts := options(filepath.Join(dir, "data"))
	opts.Logger, opts.Audit = textLogger(&log), "/dev/full"
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	conn, err := pgx.Connect(testContext(t), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	execAll(t, conn, "create table t (a int)", "drop table t")
	if !log.contains("the audit log cannot be written") || !log.contains("no space left on device") {
		t.Error("the server's log does not say that the audit log is full")
	}
}

// Goal: a client that is gone when it is greeted leaves no session behind.
func TestGoneAtGreeting(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	for range 20 {
		conn, err := net.Dial("tcp", s.addr())
		s.must(err)
		s.must(conn.(*net.TCPConn).SetLinger(0)) // Close resets the connection.
		_, err = conn.Write(append(startupPacket(t, "app"), framed('Q', "select 1\x00")...))
		s.must(err)
		conn.Close()
	}
	deadline := time.Now().Add(exchangeTimeout)
	for n := -1; n != 0; {
		s.must(s.admin.QueryRow(testContext(t), "select count(*) from pg_stat_activity where usename = 'app'").Scan(&n))
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions are left", n)
		}
	}
}
