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

// collector collects garbage while the clients run: gc.Controller in a process that dies as theirs do. No client pins
// history for longer than gc.MinLife, so that longer transactions meet the fence in every step.
type collector struct {
	w *world
	c *client
}

// The sessions of the collectors, which no client uses: that of the continuous one, and that of the last round.
const (
	collectorID     = 1000
	lastCollectorID = 1001
)

func (w *world) newCollector(id int) *collector { return &collector{w: w, c: w.newClient(id)} }

// collectorSettings are on a disk that loses nothing. In worlds with absences it is also the directory's and stores the
// lock bounds of the nodes.
type collectorSettings struct {
	mu      sync.Mutex
	stored  kv.GCSettings
	cleared map[string]tso.Timestamp
	bounds  map[string]tso.Timestamp
	// without counts the rounds that have collected without a node.
	without int
}

// boundAhead is how far ahead of the oracle a node's lock bound is set. It is less than the length of absences.
const boundAhead = 1500 * time.Millisecond

// grant is the directory's answer about locks, with bounds that are reached soon: see B1 and B2 in package kv. It
// acquires the lock that guards bounds before it reads the safe point.
func (s *collectorSettings) grant(ctx context.Context, oracle tso.Oracle, a *kv.Announcement) (bound, safePoint tso.Timestamp, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := oracle.Now(ctx)
	if err != nil {
		return 0, 0, &kv.UnavailableError{Shard: "directory", Err: err}
	}
	if bound = max(s.bounds[a.ID], a.LockBound); bound.Physical() < now.Physical()+boundAhead.Milliseconds()/2 {
		bound = tso.FromPhysical(now.Physical() + boundAhead.Milliseconds())
	}
	if s.bounds == nil {
		s.bounds = map[string]tso.Timestamp{}
	}
	s.bounds[a.ID] = bound
	return bound, s.stored.SafePoint, nil
}

// bound returns the lock bound of a node, 0 if it has none.
func (s *collectorSettings) bound(id string) tso.Timestamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bounds[id]
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

// run collects until ctx ends; the current round completes or fails.
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

// expected reports whether a round may end with err in a world like this one.
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
		Oracle: oracleConn{p}, Settings: &g.w.settings, Life: gc.MinLife, Resolver: g.resolver(),
		Members: func(ctx context.Context) ([]gc.Member, error) {
			if table, ok := g.c.router.(*tableRouter); ok {
				shard, err := table.shard(ctx)
				return []gc.Member{{ID: kv.BigtableShardID, Shard: shard, Spans: []kv.Span{{}}}}, err
			}
			var all []gc.Member
			for _, n := range g.w.nodes {
				m := gc.Member{ID: n.name, Shard: &shardConn{p, n}, LockBound: g.w.settings.bound(n.name)}
				if g.w.plan.bug == unprotected && m.LockBound != 0 {
					m.LockBound = 1
				}
				all = append(all, m)
			}
			return all, nil
		},
	})
	if err != nil {
		return err
	}
	before := controller.Status().Collected
	err = controller.Round(ctx)
	if status := controller.Status(); len(status.Away) > 0 && status.Collected > before {
		g.w.settings.mu.Lock()
		g.w.settings.without++
		g.w.settings.mu.Unlock()
	}
	return err
}

func (g *collector) resolver() gc.Resolver {
	if g.w.plan.bug == hastyCollection {
		return hastyResolver{}
	}
	return g.c.db
}

// hastyResolver does not resolve old transactions: the bug hastyCollection.
type hastyResolver struct{}

func (hastyResolver) ResolveBefore(context.Context, tso.Timestamp, map[string]bool) (int, []kv.LeftLocks, error) {
	return 0, nil, nil
}
