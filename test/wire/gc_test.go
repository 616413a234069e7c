package wire_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/node"
)

// gcServer is a separate server with a short life of history and continuous rounds of collection.
func gcServer(t *testing.T) (n *node.Node, open func() *pgx.Conn) {
	t.Helper()
	opts := options(t.TempDir())
	opts.AdminListen = "127.0.0.1:0"
	opts.GC = node.GCOptions{Interval: 20 * time.Millisecond, Lease: 2 * time.Second}
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	open = func() *pgx.Conn {
		conn, err := pgx.Connect(testContext(t), "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	conn := open()
	execAll(t, conn, "alter system set percodb.gc_life = '1s'")
	return n, open
}

// safePoint returns the safe point, the zero time if there is none yet.
func safePoint(t *testing.T, conn *pgx.Conn) (at time.Time) {
	t.Helper()
	if err := conn.QueryRow(testContext(t), "select coalesce(nullif(current_setting('percodb.safe_point'), 'none'), '1970-01-01')::timestamptz").Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(exchangeTimeout); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain until ", what)
		}
	}
}

// Goal: an open transaction keeps what it can see from being collected, at every level and AS OF SYSTEM TIME, until it
// ends. Method: continuous rounds of collection with a life of a second; older transactions read again after many
// updates.
func TestOpenTransactionHoldsTheSafePoint(t *testing.T) {
	t.Parallel() // It mostly waits.
	_, open := gcServer(t)
	conn := open()
	execAll(t, conn, "create table held (id int primary key, n int)", "insert into held select i, 0 from generate_series(1, 20) i")
	for _, begin := range []string{"begin isolation level repeatable read", "begin isolation level serializable read only", "begin as of system time '-10ms'"} {
		execAll(t, conn, "update held set n = 0")
		instant(t, conn)
		time.Sleep(20 * time.Millisecond) // '-10ms' is later than the update.
		holder := open()
		execAll(t, holder, begin)
		wantRows(t, holder, "20 0", "select count(*), sum(n) from held")
		begun := instant(t, conn)
		for i := range 30 {
			execAll(t, conn, fmt.Sprint("update held set n = n + ", i))
		}
		at, _ := time.Parse("2006-01-02 15:04:05.000-07", begun)
		// Without the open transaction the safe point would pass it: gc_life is a second.
		time.Sleep(time.Until(at.Add(1500 * time.Millisecond)))
		if sp := safePoint(t, conn); sp.After(at) {
			t.Errorf("%s: the safe point %v has passed it, it began at or before %v", begin, sp, at)
		}
		wantRows(t, conn, "true", "select current_setting('percodb.oldest_transaction')::timestamptz <= '"+begun+"'")
		wantRows(t, holder, "20 0", "select count(*), sum(n) from held")
		execAll(t, holder, "commit")
		eventually(t, "the safe point moves on", func() bool { return safePoint(t, conn).After(at) })
		wantCode(t, conn, "22023", "select * from held as of system time '"+begun+"'")
	}
	wantRows(t, conn, "20 8700", "select count(*), sum(n) from held")
}

// Goal: a table that is changed continuously is collected while it is in use, without loss of its current rows. Method:
// count collected versions by the server's metrics; compare the rows.
func TestChurnedTableIsCollected(t *testing.T) {
	t.Parallel() // It mostly waits.
	n, open := gcServer(t)
	conn := open()
	execAll(t, conn, "create table churned (id int primary key, n int, note text)", "create index on churned (n)",
		"insert into churned select i, 0, repeat('x', i * 40) from generate_series(1, 50) i")
	for range 40 {
		execAll(t, conn, "update churned set n = n + 1", "delete from churned where id = 50", "insert into churned values (50, 7, 'back')")
	}
	eventually(t, "four thousand versions are collected", func() bool {
		execAll(t, conn, "update churned set note = note || '.' where id = 1")
		return metric(t, n, "percodb_kv_gc_versions_removed_total") > 4000
	})
	wantRows(t, conn, "50 1967", "select count(*), sum(n) from churned")
	wantRows(t, conn, "49 1960", "select count(*), sum(n) from churned where n = 40")
	wantRows(t, conn, "7 back", "select n, note from churned where id = 50")
	wantRows(t, conn, "48 48960", "select count(*), sum(length(note)) from churned where id between 2 and 49")
}

// metric reads a counter of the admin endpoint.
func metric(t *testing.T, n *node.Node, name string) float64 {
	t.Helper()
	res, err := http.Get("http://" + n.AdminAddr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `(?:\{.*\})? (\S+)$`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
