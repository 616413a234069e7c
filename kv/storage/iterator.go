package storage

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// IterKind is the purpose of an iterator.
type IterKind uint8

const (
	// PointRead: SeekPrefixGE for keys that are likely to exist.
	PointRead IterKind = iota
	// PointCheck: SeekPrefixGE for keys that are likely not to exist; uses every level's filter.
	PointCheck
	// RangeRead: walks within bounds.
	RangeRead
	numIterKinds
)

// Iterator iterates over keys in order, in the state at the time it was opened (or a later one that did not differ
// then). Key and value are valid until the next move. Not safe for concurrent use; closed by its user. After a move that
// returned false, Error distinguishes the end from a failure.
type Iterator struct {
	// Buf is a buffer in which its user may build seek keys.
	Buf []byte

	it   *pebble.Iterator
	e    *Engine
	seen uint64 // e.applied before it was opened
	kind IterKind
}

// NewPointIter returns an iterator for SeekPrefixGE.
func (e *Engine) NewPointIter(kind IterKind) (*Iterator, error) { return e.newIter(kind, nil, nil) }

// NewRangeIter returns an iterator over [lower, upper). The bounds are copied.
func (e *Engine) NewRangeIter(lower, upper []byte) (*Iterator, error) {
	return e.newIter(RangeRead, lower, upper)
}

// NewVersionIter returns an iterator over [lower, upper) that skips blocks and files without versions in [from, to). It
// returns all versions in that interval. It also returns some others, possibly including deleted ones: the block with
// the deletion may have been skipped.
func (e *Engine) NewVersionIter(lower, upper []byte, from, to uint64) (*Iterator, error) {
	if e.closed.Load() {
		return nil, ErrClosed
	}
	filters := make([]pebble.BlockPropertyFilter, 1, 2)
	filters[0] = sstable.NewBlockIntervalFilter(versionProperty, from, to, nil)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper, PointKeyFilters: filters})
	if err != nil {
		return nil, err
	}
	// It must not be reused as one without a filter: seen prevents that.
	return &Iterator{it: it, e: e, seen: ^uint64(0), kind: RangeRead}, nil
}

func (e *Engine) newIter(kind IterKind, lower, upper []byte) (*Iterator, error) {
	if e.closed.Load() {
		return nil, ErrClosed
	}
	seen := e.applied.Load()
	if it := e.iters.take(kind, seen); it != nil {
		if kind == RangeRead {
			it.it.SetBounds(lower, upper)
		}
		return it, nil
	}
	opts := pebble.IterOptions{LowerBound: lower, UpperBound: upper, UseL6Filters: kind == PointCheck}
	it, err := e.db.NewIter(&opts)
	if err != nil {
		return nil, err
	}
	return &Iterator{it: it, e: e, seen: seen, kind: kind}, nil
}

// SeekGE moves to the first key >= key.
func (i *Iterator) SeekGE(key []byte) bool { return i.it.SeekGE(key) }

// SeekPrefixGE moves to the first key >= key that has key's prefix. Only Next may follow.
func (i *Iterator) SeekPrefixGE(key []byte) bool { return i.it.SeekPrefixGE(key) }

// SeekLT moves to the last key < key.
func (i *Iterator) SeekLT(key []byte) bool { return i.it.SeekLT(key) }

// First moves to the first key.
func (i *Iterator) First() bool { return i.it.First() }

// Last moves to the last key.
func (i *Iterator) Last() bool { return i.it.Last() }

// Next moves to the following key.
func (i *Iterator) Next() bool { return i.it.Next() }

// NextPrefix moves to the first key of the following prefix.
func (i *Iterator) NextPrefix() bool { return i.it.NextPrefix() }

// Prev moves to the preceding key.
func (i *Iterator) Prev() bool { return i.it.Prev() }

// Key returns the current key.
func (i *Iterator) Key() []byte { return i.it.Key() }

// Value returns the current value, which may have to be read.
func (i *Iterator) Value() ([]byte, error) { return i.it.ValueAndErr() }

// Steps counts the stored entries that the iterator, which may have been used before, has walked over, those of deleted keys
// included.
func (i *Iterator) Steps() int {
	s := i.it.Stats()
	return s.ForwardStepCount[pebble.InternalIterCall] + s.ReverseStepCount[pebble.InternalIterCall]
}

// Error returns the failure that ended the walk, or nil.
func (i *Iterator) Error() error { return i.it.Error() }

// Close gives the iterator back.
func (i *Iterator) Close() {
	if i.it.Error() == nil && i.seen == i.e.applied.Load() && i.e.iters.put(i) {
		return
	}
	_ = i.it.Close() // Error has reported it before
	i.it = nil
}

// iterCache keeps idle iterators while nothing is written: opening one costs more than a seek. A Pebble iterator sees
// the state at its opening; while no batch has been applied since, that is the current state. An idle iterator pins
// memtables and files, so it is closed when a write is detected, and within iterIdle in any case.
type iterCache struct {
	mu    sync.Mutex
	idle  [numIterKinds][]*Iterator
	timer *time.Timer
	armed bool
	done  bool

	// expiring is held while idle iterators are being closed, so that stop can wait for it.
	expiring sync.Mutex
}

const (
	iterIdle       = time.Second
	iterIdlePerSet = 32
)

func (c *iterCache) start(*Engine) {
	c.timer = time.AfterFunc(time.Hour, c.expire)
	c.timer.Stop()
}

// take returns an idle iterator opened since the last applied batch, or nil.
func (c *iterCache) take(kind IterKind, applied uint64) *Iterator {
	c.mu.Lock()
	n := len(c.idle[kind])
	if n == 0 {
		c.mu.Unlock()
		return nil
	}
	it := c.idle[kind][n-1]
	if it.seen == applied {
		c.idle[kind][n-1] = nil
		c.idle[kind] = c.idle[kind][:n-1]
		c.mu.Unlock()
		return it
	}
	// All of them are as old or older.
	var stale [iterIdlePerSet]*Iterator
	n = copy(stale[:], c.idle[kind])
	clear(c.idle[kind])
	c.idle[kind] = c.idle[kind][:0]
	c.mu.Unlock()
	for _, it := range stale[:n] {
		_ = it.it.Close()
	}
	return nil
}

// put keeps an iterator and reports whether it did.
func (c *iterCache) put(it *Iterator) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done || len(c.idle[it.kind]) >= iterIdlePerSet {
		return false
	}
	c.idle[it.kind] = append(c.idle[it.kind], it)
	if !c.armed {
		c.armed = true
		c.timer.Reset(iterIdle)
	}
	return true
}

// expire closes all idle iterators.
func (c *iterCache) expire() {
	c.expiring.Lock()
	defer c.expiring.Unlock()
	c.mu.Lock()
	idle := c.idle
	c.idle = [numIterKinds][]*Iterator{}
	c.armed = false
	c.mu.Unlock()
	for _, set := range idle {
		for _, it := range set {
			_ = it.it.Close()
		}
	}
}

// stop closes all idle iterators and keeps none from now on.
func (c *iterCache) stop() {
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.timer.Stop()
	c.expire()
}

// CloneUnbounded returns another iterator over the same state, without bounds.
func (i *Iterator) CloneUnbounded() (*Iterator, error) {
	it, err := i.it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
	if err != nil {
		return nil, err
	}
	return &Iterator{it: it, e: i.e, seen: i.seen, kind: RangeRead}, nil
}
