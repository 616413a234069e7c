package percolator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var (
	oneTwo  = &mvcc.NotifySet{Hop: 3, Observers: []uint64{1, 2}}
	twoOnly = &mvcc.NotifySet{Hop: 1, Observers: []uint64{2}}
)

// cellsOf returns an observer's cells as "key@n/hop …", n counting the timestamps given from 1.
func cellsOf(t testing.TB, db *DB, observer uint64, known ...tso.Timestamp) string {
	t.Helper()
	var out []string
	for from := []byte(nil); ; {
		cells, next, err := db.Observers().Scan(t.Context(), observer, kv.Span{}, 3, from)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			at := "?"
			for i, ts := range known {
				if c.Latest == ts {
					at = fmt.Sprint(i + 1)
				}
			}
			out = append(out, fmt.Sprintf("%s@%s/%d", c.Key, at, c.Hop))
		}
		if from = next; next == nil {
			return strings.Join(out, " ")
		}
	}
}

// commitPaths are the ways in which a transaction commits.
var commitPaths = []struct {
	name   string
	bounds []string
	opts   Options
	kind   commitKind
}{
	{"one phase", nil, Options{}, commitOnePhase},
	{"two phases", []string{"m"}, Options{DisableAsyncCommit: true}, commitTwoPhase},
	{"async", []string{"m"}, Options{}, commitAsync},
	{"large, one phase", nil, Options{SpillBytes: 1}, commitOnePhase},
	{"large, two phases", []string{"m"}, Options{SpillBytes: 1}, commitTwoPhase},
}

// Goal: whichever way a transaction commits, the observers of what it has changed are notified, each of its keys, at its
// commit_ts; nobody of keys that it has locked, inserted and deleted again, or written before a rollback to a savepoint.
func TestEveryCommitNotifies(t *testing.T) {
	for _, path := range commitPaths {
		t.Run(path.name, func(t *testing.T) {
			db := newCluster(t, nil, path.bounds...).db(path.opts, nil)
			base := mustBegin(t, db)
			mustPut(t, base, "gone=1", "plain=1")
			mustCommit(t, base)
			txn := mustBegin(t, db)
			txn.AddPrivateSpan(kv.Span{Start: []byte("p/"), End: []byte("p0")})
			write := func(set *mvcc.NotifySet, err error) {
				must(t, err)
				if set != nil {
					txn.Notify(set)
				}
			}
			write(oneTwo, txn.Put([]byte("z"), []byte("1")))
			write(twoOnly, txn.Put([]byte("both"), []byte("1")))
			write(nil, txn.Put([]byte("plain"), []byte("2")))
			write(oneTwo, txn.Put([]byte("both"), []byte("2")))
			write(oneTwo, txn.Delete([]byte("gone")))
			write(twoOnly, txn.Insert([]byte("p/new"), []byte("1")))
			if path.kind != commitAsync { // which cannot check for absence
				write(oneTwo, txn.Insert([]byte("short"), []byte("1")))
				write(nil, txn.Delete([]byte("short")))
			}
			write(nil, txn.LockKeys(t.Context(), []byte("locked")))
			sp := txn.Savepoint()
			write(oneTwo, txn.Put([]byte("undone"), []byte("1")))
			write(oneTwo, txn.Put([]byte("plain"), []byte("3")))
			txn.RollbackTo(sp)
			if got := cellsOf(t, db, 1) + cellsOf(t, db, 2); got != "" {
				t.Fatalf("before the commit: %s", got)
			}
			before := counted(t, db.metrics.commits[path.kind])
			ts := mustCommit(t, txn)
			if counted(t, db.metrics.commits[path.kind]) != before+1 {
				t.Error("the transaction took another way")
			}
			db.waitIdle()
			if got, want := cellsOf(t, db, 1, ts), "both@1/3 gone@1/3 z@1/3"; got != want {
				t.Errorf("observer 1: %s, want %s", got, want)
			}
			if got, want := cellsOf(t, db, 2, ts), "both@1/3 gone@1/3 p/new@1/1 z@1/3"; got != want {
				t.Errorf("observer 2: %s, want %s", got, want)
			}
		})
	}
}

