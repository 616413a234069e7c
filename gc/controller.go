package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Resolver completes the transactions of crashed or slow clients; *percolator.DB is one. It works without the shards
// that are unavailable, and returns the locks that it has left on other shards because only the unavailable ones know
// their outcome.
type Resolver interface {
	ResolveBefore(ctx context.Context, maxTS tso.Timestamp, away map[string]bool) (resolved int, left []kv.LeftLocks, err error)
}

// Member is a shard, whether it can be reached or not.
type Member struct {
	ID    string
	Shard kv.Collector
	// LockBound: no later transaction has a lock on the shard, or will get one before the shard has learnt the safe
	// point that was announced when the members were listed. 0: there is no such bound, so nothing can be collected
	// without the shard.
	LockBound tso.Timestamp
	// Spans are the shard's keys.
	Spans []kv.Span
}

// Drops lists and removes records of the spans of keys to which no schema refers any more.
type Drops interface {
	// Dropped lists those whose removal was committed at or below ts. It is called while ts may still be read at.
	Dropped(ctx context.Context, ts tso.Timestamp) ([]DroppedSpan, error)
	// RemoveCells removes all notify cells of an observer, durably. No transaction is left that writes some.
	RemoveCells(ctx context.Context, observer uint64) error
	// Forget is called with those whose keys are removed.
	Forget(ctx context.Context, ids []uint64) error
}

// DroppedSpan is a span and the id of its record. If Observer is set, the observer's notify cells are meant, on all shards.
type DroppedSpan struct {
	ID       uint64
	Span     kv.Span
	Observer uint64
}

// Settings outlive the controller's process; *kv.Engine keeps them.
type Settings interface {
	// LoadGC returns the stored settings, zeros if there are none.
	LoadGC() (kv.GCSettings, error)
	// SaveGC returns once the settings are durable.
	SaveGC(kv.GCSettings) error
	// LoadCleared returns what SaveCleared has stored: for each shard, the timestamp at or below which no transaction
	// has a lock there.
	LoadCleared() (map[string]tso.Timestamp, error)
	SaveCleared(map[string]tso.Timestamp) error
}

// Options configure a controller. Oracle, Members, Resolver and Settings are required; the zero value of the rest
// is a default.
type Options struct {
	Oracle tso.Oracle
	// Members lists every shard there is, those that own no range too.
	Members  func(ctx context.Context) ([]Member, error)
	Resolver Resolver
	// Drops lists dropped tables. Optional.
	Drops Drops
	// Held returns the oldest timestamp, as stored as of ts, at which work will still read that goes on after its process has ended; 0: there
	// is none. Optional.
	Held     func(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error)
	Settings Settings
	// Life applies until SetLife has been called; DefaultLife.
	Life time.Duration
	// Interval is DefaultInterval, or a tenth of Life if that is less.
	Interval time.Duration
	// MaxShare bounds the part of the time that rounds take, by longer intervals: where a round reads everything that is stored, and reads are
	// paid for. 0: no bound.
	MaxShare float64
	Lease    time.Duration // of reports; DefaultLease
	// FenceTimeout is how long a shard may take to raise its fence before it counts as unavailable; DefaultFenceTimeout.
	FenceTimeout time.Duration
	Clock        func() time.Time
	Logger       *slog.Logger
	// Registerer registers the controller's metrics, if set.
	Registerer prometheus.Registerer
}

// Controller runs rounds of garbage collection. There is one in a cluster. Safe for concurrent use.
type Controller struct {
	opts     Options
	log      *slog.Logger
	registry *Registry
	metrics  *metrics

	round   sync.Mutex               // held by the round under way
	cleared map[string]tso.Timestamp // guarded by round: as stored
	mu      struct {
		sync.Mutex
		status Status
		stored kv.GCSettings
		took   time.Duration // the last round
	}
	wake       chan struct{}
	stop       context.CancelFunc
	background sync.WaitGroup
}

var _ Service = (*Controller)(nil)

