package mvcc

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/percodb/percodb/tso"
)

// numStripes and numMarks are powers of two. More stripes mean fewer false conflicts.
const (
	numStripes = 4096
	numMarks   = 65536
)

// latches exclude each other writers of the same keys while they check and apply. A key belongs to
// one stripe; a writer takes its stripes in order, so no two can wait for each other.
type latches struct {
	seed    maphash.Seed
	stripes [numStripes]sync.Mutex
}

// latchSet is the set of stripes that one writer has latched. The zero value is empty; it is reused.
type latchSet struct {
	single int // the only stripe, when bits is not in use
	many   bool
	bits   [numStripes / 64]uint64
}

func (l *latches) stripe(key []byte) int {
	return int(maphash.Bytes(l.seed, key) % numStripes)
}

// commitMarks show quickly that a key has no version above some timestamp: by hash of the key, the largest commit_ts
// written since the store was opened. A prewrite of a recent transaction then needs no seek to exclude a commit in
// between. A mark is raised under the latches of its keys, before the batch is applied.
type commitMarks struct {
	seed  maphash.Seed
	marks []atomic.Uint64
}

// newCommitMarks returns marks for a store whose versions all lie at or below now.
func newCommitMarks(now tso.Timestamp) commitMarks {
	m := commitMarks{seed: maphash.MakeSeed(), marks: make([]atomic.Uint64, numMarks)}
	for i := range m.marks {
		m.marks[i].Store(uint64(now))
	}
	return m
}

// raiseAll raises every mark, for a commit of so many keys that most marks would be raised.
func (m *commitMarks) raiseAll(ts tso.Timestamp) {
	for i := range m.marks {
		raise(&m.marks[i], ts)
	}
}

func (m *commitMarks) of(key []byte) *atomic.Uint64 { return m.at(m.hash(key)) }

func (m *commitMarks) hash(key []byte) uint64 { return maphash.Bytes(m.seed, key) }

// at is of for the hash of a key.
func (m *commitMarks) at(hash uint64) *atomic.Uint64 { return &m.marks[hash%numMarks] }

// lockOne takes the stripe of key.
func (l *latches) lockOne(set *latchSet, key []byte) {
	set.many = false
	set.single = l.stripe(key)
	l.stripes[set.single].Lock()
}

// add puts the stripe of key into a set that is not locked yet.
func (l *latches) add(set *latchSet, key []byte) {
	i := l.stripe(key)
	set.bits[i/64] |= 1 << (i % 64)
}

// addAll puts every stripe into the set.
func (l *latches) addAll(set *latchSet) {
	for i := range set.bits {
		set.bits[i] = ^uint64(0)
	}
}

// lock takes the stripes added.
func (l *latches) lock(set *latchSet) {
	set.many = true
	for i, word := range set.bits {
		for ; word != 0; word &= word - 1 {
			l.stripes[i*64+bits.TrailingZeros64(word)].Lock()
		}
	}
}

// unlock releases the latches of the set and empties it.
func (l *latches) unlock(set *latchSet) {
	if !set.many {
		l.stripes[set.single].Unlock()
		return
	}
	for i, word := range set.bits {
		for ; word != 0; word &= word - 1 {
			l.stripes[i*64+bits.TrailingZeros64(word)].Unlock()
		}
		set.bits[i] = 0
	}
}
