package mvcc

import (
	"fmt"

	"github.com/percodb/percodb/tso"
)

// Op is what a mutation does to its key.
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
)

// Mutation is one key's change in a write set. Key and Value belong to the caller and are not kept
// after the request returns.
type Mutation struct {
	Op         Op
	MustBeNew  bool // prewrite fails with *KeyExistsError if the key has a visible value
	Key, Value []byte
}

// Lock is what prewrite leaves on a key until the transaction's fate is decided.
type Lock struct {
	Op          Op
	StartTS     tso.Timestamp
	Primary     []byte
	TTLMillis   uint64        // the lock may be rolled back once StartTS's physical part + TTL has passed
	MinCommitTS tso.Timestamp // the transaction commits at or above this
	TxnSize     uint32        // number of keys of the whole transaction, a hint for the resolver
	Value       []byte
}

// TxnStatus is the fate of a transaction as its primary tells it. Exactly one of CommitTS != 0,
// RolledBack and Lock != nil holds.
type TxnStatus struct {
	CommitTS   tso.Timestamp
	RolledBack bool
	Lock       *Lock // still alive; Lock.MinCommitTS shows whether the caller's read was let pass
}

// KeyLockedError: another transaction's lock is in the way of a read or a write.
type KeyLockedError struct {
	Key  []byte
	Lock Lock
}

func (e *KeyLockedError) Error() string {
	return fmt.Sprintf("key %x is locked by transaction %d (primary %x)", e.Key, e.Lock.StartTS, e.Lock.Primary)
}

// WriteConflictError: a write record newer than the transaction's start_ts exists.
type WriteConflictError struct {
	Key                                              []byte
	StartTS, ConflictingStartTS, ConflictingCommitTS tso.Timestamp
}

func (e *WriteConflictError) Error() string {
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

// TxnNotFoundError: the primary holds neither lock nor record, and the caller did not ask to decide.
type TxnNotFoundError struct{ StartTS tso.Timestamp }

func (e *TxnNotFoundError) Error() string { return fmt.Sprintf("transaction %d not found", e.StartTS) }

// PrimaryMismatchError: the key asked about as a primary carries a lock with another primary.
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

// TSInFutureError: a read asked for a timestamp the oracle has not issued yet.
type TSInFutureError struct{ TS tso.Timestamp }

func (e *TSInFutureError) Error() string { return fmt.Sprintf("timestamp %d was never issued", e.TS) }
