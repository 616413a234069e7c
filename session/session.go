// Package session runs the statements of one client: it keeps the transaction's state, prepared statements and portals, finds
// plans, attempts statements again after conflicts, and maps every error to a SQLSTATE.
//
//	text ─▶ sql.Lexer ─▶ key ─▶ plans ──hit──▶ planner.Inputs ─▶ executor ─▶ ResultWriter ─▶ Buffer
//	                              │ miss                            │
//	                              └─▶ sql.Parse ─▶ planner.Build    └─▶ percolator.Txn
//
// Session has the messages of the protocol (query.go, extended.go). It consists of parts, each with its own state; session.go
// connects them:
//
//	transaction      the state machine (phase.go), snapshot and schema, modes (modes.go), AS OF SYSTEM TIME (timeTravel, asof.go)
//	statementRunner  runs a statement under a policy; the only loop that runs a statement again (run.go)
//	pipelines        runs the first statement of a pipeline again when a second one follows (pipeline.go)
//	plans            finds, makes and validates plans (plans.go, plancache.go)
//	statements       prepared statements
//	portals          portals and cursors, with what they have yet to send
//	commands         statements without plan, by family: blocks, settingCommands, preparedCommands, cursors, copyCommands,
//	                 explainCommands, schemaCommands, collection (commands.go has the dispatch)
//	notifications    LISTEN and NOTIFY (notify.go)
//	errorContext     explains errors to the client (errorcontext.go); sqlstate.go has the SQLSTATEs
//	principal        the role that has connected, the session's and the current one (role.go)
//	info, systemView what functions and system views learn of the session and its process
//	Buffer           the buffered result, which a retry discards
//	interrupts       the statement's context: cancel, timeout, termination (context.go)
//
// Invariants:
//
//	S1 A statement outside a block runs in its own transaction, which commits before the client is
//	   sent CommandComplete.
//	S2 Such a statement is retried after a conflict if no part of its result has been sent.
//	S3 After an error inside a block only ROLLBACK, ROLLBACK TO and COMMIT (which rolls back) run.
//	   The state of the transaction is the session's phase; phase.go has the table of its transitions.
//	S4 A plan is used only if it is valid under the schema of the transaction's snapshot.
//	S5 A statement that has locked a row which changed after the snapshot is retried within its transaction.
//
// Package settings has the run-time parameters.
//
// The session does not encode messages (server/pgwire).
package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// Deps are what sessions share. All of it is safe for concurrent use.
type Deps struct {
	DB      *percolator.DB
	Catalog *catalog.Catalog
	Router  kv.Router
	Oracle  tso.Oracle
	// Sessions calls f with every session of the process, for views that show them.
	Sessions func(f func(*Session))
	// Terminate ends a session of the process and its connection, whose client is sent why; nil: the administrator's command.
	// done is closed when it has ended.
	Terminate func(s *Session, why *pgerror.Error) (done <-chan struct{})
	// WaitGraph has the waits for row locks, for deadlocks through advisory locks; nil: those are not found.
	WaitGraph waitgraph.Graph
	// Notify delivers notifications; nil: LISTEN and NOTIFY are refused.
	Notify *notify.Hub
	// Configuration is the server's; nil: there is none.
	Configuration Configuration
	// Shared: other processes serve SQL over the same store.
	Shared  bool
	Plans   *PlanCache
	Metrics *Metrics
	Logger  *slog.Logger
	// Version is what server_version shows; it must begin as PostgreSQL's does, since clients choose
	// their catalog queries by it.
	Version string
	// GC answers SHOW percodb.safe_point and its like; nil where there is no garbage collection.
	GC *gc.Reporter
	// GroupSize overrides the executor's inner batch size (tests run with 1); 0: default.
	GroupSize int
	// Memory is what statements draw from; nil: nothing bounds them together.
	Memory *memory.Pool
	// Hints returns a channel that is closed when an observer has been notified of a change, for statements that wait for one; nil:
	// they poll.
	Hints func(observer uint64) <-chan struct{}
	// Cursors are the positions of the clients that consume observers; nil: each call begins at the first key.
	Cursors *ChangeCursors
	// Observers returns what is known of the observers' work in this process, by their numbers; nil: nothing.
	Observers func() map[uint64]catalog.ObserverActivity
	// Builds has the builds of indexes that the process is at; nil: views do not show them.
	Builds *ddl.Builds
	// Audit is where sessions write what is of interest to an audit; nil: nowhere.
	Audit *audit.Log
	// PageHint overrides the size of the first page of scans (tests run with 1); 0: default.
	PageHint int
}

