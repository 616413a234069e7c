package percolator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// restarts is a cluster whose stores can be restarted under a DB: locks in memory are lost.
type restarts struct {
	*cluster
	shards map[member]*hookShard
}

func newRestarts(t *testing.T, bounds ...string) (*restarts, *DB) {
	r := &restarts{cluster: newCluster(t, nil, bounds...), shards: map[member]*hookShard{}}
	return r, r.db(Options{}, func(s kv.Shard) kv.Shard {
		h := &hookShard{Shard: s}
		r.shards[s.(networked).member] = h
		return h
	})
}

func (r *restarts) restart(i int) {
	r.t.Helper()
	old := r.stores[i]
	if err := old.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.open(i)
	h := r.shards[old]
	h.Shard = networked{r.stores[i]}
	r.shards[r.stores[i]] = h
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	var conflict *mvcc.WriteConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("%v, want a conflict", err)
	}
}

// Goal: a parent locked FOR SHARE exists until the child is committed, or the commit fails: also if the
// store has lost the lock, with the child on any store. Method: restart the store, and delete the parent or
// not; at every isolation level.
func TestLostSharedLock(t *testing.T) {
	ctx := context.Background()
	for _, level := range []Isolation{ReadCommitted, SnapshotIsolation, Serializable} {
		for _, child := range []string{"b", "z"} {
			for _, gone := range []bool{false, true} {
				c, db := newRestarts(t, "m")
				seed := mustBegin(t, db)
				mustPut(t, seed, "a=parent")
				mustCommit(t, seed)
				one := mustBeginTxn(t, db, TxnOptions{Pessimistic: true, Isolation: level})
				if err := lockAs(one, LockOptions{Shared: true}, "a"); err != nil {
					t.Fatal(err)
				}
				c.restart(0)
				if gone {
					two := mustBeginTxn(t, db, pessimistic)
					if err := lock(two, "a"); err != nil {
						t.Fatal(err)
					}
					two.Delete([]byte("a"))
					mustCommit(t, two)
				}
				mustPut(t, one, child+"=child", child+"x=child")
				_, err := one.Commit(ctx)
				if !gone && err != nil {
					t.Fatalf("%s, child %s: %v", level, child, err)
				}
				if gone {
					wantConflict(t, err)
				}
				db.waitIdle()
				if locks := c.locks(); len(locks) > 0 {
					t.Fatalf("%s, child %s: locks are left: %v", level, child, locks)
				}
			}
		}
	}
}

// Goal: after the loss of a shared lock between its check and the commit point, no transaction acquires the key without
// seeing the commit. Method: restart the parent's store before the primary's commit arrives; another transaction
// locks the parent exclusively, finds no children, and deletes the parent.
func TestSharedLockLostBeforeTheCommitPoint(t *testing.T) {
	ctx := context.Background()
	c, db := newRestarts(t, "m")
	seed := mustBegin(t, db)
	mustPut(t, seed, "a=parent")
	mustCommit(t, seed)
	two := mustBeginTxn(t, db, TxnOptions{Pessimistic: true, Isolation: ReadCommitted})
	once := true
	for _, h := range c.shards {
		h.before = func(_ context.Context, req any) error {
			if commit, ok := req.(*kv.CommitRequest); !ok || !commit.Primary || !once {
				return nil
			}
			once = false
			c.restart(0)
			if err := statement(ctx, two, func() error { return lock(two, "a") }); err != nil {
				t.Error(err)
			}
			if err := two.BeginStatement(ctx); err != nil {
				t.Error(err)
			}
			if rows := scanAll(t, two, kv.Span{Start: []byte("x")}, ScanOptions{}); rows != "" {
				t.Errorf("children %s", rows)
			}
			return two.Delete([]byte("a"))
		}
	}
	one := mustBeginTxn(t, db, pessimistic)
	if err := lockAs(one, LockOptions{Shared: true}, "a"); err != nil {
		t.Fatal(err)
	}
	mustPut(t, one, "x=child", "y=child")
	_, err := one.Commit(ctx)
	wantConflict(t, err)
	mustCommit(t, two)
	if rows := scanAll(t, mustBegin(t, db), kv.Span{}, ScanOptions{}); rows != "" {
		t.Errorf("rows %s, want none", rows)
	}
}

// Goal: a transaction whose first lock is a shared one, and which writes on several stores, commits while others share
// the key, without waiting for them. Method: two transactions and an idle third share one key, in one
// phase, asynchronously and in two phases.
func TestSharedPrimary(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		seed := mustBegin(t, db)
		mustPut(t, seed, "k=parent")
		mustCommit(t, seed)
		var txns [3]*Txn
		for i := range txns {
			txns[i] = mustBeginTxn(t, db, pessimistic)
			if err := lockAs(txns[i], LockOptions{Shared: true}, "k"); err != nil {
				t.Fatal(err)
			}
		}
		for i, txn := range txns[:2] {
			if err := lock(txn, "a"+string(rune('0'+i))); err != nil {
				t.Fatal(err)
			}
			mustPut(t, txn, "a"+string(rune('0'+i))+"=1", "i=1", "z"+string(rune('0'+i))+"=1")
			if i == 1 {
				txn.buf.truncate(1) // the first key only
			}
			mustCommit(t, txn)
		}
		db.waitIdle()
		if locks := c.locks(); len(locks) != 1 || !locks[0].Lock.Shared {
			t.Errorf("locks %v, want the third's", locks)
		}
	})
}

