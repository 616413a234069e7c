package damage

import (
	"strings"
	"testing"
	"time"
)

// Goal: a start right behind kill -9 waits for the process to be gone; one beside a process that goes on is refused in
// seconds. Method: a start while the first process runs, and another one during which the first is killed.
func TestStartBehindKill(t *testing.T) {
	t.Parallel()
	binary, dir := build(t), t.TempDir()
	first, second, third := freeAddr(t), freeAddr(t), freeAddr(t)
	p := launch(t, binary, "--listen", first, "--data", dir)
	mustExec(t, connect(t, p, first), "create table t (id int primary key)")

	began := time.Now()
	beside := launch(t, binary, "--listen", second, "--data", dir)
	if conn := connect(t, beside, second); conn != nil {
		t.Fatal("two servers have one directory")
	}
	if took := time.Since(began); took < 3*time.Second || took > time.Minute || !strings.Contains(beside.Output(), "is in use by another percodb process") {
		t.Errorf("refused after %v:\n%s", took, beside.Output())
	}

	behind := launch(t, binary, "--listen", third, "--data", dir)
	time.Sleep(500 * time.Millisecond) // Until it waits; a start that is slower finds the directory free.
	p.Kill()
	conn := connect(t, behind, third)
	if conn == nil {
		t.Fatalf("the start did not wait:\n%s", behind.Output())
	}
	mustExec(t, conn, "insert into t values (1)")
}
