package percolator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// threeStores is a cluster with a, k and z on different stores.
func threeStores(t testing.TB) *cluster { return newCluster(t, nil, "h", "p") }

// owner is a DB whose requests the test observes, and that can stop receiving answers, as if it had crashed.
type owner struct {
	*DB
	deaf atomic.Bool
}

// ownerProcess is the process of an owner.
const ownerProcess = 7

// newOwner calls before and after, if given, as a hookShard does.
func newOwner(c *cluster, before func(req any) error, after func(req any, err error) error) *owner {
	o := &owner{}
	opts := impatient
	opts.Process = ownerProcess
	o.DB = c.db(opts, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s,
			before: func(_ context.Context, req any) error {
				if o.deaf.Load() {
					return errLost
				}
				if before != nil {
					return before(req)
				}
				return nil
			},
			after: func(_ context.Context, req, _ any, err error) error {
				if o.deaf.Load() {
					return errLost
				}
				if after != nil {
					return after(req, err)
				}
				return nil
			}}
	})
	return o
}

// prewriteOf returns the prewrite of key, if that is what req is.
func prewriteOf(req any, key string) *kv.PrewriteRequest {
	p, ok := req.(*kv.PrewriteRequest)
	if ok && slices.ContainsFunc(p.Mutations, func(m mvcc.Mutation) bool { return string(m.Key) == key }) {
		return p
	}
	return nil
}

func isCommit(req any) bool { _, ok := req.(*kv.CommitRequest); return ok }

func (c *cluster) content() string {
	c.t.Helper()
	return scanAll(c.t, mustBegin(c.t, c.db(Options{}, nil)), kv.Span{}, ScanOptions{})
}

// prewriteAndDie has a transaction write a, k and z; its owner crashes as soon as it would commit or roll back a key.
func prewriteAndDie(t *testing.T, c *cluster, before func(req any) error) *owner {
	t.Helper()
	var o *owner
	o = newOwner(c, func(req any) error {
		switch req.(type) {
		case *kv.CommitRequest, *kv.RollbackRequest, *kv.CheckSecondaryLocksRequest:
			o.deaf.Store(true)
			return errLost
		}
		if before != nil {
			return before(req)
		}
		return nil
	}, nil)
	txn := mustBegin(t, o.DB)
	mustPut(t, txn, "a=1", "k=1", "z=1")
	_, err := txn.Commit(t.Context())
	var undetermined *UndeterminedError
	if err != nil && !errors.As(err, &undetermined) && !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	o.waitIdle()
	return o
}

// Goal: a reader that begins after the acknowledgement sees the commit, although no key has been committed yet; the
// commit_ts is above every timestamp issued before the commit.
func TestProto_T_ASY_2(t *testing.T) {
	c := threeStores(t)
	gate := make(chan struct{})
	db := newOwner(c, func(req any) error {
		if isCommit(req) {
			<-gate
		}
		return nil
	}, nil)
	defer db.waitIdle()
	defer close(gate)
	txn := mustBegin(t, db.DB)
	mustPut(t, txn, "a=1", "k=1", "z=1")
	floor, _ := c.oracle.Now(t.Context())
	ts := mustCommit(t, txn)
	if next, _ := c.oracle.Now(t.Context()); ts <= floor || ts >= next {
		t.Errorf("committed at %d, not between %d and %d", ts, floor, next)
	}
	if len(c.locks()) != 3 {
		t.Fatalf("locks: %v", c.locks())
	}
	after := mustBegin(t, c.db(Options{}, nil))
	for _, key := range []string{"z", "a", "k"} {
		if got := mustGet(t, after, key); got != "1" {
			t.Errorf("%s = %s", key, got)
		}
	}
	for ts, want := range map[tso.Timestamp]string{ts: "a=1 k=1 z=1", ts - 1: ""} {
		if got := scanAll(t, c.db(Options{}, nil).BeginAt(ts), kv.Span{}, ScanOptions{}); got != want {
			t.Errorf("at %d: %q", ts, got)
		}
	}
}

