package percolator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var errLost = &kv.UnavailableError{Shard: "test", Err: errors.New("connection lost")}

// impatient are options with short retry budgets.
var impatient = Options{RetryBudget: 60 * time.Millisecond, ProbeTimeout: 60 * time.Millisecond}

// isCommitPoint reports whether the execution of a request decides a transaction.
func isCommitPoint(req any) bool {
	switch req := req.(type) {
	case *kv.PrewriteRequest:
		return req.TryOnePC || req.Async
	case *kv.CommitRequest:
		return req.Primary
	}
	return false
}

// Goal: I4 around the commit point. Method: lose the first requests or the first answers, and perhaps all later ones,
// of the deciding request; compare the result of Commit with the contents.
func TestProto_T_UND_1(t *testing.T) {
	for _, tc := range []struct {
		name      string
		carried   int  // so many requests are executed before the answer is lost
		lost      int  // so many are lost
		deafAfter bool // later requests are all lost, status checks included
		want      string
	}{
		{"request lost once", 0, 1, false, "committed"},
		{"answer lost once", 1, 0, false, "committed"},
		{"answer lost twice", 2, 0, false, "committed"},
		{"requests lost for good, questions answered", 0, 1 << 30, false, "not committed"},
		{"answers lost for good, questions answered", 1 << 30, 0, false, "committed"},
		{"answer lost, then silence", 1, 0, true, "undetermined"},
		{"request lost, then silence", 0, 1, true, "undetermined"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachCluster(t, func(t *testing.T, c *cluster) {
				var carried, lost atomic.Int32
				var deaf atomic.Bool
				db := c.db(impatient, func(s kv.Shard) kv.Shard {
					return &hookShard{Shard: s,
						before: func(_ context.Context, req any) error {
							switch {
							case deaf.Load():
								return errLost
							case isCommitPoint(req) && int(lost.Load()) < tc.lost:
								lost.Add(1)
								deaf.Store(tc.deafAfter)
								return errLost
							}
							return nil
						},
						after: func(_ context.Context, req, _ any, err error) error {
							if isCommitPoint(req) && int(carried.Load()) < tc.carried {
								carried.Add(1)
								deaf.Store(tc.deafAfter)
								return errLost
							}
							return nil
						}}
				})
				txn := mustBegin(t, db)
				mustPut(t, txn, "a=1", "k=1", "z=1")
				_, err := txn.Commit(t.Context())
				got := "committed"
				var undetermined *UndeterminedError
				var unavailable *kv.UnavailableError
				var conflict *mvcc.WriteConflictError
				switch {
				case errors.As(err, &undetermined):
					got = "undetermined"
				case errors.As(err, &conflict) && conflict.Cause == mvcc.CauseRolledBack:
					got = "rolled back"
				case errors.As(err, &unavailable):
					got = "failed"
				case err != nil:
					t.Fatal(err)
				}
				db.waitIdle()
				c.step.advance(time.Minute)
				there := scanAll(t, mustBegin(t, c.db(Options{}, nil)), kv.Span{}, ScanOptions{})
				if there != "" && there != "a=1 k=1 z=1" {
					t.Fatalf("half a transaction: %s", there)
				}
				if got == "committed" && there == "" || (got == "failed" || got == "rolled back") && there != "" {
					t.Fatalf("reported as %s (%v), found %q", got, err, there)
				}
				if got != tc.want && (tc.want != "not committed" || got == "committed") {
					t.Fatalf("%s (%v), want %s", got, err, tc.want)
				}
			})
		})
	}
}

// Goal: a caller that cancels while the outcome is open receives the outcome or *UndeterminedError, and one that
// cancels while waiting for a lock receives its own error and no commit.
func TestCancellationAroundTheCommitPoint(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		db := c.db(impatient, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
				if isCommitPoint(req) {
					cancel()
				}
				return nil
			}}
		})
		txn := mustBegin(t, db)
		mustPut(t, txn, "a=1", "z=1")
		if _, err := txn.Commit(ctx); err != nil {
			t.Fatal(err)
		}

		holder := mustBegin(t, c.db(Options{}, nil))
		holdLock(t, c, holder, "k")
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		waiter := mustBegin(t, c.db(Options{}, nil))
		mustPut(t, waiter, "k=2", "z=2")
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := waiter.Commit(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if got := mustGet(t, mustBegin(t, c.db(Options{}, nil)), "z"); got != "1" {
			t.Fatal(got)
		}
	})
}

