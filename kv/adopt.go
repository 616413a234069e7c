package kv

import (
	"context"
	"errors"
	"fmt"
)

var _ RangeOwner = (*Store)(nil)

var errOverlap = errors.New("kv: the store owns part of the span already")

// NumRanges implements RangeOwner.
func (s *Store) NumRanges(context.Context) (int, error) {
	if !s.gate.enter() {
		return 0, ErrClosed
	}
	defer s.gate.leave()
	return len(s.ranges.Load().sorted), nil
}

// Status implements Shard and RangeOwner.
func (s *Store) Status(context.Context) (ShardStatus, error) {
	if !s.gate.enter() {
		return ShardStatus{}, ErrClosed
	}
	defer s.gate.leave()
	return ShardStatus{Shard: s.shardID, Incarnation: s.incarnation, Newest: s.mvcc.NewestTS(), RangeSizes: s.rangeSizes()}, nil
}

// AdoptRange implements RangeOwner.
func (s *Store) AdoptRange(ctx context.Context, req *AdoptRangeRequest) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	// First the fence, then the keys: no write may commit below a read of the former owner.
	if err := s.mvcc.FenceReads(ctx, req.MaxTS); err != nil {
		return err
	}
	return s.adopt(req.Desc)
}

// adopt takes over a span that contains no data and has no owner. It may be repeated.
func (s *Store) adopt(desc RangeDescriptor) error {
	if !desc.Span.Valid() {
		return fmt.Errorf("adopt range %d: span is empty", desc.ID)
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	record := metaRecord{key: metaIDKey(metaAdopt, desc.ID), value: []byte{1}}
	_, before, err := s.engine.Get(nil, record.key)
	if err != nil || before || s.owns(&desc.Span) {
		return err // adopted before, and perhaps given away again since
	}
	for _, r := range s.ranges.Load().sorted {
		if r.desc.Span.Overlaps(&desc.Span) {
			return fmt.Errorf("adopt range %d: %w", desc.ID, errOverlap)
		}
	}
	desc.Shard = s.shardID
	if err := s.changeRangesLocked(nil, []*localRange{{desc: desc}}, record); err != nil {
		return err
	}
	s.metrics.rangeAdoptions.Inc()
	s.opts.Logger.Info("range was adopted", "range_id", desc.ID)
	return nil
}

// owns reports whether the store's ranges cover the whole span.
func (s *Store) owns(span *Span) bool {
	t := s.ranges.Load()
	for at := span.Start; ; {
		r := t.find(at)
		if r == nil {
			return false
		}
		if compareEnds(r.desc.Span.End, span.End) >= 0 {
			return true
		}
		at = r.desc.Span.End
	}
}

// ReleaseSpan implements RangeOwner.
func (s *Store) ReleaseSpan(_ context.Context, req *ReleaseSpanRequest) (*ReleaseSpanResponse, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	if !req.Span.Valid() {
		return nil, fmt.Errorf("release a span: it is empty")
	}
	// Writers are excluded while it is verified that the span is empty. Reads need not be: a read raises max_ts before
	// it checks whether the range is still here, so either it is refused or MaxTS, read last, covers it.
	unlatch := s.mvcc.LatchAll()
	released, err := s.carve(req)
	unlatch()
	if err != nil {
		return nil, err
	}
	return &ReleaseSpanResponse{Released: released, MaxTS: s.mvcc.MaxTS(), Owned: s.ownedRanges()}, nil
}

// carve removes the span from the range around it, if it is empty. All latches are held.
func (s *Store) carve(req *ReleaseSpanRequest) (released bool, err error) {
	s.changes.Lock()
	defer s.changes.Unlock()
	key := metaIDKey(metaRelease, req.Plan)
	answer, before, err := s.engine.Get(nil, key)
	if err != nil || before {
		return before && len(answer) == 1 && answer[0] == 1, err
	}
	t := s.ranges.Load()
	overlaps := false
	for _, r := range t.sorted {
		overlaps = overlaps || r.desc.Span.Overlaps(&req.Span)
	}
	if !overlaps {
		return true, nil // released before there were records
	}
	r := t.find(req.Span.Start)
	keep := r == nil || !r.desc.Span.ContainsSpan(&req.Span)
	if !keep {
		empty, err := s.mvcc.SpanEmpty(req.Span.Start, req.Span.End)
		if err != nil {
			return false, err
		}
		keep = !empty
	}
	if keep {
		// The plan ends with this answer: it must not be another when the request comes once more.
		return false, s.changeRangesLocked(nil, nil, metaRecord{key, []byte{0}})
	}
	if err := s.changeRangesLocked([]*localRange{r}, s.remainders(r, req), metaRecord{key, []byte{1}}); err != nil {
		return false, err
	}
	s.metrics.rangeReleases.Inc()
	s.opts.Logger.Info("span was released", "range_id", r.desc.ID)
	return true, nil
}

// remainders returns the parts of r on both sides of the span.
func (s *Store) remainders(r *localRange, req *ReleaseSpanRequest) []*localRange {
	var left []*localRange
	if string(r.desc.Span.Start) != string(req.Span.Start) {
		below := &localRange{desc: r.desc}
		below.desc.Epoch++
		below.desc.Span.End = req.Span.Start
		below.sizeBytes.Store(r.sizeBytes.Load() / 2)
		left = append(left, below)
	}
	if compareEnds(req.Span.End, r.desc.Span.End) < 0 {
		above := &localRange{desc: r.desc}
		above.desc.Span.Start = req.Span.End
		above.desc.Epoch++
		if len(left) > 0 { // the id stays with the lower part
			above.desc.ID, above.desc.Epoch = req.RemainderID, 1
		}
		above.sizeBytes.Store(r.sizeBytes.Load() / 2)
		left = append(left, above)
	}
	return left
}
