package mvcc

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/tso"
)

// Bounds of the cache of scans.
const (
	scanBlockBytes = 256 << 10 // of the rows of a block
	scanBlockRows  = 4096
	// scanSpanOverhead is the approximate cost of a span in addition to its rows, scanRowOverhead that of a row to its bytes.
	scanSpanOverhead = 320
	scanRowOverhead  = 8
	// scanSpanKey is the length of the longest bound of a span.
	scanSpanKey = 1 << 10
	// scanIdle is how long a block or candidate has not been used when another may take its place. A scan of more than fits keeps
	// what it has cached first, instead of displacing each block before it comes there again.
	scanIdle = 30 * time.Second
	// scanWorth is how many blocks of a span are made again without serving a scan, at most, when it is written to after each.
	scanWorth = 3
	// scanFull is for how long no blocks are made when there was no space for one.
	scanFull = time.Second
)

// scanCache caches rows as scans have found them, in blocks: most of the time of a long scan goes into Pebble's iterator, which merges
// levels and decodes keys. It is for scans what recentReads is for reads of keys.
//
// A block has all rows of a span as of a timestamp asOf. They are its rows at every timestamp from the newest version among them to
// asOf, because history does not change, and at a later timestamp if nothing was committed in the span in between, which the
// span's mark shows: a reader first raises max_ts, then checks the lock table, then the mark. Other than the marks of keys, which
// are always there, the mark of a span exists from when a scan has reported it. As for deletedSpans, that takes two scans:
//
//	scan 1   reads the span                           note: the span is a candidate, with a mark
//	writers  from here on raise the mark              wrote
//	scan 2   probes locks, reads the span again       publish: its rows become the block
//
// A writer that has missed the candidate, because it looked before it was there, has its lock in the table from before that until
// its versions are applied. So either scan 2 encounters the lock in its probe, and makes no block, or it finds the writer's version,
// which the block has, or which is above its timestamp and ends it. Therefore only a scan whose probe began after the candidate was
// added makes a block of it, and only if its mark is not above the scan's timestamp.
//
// A candidate becomes a block if it was not written to from one scan to the next, or if the blocks that it was before have served more
// scans than there were blocks, of late. A block loses its rows, and is a candidate again, when its span is written to.
type scanCache struct {
	limit   int64 // of bytes
	rows    int   // of a block
	clock   func() time.Duration
	groupOf func(key []byte) int
	bytes   atomic.Int64
	served  atomic.Uint64 // rows
	// fullUntil is a time by the clock until which no blocks are made.
	fullUntil atomic.Int64
	seq       atomic.Uint64 // grows when candidates have been added
	// groups has the bits of the groups that spans lie in, so that writers of other groups seldom look for a span.
	groups  atomic.Pointer[scanGroups]
	grouped int // bits set since groups was made anew; guarded by mu
	// placeAfter is a time by the clock until which there is no place for candidates; guarded by mu.
	placeAfter time.Duration

	// mu excludes changes of the spans while a mark is raised: a mark is copied when its span is divided. Readers need it not: if
	// they see the spans of before a change, then no mark has been raised that they have to see after it.
	mu    sync.RWMutex
	spans atomic.Pointer[[]*scanSpan] // disjoint and ascending; never changed
}

// scanSpan is [start, end), which are not changed.
type scanSpan struct {
	start, end []byte
	group      int           // the length of the prefix of start that is the group of all keys of the span, -1 if there may be several
	seq        uint64        // of the cache when it was added
	mark       atomic.Uint64 // the largest commit_ts of a write since then
	block      atomic.Pointer[scanBlock]
	seen       atomic.Uint64 // of a candidate: the timestamp of the last scan
	used       atomic.Int64  // by the clock, the last scan
	// worth grows with the scans that blocks have served, up to scanWorth, and shrinks with each block.
	worth atomic.Int32
}

// scanBlock has the rows of a span. It is not changed once it can be seen.
type scanBlock struct {
	asOf, version tso.Timestamp
	arena         []byte
	// offsets are the positions in arena of the key and the value of each row, and its end.
	offsets []uint32
}

func newScanCache(o *Options) *scanCache {
	c := &scanCache{limit: o.ScanCacheBytes, rows: o.ScanBlockRows, clock: o.Clock, groupOf: o.Group}
	c.spans.Store(new([]*scanSpan))
	c.groups.Store(new(scanGroups))
	return c
}

func (b *scanBlock) len() int { return len(b.offsets) / 2 }

