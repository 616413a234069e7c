package percolator

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Options of a DB. The zero value means the defaults named here.
type Options struct {
	Logger *slog.Logger // discards
	// Registerer receives the metrics; nil keeps them unregistered.
	Registerer prometheus.Registerer
	// Process identifies this process in its locks, for EndProcess; 0: there is no other.
	Process uint64
	// MaxTxnBytes is the size of a write buffer, 64 bytes for each write included: no limit but the disk's.
	MaxTxnBytes int64
	// Memory is the pool from which write buffers reserve beyond their first 64 KiB each; nil: they are not bounded
	// together.
	Memory *memory.Pool
	// LockMemory is the pool from which pessimistic locks reserve beyond the first 64 KiB of each transaction; nil: they
	// are not bounded.
	LockMemory *memory.Pool
	// PackLocks is how many pessimistic locks a transaction has before it keeps further ones in few bytes each: 32,768. It
	// commits from a temporary file then.
	PackLocks int
	// SpillBytes is the part of a write buffer that is kept in memory, counted likewise: 16 MiB. The rest goes to a
	// temporary file in TempDir; "" is the system's directory for them. While a part is being written, up to twice as
	// much is in memory.
	SpillBytes int64
	TempDir    string
	// MaxOnePhaseBytes is the largest write set sent to a shard in one piece: 512 MiB. Where shards
	// are behind gRPC it must be below the message limit of kv/rpc.
	MaxOnePhaseBytes int64
	// MaxPageRows is the largest page of a scan: 1024.
	MaxPageRows int
	// RetryBudget is how long one call retries after transient errors, such as a lock, a stale route or a lost
	// connection: 20 s. The context's deadline may end it earlier.
	RetryBudget time.Duration
	// UnreachableBudget is how long one call retries requests to nodes that do not answer, unless the outcome of a
	// commit depends on them: 5 s.
	UnreachableBudget time.Duration
	// ProbeTimeout is how long a commit without an answer checks its status after the budget is spent or the context has
	// ended: 2 s.
	ProbeTimeout time.Duration
	// MaxReadSpans is the number of points and spans that a transaction records of its reads: 4096. Beyond that,
	// neighbours are merged, including the gap between them.
	MaxReadSpans int
	// DisableAsyncCommit: a transaction on several shards always takes two phases.
	DisableAsyncCommit bool
	// LockTTL is how long locks of a small transaction are valid without a heartbeat: 3 s.
	LockTTL time.Duration
	// Workers and Queue bound the background work: 4 and 4096.
	Workers, Queue int
	// Jitter draws a duration in [0, n), for the length of a wait: that of math/rand. Tests that are to
	// be repeated exactly bring their own.
	Jitter func(n time.Duration) time.Duration
	// DrainTimeout is how long Close lets background work continue: 5 s.
	DrainTimeout time.Duration
}

func (o Options) ensureDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&o.MaxTxnBytes, math.MaxInt64)
	orDefault(&o.PackLocks, 32<<10)
	orDefault(&o.SpillBytes, 16<<20)
	orDefault(&o.MaxOnePhaseBytes, 512<<20)
	orDefault(&o.MaxPageRows, 1024)
	orDefault(&o.RetryBudget, 20*time.Second)
	orDefault(&o.UnreachableBudget, 5*time.Second)
	orDefault(&o.ProbeTimeout, 2*time.Second)
	orDefault(&o.MaxReadSpans, 4096)
	orDefault(&o.LockTTL, 3*time.Second)
	orDefault(&o.Workers, 4)
	orDefault(&o.Queue, 4096)
	orDefault(&o.DrainTimeout, 5*time.Second)
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration]
	}
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// DB begins transactions. Safe for concurrent use.
type DB struct {
	router     kv.Router
	oracle     tso.Oracle
	opts       Options
	metrics    *metrics
	background *background
	statuses   statusCache
	active     activeSet
}

// New returns a DB over the shards that router finds. Router and oracle stay the caller's; close the
// DB before them. It panics if Options.Registerer already holds its metrics.
func New(router kv.Router, oracle tso.Oracle, opts Options) *DB {
	db := &DB{router: router, oracle: oracle, opts: opts.ensureDefaults()}
	db.active.init()
	db.background = newBackground(db.opts.Workers, db.opts.Queue)
	m, err := newMetrics(db.opts.Registerer, db.background.length)
	if err != nil {
		panic(err)
	}
	db.metrics = m
	return db
}

// Close finishes the background work of committed transactions. Locks that remain after Options.DrainTimeout are
// resolved by the transactions that encounter them. Transactions must not be used afterwards.
func (db *DB) Close() error {
	db.background.close(db.opts.DrainTimeout)
	return nil
}

// Begin starts a transaction at a fresh timestamp. Every commit that was reported before the call is
// in its snapshot.
func (db *DB) Begin(ctx context.Context) (*Txn, error) { return db.BeginTxn(ctx, TxnOptions{}) }

// BeginTxn is Begin with options.
func (db *DB) BeginTxn(ctx context.Context, opts TxnOptions) (*Txn, error) {
	active := db.active.enter()
	ts, err := db.oracle.Now(ctx)
	if err != nil {
		if ts, err = db.retryNow(ctx, err); err != nil {
			db.active.leave(&active)
			return nil, err
		}
	}
	t := newTxn(db, ts, opts)
	t.active = active
	return t, nil
}

// BeginAt starts a read-only transaction at a timestamp in the past, as returned by Begin or Commit, or made by
// tso.FromPhysical. Reads fail with *mvcc.TooOldError if the history has been removed.
func (db *DB) BeginAt(ts tso.Timestamp) *Txn {
	t := newTxn(db, ts, TxnOptions{ReadOnly: true})
	t.active = db.active.enterPast(ts)
	return t
}

// Timestamp returns a fresh timestamp, with the errors of Begin.
func (db *DB) Timestamp(ctx context.Context) (tso.Timestamp, error) { return db.now(ctx) }

// now returns a fresh timestamp, whatever it takes within the budget.
func (db *DB) now(ctx context.Context) (tso.Timestamp, error) {
	ts, err := db.oracle.Now(ctx)
	if err != nil {
		return db.retryNow(ctx, err)
	}
	return ts, nil
}

func (db *DB) retryNow(ctx context.Context, err error) (tso.Timestamp, error) {
	bo := backoff{db: db}
	for {
		if errkind.Of(err) != errkind.OracleUnavailable {
			return 0, err
		}
		if err := bo.wait(ctx, backoffOracle, err); err != nil {
			return 0, err
		}
		var ts tso.Timestamp
		if ts, err = db.oracle.Now(ctx); err == nil {
			return ts, nil
		}
	}
}
