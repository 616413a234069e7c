package executor

import "math/bits"

// hashTable maps 64-bit hashes to entries numbered from 1 in order of insertion; the caller stores the entries' contents
// in slices. The caller also distinguishes entries with equal hashes. Chains are stored in two flat slices, so a table
// of a million entries is six allocations and contains no pointers.
type hashTable struct {
	heads  []uint32 // by the hash's high bits: entry number, 0 for none
	next   []uint32 // by entry number: the next entry of the chain
	hashes []uint64 // by entry number
	shift  uint8
}

const firstHeads = 16

// reset empties the table and keeps its memory.
func (t *hashTable) reset() {
	clear(t.heads)
	if len(t.next) > 0 {
		t.next, t.hashes = t.next[:1], t.hashes[:1]
	}
}

// len is the number of entries.
func (t *hashTable) len() int { return max(len(t.next), 1) - 1 }

// first returns the first entry that may have the hash, 0 for none.
func (t *hashTable) first(hash uint64) uint32 {
	if len(t.heads) == 0 {
		return 0
	}
	return t.skip(t.heads[hash>>t.shift], hash)
}

// after returns the next entry with the hash after entry e.
func (t *hashTable) after(e uint32, hash uint64) uint32 { return t.skip(t.next[e], hash) }

func (t *hashTable) skip(e uint32, hash uint64) uint32 {
	for e != 0 && t.hashes[e] != hash {
		e = t.next[e]
	}
	return e
}

// insert adds an entry, also where the hash is there already, and returns its number. Entries of
// one hash are found newest first.
func (t *hashTable) insert(hash uint64) uint32 {
	if len(t.next) == 0 {
		t.next, t.hashes = make([]uint32, 1, firstHeads+1), make([]uint64, 1, firstHeads+1)
	}
	if t.len() >= len(t.heads) {
		t.grow()
	}
	e := uint32(len(t.next))
	slot := &t.heads[hash>>t.shift]
	t.next, t.hashes = append(t.next, *slot), append(t.hashes, hash)
	*slot = e
	return e
}

func (t *hashTable) grow() {
	n := max(2*len(t.heads), firstHeads)
	t.heads = make([]uint32, n)
	t.shift = uint8(64 - bits.Len(uint(n-1)))
	for e := 1; e < len(t.next); e++ {
		slot := &t.heads[t.hashes[e]>>t.shift]
		t.next[e] = *slot
		*slot = uint32(e)
	}
}

// entryBytes is the average cost of an entry: head, next and hash, half empty by doubling.
const entryBytes = 32

// mix distributes an integer over 64 bits. It is a bijection: two integers with equal mixes are equal, so a table over
// one integer column needs no comparison of keys.
func mix(v uint64) uint64 {
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	v ^= v >> 33
	v *= 0xc4ceb9fe1a85ec53
	return v ^ v>>33
}
