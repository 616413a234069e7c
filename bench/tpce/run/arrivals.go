package run

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// lateAfter is the delay after which a transaction counts as late. It exceeds the imprecision of timers.
const lateAfter = 5 * time.Millisecond

// arrivals generates the times at which customers arrive. Workers take one arrival after the other. If no worker is
// free at the time of an arrival, a worker takes it later, with its time in the past.
type arrivals struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	next    time.Time
	gap     time.Duration // on average
	uniform bool
	taken   int64 // since the last call of lateness
	late    int64 // of those
}

// newArrivals returns arrivals at a rate per second, beginning at from.
func newArrivals(from time.Time, rate float64, uniform bool, seed uint64) *arrivals {
	a := &arrivals{rnd: rand.New(rand.NewPCG(seed, 0x61727269)), next: from, gap: time.Duration(float64(time.Second) / rate), uniform: uniform}
	a.advance()
	return a
}

func (a *arrivals) advance() {
	gap := a.gap
	if !a.uniform {
		gap = time.Duration(a.rnd.ExpFloat64() * float64(a.gap))
	}
	a.next = a.next.Add(gap)
}

// take waits until the next arrival and returns its time; false if ctx ends first.
func (a *arrivals) take(ctx context.Context) (time.Time, bool) {
	a.mu.Lock()
	at := a.next
	a.advance()
	wait := time.Until(at)
	a.taken++
	if wait < -lateAfter {
		a.late++
	}
	a.mu.Unlock()
	if wait <= 0 {
		return at, ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return at, true
	case <-ctx.Done():
		return at, false
	}
}

// lateness returns the share of the arrivals since the last call for which no worker was free, and how long
// the next one has been waiting.
func (a *arrivals) lateness() (share float64, behind time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken > 0 {
		share = float64(a.late) / float64(a.taken)
	}
	a.taken, a.late = 0, 0
	return share, max(0, time.Since(a.next))
}
