package builtin

// Goal: expressions have PostgreSQL's types, values and errors. Method: transcripts under
// testdata/expr contain expressions and PostgreSQL 15's results. The package is compared with them, and,
// with PERCODB_TEST_PG_DSN set, so is a live PostgreSQL, whose results "go test -run Expressions -rewrite" then
// records.

import (
	"flag"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

func rewriting() bool {
	f := flag.Lookup("rewrite")
	return f != nil && f.Value.String() == "true"
}

func TestExpressions(t *testing.T) {
	conn := connectPG(t)
	if rewriting() && conn == nil {
		t.Fatal("set PERCODB_TEST_PG_DSN: only PostgreSQL's answers are recorded")
	}
	if conn != nil {
		t.Run("postgresql", func(t *testing.T) {
			runExpressions(t, func(expr string) string { return askPG(t, conn, expr) })
		})
	}
	if !rewriting() {
		env := &Env{}
		runExpressions(t, func(expr string) string {
			v, err := evalSQL(env, expr)
			return show(env, v, err)
		})
	}
}

func runExpressions(t *testing.T, answer func(expr string) string) {
	datadriven.Walk(t, "testdata/expr", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			expected := strings.Split(d.Expected, "\n")
			for i, expr := range strings.Split(d.Input, "\n") {
				got := strings.ReplaceAll(answer(expr), "\n", `\n`)
				out.WriteString(got + "\n")
				if !rewriting() && (i >= len(expected) || !alike(got, expected[i])) {
					t.Errorf("%s: %s\n got %s\nwant %s", d.Pos, expr, got, expected[min(i, len(expected)-1)])
				}
			}
			if !rewriting() {
				return d.Expected // differences were reported line by line
			}
			return out.String()
		})
	})
}
