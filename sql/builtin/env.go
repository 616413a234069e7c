package builtin

import (
	"context"
	"net"
	"time"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// Env is the state of a statement that functions can use. Times are microseconds since 2000-01-01 UTC. The functions of
// a nil interface fail with 0A000.
type Env struct {
	Ctx       context.Context // nil: never cancelled
	TxnTime   int64           // now(), current_timestamp
	StmtTime  int64           // statement_timestamp()
	Clock     func() int64    // clock_timestamp(); nil: the machine's clock
	Format    types.Format
	Session   SessionInfo
	Sequences Sequences
	Catalog   Catalog
	Routines  Routines
	Cursors   Cursors // nil: there are none
	Queries   Queries
	Rand      *Rand // the session's random(); nil: one seeded for this Env at first use

	// TextSearch returns the configurations and dictionaries; nil: there are those that every database has.
	TextSearch func() TextSearch

	// RestrictedCalls returns the check of EXECUTE by the signature of a function, for expressions that no plan contains; it returns nil while every role may
	// execute all functions, and may be nil itself: there is one role.
	RestrictedCalls func() (mayCall func(signature string) error)

	// Memory counts large values (budget.go); nil: they are not counted.
	Memory *memory.Account

	// ExtensionUsed is told of each function, operator and type of an extension that is found while a statement is bound; nil: nobody is.
	ExtensionUsed func(Use)
	// ObjectUsed is told of each routine and text search object of a user; no call is inlined then. nil: nobody is.
	ObjectUsed func(Use)
	// ImplicitOperator is told of each operator of a user that a construct like IN or BETWEEN has found, which cannot be stored; nil: nobody is.
	ImplicitOperator func(*Operator)

	counted, pinned  int64
	steps, stepLimit int

	// emptyQuery is the last text that warnEmptyQuery was called with, and the statement's time then.
	emptyQuery struct {
		at   int64
		text string
	}

	patterns patternCache
	castArg  [1]types.Datum // Cast.Apply's argument, so that a cast allocates nothing
}

// SessionInfo answers functions about the session.
type SessionInfo interface {
	User() string
	SessionUser() string
	Database() string
	// Schemas returns the search path, optionally with implicit schemas.
	Schemas(implicit bool) []string
	// TemporarySchema is the OID of the session's schema of temporary relations, 0 if it has none.
	TemporarySchema() uint32
	Version() string // what version() returns
	PID() int32
	// ClientAddr and ServerAddr are the ends of the connection, *net.TCPAddr or of a Unix socket; nil: there is none.
	ClientAddr() net.Addr
	ServerAddr() net.Addr
	// Setting returns the value that SHOW prints. Errors: 42704 for an unknown name, 42501.
	Setting(name string) (string, error)
	SetSetting(name, value string, local bool) error
	// SettingFlags returns what pg_settings_get_flags does; false: there is no such parameter.
	SettingFlags(name string) ([]string, bool)
	// StatementText is the text that the client has sent, for current_query.
	StatementText() string
	// TxnID returns a number for the current transaction, for txid_current. assign: PostgreSQL would give it one now, if it has none.
	TxnID(assign bool) int64
	// TxnAssigned reports whether PostgreSQL would have given the transaction a number: it has written, or was asked for it.
	TxnAssigned() bool
	ServerStart() int64 // for pg_postmaster_start_time
	TriggerDepth() int  // for pg_trigger_depth
	// CancelBackend and TerminateBackend end a session's statement or the session, by its process id; false with a
	// warning if there is none.
	CancelBackend(pid int32) (bool, error)
	TerminateBackend(ctx context.Context, pid int32, timeout time.Duration) (bool, error)
	// BlockingPIDs are the process ids of the sessions of this process for which a session waits: pg_blocking_pids.
	BlockingPIDs(ctx context.Context, pid int32) ([]int32, error)
	// ReloadConfiguration is pg_reload_conf. Errors: 42501 for roles that are no superusers.
	ReloadConfiguration() (bool, error)
	// LockAdvisory locks a key and reports whether it is locked; UnlockAdvisory undoes that for one of the session level, false with a
	// warning if there is none; UnlockAllAdvisory does for all of them.
	LockAdvisory(ctx context.Context, lock AdvisoryLock) (bool, error)
	UnlockAdvisory(ctx context.Context, lock AdvisoryLock) bool
	UnlockAllAdvisory(ctx context.Context)
	// Notify is pg_notify. ListeningChannels and NotificationQueueUsage are the functions of these names.
	Notify(channel, payload string) error
	ListeningChannels() []string
	NotificationQueueUsage() float64
}

// TextSearch finds text search configurations and dictionaries by OID; nil for an unknown one. Safe for concurrent use.
type TextSearch interface {
	Configuration(oid uint32) *textsearch.Configuration
	Dictionary(oid uint32) *textsearch.Dictionary
}

// Cursors tells where the session's cursors are, for WHERE CURRENT OF.
type Cursors interface {
	// CurrentKey returns the primary key of the row of a table from which the cursor's current row comes; nil: it comes from none, as in
	// an outer join. Errors: 34000, 24000.
	CurrentKey(cursor string, table uint64, tableName string) (types.Row, error)
}

// Sequences implements the sequence functions. Relations are regclass values, by OID.
type Sequences interface {
	// State returns the value that a sequence handed out last, or will hand out first if called is false. check: the role must have a privilege
	// on it.
	State(ctx context.Context, sequence types.OID, check bool) (last int64, called bool, err error)
	NextVal(ctx context.Context, sequence types.OID) (int64, error)
	CurrVal(ctx context.Context, sequence types.OID) (int64, error)
	LastVal(ctx context.Context) (int64, error)
	SetVal(ctx context.Context, sequence types.OID, value int64, called bool) error
}

// Queries runs the queries that functions take as a text, within the statement that calls the function and with the privileges of its
// user.
type Queries interface {
	// Query calls columns with the types of the query's columns, then row with each row, which is valid during the call.
	// Errors: 42P11 for what is no query, those of the query and of the functions.
	Query(ctx context.Context, text string, columns func([]types.Type) error, row func(types.Row) error) error
}

// DatabaseQuery names a database: the current one, or by its name, or by its OID.
type DatabaseQuery struct {
	Current bool
	Name    string
	OID     types.OID
}

// Catalog implements functions about objects. ok is false where PostgreSQL returns NULL.
type Catalog interface {
	types.Names
	// RelationVisible implements pg_table_is_visible.
	RelationVisible(relation types.OID) (visible, ok bool)
	// TypeVisible implements pg_type_is_visible.
	TypeVisible(t types.OID) (visible, ok bool)
	// TextSearchVisible implements pg_ts_config_is_visible and pg_ts_dict_is_visible, by the type regconfig or regdictionary.
	TextSearchVisible(t, object types.OID) (visible, ok bool)
	// OperatorVisible implements pg_operator_is_visible, OperatorClassVisible pg_opclass_is_visible and pg_opfamily_is_visible.
	OperatorVisible(operator types.OID) (visible, ok bool)
	OperatorClassVisible(class types.OID, family bool) (visible, ok bool)
	// CollationVisible implements pg_collation_is_visible.
	CollationVisible(collation types.OID) (visible, ok bool)
	// CollationVersion implements pg_collation_actual_version: that of the rules in the program, "" for none.
	CollationVersion(collation types.OID) (version string, ok bool)
	// HasRole implements pg_has_role.
	HasRole(member, role types.OID, privilege string) (bool, error)
	// HasPrivilege implements has_…_privilege; it is not known for an OID that no object has.
	HasPrivilege(q *PrivilegeQuery) (has, known bool, err error)
	// Updatable returns by which commands a relation, or with column > 0 that column of it, can be changed, as pg_relation_is_updatable numbers
	// them, and whether UPDATE and DELETE are among them; triggers: by INSTEAD OF triggers as well.
	Updatable(relation types.OID, triggers bool, column int) (events int, replace bool, err error)
	// RowSecurityActive reports whether policies of a relation apply to the current role.
	RowSecurityActive(relation types.OID) bool
	// ViewDefinition implements pg_get_viewdef. A select list continues in the next line beyond wrap columns; negative: it does not.
	ViewDefinition(view types.OID, pretty bool, wrap int) (string, bool)
	// RuleDefinition implements pg_get_ruledef.
	RuleDefinition(rule types.OID, pretty bool) (string, bool)
	// PrettyExpr writes an expression, which a system table shows, with those parentheses only that are needed. relation: that whose columns it may
	// name, 0 for none. What is no expression is returned as it is.
	PrettyExpr(text string, relation types.OID) string
	// IndexDefinition implements pg_get_indexdef; column 0 selects the whole definition, pretty leaves out what is not needed.
	IndexDefinition(index types.OID, column int, pretty bool) (string, bool)
	// IndexKey returns the numbers of the columns of an index, 0 for expressions; nil if there is no such index.
	IndexKey(index types.OID) []int64
	// Routine returns a routine of a user, nil if there is none with the OID.
	Routine(routine types.OID) *Proc
	ConstraintDefinition(constraint types.OID, pretty bool) (string, bool)
	// PartitionKeyDefinition implements pg_get_partkeydef.
	PartitionKeyDefinition(relation types.OID) (string, bool)
	// PartitionConstraint implements pg_get_partition_constraintdef.
	PartitionConstraint(relation types.OID) (string, bool)
	// PartitionTree returns a partitioned table or partition, and all below it; PartitionAncestors itself, and all above it. Of other relations
	// there are none.
	PartitionTree(relation types.OID) []PartitionNode
	PartitionAncestors(relation types.OID) []types.OID
	// TriggerDefinition implements pg_get_triggerdef.
	TriggerDefinition(trigger types.OID, pretty bool) (string, bool)
	// Comment implements obj_description (column 0) and col_description; catalog is the name of the object's table
	// ("pg_class") or "".
	Comment(object types.OID, catalog string, column int) (string, bool)
	// Describe implements pg_describe_object; class is the OID of the system table that has the object.
	Describe(class, object types.OID, column int) (string, bool)
	// RelationSize estimates the bytes of a relation, optionally with indexes.
	RelationSize(ctx context.Context, relation types.OID, withIndexes bool) (int64, error)
	// DatabaseSize estimates the bytes of a database, if it is known.
	DatabaseSize(ctx context.Context, q DatabaseQuery) (size int64, known bool, err error)
	// SerialSequence implements pg_get_serial_sequence.
	SerialSequence(table, column string) (string, bool, error)
	// SystemRows calls yield with the rows of a relation of pg_catalog, which are valid during the call, and returns its columns.
	SystemRows(ctx context.Context, relation string, yield func(types.Row) error) ([]SetColumn, error)
}

// BeginTxn makes the statement's time the transaction's: that of now(), and of 'now' on input.
func (e *Env) BeginTxn() {
	e.TxnTime, e.Format.Now = e.StmtTime, e.StmtTime
}

// Beside returns an Env for another goroutine of the statement, in which only functions work that need neither the session nor the catalog.
func (e *Env) Beside(ctx context.Context, account *memory.Account) *Env {
	beside := &Env{Ctx: ctx, TxnTime: e.TxnTime, StmtTime: e.StmtTime, Clock: e.Clock, Format: e.Format, Memory: account}
	beside.Format.Warn = nil // The client's connection is that of the session's goroutine.
	if e.TextSearch != nil {
		all := e.TextSearch()
		beside.TextSearch = func() TextSearch { return all }
	}
	return beside
}

// Context returns the statement's context; never nil.
func (e *Env) Context() context.Context {
	if e.Ctx == nil {
		return context.Background()
	}
	return e.Ctx
}

// UnixToTimestamp converts a Go time to microseconds since 2000-01-01 UTC.
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
