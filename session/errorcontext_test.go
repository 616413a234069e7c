package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// Goal: the client's version of an error says what happened and what to do, from the error and its context alone. Method: a
// table of errors and contexts.
func TestExplainError(t *testing.T) {
	second := func(n int64) tso.Timestamp { return tso.FromPhysical(1_700_000_000_000 + 1000*n) }
	past := second(1)
	conflict := &mvcc.WriteConflictError{Key: []byte("k"), ConflictingStartTS: second(1), ConflictingCommitTS: second(2)}
	for _, c := range []struct {
		name         string
		err          error
		serializable bool
		asOf         tso.Timestamp
		cause        error // of the interrupt
		code         pgerror.Code
		message      string
		detail       string
	}{
		{name: "conflict", err: conflict, code: "40001", message: "could not serialize access due to concurrent update",
			detail: "A key of the system was changed by a transaction that committed at 2023-11-14 22:13:22+00, after this one had begun."},
		{name: "conflict of a serializable transaction", err: conflict, serializable: true, code: "40001",
			message: "could not serialize access due to read/write dependencies among transactions",
			detail:  "A key of the system, which this transaction has read or changed, was changed by a transaction that committed at 2023-11-14 22:13:22+00, after this one had begun."},
		{name: "conflict of an interrupted statement", err: conflict, cause: errStatementTimeout, code: "57014", message: "canceling statement due to statement timeout"},
		{name: "store that does not answer an interrupted statement", err: &kv.UnavailableError{Shard: "s", Err: context.Canceled}, cause: errCanceled,
			code: "57014", message: "canceling statement due to user request"},
		{name: "end of the server", err: context.Canceled, cause: errShutdown, code: "57P01", message: "terminating connection due to administrator command"},
		{name: "error of an interrupted statement", err: pgerror.New(pgerror.DivisionByZero, "division by zero"), cause: errCanceled, code: "22012", message: "division by zero"},
		{name: "lock", err: &percolator.LockNotAvailableError{Key: []byte("k"), Lock: mvcc.Lock{StartTS: second(3)}}, code: "55P03",
			message: "could not obtain lock on row", detail: "A key of the system is locked by a transaction that began at 2023-11-14 22:13:23+00."},
		{name: "lock timeout", err: &percolator.LockNotAvailableError{Key: []byte("k"), Lock: mvcc.Lock{StartTS: second(3)}, Timeout: true}, code: "55P03",
			message: "canceling statement due to lock timeout", detail: "A key of the system is locked by a transaction that began at 2023-11-14 22:13:23+00."},
		{name: "deadlock", err: &mvcc.DeadlockError{Key: []byte("k"), Holder: second(4)}, code: "40P01", message: "deadlock detected",
			detail: "A key of the system is locked by a transaction that began at 2023-11-14 22:13:24+00 and waits for this one."},
		{name: "deadlock with a schema change", err: &catalog.DeadlockError{Relation: "t"}, code: "40P01", message: "deadlock detected",
			detail: `Relation "t" is being changed by a transaction that waits for this one.`},
		{name: "deadlock of schema changes", err: &catalog.DeadlockError{}, code: "40P01", message: "deadlock detected",
			detail: "Another transaction is changing the schema, and waits for this one."},
		{name: "old snapshot", err: &mvcc.TooOldError{TS: second(5), SafePoint: second(6)}, code: "72000", message: "snapshot too old",
			detail: "The transaction's snapshot is of 2023-11-14 22:13:25+00; the safe point of garbage collection, 2023-11-14 22:13:26+00, has passed it."},
		{name: "old time", err: &mvcc.TooOldError{TS: second(5), SafePoint: second(6)}, asOf: past, code: "22023",
			message: "AS OF SYSTEM TIME 2023-11-14 22:13:25+00 lies before the safe point 2023-11-14 22:13:26+00", detail: "What was before the safe point is no longer kept."},
		{name: "unknown table", err: pgerror.New(pgerror.UndefinedTable, "none"), code: "42P01", message: "none"},
		{name: "unknown table of the past", err: pgerror.New(pgerror.UndefinedTable, "none"), asOf: past, code: "42P01", message: "none",
			detail: "The schema is that of 2023-11-14 22:13:21+00, as AS OF SYSTEM TIME asks."},
		{name: "other error of the past", err: pgerror.New(pgerror.DivisionByZero, "division by zero"), asOf: past, code: "22012", message: "division by zero"},
		{name: "unknown outcome", err: &percolator.UndeterminedError{Err: conflict}, code: "08007", message: "the outcome of the transaction is unknown: the answer to its commit was lost"},
	} {
		ctx, cancel := context.WithCancelCause(context.Background())
		if c.cause != nil {
			cancel(c.cause)
		}
		got := ToPGError(explainError(ctx, c.err, errorContext{serializable: c.serializable, asOf: c.asOf, format: &types.Format{Location: time.UTC}}))
		if got.Code != c.code || got.Message != c.message || got.Detail != c.detail {
			t.Errorf("%s:\n%s %s\n%s", c.name, got.Code, got.Message, got.Detail)
		}
		cancel(nil)
	}
	if err := errors.New("other"); explainError(context.Background(), err, errorContext{}) != err {
		t.Error("an error without explanation has changed")
	}
}
