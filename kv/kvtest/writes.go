package kvtest

import (
	"fmt"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

var prewriteCases = []Case{
	{"Prewrite/locks every key", "", func(e *env) {
		x := e.begin("a")
		res := x.prewrite(put("a", "1"), del("b"), lockOnly("c"))
		equal(e, "one-phase commit_ts", res.OnePCCommitTS, 0)
		equal(e, "async", res.Async, false)
		equal(e, "minimum above start_ts", res.MinCommitTS > x.start, true)
		equal(e, "locks", e.lockedKeys(), "a b c")
	}},
	{"Prewrite/again changes nothing", "", func(e *env) {
		x := e.begin("a")
		first := x.prewrite(put("a", "1"), put("b", "1"))
		e.get("c", e.now())
		equal(e, "minimum", x.prewrite(put("a", "1"), put("b", "1")).MinCommitTS, first.MinCommitTS)
		equal(e, "locks", e.lockedKeys(), "a b")
	}},
	{"Prewrite/the rest of a request of which a part came before", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		x.prewrite(put("a", "1"), put("b", "1"))
		x.commit("a", "b")
		equal(e, "rows", e.page("a", "z", nil), "a=1 b=1")
	}},
	{"Prewrite/write conflict", "", func(e *env) {
		x := e.begin("a")
		other := e.begin("a")
		other.prewrite(put("a", "1"))
		ts := other.commit()
		err := want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(nil, put("a", "2"))))
		equal(e, "key", string(err.Key), "a")
		equal(e, "start_ts", err.StartTS, x.start)
		equal(e, "conflicting start_ts", err.ConflictingStartTS, other.start)
		equal(e, "conflicting commit_ts", err.ConflictingCommitTS, ts)
		equal(e, "cause", err.Cause, mvcc.CauseWrite)
	}},
	{"Prewrite/a lock that was committed conflicts like a write", "", func(e *env) {
		x := e.begin("a")
		e.store(lockOnly("a"))
		want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(nil, put("a", "2"))))
	}},
	{"Prewrite/commits up to the snapshot do not conflict", "", func(e *env) {
		x := e.begin("a")
		e.store(put("a", "1"))
		_, err := x.tryPrewrite(func(r *kv.PrewriteRequest) { r.ReadTS = e.now() }, put("a", "2"))
		e.must(err)
	}},
	{"Prewrite/key exists", "", func(e *env) {
		e.store(put("b", "1"))
		x := e.begin("a")
		err := want[*mvcc.KeyExistsError](e, second(x.tryPrewrite(nil, put("a", "2"), insert("b", "2"))))
		equal(e, "key", string(err.Key), "b")
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"Prewrite/a deleted key does not exist", "", func(e *env) {
		e.store(put("a", "1"))
		e.store(del("a"))
		x := e.begin("a")
		x.prewrite(insert("a", "2"))
		x.commit("a")
		equal(e, "a", e.get("a", e.now()), "2")
	}},
	{"Prewrite/a conflict is told before an existing key", "", func(e *env) {
		x := e.begin("a")
		e.store(put("a", "1"))
		want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(nil, insert("a", "2"))))
	}},
	{"Prewrite/check of absence leaves no lock", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), absentKey("b"))
		equal(e, "locks", e.lockedKeys(), "a")
		e.store(put("c", "1"))
		want[*mvcc.KeyExistsError](e, second(e.begin("c").tryPrewrite(nil, absentKey("c"))))
	}},
	{"Prewrite/locked by another", "", func(e *env) {
		holder := e.begin("b")
		holder.prewrite(put("b", "1"))
		x := e.begin("a")
		err := want[*mvcc.KeyLockedError](e, second(x.tryPrewrite(nil, put("a", "2"), put("b", "2"), put("c", "2"))))
		equal(e, "key", string(err.Key), "b")
		equal(e, "holder", err.Lock.StartTS, holder.start)
		equal(e, "locks", e.lockedKeys(), "b")
	}},
	{"Prewrite/invalid requests", "", func(e *env) {
		x := e.begin("a")
		for _, ms := range [][]mvcc.Mutation{{}, {put("b", "1"), put("a", "1")}, {put("a", "1"), put("a", "2")},
			{{Op: 0, Key: []byte("a")}}, {{Op: mvcc.OpPessimistic, Key: []byte("a")}}, {{Op: 99, Key: []byte("a")}}} {
			want[*mvcc.InvalidRequestError](e, second(x.tryPrewrite(nil, ms...)))
		}
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"Prewrite/after its rollback", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		e.must(x.tryRollback("a"))
		err := want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("a", "1"))))
		equal(e, "start_ts", err.StartTS, x.start)
	}},
	{"Prewrite/after its commit", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		ts := x.commit()
		err := want[*mvcc.AlreadyCommittedError](e, second(x.tryPrewrite(nil, put("a", "1"))))
		equal(e, "commit_ts", err.CommitTS, ts)
	}},
	{"Prewrite/stale route", "", func(e *env) {
		stale := func(r *kv.PrewriteRequest) { r.Ranges[0].Epoch++ }
		want[*kv.StaleRangeError](e, second(e.begin("a").tryPrewrite(stale, put("a", "1"))))
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"Prewrite/a start_ts that was not issued", "Network", func(e *env) {
		x := e.begin("a")
		x.start = e.future()
		want[*mvcc.TSInFutureError](e, second(x.tryPrewrite(nil, put("a", "1"))))
	}},
	{"Prewrite/the request stays the caller's", "", func(e *env) {
		x := e.begin("a")
		x.e.recorder.off = true // The request changes after the answer.
		ms := []mvcc.Mutation{put("a", "1"), put("b", "2")}
		primary := []byte("a")
		refs, shard := e.on("a", "b")
		_, err := shard.Prewrite(e.ctx, &kv.PrewriteRequest{Ranges: refs, Mutations: ms, Primary: primary, StartTS: x.start, TTLMillis: ttl})
		e.must(err)
		for _, b := range [][]byte{ms[0].Key, ms[0].Value, ms[1].Key, ms[1].Value, primary} {
			b[0] = 'x'
		}
		x.commit("a", "b")
		equal(e, "rows", e.page("a", "z", nil), "a=1 b=2")
	}},
	{"Prewrite/many keys", "", func(e *env) {
		var ms []mvcc.Mutation
		var keys []string
		for i := range 3000 {
			keys = append(keys, fmt.Sprintf("k%04d", i))
			ms = append(ms, put(keys[i], fmt.Sprint(i)))
		}
		x := e.begin("k0000")
		x.prewrite(ms...)
		x.commit(keys...)
		equal(e, "last", e.get("k2999", e.now()), "2999")
		equal(e, "locks", e.lockedKeys(), "")
	}},
}

