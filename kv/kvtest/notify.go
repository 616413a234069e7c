package kvtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// The observers of the cases.
const (
	obs  = 7
	obs2 = 1 << 40
)

// observed is m with the set of a request that withSets has changed.
func observed(m mvcc.Mutation, set uint16) mvcc.Mutation {
	m.Notify = set
	return m
}

func withSets(sets ...kv.NotifySet) func(*kv.PrewriteRequest) {
	return func(req *kv.PrewriteRequest) { req.Notify = sets }
}

// one is the set of obs.
var one = kv.NotifySet{Observers: []uint64{obs}}

// lockObserved prewrites keys of which obs is to be notified, in two phases.
func (e *env) lockObserved(keys ...string) *txn {
	e.Helper()
	x := e.begin(keys[0])
	var ms []mvcc.Mutation
	for _, key := range keys {
		ms = append(ms, observed(put(key, "v"), 1))
	}
	_, err := x.tryPrewrite(withSets(one), ms...)
	e.must(err)
	return x
}

// storeObserved commits keys of which obs is to be notified.
func (e *env) storeObserved(keys ...string) tso.Timestamp {
	e.Helper()
	return e.lockObserved(keys...).commit(keys...)
}

// notifyScan requests one page of an observer's cells.
func (e *env) notifyScan(observer uint64, start, end string, limit int) (*kv.NotifyScanResponse, error) {
	e.Helper()
	ref, shard := e.at(start)
	return shard.NotifyScan(e.ctx, &kv.NotifyScanRequest{Range: ref, Span: span(start, end), Observer: observer, Limit: limit})
}

// cells lists the cells of all keys.
func (e *env) cells(observer uint64) (all []kv.NotifyCell) {
	e.Helper()
	e.eachRange(func(d *kv.RangeDescriptor, shard kv.Shard) error {
		at := d.Span.Start
		for {
			page, err := shard.NotifyScan(e.ctx, &kv.NotifyScanRequest{Range: d.Ref(), Span: kv.Span{Start: at, End: d.Span.End}, Observer: observer, Limit: 100})
			if err != nil {
				return err
			}
			if all = append(all, page.Cells...); page.ResumeKey == nil {
				return nil
			}
			at = page.ResumeKey
		}
	})
	return all
}

// cell shows a cell as a case expects it.
func cell(key string, ts tso.Timestamp, hop uint8) string {
	return fmt.Sprintf("%s@%d/%d", key, ts, hop)
}

func showCells(cells []kv.NotifyCell) string {
	var out []string
	for _, c := range cells {
		out = append(out, cell(string(c.Key), c.Latest, c.Hop))
	}
	return strings.Join(out, " ")
}

// expectCells fails unless an observer has these cells.
func (e *env) expectCells(what string, observer uint64, want ...string) {
	e.Helper()
	equal(e, what, showCells(e.cells(observer)), strings.Join(want, " "))
}

// clear clears cells of obs up to ts.
func (e *env) clear(ts tso.Timestamp, keys ...string) int {
	e.Helper()
	refs, shard := e.on(keys...)
	var cells []kv.NotifyUpTo
	for _, key := range keys {
		cells = append(cells, kv.NotifyUpTo{Key: []byte(key), UpTo: ts})
	}
	n, err := shard.NotifyClear(e.ctx, &kv.NotifyClearRequest{Ranges: refs, Observer: obs, Cells: cells})
	e.must(err)
	return n
}

func (e *env) notifyPut(ts tso.Timestamp, hop uint8, keys ...string) error {
	e.Helper()
	refs, shard := e.on(keys...)
	return shard.NotifyPut(e.ctx, &kv.NotifyPutRequest{Ranges: refs, Observer: obs, Keys: bytesOf(keys), TS: ts, Hop: hop})
}