// holdLock prewrites one key of txn and stops.
func holdLock(t testing.TB, c *cluster, txn *Txn, key string) {
	t.Helper()
	desc, shard, err := txn.db.router.Locate(t.Context(), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	_, err = shard.Prewrite(t.Context(), &kv.PrewriteRequest{
		Ranges: []kv.RangeRef{desc.Ref()}, Primary: []byte(key), StartTS: txn.StartTS(), TTLMillis: 3000, TxnSize: 1,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte(key), Value: []byte("held")}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Goal: a request that arrives again after its transaction has ended changes nothing. Method: record every write
// request of transactions that commit, conflict and fail on an existing key; send all of them again, in both orders.
func TestLateDuplicatesAreHarmless(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		var resend []func() error
		record := func(again func() error) {
			mu.Lock()
			defer mu.Unlock()
			resend = append(resend, again)
		}
		db := c.db(Options{}, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
				record(duplicate(s, req))
				return nil
			}}
		})
		ctx := t.Context()
		run := func(wantErr bool, write func(*Txn)) {
			txn := mustBegin(t, db)
			if wantErr {
				other := mustBegin(t, db)
				mustPut(t, other, "k=other")
				mustCommit(t, other)
			}
			write(txn)
			if _, err := txn.Commit(ctx); (err != nil) != wantErr {
				t.Fatal(err)
			}
		}
		run(false, func(x *Txn) { mustPut(t, x, "a=1", "k=1", "z=1") })
		run(false, func(x *Txn) { x.Delete([]byte("k")); x.Insert([]byte("b"), []byte("2")) })
		run(true, func(x *Txn) { mustPut(t, x, "k=3", "z=3") })
		exists := mustBegin(t, db)
		exists.Insert([]byte("a"), []byte("4"))
		mustPut(t, exists, "z=4")
		if _, err := exists.Commit(ctx); err == nil {
			t.Fatal("inserted twice")
		}
		db.waitIdle()
		want := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{})
		mu.Lock()
		all := resend
		mu.Unlock()
		for i := range all {
			all[i]()
			all[len(all)-1-i]()
		}
		if got := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); got != want {
			t.Fatalf("%s, was %s", got, want)
		}
		if locks := c.locks(); len(locks) != 0 {
			t.Fatalf("locks: %v", locks)
		}
	})
}

// duplicate returns a function that sends a write request again, as the network would: the sender goes on, and uses the request's
// lists for the next one. Other requests it does not repeat.
func duplicate(s kv.Shard, req any) func() error {
	ctx := context.Background()
	switch req := req.(type) {
	case *kv.PrewriteRequest:
		again := *req
		again.Ranges, again.Mutations, again.Notify = slices.Clone(req.Ranges), slices.Clone(req.Mutations), slices.Clone(req.Notify)
		again.Secondaries = slices.Clone(req.Secondaries)
		return func() error { _, err := s.Prewrite(ctx, &again); return err }
	case *kv.CommitRequest:
		again := *req
		again.Ranges, again.Keys = slices.Clone(req.Ranges), slices.Clone(req.Keys)
		return func() error { return s.Commit(ctx, &again) }
	case *kv.RollbackRequest:
		again := *req
		again.Ranges, again.Keys = slices.Clone(req.Ranges), slices.Clone(req.Keys)
		return func() error { return s.Rollback(ctx, &again) }
	case *kv.ResolveLockRequest:
		again := *req
		again.Ranges, again.Keys = slices.Clone(req.Ranges), slices.Clone(req.Keys)
		return func() error { return s.ResolveLock(ctx, &again) }
	}
	return func() error { return nil }
}

