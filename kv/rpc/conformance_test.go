package rpc

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/kvtest"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// TestConformance runs the suite against a store on the other end of a connection, found through the directory.
func TestConformance(t *testing.T) {
	kvtest.Run(t, openRemote)
}

// Goal: the scenarios of the protocol end correctly over gRPC, too. Method: the transcripts that kv/kvtest runs over a store in this process.
func TestTranscripts(t *testing.T) {
	kvtest.RunTranscripts(t, "../kvtest/testdata/proto", openRemote)
}

func openRemote(t testing.TB, oracle tso.Oracle) *kvtest.Engine {
	r := &remoteStore{oracle: oracle, fs: storage.NewMemFS(), addr: "127.0.0.1:0"}
	r.openDirectory(t)
	r.open(t)
	t.Cleanup(func() { r.close() })
	router, err := kv.NewRouter(kv.RouterOptions{Directory: r.dir, Dial: func(_ context.Context, info kv.ShardInfo) (kv.Shard, error) {
		return NewShard(r.connect(info.Addr), info.ID, ClientOptions{}), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &kvtest.Engine{
		Router:  router,
		Split:   func(ctx context.Context, key []byte) error { return r.store.ForceSplit(ctx, key) },
		Restart: func(t testing.TB) { r.close(); r.open(t); r.await(t) },
		Close:   func() { r.store.Close() },
	}
}

// remoteStore is a store behind a gRPC server, and a directory that knows it.
type remoteStore struct {
	oracle tso.Oracle
	fs     storage.FS
	dir    *kv.LocalDirectory
	addr   string
	store  *kv.Store
	server *grpc.Server

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
}

func (r *remoteStore) connect(addr string) *grpc.ClientConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns[addr] == nil {
		conn, err := tsorpc.Dial(addr)
		if err != nil {
			panic(err) // the address is a listener's own
		}
		r.conns[addr] = conn
	}
	return r.conns[addr]
}

func (r *remoteStore) openDirectory(t testing.TB) {
	t.Helper()
	r.conns = map[string]*grpc.ClientConn{}
	engine, err := kv.OpenEngine(kv.EngineOptions{Dir: "oracle", FS: r.fs, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.dir, err = kv.OpenDirectory(kv.DirectoryOptions{Engine: engine, Dial: func(_ context.Context, info kv.ShardInfo) (kv.RangeOwner, error) {
		return NewOwner(r.connect(info.Addr), info.ID, ClientOptions{}), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, conn := range r.conns {
			conn.Close()
		}
		r.dir.Close()
		engine.Close()
	})
}

func (r *remoteStore) open(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	r.store, err = kv.Open(context.Background(), kv.Options{Dir: "data", FS: r.fs, CacheBytes: 4 << 20, ScanBlockRows: 2, ShardID: "s", Addr: r.addr,
		Oracle: r.oracle, Directory: r.dir})
	if err != nil {
		t.Fatal(err)
	}
	r.server = tsorpc.NewGRPCServer()
	RegisterShard(r.server, r.store)
	RegisterOwner(r.server, r.store)
	go r.server.Serve(l)
}

// await returns once the connection has found the store's new process.
func (r *remoteStore) await(t testing.TB) {
	t.Helper()
	shard := NewShard(r.connect(r.addr), "s", ClientOptions{})
	for ; ; time.Sleep(time.Millisecond) {
		if _, err := shard.Status(t.Context()); err == nil {
			return
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func (r *remoteStore) close() {
	r.server.Stop()
	r.store.Close()
}
