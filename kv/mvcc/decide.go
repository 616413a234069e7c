package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/tso"
)

// This file holds the protocol's decisions. They are functions of what was gathered and of the
// request alone, so that the server, a model of it and a simulation run the same ones.

// keyView is what the records of one key say to one transaction, start_ts known.
type keyView struct {
	// lock is the lock on the key, anybody's, or nil.
	lock *Lock
	// newest is the newest version; commitTS 0 means none.
	newest writeRecord
	// lockCommitTS is the commit_ts of the newest committed OpLock, 0 for none; ...StartTS its
	// transaction.
	lockCommitTS, lockCommitStartTS tso.Timestamp
	// ownCommitTS is the commit_ts of the transaction's own record on this key, 0 for none.
	ownCommitTS tso.Timestamp
	// rolledBack: the transaction has a rollback record on this key.
	rolledBack bool
}

func (v *keyView) ownLock(startTS tso.Timestamp) bool {
	return v.lock != nil && v.lock.StartTS == startTS
}

// prewriteVerdict says what to do with one mutation. Among the failures of one request the
// greatest wins: what is definite comes before what may pass.
type prewriteVerdict uint8

const (
	prewriteLock      prewriteVerdict = iota // lock the key
	prewriteCheck                            // the key is as it should be, write nothing
	prewriteDuplicate                        // the transaction's lock is there; leave it as it is

	prewriteLocked     // *KeyLockedError
	prewriteExists     // *KeyExistsError
	prewriteConflict   // *WriteConflictError
	prewriteRolledBack // *RolledBackError
	prewriteCommitted  // *AlreadyCommittedError
)

func (p prewriteVerdict) failed() bool { return p >= prewriteLocked }

// decidePrewrite judges one mutation. A conflict is found before an existing key is complained
// about: a value outside of the snapshot must not leak as a duplicate.
func decidePrewrite(startTS tso.Timestamp, m *Mutation, v *keyView) prewriteVerdict {
	switch {
	case v.ownLock(startTS):
		return prewriteDuplicate
	case v.ownCommitTS != 0:
		return prewriteCommitted
	case v.rolledBack:
		return prewriteRolledBack
	case v.newest.commitTS > startTS || v.lockCommitTS > startTS:
		return prewriteConflict
	case v.lock != nil:
		return prewriteLocked
	case (m.MustBeNew || m.Op == OpCheckNotExists) && v.newest.commitTS != 0 && v.newest.op == OpPut:
		return prewriteExists
	case m.Op == OpCheckNotExists:
		return prewriteCheck
	default:
		return prewriteLock
	}
}

// nextTS returns the computed timestamp after ts within its tick; ok is false when the tick has
// none left, and only the oracle can give the next one.
func nextTS(ts tso.Timestamp) (next tso.Timestamp, ok bool) {
	if ts%tso.Tick == tso.Tick-1 {
		return 0, false
	}
	return ts + 1, true
}

// mayCommitAt reports whether a one-phase commit may take commitTS; 0 means that there was none to
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
		return finishNothing, nil
	case v.ownCommitTS != 0:
		return finishNothing, corrupt(key, "transaction committed at two timestamps")
	case v.rolledBack:
		return finishNothing, &RolledBackError{StartTS: startTS}
	default:
		return finishNothing, &LockNotFoundError{Key: bytes.Clone(key), StartTS: startTS}
	}
}

// decideRollback judges one key of a rollback by the owner.
func decideRollback(startTS tso.Timestamp, v *keyView) (finish, error) {
	switch {
	case v.ownLock(startTS):
		return finishRecord, nil
	case v.ownCommitTS != 0:
		return finishNothing, &AlreadyCommittedError{CommitTS: v.ownCommitTS}
	case v.rolledBack:
		return finishNothing, nil
	default:
		return finishRecord, nil
	}
}

