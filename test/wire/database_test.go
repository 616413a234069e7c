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

// in connects to a database as the superuser.
func (s *secured) in(database string) *pgx.Conn {
	s.t.Helper()
	c, err := s.connect("sslmode=disable user=postgres dbname=" + database)
	s.must(err)
	return c
}

// row returns the columns of the one row of a query, or the error.
func row(c *pgx.Conn, query string, args ...any) string {
	rows, err := c.Query(context.Background(), query, args...)
	if err != nil {
		return detailed(err)
	}
	defer rows.Close()
	out := ""
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return err.Error()
		}
		out += fmt.Sprint(values...)
	}
	if rows.Err() != nil {
		return detailed(rows.Err())
	}
	return out
}

// detailed is failure with the detail.
func detailed(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return failure(err) + " " + pgErr.Detail
	}
	return failure(err)
}

// Goal: names in one database mean its own objects, whatever the others have: relations, types, routines, schemas, sequences, settings, temporary
// tables, also in prepared statements with the same text; the system tables show those of the database, and the shared ones the same everywhere.
func TestDatabasesAreApart(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	execAll(t, s.admin, "create database one", "create database two", "alter database two set work_mem = '7MB'")
	one, two := s.in("one"), s.in("two")
	for i, c := range []*pgx.Conn{s.admin, one, two} {
		execAll(t, c, fmt.Sprintf("create table t (id int primary key, v text default 'default %d')", i),
			fmt.Sprintf("create function f() returns int language sql as 'select %d'", i), fmt.Sprintf("create type e as enum ('v%d')", i),
			"create view w as select v from t", "create sequence q", "create schema s", "create table s.u (a int)",
			fmt.Sprintf("insert into t (id) values (%d)", 10+i), "create temporary table mine (a int)")
	}
	for i, c := range []*pgx.Conn{s.admin, one, two} {
		for range 3 { // The plan is cached.
			want := fmt.Sprintf("%d default %d %d v%d 1", 10+i, i, i, i)
			if got := row(c, "select concat_ws(' ', id, v, f(), enum_first(null::e), (select count(*) from w)) from t where id > $1", 0); got != want {
				t.Errorf("database %d: %q, want %q", i, got, want)
			}
		}
		if got := row(c, "select count(*) from pg_class where relname in ('t', 'w', 'q', 'u')"); got != "4" {
			t.Errorf("database %d: %s relations", i, got)
		}
		if got := row(c, "select string_agg(datname, ',' order by datname) from pg_database where not datistemplate"); got != "one,percodb,two" {
			t.Errorf("database %d: databases %s", i, got)
		}
		if got, want := row(c, "select current_database() || current_catalog"), strings.Repeat([]string{"percodb", "one", "two"}[i], 2); got != want {
			t.Errorf("database %d: its name is %s", i, got)
		}
	}
	if got := row(two, "show work_mem"); got != "7MB" {
		t.Errorf("work_mem in two: %s", got)
	}
	if got := row(one, "select string_agg(datname, ',' order by pid) from pg_stat_activity where datname is not null"); got != "percodb,one,two" {
		t.Errorf("pg_stat_activity: %s", got)
	}
	execAll(t, two, "alter table t add column more int default 5", "create role shared")
	if got := row(one, "select (select count(*) from pg_roles where rolname = 'shared') || t::text from t"); got != `1(11,"default 1")` {
		t.Errorf("after changes in two: %s", got)
	}
	execAll(t, one, "grant select on t to shared")
	if got := row(two, "drop role shared"); !strings.HasPrefix(got, "2BP01") || !strings.Contains(got, "1 object in database one") {
		t.Errorf("drop role: %s", got)
	}
	if got := row(one, "select * from two.public.t"); !strings.HasPrefix(got, "0A000 cross-database references are not implemented") {
		t.Errorf("a name of another database: %s", got)
	}
}

// Goal: which database a client gets by the startup message: an unknown one, one that is closed, one for which it lacks CONNECT or no rule admits
// it. "postgres" is the first one until a database has the name.
func TestConnectsToDatabase(t *testing.T) {
	s := startSecured(t, "host refused bob all reject\nhost all all all trust\n")
	execAll(t, s.admin, "create role bob login", "create database closed allow_connections false", "create database private", "create database refused",
		"revoke connect on database private from public")
	for database, want := range map[string]string{
		"missing": `3D000 database "missing" does not exist`,
		"closed":  `55000 database "closed" is not currently accepting connections`,
		"private": `42501 permission denied for database "private"`,
		"refused": "28000",
		"percodb": "", "postgres": "", "template1": "",
	} {
		c, err := s.connect("sslmode=disable user=bob dbname=" + database)
		if err == nil { // A template that is in use is not copied.
			c.Close(context.Background())
		}
		if got := failure(err); want == "" && err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", database, got, want)
		}
	}
	if got := row(s.in("postgres"), "select current_database()"); got != "percodb" {
		t.Errorf("postgres is %s", got)
	}
	execAll(t, s.admin, "create database postgres")
	if got := row(s.in("postgres"), "select current_database()"); got != "postgres" {
		t.Errorf("postgres is %s after it was created", got)
	}
}