var notifyCases = []Case{
	{"Notify/a one-phase commit writes the cells", "OnePhase", func(e *env) {
		x := e.begin("a")
		res, err := x.tryPrewrite(func(r *kv.PrewriteRequest) {
			r.TryOnePC, r.Notify = true, []kv.NotifySet{one, {Hop: 3, Observers: []uint64{obs, obs2}}}
		}, observed(put("a", "1"), 1), put("b", "1"), observed(del("c"), 2))
		e.must(err)
		ts := res.OnePCCommitTS
		e.expectCells("one", obs, cell("a", ts, 0), cell("c", ts, 3))
		e.expectCells("the other", obs2, cell("c", ts, 3))
	}},
	{"Notify/the owner's commit writes the cells, a prewrite does not", "", func(e *env) {
		x := e.lockObserved("a", "b")
		e.expectCells("locked", obs)
		ts := e.now()
		e.must(x.tryCommit(ts, true, "a"))
		e.expectCells("primary", obs, cell("a", ts, 0))
		e.must(x.tryCommit(ts, false, "b"))
		e.expectCells("both", obs, cell("a", ts, 0), cell("b", ts, 0))
	}},
	{"Notify/a resolver writes the cells", "", func(e *env) {
		x := e.lockObserved("a", "b")
		locks := e.locks()
		equal(e, "locks", len(locks), 2)
		for i := range locks {
			if n := locks[i].Lock.Notify; n == nil || !slices.Equal(n.Observers, one.Observers) {
				e.Errorf("the lock of %s notifies %v", locks[i].Key, n)
			}
		}
		ts := e.now()
		e.must(x.tryCommit(ts, true, "a"))
		st, err := x.status(nil)
		e.must(err)
		e.must(x.resolve(st.CommitTS, "b"))
		e.expectCells("resolved", obs, cell("a", ts, 0), cell("b", ts, 0))
		e.clear(e.now(), "a", "b")
		e.must(x.resolve(st.CommitTS, "b"))
		e.must(x.tryCommit(ts, true, "a"))
		e.expectCells("a late commit writes none", obs)
	}},
	{"Notify/an async commit's cells", "Async", func(e *env) {
		x := e.begin("a")
		res, err := x.tryPrewrite(func(r *kv.PrewriteRequest) {
			async("b")(r)
			r.Notify = []kv.NotifySet{one}
		}, observed(put("a", "1"), 1), observed(put("b", "1"), 1))
		e.must(err)
		equal(e, "async", res.Async, true)
		st, err := x.secondaries(nil, "b")
		e.must(err)
		equal(e, "locks", len(st.Locks), 1)
		e.must(x.resolve(res.MinCommitTS, "a", "b"))
		e.expectCells("resolved", obs, cell("a", res.MinCommitTS, 0), cell("b", res.MinCommitTS, 0))
	}},
	{"Notify/a rollback writes none", "", func(e *env) {
		x := e.lockObserved("a", "b")
		e.must(x.tryRollback("a"))
		e.must(x.resolve(0, "b"))
		e.expectCells("rolled back", obs)
	}},
	{"Notify/a large commit's cells", "LargeCommit", func(e *env) {
		e.storeObserved("a")
		x := e.begin("a")
		refs, shard := e.on("a", "c")
		set := writeSet{observed(put("a", "1"), 1), put("b", "1"), observed(del("c"), 2)}
		res, err := shard.CommitLarge(e.ctx, &kv.CommitLargeRequest{Ranges: refs, Set: set, Primary: []byte("a"), StartTS: x.start, TTLMillis: ttl,
			Notify: []kv.NotifySet{one, {Hop: 2, Observers: []uint64{obs, obs2}}}})
		e.must(err)
		e.expectCells("one", obs, cell("a", res.CommitTS, 0), cell("c", res.CommitTS, 2))
		e.expectCells("the other", obs2, cell("c", res.CommitTS, 2))
		equal(e, "rows", e.page("a", "d", nil), "a=1 b=1")
	}},
	{"Notify/sets that are malformed", "", func(e *env) {
		for _, bad := range []struct {
			m    mvcc.Mutation
			sets []kv.NotifySet
		}{
			{observed(put("a", "1"), 2), []kv.NotifySet{one}},
			{observed(put("a", "1"), 1), nil},
			{observed(lockOnly("a"), 1), []kv.NotifySet{one}},
			{put("a", "1"), []kv.NotifySet{{}}},
			{put("a", "1"), []kv.NotifySet{{Observers: []uint64{2, 1}}}},
			{put("a", "1"), []kv.NotifySet{{Observers: []uint64{0}}}},
		} {
			_, err := e.begin("a").tryPrewrite(withSets(bad.sets...), bad.m)
			want[*mvcc.InvalidRequestError](e, err)
		}
	}},
	{"NotifyScan/pages of one observer and one span", "", func(e *env) {
		ts := e.storeObserved("a", "a\x00", "b", "c")
		x := e.begin("b")
		_, err := x.tryPrewrite(withSets(kv.NotifySet{Observers: []uint64{obs - 1, obs + 1}}), observed(put("b", "2"), 1))
		e.must(err)
		x.commit("b")
		page, err := e.notifyScan(obs, "a", "c", 2)
		e.must(err)
		equal(e, "first", showCells(page.Cells), cell("a", ts, 0)+" "+cell("a\x00", ts, 0))
		equal(e, "resume", string(page.ResumeKey), "b")
		page, err = e.notifyScan(obs, "b", "c", 2)
		e.must(err)
		equal(e, "second", showCells(page.Cells), cell("b", ts, 0))
		equal(e, "end", page.ResumeKey == nil, true)
		_, err = e.notifyScan(obs, "a", "b", 0)
		want[*mvcc.InvalidRequestError](e, err)
		_, err = e.notifyScan(0, "a", "b", 1)
		want[*mvcc.InvalidRequestError](e, err)
	}},
	{"NotifyScan/one key", "", func(e *env) {
		ts := e.storeObserved("a", "a\x00", "ab")
		for key, there := range map[string]bool{"a": true, "a\x00": true, "aa": false, "ab": true} {
			page, err := e.notifyScan(obs, key, key+"\x00", 1)
			e.must(err)
			cells := ""
			if there {
				cells = cell(key, ts, 0)
			}
			equal(e, key, showCells(page.Cells), cells)
			equal(e, "end", page.ResumeKey == nil, true)
			page, err = e.notifyScan(obs2, key, key+"\x00", 1)
			e.must(err)
			equal(e, "of another observer", len(page.Cells), 0)
		}
		equal(e, "cleared", e.clear(ts, "ab"), 1)
		page, err := e.notifyScan(obs, "ab", "ab\x00", 1)
		e.must(err)
		equal(e, "after it is cleared", len(page.Cells), 0)
	}},
	{"NotifyClear/leaves what is newer", "", func(e *env) {
		old := e.storeObserved("a", "b", "c")
		newer := e.storeObserved("b")
		equal(e, "cleared", e.clear(old, "a", "aa", "b"), 1)
		e.expectCells("left", obs, cell("b", newer, 0), cell("c", old, 0))
		equal(e, "again", e.clear(old, "a", "aa", "b"), 0)
		equal(e, "below", e.clear(newer-1, "b"), 0)
		equal(e, "at it", e.clear(newer, "b"), 1)
		e.expectCells("left", obs, cell("c", old, 0))
	}},
	{"NotifyClear/a late duplicate does not lose a change", "", func(e *env) {
		ts := e.storeObserved("a")
		equal(e, "cleared", e.clear(ts, "a"), 1)
		ts2 := e.storeObserved("a")
		equal(e, "late", e.clear(ts, "a"), 0)
		e.expectCells("the change", obs, cell("a", ts2, 0))
	}},
	{"NotifyPut/raises cells", "", func(e *env) {
		ts := e.storeObserved("b")
		later := e.now()
		e.must(e.notifyPut(ts-1, 1, "a", "b"))
		e.expectCells("below", obs, cell("a", ts-1, 1), cell("b", ts, 0))
		e.must(e.notifyPut(later, 2, "a", "b"))
		e.must(e.notifyPut(ts, 3, "a", "b"))
		e.expectCells("above", obs, cell("a", later, 2), cell("b", later, 2))
		last := e.storeObserved("a", "b")
		e.expectCells("commits lie above", obs, cell("a", last, 0), cell("b", last, 0))
		want[*mvcc.TSInFutureError](e, e.notifyPut(e.future(), 0, "a"))
		want[*mvcc.InvalidRequestError](e, e.notifyPut(0, 0, "a"))
	}},
	{"NotifyPut/is ahead of a commit that began before", "", func(e *env) {
		x := e.lockObserved("a")
		ts := e.now()
		later := e.now()
		e.must(e.notifyPut(later, 1, "a"))
		e.must(x.tryCommit(ts, true, "a"))
		e.expectCells("the commit lies below", obs, cell("a", later, 1))
	}},
	{"NotifyDrop/removes an observer's cells of a span", "", func(e *env) {
		x := e.begin("a")
		_, err := x.tryPrewrite(withSets(kv.NotifySet{Observers: []uint64{obs, obs + 1}}), observed(put("a", "1"), 1), observed(put("b", "1"), 1), observed(put("c", "1"), 1))
		e.must(err)
		ts := x.commit("a", "b", "c")
		ref, shard := e.at("a")
		e.must(shard.NotifyDrop(e.ctx, &kv.NotifyDropRequest{Range: ref, Span: span("a", "b\x00"), Observer: obs}))
		e.expectCells("left", obs, cell("c", ts, 0))
		e.expectCells("another's", obs+1, cell("a", ts, 0), cell("b", ts, 0), cell("c", ts, 0))
	}},
	{"DropSpan/removes cells", "", func(e *env) {
		ts := e.storeObserved("a", "b", "c")
		now := e.now()
		e.safePoint(now)
		_, shard := e.at("a")
		dropped, err := shard.DropSpan(e.ctx, &kv.DropSpanRequest{Span: span("b", "c"), SafePoint: now})
		e.must(err)
		equal(e, "dropped", dropped, true)
		e.expectCells("left", obs, cell("a", ts, 0), cell("c", ts, 0))
	}},
	{"CollectGarbage/leaves cells", "", func(e *env) {
		e.storeObserved("a")
		e.store(put("a", "2"))
		ts := e.storeObserved("b")
		e.safePoint(e.now())
		e.collect(e.safePoint(0))
		equal(e, "cells", len(e.cells(obs)), 2)
		equal(e, "cleared", e.clear(ts, "a", "b"), 2)
	}},
	{"Restart/cells are there, and locks keep their sets", "Restart", func(e *env) {
		ts := e.storeObserved("a")
		x := e.lockObserved("b", "c")
		e.engine.Restart(e)
		e.expectCells("after the restart", obs, cell("a", ts, 0))
		later := x.commit("b", "c")
		e.expectCells("committed", obs, cell("a", ts, 0), cell("b", later, 0), cell("c", later, 0))
	}},
	{"Split/cells are found by new routes only", "Split", func(e *env) {
		ts := e.storeObserved("a", "z")
		old, shard := e.at("a")
		e.must(e.engine.Split(e.ctx, []byte("m")))
		refs, keys := []kv.RangeRef{old}, bytesOf([]string{"a"})
		_, err := shard.NotifyScan(e.ctx, &kv.NotifyScanRequest{Range: old, Span: span("a", "b"), Observer: obs, Limit: 1})
		want[*kv.StaleRangeError](e, err)
		_, err = shard.NotifyClear(e.ctx, &kv.NotifyClearRequest{Ranges: refs, Observer: obs, Cells: []kv.NotifyUpTo{{Key: keys[0], UpTo: ts}}})
		want[*kv.StaleRangeError](e, err)
		want[*kv.StaleRangeError](e, shard.NotifyPut(e.ctx, &kv.NotifyPutRequest{Ranges: refs, Observer: obs, Keys: keys, TS: ts}))
		err = shard.NotifyDrop(e.ctx, &kv.NotifyDropRequest{Range: old, Span: span("a", "b"), Observer: obs})
		e.recorder.Invalidate(want[*kv.StaleRangeError](e, err))
		e.expectCells("by new routes", obs, cell("a", ts, 0), cell("z", ts, 0))
		equal(e, "cleared in both", e.clear(ts, "a", "z"), 2)
	}},
	{"WatchNotify/first a scan, then the commits", "", watchCommits},
}

