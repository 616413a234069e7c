package ddl

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Deps are the dependencies of a statement on its server and session.
type Deps struct {
	DB      *percolator.DB
	Catalog *catalog.Catalog
	// Env evaluates defaults, checks and USING expressions.
	Env *builtin.Env
	// Txn is the block's transaction and Guard the one that guards it; nil to run alone. Alone, the
	// statement has committed when Run returns.
	Txn   *percolator.Txn
	Guard *catalog.Guard
	// Temporary is the session's schema of temporary relations; nil: it can have none.
	Temporary *catalog.Temporary
	// Refresh gives a block's statement its snapshot, after it has waited for other schema changes.
	Refresh func(ctx context.Context) error
	// SearchPath are the schemas in which unqualified names are looked up; new relations are created in the first one
	// that exists. nil: pg_catalog, public.
	SearchPath []string
	// User is the role that executes the statement, SessionUser the session's; by OID. 0: the superuser postgres.
	User, SessionUser uint32
	// Database is the name of the database, for messages.
	Database string
	// EndSessions ends the sessions that use a database, but the statement's own, and waits until they have; nil: it cannot be done.
	EndSessions func(ctx context.Context, database uint32) error
	// CheckSetting returns the error of SET of a parameter, for ALTER ROLE … SET, and the parameter's name as SHOW prints it.
	CheckSetting func(name, value string) (title string, err error)
	// SuperuserSetting reports whether a parameter is for superusers, and roles that have been granted SET on it.
	SuperuserSetting func(name string) bool
	// CheckProcedural checks the body of a function in PL/pgSQL; nil: it is not checked. Positions of errors and warnings are in the body.
	CheckProcedural func(ctx context.Context, d *catalog.RoutineDescriptor, r catalog.Resolver) (warnings []*pgerror.Error, err error)
	// LockTimeout bounds each wait for other schema changes of a statement that runs alone; 0: only the context does. In a
	// block Guard has it.
	LockTimeout time.Duration
	// Session is the process id of the session that waits (catalog.Guard.Session).
	Session uint32
	// Report takes notices and progress; nil drops them.
	Report Reporter
	// Exec runs a statement that has a plan, such as the INSERT … SELECT of CREATE TABLE AS. It returns the rows of a query, and the number of rows.
	Exec func(ctx context.Context, e Execution) (result []types.Row, rows int64, err error)
	// Restrict begins an operation on what a role owns, in which functions are executed with the privileges of that role and leave nothing behind in
	// the session; leave ends it. nil: there are no functions of users.
	Restrict func(owner uint32) (leave func())
	// Restricted: the statement is executed within such an operation.
	Restricted bool
	// Params are the values of the parameters in the query of CREATE TABLE AS.
	Params Params
	// CreateRange places a new table in a separate range; nil: it stays in the range of its keys.
	CreateRange func(ctx context.Context, span kv.Span) error
	// OneTransaction: a transaction commits in one step however large it is, since its store is in this process. Indexes
	// are then built and tables rewritten in one transaction, whose rows the store ingests as table files, instead of in
	// chunks.
	OneTransaction bool
	// FireTruncate executes the triggers of a table for TRUNCATE, those before it or those after, in a block; nil: there must be none.
	FireTruncate func(ctx context.Context, t *catalog.TableDescriptor, before bool) error
	// ChunkBytes is the size of the transactions that build indexes and rewrite tables: 4 MiB.
	ChunkBytes int
	// OnlineRows is the number of rows up to which CREATE INDEX keeps the table closed: 1024; negative: 0.
	OnlineRows int
	// Builds has the builds of indexes that the process is at; nil: nobody asks.
	Builds *Builds
	// ProgressRows is the number of rows between two reports of progress: 100,000.
	ProgressRows int64
	Logger       *slog.Logger // discards
}

func (d Deps) ensureDefaults() Deps {
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Report == nil {
		d.Report = silent{}
	}
	if d.User == 0 {
		d.User, d.SessionUser = catalog.BootstrapSuperuser, catalog.BootstrapSuperuser
	}
	if d.ChunkBytes == 0 {
		d.ChunkBytes = defaultChunkBytes
	}
	if d.OnlineRows == 0 {
		d.OnlineRows = onlineRows
	}
	d.OnlineRows = max(d.OnlineRows, 0)
	if d.ProgressRows == 0 {
		d.ProgressRows = 100_000
	}
	if d.SearchPath == nil {
		d.SearchPath = []string{catalog.PublicSchema}
	}
	return d
}

