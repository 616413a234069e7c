package sqllogic

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/node"
)

// target is a server on which our files are run.
type target struct {
	name     string
	start    func(t *testing.T) (dsn string) // starts the server for the length of the test
	extended bool                            // run the files over the extended protocol
}

// targets returns the servers to test: percodb in the settings that could change a result, and PostgreSQL, the
// reference, if PERCODB_TEST_PG_DSN names one.
func targets() []target {
	all := []target{
		{name: "many tiny ranges", start: func(t *testing.T) string { return startAll(t, node.Options{RangeMaxBytes: 16 << 10}) }},
		{name: "kv over gRPC", start: startCluster, extended: true},
	}
	if !testing.Short() { // those above cover the same, and more of it at once
		all = append(all,
			target{name: "one range", start: func(t *testing.T) string { return startAll(t, node.Options{}) }},
			target{name: "page size 1", start: func(t *testing.T) string { return startAll(t, node.Options{PageRows: 1, GroupSize: 1}) }})
	}
	if *onBigtable {
		all = append(all, target{name: "bigtable", start: startBigtable})
	}
	if dsn := os.Getenv("PERCODB_TEST_PG_DSN"); dsn != "" {
		start := func(*testing.T) string { return dsn }
		all = append(all,
			target{name: "postgresql", start: start},
			target{name: "postgresql-extended", start: start, extended: true})
	}
	return all
}

// onBigtable adds a configuration that takes much longer, ten minutes: every row that is written is two requests.
var onBigtable = flag.Bool("bigtable", false, "run the files over Bigtable's emulator as well")

// startBigtable starts percodb over an emulator of Bigtable.
func startBigtable(t *testing.T) string {
	emulator, err := bigtable.StartEmulator("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(emulator.Close)
	return startAll(t, node.Options{RPCListen: "127.0.0.1:0", SchemaLease: 100 * time.Millisecond, Bigtable: &bigtable.Options{Project: "p", Instance: "i", Emulator: emulator.Addr()}})
}

// start starts a node of percodb in this process and stops it when the test ends.
func start(t *testing.T, opts node.Options) *node.Node {
	t.Helper()
	opts.Version = "15.0"
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		n.Close(ctx)
	})
	return n
}

func startAll(t *testing.T, opts node.Options) string {
	opts.Role, opts.Data, opts.Listen = node.RoleAll, t.TempDir(), "127.0.0.1:0"
	return dsn(start(t, opts))
}

// startCluster starts an oracle, three stores and a SQL node, connected by gRPC.
func startCluster(t *testing.T) string {
	oracle := start(t, node.Options{Role: node.RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0"})
	join := oracle.RPCAddr().String()
	for range 3 {
		start(t, node.Options{Role: node.RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: join})
	}
	return dsn(start(t, node.Options{
		Role: node.RoleSQL, Listen: "127.0.0.1:0", Join: join, SchemaLease: 100 * time.Millisecond,
	}))
}

func dsn(n *node.Node) string { return "postgres://postgres@" + n.Addr().String() + "/percodb" }

// Goal: percodb's SQL behaves as our files say, in every setting that could change it, and PostgreSQL agrees with the
// files. Method: each file of testdata on each target, as a subtest.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, target := range targets() {
		t.Run(target.name, func(t *testing.T) {
			dsn := target.start(t)
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".slt"), func(t *testing.T) {
					var out bytes.Buffer
					summary, err := Run(context.Background(), Options{
						URL: dsn, Paths: []string{file}, Out: &out, Extended: target.extended,
					})
					if err != nil {
						t.Fatalf("%s%v", out.String(), err)
					}
					if summary.Failed > 0 {
						t.Errorf("%d of %d records failed\n%s", summary.Failed, summary.Failed+summary.Passed, out.String())
					}
				})
			}
		})
	}
}
