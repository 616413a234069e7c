package kv

import (
	"context"
	"errors"
	"fmt"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Span is a half-open interval of keys [Start, End). An empty End means up to the last key.
type Span struct{ Start, End []byte }

// RangeRef names a range as of one epoch; every request carries the refs it was routed by.
type RangeRef struct{ ID, Epoch uint64 }

// RangeDescriptor says which shard owns a span of keys. Epoch grows with every split or move.
// Descriptors are immutable once handed out.
type RangeDescriptor struct {
	ID, Epoch uint64
	Span      Span
	Shard     string // id of the owning shard
}

// Ref returns the range's name as of this descriptor.
func (d *RangeDescriptor) Ref() RangeRef { return RangeRef{ID: d.ID, Epoch: d.Epoch} }

// Shard serves the ranges of one storage node. The local and the gRPC shard implement it alike.
// All write requests are idempotent: they may be delivered any number of times, late or reordered,
// and the result depends only on the transaction's records (transactions.md, envelope).
// Errors common to all: *StaleRangeError (nothing was applied, refresh the route), ErrClosed, ctx
// errors, *UnavailableError (the outcome is unknown), and the typed errors of kv/mvcc.
// Keys and values in requests belong to the caller and are not kept; those in responses belong to
// the caller once returned.
type Shard interface {
	// Get returns the newest value of key committed at or before readTS, or nil when there is none.
	Get(ctx context.Context, r RangeRef, key []byte, opts ReadOptions) ([]byte, error)
	// BatchGet answers many keys, sorted and possibly of several ranges of this shard. A locked
	// key does not fail the others.
	BatchGet(ctx context.Context, req *BatchGetRequest) (*BatchGetResponse, error)
	// Scan returns one page of a span that lies within one range.
	Scan(ctx context.Context, req *ScanRequest) (*ScanResponse, error)

	// Prewrite locks the keys, all or none; with TryOnePC it commits them at once.
	Prewrite(ctx context.Context, req *PrewriteRequest) (PrewriteResponse, error)
	// Commit turns the transaction's locks on Keys into write records at CommitTS.
	Commit(ctx context.Context, req *CommitRequest) error
	// Rollback removes the transaction's locks on Keys and leaves rollback records, so that a late
	// prewrite is refused. *mvcc.AlreadyCommittedError if it is too late.
	Rollback(ctx context.Context, req *RollbackRequest) error

	// CheckTxnStatus asks a primary for its transaction's fate, deciding it if the lock has expired.
	CheckTxnStatus(ctx context.Context, req *CheckTxnStatusRequest) (mvcc.TxnStatus, error)
	// ResolveLock finishes locks by a decided fate: forward when CommitTS > 0, else back.
	ResolveLock(ctx context.Context, req *ResolveLockRequest) error
	// Heartbeat raises the TTL of a live primary lock and returns the TTL in force.
	Heartbeat(ctx context.Context, req *HeartbeatRequest) (ttlMillis uint64, err error)
	// ScanLock lists up to Limit locks with start_ts <= MaxTS in a span within one range.
	ScanLock(ctx context.Context, req *ScanLockRequest) ([]mvcc.KeyLockedError, error)
}

// ReadOptions say as of when, and through which locks, a read looks.
type ReadOptions = mvcc.ReadOptions

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

// ScanRequest asks for a page. The page ends at Limit rows or MaxBytes, whichever comes first.
type ScanRequest struct {
	Range    RangeRef
	Span     Span
	Reverse  bool
	Limit    int // rows, > 0
	MaxBytes int // 0 means the shard's default
	KeysOnly bool
	ReadOptions
	// Reuse, if given, is an earlier page whose memory the answer may use; what it held is gone
	// then. It spares a long scan most allocations where the shard is in this process.
	Reuse *ScanResponse
}

// ScanResponse is a page. Locked lists keys of the page that are locked, in key order: rows on both
// sides of them are still in the page. ResumeKey is the bound to go on from (inclusive start when
// scanning forward, exclusive end when reverse), nil when the span is exhausted.
type ScanResponse = mvcc.Page

// KeyValue is one row of a page.
type KeyValue = mvcc.Row

// PrewriteRequest: Mutations ascending by key. Primary is the key that decides the transaction.
type PrewriteRequest struct {
	Ranges    []RangeRef
	Mutations []mvcc.Mutation
	Primary   []byte
	StartTS   tso.Timestamp
	TTLMillis uint64
	TxnSize   uint32
	// TryOnePC says that Mutations is the whole transaction: commit it in one atomic batch.
	TryOnePC bool
	// MaxCommitTS bounds the commit_ts of a one-phase commit (0: any). Where it would lie above, the
	// shard writes plain locks instead, as if TryOnePC were false; the client decides then.
	MaxCommitTS tso.Timestamp
}

// PrewriteResponse: OnePCCommitTS != 0 means the transaction is committed.
type PrewriteResponse struct {
	OnePCCommitTS tso.Timestamp
	MinCommitTS   tso.Timestamp
}

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

// CheckTxnStatusRequest: CallerTS is the read that met the lock (0: none; pushes min_commit_ts
// above it), NowTS a fresh timestamp of the oracle, against which the TTL is judged.
type CheckTxnStatusRequest struct {
	Range                    RangeRef
	Primary                  []byte
	StartTS, CallerTS, NowTS tso.Timestamp
	RollbackIfMissing        bool
}

// ResolveLockRequest: Keys ascending, CommitTS 0 means roll back.
type ResolveLockRequest struct {
	Ranges            []RangeRef
	Keys              [][]byte
	StartTS, CommitTS tso.Timestamp
}

// HeartbeatRequest raises the primary lock's TTL to TTLMillis if it is larger.
type HeartbeatRequest struct {
	Range     RangeRef
	Primary   []byte
	StartTS   tso.Timestamp
	TTLMillis uint64
}

// ScanLockRequest lists locks of a span within one range.
type ScanLockRequest struct {
	Range RangeRef
	Span  Span
	MaxTS tso.Timestamp
	Limit int
}

// Router finds shards, caches descriptors, and forgets those found stale. Safe for concurrent use.
type Router interface {
	// Locate returns the range that holds key and the shard that serves it.
	Locate(ctx context.Context, key []byte) (*RangeDescriptor, Shard, error)
	// LocateEnd returns the range that holds the largest key below end (empty end: the last range).
	LocateEnd(ctx context.Context, end []byte) (*RangeDescriptor, Shard, error)
	// Invalidate drops what the cache knows of the range; Current descriptors, if the error
	// carried any, replace it.
	Invalidate(stale *StaleRangeError)
	// CreateRange carves span, which must hold no key, out of the range around it and places it on
	// the shard with the fewest ranges. It is a hint: where that cannot be done the keys stay.
	CreateRange(ctx context.Context, span Span) error
	// Ranges lists all ranges in key order.
	Ranges(ctx context.Context) ([]RangeDescriptor, error)
}

// ErrClosed: the shard or store has been closed.
var ErrClosed = errors.New("kv: closed")

// ErrNoRange: no shard owns the key yet. It passes when the first shard has registered.
var ErrNoRange = errors.New("kv: no shard owns the key yet")

// ErrNoShard: the directory does not know the shard.
var ErrNoShard = errors.New("kv: no such shard")

// StaleRangeError: the shard knows better than the request's refs. Nothing was applied.
type StaleRangeError struct {
	Refs    []RangeRef
	Current []RangeDescriptor // what the shard owns now around the keys; may be empty
}

func (e *StaleRangeError) Error() string { return fmt.Sprintf("stale ranges %v", e.Refs) }

// UnavailableError: the shard could not be reached or the answer was lost. A write request may or
// may not have been applied.
type UnavailableError struct {
	Shard string
	Err   error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("shard %s unavailable: %v", e.Shard, e.Err)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// CorruptionError: the store holds what the protocol cannot have written, or fails its checksums.
type CorruptionError = mvcc.CorruptionError
