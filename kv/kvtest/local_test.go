package kvtest_test

import (
	"context"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/kvtest"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// TestLocalStore runs the suite against the store in this process.
func TestLocalStore(t *testing.T) {
	kvtest.Run(t, openStore)
}

func openStore(t testing.TB, oracle tso.Oracle) *kvtest.Engine {
	return (&localStore{oracle: oracle, fs: storage.NewMemFS()}).engine(t)
}

// openPackingStore opens a store that packs every lock that may be packed.
func openPackingStore(t testing.TB, oracle tso.Oracle) *kvtest.Engine {
	return (&localStore{oracle: oracle, fs: storage.NewMemFS(), packLocks: -1}).engine(t)
}

func (s *localStore) engine(t testing.TB) *kvtest.Engine {
	s.open(t)
	t.Cleanup(func() { s.store.Close() })
	return &kvtest.Engine{
		Router: s,
		Split:  func(ctx context.Context, key []byte) error { return s.store.ForceSplit(ctx, key) },
		Restart: func(t testing.TB) {
			if err := s.store.Close(); err != nil {
				t.Fatal(err)
			}
			s.open(t)
		},
		Close: func() { s.store.Close() },
	}
}

// localStore is a Router to a store that can be restarted.
type localStore struct {
	kv.Router
	oracle    tso.Oracle
	fs        storage.FS
	packLocks int
	store     *kv.Store
}

func (s *localStore) open(t testing.TB) {
	t.Helper()
	store, err := kv.Open(context.Background(), kv.Options{Dir: "data", FS: s.fs, Oracle: s.oracle, EmbeddedOracle: true,
		ShardID: "s", CacheBytes: 4 << 20, ScanBlockRows: 1, PackLocks: s.packLocks})
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.Router = store, store.Router()
}
