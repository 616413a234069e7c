// Package observer runs the bodies of observers. A Manager follows the schema, and has a runner for each observer that is enabled
// and has a body:
//
//	hints of commits ─┐
//	scans of cells ───┴▶ queue, by key ─▶ workers, each with a session.Observing ─▶ percolator/observe
//
// Every process that executes SQL has a Manager; they need not know of each other. What has changed is in the notify cells, and
// the acknowledgements decide who handles it.
//
// Invariants:
//
//	O1 A change is handled although no hint of it arrives: scans find every cell.
//	O2 A key is in one worker's hands at a time in a process; between processes its acknowledgement is locked.
//	O3 A key that fails holds up no other: it is tried alone, later, and set aside after max_attempts.
//	O4 The queue of an observer is bounded. What does not fit stays in the cells.
//	O5 All goroutines have ended when Close returns.
package observer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/builtin"
)

// Options of a Manager.
type Options struct {
	// Deps are those of sessions: the runners' are made with them.
	Deps   session.Deps
	Logger *slog.Logger
	// Registerer receives the metrics; nil keeps them unregistered.
	Registerer prometheus.Registerer
	// NoHints: changes are found by scans only. For tests.
	NoHints bool
	// FollowInterval is how often the schema is looked at, which is a request to the store; 0: 50 ms.
	FollowInterval time.Duration
}

const defaultFollowInterval = 50 * time.Millisecond

// Manager runs the observers of a process. Safe for concurrent use.
type Manager struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	ctx     context.Context // of the workers
	cancel  context.CancelFunc
	closing chan struct{} // closed by stop
	stop    func()        // closes closing, once
	wg      sync.WaitGroup

	mu struct {
		sync.Mutex
		runners map[uint64]*runner
		// awaited are the channels that Hints has returned, closed by the next hint.
		awaited map[uint64]chan struct{}
		// observers are all there are, with or without a body.
		observers []target
	}
}

// target is an observer with its table, as of one version of the schema.
type target struct {
	table    *catalog.TableDescriptor
	observer *catalog.ObserverDescriptor
	database *catalog.Catalog
}

// Start starts a Manager. Close it before what Deps contain.
func Start(opts Options) *Manager {
	m := &Manager{opts: opts, log: opts.Logger, metrics: newMetrics(opts.Registerer), closing: make(chan struct{})}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.stop = sync.OnceFunc(func() { close(m.closing) })
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.mu.runners, m.mu.awaited = map[uint64]*runner{}, map[uint64]chan struct{}{}
	m.wg.Go(m.follow)
	m.wg.Go(m.collect)
	m.wg.Go(m.seed)
	if !opts.NoHints {
		m.wg.Go(m.watch)
	}
	return m
}

// Release begins to end the runners, and returns at once: no more changes are claimed, and those that are go to other processes if their
// transactions do not finish within endGrace. Close follows.
func (m *Manager) Release() {
	m.stop()
	time.AfterFunc(endGrace, m.cancel)
}

// Close ends the runners. Transactions under way may finish while ctx lasts.
func (m *Manager) Close(ctx context.Context) {
	m.stop()
	ended := make(chan struct{})
	go func() {
		m.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	m.cancel()
	<-ended
}

// Hints returns a channel that is closed at the next hint that an observer has been notified of a change.
func (m *Manager) Hints(observer uint64) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.awaited[observer]
	if c == nil {
		c = make(chan struct{})
		m.mu.awaited[observer] = c
	}
	return c
}

// Activity returns the work of the observers in this process, by their numbers.
func (m *Manager) Activity() map[uint64]catalog.ObserverActivity {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[uint64]catalog.ObserverActivity, len(m.mu.runners))
	for id, r := range m.mu.runners {
		all[id] = r.stats.activity()
	}
	return all
}

// follow keeps a runner for each observer that the schema has run.
func (m *Manager) follow() {
	ticker := time.NewTicker(cmp.Or(m.opts.FollowInterval, defaultFollowInterval))
	defer ticker.Stop()
	version := uint64(0)
	for {
		if r := m.present(); r != nil && r.Version() != version {
			if m.adopt(r) == nil {
				version = r.Version()
			}
		}
		select {
		case <-ticker.C:
		case <-m.closing:
			return
		}
	}
}

