package kv

import (
	"errors"
	"fmt"
)

var errOverlap = errors.New("kv: the store owns part of the span already")

// adopt takes over a span that holds no data and that nobody owns. It may be asked again.
func (s *Store) adopt(desc RangeDescriptor) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	if s.ownsLocked(&desc.Span) {
		return nil
	}
	for _, r := range s.ranges.Load().sorted {
		if r.desc.Span.overlaps(&desc.Span) {
			return fmt.Errorf("adopt range %d: %w", desc.ID, errOverlap)
		}
	}
	desc.Shard = s.shardID
	return s.changeRangesLocked(nil, []*localRange{{desc: desc}})
}

// ownsLocked reports whether the store's ranges cover the whole span.
func (s *Store) ownsLocked(span *Span) bool {
	t := s.ranges.Load()
	at := span.Start
	for {
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
