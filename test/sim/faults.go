package sim

import (
	"context"
	"time"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
)

// faultKind is a fault or a change of the world.
type faultKind int

const (
	crashNode   faultKind = iota // power off; restarts later
	restartNode                  // an orderly restart
	killClient
	cutLink      // one process and one node cannot reach each other
	cutNode      // no process reaches a node
	cutOracle    // a process does not reach the oracle
	crashOracle  // with the rest of its window
	splitRange   // at a key
	stepClock    // the oracle's clock steps
	cancelClient // a caller's context is cancelled
	numFaults
	// leaveNode makes a node unavailable to the collector and the directory for longer than history is kept. Plans
	// enable it with absences.
	leaveNode
)

func (k faultKind) String() string {
	return [...]string{"crash", "restart", "kill", "cut link", "cut node", "cut oracle", "crash oracle", "split", "clock", "cancel", "", "away"}[k]
}

// possible reports whether a plan's world can have a fault.
func (k faultKind) possible(p *plan) bool {
	if p.table {
		switch k {
		case killClient, cutLink, cutNode, cutOracle, crashOracle, cancelClient:
			return true
		case stepClock: // The deadline of requests and the age of history are compared.
			return !p.collects
		}
		return false
	}
	if !p.embedded {
		return true
	}
	switch k {
	case crashNode, restartNode, splitRange, stepClock, cancelClient:
		return true
	}
	return false
}

// fault injects one of the plan's faults.
func (w *world) fault() {
	kind := w.plan.kinds[w.rng.IntN(len(w.plan.kinds))]
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	p := w.clients[w.rng.IntN(len(w.clients))].process()
	switch kind {
	case crashNode, restartNode:
		w.bounce(n, kind == crashNode)
	case killClient:
		if p != nil {
			w.eventf("kill %s", p.name)
			w.kill(p)
		}
	case cutLink, cutOracle:
		if kind == cutOracle {
			n = nil
		}
		w.cut(p, n)
	case cutNode:
		d := w.upTo(2 * w.plan.lockTTL)
		w.eventf("cut %s from all for %v", n.name, d)
		for _, p := range w.processes {
			p.cut[n] = true
		}
		w.after(d, "heal "+n.name, func() {
			for _, p := range w.processes {
				delete(p.cut, n)
			}
		})
	case crashOracle:
		w.eventf("crash the oracle")
		w.oracle.stop(true)
		w.after(w.upTo(w.plan.lockTTL), "restart the oracle", w.restartOracle)
	case splitRange:
		w.split(n)
	case stepClock:
		d := w.upTo(2*w.plan.lockTTL) - w.plan.lockTTL/2
		w.eventf("the oracle's clock steps by %v", d)
		w.mu.Lock()
		w.clockStep += d
		w.mu.Unlock()
	case leaveNode:
		w.leave(n)
	case cancelClient:
		w.eventf("cancel %s", w.clients[w.rng.IntN(len(w.clients))].cancelCurrent())
	}
}

// leave makes a node unavailable to the collector and the directory: without power, or while clients still reach it.
func (w *world) leave(n *node) {
	w.mu.Lock()
	out := n.away || n.store == nil
	w.mu.Unlock()
	if out {
		return
	}
	d := gc.MinLife + w.upTo(3*gc.MinLife)
	if w.rng.IntN(2) == 0 {
		w.eventf("crash %s for %v", n.name, d)
		n.stop(true, 0)
		w.after(d, "start "+n.name, func() { w.restart(n) })
		return
	}
	w.eventf("%s is away for %v", n.name, d)
	w.setAway(n, true)
	w.after(d, n.name+" is back", func() { w.setAway(n, false) })
}

func (w *world) setAway(n *node, away bool) {
	w.mu.Lock()
	n.away = away
	w.mu.Unlock()
}

func (w *world) restartOracle() {
	w.mu.Lock()
	up := w.oracle.local != nil
	w.mu.Unlock()
	if up {
		return
	}
	if err := w.oracle.start(); err != nil {
		w.problem("restart the oracle: %v", err)
	}
}

// bounce stops a node and restarts it later. In an embedded world that is the whole process.
func (w *world) bounce(n *node, crash bool) {
	w.mu.Lock()
	down := n.store == nil
	w.mu.Unlock()
	if down {
		return
	}
	kept := []int{0, 0, 50, 100}[w.rng.IntN(4)]
	if crash {
		w.eventf("crash %s, of what was not synced %d%% stays", n.name, kept)
	} else {
		w.eventf("stop %s", n.name)
	}
	if w.plan.embedded {
		for _, p := range w.processes {
			w.kill(p)
		}
		w.oracle.stop(crash)
	}
	n.stop(crash, kept)
	w.after(w.upTo(w.plan.lockTTL), "start "+n.name, func() { w.restart(n) })
}

func (w *world) restart(n *node) {
	w.restartOracle()
	w.mu.Lock()
	up := n.store != nil || n.rows != nil
	n.away = n.away && up // it starts when it reaches the directory
	w.mu.Unlock()
	if up {
		return
	}
	if err := n.start(); err != nil {
		w.problem("%v", err)
	}
}

// cut separates a process from a node, or from the oracle (nil), for a while.
func (w *world) cut(p *process, n *node) {
	if p == nil {
		return
	}
	name := "the oracle"
	if n != nil {
		name = n.name
	}
	d := w.upTo(2 * w.plan.lockTTL)
	w.eventf("cut %s from %s for %v", p.name, name, d)
	p.cut[n] = true
	w.after(d, "heal "+p.name+" and "+name, func() { delete(p.cut, n) })
}

// split splits a range at some key.
func (w *world) split(n *node) {
	key := []byte{byte('a' + w.rng.IntN(keySpace)), byte('a' + w.rng.IntN(26))}
	w.mu.Lock()
	store := n.store
	if store == nil || n.held != nil || n.latching > 0 || n.away {
		w.mu.Unlock()
		return
	}
	n.serving = false // no sync is delayed while ranges change
	life := n.life
	w.mu.Unlock()
	w.eventf("split %s at %q", n.name, key)
	if err := store.ForceSplit(context.Background(), key); err != nil && errkind.Of(err) != errkind.StaleRoute {
		w.problem("split %s: %v", n.name, err)
	}
	w.mu.Lock()
	n.serving = n.life == life
	w.mu.Unlock()
}

// calm ends all faults: from here on every message arrives.
func (w *world) calm() {
	w.eventf("calm")
	w.mu.Lock()
	w.faulty = false
	for _, n := range w.nodes {
		n.releaseSyncLocked()
		n.away = false
	}
	w.mu.Unlock()
	for _, p := range w.processes {
		clear(p.cut)
	}
	w.timed = nil
	for _, n := range w.nodes {
		w.restart(n)
	}
	w.restartOracle()
}

// wait is how long the end of a run waits, so that all locks of dead processes have expired and all copies of requests
// have arrived. A late restart has prolonged the locks that it found.
func (w *world) wait() time.Duration {
	return max(8*w.plan.lockTTL, mvcc.RecoveryGraceMillis*time.Millisecond) + time.Second
}
