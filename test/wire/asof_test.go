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

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/node"
	"github.com/percodb/percodb/tso"
)

// instant returns a timestamp of the oracle at or after every commit so far and before every later one: nothing else is
// committed within its millisecond.
func instant(t testing.TB, conn *pgx.Conn) string {
	t.Helper()
	millis := func() (ms int64) {
		if err := conn.QueryRow(testContext(t), "select txid_current()").Scan(&ms); err != nil {
			t.Fatal(err)
		}
		return tso.Timestamp(ms).Physical()
	}
	at := millis()
	for millis() == at {
	}
	return time.UnixMilli(at).UTC().Format("2006-01-02 15:04:05.000+00")
}

// rows returns a result as text.
func rows(t testing.TB, conn *pgx.Conn, query string, args ...any) (string, error) {
	t.Helper()
	result, err := conn.Query(testContext(t), query, args...)
	if err != nil {
		return "", err
	}
	var lines []string
	for result.Next() {
		values, err := result.Values()
		if err != nil {
			return "", err
		}
		lines = append(lines, strings.Trim(fmt.Sprint(values), "[]"))
	}
	return strings.Join(lines, "|"), result.Err()
}

func wantRows(t testing.TB, conn *pgx.Conn, want, query string, args ...any) {
	t.Helper()
	if got, err := rows(t, conn, query, args...); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", query, got, err, want)
	}
}

func wantCode(t testing.TB, conn *pgx.Conn, code, query string, args ...any) *pgconn.PgError {
	t.Helper()
	_, err := rows(t, conn, query, args...)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != code {
		t.Errorf("%s: %v, want %s", query, err, code)
		return &pgconn.PgError{}
	}
	return pg
}

// Goal: a query AS OF SYSTEM TIME returns the rows of that time under the schema of that time, in every protocol and
// whenever its text is sent again; later statements of the connection read the present. Method: change rows and columns
// between instants, and query.
func TestAsOfSystemTime(t *testing.T) {
	conn := connect(t, "")
	execAll(t, conn, "drop table if exists asof_t, asof_u")
	never := instant(t, conn)
	execAll(t, conn, "create table asof_t (id int primary key, n int)", "create table asof_u (id int primary key)", "insert into asof_u values (1)",
		"insert into asof_t values (1, 10), (2, 20)")
	first := instant(t, conn)
	execAll(t, conn, "update asof_t set n = n + 1", "delete from asof_t where id = 2", "insert into asof_t values (3, 30)")
	second := instant(t, conn)
	execAll(t, conn, "alter table asof_t add column s text default 'new'", "create index on asof_t (n)")
	instant(t, conn) // the following queries are as of a millisecond ago
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec} {
		for range 2 {
			wantRows(t, conn, "1 10|2 20", "select * from asof_t as of system time '"+first+"' order by id", mode)
			wantRows(t, conn, "1 11|3 30", "select * from asof_t as of system time '"+second+"' order by id", mode)
			wantRows(t, conn, "1 11 new|3 30 new", "select * from asof_t order by id", mode)
		}
		wantRows(t, conn, "1 10", "select a.* from asof_t a join asof_u u on a.id = u.id as of system time timestamptz '"+first+"' where a.n < 11", mode)
		wantRows(t, conn, "10", "select n from asof_t as of system time '"+first+"' union select n from asof_t where n = 10 order by 1 limit 1", mode)
		wantRows(t, conn, "2", "with c as (select 1) select count(*) from asof_t as of system time '"+first+"'::timestamptz + interval '1 microsecond' where id = $1 or true", mode, 1)
		wantRows(t, conn, "1 11 new|3 30 new", "select * from asof_t as of system time '-1ms' order by id", mode)
		wantRows(t, conn, "2", "select count(*) from asof_t as of system time -interval '1 millisecond'", mode)
		wantRows(t, conn, "2", "select count(*) from asof_t as of system time clock_timestamp()", mode)
		if e := wantCode(t, conn, "42P01", "select * from asof_t as of system time '"+never+"'", mode); !strings.Contains(e.Detail, "The schema is that of "+never[:19]) {
			t.Errorf("%v: the detail %q does not name the time", mode, e.Detail)
		}
		wantCode(t, conn, "42703", "select s from asof_t as of system time '"+second+"'", mode)
		wantCode(t, conn, "22023", "select * from asof_t as of system time '+1h'", mode)
		wantCode(t, conn, "22023", "select * from asof_t as of system time now() + interval '1 hour'", mode)
		if e := wantCode(t, conn, "22007", "select * from asof_t as of system time 'yesterday-ish'", mode); !strings.Contains(e.Hint, "'-10s'") {
			t.Errorf("%v: the hint %q shows no interval", mode, e.Hint)
		}
		if e := wantCode(t, conn, "42P01", "select * from asof_nosuch", mode); e.Detail != "" {
			t.Errorf("%v: the present has the detail %q", mode, e.Detail)
		}
		wantCode(t, conn, "42703", "select * from asof_t as of system time n", mode)
		wantCode(t, conn, "25006", "select * from asof_t as of system time '-1ms' for update", mode)
		wantCode(t, conn, "0A000", "select * from (select * from asof_t as of system time '-1ms') x", mode)
		wantCode(t, conn, "0A000", "insert into asof_u select id + 10 from asof_t as of system time '-1ms'", mode)
		wantCode(t, conn, "0A000", "create view asof_v as select * from asof_t as of system time '-1ms'", mode)
	}
	execAll(t, conn, "prepare asof_p as select n from asof_t as of system time '"+first+"' where id = $1")
	for range 2 {
		wantRows(t, conn, "20", "execute asof_p(2)", pgx.QueryExecModeSimpleProtocol)
		wantRows(t, conn, "2", "select count(*) from asof_t")
	}
	wantCode(t, conn, "25001", "select 1; select * from asof_t as of system time '-1ms'", pgx.QueryExecModeSimpleProtocol)
	if out, err := rows(t, conn, "explain select s from asof_t as of system time '-1ms'", pgx.QueryExecModeSimpleProtocol); err != nil || !strings.Contains(out, "asof_t") {
		t.Errorf("explain: %q, %v", out, err)
	}
}

