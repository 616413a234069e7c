package session

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// connectAs makes a session of a role, or returns the error.
func (s *testServer) connectAs(startup map[string]string) (*client, error) {
	s.t.Helper()
	s.pid++
	session, err := New(context.Background(), s.deps, s.pid, Client{}, startup)
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(session.Close)
	c := &client{t: s.t, Session: session}
	c.Buffer = NewBuffer(&c.sent, nil)
	return c, nil
}

// Goal: who may connect, and the errors of those who may not.
func TestLogin(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	c.must("create role nologin superuser", "create role app login", "create user root superuser")
	for user, want := range map[string]string{
		"":              "28000: no PostgreSQL user name specified in startup packet",
		"nobody":        `28000: role "nobody" does not exist`,
		"nologin":       `28000: role "nologin" is not permitted to log in`,
		"pg_monitor":    `28000: role "pg_monitor" is not permitted to log in`,
		"app":           "",
		"root":          "",
		"postgres":      "",
		`POSTGRES`:      `28000: role "POSTGRES" does not exist`,
		`"; drop me --`: `28000: role ""; drop me --" does not exist`,
	} {
		_, err := s.connectAs(map[string]string{"user": user, "database": "percodb"})
		got := ""
		if err != nil {
			e := ToPGError(err)
			got = string(e.Code) + ": " + e.Message
		}
		if got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}

// Goal: SET ROLE and SET SESSION AUTHORIZATION change the current and the session user, follow rollbacks, and are undone by RESET and
// DISCARD ALL.
func TestSetRole(t *testing.T) {
	c := newTestServer(t).connect()
	c.must("create role a superuser", "create role b superuser")
	who := "select current_user, session_user, current_setting('role'), current_setting('is_superuser')"
	expect := func(what, want string) {
		t.Helper()
		_, row, _ := strings.Cut(c.query(who), "row ")
		row, _, _ = strings.Cut(row, ";")
		if row != want {
			t.Errorf("%s: %s, want %s", what, row, want)
		}
	}
	expect("at first", "postgres postgres none on")
	c.must("set role a")
	expect("SET ROLE", "a postgres a on")
	c.must("begin", "set role b")
	expect("in a block", "b postgres b on")
	c.must("rollback")
	expect("after ROLLBACK", "a postgres a on")
	c.must("begin", "set local role b")
	expect("SET LOCAL", "b postgres b on")
	c.must("commit")
	expect("after COMMIT", "a postgres a on")
	c.must("begin", "savepoint x", "set session authorization b")
	expect("SET SESSION AUTHORIZATION", "b b none on")
	c.must("rollback to x")
	expect("after ROLLBACK TO", "a postgres a on")
	c.must("commit", "reset role")
	expect("RESET ROLE", "postgres postgres none on")
	c.must("set session authorization a", "set role b", "reset all")
	expect("RESET ALL", "b a b on")
	c.must("reset session authorization")
	expect("RESET SESSION AUTHORIZATION", "postgres postgres none on")
	c.must("set session authorization a", "set role b", "discard all")
	expect("DISCARD ALL", "postgres postgres none on")
	c.must("begin", "create role new superuser", "set role new")
	expect("a role of the transaction", "new postgres new on")
	c.must("rollback")
	expect("after its rollback", "postgres postgres none on")
	c.must("set role a", "alter role b rename to c", "set role none")
	expect("SET ROLE NONE", "postgres postgres none on")
	c.transcript(`
		set role nobody → error 22023; I
		set session authorization nobody → error 22023; I
		set role "none" → SET; I
		select set_config('role', 'a', true) → columns set_config; row a; SELECT 1; I
	`)
	expect("set_config for one statement", "postgres postgres none on")
}

// Goal: what a session may do follows its role: one that is no superuser any more has its grants left, also for reads of a single row,
// and with a plan that was permitted before.
func TestDemotedRole(t *testing.T) {
	s := newTestServer(t)
	c, other := s.connect(), s.connect()
	other.must("create role a superuser", "create table t(id int primary key)", "insert into t values (1)")
	c.must("set role a", "select id from t where id = 1")
	other.must("alter role a nosuperuser")
	for _, text := range []string{"select id from t where id = 1", "insert into t values (2)", "create table u(id int)",
		"alter role a superuser"} {
		if got := c.query(text); got != "error 42501; I" {
			t.Errorf("%s: %s", text, got)
		}
	}
	c.must("select 1", "reset role", "select id from t where id = 1")
}

// Goal: the settings of roles and databases are in force when the role connects, and are what RESET returns to; what the client asks for
// takes precedence, and a setting that has become invalid does not refuse the connection.
func TestRoleSettings(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	c.must("create user u superuser", "create role r superuser",
		"alter role all set statement_timeout = '1min'", "alter role all in database percodb set statement_timeout = '2min'",
		"alter role u set statement_timeout = '3min'", "alter role u in database percodb set lock_timeout to 7",
		"alter role u set search_path = a, \"B c\"", "alter role u set my.own = 'x'", "alter role u set application_name = 'u''s'",
		"alter role u set role = r")
	u, err := s.connectAs(map[string]string{"user": "u", "database": "percodb", "application_name": "mine"})
	if err != nil {
		t.Fatal(err)
	}
	u.transcript(`
		show statement_timeout → columns statement_timeout; row 3min; SHOW; I
		show lock_timeout → columns lock_timeout; row 7ms; SHOW; I
		show search_path → columns search_path; row a, "B c"; SHOW; I
		show my.own → columns my.own; row x; SHOW; I
		show application_name → columns application_name; row mine; SHOW; I
		select current_user, session_user → columns current_user session_user; row r u; SELECT 1; I
		set statement_timeout = 5; reset statement_timeout; show statement_timeout → SET; RESET; columns statement_timeout; row 3min; SHOW; I
	`)
	c.must("alter role u reset all", "alter role u in database percodb reset lock_timeout")
	if u, err = s.connectAs(map[string]string{"user": "u", "database": "percodb"}); err != nil {
		t.Fatal(err)
	}
	u.transcript(`
		show statement_timeout → columns statement_timeout; row 2min; SHOW; I
		show lock_timeout → columns lock_timeout; row 0; SHOW; I
	`)
	c.must("alter role u set role = r", "drop role r")
	if _, err = s.connectAs(map[string]string{"user": "u", "database": "percodb"}); err != nil {
		t.Fatal(err)
	}
	c.transcript(`
		alter role u set nosuch = 1 → error 42704; I
		alter role u reset nosuch → error 42704; I
		alter role u set statement_timeout = 'x' → error 22023; I
		alter role u set server_version = '1' → error 55P02; I
		alter role u in database other set work_mem = '1MB' → error 3D000; I
		alter role u set role = 'nobody' → error 22023; I
		alter role pg_monitor set work_mem = '1MB' → error 42939; I
		alter role nobody set work_mem = '1MB' → error 42704; I
	`)
}

// Goal: a password is in no message, log, view or plan. Method: a planted one, in statements that succeed and that fail.
func TestPasswordsAreSecret(t *testing.T) {
	const secret = "pl4nted-s3cret"
	s := newTestServer(t)
	var log strings.Builder
	s.deps.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s.deps.Sessions = func(func(*Session)) {}
	c := s.connect()
	var seen []string
	for _, text := range []string{
		"create role a login superuser password '" + secret + "'", "alter role a password '" + secret + "'",
		"alter role a encrypted password '" + secret + "' valid until 'x'", "create role a password '" + secret + "'",
		"alter role nobody password '" + secret + "'", "begin; alter role a password '" + secret + "'; select 1/0; commit", "rollback",
		"explain alter role a password '" + secret + "'", "prepare p as alter role a password '" + secret + "'",
	} {
		seen = append(seen, c.query(text))
		if err := c.Query(text, &c.recordingWriter); err != nil {
			e := ToPGError(err)
			if !strings.HasPrefix(text, "explain") && !strings.HasPrefix(text, "prepare") { // Syntax errors quote one word of the text.
				seen = append(seen, e.Message+e.Detail+e.Hint+e.Where)
			}
			c.query("rollback")
		}
	}
	for _, view := range []string{"pg_authid", "pg_roles", "pg_shadow", "pg_user", "pg_stat_activity", "percodb.transactions", "pg_db_role_setting"} {
		seen = append(seen, c.query("select * from "+view))
	}
	seen = append(seen, log.String())
	for _, text := range seen {
		if strings.Contains(text, secret) {
			t.Errorf("the password is shown: %s", text)
		}
	}
	if got := c.query("select rolpassword like 'SCRAM-SHA-256$4096:%' from pg_authid where rolname = 'a'"); !strings.Contains(got, "row t") {
		t.Error(got)
	}
	for _, view := range []string{"pg_roles", "pg_user"} {
		if got := c.query("select * from " + view); strings.Contains(got, "SCRAM") {
			t.Errorf("%s shows verifiers", view)
		}
	}
}

// Goal: what pg_dumpall --roles-only of PostgreSQL 15 writes can be executed; as on PostgreSQL, only the superuser postgres exists already.
func TestDumpOfRoles(t *testing.T) {
	dump, err := os.ReadFile("testdata/roles.sql")
	if err != nil {
		t.Fatal(err)
	}
	c := newTestServer(t).connect()
	for text := range strings.Lines(string(dump)) {
		got, want := c.query(text), ""
		if strings.HasPrefix(text, "CREATE ROLE postgres") {
			want = "error 42710; I"
		}
		if want != "" && got != want || want == "" && strings.Contains(got, "error") {
			t.Errorf("%s: %s", text, got)
		}
	}
	c.transcript(`
		select rolconfig from pg_roles where rolname = 'a' → columns rolconfig; row {"search_path=x, \"Y z\"",work_mem=1MB}; SELECT 1; I
		select rolconfig from pg_roles where rolname = 'b' → columns rolconfig; row {"DateStyle=ISO, DMY"}; SELECT 1; I
	`)
}
