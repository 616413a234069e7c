package micro

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/percodb/percodb/kv"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// testCluster is an oracle with a directory, and stores, each behind gRPC on loopback, all in this
// process.
type testCluster struct {
	b      *testing.B
	oracle *tsorpc.Client
	router kv.Router
	conns  map[string]*tsorpc.Conn
}

func (c *testCluster) must(err error) {
	c.b.Helper()
	if err != nil {
		c.b.Fatal(err)
	}
}

// serve has a gRPC server answer for the benchmark's time, and returns its address.
func (c *testCluster) serve(register func(*tsorpc.Server)) string {
	addr, stop, err := Serve(register)
	c.must(err)
	c.b.Cleanup(stop)
	return addr
}

func (c *testCluster) connect(addr string) *tsorpc.Conn {
	if c.conns[addr] == nil {
		conn, err := tsorpc.Dial(addr)
		c.must(err)
		c.b.Cleanup(func() { conn.Close() })
		c.conns[addr] = conn
	}
	return c.conns[addr]
}

// openCluster starts an oracle and stores.
func openCluster(b *testing.B, stores int) *testCluster {
	b.Helper()
	c := &testCluster{b: b, conns: map[string]*tsorpc.Conn{}}
	ctx, dir := context.Background(), b.TempDir()
	engine, err := kv.OpenEngine(kv.EngineOptions{Dir: filepath.Join(dir, "oracle")})
	c.must(err)
	b.Cleanup(func() { engine.Close() })
	local, err := tso.NewLocal(ctx, engine.WindowStore(), tso.Options{})
	c.must(err)
	b.Cleanup(func() { local.Close() })
	directory, err := kv.OpenDirectory(kv.DirectoryOptions{Engine: engine, Dial: func(_ context.Context, info kv.ShardInfo) (kv.RangeOwner, error) {
		return kvrpc.NewOwner(c.connect(info.Addr), info.ID, kvrpc.ClientOptions{}), nil
	}})
	c.must(err)
	b.Cleanup(func() { directory.Close() })
	conn := c.connect(c.serve(func(g *tsorpc.Server) {
		tsorpc.RegisterOracle(g, local)
		kvrpc.RegisterDirectory(g, directory)
	}))
	c.oracle = tsorpc.NewClient(conn, tsorpc.ClientOptions{})
	b.Cleanup(func() { c.oracle.Close() })
	for range stores {
		c.addStore(filepath.Join(b.TempDir(), "kv"), kvrpc.NewDirectory(conn, kvrpc.ClientOptions{}))
	}
	c.router, err = kv.NewRouter(kv.RouterOptions{
		Directory: kvrpc.NewDirectory(conn, kvrpc.ClientOptions{}),
		Dial: func(_ context.Context, info kv.ShardInfo) (kv.Shard, error) {
			return kvrpc.NewShard(c.connect(info.Addr), info.ID, kvrpc.ClientOptions{}), nil
		}})
	c.must(err)
	return c
}

func (c *testCluster) addStore(dir string, directory kv.Directory) {
	engine, err := kv.OpenEngine(kv.EngineOptions{Dir: dir, CacheBytes: cacheBytes / 2})
	c.must(err)
	c.b.Cleanup(func() { engine.Close() })
	// The store registers the address that it will be served at.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	store, err := kv.Open(context.Background(), kv.Options{Engine: engine, Addr: l.Addr().String(), Oracle: c.oracle, Directory: directory})
	c.must(err)
	c.b.Cleanup(func() { store.Close() })
	g := tsorpc.NewGRPCServer()
	kvrpc.RegisterShard(g, store)
	kvrpc.RegisterOwner(g, store)
	go g.Serve(l)
	c.b.Cleanup(g.Stop)
}

func (c *testCluster) db(opts percolator.Options) *percolator.DB {
	db := percolator.New(c.router, c.oracle, opts)
	c.b.Cleanup(func() { db.Close() })
	return db
}
