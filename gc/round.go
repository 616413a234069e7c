package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/internal/errkind"
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

// Round runs one complete round. After an error the fence stays where it was raised to; the next round completes what
// this one has not done.
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
		took := time.Since(begun)
		c.mu.Lock()
		c.mu.took = took
		c.mu.Unlock()
		c.metrics.rounded(err, took)
	}()
	if members, err := c.opts.Members(ctx); err != nil || len(members) == 0 {
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
	r, err := c.fence(ctx, safePoint)
	if err != nil {
		return err
	}
	c.noteAway(r.away)
	if r.safePoint == 0 || r.safePoint <= c.Status().Collected {
		return nil
	}
	return c.clear(ctx, r, drops)
}

// round is the state of a round after the fence has been raised.
type round struct {
	safePoint     tso.Timestamp
	present, away []Member
}

// announce stores the safe point before it is sent to any shard, and lists the members: a shard that joins or returns
// from here on learns it first (I2), so the listed bounds apply to all locks at or below it.
func (c *Controller) announce(ctx context.Context, safePoint tso.Timestamp) ([]Member, error) {
	if err := c.store(func(s *kv.GCSettings) { s.SafePoint = max(s.SafePoint, safePoint) }); err != nil {
		return nil, err
	}
	c.update(func(s *Status) { s.SafePoint, s.Stage = max(s.SafePoint, safePoint), stageFence })
	members, err := c.opts.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the shards: %w", err)
	}
	return members, nil
}

// listDrops lists what was dropped at or below the chosen safe point, while it can still be read at.
func (c *Controller) listDrops(ctx context.Context, safePoint tso.Timestamp) ([]DroppedSpan, error) {
	if c.opts.Drops == nil || safePoint <= c.Status().SafePoint {
		return nil, nil // nothing new, or listed at the next safe point
	}
	drops, err := c.opts.Drops.Dropped(ctx, safePoint)
	if unreachable(err) && ctx.Err() == nil {
		c.log.Warn("dropped tables wait: the catalog cannot be read", "err", err)
		return nil, nil // they are listed at a later safe point
	}
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
	if safePoint, err = c.keepHeld(ctx, safePoint, now); err != nil {
		return 0, err
	}
	return max(safePoint, status.SafePoint), nil
}

// keepHeld lowers a safe point below what is held as of now. If that cannot be read, the safe point stays as it is.
func (c *Controller) keepHeld(ctx context.Context, safePoint, now tso.Timestamp) (tso.Timestamp, error) {
	if c.opts.Held == nil {
		return safePoint, nil
	}
	held, err := c.opts.Held(ctx, now)
	switch {
	case unreachable(err) && ctx.Err() == nil:
		c.log.Warn("history is kept: the catalog cannot be read", "err", err)
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read which snapshots are held: %w", err)
	case held != 0:
		safePoint = min(safePoint, held-1)
	}
	return safePoint, nil
}

// fence raises the safe point on all shards that can be reached. If an earlier controller has raised it further on one
// of them, fence raises it that far on all.
func (c *Controller) fence(ctx context.Context, safePoint tso.Timestamp) (*round, error) {
	for {
		members, err := c.announce(ctx, safePoint)
		if err != nil {
			return nil, err
		}
		inForce, errs := c.fenceMembers(ctx, members, safePoint)
		r := &round{safePoint: safePoint}
		for i, m := range members {
			switch {
			case errs[i] == nil:
				r.present = append(r.present, m)
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case !unreachable(errs[i]):
				return nil, fmt.Errorf("raise the fence: %w", errs[i])
			case m.LockBound == 0:
				return nil, fmt.Errorf("raise the fence on store %s, of whose locks nothing is known: %w", m.ID, errs[i])
			default:
				r.away = append(r.away, m)
			}
		}
		if len(r.present) == 0 {
			return nil, fmt.Errorf("raise the fence: %w", errors.Join(errs...))
		}
		if inForce <= safePoint {
			return r, nil
		}
		safePoint = inForce
	}
}