func (b *scanBlock) key(i int) []byte {
	return b.arena[b.offsets[2*i]:b.offsets[2*i+1]:b.offsets[2*i+1]]
}

func (b *scanBlock) value(i int) []byte {
	return b.arena[b.offsets[2*i+1]:b.offsets[2*i+2]:b.offsets[2*i+2]]
}

func (b *scanBlock) size() int64 {
	return int64(len(b.arena)+scanRowOverhead*b.len()) + scanSpanOverhead
}

// search returns the position of the first row at or above key.
func (b *scanBlock) search(key []byte) int {
	return sort.Search(b.len(), func(i int) bool { return bytes.Compare(b.key(i), key) >= 0 })
}

// searchScanSpans returns the position of the span that contains key, or of the first one above it.
func searchScanSpans(spans []*scanSpan, key []byte) (i int, found bool) {
	i = sort.Search(len(spans), func(i int) bool { return bytes.Compare(spans[i].end, key) > 0 })
	return i, i < len(spans) && bytes.Compare(spans[i].start, key) <= 0
}

// usable returns the rows of the span at readTS, or nil. The reader must have called BeginRead and checked the locks since.
func (e *scanSpan) usable(readTS tso.Timestamp) *scanBlock {
	b := e.block.Load()
	if b == nil || readTS < b.version || readTS > b.asOf && e.mark.Load() > uint64(b.asOf) {
		return nil
	}
	return b
}

// use notes that the block serves a scan. Few of its readers write to memory that others read.
func (e *scanSpan) use(now time.Duration) {
	if now-time.Duration(e.used.Load()) >= scanFull {
		e.used.Store(int64(now))
	}
	if e.worth.Load() < scanWorth {
		e.worth.Add(1)
	}
}

// worthCaching reports whether a scan, at readTS and of which the probe began when the cache's seq was since, is to make a block of a
// candidate.
func (e *scanSpan) worthCaching(readTS tso.Timestamp, since uint64) bool {
	mark := e.mark.Load()
	return e.seq <= since && e.block.Load() == nil && mark <= uint64(readTS) && (mark <= e.seen.Load() && e.seen.Load() != 0 || e.worth.Load() > 0)
}

// empty reports whether there are neither blocks nor candidates.
func (c *scanCache) empty() bool { return len(*c.spans.Load()) == 0 }

// scanGroups has a bit for each hash of a group.
type scanGroups [1 << 6]atomic.Uint64

var scanGroupSeed = maphash.MakeSeed()

func (g *scanGroups) bit(group []byte) (word *atomic.Uint64, bit uint64) {
	hash := maphash.Bytes(scanGroupSeed, group)
	return &g[hash>>6%uint64(len(g))], 1 << (hash % 64)
}

// add sets the bit of a span.
func (g *scanGroups) add(e *scanSpan) {
	if e.group < 0 {
		for i := range g {
			g[i].Store(^uint64(0))
		}
		return
	}
	word, bit := g.bit(e.start[:e.group])
	word.Or(bit)
}

// mayHave reports whether there may be a span with key.
func (c *scanCache) mayHave(key []byte) bool {
	if c.empty() {
		return false
	}
	word, bit := c.groups.Load().bit(c.group(key))
	return word.Load()&bit != 0
}

func (c *scanCache) group(key []byte) []byte {
	if c.groupOf == nil {
		return nil
	}
	return key[:c.groupOf(key)]
}

// noteGroupsLocked sets the bits of spans that have been added. After a while they are set anew, without those that have gone; who
// still uses the former ones began before these spans were added.
func (c *scanCache) noteGroupsLocked(added []*scanSpan) {
	groups := c.groups.Load()
	if c.grouped += len(added); c.grouped > 1<<14 {
		added = *c.spans.Load()
		c.grouped, groups = len(added), new(scanGroups)
		defer c.groups.Store(groups)
	}
	for _, e := range added {
		groups.add(e)
	}
}

// groupLen returns the length of the group of all keys of [start, end), in which row lies, or -1.
func (c *scanCache) groupLen(start, end, row []byte) int {
	group := c.group(row)
	if !bytes.HasPrefix(start, group) || !bytes.HasPrefix(end, group) && !firstBehind(group, end) {
		return -1
	}
	return len(group)
}

// firstBehind reports whether end is the first key behind those with the prefix.
func firstBehind(prefix, end []byte) bool {
	n := len(end)
	return n > 0 && n <= len(prefix) && bytes.Equal(end[:n-1], prefix[:n-1]) && int(end[n-1]) == int(prefix[n-1])+1 &&
		!slices.ContainsFunc(prefix[n:], func(b byte) bool { return b != 0xff })
}

