package kv

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/percodb/percodb/kv/mvcc"
)

// Check is CheckWith without options.
func (s *Store) Check(ctx context.Context) ([]mvcc.Finding, error) {
	return s.CheckWith(ctx, mvcc.CheckOptions{})
}

// CheckWith verifies the store's records, locks and ranges, concurrently with requests, and lists the inconsistencies.
func (s *Store) CheckWith(ctx context.Context, opts mvcc.CheckOptions) ([]mvcc.Finding, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	opts.Owns = func(key []byte) bool { return s.ranges.Load().find(key) != nil }
	findings, err := s.mvcc.CheckWith(ctx, opts)
	return append(findings, s.checkRanges()...), mapError(err)
}

// CheckDirectory verifies that the ranges of a cluster cover all keys, once each, and that each lies on a known shard. A
// cluster without a store has no ranges.
func CheckDirectory(ctx context.Context, d Directory) ([]mvcc.Finding, error) {
	ranges, err := d.Ranges(ctx)
	if err != nil {
		return nil, err
	}
	shards, err := d.Shards(ctx)
	if err != nil {
		return nil, err
	}
	var findings []mvcc.Finding
	found := func(key []byte, format string, args ...any) {
		findings = append(findings, mvcc.Finding{Key: key, Detail: fmt.Sprintf(format, args...)})
	}
	var end []byte // of the ranges so far
	for i := range ranges {
		r := &ranges[i]
		switch {
		case i > 0 && len(end) == 0 || bytes.Compare(r.Span.Start, end) < 0:
			found(r.Span.Start, "range %d of shard %s overlaps another", r.ID, r.Shard)
		case !bytes.Equal(r.Span.Start, end):
			found(end, "no range holds the keys below range %d of shard %s", r.ID, r.Shard)
		}
		if end = r.Span.End; !slices.ContainsFunc(shards, func(s ShardInfo) bool { return s.ID == r.Shard }) {
			found(r.Span.Start, "range %d is on shard %s, which is not registered", r.ID, r.Shard)
		}
	}
	if len(ranges) > 0 && len(end) > 0 {
		found(end, "no range holds the last keys")
	}
	return findings, nil
}

// checkRanges verifies that ranges do not overlap and, in a store on its own, leave no gap.
func (s *Store) checkRanges() []mvcc.Finding {
	var findings []mvcc.Finding
	sorted := s.ranges.Load().sorted
	for i, r := range sorted {
		first, last := i == 0, i == len(sorted)-1
		switch {
		case !r.desc.Span.Valid():
			findings = append(findings, mvcc.Finding{Key: r.desc.Span.Start, Detail: fmt.Sprintf("range %d is empty", r.desc.ID)})
		case !last && compareEnds(r.desc.Span.End, sorted[i+1].desc.Span.Start) > 0:
			findings = append(findings, mvcc.Finding{Key: sorted[i+1].desc.Span.Start, Detail: fmt.Sprintf("ranges %d and %d overlap", r.desc.ID, sorted[i+1].desc.ID)})
		case s.clustered:
		case first && len(r.desc.Span.Start) > 0 || last && len(r.desc.Span.End) > 0 ||
			!last && !bytes.Equal(r.desc.Span.End, sorted[i+1].desc.Span.Start):
			findings = append(findings, mvcc.Finding{Key: r.desc.Span.End, Detail: fmt.Sprintf("no range around range %d", r.desc.ID)})
		}
	}
	return findings
}

// StoreInfo describes a store to an operator.
type StoreInfo struct {
	ShardID        string
	Addr           string
	Locks          int
	DiskUsageBytes uint64
	Ranges         []RangeInfo
}

// RangeInfo describes a range to an operator. SizeBytes is an estimate.
type RangeInfo struct {
	RangeDescriptor
	SizeBytes int64
}

// Info describes the store.
func (s *Store) Info() StoreInfo {
	info := StoreInfo{ShardID: s.shardID, Addr: s.opts.Addr, Locks: s.mvcc.NumLocks(), DiskUsageBytes: s.engine.DiskUsage()}
	for _, r := range s.ranges.Load().sorted {
		info.Ranges = append(info.Ranges, RangeInfo{RangeDescriptor: r.desc, SizeBytes: r.sizeBytes.Load()})
	}
	return info
}
