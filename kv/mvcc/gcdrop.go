package mvcc

import (
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// DropSpan removes every version, value and notify cell of [start, end) by range deletion. dropped is false, and nothing is removed,
// if the span contains a lock or a version above safePoint, which may still be needed. Status records stay, because they
// reject late prewrites until the safe point does; so do the records that determine the outcome of protected
// transactions.
func (s *State) DropSpan(start, end []byte, safePoint tso.Timestamp, protected []TSSpan) (dropped bool, err error) {
	if safePoint > s.SafePoint() {
		return false, &InvalidRequestError{Detail: "span dropped above the safe point"}
	}
	if free, err := s.spanUnneeded(start, end, safePoint); err != nil || !free {
		return false, err
	}
	// No version at or below the safe point is yet to come while there is no lock.
	if err := s.stubSpan(start, end, mergeSpans(protected)); err != nil {
		return false, err
	}
	release := s.LatchAll()
	defer release()
	if free, err := s.spanUnneeded(start, end, safePoint); err != nil || !free {
		return false, err
	}
	b := s.eng.NewBatch(0)
	defer b.Close()
	for _, tag := range []byte{tagWrite, tagData} {
		b.DeleteRange(appendPrefix(nil, tag, start), appendUpper(nil, tag, end))
	}
	observers, err := s.notifiedIn(start, end)
	if err != nil {
		return false, err
	}
	for _, observer := range observers {
		b.DeleteRange(appendNotifyKey(nil, observer, start), appendNotifyUpper(nil, observer, end))
	}
	err = s.eng.Apply(b, storage.NoSync)
	// Only now: values of the span that a concurrent read caches until then are dropped with the old ones.
	s.recent.Store(newRecentReads(s.opts.RecentBytes))
	s.scans.drop(start, end)
	return true, err
}

// spanUnneeded reports whether a span has neither locks nor versions above ts.
func (s *State) spanUnneeded(start, end []byte, ts tso.Timestamp) (bool, error) {
	if s.locks.largeInSpan(start, end) {
		return false, nil
	}
	locked := false
	s.locks.mu.RLock()
	s.locks.ascendLocked(start, end, func(*entry) bool {
		locked = true
		return false
	})
	s.locks.mu.RUnlock()
	if locked {
		return false, nil
	}
	lower, upper := WriteBounds(start, end)
	it, err := s.eng.NewVersionIter(lower, upper, uint64(ts)+1, ^uint64(0))
	if err != nil {
		return false, err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.NextPrefix() {
		if _, version, _ := storage.SplitVersion(it.Key()); tso.Timestamp(version) > ts {
			return false, nil
		}
	}
	return true, it.Error()
}
