package fuzzsql

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/node"
)

var (
	seed       = flag.Uint64("seed", 1, "the first seed; each world takes the next")
	statements = flag.Int("statements", 0, "stop after so many statements or blocks; 0 with -duration: no limit")
	duration   = flag.Duration("duration", 0, "stop after this time")
	most       = flag.Int("differences", 20, "stop after so many differences")
	percodb    = flag.String("percodb", "", "URL of a running percodb; without it the test starts its own")
)

// log collects a server's warnings.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// panics returns the lines about panics since the last call.
func (l *log) panics() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, "panic") {
			found = append(found, line)
		}
	}
	l.buf.Reset()
	return strings.Join(found, "")
}

func startNode(t *testing.T, l *log, opts node.Options) string {
	t.Helper()
	opts.Role, opts.Data, opts.Listen, opts.Version = node.RoleAll, t.TempDir(), "127.0.0.1:0", "15.8"
	opts.CacheBytes = 32 << 20
	opts.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	return fmt.Sprintf("postgres://postgres@%s/percodb?sslmode=disable", n.Addr())
}

func TestStatements(t *testing.T) {
	// Goal: percodb answers a statement alike on every way to run it, and as PostgreSQL does. Method: see
	// the package comment.
	l := &log{}
	opts := Options{
		Seed: *seed, Statements: *statements, Duration: *duration, Most: *most, Plain: *percodb,
		Postgres: os.Getenv("PERCODB_TEST_PG_DSN"), Schema: fmt.Sprintf("fuzzsql_%d", os.Getpid()), Alarm: l.panics,
	}
	if opts.Plain == "" {
		opts.Plain = startNode(t, l, node.Options{})
		opts.Small = startNode(t, l, node.Options{PageRows: 2, GroupSize: 2})
	}
	if opts.Statements == 0 && opts.Duration == 0 {
		opts.Statements = 200
	}
	if testing.Verbose() {
		opts.Progress = os.Stderr
	}
	start := time.Now()
	found, err := Run(t.Context(), opts)
	if errors.Is(err, ErrLocale) {
		t.Logf("percodb alone: %v", err)
		opts.Postgres = ""
		found, err = Run(t.Context(), opts)
	}
	if err != nil {
		t.Error(err)
	}
	for _, d := range found {
		t.Error(d)
	}
	t.Logf("%v", time.Since(start).Round(time.Millisecond))
}
