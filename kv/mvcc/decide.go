package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/tso"
)

// This file holds the protocol's decisions. They are functions of what was gathered and of the
// request alone, so that the server, a model of it and a simulation run the same ones.

// keyView is what the records of one key say to one transaction, start_ts known.
type keyView struct {
	// lock is the lock on the key, the transaction's own if it holds it, else anybody's, or nil.
	lock *Lock
	// other is the lock of somebody else, or nil: with lock the transaction's own, who shares it.
	other *Lock
	// newest is the newest version; commitTS 0 means none.
	newest writeRecord
	// lockCommitTS is the commit_ts of the newest committed OpLock, 0 for none; ...StartTS its
	// transaction.
	lockCommitTS, lockCommitStartTS tso.Timestamp
	// sharedUseTS is as of when the newest recorded use of a shared lock was, 0 for none.
	sharedUseTS tso.Timestamp
	// ownCommitTS is the commit_ts of the transaction's own record on this key, 0 for none.
	ownCommitTS tso.Timestamp
	// rolledBack: the transaction has a rollback record on this key.
	rolledBack bool
}

// ownLock reports whether the transaction has prewritten the key.
func (v *keyView) ownLock(startTS tso.Timestamp) bool {
	return v.lock != nil && v.lock.StartTS == startTS && v.lock.Op != OpPessimistic
}

// ownPess reports whether the transaction holds a pessimistic lock on the key.
func (v *keyView) ownPess(startTS tso.Timestamp) bool {
	return v.lock != nil && v.lock.StartTS == startTS && v.lock.Op == OpPessimistic
}

// prewriteVerdict says what to do with one mutation. Among the failures of one request the
// greatest wins: what is definite comes before what may pass.
type prewriteVerdict uint8

const (
	prewriteLock      prewriteVerdict = iota // lock the key
	prewriteCheck                            // the key is as it should be, write nothing
	prewriteDuplicate                        // the transaction's lock is there; leave it as it is

	prewriteLocked     // *KeyLockedError
	prewriteLost       // *LockLostError
	prewriteExists     // *KeyExistsError
	prewriteConflict   // *WriteConflictError
	prewriteRolledBack // *RolledBackError
	prewriteCommitted  // *AlreadyCommittedError
)

func (p prewriteVerdict) failed() bool { return p >= prewriteLocked }

// decidePrewrite judges one mutation of a transaction whose snapshot is readTS. A conflict is found
// before an existing key is complained about: a value outside of the snapshot must not leak as a
// duplicate. What was locked before is as it was if the very lock is still there, or if, the lock
// lost, nobody has it and nothing newer was committed.
func decidePrewrite(startTS, readTS tso.Timestamp, m *Mutation, v *keyView) prewriteVerdict {
	limit := readTS
	if m.LockedAt != 0 {
		limit = m.LockedAt
	}
	held := v.ownPess(startTS) && v.lock.ForUpdateTS == m.LockedAt
	changed := max(v.newest.commitTS, v.lockCommitTS)
	if m.LockedAt != 0 && m.Op != OpCheckShared {
		changed = max(changed, v.sharedUseTS) // a lost lock was to keep sharers out as well
	}
	switch {
	case v.ownLock(startTS):
		return prewriteDuplicate
	case v.ownCommitTS != 0:
		return prewriteCommitted
	case v.rolledBack:
		return prewriteRolledBack
	case !held && changed > limit:
		return prewriteConflict
	case v.ownPess(startTS) && !held && m.LockedAt != 0:
		return prewriteLost // it was lost, and taken again by a request that is late
	case m.Op == OpCheckShared && (v.other == nil || v.other.Shared):
		return prewriteCheck
	case v.other != nil && !v.ownPess(startTS) && m.LockedAt != 0:
		return prewriteLost
	case v.other != nil:
		return prewriteLocked
	case (m.MustBeNew || m.Op == OpCheckNotExists) && hasValue(v):
		return prewriteExists
	case m.Op == OpCheckNotExists:
		return prewriteCheck
	default:
		return prewriteLock
	}
}

