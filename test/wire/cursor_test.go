package wire_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/node"
)

// openPortal binds a query to a portal in a block, and fetches some of its rows: none if rows is 0.
func (s *script) openPortal(session, portal, query string, rows uint32) {
	s.t.Helper()
	f := s.connection(session).PgConn().Frontend()
	f.SendParse(&pgproto3.Parse{Query: query})
	f.SendBind(&pgproto3.Bind{DestinationPortal: portal})
	if rows > 0 {
		f.SendExecute(&pgproto3.Execute{Portal: portal, MaxRows: rows})
	}
	s.sync(session, nil)
}

// fetchPortal fetches and returns the remaining rows of a portal.
func (s *script) fetchPortal(session, portal string) string {
	s.t.Helper()
	var got []string
	s.connection(session).PgConn().Frontend().SendExecute(&pgproto3.Execute{Portal: portal})
	s.sync(session, func(m pgproto3.BackendMessage) {
		if row, ok := m.(*pgproto3.DataRow); ok {
			got = append(got, fmt.Sprintf("(%s)", strings.Join(texts(row.Values), ",")))
		}
	})
	return strings.Join(got, " ")
}

func texts(values [][]byte) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// sync sends Sync and calls see with what arrives up to ReadyForQuery.
func (s *script) sync(session string, see func(pgproto3.BackendMessage)) {
	s.t.Helper()
	c := s.connection(session).PgConn()
	c.Frontend().SendSync(&pgproto3.Sync{})
	if err := c.Frontend().Flush(); err != nil {
		s.t.Fatal(err)
	}
	for {
		m, err := c.ReceiveMessage(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			return
		case *pgproto3.ErrorResponse:
			s.t.Fatalf("error %s %s", m.Code, m.Message)
		}
		if see != nil {
			see(m)
		}
	}
}

// openQueries are plans of one result: read with one iterator, fetched through an index, joined, grouped.
var openQueries = []string{
	"select id, v from cursor_t",
	"select id, v from cursor_t where v >= 10",
	"select a.id, a.v from cursor_t a join cursor_t b on a.id = b.id",
	"with c as (select id, v from cursor_t) select id, v from c",
	"select id, max(v) from cursor_t group by id order by id",
	"select id, (select max(v) from cursor_t b where b.id = a.id) from cursor_t a",
}

// Goal: what an open portal or cursor has read, or has read ahead because the transaction changes rows, belongs to its
// transaction's reads: if it has changed, the snapshot is not advanced. Method: at each level and for several plans, a
// statement of the transaction waits for a row, whose owner changes, or does not change, what the portal reads.
func TestSnapshotsOfOpenPortals(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists cursor_t, cursor_other
		a: create table cursor_t (id int primary key, v int)
		a: create index cursor_i on cursor_t (v)
		a: create table cursor_other (id int primary key, v int)
		b: select 1 → rows (1)
	`)
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		for _, query := range openQueries {
			for _, kind := range []string{"cursor", "cursor partly fetched", "portal partly fetched"} {
				for _, changes := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/%v", level, query, kind, changes), func(t *testing.T) {
						s.t = t
						s.openPortalThenWait(level, query, kind, changes)
					})
				}
			}
		}
	}
}

func (s *script) openPortalThenWait(level, query, kind string, changes bool) {
	s.t.Helper()
	s.run(`
		a: delete from cursor_t
		a: delete from cursor_other
		a: insert into cursor_t values (1, 10), (2, 20), (3, 30)
		a: insert into cursor_other values (7, 0)
		a: begin isolation level ` + level + ` → BEGIN
	`)
	rest := "(1,10) (2,20) (3,30)"
	switch kind {
	case "cursor", "cursor partly fetched":
		s.run("a: declare c cursor for " + query)
		if kind != "cursor" {
			rest = "(2,20) (3,30)"
			s.run("a: fetch c → rows (1,10)")
		}
	default:
		rest = "(2,20) (3,30)"
		s.openPortal("a", "c", query, 1)
	}
	s.run(`
		b: begin → BEGIN
		b: update cursor_other set v = 1 where id = 7 → UPDATE 1
	`)
	if changes {
		s.run("b: insert into cursor_t values (4, 40) → INSERT 0 1\nb: update cursor_t set v = 31 where id = 3 → UPDATE 1")
	}
	s.run("a: update cursor_other set v = v + 10 where id = 7 returning v → waits\nb: commit → COMMIT")
	if level != "read committed" && (changes || s.postgres) {
		s.run("a → error 40001 could not serialize access due to concurrent update\na: rollback → ROLLBACK")
		return
	}
	s.run("a → rows (11)\na: insert into cursor_t values (9, 90) → INSERT 0 1")
	if kind == "portal partly fetched" {
		if got := s.fetchPortal("a", "c"); got != rest {
			s.t.Fatalf("the portal shows %s", got)
		}
	} else {
		s.run("a: fetch all from c → rows " + rest)
	}
	s.run("a: commit → COMMIT")
}

// Goal: a serializable transaction does not commit if what its cursor has read, ahead of a statement that then waited,
// has changed.
func TestSerializableCursor(t *testing.T) {
	s := newScript(t)
	s.mode = pgx.QueryExecModeSimpleProtocol
	s.run(`
		a: drop table if exists skew_a, skew_b
		a: create table skew_a (id int primary key, v int)
		a: create table skew_b (id int primary key, v int)
		a: insert into skew_a values (1, 1), (2, 2)
		a: insert into skew_b values (1, 1), (2, 2)
		a: begin isolation level serializable → BEGIN
		b: begin isolation level serializable → BEGIN
		a: declare c cursor for select sum(v) from skew_a
		b: declare c cursor for select sum(v) from skew_b
		a: update skew_b set v = 10 where id = 1 → UPDATE 1
		b: update skew_a set v = 10 where id = 2 → UPDATE 1
		a: fetch c → rows (3)
		b: fetch c → rows (3)
		a: commit → COMMIT
		b: commit → error 40001 could not serialize access due to read/write dependencies among transactions
	`)
}

// Goal: a cursor declared before a savepoint shows its rows whatever was done and rolled back after the savepoint,
// including schema changes.
func TestCursorsAndSavepoints(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists save_t, save_u
		a: create table save_t (id int primary key, v int)
		a: insert into save_t values (1, 10), (2, 20), (3, 30)
	`)
	for _, query := range []string{"select * from save_t", "select * from save_t order by v", "select a.* from save_t a join save_t b using (id)"} {
		s.run(`
			a: begin → BEGIN
			a: declare c cursor for ` + query + ` → DECLARE CURSOR
			a: savepoint s → SAVEPOINT
			a: create table save_u (id int primary key) → CREATE TABLE
			a: update save_t set v = v + 1 → UPDATE 3
			a: fetch c → rows (1,10)
			a: rollback to s → ROLLBACK
			a: fetch c → rows (2,20)
			a: insert into save_t values (4, 40) → INSERT 0 1
			a: rollback to s → ROLLBACK
			a: fetch all from c → rows (3,30)
			a: rollback → ROLLBACK
		`)
	}
}

