package percolator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

func counted(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// Goal: having ignored a lock at one snapshot does not mean ignoring it at a later one. Method: a read committed
// transaction reads under a running transaction's lock, which then commits.
func TestProto_T_PUSH_4(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		ctx := t.Context()
		db := c.db(Options{}, nil)
		writer := mustBegin(t, db)
		holdLock(t, c, writer, "k")
		txn := mustBeginTxn(t, db, TxnOptions{Isolation: ReadCommitted, Pessimistic: true})
		if got := mustGet(t, txn, "k"); got != "-" || len(txn.snap.bypass) != 1 {
			t.Fatal(got, txn.snap.bypass)
		}
		desc, shard, err := db.router.Locate(ctx, []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		now, _ := c.oracle.Now(ctx)
		err = shard.Commit(ctx, &kv.CommitRequest{Ranges: []kv.RangeRef{desc.Ref()}, Keys: [][]byte{[]byte("k")}, StartTS: writer.StartTS(), CommitTS: now, Primary: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := mustGet(t, txn, "k"); got != "-" {
			t.Fatal(got)
		}
		if err := txn.BeginStatement(ctx); err != nil {
			t.Fatal(err)
		}
		if got := mustGet(t, txn, "k"); got != "held" {
			t.Fatal(got)
		}
	})
}

// Goal: the first key that a transaction locks is its permanent primary, whatever it rolls back, locks or writes later;
// every request names it. Method: inspect all requests.
func TestProto_T_PES_3(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		primaries := map[string]int{}
		db := c.db(Options{}, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
				mu.Lock()
				defer mu.Unlock()
				switch req := req.(type) {
				case *kv.PrewriteRequest:
					primaries[string(req.Primary)]++
				case *kv.AcquireLocksRequest:
					primaries[string(req.Primary)]++
				}
				return nil
			}}
		})
		txn := mustBeginTxn(t, db, pessimistic)
		start := txn.Savepoint()
		if err := lock(txn, "k"); err != nil {
			t.Fatal(err)
		}
		txn.RollbackTo(start)
		if err := lock(txn, "z", "a"); err != nil {
			t.Fatal(err)
		}
		mustPut(t, txn, "a=1", "z=1")
		mustCommit(t, txn)
		if len(primaries) != 1 || primaries["k"] == 0 {
			t.Fatal(primaries)
		}
		db.waitIdle()
		if got := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); got != "a=1 z=1" || len(c.locks()) != 0 {
			t.Fatal(got, c.locks())
		}
	})
}