// present returns the schema of the first database, nil if it cannot be read now.
func (m *Manager) present() catalog.Resolver {
	if r := m.opts.Deps.Catalog.Latest(); r != nil {
		return r
	}
	r, err := m.opts.Deps.Catalog.Present(m.ctx)
	if err != nil {
		return nil
	}
	return r
}

// targets lists the observers of all databases. first is the schema of the first one.
func (m *Manager) targets(first catalog.Resolver) (all []target, err error) {
	for _, d := range first.Databases().All() {
		c := m.opts.Deps.Catalog.Database(d.OID)
		if d.OID != catalog.FirstDatabase && !d.Observed {
			continue
		}
		r, err := c.Present(m.ctx)
		if errors.Is(err, catalog.ErrNoDatabase) {
			continue
		}
		if err != nil {
			return nil, err
		}
		tables, err := r.Relations(m.ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			for i := range t.Observers {
				all = append(all, target{table: t, observer: &t.Observers[i], database: c})
			}
		}
	}
	return all, nil
}

// adopt starts, informs and stops runners as the schema of the first database, and that of the others at the time, have it.
func (m *Manager) adopt(first catalog.Resolver) error {
	all, err := m.targets(first)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.observers = all
	runs := map[uint64]bool{}
	for _, t := range all {
		o := t.observer
		if o.Body == "" || o.State == catalog.ObserverDisabled {
			continue
		}
		runs[o.ID] = true
		run := m.mu.runners[o.ID]
		if run != nil && run.generation != o.Generation { // Transactions of the former one may run for long.
			run.end()
			run = nil
		}
		if run == nil {
			run = newRunner(m, t)
			m.mu.runners[o.ID] = run
			m.wg.Go(run.loop)
		}
		run.inform(t)
	}
	for id, run := range m.mu.runners {
		if !runs[id] {
			run.end()
			delete(m.mu.runners, id)
		}
	}
	return nil
}

// untilClosing returns a context that ends when the manager is closed. The caller calls cancel.
func (m *Manager) untilClosing() (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(m.ctx)
	go func() {
		select {
		case <-m.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// watch passes on the hints of all stores.
func (m *Manager) watch() {
	ctx, cancel := m.untilClosing()
	defer cancel()
	if err := m.opts.Deps.DB.Observers().Watch(ctx, m.hint); ctx.Err() == nil {
		m.log.Error("hints about changes have ended; scans find them", "err", err)
	}
}

// hint passes on hints.
func (m *Manager) hint(hints []kv.NotifyHint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range hints {
		h := &hints[i]
		if h.Observer == 0 {
			for _, r := range m.mu.runners {
				r.scanSoon()
			}
			for id := range m.mu.awaited {
				m.wakeAwaiting(id)
			}
			continue
		}
		if r := m.mu.runners[h.Observer]; r != nil {
			r.hint(change{NotifyCell: kv.NotifyCell{Key: h.Key, Latest: h.CommitTS}, atMicros: h.AtMicros})
		}
		m.wakeAwaiting(h.Observer)
	}
}

// ProcessEnded has all observers look for changes at once: another process has ended, and may have claimed some.
func (m *Manager) ProcessEnded() { m.hint([]kv.NotifyHint{{}}) }

func (m *Manager) wakeAwaiting(observer uint64) {
	if c := m.mu.awaited[observer]; c != nil {
		close(c)
		delete(m.mu.awaited, observer)
	}
}

// seedPause is how often observers are looked for whose FROM BEGINNING the process that has begun it does not finish.
const seedPause = 5 * time.Second

// seed notifies observers of the rows from before they were created, where others have stopped to.
func (m *Manager) seed() {
	ctx, cancel := m.untilClosing()
	defer cancel()
	ticker := time.NewTicker(seedPause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		m.resumeSeeding(ctx)
	}
}

// resumeSeeding does so once.
func (m *Manager) resumeSeeding(ctx context.Context) {
	m.mu.Lock()
	all := m.mu.observers
	m.mu.Unlock()
	for _, t := range all {
		if t.observer.State != catalog.ObserverSeeding {
			continue
		}
		deps := ddl.Deps{DB: m.opts.Deps.DB, Catalog: t.database, Env: &builtin.Env{}, Logger: m.log}
		if err := ddl.ResumeSeeding(ctx, deps, t.observer.ID); err != nil && ctx.Err() == nil {
			m.log.Warn("notifying an observer of the rows from before it was created", "observer", t.observer.Name, "err", err)
		}
	}
}
