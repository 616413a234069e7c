package mvcc

import "github.com/percodb/percodb/kv/storage"

// LatchAll keeps every writer out until release is called. Those that have applied and wait for
// their sync still have their locks in the table.
func (s *State) LatchAll() (release func()) {
	var set latchSet
	s.latches.addAll(&set)
	s.latches.lock(&set)
	return func() { s.latches.unlock(&set) }
}

// SpanEmpty reports whether [start, end) holds no record of any kind. LatchAll keeps it so.
func (s *State) SpanEmpty(start, end []byte) (bool, error) {
	if s.locks.largeInSpan(start, end) {
		return false, nil
	}
	empty := true
	s.locks.mu.RLock()
	s.locks.ascendLocked(start, end, func(*entry) bool {
		empty = false
		return false
	})
	s.locks.mu.RUnlock()
	if !empty {
		return false, nil
	}
	for _, tag := range []byte{tagLock, tagWrite, tagData, tagStatus} {
		it, err := s.eng.NewRangeIter(appendPrefix(nil, tag, start), appendUpper(nil, tag, end))
		if err != nil {
			return false, err
		}
		found, err := firstKey(it)
		it.Close()
		if found || err != nil {
			return false, err
		}
	}
	observers, err := s.notifiedIn(start, end)
	return len(observers) == 0 && err == nil, err
}

func firstKey(it *storage.Iterator) (found bool, err error) {
	found = it.First()
	return found, it.Error()
}
