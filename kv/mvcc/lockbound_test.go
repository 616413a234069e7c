package mvcc

import (
	"context"
	"errors"
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: no locking request leaves anything of a transaction above the lock bound; one at the bound succeeds. Method:
// each kind of request on both sides of the bound.
func TestLockBoundRefuses(t *testing.T) {
	w := newWorld(t, false, nil)
	ctx := context.Background()
	key := []byte("k")
	at := w.now()
	requests := map[string]func(start tso.Timestamp) error{
		"prewrite": func(start tso.Timestamp) error {
			_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: key}}, Primary: key, StartTS: start, TTLMillis: 1})
			return err
		},
		"one phase": func(start tso.Timestamp) error {
			_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: key}}, Primary: key, StartTS: start, TTLMillis: 1, TryOnePC: true})
			return err
		},
		"async": func(start tso.Timestamp) error {
			_, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: key}}, Primary: key, StartTS: start, TTLMillis: 1, Async: true})
			return err
		},
		"pessimistic": func(start tso.Timestamp) error {
			_, err := w.AcquireLocks(ctx, admitAll{}, &AcquireLocksRequest{Keys: [][]byte{key}, Primary: key, StartTS: start, TTLMillis: 1})
			return err
		},
	}
	for name, request := range requests {
		w.SetLockBound(at)
		var refused *LockBoundError
		if err := request(w.now()); !errors.As(err, &refused) || refused.Bound != at {
			t.Errorf("%s above the bound: %v", name, err)
		}
		if w.NumLocks() != 0 || len(w.records(tagWrite)) != 0 {
			t.Errorf("%s above the bound: locks %d, versions %v", name, w.NumLocks(), w.records(tagWrite))
		}
	}
	w.SetLockBound(w.now())
	if err := requests["prewrite"](w.LockBound()); err != nil || w.NumLocks() != 1 {
		t.Errorf("prewrite at the bound: %v", err)
	}
}
