package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
)

// world is one run: its processes, nodes and network, and the scheduler of their events. Fields without a comment
// belong to the scheduler.
type world struct {
	seed  uint64
	plan  plan
	rng   *rand.Rand
	begun time.Time
	trace io.Writer // nil: none

	oracle    *oracleNode
	nodes     []*node
	directory *kv.LocalDirectory // nil in an embedded world, and over a table
	waits     *waitgraph.Local   // of the processes over a table
	dirEngine *kv.Engine
	settings  collectorSettings
	workload  workload
	clients   []*client

	pending []*message
	timed   []timedEvent
	events  int
	digest  uint64 // of all events, to compare runs

	clock                           atomic.Int64 // counts the clients' steps: the histories' time
	txns, committed, expired, large atomic.Int64
	rests                           atomic.Uint64

	mu        sync.Mutex
	inbox     []*message
	faulty    bool // the plan's faults occur
	clockStep time.Duration
	processes []*process
	problems  []string
	finished  bool
	calmDown  bool // requests calm

	woken      chan struct{}
	stopping   atomic.Bool // clients begin no more transactions
	running    sync.WaitGroup
	background sync.WaitGroup
}

// timedEvent is an event at a time: a node restarts, a cut ends.
type timedEvent struct {
	at   time.Time
	name string
	do   func()
}

// maxEvents and maxTime end a run that does not terminate.
const (
	maxEvents = 2_000_000
	maxTime   = 30 * time.Minute
)

func newWorld(seed uint64, p plan, trace io.Writer) *world {
	w := &world{seed: seed, plan: p, rng: rand.New(rand.NewPCG(seed, 1)), begun: time.Now(), trace: trace, woken: make(chan struct{}, 1)}
	w.oracle = &oracleNode{w: w}
	if p.table {
		w.waits = waitgraph.NewLocal()
	}
	for i := range p.nodes {
		w.nodes = append(w.nodes, &node{w: w, name: fmt.Sprintf("s%d", i), disk: storage.NewCrashableMemFS()})
		if p.table {
			w.nodes[i].name, w.nodes[i].rows = kv.BigtableShardID, widerow.NewMemory()
			w.nodes[i].rows.Hides = p.bug.hides()
		}
	}
	w.workload = workloads[p.workload](w)
	return w
}

// hash derives a number from the seed for decisions of goroutines other than the scheduler.
func (w *world) hash(what, who string, n uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s %d", w.seed, what, who, n)
	x := h.Sum64()
	x ^= x >> 31 // FNV's low bits are poor
	return x * 0x9e3779b97f4a7c15 >> 11
}

func (w *world) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// problem records a violation that is found outside of the checkers.
func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < 20 {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}

// eventf numbers an event, for the trace and the digest.
func (w *world) eventf(format string, args ...any) {
	w.events++
	line := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", w.digest, line, time.Since(w.begun))
	w.digest = h.Sum64()
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%6d %12v %s\n", w.events, time.Since(w.begun), line)
	}
}

// notef adds a client's step to the trace.
func (w *world) notef(format string, args ...any) {
	if w.trace == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.trace, "       %12v %s\n", time.Since(w.begun), fmt.Sprintf(format, args...))
}

// chance returns true with a probability of n in a thousand.
func (w *world) chance(perMille uint64) bool { return w.rng.Uint64N(1000) < perMille }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d) + 1)) }

// open starts the oracle, the directory and the nodes.
func (w *world) open(ctx context.Context) error {
	if err := w.oracle.start(); err != nil {
		return err
	}
	if !w.plan.embedded && !w.plan.table {
		var err error
		if w.dirEngine, err = kv.OpenEngine(kv.EngineOptions{Dir: "directory", FS: storage.NewMemFS(), CacheBytes: 1 << 20}); err != nil {
			return err
		}
		if w.directory, err = kv.OpenDirectory(kv.DirectoryOptions{Engine: w.dirEngine, Dial: w.dialOwner}); err != nil {
			return err
		}
	}
	for _, n := range w.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	if w.directory == nil {
		return nil
	}
	for _, span := range w.plan.spans {
		if err := w.directory.CreateRange(ctx, span); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) dialOwner(_ context.Context, info kv.ShardInfo) (kv.RangeOwner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.name == info.ID && n.store != nil {
			return n.store, nil
		}
	}
	return nil, &kv.UnavailableError{Shard: info.ID, Err: errDown}
}