// Goal: a prewrite that arrives after the TTL, when resolvers have decided, does not commit. Method: delay the prewrite
// of one key until the TTL has expired and a reader has resolved the transaction.
func TestProto_T_ASY_3(t *testing.T) {
	for _, late := range []string{"a", "k", "z"} {
		c := threeStores(t)
		var bound tso.Timestamp
		var start tso.Timestamp
		var once sync.Once
		ready, gate := make(chan struct{}), make(chan struct{})
		var others atomic.Int32
		db := newOwner(c, func(req any) error {
			p, ok := req.(*kv.PrewriteRequest)
			if !ok {
				return nil
			}
			if prewriteOf(req, late) != nil {
				once.Do(func() { bound, start = p.MaxCommitTS, p.StartTS })
				<-gate
			}
			return nil
		}, func(req any, _ error) error {
			if _, ok := req.(*kv.PrewriteRequest); ok && others.Add(1) == 2 {
				close(ready)
			}
			return nil
		})
		txn := mustBegin(t, db.DB)
		mustPut(t, txn, "a=1", "k=1", "z=1")
		done := make(chan error)
		go func() { _, err := txn.Commit(context.Background()); done <- err }()
		<-ready
		c.step.advance(time.Minute)
		if got := c.content(); got != "" {
			t.Fatal(got)
		}
		close(gate)
		var conflict *mvcc.WriteConflictError
		if err := <-done; !errors.As(err, &conflict) {
			t.Fatalf("%s late: %v", late, err)
		}
		if got := c.content(); got != "" {
			t.Fatal(got)
		}
		if ttl := bound.Physical() - start.Physical(); bound == 0 || ttl > impatient.ensureDefaults().LockTTL.Milliseconds()+1000 {
			t.Errorf("may commit up to %d ms after its start", ttl)
		}
	}
}

// Goal: if the oracle's clock jumps while the primary's prewrite is in flight and a secondary is locked, a reader of
// the secondary finds the lock expired: the transaction is rolled back as a whole, its owner receives that error, and
// commits when run again. Method: delay the primary's prewrite, jump, read, and deliver the prewrite.
func TestJumpBeforeThePrimary(t *testing.T) {
	for _, twoPhases := range []bool{false, true} {
		c := threeStores(t)
		c.twoPhases = twoPhases
		ready, gate := make(chan struct{}), make(chan struct{})
		var others atomic.Int32
		var open atomic.Bool
		db := newOwner(c, func(req any) error {
			if prewriteOf(req, "a") != nil && !open.Load() {
				<-gate
			}
			return nil
		}, func(req any, _ error) error {
			if _, ok := req.(*kv.PrewriteRequest); ok && others.Add(1) == 2 {
				close(ready)
			}
			return nil
		})
		txn := mustBegin(t, db.DB)
		mustPut(t, txn, "a=1", "k=1", "z=1")
		done := make(chan error)
		go func() { _, err := txn.Commit(context.Background()); done <- err }()
		<-ready
		c.step.jump(time.Hour)
		if got := c.content(); got != "" {
			t.Fatalf("two phases %v: %s", twoPhases, got)
		}
		open.Store(true)
		close(gate)
		conflict, ok := errkind.As[*mvcc.WriteConflictError](<-done)
		if !ok || conflict.Cause != mvcc.CauseRolledBack {
			t.Fatalf("two phases %v: %v", twoPhases, conflict)
		}
		again := mustBegin(t, db.DB)
		mustPut(t, again, "a=2", "k=2", "z=2")
		mustCommit(t, again)
		db.waitIdle()
		if got := c.content(); got != "a=2 k=2 z=2" || len(c.locks()) != 0 {
			t.Errorf("two phases %v: %s, locks %v", twoPhases, got, c.locks())
		}
	}
}

// Goal: the primary alone decides a transaction of which one key fell back to a plain lock: readers wait, or ignore the
// lock, and roll it back when its TTL has expired (T-ASY-4: the primary fell back; T-ASY-5: a secondary). Method: a
// bound for the commit that the shard of one key cannot keep.
func testFallback(t *testing.T, plain string) {
	fallBack := func(req any) error {
		if p := prewriteOf(req, plain); p != nil {
			p.MaxCommitTS = 1
		}
		return nil
	}
	t.Run("the owner goes on", func(t *testing.T) {
		c := threeStores(t)
		db := newOwner(c, fallBack, nil)
		txn := mustBegin(t, db.DB)
		mustPut(t, txn, "a=1", "k=1", "z=1")
		mustCommit(t, txn)
		db.waitIdle()
		if got := c.content(); got != "a=1 k=1 z=1" || len(c.locks()) != 0 {
			t.Fatal(got, c.locks())
		}
	})
	t.Run("the owner dies", func(t *testing.T) {
		c := threeStores(t)
		prewriteAndDie(t, c, fallBack)
		if n := len(c.locks()); n != 3 {
			t.Fatal(n)
		}
		reader := mustBegin(t, c.db(impatient, nil))
		for _, key := range []string{"z", "a", "k"} { // alive; pushed to commit later, where that is possible
			value, err := reader.Get(t.Context(), []byte(key))
			var locked *mvcc.KeyLockedError
			if value != nil || err != nil && !errors.As(err, &locked) {
				t.Fatal(string(value), err)
			}
		}
		if n := len(c.locks()); n != 3 {
			t.Fatalf("%d locks, though the transaction may live", n)
		}
		c.step.advance(time.Minute)
		if got := c.content(); got != "" {
			t.Fatal(got)
		}
	})
}

