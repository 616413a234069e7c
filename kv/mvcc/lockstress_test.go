package mvcc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/tso"
)

// Goal: pessimistic locks exclude each other under concurrency: no increment under a lock is lost, deadlocks are broken
// by refusing one request, shared holders see no change, and in the end no lock, waiter or edge is left. Method:
// goroutines that lock keys in any order, wait, cancel, release, commit in one and two phases; counters are compared
// with the commits.
func TestLocksUnderStress(t *testing.T) {
	for i, packLocks := range []int{0, packAll, 0, packAll} {
		embedded := i < 2
		t.Run(fmt.Sprintf("embedded=%v, packLocks=%d", embedded, packLocks), func(t *testing.T) {
			st := &lockStress{world: newPackingWorld(t, embedded, nil, packLocks), commits: make([]atomic.Int64, 4)}
			var all sync.WaitGroup
			for g := range 8 {
				rng := rand.New(rand.NewPCG(uint64(g), 3))
				all.Go(func() {
					for range 150 {
						st.txn(rng)
					}
				})
			}
			all.Wait()
			st.check()
		})
	}
}

type lockStress struct {
	*world
	commits   []atomic.Int64
	deadlocks atomic.Int64
}

func (st *lockStress) key(i int) []byte { return []byte{'k', byte('0' + i)} }

// txn locks some keys one after the other, and usually increments those that it has locked exclusively.
func (st *lockStress) txn(rng *rand.Rand) {
	start := st.now()
	picked := rng.Perm(len(st.commits))[:1+rng.IntN(3)]
	primary := st.key(picked[0])
	locked := map[int]tso.Timestamp{}
	shared := map[int]bool{}
	var held [][]byte
	defer func() {
		slices.SortFunc(held, bytes.Compare)
		if held = slices.CompactFunc(held, bytes.Equal); len(held) > 0 {
			if err := st.ReleaseLocks(admitAll{}, held, start, tso.MaxTimestamp); err != nil {
				st.t.Error(err)
			}
		}
	}()
	for n, i := range picked {
		args := AcquireLocksRequest{Keys: [][]byte{st.key(i)}, Primary: primary, StartTS: start, ReadTS: start, TTLMillis: 1 << 40, Wait: time.Minute}
		args.Shared = n > 0 && rng.IntN(4) == 0
		ctx, cancel := context.WithCancel(context.Background())
		if rng.IntN(20) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
		}
		res, err := st.AcquireLocks(ctx, admitAll{}, &args)
		cancel()
		var deadlock *DeadlockError
		switch {
		case errors.As(err, &deadlock):
			st.deadlocks.Add(1)
			return
		case errors.Is(err, context.Canceled):
			return
		case err != nil:
			st.t.Error(err)
			return
		}
		held = append(held, args.Keys[0])
		locked[i], shared[i] = res.LockedAt[0], args.Shared
	}
	if rng.IntN(8) > 0 {
		st.increment(rng, start, primary, picked, locked, shared)
	}
}

func (st *lockStress) increment(rng *rand.Rand, start tso.Timestamp, primary []byte, picked []int, locked map[int]tso.Timestamp, shared map[int]bool) {
	args := PrewriteRequest{Primary: primary, StartTS: start, ReadTS: start, TTLMillis: 1 << 40, TryOnePC: rng.IntN(3) > 0}
	var keys [][]byte
	slices.Sort(picked)
	for _, i := range picked {
		if shared[i] {
			continue
		}
		// Nothing newer was committed when the key was granted, and nothing since.
		n := st.value(st.key(i), max(locked[i], st.now()), start)
		args.ReadTS = max(args.ReadTS, locked[i])
		args.Mutations = append(args.Mutations, Mutation{Op: OpPut, Key: st.key(i), Value: []byte(strconv.Itoa(n + 1)), LockedAt: locked[i]})
		keys = append(keys, st.key(i))
	}
	res, err := st.Prewrite(context.Background(), admitAll{}, &args)
	if err != nil {
		st.t.Error(err)
		return
	}
	if res.OnePCCommitTS == 0 {
		if !st.twoPhase(rng, start, primary, keys) {
			return
		}
	}
	for _, i := range picked {
		if !shared[i] {
			st.commits[i].Add(1)
		}
	}
}

// twoPhase commits or rolls back what is prewritten; it reports whether it committed.
func (st *lockStress) twoPhase(rng *rand.Rand, start tso.Timestamp, primary []byte, keys [][]byte) bool {
	ctx := context.Background()
	if rng.IntN(4) == 0 {
		if err := st.Rollback(ctx, admitAll{}, keys, start); err != nil {
			st.t.Error(err)
		}
		return false
	}
	commitTS := st.now()
	rest := slices.DeleteFunc(slices.Clone(keys), func(k []byte) bool { return bytes.Equal(k, primary) })
	_, err := st.Commit(ctx, admitAll{}, [][]byte{primary}, start, commitTS, true)
	if err == nil && len(rest) > 0 {
		_, err = st.Commit(ctx, admitAll{}, rest, start, commitTS, false)
	}
	if err != nil {
		st.t.Error(err)
	}
	return true
}

// value reads a counter that no other transaction may be changing.
func (st *lockStress) value(key []byte, at, own tso.Timestamp) int {
	o := ReadOptions{ReadTS: at}
	err := st.BeginRead(context.Background(), at)
	var value []byte
	if err == nil {
		value, err = st.Get(context.Background(), key, &o)
	}
	if err != nil {
		st.t.Errorf("read of %s under the lock of %d: %v", key, own, err)
	}
	n, _ := strconv.Atoi(string(value))
	return n
}

func (st *lockStress) check() {
	st.t.Helper()
	now := st.now()
	for i := range st.commits {
		if got, want := st.value(st.key(i), now, 0), int(st.commits[i].Load()); got != want {
			st.t.Errorf("key %d counts %d, committed were %d", i, got, want)
		}
	}
	if n, b, e := st.locks.n.Load(), st.locks.blocking.Load(), st.locks.graph.Len(); n != 0 || b != 0 || e != 0 || st.locks.tree.n != 0 {
		st.t.Errorf("left over: %d locks, %d blocking, %d in the tree, %d edges", n, b, st.locks.tree.n, e)
	}
	stats := st.WaitStats()
	st.t.Logf("%+v, %d refused for a deadlock", stats, st.deadlocks.Load())
	if stats.Waiting != 0 || stats.Waits == 0 || st.deadlocks.Load() == 0 {
		st.t.Errorf("%+v: the test has not tested much", stats)
	}
}
