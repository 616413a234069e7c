package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"syscall"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/sortrun"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// ErrClientGone says that the connection cannot go on; errors of ResultWriters are it where that is so.
var ErrClientGone = errors.New("the client is gone")

// ToPGError maps any error to what the client sees. It is the one place that does.
func ToPGError(err error) *pgerror.Error {
	var pg *pgerror.Error
	if errors.As(err, &pg) {
		return pg
	}
	mapped := mapError(err)
	mapped.Cause = err
	return mapped
}

func mapError(err error) *pgerror.Error {
	var (
		conflict     *mvcc.WriteConflictError
		locked       *mvcc.KeyLockedError
		rolledBack   *mvcc.RolledBackError
		tooOld       *mvcc.TooOldError
		exists       *mvcc.KeyExistsError
		undetermined *percolator.UndeterminedError
		tooLarge     *percolator.TxnTooLargeError
		unavailable  *kv.UnavailableError
		oracle       *tso.UnavailableError
		corrupt      *kv.CorruptionError
		schema       *catalog.SchemaChangedError
		refresh      *mvcc.RefreshConflictError
		deadlock     *mvcc.DeadlockError
		notAvailable *percolator.LockNotAvailableError
		exceeded     *memory.ExceededError
		spill        *sortrun.Error
		full         *kv.DiskFullError
	)
	switch {
	case errors.As(err, &undetermined):
		e := pgerror.New(pgerror.TxnResolutionUnknown, "the outcome of the transaction is unknown: the answer to its commit was lost")
		e.Hint = "Look whether its changes are there before you run it again."
		return e
	case errors.As(err, &deadlock):
		return pgerror.New(pgerror.DeadlockDetected, "deadlock detected").WithHint(hintOrder)
	case errors.As(err, &notAvailable):
		return pgerror.New(pgerror.LockNotAvailable, "could not obtain lock on row").WithHint(hintLater)
	case errors.As(err, &refresh):
		return dependencyError().WithHint(hintRetry)
	case errors.As(err, &conflict), errors.As(err, &rolledBack), errors.As(err, &locked), errors.Is(err, percolator.ErrCommitTooLate),
		errors.Is(err, percolator.ErrRestartStatement):
		return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update").WithHint(hintRetry)
	case errors.As(err, &schema):
		return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to a concurrent schema change").WithHint(hintRetry)
	case errors.As(err, &exists):
		return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates a unique constraint")
	case errors.As(err, &tooOld):
		return pgerror.New(pgerror.SnapshotTooOld, "snapshot too old").WithHint("Start the transaction again.")
	case errors.As(err, &exceeded):
		return pgerror.New(pgerror.OutOfMemory, "out of memory").WithDetail(
			"%d bytes were asked for; %d of %d bytes for %s are in use.", exceeded.Asked, exceeded.Used, exceeded.Limit, exceeded.Pool).
			WithHint("Retry when fewer statements run, select less at once, or start the server with a larger --memory.")
	case errors.As(err, &tooLarge):
		return pgerror.New(pgerror.ProgramLimitExceeded, "%v", tooLarge).WithHint("Commit in smaller steps.")
	case errors.Is(err, errStatementTimeout), errors.Is(err, errCanceled):
		return pgerror.New(pgerror.QueryCanceled, "%v", err)
	case errors.Is(err, errShutdown):
		return pgerror.New(pgerror.AdminShutdown, "%v", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return pgerror.New(pgerror.QueryCanceled, "%v", errCanceled)
	case errors.As(err, &spill):
		code := pgerror.IOError
		if errors.Is(err, syscall.ENOSPC) {
			code = pgerror.DiskFull
		}
		return pgerror.New(code, "%v", spill).WithHint("What a transaction writes beyond its share of memory needs room in the directory for temporary files (TMPDIR).")
	case errors.As(err, &full):
		return pgerror.New(pgerror.DiskFull, "no space left on device").WithDetail("The disk of store %s is full; reads go on.", full.Shard).
			WithHint("Free space on that disk: writes go on by themselves then.")
	case errors.Is(err, syscall.ENOSPC):
		return pgerror.New(pgerror.DiskFull, "no space left on device").WithHint("Free space on the disk of the data directory; committed data is safe.")
	case errors.As(err, &unavailable):
		return unavailableError(unavailable)
	case errors.As(err, &oracle):
		return pgerror.New(pgerror.ConnectionFailure, "%v", oracle).WithHint("Retry once the oracle is back.")
	case errors.As(err, &corrupt):
		return pgerror.New(pgerror.DataCorrupted, "%v", corrupt).WithHint("Run percodb check on the data directory.")
	case errors.Is(err, ErrClientGone):
		return pgerror.New(pgerror.ConnectionFailure, "%v", ErrClientGone)
	case errors.Is(err, kv.ErrClosed):
		return pgerror.New(pgerror.AdminShutdown, "the server is shutting down")
	}
	return pgerror.New(pgerror.InternalError, "%v", err)
}

// unavailableError names the store that has not answered; what the network said is the detail.
func unavailableError(err *kv.UnavailableError) *pgerror.Error {
	what, hint := fmt.Sprintf("store %s does not answer", err.Shard), "Retry once its process is back; percodb store forget excludes a store that is gone for good."
	if err.Shard == "directory" {
		what, hint = "the directory of ranges is not available", "Retry once the tso process is back."
	}
	return pgerror.New(pgerror.ConnectionFailure, "%s", what).WithDetail("%v", err.Err).WithHint(hint)
}

// retryable reports whether a statement that nothing was sent of may be run again on a fresh
// snapshot: its transaction certainly did not commit.
func retryable(err error) bool {
	return mvcc.KindOf(err).TxnMayRetry()
}

// ReportPanic logs a recovered panic under an id and returns the error that names it.
func ReportPanic(log *slog.Logger, p any) *pgerror.Error {
	var id [4]byte
	_, _ = rand.Read(id[:]) // crypto/rand.Read never fails.
	name := hex.EncodeToString(id[:])
	log.Error("panic in session", "id", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	e := pgerror.New(pgerror.InternalError, "internal error %s", name)
	e.Hint = "The server's log has the details under this id."
	return e
}
