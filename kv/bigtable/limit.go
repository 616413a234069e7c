package bigtable

import (
	"context"
	"sync"
	"time"
)

// limiter bounds the rows that a process reads and writes in a second. What begins or continues a transaction waits: reads, locks, prewrites. What ends
// one does not, nor do heartbeats and the coordinator's lease: they make others wait less.
type limiter struct {
	perSecond float64 // 0: no limit

	mu   sync.Mutex
	left float64 // of this moment; negative: it is owed
	at   time.Time
}

// wait takes rows, and returns when they are within the limit.
func (l *limiter) wait(ctx context.Context, rows int) error {
	pause := l.take(rows)
	if pause <= 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes rows, and returns how long it takes until they are within the limit. Up to a second's rows may be taken at once.
func (l *limiter) take(rows int) time.Duration {
	if l.perSecond == 0 || rows <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.left = min(l.perSecond, l.left+l.perSecond*now.Sub(l.at).Seconds())
	l.at = now
	l.left -= float64(rows)
	return time.Duration(-l.left / l.perSecond * float64(time.Second))
}
