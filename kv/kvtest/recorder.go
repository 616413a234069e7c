package kvtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// provoked are the errors that the suite brings about on every engine.
var provoked = []error{
	&kv.StaleRangeError{}, &mvcc.KeyLockedError{}, &mvcc.WriteConflictError{}, &mvcc.KeyExistsError{},
	&mvcc.AlreadyCommittedError{}, &mvcc.RolledBackError{}, &mvcc.LockNotFoundError{}, &mvcc.CommitTSExpiredError{},
	&mvcc.TxnNotFoundError{}, &mvcc.PrimaryMismatchError{}, &mvcc.TooOldError{}, &mvcc.TSInFutureError{},
	&mvcc.InvalidRequestError{}, &mvcc.LockLostError{}, &mvcc.RefreshConflictError{},
}

// coverage records the calls and errors of all cases.
type coverage struct {
	mu       sync.Mutex
	requests map[string]bool
	errors   map[reflect.Type]bool
}

func (c *coverage) request(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[name] = true
}

func (c *coverage) err(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; err != nil; err = errors.Unwrap(err) {
		c.errors[reflect.TypeOf(err)] = true
	}
}

// recorder is the Router of a case. It records calls, repeats acknowledged requests, and keeps them for later.
type recorder struct {
	kv.Router
	seen  *coverage
	twice bool
	rand  *rand.Rand

	mu   sync.Mutex
	kept []func(ctx context.Context) error // acknowledged requests, to be delivered again
	off  bool                              // nothing is repeated or kept
}

func (r *recorder) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	r.seen.request("Locate")
	d, s, err := r.Router.Locate(ctx, key)
	return r.wrap(d, s, err)
}

func (r *recorder) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	r.seen.request("LocateEnd")
	d, s, err := r.Router.LocateEnd(ctx, end)
	return r.wrap(d, s, err)
}

func (r *recorder) wrap(d *kv.RangeDescriptor, s kv.Shard, err error) (*kv.RangeDescriptor, kv.Shard, error) {
	if err != nil {
		return nil, nil, err
	}
	return d, &recordedShard{Shard: s, r: r}, nil
}

func (r *recorder) Invalidate(stale *kv.StaleRangeError) {
	r.seen.request("Invalidate")
	r.Router.Invalidate(stale)
}

func (r *recorder) CreateRange(ctx context.Context, span kv.Span) error {
	r.seen.request("CreateRange")
	return r.Router.CreateRange(ctx, span)
}

func (r *recorder) Ranges(ctx context.Context) ([]kv.RangeDescriptor, error) {
	r.seen.request("Ranges")
	return r.Router.Ranges(ctx)
}

func (r *recorder) RangeSizes(ctx context.Context) (map[uint64]int64, error) {
	r.seen.request("RangeSizes")
	return r.Router.RangeSizes(ctx)
}

// read is a request that changes nothing.
func read[T any](r *recorder, name string, do func() (T, error)) (T, error) {
	r.seen.request(name)
	res, err := do()
	r.seen.err(err)
	return res, err
}

// write is a request that may be repeated at any time: do once, again from then on.
func write[T any](ctx context.Context, r *recorder, name string, do func(context.Context) (T, error), again func(context.Context) error) (T, error) {
	res, err := read(r, name, func() (T, error) { return do(ctx) })
	if err != nil {
		return res, err
	}
	r.mu.Lock()
	off := r.off
	if !off {
		r.kept = append(r.kept, again)
	}
	r.mu.Unlock()
	if r.twice && !off {
		r.seen.err(again(ctx))
	}
	return res, nil
}

// command is write for a request that is answered by an error alone.
func command(ctx context.Context, r *recorder, name string, do func(context.Context) error) error {
	_, err := write(ctx, r, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }, do)
	return err
}

// again makes a request that is answered by a value one that is not.
func again[T any](do func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := do(ctx); return err }
}

// recordedShard is a Shard whose requests pass through a recorder.
type recordedShard struct {
	kv.Shard
	r *recorder
}

func (s *recordedShard) Capabilities() kv.Capabilities {
	s.r.seen.request("Capabilities")
	return s.Shard.Capabilities()
}

func (s *recordedShard) Get(ctx context.Context, ref kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	return read(s.r, "Get", func() ([]byte, error) { return s.Shard.Get(ctx, ref, key, opts) })
}

func (s *recordedShard) GetLatest(ctx context.Context, ref kv.RangeRef, key []byte, floor tso.Timestamp) (kv.LatestValue, error) {
	return read(s.r, "GetLatest", func() (kv.LatestValue, error) { return s.Shard.GetLatest(ctx, ref, key, floor) })
}

func (s *recordedShard) BatchGet(ctx context.Context, req *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	return read(s.r, "BatchGet", func() (*kv.BatchGetResponse, error) { return s.Shard.BatchGet(ctx, req) })
}

func (s *recordedShard) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	return read(s.r, "Scan", func() (*kv.ScanResponse, error) { return s.Shard.Scan(ctx, req) })
}

func (s *recordedShard) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	return read(s.r, "ScanLock", func() ([]mvcc.LockInfo, error) { return s.Shard.ScanLock(ctx, req) })
}

func (s *recordedShard) Status(ctx context.Context) (kv.ShardStatus, error) {
	return read(s.r, "Status", func() (kv.ShardStatus, error) { return s.Shard.Status(ctx) })
}

func (s *recordedShard) WaitForRelease(ctx context.Context, key []byte, startTS tso.Timestamp) error {
	_, err := read(s.r, "WaitForRelease", func() (struct{}, error) { return struct{}{}, s.Shard.WaitForRelease(ctx, key, startTS) })
	return err
}