var onePhaseCases = []Case{
	{"OnePhase/commits at once", "OnePhase", func(e *env) {
		e.store(put("b", "0"))
		x := e.begin("a")
		res, err := x.tryPrewrite(onePhase, put("a", "1"), del("b"), lockOnly("c"))
		e.must(err)
		equal(e, "commit_ts above start_ts", res.OnePCCommitTS > x.start, true)
		equal(e, "locks", e.lockedKeys(), "")
		equal(e, "rows", e.page("a", "z", nil), "a=1")
		equal(e, "before", e.get("a", res.OnePCCommitTS-1), "-")
		equal(e, "at", e.get("a", res.OnePCCommitTS), "1")
	}},
	{"OnePhase/above every read", "OnePhase", func(e *env) {
		x := e.begin("a")
		read := e.now()
		e.get("a", read)
		res, err := x.tryPrewrite(onePhase, put("a", "1"))
		e.must(err)
		equal(e, "above the read", res.OnePCCommitTS > read, true)
	}},
	{"OnePhase/above the floor", "OnePhase", func(e *env) {
		x := e.begin("a")
		floor := e.now()
		res, err := x.tryPrewrite(func(r *kv.PrewriteRequest) { r.TryOnePC, r.FloorTS = true, floor }, put("a", "1"))
		e.must(err)
		equal(e, "above the floor", res.OnePCCommitTS > floor, true)
	}},
	{"OnePhase/below what is issued later", "OnePhase", func(e *env) {
		res, err := e.begin("a").tryPrewrite(onePhase, put("a", "1"))
		e.must(err)
		equal(e, "read at a later timestamp", e.get("a", e.now()), "1")
		equal(e, "below", res.OnePCCommitTS < e.now(), true)
	}},
	{"OnePhase/a duplicate is told the commit_ts", "OnePhase", func(e *env) {
		x := e.begin("a")
		res, err := x.tryPrewrite(onePhase, put("a", "1"))
		e.must(err)
		again := want[*mvcc.AlreadyCommittedError](e, second(x.tryPrewrite(onePhase, put("a", "1"))))
		equal(e, "commit_ts", again.CommitTS, res.OnePCCommitTS)
	}},
	{"OnePhase/goes on in two phases above its bound", "OnePhase", func(e *env) {
		x := e.begin("a")
		bound := e.now()
		e.get("a", e.now())
		res, err := x.tryPrewrite(func(r *kv.PrewriteRequest) { r.TryOnePC, r.MaxCommitTS = true, bound }, put("a", "1"))
		e.must(err)
		equal(e, "commit_ts", res.OnePCCommitTS, 0)
		equal(e, "locks", e.lockedKeys(), "a")
	}},
	{"OnePhase/conflicts as two phases do", "OnePhase", func(e *env) {
		x := e.begin("a")
		e.store(put("a", "1"))
		want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(onePhase, put("a", "2"))))
		want[*mvcc.KeyExistsError](e, second(e.begin("a").tryPrewrite(onePhase, insert("a", "2"))))
		e.begin("b").prewrite(put("b", "1"))
		want[*mvcc.KeyLockedError](e, second(e.begin("a").tryPrewrite(onePhase, put("a", "2"), put("b", "2"))))
	}},
	{"OnePhase/after its rollback", "OnePhase", func(e *env) {
		x := e.begin("a")
		e.must(x.tryRollback("a"))
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(onePhase, put("a", "1"))))
	}},
	{"OnePhase/validates reads", "OnePhase", func(e *env) {
		reads := func(r *kv.PrewriteRequest) { r.TryOnePC, r.Reads = true, []kv.Span{point("r"), span("s", "t")} }
		x := e.begin("a")
		_, err := x.tryPrewrite(reads, put("a", "1"))
		e.must(err)
		for _, changed := range []string{"r", "s1"} {
			y := e.begin("a")
			other := e.begin(changed)
			other.prewrite(put(changed, "1"))
			ts := other.commit()
			conflict := want[*mvcc.RefreshConflictError](e, second(y.tryPrewrite(reads, put("a", "2"))))
			equal(e, "key", string(conflict.Key), changed)
			equal(e, "start_ts", conflict.StartTS, other.start)
			equal(e, "commit_ts", conflict.CommitTS, ts)
		}
		equal(e, "a", e.get("a", e.now()), "1")
	}},
	{"CommitLarge/commits every key", "LargeCommit", func(e *env) {
		var set writeSet
		for i := range 500 {
			set = append(set, put(fmt.Sprintf("k%03d", i), fmt.Sprint(i)))
		}
		x := e.begin("k000")
		res, err := x.commitLarge(set, 0)
		e.must(err)
		equal(e, "commit_ts above start_ts", res.CommitTS > x.start, true)
		equal(e, "before", e.get("k250", res.CommitTS-1), "-")
		equal(e, "at", e.get("k250", res.CommitTS), "250")
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"CommitLarge/all or nothing", "LargeCommit", func(e *env) {
		x := e.begin("a")
		e.store(put("b", "1"))
		want[*mvcc.WriteConflictError](e, second(x.commitLarge(writeSet{put("a", "2"), put("b", "2")}, 0)))
		equal(e, "a", e.get("a", e.now()), "-")
		y := e.begin("a")
		bound := e.now()
		e.get("a", e.now())
		res, err := y.commitLarge(writeSet{put("a", "3")}, bound)
		e.must(err)
		equal(e, "commit_ts above the bound", res.CommitTS, 0)
		equal(e, "a", e.get("a", e.now()), "-")
	}},
}

