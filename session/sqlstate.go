package session

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"syscall"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/sql/pgerror"
)

// ErrClientGone says that the connection cannot go on. Where that is so, errors of ResultWriters are of its kind.
var ErrClientGone = errkind.New(errkind.ClientGone, "the client is gone")

// ToPGError maps any error to what the client sees, by its kind. Conflicts whose row is known have been explained before
// (errorcontext.go).
func ToPGError(err error) *pgerror.Error {
	var pg *pgerror.Error
	if errors.As(err, &pg) {
		return pg
	}
	mapped := mapError(err)
	mapped.Cause = err
	return mapped
}

// mapError maps an error by its kind. The fields of the error that has the kind make the detail.
func mapError(err error) *pgerror.Error {
	if errors.Is(err, catalog.ErrNoDatabase) {
		return pgerror.New(pgerror.InvalidCatalogName, "%v", catalog.ErrNoDatabase)
	}
	kind, typed := errkind.Find(err)
	switch kind {
	case errkind.Undetermined:
		e := pgerror.New(pgerror.TxnResolutionUnknown, "the outcome of the transaction is unknown: the answer to its commit was lost")
		return e.WithHint("Look whether its changes are there before you run it again.")
	case errkind.Deadlock:
		return pgerror.New(pgerror.DeadlockDetected, "deadlock detected").WithHint(hintOrder)
	case errkind.LockNotAvailable:
		return pgerror.New(pgerror.LockNotAvailable, "could not obtain lock on row").WithHint(hintLater)
	case errkind.ReadConflict:
		return dependencyError().WithHint(hintRetry)
	case errkind.WriteConflict, errkind.RolledBack, errkind.Locked, errkind.LockLost, errkind.CommitTooLate, errkind.RestartStatement:
		return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update").WithHint(hintRetry)
	case errkind.SchemaChanged:
		return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to a concurrent schema change").WithHint(hintRetry)
	case errkind.Exists:
		return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates a unique constraint")
	case errkind.TooOld:
		return pgerror.New(pgerror.SnapshotTooOld, "snapshot too old").WithHint("Start the transaction again.")
	case errkind.TooLarge:
		if limit, ok := typed.(*kv.SizeLimitError); ok {
			return pgerror.New(pgerror.ProgramLimitExceeded, "%v", limit)
		}
		return pgerror.New(pgerror.ProgramLimitExceeded, "%v", typed).WithHint("Commit in smaller steps.")
	case errkind.Canceled:
		return pgerror.New(pgerror.QueryCanceled, "%v", typed)
	case errkind.Context:
		return pgerror.New(pgerror.QueryCanceled, "%v", errCanceled)
	case errkind.Shutdown:
		return pgerror.New(pgerror.AdminShutdown, "%v", typed)
	case errkind.ClientGone:
		return pgerror.New(pgerror.ConnectionFailure, "%v", ErrClientGone)
	case errkind.Closed, errkind.OracleClosed:
		return pgerror.New(pgerror.AdminShutdown, "the server is shutting down")
	case errkind.OracleUnavailable:
		return pgerror.New(pgerror.ConnectionFailure, "%v", typed).WithHint("Retry once the oracle is back.")
	case errkind.Unavailable:
		return unavailableError(typed)
	case errkind.Refused:
		return pgerror.New(pgerror.ConnectionFailure, "%v", typed).WithHint("Check the project, the instance, the permissions of the server's credentials, and that the application profile routes to a single cluster.")
	case errkind.Corrupt:
		return pgerror.New(pgerror.DataCorrupted, "%v", typed).WithHint("Run percodb check on the data directory.")
	case errkind.OutOfMemory, errkind.DiskFull, errkind.NoSpace, errkind.TempFile:
		return resourceError(kind, typed)
	}
	return pgerror.New(pgerror.InternalError, "%v", err)
}

// resourceError maps the errors of what has run out.
func resourceError(kind errkind.Kind, typed error) *pgerror.Error {
	switch kind {
	case errkind.OutOfMemory:
		e := pgerror.New(pgerror.OutOfMemory, "out of memory").
			WithHint("Retry when fewer statements run, select less at once, or start the server with a larger --memory.")
		if exceeded, ok := typed.(*memory.ExceededError); ok {
			e = e.WithDetail("%d bytes were asked for; %d of %d bytes for %s are in use.", exceeded.Asked, exceeded.Used, exceeded.Limit, exceeded.Pool)
		}
		return e
	case errkind.TempFile:
		code := pgerror.IOError
		if errors.Is(typed, syscall.ENOSPC) {
			code = pgerror.DiskFull
		}
		return pgerror.New(code, "%v", typed).WithHint("What a transaction writes beyond its share of memory needs room in the directory for temporary files (TMPDIR).")
	}
	e := pgerror.New(pgerror.DiskFull, "no space left on device")
	if full, ok := typed.(*kv.DiskFullError); ok {
		return e.WithDetail("The disk of store %s is full; reads go on.", full.Shard).
			WithHint("Free space on that disk: writes go on by themselves then.")
	}
	return e.WithHint("Free space on the disk of the data directory; committed data is safe.")
}

// unavailableError names the store that has not answered; what the network said is the detail.
func unavailableError(typed error) *pgerror.Error {
	err, ok := typed.(*kv.UnavailableError)
	if !ok {
		return pgerror.New(pgerror.ConnectionFailure, "%v", typed)
	}
	what, hint := fmt.Sprintf("store %s does not answer", err.Shard), "Retry once its process is back; percodb store forget excludes a store that is gone for good."
	switch {
	case err.Quota:
		return pgerror.New(pgerror.ConfigurationLimitExceeded, "a quota of %s is used up", err.Shard).WithDetail("%v", err.Err).WithHint("Retry later, or raise the quota.")
	case err.Shard == kv.BigtableShardID:
		what, hint = "Bigtable does not answer", "Retry later."
	case err.Shard == "directory":
		what, hint = "the directory of ranges is not available", "Retry once the tso process is back."
	}
	return pgerror.New(pgerror.ConnectionFailure, "%s", what).WithDetail("%v", err.Err).WithHint(hint)
}

// retryable reports whether a statement that nothing was sent of may be run again on a fresh
// snapshot: its transaction certainly did not commit.
func retryable(err error) bool {
	return errkind.Of(err).TxnMayRetry()
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
