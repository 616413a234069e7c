package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// servers returns the databases to test with: a new percodb and, if PERCODB_TEST_PG_DSN names one, a schema in PostgreSQL.
func servers(t *testing.T) map[string]string {
	all := map[string]string{"percodb": startPercodb(t)}
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		return all
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("helpdesk_%d", os.Getpid())
	exec := func(statement string) {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE SCHEMA " + schema)
	t.Cleanup(func() {
		exec("DROP SCHEMA " + schema + " CASCADE")
		conn.Close(context.Background())
	})
	all["PostgreSQL"] = dsn + separator(dsn) + "search_path=" + schema
	return all
}

func separator(dsn string) string {
	if strings.Contains(dsn, "?") {
		return "&"
	}
	return "?"
}

// startPercodb starts a server, which PERCODB_BINARY names or the sources here make, and returns its URL.
func startPercodb(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := os.Getenv("PERCODB_BINARY")
	if binary == "" {
		binary = filepath.Join(dir, "percodb")
		build := exec.Command("go", "build", "-o", binary, "./cmd/percodb")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	server := exec.Command(binary, "start", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for range 200 {
		text, _ := os.ReadFile(log.Name())
		if _, rest, ok := strings.Cut(string(text), "-p "); ok {
			return "postgres://postgres@127.0.0.1:" + strings.Fields(rest)[0] + "/percodb"
		}
		time.Sleep(50 * time.Millisecond) // The server says in its log when it is ready.
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("the server is not ready:\n%s", text)
	return ""
}

// Goal: the migrations run, in both directions, and the application's statements do what they say. Method: all commands on each server; the
// tables are read afterwards.
func TestHelpdesk(t *testing.T) {
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			var out strings.Builder
			must := func(command string) string {
				t.Helper()
				out.Reset()
				if err := run(ctx, url, command, &out); err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out.String())
				}
				return out.String()
			}
			if got := must("migrate"); strings.Count(got, "OK") != 4 {
				t.Errorf("migrate: %s", got)
			}
			if got := must("migrate"); got != "" {
				t.Errorf("migrate again: %s", got)
			}
			if got := must("status"); strings.Count(got, "applied") != 4 {
				t.Errorf("status: %s", got)
			}
			const want = "urgent: printer on fire (open)\nopened: 3 events\nstatus: 4 events\n"
			if got := must("demo"); got != want {
				t.Errorf("demo: %s", got)
			}
			verifyRows(t, url)
			for range 4 {
				must("down")
			}
			if got := must("status"); strings.Count(got, "pending") != 4 {
				t.Errorf("status after all are taken back: %s", got)
			}
			must("migrate")
		})
	}
}

func verifyRows(t *testing.T, url string) {
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for query, want := range map[string]string{
		"SELECT string_agg(status::text, ',' ORDER BY id) FROM tickets":                                "closed,closed,open",
		"SELECT bool_and((updated_at > created_at) = (status = 'closed'))::text FROM tickets":          "true",
		"SELECT string_agg(data->>'to', ',' ORDER BY ticket_id, at) FROM events WHERE kind = 'status'": "waiting,closed,waiting,closed",
		"SELECT count(*)::text FROM events_other":                                                      "0",
		"SELECT count(*)::text FROM pg_inherits WHERE inhparent = 'events'::regclass":                  "3",
		"SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'tickets_details'::regclass":         "true",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", query, got, err, want)
		}
	}
	if _, err := pool.Exec(t.Context(), "INSERT INTO tickets (account_id, subject) VALUES (12345, 'of nobody')"); err == nil || !strings.Contains(err.Error(), "23503") {
		t.Errorf("a ticket without an account: %v", err)
	}
	if _, err := pool.Exec(t.Context(), "DELETE FROM accounts"); err != nil {
		t.Error(err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM tickets) + (SELECT count(*) FROM events)").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}
