package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// copyPieces are the parts of random COPY data: characters that are special in the formats, and values.
var copyPieces = map[string][]string{
	"text": {"1", "23", "x", "\t", "\t", "\n", "\n", "\n", `\`, `\`, `\N`, `\.`, "\r", "\r\n", `\n`, `\x41`, `\101`, "é", `\t`, ".", "{1,2}", "\t\\N"},
	"csv":  {"1", "23", "x", ",", ",", "\n", "\n", "\n", `"`, `"`, `""`, `\.`, "\r", "\r\n", `\`, "é", `"a,b"`, ".", `"{1,2}"`, ",,"},
}

// copyOutcome copies data into an empty table and describes the server's answer and the table's contents.
func copyOutcome(t *testing.T, conn *pgx.Conn, options, data string) string {
	t.Helper()
	ctx := testContext(t)
	execAll(t, conn, "delete from copylike_t")
	if _, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(data), "copy copylike_t from stdin "+options); err != nil {
		pg, ok := err.(*pgconn.PgError)
		if !ok {
			t.Fatalf("%q: %v", data, err)
		}
		return fmt.Sprintf("%s %s | %s", pg.Code, pg.Message, pg.Hint)
	}
	var b bytes.Buffer
	if _, err := conn.PgConn().CopyTo(ctx, &b, "copy (select * from copylike_t order by 1, 2, 3) to stdout (format csv, force_quote *)"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Goal: for any data the rows, or the error, are PostgreSQL's. Method: random data in text and csv, copied into both
// servers.
func TestCopyLikePostgreSQL(t *testing.T) {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		t.Skip("no PERCODB_TEST_PG_DSN")
	}
	ours := connect(t, "")
	theirs, err := pgx.Connect(testContext(t), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close(context.Background())
	for _, conn := range []*pgx.Conn{ours, theirs} {
		execAll(t, conn, "drop table if exists copylike_t", "create table copylike_t (a int, b text not null, c int[])")
	}
	compare := func(options, data string) {
		t.Helper()
		if loneCarriageReturn(data) {
			return
		}
		if got, want := copyOutcome(t, ours, options, data), copyOutcome(t, theirs, options, data); got != want {
			t.Errorf("copy %s of %q:\n%s\nPostgreSQL:\n%s", options, data, got, want)
		}
	}
	for _, data := range copyCases {
		compare("", data)
		compare("(format csv)", data)
		compare("(format csv, header match)", data)
		compare("(header)", data)
		compare("(delimiter '|', null 'x')", data)
	}
	r := rand.New(rand.NewPCG(9, 1))
	for range 3000 {
		for format, pieces := range copyPieces {
			var b strings.Builder
			for n := r.IntN(16); n >= 0; n-- {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			compare("(format "+format+")", b.String())
		}
		if t.Failed() {
			return
		}
	}
}

// loneCarriageReturn reports whether lines of data may end in a carriage return alone, which only PostgreSQL accepts:
// data contains one, and its first line may not end otherwise.
func loneCarriageReturn(data string) bool {
	first, _, ended := strings.Cut(data, "\n")
	return strings.Contains(strings.ReplaceAll(data, "\r\n", "\n"), "\r") &&
		(!ended || strings.ContainsAny(strings.TrimSuffix(first, "\r"), "\r\\\""))
}

// copyCases are data with one trait each.
var copyCases = []string{
	"", "\n", "1\n", "x\n", "1\ta\n", "x\ta\n", "1\ta\t{1}\n", "x\ta\t{1}\t4\n", "1\ta\t{x}\n", "1\ta\t\\N\n2\tb\t{}\n",
	"1\ta\\\nb\t\\N\n", "1\ta\\", "1\ta\\.\n", "1\ta\t\\N\\.\n9\tx\t{}\n", "\\.", "\\.x\n", "1\ta\t{}\n\\.\nx\n", "1\ta\t{}\r\n\\.\n", "1\ta\t{}\n\\.\r\n",
	"1\ta\t{}\r\n2\tb\t{}\r\n", "1\ta\t{}\r\n2\tb\t{}\n", "1\ta\t{}\n2\tb\t{}\r\n", "1\ta\t{}\n2\tb\rc\t{}\n", "1\ta\t{}\r\n2\tb\t{}", "1\ta\t{}\n2\t\\\r\t{}\n",
	"1,a,{}\n2,\"b\r\nc\",{}\n", "1,a,{}\r\n2,\"b\nc\",{}\r\n", "1,\"a\n", "1,a\n2,b,{},4\n", "1,a\rb,{}\r\n", "a,b,c\n1,x,{}\n", "a,b\n", "1|x|{}\n", "x|x|x\n",
}
