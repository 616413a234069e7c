package mvcc

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/tso"
)

// validateKeys refuses keys that do not ascend strictly.
func validateKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return &InvalidRequestError{Detail: "request without keys"}
	}
	for i := 1; i < len(keys); i++ {
		if bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return &InvalidRequestError{Detail: "keys do not ascend"}
		}
	}
	return nil
}

// Commit replaces the locks of startTS on keys by write records at commitTS, all in one batch. With primary, keys[0] is
// the transaction's primary and the commit is durable on return; it is the commit point. Errors: *CommitTSExpiredError,
// *RolledBackError, *LockNotFoundError.
func (s *State) Commit(ctx context.Context, adm Admission, keys [][]byte, startTS, commitTS tso.Timestamp, primary bool) (writtenBytes int, err error) {
	if err := validateKeys(keys); err != nil {
		return 0, err
	}
	if commitTS <= startTS {
		return 0, &InvalidRequestError{Detail: "commit_ts is not above start_ts"}
	}
	if err := s.checkClaimed(ctx, commitTS); err != nil {
		return 0, err
	}
	return s.finishKeys(ctx, adm, keys, startTS, commitTS, func(w *writer, i int, v *keyView) (finish, error) {
		if !v.ownLock(startTS) {
			if err := w.lookAll(v, keys[i], startTS); err != nil {
				return finishNothing, err
			}
		}
		return decideCommit(keys[i], startTS, commitTS, primary && i == 0, v)
	})
}

// judge gathers the records needed in addition to the lock and decides about key i of a request.
type judge func(w *writer, i int, v *keyView) (finish, error)

// finishKeys executes a request that ends locks: under the latches of keys it calls decide for each and carries out the
// decisions in one batch, or, at the first error, none of them.
func (s *State) finishKeys(ctx context.Context, adm Admission, keys [][]byte, startTS, commitTS tso.Timestamp, decide judge) (int, error) {
	w := s.newWriter()
	defer w.release()
	for {
		n, wait, err := w.finishOnce(adm, keys, startTS, commitTS, decide)
		if wait == nil {
			return n, err
		}
		if err := s.wait(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// finishOnce is one attempt. A non-nil channel means: nothing was done; try again when it is closed.
func (w *writer) finishOnce(adm Admission, keys [][]byte, startTS, commitTS tso.Timestamp, decide judge) (int, <-chan struct{}, error) {
	w.latchKeys(keys)
	f := w.newFinisher(startTS, commitTS)
	if err := adm.Admit(); err != nil {
		f.abort()
		return 0, nil, err
	}
	for i, key := range keys {
		var v keyView
		e, wait := w.lookLock(&v, key, startTS)
		if wait != nil {
			f.abort()
			return 0, wait, nil
		}
		do, err := decide(w, i, &v)
		if err != nil {
			f.abort()
			return 0, nil, err
		}
		f.add(do, key, e)
	}
	n, err := f.run()
	return n, nil, err
}
