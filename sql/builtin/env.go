package builtin

import (
	"context"
	"time"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Env is what a function may know of its statement. Times are microseconds since 2000-01-01 UTC. A
// nil interface means that the functions behind it fail with 0A000.
type Env struct {
	Ctx       context.Context // nil: never cancelled
	TxnTime   int64           // now(), current_timestamp
	StmtTime  int64           // statement_timestamp()
	Clock     func() int64    // clock_timestamp(); nil: the machine's clock
	Format    types.Format
	Session   SessionInfo
	Sequences Sequences
	Catalog   Catalog
	Rand      *Rand // the session's random(); nil: one seeded for this Env at first use

	// Memory is where large values are counted (budget.go); nil: nowhere.
	Memory *memory.Account

	counted, pinned  int64
	steps, stepLimit int

	patterns patternCache
	castArg  [1]types.Datum // Cast.Apply's argument, so that a cast allocates nothing
}

// SessionInfo answers functions about the session.
type SessionInfo interface {
	User() string
	SessionUser() string
	Database() string
	// Schemas is the search path, with implicit schemas when asked for.
	Schemas(implicit bool) []string
	Version() string // what version() returns
	PID() int32
	// Setting returns the value SHOW would print; false for an unknown name.
	Setting(name string) (string, bool)
	SetSetting(name, value string, local bool) error
	// TxnID is a number for the current transaction, for txid_current.
	TxnID() int64
	ServerStart() int64 // for pg_postmaster_start_time
	// CancelBackend and TerminateBackend end a session's statement or the session, by its process id;
	// false with a warning if there is none.
	CancelBackend(pid int32) (bool, error)
	TerminateBackend(ctx context.Context, pid int32, timeout time.Duration) (bool, error)
}

// Sequences answers the sequence functions. Relations come as regclass, by OID.
type Sequences interface {
	NextVal(ctx context.Context, sequence types.OID) (int64, error)
	CurrVal(ctx context.Context, sequence types.OID) (int64, error)
	LastVal(ctx context.Context) (int64, error)
	SetVal(ctx context.Context, sequence types.OID, value int64, called bool) error
}

// Catalog answers functions about objects. ok is false where PostgreSQL returns NULL.
type Catalog interface {
	types.Names
	// RelationVisible is pg_table_is_visible.
	RelationVisible(relation types.OID) (visible, ok bool)
	RoleName(role types.OID) (string, bool)
	ViewDefinition(view types.OID) (string, bool)
	// IndexDefinition is pg_get_indexdef; column 0 asks for the whole definition.
	IndexDefinition(index types.OID, column int) (string, bool)
	ConstraintDefinition(constraint types.OID) (string, bool)
	// Comment is obj_description (column 0) and col_description; catalog is the object's table's
	// name ("pg_class") or "".
	Comment(object types.OID, catalog string, column int) (string, bool)
	// RelationSize is the estimate of bytes a relation holds; with indexes when asked for.
	RelationSize(ctx context.Context, relation types.OID, withIndexes bool) (int64, error)
	DatabaseSize(ctx context.Context) (int64, error)
	// SerialSequence is pg_get_serial_sequence.
	SerialSequence(table, column string) (string, bool, error)
}

// ctx returns the statement's context.
func (e *Env) ctx() context.Context {
	if e.Ctx == nil {
		return context.Background()
	}
	return e.Ctx
}

// UnixToTimestamp turns a Go time into microseconds since 2000-01-01 UTC.
func UnixToTimestamp(t time.Time) int64 {
	return t.UnixMicro() - timestampEpochUnix
}

// timestampEpochUnix is 2000-01-01 UTC in microseconds of Unix time.
const timestampEpochUnix = 946684800 * types.MicrosPerSecond

func (e *Env) clock() int64 {
	if e.Clock != nil {
		return e.Clock()
	}
	return UnixToTimestamp(time.Now())
}

func (e *Env) rand() *Rand {
	if e.Rand == nil {
		e.Rand = NewRand()
	}
	return e.Rand
}

func errNoService(what string) error {
	return pgerror.New(pgerror.FeatureNotSupported, "%s is not available here", what)
}
