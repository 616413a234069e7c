package kv

import "context"

// ShardInfo says where a shard is.
type ShardInfo struct {
	ID   string
	Addr string
}

// Directory knows which ranges exist and which shard serves each. It may lag behind splits: a shard
// asked with an old descriptor tells the current one. Safe for concurrent use.
type Directory interface {
	// Lookup returns the range that holds key and its shard.
	Lookup(ctx context.Context, key []byte) (RangeDescriptor, ShardInfo, error)
	// LookupEnd returns the range that holds the largest key below end (empty end: the last range).
	LookupEnd(ctx context.Context, end []byte) (RangeDescriptor, ShardInfo, error)
	// Ranges lists all ranges in key order.
	Ranges(ctx context.Context) ([]RangeDescriptor, error)
	// Shards lists all shards by id.
	Shards(ctx context.Context) ([]ShardInfo, error)
	// RegisterShard is called by a shard when it starts, with the ranges it owns. It returns the
	// ranges that the shard has to adopt; having done that it registers again. *LostRangesError if
	// the shard ought to own more than it does.
	RegisterShard(ctx context.Context, info ShardInfo, owned []RangeDescriptor) (adopt []RangeDescriptor, err error)
	// ReportRanges tells what a shard owns after it has split ranges.
	ReportRanges(ctx context.Context, shard string, owned []RangeDescriptor) error
	// AllocateRangeID returns an id that no range has or had.
	AllocateRangeID(ctx context.Context) (uint64, error)
	// CreateRange carves span out of the range around it and places it on the shard with the fewest
	// ranges. Where that cannot be done the keys stay, without an error.
	CreateRange(ctx context.Context, span Span) error
}