// commitRecord says what a commit leaves on a key, whether in one phase or two.
type commitRecord uint8

const (
	recordNothing commitRecord = iota
	recordVersion              // a write record
	recordLock                 // a status record: who locks the key next may have to move its snapshot
	recordUse                  // a status record, for those who have lost an exclusive lock on the key
)

// decideRecord judges one mutation. A key that was locked and not written gets a record as well: its
// lock may have been lost, and the next to lock it must not be undone by who lost it; and whoever asks
// the transaction's primary after the lock is gone must find the commit there. lostTS is at or above
// the start_ts of every transaction that may have lost a lock here without having ended; who began at
// or below the safe point can prewrite no more.
func decideRecord(op Op, lostTS, safePoint tso.Timestamp) commitRecord {
	switch {
	case op == OpPut || op == OpDelete:
		return recordVersion
	case op == OpLock:
		return recordLock
	case op == OpCheckShared && lostTS > safePoint:
		return recordUse
	default:
		return recordNothing
	}
}

// hasValue reports whether the key has a value in its newest version.
func hasValue(v *keyView) bool { return v.newest.commitTS != 0 && v.newest.op == OpPut }

// nextTS returns the computed timestamp after ts within its tick; ok is false when the tick has
// none left, and only the oracle can give the next one.
func nextTS(ts tso.Timestamp) (next tso.Timestamp, ok bool) {
	if ts%tso.Tick == tso.Tick-1 {
		return 0, false
	}
	return ts + 1, true
}

// mayCommitAt reports whether a one-phase or async commit may take commitTS; 0 means that there was none to
// be had. limit 0 means any.
func mayCommitAt(commitTS, limit tso.Timestamp) bool {
	return commitTS != 0 && (limit == 0 || commitTS <= limit)
}

// finish says what to do with a key when its transaction's fate meets it.
type finish uint8

const (
	finishNothing  finish = iota // it has been done before
	finishCommit                 // lock → write record
	finishRollback               // remove the lock
	finishRecord                 // remove the lock, if there is one, and leave a rollback record
	finishRelease                // drop the pessimistic lock
)

// decideCommit judges one key of a commit. primary says that the key is the primary, whose lock
// may have been pushed; on a secondary that is impossible.
func decideCommit(key []byte, startTS, commitTS tso.Timestamp, primary bool, v *keyView) (finish, error) {
	switch {
	case v.ownLock(startTS) && primary && !bytes.Equal(v.lock.Primary, key):
		return finishNothing, &PrimaryMismatchError{Key: bytes.Clone(key), Lock: v.lock.detached()}
	case v.ownLock(startTS) && commitTS >= v.lock.MinCommitTS:
		return finishCommit, nil
	case v.ownLock(startTS) && primary:
		return finishNothing, &CommitTSExpiredError{MinCommitTS: v.lock.MinCommitTS}
	case v.ownLock(startTS):
		return finishNothing, corrupt(key, "secondary lock has a minimum above the transaction's commit_ts")
	case v.ownCommitTS == commitTS:
		return releaseStale(startTS, v), nil
	case v.ownCommitTS > commitTS && primary:
		// A late duplicate of an attempt that came too early, and was followed by one that did not.
		return finishNothing, &AlreadyCommittedError{CommitTS: v.ownCommitTS}
	case v.ownCommitTS != 0:
		return finishNothing, corrupt(key, "transaction committed at two timestamps")
	case v.rolledBack:
		return finishNothing, &RolledBackError{StartTS: startTS}
	default:
		return finishNothing, &LockNotFoundError{Key: bytes.Clone(key), StartTS: startTS}
	}
}

