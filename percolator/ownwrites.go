package percolator

import (
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// OwnWrites calls f with what the transaction has written in spans, which are as for ScanSpans, in key order; value is nil for a key that it
// has deleted. It sends no request. The slices are f's only until it returns.
func (t *Txn) OwnWrites(spans []kv.Span, f func(key, value []byte) error) error {
	if t.done {
		return ErrTxnDone
	}
	if t.buf.len() == 0 || len(spans) == 0 {
		return nil
	}
	var s bufferScan
	first, rest := takeSpan(spans, false)
	s.init(t.buf, first, rest, false)
	for {
		e, err := s.peek()
		if e == nil || err != nil {
			return err
		}
		s.advance()
		var value []byte
		if e.leavesValue() {
			value = e.value
		}
		if err := f(e.key, value); err != nil {
			return err
		}
	}
}

// LockedAt returns the timestamp as of which the transaction has locked a key: nothing newer had been committed on it then, and
// nobody else changes it. 0: it has no lock, or it is optimistic.
func (t *Txn) LockedAt(key []byte) tso.Timestamp {
	if t.locks == nil {
		return 0
	}
	if h, held := t.locks.get(key); held {
		return h.at
	}
	return 0
}
