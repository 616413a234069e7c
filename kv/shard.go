package kv

import (
	"bytes"
	"context"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var _ Shard = (*Store)(nil)

// The methods below are the Shard: admission, then the verb of mvcc, then accounting.

// admission checks, under latches, that a write still belongs here.
type admission[K keyList] struct {
	s    *Store
	refs []RangeRef
	keys K
}

func (a *admission[K]) Admit() error { return checkKeys(a.s.ranges.Load(), a.refs, a.keys) }

// spanAdmission is admission for all keys in a span.
type spanAdmission struct {
	s    *Store
	refs []RangeRef
	span Span
}

// Admit implements mvcc.Admission.
func (a *spanAdmission) Admit() error { return checkSpans(a.s.ranges.Load(), a.refs, []Span{a.span}) }

// prewriteAdmission also checks the spans that a serializable transaction has read.
type prewriteAdmission struct {
	admission[mutationKeys]
	reads []Span
}

func (a *prewriteAdmission) AdmitReads() error {
	return checkSpans(a.s.ranges.Load(), a.refs, a.reads)
}

type plainKeys [][]byte

func (k plainKeys) len() int        { return len(k) }
func (k plainKeys) at(i int) []byte { return k[i] }

type mutationKeys []mvcc.Mutation

func (k mutationKeys) len() int        { return len(k) }
func (k mutationKeys) at(i int) []byte { return k[i].Key }

// Capabilities implements Shard.
func (s *Store) Capabilities() Capabilities {
	return Capabilities{ExactlyOnce: true, OnePhase: true, Async: true, ReadLatest: true, LockQueue: true, ReadFence: true,
		WaitForRelease: true, LargeCommit: true}
}

// Get implements Shard.
func (s *Store) Get(ctx context.Context, ref RangeRef, key []byte, opts ReadOptions) ([]byte, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.gets.Inc()
	// The timestamp is fenced before the range is checked: see I2.
	if err := s.mvcc.BeginRead(ctx, opts.ReadTS); err != nil {
		return nil, err
	}
	if _, err := s.ranges.Load().checkKey(ref, key); err != nil {
		return nil, err
	}
	value, err := s.mvcc.Get(ctx, key, &opts)
	return value, mapError(err)
}

// GetLatest implements Shard.
func (s *Store) GetLatest(ctx context.Context, ref RangeRef, key []byte, floor tso.Timestamp) (LatestValue, error) {
	if !s.gate.enter() {
		return LatestValue{}, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.gets.Inc()
	if err := s.mvcc.BeginRead(ctx, floor); err != nil {
		return LatestValue{}, err
	}
	if _, err := s.ranges.Load().checkKey(ref, key); err != nil {
		return LatestValue{}, err
	}
	latest, err := s.mvcc.GetLatest(ctx, key, floor)
	return latest, mapError(err)
}

// BatchGet implements Shard.
func (s *Store) BatchGet(ctx context.Context, req *BatchGetRequest) (*BatchGetResponse, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.batchGets.Inc()
	if req.ReadTS == tso.MaxTimestamp {
		return nil, &mvcc.InvalidRequestError{Detail: "batch read without a timestamp"}
	}
	if err := s.mvcc.BeginRead(ctx, req.ReadTS); err != nil {
		return nil, err
	}
	if err := checkKeys(s.ranges.Load(), req.Ranges, plainKeys(req.Keys)); err != nil {
		return nil, err
	}
	values, locked, err := s.mvcc.BatchGet(ctx, req.Keys, &req.ReadOptions)
	if err != nil {
		return nil, mapError(err)
	}
	return &BatchGetResponse{Values: values, Locked: locked}, nil
}

// Scan implements Shard.
func (s *Store) Scan(ctx context.Context, req *ScanRequest) (*ScanResponse, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.scans.Inc()
	if err := s.mvcc.BeginRead(ctx, req.ReadTS); err != nil {
		return nil, err
	}
	if err := checkSpans(s.ranges.Load(), req.Ranges, req.Spans); err != nil {
		return nil, err
	}
	bounded := *req
	bounded.Limit = min(req.Limit, s.opts.PageLimits.Rows)
	if bounded.MaxBytes <= 0 {
		bounded.MaxBytes = s.opts.PageLimits.Bytes
	}
	page, err := s.mvcc.Scan(ctx, &bounded)
	if err != nil {
		return nil, mapError(err)
	}
	s.metrics.scannedRows.Add(float64(len(page.Rows) + page.Count))
	return page, nil
}

// Prewrite implements Shard.
func (s *Store) Prewrite(ctx context.Context, req *PrewriteRequest) (PrewriteResponse, error) {
	if !s.gate.enter() {
		return PrewriteResponse{}, ErrClosed
	}
	defer s.gate.leave()
	start := time.Now()
	keys := mutationKeys(req.Mutations)
	if err := checkKeys(s.ranges.Load(), req.Ranges, keys); err != nil {
		return PrewriteResponse{}, err
	}
	if s.engine.AdmitWrite(mutationBytes(req.Mutations)) != nil {
		s.metrics.prewriteFailed.Inc()
		return PrewriteResponse{}, &DiskFullError{Shard: s.shardID}
	}
	adm := prewriteAdmission{admission[mutationKeys]{s, req.Ranges, keys}, req.Reads}
	res, err := s.mvcc.Prewrite(ctx, &adm, req)
	observeSince(s.metrics.prewriteSeconds, start)
	if err != nil {
		s.metrics.prewriteFailed.Inc()
		return PrewriteResponse{}, s.lockError(err)
	}
	if res.OnePCCommitTS != 0 {
		s.metrics.onePC.Inc()
	}
	s.grown(keys, res.WrittenBytes)
	return res.PrewriteResponse, nil
}

// CommitLarge implements Shard.
func (s *Store) CommitLarge(ctx context.Context, req *CommitLargeRequest) (CommitLargeResponse, error) {
	if !s.gate.enter() {
		return CommitLargeResponse{}, ErrClosed
	}
	defer s.gate.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)() // The gate waits for it.
	start := time.Now()
	res, err := s.mvcc.CommitLarge(ctx, func(ms []mvcc.Mutation, between bool) mvcc.Admission {
		if between {
			return &spanAdmission{s, req.Ranges, Span{Start: ms[0].Key, End: append(bytes.Clone(ms[len(ms)-1].Key), 0)}}
		}
		return &admission[mutationKeys]{s, req.Ranges, mutationKeys(ms)}
	}, req)
	observeSince(s.metrics.prewriteSeconds, start)
	if err != nil {
		s.metrics.prewriteFailed.Inc()
		return CommitLargeResponse{}, s.lockError(err)
	}
	if res.CommitTS != 0 {
		s.metrics.onePC.Inc()
		spans := req.Set.Spans()
		for i := range spans { // of about equal size each
			s.grown(plainKeys{spans[i].Start}, res.WrittenBytes/len(spans))
		}
	}
	return res.CommitLargeResponse, nil
}

// mutationBytes is about how much a prewrite writes.
func mutationBytes(mutations []mvcc.Mutation) (n int) {
	for i := range mutations {
		n += len(mutations[i].Key) + len(mutations[i].Value)
	}
	return n
}

// Commit implements Shard.
func (s *Store) Commit(ctx context.Context, req *CommitRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	start := time.Now()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	if err := adm.Admit(); err != nil {
		return err
	}
	n, err := s.mvcc.Commit(ctx, &adm, req.Keys, req.StartTS, req.CommitTS, req.Primary)
	observeSince(s.metrics.commitSeconds, start)
	if err != nil {
		return mapError(err)
	}
	s.grown(adm.keys, n)
	return nil
}

// Rollback implements Shard.
func (s *Store) Rollback(ctx context.Context, req *RollbackRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	s.metrics.rollbacks.Inc()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	if err := adm.Admit(); err != nil {
		return err
	}
	return mapError(s.mvcc.Rollback(ctx, &adm, req.Keys, req.StartTS))
}

// CheckTxnStatus implements Shard.
func (s *Store) CheckTxnStatus(ctx context.Context, req *CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	if !s.gate.enter() {
		return mvcc.TxnStatus{}, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.statusChecks.Inc()
	adm := admission[plainKeys]{s, []RangeRef{req.Range}, plainKeys{req.Primary}}
	if err := adm.Admit(); err != nil {
		return mvcc.TxnStatus{}, err
	}
	status, err := s.mvcc.CheckTxnStatus(ctx, &adm, req)
	return status, mapError(err)
}

// ResolveLock implements Shard.
func (s *Store) ResolveLock(ctx context.Context, req *ResolveLockRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	adm := admission[plainKeys]{s, req.Ranges, req.Keys}
	if err := adm.Admit(); err != nil {
		return err
	}
	n, err := s.mvcc.ResolveLock(ctx, &adm, req.Keys, req.StartTS, req.CommitTS)
	if err != nil {
		return mapError(err)
	}
	s.metrics.resolved(req.CommitTS != 0, len(req.Keys))
	s.grown(adm.keys, n)
	return nil
}

// Heartbeat implements Shard.
func (s *Store) Heartbeat(ctx context.Context, req *HeartbeatRequest) (uint64, error) {
	if !s.gate.enter() {
		return 0, ErrClosed
	}
	defer s.gate.leave()
	s.metrics.heartbeats.Inc()
	adm := admission[plainKeys]{s, []RangeRef{req.Range}, plainKeys{req.Primary}}
	if err := adm.Admit(); err != nil {
		return 0, err
	}
	ttlMillis, err := s.mvcc.Heartbeat(ctx, &adm, req.Primary, req.StartTS, req.TTLMillis, req.LeaseMillis)
	return ttlMillis, mapError(err)
}

// ScanLock implements Shard.
func (s *Store) ScanLock(ctx context.Context, req *ScanLockRequest) ([]mvcc.LockInfo, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	if err := checkSpans(s.ranges.Load(), []RangeRef{req.Range}, []Span{req.Span}); err != nil {
		return nil, err
	}
	return s.mvcc.ScanLock(ctx, req.Span.Start, req.Span.End, req.MaxTS, req.Process, req.Limit)
}

// WaitForRelease implements Shard.
func (s *Store) WaitForRelease(ctx context.Context, key []byte, startTS tso.Timestamp) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	err := s.mvcc.WaitForRelease(waiting, key, startTS)
	if err != nil && s.stopped.Err() != nil && ctx.Err() == nil {
		return ErrClosed
	}
	return mapError(err)
}
