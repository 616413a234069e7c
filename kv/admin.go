package kv

import (
	"bytes"
	"context"
	"fmt"

	"github.com/percodb/percodb/kv/mvcc"
)

// Check verifies the store's records, locks and ranges while traffic goes on, and lists what is wrong.
func (s *Store) Check(ctx context.Context) ([]mvcc.Finding, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	findings, err := s.mvcc.Check(ctx)
	return append(findings, s.checkRanges()...), mapError(err)
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
