package sortrun

import (
	"bytes"
	"sort"
	"sync"
)

// Finder tells which keys a run has. It keeps the blocks that it has read last, since keys are mostly asked for in order. Safe for
// concurrent use.
type Finder struct {
	run *Run

	mu   sync.Mutex
	idle []*Cursor // each at another block, the last used at the end; at most maxIdleCursors
}

// maxIdleCursors bounds the blocks in memory: one for each of some goroutines that ask for keys in order.
const maxIdleCursors = 8

// NewFinder returns a finder of r's keys.
func NewFinder(r *Run) *Finder { return &Finder{run: r} }

// Has reports whether the run has key.
func (f *Finder) Has(key []byte) (bool, error) {
	blocks := f.run.blocks
	i := sort.Search(len(blocks), func(i int) bool { return bytes.Compare(blocks[i].Last, key) >= 0 })
	if i == len(blocks) || bytes.Compare(key, blocks[i].First) < 0 {
		return false, nil
	}
	c := f.take(i)
	if !c.load(i) {
		return false, c.Err()
	}
	j := c.search(key)
	found := j < len(c.recs) && bytes.Equal(c.buf[c.recs[j].key:c.recs[j].value], key)
	f.give(c)
	return found, nil
}

// take returns a cursor, which stands at a block if one does.
func (f *Finder) take(block int) *Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.idle {
		if c.at == block {
			f.idle = append(f.idle[:i], f.idle[i+1:]...)
			return c
		}
	}
	if len(f.idle) < maxIdleCursors {
		return f.run.NewCursor()
	}
	c := f.idle[0]
	f.idle = append(f.idle[:0], f.idle[1:]...)
	return c
}

// give keeps a cursor for the next call.
func (f *Finder) give(c *Cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) < maxIdleCursors {
		f.idle = append(f.idle, c)
	}
}
