package catalog

import (
	"fmt"

	"github.com/percodb/percodb/kv/mvcc"
)

// SchemaChangedError: the transaction was planned under a schema that a change has replaced, or is
// replacing. Nothing was committed; planned again on a fresh snapshot it may succeed.
type SchemaChangedError struct {
	Table uint64 // relation id
	Name  string // as of planning
}

func (e *SchemaChangedError) Error() string {
	return fmt.Sprintf("schema of relation %q has changed since the transaction was planned", e.Name)
}

// Kind says what the error means; see mvcc.Kind.
func (e *SchemaChangedError) Kind() mvcc.Kind { return mvcc.KindSchemaChanged }

// CorruptionError: the catalog's keys hold what the catalog cannot have written.
type CorruptionError struct {
	Key    []byte
	Detail string
}

func (e *CorruptionError) Error() string { return fmt.Sprintf("catalog key %q: %s", e.Key, e.Detail) }

// FormatError: the store's catalog was written by a version with another layout.
type FormatError struct{ Found, Want string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("catalog has format %s, this program reads format %s", e.Found, e.Want)
}
