package kvtest

import (
	"context"
	"errors"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var lockCases = []Case{
	{"AcquireLocks/as of the snapshot, or of what was committed since", "", func(e *env) {
		x := e.begin("a")
		ts := e.store(put("b", "1"))
		at := x.acquire("a", "b")
		equal(e, "a", at[0], x.start)
		equal(e, "b", at[1], ts)
		equal(e, "locks", e.lockedKeys(), "a b")
	}},
	{"AcquireLocks/again changes nothing", "", func(e *env) {
		x := e.begin("a")
		x.acquire("a")
		equal(e, "a", x.acquire("a")[0], x.start)
		equal(e, "locks", len(e.locks()), 1)
	}},
	{"AcquireLocks/existence", "", func(e *env) {
		e.store(put("a", "1"), put("b", "1"))
		e.store(del("b"))
		exist := func(r *kv.AcquireLocksRequest) { r.Existence = true }
		x := e.begin("a")
		res, err := x.tryAcquire(exist, "a", "b", "c")
		e.must(err)
		equal(e, "answers", len(res.Exists), 3)
		equal(e, "a", res.Exists[0], true)
		equal(e, "b", res.Exists[1], false)
		equal(e, "c", res.Exists[2], false)
		res, err = e.begin("d").tryAcquire(exist, "d")
		e.must(err)
		equal(e, "d", len(res.Exists) > 0 && res.Exists[0], false)
	}},
	{"AcquireLocks/held by another", "", func(e *env) {
		holder := e.begin("b")
		holder.acquire("b")
		x := e.begin("a")
		err := want[*mvcc.KeyLockedError](e, second(x.tryAcquire(nil, "a", "b")))
		equal(e, "key", string(err.Key), "b")
		equal(e, "holder", err.Lock.StartTS, holder.start)
		equal(e, "op", err.Lock.Op, mvcc.OpPessimistic)
		equal(e, "locks", e.lockedKeys(), "b")
	}},
	{"AcquireLocks/a prewritten lock is in the way", "", func(e *env) {
		holder := e.begin("a")
		holder.prewrite(put("a", "1"))
		want[*mvcc.KeyLockedError](e, second(e.begin("a").tryAcquire(nil, "a")))
		ts := holder.commit("a")
		equal(e, "locked as of", e.begin("a").acquire("a")[0] >= ts, true)
	}},
	{"AcquireLocks/skips what is locked", "", func(e *env) {
		e.begin("b").acquire("b")
		x := e.begin("a")
		res, err := x.tryAcquire(func(r *kv.AcquireLocksRequest) { r.SkipLocked = true }, "a", "b", "c")
		e.must(err)
		equal(e, "a", res.LockedAt[0] != 0, true)
		equal(e, "b", res.LockedAt[1], 0)
		equal(e, "c", res.LockedAt[2] != 0, true)
	}},
	{"AcquireLocks/does not skip what has expired", "", func(e *env) {
		e.begin("b").acquire("b")
		e.pass(ttl + 1)
		x := e.begin("a")
		err := want[*mvcc.KeyLockedError](e, second(x.tryAcquire(func(r *kv.AcquireLocksRequest) { r.SkipLocked = true }, "a", "b", "c")))
		equal(e, "key", string(err.Key), "b")
		equal(e, "locks", e.lockedKeys(), "b")
	}},
	{"AcquireLocks/shared locks keep writers out, not each other", "", func(e *env) {
		x, y, z := e.begin("a"), e.begin("a"), e.begin("a")
		for _, sharer := range []*txn{x, y} {
			_, err := sharer.tryAcquire(shared, "a")
			e.must(err)
		}
		equal(e, "locks", len(e.locks()), 2)
		want[*mvcc.KeyLockedError](e, second(z.tryAcquire(nil, "a")))
		want[*mvcc.KeyLockedError](e, second(z.tryPrewrite(nil, put("a", "1"))))
		x.release(tso.MaxTimestamp, "a")
		want[*mvcc.KeyLockedError](e, second(z.tryAcquire(nil, "a")))
		y.release(tso.MaxTimestamp, "a")
		z.acquire("a")
		want[*mvcc.KeyLockedError](e, second(x.tryAcquire(shared, "a")))
	}},
	{"AcquireLocks/a shared lock becomes exclusive once it is alone", "", func(e *env) {
		x, y := e.begin("a"), e.begin("a")
		for _, sharer := range []*txn{x, y} {
			_, err := sharer.tryAcquire(shared, "a")
			e.must(err)
		}
		want[*mvcc.KeyLockedError](e, second(x.tryAcquire(nil, "a")))
		y.release(tso.MaxTimestamp, "a")
		x.acquire("a")
		want[*mvcc.KeyLockedError](e, second(e.begin("a").tryAcquire(shared, "a")))
	}},
	{"AcquireLocks/after the transaction's end", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		ts := x.commit("a")
		equal(e, "commit_ts", want[*mvcc.AlreadyCommittedError](e, second(x.tryAcquire(nil, "a"))).CommitTS, ts)
		y := e.begin("a")
		e.must(y.tryRollback("a"))
		want[*mvcc.RolledBackError](e, second(y.tryAcquire(nil, "a")))
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"AcquireLocks/invalid requests and stale routes", "", func(e *env) {
		x := e.begin("a")
		want[*mvcc.InvalidRequestError](e, second(x.tryAcquire(nil)))
		want[*mvcc.InvalidRequestError](e, second(x.tryAcquire(nil, "b", "a")))
		want[*kv.StaleRangeError](e, second(x.tryAcquire(func(r *kv.AcquireLocksRequest) { r.Ranges[0].Epoch++ }, "a")))
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"Prewrite/replaces the pessimistic lock of its transaction", "", func(e *env) {
		x := e.begin("a")
		ts := e.store(put("a", "0"))
		equal(e, "locked as of", x.acquire("a")[0], ts)
		x.prewrite(locked(put("a", "1"), ts))
		equal(e, "op", e.locks()[0].Lock.Op, mvcc.OpPut)
		x.commit("a")
		equal(e, "a", e.get("a", e.now()), "1")
	}},
	{"Prewrite/a pessimistic lock is in others' way", "", func(e *env) {
		e.begin("a").acquire("a")
		want[*mvcc.KeyLockedError](e, second(e.begin("a").tryPrewrite(nil, put("a", "1"))))
	}},
	{"Prewrite/a lost lock is amended where nothing has changed", "", func(e *env) {
		x := e.begin("a")
		at := x.acquire("a")[0]
		x.release(tso.MaxTimestamp-1, "a")
		x.prewrite(locked(put("a", "1"), at))
		x.commit("a")
	}},
	{"Prewrite/a lost lock behind which others have committed", "", func(e *env) {
		x := e.begin("a")
		at := x.acquire("a")[0]
		x.release(tso.MaxTimestamp-1, "a")
		e.store(put("a", "0"))
		want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(nil, locked(put("a", "1"), at))))
	}},
	{"Prewrite/a lost lock that another has now", "", func(e *env) {
		x := e.begin("a")
		at := x.acquire("a")[0]
		x.release(tso.MaxTimestamp-1, "a")
		e.begin("a").acquire("a")
		err := want[*mvcc.LockLostError](e, second(x.tryPrewrite(nil, locked(put("a", "1"), at))))
		equal(e, "key", string(err.Key), "a")
		equal(e, "locked as of", err.LockedAt, at)
	}},
	{"Prewrite/checks a shared lock and leaves it", "", func(e *env) {
		x, y := e.begin("p"), e.begin("p")
		for _, sharer := range []*txn{x, y} {
			_, err := sharer.tryAcquire(shared, "a")
			e.must(err)
		}
		x.prewrite(mvcc.Mutation{Op: mvcc.OpCheckShared, Key: []byte("a"), LockedAt: x.start}, put("p", "1"))
		equal(e, "locks", e.lockedKeys(), "a a p")
		y.release(tso.MaxTimestamp-1, "a")
		x.commit("p")
		x.release(tso.MaxTimestamp, "a")
		e.store(put("a", "1"))
		want[*mvcc.WriteConflictError](e, second(y.tryPrewrite(nil, mvcc.Mutation{Op: mvcc.OpCheckShared, Key: []byte("a"), LockedAt: y.start})))
	}},
	{"Prewrite/checks a shared lock that was not acquired", "", func(e *env) {
		check := func(x *txn) mvcc.Mutation {
			return mvcc.Mutation{Op: mvcc.OpCheckShared, Key: []byte("a"), LockedAt: x.start}
		}
		e.store(put("a", "1"))
		x := e.begin("p")
		sharer := e.begin("a")
		_, err := sharer.tryAcquire(shared, "a")
		e.must(err)
		x.prewrite(check(x), put("p", "1"))
		x.commit("p")
		sharer.release(tso.MaxTimestamp, "a")
		x = e.begin("p")
		holder := e.begin("a")
		at := holder.acquire("a")[0]
		want[*mvcc.LockLostError](e, second(x.tryPrewrite(nil, check(x), put("p", "2"))))
		holder.prewrite(mvcc.Mutation{Op: mvcc.OpLock, Key: []byte("a"), LockedAt: at})
		holder.commit("a")
		want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(nil, check(x), put("p", "2"))))
	}},
	{"ReleaseLocks/drops pessimistic locks, once or twice", "", func(e *env) {
		x := e.begin("a")
		x.acquire("a", "b")
		x.release(tso.MaxTimestamp, "a")
		x.release(tso.MaxTimestamp, "a")
		equal(e, "locks", e.lockedKeys(), "b")
		e.begin("a").acquire("a")
	}},
	{"ReleaseLocks/locks granted later stay", "", func(e *env) {
		x := e.begin("a")
		e.store(put("a", "1"))
		at := x.acquire("a")[0]
		x.release(at-1, "a")
		equal(e, "locks", e.lockedKeys(), "a")
		x.release(at, "a")
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"ReleaseLocks/leaves prewritten and others' locks alone", "", func(e *env) {
		x, y := e.begin("a"), e.begin("b")
		x.prewrite(put("a", "1"))
		y.acquire("b")
		x.release(tso.MaxTimestamp, "a", "b")
		equal(e, "locks", e.lockedKeys(), "a b")
	}},
	{"ReleaseLocks/invalid requests and stale routes", "", func(e *env) {
		refs, shard := e.on("a")
		want[*mvcc.InvalidRequestError](e, shard.ReleaseLocks(e.ctx, &kv.ReleaseLocksRequest{Ranges: refs, StartTS: e.now()}))
		refs[0].Epoch++
		want[*kv.StaleRangeError](e, shard.ReleaseLocks(e.ctx, &kv.ReleaseLocksRequest{Ranges: refs, Keys: bytesOf([]string{"a"}), StartTS: e.now()}))
	}},
	{"Locks/an expired holder is told of, and its lock can be removed", "", func(e *env) {
		x := e.begin("a")
		x.acquire("a")
		e.pass(2 * ttl)
		y := e.begin("a")
		err := want[*mvcc.KeyLockedError](e, second(y.tryAcquire(func(r *kv.AcquireLocksRequest) { r.Wait = caseTimeout }, "a")))
		equal(e, "holder", err.Lock.StartTS, x.start)
		x.release(err.Lock.ForUpdateTS, "a")
		y.acquire("a")
	}},
}

