package memory

// Shares divides a process's memory.
type Shares struct {
	Total int64
	Cache int64 // of the storage engine's blocks and memtables
	Heap  int64 // of the Go heap, garbage included
	Pool  int64 // the accounted memory: the live part of the heap
	// Recent is the cache of recently read values, on the heap in addition to the pool.
	Recent int64
	// Scans is the cache of rows that scans read again, as well; it leaves the pool an eighth of the total.
	Scans int64
}

const (
	leastCacheBytes = 64 << 20
	mostCacheBytes  = 2 << 30
	mostRecentBytes = 64 << 20
	mostScanBytes   = 256 << 20
	// LeastBytes is the smallest total that can be divided.
	LeastBytes = 256 << 20
)

// Divide divides total bytes, of which the cache gets the given number, a quarter if it is 0. The part that neither the
// cache nor the heap gets is for memory that is not accounted for: the program, stacks, the storage engine's metadata.
// The pool gets less than the heap, because the collector runs more often the less garbage fits in addition to live
// objects; with two fifths it costs a few percent.
func Divide(total, cache int64) Shares {
	if cache == 0 {
		cache = min(max(total/4, leastCacheBytes), mostCacheBytes)
	}
	s := Shares{Total: total, Cache: cache}
	rest := max(total-cache, total/4)
	s.Heap = rest - max(rest/8, 32<<20)
	s.Pool = s.Heap / 5 * 3
	s.Recent = min(s.Pool/32, mostRecentBytes)
	s.Scans = min(s.Pool/8, mostScanBytes, max(s.Pool-s.Recent-total/8, 1))
	s.Pool -= s.Recent + s.Scans
	if cacheOnHeap {
		s.Heap += cache
	}
	return s
}
