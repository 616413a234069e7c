package wire_test

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/invariants"
)

// Goal: frequent statements stay within their allocation budgets, from the socket to the store and back. Method:
// prepared byte sequences, so that only the server allocates.
func TestAllocationBudget(t *testing.T) {
	r := open(t)
	r.query("drop table if exists alloc_t")
	r.query("create table alloc_t (id int primary key, n int, filler char(84))")
	r.query("insert into alloc_t select g, 0, 'x' from generate_series(1, 1000) g")
	r.query("create table if not exists alloc_log (a int, b int)")
	r.send(parse("get", "select n from alloc_t where id = $1"), parse("set", "update alloc_t set n = n + $1 where id = $2"),
		parse("log", "insert into alloc_log values ($1, $2)"), syncing)
	r.ready()
	bytesOf := func(ms ...pgproto3.FrontendMessage) (b []byte) {
		for _, m := range ms {
			var err error
			if b, err = m.Encode(b); err != nil {
				t.Fatal(err)
			}
		}
		return b
	}
	cases := []struct {
		name    string
		message []byte
		budget  float64
	}{
		{"point read, prepared", bytesOf(bind("", "get", "500"), execute("", 0), syncing), 4},
		{"point read, simple", bytesOf(&pgproto3.Query{String: "select n from alloc_t where id = 500"}), 3},
		{"one-row update, prepared", bytesOf(bind("", "set", "1", "500"), execute("", 0), syncing), 18},
		{"one-row insert, prepared", bytesOf(bind("", "log", "1", "2"), execute("", 0), syncing), 20},
	}
	for _, c := range cases {
		answer := make([]byte, 4096)
		trip := func() { roundTrip(t, r.conn, c.message, answer) }
		trip()
		got := testing.AllocsPerRun(200, trip)
		for range 4 { // Background work of the server may allocate in one of them.
			got = min(got, testing.AllocsPerRun(200, trip))
		}
		t.Logf("%s: %.1f allocations", c.name, got)
		if got > c.budget && !raceEnabled && !invariants.Enabled {
			t.Errorf("%s: %.1f allocations, budget %.0f", c.name, got, c.budget)
		}
	}
}

// roundTrip sends bytes and reads up to ReadyForQuery outside a transaction.
func roundTrip(t *testing.T, conn net.Conn, message, answer []byte) {
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
	n := 0
	for n < 6 || string(answer[n-6:n]) != "Z\x00\x00\x00\x05I" {
		m, err := conn.Read(answer[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
}