// Goal: T-OBS-10: what is rolled back notifies nobody. Method: transactions that roll back, fail with a conflict, or
// die after their prewrite, on every way to commit.
func TestProto_T_OBS_10(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for _, path := range commitPaths {
			t.Run(path.name, func(t *testing.T) {
				c := open(t, nil, path.bounds...)
				db := c.db(path.opts, nil)
				var silent atomic.Bool
				dying := c.db(path.opts, func(s kv.Shard) kv.Shard {
					return &hookShard{Shard: s,
						before: func(_ context.Context, req any) error {
							if _, ok := req.(*kv.PrewriteRequest); !ok && silent.Load() {
								return errDead
							}
							return nil
						},
						after: func(_ context.Context, req, _ any, _ error) error {
							if silent.Load() {
								return errDead
							}
							return nil
						}}
				})
				fill := func(txn *Txn) {
					for _, key := range []string{"a", "b", "y", "z"} {
						must(t, txn.Put([]byte(key), []byte("1")))
						txn.Notify(oneTwo)
					}
				}
				undone := mustBegin(t, db)
				fill(undone)
				must(t, undone.Rollback(t.Context()))

				late := mustBegin(t, db)
				fill(late)
				first := mustBegin(t, db)
				mustPut(t, first, "y=0")
				mustCommit(t, first)
				if _, err := late.Commit(t.Context()); err == nil {
					t.Fatal("no conflict")
				}
				db.waitIdle()

				if len(path.bounds) > 0 && path.kind != commitAsync { // otherwise the prewrite commits
					dead := mustBegin(t, dying)
					fill(dead)
					silent.Store(true)
					if _, err := dead.Commit(t.Context()); err == nil {
						t.Fatal("the commit of a dead client succeeded")
					}
					c.step.advance(time.Minute)
					reader := mustBegin(t, db)
					for _, key := range []string{"a", "b", "y", "z"} {
						mustGet(t, reader, key)
					}
					reader.Close()
					db.waitIdle()
				}
				if got := cellsOf(t, db, 1); got != "" {
					t.Errorf("notified of %s", got)
				}
			})
		}
	})
}

// Goal: T-OBS-5: a key that another transaction commits, because its owner died after the commit point, notifies its
// observers at the owner's commit_ts. Method: the owner's requests after the commit point are lost; a reader, or Settle,
// resolves the lock.
func TestProto_T_OBS_5(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for _, path := range commitPaths[1:3] {
			for _, by := range []string{"reader", "settle"} {
				t.Run(path.name+", "+by, func(t *testing.T) {
					c := open(t, nil, path.bounds...)
					if path.kind == commitAsync {
						c.needs(t, "Async", func(caps kv.Capabilities) bool { return caps.Async })
					}
					db := c.db(Options{}, nil)
					dying := c.db(path.opts, func(s kv.Shard) kv.Shard {
						return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
							if r, ok := req.(*kv.CommitRequest); ok && (!r.Primary || path.kind == commitAsync) {
								return errDead
							}
							return nil
						}}
					})
					txn := mustBegin(t, dying)
					for _, key := range []string{"a", "z"} {
						must(t, txn.Put([]byte(key), []byte("1")))
						txn.Notify(oneTwo)
					}
					ts := mustCommit(t, txn)
					dying.waitIdle()
					if got := cellsOf(t, db, 1, ts); strings.Contains(got, "z") {
						t.Fatalf("the secondary has been committed: %s", got)
					}
					if by == "reader" {
						reader := mustBegin(t, db)
						if got := mustGet(t, reader, "a") + mustGet(t, reader, "z"); got != "11" {
							t.Fatalf("read %s", got)
						}
						reader.Close()
					} else {
						now, err := db.Timestamp(t.Context())
						must(t, err)
						must(t, db.Observers().Settle(t.Context(), kv.Span{}, now))
						if got, want := cellsOf(t, db, 1, ts), "a@1/3 z@1/3"; got != want {
							t.Fatalf("after Settle: %s, want %s", got, want)
						}
					}
					db.waitIdle()
					if got, want := cellsOf(t, db, 1, ts), "a@1/3 z@1/3"; got != want {
						t.Errorf("%s, want %s", got, want)
					}
				})
			}
		}
	})
}

