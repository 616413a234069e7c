package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// node is a storage node across restarts: a disk, and while it runs a store on it.
type node struct {
	w    *world
	name string

	// Guarded by w.mu.
	rows   *widerow.Memory // a table, which has no store and never fails; nil: a store
	disk   *storage.MemFS
	stale  *storage.MemFS // an earlier state of the disk, for lyingDisk
	store  *kv.Store      // nil while down
	life   int
	ctx    context.Context // of the requests running on it
	cancel context.CancelFunc
	// serving reports that syncs may be delayed: the store is open and its ranges do not change.
	serving bool
	syncs   uint64        // of the log, over all restarts
	held    chan struct{} // the sync that waits for the scheduler, which closes it
	// latching counts running requests that may sync while they hold latches. Those are mutexes: a goroutine that waits
	// for one stops the bubble's clock. So no sync is delayed while such a request runs, and none is delivered while a
	// sync is delayed.
	latching int
	// collecting reports that garbage is being collected, which holds a mutex for long, so that the next such request
	// waits until it ends.
	collecting bool
	// away: collector and directory cannot reach the node.
	away bool
}

// admits reports whether the node accepts a request of the kind now. w.mu is held.
func (n *node) admits(kind string) bool {
	return !(n.held != nil && latches(kind)) && !(n.collecting && kind == "collect")
}

// latches reports whether a request of the kind may sync under latches.
func latches(kind string) bool {
	switch kind {
	case "get", "batchget", "scan", "prewrite", "onepc", "async", "commit", "commit-primary", "heartbeat",
		"lock", "release", "scanlock", "refresh", "now":
		return false
	}
	return true
}

// beforeSync is called by the engine before it syncs its log.
func (n *node) beforeSync(life int) {
	w := n.w
	w.mu.Lock()
	n.syncs++
	if !n.serving || n.life != life || n.latching > 0 || !w.faulty || w.hash("sync", n.name, n.syncs)%1000 >= w.plan.slowSyncs {
		w.mu.Unlock()
		return
	}
	held := make(chan struct{})
	n.held = held
	w.mu.Unlock()
	w.wake()
	<-held
}

// releaseSyncLocked lets the delayed sync continue.
func (n *node) releaseSyncLocked() {
	if n.held != nil {
		close(n.held)
		n.held = nil
	}
}

// start opens the store on the node's disk.
func (n *node) start() error {
	w := n.w
	w.mu.Lock()
	n.life++
	life := n.life
	n.latching, n.collecting = 0, false // the requests for which an orderly stop has waited have ended
	n.ctx, n.cancel = context.WithCancel(context.Background())
	w.mu.Unlock()
	if n.rows != nil {
		return nil
	}
	opts := kv.Options{
		Dir: "data", CacheBytes: 1 << 20, ShardID: n.name, Addr: n.name,
		FS:             storage.DelayLogSyncs(n.disk, func() { n.beforeSync(life) }),
		Oracle:         nodeOracle{n, life},
		EmbeddedOracle: w.plan.embedded,
		ScanBlockRows:  2, // few rows are scanned
		OnFatal:        func(err error) { w.problem("%s: fatal: %v", n.name, err) },
	}
	if w.plan.packs {
		opts.PackLocks = -1
	}
	if w.directory != nil {
		opts.Directory = &lifeDirectory{Directory: w.directory, n: n, life: life}
	}
	store, err := kv.Open(context.Background(), opts)
	if err != nil {
		return fmt.Errorf("open %s: %w", n.name, err)
	}
	w.mu.Lock()
	n.store, n.serving = store, true
	w.mu.Unlock()
	return nil
}

// stop stops the node. In a crash what was not synced is lost, except for unsyncedPercent of the blocks; otherwise the
// store closes in order.
func (n *node) stop(crash bool, unsyncedPercent int) {
	w := n.w
	w.mu.Lock()
	store := n.store
	if store == nil {
		w.mu.Unlock()
		return
	}
	n.store, n.serving, n.latching, n.collecting = nil, false, 0, false
	if crash {
		n.life++
		n.disk = storage.CrashClone(n.disk, unsyncedPercent, w.rng)
		if n.stale != nil {
			n.disk, n.stale = n.stale, nil
		}
	}
	n.releaseSyncLocked()
	n.cancel()
	w.mu.Unlock()
	if crash {
		w.background.Go(func() { _ = store.Close() }) // a crashed store's error has no meaning
		return
	}
	if err := store.Close(); err != nil {
		w.problem("close %s: %v", n.name, err)
	}
	w.mu.Lock()
	n.life++
	w.mu.Unlock()
}