// close stops everything, in order.
func (w *world) close() {
	for _, n := range w.nodes {
		n.stop(false, 0)
	}
	if w.directory != nil {
		if err := w.directory.Close(); err != nil {
			w.problem("close the directory: %v", err)
		}
		if err := w.dirEngine.Close(); err != nil {
			w.problem("close the directory's engine: %v", err)
		}
	}
	w.oracle.stop(false)
	w.running.Wait()
	w.background.Wait()
	if w.plan.table {
		time.Sleep(time.Minute) // Requests behind the clients' backs come to their deadlines.
	}
}

// schedule is the scheduler. It returns when the clients and the judge have ended.
func (w *world) schedule() {
	for {
		synctest.Wait()
		w.collect()
		w.mu.Lock()
		finished, calm := w.finished, w.calmDown
		w.calmDown = false
		w.mu.Unlock()
		if calm {
			w.calm()
		}
		if finished {
			return
		}
		if (w.events > maxEvents || time.Since(w.begun) > maxTime) && !w.stopping.Swap(true) {
			w.problem("no end after %d events in %v", w.events, time.Since(w.begun))
			for _, p := range w.processes {
				w.kill(p)
			}
		}
		w.step()
	}
}

// collect takes what was sent since the last step.
func (w *world) collect() {
	w.mu.Lock()
	w.pending = append(w.pending, w.inbox...)
	w.inbox = w.inbox[:0]
	w.pending = slices.DeleteFunc(w.pending, func(m *message) bool { return m.answering && (m.settled || m.answer == nil) })
	w.mu.Unlock()
	slices.SortStableFunc(w.pending, (*message).order)
}

// step makes the next event.
func (w *world) step() {
	now := time.Now()
	for i := 0; i < len(w.timed); i++ {
		if e := w.timed[i]; !e.at.After(now) {
			w.timed = slices.Delete(w.timed, i, i+1)
			w.eventf("%s", e.name)
			e.do()
			return
		}
	}
	if w.plan.bug == lyingDisk && w.faulty && w.events%100 == 0 {
		w.forget()
	}
	if w.faulty && w.chance(w.plan.faults) {
		w.fault()
		return
	}
	ready := w.ready(now)
	held := w.heldSyncs()
	if len(ready)+len(held) == 0 {
		w.idle(now)
		return
	}
	if w.chance(500) {
		time.Sleep(w.upTo(w.plan.latency))
	}
	if i := w.rng.IntN(len(ready) + len(held)); i < len(ready) {
		w.advance(ready[i])
	} else {
		n := held[i-len(ready)]
		w.eventf("%s: sync is done", n.name)
		w.mu.Lock()
		n.releaseSyncLocked()
		w.mu.Unlock()
	}
}

// ready returns the positions of messages that can be advanced.
func (w *world) ready(now time.Time) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []int
	for i, m := range w.pending {
		if m.notBefore.After(now) || !m.answering && m.to != nil && !m.to.admits(m.kind) {
			continue
		}
		out = append(out, i)
	}
	return out
}

func (w *world) heldSyncs() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*node
	for _, n := range w.nodes {
		if n.held != nil {
			out = append(out, n)
		}
	}
	return out
}

// forget saves the present contents of the disks, to which they revert in a crash: the bug lyingDisk.
func (w *world) forget() {
	for _, n := range w.nodes {
		if n.store != nil {
			n.stale = storage.CrashClone(n.disk, 0, w.rng)
		}
	}
}

// idle lets time pass until a message is sent, or an event is due.
func (w *world) idle(now time.Time) {
	next := now.Add(time.Second)
	for _, m := range w.pending {
		if m.notBefore.After(now) && m.notBefore.Before(next) {
			next = m.notBefore
		}
	}
	for _, e := range w.timed {
		if e.at.Before(next) {
			next = e.at
		}
	}
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
	}
}

