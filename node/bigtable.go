package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/gc"
	gcrpc "github.com/percodb/percodb/gc/rpc"
	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
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

// bigtableFollowInterval is how often a process looks for changes of the schema for its observers: Bigtable's requests are paid for.
const bigtableFollowInterval = 500 * time.Millisecond

// startBigtable runs sessions over a table of Bigtable. Of all processes over the table one is the coordinator, by a lease in the
// table, and does for all what a tso process does for a cluster; every process is ready to take over.
func (n *Node) startBigtable(ctx context.Context) error {
	opts := *n.opts.Bigtable
	opts.Registerer = n.registry
	setup, err := bigtable.CreateTable(ctx, opts)
	if err != nil {
		return err
	}
	n.log.Info("the table is ready", "created", setup.Created, "families_created", setup.Families, "profile", setup.Profile)
	client, err := bigtable.Open(ctx, opts)
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) {
		if err := client.Close(); err != nil {
			n.log.Warn("close the connection to Bigtable", "err", err)
		}
	})
	conn, err := n.security.DialFollowing(certs.SQL, func(ctx context.Context) (string, error) {
		addr, err := client.Coordinator(ctx)
		if err == nil && addr == "" {
			err = errors.New("no process is the coordinator")
		}
		return addr, err
	})
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) { _ = conn.Close() }) // No request is in flight.
	oracle := &coordinatedOracle{remote: tsorpc.NewClient(conn, tsorpc.ClientOptions{})}
	process := rand.Uint64() | 1 // not 0
	if err := n.runCoordinator(ctx, client, oracle, bigtable.Candidate{Process: process, Moved: conn.Moved}); err != nil {
		return err
	}
	waits := kvrpc.NewWaitGraph(conn)
	shard, err := openShard(ctx, client, bigtable.ShardOptions{Oracle: oracle, WaitGraph: waits, PrefixLen: rowenc.IndexPrefixLen, RowsPerSecond: opts.RowsPerSecond})
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) { shard.Close() })
	n.healthy = func(ctx context.Context) error {
		_, err := oracle.Now(ctx)
		return err
	}
	table := &storage{
		router: bigtable.NewRouter(shard), oracle: oracle, waits: waits, leases: leaserpc.NewClient(conn), process: process,
		join: func(hub *notify.Hub) {
			client := notifyrpc.Connect(conn, notifyrpc.Options{Process: process, Hub: hub, Logger: n.log, LockHint: shard.ReceiveHint})
			shard.ConnectHints(client.SendLockHint)
			n.onClose(func(context.Context) { client.Close() })
		},
	}
	return n.startSessions(ctx, table, func(*percolator.DB) (gc.Service, error) { return gcrpc.NewClient(conn), nil })
}

// collectShare is the part of the time that garbage collection may take: each round reads the table twice, its locks and its versions.
const collectShare = 0.1

