package ddl

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
)

// analyzeWait is how long the analyzer waits for another schema change before it tries again later.
const analyzeWait = 100 * time.Millisecond

// A table that continues to change is analyzed at increasing intervals, from every check to once a minute, as
// PostgreSQL's autovacuum does: new statistics invalidate every plan that reads the table.
const maxPause = time.Minute

// pauseForCost is the minimal pause after an analysis, as a multiple of its duration: a large table that is being loaded
// would otherwise be scanned continuously.
const pauseForCost = 100

// Analyzer keeps statistics fresh: it checks regularly which tables have changed much and analyzes them. Close stops it.
type Analyzer struct {
	deps   Deps
	paces  map[uint64]pace // by table; the loop's own
	cancel context.CancelFunc
	done   chan struct{}
}

// pace is when a table was last analyzed, and the pause after that.
type pace struct {
	at    time.Time
	pause time.Duration
}

// due reports whether a table that has changed much may be analyzed now, and its pace if it is.
func (p pace) due(now time.Time, interval time.Duration) (pace, bool) {
	since := now.Sub(p.at)
	switch {
	case since < p.pause:
		return p, false
	case since > 4*p.pause:
		return pace{at: now, pause: interval}, true // it was quiet for a while
	default:
		return pace{at: now, pause: min(2*p.pause, maxPause)}, true
	}
}

// after returns the pace of a table after an analysis of the given duration.
func (p pace) after(took time.Duration) pace {
	p.pause = max(p.pause, min(pauseForCost*took, maxPause))
	return p
}

// NewAnalyzer starts an analyzer that checks every interval (0: 1 s).
func NewAnalyzer(db *percolator.DB, c *catalog.Catalog, interval time.Duration, logger *slog.Logger) *Analyzer {
	if interval == 0 {
		interval = time.Second
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	deps := Deps{DB: db, Catalog: c, Logger: logger}
	a := &Analyzer{deps: deps.ensureDefaults(), paces: map[uint64]pace{}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go a.run(ctx, interval)
	return a
}

// Close stops the analyzer and cancels its current statement. It may be called more than once.
func (a *Analyzer) Close() {
	a.cancel()
	<-a.done
}

func (a *Analyzer) run(ctx context.Context, interval time.Duration) {
	defer close(a.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := a.look(ctx, interval); err != nil && ctx.Err() == nil {
			a.deps.Logger.Warn("tables not analyzed", "err", err)
		}
	}
}

// look analyzes the tables that need it.
func (a *Analyzer) look(ctx context.Context, interval time.Duration) (err error) {
	now := time.Now()
	maps.DeleteFunc(a.paces, func(_ uint64, p pace) bool { return now.Sub(p.at) > 4*p.pause })
	for _, c := range a.deps.Catalog.Open() {
		if failed := a.lookAt(ctx, c, interval); failed != nil && !errors.Is(failed, catalog.ErrNoDatabase) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// lookAt is look for one database.
func (a *Analyzer) lookAt(ctx context.Context, c *catalog.Catalog, interval time.Duration) error {
	stale, err := c.Stale(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, id := range stale {
		next, due := a.paces[id].due(now, interval)
		if !due {
			continue
		}
		if failed := a.analyze(ctx, c, id); failed != nil { // The others are analyzed nevertheless, and this one is tried again later.
			err = errors.Join(err, failed)
		}
		a.paces[id] = next.after(time.Since(now))
		now = time.Now()
	}
	return err
}

func (a *Analyzer) analyze(ctx context.Context, c *catalog.Catalog, id uint64) error {
	txn, err := a.deps.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	resolver, err := c.At(ctx, txn)
	if err != nil {
		return err
	}
	t, err := resolver.RelationByID(ctx, id)
	if err != nil || t == nil {
		return err
	}
	deps := a.deps
	deps.Catalog = c
	r := &run{Deps: &deps, txn: txn, r: resolver, alone: true}
	stats, err := r.collect(ctx, t)
	if err != nil {
		return err
	}
	// A schema change in progress may take long; the table stays on the list in the meantime.
	waitCtx, cancel := context.WithTimeout(ctx, analyzeWait)
	defer cancel()
	if err := storeStats(waitCtx, &deps, id, stats); err != nil && waitCtx.Err() == nil {
		return err
	}
	return nil
}
