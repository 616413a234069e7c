package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/percodb/percodb/server"
)

// start starts a node and closes it when the test ends, at the latest.
func start(t *testing.T, opts Options) *Node {
	t.Helper()
	opts.Version = "15.8"
	n, err := Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close(context.Background()) })
	return n
}

// query returns the only value of a query's only row.
func query(t *testing.T, n *Node, text string) (value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+n.Addr().String()+"/percodb?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if last := results[len(results)-1]; len(last.Rows) == 1 {
		value = string(last.Rows[0][0])
	}
	return value
}

// Goal: what was started is stopped in the reverse order, once.
func TestCloseMirrorsStart(t *testing.T) {
	n := &Node{}
	var stopped []int
	for i := range 3 {
		n.onClose(func(context.Context) { stopped = append(stopped, i) })
	}
	n.Close(context.Background())
	n.Close(context.Background())
	if !slices.Equal(stopped, []int{2, 1, 0}) {
		t.Errorf("stopped in the order %v", stopped)
	}
}

// Goal: a server keeps its data over a restart, its directory verifies while it is stopped, and no goroutine outlives it.
func TestRestart(t *testing.T) {
	defer goleak.VerifyNone(t)
	opts := Options{Role: RoleAll, Data: t.TempDir(), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"}
	n := start(t, opts)
	if n.AdminAddr() == nil || n.RPCAddr() != nil {
		t.Errorf("admin endpoint at %v, RPC at %v", n.AdminAddr(), n.RPCAddr())
	}
	query(t, n, "create table t (id int primary key); insert into t values (7)")
	n.Close(context.Background())
	n = start(t, opts)
	if got := query(t, n, "select id from t"); got != "7" {
		t.Errorf("after a restart: %q", got)
	}
	n.Close(context.Background())
	var notes []string
	report := server.CheckReport{
		Finding: func(text string) { t.Errorf("finding: %s", text) }, Note: func(text string) { notes = append(notes, text) },
		Progress: func(string, int64) {}, Expect: func(string) {}, Verified: func(string) {},
	}
	if err := CheckStopped(context.Background(), Options{}, []string{opts.Data}, report); err != nil || len(notes) == 0 {
		t.Errorf("check: %v, notes %q", err, notes)
	}
}

// Goal: a start that fails says why and stops what had been started.
func TestFailedStart(t *testing.T) {
	defer goleak.VerifyNone(t)
	running := start(t, Options{Role: RoleAll, Data: t.TempDir(), Listen: "127.0.0.1:0"})
	for _, c := range []struct {
		name string
		opts Options
		want string
	}{
		{"unknown role", Options{Role: "both"}, `unknown role "both"`},
		{"address in use", Options{Role: RoleAll, Data: t.TempDir(), Listen: running.Addr().String()}, "is in use"},
		{"admin address in use", Options{Role: RoleAll, Data: t.TempDir(), Listen: "127.0.0.1:0", AdminListen: running.Addr().String()}, "is in use"},
		{"directory in use", Options{Role: RoleAll, Data: running.opts.Data, Listen: "127.0.0.1:0"}, ""},
	} {
		if n, err := Start(context.Background(), c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", c.name, n, err)
		}
	}
	running.Close(context.Background())
	var none *NoDataError
	if err := CheckStopped(context.Background(), Options{}, []string{t.TempDir()}, server.CheckReport{}); !errors.As(err, &none) {
		t.Errorf("check of an empty directory: %v", err)
	}
}

// Goal: an oracle, a store and a SQL process of a cluster serve what a server on its own does, collect garbage, and stop cleanly.
func TestCluster(t *testing.T) {
	defer goleak.VerifyNone(t)
	oracle := start(t, Options{Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0", GC: GCOptions{Life: time.Second, Interval: 10 * time.Millisecond, Lease: time.Second}})
	join := oracle.RPCAddr().String()
	store := start(t, Options{Role: RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: join})
	front := start(t, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: join, SchemaLease: time.Second, GC: GCOptions{Lease: time.Second}})
	if oracle.Addr() != nil || store.Addr() != nil {
		t.Error("processes without SQL listen for clients")
	}
	query(t, front, "create table t (id int primary key)")
	query(t, front, "insert into t values (7)")
	if got := query(t, front, "select id from t"); got != "7" {
		t.Errorf("read %q", got)
	}
	const safePoint = "show percodb.safe_point"
	first, limit := query(t, front, safePoint), time.Now().Add(time.Minute)
	for query(t, front, safePoint) == first {
		if time.Now().After(limit) {
			t.Fatalf("the oracle's process does not collect the stores' garbage: safe point %s", first)
		}
	}
	front.Close(context.Background())
	store.Close(context.Background())
	oracle.Close(context.Background())
}
