package catalog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/percolator"
)

// deafRouter leads to a shard that does not answer requests to write key.
type deafRouter struct {
	kv.Router
	key     []byte
	primary []byte // of the transaction that has not been answered
}

func (r *deafRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	d, s, err := r.Router.Locate(ctx, key)
	return d, &deafShard{s, r}, err
}

type deafShard struct {
	kv.Shard
	router *deafRouter
}

func (s *deafShard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	if slices.ContainsFunc(req.Mutations, func(m mvcc.Mutation) bool { return bytes.Equal(m.Key, s.router.key) }) {
		s.router.primary = req.Primary
		return kv.PrewriteResponse{}, &kv.UnavailableError{Shard: "one", Err: errors.New("no answer")}
	}
	return s.Shard.Prewrite(ctx, req)
}

func (s *deafShard) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	if s.router.key != nil && bytes.Equal(req.Keys[0], s.router.primary) {
		return &kv.UnavailableError{Shard: "one", Err: errors.New("no answer")}
	}
	return s.Shard.Rollback(ctx, req)
}

// Goal: the unknown outcome of a transaction of the catalog's own is not that of the transaction that depends on it, which was not
// attempted: its error is the cause. Method: a process that was struck out has to register before it commits, and a number has to be
// allocated, while the store does not answer.
func TestLostAnswersToTheCatalog(t *testing.T) {
	ctx := context.Background()
	oracle := &tsotest.ClockOracle{}
	store, err := kv.Open(ctx, kv.Options{Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	router := &deafRouter{Router: store.Router()}
	db := percolator.New(router, oracle, percolator.Options{
		RetryBudget: 40 * time.Millisecond, UnreachableBudget: 20 * time.Millisecond, ProbeTimeout: 20 * time.Millisecond,
	})
	defer db.Close()
	c, err := New(ctx, db, Options{Shared: true, Lease: time.Minute, PollInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	desc := mustCreate(t, c, "t")
	if err := c.strike(ctx, [][]byte{c.lease.member.key}, 1<<63); err != nil {
		t.Fatal(err)
	}
	mustBeUnavailable := func(what string, key []byte, err func() error) {
		t.Helper()
		router.key = key
		if err := err(); errkind.Of(err) != errkind.Unavailable {
			t.Errorf("%s: %v", what, err)
		}
		router.key = nil
	}
	mustBeUnavailable("a commit that needs a new look", c.lease.member.key, func() error {
		g := c.NewGuard()
		txn := begin(t, db)
		g.Reset(txn)
		stale := desc.Clone()
		stale.WriterVersion++ // newer than the last look
		g.Writes(stale, 1)
		if err := txn.Put([]byte("\x02k"), []byte("v")); err != nil {
			t.Fatal(err)
		}
		_, err := g.Commit(ctx)
		return err
	})
	c.ids.mu.next = c.ids.mu.end
	mustBeUnavailable("a new number", keyIDs, func() error {
		_, err := c.NewID(ctx)
		return err
	})
	mustBeUnavailable("a reservation", idKey(wordRelation, desc.ID), func() error {
		g := c.NewGuard()
		g.Reset(begin(t, db))
		defer g.Done(ctx, 0, nil)
		ch, err := g.Change(ctx)
		if err != nil {
			return err
		}
		_, err = ch.Reserve(ctx, desc.ID, 1)
		return err
	})
}