// Goal: a commit that a reader pushes while it is in flight takes a later timestamp, and the reader does not see it.
// Method: read from within the commit request.
func TestPushedCommitIsRepeatedAbove(t *testing.T) {
	c := newCluster(t, nil, "h", "p")
	reading := c.db(Options{}, nil)
	var reader *Txn
	db := c.db(Options{DisableAsyncCommit: true}, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
			if isCommitPoint(req) && reader == nil {
				reader = mustBegin(t, reading)
				if got := mustGet(t, reader, "a"); got != "-" {
					t.Errorf("a = %s", got)
				}
			}
			return nil
		}}
	})
	txn := mustBegin(t, db)
	mustPut(t, txn, "a=1", "z=1")
	if ts := mustCommit(t, txn); ts <= reader.StartTS() {
		t.Fatalf("committed at %d, read at %d", ts, reader.StartTS())
	}
	if got := scanAll(t, reader, kv.Span{}, ScanOptions{}); got != "" {
		t.Fatal(got)
	}
	if got := scanAll(t, mustBegin(t, reading), kv.Span{}, ScanOptions{}); got != "a=1 z=1" {
		t.Fatal(got)
	}
}

// Goal: heartbeats keep a slow commit alive; without them it is rolled back and returns that error. Method: delay one
// prewrite, of a table the commit, for several TTLs while a writer tries to resolve the primary's lock, in fake time.
func TestProto_T_TTL_1(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for _, beating := range []bool{true, false} {
			t.Run(fmt.Sprintf("beating=%v", beating), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					oracle, err := tso.NewLocal(t.Context(), &tso.MemoryWindow{}, tso.Options{})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { oracle.Close() })
					c := open(t, oracle, "m")
					primary := make(chan struct{})
					var once sync.Once
					db := c.db(Options{LockTTL: 60 * time.Millisecond}, func(s kv.Shard) kv.Shard {
						return &hookShard{Shard: s,
							before: func(_ context.Context, req any) error {
								switch req := req.(type) {
								case *kv.PrewriteRequest:
									if !holdsPrimary(req) {
										<-primary
										time.Sleep(400 * time.Millisecond) // Several TTLs of fake time.
									}
								case *kv.CommitRequest:
									if req.Primary && c.table != nil { // All keys were prewritten by one request.
										time.Sleep(400 * time.Millisecond)
									}
								case *kv.HeartbeatRequest:
									if !beating {
										return errLost
									}
								}
								return nil
							},
							after: func(_ context.Context, req, _ any, _ error) error {
								if p, ok := req.(*kv.PrewriteRequest); ok && holdsPrimary(p) {
									once.Do(func() { close(primary) })
								}
								return nil
							}}
					})
					txn := mustBegin(t, db)
					time.Sleep(100 * time.Millisecond) // a TTL counts from the start_ts, and must allow for this
					mustPut(t, txn, "a=1", "z=1")
					done := make(chan error)
					go func() {
						_, err := txn.Commit(context.Background())
						done <- err
					}()
					<-primary
					rival := mustBegin(t, c.db(Options{RetryBudget: 250 * time.Millisecond}, nil))
					mustPut(t, rival, "a=rival")
					_, rivalErr := rival.Commit(t.Context())
					err = <-done
					var conflict *mvcc.WriteConflictError
					if beating && (err != nil || rivalErr == nil) || !beating && (!errors.As(err, &conflict) || rivalErr != nil) {
						t.Fatalf("slow: %v, rival: %v", err, rivalErr)
					}
				})
			})
		}
	})
}

// testPermit is a CommitPermit that records its use.
type testPermit struct {
	err           error
	max           tso.Timestamp
	read, renewed int
}

func (p *testPermit) MaxCommitTS() (tso.Timestamp, error) {
	p.read++
	return p.max, p.err
}

func (p *testPermit) Renew(context.Context) error {
	p.renewed++
	return nil
}

