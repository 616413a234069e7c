package tso

import (
	"context"
	"sync"
)

// Batched is an Oracle over a Source with expensive requests, such as a remote one. It has one
// request in flight at a time; callers that arrive in the meantime share the next one.
//
//	callers   a b        c d e            f
//	request   └─(a b)────┴─▶(c d e)───────┴──▶(f)
//
// A caller joins only a request that has not been sent: the answer to one in flight may be smaller
// than a timestamp that another caller received before this call began.
//
// Safe for concurrent use. Close it before its Source.
type Batched struct {
	source Source
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.Mutex
		closed  bool
		running bool   // run is at work and will take next
		next    *batch // not yet sent, or nil
	}
}

type batch struct {
	n     int
	done  chan struct{}
	first Timestamp
	err   error
}

// NewBatched returns an oracle over source. It starts no goroutine before the first request.
func NewBatched(source Source) *Batched {
	b := &Batched{source: source}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Now implements Oracle. It fails with ErrClosed, errors of ctx and those of the source. A caller that gives up leaves a
// gap and affects no other caller.
func (b *Batched) Now(ctx context.Context) (Timestamp, error) {
	b.mu.Lock()
	if b.mu.closed {
		b.mu.Unlock()
		return 0, ErrClosed
	}
	next := b.mu.next
	if next == nil || next.n == MaxBatch {
		// A full batch that is still waiting cannot have a successor before it is sent, so the caller that finds one
		// sends a request of its own.
		if next != nil {
			b.mu.Unlock()
			return b.source.NowN(ctx, 1)
		}
		next = &batch{done: make(chan struct{})}
		b.mu.next = next
	}
	i := next.n
	next.n++
	if !b.mu.running {
		b.mu.running = true
		b.done.Go(b.run)
	}
	b.mu.Unlock()

	select {
	case <-next.done:
		return next.first + Timestamp(i)*Tick, next.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run sends batches until no caller waits.
func (b *Batched) run() {
	for {
		b.mu.Lock()
		next := b.mu.next
		b.mu.next = nil
		if next == nil {
			b.mu.running = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		next.first, next.err = b.source.NowN(b.ctx, next.n)
		if next.err != nil && b.ctx.Err() != nil {
			next.err = ErrClosed
		}
		close(next.done)
	}
}

// Close closes the oracle; calls in flight fail. The source stays open.
func (b *Batched) Close() error {
	b.mu.Lock()
	b.mu.closed = true
	b.mu.Unlock()
	b.cancel()
	b.done.Wait()
	return nil
}
