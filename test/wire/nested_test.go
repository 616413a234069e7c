package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Goal: the text of nested records, whose length is exponential in their depth, is refused before it is made, wherever a
// statement makes it. Method: a depth at which PostgreSQL, too, has no space for it; and a small one.
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

// Goal: what is reserved for the text of arrays and records is enough for it. Method: values with many quotes, at several depths.
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
