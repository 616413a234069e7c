package mvcc

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/percodb/percodb/tso"
)

// Bounds of the deleted spans that a store keeps, and the number of consecutive deleted keys that a scan must pass
// before it reports them.
const (
	maxDeletedSpans    = 1024
	maxDeletedSpanKey  = 1 << 10
	minDeletedSpanKeys = 32
	// minDeletedShort is the same for the first maxShortRuns runs of a page: the consumer of a queue, who reads a few rows,
	// jumps over short runs between them too, and a scan of many rows reports no more of them than pays.
	minDeletedShort = 8
	maxShortRuns    = 16
	// trackedScans is how many scans count behind each row once one has met hiddenSteps entries more than its rows explain.
	trackedScans = 16
	hiddenSteps  = 64
	// minDeletedMore is the same for keys next to a verified span, to which they are added.
	minDeletedMore = 4
)

// deletedSpans are spans in which every key is deleted: the consumed end of a queue, or the index entries that a
// frequently updated row has left. A scan of the present skips them. Their versions are history until they are
// collected, and without the skip every scan would pass over all of them. The same applies to keys that have been
// collected: a scan does not see them, but Pebble passes over their versions and tombstones until a compaction has removed
// both. Scans detect them by the number of entries that Pebble has passed over.
//
// A span that is verified at asOf contains no visible key at any timestamp from asOf on. That takes two scans:
//
//	scan 1   passes over deleted keys only             add: the span is a candidate
//	writers  from here on report each key they write   removeKey: the key leaves its span
//	scan 2   probes locks, passes over the same keys   add: the rest of the candidate is verified
//
// A writer that has missed the candidate, because it checked before it was added, has its lock in the table from before
// that check until its versions are applied. So either scan 2 encounters the lock in its probe, and excludes that key
// from its report, or it finds the writer's version. Therefore a candidate is verified only by a scan whose probe began
// after the candidate was added. A reader of a verified span has probed the locks as well (I1): a transaction that
// commits at or below its timestamp has its lock in the table, or has removed its key from the span before.
//
// Where many keys of a queue are deleted but some are left, each of these would cost a seek to the end of a span. The scan
// looks for its value in the cache of recent reads first: neither a span nor a cached row needs the iterator.
type deletedSpans struct {
	n   atomic.Int64  // spans in the list; writers and scans skip the list if it is 0
	seq atomic.Uint64 // grows with each candidate
	// tracked is how many more scans count the entries that Pebble walks over behind each row.
	tracked atomic.Int32
	// starts has a bit set for the key that a span begins directly behind, so that scans rarely look in vain behind a row.
	starts [1 << 8]atomic.Uint64
	set    int // bits set since starts was made anew; guarded by mu
	mu     sync.RWMutex
	// spans are disjoint and ascending.
	spans []deletedSpan
}

// deletedSpan is [start, end). Its keys are not changed once it is in the list.
type deletedSpan struct {
	start, end []byte
	asOf       tso.Timestamp // 0 for a candidate
	seq        uint64        // of a candidate: when it was added
	keys       int           // about how many deleted keys it saves a scan
}

