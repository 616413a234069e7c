package percolator

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// place is the position of an entry, and of its key the first bytes that are not common to all.
type place struct {
	head uint64
	at   int32
}

// places are the two arrays between which a sort moves entries' places.
type places struct{ order, spare []place }

var placesPool = sync.Pool{New: func() any { return new(places) }}

// release returns the arrays to the pool. The order that sorted returned must not be used afterwards.
func (p *places) release() { placesPool.Put(p) }

// sorted sets p.order to the places ordered by key, those of one key from old to new. Most keys are told apart by
// their heads, without a look at the keys themselves.
func (b *writeBuffer) sorted() *places {
	p := placesPool.Get().(*places)
	p.order, p.spare = resized(p.order, b.n), resized(p.spare, b.n)
	common := b.common()
	for i := range p.order {
		p.order[i] = place{headOf(b.at(i).key[common:]), int32(i)}
	}
	p.sortHeads()
	for from := 0; from < b.n; {
		to := from + 1
		for to < b.n && p.order[to].head == p.order[from].head {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(p.order[from:to], func(i, j place) int {
				if c := bytes.Compare(b.at(int(i.at)).key[common:], b.at(int(j.at)).key[common:]); c != 0 {
					return c
				}
				return int(i.at - j.at)
			})
		}
		from = to
	}
	return p
}

// resized returns a slice of n places, whatever is in them, with s's memory if that is enough.
func resized(s []place, n int) []place {
	if cap(s) < n {
		return make([]place, n, n+n/16)
	}
	return s[:n]
}

// radixLen is how many places are sorted byte by byte; fewer are compared.
const radixLen = 512

// sortHeads orders the places by their heads. Those with the same first byte, such as the entries of one index, are
// sorted apart: a transaction that changes rows in key order has the rows in order already, but not their index entries.
func (p *places) sortHeads() {
	if len(p.order) < radixLen {
		slices.SortFunc(p.order, compareHeads)
		return
	}
	const first = 64 - 8
	var ends [256]int32
	distribute(p.spare, p.order, first, &ends)
	p.order, p.spare = p.spare, p.order
	from := int32(0)
	for _, to := range ends {
		sortGroup(p.order[from:to], p.spare[from:to], first)
		from = to
	}
}

func compareHeads(i, j place) int { return cmp.Compare(i.head, j.head) }

// sortGroup orders places by the low bits of their heads; the other bits are the same in all. It may change spare, which
// is as long.
func sortGroup(order, spare []place, bits int) {
	switch {
	case slices.IsSortedFunc(order, compareHeads):
		return
	case len(order) < radixLen:
		slices.SortFunc(order, compareHeads)
		return
	}
	differing := uint64(0)
	for i := range order {
		differing |= order[i].head ^ order[0].head
	}
	var ends [256]int32
	from, to := order, spare
	for shift := 0; shift < bits; shift += 8 {
		if byte(differing>>shift) != 0 {
			distribute(to, from, shift, &ends)
			from, to = to, from
		}
	}
	if &from[0] != &order[0] {
		copy(order, from)
	}
}

// distribute copies places, ordered by the byte of their heads at shift; those with the same byte keep their order. It
// sets ends to where the places of each byte end.
func distribute(to, from []place, shift int, ends *[256]int32) {
	clear(ends[:])
	for i := range from {
		ends[byte(from[i].head>>shift)]++
	}
	sum := int32(0)
	for i, n := range ends {
		ends[i], sum = sum, sum+n
	}
	for i := range from {
		digit := byte(from[i].head >> shift)
		to[ends[digit]] = from[i]
		ends[digit]++
	}
}

// common returns how many bytes all keys begin with alike.
func (b *writeBuffer) common() int {
	first := b.at(0).key
	n := len(first)
	for i := 1; i < b.n && n > 0; i++ {
		key := b.at(i).key
		n = min(n, len(key))
		for n > 0 && !bytes.Equal(first[:n], key[:n]) {
			n--
		}
	}
	return n
}

// headOf orders keys as far as their first eight bytes do.
func headOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var head [8]byte
	copy(head[:], key)
	return binary.BigEndian.Uint64(head[:])
}
