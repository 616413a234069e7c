package session

import (
	"strings"
	"testing"
)

// Goal: a statement is attempted again under the policies that allow it, and the client is sent one result. Method: the
// commit of each statement meets a number of conflicts; the row shows how often the statement took effect.
func TestRetryByPolicy(t *testing.T) {
	for _, c := range []struct {
		name      string
		before    string
		run       func(*client) string
		conflicts int32
		want      string // what the client is sent
		row       string // afterwards
		retries   int
	}{
		{"alone", "", func(c *client) string { return c.query("update t set n = n + 1") }, 2, "UPDATE 1; I", "1", 2},
		{"alone, with a result", "", func(c *client) string { return c.query("update t set n = n + 1 returning n") }, 2, "columns n; row 1; UPDATE 1; I", "1", 2},
		{"EXECUTE", "prepare p as update t set n = n + $1", func(c *client) string { return c.query("execute p(1)") }, 2, "UPDATE 1; I", "1", 2},
		{"COPY", "", func(c *client) string {
			c.input = "2\t7\n"
			return c.query("copy t from stdin")
		}, 2, "copy in; COPY 1; I", "0 7", 2},
		{"several statements of a text", "", func(c *client) string { return c.query("update t set n = n + 1; update t set n = n + 1") }, 1,
			"UPDATE 1; UPDATE 1; error 40001; I", "0", 0},
		{"block", "begin; update t set n = n + 1", func(c *client) string { return c.query("commit") }, 1, "error 40001; I", "0", 0},
		{"alone in a pipeline", "", func(c *client) string { return c.pipeline("update t set n = n + $1 | 1") }, 2, "parsed; UPDATE 1; I", "1", 2},
		{"EXECUTE alone in a pipeline", "prepare p as update t set n = n + $1", func(c *client) string { return c.pipeline("execute p(1)") }, 2, "parsed; UPDATE 1; I", "1", 2},
		{"RETURNING alone in a pipeline", "", func(c *client) string { return c.pipeline("update t set n = n + 1 returning n") }, 2, "parsed; row 1; UPDATE 1; I", "1", 2},
		{"with others in a pipeline", "", func(c *client) string { return c.pipeline("update t set n = n + 1", "update t set n = n + 1") }, 1,
			"parsed; UPDATE 1; parsed; UPDATE 1; error 40001; I", "0", 0},
		{"in vain", "", func(c *client) string { return c.query("update t set n = n + 1") }, 1 << 20, "error 40001; I", "0", maxAttempts},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestServer(t)
			client := s.connect()
			client.must("create table t (id int primary key, n int)", "insert into t values (1, 0)")
			if c.before != "" {
				client.must(c.before)
			}
			before := counted(t, s.deps.Metrics.StatementRetries)
			s.conflicts.Store(c.conflicts)
			if got := c.run(client); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			s.conflicts.Store(0)
			if got := client.query("select n from t order by id"); rowsOf(got) != c.row {
				t.Errorf("rows: %s, want %s", got, c.row)
			}
			if got := counted(t, s.deps.Metrics.StatementRetries) - before; got != c.retries {
				t.Errorf("%d retries, want %d", got, c.retries)
			}
		})
	}
}

// rowsOf returns the rows of a transcript's line.
func rowsOf(line string) string {
	var rows []string
	for _, part := range strings.Split(line, "; ") {
		if row, ok := strings.CutPrefix(part, "row "); ok {
			rows = append(rows, row)
		}
	}
	return strings.Join(rows, " ")
}
