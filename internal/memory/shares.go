package memory

// Shares divides a process's memory.
type Shares struct {
	Total int64
	Cache int64 // of the storage engine's blocks and memtables
	Heap  int64 // of the Go heap, garbage included
	Pool  int64 // of what is accounted for: the heap's live part
	// Recent is of the values that a store's reads remember, on the heap beside the pool.
	Recent int64
}

const (
	leastCacheBytes = 64 << 20
	mostCacheBytes  = 2 << 30
	mostRecentBytes = 64 << 20
	// LeastBytes is the smallest total that can be divided.
	LeastBytes = 256 << 20
)

// Divide divides total bytes, of which the cache takes the given number, a quarter where it is 0. What
// neither the cache nor the heap gets is for what no account counts: the program, stacks, the storage
// engine's metadata. The pool gets less than the heap, because the collector runs more often the less
// garbage fits beside what lives; with two fifths it costs a few percent.
func Divide(total, cache int64) Shares {
	if cache == 0 {
		cache = min(max(total/4, leastCacheBytes), mostCacheBytes)
	}
	s := Shares{Total: total, Cache: cache}
	rest := max(total-cache, total/4)
	s.Heap = rest - max(rest/8, 32<<20)
	s.Pool = s.Heap / 5 * 3
	s.Recent = min(s.Pool/32, mostRecentBytes)
	s.Pool -= s.Recent
	if cacheOnHeap {
		s.Heap += cache
	}
	return s
}