// Goal: the permit of a commit that writes is read once, can refuse it, and bounds its commit_ts.
func TestCommitPermit(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		refused := errors.New("not now")
		for _, tc := range []struct {
			permit        *testPermit
			write         bool
			want          error
			read, renewed int
		}{
			{&testPermit{}, true, nil, 1, 0},
			{&testPermit{}, false, nil, 0, 0},
			{&testPermit{err: refused}, false, nil, 0, 0},
			{&testPermit{err: refused}, true, refused, 1, 0},
			{&testPermit{max: 1}, true, ErrCommitTooLate, 2, 1},
			{&testPermit{max: tso.MaxTimestamp - 1}, true, nil, 1, 0},
		} {
			txn := mustBegin(t, db)
			txn.SetCommitPermit(tc.permit)
			if tc.write {
				mustPut(t, txn, "a=1", "z=1")
			}
			if _, err := txn.Commit(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("%+v: %v", *tc.permit, err)
			}
			if tc.permit.read != tc.read || tc.permit.renewed != tc.renewed {
				t.Errorf("read %d times, renewed %d times, want %d and %d", tc.permit.read, tc.permit.renewed, tc.read, tc.renewed)
			}
		}
		db.waitIdle()
		if locks := c.locks(); len(locks) != 0 {
			t.Errorf("locks: %v", locks)
		}
	})
}

// latePermit is a CommitPermit whose first bound the commit cannot keep. Renew returns err, or allows any commit_ts up to
// now.
type latePermit struct {
	oracle  tso.Oracle
	err     error
	max     tso.Timestamp
	renewed int
}

func (p *latePermit) MaxCommitTS() (tso.Timestamp, error) { return p.max, nil }

func (p *latePermit) Renew(ctx context.Context) (err error) {
	p.renewed++
	if p.err == nil {
		p.max, err = p.oracle.Now(ctx)
		return err
	}
	return p.err
}

// Goal: a commit that takes longer than its permit allows renews it and succeeds, in one phase, async, in two phases, and from
// a file; if it is refused, nothing is left of it.
func TestCommitTooLateForItsPermit(t *testing.T) {
	refused := errors.New("not any more")
	eachCluster(t, func(t *testing.T, c *cluster) {
		for name, opts := range map[string]Options{"small": {}, "spilled": spilling} {
			for _, want := range []error{refused, nil} {
				db := c.db(opts, nil)
				txn := mustBegin(t, db)
				p := &latePermit{oracle: c.oracle, err: want, max: 1}
				txn.SetCommitPermit(p)
				mustPut(t, txn, "a="+name, "z="+name)
				if name == "spilled" {
					for i := range 3000 {
						must(t, txn.Put(rowKey(i), []byte("1")))
					}
				}
				ts, err := txn.Commit(t.Context())
				if !errors.Is(err, want) || (ts != 0) != (want == nil) {
					t.Fatalf("%s: %d %v, want %v", name, ts, err, want)
				}
				if p.renewed != 1 {
					t.Errorf("%s: renewed %d times", name, p.renewed)
				}
				db.waitIdle()
				if locks := c.locks(); len(locks) != 0 {
					t.Errorf("%s: %d locks", name, len(locks))
				}
				if got := mustGet(t, mustBegin(t, db), "z"); (got == name) != (want == nil) {
					t.Errorf("%s: z is %s after %v", name, got, err)
				}
			}
		}
	})
}

// Goal: a workload that only writes resolves any number of abandoned locks, those of one transaction in a few steps.
// Method: leave 3000 locks, half of a committed transaction, half of an expired one, and write all the keys at once;
// count the requests.
func TestWritersResolveAbandonedLocks(t *testing.T) {
	c := newCluster(t, nil, "m")
	ctx := t.Context()
	for _, tc := range []struct {
		prefix string
		commit bool
	}{{"a", true}, {"b", false}} {
		db := c.db(Options{}, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) error {
				switch req := req.(type) {
				case *kv.CommitRequest:
					if !tc.commit || !req.Primary {
						return errDead
					}
				case *kv.RollbackRequest:
					return errDead
				}
				return nil
			}}
		})
		txn := mustBegin(t, db)
		for i := range 1500 {
			mustPut(t, txn, fmt.Sprintf("%s%04d=dead", tc.prefix, i), fmt.Sprintf("z%s%04d=dead", tc.prefix, i))
		}
		txn.Commit(ctx)
		db.waitIdle()
	}
	if n := len(c.locks()); n < 4000 {
		t.Fatalf("only %d locks to begin with", n)
	}
	c.step.advance(time.Minute)
	var requests atomic.Int32
	db := c.db(Options{}, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s, before: func(context.Context, any) error { requests.Add(1); return nil }}
	})
	txn := mustBegin(t, db)
	for i := range 1500 {
		mustPut(t, txn, fmt.Sprintf("a%04d=new", i), fmt.Sprintf("b%04d=new", i), fmt.Sprintf("za%04d=new", i), fmt.Sprintf("zb%04d=new", i))
	}
	mustCommit(t, txn)
	db.waitIdle()
	if n := requests.Load(); n > 100 {
		t.Errorf("%d requests", n)
	}
	if locks := c.locks(); len(locks) != 0 {
		t.Errorf("%d locks left", len(locks))
	}
}