// Goal: a block AS OF SYSTEM TIME reads at one time and writes nothing; a pipeline that mixes times is refused. Method:
// BEGIN and SET TRANSACTION, batches.
func TestBeginAsOfSystemTime(t *testing.T) {
	conn := connect(t, "")
	ctx := testContext(t)
	execAll(t, conn, "drop table if exists asof_b", "create table asof_b (n int)", "insert into asof_b values (1)")
	first := instant(t, conn)
	execAll(t, conn, "insert into asof_b values (2)")
	for _, begin := range [][]string{
		{"begin as of system time '" + first + "'"},
		{"start transaction read only, isolation level read committed, as of system time '" + first + "'"},
		{"begin", "set transaction as of system time '" + first + "'"},
	} {
		execAll(t, conn, begin...)
		wantRows(t, conn, "1", "select n from asof_b")
		wantRows(t, conn, "on", "show transaction_read_only")
		wantRows(t, conn, "1", "select n from asof_b as of system time '"+first+"'")
		execAll(t, conn, "savepoint a")
		wantCode(t, conn, "22023", "select n from asof_b as of system time '-1ms'")
		execAll(t, conn, "rollback to a")
		wantCode(t, conn, "25006", "insert into asof_b values (3)")
		execAll(t, conn, "rollback to a")
		wantCode(t, conn, "25001", "set transaction read write")
		execAll(t, conn, "rollback to a")
		wantCode(t, conn, "25001", "set transaction as of system time '-1ms'")
		execAll(t, conn, "rollback to a", "commit")
		wantRows(t, conn, "1|2", "select n from asof_b order by n")
	}
	wantCode(t, conn, "42601", "begin read write, as of system time '-1ms'")
	wantRows(t, conn, "off", "show transaction_read_only")
	execAll(t, conn, "begin")
	wantRows(t, conn, "1|2", "select n from asof_b order by n")
	wantCode(t, conn, "25001", "select n from asof_b as of system time '-1ms'")
	execAll(t, conn, "rollback")
	wantCode(t, conn, "0A000", "set session characteristics as transaction as of system time '-1ms'")

	then := "select n from asof_b as of system time '" + first + "'"
	for _, mode := range []string{"exec", "cache_statement"} {
		conn := connect(t, "&default_query_exec_mode="+mode)
		for _, order := range [][]string{{then, "insert into asof_b values (9)"}, {"select 1 from asof_b", then}} {
			batch := &pgx.Batch{}
			for _, q := range order {
				batch.Queue(q)
			}
			err := conn.SendBatch(ctx, batch).Close()
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code != "25001" {
				t.Errorf("%v: %v", order, err)
			}
		}
	}
	wantRows(t, conn, "1|2", "select n from asof_b order by n")
}

