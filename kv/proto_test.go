package kv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// acquire asks for one key, waiting for up to wait.
func (ts *testStore) acquire(refs []RangeRef, key string, start tso.Timestamp, wait time.Duration) (tso.Timestamp, error) {
	res, err := ts.AcquireLocks(context.Background(), &AcquireLocksRequest{Ranges: refs, Keys: [][]byte{[]byte(key)},
		Primary: []byte(key), StartTS: start, ReadTS: start, TTLMillis: 60_000, Wait: wait})
	if err != nil {
		return 0, err
	}
	return res.LockedAt[0], nil
}

func (ts *testStore) release(key string, start tso.Timestamp) {
	ts.t.Helper()
	err := ts.ReleaseLocks(context.Background(), &ReleaseLocksRequest{Ranges: ts.refs(), Keys: [][]byte{[]byte(key)}, StartTS: start, ForUpdateTS: tso.MaxTimestamp})
	if err != nil {
		ts.t.Fatal(err)
	}
}

// queue starts a request that has to wait, and returns when it does.
func (ts *testStore) queue(key string, start tso.Timestamp) <-chan error {
	ts.t.Helper()
	waits, done := ts.mvcc.WaitStats().Waits, make(chan error, 1)
	refs := ts.refs()
	go func() {
		_, err := ts.acquire(refs, key, start, time.Hour)
		done <- err
	}()
	for ts.mvcc.WaitStats().Waits == waits {
		select {
		case err := <-done:
			ts.t.Fatalf("the request for %s did not wait: %v", key, err)
		case <-time.After(time.Millisecond):
		}
	}
	return done
}

// Goal: a split while transactions wait for a key wakes them: they are told that their route is stale,
// and find the key, with its lock, by the new one. Method: queue one on either side of the split.
func TestProto_T_SPL_2(t *testing.T) {
	ts := openTestStore(t, storage.NewMemFS(), nil)
	holder, left, right := ts.now(), ts.now(), ts.now()
	for _, key := range []string{"a", "z"} {
		if at, err := ts.acquire(ts.refs(), key, holder, 0); at != holder || err != nil {
			t.Fatal(at, err)
		}
	}
	waits := []<-chan error{ts.queue("a", left), ts.queue("z", right)}
	if err := ts.ForceSplit(context.Background(), []byte("m")); err != nil {
		t.Fatal(err)
	}
	for _, done := range waits {
		var stale *StaleRangeError
		if err := <-done; !errors.As(err, &stale) || len(stale.Current) != 1 {
			t.Errorf("a waiter was told %v", err)
		}
	}
	again := ts.queue("z", right)
	ts.release("z", holder)
	if err := <-again; err != nil {
		t.Error(err)
	}
	var locked *mvcc.KeyLockedError
	if _, err := ts.acquire(ts.refs(), "z", left, 0); !errors.As(err, &locked) || locked.Lock.StartTS != right {
		t.Errorf("the key is held by %v", err)
	}
}

// Goal: a span with a pessimistic lock in it, which no disk knows of, is not given away, and one that
// was given away takes no lock. Method: ask for it before and after the lock is released.
func TestPessimisticLocksHoldTheirSpan(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b")
	start, _ := c.oracle.Now(ctx)
	desc, _, _ := c.dir.Lookup(ctx, []byte("m"))
	keys := [][]byte{[]byte("m")}
	req := &AcquireLocksRequest{Ranges: []RangeRef{desc.Ref()}, Keys: keys, Primary: keys[0], StartTS: start, TTLMillis: 3000}
	if _, err := c.stores["a"].AcquireLocks(ctx, req); err != nil {
		t.Fatal(err)
	}
	carve := &ReleaseSpanRequest{Plan: 98, Span: span("m", "n"), RemainderID: 99}
	if res, err := c.stores["a"].ReleaseSpan(ctx, carve); err != nil || res.Released {
		t.Errorf("a locked span was given away: %+v %v", res, err)
	}
	if err := c.stores["a"].ReleaseLocks(ctx, &ReleaseLocksRequest{Ranges: req.Ranges, Keys: keys, StartTS: start, ForUpdateTS: tso.MaxTimestamp}); err != nil {
		t.Fatal(err)
	}
	carve.Plan++ // a shard does not change its answer about a plan
	if res, err := c.stores["a"].ReleaseSpan(ctx, carve); err != nil || !res.Released {
		t.Errorf("a free span was not given away: %+v %v", res, err)
	}
	var stale *StaleRangeError
	if _, err := c.stores["a"].AcquireLocks(ctx, req); !errors.As(err, &stale) {
		t.Errorf("a lock in a span that was given away: %v", err)
	}
}

