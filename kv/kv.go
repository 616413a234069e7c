package kv

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Span is a half-open interval of keys [Start, End). An empty End means up to the last key.
type Span = mvcc.Span

// RangeRef names a range as of one epoch; every request carries the refs it was routed by.
type RangeRef = mvcc.RangeRef

// RangeDescriptor states which shard owns a span of keys. Epoch increases with every split or move. Descriptors are
// immutable once published.
type RangeDescriptor struct {
	ID, Epoch uint64
	Span      Span
	Shard     string // id of the owning shard
}

// Ref returns the range's name as of this descriptor.
func (d *RangeDescriptor) Ref() RangeRef { return RangeRef{ID: d.ID, Epoch: d.Epoch} }

// Shard serves the ranges of one storage node. The local and the gRPC shard implement it alike. All write requests are
// idempotent: they may be delivered any number of times, delayed or reordered, and the result depends only on the
// transaction's records. Errors common to all: *StaleRangeError (nothing was applied, refresh the route), ErrClosed, ctx
// errors, *UnavailableError (the outcome is unknown), and the typed errors of kv/mvcc. Keys and values in requests
// belong to the caller and are not retained; those in responses belong to the caller once returned.
type Shard interface {
	// Capabilities states what the shard can do. Requests that need a capability that is not stated fail with
	// ErrUnsupported.
	Capabilities() Capabilities
	// Get returns the newest value of key committed at or before readTS, or nil if there is none.
	Get(ctx context.Context, r RangeRef, key []byte, opts ReadOptions) ([]byte, error)
	// GetLatest returns the newest version of key. It misses no commit at or below floor. It needs
	// Capabilities.ReadLatest.
	GetLatest(ctx context.Context, r RangeRef, key []byte, floor tso.Timestamp) (LatestValue, error)
	// BatchGet answers many keys, sorted and possibly of several ranges of this shard. A locked
	// key does not fail the others.
	BatchGet(ctx context.Context, req *BatchGetRequest) (*BatchGetResponse, error)
	// Scan returns one page of a list of spans.
	Scan(ctx context.Context, req *ScanRequest) (*ScanResponse, error)

	// Prewrite locks the keys, all or none; with TryOnePC it commits them at once.
	Prewrite(ctx context.Context, req *PrewriteRequest) (PrewriteResponse, error)
	// CommitLarge commits a write set that does not fit into memory in one phase. It needs
	// Capabilities.LargeCommit, and is not idempotent.
	CommitLarge(ctx context.Context, req *CommitLargeRequest) (CommitLargeResponse, error)
	// Commit turns the transaction's locks on Keys into write records at CommitTS.
	Commit(ctx context.Context, req *CommitRequest) error
	// Rollback removes the transaction's locks on Keys and leaves rollback records, so that a late prewrite is rejected.
	// *mvcc.AlreadyCommittedError if it is too late.
	Rollback(ctx context.Context, req *RollbackRequest) error

	// CheckTxnStatus returns a transaction's status according to its primary, deciding the outcome if the lock has
	// expired.
	CheckTxnStatus(ctx context.Context, req *CheckTxnStatusRequest) (mvcc.TxnStatus, error)
	// ResolveLock resolves locks by a decided outcome: commit if CommitTS > 0, otherwise rollback.
	ResolveLock(ctx context.Context, req *ResolveLockRequest) error
	// Heartbeat raises the TTL of a live primary lock and returns the TTL in force.
	Heartbeat(ctx context.Context, req *HeartbeatRequest) (ttlMillis uint64, err error)
	// Collector contains the requests of garbage collection; see gc.go.
	Collector
	// Notifier contains the requests about notify cells; see notify.go.
	Notifier

	// ScanLock lists up to Limit locks with start_ts <= MaxTS in a span within one range.
	ScanLock(ctx context.Context, req *ScanLockRequest) ([]mvcc.LockInfo, error)

	// AcquireLocks acquires pessimistic locks. A key is granted as soon as no other transaction has locked it, in order
	// of arrival, whatever has been committed on it: LockedAt reports that. After an error the keys that this request
	// has locked are released. Errors: *mvcc.KeyLockedError (another transaction has locked a key after Wait, or may be
	// dead: check the status at its primary and repeat the request; a shard may also return it before Wait has passed),
	// *mvcc.DeadlockError, *mvcc.RolledBackError, *mvcc.AlreadyCommittedError, *mvcc.TooOldError.
	AcquireLocks(ctx context.Context, req *AcquireLocksRequest) (AcquireLocksResponse, error)
	// ReleaseLocks releases the transaction's pessimistic locks on Keys, and no others.
	ReleaseLocks(ctx context.Context, req *ReleaseLocksRequest) error
	// CheckSecondaryLocks returns the status of an async commit according to secondaries, and decides it if a lock is
	// missing and the caller may decide. A returned outcome is durable.
	CheckSecondaryLocks(ctx context.Context, req *CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error)
	// WaitForRelease blocks until the lock of startTS on key, if there is one, has changed or been removed. It needs
	// Capabilities.WaitForRelease.
	WaitForRelease(ctx context.Context, key []byte, startTS tso.Timestamp) error
	// Refresh verifies that what was read at FromTS is the same at ToTS, and that it stays so. Errors:
	// *mvcc.RefreshConflictError, *mvcc.KeyLockedError (undecided: the lock may commit at or below ToTS; resolve or push
	// it and repeat the request).
	Refresh(ctx context.Context, req *RefreshRequest) error
	// Status describes the shard to an operator.
	Status(ctx context.Context) (ShardStatus, error)
}

