package sim

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// collector collects garbage while the clients work: gc.Controller in a process that dies like theirs.
// Nobody pins history for longer than gc.MinLife, so that transactions which take longer meet the fence,
// at every step there is.
type collector struct {
	w        *world
	c        *client
	settings collectorSettings
}

// The sessions of the collectors, which no client has: the one that runs all the time, and the last.
const (
	collectorID     = 1000
	lastCollectorID = 1001
)

func (w *world) newCollector(id int) *collector { return &collector{w: w, c: w.newClient(id)} }

// collectorSettings outlive the collector's processes.
type collectorSettings struct {
	mu      sync.Mutex
	stored  kv.GCSettings
	cleared map[string]tso.Timestamp
}

func (s *collectorSettings) LoadCleared() (map[string]tso.Timestamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.cleared), nil
}

func (s *collectorSettings) SaveCleared(cleared map[string]tso.Timestamp) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cleared == nil {
		s.cleared = map[string]tso.Timestamp{}
	}
	maps.Copy(s.cleared, cleared)
	return nil
}

func (s *collectorSettings) LoadGC() (kv.GCSettings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored, nil
}

func (s *collectorSettings) SaveGC(settings kv.GCSettings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = settings
	return nil
}

// run collects until ctx ends; the round under way comes to its end or fails.
func (g *collector) run(ctx context.Context) {
	defer g.c.close()
	for ctx.Err() == nil {
		if err := g.round(ctx); err != nil {
			g.w.notef("garbage collection: %v", err)
			if !g.expected(err) {
				g.w.problem("garbage collection: unexpected error %v", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(g.c.rng.Int64N(int64(100*g.w.plan.latency)) + 1)):
		}
	}
}

// expected says whether a round may end with err in a world like this one.
func (g *collector) expected(err error) bool {
	return expected(err) || tooOld(err) || errkind.Of(err) == errkind.TxnNotFound
}

// round is one round, by a new controller if the last one's process has died.
func (g *collector) round(ctx context.Context) error {
	if err := g.c.connect(); err != nil {
		return err
	}
	p := g.c.process()
	controller, err := gc.New(gc.Options{
		Oracle: oracleConn{p}, Settings: &g.settings, Life: gc.MinLife, Resolver: g.resolver(),
		Members: func(context.Context) ([]gc.Member, error) {
			var all []gc.Member
			for _, n := range g.w.nodes {
				all = append(all, gc.Member{ID: n.name, Shard: &shardConn{p, n}})
			}
			return all, nil
		},
	})
	if err != nil {
		return err
	}
	return controller.Round(ctx)
}

func (g *collector) resolver() gc.Resolver {
	if g.w.plan.bug == hastyCollection {
		return hastyResolver{}
	}
	return g.c.db
}

// hastyResolver leaves old transactions as they are: the bug hastyCollection.
type hastyResolver struct{}

func (hastyResolver) ResolveBefore(context.Context, tso.Timestamp, map[string]bool) (int, []kv.LeftLocks, error) {
	return 0, nil, nil
}