// openShard opens a shard, which needs a timestamp: it waits for a coordinator, and for its successor if it ends meanwhile.
func openShard(ctx context.Context, client *bigtable.Client, opts bigtable.ShardOptions) (*bigtable.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for {
		shard, err := bigtable.NewShard(ctx, client, opts)
		if err == nil {
			return shard, nil
		}
		switch errkind.Of(err) {
		case errkind.OracleUnavailable, errkind.Unavailable:
		default:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no process issues timestamps: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// coordinatedOracle takes timestamps from the coordinator, in this process if it is the one.
type coordinatedOracle struct {
	local  atomic.Pointer[bigtable.Oracle]
	remote tso.Oracle
}

// Now implements tso.Oracle.
func (o *coordinatedOracle) Now(ctx context.Context) (tso.Timestamp, error) {
	if local := o.local.Load(); local != nil {
		if ts, err := local.Now(ctx); err == nil {
			return ts, nil
		}
	}
	return o.remote.Now(ctx)
}

// coordinator is this process as a candidate, and from time to time as the coordinator.
type coordinator struct {
	n        *Node
	client   *bigtable.Client
	oracle   *coordinatedOracle
	who      bigtable.Candidate
	listener net.Listener
}

// runCoordinator makes this process a candidate until Close.
func (n *Node) runCoordinator(ctx context.Context, client *bigtable.Client, oracle *coordinatedOracle, who bigtable.Candidate) error {
	listener, err := net.Listen("tcp", n.opts.RPCListen)
	if err != nil {
		return &server.ListenError{Flag: "--rpc-listen", Addr: n.opts.RPCListen, Err: err}
	}
	n.rpcAddr = listener.Addr()
	who.Addr = cmp.Or(n.opts.RPCAdvertise, listener.Addr().String())
	c := &coordinator{n: n, client: client, oracle: oracle, who: who, listener: listener}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	n.onClose(func(context.Context) {
		cancel()
		<-done
		if c.listener != nil {
			_ = c.listener.Close() // Nothing is served by it.
		}
	})
	go func() {
		defer close(done)
		for logged := ""; ctx.Err() == nil; {
			err := c.coordinate(ctx)
			if err == nil || ctx.Err() != nil {
				logged = ""
				continue
			}
			if changed := (*bigtable.TableChangedError)(nil); errors.As(err, &changed) {
				n.fatal(err)
				return
			}
			if text := err.Error(); text != logged { // Bigtable may be away for long.
				n.log.Warn("this process is not the coordinator", "err", err)
				logged = text
			}
			time.Sleep(coordinatorPause)
		}
	}()
	return nil
}

// fatal ends the process.
func (n *Node) fatal(err error) {
	n.log.Error("this process cannot go on", "err", err)
	if n.opts.OnFatal != nil {
		n.opts.OnFatal(err)
	}
}

// coordinatorPause is the time between two attempts to become the coordinator.
const coordinatorPause = 200 * time.Millisecond

// coordinate waits until this process is the coordinator, and is it until it loses the lease.
func (c *coordinator) coordinate(ctx context.Context) error {
	if err := c.listenAgain(); err != nil {
		return err
	}
	lease, err := c.client.AcquireLease(ctx, c.who)
	if err != nil {
		return err
	}
	c.who.Moved()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kept := make(chan error, 1)
	go func() {
		defer cancel()
		kept <- lease.Keep(ctx)
	}()
	err = c.serve(ctx, lease)
	cancel()
	if keepErr := <-kept; errors.Is(keepErr, bigtable.ErrLeaseLost) {
		return keepErr
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), coordinatorPause)
	defer cancel()
	return errors.Join(err, lease.Release(release))
}

// listenAgain opens the listener unless it is open; serving has closed it.
func (c *coordinator) listenAgain() (err error) {
	if c.listener != nil {
		return nil
	}
	c.listener, err = net.Listen("tcp", c.n.rpcAddr.String())
	return err
}

// serve does the coordinator's work until ctx ends.
func (c *coordinator) serve(ctx context.Context, lease *bigtable.Lease) error {
	n := c.n
	local, err := tso.NewLocal(ctx, lease.WindowStore(), tso.Options{Logger: n.log, AwaitClock: true, AcceptClockStep: n.opts.AcceptClockStep})
	if err != nil {
		return err
	}
	defer local.Close()
	oracle := bigtable.NewOracle(local, lease)
	shard, err := bigtable.NewShard(ctx, c.client, bigtable.ShardOptions{Oracle: oracle})
	if err != nil {
		return err
	}
	defer shard.Close()
	db := percolator.New(bigtable.NewRouter(shard), oracle, percolator.Options{Logger: n.log})
	defer func() { logClose(n, db.Close()) }()
	collector, err := gc.New(gc.Options{
		Oracle: oracle, Resolver: db, Drops: drops{db}, Settings: bigtable.NewGCSettings(c.client),
		Members: func(context.Context) ([]gc.Member, error) {
			return []gc.Member{{ID: kv.BigtableShardID, Shard: shard, Spans: []kv.Span{{}}}}, nil
		},
		Life: n.opts.GC.Life, Interval: n.opts.GC.Interval, MaxShare: collectShare, Lease: n.opts.GC.Lease, Logger: n.log,
	})
	if err != nil {
		return err
	}
	collector.Start()
	defer collector.Close()
	exchange := notify.NewExchange(notify.ExchangeOptions{
		Ended:  func(process uint64) { n.endProcess(ctx, db, process) },
		Former: lease.Former(), Members: lease.SetMembers,
	})
	defer exchange.Close()
	g := n.security.NewGRPCServer()
	tsorpc.RegisterOracle(g, oracle.Remote())
	kvrpc.RegisterWaitGraph(g, waitgraph.NewLocal())
	gcrpc.Register(g, collector)
	leaserpc.Register(g, &lateLeases{opts: readlease.Options{Oracle: oracle, Lease: n.opts.SchemaLease}})
	notifyrpc.Register(g, exchange)
	c.oracle.local.Store(oracle)
	defer c.oracle.local.Store(nil)
	n.log.Info("this process is the coordinator", "rpc", c.listener.Addr().String())
	served := make(chan error, 1)
	listener := c.listener
	c.listener = nil
	go func() { served <- g.Serve(listener) }()
	select {
	case <-ctx.Done():
		exchange.Close() // Its streams end by nothing else.
		g.Stop()
		return <-served
	case err := <-served:
		return err
	}
}

func logClose(n *Node, err error) {
	if err != nil {
		n.log.Warn("close what stands on the table", "err", err)
	}
}