// Goal: a database that sessions use is not dropped or renamed, until they end; FORCE ends them. What the database had is gone, and a new one of
// the name has nothing of it.
func TestDropDatabaseInUse(t *testing.T) {
	t.Parallel() // It mostly waits.
	s := startSecured(t, "host all all all trust\n")
	execAll(t, s.admin, "create database used")
	c := s.in("used")
	execAll(t, c, "create table t (id int primary key)", "insert into t select generate_series(1, 1000)", "analyze t", "create sequence q", "select nextval('q')")
	for _, text := range []string{"drop database used", "alter database used rename to other", "create database copy template used"} {
		got := row(s.admin, text)
		if !strings.HasPrefix(got, "55006") || !strings.Contains(got, "There is 1 other session using the database.") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := row(c, "drop database used"); !strings.HasPrefix(got, "55006 cannot drop the currently open database") {
		t.Errorf("its own: %s", got)
	}
	go func() {
		time.Sleep(100 * time.Millisecond) // The statement waits by then, as a rule; if it does not, it need not.
		c.Close(context.Background())
	}()
	execAll(t, s.admin, "alter database used rename to other", "create database used")
	if got := row(s.in("used"), "select count(*) from pg_class where relname = 't'"); got != "0" {
		t.Errorf("the new one has %s tables", got)
	}
	other := s.in("other")
	if got := row(other, "select count(*) from t"); got != "1000" {
		t.Errorf("the renamed one has %s rows", got)
	}
	execAll(t, s.admin, "drop database other with (force)", "drop database if exists other")
	if err := other.Ping(context.Background()); err == nil {
		t.Error("the session of the dropped database goes on")
	}
	if _, err := s.connect("sslmode=disable user=postgres dbname=other"); failure(err) != `3D000 database "other" does not exist` {
		t.Errorf("the dropped one: %v", err)
	}
	execAll(t, s.admin, "create database other")
	if got := row(s.in("other"), "select count(*) from pg_class where relname in ('t', 'q')"); got != "0" {
		t.Errorf("the new one has %s relations", got)
	}
}

// Goal: advisory locks and channels of one database are not those of another.
func TestLocksAndChannelsOfDatabases(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	execAll(t, s.admin, "create database one")
	one, again := s.in("one"), s.in("one")
	execAll(t, s.admin, "select pg_advisory_lock(1)", "listen c")
	execAll(t, one, "listen c")
	if got := row(one, "select pg_try_advisory_lock(1)"); got != "true" {
		t.Errorf("a lock of another database is held: %s", got)
	}
	if got := row(again, "select pg_try_advisory_lock(1)"); got != "false" {
		t.Errorf("the lock of the same database is free: %s", got)
	}
	if got := row(again, "select count(distinct database) from pg_locks where locktype = 'advisory'"); got != "2" {
		t.Errorf("pg_locks: %s", got)
	}
	execAll(t, s.admin, "notify c, 'first'")
	execAll(t, again, "notify c, 'second'")
	for c, want := range map[*pgx.Conn]string{s.admin: "first", one: "second"} {
		n, err := c.WaitForNotification(testContext(t))
		s.must(err)
		if n.Channel != "c" || n.Payload != want {
			t.Errorf("notified of %q on %q, want %q", n.Payload, n.Channel, want)
		}
	}
	if got := row(one, "select pg_listening_channels()"); got != "c" {
		t.Errorf("listening to %s", got)
	}
}

// Goal: observers run in the database of their table, also when no session uses it.
func TestObserverInDatabase(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	execAll(t, s.admin, "create database one", "create table seen (id int primary key)")
	one := s.in("one")
	execAll(t, one, "create table t (id int primary key)", "create table seen (id int primary key)",
		"create observer o on t as $$ insert into seen select id from changed $$", "insert into t values (1), (2)")
	deadline := time.Now().Add(20 * time.Second)
	for row(one, "select count(*) from seen") != "2" {
		if time.Now().After(deadline) {
			t.Fatal("the observer has not run")
		}
		time.Sleep(50 * time.Millisecond) // between two looks
	}
	one.Close(context.Background())
	if got := row(s.admin, "select count(*) from seen"); got != "0" {
		t.Errorf("it has run in another database: %s", got)
	}
	execAll(t, s.admin, "drop database one")
}

// Goal: databases for tests are made and dropped quickly, many at a time.
func TestManyDatabases(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	done := make(chan error)
	began := time.Now()
	const workers, each = 4, 5
	for w := range workers {
		go func() {
			done <- func() error {
				own, err := s.connect("sslmode=disable user=postgres")
				if err != nil {
					return err
				}
				for i := range each {
					name := fmt.Sprintf("test_%d_%d", w, i)
					if _, err := own.Exec(context.Background(), "create database "+name); err != nil {
						return err
					}
					c, err := s.connect("sslmode=disable user=postgres dbname=" + name)
					if err != nil {
						return err
					}
					for _, text := range []string{"create table t (id serial primary key, v text unique)", "insert into t (v) values ('a'), ('b')"} {
						if _, err := c.Exec(context.Background(), text); err != nil {
							return fmt.Errorf("%s: %w", text, err)
						}
					}
					if got := row(c, "select sum(id) from t"); got != "3" {
						return fmt.Errorf("sum %s", got)
					}
					c.Close(context.Background())
					if _, err := own.Exec(context.Background(), "drop database "+name); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d databases in %v", workers*each, time.Since(began))
	if got := row(s.admin, "select count(*) from pg_database where datname like 'test%'"); got != "0" {
		t.Errorf("%s are left", got)
	}
}
