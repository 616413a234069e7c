// Package storetest opens a store in memory with the layers up to the catalog, for tests of the layers above.
package storetest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Store is a store with what sessions share.
type Store struct {
	DB      *percolator.DB
	Catalog *catalog.Catalog
	Router  kv.Router
	Oracle  tso.Oracle
	Waits   *waitgraph.Local // for row locks and schema changes
}

// Open opens a store until the end of the test. before, unless nil, is called before the shard's reads of single keys, with the
// key, and before prewrites, with the request; an error that it returns is the shard's answer.
func Open(t testing.TB, before func(ctx context.Context, req any) error) *Store {
	t.Helper()
	ctx := context.Background()
	oracle := &countingOracle{}
	store, err := kv.Open(ctx, kv.Options{Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true, ShardID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := &Store{Router: &router{store.Router(), before}, Oracle: oracle, Waits: store.WaitGraph()}
	log := slog.New(slog.DiscardHandler)
	s.DB = percolator.New(s.Router, oracle, percolator.Options{Logger: log})
	t.Cleanup(func() { s.DB.Close() })
	if s.Catalog, err = catalog.New(ctx, s.DB, catalog.Options{Logger: log, System: pgcatalog.Tables(), WaitGraph: s.Waits}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Catalog.Close(ctx) })
	return s
}

// countingOracle numbers its timestamps.
type countingOracle struct{ last atomic.Uint64 }

func (o *countingOracle) Now(context.Context) (tso.Timestamp, error) {
	return tso.Timestamp(o.last.Add(uint64(tso.Tick))), nil
}

type router struct {
	kv.Router
	before func(ctx context.Context, req any) error
}

func (r *router) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	d, s, err := r.Router.Locate(ctx, key)
	if err != nil || r.before == nil {
		return d, s, err
	}
	return d, &shard{s, r.before}, nil
}

type shard struct {
	kv.Shard
	before func(ctx context.Context, req any) error
}

func (s *shard) Get(ctx context.Context, r kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	if err := s.before(ctx, key); err != nil {
		return nil, err
	}
	return s.Shard.Get(ctx, r, key, opts)
}

func (s *shard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	if err := s.before(ctx, req); err != nil {
		return kv.PrewriteResponse{}, err
	}
	return s.Shard.Prewrite(ctx, req)
}
