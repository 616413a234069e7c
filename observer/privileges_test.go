package observer_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// as runs statements as a role, on a connection of their own, and returns the SQLSTATE of the first that fails.
func (s *testServer) as(role string, texts ...string) string {
	s.t.Helper()
	config := s.pool.Config().ConnConfig
	config.User = role
	conn, err := pgx.ConnectConfig(s.ctx, config)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.ctx)
	for _, text := range texts {
		if _, err := conn.Exec(s.ctx, text); err != nil {
			return code(err)
		}
	}
	return ""
}

// Goal: an observer runs with its owner's rights, whoever changes the row: what the owner may not read of NEW, and may not write, fails
// with 42501; percodb.changes and the views of observers obey grants. Method: roles that connect.
func TestObserversHaveTheirOwnersRights(t *testing.T) {
	s := newServer(t)
	s.exec("create table orders (id int primary key, amount int, secret text)")
	s.exec("create table log (id int primary key, amount int)")
	s.exec("create role watcher login")
	s.exec("create role writer login")
	s.exec("grant insert on orders to writer")
	const create = `create observer watch on orders with (max_attempts = 1) as $$ insert into log values (new.id, new.amount) $$`
	if got := s.as("watcher", create); got != "42501" {
		t.Errorf("without TRIGGER: %q", got)
	}
	s.exec("grant trigger on orders to watcher")
	if got := s.as("watcher", create); got != "42501" {
		t.Fatalf("with TRIGGER, which does not show keys: %q", got)
	}
	s.exec("grant select (id) on orders to watcher")
	if got := s.as("watcher", create); got != "" {
		t.Fatalf("with TRIGGER: %q", got)
	}
	aside := func(ids string) {
		t.Helper()
		s.eventually(ids, "select coalesce(string_agg(sqlstate, ','), '') from percodb.observer_errors")
	}
	if got := s.as("writer", "insert into orders values (1, 10, 'x')"); got != "" {
		t.Fatalf("the writer: %q", got)
	}
	aside("42501")
	s.exec("grant insert on log to watcher")
	s.exec("alter observer watch retry")
	aside("42501") // NEW may not be read.
	s.exec("grant select (id, amount) on orders to watcher")
	s.exec("alter observer watch retry")
	s.exec("wait for observer watch")
	s.want("10", "select amount from log where id = 1")
	s.exec("create table hits (id int primary key)")
	s.exec("grant insert on hits to watcher")
	if got := s.as("watcher", `create observer peek on orders when (new.secret = 'y') with (max_attempts = 1) as $$ insert into hits values (key.id) $$`); got != "" {
		t.Fatalf("a second observer: %q", got)
	}
	if got := s.as("writer", "insert into orders values (2, 20, 'y')"); got != "" {
		t.Fatalf("the writer: %q", got)
	}
	s.eventually("42501", "select coalesce(string_agg(sqlstate, ','), '') from percodb.observer_errors where observer = 'peek'") // nor in WHEN
	s.exec("alter observer peek owner to postgres")
	s.exec("alter observer peek retry")
	s.exec("wait for observer peek")
	s.want("2", "select id from hits")
	s.exec("create observer client on orders")
	for _, c := range []struct{ role, text, want string }{
		{"writer", "select * from percodb.changes('client')", "42501"},
		{"writer", "drop observer watch", "42501"},
		{"writer", "alter observer watch disable", "42501"},
		{"writer", "alter observer watch owner to writer", "42501"},
		{"watcher", "alter observer watch owner to writer", "42501"},
		{"watcher", "drop observer peek", "42501"},
		{"writer", "wait for observer watch", "42501"},
		{"writer", "notify observer watch", "42501"},
		{"writer", "alter system set percodb.gc_life = '1h'", "42501"},
		{"watcher", "alter observer watch disable", ""},
		{"watcher", "drop observer watch", ""},
		{"watcher", "select * from percodb.changes('client')", "42501"},
	} {
		if got := s.as(c.role, c.text); got != c.want {
			t.Errorf("%s as %s: %q, want %q", c.text, c.role, got, c.want)
		}
	}
	s.exec("grant select on orders to watcher")
	if got := s.as("watcher", "select * from percodb.changes('client')"); got != "42501" {
		t.Errorf("percodb.changes of another's observer: %q", got)
	}
	s.exec("alter observer client owner to watcher")
	if got := s.as("watcher", "select * from percodb.changes('client')"); got != "" {
		t.Errorf("percodb.changes of one's own observer: %q", got)
	}
	s.exec("alter table orders owner to writer")
	if got := s.as("writer", "drop observer client"); got != "" {
		t.Errorf("the table's owner drops an observer: %q", got)
	}
}

// Goal: an observer gives its owner no keys that he may not read, also when the right is taken from him later, and an observer's messages,
// which may contain what its owner can read, are shown to nobody else but pg_monitor and superusers. Method: an observer fails with a
// message; the table's owner, the observer's owner without SELECT, and a superuser read percodb.observer_errors.
func TestObserverErrorsObeyGrants(t *testing.T) {
	s := newServer(t)
	for _, role := range []string{"keeper", "watcher", "monitor"} {
		s.exec("create role " + role + " login")
	}
	s.exec("grant pg_monitor to monitor")
	s.exec("create table orders (id int primary key)")
	s.exec("create table hidden (v text)")
	s.exec("insert into hidden values ('secret')")
	s.exec("grant select on hidden to watcher")
	s.exec("alter table orders owner to keeper")
	s.exec("grant select, trigger on orders to watcher")
	if got := s.as("watcher", `create observer tell on orders with (max_attempts = 1) as $$ select v::int from hidden $$`); got != "" {
		t.Fatal(got)
	}
	s.exec("insert into orders values (7)")
	s.eventually("22P02", "select coalesce(string_agg(sqlstate, ','), '') from percodb.observer_errors")
	s.exec("revoke select on orders from watcher")
	s.exec("insert into orders values (8)")
	s.eventually("22P02,42501", "select coalesce(string_agg(sqlstate, ',' order by sqlstate), '') from percodb.observer_errors")
	for role, want := range map[string]string{"keeper": "(id)=(7):,(id)=(8):", "watcher": ":22P02,:42501", "monitor": "(id)=(7):22P02,(id)=(8):42501", "postgres": "(id)=(7):22P02,(id)=(8):42501"} {
		got := s.readAs(role, `select string_agg(coalesce(key, '') || ':' || case when error is null then '' else sqlstate end, ',' order by sqlstate) from percodb.observer_errors`)
		if got != want {
			t.Errorf("%s reads %q, want %q", role, got, want)
		}
	}
}

// readAs returns the value of a query as a role.
func (s *testServer) readAs(role, query string) (value string) {
	s.t.Helper()
	config := s.pool.Config().ConnConfig
	config.User = role
	conn, err := pgx.ConnectConfig(s.ctx, config)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.ctx)
	if err := conn.QueryRow(s.ctx, query).Scan(&value); err != nil {
		s.t.Fatal(err)
	}
	return value
}
