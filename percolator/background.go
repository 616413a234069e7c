package percolator

import (
	"context"
	"sync"
	"time"
)

// background runs work for which no caller waits: committing secondaries, resolving locks that readers have ignored,
// cleaning up after aborts. Workers and queue are bounded. Safe for concurrent use.
type background struct {
	queue  chan func(context.Context)
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.RWMutex
		closed bool
	}
}

func newBackground(workers, queued int) *background {
	b := &background{queue: make(chan func(context.Context), queued)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	for range workers {
		b.done.Go(func() {
			for task := range b.queue {
				task(b.ctx)
			}
		})
	}
	return b
}

// submit queues a task, unless the queue is full or closed.
func (b *background) submit(task func(context.Context)) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.mu.closed {
		return false
	}
	select {
	case b.queue <- task:
		return true
	default:
		return false
	}
}

func (b *background) length() float64 { return float64(len(b.queue)) }

// close runs the queued tasks; after the grace period their context is cancelled.
func (b *background) close(grace time.Duration) {
	b.mu.Lock()
	if !b.mu.closed {
		b.mu.closed = true
		close(b.queue)
	}
	b.mu.Unlock()
	timer := time.AfterFunc(grace, b.cancel)
	defer timer.Stop()
	b.done.Wait()
	b.cancel()
}