// New returns an idle controller: call Start, or Round.
func New(opts Options) (*Controller, error) {
	if opts.Oracle == nil || opts.Members == nil || opts.Resolver == nil || opts.Settings == nil {
		return nil, errors.New("gc: options without oracle, members, resolver or settings")
	}
	if opts.Life == 0 {
		opts.Life = DefaultLife
	}
	if opts.FenceTimeout == 0 {
		opts.FenceTimeout = DefaultFenceTimeout
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	stored, err := opts.Settings.LoadGC()
	if err != nil {
		return nil, fmt.Errorf("read the settings of garbage collection: %w", err)
	}
	if stored.Life != 0 {
		opts.Life = stored.Life
	}
	if err := checkLife(opts.Life); err != nil {
		return nil, err
	}
	c := &Controller{opts: opts, log: opts.Logger, registry: NewRegistry(opts.Lease, opts.Clock), wake: make(chan struct{}, 1)}
	c.mu.status = Status{Life: opts.Life, SafePoint: stored.SafePoint, Stage: stageIdle}
	c.mu.stored = stored
	if c.cleared, err = opts.Settings.LoadCleared(); err != nil {
		return nil, fmt.Errorf("read what garbage collection knows of locks: %w", err)
	}
	if c.cleared == nil {
		c.cleared = map[string]tso.Timestamp{}
	}
	c.metrics, err = newMetrics(c, opts.Registerer)
	return c, err
}

// Start begins rounds in the background.
func (c *Controller) Start() {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	c.background.Go(func() { c.loop(ctx) })
}

// Close ends the round under way; the next controller repeats it.
func (c *Controller) Close() {
	if c.stop != nil {
		c.stop()
	}
	c.background.Wait()
	c.metrics.unregister()
}

func (c *Controller) loop(ctx context.Context) {
	for {
		timer := time.NewTimer(c.interval())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.wake:
			timer.Stop()
		case <-timer.C:
		}
		if !c.registry.Ready() {
			continue
		}
		if err := c.Round(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("garbage collection did not get to its end", "err", err)
		}
	}
}

func (c *Controller) interval() time.Duration {
	interval := c.opts.Interval
	if interval <= 0 {
		interval = max(100*time.Millisecond, min(DefaultInterval, c.Status().Life/10))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(interval, pauseAfter(c.mu.took, c.opts.MaxShare))
}

// pauseAfter is the least pause after a round, so that rounds take no more than a part of the time; 0: any part.
func pauseAfter(took time.Duration, maxShare float64) time.Duration {
	if maxShare <= 0 {
		return 0
	}
	return time.Duration(float64(took) * (1/maxShare - 1))
}

// Registry returns the pins that the controller uses.
func (c *Controller) Registry() *Registry { return c.registry }

// Report implements Service.
func (c *Controller) Report(_ context.Context, id string, oldest tso.Timestamp) (Status, error) {
	c.registry.Report(id, oldest)
	return c.Status(), nil
}

// SetLife implements Service.
func (c *Controller) SetLife(_ context.Context, life time.Duration) error {
	if err := checkLife(life); err != nil {
		return err
	}
	if err := c.store(func(s *kv.GCSettings) { s.Life = life }); err != nil {
		return err
	}
	c.update(func(s *Status) { s.Life = life })
	c.log.Info("history is kept for another time", "life", life)
	select {
	case c.wake <- struct{}{}: // the next round may be due earlier
	default:
	}
	return nil
}

// store changes the stored settings.
func (c *Controller) store(change func(*kv.GCSettings)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.mu.stored
	change(&next)
	if next == c.mu.stored {
		return nil
	}
	if err := c.opts.Settings.SaveGC(next); err != nil {
		return fmt.Errorf("store the settings of garbage collection: %w", err)
	}
	c.mu.stored = next
	return nil
}

// Status returns the current status.
func (c *Controller) Status() Status {
	pins := c.registry.Pins()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.status
	if len(pins) > 0 {
		s.Oldest, s.Holder = pins[0].Oldest, pins[0].ID
	}
	return s
}

func (c *Controller) update(f func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.mu.status)
}