// decideResolve judges one key of a transaction whose fate is decided: commitTS 0 means rolled back.
func decideResolve(key []byte, startTS, commitTS tso.Timestamp, v *keyView) (finish, error) {
	switch {
	case !v.ownLock(startTS):
		return finishNothing, nil
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
}

// decideStatus tells a transaction's fate by its primary, deciding it if the lock has expired or
// the caller says so. pushTS != 0 means: raise the lock's MinCommitTS to it.
func decideStatus(primary []byte, q *statusQuery, v *keyView) (st TxnStatus, do finish, pushTS tso.Timestamp, err error) {
	if !v.ownLock(q.startTS) {
		switch {
		case v.ownCommitTS != 0:
			return TxnStatus{CommitTS: v.ownCommitTS}, finishNothing, 0, nil
		case v.rolledBack:
			return TxnStatus{RolledBack: true}, finishNothing, 0, nil
		case !q.rollbackIfMissing:
			return TxnStatus{}, finishNothing, 0, &TxnNotFoundError{StartTS: q.startTS}
		default:
			return TxnStatus{RolledBack: true}, finishRecord, 0, nil
		}
	}
	if !bytes.Equal(v.lock.Primary, primary) {
		return TxnStatus{}, finishNothing, 0, &PrimaryMismatchError{Key: bytes.Clone(primary), Lock: v.lock.detached()}
	}
	if expired(v.lock, q.nowTS) {
		return TxnStatus{RolledBack: true}, finishRecord, 0, nil
	}
	// A caller from the future must not push: the owner could not commit until then.
	if q.callerTS != 0 && q.callerTS <= q.nowTS && q.callerTS >= v.lock.MinCommitTS {
		pushTS = q.callerTS + 1
	}
	return TxnStatus{}, finishNothing, pushTS, nil
}

// expired reports whether a lock may be rolled back by others. Time is the oracle's.
func expired(l *Lock, nowTS tso.Timestamp) bool {
	end := uint64(l.StartTS.Physical()) + l.TTLMillis
	return end < l.TTLMillis || end < uint64(nowTS.Physical())
}

// readVerdict says what a read does about a lock.
type readVerdict uint8

const (
	readPass    readVerdict = iota // as if it were not there
	readThrough                    // its value is the committed one
	readWait                       // its state is about to change
	readLocked                     // *KeyLockedError
)

// decideRead judges the lock on key for a read.
func decideRead(key []byte, l *Lock, state entryState, onePC bool, o *ReadOptions) readVerdict {
	if l.Op != OpPut && l.Op != OpDelete {
		return readPass
	}
	if o.ReadTS == tso.MaxTimestamp {
		return decideLatestRead(key, l, state, onePC)
	}
	if l.MinCommitTS > o.ReadTS {
		return readPass
	}
	for _, startTS := range o.Bypass {
		if startTS == l.StartTS {
			return readPass
		}
	}
	for i := range o.Resolved {
		if o.Resolved[i].StartTS != l.StartTS {
			continue
		}
		if o.Resolved[i].CommitTS <= o.ReadTS {
			return readThrough
		}
		return readPass
	}
	if state != stateDurable {
		return readWait
	}
	return readLocked
}

// decideLatestRead judges a read of the latest committed value, which has no timestamp to raise
// max_ts to. A primary that waits for its commit is not committed; anything else may be.
func decideLatestRead(key []byte, l *Lock, state entryState, onePC bool) readVerdict {
	switch {
	case onePC || state == stateFinishing:
		return readWait
	case bytes.Equal(l.Primary, key):
		return readPass
	case state == stateInflight:
		return readWait
	default:
		return readLocked
	}
}

// recoverLock returns a lock as it is held after a restart, with now a fresh timestamp. Pushes and
// heartbeats are in memory only: so a primary may have been promised to commit above any
// timestamp issued before, and to live on. A secondary's minimum must stay: its owner may hold
// a commit_ts already, and the primary may have committed.
func recoverLock(key []byte, l Lock, now tso.Timestamp) Lock {
	const grace = 3000
	if bytes.Equal(l.Primary, key) {
		l.MinCommitTS = max(l.MinCommitTS, now+1)
		if age := now.Physical() - l.StartTS.Physical(); age >= 0 {
			l.TTLMillis = max(l.TTLMillis, uint64(age)+grace)
		}
	}
	return l
}

func corrupt(key []byte, detail string) error {
	return &CorruptionError{Key: bytes.Clone(key), Detail: detail}
}
