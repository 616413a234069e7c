package percolator

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// maxTxnLife is how long heartbeats keep a transaction alive that does not come to an end.
const maxTxnLife = time.Hour

// heartbeat keeps the locks of a two-phase commit from expiring while it is at work.
type heartbeat struct {
	cancel context.CancelFunc
	done   chan struct{}
	// primaryLocked: from here on a missing primary means that others have rolled it back.
	primaryLocked atomic.Bool
	// doomed: the transaction has been rolled back. Advice only, the shard has the last word.
	doomed atomic.Bool
}

// startHeartbeat sets the transaction's TTL and begins to renew it. A TTL counts from the
// start_ts, so that the time the transaction has been open already comes on top.
func (c *committer) startHeartbeat(ctx context.Context) (*heartbeat, error) {
	now, err := c.db.now(ctx)
	if err != nil {
		return nil, err
	}
	open := max(0, now.Physical()-c.startTS.Physical())
	ttl := c.ttlFor()
	c.ttlMillis = uint64(open) + ttl
	h := &heartbeat{done: make(chan struct{})}
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(h.done)
		c.beat(ctx, h, time.Now(), uint64(open), ttl)
	}()
	return h, nil
}

func (c *committer) beat(ctx context.Context, h *heartbeat, begun time.Time, openMillis, ttlMillis uint64) {
	ticker := time.NewTicker(time.Duration(ttlMillis) * time.Millisecond / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		age := time.Since(begun)
		if age > maxTxnLife {
			return
		}
		locked := h.primaryLocked.Load()
		err := c.sendHeartbeat(ctx, openMillis+uint64(age.Milliseconds())+ttlMillis)
		var missing *mvcc.LockNotFoundError
		var notFound *mvcc.TxnNotFoundError
		var rolledBack *mvcc.RolledBackError
		if errors.As(err, &rolledBack) || locked && (errors.As(err, &missing) || errors.As(err, &notFound)) {
			h.doomed.Store(true)
			return
		}
	}
}

// sendHeartbeat raises the TTL once. Errors that may pass are left to the next beat, which finds the
// route corrected.
func (c *committer) sendHeartbeat(ctx context.Context, ttlMillis uint64) error {
	desc, shard, err := c.db.router.Locate(ctx, c.primary)
	if err != nil {
		return err
	}
	c.db.metrics.heartbeats.Inc()
	_, err = shard.Heartbeat(ctx, &kv.HeartbeatRequest{Range: desc.Ref(), Primary: c.primary, StartTS: c.startTS, TTLMillis: ttlMillis})
	c.db.forgetRoute(err, desc.Ref())
	var stale *kv.StaleRangeError
	if errors.As(err, &stale) {
		c.db.router.Invalidate(stale)
	}
	return err
}

// stop ends the heartbeats and waits for the last. It may be called more than once.
func (h *heartbeat) stop() {
	h.cancel()
	<-h.done
}
