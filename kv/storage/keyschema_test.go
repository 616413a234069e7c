package storage

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Goal: keys that lie in blocks as columns are the same keys in the same order, found from any place.
// Method: close keys of either shape in an engine, flushed, and compacted into blocks of many; walks in
// both directions and seeks for keys that are there and keys that are not, against a sorted slice.
func TestKeySchema(t *testing.T) {
	e := mustOpen(t, vfs.NewMem())
	defer mustClose(t, e)
	rng := rand.New(rand.NewPCG(7, 7))
	var keys [][]byte
	for range 4 {
		b := e.NewBatch(0)
		for range 3000 {
			k := key(randomKey(rng))
			keys = append(keys, k)
			b.Put(k, k)
		}
		if err := e.Apply(b, NoSync); err != nil {
			t.Fatal(err)
		}
		b.Close()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(keys, compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	it, err := e.NewRangeIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	at := func(ok bool, i int) {
		t.Helper()
		switch {
		case ok != (i >= 0 && i < len(keys)):
			t.Fatalf("key %d of %d: %v, %v", i, len(keys), ok, it.Error())
		case ok && !bytes.Equal(it.Key(), keys[i]):
			t.Fatalf("key %d is %x, want %x", i, it.Key(), keys[i])
		}
	}
	for ok, i := it.First(), 0; i <= len(keys); ok, i = it.Next(), i+1 {
		at(ok, i)
	}
	for ok, i := it.Last(), len(keys)-1; i >= -1; ok, i = it.Prev(), i-1 {
		at(ok, i)
	}
	for range 20_000 {
		k := key(randomKey(rng))
		i, _ := slices.BinarySearchFunc(keys, k, compare)
		at(it.SeekGE(k), i)
		at(it.SeekLT(k), i-1)
	}
}

// Goal: what Pebble asks of the writer of a block, its answers about the key before, holds. Method:
// sorted close keys written into a block; Pebble's own assertion, and the keys put together again.
func TestKeyWriter(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	var keys [][]byte
	for range 2000 {
		keys = append(keys, key(randomKey(rng)))
	}
	slices.SortFunc(keys, compare)
	schema, comparer := newKeySchema(), newComparer()
	w := schema.NewKeyWriter()
	for range 2 {
		for row, k := range keys {
			c := w.ComparePrev(k)
			if row > 0 {
				colblk.AssertKeyCompare(comparer, k, keys[row-1], c)
			}
			w.WriteKey(row, k, c.PrefixLen, c.CommonPrefixLen)
			if got := w.MaterializeKey(nil, row); !bytes.Equal(got, k) {
				t.Fatalf("row %d is %x, want %x", row, got, k)
			}
		}
		w.Reset()
	}
}
