package tso

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// holdTimeout is how long Now and NowN wait for the end of a hold, so that a short hold delays callers and fails none.
const holdTimeout = 2 * time.Second

// Gate is a Local oracle that can be put on hold; on hold it issues no timestamps. Safe for concurrent use.
type Gate struct {
	local *Local
	mu    sync.Mutex           // guards changes of held and above
	above Timestamp            // that of the last Serve
	held  atomic.Pointer[hold] // nil: it serves
}

// hold is a state of a gate. ended is closed when the gate serves again.
type hold struct {
	err   *UnavailableError
	ended chan struct{}
}

// NewGate returns a gate that serves. local stays the caller's.
func NewGate(local *Local) *Gate { return &Gate{local: local} }

// Hold makes Now and NowN wait for Serve, and fail with *UnavailableError for the reason when it does not come soon.
// Calls under way may still succeed.
func (g *Gate) Hold(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := &hold{err: &UnavailableError{Err: errors.New(reason)}, ended: make(chan struct{})}
	if h := g.held.Load(); h != nil {
		next.ended = h.ended
	}
	g.held.Store(next)
}

// Serve ends a hold, if there is one. All timestamps handed out from now on are above the given one.
func (g *Gate) Serve(above Timestamp) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.local.raise(above)
	g.above = max(g.above, above)
	if h := g.held.Swap(nil); h != nil {
		close(h.ended)
	}
}

// Now implements Oracle.
func (g *Gate) Now(ctx context.Context) (Timestamp, error) {
	if h := g.held.Load(); h != nil {
		if err := g.await(ctx, h); err != nil {
			return 0, err
		}
	}
	return g.local.Now(ctx)
}

// NowN implements Source.
func (g *Gate) NowN(ctx context.Context, n int) (Timestamp, error) {
	if h := g.held.Load(); h != nil {
		if err := g.await(ctx, h); err != nil {
			return 0, err
		}
	}
	return g.local.NowN(ctx, n)
}

// await waits for the end of a hold.
func (g *Gate) await(ctx context.Context, h *hold) error {
	timer := time.NewTimer(holdTimeout)
	defer timer.Stop()
	select {
	case <-h.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		if last := g.held.Load(); last != nil {
			h = last // with the newest reason
		}
		return h.err
	}
}

// WindowEnd is Local.WindowEnd or, if the window has not been saved since, what Serve has raised the oracle to.
func (g *Gate) WindowEnd() Timestamp {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.local.WindowEnd(), g.above)
}

// raise makes the oracle go on above a timestamp.
func (o *Local) raise(above Timestamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed || above < FromPhysical(o.mu.time.now) {
		return // cur is at or above the oracle's time
	}
	o.mu.time.now = above.Physical() + 1
	o.followClockLocked()
}
