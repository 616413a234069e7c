// Package keypack is an ordered map from keys to two numbers, for millions of keys. Neighbours that share a
// prefix and have the same numbers, or nearly, take five or six bytes each.
//
//	blocks   low ""      │ low "k0064"  │ low "k0128" …    a tree of them; low is a bound below the block's keys
//	block    shared, rest, Δa, Δb │ shared, rest, Δa, Δb …  up to 64 records, each relative to the one before
//
// One block at a time, the one changed last, is open: decoded, so that changes of neighbouring keys cost
// little. Concurrent reads are safe as long as the map is not changed.
package keypack

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/crlib/crbytes"
	"github.com/google/btree"
)

// Value is what a map has for a key.
type Value struct{ A, B uint64 }

const (
	// blockLen is how many records a block has at most.
	blockLen = 64
	// blockOverhead is what a block takes beside its bound and its data, with its place in the tree.
	blockOverhead = 128
	treeDegree    = 32
)

// block is a group of consecutive records. While it is open its data is stale.
type block struct {
	low  []byte // every key of the block is at or above it, and below the low of the next block
	data []byte
	n    int
	maxB uint64
}

func (b *block) sizeBytes() int64 { return int64(len(b.low) + cap(b.data) + blockOverhead) }

// record is a decoded record.
type record struct {
	key []byte
	Value
}

// Map is the map. The zero value is empty.
type Map struct {
	blocks    *btree.BTreeG[*block] // nil: empty. The first block has an empty low, and stays.
	n         int
	sizeBytes int64

	open    openBlock
	scratch []byte
}

// openBlock is the block that is open.
type openBlock struct {
	*block        // nil: none
	high   []byte // low of the next block; nil: there is none
	recs   []record
	arena  []byte // has the keys of recs, and keys deleted since it was made
}

// compact moves the keys to an arena that has space for as much again and n bytes, and drops the deleted ones.
func (o *openBlock) compact(n int) {
	for i := range o.recs {
		n += len(o.recs[i].key)
	}
	arena := make([]byte, 0, 2*n)
	for i := range o.recs {
		at := len(arena)
		arena = append(arena, o.recs[i].key...)
		o.recs[i].key = arena[at:len(arena):len(arena)]
	}
	o.arena = arena
}

// Len is the number of keys.
func (m *Map) Len() int { return m.n }

// SizeBytes is about how much memory the map takes.
func (m *Map) SizeBytes() int64 { return m.sizeBytes }

// Get returns the value of a key.
func (m *Map) Get(key []byte) (v Value, found bool) {
	if m.blocks == nil {
		return v, false
	}
	if m.isOpen(key) {
		i, found := search(m.open.recs, key)
		if found {
			v = m.open.recs[i].Value
		}
		return v, found
	}
	return m.blockOf(key).get(key)
}

// isOpen reports whether the block that is responsible for key is open.
func (m *Map) isOpen(key []byte) bool {
	return m.open.block != nil && bytes.Compare(m.open.low, key) <= 0 && (m.open.high == nil || bytes.Compare(key, m.open.high) < 0)
}

// blockOf returns the block that is responsible for key.
func (m *Map) blockOf(key []byte) (b *block) {
	m.blocks.DescendLessOrEqual(&block{low: key}, func(at *block) bool { b = at; return false })
	return b
}

// nextBlock returns the block after b, nil if it is the last.
func (m *Map) nextBlock(b *block) (next *block) {
	m.blocks.AscendGreaterOrEqual(b, func(at *block) bool {
		if at == b {
			return true
		}
		next = at
		return false
	})
	return next
}

// prevBlock returns the block before b, nil if it is the first.
func (m *Map) prevBlock(b *block) (prev *block) {
	m.blocks.DescendLessOrEqual(b, func(at *block) bool {
		if at == b {
			return true
		}
		prev = at
		return false
	})
	return prev
}

// Set gives a key a value. The key is copied.
func (m *Map) Set(key []byte, v Value) {
	if m.blocks == nil {
		m.blocks = btree.NewG(treeDegree, func(a, b *block) bool { return bytes.Compare(a.low, b.low) < 0 })
		first := &block{}
		m.blocks.ReplaceOrInsert(first)
		m.sizeBytes = first.sizeBytes()
	}
	m.openFor(key)
	o := &m.open
	i, found := search(o.recs, key)
	if found {
		o.recs[i].Value = v
		return
	}
	m.n++
	if len(o.recs) == blockLen {
		i = m.split(i, key)
	}
	if len(o.arena)+len(key) > cap(o.arena) {
		o.compact(len(key))
	}
	at := len(o.arena)
	o.arena = append(o.arena, key...)
	o.recs = slices.Insert(o.recs, i, record{o.arena[at:len(o.arena):len(o.arena)], v})
}

