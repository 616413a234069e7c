package wire_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/node"
)

// configured is a server whose flags give nothing that ALTER SYSTEM can.
type configured struct {
	t    *testing.T
	dir  string
	node *node.Node
	log  logBuffer
}

func startConfigured(t *testing.T) *configured {
	s := &configured{t: t, dir: t.TempDir()}
	if err := s.start(func(*node.Options) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.node.Close(context.Background()) })
	return s
}

func (s *configured) start(change func(*node.Options)) (err error) {
	opts := options(filepath.Join(s.dir, "data"))
	opts.Access, opts.ReservedConnections, opts.Logger = auth.Options{}, -1, textLogger(&s.log)
	opts.SocketDir = s.dir
	change(&opts)
	s.node, err = node.Start(context.Background(), opts)
	return err
}

func (s *configured) restart(change func(*node.Options)) error {
	s.node.Close(context.Background())
	return s.start(change)
}

func (s *configured) connect(params string) (*pgx.Conn, error) {
	host, port, _ := strings.Cut(s.node.Addr().String(), ":")
	conn, err := pgx.Connect(testContext(s.t), "host="+host+" port="+port+" dbname=percodb user=postgres "+params)
	if err == nil {
		s.t.Cleanup(func() { conn.Close(context.Background()) })
	}
	return conn, err
}