// fenceMembers raises the safe point on members, and returns the highest found in force.
func (c *Controller) fenceMembers(ctx context.Context, members []Member, safePoint tso.Timestamp) (tso.Timestamp, []error) {
	bounded, cancel := context.WithTimeout(ctx, c.opts.FenceTimeout)
	defer cancel()
	inForce, errs := make([]tso.Timestamp, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			at := bounded
			if m.LockBound == 0 {
				at = ctx // it has to take part, however long that takes
			}
			inForce[i], errs[i] = m.Shard.SetSafePoint(at, safePoint)
		})
	}
	wg.Wait()
	return slices.Max(inForce), errs
}

// unreachable reports whether a shard did not answer, or not in time.
func unreachable(err error) bool {
	kind := errkind.Of(err)
	return kind == errkind.Unavailable || kind == errkind.Closed || errors.Is(err, context.DeadlineExceeded)
}

// noteAway records which shards take no part in the round.
func (c *Controller) noteAway(away []Member) {
	ids := make([]string, len(away))
	for i := range away {
		ids[i] = away[i].ID
	}
	before := c.Status().Away
	c.update(func(s *Status) { s.Away = ids })
	for i := range away {
		if !slices.Contains(before, away[i].ID) {
			c.log.Warn("a store could not be reached: garbage collection goes on without its ranges", "store", away[i].ID,
				"cleared", c.cleared[away[i].ID], "lock_bound", away[i].LockBound)
		}
	}
	for _, id := range before {
		if !slices.Contains(ids, id) {
			c.log.Info("a store takes part in garbage collection again, or is gone for good", "store", id)
		}
	}
}

// clear performs the steps after the fence.
func (c *Controller) clear(ctx context.Context, r *round, drops []DroppedSpan) error {
	c.stage(stageResolve)
	var left []kv.LeftLocks
	away := map[string]bool{}
	for i := range r.away {
		away[r.away[i].ID] = true
	}
	err := durably(ctx, r.present, func() (err error) {
		var resolved int
		resolved, left, err = c.opts.Resolver.ResolveBefore(ctx, r.safePoint, away)
		c.metrics.resolved.Add(float64(resolved))
		return err
	})
	if err != nil {
		return fmt.Errorf("finish old transactions: %w", err)
	}
	locks := 0
	for i := range left {
		locks += left[i].Locks
	}
	c.update(func(s *Status) { s.LeftLocks = locks })
	protected := protect(r.away, c.cleared, left)
	c.stage(stageDrop)
	if err := c.drop(ctx, r, drops, protected); err != nil {
		return fmt.Errorf("remove dropped tables: %w", err)
	}
	c.stage(stageCollect)
	if err := c.collectAll(ctx, r, left, protected); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	c.update(func(s *Status) { s.Collected = max(s.Collected, r.safePoint) })
	return nil
}

// protect returns the transactions that may have locks on some shard: on unavailable shards those that began after the
// last safe point up to which the shard had none, up to the bound of its locks; and those whose locks were left.
func protect(away []Member, cleared map[string]tso.Timestamp, left []kv.LeftLocks) (spans []kv.TSSpan) {
	for i := range away {
		spans = append(spans, kv.TSSpan{After: cleared[away[i].ID], Through: away[i].LockBound})
	}
	for i := range left {
		spans = append(spans, kv.TSSpan{After: left[i].Oldest - 1, Through: left[i].Newest})
	}
	return spans
}

// clearedAfter returns the timestamp at or below which a shard has no lock after a round that it took part in.
func clearedAfter(safePoint, before tso.Timestamp, id string, left []kv.LeftLocks) tso.Timestamp {
	for i := range left {
		if left[i].Shard == id {
			safePoint = min(safePoint, left[i].Oldest-1)
		}
	}
	return max(safePoint, before)
}

