package catalog

import (
	"fmt"

	"github.com/percodb/percodb/internal/errkind"
)

// SchemaChangedError: the transaction was planned under a schema that a change has replaced or is replacing. Nothing was
// committed; if it is planned again on a new snapshot it may succeed.
type SchemaChangedError struct {
	Table uint64 // relation id
	Name  string // as of planning
}

func (e *SchemaChangedError) Error() string {
	return fmt.Sprintf("schema of relation %q has changed since the transaction was planned", e.Name)
}

// Kind implements errkind.Error.
func (e *SchemaChangedError) Kind() errkind.Kind { return errkind.SchemaChanged }

// ConflictError: other transactions have changed the schema so that this one's change of it cannot be committed. Nothing was
// committed; another attempt may succeed.
type ConflictError struct {
	privileges bool // others have changed owners, roles or privileges
}

func (*ConflictError) Error() string { return "the schema has been changed by another transaction" }

// Kind implements errkind.Error.
func (*ConflictError) Kind() errkind.Kind { return errkind.WriteConflict }

// DeadlockError: the transaction would wait for a schema change, whose transaction waits for a row lock of this one, or for
// another schema change that does. The transaction has not committed and must be rolled back.
type DeadlockError struct {
	Relation string // that the transaction depends on and that is changed; "" if it is to change the schema itself
	Err      error  // *waitgraph.DeadlockError
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("deadlock with a schema change of %q: %v", e.Relation, e.Err)
}
func (e *DeadlockError) Unwrap() error { return e.Err }

// Kind implements errkind.Error.
func (e *DeadlockError) Kind() errkind.Kind { return errkind.Deadlock }

// LockTimeoutError: the wait for a schema change has reached Guard.LockTimeout. The transaction has not committed and must be rolled
// back.
type LockTimeoutError struct {
	Relation string // as in DeadlockError
}

func (e *LockTimeoutError) Error() string {
	return fmt.Sprintf("waited too long for a schema change of %q", e.Relation)
}

// Kind implements errkind.Error.
func (e *LockTimeoutError) Kind() errkind.Kind { return errkind.LockNotAvailable }

// CorruptionError: the catalog's keys contain data that the catalog cannot have written.
type CorruptionError struct {
	Key    []byte
	Detail string
}

func (e *CorruptionError) Error() string { return fmt.Sprintf("catalog key %q: %s", e.Key, e.Detail) }

// Kind implements errkind.Error.
func (e *CorruptionError) Kind() errkind.Kind { return errkind.Corrupt }

// FormatError: the store's catalog was written by a version with another layout.
type FormatError struct{ Found, Want string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("catalog has format %s, this program reads format %s", e.Found, e.Want)
}
