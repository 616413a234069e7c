package percolator

import (
	"context"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
)

// retryRouting handles errors after which the request can be repeated because nothing was done or a repetition is
// harmless: it refreshes the route or waits. It returns other errors.
func (db *DB) retryRouting(ctx context.Context, bo *backoff, err error) error {
	switch errkind.Of(err).Retry() {
	case errkind.RetryRoute:
		if stale, ok := errkind.As[*kv.StaleRangeError](err); ok {
			db.router.Invalidate(stale)
		}
		return bo.wait(ctx, backoffRoute, err)
	case errkind.RetryShard:
		return bo.wait(ctx, backoffRPC, err)
	case errkind.RetryOracle:
		return bo.wait(ctx, backoffOracle, err)
	default:
		return err
	}
}

// forgetRoute drops the cached routes of ranges whose shard did not answer: it may have ended, or have another address.
func (db *DB) forgetRoute(err error, refs ...kv.RangeRef) {
	if errkind.Of(err) == errkind.Unavailable {
		db.router.Invalidate(&kv.StaleRangeError{Refs: refs})
	}
}

// notSent reports whether err prevented a request from leaving this process.
func notSent(err error) bool {
	unavailable, ok := errkind.As[*kv.UnavailableError](err)
	return ok && unavailable.NotSent
}

// unreachable reports whether err means that a node did not answer.
func unreachable(err error) bool {
	retry := errkind.Of(err).Retry()
	return retry == errkind.RetryShard || retry == errkind.RetryOracle
}
