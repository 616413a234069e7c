package percolator

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// keyIndex finds keys in a list of locks that grows, and is truncated, at its end. It stores positions, not keys: an
// open hash table whose slots contain positions, and enough of the hash to avoid most comparisons. The zero value is
// empty.
type keyIndex struct {
	seed  maphash.Seed
	slots []keySlot // a power of two, at most half of them in use
	n     int       // entries of the list that are in
}

// keySlot is in use if at is not 0: position at-1.
type keySlot struct{ at, tag uint32 }

// leastSlots is the size of a new table.
const leastSlots = 64

// sync adds the locks appended to the list.
func (x *keyIndex) sync(list []heldLock) {
	if 2*len(list) > len(x.slots) {
		size := max(leastSlots, 4<<bits.Len(uint(len(list)-1)))
		if x.slots == nil {
			x.seed = maphash.MakeSeed()
		}
		x.slots, x.n = make([]keySlot, size), 0
	}
	for ; x.n < len(list); x.n++ {
		h := maphash.Bytes(x.seed, list[x.n].key)
		i := x.slot(h)
		for x.slots[i].at != 0 {
			i = (i + 1) & uint64(len(x.slots)-1)
		}
		x.slots[i] = keySlot{at: uint32(x.n) + 1, tag: uint32(h)}
	}
}

// cut takes out the keys of the list from position n on. They are those that came last, so that no
// search for another passes over their slots.
func (x *keyIndex) cut(list []heldLock, n int) {
	for ; x.n > n; x.n-- {
		h := maphash.Bytes(x.seed, list[x.n-1].key)
		i := x.slot(h)
		for x.slots[i].at != uint32(x.n) {
			i = (i + 1) & uint64(len(x.slots)-1)
		}
		x.slots[i] = keySlot{}
	}
}

// slot is where the search for a hash begins. The tag is its other half.
func (x *keyIndex) slot(h uint64) uint64 { return h >> 32 & uint64(len(x.slots)-1) }

// find returns the position of key, or -1.
func (x *keyIndex) find(list []heldLock, key []byte) int {
	h := maphash.Bytes(x.seed, key)
	for i := x.slot(h); x.slots[i].at != 0; i = (i + 1) & uint64(len(x.slots)-1) {
		if s := x.slots[i]; s.tag == uint32(h) && bytes.Equal(list[s.at-1].key, key) {
			return int(s.at - 1)
		}
	}
	return -1
}
