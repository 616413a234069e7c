package gc

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// The stages of a round, as Status shows them.
const (
	stageIdle    = "idle"
	stageFence   = "fence"
	stageResolve = "resolve"
	stageDrop    = "drop"
	stageCollect = "collect"
)

// collectBudget is how long one request to collect may take.
const collectBudget = 5 * time.Second

// Round runs one round to its end. An error leaves the fence where it was raised to; the next round
// takes up what this one has left.
func (c *Controller) Round(ctx context.Context) (err error) {
	c.round.Lock()
	defer c.round.Unlock()
	begun := time.Now()
	defer func() {
		c.update(func(s *Status) {
			if s.Stage, s.LastError = stageIdle, ""; err != nil {
				s.LastError = err.Error()
			}
		})
		c.metrics.rounded(err, time.Since(begun))
	}()
	if shards, err := c.opts.Shards(ctx); err != nil || len(shards) == 0 {
		return err // no shard has joined yet: nothing was ever written
	}
	safePoint, err := c.choose(ctx)
	if err != nil {
		return err
	}
	drops, err := c.listDrops(ctx, safePoint)
	if err != nil {
		return err
	}
	// Announced before the shards are listed: a shard that joins from here on asks for it (I2).
	if err := c.store(func(s *kv.GCSettings) { s.SafePoint = safePoint }); err != nil {
		return err
	}
	c.update(func(s *Status) { s.SafePoint, s.Stage = max(s.SafePoint, safePoint), stageFence })
	shards, err := c.opts.Shards(ctx)
	if err != nil {
		return fmt.Errorf("list the shards: %w", err)
	}
	if safePoint, err = c.fence(ctx, shards, safePoint); err != nil {
		return err
	}
	if safePoint == 0 || safePoint <= c.Status().Collected {
		return nil
	}
	return c.clear(ctx, shards, safePoint, drops)
}

// listDrops lists what was dropped at or below the safe point to be, while it can still be read at.
func (c *Controller) listDrops(ctx context.Context, safePoint tso.Timestamp) ([]DroppedSpan, error) {
	if c.opts.Drops == nil || safePoint <= c.Status().SafePoint {
		return nil, nil // nothing new, or to be listed at the next safe point
	}
	drops, err := c.opts.Drops.Dropped(ctx, safePoint)
	if err != nil {
		return nil, fmt.Errorf("list dropped tables: %w", err)
	}
	return drops, nil
}

// choose returns the safe point that may be set now.
func (c *Controller) choose(ctx context.Context) (tso.Timestamp, error) {
	now, err := c.opts.Oracle.Now(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the oracle: %w", err)
	}
	status := c.Status()
	safePoint := tso.FromPhysical(max(0, now.Physical()-status.Life.Milliseconds()))
	if status.Oldest != 0 {
		safePoint = min(safePoint, status.Oldest)
	}
	return max(safePoint, status.SafePoint), nil
}

