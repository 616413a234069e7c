// Package node assembles the packages into a running process for a role, and stops its parts in order.
//
//	all   engine ─ oracle ─ store ─ percolator ─ catalog ─ sessions ─ listener
//	tso   engine ─ oracle ─ directory ─ gRPC
//	kv    engine ─ store ─ gRPC                 oracle and directory over gRPC
//	sql   percolator ─ catalog ─ sessions       oracle, directory and shards over gRPC
//
// Over Bigtable (bigtable.go) there is no engine and no store: every process has sessions, and one of them, by a lease in the
// table, the oracle.
//
// Invariants: what was started is stopped in the reverse order, also when a later start fails; a
// Node's Close returns when all its goroutines have ended.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// Role is the role of a process in a cluster.
type Role string

// The roles.
const (
	RoleAll Role = "all"
	RoleTSO Role = "tso"
	RoleKV  Role = "kv"
	RoleSQL Role = "sql"
)

// Options configure a node. Roles need: all and tso and kv Data; kv and sql Join; tso and kv
// RPCListen; all and sql Listen.
type Options struct {
	Role      Role
	Data      string
	Listen    string // for PostgreSQL clients
	SocketDir string // for a Unix socket; "" for none
	// Access has the rules and certificates for clients; without rules, auth.DefaultRules are in force.
	Access auth.Options
	// NeedPassword refuses to start before a role has a password.
	NeedPassword bool
	RPCListen    string // for other processes of the cluster
	// ClusterTLS are the process's certificate of the cluster, its key and the cluster's authority: the processes of the
	// cluster then speak TLS, and serve only each other. Without, whoever reaches RPCListen is served.
	ClusterTLS tlsfiles.Files
	// RPCAdvertise is where those reach this process, if not at RPCListen (role kv).
	RPCAdvertise string
	AdminListen  string // "" for no admin endpoint
	AdminTLS     bool   // it speaks TLS and serves only operators who have a certificate of the cluster
	AdminPprof   bool   // it serves profiles too
	// Audit is the file of the audit log, of roles with SQL; "" for none, audit.Standard for AuditOut.
	Audit       string
	AuditOut    io.Writer
	Join        string // the tso process's RPC address
	Version     string
	Logger      *slog.Logger
	CacheBytes  int64
	RecentBytes int64 // memory for recently read values; 0: kv's default
	// ScanCacheBytes is memory for rows that scans read again; 0: kv's default, below 0: none.
	ScanCacheBytes int64
	// Memory bounds the memory of statements, messages, uncommitted writes and row locks; nil: unbounded.
	Memory *memory.Pool
	// AcceptDataLoss permits a start on a directory whose log is damaged, with what was written before the damage.
	AcceptDataLoss bool
	// OnFatal is called when the store cannot continue (a write to disk failed); the process should log it and exit.
	OnFatal func(error)

	// MaxConnections is the number of clients served at once (0: as ALTER SYSTEM says, or the default), of which the last ReservedConnections
	// (-1: likewise) are for superusers only.
	MaxConnections, ReservedConnections int
	// AcceptClockStep accepts the clock although it is far above the data's last timestamps.
	AcceptClockStep bool
	// TimestampsAbove, unless 0, makes the oracle start above it: its data directory is older than a store.
	TimestampsAbove tso.Timestamp

	GC GCOptions

	// Bigtable, if given, is the table that keeps all data, in the place of a directory: the role is all.
	Bigtable *bigtable.Options

	// Tests run with small numbers; 0: defaults.
	RangeMaxBytes int64 // ranges split beyond this size
	PageRows      int   // largest page of a scan
	GroupSize     int   // rows that operators take together
	// SchemaLease is how long SQL processes may commit after reading the schema, and therefore how long a schema change
	// waits for them.
	SchemaLease time.Duration
}

// Node is a running process's worth of percodb.
type Node struct {
	opts     Options
	log      *slog.Logger
	registry *prometheus.Registry
	closers  []func(context.Context)
	reloads  []func()
	security *tsorpc.Security // nil without ClusterTLS
	audit    *audit.Log       // nil for none
	gate     *auth.Gate       // nil for roles without SQL
	// configuration is nil as gate.
	configuration *server.Configuration
	rpc           *tsorpc.Server // nil for roles without
	server        *server.Server
	rpcAddr       net.Addr
	admin         *server.Admin
	db            *database
	healthy       func(context.Context) error
	checks        []func(context.Context, server.CheckReport) error
}

// Start starts a node; it serves when Start returns.
func Start(ctx context.Context, opts Options) (_ *Node, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{opts: opts, log: opts.Logger, registry: prometheus.NewRegistry()}
	n.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	defer func() {
		if err != nil {
			n.Close(ctx)
		}
	}()
	if err = n.openSecurity(); err != nil {
		return nil, err
	}
	if err = n.openAudit(); err != nil {
		return nil, err
	}
	if opts.Bigtable != nil {
		err = n.startBigtable(ctx)
	} else {
		err = n.startRole(ctx)
	}
	if err != nil {
		return nil, err
	}
	if opts.AdminListen != "" {
		if err = n.startAdmin(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// startRole starts what a process of the role does.
func (n *Node) startRole(ctx context.Context) error {
	switch n.opts.Role {
	case RoleAll:
		return n.startAll(ctx)
	case RoleTSO:
		return n.startTSO(ctx)
	case RoleKV:
		return n.startKV(ctx)
	case RoleSQL:
		return n.startSQL(ctx)
	default:
		return fmt.Errorf("unknown role %q: use all, tso, kv or sql", n.opts.Role)
	}
}

// openAudit opens the audit log, which is closed last.
func (n *Node) openAudit() (err error) {
	if n.opts.Audit == "" {
		return nil
	}
	if n.audit, err = audit.Open(audit.Options{File: n.opts.Audit, Out: n.opts.AuditOut, Logger: n.log}); err != nil {
		return err
	}
	n.onClose(func(context.Context) { n.audit.Close() })
	n.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "percodb", Subsystem: "audit", Name: "events_lost_total", Help: "Events that are missing in the audit log: its file could not be written for too long.",
		}, func() float64 { lost, _ := n.audit.Counts(); return float64(lost) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "percodb", Subsystem: "audit", Name: "events_waiting", Help: "Events that are not in the file of the audit log yet.",
		}, func() float64 { _, waiting := n.audit.Counts(); return float64(waiting) }),
	)
	return nil
}

