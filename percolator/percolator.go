package percolator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Reader reads one snapshot overlaid with the transaction's own writes.
type Reader interface {
	// StartTS is the transaction's identity. The snapshot of a pessimistic or read committed transaction may be later,
	// see Txn.ReadTS.
	StartTS() tso.Timestamp
	// Get returns the value of key, or nil. The value is valid until the transaction ends.
	Get(ctx context.Context, key []byte) ([]byte, error)
	// BatchGet answers keys in the order given; values[i] is nil where keys[i] is absent.
	BatchGet(ctx context.Context, keys [][]byte) (values [][]byte, err error)
	// Scan iterates over span; the caller closes the iterator before the transaction ends.
	Scan(ctx context.Context, span kv.Span, opts ScanOptions) Iterator
	// ScanSpans is Scan of several spans, one after the other, in reverse from the last to the first. They ascend, are
	// disjoint and not empty, and must not be changed until the iterator is closed. One request contains many of them.
	ScanSpans(ctx context.Context, spans []kv.Span, opts ScanOptions) Iterator
	// Walk passes all pairs of spans, which are as for ScanSpans, to w, and returns their number. It costs less than an iterator.
	Walk(ctx context.Context, spans []kv.Span, w Walk) (int64, error)
	// Beside returns a reader of the same snapshot for another goroutine; nil if the transaction has writes to lay over it, or has
	// to know what it has read. It must not be used after the transaction's next write or end.
	Beside() Reader
}

// Writer buffers writes until Commit. Keys and values are kept, not copied: the caller hands them over.
type Writer interface {
	Put(key, value []byte) error
	// Insert is Put of a key that must be new: Commit fails with *mvcc.KeyExistsError if it exists.
	// A key that this transaction has deleted may be inserted again.
	Insert(key, value []byte) error
	Delete(key []byte) error
	// LockKeys makes the transaction conflict with writers of keys without changing them.
	LockKeys(ctx context.Context, keys ...[]byte) error
}

// ScanOptions: the zero value scans forward with growing pages.
type ScanOptions struct {
	Reverse  bool
	PageHint int // rows expected to be read; the first page has this size. 0: default
	KeysOnly bool
	// ReadAhead: a long scan requests a page while the rows of the page before are being returned. The iterator must be
	// closed before the transaction ends.
	ReadAhead bool
	// Deleted, if not nil, is raised by the number of keys passed that are deleted as of the snapshot, and
	// not collected yet.
	Deleted *uint64
}

// Iterator yields key-value pairs in key order. One goroutine's.
type Iterator interface {
	// Next moves to the next pair and reports whether there is one; after false, see Err.
	Next(ctx context.Context) bool
	// Key and Value are valid until the following Next.
	Key() []byte
	Value() []byte
	Err() error
	Close()
}

// Savepoint marks a position in a transaction: its writes and locks at that point.
type Savepoint struct{ writes, locks int }

// Isolation determines what a transaction may see of others. The zero value is the default.
type Isolation uint8

// The isolation levels.
const (
	// SnapshotIsolation reads one snapshot throughout; of two overlapping transactions that write
	// one key, one commits. SQL calls it repeatable read.
	SnapshotIsolation Isolation = iota
	// ReadCommitted takes a new snapshot for every statement.
	ReadCommitted
	// Serializable is SnapshotIsolation whose reads are still true when it commits.
	Serializable
)

func (i Isolation) String() string {
	switch i {
	case ReadCommitted:
		return "read committed"
	case Serializable:
		return "serializable"
	}
	return "repeatable read"
}

// TxnOptions of BeginTxn. The zero value is what Begin uses.
type TxnOptions struct {
	Isolation Isolation
	// Pessimistic: AcquireLocks acquires locks when it is called, waiting for other transactions, instead of detecting
	// conflicts at commit.
	Pessimistic bool
	// ReadOnly: writes and locks fail with ErrReadOnly.
	ReadOnly bool
	// LockTimeout bounds each wait for a lock; 0: only the context does.
	LockTimeout time.Duration
}

// LockOptions of AcquireLocks. The zero value waits for an exclusive lock.
type LockOptions struct {
	NoWait     bool // fail with *LockNotAvailableError instead of waiting
	SkipLocked bool // skip keys that other transactions have locked
	Shared     bool // others may hold shared locks too
	// Existence requests that the shards also report which keys have values, for a later LockNew.
	Existence bool
	// Aside: what the transaction has read does not depend on the keys, or was read by AsideAt. The snapshot stays where it is although
	// they have changed since. The transaction must not roll back to a savepoint afterwards.
	Aside bool
}

// Conditions without data.
var (
	// ErrTxnDone: the transaction has committed or rolled back already.
	ErrTxnDone = errors.New("percolator: transaction is over")
	// ErrReadOnly: a write to, or a lock by, a transaction made by BeginAt or with TxnOptions.ReadOnly.
	ErrReadOnly = errors.New("percolator: transaction is read-only")
	// ErrClosed: the DB is closed.
	ErrClosed = errkind.New(errkind.Closed, "percolator: closed")
	// ErrCommitTooLate: the commit_ts would lie above the CommitPermit's maximum. Nothing was committed; the transaction
	// may be run again.
	ErrCommitTooLate = errkind.New(errkind.CommitTooLate, "percolator: commit_ts is above what the commit permit allows")
	// ErrIteratorInvalid: the transaction has rolled back to a savepoint older than the iterator.
	ErrIteratorInvalid = errors.New("percolator: iterator is older than a rollback to a savepoint")
	// ErrRestartStatement: AcquireLocks holds the locks, but some key had changed since the
	// snapshot, which has moved. Call Txn.RestartStatement with the savepoint where the statement
	// began and run it again; it finds the locks held. A transaction that cannot run its statement
	// again must roll back.
	ErrRestartStatement = errkind.New(errkind.RestartStatement, "percolator: the snapshot has moved, run the statement again")
)

// UndeterminedError: the commit was sent and its answer lost; the transaction may have committed.
type UndeterminedError struct {
	StartTS tso.Timestamp
	Err     error
}

func (e *UndeterminedError) Error() string {
	return fmt.Sprintf("outcome of transaction %d is undetermined: %v", e.StartTS, e.Err)
}
func (e *UndeterminedError) Unwrap() error { return e.Err }

// Kind: whatever the cause, the transaction must not be run again.
func (e *UndeterminedError) Kind() errkind.Kind { return errkind.Undetermined }

// CauseOf returns why the outcome of a transaction is unknown, and other errors unchanged. It is for transactions that another one
// depends on: that of the other one is known, since it was not attempted.
func CauseOf(err error) error {
	for {
		e, ok := errkind.As[*UndeterminedError](err)
		if !ok || e.Err == nil {
			return err
		}
		err = e.Err
	}
}

// LockNotAvailableError: a lock could not be acquired immediately (NoWait) or in time (LockTimeout).
type LockNotAvailableError struct {
	Key     []byte
	Lock    mvcc.Lock // the lock that blocks it
	Timeout bool      // the wait timed out
}

func (e *LockNotAvailableError) Error() string {
	if e.Timeout {
		return fmt.Sprintf("waited too long for key %x, locked by transaction %d", e.Key, e.Lock.StartTS)
	}
	return fmt.Sprintf("key %x is locked by transaction %d", e.Key, e.Lock.StartTS)
}

// Kind implements errkind.Error.
func (e *LockNotAvailableError) Kind() errkind.Kind { return errkind.LockNotAvailable }

// TxnTooLargeError: the write buffer passed its limit.
type TxnTooLargeError struct{ SizeBytes, LimitBytes int64 }

func (e *TxnTooLargeError) Error() string {
	return fmt.Sprintf("transaction writes %d bytes, the limit is %d", e.SizeBytes, e.LimitBytes)
}

// Kind implements errkind.Error.
func (e *TxnTooLargeError) Kind() errkind.Kind { return errkind.TooLarge }

// CommitPermit allows a transaction to commit. It is acquired before Commit, which only reads its bound; the catalog uses it
// to exclude commits and schema changes from each other. The issuer learns the outcome from the caller of Commit.
type CommitPermit interface {
	// MaxCommitTS returns the largest commit_ts that the permit allows, 0 for any, or an error that refuses the commit.
	MaxCommitTS() (tso.Timestamp, error)
	// Renew replaces the permit of a commit that has taken longer than it allows, or refuses the commit. The commit_ts has
	// been taken before, and nothing that the former permit allowed will happen.
	Renew(ctx context.Context) error
}
