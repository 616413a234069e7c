package mvcc

import (
	"slices"

	"github.com/percodb/percodb/tso"
)

// acquireVerdict is the decision about one key of a request for pessimistic locks.
type acquireVerdict uint8

const (
	acquireTake acquireVerdict = iota // the key is free
	acquireHeld                       // the transaction has a sufficient lock, or may have it from now on
	acquireJoin                       // others hold it shared, and so may the transaction
	acquireWait                       // another transaction has locked it

	acquireRolledBack // *RolledBackError
	acquireCommitted  // *AlreadyCommittedError
)

// decideAcquire decides about one key. A transaction that has ended here acquires no locks: the request is late, and the
// locks would never be released. waiters means that others wait for the key already.
func decideAcquire(startTS tso.Timestamp, shared, waiters bool, v *keyView) acquireVerdict {
	switch {
	case v.ownLock(startTS):
		return acquireHeld // written already: the request is a late duplicate
	case v.ownCommitTS != 0:
		return acquireCommitted
	case v.rolledBack:
		return acquireRolledBack
	case v.ownPess(startTS) && (!v.lock.Shared || shared || v.other == nil):
		return acquireHeld
	case v.ownPess(startTS):
		return acquireWait
	case v.lock == nil:
		return acquireTake
	case shared && v.lock.Shared && !waiters:
		return acquireJoin
	default:
		return acquireWait
	}
}

// lockedAt returns the timestamp as of which a key is locked: the snapshot, or a later commit on the key.
func lockedAt(readTS tso.Timestamp, shared bool, v *keyView) tso.Timestamp {
	at := max(readTS, v.newest.commitTS, v.lockCommitTS)
	if !shared {
		at = max(at, v.sharedUseTS)
	}
	return at
}

// decideRelease reports whether a request to release pessimistic locks up to bound means this one. A
// lock taken again since then stays.
func decideRelease(startTS, bound tso.Timestamp, v *keyView) bool {
	return v.ownPess(startTS) && v.lock.ForUpdateTS <= bound
}

// secondaryVerdict is the outcome of an async commit according to a secondary.
type secondaryVerdict uint8

const (
	secondaryLocked     secondaryVerdict = iota // it has its lock
	secondaryCommitted                          // it has been committed
	secondaryRolledBack                         // it can never be locked any more
	secondaryMissing                            // it may yet be locked
)

// decideSecondary decides about one secondary. A pessimistic lock is treated as none.
func decideSecondary(startTS tso.Timestamp, v *keyView) secondaryVerdict {
	switch {
	case v.ownLock(startTS):
		return secondaryLocked
	case v.ownCommitTS != 0:
		return secondaryCommitted
	case v.rolledBack:
		return secondaryRolledBack
	default:
		return secondaryMissing
	}
}

// decideMissingSecondary reports whether missing secondaries are to be rolled back: no other key has determined the
// transaction's outcome, and the caller may decide it. A live lock shows that the transaction is alive.
func decideMissingSecondary(st *SecondaryStatus, owner, primaryExpired, alive bool) bool {
	return st.CommitTS == 0 && !st.RolledBack && (owner || primaryExpired && !alive)
}

// decideRefresh decides about one version of a key that was read at FromTS and shall be the same at ToTS: it reports
// whether another transaction has changed the key in between.
func decideRefresh(q *RefreshRequest, w *writeRecord) bool {
	return w.startTS != q.StartTS && q.FromTS < w.commitTS && w.commitTS <= q.ToTS
}

// decideRefreshLock decides about a lock on a key that was read: readPass if it cannot commit at or below ToTS.
func decideRefreshLock(q *RefreshRequest, l *Lock, state entryState) readVerdict {
	switch {
	case !l.blocksReads() || l.StartTS == q.StartTS || l.MinCommitTS > q.ToTS || slices.Contains(q.Bypass, l.StartTS):
		return readPass
	case state != stateDurable:
		return readWait
	default:
		return readLocked
	}
}