// Client is where a session's client is, and how it is connected.
type Client struct {
	// Addr is the client's address, Local the server's on this connection; nil: there is none.
	Addr, Local net.Addr
	// Tune applies the settings of a TCP connection; nil: it is none.
	Tune func(settings.KeepAlive)
	TLS  *catalog.TLS // nil: the connection is not encrypted
}

// CancelKey names a session in a CancelRequest.
type CancelKey struct{ PID, Secret uint32 }

// Session is one client's session: the messages of its protocol, and the parts that carry them out. One goroutine's, except
// for Cancel, Terminate and activity.
type Session struct {
	deps     Deps
	log      *slog.Logger
	identity identity
	acting   principal
	audit    auditor
	activity activity

	interrupts *interrupts
	settings   *settings.Settings
	env        builtin.Env
	memory     memory.Account // of what its statements hold
	meter      *sql.Meter     // of their texts and plans, draws from memory
	objects    pgcatalog.Objects
	domains    *planner.Domains
	info       info
	view       systemView
	warnings   warnings

	notifications notifications

	tx         transaction
	timer      transactionTimer
	travel     timeTravel
	portals    portals
	statements statements
	plans      plans
	sequences  sequences
	runner     statementRunner
	pipelines  pipelines
	commands   commands
	collection collection
	queries    functionQueries
	describer  describer

	text     clientText // that runs, or is prepared
	simple   run        // of simple queries, one after the other
	deferred *portal    // whose Execute waits for the next message
	closed   bool
	tuned    settings.KeepAlive // of the connection

	databaseLimit int  // of sessions, when this one began
	connected     bool // to its database, until Close
}

// freeBytes is what a session's statements hold without drawing from the server's memory, so that small
// ones run when it is exhausted.
const freeBytes = 128 << 10

// New makes the session of a client, whose role may log in. startup is its startup packet: user, database, options and
// settings. The error, if any, is a *pgerror.Error to end the connection with.
func New(ctx context.Context, deps Deps, pid uint32, client Client, startup map[string]string) (*Session, error) {
	user := startup["user"]
	if user == "" {
		return nil, pgerror.New(pgerror.InvalidAuthorization, "no PostgreSQL user name specified in startup packet")
	}
	name := startup["database"]
	if name == "" {
		name = user
	}
	c, present, role, err := enter(ctx, deps.Catalog, user, name)
	if err != nil {
		return nil, err
	}
	deps.Catalog = c
	s, err := open(ctx, deps, pid, client, startup, present, role)
	if err != nil {
		c.Disconnect()
		return nil, err
	}
	s.databaseLimit, s.connected = present.Database().Limit(), true
	return s, nil
}

// enter begins the use of a database by a role that connects to it, until c.Disconnect.
func enter(ctx context.Context, any *catalog.Catalog, user, database string) (c *catalog.Catalog, present catalog.Resolver, role *catalog.Role, err error) {
	if present, err = any.Present(ctx); err != nil {
		return nil, nil, nil, ToPGError(err)
	}
	if role, err = login(present, user); err != nil {
		return nil, nil, nil, err
	}
	d := present.Databases().ForClient(database)
	if d == nil {
		return nil, nil, nil, errNoDatabase(database)
	}
	c = any.Database(d.OID)
	if err = c.Connect(ctx); err != nil {
		return nil, nil, nil, ToPGError(err)
	}
	present, err = c.Present(ctx)
	switch {
	case errors.Is(err, catalog.ErrNoDatabase):
		err = errNoDatabase(database)
	case err != nil:
		err = ToPGError(err)
	default:
		err = admit(present, role)
	}
	if err != nil {
		c.Disconnect()
		return nil, nil, nil, err
	}
	return c, present, role, nil
}

func errNoDatabase(name string) error {
	return pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", name)
}