// Goal: T-OBS-3 in the store: a cell is cleared only up to the timestamp given, so that a change after the observer's
// snapshot stays pending. Put raises a cell and lowers none; Drop removes one observer's.
func TestProto_T_OBS_3(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		ctx := t.Context()
		db := open(t, nil, "m").db(Options{}, nil)
		change := func() tso.Timestamp {
			txn := mustBegin(t, db)
			for _, key := range []string{"a", "b", "z"} {
				must(t, txn.Put([]byte(key), []byte("1")))
				txn.Notify(oneTwo)
			}
			ts := mustCommit(t, txn)
			db.waitIdle()
			return ts
		}
		first := change()
		second := change()
		cells := db.Observers()
		expect := func(observer uint64, want string) {
			t.Helper()
			if got := cellsOf(t, db, observer, first, second); got != want {
				t.Errorf("observer %d: %q, want %q", observer, got, want)
			}
		}
		cleared, err := cells.Clear(ctx, 1, []kv.NotifyUpTo{{Key: []byte("a"), UpTo: first}, {Key: []byte("b"), UpTo: second}, {Key: []byte("z"), UpTo: second}})
		if err != nil || cleared != 2 {
			t.Fatalf("cleared %d, %v", cleared, err)
		}
		expect(1, "a@2/3")
		must(t, cells.Put(ctx, 1, [][]byte{[]byte("a"), []byte("y")}, first, 0))
		expect(1, "a@2/3 y@1/0")
		expect(2, "a@2/3 b@2/3 z@2/3")
		must(t, cells.Drop(ctx, 2, kv.Span{Start: []byte("b")}))
		expect(2, "a@2/3")
		expect(1, "a@2/3 y@1/0")
	})
}

// Goal: Watch reports the commits on all stores, asks for a scan at the beginning and when a stream was interrupted, and
// connects again.
func TestWatch(t *testing.T) {
	c := newCluster(t, nil, "m")
	var streams atomic.Int32
	cut := make(chan struct{})
	db := c.db(Options{}, func(s kv.Shard) kv.Shard { return &watchedShard{Shard: s, streams: &streams, cut: cut} })
	var mu sync.Mutex
	seen := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- db.Observers().Watch(ctx, func(hints []kv.NotifyHint) {
			mu.Lock()
			defer mu.Unlock()
			for _, h := range hints {
				seen[fmt.Sprintf("%d%s", h.Observer, h.Key)]++
			}
		})
	}()
	count := func(what string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[what]
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for range 2000 {
			if ok() {
				return
			}
			time.Sleep(5 * time.Millisecond) // between two looks
		}
		t.Fatal(what)
	}
	eventually("no streams", func() bool { return streams.Load() == 2 && count("0") >= 2 })
	write := func() {
		txn := mustBegin(t, db)
		for _, key := range []string{"a", "z"} {
			must(t, txn.Put([]byte(key), []byte("1")))
			txn.Notify(twoOnly)
		}
		mustCommit(t, txn)
	}
	write()
	eventually("no hints", func() bool { return count("2a") > 0 && count("2z") > 0 })
	scans := count("0")
	close(cut)
	eventually("no new streams", func() bool { return streams.Load() >= 4 && count("0") >= scans+2 })
	hints := count("2z")
	write()
	eventually("no hints from the new streams", func() bool { return count("2z") > hints })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch returned %v", err)
	}
}

// watchedShard counts streams of hints, and ends the first ones when cut is closed.
type watchedShard struct {
	kv.Shard
	streams *atomic.Int32
	cut     <-chan struct{}
}

func (s *watchedShard) WatchNotify(ctx context.Context, f func([]kv.NotifyHint) error) error {
	if s.streams.Add(1) > 2 {
		return s.Shard.WatchNotify(ctx, f)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.cut:
			cancel(errLost)
		case <-ctx.Done():
		}
	}()
	defer cancel(nil)
	_ = s.Shard.WatchNotify(ctx, f)
	return errLost
}

// Goal: a set that a transaction uses for many writes is sent once, equal sets are one, and a transaction that uses too
// many fails instead of losing some.
func TestNotifySetsAreNumbered(t *testing.T) {
	var s notifySets
	for range 3 {
		a, b := s.number(oneTwo), s.number(&mvcc.NotifySet{Hop: 1, Observers: []uint64{2}})
		if a != 1 || b != 2 || s.number(twoOnly) != 2 || len(s.list) != 2 {
			t.Fatalf("%d, %d, %v", a, b, s.list)
		}
	}
	if n := s.union(1, 2); n != 1 { // observers 1 and 2, hop 3
		t.Errorf("the union has the number %d: %v", n, s.list)
	}
	for i := range uint64(maxNotifySets) {
		s.number(&mvcc.NotifySet{Observers: []uint64{i + 10}})
	}
	if !s.full || len(s.list) != maxNotifySets {
		t.Errorf("%d sets", len(s.list))
	}
	db := newCluster(t, nil).db(Options{}, nil)
	txn := mustBegin(t, db)
	mustPut(t, txn, "a=1")
	txn.Notify(oneTwo)
	txn.buf.sets.full = true
	if _, err := txn.Commit(t.Context()); !errors.Is(err, errTooManyNotifySets) {
		t.Errorf("commit: %v", err)
	}
}
