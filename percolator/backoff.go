package percolator

import (
	"context"
	"fmt"
	"time"
)

// backoffClass is a reason to wait before trying again. Each class grows on its own.
type backoffClass int

const (
	backoffRoute  backoffClass = iota // the route was stale
	backoffLock                       // a live transaction's lock is in the way
	backoffRPC                        // a shard could not be reached
	backoffOracle                     // the oracle could not be reached
	backoffClasses
)

// backoffBounds are the first and the longest wait of each class. The first stale route is
// corrected by the error itself, so it is retried at once.
var backoffBounds = [backoffClasses]struct{ first, most time.Duration }{
	backoffRoute:  {2 * time.Millisecond, 500 * time.Millisecond},
	backoffLock:   {time.Millisecond, 200 * time.Millisecond},
	backoffRPC:    {20 * time.Millisecond, 2 * time.Second},
	backoffOracle: {5 * time.Millisecond, 500 * time.Millisecond},
}

// backoff spreads the retries of one call. The zero value is ready; its budget starts with the first
// wait. One goroutine's.
type backoff struct {
	db       *DB
	deadline time.Time
	attempts [backoffClasses]int
}

// wait sleeps before another attempt. It fails with the context's error, or with cause when the
// budget is spent.
func (b *backoff) wait(ctx context.Context, class backoffClass, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.db.metrics.backoffs[class].Inc()
	now := time.Now()
	if b.deadline.IsZero() {
		b.deadline = now.Add(b.db.opts.RetryBudget)
	}
	n := b.attempts[class]
	b.attempts[class]++
	if class == backoffRoute && n == 0 {
		return nil
	}
	bounds := backoffBounds[class]
	pause := min(bounds.first<<min(n, 20), bounds.most)
	pause = pause/2 + b.db.opts.Jitter(pause/2+1)
	if now.Add(pause).After(b.deadline) {
		return fmt.Errorf("gave up after %v: %w", b.db.opts.RetryBudget, cause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