// Goal: a transaction whose first lock is on a row that it inserts and deletes again commits its other
// writes, and leaves no lock. Method: other rows on the same store, and on others.
func TestPrimaryInsertedAndDeleted(t *testing.T) {
	eachCluster(t, func(t *testing.T, c *cluster) {
		db := c.db(Options{}, nil)
		for _, others := range [][]string{{"b=1"}, {"b=1", "i=1", "z=1"}} {
			txn := mustBeginTxn(t, db, pessimistic)
			if taken, err := txn.LockNew(context.Background(), []byte("a")); taken != -1 || err != nil {
				t.Fatal(taken, err)
			}
			if err := txn.Insert([]byte("a"), []byte("v")); err != nil {
				t.Fatal(err)
			}
			txn.Delete([]byte("a"))
			mustPut(t, txn, others...)
			mustCommit(t, txn)
			db.waitIdle()
			if locks := c.locks(); len(locks) > 0 {
				t.Fatalf("%v: locks are left: %v", others, locks)
			}
		}
	})
}

// Goal: a restart of a store does not fail a transaction whose rows no other transaction has changed: heartbeats acquire
// the primary's lock again. If another transaction has locked a row in the meantime, or the transaction was rolled
// back because its locks had expired, the commit's error says so. Method: restart a store under an open
// transaction; send its heartbeat; then nothing, a change by another, or a resolver after the TTL.
func TestPessimisticTransactionOverARestart(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		name  string
		cause mvcc.ConflictCause
		do    func(c *restarts, db *DB, txn *Txn)
	}{
		{name: "alone", do: func(c *restarts, _ *DB, txn *Txn) {
			txn.locks.lease.beat()
			if locks := c.locks(); len(locks) != 1 || string(locks[0].Key) != "a" {
				t.Errorf("locks %v, want the primary's", locks)
			}
		}},
		{name: "changed", cause: mvcc.CauseWrite, do: func(_ *restarts, db *DB, txn *Txn) {
			other := mustBegin(t, db)
			mustPut(t, other, "a=2")
			mustCommit(t, other)
			txn.locks.lease.beat()
		}},
		{name: "locked by another", cause: mvcc.CauseLockLost, do: func(_ *restarts, db *DB, txn *Txn) {
			if err := lock(mustBeginTxn(t, db, pessimistic), "a"); err != nil {
				t.Error(err)
			}
			txn.locks.lease.beat()
		}},
		{name: "rolled back", cause: mvcc.CauseRolledBack, do: func(c *restarts, db *DB, txn *Txn) {
			d, shard, err := db.router.Locate(ctx, []byte("a"))
			if err != nil {
				t.Error(err)
			}
			c.step.advance(time.Minute)
			now, _ := c.oracle.Now(ctx)
			if _, err := shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{Range: d.Ref(), Primary: []byte("a"),
				StartTS: txn.startTS, NowTS: now, RollbackIfMissing: true}); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, db := newRestarts(t, "m")
			txn := mustBeginTxn(t, db, pessimistic)
			if err := lock(txn, "a"); err != nil {
				t.Fatal(err)
			}
			c.restart(0)
			tc.do(c, db, txn)
			if txn.locks.lease.doomed.Load() {
				t.Error("a heartbeat found the transaction doomed")
			}
			mustPut(t, txn, "a=1")
			_, err := txn.Commit(ctx)
			var conflict *mvcc.WriteConflictError
			if tc.name == "alone" {
				if err != nil {
					t.Fatal(err)
				}
			} else if !errors.As(err, &conflict) || conflict.Cause != tc.cause {
				t.Fatalf("%v, want cause %d", err, tc.cause)
			}
		})
	}
}

