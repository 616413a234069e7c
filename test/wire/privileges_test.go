package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connectAs connects to the shared server as a role.
func connectAs(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url(""))
	if err != nil {
		t.Fatal(err)
	}
	config.User = role
	conn, err := pgx.ConnectConfig(testContext(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// withRoles makes roles for a test; what they own, and they, are dropped with it.
func withRoles(t *testing.T, root *pgx.Conn, roles ...string) {
	t.Helper()
	for _, role := range roles {
		execAll(t, root, "create role "+role+" login")
		t.Cleanup(func() {
			again := connect(t, "")
			execAll(t, again, "drop owned by "+role+" cascade", "drop role "+role)
		})
	}
}

// Goal: who may end the work of whom: one's own, that of roles whose privileges one has, others' with pg_signal_backend, superusers' never.
func TestSignalsObeyRoles(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "signal_a", "signal_b", "signal_c")
	execAll(t, root, "grant pg_signal_backend to signal_c")
	a, b, c := connectAs(t, "signal_a"), connectAs(t, "signal_b"), connectAs(t, "signal_c")
	const function = "select pg_cancel_backend($1)"
	for _, step := range []struct {
		by, target *pgx.Conn
		want       string
	}{
		{b, a, "42501 must be a member of the role whose query is being canceled or member of pg_signal_backend"},
		{b, root, "42501 must be a superuser to cancel superuser query"},
		{c, root, "42501 must be a superuser to cancel superuser query"},
		{c, a, ""}, {root, a, ""}, {connectAs(t, "signal_a"), a, ""},
	} {
		_, err := step.by.Exec(testContext(t), function, step.target.PgConn().PID())
		if got := failure(err); got != step.want {
			t.Errorf("%s", got)
		}
	}
	_, err := b.Exec(testContext(t), "select pg_terminate_backend($1)", a.PgConn().PID())
	if got := failure(err); got != "42501 must be a member of the role whose process is being terminated or member of pg_signal_backend" {
		t.Errorf("terminate: %s", got)
	}
	_, err = b.Exec(testContext(t), "select pg_reload_conf()")
	if got := failure(err); got != "42501 permission denied for function pg_reload_conf" {
		t.Errorf("reload: %s", got)
	}
}

// Goal: system views show a role its own sessions, transactions and locks, those of others to pg_monitor only.
func TestViewsObeyRoles(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "view_a", "view_b", "view_m")
	execAll(t, root, "drop table if exists view_t", "create table view_t(id int primary key)", "insert into view_t values (1)",
		"grant select, update on view_t to view_a, view_b", "grant pg_monitor to view_m")
	a, b, m := connectAs(t, "view_a"), connectAs(t, "view_b"), connectAs(t, "view_m")
	execAll(t, a, "begin", "select * from view_t for update")
	for _, c := range []struct {
		by   *pgx.Conn
		text string
		want int
	}{
		{b, "select count(*) from percodb.locks where table_name = 'view_t'", 0},
		{m, "select count(*) from percodb.locks where table_name = 'view_t'", 1},
		{b, "select count(*) from percodb.transactions where user_name = 'view_a'", 0},
		{m, "select count(*) from percodb.transactions where user_name = 'view_a'", 1},
		{b, "select count(*) from pg_stat_activity where usename = 'view_a' and state is null and query = '<insufficient privilege>'", 1},
		{m, "select count(*) from pg_stat_activity where usename = 'view_a' and state = 'idle in transaction'", 1},
		{b, "select count(*) from percodb.ranges", 0},
	} {
		var n int
		if err := c.by.QueryRow(testContext(t), c.text).Scan(&n); err != nil || n != c.want {
			t.Errorf("%s: %d, %v; want %d", c.text, n, err, c.want)
		}
	}
	execAll(t, a, "rollback")
	execAll(t, root, "drop table view_t")
}

// Goal: messages contain no values that the role may not read; COPY, cursors, EXPLAIN and prepared statements need what the statement in
// them needs.
func TestErrorsObeyGrants(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "error_a")
	execAll(t, root, "drop table if exists error_t", "create table error_t(id int primary key, secret text unique, n int check (n > 0))",
		"insert into error_t values (1, 'hidden', 1)", "grant insert, select (id) on error_t to error_a")
	a := connectAs(t, "error_a")
	for _, c := range []struct{ text, code, detail string }{
		{"insert into error_t values (1, 'x', 1)", "23505", "Key (id)=(1) already exists."},
		{"insert into error_t values (2, 'hidden', 1)", "23505", ""},
		{"insert into error_t values (3, 'y', -1)", "23514", "Failing row contains (id) = (3)."},
		{"insert into error_t values (null, 'y', 1)", "23502", "Failing row contains (id) = (null)."},
		{"copy error_t to stdout", "42501", ""},
		{"copy error_t (secret) to stdout", "42501", ""},
		{"copy (select secret from error_t) to stdout", "42501", ""},
		{"begin; declare c cursor for select secret from error_t", "42501", ""},
		{"rollback; explain select secret from error_t", "42501", ""},
		{"explain analyze update error_t set n = 2", "42501", ""},
		{"prepare p as select secret from error_t; execute p", "42501", ""},
		{"create table error_copy as select secret from error_t", "42501", ""},
		{"select id from error_t for share", "42501", ""},
		{"truncate error_t", "42501", ""},
	} {
		_, err := a.PgConn().Exec(testContext(t), c.text).ReadAll()
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if e.Code != c.code || e.Detail != c.detail || strings.Contains(e.Error()+e.Detail, "hidden") {
			t.Errorf("%s: %v, detail %q; want %s, %q", c.text, err, e.Detail, c.code, c.detail)
		}
	}
	execAll(t, root, "drop table error_t")
}

