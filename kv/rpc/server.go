package rpc

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

// shardServer answers for a shard.
type shardServer struct {
	kvpb.UnimplementedShardServer
	shard kv.Shard
}

// RegisterShard has r serve a shard, which stays the caller's.
func RegisterShard(r grpc.ServiceRegistrar, shard kv.Shard) {
	kvpb.RegisterShardServer(r, &shardServer{shard: shard})
	registerCollector(r, shard)
	registerNotifier(r, shard)
}

func empty(e *kvpb.Error) *kvpb.EmptyResponse { return &kvpb.EmptyResponse{Error: e} }

// Get implements the service.
func (s *shardServer) Get(ctx context.Context, req *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	var got kv.LatestValue
	var err error
	if opts := decodeOptions(req.Options); opts.ReadTS == tso.MaxTimestamp {
		got, err = s.shard.GetLatest(ctx, decodeRef(req.Range), req.Key, opts.FloorTS)
	} else {
		got.Value, err = s.shard.Get(ctx, decodeRef(req.Range), req.Key, opts)
	}
	return serve(ctx, err, &kvpb.GetResponse{Value: got.Value, CommitTs: uint64(got.CommitTS)},
		func(e *kvpb.Error) *kvpb.GetResponse { return &kvpb.GetResponse{Error: e} })
}

// BatchGet implements the service.
func (s *shardServer) BatchGet(ctx context.Context, req *kvpb.BatchGetRequest) (*kvpb.BatchGetResponse, error) {
	out := &kvpb.BatchGetResponse{}
	res, err := s.shard.BatchGet(ctx, &kv.BatchGetRequest{
		Ranges: decodeRefs(req.Ranges), Keys: req.Keys, ReadOptions: decodeOptions(req.Options)})
	if err == nil {
		out.Values, out.Locked = res.Values, encodeLocks(res.Locked)
		for i, v := range res.Values {
			if v == nil {
				out.Absent = append(out.Absent, uint32(i))
			}
		}
	}
	return serve(ctx, err, out, func(e *kvpb.Error) *kvpb.BatchGetResponse { return &kvpb.BatchGetResponse{Error: e} })
}

// Scan implements the service.
func (s *shardServer) Scan(ctx context.Context, req *kvpb.ScanRequest) (*kvpb.ScanResponse, error) {
	out := &kvpb.ScanResponse{}
	res, err := s.shard.Scan(ctx, &kv.ScanRequest{
		Ranges: decodeRefs(req.Ranges), Spans: decodeSpans(req.Spans), Reverse: req.Reverse, Limit: int(req.Limit),
		MaxBytes: int(req.MaxBytes), KeysOnly: req.KeysOnly, ReadOptions: decodeOptions(req.Options)})
	if err == nil {
		out.Data, out.Lengths = encodeRows(res.Rows)
		out.Locked, out.ResumeKey, out.Deleted = encodeLocks(res.Locked), res.ResumeKey, res.Deleted
	}
	return serve(ctx, err, out, func(e *kvpb.Error) *kvpb.ScanResponse { return &kvpb.ScanResponse{Error: e} })
}

// Prewrite implements the service.
func (s *shardServer) Prewrite(ctx context.Context, req *kvpb.PrewriteRequest) (*kvpb.PrewriteResponse, error) {
	res, err := s.shard.Prewrite(ctx, &kv.PrewriteRequest{
		Ranges: decodeRefs(req.Ranges), Mutations: decodeMutations(req.Mutations), Notify: decodeNotifySets(req.Notify), Primary: req.Primary,
		StartTS: tso.Timestamp(req.StartTs), TTLMillis: req.TtlMillis, LeaseMillis: req.LeaseMillis, Process: req.Process, TxnSize: req.TxnSize,
		TryOnePC: req.TryOnePc, MaxCommitTS: tso.Timestamp(req.MaxCommitTs), ReadTS: tso.Timestamp(req.ReadTs), Async: req.Async,
		Secondaries: req.Secondaries, FloorTS: tso.Timestamp(req.FloorTs), Reads: decodeSpans(req.Reads)})
	return serve(ctx, err,
		&kvpb.PrewriteResponse{OnePcCommitTs: uint64(res.OnePCCommitTS), MinCommitTs: uint64(res.MinCommitTS), Async: res.Async},
		func(e *kvpb.Error) *kvpb.PrewriteResponse { return &kvpb.PrewriteResponse{Error: e} })
}

