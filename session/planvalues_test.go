package session

import (
	"strings"
	"testing"
)

// Goal: the values of an execution decide its plan where the statistics tell values apart, and nowhere else. Method: a table of which few
// rows lie above a bound, and a frequent value beside rare ones; the plans that the session keeps, and EXPLAIN.
func TestPlansForValues(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	c.must(
		"CREATE TABLE events(id int PRIMARY KEY, at int NOT NULL, kind text NOT NULL, note text)",
		"INSERT INTO events SELECT i, (i * 7919) % 20011, CASE WHEN i % 1000 = 0 THEN 'rare' || i ELSE 'usual' END, 'x' FROM generate_series(1, 20000) i",
		"CREATE INDEX events_at ON events(at)", "CREATE INDEX events_kind ON events(kind)", "ANALYZE events",
		"PREPARE range(int) AS SELECT note FROM events WHERE at > $1", "PREPARE equal(text) AS SELECT note FROM events WHERE kind = $1",
		"PREPARE point(int, int) AS SELECT note FROM events WHERE id = $1 AND at > $2",
		"PREPARE soon(int) AS SELECT note FROM events WHERE at > $1 + 5 AND at < $1 + 10")
	for _, step := range []struct{ text, want string }{
		{"EXPLAIN EXECUTE range(20000)", "IndexScan events@events_at"}, {"EXPLAIN EXECUTE range(10)", "Scan events filter"},
		{"EXPLAIN EXECUTE equal('rare1000')", "IndexScan events@events_kind"}, {"EXPLAIN EXECUTE equal('usual')", "Scan events filter"},
		{"EXPLAIN EXECUTE soon(10000)", "IndexScan events@events_at"},
		{"EXPLAIN SELECT note FROM events WHERE at BETWEEN 10 AND 20", "IndexScan events@events_at"},
		{"EXPLAIN SELECT note FROM events WHERE at BETWEEN 10 AND 20000", "Scan events filter"},
		{"SET plan_cache_mode = force_generic_plan", "SET"}, {"EXPLAIN EXECUTE range(20000)", "Scan events filter"}, {"RESET plan_cache_mode", "RESET"},
	} {
		if got := c.query(step.text); !strings.Contains(got, step.want) || strings.Contains(step.want, "filter") && strings.Contains(got, "IndexScan") {
			t.Errorf("%s: %s, want %s", step.text, got, step.want)
		}
	}
	variants := func() int {
		n := 0
		for key := range c.plans.byKey {
			if strings.Contains(key, "\x04") {
				n++
			}
		}
		return n
	}
	before := variants()
	for _, text := range []string{"EXECUTE point(1, 5)", "EXECUTE point(1, 19999)", "EXECUTE point(1, NULL)"} {
		if got := c.query(text); strings.Contains(got, "error") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if n := variants(); n != before {
		t.Errorf("%d more plans for a read by the primary key", n-before)
	}
	// A literal of the same text counts as a parameter does, an error among values comes from the execution alone.
	for _, step := range []struct{ text, want string }{
		{"SELECT count(*), max(note) FROM events WHERE at > 20005", "row 5"}, {"SELECT count(*), max(note) FROM events WHERE at > 5", "row 19"},
		{"SELECT count(*), max(note) FROM events WHERE at > 20006", "row 4"}, {"EXECUTE range(NULL)", "SELECT 0"},
		{"EXECUTE range(2147483647)", "SELECT 0"}, {"EXECUTE soon(2147483647)", "error 22003"}, {"EXECUTE soon(100)", "SELECT"},
	} {
		if got := c.query(step.text); !strings.Contains(got, step.want) {
			t.Errorf("%s: %s, want %s", step.text, got, step.want)
		}
	}
	if n := variants(); n == before || n > before+8 {
		t.Errorf("%d plans for values", n-before)
	}
}
