package percolator

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// positions is what a lock set needs of its index.
type positions interface {
	sync(list []heldLock)
	cut(list []heldLock, n int)
	find(list []heldLock, key []byte) int
}

// mapIndex is the index as a map, whose keys share the memory of the list's.
type mapIndex struct {
	m map[string]int32
	n int
}

func (x *mapIndex) sync(list []heldLock) {
	if x.m == nil {
		x.m = map[string]int32{}
	}
	for ; x.n < len(list); x.n++ {
		x.m[sameBytes(list[x.n].key)] = int32(x.n)
	}
}

func (x *mapIndex) cut(list []heldLock, n int) {
	for ; x.n > n; x.n-- {
		delete(x.m, sameBytes(list[x.n-1].key))
	}
}

func (x *mapIndex) find(_ []heldLock, key []byte) int {
	if i, ok := x.m[string(key)]; ok {
		return int(i)
	}
	return -1
}

func sameBytes(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// BenchmarkKeyIndex compares the index of a lock set with a map: a transaction locks rows one after the other, looks for as
// many, of which it has half, and gives up the last tenth. docs/bench.md has the results.
func BenchmarkKeyIndex(b *testing.B) {
	for _, n := range []int{20, 1000, 100_000} {
		list, probes := make([]heldLock, n), make([][]byte, n)
		key := func(i int) []byte {
			return binary.BigEndian.AppendUint64([]byte("t\x00\x00\x00\x00\x00\x00\x00\x2ai\x00\x00\x00\x01"), uint64(i))
		}
		r := rand.New(rand.NewPCG(1, 2))
		for i, at := range r.Perm(n) {
			list[i].key, probes[i] = key(2*at), key(r.IntN(2*n))
		}
		for name, make := range map[string]func() positions{"own": func() positions { return &keyIndex{} }, "map": func() positions { return &mapIndex{} }} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x := make()
					for i := range list {
						x.sync(list[:i+1])
					}
					for _, probe := range probes {
						x.find(list, probe)
					}
					x.cut(list, n-n/10)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/lock")
			})
		}
	}
}