// Reporter receives notices and progress of a running statement.
type Reporter interface {
	// Notice takes a message of severity NOTICE.
	Notice(n *pgerror.Error)
	// Progress reports how many rows a long phase has processed.
	Progress(phase string, rows int64)
}

type silent struct{}

func (silent) Notice(*pgerror.Error)  {}
func (silent) Progress(string, int64) {}

// Handles reports whether Run runs statements of this kind.
func Handles(stmt ast.Statement) bool {
	switch n := stmt.(type) {
	case *ast.AlterObject:
		return n.Object.Role != nil || ofDatabase(n) || n.Change.Owner != nil || n.Object.Kind == "SCHEMA" || n.Object.Kind == "POLICY" || n.Object.Kind == "TRIGGER" || n.Object.Kind == "EXTENSION" || n.Object.Kind == "COLLATION" || ofType(n.Object.Kind) || ofRoutine(n.Object.Kind) ||
			ofTextSearch(n.Object.Kind) || ofOperations(n.Object.Kind)
	case *ast.DropObjects:
		return n.Objects[0].Role != nil || ofDatabase(n) || lackingKinds[n.Objects[0].Kind] != "" || n.Objects[0].Kind == "POLICY" || n.Objects[0].Kind == "TRIGGER" || n.Objects[0].Kind == "EXTENSION" || n.Objects[0].Kind == "COLLATION" || ofType(n.Objects[0].Kind) || ofRoutine(n.Objects[0].Kind) ||
			ofTextSearch(n.Objects[0].Kind) || ofOperations(n.Objects[0].Kind)
	case *ast.CreateFunction, *ast.AlterFunction, *ast.CreateCast, *ast.OperatorClass, *ast.OperatorFamily:
		return true
	case *ast.Define:
		return n.Kind == "AGGREGATE" || n.Kind == "OPERATOR" || n.Kind == "COLLATION" || ofTextSearch(n.Kind)
	case *ast.AlterTextSearch:
		return true
	case *ast.CreatePolicy, *ast.AlterPolicy, *ast.CreateTrigger:
		return true
	case *ast.CreateRole, *ast.AlterRole, *ast.AlterRoleSet, *ast.GrantRole:
		return true
	case *ast.AlterDatabaseSet, *ast.Database:
		return true
	case *ast.CreateMaterializedView, *ast.RefreshMaterializedView, *ast.LockTable:
		return true
	case *ast.CreateTable, *ast.CreateIndex, *ast.CreateView, *ast.CreateSequence, *ast.CreateSchema, *ast.Drop,
		*ast.AlterTable, *ast.Truncate, *ast.Comment, *ast.Analyze, *ast.Vacuum, *ast.Reindex, *ast.Cluster,
		*ast.CreateType, *ast.AlterEnum, *ast.CreateDomain, *ast.AlterDomain,
		*ast.AlterType, *ast.RenameAttribute, *ast.CreateExtension, *ast.AlterExtension,
		*ast.CreateObserver, *ast.AlterObserver, *ast.DropObserver, *ast.Grant, *ast.AlterDefaultPrivileges, *ast.OwnedBy:
		return true
	}
	return false
}

// ofType reports whether a kind of objects is one of types.
func ofType(kind string) bool { return kind == "TYPE" || kind == "DOMAIN" }

// defaultChunkBytes is Deps.ChunkBytes unless it is given.
const defaultChunkBytes = 4 << 20

// maxAttempts bounds how often a statement that runs alone starts again after a conflict with the
// schema change of another process.
const maxAttempts = 20

// Run executes one statement and returns its command tag. Errors are *pgerror.Error, those of percolator.Txn.Commit
// outside a block, and ctx's. In a block the caller must read the schema again (catalog.At) for the next statement.
func Run(ctx context.Context, stmt ast.Statement, d Deps) (tag string, err error) {
	d = d.ensureDefaults()
	if env := d.Env; env != nil {
		domains, textSearch := env.Format.Domains, env.TextSearch
		defer func() { env.Format.Domains, env.TextSearch = domains, textSearch }()
	}
	if d.Txn != nil {
		tag, err := runInBlock(ctx, stmt, &d)
		return tag, explainBuilding(err)
	}
	if n, ok := stmt.(*ast.Analyze); ok {
		return "ANALYZE", analyzeAlone(ctx, &d, n.Tables, n.Columns)
	}
	if n, ok := stmt.(*ast.Vacuum); ok {
		return "VACUUM", vacuumAlone(ctx, &d, n)
	}
	if n, ok := stmt.(*ast.Reindex); ok {
		return "REINDEX", reindexAlone(ctx, &d, n)
	}
	if n, ok := stmt.(*ast.CreateObserver); ok {
		return createObserverAlone(ctx, &d, n)
	}
	if n, ok := stmt.(*ast.CreateIndex); ok {
		return createIndexAlone(ctx, &d, n)
	}
	f := func(r *run) (string, error) { return r.execute(ctx, stmt) }
	return repeatAlone(ctx, &d, changeFor(stmt, &d), f)
}