var queueCases = []Case{
	{"Queue/first come, first served", "LockQueue", func(e *env) {
		holder, first, then := e.begin("a"), e.begin("a"), e.begin("a")
		holder.acquire("a")
		gotFirst := first.queued(nil, "a")
		gotThen := then.queued(nil, "a")
		holder.release(tso.MaxTimestamp, "a")
		e.granted(gotFirst)
		want[*mvcc.KeyLockedError](e, second(e.begin("a").tryAcquire(nil, "a")))
		first.release(tso.MaxTimestamp, "a")
		e.granted(gotThen)
	}},
	{"Queue/the waiter is told what the holder has committed", "LockQueue", func(e *env) {
		holder, waiter := e.begin("a"), e.begin("a")
		at := holder.acquire("a")[0]
		got := waiter.queued(nil, "a")
		holder.prewrite(locked(put("a", "1"), at))
		ts := holder.commit("a")
		equal(e, "locked as of", e.granted(got), ts)
	}},
	{"Queue/a rollback lets the waiter in", "LockQueue", func(e *env) {
		holder, waiter := e.begin("a"), e.begin("a")
		holder.acquire("a")
		got := waiter.queued(nil, "a")
		e.must(holder.tryRollback("a"))
		equal(e, "locked as of", e.granted(got), waiter.start)
	}},
	{"Queue/the wait ends in time", "LockQueue", func(e *env) {
		holder := e.begin("a")
		holder.acquire("a")
		err := want[*mvcc.KeyLockedError](e, second(e.begin("a").tryAcquire(func(r *kv.AcquireLocksRequest) { r.Wait = 20 * time.Millisecond }, "a")))
		equal(e, "holder", err.Lock.StartTS, holder.start)
	}},
	{"Queue/the wait ends with its context", "LockQueue", func(e *env) {
		e.begin("a").acquire("a")
		waiter := e.begin("a")
		refs, shard := e.on("a")
		ctx, cancel := context.WithTimeout(e.ctx, 20*time.Millisecond)
		defer cancel()
		_, err := shard.AcquireLocks(ctx, &kv.AcquireLocksRequest{Ranges: refs, Keys: bytesOf([]string{"a"}), Primary: []byte("a"),
			StartTS: waiter.start, TTLMillis: ttl, Wait: caseTimeout})
		equal(e, "the context's error", errors.Is(err, context.DeadlineExceeded), true)
	}},
	{"Queue/deadlock", "LockQueue", func(e *env) {
		x, y := e.begin("a"), e.begin("b")
		x.acquire("a")
		y.acquire("b")
		got := x.queued(nil, "b")
		err := want[*mvcc.DeadlockError](e, second(y.tryAcquire(func(r *kv.AcquireLocksRequest) { r.Wait = caseTimeout }, "a")))
		equal(e, "waiter", err.Waiter, y.start)
		equal(e, "holder", err.Holder, x.start)
		y.release(tso.MaxTimestamp, "b")
		e.granted(got)
	}},
	{"Queue/sharers do not overtake a waiting writer", "LockQueue", func(e *env) {
		x, writer, late := e.begin("a"), e.begin("a"), e.begin("a")
		_, err := x.tryAcquire(shared, "a")
		e.must(err)
		got := writer.queued(nil, "a")
		want[*mvcc.KeyLockedError](e, second(late.tryAcquire(shared, "a")))
		x.release(tso.MaxTimestamp, "a")
		e.granted(got)
	}},
	{"Queue/a split wakes the waiter", "LockQueue", func(e *env) {
		if !e.has("Split") {
			e.Skip("the engine does not split on request")
		}
		e.begin("a").acquire("a")
		got := e.begin("a").queued(nil, "a")
		e.must(e.engine.Split(e.ctx, []byte("m")))
		want[*kv.StaleRangeError](e, e.answer(got).err)
	}},
	{"WaitForRelease/no lock, or another's", "WaitForRelease", func(e *env) {
		x := e.begin("a")
		_, shard := e.at("a")
		e.must(shard.WaitForRelease(e.ctx, []byte("a"), x.start))
		x.prewrite(put("a", "1"))
		e.must(shard.WaitForRelease(e.ctx, []byte("a"), e.now()))
	}},
	{"WaitForRelease/until the lock has gone", "WaitForRelease", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		_, shard := e.at("a")
		done := make(chan error, 1)
		go func() { done <- shard.WaitForRelease(e.ctx, []byte("a"), x.start) }()
		select {
		case err := <-done:
			e.Fatalf("it did not wait: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
		x.commit("a")
		e.must(<-done)
	}},
	{"WaitForRelease/until its context ends", "WaitForRelease", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		_, shard := e.at("a")
		ctx, cancel := context.WithTimeout(e.ctx, 5*time.Millisecond)
		defer cancel()
		equal(e, "the context's error", errors.Is(shard.WaitForRelease(ctx, []byte("a"), x.start), context.DeadlineExceeded), true)
	}},
}
