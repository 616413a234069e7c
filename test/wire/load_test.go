package wire_test

import (
	"fmt"
	"strings"
	"testing"
)

// Goal: a block that loads a table which it has truncated or created, keys in order or not, locks none of its rows; a
// duplicate key is an error of its statement; rows of other tables are locked as usual. Method: an observer counts
// locks; commit and another session then show what PostgreSQL shows.
func TestLoadIntoOwnTable(t *testing.T) {
	conn, observer, ctx := connect(t, ""), connect(t, ""), testContext(t)
	var version string
	if err := conn.QueryRow(ctx, "select version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	locks := func(table string) (n int) {
		t.Helper()
		if strings.Contains(version, "percodb") {
			if err := observer.QueryRow(ctx, "select count(*) from percodb.locks where table_name = $1", table).Scan(&n); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	rows := func(keys ...int) string {
		var b strings.Builder
		for _, k := range keys {
			fmt.Fprintf(&b, "%d\tu%d\t%d\n", k, k, k%7)
		}
		return b.String()
	}
	series := func(from, to, step int) (keys []int) {
		for k := from; k != to; k += step {
			keys = append(keys, k)
		}
		return keys
	}
	load := func(table, data, want string) {
		t.Helper()
		_, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(data), "copy "+table+" from stdin")
		if got := code(err); got != want {
			t.Fatalf("COPY %s: %v, want %q", table, err, want)
		}
	}
	execAll(t, conn, "drop table if exists load_t, load_new, load_other",
		"create table load_t (id int primary key, u text unique, n int)",
		"create index on load_t (n)",
		"insert into load_t select g, 'u' || g, 0 from generate_series(1, 50) g",
		"create table load_other (id int primary key, u text unique, n int)",
		"insert into load_other select g, 'u' || g, 0 from generate_series(1, 50) g")
	execAll(t, conn, "begin", "truncate load_t", "create table load_new (id int primary key, u text unique, n int)")
	for _, table := range []string{"load_t", "load_new"} {
		load(table, rows(series(1, 3000, 1)...), "")
		load(table, rows(series(-1, -3000, -1)...), "")
		execAll(t, conn,
			"insert into "+table+" values (5000, 'a', 1), (4000, 'b', 2)",
			"insert into "+table+" select g, 'g' || g, 0 from generate_series(10000, 6000, -1) g",
			"update "+table+" set n = n + 1",
			"update "+table+" set id = id + 100000 where id > 9000",
			"delete from "+table+" where id between 10 and 20",
			"select * from "+table+" where id < 10 for update",
			"insert into "+table+" values (15, 'u15', 1) on conflict (id) do nothing",
			"insert into "+table+" values (16, 'u1', 1) on conflict (u) do update set n = 100",
			"create unique index on "+table+" (id, n)")
		if n := locks(table); n > 0 {
			t.Errorf("%d keys of %s are locked", n, table)
		}
	}
	execAll(t, conn, "update load_other set n = 1 where id <= 5")
	if n := locks("load_other"); n != 5 && strings.Contains(version, "percodb") {
		t.Errorf("%d keys of another table are locked, want 5", n)
	}
	for name, text := range map[string]string{
		"of an earlier statement":     rows(20001, 7),
		"within a statement":          rows(20001, 20002, 20001),
		"far apart":                   rows(append(series(30000, 25000, -1), 27000)...),
		"in a secondary unique index": "20001\tu7\t1\n",
	} {
		execAll(t, conn, "savepoint s")
		load("load_t", text, "23505")
		execAll(t, conn, "rollback to s")
		t.Log(name)
	}
	execAll(t, conn, "savepoint s")
	if _, err := conn.Exec(ctx, "insert into load_new values (0, 'x', 1), (15, 'u99', 1)"); code(err) != "23505" {
		t.Errorf("INSERT: %v", err)
	}
	execAll(t, conn, "rollback to s", "commit")
	for _, table := range []string{"load_t", "load_new"} {
		// As in PostgreSQL.
		expect(t, table, query(t, observer, "select count(*), count(distinct u), max(id), min(id), sum(n) from "+table), "9991 9991 110000 -2999 10053\n")
	}
	if n := locks("load_t") + locks("load_new") + locks("load_other"); n > 0 {
		t.Errorf("%d locks are left", n)
	}

	// After a rollback to a savepoint from before TRUNCATE other sessions see the rows.
	execAll(t, conn, "begin", "savepoint s", "truncate load_t", "insert into load_t values (1, 'x', 1)", "rollback to s",
		"update load_t set n = 0 where id in (1, 2)")
	if n := locks("load_t"); n < 2 && strings.Contains(version, "percodb") {
		t.Errorf("%d keys are locked after a rollback of TRUNCATE, want 2", n)
	}
	execAll(t, conn, "rollback")
}
