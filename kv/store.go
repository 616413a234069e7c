package kv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

// PageLimits bound the pages a shard answers scans with.
type PageLimits struct {
	Rows  int // 16384 by default
	Bytes int // 1 MiB by default
}

// Options configure a Store. Oracle and one of Engine and Dir are required; the zero value of the
// rest is a default.
type Options struct {
	// Engine is an open data directory that stays the caller's. Without one, the store opens Dir on
	// FS itself.
	Engine     *Engine
	Dir        string
	FS         storage.FS
	CacheBytes int64
	// RecentBytes bounds the cache of recently read values: 64 MiB by default.
	RecentBytes int64
	// ScanCacheBytes bounds the cache of rows that scans read again, ScanBlockRows its blocks; see mvcc.Options.
	ScanCacheBytes int64
	ScanBlockRows  int

	// ShardID names the store among others; by default the stored one, or a new random one.
	ShardID string
	// Addr is where other processes reach the store, if they do.
	Addr   string
	Oracle tso.Oracle
	// EmbeddedOracle: Oracle is in this process; it then issues every commit_ts.
	EmbeddedOracle bool
	// Directory assigns ranges to shards; without one the store owns all keys.
	Directory Directory
	// Detached opens the ranges as they are stored, also for a cluster's store without its directory, to check the data
	// directory of a stopped server.
	Detached bool
	// Group returns the length of a key's prefix that identifies what it belongs to; see mvcc.Options.
	Group func(key []byte) int
	// RangeMaxBytes is the size beyond which a range is split, 256 MiB by default.
	RangeMaxBytes int64
	PageLimits    PageLimits
	// PackLocks is how many locks a transaction has before more of them are packed; see mvcc.Options.
	PackLocks int
	// WaitGraph, if given, detects deadlocks between stores; see mvcc.Options.
	WaitGraph waitgraph.Graph
	// Clock is a monotonic clock, for tests; see mvcc.Options.
	Clock  func() time.Duration
	Logger *slog.Logger
	// Registerer registers the store's metrics, if given.
	Registerer prometheus.Registerer
	// OnFatal is called once when a write has failed; the process should report it and exit.
	OnFatal func(error)
}

