package greedy

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// repeated yields a text again and again, between a beginning and an end.
func repeated(before, text string, n int, after string) io.Reader {
	block := strings.Repeat(text, 1<<16/len(text))
	readers := []io.Reader{strings.NewReader(before)}
	for range n / len(block) {
		readers = append(readers, strings.NewReader(block))
	}
	return io.MultiReader(append(readers, strings.NewReader(after))...)
}

// Goal: the rows of COPY FROM count in the server's memory: its lines, its fields and the elements of arrays. Method: lines that
// end late, or whose values take many times their size, into a server with little memory.
func TestGreedyCopy(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := start(t, "--memory", "300MB")
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table copied (i int[], t text)"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, options, want string
		data                io.Reader
	}{
		{"array", "", "53200", repeated("{1", ",1", 40<<20, "}\tx\n")},
		{"array in csv", "(format csv)", "53200", repeated("\"{1", ",1", 40<<20, "}\",x\n")},
		{"long line", "", "53200", repeated("{1}\t", "abcd", 216<<20, "\n")},
		{"long line with escapes", "", "53200", repeated("{1}\t", "\\n", 216<<20, "\n")},
		{"long quoted field", "(format csv)", "53200", repeated("{1},\"", "abc\n", 250<<20, "\"\n")},
		{"fields", "", "22P04", repeated("{1}\tx", "\t", 16<<20, "\n")},
		{"fields in csv", "(format csv)", "22P04", repeated("{1},x", ",", 16<<20, "\n")},
	} {
		var answer *pgconn.PgError
		if _, err := conn.PgConn().CopyFrom(ctx, c.data, "copy copied from stdin "+c.options); !errors.As(err, &answer) || answer.Code != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		t.Logf("%s: %d MB resident at most", c.name, s.resident(t, "VmHWM")>>20)
	}
	if peak := s.resident(t, "VmHWM"); peak > 900<<20 {
		t.Errorf("%d MB were resident", peak>>20)
	}
	if _, err := conn.PgConn().CopyFrom(ctx, repeated("{1}\tx\n", "{2,3}\ty\n", 1<<20, ""), "copy copied from stdin"); err != nil {
		t.Errorf("a modest COPY: %v", err)
	}
}
