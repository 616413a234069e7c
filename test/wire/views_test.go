package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Goal: the views of schema percodb show decoded locks, their holders and waiters, and the transactions. Method: one
// session locks rows in each way, another waits for one of them; a third compares the views with what the sessions know
// of themselves.
func TestSystemViews(t *testing.T) {
	holder, waiter, observer, ctx := connect(t, ""), connect(t, ""), connect(t, ""), testContext(t)
	execAll(t, observer, "drop table if exists views_t", "create table views_t (a int, b text, c int, primary key (a, b))",
		"create unique index views_c on views_t (c)", "insert into views_t values (1, 'x', 10), (2, 'y', 20), (3, 'z', 30)")
	execAll(t, holder, "begin isolation level serializable", "select * from views_t where a = 3 and b = 'z' for share",
		"update views_t set c = 11 where a = 1 and b = 'x'")
	execAll(t, waiter, "begin isolation level read committed")
	done := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(ctx, "delete from views_t where a = 1 and b = 'x'")
		done <- err
	}()
	const waiting = "select count(*) from percodb.locks where $1 = any (waiting_pids)"
	for n := 0; n == 0; time.Sleep(time.Millisecond) {
		if err := observer.QueryRow(ctx, waiting, waiter.PgConn().PID()).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	pid := holder.PgConn().PID()
	expect(t, "locks", query(t, observer, "select schema_name, table_name, index_name, key, kind, cardinality(waiting_pids), age >= '0', ttl > '0' "+
		"from percodb.locks where pid = $1 order by index_name, key", pid), `
		public views_t views_c (c)=(10) for update 0 true true
		public views_t views_c (c)=(11) for update 0 true true
		public views_t views_t_pkey (a, b)=(1, x) for update 1 true true
		public views_t views_t_pkey (a, b)=(3, z) for share 0 true true
		`)
	expect(t, "primaries", query(t, observer, "select count(*) from percodb.locks where pid = $1 and is_primary", pid), "1\n")
	expect(t, "holder", query(t, observer, "select user_name, isolation, locking, state, reads > 0, locks, writes, start_ts <= read_ts, age >= '0' "+
		"from percodb.transactions where pid = $1", pid), "postgres serializable pessimistic idle in transaction true 4 3 true true\n")
	expect(t, "waiter", query(t, observer, "select isolation, state, reads, locks from percodb.transactions where pid = $1", waiter.PgConn().PID()),
		"read committed active 0 0\n")
	expect(t, "holders join", query(t, observer, "select count(*) from percodb.locks l join percodb.transactions t on t.start_ts = l.holder where t.pid = $1", pid), "4\n")

	execAll(t, holder, "rollback")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	execAll(t, waiter, "rollback")
	expect(t, "after", query(t, observer, "select count(*) from percodb.locks where table_name = 'views_t'"), "0\n")
	expect(t, "transactions after", query(t, observer, "select count(*) from percodb.transactions where pid = $1", pid), "0\n")
}

// Goal: the oracle's and the ranges' views are consistent. Method: relations between their columns.
func TestOracleAndRangesViews(t *testing.T) {
	c := connect(t, "")
	expect(t, "oracle", query(t, c, "select now_ts > 0, window_end_at > now_at, oldest_active_ts <= now_ts, "+
		"now_at between now() - interval '1 hour' and now() + interval '1 hour' from percodb.oracle"), "true true true true\n")
	expect(t, "ranges", query(t, c, "select bool_and(size_bytes >= 0), count(*) = count(distinct range_id), "+
		"count(*) filter (where start_bytes = ''), count(*) filter (where end_bytes = '') from percodb.ranges"), "true true 1 1\n")
}

// Goal: percodb.observers shows observers as they were created and altered, in a form that creates them again; in a block, as the block
// sees them. Method: create one from its own definition.
func TestObserversView(t *testing.T) {
	c, other := connect(t, ""), connect(t, "")
	execAll(t, c, "drop table if exists observed_t, observed_log", "create table observed_t (id int primary key, a text)", "create table observed_log (id int primary key)",
		"create observer watching on observed_t (a) when (new.a <> '') with (batch = 1, concurrency = 2) as $$ insert into observed_log values (key.id) on conflict do nothing $$",
		"comment on observer watching is 'log'", "insert into observed_t values (1, 'x')", "alter observer watching set (max_attempts = 3)")
	const view = "select name, schema_name, table_name, columns, condition, state, options, comment, definition from percodb.observers where table_name = 'observed_t'"
	got := query(t, c, view)
	var definition string
	if err := c.QueryRow(testContext(t), "select definition from percodb.observers where name = 'watching'").Scan(&definition); err != nil {
		t.Fatal(err)
	}
	expect(t, "observers", got, "watching public observed_t [a] new.a <> '' enabled [concurrency=2 batch=1 max_attempts=3 weak=false] log "+definition+"\n")
	execAll(t, c, "begin", "drop observer watching")
	expect(t, "in the block", query(t, c, view), "")
	expect(t, "outside of it", query(t, other, "select name from percodb.observers where table_name = 'observed_t'"), "watching\n")
	execAll(t, c, definition, "comment on observer watching is 'log'")
	expect(t, "created again", query(t, c, view), got)
	execAll(t, c, "commit")
	expect(t, "errors", query(t, c, "select count(*) from percodb.observer_errors"), "0\n")
	execAll(t, c, "drop table observed_t", "drop table observed_log")
	expect(t, "dropped", query(t, c, view), "")
}

// Goal: the views are read-only. Method: what must be refused, and with which SQLSTATE.
func TestSystemViewsAreReadOnly(t *testing.T) {
	c := connect(t, "")
	for statement, want := range map[string]string{
		"create table percodb.t (a int)":                "42501",
		"drop schema percodb":                           "2BP01",
		"create schema percodb":                         "42P06",
		"insert into percodb.locks (key) values ('')":   "42501",
		"delete from percodb.transactions":              "42501",
		"drop view percodb.locks":                       "42501",
		"update percodb.oracle set now_ts = 1":          "42501",
		"select * from percodb.nothing":                 "42P01",
		"alter table percodb.ranges add column a int":   "42501",
		"create index on percodb.ranges (range_id)":     "42501",
		"select * from locks":                           "42P01",
		"set search_path = percodb; select 1 from ocks": "42P01",
	} {
		if _, err := c.Exec(testContext(t), statement, pgx.QueryExecModeSimpleProtocol); code(err) != want {
			t.Errorf("%s: %v, want %s", statement, err, want)
		}
	}
	execAll(t, c, "set search_path = percodb, public", "select * from locks", "select * from oracle")
}

// query returns the rows, one per line.
func query(t *testing.T, c *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	rows, err := c.Query(testContext(t), sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(toText(v))
		}
		b.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func toText(v any) string { return strings.TrimSpace(fmt.Sprint(v)) }
