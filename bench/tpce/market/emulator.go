package market

import (
	"context"
	"sync"
	"time"
)

// Emulator runs an Exchange in real time: it accepts orders from any goroutine, and puts jobs into its queues when
// they are due.
type Emulator struct {
	Results Queue[Result]
	Feeds   Queue[Feed]

	mu       sync.Mutex
	exchange *Exchange
	wake     chan struct{} // of capacity one: the next event may be due earlier
}

// NewEmulator returns an emulator, which does nothing until Run.
func NewEmulator(x *Exchange) *Emulator { return &Emulator{exchange: x, wake: make(chan struct{}, 1)} }

// Submit submits an order that the database has acknowledged.
func (e *Emulator) Submit(o Order) { e.with(func() { e.exchange.Submit(time.Now(), o) }) }

// Execute executes an order that a committed Market-Feed has found.
func (e *Emulator) Execute(o Order) { e.with(func() { e.exchange.Execute(time.Now(), o) }) }

// Waiting returns the number of limit orders that wait for their price.
func (e *Emulator) Waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.exchange.Waiting()
}

func (e *Emulator) with(f func()) {
	e.mu.Lock()
	f()
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run processes events as they become due, until ctx ends.
func (e *Emulator) Run(ctx context.Context) {
	const idle = time.Hour
	timer := time.NewTimer(idle)
	defer timer.Stop()
	var results []Result
	var feeds []Feed
	for {
		now := time.Now()
		e.mu.Lock()
		results, feeds = e.exchange.Advance(now, results[:0], feeds[:0])
		next, any := e.exchange.Next()
		e.mu.Unlock()
		for _, r := range results {
			e.Results.Push(r)
		}
		for _, f := range feeds {
			e.Feeds.Push(f)
		}
		wait := idle
		if any {
			wait = next.Sub(now)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-timer.C:
		}
	}
}

// Queue is an unbounded FIFO queue of jobs for workers. The zero value is empty.
type Queue[T any] struct {
	mu      sync.Mutex
	items   []T
	longest int
	waiters []chan T // idle workers, the longest waiting first
}

// Push adds a job.
func (q *Queue[T]) Push(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.give(item) {
		q.items = append(q.items, item)
		q.longest = max(q.longest, len(q.items))
	}
}

// give passes a job to a waiting worker; false if there is none.
func (q *Queue[T]) give(item T) bool {
	if len(q.waiters) == 0 {
		return false
	}
	q.waiters[0] <- item // does not block: the channel has capacity for its one item
	q.waiters = q.waiters[1:]
	return true
}

// Pop waits for a job and returns the oldest; false if ctx ends first.
func (q *Queue[T]) Pop(ctx context.Context) (T, bool) {
	var none T
	if ctx.Err() != nil {
		return none, false
	}
	q.mu.Lock()
	if len(q.items) > 0 {
		item := q.items[0]
		q.items[0] = none
		q.items = q.items[1:]
		q.mu.Unlock()
		return item, true
	}
	mine := make(chan T, 1)
	q.waiters = append(q.waiters, mine)
	q.mu.Unlock()
	select {
	case item := <-mine:
		return item, true
	case <-ctx.Done():
		q.leave(mine)
		return none, false
	}
}

// leave removes a waiter from the list. A job that the waiter received in the meantime is passed on.
func (q *Queue[T]) leave(mine chan T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiters {
		if w == mine {
			q.waiters = append(q.waiters[:i:i], q.waiters[i+1:]...)
			return
		}
	}
	if item := <-mine; !q.give(item) {
		q.items = append([]T{item}, q.items...)
	}
}

// Len returns the number of waiting jobs.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Longest returns the maximum length since its last call.
func (q *Queue[T]) Longest() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.longest
	q.longest = len(q.items)
	return n
}
