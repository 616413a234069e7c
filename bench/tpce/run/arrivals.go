package run

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// lateAfter is how much later than it was to start a transaction is late: timers are not better than that.
const lateAfter = 5 * time.Millisecond

// arrivals say when customers come. Workers take one arrival after the other: who is not free in time
// finds the arrival in the past.
type arrivals struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	next    time.Time
	gap     time.Duration // on average
	uniform bool
	taken   int64 // since the last call of lateness
	late    int64 // of those
}

// newArrivals returns arrivals at a rate per second, from a time on.
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

// take returns the next arrival as soon as it is there; false if ctx ends before.
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

// lateness returns which share of the arrivals since the last call no worker was free for, and how long
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
