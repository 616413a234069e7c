package bigtable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/internal/process"
	kvbigtable "github.com/percodb/percodb/kv/bigtable"
)

// waitTimeout bounds every wait of these tests.
const waitTimeout = 2 * time.Minute

var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "percodb-bigtable-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if binary, err = process.Build(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// start starts a process that ends with the test, and returns it with its address.
func start(t *testing.T, args ...string) (*process.Process, string) {
	t.Helper()
	p, err := process.Start(binary, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.HasExited() {
			p.Kill()
		}
		if t.Failed() {
			t.Logf("%v:\n%s", args, p.Output())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	addr, err := p.AwaitReady(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p, addr
}

// startSQL starts a SQL process over an emulator.
func startSQL(t *testing.T, emulator string, args ...string) (*process.Process, string) {
	t.Helper()
	return start(t, append([]string{"start", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", emulator, "--listen", "127.0.0.1:0"}, args...)...)
}

func connect(t *testing.T, addr string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+addr+"/percodb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func mustInt(t *testing.T, conn *pgx.Conn, sql string, args ...any) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// Goal: a user's first steps: the emulator, a SQL process, a table; rows survive kill -9 of the SQL process, acknowledged ones all, and
// a transaction that was open leaves nothing. Method: real processes; the killed one is the only one, then started anew.
func TestRowsSurviveTheProcess(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	p, addr := startSQL(t, emulator)
	conn := connect(t, addr)
	mustExec(t, conn, "CREATE TABLE t (id int PRIMARY KEY, v text, n int)")
	mustExec(t, conn, "CREATE INDEX ON t (n)")
	mustExec(t, conn, "INSERT INTO t SELECT g, 'row ' || g, g % 10 FROM generate_series(1, 500) g")
	mustExec(t, conn, "UPDATE t SET n = 100 WHERE id = 7")
	mustExec(t, conn, "DELETE FROM t WHERE id > 400")
	open := connect(t, addr)
	mustExec(t, open, "BEGIN")
	mustExec(t, open, "UPDATE t SET n = -1 WHERE id <= 50")
	p.Kill()

	_, addr = startSQL(t, emulator)
	conn = connect(t, addr)
	for sql, want := range map[string]int{
		"SELECT count(*) FROM t": 400, "SELECT id FROM t WHERE n = 100": 7, "SELECT count(*) FROM t WHERE n = -1": 0,
		"SELECT count(*) FROM t WHERE n = 3": 40,
	} {
		if got := mustInt(t, conn, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	begun := time.Now()
	mustExec(t, conn, "UPDATE t SET n = 5 WHERE id <= 50")
	t.Logf("rows that the killed process had locked were updated after %v", time.Since(begun))
}

// Goal: several SQL processes over one table: each sees what the others commit, conflicts and deadlocks between them are found, a
// change of the schema reaches all, and when the one that issues the timestamps is killed another takes over and no
// acknowledged increment is lost. Method: clients of two processes increment one counter while the first is killed.
func TestSeveralProcesses(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	first, addr1 := startSQL(t, emulator)
	_, addr2 := startSQL(t, emulator)
	a, b := connect(t, addr1), connect(t, addr2)
	mustExec(t, a, "CREATE TABLE c (id int PRIMARY KEY, n int)")
	mustExec(t, a, "INSERT INTO c VALUES (1, 0), (2, 0)")
	mustExec(t, b, "ALTER TABLE c ADD COLUMN note text")
	mustExec(t, a, "UPDATE c SET note = 'seen by both'")
	if got := mustInt(t, b, "SELECT count(*) FROM c WHERE note = 'seen by both'"); got != 2 {
		t.Fatalf("%d rows", got)
	}
	deadlock(t, a, b)

	var byFirst, bySecond atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	clients.Go(func() { increment(t.Context(), addr1, stop, &byFirst) })
	clients.Go(func() { increment(t.Context(), addr2, stop, &bySecond) })
	await(t, "both increment", func() bool { return byFirst.Load() > 0 && bySecond.Load() > 0 })
	first.Kill()
	killed := bySecond.Load()
	await(t, "the other takes over", func() bool { return bySecond.Load() > killed+5 })
	close(stop)
	clients.Wait()
	sum := int(byFirst.Load() + bySecond.Load())
	got := mustInt(t, b, "SELECT n FROM c WHERE id = 1")
	// The killed process may have committed one that it did not acknowledge.
	if got < sum || got > sum+1 {
		t.Errorf("%d, and %d increments were acknowledged", got, sum)
	}
	t.Logf("%d increments were acknowledged", sum)
}

// Goal: when the coordinator is killed together with another process, its successor learns of both, and removes their locks without anybody having met them; a process that
// lives on keeps its transactions. Method: real processes with a transaction each; the log of the only one that is left.
func TestProcessesThatEndWithTheCoordinator(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	coordinator, addr1 := startSQL(t, emulator)
	second, addr2 := startSQL(t, emulator)
	left, addr3 := startSQL(t, emulator, "--log-level", "info")
	conn := connect(t, addr3)
	mustExec(t, conn, "CREATE TABLE t (id int PRIMARY KEY, n int)")
	mustExec(t, conn, "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
	for _, open := range []struct {
		id   int
		addr string
	}{{1, addr1}, {2, addr2}} {
		c := connect(t, open.addr)
		mustExec(t, c, "BEGIN")
		mustExec(t, c, "UPDATE t SET n = -1 WHERE id = $1", open.id)
	}
	mustExec(t, conn, "BEGIN")
	mustExec(t, conn, "UPDATE t SET n = 1 WHERE id = 3")
	awaitMembers(t, emulator, 3)
	coordinator.Kill()
	second.Kill()
	const removed = "locks of an SQL process that has ended were removed"
	await(t, "the locks are removed", func() bool { return strings.Count(left.Output(), removed) == 2 })
	mustExec(t, conn, "COMMIT")
	mustExec(t, conn, "UPDATE t SET n = n + 1")
	if got := mustInt(t, conn, "SELECT sum(n) FROM t"); got != 4 {
		t.Errorf("the sum is %d", got)
	}
}

// awaitMembers waits until the coordinator has saved its members in the table, of whom there are n.
func awaitMembers(t *testing.T, emulator string, n int) {
	t.Helper()
	client, err := bigtable.NewClient(t.Context(), "p", "i", kvbigtable.EmulatorOptions(emulator)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table := client.Open("percodb")
	await(t, "the coordinator has saved its members", func() bool {
		saved := 0
		err := table.ReadRows(t.Context(), bigtable.PrefixRange("m"), func(r bigtable.Row) bool {
			for _, item := range r["m"] {
				if item.Column == "m:members" {
					saved = len(item.Value) / 8
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return saved == n
	})
}

// deadlock makes two sessions wait for each other; one of them must get the error.
func deadlock(t *testing.T, a, b *pgx.Conn) {
	t.Helper()
	mustExec(t, a, "BEGIN")
	mustExec(t, b, "BEGIN")
	mustExec(t, a, "UPDATE c SET n = n WHERE id = 1")
	mustExec(t, b, "UPDATE c SET n = n WHERE id = 2")
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	errs := make(chan error, 2)
	for _, side := range []struct {
		conn *pgx.Conn
		id   int
	}{{a, 2}, {b, 1}} {
		go func() {
			_, err := side.conn.Exec(ctx, "UPDATE c SET n = n WHERE id = $1", side.id)
			_, _ = side.conn.Exec(ctx, "ROLLBACK")
			errs <- err
		}()
	}
	found := 0
	for range 2 {
		var pg *pgconn.PgError
		if err := <-errs; errors.As(err, &pg) && pg.Code == "40P01" {
			found++
		} else if err != nil {
			t.Errorf("%v", err)
		}
	}
	if found == 0 {
		t.Error("no deadlock was found")
	}
}

// await waits for a condition.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(waitTimeout); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", waitTimeout, what)
		}
	}
}

// increment increments the counter until stop is closed or the process is gone, and counts how often it was told that it did.
func increment(ctx context.Context, addr string, stop <-chan struct{}, acknowledged *atomic.Int64) {
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+addr+"/percodb")
	if err != nil {
		return
	}
	defer conn.Close(context.Background())
	for {
		select {
		case <-stop:
			return
		default:
		}
		_, err := conn.Exec(ctx, "UPDATE c SET n = n + 1 WHERE id = 1")
		var pg *pgconn.PgError
		switch {
		case err == nil:
			acknowledged.Add(1)
		case !errors.As(err, &pg) || conn.IsClosed():
			return
		}
	}
}

// Goal: the numbers of requests of statements that docs/bigtable.md states. Method: the metrics of a SQL process, before and after.
func TestRequestsOfStatements(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	admin, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, addr := start(t, "start", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", emulator,
		"--listen", "127.0.0.1:0", "--admin-listen", admin)
	conn := connect(t, addr)
	mustExec(t, conn, "CREATE TABLE r (id int PRIMARY KEY, n int)")
	mustExec(t, conn, "INSERT INTO r SELECT g, 0 FROM generate_series(1, 100) g")
	for _, c := range []struct{ sql, want string }{
		{"SELECT n FROM r WHERE id = 5", "ReadRows 10"},
		{"UPDATE r SET n = n + 1 WHERE id = 5", "CheckAndMutateRow 20 ReadRows 10"},
	} {
		got := ""
		// The coordinator's own requests come in between, and the schema is read until the process has a lease of it.
		for begun := time.Now(); got != c.want && time.Since(begun) < waitTimeout; {
			before := requests(t, admin)
			for range 10 {
				mustExec(t, conn, c.sql)
			}
			after := requests(t, admin)
			var counts []string
			for _, method := range []string{"CheckAndMutateRow", "MutateRow", "MutateRows", "ReadRows"} {
				if n := after[method] - before[method]; n > 0 {
					counts = append(counts, fmt.Sprintf("%s %d", method, n))
				}
			}
			got = strings.Join(counts, " ")
			time.Sleep(100 * time.Millisecond) // Until then it may have the lease.
		}
		if got != c.want {
			t.Errorf("ten times %s: %s, want %s", c.sql, got, c.want)
		}
	}
}

// Goal: the numbers of requests of schema changes, and of the statements after them, that docs/bigtable.md states. Method: rounds of them in one process
// over the emulator, until each has sent no more than that in one of them: what the process sends by itself comes in between.
func TestRequestsOfSchemaChanges(t *testing.T) {
	_, emulator := start(t, "bigtable-emulator", "--listen", "127.0.0.1:0")
	admin, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, addr := start(t, "start", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", emulator,
		"--listen", "127.0.0.1:0", "--admin-listen", admin)
	conn := connect(t, addr)
	mustExec(t, conn, "CREATE TABLE other (id int PRIMARY KEY)")
	statements := []struct {
		sql         string
		reads, cams int // requests that read rows, and conditional changes
	}{
		{"CREATE TABLE r (id int PRIMARY KEY, n int)", 2, 5},
		{"INSERT INTO r VALUES (1, 1)", 2, 2},
		{"CREATE VIEW v AS SELECT n FROM r WHERE n > 0", 2, 5},
		{"SELECT * FROM v", 2, 0},
		{"DROP VIEW v", 2, 6},
		{"CREATE INDEX r_n ON r (n)", 12, 15},
		{"INSERT INTO r VALUES (2, 2)", 2, 3},
		{"DROP INDEX r_n", 2, 5},
		{"DROP TABLE r", 2, 7},
	}
	least := make([]map[string]int, len(statements))
	for begun, missing := time.Now(), true; missing && time.Since(begun) < waitTimeout; {
		missing = false
		for i, s := range statements {
			before := requests(t, admin)
			mustExec(t, conn, s.sql)
			sent := requests(t, admin)
			for method := range sent {
				sent[method] -= before[method]
				if least[i] != nil {
					sent[method] = min(sent[method], least[i][method])
				}
			}
			least[i] = sent
			missing = missing || sent["ReadRows"] > s.reads || sent["CheckAndMutateRow"] > s.cams
		}
	}
	for i, s := range statements {
		if reads, cams := least[i]["ReadRows"], least[i]["CheckAndMutateRow"]; reads > s.reads || cams > s.cams {
			t.Errorf("%s: ReadRows %d, CheckAndMutateRow %d; at most %d, %d are stated", s.sql, reads, cams, s.reads, s.cams)
		}
	}
}

// requests returns the requests of a process by method.
func requests(t *testing.T, admin string) map[string]int {
	t.Helper()
	res, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		var n int
		if method, ok := strings.CutPrefix(lines.Text(), `percodb_bigtable_request_seconds_count{method="`); ok {
			method, value, _ := strings.Cut(method, `"} `)
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
			counts[method] = n
		}
	}
	return counts
}

// Goal: a process whose emulator was started anew answers 08006, not an internal error, and ends once another process has made the table anew: what it
// knows is of the old one. Method: the emulator is killed and started at the same address, then a second SQL process is started.
func TestEmulatorStartedAnew(t *testing.T) {
	emulator, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	old, _ := start(t, "bigtable-emulator", "--listen", emulator)
	p, addr := startSQL(t, emulator)
	conn := connect(t, addr)
	mustExec(t, conn, "CREATE TABLE t (id int PRIMARY KEY)")
	old.Kill()
	start(t, "bigtable-emulator", "--listen", emulator)
	_, err = conn.Exec(t.Context(), "SELECT * FROM t")
	if e := new(pgconn.PgError); !errors.As(err, &e) || e.Code != "08006" {
		t.Errorf("a select without the table: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for { // until the coordinator has noticed; nobody may connect then
		other, err := pgx.Connect(ctx, "postgres://postgres@"+addr+"/percodb")
		if e := new(pgconn.PgError); errors.As(err, &e) {
			if e.Code != "08006" {
				t.Errorf("a connection without the table: %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		other.Close(ctx)
	}
	_, second := startSQL(t, emulator)
	select {
	case <-p.Exited():
	case <-ctx.Done():
		t.Fatal("the process goes on")
	}
	if p.Err() == nil || !strings.Contains(p.Output(), "was deleted and made anew") {
		t.Errorf("%v:\n%s", p.Err(), p.Output())
	}
	mustExec(t, connect(t, second), "CREATE TABLE t (id int PRIMARY KEY)")
}
