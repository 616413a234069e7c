package mvcc

import (
	"fmt"

	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// Op is the effect of a mutation on its key.
type Op uint8

// The kinds of mutation, lock and write record.
const (
	// OpPut stores a value.
	OpPut Op = iota + 1
	// OpDelete stores a tombstone.
	OpDelete
	// OpLock changes nothing but conflicts as a write does.
	OpLock
	// OpCheckNotExists locks and writes nothing: prewrite fails if the key exists.
	OpCheckNotExists
	// OpPessimistic is the kind of a lock from AcquireLocks: it excludes other writers, never blocks a reader, exists in
	// memory only, and is never a mutation.
	OpPessimistic
	// OpCheckShared writes nothing: prewrite fails unless the shared lock granted as of LockedAt is still held, or is
	// lost and no transaction has locked the key exclusively or committed on it since.
	OpCheckShared
)

// LeavesLock reports whether prewrite leaves a lock for the mutation.
func (op Op) LeavesLock() bool { return op == OpPut || op == OpDelete || op == OpLock }

// Mutation is one key's change in a write set. Key and Value belong to the caller and are not kept
// after the request returns.
type Mutation struct {
	Op        Op
	MustBeNew bool // prewrite fails with *KeyExistsError if the key has a visible value
	// Notify selects the observers to notify when the mutation, an OpPut or OpDelete, commits: 0 none, else 1 + the index
	// of a set in the request's Notify.
	Notify     uint16
	Key, Value []byte
	// LockedAt is the timestamp as of which AcquireLocks granted the key; 0 means that the key was not locked. The key
	// must not have changed since.
	LockedAt tso.Timestamp
}

// Lock is the lock that prewrite leaves on a key until the transaction's outcome is decided.
type Lock struct {
	Op Op
	// Async: the transaction is committed once all its keys are locked like this, at the largest
	// MinCommitTS, which therefore never changes.
	Async bool
	// Shared, of an OpPessimistic lock: others may hold the key in the same way.
	Shared    bool
	TxnSize   uint32 // number of keys of the whole transaction, a hint for the resolver
	StartTS   tso.Timestamp
	Primary   []byte
	TTLMillis uint64 // the lock may be rolled back once StartTS's physical part + TTL has passed
	// LeaseMillis is how long after each request of its owner the lock is valid, whatever the oracle's clock shows: see
	// ttlInForce. 0: the TTL alone counts. HeardMillis is the time of the last such request, by lockTable.millis.
	// Neither leaves the shard's memory.
	LeaseMillis, HeardMillis uint64
	// Process identifies the process of the transaction, so that its locks are found when it ends: see ScanLock. 0: unknown.
	// It does not leave the shard's memory either.
	Process     uint64
	MinCommitTS tso.Timestamp // the transaction commits at or above this
	Value       []byte
	// ForUpdateTS, of an OpPessimistic lock: nothing newer was committed on the key when it was granted.
	ForUpdateTS tso.Timestamp
	// Secondaries, of the primary of an async commit: the other keys of the transaction.
	Secondaries [][]byte
	// Notify names the observers whose cells are written when the lock commits; nil: none.
	Notify *NotifySet
}

// Expiry is the last moment, in milliseconds of the oracle's clock, at which the lock may not be rolled back.
func (l *Lock) Expiry() int64 { return l.StartTS.Physical() + int64(l.TTLMillis) }

// LockInfo is a lock as ScanLock lists it. A key with several holders has one for each. Waiters are the transactions
// that wait for the key in AcquireLocks, in the order in which they will be granted it.
type LockInfo struct {
	Key     []byte
	Lock    Lock
	Waiters []tso.Timestamp
}

// TxnStatus is the status of a transaction according to its primary. Exactly one of CommitTS != 0, RolledBack and Lock
// != nil holds.
type TxnStatus struct {
	CommitTS   tso.Timestamp
	RolledBack bool
	// Undecided qualifies RolledBack: the primary is not locked, but no record keeps it from being locked again. It is
	// the answer to a status check on behalf of a pessimistic lock, and justifies only the release of pessimistic locks.
	// It must not be cached.
	Undecided bool
	Lock      *Lock // still alive; Lock.MinCommitTS shows whether it was pushed above the caller's read
}

// SecondaryStatus is the status of an async commit according to its secondaries. If neither CommitTS != 0 nor
// RolledBack, Locks contains the transaction's locks on the requested keys: if there is one for each key, none is
// missing there; if fewer, the transaction is undecided and alive.
type SecondaryStatus struct {
	CommitTS   tso.Timestamp
	RolledBack bool
	Locks      []KeyLockedError
}

// KeyLockedError: another transaction's lock is in the way of a read or a write.
type KeyLockedError struct {
	Key  []byte
	Lock Lock
}

func (e *KeyLockedError) Error() string {
	return fmt.Sprintf("key %x is locked by transaction %d (primary %x)", e.Key, e.Lock.StartTS, e.Lock.Primary)
}

// WriteConflictError: a write record newer than the transaction's start_ts exists, or, according to Cause, the
// transaction cannot commit for another reason.
type WriteConflictError struct {
	Key                                              []byte
	StartTS, ConflictingStartTS, ConflictingCommitTS tso.Timestamp
	Cause                                            ConflictCause
}

// ConflictCause is the reason why a transaction cannot commit.
type ConflictCause uint8

const (
	// CauseWrite: another transaction has changed or locked Key, or is about to.
	CauseWrite ConflictCause = iota
	// CauseRolledBack: others have rolled the transaction back, since its locks had expired. Its keys need not have been
	// changed.
	CauseRolledBack
	// CauseLockLost: the transaction has lost its lock on Key, and another one has locked it since.
	CauseLockLost
)

func (e *WriteConflictError) Error() string {
	switch e.Cause {
	case CauseRolledBack:
		return fmt.Sprintf("transaction %d was rolled back by others", e.StartTS)
	case CauseLockLost:
		return fmt.Sprintf("transaction %d has lost its lock on key %x to another", e.StartTS, e.Key)
	}
	return fmt.Sprintf("write conflict on key %x: transaction %d met a commit at %d", e.Key, e.StartTS, e.ConflictingCommitTS)
}

// KeyExistsError: a mutation with MustBeNew met an existing value.
type KeyExistsError struct{ Key []byte }

func (e *KeyExistsError) Error() string { return fmt.Sprintf("key %x exists", e.Key) }

// AlreadyCommittedError: the request is a late duplicate of a transaction that has committed.
type AlreadyCommittedError struct{ CommitTS tso.Timestamp }

func (e *AlreadyCommittedError) Error() string {
	return fmt.Sprintf("transaction has already committed at %d", e.CommitTS)
}

// RolledBackError: the transaction has been rolled back, by its owner or by a resolver.
type RolledBackError struct{ StartTS tso.Timestamp }

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("transaction %d was rolled back", e.StartTS)
}