// The primary is a, or whichever key is first on the shard with most.
func TestProto_T_ASY_4(t *testing.T) { testFallback(t, "a") }
func TestProto_T_ASY_5(t *testing.T) { testFallback(t, "z") }

// Goal: the first transaction that meets an async commit whose owner crashed after the last prewrite commits it, before
// its TTL expires; so does the resolution that precedes garbage collection (T-ASY-6), which leaves no lock whatever the
// background work did. Without async commits the transaction is rolled back when the TTL has expired.
func TestProto_T_ASY_9(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for _, sweep := range []bool{false, true} {
			c := open(t, nil, "h", "p")
			prewriteAndDie(t, c, nil)
			db := c.db(Options{}, nil)
			want := "a=1 k=1 z=1"
			if !c.stores[0].Capabilities().Async { // The primary was not committed.
				want = ""
				c.step.advance(time.Minute)
			}
			if !sweep {
				if got := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); got != want {
					t.Fatal(got)
				}
			} else {
				now, _ := c.oracle.Now(t.Context())
				if n, _, err := db.ResolveBefore(t.Context(), now, nil); err != nil || n == 0 {
					t.Fatal(n, err)
				}
			}
			db.waitIdle()
			if locks := c.locks(); len(locks) != 0 {
				t.Fatal(locks)
			}
			if got := c.content(); got != want {
				t.Fatal(got)
			}
		}
	})
}

// Goal: owner and resolvers decide one outcome at one timestamp, wherever the owner crashes. Method: the owner's
// requests, or only the answers, are lost from the nth on, while two readers read continuously; then the TTL expires.
// The reported outcome is true, and all keys show it at every timestamp.
func TestProto_T_ASY_11(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for n := range int32(10) {
			for _, carried := range []bool{false, true} {
				t.Run(fmt.Sprintf("dies at %d, carried out=%v", n, carried), func(t *testing.T) {
					c := open(t, realOracle(t), "h", "p")
					var sent atomic.Int32
					var o *owner
					o = newOwner(c, func(req any) error {
						if sent.Add(1) > n && !carried {
							o.deaf.Store(true)
							return errLost
						}
						return nil
					}, func(any, error) error {
						if sent.Load() > n {
							o.deaf.Store(true)
							return errLost
						}
						return nil
					})
					o.opts.LockTTL = 50 * time.Millisecond
					stop := make(chan struct{})
					var readers sync.WaitGroup
					for range 2 {
						db := c.db(Options{}, nil)
						readers.Go(func() {
							for {
								select {
								case <-stop:
									return
								default:
								}
								if got := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); got != "" && got != "a=1 k=1 z=1" {
									t.Errorf("half a transaction: %q", got)
									return
								}
							}
						})
					}
					txn := mustBegin(t, o.DB)
					mustPut(t, txn, "a=1", "k=1", "z=1")
					ts, err := txn.Commit(t.Context())
					var undetermined *UndeterminedError
					time.Sleep(120 * time.Millisecond) // The owner's locks expire, and readers resolve them.
					close(stop)
					readers.Wait()
					there := c.content()
					switch {
					case err == nil && there == "":
						t.Fatal("an acknowledged commit is gone")
					case err != nil && !errors.As(err, &undetermined) && there != "":
						t.Fatalf("reported as %v, but it is there", err)
					case err == nil:
						db := c.db(Options{}, nil)
						if scanAll(t, db.BeginAt(ts), kv.Span{}, ScanOptions{}) != there || scanAll(t, db.BeginAt(ts-1), kv.Span{}, ScanOptions{}) != "" {
							t.Fatalf("not all committed at %d", ts)
						}
					}
				})
			}
		}
	})
}

