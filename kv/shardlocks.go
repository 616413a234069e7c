package kv

import (
	"context"

	"github.com/percodb/percodb/kv/mvcc"
)

// AcquireLocks implements Shard.
func (s *Store) AcquireLocks(ctx context.Context, req *AcquireLocksRequest) (AcquireLocksResponse, error) {
	if !s.gate.enter() {
		return AcquireLocksResponse{}, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.lockRequests.Inc()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	res, err := s.mvcc.AcquireLocks(ctx, &adm, req)
	if err != nil {
		return AcquireLocksResponse{}, s.lockError(err)
	}
	return res, nil
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
	status, err := s.mvcc.CheckSecondaryLocks(ctx, &adm, req)
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
	if err := checkSpans(s.ranges.Load(), req.Ranges, req.Spans); err != nil {
		return err
	}
	return mapError(s.mvcc.Refresh(ctx, req))
}
