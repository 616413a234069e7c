package errkind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// kindError is an error of a kind that wraps another.
type kindError struct {
	kind Kind
	err  error
}

func (e *kindError) Error() string { return "kind " + fmt.Sprint(e.kind) }
func (e *kindError) Unwrap() error { return e.err }
func (e *kindError) Kind() Kind    { return e.kind }

// Goal: an error's kind is that of the outermost error that has one, and kinds say whether to retry. Method: a table.
func TestOf(t *testing.T) {
	conflict := New(WriteConflict, "conflict")
	lost := &kindError{Undetermined, conflict}
	for _, tc := range []struct {
		err   error
		kind  Kind
		retry Retry
		txn   bool
		final bool
	}{
		{nil, Other, RetryNever, false, false},
		{errors.New("x"), Other, RetryNever, false, false},
		{conflict, WriteConflict, RetryTxn, true, true},
		{fmt.Errorf("commit: %w", conflict), WriteConflict, RetryTxn, true, true},
		{errors.Join(errors.New("x"), conflict), WriteConflict, RetryTxn, true, true},
		{lost, Undetermined, RetryNever, false, false},
		{fmt.Errorf("commit: %w", lost), Undetermined, RetryNever, false, false},
		{New(Locked, ""), Locked, RetryLock, true, false},
		{New(LockLost, ""), LockLost, RetryTxn, true, false},
		{New(Committed, ""), Committed, RetryNever, false, true},
		{New(Exists, ""), Exists, RetryNever, false, true},
		{New(TooOld, ""), TooOld, RetryTxn, true, true},
		{fmt.Errorf("ask: %w", &kindError{OracleUnavailable, context.DeadlineExceeded}), OracleUnavailable, RetryOracle, false, false},
		{New(OracleClosed, ""), OracleClosed, RetryNever, false, true},
		{context.Canceled, Context, RetryNever, false, false},
		{&os.PathError{Err: syscall.ENOSPC}, NoSpace, RetryNever, false, false},
		{&kindError{DiskFull, syscall.ENOSPC}, DiskFull, RetryNever, false, false},
	} {
		k := Of(tc.err)
		if k != tc.kind || k.Retry() != tc.retry || k.TxnMayRetry() != tc.txn || k.Final() != tc.final {
			t.Errorf("%v: kind %d, retry %d, again %v, final %v", tc.err, k, k.Retry(), k.TxnMayRetry(), k.Final())
		}
	}
	if got, ok := As[*kindError](fmt.Errorf("commit: %w", lost)); !ok || got != lost {
		t.Errorf("the error that decides is %v", got)
	}
	if got, ok := As[*plainError](lost); ok {
		t.Errorf("an error behind the one that decides: %v", got)
	}
}
