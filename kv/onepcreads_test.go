package kv

import (
	"context"
	"errors"
	"testing"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
)

// Goal: a one-phase serializable commit validates only what is still this store's. Method: a
// transaction reads the empty range [m,…) and routes its commit; the range moves away, to where
// somebody may write into it; the commit arrives. It leaves no lock behind, and succeeds once its
// reads are elsewhere validated.
func TestOnePhaseReadsMustBeHere(t *testing.T) {
	ctx := context.Background()
	ts := openTestStore(t, storage.NewMemFS(), nil)
	if err := ts.ForceSplit(ctx, []byte("m")); err != nil {
		t.Fatal(err)
	}
	req := &PrewriteRequest{Ranges: ts.refs(), Mutations: mutations(put("a", "1")), Primary: []byte("a"), StartTS: ts.now(),
		TTLMillis: 3000, TxnSize: 1, TryOnePC: true, Reads: []Span{span("m", "n")}}
	released, err := ts.ReleaseSpan(ctx, &ReleaseSpanRequest{Span: span("m", ""), RemainderID: 99})
	if err != nil || !released.Released {
		t.Fatal(released, err)
	}
	var stale *StaleRangeError
	if res, err := ts.Prewrite(ctx, req); !errors.As(err, &stale) {
		t.Fatalf("committed at %d, %v; want a stale range", res.OnePCCommitTS, err)
	}
	if n := ts.mvcc.NumLocks(); n != 0 {
		t.Fatalf("%d locks are left", n)
	}
	req.Reads = nil
	if res, err := ts.Prewrite(ctx, req); err != nil || res.OnePCCommitTS == 0 {
		t.Fatal(res, err)
	}
	// A read that is here, next to one that is not.
	req = &PrewriteRequest{Ranges: ts.refs(), Mutations: []mvcc.Mutation{put("b", "1")}, Primary: []byte("b"), StartTS: ts.now(),
		TTLMillis: 3000, TxnSize: 1, TryOnePC: true, Reads: []Span{span("c", "d"), span("l", "n")}}
	if _, err := ts.Prewrite(ctx, req); !errors.As(err, &stale) {
		t.Fatalf("%v, want a stale range", err)
	}
	req.Reads = req.Reads[:1]
	if res, err := ts.Prewrite(ctx, req); err != nil || res.OnePCCommitTS == 0 {
		t.Fatal(res, err)
	}
}
