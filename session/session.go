// Package session runs the statements of one client: it keeps the transaction's state, prepared statements, portals and
// settings, finds plans, attempts statements again after conflicts, and maps every error to a SQLSTATE.
//
//	text ─▶ sql.Lexer ─▶ key ─▶ plans ──hit──▶ planner.Inputs ─▶ executor ─▶ ResultWriter ─▶ Buffer
//	                              │ miss                            │
//	                              └─▶ sql.Parse ─▶ planner.Build    └─▶ percolator.Txn
//
// The parts, each in a file with its state: phase (state.go), run and policy (run.go), pipeline, statements, portals, plans,
// settings, sequences, copyIn and copyOut (copy.go), Buffer, interrupts (context.go).
//
// Invariants:
//
//	S1 A statement outside a block runs in its own transaction, which commits before the client is
//	   sent CommandComplete.
//	S2 Such a statement is retried after a conflict if no part of its result has been sent.
//	S3 After an error inside a block only ROLLBACK, ROLLBACK TO and COMMIT (which rolls back) run.
//	   The state of the transaction is the session's phase; state.go has the table of its transitions.
//	S4 A plan is used only if it is valid under the schema of the transaction's snapshot.
//	S5 A statement that has locked a row which changed after the snapshot is retried within its transaction.
//
// run.go has the only retry loop and the policies that control it; buffer.go has the result, which a retry revokes.
//
// The session does not encode messages (server/pgwire).
package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
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
	// Terminate ends a session of the process and its connection; done is closed when it has ended.
	Terminate func(*Session) (done <-chan struct{})
	// MaxConnections and ReservedConnections are shown as settings; 0: nothing bounds connections.
	MaxConnections, ReservedConnections int
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
	// PageHint overrides the size of the first page of scans (tests run with 1); 0: default.
	PageHint int
}

// CancelKey names a session in a CancelRequest.
type CancelKey struct{ PID, Secret uint32 }

// Session is one client's conversation. One goroutine's, save Cancel.
type Session struct {
	deps       Deps
	log        *slog.Logger
	key        CancelKey
	user       string
	database   string
	ctx        context.Context // of the running statement, or of the last one
	interrupts *interrupts
	settings   *settings
	lexer      sql.Lexer
	text       clientText // that runs, or is prepared
	env        builtin.Env
	scratch    executor.Scratch
	memory     memory.Account // of what its statements hold
	guard      *catalog.Guard

	tx         transaction
	shown      shown
	ended      endedTxn // whose commit failed, until the client is told
	statements statements
	portals    portals
	plans      plans
	deferred   *portal      // whose Execute waits for the next message
	out        ResultWriter // of the plan that runs, for warnings of functions
	inputs     types.Row
	objects    pgcatalog.Objects
	// simple: the running text came as a simple query, so row sets are announced.
	simple bool
	// formats are those that the client asked for, for the rows of statements without plan.
	formats   []int16
	sequences sequences
	started   time.Time
	closed    bool
	latest    latestReader
	texts     run    // of simple queries, one after the other
	views     uint64 // how many schemas have been looked at (transaction.resolver)
}

// freeBytes is what a session's statements hold without drawing from the server's memory, so that small
// ones run when it is exhausted.
const freeBytes = 128 << 10

// Database is the one database a server has.
const Database = "percodb"

// New makes the session of a client. startup is its startup packet: user, database, options and
// settings. The error, if any, is a *pgerror.Error to end the connection with.
func New(ctx context.Context, deps Deps, pid uint32, startup map[string]string) (*Session, error) {
	user := startup["user"]
	if user == "" {
		return nil, pgerror.New(pgerror.InvalidAuthorization, "no PostgreSQL user name specified in startup packet")
	}
	database := startup["database"]
	if database == "" {
		database = user
	}
	if database != Database && database != "postgres" {
		return nil, pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", database).
			WithHint("percodb has one database, " + Database + ".")
	}
	s := &Session{
		deps: deps, log: deps.Logger.With("session", pid), user: user, database: Database,
		ctx: ctx, interrupts: newInterrupts(ctx), settings: newSettings(deps.Version),
		statements: newStatements(), portals: newPortals(), plans: newPlans(), guard: deps.Catalog.NewGuard(), started: time.Now(),
		latest: latestReader{Latest: deps.DB.Latest(), catalog: deps.Catalog},
	}
	var secret [4]byte
	_, _ = rand.Read(secret[:]) // crypto/rand.Read never fails.
	s.key = CancelKey{PID: pid, Secret: binary.BigEndian.Uint32(secret[:])}
	s.settings.defs["session_authorization"].initial = user
	s.settings.defs["max_connections"].initial = strconv.Itoa(deps.MaxConnections)
	s.settings.defs["superuser_reserved_connections"].initial = strconv.Itoa(deps.ReservedConnections)
	if err := s.applyStartup(startup); err != nil {
		return nil, err
	}
	s.initEnv()
	return s, nil
}

// applyStartup takes the settings of the startup packet and of its "options" (-c name=value).
func (s *Session) applyStartup(startup map[string]string) error {
	apply := func(name, value string) error {
		canonical, err := s.settings.set(name, value)
		if err == nil {
			s.settings.startup[strings.ToLower(name)] = canonical
		}
		return err
	}
	for name, value := range startup {
		switch {
		case name == "user", name == "database", name == "replication", strings.HasPrefix(name, "_pq_."):
		case name == "options":
			for _, option := range parseOptions(value) {
				if err := apply(option[0], option[1]); err != nil {
					return err
				}
			}
		default:
			if err := apply(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseOptions reads "-c a=b --c=d", with backslashes before blanks within values.
func parseOptions(text string) [][2]string {
	words := []string{}
	var word strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case text[i] == ' ' || text[i] == '\t':
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteByte(text[i])
		}
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	options := [][2]string{}
	for _, w := range words {
		w = strings.TrimPrefix(strings.TrimPrefix(w, "--"), "-c")
		if name, value, ok := strings.Cut(w, "="); ok {
			options = append(options, [2]string{strings.ReplaceAll(name, "-", "_"), value})
		}
	}
	return options
}

// Format is how the session prints values; it follows SET, and must not be changed by the caller.
func (s *Session) Format() *types.Format { return &s.settings.format }

// ReportSettings tells w the settings that clients track and have not heard of in their present
// value: all of them the first time, later those that SET, RESET or a rollback have changed.
func (s *Session) ReportSettings(w ResultWriter) {
	if s.settings.changed {
		s.settings.report(w.Setting)
	}
}

// CancelKey returns the key for BackendKeyData.
func (s *Session) CancelKey() CancelKey { return s.key }

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
		return s.settings.idleTimeout
	}
	return s.settings.idleSessionTimeout
}

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
	s.abortTxn()
	s.portals.removeCursors() // those WITH HOLD
	s.memory.Close()
	s.interrupts.close()
}
