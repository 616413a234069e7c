package planner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
)

// repeatText joins f(0) to f(n-1) by sep.
func repeatText(n int, sep string, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, sep)
}

// Goal: planning takes time in proportion to a statement's length. Method: each form with many items; planning
// must not take longer than a few times what parsing the text takes, which is linear. Where each item is compared
// with all before it, it takes 20 to 100 times as long.
func TestPlanningTimeIsLinear(t *testing.T) {
	const items, bound = 32_000, 10
	for _, c := range []struct {
		name string
		text func(n int) string
	}{
		{"VALUES", func(n int) string {
			return "INSERT INTO t1 VALUES " + repeatText(n, ",", func(i int) string { return fmt.Sprintf("(%d,1,1,1,%d)", i, i+1) })
		}},
		{"IN over a key", func(n int) string {
			return "SELECT a FROM t1 WHERE a IN (" + repeatText(n, ",", func(i int) string { return fmt.Sprint(i) }) + ")"
		}},
		{"NOT IN", func(n int) string {
			return "SELECT a FROM t1 WHERE b + 1 NOT IN (" + repeatText(n, ",", func(i int) string { return fmt.Sprint(i) }) + ")"
		}},
		{"ARRAY", func(n int) string {
			return "SELECT a FROM t1 WHERE a = ANY (ARRAY[" + repeatText(n, ",", func(i int) string { return fmt.Sprint(i) }) + "])"
		}},
		{"OR", func(n int) string {
			return "SELECT a FROM t1 WHERE " + repeatText(n/2, " OR ", func(i int) string { return fmt.Sprintf("a = %d", i) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			parse, plan := parseAndPlan(t, c.text(items))
			t.Logf("parse %v, plan %v", parse, plan)
			if plan > bound*parse {
				t.Errorf("planning takes %.0f times as long as parsing", float64(plan)/float64(parse))
			}
		})
	}
}

// parseAndPlan returns the shortest times of a few runs.
func parseAndPlan(t *testing.T, text string) (parse, plan time.Duration) {
	m := newMemCatalog()
	if err := m.define(benchSchema); err != nil {
		t.Fatal(err)
	}
	parse, plan = time.Hour, time.Hour
	for range 8 {
		began := time.Now()
		lexer := sql.NewLexer()
		lexer.Reset(text)
		st, err := lexer.Next()
		if err != nil {
			t.Fatal(err)
		}
		tree, err := sql.Parse(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		parsed := time.Now()
		if _, err := Build(context.Background(), tree, m, &builtin.Env{}, Options{Literals: st.Literals}); err != nil {
			t.Fatal(err)
		}
		parse, plan = min(parse, parsed.Sub(began)), min(plan, time.Since(parsed))
	}
	return parse, plan
}
