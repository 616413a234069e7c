package wire_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// refused reports whether a statement fails with a SQLSTATE, which it must.
func refused(t *testing.T, conn *pgx.Conn, code, text string) bool {
	t.Helper()
	_, err := conn.Exec(testContext(t), text)
	ok := strings.HasPrefix(failure(err), code)
	if !ok {
		t.Errorf("%s: %q, want %s", text, failure(err), code)
	}
	return ok
}

// nowOf returns a timestamp of the oracle that is later than all that has been committed.
func nowOf(t *testing.T, conn *pgx.Conn) (ts string) {
	t.Helper()
	if err := conn.QueryRow(testContext(t), "select now_ts::text from percodb.oracle").Scan(&ts); err != nil {
		t.Fatal(err)
	}
	return ts
}

// Goal: GRANT, REVOKE and changes of roles do not wait for another's open block that changes the schema, and the block commits
// unless both have changed the same object. Method: a role with a schema of its own, and one without any right, hold blocks open.
func TestRevokeDoesNotWait(t *testing.T) {
	root := connect(t, "&lock_timeout=10s")
	withRoles(t, root, "wait_a", "wait_b")
	execAll(t, root, "create schema wait_s authorization wait_a", "create table wait_t (id int primary key)", "grant select on wait_t to wait_b")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop schema wait_s cascade", "drop table wait_t") })
	a, b := connectAs(t, "wait_a"), connectAs(t, "wait_b")

	execAll(t, a, "begin", "create table wait_s.own (id int primary key)", "insert into wait_s.own values (1)")
	execAll(t, root, "revoke select on wait_t from wait_b", "create role wait_new", "alter role wait_new createdb", "grant wait_new to wait_b",
		"revoke wait_new from wait_b", "alter default privileges grant select on tables to wait_b",
		"alter default privileges revoke select on tables from wait_b", "drop role wait_new",
		"begin", "grant usage on schema wait_s to wait_b", "commit")
	refused(t, b, "42501", "select * from wait_t")
	execAll(t, a, "insert into wait_s.own values (2)", "select * from wait_s.own", "commit", "select * from wait_s.own")
	refused(t, b, "42501", "select * from wait_s.own")

	// One has changed the table's privileges, the other one the table.
	execAll(t, a, "begin", "alter table wait_s.own add column u int")
	execAll(t, root, "grant select on wait_s.own to wait_b")
	execAll(t, a, "commit", "begin", "grant insert on wait_s.own to wait_b")
	execAll(t, root, "alter table wait_s.own alter u set default 5")
	execAll(t, a, "commit")
	execAll(t, b, "insert into wait_s.own (id) values (3)", "select id, u from wait_s.own where u = 5")
	execAll(t, root, "revoke all on wait_s.own from wait_b")
	refused(t, b, "42501", "select * from wait_s.own")

	// Both have changed the table, and the block goes on.
	execAll(t, a, "begin", "alter table wait_s.own add column v int")
	execAll(t, root, "grant select on wait_s.own to wait_b")
	refused(t, a, "40001", "select * from wait_s.own")
	execAll(t, a, "rollback", "alter table wait_s.own add column v int")

	// The block has made an object of a role that is dropped.
	execAll(t, root, "create role wait_gone", "grant wait_gone to wait_a", "grant create on schema wait_s to wait_gone")
	execAll(t, a, "begin", "create table wait_s.orphan (id int)", "alter table wait_s.orphan owner to wait_gone")
	execAll(t, root, "revoke create on schema wait_s from wait_gone", "drop role wait_gone")
	if _, err := a.Exec(testContext(t), "commit"); !strings.HasPrefix(failure(err), "40001") {
		t.Errorf("commit of a dropped role's table: %q", failure(err))
	}

	execAll(t, root, "create role wait_gone")
	execAll(t, a, "begin", "create policy wait_p on wait_s.own to wait_gone")
	execAll(t, root, "drop role wait_gone")
	if _, err := a.Exec(testContext(t), "commit"); !strings.HasPrefix(failure(err), "40001") {
		t.Errorf("commit of a policy for a dropped role: %q", failure(err))
	}

	// What is undone holds up nobody.
	execAll(t, b, "begin", "savepoint s")
	refused(t, b, "42501", "create table wait_s.mine (id int)")
	execAll(t, root, "create table wait_free (id int)", "drop table wait_free")
	execAll(t, b, "rollback")
}

