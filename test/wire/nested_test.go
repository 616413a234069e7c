package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Goal: the text of nested records, whose length is exponential in their depth, is refused before it is built, wherever
// a statement needs it. Method: a depth at which PostgreSQL runs out of memory, too; and a small one.
func TestTextOfNestedRecords(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	nested := func(depth int) string { return strings.Repeat("row(", depth) + "1" + strings.Repeat(")", depth) }
	deep := nested(200)
	for _, query := range []string{
		"select " + deep,
		"select " + deep + "::text",
		"select length(" + deep + "::text)",
		"select 'x' || " + deep,
		"select concat('x', " + deep + ")",
		"select concat_ws('x', " + deep + ", 1)",
		"select format('%s', " + deep + ")",
		"select array[" + deep + "]",
		"select array_to_string(array[" + deep + "], ',')",
		"select string_agg(" + deep + "::text, ',')",
		"select " + deep + " from generate_series(1, 3)",
	} {
		var v any
		if err := conn.QueryRow(ctx, query).Scan(&v); code(err) != "54000" {
			t.Errorf("%.40s: %v", query, err)
		}
	}
	var b bytes.Buffer
	if _, err := conn.PgConn().CopyTo(ctx, &b, "copy (select "+deep+") to stdout"); code(err) != "54000" {
		t.Errorf("copy: %v", err)
	}
	var got string
	if err := conn.QueryRow(ctx, "select "+nested(4)+"::text || ("+nested(2)+" is not null)").Scan(&got); err != nil || got != `("(""(""""(1)"""")"")")true` {
		t.Errorf("%s, %v", got, err)
	}
	isAlive(t)
}

// Goal: the memory reserved for the text of arrays and records is sufficient. Method: values with many quotes, at
// several depths.
func TestTextOfQuotes(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	for depth := range 8 {
		for _, leaf := range []string{`repeat('"', 2000)`, `repeat('\', 2000)`, `repeat('a', 3000)`, `array['"', '\', null, '']`} {
			value := strings.Repeat("row(", depth) + leaf + strings.Repeat(")", depth)
			var got, want int
			if err := conn.QueryRow(ctx, fmt.Sprintf("select length(%s::text), length(concat(%s))", value, value)).Scan(&got, &want); err != nil || got != want || got == 0 {
				t.Errorf("%s: %d, %d, %v", value, got, want, err)
			}
		}
	}
}

// Goal: a result has at most 1,664 columns, as in PostgreSQL: the protocol counts them with 16 bits.
func TestTooManyColumns(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	ones := func(n int) string { return strings.Repeat("1,", n-1) + "1" }
	execAll(t, conn, "drop table if exists wide_t", "create table wide_t (id int primary key)")
	for _, query := range []string{
		"select " + ones(1665), "values (" + ones(1665) + ")", "select 1 from (select " + ones(1665) + ") x", "select " + ones(70000),
		"select * from (select " + ones(1000) + ") a, (select " + ones(1000) + ") b", "insert into wide_t values (1) returning " + ones(1665),
		"select a.*, a.* from (select " + ones(1000) + ") a",
	} {
		if _, err := conn.Exec(ctx, query); code(err) != "54011" {
			t.Errorf("%.60s: %v", query, err)
		}
	}
	if got := len(open(t).query("select " + ones(1664))); got < 1664*2 {
		t.Errorf("1664 columns: %d bytes", got)
	}
	var b bytes.Buffer
	if _, err := conn.PgConn().CopyTo(ctx, &b, "copy (select "+ones(1665)+") to stdout"); code(err) != "54011" {
		t.Errorf("copy: %v", err)
	}
}