// Goal: a store that closes does not wait for those who wait for locks. Method: close it under one.
func TestCloseEndsWaits(t *testing.T) {
	ts := openTestStore(t, storage.NewMemFS(), nil)
	if _, err := ts.acquire(ts.refs(), "k", ts.now(), 0); err != nil {
		t.Fatal(err)
	}
	done := ts.queue("k", ts.now())
	ts.close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("a waiter was told %v", err)
	}
}

// Goal: after a move, a split or a restart the new server of a key computes no commit_ts at or
// below a read that was served before. Method: read late, change the server, prewrite for an async
// commit with an old start_ts and without a floor of its own; check the minimum.
func TestProto_T_ASY_10(t *testing.T) {
	ctx := context.Background()
	async := func(t *testing.T, s *Store, desc *RangeDescriptor, start, floor, read tso.Timestamp) {
		t.Helper()
		res, err := s.Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{desc.Ref()}, Mutations: mutations(put("m", "1")),
			Primary: []byte("m"), StartTS: start, FloorTS: floor, TTLMillis: 3000, Async: true})
		if err != nil || !res.Async || res.MinCommitTS <= read {
			t.Errorf("%+v %v, read at %d", res, err, read)
		}
	}
	t.Run("move", func(t *testing.T) {
		c := newTestCluster(t, "a", "b")
		start, _ := c.oracle.Now(ctx)
		floor, _ := c.oracle.Now(ctx)
		desc, _, _ := c.dir.Lookup(ctx, []byte("m"))
		read, _ := c.oracle.Now(ctx)
		if _, err := c.stores["a"].Get(ctx, desc.Ref(), []byte("m"), ReadOptions{ReadTS: read}); err != nil {
			t.Fatal(err)
		}
		if err := c.dir.CreateRange(ctx, span("m", "n")); err != nil {
			t.Fatal(err)
		}
		desc, _, _ = c.dir.Lookup(ctx, []byte("m"))
		if desc.Shard != "b" {
			t.Fatalf("the span is at %s", desc.Shard)
		}
		async(t, c.stores["b"], &desc, start, floor, read)
	})
	t.Run("split and restart", func(t *testing.T) {
		fs := storage.NewMemFS()
		ts := openTestStore(t, fs, nil)
		start, floor, read := ts.now(), ts.now(), ts.now()
		ts.get("m", read)
		if err := ts.ForceSplit(ctx, []byte("m")); err != nil {
			t.Fatal(err)
		}
		desc, _, _ := ts.Router().Locate(ctx, []byte("m"))
		async(t, ts.Store, desc, start, floor, read)
		if err := ts.Rollback(ctx, &RollbackRequest{Ranges: ts.refs(), Keys: [][]byte{[]byte("m")}, StartTS: start}); err != nil {
			t.Fatal(err)
		}
		start, floor, read = ts.now(), ts.now(), ts.now()
		ts.get("m", read)
		ts.close()
		ts = openTestStore(t, fs, nil)
		desc, _, _ = ts.Router().Locate(ctx, []byte("m"))
		async(t, ts.Store, desc, start, floor, read)
	})
}
