package node

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/server"
)

// checked collects what checks report.
type checked struct{ findings, notes, expected, verified []string }

func (c *checked) report() server.CheckReport {
	add := func(list *[]string) func(string) { return func(text string) { *list = append(*list, text) } }
	return server.CheckReport{
		Finding: add(&c.findings), Note: add(&c.notes), Expect: add(&c.expected), Verified: add(&c.verified),
		Progress: func(string, int64) {},
	}
}

// missing lists the parts that exist and were not verified.
func (c *checked) missing() (parts []string) {
	for _, part := range c.expected {
		if !slices.Contains(c.verified, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// testCluster is an oracle, two stores and a SQL process with a table and an index.
type testCluster struct {
	oracle, front *Node
	stores        []*Node
}

func startCluster(t *testing.T) *testCluster {
	c := &testCluster{oracle: start(t, Options{Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0"})}
	for range 2 {
		c.stores = append(c.stores, start(t, Options{Role: RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: c.join()}))
	}
	c.front = start(t, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: c.join(), SchemaLease: time.Second})
	query(t, c.front, "create table t (id int primary key, n int)")
	query(t, c.front, "create index on t (n)")
	query(t, c.front, "insert into t select g, g from generate_series(1, 3) g")
	return c
}

func (c *testCluster) join() string { return c.oracle.RPCAddr().String() }

func (c *testCluster) close() {
	for _, n := range append([]*Node{c.front}, append(c.stores, c.oracle)...) {
		n.Close(context.Background())
	}
}

// Goal: the checks of a cluster's processes together verify all of its data, running or stopped; a check of some directories
// reports what it did not verify. Method: the same cluster, checked by process, then by directory.
func TestCheckOfACluster(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := context.Background()
	c := startCluster(t)
	var live checked
	for _, n := range append([]*Node{c.oracle, c.front}, c.stores...) {
		if err := n.Check(ctx, live.report()); err != nil {
			t.Error(err)
		}
	}
	if len(live.findings)+len(live.missing()) > 0 || len(live.expected) != 4*3 || !slices.Contains(live.notes, "1 table: 3 rows, 3 index entries") {
		t.Errorf("running: %+v", live)
	}
	c.close()
	oracle, one, two := c.oracle.opts.Data, c.stores[0].opts.Data, c.stores[1].opts.Data
	for _, test := range []struct {
		name    string
		dirs    []string
		missing int
		tables  bool
	}{
		{"all", []string{one, oracle, two}, 0, true},
		{"without a store", []string{oracle, one}, 2, false},
		{"without the oracle's", []string{one, two}, 1, false},
		{"the oracle's alone", []string{oracle}, 3, false},
	} {
		var stopped checked
		if err := CheckStopped(ctx, Options{}, test.dirs, stopped.report()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if len(stopped.findings) > 0 || len(stopped.missing()) != test.missing || slices.Contains(stopped.notes, "1 table: 3 rows, 3 index entries") != test.tables {
			t.Errorf("%s: %+v", test.name, stopped)
		}
	}
}

// Goal: directories of two clusters are not checked as one.
func TestCheckOfTwoClusters(t *testing.T) {
	var dirs []string
	for range 2 {
		n := start(t, Options{Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0"})
		dirs = append(dirs, n.opts.Data)
		n.Close(context.Background())
	}
	var c checked
	if err := CheckStopped(context.Background(), Options{}, dirs, c.report()); err == nil || !strings.Contains(err.Error(), "a second cluster") {
		t.Errorf("%v", err)
	}
}

// Goal: a store that answers is not forgotten; one that has stopped is, after a dry run that changes nothing, and it cannot
// start again.
func TestForgetStore(t *testing.T) {
	ctx := context.Background()
	c := startCluster(t)
	schema := query(t, c.front, "select shard from percodb.ranges order by start_bytes limit 1")
	id := query(t, c.front, "select shard from percodb.ranges where shard <> '"+schema+"'")
	lost := c.stores[0]
	if idOf(t, lost) != id {
		lost = c.stores[1]
	}
	if id == "" || idOf(t, lost) != id {
		t.Fatalf("the schema is on %q, the table on %q", schema, id)
	}
	if _, err := ForgetStore(ctx, c.join(), id, tlsfiles.Files{}, true); err == nil || !strings.Contains(err.Error(), "it is not gone") {
		t.Errorf("a store that answers: %v", err)
	}
	lost.Close(ctx)
	for _, dryRun := range []bool{true, true, false} {
		if would, err := ForgetStore(ctx, c.join(), id, tlsfiles.Files{}, dryRun); err != nil || would.Ranges == 0 || !would.Registered {
			t.Errorf("dry run %v: %+v, %v", dryRun, would, err)
		}
	}
	if n, err := Start(ctx, lost.opts); err == nil || !strings.Contains(err.Error(), "was excluded from the cluster") {
		t.Errorf("a forgotten store starts: %v, %v", n, err)
	}
	if _, err := ForgetStore(ctx, c.join(), "kv-0", tlsfiles.Files{}, true); err == nil || !strings.Contains(err.Error(), "has no store") {
		t.Errorf("a store that does not exist: %v", err)
	}
}

// idOf returns a store's ID, with which the note of its check begins.
func idOf(t *testing.T, n *Node) string {
	t.Helper()
	var c checked
	if err := n.Check(context.Background(), c.report()); err != nil || len(c.verified) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	return strings.TrimPrefix(c.verified[0], "store ")
}