// onClose registers f, which Close calls before those registered earlier.
func (n *Node) onClose(f func(context.Context)) { n.closers = append(n.closers, f) }

// onReload registers f, which Reload calls.
func (n *Node) onReload(f func()) { n.reloads = append(n.reloads, f) }

// Reload loads files again that may change while the node runs. What cannot be used is logged, and what was in force before
// stays.
func (n *Node) Reload() {
	for _, f := range n.reloads {
		f()
	}
}

// Close stops everything. Running statements may finish while ctx lasts.
func (n *Node) Close(ctx context.Context) {
	for i := len(n.closers) - 1; i >= 0; i-- {
		n.closers[i](ctx)
	}
	n.closers = nil
}

// Addr is where PostgreSQL clients connect; nil for roles without.
func (n *Node) Addr() net.Addr {
	if n.server == nil {
		return nil
	}
	return n.server.Addr()
}

// RPCAddr is where other processes connect; nil for roles without.
func (n *Node) RPCAddr() net.Addr { return n.rpcAddr }

// AdminAddr is the admin endpoint's address, nil without one.
func (n *Node) AdminAddr() net.Addr {
	if n.admin == nil {
		return nil
	}
	return n.admin.Addr()
}

// idleFlushInterval is how long no writes must arrive before the memory table is flushed.
const idleFlushInterval = 2 * time.Second

// openEngine opens the data directory and has it closed last.
func (n *Node) openEngine() (*kv.Engine, error) {
	return n.ownEngine(kv.EngineOptions{
		Dir: n.opts.Data, CacheBytes: n.opts.CacheBytes, IdleFlushInterval: idleFlushInterval, FullMemtables: true,
		AcceptDataLoss: n.opts.AcceptDataLoss, LockTimeout: dirLockTimeout, Logger: n.log, OnFatal: n.opts.OnFatal,
	})
}

// dirLockTimeout is how long a start waits for a process that has the data directory, and has perhaps been killed, to end.
const dirLockTimeout = 5 * time.Second

func (n *Node) ownEngine(opts kv.EngineOptions) (*kv.Engine, error) {
	engine, err := kv.OpenEngine(opts)
	if err != nil {
		return nil, err
	}
	n.onClose(func(context.Context) {
		if err := engine.Close(); err != nil {
			n.log.Error("close the data directory", "err", err)
		}
	})
	return engine, nil
}

// openOracle starts the oracle over the engine's window.
func (n *Node) openOracle(ctx context.Context, engine *kv.Engine) (*tso.Local, error) {
	oracle, err := tso.NewLocal(ctx, engine.WindowStore(), tso.Options{
		Logger: n.log, Registerer: n.registry, AwaitClock: true, AcceptClockStep: n.opts.AcceptClockStep,
	})
	if err != nil {
		return nil, err
	}
	n.onClose(func(context.Context) {
		if err := oracle.Close(); err != nil {
			n.log.Error("close the oracle", "err", err)
		}
	})
	n.healthy = func(ctx context.Context) error {
		_, err := oracle.Now(ctx)
		return err
	}
	return oracle, nil
}

func (n *Node) startAll(ctx context.Context) error {
	engine, err := n.openEngine()
	if err != nil {
		return err
	}
	oracle, err := n.openOracle(ctx, engine)
	if err != nil {
		return err
	}
	store, err := kv.Open(ctx, kv.Options{
		Engine: engine, Oracle: oracle, EmbeddedOracle: true, RangeMaxBytes: n.opts.RangeMaxBytes, Group: rowenc.IndexPrefixLen,
		RecentBytes: n.opts.RecentBytes, ScanCacheBytes: n.opts.ScanCacheBytes,
		Logger: n.log, Registerer: n.registry, OnFatal: n.opts.OnFatal,
	})
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) { n.closeStore(store) })
	n.checks = append(n.checks, func(ctx context.Context, r server.CheckReport) error { return checkStore(ctx, store, false, r) })
	local := &storage{router: store.Router(), oracle: oracle, waits: store.WaitGraph()}
	return n.startSessions(ctx, local, func(db *percolator.DB) (gc.Service, error) {
		return n.startCollecting(engine, oracle, db, func(context.Context) ([]gc.Member, error) {
			return []gc.Member{{ID: store.ShardID(), Shard: store}}, nil
		})
	})
}

func (n *Node) closeStore(store *kv.Store) {
	if err := store.Close(); err != nil && !errors.Is(err, kv.ErrClosed) {
		n.log.Error("close the store", "err", err)
	}
}