func (s *configured) admin() *pgx.Conn {
	s.t.Helper()
	conn, err := s.connect("")
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func (s *configured) value(conn *pgx.Conn, query string) (value string) {
	s.t.Helper()
	if err := conn.QueryRow(testContext(s.t), query).Scan(&value); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return value
}

// pgError returns the error that the server has sent, empty if it has sent none.
func pgError(err error) *pgconn.PgError {
	pg := &pgconn.PgError{}
	errors.As(err, &pg)
	return pg
}

// Goal: settings that ALTER SYSTEM stores are in force for new and existing sessions from the next reload on, those of the start from the
// next start on, and flags come before them.
func TestAlterSystem(t *testing.T) {
	s := startConfigured(t)
	conn := s.admin()
	execAll(t, conn, "set lock_timeout = '7s'", "alter system set idle_session_timeout = '1h'", "alter system set lock_timeout = '9s'",
		"alter system set max_connections = 50", "alter system set authentication_timeout = '20s'")
	shown := "select concat_ws(' ', current_setting('idle_session_timeout'), current_setting('lock_timeout'), current_setting('max_connections'), current_setting('authentication_timeout'))"
	if got := s.value(conn, shown); got != "0 7s 1000 1min" {
		t.Errorf("before the reload: %s", got)
	}
	execAll(t, conn, "select pg_reload_conf()")
	if got := s.value(conn, shown); got != "1h 7s 1000 20s" {
		t.Errorf("after the reload: %s", got)
	}
	execAll(t, conn, "reset lock_timeout")
	if got := s.value(s.admin(), shown); got != "1h 9s 1000 20s" || s.value(conn, shown) != got {
		t.Errorf("after the reload, in another session: %s", got)
	}
	pending := "select concat_ws(' ', source, pending_restart) from pg_settings where name = 'max_connections'"
	if got := s.value(conn, pending); got != "default t" {
		t.Errorf("max_connections: %s", got)
	}
	if _, err := conn.Exec(testContext(t), "alter system set superuser_reserved_connections = 50"); !strings.Contains(failure(err), "22023") {
		t.Errorf("all connections are reserved: %v", err)
	}
	if err := s.restart(func(*node.Options) {}); err != nil {
		t.Fatal(err)
	}
	conn = s.admin()
	if got := s.value(conn, shown); got != "1h 9s 50 20s" {
		t.Errorf("after the restart: %s", got)
	}
	if got := s.value(conn, pending); got != "configuration file f" {
		t.Errorf("max_connections: %s", got)
	}
	if err := s.restart(func(o *node.Options) { o.MaxConnections, o.Access.Timeout = 60, 2*time.Minute }); err != nil {
		t.Fatal(err)
	}
	conn = s.admin()
	if got := s.value(conn, shown); got != "1h 9s 60 2min" {
		t.Errorf("with flags: %s", got)
	}
	if _, err := conn.Exec(testContext(t), "alter system set max_connections = 70"); !strings.Contains(failure(err), "55P02") {
		t.Errorf("a flag gives it: %v", err)
	}
	execAll(t, conn, "alter system reset all", "select pg_reload_conf()")
	if got := s.value(conn, shown); got != "0 0 60 2min" {
		t.Errorf("after RESET ALL: %s", got)
	}
}

// Goal: rules that ALTER SYSTEM stores decide who is let in after the reload. Rules that are not valid, or by which no superuser could log in,
// are neither stored nor loaded.
func TestAlterSystemRules(t *testing.T) {
	s := startConfigured(t)
	conn := s.admin()
	for rules, why := range map[string]string{
		"host all all all reject":                              "no superuser could log in",
		"host all x all trust":                                 "no superuser could log in",
		"host all all all scram-sha-256":                       "no superuser could log in",
		"host all all 10.0.0.0/8 trust":                        "no superuser could log in",
		"host all all 127.0.0.1/32 reject\nhost all all all x": `line 2: invalid authentication method "x"`,
		"hostssl all all all trust":                            "line 1: hostssl record cannot match because TLS is disabled",
		"# nothing":                                            "no entries",
		strings.Repeat("#", auth.MaxStoredRules+1):             "longer than 64 kB",
	} {
		_, err := conn.Exec(testContext(t), "alter system set percodb.hba = '"+rules+"'")
		if pg := pgError(err); pg.Code != "22023" || !strings.Contains(pg.Detail, why) {
			t.Errorf("%.80s: %v", rules, err)
		}
	}
	execAll(t, conn, "create role app login", "create role other superuser login password 'secret'",
		"alter system set percodb.hba = E'local all postgres trust\nhost all app all reject\nhost all all all scram-sha-256'")
	if _, err := s.connect("user=app"); err != nil {
		t.Errorf("before the reload: %v", err)
	}
	if got := s.value(conn, "select string_agg(auth_method, ' ' order by line_number) from pg_hba_file_rules"); got != "trust reject scram-sha-256" {
		t.Errorf("pg_hba_file_rules: %s", got)
	}
	execAll(t, conn, "select pg_reload_conf()")
	refused := func(when string) {
		t.Helper()
		if _, err := s.connect("user=app"); !strings.Contains(failure(err), "pg_hba.conf rejects connection") {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := s.connect("user=other password=secret"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("after the reload")
	if err := s.restart(func(*node.Options) {}); err != nil {
		t.Fatal(err)
	}
	refused("after the restart")
	conn, err := s.connect("user=other password=secret")
	if err != nil {
		t.Fatal(err)
	}

	// Rules that have locked every superuser out since they were stored are not loaded.
	execAll(t, conn, "alter system set percodb.hba = 'host all other all scram-sha-256'", "alter role other password null", "select pg_reload_conf()")
	if !s.log.contains("no superuser could log in by these rules") {
		t.Error("the log does not say why the rules are not loaded")
	}
	if got := s.value(conn, "select error from pg_file_settings where name = 'percodb.hba'"); !strings.Contains(got, "no superuser") {
		t.Errorf("pg_file_settings: %s", got)
	}
	execAll(t, conn, "alter role other password 'secret'")
	refused("with rules that were not loaded")
	execAll(t, conn, "alter system reset percodb.hba", "select pg_reload_conf()")
	if _, err := s.connect("user=app"); err != nil {
		t.Errorf("with the default rules: %v", err)
	}
	if err := s.restart(func(o *node.Options) { o.Access.Rules = auth.TrustEverything }); err != nil {
		t.Fatal(err)
	}
	_, err = s.admin().Exec(testContext(t), "alter system set percodb.hba = 'host all all all trust'")
	if pg := pgError(err); pg.Code != "55P02" || !strings.Contains(pg.Hint, "--insecure") {
		t.Errorf("with a flag: %v", err)
	}
}
