package waitgraph

import (
	"context"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

const (
	watchDelay = 20 * time.Millisecond // before a wait is registered
	watchAgain = time.Second           // interval at which it is registered anew
)

// Watch registers with g, once it has lasted a while, that waiter waits because of key for the transactions that holders
// lists, and renews that until stop is called. A deadlock is sent to deadlock, once. Nothing depends on an answer of g, and
// holders may be called after stop.
func Watch(ctx context.Context, g Graph, waiter tso.Timestamp, key []byte, holders func() []tso.Timestamp) (deadlock <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{graph: g, waiter: waiter, key: key, holders: holders, found: make(chan error, 1)}
	timer := time.AfterFunc(watchDelay, func() { w.run(ctx) })
	return w.found, func() {
		timer.Stop()
		cancel()
	}
}

type watch struct {
	graph   Graph
	waiter  tso.Timestamp
	key     []byte
	holders func() []tso.Timestamp
	found   chan error
}

func (w *watch) run(ctx context.Context) {
	var edges []func()
	again := time.NewTicker(watchAgain)
	defer again.Stop()
	for ctx.Err() == nil {
		next := edges[:0:0]
		for _, holder := range w.holders() {
			done, err := w.graph.Wait(ctx, w.waiter, holder, w.key)
			if errkind.Of(err) == errkind.Deadlock {
				w.found <- err
				end(append(next, edges...))
				return
			}
			if err == nil {
				next = append(next, done)
			}
		}
		end(edges)
		edges = next
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	end(edges)
}

func end(edges []func()) {
	for _, done := range edges {
		done()
	}
}