// watchCommits watches a shard under commits. Hints may be lost, but then a scan is asked for.
func watchCommits(e *env) {
	_, shard := e.at("a")
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	hints := make(chan kv.NotifyHint, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- shard.WatchNotify(ctx, func(some []kv.NotifyHint) error {
			for _, h := range some {
				hints <- h
			}
			return nil
		})
	}()
	next := func() kv.NotifyHint {
		select {
		case h := <-hints:
			return h
		case <-time.After(caseTimeout / 2):
			e.Fatal("no hint")
			return kv.NotifyHint{}
		}
	}
	equal(e, "first", next().Observer, 0)
	e.store(put("b", "1"))
	ts := e.storeObserved("a", "c")
	for seen := map[string]bool{}; len(seen) < 2; {
		h := next()
		if h.Observer == 0 {
			break
		}
		equal(e, "observer", h.Observer, obs)
		equal(e, "commit_ts", h.CommitTS, ts)
		equal(e, "a time", h.AtMicros > 0, true)
		seen[string(h.Key)] = true
	}
	e.must(e.notifyPut(e.now(), 0, "d"))
	if h := next(); h.Observer != 0 {
		equal(e, "put", string(h.Key), "d")
	}
	cancel()
	select {
	case err := <-ended:
		equal(e, "the watch ends with its context", errkind.Of(err), errkind.Context)
	case <-time.After(caseTimeout / 2):
		e.Fatal("the watch does not end")
	}
}