// Goal: rights that were taken away are not to be had again by an old snapshot, by another's observer or through another's view, and a
// pool can reset the sessions of ordinary roles. Method: each way as a role without rights.
func TestRightsAreNotRegained(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "regain_a")
	execAll(t, root, "create role regain_boss superuser", "grant regain_boss to regain_a", "create schema regain authorization regain_a",
		"create table regain_secret (v text)")
	t.Cleanup(func() {
		execAll(t, connect(t, ""), "drop view if exists regain_outer", "drop schema regain cascade", "drop table regain_secret", "drop role regain_boss")
	})
	a := connectAs(t, "regain_a")
	refused := func(conn *pgx.Conn, code, text string) {
		t.Helper()
		if _, err := conn.Exec(testContext(t), text); !strings.HasPrefix(failure(err), code) {
			t.Errorf("%s: %v", text, err)
		}
	}

	time.Sleep(50 * time.Millisecond) // The moment lies after the grant by the oracle's clock, too.
	var granted string
	if err := root.QueryRow(testContext(t), "select clock_timestamp()::text").Scan(&granted); err != nil {
		t.Fatal(err)
	}
	execAll(t, a, "begin", "select 1")
	execAll(t, root, "revoke regain_boss from regain_a")
	refused(a, "42501", "set role regain_boss")
	execAll(t, a, "rollback", "begin as of system time '"+granted+"'")
	refused(a, "42501", "set role regain_boss")
	execAll(t, a, "rollback")

	execAll(t, a, "create table regain.t (id int primary key)")
	execAll(t, root, "create observer regain_o on regain.t as 'select 1'")
	refused(a, "42501", "create or replace observer regain_o on regain.t as 'select 2'")

	execAll(t, a, "create view regain.below with (security_invoker) as select v from regain_secret")
	execAll(t, root, "create view regain_outer as select * from regain.below", "grant select on regain_outer to regain_a")
	refused(a, "42501", "select * from regain_outer")
	execAll(t, a, "reset all", "discard all")
}

// Goal: the values of a key that exists are shown by the privileges of the present, not by those of the transaction's snapshot, in both
// directions.
func TestDuplicateKeysObeyPresentPrivileges(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "duplicate_a")
	execAll(t, root, "create schema duplicates", "create table duplicates.t (id int primary key)", "insert into duplicates.t values (7)",
		"grant usage on schema duplicates to duplicate_a", "grant insert on duplicates.t to duplicate_a")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop schema duplicates cascade") })
	detail := func(change string) string {
		t.Helper()
		a := connectAs(t, "duplicate_a")
		execAll(t, a, "begin isolation level repeatable read", "select 1 from pg_class limit 1")
		execAll(t, root, change)
		_, err := a.Exec(testContext(t), "insert into duplicates.t values (7)")
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "23505" {
			t.Fatalf("%s: %v", change, err)
		}
		return pg.Detail
	}
	if got := detail("grant select on duplicates.t to duplicate_a"); got != "Key (id)=(7) already exists." {
		t.Errorf("after GRANT: %q", got)
	}
	if got := detail("revoke select on duplicates.t from duplicate_a"); got != "" {
		t.Errorf("after REVOKE: %q", got)
	}
}

// Goal: details of a failing row and of a locked row, too, contain what the role may read by the privileges of the present.
func TestDetailsObeyPresentPrivileges(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "detail_a")
	execAll(t, root, "create schema details", "create table details.t (id int primary key, v int check (v > 0))", "insert into details.t values (7, 1)",
		"grant usage on schema details to detail_a", "grant insert, update, select (v) on details.t to detail_a")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop schema details cascade") })
	holder := connect(t, "")
	execAll(t, holder, "begin", "update details.t set v = 2 where id = 7")
	detail := func(change, code, statement string) string {
		t.Helper()
		a := connectAs(t, "detail_a")
		execAll(t, a, "begin isolation level repeatable read", "select 1 from pg_class limit 1", "set lock_timeout = '1ms'")
		if change != "" {
			execAll(t, root, change)
		}
		_, err := a.Exec(testContext(t), statement)
		pg := pgError(err)
		if pg.Code != code {
			t.Fatalf("%s: %v", statement, err)
		}
		return pg.Detail
	}
	const failing, locked = "insert into details.t values (8, 0)", "update details.t set v = 3"
	for _, c := range []struct{ change, code, statement, want string }{
		{"", "23514", failing, "Failing row contains (v) = (0)."},
		{"grant select on details.t to detail_a", "23514", failing, "Failing row contains (8, 0)."},
		{"revoke select on details.t from detail_a", "23514", failing, ""},
		{"grant select (v) on details.t to detail_a", "55P03", locked, `A row of table "t" is locked`},
		{"grant select on details.t to detail_a", "55P03", locked, `Key (id)=(7) of table "t" is locked`},
		{"revoke select (id) on details.t from detail_a; grant select (v) on details.t to detail_a", "55P03", locked, `Key (id)=(7) of table "t" is locked`},
	} {
		if got := detail(c.change, c.code, c.statement); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s, %s: %q, want %q", c.change, c.statement, got, c.want)
		}
	}
}