// Goal: a caller that cancels after everything was sent receives the outcome or learns that it is unknown; the
// transaction is not rolled back blindly. Method: cancel during the prewrites, whose answers arrive, or do not, with
// and without later answers.
func TestProto_T_ASY_12(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for _, tc := range []struct {
			name  string
			lost  bool // the answer of k
			deaf  bool // from then on
			check func(err error) bool
		}{
			{"answered", false, false, func(err error) bool { return err == nil }},
			{"one answer lost", true, false, func(err error) bool { return err == nil }},
			{"then silence", true, true, func(err error) bool { return errors.As(err, new(*UndeterminedError)) }},
		} {
			t.Run(tc.name, func(t *testing.T) {
				c := open(t, nil, "h", "p")
				c.needs(t, "Async", func(caps kv.Capabilities) bool { return caps.Async })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var rollbacks atomic.Int32
				var once sync.Once
				var o *owner
				o = newOwner(c, func(req any) error {
					if _, ok := req.(*kv.RollbackRequest); ok {
						rollbacks.Add(1)
					}
					if prewriteOf(req, "k") != nil {
						cancel()
					}
					return nil
				}, func(req any, err error) (lost error) {
					if prewriteOf(req, "k") != nil && tc.lost {
						once.Do(func() {
							o.deaf.Store(tc.deaf)
							lost = errLost
						})
					}
					return lost
				})
				txn := mustBegin(t, o.DB)
				mustPut(t, txn, "a=1", "k=1", "z=1")
				_, err := txn.Commit(ctx)
				if !tc.check(err) {
					t.Fatal(err)
				}
				o.waitIdle()
				if n := rollbacks.Load(); n != 0 {
					t.Errorf("%d rollbacks", n)
				}
				c.step.advance(time.Minute)
				if got := c.content(); err == nil && got != "a=1 k=1 z=1" {
					t.Errorf("committed, but there is %q", got)
				}
			})
		}
	})
}

// Goal: an owner that gives up is not overtaken by its own first request. Method: the first prewrite of z is delayed;
// the second meets the lock of a younger transaction, so that the owner gives way; then the first arrives.
func TestProto_T_ASY_13(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		c := open(t, nil, "h", "p")
		var late func() error
		var once sync.Once
		o := &owner{DB: c.db(impatient, func(s kv.Shard) kv.Shard {
			return &hookShard{Shard: s, before: func(_ context.Context, req any) (err error) {
				if prewriteOf(req, "z") != nil {
					once.Do(func() {
						late = duplicate(s, req)
						younger := mustBegin(t, c.db(Options{}, nil))
						holdLock(t, c, younger, "z")
						err = errLost
					})
				}
				return err
			}}
		})}
		txn := mustBegin(t, o.DB)
		mustPut(t, txn, "a=1", "k=1", "z=1")
		_, err := txn.Commit(t.Context())
		var conflict *mvcc.WriteConflictError
		if !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		c.step.advance(time.Minute)
		c.content() // clears the way for the late one
		if err := late(); err == nil {
			t.Fatal("the late request was carried out")
		}
		o.waitIdle()
		if got := c.content(); got != "" {
			t.Fatal(got)
		}
		if locks := c.locks(); len(locks) != 0 {
			t.Fatal(locks)
		}
	})
}

// Goal: an async commit does not exceed the bound of its permit, however late its prewrites are.
func TestProto_T_SCH_1(t *testing.T) {
	c := threeStores(t)
	var once sync.Once
	db := newOwner(c, func(req any) error {
		if prewriteOf(req, "z") != nil {
			// A reader in the future of the bound has been at z's shard.
			once.Do(func() {
				c.step.advance(time.Second)
				mustGet(t, mustBegin(t, c.db(Options{}, nil)), "z")
			})
		}
		return nil
	}, nil)
	txn := mustBegin(t, db.DB)
	permit := &testPermit{max: txn.StartTS() + tso.FromPhysical(100)}
	txn.SetCommitPermit(permit)
	mustPut(t, txn, "a=1", "k=1", "z=1")
	if _, err := txn.Commit(t.Context()); !errors.Is(err, ErrCommitTooLate) {
		t.Fatal(err)
	}
	db.waitIdle()
	if got := c.content(); got != "" || permit.renewed != 1 { // the second bound is no later
		t.Fatal(got, permit)
	}
}