// scanHint is where a writer has found the span of its last key.
type scanHint struct {
	spans *[]*scanSpan
	at    int
}

// wrote raises the mark of the span that contains key. A writer calls it with its lock in the lock table and before its version
// is applied.
func (c *scanCache) wrote(key []byte, commitTS tso.Timestamp, hint *scanHint) {
	if !c.mayHave(key) {
		return
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	spans := c.spans.Load()
	if hint.spans != spans || hint.at >= len(*spans) || !(*spans)[hint.at].contains(key) {
		hint.spans = spans
		at, found := searchScanSpans(*spans, key)
		if hint.at = at; !found {
			return
		}
	}
	c.raise((*spans)[hint.at], commitTS)
}

func (e *scanSpan) contains(key []byte) bool {
	return bytes.Compare(e.start, key) <= 0 && bytes.Compare(key, e.end) < 0
}

// wroteSpan is wrote for the keys of [start, end); an empty end means no bound.
func (c *scanCache) wroteSpan(start, end []byte, commitTS tso.Timestamp) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	spans := *c.spans.Load()
	from, to := overlappedScanSpans(spans, start, end)
	for _, e := range spans[from:to] {
		c.raise(e, commitTS)
	}
}

// raise is called with mu held for reading, or writing.
func (c *scanCache) raise(e *scanSpan, commitTS tso.Timestamp) {
	raise(&e.mark, commitTS)
	if b := e.block.Load(); b != nil && commitTS > b.asOf {
		c.release(e, b)
	}
}

// release makes a candidate of a span, unless it has lost the block already.
func (c *scanCache) release(e *scanSpan, b *scanBlock) {
	if e.block.CompareAndSwap(b, nil) {
		c.bytes.Add(-b.size())
	}
}

// overlappedScanSpans returns which spans have keys of [start, end).
func overlappedScanSpans(spans []*scanSpan, start, end []byte) (from, to int) {
	from, _ = searchScanSpans(spans, start)
	to = len(spans)
	if len(end) > 0 {
		to = from + sort.Search(len(spans)-from, func(i int) bool { return bytes.Compare(spans[from+i].start, end) >= 0 })
	}
	return from, to
}

// drop removes the spans with keys of [start, end), of which versions have been removed that might still have been read: what scans
// that have begun before have found is not cached any more.
func (c *scanCache) drop(start, end []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := overlappedScanSpans(*c.spans.Load(), start, end)
	c.replaceLocked(from, to, nil)
}

// replaceLocked replaces the spans from from up to to.
func (c *scanCache) replaceLocked(from, to int, with []*scanSpan) {
	old := *c.spans.Load()
	if from == to && len(with) == 0 {
		return
	}
	for _, e := range old[from:to] {
		if b := e.block.Load(); b != nil && !slices.Contains(with, e) {
			c.release(e, b)
		}
	}
	spans := make([]*scanSpan, 0, len(old)-(to-from)+len(with))
	spans = append(append(append(spans, old[:from]...), with...), old[to:]...)
	c.spans.Store(&spans)
}

// note reports that a scan has read [start, end), in which row lies, at readTS: what is in no span becomes a candidate.
func (c *scanCache) note(start, end, row []byte, readTS tso.Timestamp) {
	if len(start) > scanSpanKey || len(end) > scanSpanKey || bytes.Compare(start, end) >= 0 {
		return
	}
	start, end = bytes.Clone(start), bytes.Clone(end)
	c.mu.Lock()
	defer c.mu.Unlock()
	now, group, seq := c.clock(), c.groupLen(start, end, row), c.seq.Load()+1
	full := !c.placeLocked(now)
	spans := *c.spans.Load()
	from, to := overlappedScanSpans(spans, start, end)
	var with, added []*scanSpan
	gap := func(start, end []byte) {
		if full || bytes.Compare(start, end) >= 0 {
			return
		}
		e := &scanSpan{start: start, end: end, group: group, seq: seq}
		e.seen.Store(uint64(readTS))
		e.used.Store(int64(now))
		with, added = append(with, e), append(added, e)
	}
	at := start
	for _, e := range spans[from:to] {
		gap(at, e.start)
		if at = e.end; e.block.Load() == nil {
			raise(&e.seen, readTS)
			e.used.Store(int64(now))
		}
		with = append(with, e)
	}
	if gap(at, end); len(added) == 0 {
		return
	}
	c.replaceLocked(from, to, with)
	c.noteGroupsLocked(added)
	c.seq.Store(seq) // Last: who knows the number began its probe after the last writer that has missed them.
}