// CommitLarge is not idempotent.
func (s *recordedShard) CommitLarge(ctx context.Context, req *kv.CommitLargeRequest) (kv.CommitLargeResponse, error) {
	return read(s.r, "CommitLarge", func() (kv.CommitLargeResponse, error) { return s.Shard.CommitLarge(ctx, req) })
}

func (s *recordedShard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	kept := *req
	do := func(ctx context.Context) (kv.PrewriteResponse, error) { return s.Shard.Prewrite(ctx, &kept) }
	return write(ctx, s.r, "Prewrite", do, again(do))
}

func (s *recordedShard) Commit(ctx context.Context, req *kv.CommitRequest) error {
	kept := *req
	return command(ctx, s.r, "Commit", func(ctx context.Context) error { return s.Shard.Commit(ctx, &kept) })
}

func (s *recordedShard) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	kept := *req
	return command(ctx, s.r, "Rollback", func(ctx context.Context) error { return s.Shard.Rollback(ctx, &kept) })
}

func (s *recordedShard) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	kept := *req
	do := func(ctx context.Context) (mvcc.TxnStatus, error) { return s.Shard.CheckTxnStatus(ctx, &kept) }
	return write(ctx, s.r, "CheckTxnStatus", do, again(do))
}

func (s *recordedShard) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	kept := *req
	return command(ctx, s.r, "ResolveLock", func(ctx context.Context) error { return s.Shard.ResolveLock(ctx, &kept) })
}

func (s *recordedShard) Heartbeat(ctx context.Context, req *kv.HeartbeatRequest) (uint64, error) {
	kept := *req
	do := func(ctx context.Context) (uint64, error) { return s.Shard.Heartbeat(ctx, &kept) }
	return write(ctx, s.r, "Heartbeat", do, again(do))
}

// AcquireLocks waits only the first time.
func (s *recordedShard) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	kept := *req
	kept.Wait = 0
	do := func(ctx context.Context) (kv.AcquireLocksResponse, error) { return s.Shard.AcquireLocks(ctx, req) }
	late := func(ctx context.Context) (kv.AcquireLocksResponse, error) { return s.Shard.AcquireLocks(ctx, &kept) }
	return write(ctx, s.r, "AcquireLocks", do, again(late))
}

func (s *recordedShard) ReleaseLocks(ctx context.Context, req *kv.ReleaseLocksRequest) error {
	kept := *req
	return command(ctx, s.r, "ReleaseLocks", func(ctx context.Context) error { return s.Shard.ReleaseLocks(ctx, &kept) })
}

func (s *recordedShard) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	kept := *req
	do := func(ctx context.Context) (mvcc.SecondaryStatus, error) {
		return s.Shard.CheckSecondaryLocks(ctx, &kept)
	}
	return write(ctx, s.r, "CheckSecondaryLocks", do, again(do))
}

func (s *recordedShard) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	_, err := read(s.r, "Refresh", func() (struct{}, error) { return struct{}{}, s.Shard.Refresh(ctx, req) })
	return err
}

func (s *recordedShard) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	do := func(ctx context.Context) (tso.Timestamp, error) { return s.Shard.SetSafePoint(ctx, ts) }
	return write(ctx, s.r, "SetSafePoint", do, again(do))
}

func (s *recordedShard) SyncLog(ctx context.Context) (uint64, error) {
	return read(s.r, "SyncLog", func() (uint64, error) { return s.Shard.SyncLog(ctx) })
}

func (s *recordedShard) CollectGarbage(ctx context.Context, req *kv.CollectGarbageRequest) (kv.CollectGarbageResponse, error) {
	kept := *req
	do := func(ctx context.Context) (kv.CollectGarbageResponse, error) {
		return s.Shard.CollectGarbage(ctx, &kept)
	}
	return write(ctx, s.r, "CollectGarbage", do, again(do))
}

func (s *recordedShard) DropSpan(ctx context.Context, req *kv.DropSpanRequest) (bool, error) {
	kept := *req
	do := func(ctx context.Context) (bool, error) { return s.Shard.DropSpan(ctx, &kept) }
	return write(ctx, s.r, "DropSpan", do, again(do))
}

func (s *recordedShard) NotifyScan(ctx context.Context, req *kv.NotifyScanRequest) (*kv.NotifyScanResponse, error) {
	return read(s.r, "NotifyScan", func() (*kv.NotifyScanResponse, error) { return s.Shard.NotifyScan(ctx, req) })
}

func (s *recordedShard) NotifyClear(ctx context.Context, req *kv.NotifyClearRequest) (int, error) {
	kept := *req
	do := func(ctx context.Context) (int, error) { return s.Shard.NotifyClear(ctx, &kept) }
	return write(ctx, s.r, "NotifyClear", do, again(do))
}

func (s *recordedShard) NotifyPut(ctx context.Context, req *kv.NotifyPutRequest) error {
	kept := *req
	return command(ctx, s.r, "NotifyPut", func(ctx context.Context) error { return s.Shard.NotifyPut(ctx, &kept) })
}

func (s *recordedShard) NotifyDrop(ctx context.Context, req *kv.NotifyDropRequest) error {
	kept := *req
	return command(ctx, s.r, "NotifyDrop", func(ctx context.Context) error { return s.Shard.NotifyDrop(ctx, &kept) })
}

func (s *recordedShard) WatchNotify(ctx context.Context, f func([]kv.NotifyHint) error) error {
	_, err := read(s.r, "WatchNotify", func() (struct{}, error) { return struct{}{}, s.Shard.WatchNotify(ctx, f) })
	return err
}