// Goal: statements of an open block are refused what has been revoked since its snapshot, at every isolation level, and keep what has
// not. Method: a reader holds a block open; another session revokes, grants, drops the role's memberships, the view, the table.
func TestOpenBlocksObeyRevoke(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "open_a", "open_owner")
	execAll(t, root, "create schema open_s", "grant usage, create on schema open_s to open_a, open_owner", "create table open_s.t (id int primary key, v text, w text)",
		"insert into open_s.t values (1, 'v', 'w')", "create sequence open_s.seq", "create view open_s.view as select v from open_s.t", "create role open_group")
	t.Cleanup(func() {
		execAll(t, connect(t, ""), "drop schema open_s cascade", "drop role if exists open_group")
	})
	a := connectAs(t, "open_a")
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		for _, step := range []struct{ grant, revoke, text string }{
			{"grant select on open_s.t to open_a", "revoke select on open_s.t from open_a", "select * from open_s.t"},
			{"grant select (v) on open_s.t to open_a", "revoke select (v) on open_s.t from open_a", "select v from open_s.t"},
			{"grant insert on open_s.t to open_a", "revoke insert on open_s.t from open_a", "insert into open_s.t values (2, 'x', 'y')"},
			{"grant usage on sequence open_s.seq to open_a", "revoke usage on sequence open_s.seq from open_a", "select nextval('open_s.seq')"},
			{"grant select on open_s.view to open_a", "revoke select on open_s.view from open_a", "select * from open_s.view"},
			{"grant select on open_s.t to open_group; grant open_group to open_a", "revoke open_group from open_a", "select * from open_s.t"},
			{"grant select on open_s.t to open_a", "revoke usage on schema open_s from open_a", "select * from open_s.t"},
			{"grant pg_read_all_data to open_a", "revoke pg_read_all_data from open_a", "select * from open_s.t"},
		} {
			execAll(t, root, strings.Split(step.grant, "; ")...)
			execAll(t, a, "begin isolation level "+level, "select 1", "prepare kept as "+step.text)
			execAll(t, a, step.text, "savepoint s")
			execAll(t, root, step.revoke)
			if !refused(t, a, "42501", step.text) {
				t.Fatalf("%s: %s", level, step.revoke)
			}
			execAll(t, a, "rollback to s")
			refused(t, a, "42501", "execute kept")
			execAll(t, a, "rollback to s", "select 1", "rollback", "deallocate kept")
			execAll(t, root, "revoke all on open_s.t from open_group, open_a", "grant usage on schema open_s to open_a")
		}
	}

	// With changes of the schema by the block itself.
	for _, level := range []string{"read committed", "repeatable read"} {
		execAll(t, root, "grant select on open_s.t to open_a")
		execAll(t, a, "begin isolation level "+level, "create table open_s.own (id int)", "select * from open_s.t", "select * from open_s.own")
		execAll(t, root, "revoke select on open_s.t from open_a")
		refused(t, a, "42501", "select * from open_s.t")
		execAll(t, a, "rollback")
	}

	// Schema changes of a former owner. Where rows that the block has read and another definition have changed too, it cannot commit.
	for change, want := range map[string]string{"select 1": "42501", "insert into open_s.seen values ('x'); alter table open_s.seen add w text": "40001"} {
		execAll(t, root, "create table open_s.seen (v text)", "grant select on open_s.seen to open_a", "create table open_s.given (v text)", "insert into open_s.given values ('x')", "alter table open_s.given owner to open_a")
		execAll(t, a, "begin isolation level repeatable read", "select * from open_s.given, open_s.seen", "savepoint s")
		execAll(t, root, strings.Split(change, "; ")...)
		execAll(t, root, "create table open_s.more (id int)")
		execAll(t, a, "alter table open_s.given add check (v <> 'y')", "rollback to s")
		execAll(t, root, "alter table open_s.given owner to postgres")
		refused(t, a, want, "alter table open_s.given add check (v <> 'z')")
		execAll(t, a, "rollback")
		execAll(t, root, "drop table open_s.given, open_s.more, open_s.seen")
	}

	// A role that is dropped.
	execAll(t, root, "create role open_gone login", "grant select on open_s.t to public", "grant usage on schema open_s to public")
	gone := connectAs(t, "open_gone")
	execAll(t, gone, "begin isolation level repeatable read", "select * from open_s.t")
	execAll(t, root, "drop role open_gone")
	if _, err := gone.Exec(testContext(t), "select * from open_s.t"); err == nil {
		t.Error("a dropped role reads")
	}
	execAll(t, root, "revoke select on open_s.t from public", "revoke usage on schema open_s from public")

	// What is dropped is its owner's.
	owner, member := connectAs(t, "open_owner"), connectAs(t, "open_a")
	execAll(t, owner, "create table open_s.late (id int)", "grant select on open_s.late to open_a")
	for _, c := range []*pgx.Conn{owner, member} {
		execAll(t, c, "begin isolation level repeatable read", "select * from open_s.late")
	}
	execAll(t, root, "drop table open_s.late")
	execAll(t, owner, "select * from open_s.late", "commit")
	refused(t, member, "42501", "select * from open_s.late")
	execAll(t, member, "rollback")
}

