package executor

import (
	"context"
	"log/slog"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Txn is what a plan runs against.
type Txn interface {
	percolator.Reader
	percolator.Writer
	// AcquireLocks is percolator.Txn's.
	AcquireLocks(ctx context.Context, opts percolator.LockOptions, keys ...[]byte) (skipped []bool, err error)
	// LockNew is percolator.Txn's.
	LockNew(ctx context.Context, keys ...[]byte) (taken int, err error)
	// VerifyNew is percolator.Txn's.
	VerifyNew(ctx context.Context) error
	// MergeRuns is percolator.Txn's.
	MergeRuns(ctx context.Context) error
}

// Operator is a running plan node. Open, then Next until a nil row, then Close; Close is legal at any
// time and more than once. One goroutine's.
type Operator interface {
	Open(ctx context.Context) error
	// Next returns the next row, or nil at the end. The row is valid until the following Next or
	// Close; Clone what you keep.
	Next(ctx context.Context) (types.Row, error)
	Close() error
}

// Runtime is what one execution of a plan needs beside the plan.
type Runtime struct {
	Txn      Txn
	Resolver catalog.Resolver
	Env      *builtin.Env
	// Inputs are the values of Plan.Inputs.
	Inputs types.Row
	// RowIDs hands out values of hidden rowid columns.
	RowIDs RowIDSource
	// System is what system tables (TableDescriptor.Rows) show of the session; nil: nothing.
	System catalog.SystemView
	// EagerUnique asks for unique violations at the statement rather than at commit: set inside
	// transaction blocks, where a client expects the error at once.
	EagerUnique bool
	// Lock has statements lock the keys they change, and unique keys they take, before they write:
	// set where Txn is pessimistic. What was read of a key may then turn out to be old, and the
	// statement fails with percolator.ErrRestartStatement.
	Lock bool
	// GroupSize is how many rows operators with inner batches take together; 0: default. Tests set 1.
	GroupSize int
	// PageHint is the size of the first page of every scan; 0: what the plan expects. Tests set 1.
	PageHint int
	// MemoryLimitBytes bounds what sorts, hash tables and materialised rows may hold; 0: default.
	MemoryLimitBytes int64
	// Scratch keeps memory for the session's next statements; nil: it is allocated anew.
	Scratch *Scratch
	// TempDir is where operators put what does not fit into memory; "": the system's.
	TempDir string
	Logger  *slog.Logger
}

// RowIDSource hands out unique, growing row ids for a table without primary key.
type RowIDSource interface {
	NextRowID(ctx context.Context, tableID uint64) (int64, error)
}
