package mvcc

import (
	"bytes"
	"sync/atomic"

	"github.com/percodb/percodb/tso"
)

// numRecent is the number of cached values, a power of two; maxRecentBytes the length of the longest.
const (
	numRecent      = 1 << 16
	maxRecentBytes = 1 << 10
)

// recentReads caches the values of frequently read keys as of their last read, so that most reads of rows that are read
// often and changed seldom need no iterator. Scans read and store rows directly behind deleted spans. It is a table by
// hash: a key has one place, and the last value stored there stays.
//
// A value that was read at asOf is the key's value at every timestamp from its version to asOf, because history does not
// change. It is also the key's value at a later timestamp if nothing was committed in between, which the key's commit
// mark shows: a reader first raises max_ts, then checks the lock table, then the mark. A transaction that commits at or
// below its timestamp has its lock in the table, or has left it, and has raised the mark before.
type recentReads struct {
	places []recentPlace
	limit  int64        // of bytes
	bytes  atomic.Int64 // of the cached values, recentOverhead for each included
}

// recentOverhead is the approximate cost of a cached value in addition to its bytes.
const recentOverhead = 96

// recentPlace fits into one cache line: a key that is not cached costs one access to it.
type recentPlace struct {
	read atomic.Pointer[recentRead]
	// tag is a part of the hash of read's key: most other keys that have this place differ in it.
	tag atomic.Uint32
	// missed is a hash of the last version that was not found: a value is cached when it is read for the second time, so
	// that keys read only once do not displace others, nor do keys that change from one read to the next.
	missed atomic.Uint32
}

// recentRead is not changed once it can be seen.
type recentRead struct {
	asOf, version tso.Timestamp
	key, value    []byte
}

// newRecentReads returns an empty table of which the values take up to limit bytes.
func newRecentReads(limit int64) *recentReads {
	return &recentReads{places: make([]recentPlace, numRecent), limit: limit}
}

// size is the accounted size of e; 0 for nil.
func (e *recentRead) size() int64 {
	if e == nil {
		return 0
	}
	return int64(len(e.key)+len(e.value)) + recentOverhead
}

// recentTag is never that of an empty place.
func recentTag(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// find returns the cached value of the key of this hash and mark at readTS, or nil. The reader must have called
// BeginRead and checked the locks since.
func (r *recentReads) find(hash uint64, mark *atomic.Uint64, key []byte, readTS tso.Timestamp) *recentRead {
	place := &r.places[hash%numRecent]
	if place.tag.Load() != recentTag(hash) {
		return nil
	}
	e := place.read.Load()
	if readTS < e.version || readTS > e.asOf && mark.Load() > uint64(e.asOf) || !bytes.Equal(e.key, key) {
		return nil
	}
	return e
}

// remember is called with a value that was not found here and was read at readTS.
func (r *recentReads) remember(hash uint64, mark *atomic.Uint64, key []byte, readTS, version tso.Timestamp, value []byte) {
	if len(value) > maxRecentBytes {
		return
	}
	place, which := &r.places[hash%numRecent], uint32((hash^uint64(version)*0x9e3779b97f4a7c15)>>32)
	if place.missed.Load() != which {
		place.missed.Store(which)
		return
	}
	if mark.Load() > uint64(readTS) {
		return
	}
	// Where the table is full a value takes the place of one that is no smaller.
	size := int64(len(key)+len(value)) + recentOverhead
	if r.bytes.Add(size)-place.read.Load().size() > r.limit {
		r.bytes.Add(-size)
		return
	}
	buf := make([]byte, 0, len(key)+len(value))
	buf = append(append(buf, key...), value...)
	n := len(key)
	old := place.read.Swap(&recentRead{asOf: readTS, version: version, key: buf[:n:n], value: buf[n:]})
	r.bytes.Add(-old.size())
	place.tag.Store(recentTag(hash)) // Last: a tag without a value is nowhere.
}