// Goal: AS OF SYSTEM TIME gives nobody what he may not see now: dropped tables and columns, views that were others then, and the system
// views of a former member of pg_monitor. Method: each of them with the privileges of then, by a role and by the owner.
func TestThePastObeysThePresent(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "past_a", "past_owner")
	execAll(t, root, "create schema past_s authorization past_owner", "grant usage on schema past_s to past_a", "grant pg_monitor to past_a")
	owner, a := connectAs(t, "past_owner"), connectAs(t, "past_a")
	execAll(t, owner, "create table past_s.t (id int primary key, v text, secret text)", "insert into past_s.t values (1, 'v', 'secret')",
		"create table past_s.dropped (id int)", "insert into past_s.dropped values (1)", "create view past_s.view as select id, v, secret from past_s.t",
		"grant select on all tables in schema past_s to past_a")
	then := nowOf(t, root)
	execAll(t, root, "revoke pg_monitor from past_a")
	execAll(t, owner, "drop view past_s.view", "create view past_s.view as select id, v from past_s.t", "grant select on past_s.view to past_a",
		"alter table past_s.t drop column secret", "drop table past_s.dropped")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop schema past_s cascade") })

	asOf := " as of system time " + then
	for _, text := range []string{"select secret from past_s.t", "select * from past_s.t", "select * from past_s.dropped", "select v from past_s.view"} {
		refused(t, a, "42501", text+asOf)
		execAll(t, owner, text+asOf)
		execAll(t, root, text+asOf)
		execAll(t, a, "begin"+asOf)
		refused(t, a, "42501", text)
		execAll(t, a, "rollback")
	}
	execAll(t, a, "select id, v from past_s.t"+asOf)
	var n int
	for conn, want := range map[*pgx.Conn]bool{a: false, root: true} {
		if err := conn.QueryRow(testContext(t), "select count(*) from percodb.ranges"+asOf).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 != want {
			t.Errorf("percodb.ranges shows %d rows", n)
		}
	}
}

// Goal: a named prepared statement, and a text whose plan is cached, read the table that the search path finds now. Method: a table of
// the same name is created in a schema that is searched before, and dropped again, between executions.
func TestPlansFollowTheSearchPath(t *testing.T) {
	conn, other := connect(t, ""), connect(t, "")
	execAll(t, other, "create schema early_s", "create schema late_s", "create table late_s.early_t (id int primary key, v text)", "insert into late_s.early_t values (1, 'late')")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop schema early_s cascade", "drop schema late_s cascade") })
	execAll(t, conn, "set search_path = early_s, late_s")
	ctx := testContext(t)
	const text = "select v from early_t where id = 1"
	if _, err := conn.Prepare(ctx, "named", text); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		for _, args := range [][]any{{"named"}, {text, pgx.QueryExecModeSimpleProtocol}} {
			var got string
			if err := conn.QueryRow(ctx, args[0].(string), args[1:]...).Scan(&got); err != nil || got != want {
				t.Errorf("%v: %q %v, want %q", args[0], got, err, want)
			}
		}
	}
	check("late")
	execAll(t, other, "create table early_s.early_t (id int primary key, v text)", "insert into early_s.early_t values (1, 'early')")
	check("early")
	execAll(t, other, "drop table early_s.early_t")
	check("late")
}

// Goal: who waits for another's schema change stops after lock_timeout, and the block that is in the way can be ended.
func TestWaitsForSchemaChangesAreBounded(t *testing.T) {
	root := connect(t, "&lock_timeout=50ms")
	withRoles(t, root, "bound_a")
	execAll(t, root, "create schema bound_s authorization bound_a")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop schema bound_s cascade", "drop table if exists bound_t") })
	a := connectAs(t, "bound_a")
	execAll(t, a, "begin", "create table bound_s.own (id int)")
	refused(t, root, "55P03", "create table bound_t (id int)")
	execAll(t, root, "set lock_timeout = 0")
	done := make(chan error)
	go func() {
		_, err := root.Exec(context.Background(), "create table bound_t (id int)")
		done <- err
	}()
	// A superuser sees who is in the way.
	monitor := connect(t, "")
	waiter, blocker := strconv.Itoa(int(root.PgConn().PID())), strconv.Itoa(int(a.PgConn().PID()))
	var seen string
	for seen != "Lock schema {"+blocker+"}" {
		err := monitor.QueryRow(testContext(t), "select coalesce(wait_event_type || ' ' || wait_event, '') || ' ' || pg_blocking_pids(pid)::text from pg_stat_activity where pid = "+waiter).Scan(&seen)
		if err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, connect(t, ""), "select pg_terminate_backend("+strconv.Itoa(int(a.PgConn().PID()))+", 10000)")
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(exchangeTimeout):
		t.Fatal("the change still waits")
	}

	// A row's lock.
	execAll(t, root, "create table if not exists bound_t (id int)", "insert into bound_t values (1)", "begin", "update bound_t set id = 2")
	other := connect(t, "")
	go func() {
		_, err := other.Exec(context.Background(), "begin; update bound_t set id = 3; commit")
		done <- err
	}()
	for seen != "{"+waiter+"}" {
		err := monitor.QueryRow(testContext(t), "select pg_blocking_pids($1::int)::text", other.PgConn().PID()).Scan(&seen)
		if err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, root, "commit")
	<-done
}
