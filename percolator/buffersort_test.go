package percolator

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/internal/memory"
)

// Goal: entries are sorted by their keys, those of one key from old to new, for any number of entries and any
// difference of the keys. Method: random keys of random lengths over few and over all bytes, with and without a common
// prefix, against a comparison of whole keys.
func TestSortedPlaces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, radixLen - 1, radixLen, 3 * chunkLen} {
		for _, letters := range []int{2, 256} {
			for _, length := range []int{1, 3, 20} {
				b := &writeBuffer{account: memory.NewAccount(nil, 0), frozen: 1 << 30}
				for range n {
					key := []byte("prefix")
					for range 1 + rnd.IntN(length) {
						key = append(key, byte(rnd.IntN(letters)))
					}
					b.frozen = b.n // no entry replaces another
					b.add(key, nil, changePut)
				}
				want := make([]int32, n)
				for i := range want {
					want[i] = int32(i)
				}
				slices.SortStableFunc(want, func(i, j int32) int { return bytes.Compare(b.at(int(i)).key, b.at(int(j)).key) })
				got := b.sorted()
				for i, p := range got.order {
					if p.at != want[i] {
						t.Fatalf("%d keys of up to %d of %d letters: place %d has entry %d, want %d", n, length, letters, i, p.at, want[i])
					}
				}
				got.release()
			}
		}
	}
}

// Goal: chunks that a spilled buffer keeps for later entries stay in its account until they are used, or released, and
// no earlier entry reappears.
func TestSpareChunksAreAccounted(t *testing.T) {
	pool := memory.NewPool("writes", 64<<20)
	db := newCluster(t, nil).db(Options{SpillBytes: 4 << 20, Memory: pool}, nil)
	txn := mustBegin(t, db)
	for i := range 60_000 {
		must(t, txn.Put(rowKey(i), []byte("1")))
		if spare := int64(len(txn.buf.spare)) * chunkLen * entryOverhead; txn.buf.account.Used() < txn.buf.memBytes+spare {
			t.Fatalf("after %d writes %d bytes are in the account, %d of entries and %d spare are held", i, txn.buf.account.Used(), txn.buf.memBytes, spare)
		}
	}
	must(t, txn.buf.settle())
	if txn.buf.spilled == nil || len(txn.buf.spare) == 0 {
		t.Fatal("nothing is spare")
	}
	if rows, sum := contents(t, txn); rows != 60_000 || sum != 60_000 {
		t.Errorf("%d rows of %d", rows, sum)
	}
	if txn.buf.tight {
		t.Error("the collector runs more often for a few megabytes")
	}
	big := make([]byte, 1<<20)
	for i := range 80 {
		must(t, txn.Put(fmt.Appendf(nil, "big%d", i), big))
	}
	if !txn.buf.tight {
		t.Error("the collector lets garbage pile up beside a large transaction")
	}
	buf := txn.buf
	must(t, txn.Rollback(t.Context()))
	if buf.tight {
		t.Error("the collector stays as it was for the transaction")
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes are left in the pool", pool.Used())
	}
}
