package kvtest

import (
	"strings"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// endedStatus makes a status check one by who knows that the transaction's process has ended.
func endedStatus(r *kv.CheckTxnStatusRequest) { r.ProcessEnded = true }

var statusCases = []Case{
	{"CheckTxnStatus/committed", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		ts := x.commit("a")
		st, err := x.status(nil)
		e.must(err)
		equal(e, "commit_ts", st.CommitTS, ts)
		equal(e, "rolled back or alive", st.RolledBack || st.Lock != nil, false)
	}},
	{"CheckTxnStatus/rolled back", "", func(e *env) {
		x := e.begin("a")
		e.must(x.tryRollback("a"))
		st, err := x.status(nil)
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
		equal(e, "undecided", st.Undecided, false)
	}},
	{"CheckTxnStatus/alive", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		st, err := x.status(nil)
		e.must(err)
		equal(e, "alive", st.Lock != nil, true)
		equal(e, "start_ts", st.Lock.StartTS, x.start)
		equal(e, "outcome", st.CommitTS != 0 || st.RolledBack, false)
	}},
	{"CheckTxnStatus/pushes the commit above the reader", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		read := e.now()
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.CallerTS = read; r.NowTS = e.now() })
		e.must(err)
		equal(e, "above the reader", st.Lock.MinCommitTS > read, true)
		equal(e, "the reader passes", e.get("a", read), "-")
	}},
	{"CheckTxnStatus/a caller from the future does not push", "", func(e *env) {
		x := e.begin("a")
		res := x.prewrite(put("a", "1"))
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.CallerTS = r.NowTS + tso.Tick })
		e.must(err)
		equal(e, "minimum", st.Lock.MinCommitTS, res.MinCommitTS)
	}},
	{"CheckTxnStatus/rolls an expired transaction back", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		e.pass(ttl - 100)
		st, err := x.status(nil)
		e.must(err)
		equal(e, "alive", st.Lock != nil, true)
		e.pass(200)
		st, err = x.status(nil)
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
		want[*mvcc.RolledBackError](e, x.tryCommit(e.now(), true, "a"))
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("a", "1"))))
	}},
	{"CheckTxnStatus/rolls a transaction back whose process has ended", "", func(e *env) {
		x, y := e.begin("a"), e.begin("b")
		x.prewrite(put("a", "1"))
		st, err := x.status(endedStatus)
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
		want[*mvcc.RolledBackError](e, x.tryCommit(e.now(), true, "a"))
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("a", "1"))))
		y.acquire("b")
		st, err = y.status(func(r *kv.CheckTxnStatusRequest) { endedStatus(r); r.ResolvingPessimistic = true })
		e.must(err)
		equal(e, "alive", st.Lock != nil, false)
		equal(e, "locked", e.lockedKeys(), "")
	}},
	{"CheckTxnStatus/the end of its process does not undo a commit", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		ts := x.commit("a")
		st, err := x.status(endedStatus)
		e.must(err)
		equal(e, "commit_ts", st.CommitTS, ts)
	}},
	{"CheckTxnStatus/the secondaries of an async commit decide about it when its process has ended", "Async", func(e *env) {
		x := e.begin("a")
		_, err := x.tryPrewrite(async("b"), put("a", "1"), put("b", "1"))
		e.must(err)
		st, err := x.status(endedStatus)
		e.must(err)
		equal(e, "locked", st.Lock != nil, true)
		equal(e, "outcome", st.CommitTS != 0 || st.RolledBack, false)
		st, err = x.status(func(r *kv.CheckTxnStatusRequest) { endedStatus(r); r.ForceSync = true })
		e.must(err)
		equal(e, "rolled back where a plain lock was met", st.RolledBack, true)
	}},
	{"CheckTxnStatus/a jump of the oracle's clock is not the silence of the owner", "", func(e *env) {
		lease := uint64(10 * caseTimeout.Milliseconds())
		prewritten, acquired, beating := e.begin("a"), e.begin("b"), e.begin("c")
		_, err := prewritten.tryPrewrite(func(r *kv.PrewriteRequest) { r.LeaseMillis = lease }, put("a", "1"))
		e.must(err)
		_, err = acquired.tryAcquire(func(r *kv.AcquireLocksRequest) { r.LeaseMillis = lease }, "b")
		e.must(err)
		beating.prewrite(put("c", "1"))
		ref, shard := e.at("c")
		_, err = shard.Heartbeat(e.ctx, &kv.HeartbeatRequest{Range: ref, Primary: []byte("c"), StartTS: beating.start, TTLMillis: ttl, LeaseMillis: lease})
		e.must(err)
		e.pass(2 * ttl)
		for _, x := range []*txn{prewritten, acquired, beating} {
			st, err := x.status(nil)
			e.must(err)
			equal(e, x.primary+" is alive", st.Lock != nil, true)
		}
	}},
	{"CheckTxnStatus/a missing primary is not decided by who may not", "", func(e *env) {
		x := e.begin("a")
		err := want[*mvcc.TxnNotFoundError](e, second(x.status(nil)))
		equal(e, "start_ts", err.StartTS, x.start)
		x.prewrite(put("a", "1"))
	}},
	{"CheckTxnStatus/a missing primary is decided by who may", "", func(e *env) {
		x := e.begin("a")
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.RollbackIfMissing = true })
		e.must(err)
		equal(e, "rolled back", st.RolledBack, true)
		want[*mvcc.RolledBackError](e, second(x.tryPrewrite(nil, put("a", "1"))))
	}},
	{"CheckTxnStatus/for a pessimistic lock a missing primary decides nothing", "", func(e *env) {
		x := e.begin("a")
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.RollbackIfMissing, r.ResolvingPessimistic = true, true })
		e.must(err)
		equal(e, "undecided", st.RolledBack && st.Undecided, true)
		x.prewrite(put("a", "1"))
		x.commit("a")
	}},
	{"CheckTxnStatus/an expired pessimistic primary goes, its transaction may go on", "", func(e *env) {
		x := e.begin("a")
		x.acquire("a")
		e.pass(2 * ttl)
		st, err := x.status(func(r *kv.CheckTxnStatusRequest) { r.RollbackIfMissing, r.ResolvingPessimistic = true, true })
		e.must(err)
		equal(e, "undecided", st.RolledBack && st.Undecided, true)
		equal(e, "locks", e.lockedKeys(), "")
		x.acquire("a")
	}},
	{"CheckTxnStatus/not the primary", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		y := &txn{e: e, start: x.start, primary: "b"}
		err := want[*mvcc.PrimaryMismatchError](e, second(y.status(nil)))
		equal(e, "primary", string(err.Lock.Primary), "a")
	}},
	{"CheckTxnStatus/another transaction's lock is no answer", "", func(e *env) {
		e.begin("a").prewrite(put("a", "1"))
		want[*mvcc.TxnNotFoundError](e, second(e.begin("a").status(nil)))
	}},
	{"CheckTxnStatus/stale route", "", func(e *env) {
		stale := func(r *kv.CheckTxnStatusRequest) { r.Range.Epoch++ }
		want[*kv.StaleRangeError](e, second(e.begin("a").status(stale)))
	}},
	{"Heartbeat/raises the TTL and never lowers it", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		for _, c := range []struct{ ask, get uint64 }{{ttl - 1, ttl}, {2 * ttl, 2 * ttl}, {ttl, 2 * ttl}} {
			got, err := x.heartbeat(c.ask)
			e.must(err)
			equal(e, "TTL", got, c.get)
		}
		e.pass(ttl + 100)
		st, err := x.status(nil)
		e.must(err)
		equal(e, "alive", st.Lock != nil, true)
	}},
	{"Heartbeat/of a pessimistic lock", "", func(e *env) {
		x := e.begin("a")
		x.acquire("a")
		got, err := x.heartbeat(2 * ttl)
		e.must(err)
		equal(e, "TTL", got, 2*ttl)
	}},
	{"Heartbeat/no primary any more", "", func(e *env) {
		x := e.begin("a")
		want[*mvcc.LockNotFoundError](e, second(x.heartbeat(ttl)))
		x.prewrite(put("a", "1"))
		ts := x.commit("a")
		equal(e, "commit_ts", want[*mvcc.AlreadyCommittedError](e, second(x.heartbeat(ttl))).CommitTS, ts)
		y := e.begin("a")
		e.must(y.tryRollback("a"))
		want[*mvcc.RolledBackError](e, second(y.heartbeat(ttl)))
	}},
	{"Heartbeat/not the primary", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("b", "1"))
		want[*mvcc.PrimaryMismatchError](e, second((&txn{e: e, start: x.start, primary: "b"}).heartbeat(ttl)))
	}},
	{"Heartbeat/stale route", "", func(e *env) {
		ref, shard := e.at("a")
		ref.Epoch++
		_, err := shard.Heartbeat(e.ctx, &kv.HeartbeatRequest{Range: ref, Primary: []byte("a"), StartTS: e.now(), TTLMillis: ttl})
		want[*kv.StaleRangeError](e, err)
	}},
	{"ScanLock/in key order, up to a limit and a start_ts", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"), put("c", "1"))
		y := e.begin("b")
		y.acquire("b")
		equal(e, "all", e.lockedKeys(), "a b c")
		ref, shard := e.at("a")
		locks, err := shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "c"), MaxTS: x.start, Limit: 10})
		e.must(err)
		equal(e, "of the first transaction below c", len(locks), 1)
		equal(e, "key", string(locks[0].Key), "a")
		equal(e, "TTL", locks[0].Lock.TTLMillis, ttl)
		locks, err = shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "z"), MaxTS: e.now(), Limit: 2})
		e.must(err)
		equal(e, "limited", len(locks), 2)
		equal(e, "op", locks[1].Lock.Op, mvcc.OpPessimistic)
	}},
	{"ScanLock/of one process", "", func(e *env) {
		of := func(process uint64) string {
			ref, shard := e.at("a")
			locks, err := shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "z"), MaxTS: e.now(), Process: process, Limit: 2})
			e.must(err)
			keys := make([]string, len(locks))
			for i := range locks {
				keys[i] = string(locks[i].Key)
			}
			return strings.Join(keys, " ")
		}
		prewritten, acquired, other := e.begin("b"), e.begin("d"), e.begin("a")
		_, err := other.tryPrewrite(func(r *kv.PrewriteRequest) { r.Process = 8 }, put("a", "1"), put("c", "1"))
		e.must(err)
		e.begin("e").acquire("e")
		_, err = prewritten.tryPrewrite(func(r *kv.PrewriteRequest) { r.Process = 7 }, put("b", "1"))
		e.must(err)
		_, err = acquired.tryAcquire(func(r *kv.AcquireLocksRequest) { r.Process = 7 }, "d")
		e.must(err)
		equal(e, "of 7, behind those of others", of(7), "b d")
		equal(e, "of 8", of(8), "a c")
		equal(e, "of another", of(9), "")
		prewritten.commit("b")
		equal(e, "of 7 after a commit", of(7), "d")
	}},
	{"ScanLock/nothing commits at or below it afterwards", "ReadFence", func(e *env) {
		x := e.begin("a")
		scanned := e.now()
		ref, shard := e.at("a")
		_, err := shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "z"), MaxTS: scanned, Limit: 10})
		e.must(err)
		equal(e, "above", x.prewrite(put("a", "1")).MinCommitTS > scanned, true)
	}},
	{"ScanLock/a timestamp that was not issued, a stale route", "", func(e *env) {
		ref, shard := e.at("a")
		_, err := shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "z"), MaxTS: e.future(), Limit: 10})
		want[*mvcc.TSInFutureError](e, err)
		ref.Epoch++
		_, err = shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "z"), MaxTS: e.now(), Limit: 10})
		want[*kv.StaleRangeError](e, err)
	}},
}

