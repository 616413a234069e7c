package node

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/observer"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/readlease"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// database is the part of a node that every role with SQL has.
type database struct {
	db      *percolator.DB
	catalog *catalog.Catalog
}

// storage is what transactions and the schema are opened over: the store of this process, or a cluster's stores.
type storage struct {
	router  kv.Router
	oracle  tso.Oracle
	waits   waitgraph.Graph   // of row locks
	leases  readlease.Service // the authority for leases of the schema; nil if this process is the only one with SQL
	process uint64            // identifies this one in locks and notifications; 0: as leases
	join    func(*notify.Hub) // connects this process's notifications with those of others; nil as leases
}

func (s *storage) local() bool { return s.leases == nil }

// openTransactions opens transactions over s.
func (n *Node) openTransactions(s *storage) *percolator.DB {
	opts := percolator.Options{Logger: n.log, Registerer: n.registry, MaxPageRows: n.opts.PageRows,
		Memory:     n.opts.Memory.Sub("uncommitted writes", n.opts.Memory.Limit()/2),
		Process:    s.process,
		LockMemory: n.opts.Memory.Sub("row locks", n.opts.Memory.Limit()/8*7)}
	if !s.local() {
		opts.MaxOnePhaseBytes = tsorpc.MaxMessageBytes / 2
	}
	db := percolator.New(s.router, s.oracle, opts)
	n.onClose(func(context.Context) {
		if err := db.Close(); err != nil {
			n.log.Warn("close the transactions", "err", err)
		}
	})
	return db
}

// openDatabase opens the schema over transactions.
func (n *Node) openDatabase(ctx context.Context, db *percolator.DB, s *storage) (*database, error) {
	c, err := catalog.New(ctx, db, catalog.Options{
		Logger: n.log, Shared: !s.local(), System: pgcatalog.Tables(),
		Lease: n.opts.SchemaLease, PollInterval: n.opts.SchemaLease / 4, Leases: s.leases, WaitGraph: s.waits,
	})
	if err != nil {
		return nil, err
	}
	n.onClose(func(ctx context.Context) {
		if err := c.Close(ctx); err != nil {
			n.log.Warn("close the catalog", "err", err)
		}
	})
	return &database{db: db, catalog: c}, nil
}

// sessionDeps is what sessions need at least, those of percodb check.
func (n *Node) sessionDeps(d *database, s *storage, hub *notify.Hub) session.Deps {
	return session.Deps{
		DB: d.db, Catalog: d.catalog, Router: s.router, Oracle: s.oracle, Plans: session.NewPlanCache(),
		Metrics: session.NewMetrics(n.registry), Logger: n.log, Version: n.opts.Version, Notify: hub,
		GroupSize: n.opts.GroupSize, Shared: !s.local(), WaitGraph: s.waits, Builds: new(ddl.Builds),
		Memory: n.opts.Memory.Sub("statements", n.opts.Memory.Limit()/8*7),
	}
}

