// Package waitgraph finds deadlocks. Who waits for a lock says for whom; who would close a circle of
// waiting transactions is told so instead, and gives up.
//
//	T3 waits for T1, T1 waits for T2:   T3 ──▶ T1 ──▶ T2
//	T2 asks to wait for T3:             T2 ──▶ T3 ──▶ T1 ──▶ T2   refused: T2 is the victim
//
//	I1 The edges in the graph never form a circle: the one that would is not added, and its waiter
//	   is the only one to be told.
//	I2 An edge goes with the wait it stands for. Edges of a waiter that cannot be asked any more go
//	   with their lease.
//
// The graph holds no locks and knows no keys; who waits for whom is kv/mvcc's business. It travels
// between processes in kv/rpc.
package waitgraph

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/percodb/percodb/tso"
)

// Graph is where waits are told. Safe for concurrent use.
type Graph interface {
	// Wait says that waiter is about to wait for holder, because of key. If that closes a circle it
	// returns *DeadlockError; else done is to be called when the wait is over. Transactions are named
	// by their start_ts. Any other error means that nothing is known.
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

// edge is one wait. A transaction may wait in several places at once, and several times for the same
// other one.
type edge struct {
	holder tso.Timestamp
	ends   time.Time // zero: it stays until it is done
}

// Local is a Graph in this process.
type Local struct {
	mu    sync.Mutex
	edges map[tso.Timestamp][]*edge
	now   func() time.Time
}

// NewLocal returns an empty graph.
func NewLocal() *Local { return &Local{edges: make(map[tso.Timestamp][]*edge), now: time.Now} }

// Wait implements Graph.
func (g *Local) Wait(_ context.Context, waiter, holder tso.Timestamp, key []byte) (done func(), err error) {
	return g.add(waiter, holder, key, time.Time{})
}

// Lease is Wait for a waiter in another process: the edge goes when lease has passed, unless it was
// ended before. To go on waiting, lease anew first and end the old edge then.
func (g *Local) Lease(waiter, holder tso.Timestamp, key []byte, lease time.Duration) (done func(), err error) {
	return g.add(waiter, holder, key, g.now().Add(lease))
}

func (g *Local) add(waiter, holder tso.Timestamp, key []byte, ends time.Time) (done func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if cycle := g.pathLocked(holder, waiter); cycle != nil {
		return nil, &DeadlockError{Key: bytes.Clone(key), Waiter: waiter, Holder: holder, Cycle: cycle}
	}
	e := &edge{holder: holder, ends: ends}
	g.edges[waiter] = append(g.edges[waiter], e)
	return func() { g.remove(waiter, e) }, nil
}

func (g *Local) remove(waiter tso.Timestamp, e *edge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edges := g.edges[waiter]
	for i := range edges {
		if edges[i] == e {
			edges[i] = edges[len(edges)-1]
			edges = edges[:len(edges)-1]
			break
		}
	}
	g.storeLocked(waiter, edges)
}

func (g *Local) storeLocked(waiter tso.Timestamp, edges []*edge) {
	if len(edges) == 0 {
		delete(g.edges, waiter)
	} else {
		g.edges[waiter] = edges
	}
}

// pathLocked returns the transactions of a path from one that waits to another, with the target
// first as a circle is told, or nil. It visits each transaction once.
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
func (g *Local) liveLocked(waiter tso.Timestamp) []*edge {
	edges := g.edges[waiter]
	live := edges[:0]
	for _, e := range edges {
		if e.ends.IsZero() || g.now().Before(e.ends) {
			live = append(live, e)
		}
	}
	if len(live) < len(edges) {
		clear(edges[len(live):])
		g.storeLocked(waiter, live)
	}
	return live
}

// Len returns the number of waits.
func (g *Local) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, edges := range g.edges {
		n += len(edges)
	}
	return n
}
