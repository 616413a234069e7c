package mvcc

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/percodb/percodb/tso"
)

// outcomeError stands for an error of a higher package that knows more than what it wraps.
type outcomeError struct{ err error }

func (e outcomeError) Error() string { return "outcome unknown" }
func (e outcomeError) Unwrap() error { return e.err }
func (e outcomeError) Kind() Kind    { return KindUndetermined }

// Goal: an error's kind is that of the outermost error that has one, and kinds say whether to retry. Method: a table.
func TestKindOf(t *testing.T) {
	conflict := &WriteConflictError{StartTS: 16}
	away := &tso.UnavailableError{Err: errors.New("refused")}
	for _, tc := range []struct {
		err   error
		kind  Kind
		retry Retry
		txn   bool
		final bool
	}{
		{nil, KindOther, RetryNever, false, false},
		{errors.New("x"), KindOther, RetryNever, false, false},
		{conflict, KindWriteConflict, RetryTxn, true, true},
		{fmt.Errorf("commit: %w", conflict), KindWriteConflict, RetryTxn, true, true},
		{errors.Join(errors.New("x"), conflict), KindWriteConflict, RetryTxn, true, true},
		{outcomeError{conflict}, KindUndetermined, RetryNever, false, false},
		{fmt.Errorf("commit: %w", outcomeError{conflict}), KindUndetermined, RetryNever, false, false},
		{&KeyLockedError{}, KindLocked, RetryLock, true, false},
		{&LockLostError{}, KindLockLost, RetryTxn, true, false},
		{&AlreadyCommittedError{}, KindCommitted, RetryNever, false, true},
		{&KeyExistsError{}, KindExists, RetryNever, false, true},
		{&TooOldError{}, KindTooOld, RetryTxn, true, true},
		{fmt.Errorf("ask: %w", away), KindOracleUnavailable, RetryOracle, false, false},
		{tso.ErrClosed, KindOracleClosed, RetryNever, false, true},
		{context.Canceled, KindContext, RetryNever, false, false},
		{NewError(KindClosed, "closed"), KindClosed, RetryNever, false, false},
	} {
		k := KindOf(tc.err)
		if k != tc.kind || k.Retry() != tc.retry || k.TxnMayRetry() != tc.txn || k.Final() != tc.final {
			t.Errorf("%v: kind %d, retry %d, again %v, final %v", tc.err, k, k.Retry(), k.TxnMayRetry(), k.Final())
		}
	}
}
