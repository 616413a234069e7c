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

// sortHeads orders the places by their heads.
func (p *places) sortHeads() {
	if len(p.order) < radixLen {
		slices.SortFunc(p.order, func(i, j place) int { return cmp.Compare(i.head, j.head) })
		return
	}
	differing := uint64(0)
	for i := range p.order {
		differing |= p.order[i].head ^ p.order[0].head
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte(differing>>shift) == 0 {
			continue
		}
		var ends [256]int32 // where the next place with the digit goes
		for i := range p.order {
			ends[byte(p.order[i].head>>shift)]++
		}
		sum := int32(0)
		for i, n := range ends {
			ends[i], sum = sum, sum+n
		}
		for i := range p.order {
			digit := byte(p.order[i].head >> shift)
			p.spare[ends[digit]] = p.order[i]
			ends[digit]++
		}
		p.order, p.spare = p.spare, p.order
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