// changeFor returns how the statement begins to change the schema.
func changeFor(stmt ast.Statement, d *Deps) beginChange {
	lock, locks := stmt.(*ast.LockTable)
	switch {
	case changesPrivileges(stmt):
		return (*catalog.Guard).ChangePrivileges
	case locks:
		return beginLock(lock)
	case d.changesTemporary(stmt):
		return (*catalog.Guard).ChangeTemporary
	}
	return (*catalog.Guard).Change
}

// changesPrivileges reports whether a statement changes nothing but roles and privileges, so that it waits for no open transaction that
// changes the schema.
func changesPrivileges(stmt ast.Statement) bool {
	switch n := stmt.(type) {
	case *ast.LockTable:
		return !locksWriters(n)
	case *ast.Grant, *ast.GrantRole, *ast.CreateRole, *ast.AlterRole, *ast.AlterRoleSet, *ast.AlterDatabaseSet, *ast.AlterDefaultPrivileges, *ast.Database:
		return true
	case *ast.AlterObject:
		return n.Object.Role != nil || ofDatabase(n)
	case *ast.DropObjects:
		return n.Objects[0].Role != nil && n.Objects[0].Kind != "USER MAPPING" || ofDatabase(n)
	}
	return false
}

// runAlone runs f in a separate transaction, which it commits, repeatedly while another process changes the schema in
// between.
func runAlone(ctx context.Context, d *Deps, f func(r *run) (string, error)) (tag string, err error) {
	return repeatAlone(ctx, d, (*catalog.Guard).Change, f)
}

// beginChange is Guard.Change, Guard.ChangePrivileges or Guard.ChangeTemporary.
type beginChange func(*catalog.Guard, context.Context) (*catalog.Change, error)

func repeatAlone(ctx context.Context, d *Deps, begin beginChange, f func(r *run) (string, error)) (tag string, err error) {
	for attempt := 1; ; attempt++ {
		tag, err = attemptAlone(ctx, d, begin, f)
		if building := (*catalog.BuildingError)(nil); errors.As(err, &building) {
			if err := awaitBuilds(ctx, d, building); err != nil {
				return "", err
			}
			attempt--
			continue
		}
		if kind := errkind.Of(err); attempt == maxAttempts || kind != errkind.WriteConflict && kind != errkind.CommitTooLate {
			return tag, err
		}
	}
}

// run is one statement on its way. One goroutine's.
type run struct {
	*Deps
	ch    *catalog.Change
	guard *catalog.Guard
	txn   *percolator.Txn
	r     catalog.Resolver
	alone bool
	// access is that of the user, path the part of SearchPath that the user may use; look sets both.
	access *catalog.Access
	path   []string
	// reserved are the first of the index ids that tables have been given and not yet used (exclusiveAll).
	reserved map[uint64]uint32
	// online collects the builds of indexes that the statement begins; nil: it begins none. tree is set for an index of a partitioned table.
	online *onlineBuilds
	tree   *treeBuild
	// after is called when the transaction is over, or the statement is in a block.
	after []func()
}

func runInBlock(ctx context.Context, stmt ast.Statement, d *Deps) (string, error) {
	ch, err := changeFor(stmt, d)(d.Guard, ctx)
	if err == nil && d.Refresh != nil {
		err = d.Refresh(ctx)
	}
	if err != nil {
		return "", err
	}
	r := &run{Deps: d, ch: ch, guard: d.Guard, txn: d.Txn}
	if err := r.look(ctx); err != nil {
		return "", err
	}
	defer r.over()
	return r.execute(ctx, stmt)
}

// over calls what is to be called afterwards.
func (r *run) over() {
	for _, f := range r.after {
		f()
	}
}

