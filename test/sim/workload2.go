package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
)

// existing returns the key for which an insert was refused, "" if err is another error.
func existing(err error) string {
	if exists, ok := errkind.As[*mvcc.KeyExistsError](err); ok {
		return string(exists.Key)
	}
	return ""
}

// index keeps rows and an index over them, on different nodes if there are several.
type index struct {
	w     *world
	mu    sync.Mutex
	views []history.IndexView
}

const (
	numRows   = 8
	numValues = 3
)

func row(i int) string { return fmt.Sprintf("b-row-%d", i) }

func entry(value, pk string) string { return fmt.Sprintf("y-index-%s-%s", value, pk) }

func (t *index) setup(x *percolator.Txn) error {
	for i := 0; i < numRows; i += 2 {
		if err := errors.Join(x.Put([]byte(row(i)), []byte("v0")), x.Put([]byte(entry("v0", row(i))), []byte("x"))); err != nil {
			return err
		}
	}
	return nil
}

func (t *index) step(c *client) {
	if c.rng.IntN(4) == 0 {
		t.look(c)
		return
	}
	pk, value, remove := row(c.rng.IntN(numRows)), fmt.Sprintf("v%d", c.rng.IntN(numValues)), c.rng.IntN(4) == 0
	c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() error {
			if err := x.lock(ctx, pk); err != nil {
				return err
			}
			old, err := x.Get(ctx, []byte(pk))
			if err != nil {
				return err
			}
			if old != nil {
				if err := x.Delete([]byte(entry(string(old), pk))); err != nil {
					return err
				}
			}
			if remove {
				return x.Delete([]byte(pk))
			}
			if err := x.Put([]byte(pk), []byte(value)); err != nil {
				return err
			}
			if err := x.lockNew(ctx, entry(value, pk)); err != nil {
				return err
			}
			return x.Insert([]byte(entry(value, pk)), []byte("x"))
		})
	})
}

func (t *index) look(c *client) {
	rows := map[string]string{}
	reverse := c.rng.IntN(2) == 0
	a := c.transact(c.snapshotRead(), func(ctx context.Context, x *txn) error {
		spans := []kv.Span{{Start: []byte("b"), End: []byte("c")}, {Start: []byte("y"), End: []byte("z")}}
		it := x.ScanSpans(ctx, spans, percolator.ScanOptions{Reverse: reverse})
		defer it.Close()
		for it.Next(ctx) {
			rows[string(it.Key())] = string(it.Value())
		}
		return it.Err()
	})
	if a.err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.views = append(t.views, indexView(c.id, a.Note, rows))
	}
}

func indexView(session int, note string, rows map[string]string) history.IndexView {
	v := history.IndexView{Session: session, Note: note, Rows: map[string]string{}, Entries: map[string][]string{}}
	for key, value := range rows {
		if rest, ok := strings.CutPrefix(key, "y-index-"); ok {
			of, pk, _ := strings.Cut(rest, "-")
			v.Entries[of] = append(v.Entries[of], pk)
		} else {
			v.Rows[key] = value
		}
	}
	return v
}

func (t *index) finish(rows map[string]string, _, _ int64) {
	t.views = append(t.views, indexView(-1, "the end", rows))
}

func (t *index) check() []history.Anomaly { return history.CheckIndex(t.views) }

// ring keeps keys that form a ring by naming each other, and swaps neighbours.
type ring struct {
	w     *world
	mu    sync.Mutex
	found []history.Anomaly
}

const ringLength = 9

func link(i int) string { return spread(i, ringLength, "link") }

func (r *ring) setup(x *percolator.Txn) error {
	for i := range ringLength {
		if err := x.Put([]byte(link(i)), []byte(strconv.Itoa((i+1)%ringLength))); err != nil {
			return err
		}
	}
	return nil
}

// step swaps the inner two of four neighbours: 0→1→2→3 becomes 0→2→1→3.
func (r *ring) step(c *client) {
	if c.rng.IntN(4) == 0 {
		r.look(c)
		return
	}
	first := c.rng.IntN(ringLength)
	c.transact(c.options(), func(ctx context.Context, x *txn) error {
		at := [4]int{first}
		for i := 1; i < 4; i++ {
			if err := x.statement(ctx, func() error {
				key := link(at[i-1])
				if err := x.lock(ctx, key); err != nil {
					return err
				}
				n, _, err := x.getInt(ctx, key)
				at[i] = int(n)
				return err
			}); err != nil {
				return err
			}
		}
		return x.statement(ctx, func() error {
			return errors.Join(x.putInt(link(at[0]), int64(at[2])), x.putInt(link(at[2]), int64(at[1])), x.putInt(link(at[1]), int64(at[3])))
		})
	})
}

func (r *ring) look(c *client) {
	next := make([]int, ringLength)
	a := c.transact(c.snapshotRead(), func(ctx context.Context, x *txn) error {
		for i := range next {
			n, _, err := x.getInt(ctx, link(i))
			if err != nil {
				return err
			}
			next[i] = int(n)
		}
		return nil
	})
	if a.err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.found = append(r.found, history.CheckRing(next, fmt.Sprintf("session %d, %s", c.id, a.Note))...)
	}
}

