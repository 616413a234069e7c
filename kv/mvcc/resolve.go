package mvcc

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/tso"
)

// ResolveLock resolves the locks of startTS on keys by the transaction's outcome: committed at commitTS, or rolled back
// if it is 0. Keys without such a lock are left unchanged.
func (s *State) ResolveLock(ctx context.Context, adm Admission, keys [][]byte, startTS, commitTS tso.Timestamp) (writtenBytes int, err error) {
	if err := validateKeys(keys); err != nil {
		return 0, err
	}
	if commitTS != 0 && commitTS <= startTS {
		return 0, &InvalidRequestError{Detail: "commit_ts is not above start_ts"}
	}
	if err := s.checkClaimed(ctx, commitTS); err != nil {
		return 0, err
	}
	return s.finishKeys(ctx, adm, keys, startTS, commitTS, func(_ *writer, i int, v *keyView) (finish, error) {
		return decideResolve(keys[i], startTS, commitTS, v)
	})
}

// ScanLock lists up to limit locks of [start, end) whose start_ts is at or below maxTS, in key
// order; of a key that several share, all of them. Locks of one-phase commits under way are not
// among them: they go by themselves. process != 0 lists only those of transactions of that process; otherwise, from
// now on no transaction commits at or below maxTS here that was not listed or committed already.
func (s *State) ScanLock(ctx context.Context, start, end []byte, maxTS tso.Timestamp, process uint64, limit int) ([]LockInfo, error) {
	if maxTS != tso.MaxTimestamp {
		if err := s.BeginRead(ctx, maxTS); err != nil {
			return nil, err
		}
	}
	var locks []LockInfo
	s.locks.mu.RLock()
	defer s.locks.mu.RUnlock()
	// Millions of packed locks of a younger transaction are not looked at: writers wait for mu.
	s.locks.ascendPackedLocked(s.locks.begunPacksLocked(maxTS, process), start, end, func(e *entry) bool {
		if len(locks) >= limit {
			return false
		}
		if e.onePC {
			return true
		}
		locks = appendLockInfo(locks, e, &e.lock, maxTS, process)
		for i := range e.sharers {
			locks = appendLockInfo(locks, e, &e.sharers[i], maxTS, process)
		}
		return true
	})
	return locks, nil
}

func appendLockInfo(locks []LockInfo, e *entry, l *Lock, maxTS tso.Timestamp, process uint64) []LockInfo {
	if l.StartTS > maxTS || process != 0 && l.Process != process {
		return locks
	}
	return append(locks, LockInfo{Key: bytes.Clone(e.key), Lock: l.detached(), Waiters: e.waitersLocked()})
}