// placeLocked makes place for candidates: there are about twice as many spans as blocks fit.
func (c *scanCache) placeLocked(now time.Duration) bool {
	most := max(int(2*c.limit/scanBlockBytes), 64)
	spans := *c.spans.Load()
	if len(spans) < most {
		return true
	}
	if now < c.placeAfter {
		return false
	}
	c.placeAfter = now + scanFull
	kept := slices.DeleteFunc(slices.Clone(spans), func(e *scanSpan) bool {
		return e.block.Load() == nil && now-time.Duration(e.used.Load()) >= scanIdle
	})
	c.spans.Store(&kept)
	return len(kept) < most
}

// publish makes a block of [start, end), which a scan has read; since is the cache's seq before its probe, which has met no lock in
// there. The block has the scan's timestamp, and it has found no version above that. Nothing is done if the span does not lie in
// candidates from before the probe, or has been written to since.
func (c *scanCache) publish(start, end []byte, b *scanBlock, since uint64) {
	if len(start) > scanSpanKey || len(end) > scanSpanKey || bytes.Compare(start, end) >= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	spans := *c.spans.Load()
	from, to := overlappedScanSpans(spans, start, end)
	if !coveredByCandidates(spans[from:to], start, end, b.asOf, since) || !c.roomLocked(b.size(), now) {
		return
	}
	e := &scanSpan{start: bytes.Clone(start), end: bytes.Clone(end), group: spans[from].group, seq: since}
	for _, old := range spans[from:to] {
		raise(&e.mark, tso.Timestamp(old.mark.Load()))
		e.worth.Store(max(e.worth.Load(), old.worth.Load()-1))
		if first := spans[from]; old.group != first.group || old.group > 0 && !bytes.Equal(old.start[:old.group], first.start[:old.group]) {
			e.group = -1
		}
	}
	e.block.Store(b)
	e.used.Store(int64(now))
	var with []*scanSpan
	if first := spans[from]; bytes.Compare(first.start, start) < 0 {
		with = append(with, first.part(first.start, e.start))
	}
	with = append(with, e)
	if last := spans[to-1]; bytes.Compare(last.end, end) > 0 {
		with = append(with, last.part(e.end, last.end))
	}
	c.bytes.Add(b.size())
	c.replaceLocked(from, to, with)
}

// part returns a part of a candidate.
func (e *scanSpan) part(start, end []byte) *scanSpan {
	p := &scanSpan{start: start, end: end, group: e.group, seq: e.seq}
	p.mark.Store(e.mark.Load())
	p.seen.Store(e.seen.Load())
	p.used.Store(e.used.Load())
	p.worth.Store(e.worth.Load())
	return p
}

// coveredByCandidates reports whether all keys of [start, end) lie in spans, which overlap it, and all of these are candidates that
// were added before seq exceeded since, and were not written to above asOf.
func coveredByCandidates(spans []*scanSpan, start, end []byte, asOf tso.Timestamp, since uint64) bool {
	at := start
	for _, e := range spans {
		if bytes.Compare(e.start, at) > 0 || e.seq > since || e.block.Load() != nil || e.mark.Load() > uint64(asOf) {
			return false
		}
		at = e.end
	}
	return bytes.Compare(at, end) >= 0
}

// roomLocked makes room for so many bytes, if it can: blocks go that have not been used for long.
func (c *scanCache) roomLocked(size int64, now time.Duration) bool {
	for c.bytes.Load()+size > c.limit {
		var oldest *scanSpan
		for _, e := range *c.spans.Load() {
			if e.block.Load() != nil && (oldest == nil || e.used.Load() < oldest.used.Load()) {
				oldest = e
			}
		}
		if oldest == nil || now-time.Duration(oldest.used.Load()) < scanIdle {
			c.fullUntil.Store(int64(now + scanFull))
			return false
		}
		oldest.worth.Store(0)
		c.release(oldest, oldest.block.Load())
	}
	return true
}

// ScanCacheStats describe the cache of scanned rows.
type ScanCacheStats struct {
	Bytes, Blocks int64
	Rows          uint64 // that it has returned
}

// ScanCacheStats returns the present state of the cache of scanned rows.
func (s *State) ScanCacheStats() ScanCacheStats {
	c := s.scans
	st := ScanCacheStats{Bytes: c.bytes.Load(), Rows: c.served.Load()}
	for _, e := range *c.spans.Load() {
		if e.block.Load() != nil {
			st.Blocks++
		}
	}
	return st
}
