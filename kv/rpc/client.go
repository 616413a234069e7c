package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/rpc/kvpb"
	"github.com/percodb/percodb/tso"
)

// ClientOptions: the zero value means the defaults named here.
type ClientOptions struct {
	// Timeout is how long a request may take before it fails with *kv.UnavailableError: 20 s. The caller's deadline may
	// be earlier.
	Timeout time.Duration
}

func (o ClientOptions) ensureDefaults() ClientOptions {
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	return o
}

// Shard is a kv.Shard on the other end of a connection. Safe for concurrent use.
type Shard struct {
	client    kvpb.ShardClient
	collector kvpb.CollectorClient
	notifier  kvpb.NotifierClient
	name      string
	opts      ClientOptions

	statuses    batcher[*kvpb.CheckTxnStatusRequest, *kvpb.CheckTxnStatusResponse]
	secondaries batcher[*kvpb.CheckSecondaryLocksRequest, *kvpb.CheckSecondaryLocksResponse]
}

var _ kv.Shard = (*Shard)(nil)

// NewShard returns a client over conn, which stays the caller's. name is the shard's, for errors.
func NewShard(conn grpc.ClientConnInterface, name string, opts ClientOptions) *Shard {
	s := &Shard{client: kvpb.NewShardClient(conn), collector: kvpb.NewCollectorClient(conn), notifier: kvpb.NewNotifierClient(conn),
		name: name, opts: opts.ensureDefaults()}
	s.initBatchers()
	return s
}

// Capabilities implements kv.Shard. The server is a store of this version.
func (s *Shard) Capabilities() kv.Capabilities {
	return kv.Capabilities{OnePhase: true, Async: true, ReadLatest: true, LockQueue: true, ReadFence: true}
}

// answer is implemented by every response.
type answer interface{ GetError() *kvpb.Error }

// call sends a request under the timeout, and returns its answer or whatever error there was.
func call[Req any, Res answer](ctx context.Context, name string, opts ClientOptions,
	send func(context.Context, Req, ...grpc.CallOption) (Res, error), req Req) (Res, error) {
	bounded, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	res, err := send(bounded, req)
	if err != nil {
		return res, transportError(ctx, bounded, name, err)
	}
	err = decodeError(res.GetError())
	if errors.Is(err, kv.ErrClosed) {
		// The other process stops: it may be restarted, and other shards are unaffected.
		err = &kv.UnavailableError{Shard: name, Err: err}
	}
	return res, err
}

// Get implements kv.Shard.
func (s *Shard) Get(ctx context.Context, r kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	if opts.ReadTS == tso.MaxTimestamp { // GetLatest's message
		return nil, &mvcc.InvalidRequestError{Detail: "read without a timestamp"}
	}
	res, err := call(ctx, s.name, s.opts, s.client.Get,
		&kvpb.GetRequest{Range: encodeRef(r), Key: key, Options: encodeOptions(opts)})
	if err != nil {
		return nil, err
	}
	return res.Value, nil
}

// GetLatest implements kv.Shard.
func (s *Shard) GetLatest(ctx context.Context, r kv.RangeRef, key []byte, floor tso.Timestamp) (kv.LatestValue, error) {
	res, err := call(ctx, s.name, s.opts, s.client.Get,
		&kvpb.GetRequest{Range: encodeRef(r), Key: key, Options: encodeOptions(kv.ReadOptions{ReadTS: tso.MaxTimestamp, FloorTS: floor})})
	if err != nil {
		return kv.LatestValue{}, err
	}
	return kv.LatestValue{Value: res.Value, CommitTS: tso.Timestamp(res.CommitTs)}, nil
}

// BatchGet implements kv.Shard.
func (s *Shard) BatchGet(ctx context.Context, req *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	res, err := call(ctx, s.name, s.opts, s.client.BatchGet,
		&kvpb.BatchGetRequest{Ranges: encodeRefs(req.Ranges), Keys: req.Keys, Options: encodeOptions(req.ReadOptions)})
	if err != nil {
		return nil, err
	}
	if len(res.Values) != len(req.Keys) {
		return nil, s.malformedResponse("%d values for %d keys", len(res.Values), len(req.Keys))
	}
	for i, v := range res.Values {
		if v == nil {
			res.Values[i] = []byte{}
		}
	}
	for _, i := range res.Absent {
		if int(i) >= len(res.Values) {
			return nil, s.malformedResponse("no key %d", i)
		}
		res.Values[i] = nil
	}
	return &kv.BatchGetResponse{Values: res.Values, Locked: decodeLocks(res.Locked)}, nil
}

