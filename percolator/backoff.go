package percolator

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// backoffClass is a reason to wait before trying again. Each class grows on its own.
type backoffClass int

const (
	backoffRoute  backoffClass = iota // the route was stale
	backoffLock                       // a live transaction's lock blocks the request
	backoffRPC                        // a shard could not be reached
	backoffOracle                     // the oracle could not be reached
	backoffClasses
)

// backoffBounds are the first and the longest wait of each class. The first stale route is corrected by the error
// itself, so it is retried immediately.
var backoffBounds = [backoffClasses]struct{ first, most time.Duration }{
	backoffRoute:  {2 * time.Millisecond, 500 * time.Millisecond},
	backoffLock:   {time.Millisecond, 200 * time.Millisecond},
	backoffRPC:    {20 * time.Millisecond, 2 * time.Second},
	backoffOracle: {5 * time.Millisecond, 500 * time.Millisecond},
}

// backoff spreads the retries of one call. Only db is required; its budget starts with the first
// wait. One goroutine's.
type backoff struct {
	db       *DB
	deadline time.Time
	attempts [backoffClasses]int
	// patient: an outcome depends on the answer, so unreachable nodes get the whole budget.
	patient bool
	// unreachable is when the first request was sent that a node did not answer, of failures that follow each other; lastFailure is
	// the last of them.
	unreachable, lastFailure time.Time
}

// wait sleeps before another attempt. It fails with the context's error, or with cause when the budget is spent.
func (b *backoff) wait(ctx context.Context, class backoffClass, cause error) error {
	pause, err := b.next(ctx, class, cause)
	if err != nil || pause == 0 {
		return err
	}
	return sleep(ctx, pause)
}

// expiryStep is the longest wait for a lock whose TTL has run out by the local clock, but not by the
// oracle's, which is a little behind.
const expiryStep = 2 * time.Millisecond

// waitForExpiry is wait for a live transaction's lock that ends soon after the lock's TTL.
func (b *backoff) waitForExpiry(ctx context.Context, e *mvcc.KeyLockedError) error {
	pause, err := b.next(ctx, backoffLock, e)
	if err != nil {
		return err
	}
	left := time.Until(time.UnixMilli(e.Lock.Expiry() + 1))
	return sleep(ctx, min(pause, max(left, expiryStep)))
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// next returns how long to wait before another attempt, with the errors of wait.
func (b *backoff) next(ctx context.Context, class backoffClass, cause error) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	b.db.metrics.backoffs[class].Inc()
	now := time.Now()
	if b.deadline.IsZero() {
		b.deadline = now.Add(b.db.opts.RetryBudget)
	}
	unreachable := class == backoffRPC || class == backoffOracle
	budget := b.db.opts.UnreachableBudget
	if unreachable {
		tried, repeated := triedFor(cause)
		begun := now.Add(-tried)
		if b.unreachable.IsZero() || begun.Sub(b.lastFailure) > budget {
			b.unreachable = begun
		} else {
			repeated = true
		}
		b.lastFailure = now
		if !b.patient && repeated && now.Sub(b.unreachable) >= budget {
			return 0, fmt.Errorf("gave up after %v: %w", budget, cause)
		}
	}
	n := b.attempts[class]
	b.attempts[class]++
	if class == backoffRoute && n == 0 {
		return 0, nil
	}
	bounds := backoffBounds[class]
	pause := min(bounds.first<<min(n, 20), bounds.most)
	pause = pause/2 + b.db.opts.Jitter(pause/2+1)
	if unreachable && !b.patient {
		pause = max(0, min(pause, budget-now.Sub(b.unreachable))) // The last attempt is at the end of the budget.
	}
	if now.Add(pause).After(b.deadline) {
		return 0, fmt.Errorf("gave up after %v: %w", b.db.opts.RetryBudget, cause)
	}
	return pause, nil
}

// triedFor returns how long a request was without an answer before it failed, and whether it was sent more than once.
func triedFor(err error) (tried time.Duration, repeated bool) {
	_, typed := errkind.Find(err)
	switch e := typed.(type) {
	case *kv.UnavailableError:
		return e.Tried, false
	case *tso.UnavailableError:
		return e.Tried, e.Tried > 0
	}
	return 0, false
}

// waitForLock waits until a live transaction's lock has been removed or changed, or for the duration of wait. If the
// shard cannot report that, it sleeps.
func (b *backoff) waitForLock(ctx context.Context, shard kv.Shard, e *mvcc.KeyLockedError) error {
	if !shard.Capabilities().WaitForRelease {
		return b.wait(ctx, backoffLock, e)
	}
	pause, err := b.next(ctx, backoffLock, e)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	if err := shard.WaitForRelease(waiting, e.Key, e.Lock.StartTS); err != nil && waiting.Err() == nil {
		return err
	}
	return ctx.Err()
}
