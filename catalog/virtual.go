package catalog

import (
	"cmp"
	"context"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// VirtualRows computes the rows of a system table as of a resolver. It calls yield with each full
// row, which yield must not keep; an error of yield ends it.
type VirtualRows func(ctx context.Context, r Resolver, view SystemView, yield func(types.Row) error) error

// SystemView is what system tables show of the session that reads them and of its server. A nil SystemView shows
// nothing.
type SystemView interface {
	User() string
	// Role is the OID of the role with whose privileges the reader acts.
	Role() uint32
	// InForce returns the schema whose roles and privileges decide what the reader is shown: r, the one that is read, unless that is of
	// the past.
	InForce(ctx context.Context, r Resolver) (Resolver, error)
	// ViewColumns returns the columns of tables and views that a view of r reads.
	ViewColumns(ctx context.Context, r Resolver, view *TableDescriptor) ([]RelationColumns, error)
	// ViewText is the query of a view of r as clients are shown it, in the pretty form or with all parentheses. A select list continues in the
	// next line beyond wrap columns; negative: it does not.
	ViewText(ctx context.Context, r Resolver, view *TableDescriptor, pretty bool, wrap int) (string, error)
	// ExprText is an expression as clients are shown it, in the pretty form or with all parentheses.
	ExprText(ctx context.Context, r Resolver, e StoredExpr, pretty bool) (string, error)
	// RoutineText is the body of a function in SQL's standard form as clients are shown it.
	RoutineText(ctx context.Context, r Resolver, d *RoutineDescriptor) (string, error)
	// Uses are the objects that the query of a view names, or if view is nil a stored expression.
	Uses(ctx context.Context, r Resolver, view *TableDescriptor, e StoredExpr) ([]ObjectUse, error)
	// UpdatesOf returns by which commands a relation of r can be changed, or with column > 0 that column of it; triggers: by INSTEAD OF as well.
	UpdatesOf(ctx context.Context, r Resolver, t *TableDescriptor, triggers bool, column int) (Updates, error)
	// Settings lists all settings as the session sees them, by name (pg_settings).
	Settings() []Setting
	// Prepared lists the session's prepared statements (pg_prepared_statements), Cursors its open cursors and portals (pg_cursors).
	Prepared() []Prepared
	Cursors() []Cursor
	// Activity lists the server's sessions (pg_stat_activity).
	Activity() []Activity
	// AccessRules lists the rules for clients as their file has them now (pg_hba_file_rules).
	AccessRules(ctx context.Context) ([]AccessRule, error)
	// FileSettings lists what ALTER SYSTEM has stored, by name (pg_file_settings).
	FileSettings(ctx context.Context) ([]FileSetting, error)
	// AdvisoryLocks lists the advisory locks of this process's sessions (pg_locks).
	AdvisoryLocks() []AdvisoryLock
	// SessionLocks lists the other locks of this process's transactions (pg_locks).
	SessionLocks() []SessionLocks
	// Transactions lists the open transactions of this process (percodb.transactions).
	Transactions() []Transaction
	// Locks calls yield with every lock of the store or cluster (percodb.locks).
	Locks(ctx context.Context, yield func(*kv.RangeDescriptor, *mvcc.LockInfo) error) error
	// Ranges lists the ranges of the store or cluster (percodb.ranges).
	Ranges(ctx context.Context) ([]Range, error)
	// Oracle returns the state of the timestamp oracle (percodb.oracle).
	Oracle(ctx context.Context) (Oracle, error)
	// ObserverActivity returns what is known of the observers' work, by their numbers (percodb.observers). One that is missing
	// has done nothing.
	ObserverActivity(ctx context.Context) (map[uint64]ObserverActivity, error)
	// ObserverErrors calls yield with the rows that observers have set aside (percodb.observer_errors).
	ObserverErrors(ctx context.Context, yield func(*ObserverError) error) error
	// IndexProgress lists the builds of indexes (pg_stat_progress_create_index).
	IndexProgress(ctx context.Context) ([]IndexProgress, error)
	// Changed calls yield with the rows that the session's observer handles together (ChangedRelation).
	Changed(yield func(types.Row) error) error
}

// Updates are commands that change a relation, numbered as pg_relation_is_updatable does.
type Updates int

// The commands that change a relation.
const (
	CanUpdate  Updates = 1 << 2
	CanInsert  Updates = 1 << 3
	CanDelete  Updates = 1 << 4
	CanAll             = CanUpdate | CanInsert | CanDelete
	CanReplace         = CanUpdate | CanDelete // what updatable means of a view or a column
)

// Allow reports whether all of some commands are among u.
func (u Updates) Allow(all Updates) bool { return u&all == all }

// RelationColumns are columns of a relation, by ordinal.
type RelationColumns struct {
	Relation *TableDescriptor
	Columns  []int
}

// AdvisoryLock is one advisory lock that a session has or waits for.
type AdvisoryLock struct {
	PID             uint32
	Database        uint32 // its OID
	High, Low       uint32 // as in AdvisoryKey
	Pair            bool
	Shared, Granted bool
	WaitStart       int64 // microseconds since 2000-01-01 UTC, 0 if it is granted
}

// Setting is one row of pg_settings.
type Setting struct {
	Name, Value, Description, Context, Source, Default string
	Type, Unit, Category, Min, Max                     string
	Values                                             []string // nil: any
	PendingRestart                                     bool
}

// Prepared is one row of pg_prepared_statements.
type Prepared struct {
	Name, Statement string
	At              int64 // microseconds since 2000-01-01 UTC
	Params          []types.Type
	FromSQL         bool // by PREPARE, not by the protocol
}

// Cursor is one row of pg_cursors.
type Cursor struct {
	Name, Statement              string
	Holdable, Binary, Scrollable bool
	At                           int64 // as in Prepared
}

// Activity is one session in pg_stat_activity.
type Activity struct {
	PID                                         uint32
	Role                                        uint32 // OID of the role that has connected
	DatabaseOID                                 uint32
	Database                                    string
	User, Application, ClientAddr, State, Query string
	ClientPort                                  int  // -1: a Unix socket
	TLS                                         *TLS // nil: the connection is not encrypted
	// WaitType and Wait are wait_event_type and wait_event, "" for none.
	WaitType, Wait string
	// Times are microseconds since 2000-01-01 UTC, 0 for none.
	BackendStart, XactStart, QueryStart, StateChange int64
}

// TLS is an encrypted connection in pg_stat_ssl. The names and the number are empty without a certificate of the client.
type TLS struct {
	Version, Cipher                  string
	Bits                             int
	ClientDN, ClientSerial, IssuerDN string
}

// AccessRule is one row of pg_hba_file_rules. A line that is not valid has an Error, and no other fields.
type AccessRule struct {
	Line                           int
	Type, Address, Netmask, Method string
	Databases, Users, Options      []string
	Error                          string
}

// Transaction is one open transaction of this process.
type Transaction struct {
	PID               uint32
	Role              uint32 // OID
	User, Application string
	Isolation, State  string
	Pessimistic       bool
	// StartTS identifies the transaction; it reads what was committed at or before ReadTS.
	StartTS, ReadTS tso.Timestamp
	// Reads is the number of spans it has recorded for verification, Locks the number of keys it has locked, Writes the
	// number of keys it is going to write, as of the end of its last statement.
	Reads, Locks, Writes int64
}

// Range is one range. SizeBytes is an estimate, -1 if unknown.
type Range struct {
	kv.RangeDescriptor
	SizeBytes int64
}

// Oracle is the state of the timestamp oracle.
type Oracle struct {
	// Now has just been issued. WindowEnd bounds what may be issued before another window is saved; 0 if the oracle is
	// in another process.
	Now, WindowEnd tso.Timestamp
	// SafePoint is the largest in force on a shard, 0 if there is none; OldestActive lies below the snapshots of all
	// transactions of this process.
	SafePoint, OldestActive tso.Timestamp
}

// ObserverActivity is the work of an observer: its backlog in the store, and the runs in this process since it started.
type ObserverActivity struct {
	// Pending is the number of rows with changes that are not handled; at least that if More. Oldest is the commit_ts of the
	// oldest of these changes, 0 if there is none.
	Pending int64
	More    bool
	Oldest  tso.Timestamp
	// Seeded is the number of rows notified so far by FROM BEGINNING.
	Seeded                           int64
	Runs, Conflicts, Retries, Errors int64
	// RunsPerSecond is the mean of the last minute.
	RunsPerSecond float64
	// LatencyP50 and LatencyP99 are the milliseconds from the commit of a change to that of its handling; 0: not known.
	LatencyP50, LatencyP99 float64
}

// StoredExpr is an expression that the catalog stores.
type StoredExpr struct {
	Text string
	// Table is that whose columns it may name, nil for none; Value the type of the value that the constraint of a domain checks.
	Table *TableDescriptor
	Value types.Type
	// Trigger: it is the condition of a trigger of Table, over the rows old and new.
	Trigger bool
	// Type is that to which it is cast as an assignment would; the zero Type: its own.
	Type types.Type
	// Routine is the function whose body in SQL's standard form it is; nil: it is an expression.
	Routine *RoutineDescriptor
}

// UsedKind is the kind of an object that a stored text names.
type UsedKind uint8

// The kinds of objects that texts name.
const (
	UsedRelation UsedKind = iota
	UsedRoutine
	UsedType
	UsedConfiguration
	UsedDictionary
	UsedCollation
	UsedOperator
	UsedCast
)

// ObjectUse is an object that a stored text names.
type ObjectUse struct {
	Kind   UsedKind
	ID     uint32
	Column uint32 // of a relation; 0: the relation
}

// CompareUses orders uses by kind, object and column.
func CompareUses(a, b ObjectUse) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Column, b.Column))
}