// Goal: of transactions in a deadlock one receives the error, and the others continue; no transaction waits for itself.
// Method: cycles of two and three over one store, over three that share a wait graph, and over a table.
func TestProto_T_PES_8(t *testing.T) {
	keys := []string{"a", "k", "z"}
	for name, open := range map[string]func(*testing.T) *cluster{
		"stores=1": func(t *testing.T) *cluster {
			return newClusterWith(t, realOracle(t), kv.Options{WaitGraph: waitgraph.NewLocal()})
		},
		"stores=3": func(t *testing.T) *cluster {
			return newClusterWith(t, realOracle(t), kv.Options{WaitGraph: waitgraph.NewLocal()}, "h", "p")
		},
		"table": func(t *testing.T) *cluster { return newTable(t, realOracle(t)) },
	} {
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s,circle=%d", name, n), func(t *testing.T) {
				c := open(t)
				db := c.db(Options{}, nil)
				txns := make([]*Txn, n)
				for i := range txns {
					txns[i] = mustBeginTxn(t, db, pessimistic)
					if err := lock(txns[i], keys[i]); err != nil {
						t.Fatal(err)
					}
				}
				var victims atomic.Int32
				var all sync.WaitGroup
				for i, txn := range txns {
					all.Go(func() {
						err := lock(txn, keys[(i+1)%n])
						var deadlock *mvcc.DeadlockError
						switch {
						case errors.As(err, &deadlock):
							victims.Add(1)
							txn.Rollback(context.Background())
						case err != nil:
							t.Error(err)
						default:
							if _, err := txn.Commit(context.Background()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				want := int32(1)
				if n == 1 {
					want = 0
				}
				if got := victims.Load(); got != want {
					t.Errorf("%d victims", got)
				}
				if locks := c.locks(); len(locks) != 0 {
					t.Error(locks)
				}
			})
		}
	}
}

// Goal: the oracle's time alone determines whether a lock has expired. Method: a client whose clock is an hour off in
// either direction, relative to its own start; locks are kept until the TTL has passed by the oracle's time, and
// no longer.
func TestProto_T_TTL_2(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		eachCluster(t, func(t *testing.T, c *cluster) {
			db := c.db(Options{}, nil)
			txn := mustBeginTxn(t, db, pessimistic)
			txn.locks.begun = time.Now().Add(skew)
			if err := lock(txn, "k"); err != nil {
				t.Fatal(err)
			}
			mustPut(t, txn, "k=1")
			for _, step := range []struct {
				pass  time.Duration
				taken bool
			}{{0, false}, {2 * time.Second, false}, {3 * time.Hour, true}} {
				c.step.advance(step.pass)
				rival := mustBeginTxn(t, db, pessimistic)
				err := lockAs(rival, LockOptions{NoWait: true}, "k")
				if taken := err == nil; taken != step.taken {
					t.Fatalf("after %v: %v", step.pass, err)
				}
			}
		})
	}
}

// Goal: an autocommit writer that encounters the lock of a transaction block does not retry in a loop: it fails at once,
// and queues as a pessimistic transaction. A writer that encounters the lock of a running commit waits for that
// commit. Method: both, with a stopped clock.
func TestOptimisticWritersMeetLocks(t *testing.T) {
	c := newCluster(t, nil)
	db := c.db(Options{}, nil)
	holder := mustBeginTxn(t, db, pessimistic)
	if err := lock(holder, "a"); err != nil {
		t.Fatal(err)
	}
	writer := mustBegin(t, db)
	mustPut(t, writer, "a=1")
	if commits(t, writer) {
		t.Fatal("wrote under a lock")
	}
	if n := counted(t, db.metrics.backoffs[backoffLock]); n != 0 {
		t.Errorf("%v waits", n)
	}

	committing := mustBegin(t, db)
	holdLock(t, c, committing, "k")
	younger := mustBegin(t, db)
	mustPut(t, younger, "k=2")
	done := make(chan bool)
	go func() { done <- commits(t, younger) }()
	for counted(t, db.metrics.backoffs[backoffLock]) == 0 {
		time.Sleep(time.Millisecond)
	}
	desc, shard, _ := db.router.Locate(t.Context(), []byte("k"))
	if err := shard.Rollback(t.Context(), &kv.RollbackRequest{Ranges: []kv.RangeRef{desc.Ref()}, Keys: [][]byte{[]byte("k")}, StartTS: committing.StartTS()}); err != nil {
		t.Fatal(err)
	}
	if !<-done {
		t.Fatal("refused")
	}
}

// Goal: a lock request that is lost, answered late, or sent again changes nothing; locks that it may have
// acquired are released. Method: lose the request or its answer, once and permanently.
func TestLostLockRequests(t *testing.T) {
	for _, tc := range []struct {
		name    string
		carried bool
		times   int32
		granted bool
	}{{"request once", false, 1, true}, {"answer once", true, 1, true}, {"requests", false, 1 << 30, false}, {"answers", true, 1 << 30, false}} {
		t.Run(tc.name, func(t *testing.T) {
			eachCluster(t, func(t *testing.T, c *cluster) {
				var lost atomic.Int32
				lose := func(_ context.Context, req any) error {
					if r, ok := req.(*kv.AcquireLocksRequest); ok && string(r.Keys[0]) == "z" && lost.Add(1) <= tc.times {
						return errLost
					}
					return nil
				}
				db := c.db(impatient, func(s kv.Shard) kv.Shard {
					h := &hookShard{Shard: s, before: lose}
					if tc.carried {
						h.before, h.after = nil, func(ctx context.Context, req, _ any, _ error) error { return lose(ctx, req) }
					}
					return h
				})
				txn := mustBeginTxn(t, db, pessimistic)
				if err := lock(txn, "a"); err != nil {
					t.Fatal(err)
				}
				err := lock(txn, "z")
				if granted := err == nil; granted != tc.granted {
					t.Fatal(err)
				}
				txn.Rollback(t.Context())
				if locks := c.locks(); len(locks) != 0 {
					t.Fatal(locks)
				}
			})
		})
	}
}

// Goal: a locked key whose lock was lost with the store's memory can still be written if no other transaction has
// changed it, and not otherwise. Method: drop the lock in the store.
func TestLostLocksAreAmended(t *testing.T) {
	for _, stolen := range []bool{false, true} {
		eachCluster(t, func(t *testing.T, c *cluster) {
			db := c.db(Options{}, nil)
			txn := mustBeginTxn(t, db, pessimistic)
			if err := lock(txn, "a", "z"); err != nil {
				t.Fatal(err)
			}
			mustPut(t, txn, "a=1", "z=1")
			desc, shard, err := db.router.Locate(t.Context(), []byte("z"))
			if err != nil {
				t.Fatal(err)
			}
			err = shard.ReleaseLocks(t.Context(), &kv.ReleaseLocksRequest{Ranges: []kv.RangeRef{desc.Ref()}, Keys: [][]byte{[]byte("z")}, StartTS: txn.StartTS(), ForUpdateTS: tso.MaxTimestamp})
			if err != nil {
				t.Fatal(err)
			}
			if stolen {
				thief := mustBegin(t, db)
				mustPut(t, thief, "z=stolen")
				mustCommit(t, thief)
			}
			if commits(t, txn) == stolen {
				t.Fatalf("stolen=%v", stolen)
			}
			db.waitIdle()
			want := "a=1 z=1"
			if stolen {
				want = "z=stolen"
			}
			if got := c.content(); got != want || len(c.locks()) != 0 {
				t.Fatal(got, c.locks())
			}
		})
	}
}
