package mvcc

import (
	"github.com/percodb/percodb/internal/errkind"
)

// Kind implements errkind.Error.
func (e *KeyLockedError) Kind() errkind.Kind { return errkind.Locked }

// Kind implements errkind.Error.
func (e *WriteConflictError) Kind() errkind.Kind { return errkind.WriteConflict }

// Kind implements errkind.Error.
func (e *RefreshConflictError) Kind() errkind.Kind { return errkind.ReadConflict }

// Kind implements errkind.Error.
func (e *LockLostError) Kind() errkind.Kind { return errkind.LockLost }

// Kind implements errkind.Error.
func (e *RolledBackError) Kind() errkind.Kind { return errkind.RolledBack }

// Kind implements errkind.Error.
func (e *AlreadyCommittedError) Kind() errkind.Kind { return errkind.Committed }

// Kind implements errkind.Error.
func (e *KeyExistsError) Kind() errkind.Kind { return errkind.Exists }

// Kind implements errkind.Error.
func (e *LockNotFoundError) Kind() errkind.Kind { return errkind.LockNotFound }

// Kind implements errkind.Error.
func (e *CommitTSExpiredError) Kind() errkind.Kind { return errkind.CommitTSExpired }

// Kind implements errkind.Error.
func (e *TxnNotFoundError) Kind() errkind.Kind { return errkind.TxnNotFound }

// Kind implements errkind.Error.
func (e *PrimaryMismatchError) Kind() errkind.Kind { return errkind.PrimaryMismatch }

// Kind implements errkind.Error.
func (e *TooOldError) Kind() errkind.Kind { return errkind.TooOld }

// Kind implements errkind.Error.
func (e *TSInFutureError) Kind() errkind.Kind { return errkind.Future }

// Kind implements errkind.Error.
func (e *InvalidRequestError) Kind() errkind.Kind { return errkind.Invalid }

// Kind implements errkind.Error.
func (e *CorruptionError) Kind() errkind.Kind { return errkind.Corrupt }
