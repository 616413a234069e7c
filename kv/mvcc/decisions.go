package mvcc

import (
	"slices"

	"github.com/percodb/percodb/tso"
)

// This file states the protocol's decisions for engines that keep their records elsewhere than in a State, so that they
// decide by the same functions. Such an engine gathers the Records of a key, has one of the functions decide, and
// carries the decision out only if the records are still the same.

// Records contains the records of one key from the view of one transaction.
type Records struct {
	// Lock is the transaction's own lock if it has one, otherwise another transaction's, or nil. Other is another
	// transaction's lock, or nil.
	Lock, Other *Lock
	// The newest version: NewestCommitTS 0 means none.
	NewestOp                      Op
	NewestStartTS, NewestCommitTS tso.Timestamp
	// The newest committed OpLock above the transaction's start_ts, and the newest use of a shared lock; 0 means none.
	LockCommitTS, LockCommitStartTS, SharedUseTS tso.Timestamp
	// OwnCommitTS is the commit_ts of the transaction's own record on the key, 0 for none.
	OwnCommitTS tso.Timestamp
	// RolledBack: the transaction has a rollback record on the key.
	RolledBack bool
}

func (r *Records) view() *keyView {
	return &keyView{lock: r.Lock, other: r.Other, newest: writeRecord{op: r.NewestOp, startTS: r.NewestStartTS, commitTS: r.NewestCommitTS},
		lockCommitTS: r.LockCommitTS, lockCommitStartTS: r.LockCommitStartTS, sharedUseTS: r.SharedUseTS,
		ownCommitTS: r.OwnCommitTS, rolledBack: r.RolledBack}
}

// SetLocks sets Lock and Other from all locks on the key.
func (r *Records) SetLocks(startTS tso.Timestamp, locks []Lock) {
	r.Lock, r.Other = nil, nil
	for i := range locks {
		if locks[i].StartTS == startTS {
			r.Lock = &locks[i]
		} else if r.Other == nil {
			r.Other = &locks[i]
		}
	}
	if r.Lock == nil {
		r.Lock = r.Other
	}
}

// OwnLock reports whether the transaction has prewritten the key.
func (r *Records) OwnLock(startTS tso.Timestamp) bool { return r.view().ownLock(startTS) }

// HasValue reports whether the newest version has a value.
func (r *Records) HasValue() bool { return hasValue(r.view()) }

// UseStartTS is the start_ts in the status record that a transaction leaves on a key that it has locked shared; IsUse
// reports whether a record's start_ts is one.
func UseStartTS(startTS tso.Timestamp) tso.Timestamp { return useStartTS(startTS) }

// IsUse reports whether the start_ts of a committed lock's record says that the lock was a shared one.
func IsUse(recStartTS tso.Timestamp) bool { return isUse(recStartTS) }

// Snapshot is the timestamp up to which the transaction has seen what others commit.
func (a *PrewriteRequest) Snapshot() tso.Timestamp { return a.snapshot() }

// Snapshot is the timestamp up to which the transaction has seen what others commit.
func (a *AcquireLocksRequest) Snapshot() tso.Timestamp { return a.snapshot() }

// NotifySetOf returns the observers of a mutation of the request, nil if it has none.
func (a *PrewriteRequest) NotifySetOf(m *Mutation) *NotifySet { return m.notifySet(a.Notify) }

// ValidateKeys refuses keys that do not ascend strictly.
func ValidateKeys(keys [][]byte) error { return validateKeys(keys) }

// ValidateUpTo refuses cells to clear whose keys do not ascend strictly.
func ValidateUpTo(observer uint64, cells []NotifyUpTo) error { return validateUpTo(observer, cells) }

// Validate refuses a malformed request.
func (a *PrewriteRequest) Validate() error {
	_, err := validateMutations(a.Mutations, a.Notify)
	return err
}

// ValidateCommitTS refuses a commit_ts that is not above the start_ts; 0 stands for a rollback.
func ValidateCommitTS(startTS, commitTS tso.Timestamp) error {
	if commitTS != 0 && commitTS <= startTS {
		return &InvalidRequestError{Detail: "commit_ts is not above start_ts"}
	}
	return nil
}