// releaseStale drops the pessimistic lock that a late request took for a transaction that has ended.
// A pessimistic lock never becomes a version.
func releaseStale(startTS tso.Timestamp, v *keyView) finish {
	if v.ownPess(startTS) {
		return finishRelease
	}
	return finishNothing
}

// decideRollback judges one key of a rollback by the owner.
func decideRollback(startTS tso.Timestamp, v *keyView) (finish, error) {
	switch {
	case v.ownLock(startTS):
		return finishRecord, nil
	case v.ownCommitTS != 0:
		return finishNothing, &AlreadyCommittedError{CommitTS: v.ownCommitTS}
	case v.rolledBack:
		return releaseStale(startTS, v), nil
	default:
		return finishRecord, nil
	}
}

// decideResolve judges one key of a transaction whose fate is decided: commitTS 0 means rolled back.
func decideResolve(key []byte, startTS, commitTS tso.Timestamp, v *keyView) (finish, error) {
	switch {
	case !v.ownLock(startTS):
		return releaseStale(startTS, v), nil
	case commitTS == 0 && bytes.Equal(v.lock.Primary, key):
		return finishRecord, nil
	case commitTS == 0:
		return finishRollback, nil
	case commitTS < v.lock.MinCommitTS:
		return finishNothing, corrupt(key, "lock has a minimum above the transaction's commit_ts")
	default:
		return finishCommit, nil
	}
}

// statusQuery is what is asked of a primary.
type statusQuery struct {
	startTS, callerTS, nowTS tso.Timestamp
	rollbackIfMissing        bool
	resolvingPessimistic     bool // for the sake of a pessimistic lock
	forceSync                bool // the transaction is known not to be an async commit
	// silentMillis is for how long the owner of the lock has sent no request for it, by the shard's clock.
	silentMillis uint64
}

// decideStatus tells a transaction's fate by its primary, deciding it if the lock has expired or
// the caller says so. pushTS != 0 means: raise the lock's MinCommitTS to it. If the fate is neither
// told nor decided the lock is alive.
func decideStatus(primary []byte, q *statusQuery, v *keyView) (st TxnStatus, do finish, pushTS tso.Timestamp, err error) {
	if v.ownPess(q.startTS) {
		st, do, err = decidePessStatus(primary, q, v)
		return st, do, 0, err
	}
	if !v.ownLock(q.startTS) {
		st, do, err = decideMissing(q, v)
		return st, do, 0, err
	}
	switch {
	case !bytes.Equal(v.lock.Primary, primary):
		return TxnStatus{}, finishNothing, 0, &PrimaryMismatchError{Key: bytes.Clone(primary), Lock: v.lock.detached()}
	case v.lock.Async && !q.forceSync:
		// The secondaries know more: they may all be locked, and then it is committed. A push would
		// change the commit_ts that others compute from this lock.
		return TxnStatus{}, finishNothing, 0, nil
	case expired(v.lock, q.nowTS, q.silentMillis):
		return TxnStatus{RolledBack: true}, finishRecord, 0, nil
	case v.lock.Async:
		// After a crash nobody would know of a push: the minima of async commits are not raised then.
		return TxnStatus{}, finishNothing, 0, nil
	}
	// A caller from the future must not push: the owner could not commit until then.
	if q.callerTS != 0 && q.callerTS <= q.nowTS && q.callerTS >= v.lock.MinCommitTS {
		pushTS = q.callerTS + 1
	}
	return TxnStatus{}, finishNothing, pushTS, nil
}

// decideMissing is decideStatus for a primary without a lock.
func decideMissing(q *statusQuery, v *keyView) (TxnStatus, finish, error) {
	switch {
	case v.ownCommitTS != 0:
		return TxnStatus{CommitTS: v.ownCommitTS}, releaseStale(q.startTS, v), nil
	case v.rolledBack:
		return TxnStatus{RolledBack: true}, releaseStale(q.startTS, v), nil
	case !q.rollbackIfMissing:
		return TxnStatus{}, finishNothing, &TxnNotFoundError{StartTS: q.startTS}
	case q.resolvingPessimistic:
		// The transaction may be alive: its locks were in memory only.
		return TxnStatus{RolledBack: true, Undecided: true}, releaseStale(q.startTS, v), nil
	default:
		return TxnStatus{RolledBack: true}, finishRecord, nil
	}
}

