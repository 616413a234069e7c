package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/tso"
)

// This file contains the protocol's decisions. They depend only on the gathered records and the request, so that the
// server, its model and the simulation execute the same code.

// keyView contains the records of one key from the view of one transaction, whose start_ts is known.
type keyView struct {
	// lock is the lock on the key: the transaction's own if it has one, otherwise another transaction's, or nil.
	lock *Lock
	// other is another transaction's shared lock if lock is the transaction's own, or nil.
	other *Lock
	// newest is the newest version; commitTS 0 means none.
	newest writeRecord
	// lockCommitTS is the commit_ts of the newest committed OpLock, 0 for none; ...StartTS its
	// transaction.
	lockCommitTS, lockCommitStartTS tso.Timestamp
	// sharedUseTS is the timestamp of the newest recorded use of a shared lock, 0 for none.
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

// prewriteVerdict is the decision about one mutation. Among the failures of one request the greatest is reported:
// permanent errors take precedence over transient ones.
type prewriteVerdict uint8

const (
	prewriteLock      prewriteVerdict = iota // lock the key
	prewriteCheck                            // the key is as required; write nothing
	prewriteDuplicate                        // the transaction's lock exists; leave it unchanged

	prewriteLocked     // *KeyLockedError
	prewriteLost       // *LockLostError
	prewriteExists     // *KeyExistsError
	prewriteConflict   // *WriteConflictError
	prewriteRolledBack // *RolledBackError
	prewriteCommitted  // *AlreadyCommittedError
)

func (p prewriteVerdict) failed() bool { return p >= prewriteLocked }

// decidePrewrite decides about one mutation of a transaction whose snapshot is readTS. A conflict takes precedence over
// an existing key: a value outside of the snapshot must not be revealed as a duplicate. A key that was locked before is
// unchanged if that very lock still exists, or if, the lock lost, no other transaction has locked it and nothing newer
// was committed.
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

// commitRecord is the record that a commit leaves on a key, in one phase or two.
type commitRecord uint8

const (
	recordNothing commitRecord = iota
	recordVersion              // a write record
	recordLock                 // a status record: the next transaction that locks the key may have to advance its snapshot
	recordUse                  // a status record, for transactions that have lost an exclusive lock on the key
)

// decideRecord decides about one mutation. A key that was locked and not written gets a record as well: its lock may
// have been lost, and the next holder must not be undone by a transaction that has lost the lock; and a status check at
// the primary after the lock is removed must find the commit. lostTS is at or above the start_ts of every transaction
// that may have lost a lock here without having ended; a transaction that began at or below the safe point can no longer
// prewrite.
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

// mayCommitAt reports whether a one-phase or async commit may take commitTS; 0 means that none could be obtained. limit
// 0 means any.
func mayCommitAt(commitTS, limit tso.Timestamp) bool {
	return commitTS != 0 && (limit == 0 || commitTS <= limit)
}

// finish is the action for a key of a transaction whose outcome is decided.
type finish uint8

const (
	finishNothing  finish = iota // it has been done before
	finishCommit                 // lock → write record
	finishRollback               // remove the lock
	finishRecord                 // remove the lock, if there is one, and leave a rollback record
	finishRelease                // drop the pessimistic lock
)

// decideCommit decides about one key of a commit. primary means that the key is the primary, whose lock may have been
// pushed; on a secondary that is impossible.
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

// releaseStale releases the pessimistic lock that a delayed request acquired for a transaction that has ended. A
// pessimistic lock never becomes a version.
func releaseStale(startTS tso.Timestamp, v *keyView) finish {
	if v.ownPess(startTS) {
		return finishRelease
	}
	return finishNothing
}

// decideRollback decides about one key of a rollback by the owner.
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

// decideResolve decides about one key of a transaction whose outcome is decided: commitTS 0 means rolled back.
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

// statusQuery is a status check of a primary.
type statusQuery struct {
	startTS, callerTS, nowTS tso.Timestamp
	rollbackIfMissing        bool
	resolvingPessimistic     bool // for the sake of a pessimistic lock
	processEnded             bool // the TTL does not matter
	forceSync                bool // the transaction is known not to be an async commit
	// silentMillis is for how long the owner of the lock has sent no request for it, by the shard's clock.
	silentMillis uint64
}

// expired reports whether the lock may be rolled back by others. If its process has ended nobody else will.
func (q *statusQuery) expired(l *Lock) bool {
	return q.processEnded || expired(l, q.nowTS, q.silentMillis)
}

// decideStatus returns a transaction's outcome according to its primary, deciding it if the lock has expired or the
// caller requests it. pushTS != 0 means: raise the lock's MinCommitTS to it. If no outcome is returned or decided the
// lock is alive.
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
		// The secondaries decide: if they are all locked, the transaction has committed. A push would change the
		// commit_ts that others compute from this lock.
		return TxnStatus{}, finishNothing, 0, nil
	case q.expired(v.lock):
		return TxnStatus{RolledBack: true}, finishRecord, 0, nil
	case v.lock.Async:
		// A push would be lost in a crash: the minima of async commits are not raised then.
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

// decidePessStatus is decideStatus for a primary with a pessimistic lock. It is never pushed: it blocks no reader, and a
// pushed minimum would affect the timestamps computed from it.
func decidePessStatus(primary []byte, q *statusQuery, v *keyView) (TxnStatus, finish, error) {
	switch {
	case v.ownCommitTS != 0 || v.rolledBack:
		return decideMissing(q, v) // the lock was taken by a late request
	case !bytes.Equal(v.lock.Primary, primary) && q.resolvingPessimistic:
		return TxnStatus{}, finishNothing, &PrimaryMismatchError{Key: bytes.Clone(primary), Lock: v.lock.detached()}
	case !bytes.Equal(v.lock.Primary, primary):
		// The caller has encountered a prewritten lock that names this key as its primary: this lock is a leftover.
		return decideMissing(q, v)
	case !q.expired(v.lock):
		return TxnStatus{}, finishNothing, nil
	case q.resolvingPessimistic:
		return TxnStatus{RolledBack: true, Undecided: true}, finishRelease, nil
	default:
		return TxnStatus{RolledBack: true}, finishRecord, nil
	}
}

// expired reports whether a lock may be rolled back by others: its TTL has passed at nowTS, a timestamp of the oracle,
// and its owner has been silent for its lease, by the clock of the shard that has the lock.
func expired(l *Lock, nowTS tso.Timestamp, silentMillis uint64) bool {
	ttl := ttlInForce(l, nowTS, silentMillis)
	end := uint64(l.StartTS.Physical()) + ttl
	return end < ttl || end < uint64(nowTS.Physical())
}

// ttlInForce returns the effective TTL of a lock at nowTS. A jump of the oracle's clock (a restart, or a step of its
// machine's clock) is not silence of the owner: the next heartbeat takes the jump into account, and until it is due the
// lock is alive. This prolongs no lock beyond its lease, as measured by the shard's own clock.
func ttlInForce(l *Lock, nowTS tso.Timestamp, silentMillis uint64) uint64 {
	age := nowTS.Physical() - l.StartTS.Physical()
	if silentMillis >= l.LeaseMillis || age < 0 {
		return l.TTLMillis
	}
	return max(l.TTLMillis, uint64(age)+l.LeaseMillis-silentMillis)
}

// RecoveryGraceMillis is the minimal validity of a primary lock after a restart of its shard, in milliseconds: long
// enough for its owner's next heartbeat.
const RecoveryGraceMillis = 3000

// recoverLock returns a lock as it is after a restart, with now a new timestamp. Pushes and heartbeats are in memory
// only, so a primary may have been promised to commit above any timestamp issued before, and to stay alive. A
// secondary's minimum must be kept: its owner may have a commit_ts already, and the primary may have committed. So must
// the minimum of an async commit on any key: the commit_ts is computed from it.
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
