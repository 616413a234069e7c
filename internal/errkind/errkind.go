// Package errkind classifies errors: an error has a kind, and the kind determines whether, and when, to retry.
//
// An error type states its kind with a method Kind. In a chain of errors the outermost one with a kind decides, because
// the wrapping error is more specific: a commit whose answer was lost is Undetermined, whatever the cause. Callers use the
// kind, or an error's fields with As; they do not try one type after the other.
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

	// Resources. DiskFull: a store refuses writes. NoSpace is the operating system's ENOSPC: the state of the written
	// data is unknown.
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
	// Refused: the service that keeps the data refuses the request: names, permissions, or what percodb sends, are wrong.
	Refused
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

// Retry is the condition under which another attempt can succeed.
type Retry uint8

const (
	// RetryNever: another attempt has the same result, or must not be made.
	RetryNever Retry = iota
	// RetryRoute: nothing was done; repeat the request with a new route.
	RetryRoute
	// RetryShard: the shard did not answer, and may have executed the request; repeat it.
	RetryShard
	// RetryOracle: nothing was done for lack of a timestamp; repeat the request.
	RetryOracle
	// RetryLock: nothing was done; repeat the request when the lock is removed, or run the transaction again.
	RetryLock
	// RetryTxn: the transaction has not committed and will not; run it again.
	RetryTxn
)

// table describes the kinds that are not like Other.
var table = [kinds]struct {
	retry Retry
	// final: as the answer to a prewrite it means that nothing was done, or that the transaction had committed before,
	// and that the answer to every duplicate of the request is final too. Another transaction's lock is not final,
	// because it will be removed; nor is a lost lock, because it may be amended when the key is free.
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

// Retry returns the condition for another attempt.
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

// As returns the error that determines err's kind if it is a T. Unlike errors.As it does not search the errors that this
// one wraps.
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

// New returns an error of a kind that contains only its text. Each call returns a distinct error.
func New(kind Kind, text string) error { return &plainError{kind, text} }

type plainError struct {
	kind Kind
	text string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Kind() Kind    { return e.kind }
