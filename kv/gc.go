package kv

import (
	"context"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Collector is the part of a Shard for garbage collection. Its requests concern the whole shard, whatever ranges it
// owns, and may be repeated. Package gc describes the order in which a controller sends them, each to every shard before
// the next to any.
type Collector interface {
	// SetSafePoint raises the fence to ts: from then on reads, locks and prewrites at or below it fail with
	// *mvcc.TooOldError. The fence is durable and never decreases; the one in force is returned. ts must have been
	// issued; 0 only queries it.
	SetSafePoint(ctx context.Context, ts tso.Timestamp) (inForce tso.Timestamp, err error)
	// SyncLog returns when everything that the shard had applied before the call, since it was started, is durable, with
	// a number that identifies this run. Changes that an earlier run had applied may be lost.
	SyncLog(ctx context.Context) (run uint64, err error)
	// CollectGarbage removes versions and records that only snapshots at or below the safe point
	// could need. The caller vouches that every transaction begun at or below it, but those protected, is
	// finished on every shard, durably.
	CollectGarbage(ctx context.Context, req *CollectGarbageRequest) (CollectGarbageResponse, error)
	// DropSpan removes all keys of a span at once, whatever their versions, with their notify cells. The caller guarantees that no snapshot above
	// SafePoint can read them and that they are not written. It is refused with dropped false while the span contains
	// locks, or versions above the safe point. Nothing is removed if the shard owns no part of the span.
	DropSpan(ctx context.Context, req *DropSpanRequest) (dropped bool, err error)
}

// CollectGarbageRequest requests a part of a collection, or more of one under way.
type CollectGarbageRequest = mvcc.CollectGarbageRequest

// TSSpan holds the timestamps above After, up to Through.
type TSSpan = mvcc.TSSpan

// LeftLocks are the locks on a shard whose outcome only an unreachable shard knows: their number, and the oldest and the
// newest start_ts of their transactions.
type LeftLocks struct {
	Shard          string
	Locks          int
	Oldest, Newest tso.Timestamp
}

// CollectGarbageResponse: Done means that all keys have been visited at SafePoint or above; otherwise repeat the
// request. The counts are those of this request.
type CollectGarbageResponse struct {
	Done                     bool
	Keys, Versions, Statuses int
	Kept                     int // records that stay for shards that are away
}

// DropSpanRequest names a span that may lie in many ranges of many shards. Protected is CollectGarbageRequest's.
type DropSpanRequest struct {
	Span      Span
	SafePoint tso.Timestamp
	Protected []TSSpan
}

// SetSafePoint implements Collector.
func (s *Store) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	if !s.gate.enter() {
		return 0, ErrClosed
	}
	defer s.gate.leave()
	inForce, err := s.mvcc.SetSafePoint(ctx, ts)
	return inForce, mapError(err)
}

// SyncLog implements Collector.
func (s *Store) SyncLog(ctx context.Context) (run uint64, err error) {
	if !s.gate.enter() {
		return 0, ErrClosed
	}
	defer s.gate.leave()
	return s.run, mapError(s.mvcc.SyncLog(ctx))
}

// CollectGarbage implements Collector.
func (s *Store) CollectGarbage(ctx context.Context, req *CollectGarbageRequest) (CollectGarbageResponse, error) {
	if !s.gate.enter() {
		return CollectGarbageResponse{}, ErrClosed
	}
	defer s.gate.leave()
	budget := req.Budget
	if budget <= 0 {
		budget = time.Second
	}
	bounded, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	var res CollectGarbageResponse
	p := pacer{s: s, ctx: bounded}
	p.begin()
	for {
		st, done, err := s.mvcc.Collect(bounded, req, p.pause)
		res.Keys, res.Versions, res.Statuses = res.Keys+st.Keys, res.Versions+st.Versions, res.Statuses+st.Statuses
		res.Kept += st.Kept
		s.metrics.collected(&st)
		s.removed.Add(int64(st.Versions))
		switch {
		case err == nil && done:
			res.Done = true
			return res, s.settleRemovals()
		case err == nil:
		case s.stopped.Err() != nil:
			return res, ErrClosed
		case ctx.Err() != nil:
			return res, ctx.Err()
		case bounded.Err() != nil:
			return res, nil // the budget is spent
		default:
			return res, mapError(err)
		}
	}
}

// flushRemovals is the number of removals that are worth a separate file.
const flushRemovals = 10_000

// settleRemovals flushes the removals of a pass to a file if they are many. Removals in memory slow down every read of
// their keys, and keep compactions from dropping the removed versions: a table that was changed 100 times is read at
// half the speed until then.
func (s *Store) settleRemovals() error {
	if n := s.removed.Load(); n < flushRemovals || !s.removed.CompareAndSwap(n, 0) {
		return nil
	}
	return mapError(s.engine.Flush())
}

// DropSpan implements Collector.
func (s *Store) DropSpan(_ context.Context, req *DropSpanRequest) (bool, error) {
	if !s.gate.enter() {
		return false, ErrClosed
	}
	defer s.gate.leave()
	for _, r := range s.ranges.Load().sorted {
		if !r.desc.Span.Overlaps(&req.Span) {
			continue
		}
		part := intersect(r.desc.Span, req.Span)
		dropped, err := s.mvcc.DropSpan(part.Start, part.End, req.SafePoint, req.Protected)
		if err != nil || !dropped {
			return false, mapError(err)
		}
	}
	return true, nil
}

func intersect(a, b Span) Span {
	if string(b.Start) > string(a.Start) {
		a.Start = b.Start
	}
	if compareEnds(b.End, a.End) < 0 {
		a.End = b.End
	}
	return a
}

// pacer keeps garbage collection from slowing the rest. While others are at work here, collection
// works for one part in gcShare of the time; otherwise for about half of it.
type pacer struct {
	s       *Store
	ctx     context.Context
	since   time.Time // the present stretch of work began
	applied uint64    // batches, by whomever, at that time
	own     uint64    // and by this collection
	busy    int       // remaining checks in which others count as active
}

const (
	gcShare = 16
	// gcBusyLooks is the number of idle checks after which others count as inactive.
	gcBusyLooks = 32
	gcMinPause  = time.Millisecond
)

func (p *pacer) begin() {
	p.since = time.Now()
	p.applied = p.s.engine.Applied()
	p.own = 0
}

// pause is called after each stretch of work. It returns the context's error.
func (p *pacer) pause() error {
	worked := time.Since(p.since)
	p.own++
	if p.others() {
		p.busy = gcBusyLooks
	}
	rest := worked
	if p.busy > 0 {
		p.busy--
		rest = max(gcMinPause, (gcShare-1)*worked)
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	// Activity during the pause counts like activity before it.
	if p.others() {
		p.busy = gcBusyLooks
	}
	p.begin()
	return nil
}

// others reports whether other requests are, or were, active on the store.
func (p *pacer) others() bool {
	return p.s.gate.n.Load() > 1 || p.s.engine.Applied()-p.applied > p.own
}