var errDown = errors.New("the node is down")

// nodeOracle is the oracle for a store: it answers at once, since it is called under latches, or fails.
type nodeOracle struct {
	n    *node
	life int
}

func (o nodeOracle) Now(ctx context.Context) (tso.Timestamp, error) {
	w := o.n.w
	w.mu.Lock()
	oracle, alive := w.oracle.local, o.n.life == o.life
	w.mu.Unlock()
	if oracle == nil || !alive {
		return 0, &tso.UnavailableError{Err: errDown}
	}
	ts, err := oracle.Now(ctx)
	if errors.Is(err, tso.ErrClosed) {
		err = &tso.UnavailableError{Err: err}
	}
	return ts, err
}

// lifeDirectory prevents a crashed store from reporting to the directory.
type lifeDirectory struct {
	kv.Directory
	n    *node
	life int
}

func (d *lifeDirectory) check() error {
	d.n.w.mu.Lock()
	reached := d.n.life == d.life && !d.n.away
	d.n.w.mu.Unlock()
	if !reached {
		return &kv.UnavailableError{Shard: "directory", Err: errDown}
	}
	return nil
}

func (d *lifeDirectory) Announce(ctx context.Context, a *kv.Announcement) (*kv.Membership, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	m, err := d.Directory.Announce(ctx, a)
	if err == nil && d.n.w.plan.absences && m.Held == "" {
		m.LockBound, m.SafePoint, err = d.n.w.settings.grant(ctx, nodeOracle{d.n, d.life}, a)
	}
	return m, err
}

func (d *lifeDirectory) RegisterShard(ctx context.Context, reg *kv.Registration) ([]kv.RangeDescriptor, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	return d.Directory.RegisterShard(ctx, reg)
}

func (d *lifeDirectory) ReportRanges(ctx context.Context, shard string, incarnation uint64, owned []kv.RangeDescriptor) error {
	if err := d.check(); err != nil {
		return err
	}
	return d.Directory.ReportRanges(ctx, shard, incarnation, owned)
}

func (d *lifeDirectory) AllocateRangeID(ctx context.Context) (uint64, error) {
	if err := d.check(); err != nil {
		return 0, err
	}
	return d.Directory.AllocateRangeID(ctx)
}

// oracleNode is the oracle across restarts.
type oracleNode struct {
	w      *world
	window tso.MemoryWindow // survives restarts
	local  *tso.Local       // guarded by w.mu; nil while down
	saving *lifeWindow
}

// lifeWindow is the window as one run of the oracle sees it.
type lifeWindow struct {
	*tso.MemoryWindow
	w    *world
	dead bool // guarded by w.mu
}

func (l *lifeWindow) Save(ctx context.Context, upper tso.Timestamp) error {
	l.w.mu.Lock()
	dead := l.dead
	l.w.mu.Unlock()
	if dead {
		return errDown
	}
	return l.MemoryWindow.Save(ctx, upper)
}

// simClock is the bubble's clock with the steps that the scheduler makes.
type simClock struct{ w *world }

func (c simClock) NowMillis() int64 {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return time.Now().UnixMilli() + c.w.clockStep.Milliseconds()
}

func (o *oracleNode) start() error {
	saving := &lifeWindow{MemoryWindow: &o.window, w: o.w}
	local, err := tso.NewLocal(context.Background(), saving, tso.Options{Clock: simClock{o.w}, TickInterval: o.w.plan.lockTTL / 20})
	if err != nil {
		return err
	}
	o.w.mu.Lock()
	o.local, o.saving = local, saving
	o.w.mu.Unlock()
	return nil
}

// stop stops the oracle; in a crash it does not return the rest of its window.
func (o *oracleNode) stop(crash bool) {
	o.w.mu.Lock()
	local := o.local
	o.local = nil
	if local == nil {
		o.w.mu.Unlock()
		return
	}
	o.saving.dead = crash
	o.w.mu.Unlock()
	if err := local.Close(); err != nil && !crash {
		o.w.problem("close the oracle: %v", err)
	}
}