// ReadOptions are the snapshot of a read, and the locks that it ignores or reads through.
type ReadOptions = mvcc.ReadOptions

// LatestValue is the newest committed version of a key.
type LatestValue = mvcc.LatestValue

// CommittedTxn pairs a transaction with its commit_ts.
type CommittedTxn = mvcc.CommittedTxn

// BatchGetRequest: Keys ascending, all within Ranges.
type BatchGetRequest struct {
	Ranges []RangeRef
	Keys   [][]byte
	ReadOptions
}

// BatchGetResponse: Values[i] answers Keys[i], nil when absent or locked; Locked lists the locked.
type BatchGetResponse struct {
	Values [][]byte
	Locked []mvcc.KeyLockedError
}

// ScanRequest asks for a page of one or many spans, which lie in Ranges.
type ScanRequest = mvcc.ScanRequest

// ScanResponse is a page. Locked lists keys of the page that are locked, in key order: rows on both sides of them are
// still in the page. ResumeKey is the bound to continue from (inclusive start when scanning forward, exclusive end when
// reverse), nil when the span is exhausted. A page of Limit rows may have one although no rows follow.
type ScanResponse = mvcc.Page

// KeyValue is one row of a page.
type KeyValue = mvcc.Row

// PrewriteRequest requests the locks, or the one-phase commit, of mutations.
type PrewriteRequest = mvcc.PrewriteRequest

// PrewriteResponse states what a prewrite has done.
type PrewriteResponse = mvcc.PrewriteResponse

// CommitLargeRequest requests the commit of a write set that does not fit into memory.
type CommitLargeRequest = mvcc.CommitLargeRequest

// CommitLargeResponse is the commit_ts, if there is one.
type CommitLargeResponse = mvcc.CommitLargeResponse

// AcquireLocksRequest requests pessimistic locks on keys.
type AcquireLocksRequest = mvcc.AcquireLocksRequest

// AcquireLocksResponse has the results for the keys in their order.
type AcquireLocksResponse = mvcc.AcquireLocksResponse

// ReleaseLocksRequest: Keys ascending. Locks whose ForUpdateTS is above the one given stay (tso.MaxTimestamp: none, and
// the transaction has ended; with any other value it may be alive, without knowing that the locks are released).
type ReleaseLocksRequest struct {
	Ranges               []RangeRef
	Keys                 [][]byte
	StartTS, ForUpdateTS tso.Timestamp
}

// CheckSecondaryLocksRequest requests the status of an async commit according to secondaries.
type CheckSecondaryLocksRequest = mvcc.CheckSecondaryLocksRequest

// RefreshRequest requests a check that spans are the same at a later timestamp.
type RefreshRequest = mvcc.RefreshRequest

// CommitRequest: Keys ascending. Primary says that Keys[0] alone is the primary: durable on return.
type CommitRequest struct {
	Ranges            []RangeRef
	Keys              [][]byte
	StartTS, CommitTS tso.Timestamp
	Primary           bool
}

// RollbackRequest: Keys ascending.
type RollbackRequest struct {
	Ranges  []RangeRef
	Keys    [][]byte
	StartTS tso.Timestamp
}

// CheckTxnStatusRequest requests the status of a transaction according to its primary.
type CheckTxnStatusRequest = mvcc.CheckTxnStatusRequest

// ResolveLockRequest: Keys ascending, CommitTS 0 means roll back.
type ResolveLockRequest struct {
	Ranges            []RangeRef
	Keys              [][]byte
	StartTS, CommitTS tso.Timestamp
}

