package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
)

// workload is the transactions of a run's clients, and their checks.
type workload interface {
	// setup writes the initial data.
	setup(x *percolator.Txn) error
	// step runs one transaction of a client and records it.
	step(c *client)
	// finish receives the final data, read at some time after all clients had stopped.
	finish(rows map[string]string, begin, end int64)
	// check checks the record.
	check() []history.Anomaly
}

// settler is a workload with work that remains when the clients have stopped: settle does it, before the first final read.
type settler interface{ settle(judge *client) }

var workloads = map[string]func(*world) workload{
	"bank": func(w *world) workload { return &bank{w: w} },
	"list": func(w *world) workload { return &lists{w: w} },
	"counters": func(w *world) workload {
		return &counters{w: w, increments: map[string][]history.Increment{}, reads: map[string][]history.CounterRead{}}
	},
	"inserts": func(w *world) workload { return &inserts{w: w} },
	"index":   func(w *world) workload { return &index{w: w} },
	"ring":    func(w *world) workload { return &ring{w: w} },
	"skew":    func(w *world) workload { return &skew{w: w} },
	"parents": func(w *world) workload { return &parents{w: w} },
	"derived": func(w *world) workload { return &derived{w: w} },
	"fork":    func(w *world) workload { return &fork{w: w, groups: map[int][]history.ForkRead{}} },
}

// workloadNames are those from which a seed chooses first; later ones replace them in some runs, so that existing seeds
// keep their plans.
var workloadNames = slices.DeleteFunc(slices.Sorted(maps.Keys(workloads)), func(name string) bool {
	return name == laterWorkload || name == observerWorkload
})

const (
	laterWorkload    = "parents"
	observerWorkload = "derived"
)

// spread returns the name of key i of n, such that the keys are spread over the key space.
func spread(i, n int, name string) string { return fmt.Sprintf("%c%02d-%s", 'a'+i*keySpace/n, i, name) }

// options returns the options of a transaction of the run's mode.
func (c *client) options() percolator.TxnOptions {
	return percolator.TxnOptions{Isolation: c.w.plan.mode.isolation, Pessimistic: c.w.plan.mode.pessimistic, LockTimeout: 4 * c.w.plan.lockTTL}
}

// snapshotRead returns the options of a transaction that only reads, several statements of one snapshot.
func (c *client) snapshotRead() percolator.TxnOptions {
	if c.w.plan.mode.isolation == percolator.Serializable {
		return percolator.TxnOptions{Isolation: percolator.Serializable, ReadOnly: true}
	}
	return percolator.TxnOptions{ReadOnly: true}
}

// numbers returns the numbers at keys with a suffix.
func numbers(rows map[string]string, suffix string) map[string]int64 {
	out := map[string]int64{}
	for key, value := range rows {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && strings.HasSuffix(key, suffix) {
			out[key] = n
		}
	}
	return out
}

// bank moves money between accounts and sums it.
type bank struct {
	w         *world
	mu        sync.Mutex
	snapshots []history.Snapshot
}

const (
	accounts     = 7
	firstBalance = 100
)

func account(i int) string { return spread(i, accounts, "account") }

func (b *bank) setup(x *percolator.Txn) error {
	for i := range accounts {
		if err := x.Put([]byte(account(i)), []byte(strconv.Itoa(firstBalance))); err != nil {
			return err
		}
	}
	return nil
}

func (b *bank) step(c *client) {
	if c.rng.IntN(4) == 0 {
		b.audit(c)
		return
	}
	from, to := account(c.rng.IntN(accounts)), account(c.rng.IntN(accounts))
	if from == to {
		return
	}
	amount := int64(1 + c.rng.IntN(5))
	c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() error {
			if err := x.lock(ctx, from, to); err != nil {
				return err
			}
			a, _, err := x.getInt(ctx, from)
			if err != nil {
				return err
			}
			b, _, err := x.getInt(ctx, to)
			if err != nil {
				return err
			}
			if err := x.putInt(from, a-amount); err != nil {
				return err
			}
			return x.putInt(to, b+amount)
		})
	})
}