// Goal: history is kept for as long as ALTER SYSTEM says, also after a restart, and no longer; a read below the safe
// point is an error that names it. SHOW shows it. Method: a separate server with a short life of history.
func TestSafePointOverSQL(t *testing.T) {
	t.Parallel() // It mostly waits.
	opts := options(t.TempDir())
	opts.GC = node.GCOptions{Interval: 20 * time.Millisecond, Lease: 2 * time.Second}
	start := func() (*node.Node, *pgx.Conn) {
		n, err := node.Start(context.Background(), opts)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(testContext(t), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		return n, conn
	}
	n, conn := start()
	stop := func() {
		conn.Close(context.Background())
		n.Close(context.Background())
	}
	wantRows(t, conn, "10min", "show percodb.gc_life")
	wantCode(t, conn, "55P02", "set percodb.gc_life = '1h'")
	wantCode(t, conn, "22023", "alter system set percodb.gc_life = '1ms'")
	wantCode(t, conn, "42704", "alter system set percodb.nonsense = 1")
	execAll(t, conn, "alter system set percodb.gc_life = '1s'", "create table g (id int primary key, n int)", "insert into g values (1, 0)")
	stop()
	n, conn = start()
	defer func() { stop() }()
	wantRows(t, conn, "1s", "show percodb.gc_life")
	wantRows(t, conn, "1000 ms", "select setting || ' ' || unit from pg_settings where name = 'percodb.gc_life'")
	begun := instant(t, conn)
	for i := range 50 {
		execAll(t, conn, fmt.Sprint("update g set n = ", i))
	}
	execAll(t, conn, "drop table if exists gone", "create table gone (id int)", "insert into gone values (1)", "drop table gone")
	passed := false
	for deadline := time.Now().Add(exchangeTimeout); !passed && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err := conn.QueryRow(testContext(t), "select current_setting('percodb.safe_point') <> 'none' and current_setting('percodb.safe_point')::timestamptz > $1::timestamptz", begun).Scan(&passed); err != nil {
			passed = false // "none" is not a time
		}
	}
	if !passed {
		t.Fatal("the safe point does not move")
	}
	pg := wantCode(t, conn, "22023", "select * from g as of system time '"+begun+"'")
	if !strings.Contains(pg.Message, "before the safe point 2") || !strings.Contains(pg.Hint, "gc_life") {
		t.Errorf("message %q, hint %q", pg.Message, pg.Hint)
	}
	wantCode(t, conn, "22023", "begin as of system time '"+begun+"'")
	wantRows(t, conn, "1 49", "select * from g as of system time '-20ms'")
	wantRows(t, conn, "true", "select current_setting('percodb.oldest_transaction')::timestamptz > '"+begun+"'")
	execAll(t, conn, "alter system reset percodb.gc_life")
	wantRows(t, conn, "10min", "show percodb.gc_life")
}

// Goal: AS OF SYSTEM TIME now() shows what was acknowledged before, also while the oracle is ahead of the clock.
// Method: a data directory whose window lies ten minutes in the future, as after a clock step backwards.
func TestAsOfNowWhileTheOracleIsAhead(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	engine, err := kv.OpenEngine(kv.EngineOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.WindowStore().Save(ctx, tso.FromPhysical(time.Now().Add(10*time.Minute).UnixMilli())); err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(ctx, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(ctx)
	c, err := pgx.Connect(ctx, "postgres://postgres@"+n.Addr().String()+"/percodb")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	execAll(t, c, "create table ahead (id int)", "insert into ahead values (1)")
	for _, at := range []string{"now()", "clock_timestamp()", "statement_timestamp()"} {
		wantRows(t, c, "1", "select count(*) from ahead as of system time "+at)
	}
	execAll(t, c, "begin as of system time now()")
	wantRows(t, c, "1", "select count(*) from ahead")
	execAll(t, c, "rollback")
}