// Validate refuses a malformed request. A MaxBytes of 0 is not.
func (a *ScanRequest) Validate() error {
	switch {
	case len(a.Spans) == 0 || a.Limit <= 0 || a.ReadTS == tso.MaxTimestamp:
		return &InvalidRequestError{Detail: "scan without span, limit or timestamp"}
	case !ascendingSpans(a.Spans):
		return &InvalidRequestError{Detail: "the spans of a scan are empty, overlap or do not ascend"}
	}
	return nil
}

// ReadVerdict is the action of a read that encounters a lock.
type ReadVerdict uint8

// The verdicts about a lock.
const (
	ReadPass    ReadVerdict = iota // as if it were not there
	ReadThrough                    // its value is the committed one
	ReadLocked                     // *KeyLockedError
)

func readVerdictOf(v readVerdict) ReadVerdict {
	switch v {
	case readPass:
		return ReadPass
	case readThrough:
		return ReadThrough
	default:
		return ReadLocked
	}
}

// DecideRead decides about the lock on key for a read at o.ReadTS.
func DecideRead(key []byte, l *Lock, o *ReadOptions) ReadVerdict {
	return readVerdictOf(decideRead(key, l, stateDurable, false, o))
}

// DecideRefreshLock decides about a lock on a key that was read: ReadPass if it cannot commit at or below q.ToTS.
func DecideRefreshLock(q *RefreshRequest, l *Lock) ReadVerdict {
	return readVerdictOf(decideRefreshLock(q, l, stateDurable))
}

// DecideRefresh reports whether a version is a change of another transaction in (q.FromTS, q.ToTS].
func DecideRefresh(q *RefreshRequest, startTS, commitTS tso.Timestamp) bool {
	return decideRefresh(q, &writeRecord{startTS: startTS, commitTS: commitTS})
}

// PrewriteVerdict is the decision about one mutation: among failures the greatest is to be reported.
type PrewriteVerdict = prewriteVerdict

// The verdicts without an error.
const (
	PrewriteLock      = prewriteLock      // lock the key
	PrewriteCheck     = prewriteCheck     // the key is as required; write nothing
	PrewriteDuplicate = prewriteDuplicate // the transaction's lock exists; leave it unchanged
)

// DecidePrewrite decides about one mutation of a request. With an error the verdict is its severity.
func DecidePrewrite(a *PrewriteRequest, m *Mutation, r *Records) (PrewriteVerdict, error) {
	v := r.view()
	verdict := decidePrewrite(a.StartTS, a.snapshot(), m, v)
	if verdict.failed() {
		return verdict, prewriteError(verdict, a, m, v)
	}
	return verdict, nil
}

// CommitsVersion reports whether the commit of a lock of this kind leaves a version; otherwise it leaves a status record.
func CommitsVersion(op Op) bool { return decideRecord(op, 0, 0) == recordVersion }

// Finish is the action for a key of a transaction whose outcome is decided.
type Finish = finish

// The actions.
const (
	FinishNothing  = finishNothing  // it has been done before
	FinishCommit   = finishCommit   // lock → write record
	FinishRollback = finishRollback // remove the lock
	FinishRecord   = finishRecord   // remove the lock, if there is one, and leave a rollback record
	FinishRelease  = finishRelease  // drop the pessimistic lock
)

// DecideCommit decides about one key of a commit.
func DecideCommit(key []byte, startTS, commitTS tso.Timestamp, primary bool, r *Records) (Finish, error) {
	return decideCommit(key, startTS, commitTS, primary, r.view())
}

// DecideRollback decides about one key of a rollback by the owner.
func DecideRollback(startTS tso.Timestamp, r *Records) (Finish, error) {
	return decideRollback(startTS, r.view())
}

// DecideResolve decides about one key of a transaction whose outcome is decided: commitTS 0 means rolled back.
func DecideResolve(key []byte, startTS, commitTS tso.Timestamp, r *Records) (Finish, error) {
	return decideResolve(key, startTS, commitTS, r.view())
}

