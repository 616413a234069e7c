package mvcc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/btree"
)

// orderedEntries is what the lock table needs of its tree. begin starts a request, whose keys ascend.
type orderedEntries interface {
	begin()
	get(key []byte) *entry
	next() *entry // the entry after a key that get has not found
	put(e *entry)
	remove(key []byte)
}

type ownTree struct {
	*lockTree
	f finger
}

func (t *ownTree) begin()                { t.f = finger{} }
func (t *ownTree) get(key []byte) *entry { return t.lockTree.get(&t.f, key) }
func (t *ownTree) next() *entry          { return t.following(&t.f) }
func (t *ownTree) put(e *entry)          { t.lockTree.put(&t.f, e) }
func (t *ownTree) remove(key []byte)     { t.lockTree.remove(&t.f, key) }

type googleTree struct {
	*btree.BTreeG[*entry]
	probe entry
}

func (t *googleTree) begin() {}

func (t *googleTree) get(key []byte) *entry {
	t.probe.key = key
	e, _ := t.Get(&t.probe)
	return e
}

func (t *googleTree) next() (next *entry) {
	t.AscendGreaterOrEqual(&t.probe, func(e *entry) bool { next = e; return false })
	return next
}

func (t *googleTree) put(e *entry) { t.ReplaceOrInsert(e) }

func (t *googleTree) remove(key []byte) {
	t.probe.key = key
	t.Delete(&t.probe)
}

// BenchmarkLockTree compares the lock table's tree with a library's: requests of some ascending keys that look for locks,
// lock and unlock, with the locks of others around them. docs/bench.md has the results.
func BenchmarkLockTree(b *testing.B) {
	for _, c := range []struct{ keys, others int }{{4, 0}, {4, 64}, {4, 10_000}, {4096, 0}, {4096, 10_000}} {
		for name, tree := range map[string]orderedEntries{
			"own":    &ownTree{lockTree: newLockTree()},
			"google": &googleTree{BTreeG: btree.NewG(32, func(a, b *entry) bool { return bytes.Compare(a.key, b.key) < 0 })},
		} {
			b.Run(fmt.Sprintf("keys=%d/others=%d/%s", c.keys, c.others, name), func(b *testing.B) { benchmarkTree(b, tree, c.keys, c.others) })
		}
	}
}

func benchmarkTree(b *testing.B, tree orderedEntries, keys, others int) {
	key := func(n uint64) []byte {
		return binary.BigEndian.AppendUint64([]byte("t\x00\x00\x00\x00\x00\x00\x00\x2ai\x00\x00\x00\x01"), n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, i := range r.Perm(others) {
		tree.begin()
		tree.put(&entry{key: key(uint64(i) * 1000)})
	}
	requests := make([][]entry, max(1, 4096/keys))
	for i := range requests {
		requests[i] = make([]entry, keys)
		at := r.Uint64N(uint64(others+1)*1000) | 1
		for j := range requests[i] {
			requests[i][j].key = key(at + 8*uint64(j))
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		request := requests[i%len(requests)]
		tree.begin()
		free, end := false, []byte(nil)
		for j := range request {
			if free && (end == nil || bytes.Compare(request[j].key, end) < 0) {
				continue
			}
			if free, end = tree.get(request[j].key) == nil, nil; free {
				if next := tree.next(); next != nil {
					end = next.key
				}
			}
		}
		tree.begin()
		for j := range request {
			tree.put(&request[j])
		}
		tree.begin()
		for j := range request {
			tree.remove(request[j].key)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
}
