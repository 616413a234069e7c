package session

import (
	"context"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
)

// sends checks what the client is sent for a text.
func (c *client) sends(text, want string) {
	c.t.Helper()
	if got, _ := strings.CutSuffix(c.query(text), "; "+string(c.Status())); got != want {
		c.t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
	}
}

// leftOf counts the records of temporary relations, and the spans that wait for the garbage collector.
func leftOf(t *testing.T, s *testServer) (records, dropped int) {
	t.Helper()
	ctx := context.Background()
	txn, err := s.deps.DB.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Close()
	it := txn.Scan(ctx, catalog.TemporaryRecords(), percolator.ScanOptions{})
	defer it.Close()
	for it.Next(ctx) {
		records++
	}
	spans, err := catalog.Dropped(ctx, txn)
	if err != nil || it.Err() != nil {
		t.Fatal(err, it.Err())
	}
	return records, len(spans)
}

// Goal: a temporary table is its session's: others do not see it, have their own of its name, do not wait for the block that makes it,
// and nothing is left of it when the session ends.
func TestTemporaryTablesOfSessions(t *testing.T) {
	s := newTestServer(t)
	a, b := s.connect(), s.connect()
	a.sends("begin; create temp table x (n serial primary key, v text); insert into x (v) values ('a')", "BEGIN; CREATE TABLE; INSERT 0 1")
	b.sends("create table y (n int)", "CREATE TABLE") // It does not wait for the block.
	b.sends("select * from x", "error 42P01")
	b.sends("create temp table x (n int); insert into x values (7); select * from x", "CREATE TABLE; INSERT 0 1; columns n; row 7; SELECT 1")
	a.sends("commit; select * from x", "COMMIT; columns n v; row 1 a; SELECT 1")
	b.sends("select * from x", "columns n; row 7; SELECT 1")
	if records, _ := leftOf(t, s); records != 3 {
		t.Errorf("%d records of two tables and a sequence", records)
	}
	a.Close()
	b.Close()
	if records, dropped := leftOf(t, s); records != 0 || dropped != 2 {
		t.Errorf("%d records are left, %d spans are queued", records, dropped)
	}
}

// Goal: what a killed process has left of temporary tables is removed when the next one starts.
func TestTemporaryTablesOfKilledProcess(t *testing.T) {
	s := newTestServer(t)
	a := s.connect()
	a.sends("create temp table x (n serial primary key, v text); insert into x (v) values ('a')", "CREATE TABLE; INSERT 0 1")
	next, err := catalog.New(context.Background(), s.deps.DB, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Close(context.Background()) }()
	if records, dropped := leftOf(t, s); records != 0 || dropped != 1 {
		t.Errorf("%d records are left, %d spans are queued", records, dropped)
	}
}

// Goal: plans of a session with temporary tables are right whatever its names mean meanwhile, and are not given to others.
func TestPlansOverTemporaryTables(t *testing.T) {
	s := newTestServer(t)
	a, b := s.connect(), s.connect()
	a.sends("create table x (v text); insert into x values ('permanent')", "CREATE TABLE; INSERT 0 1")
	read := func(c *client, want string) {
		t.Helper()
		c.sends("select v from x", "columns v; row "+want+"; SELECT 1")
	}
	for range 3 {
		read(a, "permanent")
		read(b, "permanent")
		a.sends("create temp table x (v text); insert into x values ('temporary')", "CREATE TABLE; INSERT 0 1")
		read(a, "temporary")
		read(b, "permanent")
		read(a, "temporary")
		a.sends("begin; drop table x", "BEGIN; DROP TABLE")
		read(a, "permanent")
		a.sends("rollback", "ROLLBACK")
		read(a, "temporary")
		a.sends("drop table x", "DROP TABLE")
	}
}
