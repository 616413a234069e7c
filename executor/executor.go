package executor

import (
	"context"
	"log/slog"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Txn is the transaction in which a plan runs.
type Txn interface {
	percolator.Reader
	percolator.Writer
	// AcquireLocks is percolator.Txn's.
	AcquireLocks(ctx context.Context, opts percolator.LockOptions, keys ...[]byte) (skipped []bool, err error)
	// LockNew is percolator.Txn's.
	LockNew(ctx context.Context, keys ...[]byte) (taken int, err error)
	// CheckNew is percolator.Txn's.
	CheckNew(ctx context.Context) error
	// BeginLocking is percolator.Txn's.
	BeginLocking()
	// AsideNow is percolator.Txn's.
	AsideNow(ctx context.Context, f func(r percolator.Reader) error) error
	// ExistsAtCommit is percolator.Txn's.
	ExistsAtCommit(ctx context.Context, key, guard []byte) (bool, error)
	// VerifyNew is percolator.Txn's.
	VerifyNew(ctx context.Context) error
	// MergeRuns is percolator.Txn's.
	MergeRuns(ctx context.Context) error
	// Notify is percolator.Txn's.
	Notify(set *mvcc.NotifySet)
}

// Operator is a running plan node. Open, then Next until a nil row, then Close; Close is legal at any
// time and more than once. One goroutine's.
type Operator interface {
	Open(ctx context.Context) error
	// Next returns the next row, or nil at the end. The row is valid until the following Next or Close; Clone it to keep
	// it.
	Next(ctx context.Context) (types.Row, error)
	Close() error
}

// Runtime is the environment of one execution of a plan.
type Runtime struct {
	Txn      Txn
	Resolver catalog.Resolver
	Env      *builtin.Env
	// Role is the OID of the role that may read the values in messages; 0: all may be read.
	Role uint32
	// ActAs has functions executed with the privileges of another role until leave is called; nil: there is one role.
	ActAs func(role uint32) (leave func())
	// Inputs are the values of Plan.Inputs.
	Inputs types.Row
	// RowIDs hands out values of hidden rowid columns.
	RowIDs RowIDSource
	// System provides the rows of system tables (TableDescriptor.Rows) about the session; nil: none.
	System catalog.SystemView
	// Changes is the source of percodb.changes.
	Changes ChangeSource
	// Triggers executes the functions of triggers; nil: there must be none.
	Triggers TriggerRunner
	// EagerUnique checks unique keys in the statement instead of at commit, and locks what foreign keys reference. It is set
	// inside transaction blocks, where a client expects the error from the statement, and a conflict repeats no statement.
	EagerUnique bool
	// Lock makes statements lock the keys they change, and the unique keys they insert, before they write; it is set if
	// Txn is pessimistic. A key may then turn out to have changed since it was read, and the statement fails with
	// percolator.ErrRestartStatement.
	Lock bool
	// Replica: session_replication_role is replica, so that neither foreign keys are checked nor ordinary triggers executed.
	Replica bool
	// Deferred are what the transaction has deferred of foreign keys and triggers; nil: nothing is deferred.
	Deferred *Deferred
	// Hop is the length of the chain of observers that the changes continue: 0 for those of clients.
	Hop uint8
	// GroupSize is the number of rows that operators with inner batches process together; 0: default. Tests set 1.
	GroupSize int
	// PageHint is the size of the first page of every scan; 0: the plan's estimate. Tests set 1.
	PageHint int
	// MemoryLimitBytes bounds what sorts, hash tables and materialised rows may hold; 0: default.
	MemoryLimitBytes int64
	// Parallel is what the session permits of goroutines beside its own.
	Parallel planner.Parallelism
	// Scratch keeps memory for the session's next statements; nil: each statement allocates its own.
	Scratch *Scratch
	// TempDir is the directory of operators' temporary files; "": the system's.
	TempDir string
	Logger  *slog.Logger
}

// RowIDSource hands out unique, growing row ids for a table without primary key.
type RowIDSource interface {
	NextRowID(ctx context.Context, tableID uint64) (int64, error)
}