// Scan implements kv.Shard.
func (s *Shard) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	res, err := call(ctx, s.name, s.opts, s.client.Scan, &kvpb.ScanRequest{
		Ranges: encodeRefs(req.Ranges), Spans: encodeSpans(req.Spans), Reverse: req.Reverse, Limit: uint64(req.Limit),
		MaxBytes: uint64(req.MaxBytes), KeysOnly: req.KeysOnly, Options: encodeOptions(req.ReadOptions)})
	if err != nil {
		return nil, err
	}
	rows, ok := decodeRows(res.Data, res.Lengths)
	if !ok {
		return nil, s.malformedResponse("rows do not fit their page")
	}
	return &kv.ScanResponse{Rows: rows, Locked: decodeLocks(res.Locked), ResumeKey: res.ResumeKey, Deleted: res.Deleted}, nil
}

// CommitLarge implements kv.Shard. A write set of that size is sent in the prewrites of two phases.
func (s *Shard) CommitLarge(context.Context, *kv.CommitLargeRequest) (kv.CommitLargeResponse, error) {
	return kv.CommitLargeResponse{}, kv.ErrUnsupported
}

// WaitForRelease implements kv.Shard. A wait would occupy a stream for each lock met.
func (s *Shard) WaitForRelease(context.Context, []byte, tso.Timestamp) error {
	return kv.ErrUnsupported
}

// Prewrite implements kv.Shard.
func (s *Shard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	res, err := call(ctx, s.name, s.opts, s.client.Prewrite, &kvpb.PrewriteRequest{
		Ranges: encodeRefs(req.Ranges), Mutations: encodeMutations(req.Mutations), Notify: encodeNotifySets(req.Notify), Primary: req.Primary,
		StartTs: uint64(req.StartTS), TtlMillis: req.TTLMillis, LeaseMillis: req.LeaseMillis, Process: req.Process, TxnSize: req.TxnSize,
		TryOnePc: req.TryOnePC, MaxCommitTs: uint64(req.MaxCommitTS), ReadTs: uint64(req.ReadTS), Async: req.Async,
		Secondaries: req.Secondaries, FloorTs: uint64(req.FloorTS), Reads: encodeSpans(req.Reads)})
	if err != nil {
		return kv.PrewriteResponse{}, err
	}
	return kv.PrewriteResponse{OnePCCommitTS: tso.Timestamp(res.OnePcCommitTs), MinCommitTS: tso.Timestamp(res.MinCommitTs), Async: res.Async}, nil
}

// Commit implements kv.Shard.
func (s *Shard) Commit(ctx context.Context, req *kv.CommitRequest) error {
	_, err := call(ctx, s.name, s.opts, s.client.Commit, &kvpb.CommitRequest{Ranges: encodeRefs(req.Ranges),
		Keys: req.Keys, StartTs: uint64(req.StartTS), CommitTs: uint64(req.CommitTS), Primary: req.Primary})
	return err
}

// Rollback implements kv.Shard.
func (s *Shard) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	_, err := call(ctx, s.name, s.opts, s.client.Rollback,
		&kvpb.RollbackRequest{Ranges: encodeRefs(req.Ranges), Keys: req.Keys, StartTs: uint64(req.StartTS)})
	return err
}

// CheckTxnStatus implements kv.Shard.
func (s *Shard) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	res, err := s.statuses.ask(ctx, &kvpb.CheckTxnStatusRequest{
		Range: encodeRef(req.Range), Primary: req.Primary, StartTs: uint64(req.StartTS),
		CallerTs: uint64(req.CallerTS), NowTs: uint64(req.NowTS), RollbackIfMissing: req.RollbackIfMissing,
		ResolvingPessimistic: req.ResolvingPessimistic, ProcessEnded: req.ProcessEnded, ForceSync: req.ForceSync})
	if err != nil {
		return mvcc.TxnStatus{}, err
	}
	st := mvcc.TxnStatus{CommitTS: tso.Timestamp(res.CommitTs), RolledBack: res.RolledBack, Undecided: res.Undecided}
	if res.Lock != nil {
		lock := decodeLock(res.Lock)
		st.Lock = &lock
	}
	return st, nil
}

// ResolveLock implements kv.Shard.
func (s *Shard) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	_, err := call(ctx, s.name, s.opts, s.client.ResolveLock, &kvpb.ResolveLockRequest{Ranges: encodeRefs(req.Ranges),
		Keys: req.Keys, StartTs: uint64(req.StartTS), CommitTs: uint64(req.CommitTS)})
	return err
}

