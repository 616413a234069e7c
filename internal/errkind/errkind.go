// Package errkind classifies errors: an error has a kind, and the kind says whether, and after what, to try again.
//
// An error type states its kind with a method Kind. Of a chain of errors the outermost that has a kind decides, because
// what wraps an error knows more than the error: a commit whose answer was lost is Undetermined, whatever kept the
// answer away. Callers ask for the kind, or for an error's fields with As; they do not try one type after the other.
package errkind

import (
	"context"
	"syscall"
)

// Kind is what an error means to its recipient.
type Kind uint8

const (
	// Other is the kind of an error without one. Another attempt is not known to help.
	Other Kind = iota
	// Context: the context has ended. Canceled and Shutdown: a statement was canceled, a connection terminated.
	Context
	Canceled
	Shutdown
	// ClientGone: the connection to the client cannot go on.
	ClientGone

	// Routing and availability.
	StaleRoute
	Unavailable
	OracleUnavailable
	OracleClosed
	Closed
	Unsupported

	// Resources. DiskFull: a store refuses writes. NoSpace is the operating system's ENOSPC: what was being written is
	// not known.
	DiskFull
	NoSpace
	TempFile
	OutOfMemory
	TooLarge

	// Requests and data that are wrong.
	Corrupt
	Invalid
	Future
	ForeignData
	// Excluded: the cluster has excluded the shard, or another has taken its place.
	Excluded

	// Conflicts between transactions.
	TooOld
	Locked
	LockNotAvailable
	WriteConflict
	ReadConflict
	LockLost
	Deadlock
	RolledBack
	SchemaChanged
	CommitTooLate
	RestartStatement
	Exists

	// Answers about the state of a transaction.
	Committed
	LockNotFound
	CommitTSExpired
	TxnNotFound
	PrimaryMismatch
	Undetermined
	kinds
)

// Error is an error that states its kind.
type Error interface {
	error
	Kind() Kind
}

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

// table describes the kinds that are not like Other.
var table = [kinds]struct {
	retry Retry
	// final: as the answer to a prewrite it says that nothing was done, or that the transaction had committed
	// before, and that every duplicate of the request gets an answer that is final too. Somebody else's lock in
	// the way is not, for it goes; nor is a lost lock, for it may be amended once the key is free.
	final bool
}{
	StaleRoute:        {retry: RetryRoute},
	Unavailable:       {retry: RetryShard},
	OracleUnavailable: {retry: RetryOracle},
	OracleClosed:      {final: true},
	Invalid:           {final: true},
	Future:            {final: true},
	TooOld:            {retry: RetryTxn, final: true},
	Locked:            {retry: RetryLock},
	WriteConflict:     {retry: RetryTxn, final: true},
	ReadConflict:      {retry: RetryTxn, final: true},
	LockLost:          {retry: RetryTxn},
	Deadlock:          {retry: RetryTxn},
	RolledBack:        {retry: RetryTxn, final: true},
	Committed:         {final: true},
	Exists:            {final: true},
	CommitTooLate:     {retry: RetryTxn},
	SchemaChanged:     {retry: RetryTxn},
}

// Retry says what has to happen before another attempt.
func (k Kind) Retry() Retry { return table[k].retry }

// Final reports whether a prewrite that was answered so has not taken effect, and never will.
func (k Kind) Final() bool { return table[k].final }

// TxnMayRetry reports whether the transaction has certainly not committed and may be run again.
func (k Kind) TxnMayRetry() bool { return k.Retry() == RetryTxn || k.Retry() == RetryLock }

// Of returns the kind of an error, Other for nil.
func Of(err error) Kind {
	kind, _ := Find(err)
	return kind
}

// As returns the error that decides err's kind if it is a T. Unlike errors.As it does not look behind that error.
func As[T error](err error) (T, bool) {
	_, typed := Find(err)
	t, ok := typed.(T)
	return t, ok
}

// Find returns the kind of the outermost error of err's chain that has one, and that error; Other and nil if none has.
func Find(err error) (Kind, error) {
	for err != nil {
		if k := own(err); k != Other {
			return k, err
		}
		switch wrapper := err.(type) {
		case interface{ Unwrap() error }:
			err = wrapper.Unwrap()
		case interface{ Unwrap() []error }:
			for _, err := range wrapper.Unwrap() {
				if k, typed := Find(err); k != Other {
					return k, typed
				}
			}
			return Other, nil
		default:
			return Other, nil
		}
	}
	return Other, nil
}

// own is the kind of an error itself.
func own(err error) Kind {
	if e, ok := err.(Error); ok {
		return e.Kind()
	}
	switch err {
	case context.Canceled, context.DeadlineExceeded:
		return Context
	case syscall.ENOSPC:
		return NoSpace
	}
	return Other
}

// New returns an error of a kind that carries nothing but its text. Each call's is another.
func New(kind Kind, text string) error { return &plainError{kind, text} }

type plainError struct {
	kind Kind
	text string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Kind() Kind    { return e.kind }