// fence raises the safe point everywhere and returns the highest that was found in force, for which it
// does the same: another controller, before this one, may have got that far.
func (c *Controller) fence(ctx context.Context, shards []kv.Collector, safePoint tso.Timestamp) (tso.Timestamp, error) {
	for {
		var highest atomic.Uint64
		err := onAll(ctx, shards, func(ctx context.Context, shard kv.Collector) error {
			inForce, err := shard.SetSafePoint(ctx, safePoint)
			for old := highest.Load(); uint64(inForce) > old && !highest.CompareAndSwap(old, uint64(inForce)); {
				old = highest.Load()
			}
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("raise the fence: %w", err)
		}
		inForce := tso.Timestamp(highest.Load())
		if inForce <= safePoint {
			return safePoint, nil
		}
		safePoint = inForce
		c.update(func(s *Status) { s.SafePoint = max(s.SafePoint, inForce) })
	}
}

// clear does what follows the fence.
func (c *Controller) clear(ctx context.Context, shards []kv.Collector, safePoint tso.Timestamp, drops []DroppedSpan) error {
	c.stage(stageResolve)
	err := durably(ctx, shards, func() error {
		resolved, err := c.opts.Resolver.ResolveBefore(ctx, safePoint)
		c.metrics.resolved.Add(float64(resolved))
		return err
	})
	if err != nil {
		return fmt.Errorf("finish old transactions: %w", err)
	}
	c.stage(stageDrop)
	if err := c.drop(ctx, shards, safePoint, drops); err != nil {
		return fmt.Errorf("remove dropped tables: %w", err)
	}
	c.stage(stageCollect)
	if err := onAll(ctx, shards, func(ctx context.Context, shard kv.Collector) error { return c.collect(ctx, shard, safePoint) }); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	c.update(func(s *Status) { s.Collected = max(s.Collected, safePoint) })
	return nil
}

// drop removes the keys of dropped tables and indexes. A span that is not free yet waits for a later
// round.
func (c *Controller) drop(ctx context.Context, shards []kv.Collector, safePoint tso.Timestamp, drops []DroppedSpan) error {
	if len(drops) == 0 {
		return nil
	}
	var gone []uint64
	// A removal that a power cut undoes must not be forgotten.
	err := durably(ctx, shards, func() error {
		gone = gone[:0]
		for _, d := range drops {
			free, err := dropSpan(ctx, shards, &kv.DropSpanRequest{Span: d.Span, SafePoint: safePoint})
			if err != nil {
				return err
			}
			if free {
				gone = append(gone, d.ID)
			}
		}
		return nil
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	c.metrics.dropped.Add(float64(len(gone)))
	return c.opts.Drops.Forget(ctx, gone)
}

// dropSpan removes a span wherever a part of it lies, and reports whether no shard keeps any.
func dropSpan(ctx context.Context, shards []kv.Collector, req *kv.DropSpanRequest) (bool, error) {
	var busy atomic.Bool
	err := onAll(ctx, shards, func(ctx context.Context, shard kv.Collector) error {
		dropped, err := shard.DropSpan(ctx, req)
		if !dropped {
			busy.Store(true)
		}
		return err
	})
	return !busy.Load(), err
}

// durably has do change shards until what it has changed is durable on all of them. A shard that was
// restarted meanwhile may have lost what it had answered for, so that it is done again.
func durably(ctx context.Context, shards []kv.Collector, do func() error) error {
	before, err := syncLogs(ctx, shards)
	for err == nil {
		if err = do(); err != nil {
			return err
		}
		var after []uint64
		if after, err = syncLogs(ctx, shards); err == nil && slices.Equal(before, after) {
			return nil
		}
		before = after
	}
	return fmt.Errorf("sync: %w", err)
}

// syncLogs makes all that was applied durable and returns the runs of the shards that vouch for it.
func syncLogs(ctx context.Context, shards []kv.Collector) ([]uint64, error) {
	runs := make([]uint64, len(shards))
	g, ctx := errgroup.WithContext(ctx)
	for i, shard := range shards {
		g.Go(func() (err error) {
			runs[i], err = shard.SyncLog(ctx)
			return err
		})
	}
	return runs, g.Wait()
}

func (c *Controller) collect(ctx context.Context, shard kv.Collector, safePoint tso.Timestamp) error {
	for {
		res, err := shard.CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: safePoint, From: safePoint, Budget: collectBudget})
		c.metrics.versions.Add(float64(res.Versions))
		if err != nil || res.Done {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (c *Controller) stage(stage string) { c.update(func(s *Status) { s.Stage = stage }) }

// onAll calls f for all shards at once and returns when all have answered.
func onAll(ctx context.Context, shards []kv.Collector, f func(context.Context, kv.Collector) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, shard := range shards {
		g.Go(func() error { return f(ctx, shard) })
	}
	return g.Wait()
}