func (x *txn) commitLarge(set writeSet, bound tso.Timestamp) (kv.CommitLargeResponse, error) {
	x.e.Helper()
	refs, shard := x.e.on(keysOf(set)...)
	return shard.CommitLarge(x.e.ctx, &kv.CommitLargeRequest{Ranges: refs, Set: set, Primary: []byte(x.primary), StartTS: x.start, TTLMillis: ttl, MaxCommitTS: bound})
}

func async(secondaries ...string) func(*kv.PrewriteRequest) {
	return func(r *kv.PrewriteRequest) { r.Async, r.Secondaries = true, bytesOf(secondaries) }
}

var asyncCases = []Case{
	{"Async/locks carry the final minimum and the secondaries", "Async", func(e *env) {
		x := e.begin("a")
		res, err := x.tryPrewrite(async("b"), put("a", "1"), put("b", "1"))
		e.must(err)
		equal(e, "async", res.Async, true)
		locks := e.locks()
		equal(e, "locks", len(locks), 2)
		for _, l := range locks {
			equal(e, "async", l.Lock.Async, true)
			equal(e, "minimum", l.Lock.MinCommitTS, res.MinCommitTS)
		}
		equal(e, "secondaries of the primary", fmt.Sprintf("%s", locks[0].Lock.Secondaries), "[b]")
		e.must(x.tryCommit(res.MinCommitTS, true, "a"))
		e.must(x.tryCommit(res.MinCommitTS, false, "b"))
		equal(e, "at the minimum", e.get("a", res.MinCommitTS), "1")
	}},
	{"Async/above reads and the floor", "Async", func(e *env) {
		x := e.begin("a")
		read := e.now()
		e.get("a", read)
		floor := e.now()
		res, err := x.tryPrewrite(func(r *kv.PrewriteRequest) { r.Async, r.FloorTS = true, floor }, put("a", "1"))
		e.must(err)
		equal(e, "above", res.MinCommitTS > max(read, floor), true)
	}},
	{"Async/again changes nothing", "Async", func(e *env) {
		x := e.begin("a")
		first, err := x.tryPrewrite(async(), put("a", "1"))
		e.must(err)
		e.get("b", e.now())
		again, err := x.tryPrewrite(async(), put("a", "1"))
		e.must(err)
		equal(e, "minimum", again.MinCommitTS, first.MinCommitTS)
		equal(e, "async", again.Async, true)
	}},
	{"Async/plain locks above its bound", "Async", func(e *env) {
		x := e.begin("a")
		bound := e.now()
		e.get("a", e.now())
		res, err := x.tryPrewrite(func(r *kv.PrewriteRequest) { r.Async, r.MaxCommitTS = true, bound }, put("a", "1"))
		e.must(err)
		equal(e, "async", res.Async, false)
		equal(e, "lock", e.locks()[0].Lock.Async, false)
	}},
	{"Async/the primary is neither pushed nor expired", "Async", func(e *env) {
		x := e.begin("a")
		res, err := x.tryPrewrite(async("b"), put("a", "1"))
		e.must(err)
		e.pass(2 * ttl)
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.CallerTS = e.now(); r.NowTS = e.now() })
		e.must(err)
		equal(e, "alive", st.Lock != nil, true)
		equal(e, "minimum", st.Lock.MinCommitTS, res.MinCommitTS)
		st, err = x.status(func(r *kv.CheckTxnStatusRequest) { r.ForceSync = true })
		e.must(err)
		equal(e, "rolled back where a plain lock was met", st.RolledBack, true)
	}},
	{"CheckSecondaryLocks/all are locked", "Async", func(e *env) {
		x := e.begin("a")
		_, err := x.tryPrewrite(async("b", "c"), put("a", "1"), put("b", "1"), put("c", "1"))
		e.must(err)
		st, err := x.secondaries(nil, "b", "c")
		e.must(err)
		equal(e, "locks", len(st.Locks), 2)
		equal(e, "decided", st.CommitTS != 0 || st.RolledBack, false)
	}},
	{"CheckSecondaryLocks/one is committed", "Async", func(e *env) {
		x := e.begin("a")
		res, err := x.tryPrewrite(async("b", "c"), put("a", "1"), put("b", "1"), put("c", "1"))
		e.must(err)
		e.must(x.tryCommit(res.MinCommitTS, false, "b"))
		st, err := x.secondaries(nil, "b", "c")
		e.must(err)
		equal(e, "commit_ts", st.CommitTS, res.MinCommitTS)
	}},
	{"CheckSecondaryLocks/one was rolled back", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		e.must(x.tryRollback("b"))
		st, err := x.secondaries(nil, "b")
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
	}},
	{"CheckSecondaryLocks/a missing one is not decided by who may not", "", func(e *env) {
		x := e.begin("a")
		st, err := x.secondaries(nil, "b")
		e.must(err)
		equal(e, "decided", st.CommitTS != 0 || st.RolledBack || len(st.Locks) > 0, false)
		x.prewrite(put("b", "1"))
	}},
	{"CheckSecondaryLocks/a missing one is decided by the owner", "", func(e *env) {
		x := e.begin("a")
		st, err := x.secondaries(func(r *kv.CheckSecondaryLocksRequest) { r.Owner = true }, "b")
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("b", "1"))))
	}},
	{"CheckSecondaryLocks/a missing one is decided once the TTL has run out", "Async", func(e *env) {
		x := e.begin("a")
		_, err := x.tryPrewrite(async("b", "c"), put("a", "1"), put("b", "1"))
		e.must(err)
		asOf := func(ts tso.Timestamp) func(*kv.CheckSecondaryLocksRequest) {
			return func(r *kv.CheckSecondaryLocksRequest) { r.NowTS = ts }
		}
		st, err := x.secondaries(asOf(e.now()), "b", "c")
		e.must(err)
		equal(e, "rolled back while a lock lives", st.RolledBack, false)
		e.pass(2 * ttl)
		st, err = x.secondaries(asOf(e.now()), "b", "c")
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(async(), put("c", "1"))))
	}},
	{"CheckSecondaryLocks/a missing one is decided once the process has ended", "Async", func(e *env) {
		ended := func(r *kv.CheckSecondaryLocksRequest) { r.ProcessEnded = true }
		x, y := e.begin("a"), e.begin("d")
		_, err := x.tryPrewrite(async("b", "c"), put("a", "1"), put("b", "1"))
		e.must(err)
		st, err := x.secondaries(ended, "b", "c")
		e.must(err)
		equal(e, "rolled back although a lock lives", st.RolledBack, true)
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(async(), put("c", "1"))))
		_, err = y.tryPrewrite(async("e"), put("d", "1"), put("e", "1"))
		e.must(err)
		st, err = y.secondaries(ended, "e")
		e.must(err)
		equal(e, "locks, if none is missing", len(st.Locks), 1)
		equal(e, "decided", st.CommitTS != 0 || st.RolledBack, false)
	}},
	{"CheckSecondaryLocks/invalid requests and stale routes", "", func(e *env) {
		x := e.begin("a")
		want[*mvcc.InvalidRequestError](e, second(x.secondaries(nil)))
		want[*mvcc.InvalidRequestError](e, second(x.secondaries(nil, "b", "a")))
		want[*kv.StaleRangeError](e, second(x.secondaries(func(r *kv.CheckSecondaryLocksRequest) { r.Ranges[0].Epoch++ }, "b")))
	}},
}