// startSessions opens the database and listens for clients. collect returns the controller of garbage collection. The
// process reports to it before its first transaction, which reads the schema; otherwise the history that it reads could
// be collected.
func (n *Node) startSessions(ctx context.Context, s *storage, collect func(*percolator.DB) (gc.Service, error)) error {
	db := n.openTransactions(s)
	service, err := collect(db)
	if err != nil {
		return err
	}
	reporter, err := n.startReporting(ctx, db, service)
	if err != nil {
		return err
	}
	d, err := n.openDatabase(ctx, db, s)
	if err != nil {
		return err
	}
	n.db = d
	analyzer := ddl.NewAnalyzer(d.db, d.catalog, 0, n.log)
	n.onClose(func(context.Context) { analyzer.Close() })
	hub := notify.New(notify.Options{Memory: n.opts.Memory.Sub("notifications", n.opts.Memory.Limit()/8)})
	if s.join != nil {
		s.join(hub)
	}
	deps := n.sessionDeps(d, s, hub)
	deps.GC, deps.Audit = reporter, n.audit
	n.checks = append(n.checks, func(ctx context.Context, r server.CheckReport) error { return d.check(ctx, deps, r) })
	observing := observer.Options{Deps: deps, Logger: n.log, Registerer: n.registry}
	if n.opts.Bigtable != nil {
		observing.FollowInterval = bigtableFollowInterval
	}
	observers := observer.Start(observing)
	n.onClose(observers.Close)
	hub.OnProcessEnded(observers.ProcessEnded)
	builds := session.StartIndexBuilds(deps, n.log)
	n.onClose(func(context.Context) { builds.Close() })
	deps.Hints, deps.Observers, deps.Cursors = observers.Hints, observers.Activity, session.NewChangeCursors()
	configuration, err := n.openConfiguration(ctx, d.catalog)
	if err != nil {
		return err
	}
	n.configuration = configuration
	deps.Configuration, n.gate = configuration, configuration.Gate()
	n.onClose(func(context.Context) { n.gate.Close() })
	n.onReload(func() { configuration.Load(context.WithoutCancel(ctx)) })
	if !s.local() {
		n.follow(ctx, configuration)
	}
	most, reserved := configuration.MaxConnections()
	n.server, err = server.New(server.Options{
		Listen: n.opts.Listen, SocketDir: n.opts.SocketDir, Gate: n.gate, MaxConnections: most, ReservedConnections: reserved,
		Logger: n.log, Messages: n.opts.Memory.Sub("messages of clients", n.opts.Memory.Limit()/4), Deps: deps,
	})
	if err != nil {
		return err
	}
	serving := make(chan struct{})
	n.onClose(func(ctx context.Context) {
		n.server.Close(ctx)
		<-serving
	})
	if !s.local() { // Other processes take over the changes while clients' statements finish here.
		n.onClose(func(context.Context) { observers.Release() })
	}
	go func() {
		defer close(serving)
		if err := n.server.Serve(context.WithoutCancel(ctx)); err != nil {
			n.log.Error("accepting clients ended", "err", err)
		}
	}()
	return nil
}

// AccessOf returns the method by which a user without a certificate is let in from an address, the zero Addr for the Unix socket:
// auth.Trust, auth.Password if the user has one, and auth.Reject in all other cases.
func (n *Node) AccessOf(user string, from netip.Addr, tls bool) auth.Method {
	return n.gate.MethodFor(user, catalog.FirstDatabaseName, from, tls)
}

// StoredRules reports whether ALTER SYSTEM has stored the rules that decide which clients are let in.
func (n *Node) StoredRules() bool { return n.configuration.StoredRules() }

// NoPasswordError says that nobody could log in from another machine.
type NoPasswordError struct{ Listen string }

func (e *NoPasswordError) Error() string {
	return fmt.Sprintf("%s can be reached from other machines, where clients need a password, and no role can log in with one", e.Listen)
}

// openConfiguration makes what decides the settings of the server, and which clients are let in.
func (n *Node) openConfiguration(ctx context.Context, c *catalog.Catalog) (*server.Configuration, error) {
	access := n.opts.Access
	access.Roles, access.Logger, access.Audit = server.Roles(c), n.log, n.audit
	configuration, err := server.OpenConfiguration(ctx, server.ConfigurationOptions{
		Catalog: c, Access: access, Listen: n.opts.Listen, SocketDir: n.opts.SocketDir, Logger: n.log,
		MaxConnections: n.opts.MaxConnections, ReservedConnections: n.opts.ReservedConnections,
	})
	if err != nil {
		return nil, err
	}
	if n.opts.NeedPassword && !configuration.StoredRules() {
		can, err := server.AnyPassword(ctx, c)
		if err == nil && !can {
			err = &NoPasswordError{Listen: n.opts.Listen}
		}
		if err != nil {
			configuration.Gate().Close()
			return nil, err
		}
	}
	return configuration, nil
}

// follow has a configuration load again what clients of other processes change, until Close.
func (n *Node) follow(ctx context.Context, c *server.Configuration) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Follow(ctx)
	}()
	n.onClose(func(context.Context) {
		cancel()
		<-done
	})
}