// advance moves message i one step: a request to its node, or an answer to its sender.
func (w *world) advance(i int) {
	m := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	if m.answering {
		if m.from.dead || w.faulty && (w.chance(w.plan.dropAnswers) || m.isCut()) {
			w.eventf("lost: %v", m)
			w.settle(m, answered{err: m.unavailable()})
			return
		}
		w.eventf("%v", m)
		w.settle(m, m.result)
		return
	}
	if w.faulty {
		if m.isCut() || w.chance(w.plan.dropRequests) {
			w.eventf("lost: %v", m)
			if w.chance(300) {
				w.later(m) // lost for its sender, but it arrives
			}
			w.settle(m, answered{err: m.unavailable()})
			return
		}
		if m.notBefore.IsZero() && w.chance(w.plan.holds) {
			m.notBefore = time.Now().Add(w.lateness())
			w.eventf("held back until %v: %v", m.notBefore.Sub(w.begun), m)
			w.pending = append(w.pending, m)
			return
		}
		if m.answer != nil && w.chance(w.plan.duplicates) {
			w.later(m)
		}
	}
	w.deliver(m)
}

// lateness is the delay of a delayed or repeated request: mostly short, and occasionally longer than its transaction's
// TTL.
func (w *world) lateness() time.Duration {
	if w.chance(250) {
		return w.upTo(3 * w.plan.lockTTL)
	}
	return w.upTo(20 * w.plan.latency)
}

// later makes a copy of a request that arrives later.
func (w *world) later(m *message) {
	again := *m
	again.answer, again.settled, again.nth = nil, false, m.nth+1_000_000
	again.notBefore = time.Now().Add(w.lateness())
	w.eventf("repeated at %v: %v", again.notBefore.Sub(w.begun), m)
	w.pending = append(w.pending, &again)
}

// settle passes the answer to its sender, unless it has given up.
func (w *world) settle(m *message, a answered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.answer != nil && !m.settled {
		m.settled = true
		m.answer <- a
	}
}

// deliver has a request executed.
func (w *world) deliver(m *message) {
	w.mu.Lock()
	if m.to == nil {
		oracle := w.oracle.local
		w.mu.Unlock()
		if oracle == nil {
			w.eventf("nobody there: %v", m)
			w.settle(m, answered{err: m.unavailable()})
			return
		}
		w.eventf("%v", m)
		w.running.Go(func() {
			ts, err := oracle.Now(context.Background())
			if err != nil {
				err = m.unavailable()
			}
			w.executed(m, answered{ts, err})
		})
		return
	}
	n := m.to
	store, life, ctx := n.store, n.life, n.ctx
	if store == nil && n.rows == nil || !m.deadline.IsZero() && time.Now().After(m.deadline) {
		w.mu.Unlock()
		w.eventf("not executed: %v", m)
		w.settle(m, answered{err: m.unavailable()})
		return
	}
	latching := latches(m.kind)
	if latching {
		n.latching++
	}
	collects := m.kind == "collect"
	n.collecting = n.collecting || collects
	w.mu.Unlock()
	w.eventf("%v", m)
	w.running.Go(func() {
		value, err := m.execute(ctx, store)
		w.mu.Lock()
		if n.life != life {
			value, err = nil, m.unavailable() // its process died during the request
		} else {
			if latching {
				n.latching--
			}
			n.collecting = n.collecting && !collects
			if ctx.Err() != nil {
				value, err = nil, m.unavailable()
			}
		}
		w.mu.Unlock()
		w.executed(m, answered{value, err})
	})
}

// executed puts the answer in flight.
func (w *world) executed(m *message, a answered) {
	w.mu.Lock()
	m.answering, m.result = true, a
	w.inbox = append(w.inbox, m)
	w.mu.Unlock()
	w.wake()
}

// after schedules an event.
func (w *world) after(d time.Duration, name string, do func()) {
	w.timed = append(w.timed, timedEvent{at: time.Now().Add(d), name: name, do: do})
}

// kill ends a process: it receives no more answers and sends no more requests. Those in flight arrive.
func (w *world) kill(p *process) {
	w.mu.Lock()
	p.dead = true
	w.mu.Unlock()
	for _, m := range w.pending {
		if m.from == p {
			w.settle(m, answered{err: m.unavailable()})
		}
	}
}
