package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
)

// parents keeps children whose parents exist. A transaction that adds a child locks its parent shared until it commits, or leaves that to the
// commit; one that removes a parent locks it exclusively, and then removes its children.
type parents struct {
	w         *world
	mu        sync.Mutex
	snapshots []history.Snapshot
}

const (
	numParents  = 3
	numChildren = 3
)

func parent(i int) string { return spread(i, numParents, "parent") }

// child returns a key that lies on another node than its parent if there are several.
func child(i, n int) string {
	return fmt.Sprintf("%c%02d-%d-child", 'a'+(i+1)%numParents*keySpace/numParents, i, n)
}

func children(i int) kv.Span {
	first := []byte(child(i, 0))
	return kv.Span{Start: first[:len(first)-len("0-child")], End: []byte(child(i, 9) + "z")}
}

func (s *parents) setup(x *percolator.Txn) error {
	for i := range numParents {
		if err := errors.Join(x.Put([]byte(parent(i)), []byte("1")), x.Put([]byte(child(i, 0)), []byte("1"))); err != nil {
			return err
		}
	}
	return nil
}

func (s *parents) step(c *client) {
	switch c.rng.IntN(6) {
	case 0:
		s.look(c)
	case 1, 2:
		s.remove(c, c.rng.IntN(numParents))
	default:
		s.add(c, c.rng.IntN(numParents))
	}
}

// share locks a key shared.
func (x *txn) share(ctx context.Context, key string) error {
	if !x.Pessimistic() {
		return x.LockKeys(ctx, []byte(key))
	}
	_, err := x.AcquireLocks(ctx, percolator.LockOptions{Shared: true}, []byte(key))
	return err
}

// exists reports whether parent i exists, and will until the transaction commits.
func (x *txn) exists(ctx context.Context, i int, atCommit bool) (bool, error) {
	if atCommit {
		return x.ExistsAtCommit(ctx, []byte(parent(i)), []byte(parent(i)))
	}
	if err := x.share(ctx, parent(i)); err != nil {
		return false, err
	}
	_, found, err := x.getInt(ctx, parent(i))
	return found, err
}

// add adds a child, or removes it if it exists.
func (s *parents) add(c *client, i int) {
	opts := c.options()
	atCommit := opts.Pessimistic && c.rng.IntN(2) == 0 // those who remove parents lock them
	if atCommit {
		opts.Pessimistic = false
	}
	children, undone, pause := []int{c.rng.IntN(numChildren), c.rng.IntN(numChildren)}, c.rng.IntN(3) == 0, s.pause(c)
	c.transact(opts, func(ctx context.Context, x *txn) error {
		if err := x.statement(ctx, func() error {
			found, err := x.exists(ctx, i, atCommit)
			if err == nil && !found {
				err = errBusiness
			}
			return err
		}); err != nil {
			return err
		}
		change := func(key string) error {
			return x.statement(ctx, func() error {
				if err := x.lock(ctx, key); err != nil {
					return err
				}
				_, found, err := x.getInt(ctx, key)
				if err != nil {
					return err
				}
				if found {
					return x.Delete([]byte(key))
				}
				return x.putInt(key, 1)
			})
		}
		time.Sleep(pause)
		if undone {
			if err := x.undo(ctx, func() error { return change(child(i, children[1])) }); err != nil {
				return err
			}
		}
		return change(child(i, children[0]))
	})
}

// pause is mostly 0, and occasionally longer than a lock's TTL without heartbeats.
func (s *parents) pause(c *client) time.Duration {
	if c.rng.IntN(5) > 0 {
		return 0
	}
	return time.Duration(c.rng.Int64N(int64(2 * s.w.plan.lockTTL)))
}

// remove removes a parent with its children, or creates it if it does not exist. At snapshot isolation the children
// that were added between the snapshot and the lock are invisible, which is write skew: there it takes a snapshot for
// every statement.
func (s *parents) remove(c *client, i int) {
	opts := c.options()
	if opts.Pessimistic && opts.Isolation == percolator.SnapshotIsolation {
		opts.Isolation = percolator.ReadCommitted
	}
	pause := s.pause(c)
	c.transact(opts, func(ctx context.Context, x *txn) error {
		if err := x.statement(ctx, func() error { return x.lock(ctx, parent(i)) }); err != nil {
			return err
		}
		return x.statement(ctx, func() error {
			_, found, err := x.getInt(ctx, parent(i))
			if err != nil {
				return err
			}
			if !found {
				return x.putInt(parent(i), 1)
			}
			there, err := scanInts(ctx, x, children(i), "child", false)
			if err != nil {
				return err
			}
			time.Sleep(pause)
			for n := range numChildren {
				key := child(i, n)
				if _, found := there[key]; !found {
					continue
				}
				if err := x.lock(ctx, key); err != nil {
					return err
				}
				if err := x.Delete([]byte(key)); err != nil {
					return err
				}
			}
			return x.Delete([]byte(parent(i)))
		})
	})
}

func (s *parents) look(c *client) {
	var values map[string]int64
	reverse := c.rng.IntN(2) == 0
	a := c.transact(c.snapshotRead(), func(ctx context.Context, x *txn) (err error) {
		values, err = scanInts(ctx, x, kv.Span{}, "", reverse)
		return err
	})
	if a.err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.snapshots = append(s.snapshots, history.Snapshot{Session: c.id, Begin: a.Begin, End: a.End, Values: values, Note: a.Note})
	}
}

func (s *parents) finish(rows map[string]string, begin, end int64) {
	s.snapshots = append(s.snapshots, history.Snapshot{Session: -1, Begin: begin, End: end, Values: numbers(rows, ""), Note: "the end"})
}

func (s *parents) check() []history.Anomaly {
	return history.CheckCondition(s.snapshots, func(values map[string]int64) bool {
		for key := range values {
			if !strings.HasSuffix(key, "child") {
				continue
			}
			of, err := strconv.Atoi(key[1:3])
			if _, found := values[parent(of)]; err != nil || !found {
				return false
			}
		}
		return true
	})
}
