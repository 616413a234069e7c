package wire_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/node"
)

// Goal: what a statement of a PL/pgSQL function has reserved for values is given back when it ends, however it ends: a function that has few values
// at a time may run as long as it wants. Method: loops that make 100 MB in all, on a server that has 64.
func TestFunctionsGiveBackMemory(t *testing.T) {
	opts := options(t.TempDir())
	opts.Memory = memory.NewPool("server", 64<<20)
	n, err := node.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for name, body := range map[string]string{
		"element":   "a[1] := repeat('x', 1000000)",
		"condition": "if length(repeat('x', 1000000)) < i then null; end if",
		"continue":  "if length(repeat('x', 1000000)) > i then continue; end if",
		"case":      "case length(repeat('x', 1000000)) when 1 then null; else null; end case",
		"while":     "while length(repeat('x', 1000000)) < i loop null; end loop",
		"raise":     "raise debug '%', repeat('x', 1000000)",
		"perform":   "perform length(repeat('x', 1000000) || i)",
		"loop":      "for j in 1..length(repeat('x', 1000000)) loop exit; end loop",
	} {
		_, err := conn.Exec(testContext(t), "do $$ declare a text[]; begin for i in 1..100 loop "+body+"; end loop; end $$")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Goal: open cursors count as memory, until they are closed. Method: on such a server, a loop that closes what it opens, and one that does not.
func TestCursorsTakeMemory(t *testing.T) {
	opts := options(t.TempDir())
	opts.Memory = memory.NewPool("server", 64<<20)
	n, err := node.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ctx := testContext(t)
	_, err = conn.Exec(ctx, "do $$ declare c refcursor; begin for i in 1..10000 loop open c for select 1; close c; c := null; end loop; end $$")
	if err != nil {
		t.Error(err)
	}
	_, err = conn.Exec(ctx, "do $$ declare c refcursor; begin loop open c for select 1; c := null; end loop; end $$")
	if code(err) != "53200" {
		t.Errorf("%v, want 53200", err)
	}
}
