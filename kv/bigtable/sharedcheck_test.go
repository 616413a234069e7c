package bigtable

import (
	"context"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
)

// betweenTable is a table in memory that calls between once, after the first request whose contents are not conditional.
type betweenTable struct {
	*widerow.Memory
	between func()
}

func (b *betweenTable) call() {
	if f := b.between; f != nil {
		b.between = nil
		f()
	}
}

func (b *betweenTable) ReadRows(ctx context.Context, rows widerow.RowSet, f widerow.Filter, o widerow.ReadOptions, visit func(widerow.Row) bool) error {
	defer b.call()
	return b.Memory.ReadRows(ctx, rows, f, o, visit)
}

func (b *betweenTable) Mutate(ctx context.Context, rows []string, changes []*widerow.Mutation) ([]error, error) {
	defer b.call()
	return b.Memory.Mutate(ctx, rows, changes)
}

// Goal: of two transactions, one of which has lost an exclusive lock on a key while the other one relies on the key at its commit, one fails, whatever is
// executed first. Method: the exclusive lock is removed; its owner prewrites the key between the two requests by which the other one checks it.
func TestSharedCheckBesideALostLock(t *testing.T) {
	for _, keys := range [][]string{{"g"}, {"f", "g"}} {
		table := &betweenTable{Memory: widerow.NewMemory()}
		oracle := &tsotest.ClockOracle{}
		shard := func() *Shard {
			s, err := NewShard(t.Context(), NewClient(table, 2*time.Second), ShardOptions{Oracle: oracle})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			return s
		}
		ctx, d, g := t.Context(), theRange(), []byte("g")
		refs := []kv.RangeRef{d.Ref()}
		exclusive, other, start := shard(), shard(), mustNow(t, oracle)
		got, err := exclusive.AcquireLocks(ctx, &kv.AcquireLocksRequest{Ranges: refs, Keys: [][]byte{g}, Primary: g, StartTS: start, TTLMillis: 60_000})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.ReleaseLocks(ctx, &kv.ReleaseLocksRequest{Ranges: refs, Keys: [][]byte{g}, StartTS: start, ForUpdateTS: got.LockedAt[0]}); err != nil {
			t.Fatal(err)
		}
		begun := mustNow(t, oracle)
		check := &kv.PrewriteRequest{Ranges: refs, Primary: []byte("p"), StartTS: begun, TTLMillis: 60_000, FloorTS: mustNow(t, oracle)}
		for _, key := range keys {
			check.Mutations = append(check.Mutations, mvcc.Mutation{Op: mvcc.OpCheckShared, Key: []byte(key), LockedAt: begun})
		}
		var lockErr error
		called := false
		table.between = func() {
			called = true
			_, lockErr = exclusive.Prewrite(ctx, &kv.PrewriteRequest{Ranges: refs, Primary: g, StartTS: start, TTLMillis: 60_000,
				Mutations: []mvcc.Mutation{{Op: mvcc.OpDelete, Key: g, LockedAt: got.LockedAt[0]}}})
		}
		_, checkErr := other.Prewrite(ctx, check)
		if !called || (checkErr == nil) == (lockErr == nil) {
			t.Errorf("checks of %v: the check: %v, the prewrite between (%v): %v", keys, checkErr, called, lockErr)
		}
	}
}
