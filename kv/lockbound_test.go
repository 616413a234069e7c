package kv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Goal: a bound lies at least half its distance ahead of what is issued, is stored rarely, and is never below
// what the shard has. Method: a table.
func TestNextLockBound(t *testing.T) {
	at := tso.FromPhysical
	for _, tc := range []struct{ stored, claimed, windowEnd, want tso.Timestamp }{
		{0, 0, at(1000), at(1000 + lockBoundAhead)},
		{at(1000 + lockBoundAhead), 0, at(1000), at(1000 + lockBoundAhead)},
		{at(1000 + lockBoundAhead), 0, at(1000 + lockBoundAhead/2), at(1000 + lockBoundAhead)},
		{at(1000 + lockBoundAhead), 0, at(1001 + lockBoundAhead/2), at(1001 + 3*lockBoundAhead/2)},
		{at(5), at(1000 + 2*lockBoundAhead), at(1000), at(1000 + 2*lockBoundAhead)},
		{at(1000 + 2*lockBoundAhead), at(5), at(1000), at(1000 + 2*lockBoundAhead)},
	} {
		if got := nextLockBound(tc.stored, tc.claimed, tc.windowEnd); got != tc.want {
			t.Errorf("stored %d, claimed %d, window %d: %d, want %d", tc.stored, tc.claimed, tc.windowEnd, got, tc.want)
		}
	}
}

// Goal: B1 and B2: a store has no bound that the directory has not stored, it knows the safe point announced before
// it has a bound, a transaction above the bound gets a lock only after the bound was raised, and the directory keeps
// the bounds over a restart, until the store is forgotten. Method: a store whose bound the test lowers.
func TestLockBound(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t)
	gate := c.judgedDirectory()
	if err := <-c.open("a", gate); err != nil {
		t.Fatal(err)
	}
	s := c.stores["a"]
	now := func() tso.Timestamp {
		t.Helper()
		ts, err := gate.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return ts
	}
	stored := func() tso.Timestamp {
		c.dir.mu.RLock()
		defer c.dir.mu.RUnlock()
		return c.dir.mu.lockBounds["a"]
	}
	bound := s.mvcc.LockBound()
	if bound <= now() || bound > stored() {
		t.Fatalf("bound %d, stored %d, issued %d", bound, stored(), now())
	}
	desc := s.ownedRanges()[0]
	start := now()
	if err := c.engine.SaveGC(GCSettings{SafePoint: start}); err != nil {
		t.Fatal(err)
	}
	late := now()
	key := []byte("k")
	prewrite := func(onePC bool) error {
		_, err := s.Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{desc.Ref()}, StartTS: late, TTLMillis: 1000, TryOnePC: onePC,
			Primary: key, Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: key, Value: key}}})
		return err
	}
	acquire := func() error {
		_, err := s.AcquireLocks(ctx, &AcquireLocksRequest{Ranges: []RangeRef{desc.Ref()}, Keys: [][]byte{key}, Primary: key, StartTS: late, TTLMillis: 1000})
		return err
	}
	for name, lock := range map[string]func() error{
		"prewrite": func() error { return prewrite(false) }, "one phase": func() error { return prewrite(true) }, "lock": acquire,
	} {
		s.mvcc.SetLockBound(start)
		err := lock()
		var refused *mvcc.LockBoundError
		var unavailable *UnavailableError
		if !errors.As(err, &refused) || !errors.As(err, &unavailable) || !unavailable.NotSent {
			t.Errorf("%s above the bound: %v", name, err)
		}
		if n := s.mvcc.NumLocks(); n != 0 {
			t.Errorf("%s above the bound has left %d locks", name, n)
		}
		for deadline := time.Now().Add(time.Minute); s.mvcc.LockBound() < bound; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the bound was not raised again")
			}
		}
	}
	// The refusals have made the store announce itself, which has told it the safe point.
	if got := s.mvcc.SafePoint(); got != start {
		t.Errorf("the bound was raised with the safe point %d in force, %d was announced", got, start)
	}
	if err := prewrite(false); err != nil {
		t.Error(err)
	}
	before := stored()
	c.judgedDirectory()
	if stored() != before {
		t.Errorf("a restarted directory has the bound %d, it was %d", stored(), before)
	}
}