// HeartbeatRequest raises the primary lock's TTL to TTLMillis if it is larger.
type HeartbeatRequest struct {
	Range                  RangeRef
	Primary                []byte
	StartTS                tso.Timestamp
	TTLMillis, LeaseMillis uint64 // as in PrewriteRequest
}

// ScanLockRequest lists locks of a span within one range; Process != 0: only those of that process's transactions
// (PrewriteRequest.Process). A shard that has restarted does not know the process of earlier locks.
type ScanLockRequest struct {
	Range   RangeRef
	Span    Span
	MaxTS   tso.Timestamp
	Process uint64
	Limit   int
}

// ShardStatus is the status of a shard.
type ShardStatus struct {
	Shard       string
	Incarnation uint64
	// Newest is the newest timestamp that the shard has met, or a little below.
	Newest tso.Timestamp
	// RangeSizes are estimates in bytes, by range id.
	RangeSizes map[uint64]int64
}

// Router finds shards, caches descriptors, and forgets those found stale. Safe for concurrent use.
type Router interface {
	// Locate returns the range that holds key and the shard that serves it.
	Locate(ctx context.Context, key []byte) (*RangeDescriptor, Shard, error)
	// LocateEnd returns the range that holds the largest key below end (empty end: the last range).
	LocateEnd(ctx context.Context, end []byte) (*RangeDescriptor, Shard, error)
	// Invalidate drops the cached routes of the range; Current descriptors, if the error contains any, replace them.
	Invalidate(stale *StaleRangeError)
	// CreateRange carves span, which must contain no key, out of the range around it and places it on the shard with the
	// fewest ranges. It is a hint: if that is not possible the keys stay.
	CreateRange(ctx context.Context, span Span) error
	// Ranges lists all ranges in key order.
	Ranges(ctx context.Context) ([]RangeDescriptor, error)
	// RangeSizes returns estimates in bytes by range id; those of shards that do not answer are missing.
	RangeSizes(ctx context.Context) (map[uint64]int64, error)
}

// ErrClosed: the shard or store is closed.
var ErrClosed = errkind.New(errkind.Closed, "kv: closed")

// ErrNoRange: no shard owns the key yet. It passes when the first shard has registered.
var ErrNoRange = errors.New("kv: no shard owns the key yet")

// ErrNoShard: the directory does not know the shard.
var ErrNoShard = errors.New("kv: no such shard")

// StaleRangeError: the request's refs are outdated. Nothing was applied.
type StaleRangeError struct {
	Refs    []RangeRef
	Current []RangeDescriptor // the shard's current ranges around the keys; may be empty
}

// Kind implements errkind.Error.
func (e *StaleRangeError) Kind() errkind.Kind { return errkind.StaleRoute }

func (e *StaleRangeError) Error() string { return fmt.Sprintf("stale ranges %v", e.Refs) }

// DiskFullError: the disk of a shard has no space for more data. Nothing of the prewrite was done; reads and requests
// that finish transactions continue to work.
type DiskFullError struct{ Shard string }

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("kv: the disk of shard %s is full", e.Shard)
}

// Kind implements errkind.Error.
func (e *DiskFullError) Kind() errkind.Kind { return errkind.DiskFull }

// Unwrap makes it the operating system's error.
func (e *DiskFullError) Unwrap() error { return syscall.ENOSPC }

// BigtableShardID is the name of the shard that is a table of Google's Bigtable.
const BigtableShardID = "bigtable"

// UnavailableError: the shard could not be reached or the answer was lost. A write request may or may not have been
// applied, unless NotSent reports that it was never sent.
type UnavailableError struct {
	Shard   string
	Err     error
	NotSent bool
	Quota   bool // it was reached, and a quota is used up
	// Tried is how long the request was without an answer; 0: not known.
	Tried time.Duration
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("shard %s unavailable: %v", e.Shard, e.Err)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// Kind implements errkind.Error.
func (e *UnavailableError) Kind() errkind.Kind { return errkind.Unavailable }

// CorruptionError: the store contains data that the protocol cannot have written, or that fails its checksums.
type CorruptionError = mvcc.CorruptionError

// SizeLimitError: the engine cannot store a key or a value of this size. Nothing was done.
type SizeLimitError struct {
	Index       bool // it is a key
	Size, Limit int
}

func (e *SizeLimitError) Error() string {
	if e.Index {
		return fmt.Sprintf("index row size %d exceeds maximum %d", e.Size, e.Limit)
	}
	return fmt.Sprintf("row is too big: size %d, maximum size %d", e.Size, e.Limit)
}

// Kind implements errkind.Error.
func (e *SizeLimitError) Kind() errkind.Kind { return errkind.TooLarge }
