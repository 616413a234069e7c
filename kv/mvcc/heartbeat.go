package mvcc

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/tso"
)

// Heartbeat raises the TTL of a primary lock to ttlMillis, unless it is larger, extends its lease on this process's
// clock to leaseMillis from now, and returns the TTL in force. Both are in memory only: after a restart the lock is
// valid for a while anyway. Errors: *LockNotFoundError, *RolledBackError, *AlreadyCommittedError, *PrimaryMismatchError.
func (s *State) Heartbeat(ctx context.Context, adm Admission, primary []byte, startTS tso.Timestamp, ttlMillis, leaseMillis uint64) (uint64, error) {
	var inForce uint64
	keys := [1][]byte{primary}
	_, err := s.finishKeys(ctx, adm, keys[:], startTS, 0, func(w *writer, _ int, v *keyView) (finish, error) {
		if !v.ownLock(startTS) && !v.ownPess(startTS) {
			if err := w.lookAll(v, primary, startTS); err != nil {
				return finishNothing, err
			}
			return finishNothing, heartbeatError(primary, startTS, v)
		}
		if !bytes.Equal(v.lock.Primary, primary) {
			return finishNothing, &PrimaryMismatchError{Key: bytes.Clone(primary), Lock: v.lock.detached()}
		}
		inForce = s.locks.prolong(v.lock, ttlMillis, leaseMillis)
		return finishNothing, nil
	})
	return inForce, err
}

// heartbeatError returns the reason why a transaction has no lock on its primary.
func heartbeatError(primary []byte, startTS tso.Timestamp, v *keyView) error {
	switch {
	case v.ownCommitTS != 0:
		return &AlreadyCommittedError{CommitTS: v.ownCommitTS}
	case v.rolledBack:
		return &RolledBackError{StartTS: startTS}
	default:
		return &LockNotFoundError{Key: bytes.Clone(primary), StartTS: startTS}
	}
}