func (r *ring) finish(rows map[string]string, _, _ int64) {
	next := make([]int, ringLength)
	values := numbers(rows, "link")
	for i := range next {
		next[i] = int(values[link(i)])
	}
	r.found = append(r.found, history.CheckRing(next, "the end")...)
}

func (r *ring) check() []history.Anomaly { return r.found }

// skew keeps pairs of which at least one is on. A transaction that turns one off reads the other first; below
// serializable it locks it as well.
type skew struct {
	w         *world
	mu        sync.Mutex
	snapshots []history.Snapshot
}

const numPairs = 2

func doctor(i int) string { return spread(i, 2*numPairs, "doctor") }

func (s *skew) setup(x *percolator.Txn) error {
	for i := range 2 * numPairs {
		if err := x.Put([]byte(doctor(i)), []byte("1")); err != nil {
			return err
		}
	}
	return nil
}

func (s *skew) step(c *client) {
	pair, mine, on := c.rng.IntN(numPairs), c.rng.IntN(2), c.rng.IntN(3) == 0
	a, b := doctor(pair), doctor(pair+numPairs)
	if mine == 1 {
		a, b = b, a
	}
	values := map[string]int64{}
	look := c.rng.IntN(4) == 0
	done := c.transact(c.options(), func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() error {
			if err := s.lock(ctx, x, look, a, b); err != nil {
				return err
			}
			for _, key := range []string{a, b} {
				n, _, err := x.getInt(ctx, key)
				if err != nil {
					return err
				}
				values[key] = n
			}
			switch {
			case look:
				return nil
			case on:
				return x.putInt(a, 1)
			case values[b] == 1:
				return x.putInt(a, 0)
			}
			return errBusiness
		})
	})
	if done.Outcome == history.Committed && (look && c.w.plan.mode.isolation != percolator.ReadCommitted || !look) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.snapshots = append(s.snapshots, history.Snapshot{Session: c.id, Begin: done.Begin, End: done.End, Values: values, Note: done.Note})
	}
}

func (s *skew) lock(ctx context.Context, x *txn, look bool, a, b string) error {
	if look || x.Isolation() == percolator.Serializable {
		return nil
	}
	if x.Pessimistic() {
		return x.lock(ctx, min(a, b), max(a, b))
	}
	return x.LockKeys(ctx, []byte(a), []byte(b))
}

func (s *skew) finish(rows map[string]string, begin, end int64) {
	all := numbers(rows, "doctor")
	for i := range numPairs {
		a, b := doctor(i), doctor(i+numPairs)
		s.snapshots = append(s.snapshots, history.Snapshot{Session: -1, Begin: begin, End: end, Note: "the end",
			Values: map[string]int64{a: all[a], b: all[b]}})
	}
}

func (s *skew) check() []history.Anomaly {
	return history.CheckCondition(s.snapshots, func(values map[string]int64) bool {
		sum := int64(0)
		for _, n := range values {
			sum += n
		}
		return sum > 0
	})
}

// fork writes keys of a group once each, and reads the group.
type fork struct {
	w      *world
	mu     sync.Mutex
	next   int // key to write next
	groups map[int][]history.ForkRead
}

const groupSize = 4

func member(group, i int) string { return spread(i, groupSize, fmt.Sprintf("fork-%03d", group)) }

func (f *fork) setup(*percolator.Txn) error { return nil }

func (f *fork) step(c *client) {
	f.mu.Lock()
	n := f.next
	write := c.rng.IntN(3) == 0
	if write {
		f.next++
	}
	f.mu.Unlock()
	group := n / groupSize
	if write {
		key := member(group, n%groupSize)
		c.transact(c.options(), func(ctx context.Context, x *txn) error {
			return x.statement(ctx, func() error {
				if err := x.lock(ctx, key); err != nil {
					return err
				}
				return x.Put([]byte(key), []byte("1"))
			})
		})
		return
	}
	opts := c.snapshotRead()
	together := c.rng.IntN(2) == 0
	if together {
		opts = c.options()
	}
	read := history.ForkRead{Session: c.id, Seen: make([]bool, groupSize)}
	a := c.transact(opts, func(ctx context.Context, x *txn) error {
		return x.statement(ctx, func() error {
			keys := make([][]byte, groupSize)
			for i := range keys {
				keys[i] = []byte(member(group, i))
			}
			if together {
				values, err := x.BatchGet(ctx, keys)
				for i := range values {
					read.Seen[i] = values[i] != nil
				}
				return err
			}
			for i, at := range newRand(c.rng).Perm(groupSize) {
				_ = i
				value, err := x.Get(ctx, keys[at])
				if err != nil {
					return err
				}
				read.Seen[at] = value != nil
			}
			return nil
		})
	})
	if a.err == nil {
		read.Note = a.Note
		f.mu.Lock()
		defer f.mu.Unlock()
		f.groups[group] = append(f.groups[group], read)
	}
}

func (f *fork) finish(rows map[string]string, _, _ int64) {
	for group := range f.groups {
		read := history.ForkRead{Session: -1, Note: "the end", Seen: make([]bool, groupSize)}
		for i := range read.Seen {
			_, read.Seen[i] = rows[member(group, i)]
		}
		f.groups[group] = append(f.groups[group], read)
	}
}

func (f *fork) check() (found []history.Anomaly) {
	for _, reads := range f.groups {
		found = append(found, history.CheckLongFork(reads)...)
	}
	return found
}