// Goal: a restart of the oracle that advances its clock does not expire the locks of a live owner.
// Method: the clock jumps, the owner sends a heartbeat, and a waiter checks the primary.
func TestHeartbeatsGoByTheOraclesClock(t *testing.T) {
	ctx := context.Background()
	c, db := newRestarts(t, "m")
	txn := mustBeginTxn(t, db, pessimistic)
	if err := lock(txn, "a"); err != nil {
		t.Fatal(err)
	}
	c.step.advance(30 * time.Second)
	txn.locks.lease.beat()
	err := lockAs(mustBeginTxn(t, db, pessimistic), LockOptions{NoWait: true}, "a")
	var taken *LockNotAvailableError
	if !errors.As(err, &taken) {
		t.Fatalf("%v, want a lock that is taken", err)
	}
	mustPut(t, txn, "a=1")
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

// Goal: a jump of the oracle's clock does not expire the locks of live owners: a lock whose next heartbeat is not due is
// neither taken nor rolled back, and a dead owner's lock still expires after its lease.
// Method: the oracle jumps by an hour under a pessimistic lock, under the prewritten lock of a running commit,
// and under a heartbeat; a rival requests the key; then the stores' clock advances past the lease.
func TestAClockJumpIsNoSilence(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, c *cluster, db *DB) *Txn
	}{
		{"locked", func(t *testing.T, c *cluster, db *DB) *Txn {
			txn := mustBeginTxn(t, db, pessimistic)
			must(t, lock(txn, "a"))
			c.step.jump(time.Hour)
			return txn
		}},
		{"locked after the jump", func(t *testing.T, c *cluster, db *DB) *Txn {
			txn := mustBeginTxn(t, db, pessimistic)
			c.step.jump(time.Hour)
			must(t, lock(txn, "a"))
			return txn
		}},
		{"after a heartbeat", func(t *testing.T, c *cluster, db *DB) *Txn {
			txn := mustBeginTxn(t, db, pessimistic)
			must(t, lock(txn, "a"))
			c.step.advance(2 * time.Second)
			txn.locks.lease.beat()
			c.step.advance(2 * time.Second)
			c.step.jump(time.Hour)
			return txn
		}},
		{"after a restart", func(t *testing.T, c *cluster, db *DB) *Txn {
			txn := mustBegin(t, db)
			prewriteOnly(t, c, txn.StartTS(), "a")
			c.stores[0].Close()
			c.open(0)
			c.step.jump(time.Hour)
			return txn
		}},
		{"prewritten", func(t *testing.T, c *cluster, db *DB) *Txn {
			txn := mustBegin(t, db)
			prewriteOnly(t, c, txn.StartTS(), "a")
			c.step.jump(time.Hour)
			return txn
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, nil, "m")
			db := c.db(Options{}, nil)
			txn := tc.prepare(t, c, db)
			db = c.db(Options{}, nil) // of the current stores
			outcome := func() outcome {
				locked := &mvcc.Lock{Op: mvcc.OpPut, StartTS: txn.StartTS(), Primary: []byte("a")}
				if txn.locks != nil {
					locked.Op = mvcc.OpPessimistic
				}
				f, err := db.askPrimary(t.Context(), locked, 0)
				must(t, err)
				return f
			}
			if f := outcome(); f.kind != outcomeAlive {
				t.Fatalf("outcome %v under a live owner", f)
			}
			if txn.locks != nil {
				txn.locks.lease.stop() // the owner is dead from now on
			}
			c.step.advance(4 * time.Second)
			if f := outcome(); f.kind != outcomeRolledBack {
				t.Fatalf("outcome %v of a dead owner's lock", f)
			}
		})
	}
}

// prewriteOnly prewrites a key as its own primary, with the usual TTL.
func prewriteOnly(t *testing.T, c *cluster, startTS tso.Timestamp, key string) {
	t.Helper()
	d, _, err := c.stores[0].Router().Locate(t.Context(), []byte(key))
	must(t, err)
	_, err = c.stores[0].Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: []kv.RangeRef{d.Ref()}, Primary: []byte(key), StartTS: startTS,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte(key), Value: []byte("1")}}, TTLMillis: 3000, LeaseMillis: 3000})
	must(t, err)
}

// Goal: the commit of a write set in a file checks its shared locks, and the first of them is not its
// primary. Method: FOR SHARE first, then thousands of rows; the store keeps the
// lock, loses it, or loses it to another transaction.
func TestSharedLockOfALargeTransaction(t *testing.T) {
	for _, tc := range []struct{ restart, taken bool }{{false, false}, {true, false}, {true, true}} {
		c := &restarts{cluster: newCluster(t, nil, "m"), shards: map[member]*hookShard{}}
		db := c.db(spilling, func(s kv.Shard) kv.Shard {
			h := &hookShard{Shard: s}
			c.shards[s.(networked).member] = h
			return h
		})
		txn := mustBeginTxn(t, db, pessimistic)
		if err := lockAs(txn, LockOptions{Shared: true}, "a"); err != nil {
			t.Fatal(err)
		}
		for i := range 3000 {
			must(t, txn.Put(rowKey(i), []byte("1")))
		}
		if txn.buf.spilled == nil {
			t.Fatal("the writes stayed in memory")
		}
		if tc.restart {
			c.restart(0)
		}
		if tc.taken {
			if err := lock(mustBeginTxn(t, db, pessimistic), "a"); err != nil {
				t.Fatal(err)
			}
		} else if err := lockAs(mustBeginTxn(t, db, pessimistic), LockOptions{Shared: true}, "a"); err != nil {
			t.Fatal(err)
		}
		_, err := txn.Commit(context.Background())
		if tc.taken {
			wantConflict(t, err)
		} else if err != nil {
			t.Fatal(err)
		}
		db.waitIdle()
		if locks := c.locks(); len(locks) != 1 {
			t.Fatalf("locks %v, want the other's", locks)
		}
	}
}