func attemptAlone(ctx context.Context, d *Deps, begin beginChange, f func(r *run) (string, error)) (tag string, err error) {
	r := &run{Deps: d, guard: d.Catalog.NewGuard(), alone: true}
	r.guard.LockTimeout, r.guard.Session, r.guard.Temporary = d.LockTimeout, d.Session, d.Temporary
	// The change waits for others before the transaction begins, so that it sees their results.
	if r.ch, err = begin(r.guard, ctx); err != nil {
		return "", err
	}
	defer r.over()
	// After a panic, too, others must be able to change the schema, and garbage collection must not wait for the transaction; a commit has
	// ended both before.
	defer r.guard.Done(ctx, 0, nil)
	committing := false
	defer func() {
		if r.txn != nil && !committing {
			_ = r.txn.Rollback(ctx) // Its writes have not left this process.
		}
	}()
	if err = r.begin(ctx); err == nil {
		tag, err = f(r)
	}
	if err == nil {
		err = r.endTemporary(ctx)
	}
	if err != nil {
		return "", err
	}
	committing = true
	_, err = r.guard.Commit(ctx)
	return tag, err
}

// begin starts the statement's transaction, or replaces it by one with a fresh snapshot.
func (r *run) begin(ctx context.Context) error {
	// It locks the schema's version when it commits, which makes room for changes of privileges that have overtaken it.
	txn, err := r.DB.BeginTxn(ctx, percolator.TxnOptions{Isolation: percolator.ReadCommitted, Pessimistic: true, LockTimeout: r.LockTimeout})
	if err != nil {
		return err
	}
	if r.txn != nil {
		r.txn.Close()
	}
	r.txn = txn
	r.guard.Continue(txn)
	return r.look(ctx)
}

// look reads the schema as the transaction currently sees it.
func (r *run) look(ctx context.Context) error {
	resolver, err := r.ch.Resolver(ctx)
	if err != nil {
		return err
	}
	r.see(resolver)
	return nil
}

// see takes a schema as the one that names are looked up in.
func (r *run) see(resolver catalog.Resolver) {
	r.access = catalog.NewAccess(resolver, r.User)
	r.path = r.access.Path(r.SearchPath)
	r.r = catalog.SearchPath(resolver, r.path)
	if r.Env != nil { // Statistics need none.
		r.Env.Format.Domains = planner.NewDomains(r.Env, func() catalog.Resolver { return r.r })
		r.Env.TextSearch = func() builtin.TextSearch { return r.r.TextSearch() }
	}
}

// execute runs a statement for which the user has the privileges.
func (r *run) execute(ctx context.Context, stmt ast.Statement) (string, error) {
	if err := r.authorize(ctx, stmt); err != nil {
		return "", err
	}
	if ofDatabase(stmt) {
		return r.database(ctx, stmt)
	}
	implicit := r.noteImplicit()
	tag, err := r.dispatch(ctx, stmt)
	if op := implicit(); op != nil && err == nil && !isTableAs(stmt) {
		return "", pgerror.Unsupported("The operator "+op.Schema+"."+op.Name+" behind IN, BETWEEN, CASE, a row or the like in a definition",
			"Write out the comparisons, as x OPERATOR("+ast.QuoteIdent(op.Schema)+"."+op.Name+") y.")
	}
	return tag, err
}

// noteImplicit notes that a construct of the statement like IN has found an operator of a user, which cannot be stored. The function that it returns
// ends that, and returns the operator; nil if there was none.
func (r *run) noteImplicit() (end func() *builtin.Operator) {
	if r.Env == nil {
		return func() *builtin.Operator { return nil }
	}
	before := r.Env.ImplicitOperator
	var found *builtin.Operator
	r.Env.ImplicitOperator = func(op *builtin.Operator) { found = op }
	return func() *builtin.Operator {
		r.Env.ImplicitOperator = before
		return found
	}
}

// isTableAs reports whether a statement creates a table of the rows of a query, which is not stored.
func isTableAs(stmt ast.Statement) bool {
	n, ok := stmt.(*ast.CreateTable)
	return ok && n.AsQuery != nil
}