var refreshCases = []Case{
	{"Refresh/nothing has changed", "", func(e *env) {
		e.store(put("a", "1"))
		x := e.begin("p")
		e.must(x.refresh(x.start, e.now(), point("a"), span("b", "c")))
	}},
	{"Refresh/a change in between", "", func(e *env) {
		x := e.begin("p")
		other := e.begin("b1")
		other.prewrite(put("b1", "1"))
		ts := other.commit("b1")
		e.must(x.refresh(x.start, e.now(), point("a"), point("b")))
		for _, s := range []kv.Span{point("b1"), span("b", "c")} {
			err := want[*mvcc.RefreshConflictError](e, x.refresh(x.start, e.now(), s))
			equal(e, "key", string(err.Key), "b1")
			equal(e, "start_ts", err.StartTS, other.start)
			equal(e, "commit_ts", err.CommitTS, ts)
		}
		e.must(x.refresh(ts, e.now(), span("b", "c")))
	}},
	{"Refresh/a deletion is a change", "", func(e *env) {
		e.store(put("a", "1"))
		x := e.begin("p")
		e.store(del("a"))
		want[*mvcc.RefreshConflictError](e, x.refresh(x.start, e.now(), point("a")))
	}},
	{"Refresh/changes of its own do not count", "", func(e *env) {
		x := e.begin("a")
		x.prewrite(put("a", "1"))
		e.must(x.refresh(x.start, e.now(), point("a")))
		x.commit("a")
		e.must(x.refresh(x.start, e.now(), point("a"), span("b", "c")))
	}},
	{"Refresh/a lock that may commit in between", "", func(e *env) {
		x := e.begin("p")
		other := e.begin("a")
		res := other.prewrite(put("a", "1"))
		to := max(e.now(), res.MinCommitTS)
		for e.now() < to {
		}
		err := want[*mvcc.KeyLockedError](e, x.refresh(x.start, to, point("a")))
		equal(e, "holder", err.Lock.StartTS, other.start)
		e.must(x.refreshPast([]tso.Timestamp{other.start}, x.start, to, point("a")))
	}},
	{"Refresh/locks without a change are passed", "", func(e *env) {
		x := e.begin("p")
		e.begin("a").acquire("a")
		e.begin("b").prewrite(lockOnly("b"))
		e.must(x.refresh(x.start, e.now(), span("a", "c")))
	}},
	{"Refresh/keeps later commits above it", "ReadFence", func(e *env) {
		x, y := e.begin("p"), e.begin("a")
		to := e.now()
		e.must(x.refresh(x.start, to, span("a", "c")))
		equal(e, "above", y.prewrite(put("a", "1")).MinCommitTS > to, true)
	}},
	{"Refresh/invalid requests, timestamps and routes", "", func(e *env) {
		x := e.begin("p")
		want[*mvcc.InvalidRequestError](e, x.refresh(e.now(), x.start, point("a")))
		want[*mvcc.InvalidRequestError](e, x.refresh(x.start, tso.MaxTimestamp, point("a")))
		want[*mvcc.TSInFutureError](e, x.refresh(x.start, e.future(), point("a")))
		refs, shard := e.on("a")
		refs[0].Epoch++
		want[*kv.StaleRangeError](e, shard.Refresh(e.ctx, &kv.RefreshRequest{Ranges: refs, Spans: []kv.Span{point("a")}, StartTS: x.start, FromTS: x.start, ToTS: e.now()}))
	}},
}
