package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/gc"
	gcrpc "github.com/percodb/percodb/gc/rpc"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/kv"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/notify"
	notifyrpc "github.com/percodb/percodb/notify/rpc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/readlease"
	leaserpc "github.com/percodb/percodb/readlease/rpc"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/server"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// joinTimeout is how long a starting process waits for the tso process.
const joinTimeout = 30 * time.Second

// joinSilence is how long it waits before it logs that it waits.
const joinSilence = time.Second

// destination is a process at an address.
type destination struct {
	addr string
	role certs.Role
}

// connections keeps one connection for each destination.
type connections struct {
	security *tsorpc.Security
	mu       struct {
		sync.Mutex
		byDestination map[destination]*tsorpc.Conn
	}
}

func (n *Node) newConnections() *connections {
	c := &connections{security: n.security}
	c.mu.byDestination = map[destination]*tsorpc.Conn{}
	n.onClose(func(context.Context) { c.close() })
	return c
}

func (c *connections) to(addr string, role certs.Role) (*tsorpc.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := destination{addr, role}
	if conn := c.mu.byDestination[key]; conn != nil {
		return conn, nil
	}
	conn, err := c.security.Dial(addr, role)
	if err != nil {
		return nil, err
	}
	c.mu.byDestination[key] = conn
	return conn, nil
}

// shard returns a client of a shard; it has the shape of a router's Dial.
func (c *connections) shard(_ context.Context, info kv.ShardInfo) (kv.Shard, error) {
	conn, err := c.to(info.Addr, certs.KV)
	if err != nil {
		return nil, err
	}
	return kvrpc.NewShard(conn, info.ID, kvrpc.ClientOptions{}), nil
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.mu.byDestination {
		_ = conn.Close() // No request is in flight.
	}
}

// startTSO runs the oracle and the directory of ranges.
func (n *Node) startTSO(ctx context.Context) error {
	engine, err := n.openEngine()
	if err != nil {
		return err
	}
	if err := n.raiseWindow(ctx, engine.WindowStore()); err != nil {
		return err
	}
	oracle, err := n.openOracle(ctx, engine)
	if err != nil {
		return err
	}
	gate := tso.NewGate(oracle)
	conns := n.newConnections()
	directory, err := kv.OpenDirectory(kv.DirectoryOptions{
		Engine: engine, Logger: n.log, Oracle: gate,
		Dial: func(_ context.Context, info kv.ShardInfo) (kv.RangeOwner, error) {
			conn, err := conns.to(info.Addr, certs.KV)
			if err != nil {
				return nil, err
			}
			return kvrpc.NewOwner(conn, info.ID, kvrpc.ClientOptions{}), nil
		},
	})
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) {
		if err := directory.Close(); err != nil {
			n.log.Error("close the directory", "err", err)
		}
	})
	n.checks = append(n.checks, func(ctx context.Context, r server.CheckReport) error {
		return errors.Join(expectCluster(ctx, directory, r), checkDirectory(ctx, directory, r))
	})
	listener, err := n.listenRPC()
	if err != nil {
		return err
	}
	g := n.security.NewGRPCServer()
	tsorpc.RegisterOracle(g, gate)
	kvrpc.RegisterDirectory(g, directory)
	kvrpc.RegisterWaitGraph(g, waitgraph.NewLocal())
	db, err := n.openClusterTransactions(conns, gate, directory)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	collector, err := n.collectCluster(conns, engine, gate, directory, db)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	gcrpc.Register(g, collector)
	leaserpc.Register(g, &lateLeases{opts: readlease.Options{Oracle: gate, Lease: n.opts.SchemaLease}})
	ending, cancel := context.WithCancel(context.Background())
	exchange := notify.NewExchange(notify.ExchangeOptions{Ended: func(process uint64) { n.endProcess(ending, db, process) }})
	notifyrpc.Register(g, exchange)
	n.serveRPC(g, listener)
	n.onClose(func(context.Context) {
		cancel()
		exchange.Close() // Its streams end by nothing else.
	})
	return nil
}

// raiseWindow makes the oracle start above Options.TimestampsAbove.
func (n *Node) raiseWindow(ctx context.Context, window tso.WindowStore) error {
	saved, err := window.Load(ctx)
	if err != nil || saved > n.opts.TimestampsAbove {
		return err
	}
	if n.opts.TimestampsAbove == 0 {
		return nil
	}
	return window.Save(ctx, n.opts.TimestampsAbove+tso.Tick)
}

