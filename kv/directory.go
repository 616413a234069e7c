package kv

import (
	"context"
	"fmt"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// ShardInfo is the id and address of a shard.
type ShardInfo struct {
	ID   string
	Addr string
}

// Directory records which ranges exist and which shard serves each. It may lag behind splits: a shard that receives a
// request with an old descriptor returns the current one. Safe for concurrent use.
type Directory interface {
	// Lookup returns the range that holds key and its shard.
	Lookup(ctx context.Context, key []byte) (RangeDescriptor, ShardInfo, error)
	// LookupEnd returns the range that holds the largest key below end (empty end: the last range).
	LookupEnd(ctx context.Context, end []byte) (RangeDescriptor, ShardInfo, error)
	// Ranges lists all ranges in key order.
	Ranges(ctx context.Context) ([]RangeDescriptor, error)
	// Shards lists all shards by id.
	Shards(ctx context.Context) ([]ShardInfo, error)
	// RegisterShard is called by a shard when it starts, with the ranges it owns. It returns the ranges that the shard
	// has to adopt; after that the shard registers again. *LostRangesError if the shard should own more than it does;
	// *ShardReplacedError if its data directory is a copy.
	RegisterShard(ctx context.Context, reg *Registration) (adopt []RangeDescriptor, err error)
	// ReportRanges reports the shard's ranges after it has split some; without ranges it only checks the incarnation.
	// *ShardReplacedError if another incarnation of the shard has registered.
	ReportRanges(ctx context.Context, shard string, incarnation uint64, owned []RangeDescriptor) error
	// Announce is called by a shard before it takes a timestamp, and every few seconds while it runs.
	Announce(ctx context.Context, a *Announcement) (*Membership, error)
	// ForgetShard excludes a shard that is permanently lost: its ranges are created again, empty, on others, and it
	// cannot return. dryRun only reports what would happen.
	ForgetShard(ctx context.Context, shard string, dryRun bool) (ForgetResponse, error)
	// AllocateRangeID returns an id that no range has or had.
	AllocateRangeID(ctx context.Context) (uint64, error)
	// CreateRange carves span out of the range around it and places it on the shard with the fewest
	// ranges. Where that cannot be done the keys stay, without an error.
	CreateRange(ctx context.Context, span Span) error
}

// RangeOwner is the side of a shard that its directory talks to. All requests may be repeated.
type RangeOwner interface {
	// NumRanges returns how many ranges the shard owns, and shows that it can be reached.
	NumRanges(ctx context.Context) (int, error)
	// Status describes the shard.
	Status(ctx context.Context) (ShardStatus, error)
	// ReleaseSpan gives an empty span away. A span that was given away before counts as released.
	ReleaseSpan(ctx context.Context, req *ReleaseSpanRequest) (*ReleaseSpanResponse, error)
	// AdoptRange takes an empty range over from a shard that has released it.
	AdoptRange(ctx context.Context, req *AdoptRangeRequest) error
}

// ReleaseSpanRequest: RemainderID is the id of the range above the span, if one remains. Plan identifies the move: the
// shard repeats an earlier answer, and does not execute again what has happened since. The new owner's range has the
// same number as id.
type ReleaseSpanRequest struct {
	Plan        uint64
	Span        Span
	RemainderID uint64
}

// ReleaseSpanResponse: Released false means that the shard keeps the span: it contains keys, or lies in several ranges.
// Otherwise no read at or below MaxTS was or will be served there that the new owner could contradict, and Owned are the
// ranges that the shard owns now.
type ReleaseSpanResponse struct {
	Released bool
	MaxTS    tso.Timestamp
	Owned    []RangeDescriptor
}

// AdoptRangeRequest: writes to the range must commit above MaxTS. A range is adopted once: a delayed request that
// arrives after the shard has given the range away again changes nothing.
type AdoptRangeRequest struct {
	Desc  RangeDescriptor
	MaxTS tso.Timestamp
}

// LostRangesError: a shard does not own ranges that it was given. Its data directory was replaced, or is another
// shard's.
type LostRangesError struct {
	Shard string
	Lost  []RangeDescriptor
}

// Kind implements errkind.Error.
func (e *LostRangesError) Kind() errkind.Kind { return errkind.ForeignData }

func (e *LostRangesError) Error() string {
	return fmt.Sprintf("shard %s does not own %d of its ranges: is this its data directory?", e.Shard, len(e.Lost))
}
