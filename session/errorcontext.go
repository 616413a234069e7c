package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
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

// errorContext is what the explanation of an error needs of the statement that has met it.
type errorContext struct {
	resolver     catalog.Resolver // nil: rows and constraints are not named
	inForce      catalogInForce   // whose privileges decide which values messages contain
	role         uint32           // that may read the values in messages; 0: all may be read
	serializable bool             // the transaction whose commit has failed
	asOf         tso.Timestamp    // 0: the present
	format       *types.Format
}

// catalogInForce returns the schema in force, nil if it is not known.
type catalogInForce func(ctx context.Context) catalog.Resolver

// explainError returns the client's version of an error: why the statement was interrupted, which row a conflict is about and
// what the other transaction did to it and when, which safe point has passed the snapshot, and at which time names were looked
// up. ctx is the statement's. Other errors pass unchanged.
func explainError(ctx context.Context, err error, c errorContext) error {
	err = explainInterrupt(ctx, err)
	err = c.explainConflict(ctx, err)
	err = c.explainTooOld(err)
	return c.explainPast(err)
}

// explainInterrupt replaces an error that an interrupt has caused by its reason.
func explainInterrupt(ctx context.Context, err error) error {
	cause := interruption(ctx)
	if cause == nil {
		return err
	}
	switch ToPGError(err).Code {
	case pgerror.QueryCanceled,
		pgerror.ConnectionFailure,                              // a store may not have answered because of the cancel
		pgerror.SerializationFailure, pgerror.DeadlockDetected: // the statement would have been run again
		return cause
	}
	return err
}

// explainConflict names the row of a conflict and what another transaction did to it.
func (c *errorContext) explainConflict(ctx context.Context, err error) error {
	var pg *pgerror.Error
	if errors.As(err, &pg) {
		return err
	}
	key, e := c.conflict(err)
	if e == nil {
		return err
	}
	e.Cause = err
	if key != nil {
		c.nameKey(ctx, key, e)
	}
	return e
}

// explainTooOld names the safe point that has passed the transaction's snapshot.
func (c *errorContext) explainTooOld(err error) error {
	old, ok := errkind.As[*mvcc.TooOldError](err)
	if !ok {
		return err
	}
	if c.asOf != 0 {
		e := belowSafePoint(old.TS, old.SafePoint, c.format)
		e.Cause = err
		return e
	}
	e := pgerror.New(pgerror.SnapshotTooOld, "snapshot too old").WithHint("Start the transaction again.").
		WithDetail("The transaction's snapshot is of %s; the safe point of garbage collection, %s, has passed it.", c.timeOf(old.TS), c.timeOf(old.SafePoint))
	e.Cause = err
	return e
}

// explainPast says of a name that is not known that it was looked up in the schema of an earlier time.
func (c *errorContext) explainPast(err error) error {
	var e *pgerror.Error
	if c.asOf == 0 || !errors.As(err, &e) || e.Detail != "" {
		return err
	}
	switch e.Code {
	case pgerror.UndefinedTable, pgerror.UndefinedColumn, pgerror.InvalidSchemaName:
		return e.WithDetail("The schema is that of %s, as "+asOfClause+" asks.", c.timeOf(c.asOf))
	}
	return err
}