// startKV runs a store.
func (n *Node) startKV(ctx context.Context) error {
	conns := n.newConnections()
	// The oracle may wait for this store, so its errors are found only when the store serves.
	oracle, directory, err := n.join(ctx, conns, func(ctx context.Context, _ tso.Oracle, directory kv.Directory) error {
		_, err := directory.Shards(ctx)
		return err
	})
	if err != nil {
		return err
	}
	engine, err := n.openEngine()
	if err != nil {
		return err
	}
	conn, err := conns.to(n.opts.Join, certs.TSO)
	if err != nil {
		return err
	}
	listener, err := n.listenRPC()
	if err != nil {
		return err
	}
	store, err := kv.Open(ctx, kv.Options{
		Engine: engine, Addr: cmp.Or(n.opts.RPCAdvertise, listener.Addr().String()), Oracle: oracle, Directory: directory,
		RangeMaxBytes: n.opts.RangeMaxBytes, WaitGraph: kvrpc.NewWaitGraph(conn), RecentBytes: n.opts.RecentBytes,
		ScanCacheBytes: n.opts.ScanCacheBytes, Group: rowenc.IndexPrefixLen,
		Logger: n.log, Registerer: n.registry, OnFatal: n.opts.OnFatal,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	n.onClose(func(context.Context) { n.closeStore(store) })
	n.checks = append(n.checks, func(ctx context.Context, r server.CheckReport) error {
		return errors.Join(expectCluster(ctx, directory, r), checkStore(ctx, store, false, r))
	})
	if err := n.fenceOff(ctx, conns, store); err != nil {
		return errors.Join(err, listener.Close())
	}
	g := n.security.NewGRPCServer()
	kvrpc.RegisterShard(g, store)
	kvrpc.RegisterOwner(g, store)
	n.serveRPC(g, listener)
	n.onClose(func(context.Context) { store.EndWatches() })
	return nil
}

// startSQL runs sessions over the stores of others.
func (n *Node) startSQL(ctx context.Context) error {
	conns := n.newConnections()
	oracle, directory, err := n.join(ctx, conns, func(ctx context.Context, oracle tso.Oracle, _ kv.Directory) error {
		_, err := oracle.Now(ctx)
		return err
	})
	if err != nil {
		return err
	}
	router, err := kv.NewRouter(kv.RouterOptions{Directory: directory, Dial: conns.shard})
	if err != nil {
		return err
	}
	conn, err := conns.to(n.opts.Join, certs.TSO)
	if err != nil {
		return err
	}
	n.checks = append(n.checks, func(ctx context.Context, r server.CheckReport) error { return expectCluster(ctx, directory, r) })
	process := rand.Uint64() | 1 // not 0
	cluster := &storage{
		router: router, oracle: oracle, waits: kvrpc.NewWaitGraph(conn), leases: leaserpc.NewClient(conn), process: process,
		join: func(hub *notify.Hub) {
			client := notifyrpc.Connect(conn, notifyrpc.Options{Process: process, Hub: hub, Logger: n.log})
			n.onClose(func(context.Context) { client.Close() })
		},
	}
	return n.startSessions(ctx, cluster, func(*percolator.DB) (gc.Service, error) { return gcrpc.NewClient(conn), nil })
}

// openClusterTransactions opens transactions over all stores, with a client's view of them.
func (n *Node) openClusterTransactions(conns *connections, oracle tso.Oracle, directory *kv.LocalDirectory) (*percolator.DB, error) {
	router, err := kv.NewRouter(kv.RouterOptions{Directory: directory, Dial: conns.shard})
	if err != nil {
		return nil, err
	}
	db := percolator.New(router, oracle, percolator.Options{Logger: n.log, Registerer: n.registry})
	n.onClose(func(context.Context) {
		if err := db.Close(); err != nil {
			n.log.Warn("close the transactions", "err", err)
		}
	})
	return db, nil
}

// endProcessTimeout bounds how long the locks of an SQL process that has ended are looked for; their TTL is 3 s.
const endProcessTimeout = 10 * time.Second

// endProcess finishes the transactions of an SQL process that has ended, so that their locks are in nobody's way until
// they expire. It may only have been cut off, so advisory locks are left to their TTL.
func (n *Node) endProcess(ctx context.Context, db *percolator.DB, process uint64) {
	ctx, cancel := context.WithTimeout(ctx, endProcessTimeout)
	defer cancel()
	removed, err := db.EndProcess(ctx, process, catalog.IsAdvisoryKey)
	switch {
	case err != nil && ctx.Err() == nil:
		n.log.Warn("locks of an SQL process that has ended may stay until they expire", "removed", removed, "err", err)
	case removed > 0:
		n.log.Info("locks of an SQL process that has ended were removed", "locks", removed)
	}
}

// collectCluster runs garbage collection of all stores.
func (n *Node) collectCluster(conns *connections, engine *kv.Engine, oracle tso.Oracle, directory *kv.LocalDirectory, db *percolator.DB) (*gc.Controller, error) {
	return n.startCollecting(engine, oracle, db, func(ctx context.Context) ([]gc.Member, error) {
		known, err := directory.Members(ctx)
		if err != nil {
			return nil, err
		}
		members := make([]gc.Member, len(known))
		for i, k := range known {
			m := gc.Member{ID: k.ID, LockBound: k.LockBound}
			if m.Shard, err = conns.shard(ctx, k.ShardInfo); err != nil {
				return nil, err
			}
			for j := range k.Ranges {
				m.Spans = append(m.Spans, k.Ranges[j].Span)
			}
			members[i] = m
		}
		return members, nil
	})
}

// fenceOff raises a store's safe point to the cluster's before the store serves requests: it may have been unavailable,
// or be about to get ranges that others have collected.
func (n *Node) fenceOff(ctx context.Context, conns *connections, store *kv.Store) error {
	conn, err := conns.to(n.opts.Join, certs.TSO)
	if err != nil {
		return err
	}
	status, err := gcrpc.NewClient(conn).Report(ctx, "", 0)
	if err == nil {
		_, err = store.SetSafePoint(ctx, status.SafePoint)
	}
	if err != nil {
		return fmt.Errorf("learn the safe point: %w", err)
	}
	return nil
}

// join connects to the tso process, and waits until it answers.
func (n *Node) join(ctx context.Context, conns *connections, answers func(context.Context, tso.Oracle, kv.Directory) error) (tso.Oracle, kv.Directory, error) {
	conn, err := conns.to(n.opts.Join, certs.TSO)
	if err != nil {
		return nil, nil, err
	}
	oracle, directory := tsorpc.NewClient(conn, tsorpc.ClientOptions{}), kvrpc.NewDirectory(conn, kvrpc.ClientOptions{})
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	silent := time.After(joinSilence)
	for {
		err := answers(ctx, oracle, directory)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			question := "is it running, and is that its --rpc-listen?"
			if n.security == nil {
				question += " If it has certificates, give this process one as well, by --cluster-tls-cert."
			}
			return nil, nil, fmt.Errorf("no answer from the tso process at %s: %s (%w)", n.opts.Join, question, err)
		case <-silent:
			n.log.Warn("waiting for the tso process", "join", n.opts.Join, "for", joinTimeout, "err", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	n.healthy = func(ctx context.Context) error {
		_, err := oracle.Now(ctx)
		return err
	}
	return oracle, directory, nil
}

func (n *Node) listenRPC() (net.Listener, error) {
	listener, err := net.Listen("tcp", n.opts.RPCListen)
	if err != nil {
		return nil, &server.ListenError{Flag: "--rpc-listen", Addr: n.opts.RPCListen, Err: err}
	}
	n.rpcAddr = listener.Addr()
	return listener, nil
}

// openSecurity loads the process's certificate of the cluster.
func (n *Node) openSecurity() (err error) {
	role, overTable := certs.Role(n.opts.Role), n.opts.Bigtable != nil
	if n.opts.ClusterTLS == (tlsfiles.Files{}) || n.opts.Role == RoleAll && !overTable {
		return nil
	}
	if overTable {
		role = certs.SQL // which serves others of its role while it is the coordinator
	}
	n.security, err = tsorpc.NewSecurity(n.opts.ClusterTLS, role, n.log)
	if err == nil && overTable {
		err = n.security.CheckServer()
	}
	if err != nil {
		return fmt.Errorf("TLS between processes: %w", err)
	}
	n.onReload(func() {
		if err := n.security.Reload(); err != nil {
			n.log.Error("the certificate of the cluster was not loaded again", "err", err)
		}
	})
	return nil
}

// serveRPC answers other processes until Close.
func (n *Node) serveRPC(g *tsorpc.Server, listener net.Listener) {
	n.rpc = g
	served := make(chan struct{})
	n.onClose(func(ctx context.Context) {
		stopped := make(chan struct{})
		go func() {
			n.rpc.GracefulStop()
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-ctx.Done():
			n.rpc.Stop()
			<-stopped
		}
		<-served
	})
	go func() {
		defer close(served)
		if err := n.rpc.Serve(listener); err != nil {
			n.log.Error("serving other processes ended", "err", err)
		}
	}()
}
