package mvcc

import (
	"bytes"
	"sync/atomic"

	"github.com/percodb/percodb/tso"
)

// numRecent is how many values are remembered, a power of two; maxRecentBytes the length of the longest.
const (
	numRecent      = 1 << 16
	maxRecentBytes = 1 << 10
)

// recentReads remembers what keys that are read again and again were at the last of those reads, so
// that most reads of rows that are read often and changed seldom need no iterator. It is a table by
// hash: a key has one place, and the last that was put there stays.
//
// A value that was read at asOf is what the key is at every timestamp from its version to asOf, for
// history does not change. It also is what the key is at a later timestamp if nothing was committed
// in between, which the key's mark tells as it tells a refresh: a reader first raises max_ts, then looks
// at the lock table, then at the mark. Whoever commits at or below its timestamp is met in the table,
// or has left it, and has raised the mark before.
type recentReads struct {
	places []atomic.Pointer[recentRead]
	// missed holds, by place, a hash of the last version that was not found: one is remembered when it is
	// read for the second time, so that a great many keys read once leave the rest alone, and so do
	// keys that change from one read to the next.
	missed []atomic.Uint32
}

// recentRead is not changed once it can be seen.
type recentRead struct {
	asOf, version tso.Timestamp
	key, value    []byte
}

func newRecentReads() *recentReads {
	return &recentReads{places: make([]atomic.Pointer[recentRead], numRecent), missed: make([]atomic.Uint32, numRecent)}
}

// find returns what the key of this hash and mark is at readTS, or nil if it is not remembered. The
// reader has been through BeginRead and has found no lock in its way since.
func (r *recentReads) find(hash uint64, mark *atomic.Uint64, key []byte, readTS tso.Timestamp) *recentRead {
	e := r.places[hash%numRecent].Load()
	if e == nil || readTS < e.version || readTS > e.asOf && mark.Load() > uint64(e.asOf) || !bytes.Equal(e.key, key) {
		return nil
	}
	return e
}

// remember is told of a value that was not found here and was read at readTS.
func (r *recentReads) remember(hash uint64, mark *atomic.Uint64, key []byte, readTS, version tso.Timestamp, value []byte) {
	if len(value) > maxRecentBytes || mark.Load() > uint64(readTS) {
		return
	}
	place, which := hash%numRecent, uint32((hash^uint64(version)*0x9e3779b97f4a7c15)>>32)
	if missed := &r.missed[place]; missed.Load() != which {
		missed.Store(which)
		return
	}
	buf := make([]byte, 0, len(key)+len(value))
	buf = append(append(buf, key...), value...)
	n := len(key)
	r.places[place].Store(&recentRead{asOf: readTS, version: version, key: buf[:n:n], value: buf[n:]})
}
