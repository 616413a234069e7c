package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/memory"
)

// inList is a query with n literals.
func inList(n int) string { return "select 1 where 1 in (0" + strings.Repeat(",1", n) + ")" }

// Goal: a long text draws from the server's memory while its statement runs or is kept, by whichever way it comes, and
// gives it back; each statement of a text does so when it has ended.
func TestLongTextsInSessions(t *testing.T) {
	const n = 20_000
	server := newTestServer(t)
	pool := memory.NewPool("a test", 32<<20)
	server.deps.Memory = pool
	c := server.connect()
	idle := func(after string) {
		t.Helper()
		if used := c.memory.Used(); used > 64<<10 {
			t.Errorf("%d bytes are in use after %s", used, after)
		}
	}
	kept := func(by string) { // its literals: the plan is the server's
		t.Helper()
		if used := c.memory.Used(); used < n*30 {
			t.Errorf("%d bytes are in use by %s", used, by)
		}
	}
	long := inList(n)
	for range 10 {
		c.must(long)
	}
	idle("a query")
	c.must("explain " + long)
	idle("EXPLAIN")
	c.must(strings.Repeat(long+";", 4))
	idle("a text of several statements")
	if got := c.query(inList(20 * n)); !strings.Contains(got, "error 53200") {
		t.Errorf("a text that is too long: %s", got)
	}
	idle("an error")
	c.must("prepare p as "+long, "execute p", "execute p")
	kept("PREPARE")
	c.must("deallocate p")
	idle("DEALLOCATE")
	c.must("begin", "declare d cursor for "+long, "fetch all d")
	kept("DECLARE")
	c.must("close d", "commit")
	idle("CLOSE")
	for i, name := range []string{"a", "b", ""} {
		if err := c.Parse(name, long, nil); err != nil {
			t.Fatal(err)
		}
		if used := c.memory.Used(); used < int64(i+1)*n*30 {
			t.Errorf("%d bytes are in use by %d statements", used, i+1)
		}
	}
	for i := range 2 {
		portal := fmt.Sprint("p", i)
		if err := c.Bind(BindRequest{Statement: "a", Portal: portal}); err != nil {
			t.Fatal(err)
		}
		if err := c.Execute(portal, 0, c); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Parse("c", inList(20*n), nil); ToPGError(err).Code != "53200" {
		t.Errorf("Parse of a text that is too long: %v", err)
	}
	c.CloseStatement("a")
	c.CloseStatement("b")
	c.CloseStatement("")
	idle("Close")
	c.Close()
	if used := pool.Used(); used != 0 {
		t.Errorf("%d bytes are left over", used)
	}
}

// Goal: a statement too long for a plan's key is refused parameters in a simple query, as others are.
func TestLongTextWithParameter(t *testing.T) {
	c := newTestServer(t).connect()
	if got := c.query("select $1 order by '" + strings.Repeat("x", 2<<20) + "'"); !strings.Contains(got, "error 42P02") {
		t.Error(got)
	}
}