// collectAll collects on the shards that take part, even if others fail, and stores up to which timestamp each is known
// to have no lock.
func (c *Controller) collectAll(ctx context.Context, r *round, left []kv.LeftLocks, protected []kv.TSSpan) error {
	errs := make([]error, len(r.present))
	var wg sync.WaitGroup
	for i, m := range r.present {
		req := &kv.CollectGarbageRequest{SafePoint: r.safePoint, From: r.safePoint, Protected: protected, Budget: collectBudget}
		if before, known := c.cleared[m.ID]; known && clearedAfter(r.safePoint, before, m.ID, left) == r.safePoint {
			req.From = before // locks that were left by rounds before may have become versions
		}
		wg.Go(func() { errs[i] = c.collect(ctx, m.Shard, req) })
	}
	wg.Wait()
	next := map[string]tso.Timestamp{}
	for i, m := range r.present {
		if errs[i] != nil {
			continue
		}
		if ts := clearedAfter(r.safePoint, c.cleared[m.ID], m.ID, left); ts != c.cleared[m.ID] {
			next[m.ID] = ts
		}
	}
	if len(next) > 0 {
		if err := c.opts.Settings.SaveCleared(next); err != nil {
			return errors.Join(append(errs, err)...)
		}
		maps.Copy(c.cleared, next)
	}
	return errors.Join(errs...)
}

// drop removes the keys of dropped tables and indexes. A span that is still in use, or of which a part lies on an
// unavailable shard, waits for a later round.
func (c *Controller) drop(ctx context.Context, r *round, drops []DroppedSpan, protected []kv.TSSpan) error {
	drops = slices.DeleteFunc(slices.Clone(drops), func(d DroppedSpan) bool {
		if d.Observer != 0 {
			return len(protected) > 0 // Locks are left that may yet become cells.
		}
		return slices.ContainsFunc(r.away, func(m Member) bool {
			return slices.ContainsFunc(m.Spans, func(s kv.Span) bool { return s.Overlaps(&d.Span) })
		})
	})
	if len(drops) == 0 {
		return nil
	}
	var gone []uint64
	// A removal that a power cut undoes must not be forgotten.
	err := durably(ctx, r.present, func() error {
		gone = gone[:0]
		for _, d := range drops {
			if d.Observer != 0 {
				if err := c.opts.Drops.RemoveCells(ctx, d.Observer); err != nil {
					return err
				}
				gone = append(gone, d.ID)
				continue
			}
			free, err := dropSpan(ctx, r.present, &kv.DropSpanRequest{Span: d.Span, SafePoint: r.safePoint, Protected: protected})
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

// dropSpan removes all parts of a span, and reports whether no shard keeps any.
func dropSpan(ctx context.Context, shards []Member, req *kv.DropSpanRequest) (bool, error) {
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

// durably runs do until its changes of the shards are durable on all of them. A shard that was restarted in between may
// have lost changes that it had acknowledged, so do is run again.
func durably(ctx context.Context, shards []Member, do func() error) error {
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

// syncLogs makes all applied writes durable and returns the run IDs of the shards that confirmed it.
func syncLogs(ctx context.Context, shards []Member) ([]uint64, error) {
	runs := make([]uint64, len(shards))
	g, ctx := errgroup.WithContext(ctx)
	for i, shard := range shards {
		g.Go(func() (err error) {
			runs[i], err = shard.Shard.SyncLog(ctx)
			return err
		})
	}
	return runs, g.Wait()
}

func (c *Controller) collect(ctx context.Context, shard kv.Collector, req *kv.CollectGarbageRequest) error {
	for {
		res, err := shard.CollectGarbage(ctx, req)
		c.metrics.versions.Add(float64(res.Versions))
		c.metrics.kept.Add(float64(res.Kept))
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
func onAll(ctx context.Context, shards []Member, f func(context.Context, kv.Collector) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, shard := range shards {
		g.Go(func() error { return f(ctx, shard.Shard) })
	}
	return g.Wait()
}