// Commit implements the service.
func (s *shardServer) Commit(ctx context.Context, req *kvpb.CommitRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.Commit(ctx, &kv.CommitRequest{Ranges: decodeRefs(req.Ranges), Keys: req.Keys,
		StartTS: tso.Timestamp(req.StartTs), CommitTS: tso.Timestamp(req.CommitTs), Primary: req.Primary})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// Rollback implements the service.
func (s *shardServer) Rollback(ctx context.Context, req *kvpb.RollbackRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.Rollback(ctx, &kv.RollbackRequest{
		Ranges: decodeRefs(req.Ranges), Keys: req.Keys, StartTS: tso.Timestamp(req.StartTs)})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// CheckTxnStatus implements the service.
func (s *shardServer) CheckTxnStatus(ctx context.Context, req *kvpb.CheckTxnStatusRequest) (*kvpb.CheckTxnStatusResponse, error) {
	st, err := s.shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{
		Range: decodeRef(req.Range), Primary: req.Primary, StartTS: tso.Timestamp(req.StartTs),
		CallerTS: tso.Timestamp(req.CallerTs), NowTS: tso.Timestamp(req.NowTs), RollbackIfMissing: req.RollbackIfMissing,
		ResolvingPessimistic: req.ResolvingPessimistic, ProcessEnded: req.ProcessEnded, ForceSync: req.ForceSync})
	out := &kvpb.CheckTxnStatusResponse{CommitTs: uint64(st.CommitTS), RolledBack: st.RolledBack, Undecided: st.Undecided}
	if st.Lock != nil {
		out.Lock = encodeLock(st.Lock)
	}
	return serve(ctx, err, out,
		func(e *kvpb.Error) *kvpb.CheckTxnStatusResponse { return &kvpb.CheckTxnStatusResponse{Error: e} })
}

// ResolveLock implements the service.
func (s *shardServer) ResolveLock(ctx context.Context, req *kvpb.ResolveLockRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.ResolveLock(ctx, &kv.ResolveLockRequest{Ranges: decodeRefs(req.Ranges), Keys: req.Keys,
		StartTS: tso.Timestamp(req.StartTs), CommitTS: tso.Timestamp(req.CommitTs)})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// Heartbeat implements the service.
func (s *shardServer) Heartbeat(ctx context.Context, req *kvpb.HeartbeatRequest) (*kvpb.HeartbeatResponse, error) {
	ttl, err := s.shard.Heartbeat(ctx, &kv.HeartbeatRequest{Range: decodeRef(req.Range), Primary: req.Primary,
		StartTS: tso.Timestamp(req.StartTs), TTLMillis: req.TtlMillis, LeaseMillis: req.LeaseMillis})
	return serve(ctx, err, &kvpb.HeartbeatResponse{TtlMillis: ttl},
		func(e *kvpb.Error) *kvpb.HeartbeatResponse { return &kvpb.HeartbeatResponse{Error: e} })
}

// ScanLock implements the service.
func (s *shardServer) ScanLock(ctx context.Context, req *kvpb.ScanLockRequest) (*kvpb.ScanLockResponse, error) {
	locks, err := s.shard.ScanLock(ctx, &kv.ScanLockRequest{Range: decodeRef(req.Range), Span: decodeSpan(req.Span),
		MaxTS: tso.Timestamp(req.MaxTs), Process: req.Process, Limit: int(req.Limit)})
	return serve(ctx, err, &kvpb.ScanLockResponse{Locks: encodeLockInfos(locks)},
		func(e *kvpb.Error) *kvpb.ScanLockResponse { return &kvpb.ScanLockResponse{Error: e} })
}

// AcquireLocks implements the service.
func (s *shardServer) AcquireLocks(ctx context.Context, req *kvpb.AcquireLocksRequest) (*kvpb.AcquireLocksResponse, error) {
	res, err := s.shard.AcquireLocks(ctx, &kv.AcquireLocksRequest{Ranges: decodeRefs(req.Ranges), Keys: req.Keys, Primary: req.Primary,
		StartTS: tso.Timestamp(req.StartTs), ReadTS: tso.Timestamp(req.ReadTs), TTLMillis: req.TtlMillis, LeaseMillis: req.LeaseMillis,
		Wait: time.Duration(min(req.WaitNanos, math.MaxInt64)), SkipLocked: req.SkipLocked, Shared: req.Shared, Alive: tso.Timestamp(req.Alive), Existence: req.Existence,
		TxnLocks: req.TxnLocks, Process: req.Process})
	return serve(ctx, err, &kvpb.AcquireLocksResponse{LockedAt: encodeTimestamps(res.LockedAt), Exists: res.Exists},
		func(e *kvpb.Error) *kvpb.AcquireLocksResponse { return &kvpb.AcquireLocksResponse{Error: e} })
}

// ReleaseLocks implements the service.
func (s *shardServer) ReleaseLocks(ctx context.Context, req *kvpb.ReleaseLocksRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.ReleaseLocks(ctx, &kv.ReleaseLocksRequest{Ranges: decodeRefs(req.Ranges), Keys: req.Keys,
		StartTS: tso.Timestamp(req.StartTs), ForUpdateTS: tso.Timestamp(req.ForUpdateTs)})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// CheckSecondaryLocks implements the service.
func (s *shardServer) CheckSecondaryLocks(ctx context.Context, req *kvpb.CheckSecondaryLocksRequest) (*kvpb.CheckSecondaryLocksResponse, error) {
	st, err := s.shard.CheckSecondaryLocks(ctx, &kv.CheckSecondaryLocksRequest{Ranges: decodeRefs(req.Ranges), Keys: req.Keys,
		StartTS: tso.Timestamp(req.StartTs), NowTS: tso.Timestamp(req.NowTs), Owner: req.Owner, ProcessEnded: req.ProcessEnded})
	return serve(ctx, err, &kvpb.CheckSecondaryLocksResponse{
		CommitTs: uint64(st.CommitTS), RolledBack: st.RolledBack, Locks: encodeLocks(st.Locks)},
		func(e *kvpb.Error) *kvpb.CheckSecondaryLocksResponse {
			return &kvpb.CheckSecondaryLocksResponse{Error: e}
		})
}

// Refresh implements the service.
func (s *shardServer) Refresh(ctx context.Context, req *kvpb.RefreshRequest) (*kvpb.EmptyResponse, error) {
	err := s.shard.Refresh(ctx, &kv.RefreshRequest{Ranges: decodeRefs(req.Ranges), Spans: decodeSpans(req.Spans),
		StartTS: tso.Timestamp(req.StartTs), FromTS: tso.Timestamp(req.FromTs), ToTS: tso.Timestamp(req.ToTs),
		Bypass: decodeTimestamps(req.Bypass)})
	return serve(ctx, err, &kvpb.EmptyResponse{}, empty)
}

// Status implements the service.
func (s *shardServer) Status(ctx context.Context, _ *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	status, err := s.shard.Status(ctx)
	return serve(ctx, err, encodeStatus(&status), func(e *kvpb.Error) *kvpb.StatusResponse { return &kvpb.StatusResponse{Error: e} })
}