func (r *run) dispatch(ctx context.Context, stmt ast.Statement) (string, error) {
	switch n := stmt.(type) {
	case *ast.CreateTable:
		return r.createTable(ctx, n)
	case *ast.CreateIndex:
		return "CREATE INDEX", r.createIndex(ctx, n)
	case *ast.CreateView:
		return "CREATE VIEW", r.createView(ctx, n)
	case *ast.CreateMaterializedView:
		return r.createMaterializedView(ctx, n)
	case *ast.RefreshMaterializedView:
		return "REFRESH MATERIALIZED VIEW", r.refreshMaterializedView(ctx, n)
	case *ast.CreateSequence:
		return "CREATE SEQUENCE", r.createSequence(ctx, n)
	case *ast.CreateSchema:
		return "CREATE SCHEMA", r.createSchema(ctx, n)
	case *ast.CreateObserver:
		_, _, err := r.createObserver(ctx, n)
		return "CREATE OBSERVER", err
	case *ast.AlterObserver:
		return "ALTER OBSERVER", r.alterObserver(ctx, n)
	case *ast.DropObserver:
		return "DROP OBSERVER", r.dropObserver(ctx, n)
	case *ast.CreateRole:
		return "CREATE ROLE", r.createRole(ctx, n)
	case *ast.AlterRole:
		return "ALTER ROLE", r.alterRole(ctx, n)
	case *ast.AlterRoleSet:
		return "ALTER ROLE", r.alterRoleSet(ctx, n)
	case *ast.AlterObject:
		if n.Object.Role != nil {
			return "ALTER ROLE", r.renameRole(ctx, n)
		}
		if n.Object.Kind == "POLICY" {
			return "ALTER POLICY", r.renamePolicy(ctx, n)
		}
		if n.Object.Kind == "TRIGGER" {
			return "ALTER TRIGGER", r.renameTrigger(ctx, n)
		}
		if n.Object.Kind == "EXTENSION" {
			return "ALTER EXTENSION", r.moveExtension(ctx, n.Object.Name[0], n.Change.Schema)
		}
		if ofTextSearch(n.Object.Kind) {
			return "ALTER " + n.Object.Kind, r.alterTextSearchObject(ctx, n)
		}
		if n.Object.Kind == "COLLATION" {
			return "ALTER COLLATION", r.alterCollation(ctx, n)
		}
		if ofOperations(n.Object.Kind) {
			return "ALTER " + n.Object.Kind, r.alterOperations(ctx, n)
		}
		if ofRoutine(n.Object.Kind) {
			return "ALTER " + n.Object.Kind, r.alterRoutineObject(ctx, n)
		}
		if ofType(n.Object.Kind) {
			return "ALTER " + n.Object.Kind, r.alterTypeObject(ctx, n)
		}
		if n.Change.Rename != "" {
			return "ALTER SCHEMA", r.renameSchema(ctx, nameOf(&n.Object).Name, n.Change.Rename)
		}
		return "ALTER SCHEMA", r.alterSchemaOwner(ctx, nameOf(&n.Object).Name, *n.Change.Owner)
	case *ast.CreateFunction:
		if n.Procedure {
			return "CREATE PROCEDURE", r.createRoutine(ctx, n)
		}
		return "CREATE FUNCTION", r.createRoutine(ctx, n)
	case *ast.AlterFunction:
		return "ALTER " + n.Function.Kind, r.alterRoutine(ctx, n)
	case *ast.Define:
		if ofTextSearch(n.Kind) {
			return "CREATE " + n.Kind, r.createTextSearch(ctx, n)
		}
		if n.Kind == "COLLATION" {
			return "CREATE COLLATION", r.createCollation(ctx, n)
		}
		if n.Kind == "OPERATOR" {
			return "CREATE OPERATOR", r.createOperator(ctx, n)
		}
		return "CREATE AGGREGATE", r.createAggregate(ctx, n)
	case *ast.CreateCast:
		return "CREATE CAST", r.createCast(ctx, n)
	case *ast.OperatorClass:
		return "CREATE OPERATOR CLASS", r.createClass(ctx, n)
	case *ast.OperatorFamily:
		if n.Action != "" {
			return "ALTER OPERATOR FAMILY", r.alterFamily(ctx, n)
		}
		return "CREATE OPERATOR FAMILY", r.createFamily(ctx, n)
	case *ast.AlterTextSearch:
		return "ALTER " + n.Kind(), r.alterTextSearch(ctx, n)
	case *ast.CreateExtension:
		return "CREATE EXTENSION", r.createExtension(ctx, n)
	case *ast.AlterExtension:
		return "ALTER EXTENSION", r.alterExtension(n)
	case *ast.CreateType:
		return "CREATE TYPE", r.createType(ctx, n)
	case *ast.AlterType:
		return "ALTER TYPE", r.alterComposite(ctx, n)
	case *ast.RenameAttribute:
		return "ALTER TYPE", r.renameAttribute(ctx, n)
	case *ast.CreateDomain:
		return "CREATE DOMAIN", r.createDomain(ctx, n)
	case *ast.AlterDomain:
		return "ALTER DOMAIN", r.alterDomain(ctx, n)
	case *ast.AlterEnum:
		return "ALTER TYPE", r.alterEnum(ctx, n)
	case *ast.DropObjects:
		if ofOperations(n.Objects[0].Kind) {
			return "DROP " + n.Objects[0].Kind, r.dropOperations(ctx, n)
		}
		if lackingKinds[n.Objects[0].Kind] != "" {
			return "DROP " + n.Objects[0].Kind, r.dropLacking(ctx, n)
		}
		if n.Objects[0].Kind == "POLICY" {
			return "DROP POLICY", r.dropPolicy(ctx, n)
		}
		if n.Objects[0].Kind == "TRIGGER" {
			return "DROP TRIGGER", r.dropTrigger(ctx, n)
		}
		if n.Objects[0].Kind == "EXTENSION" {
			return "DROP EXTENSION", r.dropExtensions(ctx, n)
		}
		if ofTextSearch(n.Objects[0].Kind) {
			return "DROP " + n.Objects[0].Kind, r.dropTextSearch(ctx, n)
		}
		if n.Objects[0].Kind == "COLLATION" {
			return "DROP COLLATION", r.dropCollations(ctx, n)
		}
		if ofRoutine(n.Objects[0].Kind) {
			return "DROP " + n.Objects[0].Kind, r.dropRoutines(ctx, n)
		}
		if ofType(n.Objects[0].Kind) {
			return "DROP " + n.Objects[0].Kind, r.dropTypes(ctx, n)
		}
		return "DROP ROLE", r.dropRoles(ctx, n)
	case *ast.CreateTrigger:
		return "CREATE TRIGGER", r.createTrigger(ctx, n)
	case *ast.CreatePolicy:
		return "CREATE POLICY", r.createPolicy(ctx, n)
	case *ast.AlterPolicy:
		return "ALTER POLICY", r.alterPolicy(ctx, n)
	case *ast.GrantRole:
		if n.Revoke {
			return "REVOKE ROLE", r.grantRole(ctx, n)
		}
		return "GRANT ROLE", r.grantRole(ctx, n)
	case *ast.Drop:
		return "DROP " + n.Kind, r.drop(ctx, n)
	case *ast.AlterTable:
		return "ALTER " + n.Kind, r.alter(ctx, n)
	case *ast.LockTable:
		return "LOCK TABLE", r.lockTable(ctx, n)
	case *ast.Truncate:
		return "TRUNCATE TABLE", r.truncate(ctx, n)
	case *ast.Comment:
		return "COMMENT", r.comment(ctx, n)
	case *ast.Analyze:
		return "ANALYZE", r.analyze(ctx, n.Tables, n.Columns)
	case *ast.Reindex:
		return "REINDEX", r.reindex(ctx, n)
	case *ast.Cluster:
		return "CLUSTER", r.cluster(ctx, n)
	case *ast.Grant:
		return grantTag(n), r.grant(ctx, n)
	case *ast.AlterDefaultPrivileges:
		return "ALTER DEFAULT PRIVILEGES", r.alterDefaultPrivileges(ctx, n)
	case *ast.OwnedBy:
		if n.To != nil {
			return "REASSIGN OWNED", r.reassignOwned(ctx, n)
		}
		return "DROP OWNED", r.dropOwned(ctx, n)
	case *ast.Vacuum:
		return "", pgerror.New(pgerror.ActiveSQLTransaction, "VACUUM cannot run inside a transaction block")
	}
	return "", pgerror.New(pgerror.InternalError, "statement %T is not a schema change", stmt)
}

// update writes the next descriptor of a relation and reads the schema again.
func (r *run) update(ctx context.Context, old, next *catalog.TableDescriptor, exclusive bool) error {
	if err := r.ch.Update(ctx, old, next, exclusive); err != nil {
		return err
	}
	return r.look(ctx)
}

func (r *run) notice(code pgerror.Code, format string, args ...any) {
	r.Report.Notice(pgerror.New(code, format, args...))
}

// noticeAbsent reports that IF EXISTS found nothing. Its SQLSTATE is that of success, as in PostgreSQL:
// only IF NOT EXISTS reports the class of the error it avoids.
func (r *run) noticeAbsent(format string, args ...any) {
	r.notice(pgerror.SuccessfulCompletion, format, args...)
}
