package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
)

// result is the result of a run.
type result struct {
	plan     plan
	problems []string
	events   int
	digest   uint64
	took     time.Duration // of simulated time
	// txns is the number of transactions, committed of the acknowledged ones, expired of those whose locks expired,
	// large of those committed from a file in one phase.
	txns, committed, expired, large int64
	// without is the number of rounds of garbage collection without a node.
	without int
	// flags are those that replay the run, beside its seed.
	flags string
}

func (r *result) failed() bool { return len(r.problems) > 0 }

// simulate runs the plan of a seed, as change alters it (nil: not at all), in a bubble.
func simulate(t *testing.T, seed uint64, change func(*plan), trace io.Writer) *result {
	p := newPlan(seed)
	if change != nil {
		change(&p)
	}
	r := &result{plan: p}
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, p, trace)
		w.run()
		r.problems, r.events, r.digest, r.took = w.problems, w.events, w.digest, time.Since(w.begun)
		r.txns, r.committed, r.expired, r.large = w.txns.Load(), w.committed.Load(), w.expired.Load(), w.large.Load()
		r.without = w.settings.without
	})
	return r
}

func (w *world) run() {
	if err := w.open(context.Background()); err != nil {
		w.problem("open: %v", err)
		w.close()
		return
	}
	for i := range w.plan.clients {
		w.clients = append(w.clients, w.newClient(i))
	}
	var direction sync.WaitGroup
	direction.Go(w.direct)
	w.schedule()
	direction.Wait()
	w.close()
}

// direct runs the workload from its first write to its last read, while the scheduler makes the events.
func (w *world) direct() {
	defer func() {
		w.mu.Lock()
		w.finished = true
		w.mu.Unlock()
		w.wake()
	}()
	judge := w.newClient(-1)
	defer judge.close()
	if err := w.setup(judge); err != nil {
		w.problem("setup: %v", err)
		return
	}
	w.mu.Lock()
	w.faulty = true
	w.mu.Unlock()
	var sessions sync.WaitGroup
	for _, c := range w.clients {
		sessions.Go(c.run)
	}
	collecting, stopCollecting := context.WithCancel(context.Background())
	var collection sync.WaitGroup
	if w.plan.collects {
		collection.Go(func() { w.newCollector(collectorID).run(collecting) })
	}
	sessions.Wait()
	stopCollecting()
	collection.Wait()
	w.mu.Lock()
	w.calmDown = true
	w.mu.Unlock()
	w.wake()
	w.outlive()
	w.judge(judge)
	for _, c := range w.clients {
		c.close()
	}
}

// outlive waits until all locks have expired, by the bubble's clock and by the oracle's, which does not advance for a
// while if it was ahead.
func (w *world) outlive() {
	time.Sleep(w.wait())
	for begun := w.oracleMillis(); w.oracleMillis() < begun+w.wait().Milliseconds(); {
		time.Sleep(w.wait() / 4)
	}
}

func (w *world) oracleMillis() int64 {
	now, err := nodeOracle{w.nodes[0], w.nodes[0].life}.Now(context.Background())
	if err != nil {
		w.problem("timestamp for a look at the time: %v", err)
		return math.MaxInt64
	}
	return now.Physical()
}

func (w *world) setup(judge *client) error {
	if err := judge.connect(); err != nil {
		return err
	}
	ctx := context.Background()
	x, err := judge.db.Begin(ctx)
	if err != nil {
		return err
	}
	if err := w.workload.setup(x); err != nil {
		return err
	}
	_, err = x.Commit(ctx)
	return err
}

// judge reads everything, twice, and once more after garbage collection, and checks it against what the clients have
// observed.
func (w *world) judge(judge *client) {
	if s, ok := w.workload.(settler); ok {
		s.settle(judge)
		w.outlive()
	}
	first, _, _ := w.readTimed(judge)
	w.outlive()
	rows, begin, end := w.readTimed(judge)
	w.outlive() // the locks that it met are resolved in the background
	// A reader that knows a transaction's outcome ignores its further locks and leaves them: each read resolves some.
	for left, before := w.countLocks(inReadersWay), 0; left > 0 && left != before; {
		w.readTimed(judge)
		w.outlive()
		before, left = left, w.countLocks(inReadersWay)
	}
	w.checkLocks("read", inReadersWay)
	w.checkStores("read")
	w.collectAll()
	last, _, _ := w.readTimed(judge)
	if first == nil || rows == nil || last == nil {
		return
	}
	if !maps.Equal(first, rows) || !maps.Equal(rows, last) {
		w.problem("after the end something has changed: from %v to %v, and with garbage collection to %v", first, rows, last)
	}
	w.workload.finish(rows, begin, end)
	for _, a := range w.workload.check() {
		w.problem("%s", a)
	}
	w.checkLocks("collected", func(l *mvcc.Lock) bool { return l.Op != mvcc.OpPessimistic })
	w.checkStores("collected")
	if err := w.lockAll(judge, last); err != nil {
		w.problem("lock everything: %v", err)
	}
}