func (b *bank) audit(c *client) {
	reverse := c.rng.IntN(2) == 0
	var values map[string]int64
	a := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() (err error) {
			values, err = scanInts(ctx, x, kv.Span{}, "account", reverse)
			return err
		})
	})
	if a.err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.snapshots = append(b.snapshots, history.Snapshot{Session: c.id, Begin: a.Begin, End: a.End, Values: values, Note: a.Note})
	}
}

func (b *bank) finish(rows map[string]string, begin, end int64) {
	b.snapshots = append(b.snapshots, history.Snapshot{Session: -1, Begin: begin, End: end, Values: numbers(rows, "account"), Note: "the end"})
}

func (b *bank) check() []history.Anomaly {
	return history.CheckBank(b.snapshots, accounts, accounts*firstBalance)
}

// lists appends to lists and reads them.
type lists struct {
	w  *world
	mu sync.Mutex
	h  history.History
	n  int64
}

const numLists = 5

func list(i int) string { return spread(i, numLists, "list") }

func (l *lists) setup(*percolator.Txn) error { return nil }

func (l *lists) next() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return l.n
}

func parseList(value []byte) []int64 {
	var out []int64
	for _, field := range strings.Fields(string(value)) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return []int64{-1} // a value that is never appended
		}
		out = append(out, n)
	}
	return out
}

func (l *lists) step(c *client) {
	statements := 1 + c.rng.IntN(4)
	a := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		for range statements {
			run := func() error { return l.statement(ctx, c, x) }
			if c.rng.IntN(8) == 0 {
				if err := x.undo(ctx, run); err != nil {
					return err
				}
				continue
			}
			if err := run(); err != nil {
				return err
			}
		}
		if c.rng.IntN(20) == 0 {
			return errBusiness
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.h.Txns = append(l.h.Txns, a.Txn)
}

func (l *lists) statement(ctx context.Context, c *client, x *txn) error {
	key, value, kind := list(c.rng.IntN(numLists)), l.next(), c.rng.IntN(11)
	at := int64(0)
	if x.Isolation() == percolator.ReadCommitted {
		at = c.w.clock.Add(1)
	}
	return x.statement(ctx, func() error {
		switch {
		case kind < 4:
			return l.add(ctx, x, key, value)
		case kind == 8:
			return x.openCursor(ctx, c.rng.IntN(2) == 0)
		case kind < 6 || kind > 8:
			if kind > 8 { // FOR SHARE
				if err := x.share(ctx, key); err != nil {
					return err
				}
			}
			list, err := x.Get(ctx, []byte(key))
			if err == nil {
				x.a.Ops = append(x.a.Ops, history.Op{Kind: history.OpRead, Key: key, List: parseList(list), At: at})
			}
			return err
		default:
			return l.scan(ctx, x, kind == 7)
		}
	})
}

func (l *lists) add(ctx context.Context, x *txn, key string, value int64) error {
	if err := x.lock(ctx, key); err != nil {
		return err
	}
	old, err := x.Get(ctx, []byte(key))
	if err != nil {
		return err
	}
	x.a.Ops = append(x.a.Ops, history.Op{Kind: history.OpRead, Key: key, List: parseList(old)},
		history.Op{Kind: history.OpAppend, Key: key, Value: value})
	return x.Put([]byte(key), strconv.AppendInt(append(slices.Clone(old), ' '), value, 10))
}

func (l *lists) scan(ctx context.Context, x *txn, reverse bool) error {
	found := map[string][]int64{}
	it := x.ScanSpans(ctx, x.c.cutUp(), percolator.ScanOptions{Reverse: reverse})
	defer it.Close()
	for it.Next(ctx) {
		found[string(it.Key())] = parseList(it.Value())
	}
	if it.Err() != nil {
		return it.Err()
	}
	for i := range numLists {
		x.a.Ops = append(x.a.Ops, history.Op{Kind: history.OpScan, Key: list(i), List: found[list(i)]})
	}
	return nil
}

func (l *lists) finish(rows map[string]string, begin, end int64) {
	x := history.Txn{Session: -1, Begin: begin, End: end, Outcome: history.Committed, Note: "the end"}
	for i := range numLists {
		x.Ops = append(x.Ops, history.Op{Kind: history.OpRead, Key: list(i), List: parseList([]byte(rows[list(i)]))})
	}
	l.h.Txns = append(l.h.Txns, x)
}

func (l *lists) check() []history.Anomaly {
	level := l.w.plan.mode.level()
	return history.CheckListAppend(&l.h, history.Options{Level: level, Strict: true, Opaque: level == history.SnapshotIsolation})
}

// counters increments few counters with much contention.
type counters struct {
	w          *world
	mu         sync.Mutex
	increments map[string][]history.Increment
	reads      map[string][]history.CounterRead
	versions   []history.VersionRead
}

const numCounters = 2

func counter(i int) string { return spread(i, numCounters, "counter") }

func (h *counters) setup(x *percolator.Txn) error {
	for i := range numCounters {
		if err := x.Put([]byte(counter(i)), []byte("0")); err != nil {
			return err
		}
	}
	return nil
}

func (h *counters) step(c *client) {
	keys := []string{counter(c.rng.IntN(numCounters))}
	if c.rng.IntN(3) == 0 {
		keys = []string{counter(0), counter(1)}
	}
	read := c.rng.IntN(4) == 0
	values := map[string]int64{}
	a := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() error {
			if !read {
				if err := x.lock(ctx, keys...); err != nil {
					return err
				}
			}
			for _, key := range keys {
				n, _, err := x.getInt(ctx, key)
				if err != nil {
					return err
				}
				values[key] = n
				if read {
					continue
				}
				if err := x.putInt(key, n+1); err != nil {
					return err
				}
			}
			return nil
		})
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		if !read {
			h.increments[key] = append(h.increments[key], history.Increment{Session: c.id, Begin: a.Begin, End: a.End, Outcome: a.Outcome, Delta: 1})
		}
		if a.Outcome == history.Committed {
			h.reads[key] = append(h.reads[key], history.CounterRead{Session: c.id, Begin: a.Begin, End: a.End, Value: values[key]})
			h.versions = append(h.versions, history.VersionRead{Session: c.id, Begin: a.Begin, End: a.End, Key: key, Version: values[key]})
		}
	}
}