var commitCases = []Case{
	{"Commit/makes the locks versions", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		ts := x.commit("a", "b")
		equal(e, "rows", e.page("a", "z", nil), "a=1 b=1")
		equal(e, "before", e.get("b", ts-1), "-")
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"Commit/again changes nothing", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		ts := x.commit("a", "b")
		e.must(x.tryCommit(ts, true, "a"))
		e.must(x.tryCommit(ts, false, "b"))
		equal(e, "rows", e.page("a", "z", nil), "a=1 b=1")
	}},
	{"Commit/neither lock nor record", "", func(e *env) {
		x := e.begin("a")
		err := want[*mvcc.LockNotFoundError](e, x.tryCommit(e.now(), true, "a"))
		equal(e, "key", string(err.Key), "a")
		equal(e, "start_ts", err.StartTS, x.start)
	}},
	{"Commit/after a rollback", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		e.must(x.tryRollback("a"))
		want[*mvcc.RolledBackError](e, x.tryCommit(e.now(), true, "a"))
	}},
	{"Commit/a pushed primary", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		early := e.now()
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.CallerTS = e.now(); r.NowTS = e.now() })
		e.must(err)
		expired := want[*mvcc.CommitTSExpiredError](e, x.tryCommit(early, true, "a"))
		equal(e, "minimum", expired.MinCommitTS, st.Lock.MinCommitTS)
		x.commit("a")
	}},
	{"Commit/a late attempt below the commit_ts", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		early := e.now()
		_, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.CallerTS = e.now(); r.NowTS = e.now() })
		e.must(err)
		ts := x.commit("a")
		committed := want[*mvcc.AlreadyCommittedError](e, x.tryCommit(early, true, "a"))
		equal(e, "commit_ts", committed.CommitTS, ts)
	}},
	{"Commit/not the primary", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		err := want[*mvcc.PrimaryMismatchError](e, x.tryCommit(e.now(), true, "b"))
		equal(e, "primary", string(err.Lock.Primary), "a")
	}},
	{"Commit/all keys or none", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		want[*mvcc.LockNotFoundError](e, x.tryCommit(e.now(), false, "b", "c"))
		equal(e, "locks", e.lockedKeys(), "a b")
	}},
	{"Commit/invalid requests and stale routes", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		want[*mvcc.InvalidRequestError](e, x.tryCommit(e.now(), false))
		want[*mvcc.InvalidRequestError](e, x.tryCommit(e.now(), false, "b", "a"))
		want[*mvcc.InvalidRequestError](e, x.tryCommit(x.start, true, "a"))
		refs, shard := e.on("a")
		refs[0].Epoch++
		want[*kv.StaleRangeError](e, shard.Commit(e.ctx, &kv.CommitRequest{Ranges: refs, Keys: bytesOf([]string{"a"}), StartTS: x.start, CommitTS: e.now(), Primary: true}))
		equal(e, "locks", e.lockedKeys(), "a b")
	}},
	{"Commit/a commit_ts that was not issued", "Network", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		want[*mvcc.TSInFutureError](e, x.tryCommit(e.future(), true, "a"))
	}},
	{"Rollback/removes the locks", "", func(e *env) {
		e.store(put("a", "0"))
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		e.must(x.tryRollback("a", "b"))
		equal(e, "rows", e.page("a", "z", nil), "a=0")
		equal(e, "locks", e.lockedKeys(), "")
	}},
	{"Rollback/again, and without a lock", "", func(e *env) {
		x := e.begin("a")
		e.must(x.tryRollback("a"))
		e.must(x.tryRollback("a"))
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("a", "1"))))
		e.store(put("a", "2"))
	}},
	{"Rollback/too late", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		ts := x.commit("a")
		err := want[*mvcc.AlreadyCommittedError](e, x.tryRollback("a"))
		equal(e, "commit_ts", err.CommitTS, ts)
	}},
	{"Rollback/leaves others alone", "", func(e *env) {
		holder := e.begin("a")
		holder.prewrite(put("a", "1"))
		e.must(e.begin("a").tryRollback("a"))
		holder.commit("a")
		equal(e, "a", e.get("a", e.now()), "1")
	}},
	{"Rollback/one transaction's record outlasts another's", "", func(e *env) {
		x, y := e.begin("a"), e.begin("a")
		e.must(x.tryRollback("a"))
		e.must(y.tryRollback("a"))
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("a", "1"))))
		want[*mvcc.RolledBackError](e, second(y.tryPrewrite(nil, put("a", "1"))))
	}},
	{"Rollback/invalid requests and stale routes", "", func(e *env) {
		x := e.begin("a")
		want[*mvcc.InvalidRequestError](e, x.tryRollback())
		want[*mvcc.InvalidRequestError](e, x.tryRollback("b", "a"))
		refs, shard := e.on("a")
		refs[0].Epoch++
		want[*kv.StaleRangeError](e, shard.Rollback(e.ctx, &kv.RollbackRequest{Ranges: refs, Keys: bytesOf([]string{"a"}), StartTS: x.start}))
	}},
	{"ResolveLock/forward", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"), del("c"))
		ts := x.commit("a")
		e.must(x.resolve(ts, "b", "c"))
		e.must(x.resolve(ts, "b", "c"))
		equal(e, "rows", e.page("a", "z", nil), "a=1 b=1")
		equal(e, "b before", e.get("b", ts-1), "-")
	}},
	{"ResolveLock/back", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		e.must(x.tryRollback("a"))
		e.must(x.resolve(0, "b"))
		equal(e, "locks", e.lockedKeys(), "")
		equal(e, "rows", e.page("a", "z", nil), "")
	}},
	{"ResolveLock/leaves others and absent locks alone", "", func(e *env) {
		holder := e.begin("a")
		holder.prewrite(put("a", "1"))
		e.must(e.begin("a").resolve(0, "a", "b"))
		equal(e, "locks", e.lockedKeys(), "a")
	}},
	{"ResolveLock/invalid requests and stale routes", "", func(e *env) {
		x := e.begin("a")
		want[*mvcc.InvalidRequestError](e, x.resolve(0))
		want[*mvcc.InvalidRequestError](e, x.resolve(0, "b", "a"))
		want[*mvcc.InvalidRequestError](e, x.resolve(x.start, "a"))
		refs, shard := e.on("a")
		refs[0].Epoch++
		want[*kv.StaleRangeError](e, shard.ResolveLock(e.ctx, &kv.ResolveLockRequest{Ranges: refs, Keys: bytesOf([]string{"a"}), StartTS: x.start}))
	}},
}