// open makes the session of a role in the database of deps.Catalog.
func open(ctx context.Context, deps Deps, pid uint32, client Client, startup map[string]string, present catalog.Resolver, role *catalog.Role) (*Session, error) {
	database, roles := present.Database(), present.Roles()
	s := &Session{deps: deps, log: deps.Logger.With("session", pid), interrupts: newInterrupts(ctx)}
	s.identity = identity{user: role.Name, role: role.OID, database: database.Name, databaseOID: database.OID, version: deps.Version, started: time.Now(), client: client}
	var secret [4]byte
	_, _ = rand.Read(secret[:]) // crypto/rand.Read never fails.
	s.identity.key = CancelKey{PID: pid, Secret: binary.BigEndian.Uint32(secret[:])}
	server := map[string]string{
		"server_version": deps.Version, settings.SessionAuthorization: role.Name, "is_superuser": settings.OnOff(role.Superuser),
	}
	s.settings = settings.New(server)
	s.follow()
	s.settings.MayExamine(s.acting.mayExamine)
	s.acting.connect(s.settings, &s.tx, role, roles)
	roles.SettingsAt(role, database.Name, func(name, value string) {
		if err := s.settings.Default(name, value); err != nil { // It was valid when it was set.
			s.log.Warn("setting of a role not applied", "role", role.Name, "setting", name, "err", err)
		}
	})
	if err := s.settings.Start(startup); err != nil {
		return nil, err
	}
	s.connect(ctx)
	s.settings.FindTextSearch(func(name string) (string, bool) {
		oid, err := s.objects.TextSearchOID(types.OIDRegconfig, name)
		if err != nil {
			return "", false
		}
		return s.objects.QualifiedTextSearch(types.OIDRegconfig, oid)
	})
	s.acting.initial, s.acting.audit = nil, &s.audit
	return s, nil
}

// connect gives each part what it needs of others.
func (s *Session) connect(ctx context.Context) {
	deps, env, tx := &s.deps, &s.env, &s.tx
	s.audit = auditor{log: deps.Audit, identity: &s.identity, acting: &s.acting, tx: tx}
	s.memory = memory.NewAccount(deps.Memory, freeBytes)
	s.env = builtin.Env{Memory: &s.memory, Ctx: ctx, Session: &s.info, Sequences: &s.sequences, Catalog: &s.objects, Queries: &s.queries, Rand: builtin.NewRand()}
	env.TextSearch, env.RestrictedCalls = tx.textSearch, s.acting.restrictedCalls
	s.domains = planner.NewDomains(&s.env, tx.names)
	s.objects = pgcatalog.Objects{Resolver: tx.names, Role: func() uint32 { return s.acting.current },
		Present: func(ctx context.Context, database uint32) (catalog.Resolver, error) {
			return deps.Catalog.Database(database).Present(ctx)
		}}
	s.objects.View = &s.view
	s.objects.ViewText, s.objects.ExprText, s.objects.UpdatesOf = s.view.ViewText, s.view.ExprText, s.view.UpdatesOf
	s.activity.identity, s.activity.interrupts, s.activity.shown = &s.identity, s.interrupts, &s.tx.shown
	s.notifications = notifications{
		hub: deps.Notify, tx: tx, pid: s.identity.key.PID, ended: func(why error) { deps.Terminate(s, listenerEnded(why)) },
	}
	if oid := s.identity.databaseOID; oid != catalog.FirstDatabase {
		s.notifications.database = strconv.FormatUint(uint64(oid), 10) + "\x00"
	}
	if deps.Terminate != nil {
		s.timer.expired = func() { deps.Terminate(s, errTransactionTimeout()) }
	}
	s.info = info{
		identity: &s.identity, settings: s.settings, tx: tx, acting: &s.acting, notifications: &s.notifications, audit: &s.audit,
		backends: backends{deps: deps, own: s.identity.key, tx: tx, warnings: &s.warnings}, procedural: &s.commands.procedural,
	}
	s.view = systemView{identity: &s.identity, acting: &s.acting, deps: deps, settings: s.settings, env: env, warnings: &s.warnings,
		statements: &s.statements, portals: &s.portals}

	s.tx = transaction{
		db: deps.DB, catalog: deps.Catalog, log: s.log, settings: s.settings, env: env, portals: &s.portals, notifications: &s.notifications,
		acting: &s.acting, audit: &s.audit, cursors: deps.Cursors, guard: deps.Catalog.NewGuard(), reader: latestReader{Latest: deps.DB.Latest(), catalog: deps.Catalog},
	}
	s.tx.deferred = executor.NewDeferred(&s.memory)
	s.tx.advisory.session = s
	s.tx.guard.Session = s.identity.key.PID
	s.tx.guard.Temporary = deps.Catalog.NewTemporary(s.identity.key.PID)
	s.tx.claimed = memory.NewAccount(deps.Memory, freeBytes)
	s.collection = collection{reporter: deps.GC, settings: s.settings, env: env}
	s.travel = timeTravel{tx: tx, oracle: deps.Oracle, collection: &s.collection, env: env, settings: s.settings}
	s.portals, s.statements, s.plans = newPortals(), newStatements(), newPlans(s.identity.databaseOID)
	s.statements.memory = &s.memory
	s.meter = sql.NewMeter(&s.memory)
	s.text.useMeter(s.meter)
	s.plans.meter, s.travel.meter = s.meter, s.meter
	s.plans.shared, s.plans.metrics, s.plans.tx, s.plans.travel, s.plans.settings, s.plans.env = deps.Plans, deps.Metrics, tx, &s.travel, s.settings, env
	s.sequences.tx = tx
	env.Cursors = &s.portals
	s.describer = describer{settings: s.settings, statements: &s.statements, portals: &s.portals}
	s.queries = functionQueries{plans: &s.plans, runner: &s.runner, warnings: &s.warnings}
	s.runner = statementRunner{
		deps: deps, log: s.log, tx: tx, plans: &s.plans, portals: &s.portals, env: env, view: &s.view, warnings: &s.warnings,
		commands: &s.commands, audit: &s.audit, actAs: s.acting.lend,
	}
	s.pipelines = pipelines{tx: tx, portals: &s.portals, runner: &s.runner, env: env}
	s.commands = commands{
		tx: tx, travel: &s.travel, portals: &s.portals, plans: &s.plans, sequences: &s.sequences, notifications: &s.notifications,

		blocks:    blocks{tx: tx, travel: &s.travel},
		settings:  settingCommands{tx: tx, settings: s.settings, describer: &s.describer},
		prepared:  preparedCommands{tx: tx, statements: &s.statements, plans: &s.plans, runner: &s.runner},
		cursors:   cursors{tx: tx, portals: &s.portals, plans: &s.plans, statements: &s.statements, runner: &s.runner, describer: &s.describer, env: &s.env},
		copies:    copyCommands{tx: tx, plans: &s.plans, portals: &s.portals, runner: &s.runner, env: env},
		explain:   explainCommands{plans: &s.plans, prepared: &s.commands.prepared, runner: &s.runner, settings: s.settings},
		system:    systemCommands{tx: tx, deps: deps, collection: &s.collection},
		observers: observerCommands{deps: deps, tx: tx, plans: &s.plans, runner: &s.runner},
		schema: schemaCommands{
			deps: deps, log: s.log, tx: tx, portals: &s.portals, plans: &s.plans, runner: &s.runner, settings: s.settings, env: env,
			acting: &s.acting, procedural: &s.commands.procedural, prepared: &s.commands.prepared, identity: &s.identity, backends: &s.info.backends,
		},
	}
	s.commands.audit = &s.audit
	s.commands.procedural = procedural{
		tx: tx, plans: &s.plans, portals: &s.portals, runner: &s.runner, commands: &s.commands, cursors: &s.commands.cursors,
		settings: s.settings, env: env, warnings: &s.warnings,
	}
	s.tx.triggers = &s.commands.procedural
	s.commands.routines = routines{h: &s.commands.procedural, settings: s.settings, acting: &s.acting}
	env.Routines = &s.commands.routines
	tx.showModes()
	s.collection.connect()
	s.settings.OnChange(s.settingsChanged)
	s.settingsChanged()
}