func (h *counters) finish(rows map[string]string, begin, end int64) {
	for key, n := range numbers(rows, "counter") {
		h.reads[key] = append(h.reads[key], history.CounterRead{Session: -1, Begin: begin, End: end, Value: n})
		h.versions = append(h.versions, history.VersionRead{Session: -1, Begin: begin, End: end, Key: key, Version: n})
	}
}

func (h *counters) check() []history.Anomaly {
	found := history.CheckMonotonic(h.versions)
	for i := range numCounters {
		found = append(found, history.CheckCounter(h.increments[counter(i)], h.reads[counter(i)])...)
	}
	return found
}

// inserts inserts rows that must be new, often the same ones.
type inserts struct {
	w    *world
	mu   sync.Mutex
	all  []history.Insert
	rows map[string]int64
	n    int64
}

const numInserts = 40

func (s *inserts) setup(*percolator.Txn) error { return nil }

func (s *inserts) step(c *client) {
	keys := []string{spread(c.rng.IntN(numInserts), numInserts, "row")}
	if c.rng.IntN(2) == 0 {
		if other := spread(c.rng.IntN(numInserts), numInserts, "row"); other > keys[0] {
			keys = append(keys, other)
		}
	}
	s.mu.Lock()
	s.n += 2
	first := s.n
	s.mu.Unlock()
	a := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() error {
			if err := x.lockNew(ctx, keys...); err != nil {
				return err
			}
			for i, key := range keys {
				if err := x.Insert([]byte(key), strconv.AppendInt(nil, first+int64(i), 10)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		s.all = append(s.all, history.Insert{Session: c.id, Begin: a.Begin, End: a.End, Outcome: a.Outcome,
			Exists: existing(a.err) == key, Key: key, Value: first + int64(i)})
	}
}

func (s *inserts) finish(rows map[string]string, _, _ int64) { s.rows = numbers(rows, "row") }

func (s *inserts) check() []history.Anomaly { return history.CheckInserts(s.all, s.rows) }

// newRand returns a generator for decisions that must not depend on what a transaction reads.
func newRand(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }
