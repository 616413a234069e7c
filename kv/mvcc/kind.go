package mvcc

import (
	"context"

	"github.com/percodb/percodb/tso"
)

// Kind is what an error means to whoever meets it: the one place that says whether, and after what, to try again.
// Errors of kv/mvcc and of what lies below have theirs in kindOf; those of higher packages have a method Kind.
type Kind uint8

const (
	// KindOther is that of an error without a kind. Trying again is not known to help.
	KindOther Kind = iota
	KindContext
	KindStaleRoute
	KindUnavailable
	KindOracleUnavailable
	KindOracleClosed
	KindClosed
	KindUnsupported
	KindDiskFull
	KindCorrupt
	KindInvalid
	KindFuture
	KindTooOld
	KindLocked
	KindWriteConflict
	KindReadConflict
	KindLockLost
	KindDeadlock
	KindRolledBack
	KindCommitted
	KindExists
	KindLockNotFound
	KindCommitTSExpired
	KindTxnNotFound
	KindPrimaryMismatch
	KindCommitTooLate
	KindUndetermined
	KindSchemaChanged
	KindForeignData
	kinds
)

// Retry says what has to happen before another attempt can succeed.
type Retry uint8

const (
	// RetryNever: another attempt gets the same answer, or must not be made.
	RetryNever Retry = iota
	// RetryRoute: nothing was done; send the request again by a fresh route.
	RetryRoute
	// RetryShard: the shard did not answer, and may have done what was asked; send the request again.
	RetryShard
	// RetryOracle: nothing was done for want of a timestamp; send the request again.
	RetryOracle
	// RetryLock: nothing was done; send the request again when the lock has gone, or run the transaction again.
	RetryLock
	// RetryTxn: the transaction has not committed and will not; run it again.
	RetryTxn
)

// kindTable describes the kinds that are not like KindOther.
var kindTable = [kinds]struct {
	retry Retry
	// final: as the answer to a prewrite it says that nothing was done, or that the transaction had committed
	// before, and that every duplicate of the request gets an answer that is final too. Somebody else's lock in
	// the way is not, for it goes; nor is a lost lock, for it may be amended once the key is free.
	final bool
}{
	KindStaleRoute:        {retry: RetryRoute},
	KindUnavailable:       {retry: RetryShard},
	KindOracleUnavailable: {retry: RetryOracle},
	KindOracleClosed:      {final: true},
	KindInvalid:           {final: true},
	KindFuture:            {final: true},
	KindTooOld:            {retry: RetryTxn, final: true},
	KindLocked:            {retry: RetryLock},
	KindWriteConflict:     {retry: RetryTxn, final: true},
	KindReadConflict:      {retry: RetryTxn, final: true},
	KindLockLost:          {retry: RetryTxn},
	KindDeadlock:          {retry: RetryTxn},
	KindRolledBack:        {retry: RetryTxn, final: true},
	KindCommitted:         {final: true},
	KindExists:            {final: true},
	KindCommitTooLate:     {retry: RetryTxn},
	KindSchemaChanged:     {retry: RetryTxn},
}

// Retry says what has to happen before another attempt.
func (k Kind) Retry() Retry { return kindTable[k].retry }

// Final reports whether a prewrite that was answered so has not taken effect, and never will.
func (k Kind) Final() bool { return kindTable[k].final }

// TxnMayRetry reports whether the transaction has certainly not committed and may be run again.
func (k Kind) TxnMayRetry() bool { return k.Retry() == RetryTxn || k.Retry() == RetryLock }

// KindOf returns the kind of the outermost error of err's chain that has one: what wraps an error knows more than
// the error. It is KindOther for nil.
func KindOf(err error) Kind {
	kind, _ := Typed(err)
	return kind
}

// Typed returns the kind of the outermost error of err's chain that has one, and that error; KindOther and nil if none has.
func Typed(err error) (Kind, error) {
	for err != nil {
		if k := kindOf(err); k != KindOther {
			return k, err
		}
		switch wrapper := err.(type) {
		case interface{ Unwrap() error }:
			err = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			for _, err := range wrapper.Unwrap() {
				if k, typed := Typed(err); k != KindOther {
					return k, typed
				}
			}
			return KindOther, nil
		default:
			return KindOther, nil
		}
	}
	return KindOther, nil
}

// kindOf is the kind of an error itself.
func kindOf(err error) Kind {
	switch e := err.(type) {
	case interface{ Kind() Kind }:
		return e.Kind()
	case *KeyLockedError:
		return KindLocked
	case *WriteConflictError:
		return KindWriteConflict
	case *RefreshConflictError:
		return KindReadConflict
	case *LockLostError:
		return KindLockLost
	case *DeadlockError:
		return KindDeadlock
	case *RolledBackError:
		return KindRolledBack
	case *AlreadyCommittedError:
		return KindCommitted
	case *KeyExistsError:
		return KindExists
	case *LockNotFoundError:
		return KindLockNotFound
	case *CommitTSExpiredError:
		return KindCommitTSExpired
	case *TxnNotFoundError:
		return KindTxnNotFound
	case *PrimaryMismatchError:
		return KindPrimaryMismatch
	case *TooOldError:
		return KindTooOld
	case *TSInFutureError:
		return KindFuture
	case *InvalidRequestError:
		return KindInvalid
	case *CorruptionError:
		return KindCorrupt
	case *tso.UnavailableError:
		return KindOracleUnavailable
	}
	switch err {
	case tso.ErrClosed:
		return KindOracleClosed
	case context.Canceled, context.DeadlineExceeded:
		return KindContext
	}
	return KindOther
}

// NewError returns an error of a kind that carries nothing but its text. Each call's is another.
func NewError(kind Kind, text string) error { return &plainError{kind, text} }

type plainError struct {
	kind Kind
	text string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Kind() Kind    { return e.kind }
