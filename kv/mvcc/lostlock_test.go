package mvcc

import (
	"context"
	"errors"
	"testing"

	"github.com/percodb/percodb/tso"
)

// Goal: a lock that was lost is amended only if nothing was committed since it was granted, however far
// the transaction's snapshot has moved up meanwhile. Method: a read committed transaction locks a key,
// loses the lock, somebody else commits, and the transaction prewrites at a snapshot above that.
// (Found by test/sim: an increment was lost.)
func TestLostLockUnderAYoungerSnapshot(t *testing.T) {
	w := newWorld(t, false, nil)
	ctx := context.Background()
	key := []byte("k")
	start := w.now()
	res, err := w.AcquireLocks(ctx, admitAll{}, &AcquireArgs{Keys: [][]byte{key}, Primary: key, StartTS: start, TTLMillis: 3000})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ReleaseLocks(admitAll{}, [][]byte{key}, start, tso.MaxTimestamp); err != nil {
		t.Fatal(err)
	}
	put := func(start, read, lockedAt tso.Timestamp) error {
		_, err := w.Prewrite(ctx, admitAll{}, &PrewriteArgs{
			Mutations: []Mutation{{Op: OpPut, Key: key, Value: []byte("v"), LockedAt: lockedAt}},
			Primary:   key, StartTS: start, ReadTS: read, TTLMillis: 3000, TxnSize: 1, TryOnePC: true,
		})
		return err
	}
	if err := put(w.now(), 0, 0); err != nil {
		t.Fatal(err)
	}
	var conflict *WriteConflictError
	if err := put(start, w.now(), res.LockedAt[0]); !errors.As(err, &conflict) {
		t.Fatalf("%v, want a conflict", err)
	}
}