// Goal: a short outage of the oracle is waited for; a long one is reported.
func TestOracleAway(t *testing.T) {
	c := newCluster(t, nil, "m")
	txn := mustBegin(t, c.db(Options{}, nil))
	mustPut(t, txn, "a=1", "z=1")
	away := &tso.UnavailableError{Err: errors.New("away")}
	set := func(err error) {
		c.step.mu.Lock()
		defer c.step.mu.Unlock()
		c.step.err = err
	}
	set(away)
	timer := time.AfterFunc(20*time.Millisecond, func() { set(nil) })
	defer timer.Stop()
	mustCommit(t, txn)

	set(away)
	var unavailable *tso.UnavailableError
	if _, err := c.db(impatient, nil).Begin(t.Context()); !errors.As(err, &unavailable) {
		t.Fatal(err)
	}
	set(nil)
}

// Goal: a write set that is no longer on one shard when it arrives is committed in two phases, unless an earlier
// attempt at one phase may have been, or may still be, executed. Method: a router that learns of a second shard only
// from the refusal; an earlier attempt, or its answer, is lost, or it arrives late.
func TestProto_T_SPL_1(t *testing.T) {
	for _, tc := range []struct {
		name    string
		before  string // an attempt before the refusal
		commits bool
	}{{"refused", "", true}, {"lost, refused", "lost", false}, {"answer lost, refused", "carried", true}, {"late, refused", "late", false}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, nil, "m")
			c.undivided.Store(true)
			var attempts int
			var late func() error
			db := c.db(Options{}, func(s kv.Shard) kv.Shard {
				return &hookShard{Shard: s,
					before: func(_ context.Context, req any) error {
						p, ok := req.(*kv.PrewriteRequest)
						if !ok || !p.TryOnePC {
							return nil
						}
						attempts++
						switch {
						case attempts == 1 && tc.before == "carried":
							return nil
						case attempts == 1 && tc.before == "lost":
							return errLost
						case attempts == 1 && tc.before == "late":
							late = duplicate(s, req)
							return errLost
						}
						c.undivided.Store(false)
						return &kv.StaleRangeError{Refs: p.Ranges}
					},
					after: func(_ context.Context, req, _ any, _ error) error {
						if p, ok := req.(*kv.PrewriteRequest); ok && p.TryOnePC && attempts == 1 {
							return errLost
						}
						return nil
					}}
			})
			txn := mustBegin(t, db)
			mustPut(t, txn, "a=1", "z=1")
			_, err := txn.Commit(t.Context())
			var conflict *mvcc.WriteConflictError
			if tc.commits && err != nil || !tc.commits && !errors.As(err, &conflict) {
				t.Fatal(err)
			}
			db.waitIdle()
			if late != nil {
				if err := late(); err == nil {
					t.Fatal("the late attempt was carried out")
				}
			}
			if tc.before == "carried" {
				c.undivided.Store(true) // z was written before the shards were divided
			}
			want := ""
			if tc.commits {
				want = "a=1 z=1"
			}
			if got := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); got != want {
				t.Fatalf("found %q, want %q", got, want)
			}
		})
	}
}

// Goal: Close completes the background work of commits. Method: close immediately after commits of two phases; look for
// locks.
func TestCloseFinishesSecondaries(t *testing.T) {
	c := newCluster(t, nil, "m")
	db := c.db(Options{Queue: 8}, nil)
	for i := range 50 {
		txn := mustBegin(t, db)
		mustPut(t, txn, fmt.Sprintf("a%d=1", i), fmt.Sprintf("z%d=1", i))
		mustCommit(t, txn)
	}
	db.Close()
	if locks := c.locks(); len(locks) != 0 {
		t.Fatalf("locks: %v", locks)
	}
}