// DecideStatus returns a transaction's outcome according to its primary. pushTS != 0 means: raise the lock's MinCommitTS
// to it. silentMillis is for how long the owner of the lock has sent no request for it.
func DecideStatus(a *CheckTxnStatusRequest, silentMillis uint64, r *Records) (st TxnStatus, do Finish, pushTS tso.Timestamp, err error) {
	q := a.query()
	q.silentMillis = silentMillis
	st, do, pushTS, err = decideStatus(a.Primary, &q, r.view())
	if err == nil && st.CommitTS == 0 && !st.RolledBack {
		lock := r.Lock.detached()
		lock.MinCommitTS = max(lock.MinCommitTS, pushTS)
		lock.TTLMillis = ttlInForce(&lock, q.nowTS, silentMillis)
		st.Lock = &lock
	}
	return st, do, pushTS, err
}

// HeartbeatError returns the reason why a transaction has no lock on its primary, nil if it has one.
func HeartbeatError(primary []byte, startTS tso.Timestamp, r *Records) error {
	v := r.view()
	switch {
	case !v.ownLock(startTS) && !v.ownPess(startTS):
		return heartbeatError(primary, startTS, v)
	case !slices.Equal(v.lock.Primary, primary):
		return &PrimaryMismatchError{Key: slices.Clone(primary), Lock: v.lock.detached()}
	}
	return nil
}

// AcquireVerdict is the decision about one key of a request for pessimistic locks.
type AcquireVerdict uint8

// The verdicts.
const (
	AcquireTake AcquireVerdict = iota // the key is free, or others hold it shared, and so may the transaction
	AcquireHeld                       // the transaction has a sufficient lock, or may have it from now on
	AcquireWait                       // another transaction has locked it
)

// DecideAcquire decides about one key, for which nobody queues.
func DecideAcquire(a *AcquireLocksRequest, r *Records) (AcquireVerdict, error) {
	switch v := r.view(); decideAcquire(a.StartTS, a.Shared, false, v) {
	case acquireTake, acquireJoin:
		return AcquireTake, nil
	case acquireHeld:
		return AcquireHeld, nil
	case acquireWait:
		return AcquireWait, nil
	case acquireCommitted:
		return AcquireWait, &AlreadyCommittedError{CommitTS: v.ownCommitTS}
	default:
		return AcquireWait, &RolledBackError{StartTS: a.StartTS}
	}
}

// LockedAt returns the timestamp as of which a key is locked: the snapshot, or a later commit on the key.
func LockedAt(a *AcquireLocksRequest, r *Records) tso.Timestamp {
	return lockedAt(a.snapshot(), a.Shared, r.view())
}

// DecideRelease reports whether a request to release pessimistic locks up to bound means this one.
func DecideRelease(startTS, bound tso.Timestamp, r *Records) bool {
	return decideRelease(startTS, bound, r.view())
}

// Secondaries gathers the status of an async commit from its secondaries, key by key.
type Secondaries struct {
	Status  SecondaryStatus
	Missing []int // indexes of the keys that have neither lock nor record
	alive   bool
}

// Add adds key i.
func (s *Secondaries) Add(a *CheckSecondaryLocksRequest, i int, silentMillis uint64, r *Records) {
	v := r.view()
	switch decideSecondary(a.StartTS, v) {
	case secondaryLocked:
		s.Status.Locks = append(s.Status.Locks, KeyLockedError{Key: slices.Clone(a.Keys[i]), Lock: v.lock.detached()})
		s.alive = s.alive || !a.ProcessEnded && !expired(v.lock, a.NowTS, silentMillis)
	case secondaryCommitted:
		s.Status.CommitTS = v.ownCommitTS
	case secondaryRolledBack:
		s.Status.RolledBack = true
	case secondaryMissing:
		s.Missing = append(s.Missing, i)
	}
}

// RollBackMissing reports whether the missing keys are to get rollback records, which decide the transaction.
func (s *Secondaries) RollBackMissing(a *CheckSecondaryLocksRequest) bool {
	return len(s.Missing) > 0 && decideMissingSecondary(&s.Status, a.Owner, a.NowTS != 0 || a.ProcessEnded, s.alive)
}
