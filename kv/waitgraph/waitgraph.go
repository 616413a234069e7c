// Package waitgraph detects deadlocks. A transaction adds an edge to the holder of a lock before it waits for it; if the
// edge would close a cycle, the request fails instead.
//
//	T3 waits for T1, T1 waits for T2:   T3 ──▶ T1 ──▶ T2
//	T2 requests to wait for T3:           T2 ──▶ T3 ──▶ T1 ──▶ T2   refused: T2 is the victim
//
//	I1 The edges of the graph never form a cycle: an edge that would close one is not added, and only its waiter
//	   receives an error.
//	I2 An edge is removed when its wait ends. The edges of a waiter that is unreachable expire with their lease.
//
// The graph contains neither locks nor keys. Package kv/mvcc determines the edges; kv/rpc sends them between
// processes.
package waitgraph

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// Graph is where waits are registered. Safe for concurrent use.
type Graph interface {
	// Wait registers that waiter is about to wait for holder, because of key. If that closes a cycle it returns
	// *DeadlockError; otherwise done must be called when the wait is over. Transactions are identified by their
	// start_ts. After any other error the edge may or may not exist.
	Wait(ctx context.Context, waiter, holder tso.Timestamp, key []byte) (done func(), err error)
}

// DeadlockError: waiting for the lock would have closed a circle of waiting transactions. Cycle lists
// them from Waiter on, each waiting for the next, the last for Waiter.
type DeadlockError struct {
	Key            []byte
	Waiter, Holder tso.Timestamp
	Cycle          []tso.Timestamp
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("deadlock: transaction %d would wait for %d on key %x, in a circle of %d", e.Waiter, e.Holder, e.Key, len(e.Cycle))
}

// Kind implements errkind.Error.
func (e *DeadlockError) Kind() errkind.Kind { return errkind.Deadlock }

// Edge is one wait in a Local graph. A transaction may wait in several places at once, and several
// times for the same other one.
type Edge struct {
	waiter, holder tso.Timestamp
	ends           time.Time // zero: it has no lease
}

// Holder returns whom the edge's waiter waits for.
func (e *Edge) Holder() tso.Timestamp { return e.holder }

// Local is a Graph in this process.
type Local struct {
	mu    sync.Mutex
	edges map[tso.Timestamp][]*Edge // by waiter
	// waited counts the edges to a transaction. Most have none, and cannot close a circle.
	waited map[tso.Timestamp]int
	now    func() time.Time
}

// NewLocal returns an empty graph.
func NewLocal() *Local {
	return &Local{edges: make(map[tso.Timestamp][]*Edge), waited: make(map[tso.Timestamp]int), now: time.Now}
}

// Wait implements Graph.
func (g *Local) Wait(_ context.Context, waiter, holder tso.Timestamp, key []byte) (done func(), err error) {
	e, err := g.Add(waiter, holder, key)
	if err != nil {
		return nil, err
	}
	return func() { g.Remove(e) }, nil
}

// Add is Wait without a function: the edge stays until Remove. The error is a *DeadlockError.
func (g *Local) Add(waiter, holder tso.Timestamp, key []byte) (*Edge, error) {
	return g.add(Edge{waiter: waiter, holder: holder}, key)
}

// Lease is Add for a waiter in another process: the edge expires after lease, unless it is removed before. To continue
// waiting, remove it and add it again.
func (g *Local) Lease(waiter, holder tso.Timestamp, key []byte, lease time.Duration) (*Edge, error) {
	return g.add(Edge{waiter: waiter, holder: holder, ends: g.now().Add(lease)}, key)
}

func (g *Local) add(e Edge, key []byte) (*Edge, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waited[e.waiter] > 0 || e.waiter == e.holder {
		if cycle := g.pathLocked(e.holder, e.waiter); cycle != nil {
			return nil, &DeadlockError{Key: bytes.Clone(key), Waiter: e.waiter, Holder: e.holder, Cycle: cycle}
		}
	}
	g.edges[e.waiter] = append(g.edges[e.waiter], &e)
	g.waited[e.holder]++
	return &e, nil
}

// Remove ends a wait; it may be called again.
func (g *Local) Remove(e *Edge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edges := g.edges[e.waiter]
	for i := range edges {
		if edges[i] == e {
			edges[i] = edges[len(edges)-1]
			edges[len(edges)-1] = nil
			g.storeLocked(e.waiter, edges[:len(edges)-1])
			g.unwaitLocked(e.holder)
			return
		}
	}
}

func (g *Local) storeLocked(waiter tso.Timestamp, edges []*Edge) {
	if len(edges) == 0 {
		delete(g.edges, waiter)
	} else {
		g.edges[waiter] = edges
	}
}

func (g *Local) unwaitLocked(holder tso.Timestamp) {
	if g.waited[holder]--; g.waited[holder] == 0 {
		delete(g.waited, holder)
	}
}

// pathLocked returns the transactions of a path from one that waits to another, with the target first, or nil. It visits
// each transaction once.
func (g *Local) pathLocked(from, to tso.Timestamp) []tso.Timestamp {
	type step struct {
		txn  tso.Timestamp
		from int // index of the step before
	}
	steps := []step{{from, -1}}
	seen := map[tso.Timestamp]bool{from: true}
	for i := 0; i < len(steps); i++ {
		if steps[i].txn == to {
			var cycle []tso.Timestamp
			for j := steps[i].from; j >= 0; j = steps[j].from {
				cycle = append(cycle, steps[j].txn)
			}
			cycle = append(cycle, to)
			for l, r := 0, len(cycle)-1; l < r; l, r = l+1, r-1 {
				cycle[l], cycle[r] = cycle[r], cycle[l]
			}
			return cycle
		}
		for _, e := range g.liveLocked(steps[i].txn) {
			if !seen[e.holder] {
				seen[e.holder] = true
				steps = append(steps, step{e.holder, i})
			}
		}
	}
	return nil
}

// liveLocked returns the edges of a waiter whose lease has not run out, and forgets the others.
func (g *Local) liveLocked(waiter tso.Timestamp) []*Edge {
	edges := g.edges[waiter]
	live := edges[:0]
	for _, e := range edges {
		if e.ends.IsZero() || g.now().Before(e.ends) {
			live = append(live, e)
		} else {
			g.unwaitLocked(e.holder)
		}
	}
	if len(live) < len(edges) {
		clear(edges[len(live):])
		g.storeLocked(waiter, live)
	}
	return live
}

// Len returns the number of waits whose lease has not run out.
func (g *Local) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for waiter := range g.edges {
		n += len(g.liveLocked(waiter))
	}
	return n
}
