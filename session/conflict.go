package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// What a client may do about each kind of conflict.
const (
	hintRetryOrLock = "Retry the transaction; to wait for others rather than fail, lock the row before reading it, with SELECT … FOR UPDATE."
	hintRetry       = "Retry the transaction."
	hintOrder       = "Retry the transaction. Transactions that lock rows in the same order do not deadlock."
	hintLater       = "Retry when the other transaction has ended."
)

// expiredDetail is of an error that no key is to be named in.
const expiredDetail = "A store or the oracle was away, or this process was paused, for longer than locks live without it."

// explainConflict tells the client's side of a conflict with another transaction: which row, and what
// the other one did to it and when. Other errors pass unchanged.
func (s *Session) explainConflict(ctx context.Context, err error) error {
	var pg *pgerror.Error
	if errors.As(err, &pg) {
		return err
	}
	resolver := s.tx.resolver
	if resolver == nil {
		resolver = s.ended.resolver
	}
	key, e := s.conflict(err)
	if e == nil {
		return err
	}
	e.Cause = err
	if e.Detail == expiredDetail {
		return e
	}
	s.nameKey(ctx, resolver, key, e)
	return e
}

// conflict makes the client's error, without the key: the detail continues the key's name.
func (s *Session) conflict(err error) (key []byte, e *pgerror.Error) {
	_, typed := errkind.Find(err)
	switch err := typed.(type) {
	case *mvcc.WriteConflictError:
		return s.writeConflict(err)
	case *mvcc.DeadlockError:
		e := pgerror.New(pgerror.DeadlockDetected, "deadlock detected")
		detail := fmt.Sprintf(" is locked by a transaction that began at %s", s.timeOf(err.Holder))
		if n := len(err.Cycle); n > 2 {
			detail += fmt.Sprintf(" and waits, by way of %d others, for this one", n-2)
		} else {
			detail += " and waits for this one"
		}
		return err.Key, e.WithDetail("%s.", detail).WithHint(hintOrder)
	case *percolator.LockNotAvailableError:
		e := pgerror.New(pgerror.LockNotAvailable, "could not obtain lock on row")
		if err.Timeout {
			e.Message = "canceling statement due to lock timeout"
		}
		return err.Key, e.WithDetail(" is locked by a transaction that began at %s.", s.timeOf(err.Lock.StartTS)).WithHint(hintLater)
	case *mvcc.RefreshConflictError:
		changed := mvcc.WriteConflictError{ConflictingStartTS: err.StartTS, ConflictingCommitTS: err.CommitTS}
		return err.Key, dependencyError().WithDetail(", which this transaction has read, %s.", s.changedBy(&changed)).WithHint(hintRetry)
	case *mvcc.KeyLockedError:
		e := pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
		return err.Key, e.WithDetail(" is being changed by a transaction that began at %s.", s.timeOf(err.Lock.StartTS)).WithHint(hintRetryOrLock)
	}
	return nil, nil
}

// writeConflict is conflict for a write conflict, whose cause may be another than a write.
func (s *Session) writeConflict(err *mvcc.WriteConflictError) (key []byte, e *pgerror.Error) {
	switch {
	case err.Cause == mvcc.CauseRolledBack:
		e := pgerror.New(pgerror.SerializationFailure, "the transaction was rolled back because its locks had expired")
		return nil, e.WithDetail(expiredDetail).WithHint(hintRetry)
	case err.Cause == mvcc.CauseLockLost:
		e := pgerror.New(pgerror.SerializationFailure, "a row lock was lost before the end of the transaction")
		return err.Key, e.WithDetail(" was locked by this transaction; its store has restarted or the lock has expired, and another transaction has locked it.").WithHint(hintRetry)
	case s.ended.serializable:
		return err.Key, dependencyError().WithDetail(", which this transaction has read or changed, %s.", s.changedBy(err)).WithHint(hintRetry)
	}
	e = pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
	return err.Key, e.WithDetail(" %s.", s.changedBy(err)).WithHint(hintRetryOrLock)
}

// changedBy tells what happened to the key of a conflict.
func (s *Session) changedBy(e *mvcc.WriteConflictError) string {
	switch {
	case e.ConflictingCommitTS != 0:
		return fmt.Sprintf("was changed by a transaction that committed at %s, after this one had begun", s.timeOf(e.ConflictingCommitTS))
	case e.ConflictingStartTS != 0:
		return fmt.Sprintf("is being changed by a transaction that began at %s", s.timeOf(e.ConflictingStartTS))
	}
	return "is no longer locked by this transaction: another one has rolled it back, or a store has restarted"
}

func dependencyError() *pgerror.Error {
	return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to read/write dependencies among transactions")
}

// nameKey puts the key's name before the detail. What is no row of a table has none that a client knows.
func (s *Session) nameKey(ctx context.Context, r catalog.Resolver, key []byte, e *pgerror.Error) {
	var name *rowenc.KeyName
	if r != nil && len(key) > 0 {
		// Without the name the error still says what has happened.
		name, _ = rowenc.NameKey(context.WithoutCancel(ctx), r, key)
	}
	if name == nil {
		e.Detail = "A key of the system" + e.Detail
		return
	}
	e.Schema, e.Table = name.Table.Schema, name.Table.Name
	if name.Columns() != "" {
		e.Constraint = name.Index.Name
	}
	e.Detail = name.String() + e.Detail
	if e.Code == pgerror.LockNotAvailable && e.Message == "could not obtain lock on row" {
		e.Message = fmt.Sprintf("could not obtain lock on row in relation %q", name.Table.Name)
	}
}

// timeOf prints the time of a timestamp as the client has times printed.
func (s *Session) timeOf(ts tso.Timestamp) string {
	at := types.Int(builtin.UnixToTimestamp(time.UnixMilli(ts.Physical())))
	return string(types.AppendText(nil, at, types.TTimestamptz, &s.env.Format))
}
