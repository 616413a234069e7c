package notify

import (
	"sync"

	"github.com/percodb/percodb/internal/memory"
)

// queue is a bounded queue with one consumer, which waits for its first item without a goroutine of its own. Safe for
// concurrent use.
type queue[T any] struct {
	limit int64 // of bytes

	mu      sync.Mutex
	items   []T
	bytes   int64
	account memory.Account
	wake    func() // called once when an item arrives; nil: the consumer does not wait
	ended   bool   // nothing is added any more
}

// add appends items of a size together, and reports whether there was space. Once the queue has ended it drops them.
func (q *queue[T]) add(bytes int64, items ...T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return true
	}
	if q.bytes+bytes > q.limit || q.account.Grow(bytes) != nil {
		return false
	}
	q.items = append(q.items, items...)
	q.bytes += bytes
	if q.wake != nil {
		q.wake()
		q.wake = nil
	}
	return true
}

// take removes all items.
func (q *queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.account.Shrink(q.bytes)
	q.items, q.bytes = nil, 0
	return items
}

// await has wake called, once, when an item arrives; false: there are some. wake is called by the goroutine that adds, and must
// not call q.
func (q *queue[T]) await(wake func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) > 0 {
		return false
	}
	q.wake = wake
	return true
}

// stopAwaiting ends await. It reports whether wake has been called, which is not called afterwards.
func (q *queue[T]) stopAwaiting() (woken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	woken = q.wake == nil
	q.wake = nil
	return woken
}

// end drops the items and those to come. It reports whether the queue had not ended before.
func (q *queue[T]) end() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	q.ended, q.items, q.bytes = true, nil, 0
	q.account.Close()
	return true
}

// usage is how full the queue is, from 0 to 1.
func (q *queue[T]) usage() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return float64(q.bytes) / float64(q.limit)
}