func (o *Options) ensureDefaults() error {
	if o.Oracle == nil {
		return errors.New("kv: options without an oracle")
	}
	if o.Engine == nil && o.Dir == "" {
		return errors.New("kv: options without engine or directory")
	}
	if o.RangeMaxBytes <= 0 {
		o.RangeMaxBytes = 256 << 20
	}
	if o.PageLimits.Rows <= 0 {
		o.PageLimits.Rows = 16384
	}
	if o.PageLimits.Bytes <= 0 {
		o.PageLimits.Bytes = 1 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Store is a shard whose ranges lie in one engine of this process. Safe for concurrent use.
type Store struct {
	opts      Options
	engine    *Engine
	ownEngine bool
	mvcc      *mvcc.State
	shardID   string
	clustered bool // the store owns the ranges that a directory gave it, not all keys
	// incarnation names this opening of the data directory, accepted the last one that the directory of ranges
	// is known to have recorded.
	incarnation, accepted uint64
	// cluster and peers are from the directory's last answer; used by announceLoop once it runs.
	cluster uint64
	peers   []string
	// granted is the lock bound in force, as the directory gave it; of announceLoop once it runs.
	granted lockGrant
	renew   chan struct{} // the lock bound is too low: announce
	seen    tso.Timestamp // the one kept last; of seenLoop
	metrics *metrics
	gate    gate
	run     uint64       // names this run of the shard
	removed atomic.Int64 // versions that garbage collection has removed since it last had them flushed

	// ranges are the store's ranges. Changes are made under changes.mu, durable before they are published.
	ranges  atomic.Pointer[rangeTable]
	changes struct {
		sync.Mutex
		nextID uint64 // of a store without a directory
	}

	background sync.WaitGroup
	stop       context.CancelFunc
	stopped    context.Context
	watched    context.Context // ends with EndWatches
	endWatches context.CancelFunc
	splits     chan *localRange // ranges that may have grown too large
	// compactCells requests a compaction of the notify cells.
	compactCells chan struct{}
	report       chan struct{} // ranges have changed: report them to the directory
}

// Open opens a store, recovers its locks, and registers it with the directory. Errors:
// storage.ErrLocked, *storage.FormatError, *storage.DamageError, *CorruptionError, those of oracle and directory.
func Open(ctx context.Context, opts Options) (_ *Store, err error) {
	if err := opts.ensureDefaults(); err != nil {
		return nil, err
	}
	s := &Store{opts: opts, engine: opts.Engine, gate: gate{drained: make(chan struct{})}, run: mathrand.Uint64()}
	if s.engine == nil {
		s.ownEngine = true
		s.engine, err = OpenEngine(EngineOptions{
			Dir: opts.Dir, FS: opts.FS, CacheBytes: opts.CacheBytes, Logger: opts.Logger, OnFatal: opts.OnFatal,
		})
		if err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx); err != nil {
		if s.ownEngine {
			err = errors.Join(err, s.engine.Close())
		}
		return nil, err
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.watched, s.endWatches = context.WithCancel(s.stopped)
	s.splits = make(chan *localRange, 64)
	s.report = make(chan struct{}, 1)
	s.compactCells = make(chan struct{}, 1)
	s.background.Go(s.splitLoop)
	s.background.Go(s.cellLoop)
	if s.opts.Directory != nil {
		s.background.Go(s.reportLoop)
		s.background.Go(s.seenLoop)
		s.background.Go(s.announceLoop)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if err := s.loadMode(); err != nil {
		return err
	}
	if err := s.loadShardID(); err != nil {
		return err
	}
	if s.opts.Directory != nil {
		if err := s.loadIncarnation(); err != nil {
			return err
		}
		if err := s.loadCluster(); err != nil {
			return err
		}
		if err := s.awaitOracle(ctx); err != nil {
			return err
		}
	}
	s.renew = make(chan struct{}, 1)
	if err := whileOpening(ctx, func() error { return s.openState(ctx) }); err != nil {
		return fmt.Errorf("recover locks: %w", err)
	}
	if s.opts.Directory != nil {
		if err := whileOpening(ctx, func() error { return s.checkSeen(ctx, s.mvcc.MaxTS()) }); err != nil {
			return err
		}
		if err := s.takeGrant(ctx, s.granted); err != nil { // no requests are served yet
			return err
		}
	}
	s.ranges.Store(&rangeTable{})
	if s.metrics, err = newMetrics(s, s.opts.Registerer); err != nil {
		return err
	}
	if err := s.loadRanges(ctx); err != nil {
		s.metrics.unregister()
		return fmt.Errorf("load ranges: %w", err)
	}
	s.opts.Logger.Info("store is open", "shard", s.shardID, "ranges", len(s.ranges.Load().sorted), "locks", s.mvcc.NumLocks())
	return nil
}

func (s *Store) openState(ctx context.Context) (err error) {
	s.mvcc, err = mvcc.Open(ctx, mvcc.Options{
		LockBound:      s.granted.bound,
		Engine:         s.engine.Engine,
		Oracle:         s.opts.Oracle,
		Embedded:       s.opts.EmbeddedOracle,
		SafePointKey:   metaKey(metaSafePoint),
		WaitGraph:      s.opts.WaitGraph,
		RecentBytes:    s.opts.RecentBytes,
		ScanCacheBytes: s.opts.ScanCacheBytes,
		ScanBlockRows:  s.opts.ScanBlockRows,
		Clock:          s.opts.Clock,
		CollectedKey:   metaKey(metaCollected),
		Group:          s.opts.Group,
		PackLocks:      s.opts.PackLocks,
		KeptKey:        metaKey(metaKept),
	})
	return err
}

// loadMode verifies that a data directory is used for the purpose it was created for.
func (s *Store) loadMode() (err error) {
	mode := modeSingle
	if s.opts.Directory != nil {
		mode = modeCluster
	}
	if s.opts.Detached {
		mode, err = s.engine.storedMode()
	} else {
		err = s.engine.claimMode(mode)
	}
	s.clustered = mode == modeCluster
	return err
}

// loadShardID makes sure that a data directory keeps serving the shard it belongs to.
func (s *Store) loadShardID() error {
	stored, found, err := s.engine.Get(nil, metaKey(metaShardID))
	if err != nil {
		return err
	}
	if found || s.opts.Detached {
		s.shardID = string(stored)
		if s.opts.ShardID != "" && s.opts.ShardID != s.shardID {
			return fmt.Errorf("kv: the data directory belongs to shard %q, not to %q", s.shardID, s.opts.ShardID)
		}
		return nil
	}
	if s.shardID = s.opts.ShardID; s.shardID == "" {
		var random [6]byte
		_, _ = rand.Read(random[:]) // never fails
		s.shardID = "kv-" + hex.EncodeToString(random[:])
	}
	b := s.engine.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaShardID), []byte(s.shardID))
	return s.engine.applySync(b)
}

// WaitGraph is the graph of the waits for pessimistic locks in this store; see mvcc.State.
func (s *Store) WaitGraph() *waitgraph.Local { return s.mvcc.WaitGraph() }

// Clustered reports whether the store is one of a cluster, and so holds only part of the keys.
func (s *Store) Clustered() bool { return s.clustered }

// ShardID returns the name of the store.
func (s *Store) ShardID() string { return s.shardID }

// Engine returns the store's engine.
func (s *Store) Engine() *Engine { return s.engine }

// WindowStore keeps an oracle's window in the store's engine.
func (s *Store) WindowStore() tso.WindowStore { return s.engine.WindowStore() }

// Close refuses new requests, waits for those under way, and closes the engine if the store opened it.
func (s *Store) Close() error {
	// Waiting requests would keep the gate from closing: those that wait for a lock, for a change of a lock, for the end
	// of a collection's budget.
	s.mvcc.StopWaiting(ErrClosed)
	s.stop()
	s.endWatches()
	if !s.gate.close() {
		return ErrClosed
	}
	s.background.Wait()
	s.metrics.unregister()
	if s.ownEngine {
		return s.engine.Close()
	}
	return nil
}

// gate counts the requests in flight and admits none after it is closed.
type gate struct {
	n       atomic.Int64 // requests, plus gateClosed once closed
	drained chan struct{}
	once    sync.Once
}

const gateClosed = math.MinInt64 / 2

func (g *gate) enter() bool {
	if g.n.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

func (g *gate) leave() {
	if g.n.Add(-1) == gateClosed {
		g.once.Do(func() { close(g.drained) })
	}
}

// close waits for the requests under way; it reports false if the gate was closed before.
func (g *gate) close() bool {
	for {
		n := g.n.Load()
		if n < 0 {
			return false
		}
		if g.n.CompareAndSwap(n, n+gateClosed) {
			if n > 0 {
				<-g.drained
			}
			return true
		}
	}
}

// mapError turns errors of lower layers into those that Shard specifies.
func mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrClosed):
		return ErrClosed
	case storage.IsCorruption(err):
		return &CorruptionError{Detail: "data file", Err: err}
	default:
		return err
	}
}

// observeSince is not used by point reads: it reads the clock twice.
func observeSince(h prometheus.Histogram, start time.Time) { h.Observe(time.Since(start).Seconds()) }
