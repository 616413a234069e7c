package damage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/process"
)

var (
	rounds = flag.Int("rounds", 8, "how many damaged directories to try")
	seed   = flag.Uint64("seed", 1, "what damage is drawn from")
)

// build compiles percodb.
func build(t *testing.T) string {
	t.Helper()
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// launch starts `percodb start args...`, which is killed at the end of the test.
func launch(t *testing.T, binary string, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(binary, nil, append([]string{"start"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// end stops a process with SIGTERM.
func end(t *testing.T, p *process.Process) {
	t.Helper()
	if err := p.End(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// connect connects once the server answers; nil if it ends instead.
func connect(t *testing.T, p *process.Process, addr string) *pgx.Conn {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://postgres@%s/percodb?sslmode=disable", addr))
		if err == nil {
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			return conn
		}
		if p.HasExited() {
			return nil
		}
	}
	t.Fatalf("no answer within a minute:\n%s", p.Output())
	return nil
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// contents returns a directory's files.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
