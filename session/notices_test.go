package session

import "testing"

// Goal: the messages of a function reach the client in front of the error of the statement that calls it, without rows, and once if the
// statement runs again. Method: transcripts; a conflict with the first prewrite.
func TestNoticesOfFailedStatements(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	c.must("create table t (a int primary key)",
		"create function f(n int) returns int language plpgsql as 'begin raise notice ''n''; return 1 / n; end'",
		"create function g(n int) returns int language plpgsql as 'begin raise notice ''n''; insert into t values (n); return n; end'")
	c.transcript(`
		select f(0) → notice 00000; error 22012; I
		select f(n) from generate_series(1, 0, -1) n → notice 00000; notice 00000; error 22012; I
		select g(1) → columns g; notice 00000; row 1; SELECT 1; I
		select g(2), g(1) → notice 00000; notice 00000; error 23505; I
	`)
	s.conflicts.Store(1)
	c.transcript(`
		select g(3) → columns g; notice 00000; row 3; SELECT 1; I
	`)
}
