package mvcc

import (
	"slices"

	"github.com/percodb/percodb/tso"
)

// acquireVerdict says what a request for a pessimistic lock does about one key.
type acquireVerdict uint8

const (
	acquireTake acquireVerdict = iota // the key is free
	acquireHeld                       // the transaction holds it as it wants it, or may from now on
	acquireJoin                       // others hold it shared, and so may the transaction
	acquireWait                       // somebody else holds it

	acquireRolledBack // *RolledBackError
	acquireCommitted  // *AlreadyCommittedError
)

// decideAcquire judges one key. A transaction that has ended here takes no locks: the request is
// late, and nobody would release them. waiters says that others wait for the key already.
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

// lockedAt returns as of when a key is locked: at the snapshot, or at what was committed on it later.
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

// secondaryVerdict says what a secondary of an async commit tells about the fate of it.
type secondaryVerdict uint8

const (
	secondaryLocked     secondaryVerdict = iota // it has its lock
	secondaryCommitted                          // it has been committed
	secondaryRolledBack                         // it can never be locked any more
	secondaryMissing                            // it may yet be locked
)

// decideSecondary judges one secondary. A pessimistic lock is as good as none.
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

// decideMissingSecondary reports whether missing secondaries are to be rolled back: nothing else has told
// the transaction's fate, and whoever asks may decide it. A lock met that is alive says that the
// transaction is.
func decideMissingSecondary(st *SecondaryStatus, owner, primaryExpired, alive bool) bool {
	return st.CommitTS == 0 && !st.RolledBack && (owner || primaryExpired && !alive)
}

// decideRefresh judges one version of a key that was read at FromTS and shall be the same at ToTS:
// it reports whether somebody else has changed the key in between.
func decideRefresh(q *RefreshArgs, w *writeRecord) bool {
	return w.startTS != q.StartTS && q.FromTS < w.commitTS && w.commitTS <= q.ToTS
}

// decideRefreshLock judges a lock on a key that was read: readPass if it cannot commit at or below
// ToTS.
func decideRefreshLock(q *RefreshArgs, l *Lock, state entryState) readVerdict {
	switch {
	case !l.blocksReads() || l.StartTS == q.StartTS || l.MinCommitTS > q.ToTS || slices.Contains(q.Bypass, l.StartTS):
		return readPass
	case state != stateDurable:
		return readWait
	default:
		return readLocked
	}
}