// Heartbeat implements kv.Shard.
func (s *Shard) Heartbeat(ctx context.Context, req *kv.HeartbeatRequest) (uint64, error) {
	res, err := call(ctx, s.name, s.opts, s.client.Heartbeat, &kvpb.HeartbeatRequest{Range: encodeRef(req.Range),
		Primary: req.Primary, StartTs: uint64(req.StartTS), TtlMillis: req.TTLMillis, LeaseMillis: req.LeaseMillis})
	if err != nil {
		return 0, err
	}
	return res.TtlMillis, nil
}

// ScanLock implements kv.Shard.
func (s *Shard) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	res, err := call(ctx, s.name, s.opts, s.client.ScanLock, &kvpb.ScanLockRequest{Range: encodeRef(req.Range),
		Span: encodeSpan(req.Span), MaxTs: uint64(req.MaxTS), Process: req.Process, Limit: uint64(req.Limit)})
	if err != nil {
		return nil, err
	}
	return decodeLockInfos(res.Locks), nil
}

// AcquireLocks implements kv.Shard. One request waits for a part of its timeout at most; the caller then repeats it, as
// it does if a holder may be dead.
func (s *Shard) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	res, err := call(ctx, s.name, s.opts, s.client.AcquireLocks, &kvpb.AcquireLocksRequest{Ranges: encodeRefs(req.Ranges),
		Keys: req.Keys, Primary: req.Primary, StartTs: uint64(req.StartTS), ReadTs: uint64(req.ReadTS), TtlMillis: req.TTLMillis, LeaseMillis: req.LeaseMillis,
		WaitNanos: uint64(max(0, min(req.Wait, s.opts.Timeout/2))), SkipLocked: req.SkipLocked, Shared: req.Shared, Alive: uint64(req.Alive),
		Existence: req.Existence, TxnLocks: req.TxnLocks, Process: req.Process})
	if err != nil {
		return kv.AcquireLocksResponse{}, err
	}
	if len(res.LockedAt) != len(req.Keys) {
		return kv.AcquireLocksResponse{}, s.malformedResponse("%d locks for %d keys", len(res.LockedAt), len(req.Keys))
	}
	if n := len(res.Exists); n != 0 && n != len(req.Keys) {
		return kv.AcquireLocksResponse{}, s.malformedResponse("existence of %d of %d keys", n, len(req.Keys))
	}
	return kv.AcquireLocksResponse{LockedAt: decodeTimestamps(res.LockedAt), Exists: res.Exists}, nil
}

// ReleaseLocks implements kv.Shard.
func (s *Shard) ReleaseLocks(ctx context.Context, req *kv.ReleaseLocksRequest) error {
	_, err := call(ctx, s.name, s.opts, s.client.ReleaseLocks, &kvpb.ReleaseLocksRequest{Ranges: encodeRefs(req.Ranges),
		Keys: req.Keys, StartTs: uint64(req.StartTS), ForUpdateTs: uint64(req.ForUpdateTS)})
	return err
}

// CheckSecondaryLocks implements kv.Shard.
func (s *Shard) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	res, err := s.secondaries.ask(ctx, &kvpb.CheckSecondaryLocksRequest{
		Ranges: encodeRefs(req.Ranges), Keys: req.Keys, StartTs: uint64(req.StartTS), NowTs: uint64(req.NowTS), Owner: req.Owner, ProcessEnded: req.ProcessEnded})
	if err != nil {
		return mvcc.SecondaryStatus{}, err
	}
	return mvcc.SecondaryStatus{CommitTS: tso.Timestamp(res.CommitTs), RolledBack: res.RolledBack, Locks: decodeLocks(res.Locks)}, nil
}

// Refresh implements kv.Shard.
func (s *Shard) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	_, err := call(ctx, s.name, s.opts, s.client.Refresh, &kvpb.RefreshRequest{Ranges: encodeRefs(req.Ranges),
		Spans: encodeSpans(req.Spans), StartTs: uint64(req.StartTS), FromTs: uint64(req.FromTS), ToTs: uint64(req.ToTS),
		Bypass: encodeTimestamps(req.Bypass)})
	return err
}

// malformedResponse returns the error for a response that no shard of this version sends.
func (s *Shard) malformedResponse(format string, args ...any) error {
	return fmt.Errorf("answer of shard %s: "+format, append([]any{s.name}, args...)...)
}

// Status implements kv.Shard.
func (s *Shard) Status(ctx context.Context) (kv.ShardStatus, error) {
	res, err := call(ctx, s.name, s.opts, s.client.Status, &kvpb.StatusRequest{})
	if err != nil {
		return kv.ShardStatus{}, err
	}
	return decodeStatus(res), nil
}