// endOf appends to buf the end of the verified span that contains key, for a reader at readTS. ok is false if there is
// none.
func (d *deletedSpans) endOf(key []byte, readTS tso.Timestamp, buf []byte) (_ []byte, ok bool) {
	if d.n.Load() == 0 {
		return buf, false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	i, ok := d.searchLocked(key)
	if !ok || d.spans[i].asOf == 0 || d.spans[i].asOf > readTS {
		return buf, false
	}
	return append(buf, d.spans[i].end...), true
}

// mayBeginBehind reports whether a span may begin directly behind key.
func (d *deletedSpans) mayBeginBehind(key []byte) bool {
	if d.n.Load() == 0 {
		return false
	}
	word, bit := d.startBit(key)
	return word.Load()&bit != 0
}

var deletedSpanSeed = maphash.MakeSeed()

func (d *deletedSpans) startBit(key []byte) (word *atomic.Uint64, bit uint64) {
	hash := maphash.Bytes(deletedSpanSeed, key)
	return &d.starts[hash>>6%uint64(len(d.starts))], 1 << (hash % 64)
}

// noteStartsLocked sets the bits of spans. After a while starts is made anew, without those that have gone.
func (d *deletedSpans) noteStartsLocked(spans []deletedSpan) {
	if d.set += len(spans); d.set > 2*maxDeletedSpans {
		for i := range d.starts {
			d.starts[i].Store(0)
		}
		spans = d.spans
		d.set = len(spans)
	}
	for i := range spans {
		if start := spans[i].start; len(start) > 0 && start[len(start)-1] == 0 {
			word, bit := d.startBit(start[:len(start)-1])
			word.Or(bit)
		}
	}
}

// startBelow appends to buf the start of the verified span in which the keys directly below bound lie, for a reader at
// readTS. ok is false if there is none.
func (d *deletedSpans) startBelow(bound []byte, readTS tso.Timestamp, buf []byte) (_ []byte, ok bool) {
	if d.n.Load() == 0 {
		return buf, false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	i := sort.Search(len(d.spans), func(i int) bool { return bytes.Compare(d.spans[i].end, bound) >= 0 })
	if i == len(d.spans) || bytes.Compare(d.spans[i].start, bound) >= 0 || d.spans[i].asOf == 0 || d.spans[i].asOf > readTS {
		return buf, false
	}
	return append(buf, d.spans[i].start...), true
}

// searchLocked returns the span that contains key, or the position at which one with key would be inserted.
func (d *deletedSpans) searchLocked(key []byte) (i int, found bool) {
	i = sort.Search(len(d.spans), func(i int) bool { return bytes.Compare(d.spans[i].end, key) > 0 })
	return i, i < len(d.spans) && bytes.Compare(d.spans[i].start, key) <= 0
}

// removeKey removes a key from the span that contains it. A writer calls it with its lock in the lock table and before
// its version is applied.
func (d *deletedSpans) removeKey(key []byte) {
	if d.n.Load() == 0 {
		return
	}
	d.mu.RLock()
	_, found := d.searchLocked(key)
	d.mu.RUnlock()
	if !found {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i, found := d.searchLocked(key)
	if !found {
		return
	}
	var parts [2]deletedSpan
	n := 0
	s := d.spans[i]
	s.keys /= 2
	if bytes.Compare(s.start, key) < 0 {
		parts[n] = s
		parts[n].end = bytes.Clone(key)
		n++
	}
	if above := append(bytes.Clone(key), 0); bytes.Compare(above, s.end) < 0 {
		parts[n] = s
		parts[n].start = above
		n++
	}
	d.replaceLocked(i, i+1, parts[:n])
}

// removeSpan removes [start, end) from the spans: keys are added to it other than one by one. An empty end means no
// bound.
func (d *deletedSpans) removeSpan(start, end []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := sort.Search(len(d.spans), func(i int) bool { return bytes.Compare(d.spans[i].end, start) > 0 })
	to := sort.Search(len(d.spans), func(i int) bool {
		return len(end) > 0 && bytes.Compare(d.spans[i].start, end) >= 0
	})
	if from < to {
		d.replaceLocked(from, to, nil)
	}
}

// add reports that a scan has found [start, end) without a visible key at readTS, without a version above it, and
// without a lock that blocks reads; since is the value of seq before its probe. The parts that were candidates by then,
// or verified, are verified at readTS; the rest becomes a candidate. keys is the number of keys the scan has passed
// over.
func (d *deletedSpans) add(start, end []byte, readTS tso.Timestamp, since uint64, keys int) {
	if len(start) > maxDeletedSpanKey || len(end) > maxDeletedSpanKey || bytes.Compare(start, end) >= 0 {
		return
	}
	start, end = bytes.Clone(start), bytes.Clone(end)
	d.mu.Lock()
	defer d.mu.Unlock()
	from := sort.Search(len(d.spans), func(i int) bool { return bytes.Compare(d.spans[i].end, start) >= 0 })
	to := sort.Search(len(d.spans), func(i int) bool { return bytes.Compare(d.spans[i].start, end) > 0 })
	candidate := deletedSpan{seq: d.seq.Load() + 1, keys: keys}
	var parts []deletedSpan
	at := start // what lies below is in parts
	for _, old := range d.spans[from:to] {
		if gap := candidate; bytes.Compare(at, old.start) < 0 {
			gap.start, gap.end = at, old.start
			parts = appendDeletedSpan(parts, gap)
		}
		parts = old.verifyWithin(parts, start, end, readTS, since)
		at = old.end
	}
	if bytes.Compare(at, end) < 0 {
		gap := candidate
		gap.start, gap.end = at, end
		parts = appendDeletedSpan(parts, gap)
	}
	d.replaceLocked(from, to, parts)
	d.seq.Add(1) // After n: who knows the candidate's number began after the last writer that skipped an empty list.
	for len(d.spans) > maxDeletedSpans {
		d.evictLocked()
	}
}

// verifyWithin appends the span with its part in [start, end) verified, if it was added before the calling scan.
func (s deletedSpan) verifyWithin(dst []deletedSpan, start, end []byte, readTS tso.Timestamp, since uint64) []deletedSpan {
	if s.asOf != 0 || s.seq > since {
		return appendDeletedSpan(dst, s)
	}
	if bytes.Compare(s.start, start) < 0 {
		below := s
		below.end, s.start = start, start
		if bytes.Compare(s.end, start) <= 0 {
			below.end = s.end
			return appendDeletedSpan(dst, below)
		}
		dst = appendDeletedSpan(dst, below)
	}
	if bytes.Compare(s.start, end) >= 0 {
		return appendDeletedSpan(dst, s)
	}
	inside := s
	inside.asOf, inside.seq = readTS, 0
	if bytes.Compare(s.end, end) <= 0 {
		return appendDeletedSpan(dst, inside)
	}
	inside.end, s.start = end, end
	return appendDeletedSpan(appendDeletedSpan(dst, inside), s)
}

// appendDeletedSpan joins a span to the last one if both are verified and adjacent: the later asOf applies to both,
// because nothing was written into either since.
func appendDeletedSpan(dst []deletedSpan, s deletedSpan) []deletedSpan {
	if n := len(dst); n > 0 && dst[n-1].asOf != 0 && s.asOf != 0 && bytes.Equal(dst[n-1].end, s.start) {
		last := &dst[n-1]
		last.end, last.asOf, last.keys = s.end, max(last.asOf, s.asOf), last.keys+s.keys
		return dst
	}
	return append(dst, s)
}

// evictLocked drops the span that saves the least.
func (d *deletedSpans) evictLocked() {
	least := 0
	for i := range d.spans {
		if d.spans[i].keys < d.spans[least].keys {
			least = i
		}
	}
	d.replaceLocked(least, least+1, nil)
}

func (d *deletedSpans) replaceLocked(from, to int, with []deletedSpan) {
	d.spans = slices.Replace(d.spans, from, to, with...)
	d.noteStartsLocked(with)
	d.n.Store(int64(len(d.spans)))
}