// LockNotFoundError: commit or heartbeat found neither lock nor record of the transaction.
type LockNotFoundError struct {
	Key     []byte
	StartTS tso.Timestamp
}

func (e *LockNotFoundError) Error() string {
	return fmt.Sprintf("no lock of transaction %d on key %x", e.StartTS, e.Key)
}

// CommitTSExpiredError: the primary's lock was pushed above the commit_ts; retry at a fresh one.
type CommitTSExpiredError struct{ MinCommitTS tso.Timestamp }

func (e *CommitTSExpiredError) Error() string {
	return fmt.Sprintf("commit_ts is below the lock's minimum %d", e.MinCommitTS)
}

// LockLostError: the pessimistic lock that a mutation relies on is lost or replaced, and the key may have changed. The
// transaction must be run again.
type LockLostError struct {
	Key               []byte
	StartTS, LockedAt tso.Timestamp
}

func (e *LockLostError) Error() string {
	return fmt.Sprintf("transaction %d has lost its lock on key %x, granted as of %d", e.StartTS, e.Key, e.LockedAt)
}

// RefreshConflictError: a key that was read has changed; StartTS and CommitTS are those of the transaction that changed
// it.
type RefreshConflictError struct {
	Key               []byte
	StartTS, CommitTS tso.Timestamp
}

func (e *RefreshConflictError) Error() string {
	return fmt.Sprintf("key %x, which was read, was changed by transaction %d at %d", e.Key, e.StartTS, e.CommitTS)
}

// DeadlockError: waiting for the lock would have closed a circle of waiting transactions.
type DeadlockError = waitgraph.DeadlockError

// TxnNotFoundError: the primary has neither lock nor record, and the caller did not request a decision.
type TxnNotFoundError struct{ StartTS tso.Timestamp }

func (e *TxnNotFoundError) Error() string { return fmt.Sprintf("transaction %d not found", e.StartTS) }

// PrimaryMismatchError: the key given as a primary has a lock with another primary.
type PrimaryMismatchError struct {
	Key  []byte
	Lock Lock
}

func (e *PrimaryMismatchError) Error() string {
	return fmt.Sprintf("key %x is not the primary of transaction %d", e.Key, e.Lock.StartTS)
}

// TooOldError: the timestamp lies at or below the GC safe point.
type TooOldError struct{ TS, SafePoint tso.Timestamp }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("timestamp %d is at or below the GC safe point %d", e.TS, e.SafePoint)
}

// LockBoundError: the transaction began above the bound up to which the shard may accept locks. Nothing was done; the
// request may be repeated when the bound has been raised.
type LockBoundError struct{ StartTS, Bound tso.Timestamp }

func (e *LockBoundError) Error() string {
	return fmt.Sprintf("transaction %d began above the lock bound %d, which the directory has not raised", e.StartTS, e.Bound)
}

// TSInFutureError: a read has a timestamp that the oracle has not issued yet.
type TSInFutureError struct{ TS tso.Timestamp }

func (e *TSInFutureError) Error() string { return fmt.Sprintf("timestamp %d was never issued", e.TS) }