// settingsChanged passes settings on to the parts that keep copies of them.
func (s *Session) settingsChanged() {
	s.acting.update()
	application, _ := s.settings.Get("application_name")
	s.tx.shown.setApplication(application)
	if tune := s.identity.client.Tune; tune != nil && s.settings.KeepAlive != s.tuned {
		s.tuned = s.settings.KeepAlive
		tune(s.tuned)
	}
	now := s.env.Format.Now
	s.settings.Format.Names = &s.objects // For values on their way to the client.
	s.settings.Format.Warn = s.warnings.send
	s.settings.Format.Uncommitted = s.tx.madeVersion
	s.settings.Format.Domains = s.domains
	s.env.Format = s.settings.Format
	s.env.Format.Now = now
	s.tx.resolver = nil // The search path may be another one.
	s.tx.setLockTimeout()
	s.plans.path = nil
	if !s.settings.DefaultPath() {
		s.plans.path = append([]string{}, s.settings.SearchPath...)
	}
}

// follow takes over the values that the server gives to settings now.
func (s *Session) follow() {
	if c := s.deps.Configuration; c != nil {
		s.settings.Follow(c.Values())
	}
}

// beginMessage makes the context of a message's statements.
func (s *Session) beginMessage() {
	s.follow()
	s.env.Ctx = s.interrupts.begin(s.settings.StatementTimeout)
	if s.settings.TransactionTimeout > 0 {
		s.timer.follow(true, s.settings.TransactionTimeout)
	}
	s.meter.Begin(s.env.Ctx)
}