// Goal: cursors that keep their rows show them all, in order: WITH HOLD after the transaction, FOR UPDATE with the rows
// locked, whatever other transactions and the transaction itself do; likewise a partly executed EXECUTE.
func TestKeptRows(t *testing.T) {
	s := newScript(t)
	s.run(`
		a: drop table if exists kept_t
		a: create table kept_t (id int primary key, v int)
		a: insert into kept_t select i, i from generate_series(1, 1000) i
		a: begin → BEGIN
		a: declare h cursor with hold for select id, v from kept_t → DECLARE CURSOR
		a: declare u cursor for select id, v from kept_t where id <= 3 for update → DECLARE CURSOR
		percodb b: update kept_t set v = 0 where id = 2 → waits
		a: update kept_t set v = -1 → UPDATE 1000
		a: fetch 2 from u → rows (1,1) (2,2)
		a: fetch 2 from h → rows (1,1) (2,2)
		a: fetch 2 from u → rows (3,3)
		a: fetch 2 from u → rows
		a: commit → COMMIT
		percodb b → UPDATE 1
		a: fetch u → error 34000 cursor "u" does not exist
		a: move 900 from h → MOVE 900
		a: fetch h → rows (903,903)
		a: begin → BEGIN
		a: move all from h → MOVE 97
		a: rollback → ROLLBACK
		a: fetch h → rows
		a: close h → CLOSE CURSOR
		a: begin isolation level serializable → BEGIN
		a: declare h cursor with hold for select id from kept_t → DECLARE CURSOR
		a: insert into kept_t values (2000, 0) → INSERT 0 1
		a: commit → COMMIT
		a: move all from h → MOVE 1000
		a: close all → CLOSE CURSOR ALL
		a: prepare kept_p as select id from kept_t where id < 900 → PREPARE
		a: begin → BEGIN
	`)
	s.openPortal("a", "p", "execute kept_p", 2)
	if got := strings.Fields(s.fetchPortal("a", "p")); len(got) != 897 || got[0] != "(3)" || got[896] != "(899)" {
		t.Fatalf("%d rows of EXECUTE, %v …", len(got), got[:1])
	}
	s.run("a: commit → COMMIT")
}

// Goal: rows that cursors keep beyond their statement's memory go to a file, which is removed with the cursor or the
// session. Method: a server with little memory; count its unlinked open files.
func TestKeptRowsBeyondMemory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	opts := options(t.TempDir())
	opts.Memory = memory.NewPool("server", 64<<20)
	n, err := node.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	conn.Config().DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	exec := func(statement, tag string) {
		t.Helper()
		got, err := conn.Exec(t.Context(), statement)
		if err != nil || got.String() != tag {
			t.Fatalf("%s: %v, %v", statement, got, err)
		}
	}
	files := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(exchangeTimeout); ; time.Sleep(time.Millisecond) {
			got := 0
			links, _ := filepath.Glob("/proc/self/fd/*")
			for _, link := range links {
				if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir+"/percodb-temp") {
					got++
				}
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d temporary files, want %d", got, want)
			}
		}
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("open files cannot be seen here")
	}
	exec("create table beyond_t (id int primary key, v text)", "CREATE TABLE")
	exec("insert into beyond_t select i, repeat('x', 1000) from generate_series(1, 12000) i", "INSERT 0 12000")
	exec("begin", "BEGIN")
	exec("declare h cursor with hold for select * from beyond_t", "DECLARE CURSOR")
	exec("declare u cursor for select * from beyond_t for update", "DECLARE CURSOR")
	exec("declare j cursor for select a.id, a.v from beyond_t a join beyond_t b using (id)", "DECLARE CURSOR")
	exec("move 5 from j", "MOVE 5")
	exec("update beyond_t set v = '' where id = 12000", "UPDATE 1")
	files(3)
	exec("move 12000 from j", "MOVE 11995")
	exec("move 11999 from u", "MOVE 11999")
	var id int
	if err := conn.QueryRow(t.Context(), "fetch u").Scan(&id, new(string)); err != nil || id != 12000 {
		t.Fatal(id, err)
	}
	exec("commit", "COMMIT")
	files(1)
	exec("move 11999 from h", "MOVE 11999")
	var v string
	if err := conn.QueryRow(t.Context(), "fetch h").Scan(&id, &v); err != nil || id != 12000 || len(v) != 1000 {
		t.Fatal(id, len(v), err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // finalizers would close leaked files
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	files(0)
}