// decidePessStatus is decideStatus for a primary with a pessimistic lock. It is never pushed: it is in
// no reader's way, and a pushed minimum would feed the timestamps computed from it.
func decidePessStatus(primary []byte, q *statusQuery, v *keyView) (TxnStatus, finish, error) {
	switch {
	case v.ownCommitTS != 0 || v.rolledBack:
		return decideMissing(q, v) // the lock was taken by a late request
	case !bytes.Equal(v.lock.Primary, primary) && q.resolvingPessimistic:
		return TxnStatus{}, finishNothing, &PrimaryMismatchError{Key: bytes.Clone(primary), Lock: v.lock.detached()}
	case !bytes.Equal(v.lock.Primary, primary):
		// Somebody has met a prewritten lock that names this key: this one is a leftover.
		return decideMissing(q, v)
	case !expired(v.lock, q.nowTS, q.silentMillis):
		return TxnStatus{}, finishNothing, nil
	case q.resolvingPessimistic:
		return TxnStatus{RolledBack: true, Undecided: true}, finishRelease, nil
	default:
		return TxnStatus{RolledBack: true}, finishRecord, nil
	}
}

// expired reports whether a lock may be rolled back by others: its TTL has run out at nowTS, a timestamp of the
// oracle, and its owner has been silent for its lease, by the clock of the shard that has the lock.
func expired(l *Lock, nowTS tso.Timestamp, silentMillis uint64) bool {
	ttl := ttlInForce(l, nowTS, silentMillis)
	end := uint64(l.StartTS.Physical()) + ttl
	return end < ttl || end < uint64(nowTS.Physical())
}

// ttlInForce returns the TTL of a lock as it counts for those who judge it at nowTS. The oracle's clock may jump
// (a restart, or a step of its machine's clock), which is not silence of the owner: the next heartbeat
// takes the jump into account, and until it is due the lock lives on. No lock lives longer for it than its
// lease, as the shard's own clock measures it.
func ttlInForce(l *Lock, nowTS tso.Timestamp, silentMillis uint64) uint64 {
	age := nowTS.Physical() - l.StartTS.Physical()
	if silentMillis >= l.LeaseMillis || age < 0 {
		return l.TTLMillis
	}
	return max(l.TTLMillis, uint64(age)+l.LeaseMillis-silentMillis)
}

// RecoveryGraceMillis is how long a primary lock lives after a restart of its shard at least, in milliseconds:
// long enough for its owner's next heartbeat.
const RecoveryGraceMillis = 3000

// recoverLock returns a lock as it is held after a restart, with now a fresh timestamp. Pushes and
// heartbeats are in memory only: so a primary may have been promised to commit above any
// timestamp issued before, and to live on. A secondary's minimum must stay: its owner may hold
// a commit_ts already, and the primary may have committed. So must the minimum of an async commit,
// wherever it is: the commit_ts is computed from it.
func recoverLock(key []byte, l Lock, now tso.Timestamp) Lock {
	if bytes.Equal(l.Primary, key) && !l.Async {
		l.MinCommitTS = max(l.MinCommitTS, now+1)
		if age := now.Physical() - l.StartTS.Physical(); age >= 0 {
			l.TTLMillis = max(l.TTLMillis, uint64(age)+RecoveryGraceMillis)
			l.LeaseMillis = RecoveryGraceMillis
		}
	}
	return l
}

func corrupt(key []byte, detail string) error {
	return &CorruptionError{Key: bytes.Clone(key), Detail: detail}
}