// endMessage ends that context. What a long text has left in buffers is dropped.
func (s *Session) endMessage() {
	s.interrupts.end()
	if s.settings.TransactionTimeout > 0 || s.timer.armed {
		s.timer.follow(s.tx.phase.shared() || s.tx.txn != nil, s.settings.TransactionTimeout)
	}
	if s.meter.Drawn() > 0 {
		s.text.drop()
		s.simple = run{}
		s.meter.Release(0)
	}
	s.tx.note()
}

// Fail notes an error that the client is sent: a block waits for its end, anything else is rolled back.
func (s *Session) Fail(err error) {
	s.deps.Metrics.Errors.WithLabelValues(string(ToPGError(err).Code)).Inc()
	s.tx.fail()
}

// reportError is Fail for errors met here; it returns what to send to the client.
func (s *Session) reportError(err error) error {
	c := errorContext{resolver: s.tx.resolver, inForce: s.tx.knownInForce, role: s.acting.current, serializable: s.tx.failure.serializable, asOf: s.tx.asOf, format: &s.settings.Format}
	if c.resolver == nil {
		c.resolver = s.tx.failure.resolver
	}
	s.tx.failure = failure{}
	err = explainError(s.env.Ctx, err, c)
	s.Fail(err)
	return err
}

// Format is how the session prints values; it follows SET, and must not be changed by the caller.
func (s *Session) Format() *types.Format { return &s.settings.Format }

// ReportSettings sends the settings that clients track: all of them the first time, later those that SET, RESET or a rollback
// have changed.
func (s *Session) ReportSettings(w ResultWriter) {
	if s.settings.Changed() {
		s.settings.Report(w.Setting)
	}
}

// Role returns the role that has connected, as it was then. Safe from any goroutine.
func (s *Session) Role() *catalog.Role { return s.acting.authenticated }

// Database returns the OID and the name of the database that the session uses.
func (s *Session) Database() (oid uint32, name string) {
	return s.identity.databaseOID, s.identity.database
}

// DatabaseLimit returns how many sessions the database had at most when this one began, -1 for no limit.
func (s *Session) DatabaseLimit() int { return s.databaseLimit }

// CancelKey returns the key for BackendKeyData.
func (s *Session) CancelKey() CancelKey { return s.identity.key }

// Cancel cuts off the running statement, if any. Safe from any goroutine.
func (s *Session) Cancel() { s.interrupts.cancel(errCanceled) }

// Terminate cuts off the running statement, and every later one, because the connection ends. Safe from
// any goroutine.
func (s *Session) Terminate() { s.interrupts.terminate(errShutdown) }

// Status returns the transaction indicator.
func (s *Session) Status() TxnStatus { return s.tx.phase.status() }

// IdleTimeout is for how long the client may leave the session waiting, 0 for ever.
func (s *Session) IdleTimeout() time.Duration {
	if s.tx.phase.explicit() {
		return s.settings.IdleInTransactionTimeout
	}
	return s.settings.IdleSessionTimeout
}

// ConnectionCheckInterval is the time between two checks, while a statement runs, that the client is still connected; 0: none.
func (s *Session) ConnectionCheckInterval() time.Duration { return s.settings.ConnectionCheckInterval }

// IdleError is what to end the connection with when the client has.
func (s *Session) IdleError() error {
	if s.tx.phase.explicit() {
		return pgerror.New(pgerror.IdleInTransactionTimeout, "terminating connection due to idle-in-transaction timeout")
	}
	return pgerror.New(pgerror.IdleSessionTimeout, "terminating connection due to idle-session timeout")
}

// Close rolls back what is open. Legal more than once.
func (s *Session) Close() {
	if s.closed {
		return
	}
	s.closed = true
	s.timer.follow(false, 0)
	s.notifications.close()
	s.tx.abort()
	s.tx.advisory.close(context.WithoutCancel(s.env.Ctx))
	s.portals.removeCursors() // those WITH HOLD
	if err := s.tx.dropTemporary(); err != nil {
		s.log.Warn("temporary tables of a session are left for the next start", "err", err)
	}
	s.tx.claimed.Close()
	s.memory.Close()
	s.interrupts.close()
	if s.connected {
		s.deps.Catalog.Disconnect()
	}
}
