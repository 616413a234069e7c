package kv

import (
	"context"

	"github.com/percodb/percodb/kv/mvcc"
)

// spanAdmission checks that the spans that a request reads are still owned by this shard.
type spanAdmission struct {
	s     *Store
	refs  []RangeRef
	spans []Span
}

// Admit checks that every span lies within ranges that refs currently name.
func (a *spanAdmission) Admit() error { return checkSpans(a.s.ranges.Load(), a.refs, a.spans) }

// AcquireLocks implements Shard.
func (s *Store) AcquireLocks(ctx context.Context, req *AcquireLocksRequest) (AcquireLocksResponse, error) {
	if !s.gate.enter() {
		return AcquireLocksResponse{}, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.lockRequests.Inc()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	res, err := s.mvcc.AcquireLocks(ctx, &adm, &mvcc.AcquireArgs{
		Keys: req.Keys, Primary: req.Primary, StartTS: req.StartTS, ReadTS: req.ReadTS, TTLMillis: req.TTLMillis,
		LeaseMillis: req.LeaseMillis,
		Wait:        req.Wait, SkipLocked: req.SkipLocked, Shared: req.Shared, Alive: req.Alive,
		Existence: req.Existence, TxnLocks: req.TxnLocks,
	})
	if err != nil {
		return AcquireLocksResponse{}, s.lockError(err)
	}
	return AcquireLocksResponse{LockedAt: res.LockedAt, Exists: res.Exists}, nil
}

// ReleaseLocks implements Shard.
func (s *Store) ReleaseLocks(_ context.Context, req *ReleaseLocksRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	return mapError(s.mvcc.ReleaseLocks(&adm, req.Keys, req.StartTS, req.ForUpdateTS))
}

// CheckSecondaryLocks implements Shard.
func (s *Store) CheckSecondaryLocks(ctx context.Context, req *CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	if !s.gate.enter() {
		return mvcc.SecondaryStatus{}, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.statusChecks.Inc()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	status, err := s.mvcc.CheckSecondaryLocks(ctx, &adm, &mvcc.SecondaryArgs{
		Keys: req.Keys, StartTS: req.StartTS, NowTS: req.NowTS, Owner: req.Owner,
	})
	return status, mapError(err)
}

// Refresh implements Shard.
func (s *Store) Refresh(ctx context.Context, req *RefreshRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	s.metrics.refreshes.Inc()
	// The timestamp is fenced before the ranges are checked: see I2.
	if err := s.mvcc.BeginRead(ctx, req.ToTS); err != nil {
		return err
	}
	adm := spanAdmission{s, req.Ranges, req.Spans}
	if err := adm.Admit(); err != nil {
		return err
	}
	return mapError(s.mvcc.Refresh(ctx, &mvcc.RefreshArgs{
		Spans: req.Spans, StartTS: req.StartTS, FromTS: req.FromTS, ToTS: req.ToTS, Bypass: req.Bypass,
	}))
}