// conflict returns the client's error for a conflict, nil for other errors. The detail continues the name of key, or is complete if
// key is nil.
func (c *errorContext) conflict(err error) (key []byte, e *pgerror.Error) {
	_, typed := errkind.Find(err)
	switch err := typed.(type) {
	case *mvcc.WriteConflictError:
		return c.writeConflict(err)
	case *mvcc.DeadlockError:
		e := pgerror.New(pgerror.DeadlockDetected, "deadlock detected")
		detail := fmt.Sprintf(" is locked by a transaction that began at %s", c.timeOf(err.Holder))
		if n := len(err.Cycle); n > 2 {
			detail += fmt.Sprintf(" and waits, through %s, for this one", plural.Count(n-2, "other transaction"))
		} else {
			detail += " and waits for this one"
		}
		return err.Key, e.WithDetail("%s.", detail).WithHint(hintOrder)
	case *catalog.DeadlockError:
		e := pgerror.New(pgerror.DeadlockDetected, "deadlock detected").WithHint(hintOrder)
		if err.Relation == "" {
			return nil, e.WithDetail("Another transaction is changing the schema, and waits for this one.")
		}
		return nil, e.WithDetail("Relation %q is being changed by a transaction that waits for this one.", err.Relation)
	case *catalog.LockTimeoutError:
		e := pgerror.New(pgerror.LockNotAvailable, "canceling statement due to lock timeout").WithHint(hintLater)
		if err.Relation == "" {
			return nil, e.WithDetail("Another transaction is changing the schema.")
		}
		return nil, e.WithDetail("Relation %q is being changed by another transaction.", err.Relation)
	case *percolator.LockNotAvailableError:
		e := pgerror.New(pgerror.LockNotAvailable, "could not obtain lock on row")
		if err.Timeout {
			e.Message = "canceling statement due to lock timeout"
		}
		return err.Key, e.WithDetail(" is locked by a transaction that began at %s.", c.timeOf(err.Lock.StartTS)).WithHint(hintLater)
	case *mvcc.RefreshConflictError:
		changed := mvcc.WriteConflictError{ConflictingStartTS: err.StartTS, ConflictingCommitTS: err.CommitTS}
		return err.Key, dependencyError().WithDetail(", which this transaction has read, %s.", c.changedBy(&changed)).WithHint(hintRetry)
	case *mvcc.KeyLockedError:
		e := pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
		return err.Key, e.WithDetail(" is being changed by a transaction that began at %s.", c.timeOf(err.Lock.StartTS)).WithHint(hintRetryOrLock)
	}
	return nil, nil
}

// writeConflict is conflict for a write conflict, whose cause may be another than a write.
func (c *errorContext) writeConflict(err *mvcc.WriteConflictError) (key []byte, e *pgerror.Error) {
	switch {
	case err.Cause == mvcc.CauseRolledBack:
		e := pgerror.New(pgerror.SerializationFailure, "the transaction was rolled back because its locks had expired")
		return nil, e.WithDetail(expiredDetail).WithHint(hintRetry)
	case err.Cause == mvcc.CauseLockLost:
		e := pgerror.New(pgerror.SerializationFailure, "a row lock was lost before the end of the transaction")
		return err.Key, e.WithDetail(" was locked by this transaction; its store has restarted or the lock has expired, and another transaction has locked it.").WithHint(hintRetry)
	case c.serializable:
		return err.Key, dependencyError().WithDetail(", which this transaction has read or changed, %s.", c.changedBy(err)).WithHint(hintRetry)
	}
	e = pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
	return err.Key, e.WithDetail(" %s.", c.changedBy(err)).WithHint(hintRetryOrLock)
}

// changedBy tells what happened to the key of a conflict.
func (c *errorContext) changedBy(e *mvcc.WriteConflictError) string {
	switch {
	case e.ConflictingCommitTS != 0:
		return fmt.Sprintf("was changed by a transaction that committed at %s, after this one had begun", c.timeOf(e.ConflictingCommitTS))
	case e.ConflictingStartTS != 0:
		return fmt.Sprintf("is being changed by a transaction that began at %s", c.timeOf(e.ConflictingStartTS))
	}
	return "is no longer locked by this transaction: another one has rolled it back, or a store has restarted"
}

func dependencyError() *pgerror.Error {
	return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to read/write dependencies among transactions")
}

// nameKey puts the key's name before the detail. Non-row keys have no client-visible name.
func (c *errorContext) nameKey(ctx context.Context, key []byte, e *pgerror.Error) {
	ctx = context.WithoutCancel(ctx)
	var name *rowenc.KeyName
	if c.resolver != nil && len(key) > 0 {
		// Without the name the error still says what has happened.
		name, _ = rowenc.NameKey(ctx, c.resolver, key)
	}
	if name == nil {
		e.Detail = "A key of the system" + e.Detail
		return
	}
	e.Schema, e.Table = name.Table.Schema, name.Table.Name
	if name.Columns() != "" {
		e.Constraint = name.Index.Name
	}
	what := name.String()
	if name.Index != nil && c.role != 0 && !executor.SeesKey(ctx, c.inForce(ctx), c.role, name) {
		what = fmt.Sprintf("A row of table %q", name.Table.Name)
	}
	e.Detail = what + e.Detail
	if e.Code == pgerror.LockNotAvailable && e.Message == "could not obtain lock on row" {
		e.Message = fmt.Sprintf("could not obtain lock on row in relation %q", name.Table.Name)
	}
}

func (c *errorContext) timeOf(ts tso.Timestamp) string { return timeText(ts, c.format) }