// split makes place in the open block, which is full, for a key whose place is at. It returns the key's place in the
// block that is open then. Keys often come in order: then what lies before them stays full.
func (m *Map) split(at int, key []byte) int {
	o := &m.open
	const middle = blockLen / 2
	right := &block{}
	switch {
	case at == blockLen:
		right.low = bytes.Clone(key)
		m.encode()
		o.block, o.recs, o.arena = right, o.recs[:0], o.arena[:0]
		at = 0
	case at > middle:
		right.low = bytes.Clone(o.recs[middle].key)
		rest := slices.Clone(o.recs[middle:])
		o.recs = o.recs[:middle]
		m.encode()
		o.block, o.recs = right, rest
		at -= middle
	default:
		right.low = bytes.Clone(o.recs[middle].key)
		m.encodeTo(right, o.recs[middle:])
		o.recs, o.high = o.recs[:middle], right.low
	}
	m.blocks.ReplaceOrInsert(right)
	m.sizeBytes += right.sizeBytes()
	return at
}

// Delete removes a key, and returns the value that it had.
func (m *Map) Delete(key []byte) (v Value, found bool) {
	if m.n == 0 {
		return v, false
	}
	m.openFor(key)
	i, found := search(m.open.recs, key)
	if !found {
		return v, false
	}
	v = m.open.recs[i].Value
	m.open.recs = slices.Delete(m.open.recs, i, i+1)
	m.n--
	return v, true
}

// openFor opens the block that is responsible for key.
func (m *Map) openFor(key []byte) {
	if m.isOpen(key) {
		return
	}
	m.close()
	o := &m.open
	o.block = m.blockOf(key)
	o.high = nil
	if next := m.nextBlock(o.block); next != nil {
		o.high = next.low
	}
	o.recs, o.arena = o.decode(o.recs[:0], o.arena[:0])
}

// close encodes the open block, or removes it if it is empty.
func (m *Map) close() {
	o := &m.open
	if o.block == nil {
		return
	}
	if len(o.recs) == 0 && len(o.low) > 0 {
		m.sizeBytes -= o.sizeBytes()
		m.blocks.Delete(o.block)
	} else {
		m.encode()
	}
	o.block = nil
}

// encode brings the data of the open block up to date.
func (m *Map) encode() {
	m.sizeBytes -= m.open.sizeBytes()
	m.encodeTo(m.open.block, m.open.recs)
	m.sizeBytes += m.open.sizeBytes()
}

// encodeTo makes recs the records of a block.
func (m *Map) encodeTo(b *block, recs []record) {
	buf, last := m.scratch[:0], record{key: b.low}
	b.n, b.maxB = len(recs), 0
	for i := range recs {
		r := &recs[i]
		shared := crbytes.CommonPrefix(last.key, r.key)
		buf = binary.AppendUvarint(buf, uint64(shared))
		buf = binary.AppendUvarint(buf, uint64(len(r.key)-shared))
		buf = append(buf, r.key[shared:]...)
		buf = binary.AppendVarint(buf, int64(r.A-last.A))
		buf = binary.AppendVarint(buf, int64(r.B-last.B))
		b.maxB = max(b.maxB, r.B)
		last = *r
	}
	m.scratch = buf
	b.data = append(make([]byte, 0, len(buf)), buf...)
}

// decode appends the records of a block to recs; their keys are in the arena, which it returns too.
func (b *block) decode(recs []record, arena []byte) ([]record, []byte) {
	if least := 2 * len(b.data); cap(arena) < least {
		arena = make([]byte, 0, least)
	}
	d := decoder{data: b.data, record: record{key: b.low}}
	for range b.n {
		shared, rest := d.next()
		at := len(arena)
		arena = append(append(arena, d.key[:shared]...), rest...)
		d.key = arena[at:len(arena):len(arena)]
		recs = append(recs, d.record)
	}
	return recs, arena
}

// get is Map.Get for a block that is not open.
func (b *block) get(key []byte) (v Value, found bool) {
	d := decoder{data: b.data}
	// same is how much the record before, which is below key, has in common with it.
	same := crbytes.CommonPrefix(b.low, key)
	for range b.n {
		shared, rest := d.next()
		switch {
		case shared > same:
			continue // it differs from key where the record before does
		case shared < same:
			return v, false // it is above the record before where that has key's byte
		}
		n := crbytes.CommonPrefix(rest, key[same:])
		switch same += n; {
		case n == len(rest) && same == len(key):
			return d.Value, true
		case n < len(rest) && (same == len(key) || rest[n] > key[same]):
			return v, false
		}
	}
	return v, false
}

// decoder reads the data of a block record by record. Its key is the caller's.
type decoder struct {
	data []byte
	record
}

// next returns how much of the key before the next one begins with, and the rest.
func (d *decoder) next() (shared int, rest []byte) {
	shared = int(d.uvarint())
	n := d.uvarint()
	rest, d.data = d.data[:n], d.data[n:]
	d.A += uint64(d.varint())
	d.B += uint64(d.varint())
	return shared, rest
}

func (d *decoder) uvarint() uint64 {
	if b := d.data[0]; b < 0x80 {
		d.data = d.data[1:]
		return uint64(b)
	}
	v, n := binary.Uvarint(d.data)
	d.data = d.data[n:]
	return v
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// search returns the place of key among records, and whether it is one of them.
func search(recs []record, key []byte) (at int, found bool) {
	if n := len(recs); n == 0 || bytes.Compare(recs[n-1].key, key) < 0 {
		return n, false
	}
	return slices.BinarySearchFunc(recs, key, func(r record, key []byte) int { return bytes.Compare(r.key, key) })
}
