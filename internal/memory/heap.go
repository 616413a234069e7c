package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// largeBytes is the smallest reservation before which the heap is looked at: reading its size takes
	// microseconds, allocating so much more than that.
	largeBytes = 4 << 20
	// peakBytes is how far a pool's sum must fall for free memory to be returned to the operating system.
	peakBytes = 128 << 20
	// returnDelay lets the statements that end a peak release their memory.
	returnDelay = 300 * time.Millisecond
)

// heapWatch keeps the heap, garbage included, within a limit, and returns memory after a peak. The
// runtime's own soft limit makes it collect more often; but it never refuses an allocation, and one of
// hundreds of megabytes passes the limit before a collection that it starts has ended.
type heapWatch struct {
	limit int64
	peak  atomic.Int64 // of the sum, since memory was last returned
	due   atomic.Bool  // memory will be returned
	mu    struct {
		sync.Mutex
		sample []metrics.Sample
	}
}

func newHeapWatch(limit int64) *heapWatch {
	h := &heapWatch{limit: limit}
	h.mu.sample = []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	return h
}

// makeSpace is called with each reservation of n bytes after which the sum is used. One caller at a time checks and
// collects: the next finds what the previous one has freed.
func (h *heapWatch) makeSpace(n, used int64) error {
	for peak := h.peak.Load(); used > peak && !h.peak.CompareAndSwap(peak, used); {
		peak = h.peak.Load()
	}
	if n < largeBytes {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inUse()+n <= h.limit {
		return nil
	}
	runtime.GC()
	if inUse := h.inUse(); inUse+n > h.limit {
		return &ExceededError{Pool: "the heap", Asked: n, Used: inUse, Limit: h.limit}
	}
	return nil
}

// inUse is the size of objects, including dead ones, and stacks.
func (h *heapWatch) inUse() int64 {
	metrics.Read(h.mu.sample)
	sum := int64(0)
	for _, s := range h.mu.sample {
		sum += int64(s.Value.Uint64())
	}
	return sum
}

// released is called after each release with the sum that is left.
func (h *heapWatch) released(used int64) {
	if h.peak.Load()-used < peakBytes || !h.due.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(returnDelay, func() {
		h.due.Store(false)
		h.peak.Store(used)
		debug.FreeOSMemory()
	})
}
