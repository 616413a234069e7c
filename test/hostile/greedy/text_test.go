package greedy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// longText is before, n elements made by f with commas between them, and after.
func longText(before string, n int, f func(b *strings.Builder, i int), after string) string {
	var b strings.Builder
	b.WriteString(before)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		f(&b, i)
	}
	b.WriteString(after)
	return b.String()
}

func number(b *strings.Builder, i int) { fmt.Fprint(b, i) }

func row(b *strings.Builder, i int) { fmt.Fprintf(b, "(%d,1,'x')", i) }

func literal(b *strings.Builder, i int) { b.WriteString("'" + strings.Repeat("x", i) + "'") }

// longTexts make texts of about n tokens or a multiple of it.
var longTexts = []struct {
	name string
	text func(n int) string
}{
	{"IN", func(n int) string { return longText("select count(*) from texts where i in (", n, number, ")") }},
	{"GROUP BY", func(n int) string {
		return longText("select n, count(*) from texts where i in (", n, number, ") group by n")
	}},
	{"NOT IN", func(n int) string { return longText("select count(*) from texts where i + 1 not in (", n, number, ")") }},
	{"VALUES", func(n int) string { return longText("insert into texts values ", n/4, row, "") }},
	{"FROM VALUES", func(n int) string { return longText("select count(*) from (values ", n/4, row, ") v") }},
	{"ARRAY", func(n int) string { return longText("select cardinality(array[", n, number, "])") }},
	{"statements", func(n int) string {
		return strings.Repeat("select 1, 2, 3;", n/6)
	}},
	{"comment", func(n int) string { return "select /*" + strings.Repeat("/**/", 2*n) + "*/ 1" }},
	{"escapes", func(n int) string { return "select length(E'" + strings.Repeat(`\n`, 4*n) + "')" }},
	{"modifiers", func(n int) string { return "select " + strings.Repeat("(", n) + strings.Repeat(")'x'", n) }},
	{"minima", func(n int) string {
		return longText("select count(*) from texts where i in (", n/2, func(b *strings.Builder, i int) { b.WriteString("-2147483648") }, ")")
	}},
}

// send runs a text by the simple protocol, or has it parsed and run by the extended one.
func send(ctx context.Context, conn *pgx.Conn, text string, extended bool) error {
	if !extended {
		_, err := conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	return conn.PgConn().ExecParams(ctx, text, nil, nil, nil, nil).Read().Err
}

func codeOf(err error) string {
	var e *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return err.Error()
}

// Goal: a long text is subject to the timeout from its first token on, whichever pass it is in, and the session goes on.
// The bound is generous: machines under load are slow. That all passes poll is tested without a clock in the packages sql
// and planner.
func TestLongTextsAreCancelled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const size, tooLong = 400_000, 30 * time.Second
	s := start(t, "--memory", "4GB")
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table texts (i int primary key, n int, t text); insert into texts values (1, 1, '')"); err != nil {
		t.Fatal(err)
	}
	for _, c := range longTexts {
		text := c.text(size)
		for i, timeout := range []time.Duration{30, 300} {
			if _, err := conn.Exec(ctx, fmt.Sprintf("set statement_timeout = %d", timeout)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err := send(ctx, conn, text, i%2 == 1)
			took := time.Since(began)
			t.Logf("%s, %d MB, timeout %d ms: %v, %s", c.name, len(text)>>20, timeout, took, codeOf(err))
			// A fast machine finds the end of a text: some are no statements (42601), are nested too deeply (54001), or
			// insert a row that exists (23505).
			if code := codeOf(err); !slices.Contains([]string{"57014", "42601", "54001", "23505", ""}, code) {
				t.Errorf("%s, timeout %d ms: %v", c.name, timeout, err)
			}
			if took > timeout*time.Millisecond+tooLong {
				t.Errorf("%s, timeout %d ms: ended after %v", c.name, timeout, took)
			}
		}
	}
}

// Goal: a text that needs more memory than the server may use ends with an error that says so, by either protocol, and the
// process stays within its bound.
func TestLongTextsDrawMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const bound, slack = 1 << 30, 256 << 20
	s := start(t, "--memory", "1GB")
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table texts (i int primary key, n int, t text)"); err != nil {
		t.Fatal(err)
	}
	for _, c := range longTexts[:4] {
		text := c.text(8_000_000)
		for _, extended := range []bool{false, true} {
			if code := codeOf(send(ctx, conn, text, extended)); code != "53200" {
				t.Errorf("%s, extended %v: got %q", c.name, extended, code)
			}
			t.Logf("%s, %d MB, extended %v: at most %d MB", c.name, len(text)>>20, extended, s.resident(t, "VmHWM")>>20)
		}
	}
	for _, size := range []int{200 << 20, 900 << 20} {
		text := longText("select length(", 1, func(b *strings.Builder, _ int) { literal(b, size) }, ")")
		for _, extended := range []bool{false, true} {
			code := codeOf(send(ctx, conn, text, extended))
			if code != "53200" {
				t.Errorf("a literal of %d MB, extended %v: got %q", size>>20, extended, code)
			}
			t.Logf("a literal of %d MB, extended %v: %q; at most %d MB", size>>20, extended, code, s.resident(t, "VmHWM")>>20)
		}
	}
	if peak := s.resident(t, "VmHWM"); peak > bound+slack {
		t.Errorf("the process took %d MB, it was started with %d", peak>>20, bound>>20)
	}
	var one int
	if err := conn.QueryRow(ctx, "select 1").Scan(&one); err != nil {
		t.Errorf("the session does not go on: %v", err)
	}
}