// Goal: a refusal by one shard is not masked by the cancellation of the requests to others. Method: z conflicts; the
// answer of k is lost because of that.
func TestProto_T_UND_2(t *testing.T) {
	eachEngine(t, func(t *testing.T, open opener) {
		for _, twoPhases := range []bool{false, true} {
			c := open(t, nil, "h", "p")
			if len(c.stores) == 1 {
				t.Skip("a table is one shard")
			}
			c.twoPhases = twoPhases
			refused := make(chan struct{})
			var once sync.Once
			db := newOwner(c, nil, func(req any, err error) error {
				if prewriteOf(req, "z") != nil && err != nil {
					once.Do(func() { close(refused) })
				}
				if prewriteOf(req, "k") != nil {
					<-refused
					return errLost
				}
				return nil
			})
			txn := mustBegin(t, db.DB)
			mustPut(t, txn, "a=1", "k=1", "z=1")
			other := mustBegin(t, c.db(Options{}, nil))
			mustPut(t, other, "z=other")
			mustCommit(t, other)
			var conflict *mvcc.WriteConflictError
			if _, err := txn.Commit(t.Context()); !errors.As(err, &conflict) || string(conflict.Key) != "z" {
				t.Fatalf("two phases=%v: %v", twoPhases, err)
			}
			db.waitIdle()
			if got := c.content(); got != "z=other" {
				t.Fatal(got)
			}
		}
	})
}

// Goal: a commit is asynchronous only if that is sound: not with keys that are only checked, with reads to be
// validated, or when it is large. Method: count the kinds of commits.
func TestWhichCommitsAreAsync(t *testing.T) {
	c := threeStores(t)
	for _, tc := range []struct {
		name  string
		opts  TxnOptions
		write func(txn *Txn)
		want  commitKind
	}{
		{"one shard", TxnOptions{}, func(txn *Txn) { mustPut(t, txn, "a=1", "b=1") }, commitOnePhase},
		{"several", TxnOptions{}, func(txn *Txn) { mustPut(t, txn, "a=1", "z=1") }, commitAsync},
		{"a check", TxnOptions{}, func(txn *Txn) {
			mustPut(t, txn, "a=1", "z=1")
			txn.Insert([]byte("k"), nil)
			txn.Delete([]byte("k"))
		}, commitTwoPhase},
		{"many keys", TxnOptions{}, func(txn *Txn) {
			for i := range maxAsyncKeys {
				mustPut(t, txn, fmt.Sprintf("a%d=1", i))
			}
			mustPut(t, txn, "z=1")
		}, commitTwoPhase},
		{"serializable, nothing read", TxnOptions{Isolation: Serializable}, func(txn *Txn) { mustPut(t, txn, "a=1", "z=1") }, commitAsync},
		{"serializable", TxnOptions{Isolation: Serializable}, func(txn *Txn) { mustGet(t, txn, "a"); mustPut(t, txn, "a=1", "z=1") }, commitTwoPhase},
		{"serializable, here", TxnOptions{Isolation: Serializable}, func(txn *Txn) { mustGet(t, txn, "b"); mustPut(t, txn, "a=1") }, commitOnePhase},
		{"serializable, read elsewhere", TxnOptions{Isolation: Serializable}, func(txn *Txn) { mustGet(t, txn, "z"); mustPut(t, txn, "a=1") }, commitTwoPhase},
		{"pessimistic, a key locked elsewhere", pessimistic, func(txn *Txn) {
			if err := lock(txn, "z", "a"); err != nil {
				t.Fatal(err)
			}
			mustPut(t, txn, "a=1")
		}, commitAsync},
	} {
		db := c.db(Options{}, nil)
		txn := mustBeginTxn(t, db, tc.opts)
		tc.write(txn)
		mustCommit(t, txn)
		for kind := range commitKinds {
			if got := counted(t, db.metrics.commits[kind]); got != 0 && kind != tc.want || got != 1 && kind == tc.want {
				t.Errorf("%s: %v of kind %d", tc.name, got, kind)
			}
		}
		db.waitIdle()
	}
	if locks := c.locks(); len(locks) != 0 {
		t.Fatal(locks)
	}
}