func inReadersWay(l *mvcc.Lock) bool { return l.Op != mvcc.OpPessimistic && l.Op != mvcc.OpLock }

func (w *world) countLocks(which func(*mvcc.Lock) bool) (n int) {
	for _, node := range w.nodes {
		for _, l := range w.locksOf(context.Background(), node) {
			if which(&l.Lock) {
				n++
			}
		}
	}
	return n
}

// lockAll locks every key that has a row, or that is locked: no dead process may prevent a write.
func (w *world) lockAll(judge *client, rows map[string]string) error {
	keys := map[string]bool{}
	for key := range rows {
		keys[key] = true
	}
	ctx := context.Background()
	for _, n := range w.nodes {
		for _, l := range w.locksOf(ctx, n) {
			keys[string(l.Key)] = true
		}
	}
	if err := judge.connect(); err != nil {
		return err
	}
	x, err := judge.db.BeginTxn(ctx, percolator.TxnOptions{Pessimistic: true, LockTimeout: w.wait()})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if _, err := x.AcquireLocks(ctx, percolator.LockOptions{}, []byte(key)); err != nil && !errors.Is(err, percolator.ErrRestartStatement) {
			return fmt.Errorf("key %q: %w", key, err)
		}
	}
	return x.Rollback(ctx)
}

// readTimed reads everything and returns between which times of the histories. nil rows: it failed.
func (w *world) readTimed(judge *client) (rows map[string]string, begin, end int64) {
	begin = w.clock.Add(1)
	rows, err := w.readAll(judge)
	if err != nil {
		w.problem("read everything: %v", err)
		return nil, 0, 0
	}
	return rows, begin, w.clock.Add(1)
}

// lastRounds bounds the rounds of collectAll over a table.
const lastRounds = 10

// collectAll collects garbage, which nothing prevents any more. Over a table a round takes a message for each row, and may reach the deadline of its
// request. What it has removed by then stays removed, so that a few rounds are enough.
func (w *world) collectAll() {
	g := w.newCollector(lastCollectorID)
	defer g.c.close()
	err := g.round(context.Background())
	for n := 1; w.plan.table && n < lastRounds && errkind.Of(err) == errkind.Unavailable; n++ {
		err = g.round(context.Background())
	}
	if err != nil {
		w.problem("garbage collection in the end: %v", err)
	}
}

func (w *world) readAll(judge *client) (map[string]string, error) {
	if err := judge.connect(); err != nil { // the restart of an embedded world has ended the judge's process
		return nil, err
	}
	ctx := context.Background()
	x, err := judge.db.BeginTxn(ctx, percolator.TxnOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	rows := map[string]string{}
	it := x.Scan(ctx, kv.Span{}, percolator.ScanOptions{})
	defer it.Close()
	for it.Next(ctx) {
		rows[string(it.Key())] = string(it.Value())
	}
	return rows, it.Err()
}

// checkStores has the stores verify their records.
func (w *world) checkStores(when string) {
	for _, n := range w.nodes {
		if n.rows != nil {
			w.checkTable(context.Background(), when)
			continue
		}
		findings, err := n.store.Check(context.Background())
		if err != nil {
			w.problem("check %s: %v", n.name, err)
		}
		for _, f := range findings {
			w.problem("check %s: %v", n.name, f)
		}
	}
}

// checkLocks reports locks that remain although they should have been resolved.
func (w *world) checkLocks(done string, cleared func(*mvcc.Lock) bool) {
	for _, n := range w.nodes {
		for _, l := range w.locksOf(context.Background(), n) {
			if cleared(&l.Lock) {
				w.problem("%s: everything was %s, and key %q is still locked by transaction %d (primary %q)",
					n.name, done, l.Key, l.Lock.StartTS, l.Lock.Primary)
			}
		}
	}
}

func (w *world) locksOf(ctx context.Context, n *node) []mvcc.LockInfo {
	var all []mvcc.LockInfo
	now, err := nodeOracle{n, n.life}.Now(ctx)
	if err != nil {
		w.problem("timestamp for a look at locks: %v", err)
		return nil
	}
	if n.rows != nil {
		if all, err = w.locksOfTable(ctx, now); err != nil {
			w.problem("locks of the table: %v", err)
		}
		return all
	}
	for _, r := range n.store.Info().Ranges {
		locks, err := n.store.ScanLock(ctx, &kv.ScanLockRequest{Range: r.Ref(), Span: r.Span, MaxTS: now, Limit: 1 << 20})
		if err != nil {
			w.problem("locks of %s: %v", n.name, err)
		}
		all = append(all, locks...)
	}
	return all
}

// report prints a failed run, and how to replay it.
func (r *result) report(seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (%v), after %d events:\n", seed, &r.plan, r.events)
	for _, p := range r.problems {
		b.WriteString("  " + strings.ReplaceAll(strings.TrimRight(p, "\n"), "\n", "\n  ") + "\n")
	}
	fmt.Fprintf(&b, "replay: go test ./test/sim -run 'TestSeed$' -seed %d -events%s", seed, r.flags)
	return b.String()
}
