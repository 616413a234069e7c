package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// collect removes history up to ts.
func (e *env) collect(ts tso.Timestamp) (all kv.CollectGarbageResponse) {
	e.Helper()
	_, shard := e.at("a")
	for !all.Done {
		res, err := shard.CollectGarbage(e.ctx, &kv.CollectGarbageRequest{SafePoint: ts, Budget: time.Second})
		e.must(err)
		all.Done, all.Keys, all.Versions, all.Statuses = res.Done, all.Keys+res.Keys, all.Versions+res.Versions, all.Statuses+res.Statuses
	}
	return all
}

func (e *env) safePoint(ts tso.Timestamp) tso.Timestamp {
	e.Helper()
	_, shard := e.at("a")
	inForce, err := shard.SetSafePoint(e.ctx, ts)
	e.must(err)
	return inForce
}

var collectCases = []Case{
	{"SetSafePoint/never goes down", "", func(e *env) {
		low, high := e.now(), e.now()
		equal(e, "none", e.safePoint(0), 0)
		equal(e, "first", e.safePoint(high), high)
		equal(e, "lower", e.safePoint(low), high)
		equal(e, "asked", e.safePoint(0), high)
	}},
	{"SetSafePoint/fences what is at or below it", "", func(e *env) {
		e.store(put("a", "1"))
		x := e.begin("b")
		ts := e.now()
		e.safePoint(ts)
		err := want[*mvcc.TooOldError](e, second(e.tryGet("a", kv.ReadOptions{ReadTS: ts})))
		equal(e, "timestamp", err.TS, ts)
		equal(e, "safe point", err.SafePoint, ts)
		want[*mvcc.TooOldError](e, second(e.batch(ts, "a")))
		want[*mvcc.TooOldError](e, second(e.scan("a", "z", func(r *kv.ScanRequest) { r.ReadTS = ts })))
		want[*mvcc.TooOldError](e, second(x.tryPrewrite(nil, put("b", "1"))))
		want[*mvcc.TooOldError](e, second(x.tryAcquire(nil, "b")))
		want[*mvcc.TooOldError](e, x.refresh(x.start, e.now(), point("a")))
		equal(e, "above it", e.get("a", e.now()), "1")
	}},
	{"SetSafePoint/a timestamp that was not issued", "", func(e *env) {
		_, shard := e.at("a")
		_, err := shard.SetSafePoint(e.ctx, e.future())
		want[*mvcc.TSInFutureError](e, err)
	}},
	{"CollectGarbage/removes unreadable versions", "", func(e *env) {
		for i := range 5 {
			e.store(put("a", fmt.Sprint(i)), put("b", fmt.Sprint(i)))
		}
		e.store(del("b"))
		ts := e.now()
		kept := e.store(put("a", "kept"))
		e.store(put("a", "last"))
		e.safePoint(ts)
		if res := e.collect(ts); res.Versions == 0 {
			e.Errorf("nothing was removed: %+v", res)
		}
		equal(e, "above the safe point", e.get("a", ts+1), "4")
		equal(e, "kept", e.get("a", kept), "kept")
		equal(e, "now", e.page("a", "z", nil), "a=last")
	}},
	{"CollectGarbage/above the safe point", "", func(e *env) {
		_, shard := e.at("a")
		e.safePoint(e.now())
		_, err := shard.CollectGarbage(e.ctx, &kv.CollectGarbageRequest{SafePoint: e.now()})
		want[*mvcc.InvalidRequestError](e, err)
	}},
	{"DropSpan/removes every key of a span", "", func(e *env) {
		e.store(put("a", "1"), put("b", "1"), put("bb", "1"), put("c", "1"))
		ts := e.now()
		e.safePoint(ts)
		_, shard := e.at("a")
		dropped, err := shard.DropSpan(e.ctx, &kv.DropSpanRequest{Span: span("b", "c"), SafePoint: ts})
		e.must(err)
		equal(e, "dropped", dropped, true)
		equal(e, "rows", e.page("a", "z", nil), "a=1 c=1")
	}},
	{"DropSpan/refused while somebody may need it", "", func(e *env) {
		e.store(put("b", "1"))
		ts := e.now()
		e.safePoint(ts)
		_, shard := e.at("a")
		drop := func() bool {
			dropped, err := shard.DropSpan(e.ctx, &kv.DropSpanRequest{Span: span("b", "c"), SafePoint: ts})
			e.must(err)
			return dropped
		}
		x := e.begin("b1")
		x.prewrite(put("b1", "1"))
		equal(e, "with a lock", drop(), false)
		x.commit("b1")
		equal(e, "with a version above the safe point", drop(), false)
		equal(e, "rows", e.page("a", "z", nil), "b=1 b1=1")
		_, err := shard.DropSpan(e.ctx, &kv.DropSpanRequest{Span: span("b", "c"), SafePoint: e.now()})
		want[*mvcc.InvalidRequestError](e, err)
	}},
	{"SyncLog/names the run", "", func(e *env) {
		_, shard := e.at("a")
		e.store(put("a", "1"))
		first, err := shard.SyncLog(e.ctx)
		e.must(err)
		again, err := shard.SyncLog(e.ctx)
		e.must(err)
		equal(e, "run", again, first)
	}},
}

var lifeCases = []Case{
	{"Capabilities/stay, and bound the requests", "", func(e *env) {
		_, shard := e.at("a")
		equal(e, "capabilities", shard.Capabilities(), e.caps)
		refuse := func(what string, stated bool, err error) {
			if !stated && !errors.Is(err, kv.ErrUnsupported) {
				e.Errorf("%s, which is not stated, is answered with %v", what, err)
			}
			if stated && errors.Is(err, kv.ErrUnsupported) {
				e.Errorf("%s is stated, and refused", what)
			}
		}
		x := e.begin("a")
		refuse("ReadLatest", e.caps.ReadLatest, second(e.latest("a", 0)))
		refuse("WaitForRelease", e.caps.WaitForRelease, shard.WaitForRelease(e.ctx, []byte("a"), x.start))
		refuse("LargeCommit", e.caps.LargeCommit, second(x.commitLarge(writeSet{put("a", "1")}, 0)))
		res, err := e.begin("b").tryPrewrite(onePhase, put("b", "1"))
		e.must(err)
		equal(e, "one phase without the capability", !e.caps.OnePhase && res.OnePCCommitTS != 0, false)
		res, err = e.begin("c").tryPrewrite(async(), put("c", "1"))
		e.must(err)
		equal(e, "async without the capability", !e.caps.Async && res.Async, false)
	}},
	{"Status/names the shard and its ranges", "", func(e *env) {
		e.store(put("a", "1"))
		d, shard, err := e.recorder.Locate(e.ctx, []byte("a"))
		e.must(err)
		st, err := shard.Status(e.ctx)
		e.must(err)
		equal(e, "shard", st.Shard, d.Shard)
		if _, ok := st.RangeSizes[d.ID]; !ok {
			e.Errorf("no size of range %d in %v", d.ID, st.RangeSizes)
		}
		equal(e, "newest is not from the future", st.Newest <= e.now(), true)
	}},
	{"Split/old routes are refused, new ones lead to the data", "Split", func(e *env) {
		e.store(put("a", "1"), put("z", "1"))
		x := e.begin("a")
		x.prewrite(put("a", "2"), put("z", "2"))
		old, shard := e.at("a")
		e.must(e.engine.Split(e.ctx, []byte("m")))
		for _, key := range []string{"a", "z"} {
			_, err := shard.Get(e.ctx, old, []byte(key), kv.ReadOptions{ReadTS: e.now()})
			stale := want[*kv.StaleRangeError](e, err)
			e.recorder.Invalidate(stale)
		}
		ts := e.now()
		e.must(x.tryCommit(ts, true, "a"))
		e.must(x.tryCommit(ts, false, "z"))
		equal(e, "a", e.get("a", e.now()), "2")
		equal(e, "z", e.get("z", e.now()), "2")
		res, err := e.batch(e.now(), "a", "z")
		e.must(err)
		equal(e, "both in one request", text(res.Values[0])+text(res.Values[1]), "22")
		want[*kv.StaleRangeError](e, second(e.scan("a", "z\x00", nil)))
		refs, shard := e.on("a", "z")
		page, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: refs, Spans: []kv.Span{span("a", "b"), span("y", "zz")}, Limit: 10, ReadOptions: kv.ReadOptions{ReadTS: e.now()}})
		e.must(err)
		equal(e, "spans of both", rowsOf(page.Rows), "a=2 z=2")
	}},
	{"Restart/what was acknowledged is there", "Restart", func(e *env) {
		e.store(put("a", "1"))
		committed, decided, open := e.begin("b"), e.begin("c"), e.begin("d")
		committed.prewrite(put("b", "1"), put("b2", "1"))
		ts := committed.now()
		e.must(committed.tryCommit(ts, true, "b"))
		decided.prewrite(put("c", "1"))
		e.must(decided.tryRollback("c"))
		open.prewrite(put("d", "1"))
		_, shard := e.at("a")
		run, err := shard.SyncLog(e.ctx)
		e.must(err)
		e.engine.Restart(e)
		equal(e, "a", e.get("a", e.now()), "1")
		equal(e, "b", e.get("b", e.now()), "1")
		st, err := committed.status(nil)
		e.must(err)
		equal(e, "commit_ts", st.CommitTS, ts)
		want[*mvcc.RolledBackError](e, second(decided.tryPrewrite(nil, put("c", "1"))))
		want[*mvcc.KeyLockedError](e, second(e.tryGet("d", kv.ReadOptions{ReadTS: e.now()})))
		e.must(committed.resolve(ts, "b2"))
		open.commit("d")
		equal(e, "d", e.get("d", e.now()), "1")
		_, shard = e.at("a")
		again, err := shard.SyncLog(e.ctx)
		e.must(err)
		equal(e, "another run", again != run, true)
	}},
	{"Restart/commits lie above the reads before it", "Restart ReadFence", func(e *env) {
		x := e.begin("a")
		read := e.now()
		e.get("a", read)
		e.engine.Restart(e)
		equal(e, "above the read", x.prewrite(put("a", "1")).MinCommitTS > read, true)
	}},
	{"Restart/pessimistic locks may be lost, not what relies on them", "Restart", func(e *env) {
		x := e.begin("a")
		at := x.acquire("a")[0]
		e.engine.Restart(e)
		y := e.begin("a")
		if _, err := y.tryAcquire(nil, "a"); err == nil {
			y.prewrite(put("a", "other"))
			y.commit("a")
			want[*mvcc.WriteConflictError](e, second(x.tryPrewrite(nil, locked(put("a", "1"), at))))
			return
		}
		x.prewrite(locked(put("a", "1"), at))
		x.commit("a")
	}},
	{"Close/every request is refused", "", func(e *env) {
		x := e.begin("a")
		ref, shard := e.at("a")
		refs, keys := []kv.RangeRef{ref}, bytesOf([]string{"a"})
		now := e.now()
		e.engine.Close()
		e.closed = true
		read := kv.ReadOptions{ReadTS: now}
		_, err := shard.Get(e.ctx, ref, keys[0], read)
		errs := map[string]error{"Get": err}
		_, errs["GetLatest"] = shard.GetLatest(e.ctx, ref, keys[0], 0)
		_, errs["BatchGet"] = shard.BatchGet(e.ctx, &kv.BatchGetRequest{Ranges: refs, Keys: keys, ReadOptions: read})
		_, errs["Scan"] = shard.Scan(e.ctx, &kv.ScanRequest{Ranges: refs, Spans: []kv.Span{span("a", "b")}, Limit: 1, ReadOptions: read})
		_, errs["Prewrite"] = shard.Prewrite(e.ctx, &kv.PrewriteRequest{Ranges: refs, Mutations: []mvcc.Mutation{put("a", "1")}, Primary: keys[0], StartTS: x.start})
		_, errs["CommitLarge"] = shard.CommitLarge(e.ctx, &kv.CommitLargeRequest{Ranges: refs, Set: writeSet{put("a", "1")}, Primary: keys[0], StartTS: x.start})
		errs["Commit"] = shard.Commit(e.ctx, &kv.CommitRequest{Ranges: refs, Keys: keys, StartTS: x.start, CommitTS: now, Primary: true})
		errs["Rollback"] = shard.Rollback(e.ctx, &kv.RollbackRequest{Ranges: refs, Keys: keys, StartTS: x.start})
		_, errs["CheckTxnStatus"] = shard.CheckTxnStatus(e.ctx, &kv.CheckTxnStatusRequest{Range: ref, Primary: keys[0], StartTS: x.start, NowTS: now})
		errs["ResolveLock"] = shard.ResolveLock(e.ctx, &kv.ResolveLockRequest{Ranges: refs, Keys: keys, StartTS: x.start})
		_, errs["Heartbeat"] = shard.Heartbeat(e.ctx, &kv.HeartbeatRequest{Range: ref, Primary: keys[0], StartTS: x.start})
		_, errs["ScanLock"] = shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: ref, Span: span("a", "b"), MaxTS: now, Limit: 1})
		_, errs["AcquireLocks"] = shard.AcquireLocks(e.ctx, &kv.AcquireLocksRequest{Ranges: refs, Keys: keys, Primary: keys[0], StartTS: x.start})
		errs["ReleaseLocks"] = shard.ReleaseLocks(e.ctx, &kv.ReleaseLocksRequest{Ranges: refs, Keys: keys, StartTS: x.start})
		_, errs["CheckSecondaryLocks"] = shard.CheckSecondaryLocks(e.ctx, &kv.CheckSecondaryLocksRequest{Ranges: refs, Keys: keys, StartTS: x.start})
		errs["Refresh"] = shard.Refresh(e.ctx, &kv.RefreshRequest{Ranges: refs, Spans: []kv.Span{point("a")}, StartTS: x.start, FromTS: x.start, ToTS: now})
		errs["WaitForRelease"] = shard.WaitForRelease(e.ctx, keys[0], x.start)
		_, errs["Status"] = shard.Status(e.ctx)
		_, errs["SetSafePoint"] = shard.SetSafePoint(e.ctx, 0)
		_, errs["SyncLog"] = shard.SyncLog(e.ctx)
		_, errs["CollectGarbage"] = shard.CollectGarbage(e.ctx, &kv.CollectGarbageRequest{})
		_, errs["DropSpan"] = shard.DropSpan(e.ctx, &kv.DropSpanRequest{Span: span("a", "b")})
		_, errs["NotifyScan"] = shard.NotifyScan(e.ctx, &kv.NotifyScanRequest{Range: ref, Span: span("a", "b"), Observer: obs, Limit: 1})
		_, errs["NotifyClear"] = shard.NotifyClear(e.ctx, &kv.NotifyClearRequest{Ranges: refs, Observer: obs, Cells: []kv.NotifyUpTo{{Key: keys[0], UpTo: now}}})
		errs["NotifyPut"] = shard.NotifyPut(e.ctx, &kv.NotifyPutRequest{Ranges: refs, Observer: obs, Keys: keys, TS: now})
		errs["NotifyDrop"] = shard.NotifyDrop(e.ctx, &kv.NotifyDropRequest{Range: ref, Span: span("a", "b"), Observer: obs})
		errs["WatchNotify"] = shard.WatchNotify(e.ctx, func([]kv.NotifyHint) error { return nil })
		for name, err := range errs {
			switch errkind.Of(err) {
			case errkind.Closed, errkind.Unavailable, errkind.Unsupported:
			default:
				e.Errorf("%s after Close: %v", name, err)
			}
		}
	}},
}

func (x *txn) now() tso.Timestamp { return x.e.now() }

var routerCases = []Case{
	{"Router/ranges cover all keys once", "", func(e *env) {
		ranges, err := e.recorder.Ranges(e.ctx)
		e.must(err)
		equal(e, "first", len(ranges[0].Span.Start), 0)
		equal(e, "last", len(ranges[len(ranges)-1].Span.End), 0)
		for i := 1; i < len(ranges); i++ {
			equal(e, "gap", bytes.Equal(ranges[i-1].Span.End, ranges[i].Span.Start), true)
		}
	}},
	{"Router/locates keys and ends", "", func(e *env) {
		if e.has("Split") {
			e.must(e.engine.Split(e.ctx, []byte("m")))
		}
		for _, key := range []string{"", "a", "m", "z", "\xff\xff"} {
			d, _, err := e.recorder.Locate(e.ctx, []byte(key))
			e.must(err)
			equal(e, fmt.Sprintf("%q in its range", key), d.Span.Contains([]byte(key)), true)
		}
		for _, end := range []string{"a", "m", "m\x00", "z", ""} {
			d, _, err := e.recorder.LocateEnd(e.ctx, []byte(end))
			e.must(err)
			below := kv.Span{Start: d.Span.Start, End: []byte(end)}
			equal(e, fmt.Sprintf("the keys below %q in the range", end), below.Valid() && d.Span.ContainsSpan(&below), true)
		}
	}},
	{"Router/a stale route is corrected", "Split", func(e *env) {
		old, shard := e.at("z")
		e.must(e.engine.Split(e.ctx, []byte("m")))
		_, err := shard.Get(e.ctx, old, []byte("z"), kv.ReadOptions{ReadTS: e.now()})
		stale := want[*kv.StaleRangeError](e, err)
		equal(e, "refs", slices.Contains(stale.Refs, old), true)
		e.recorder.Invalidate(stale)
		e.recorder.Invalidate(stale)
		d, shard, err := e.recorder.Locate(e.ctx, []byte("z"))
		e.must(err)
		equal(e, "start", string(d.Span.Start), "m")
		_, err = shard.Get(e.ctx, d.Ref(), []byte("z"), kv.ReadOptions{ReadTS: e.now()})
		e.must(err)
	}},
	{"Router/forgetting what it does not know is harmless", "", func(e *env) {
		ref, _ := e.at("a")
		e.recorder.Invalidate(&kv.StaleRangeError{})
		e.recorder.Invalidate(&kv.StaleRangeError{Refs: []kv.RangeRef{{ID: 1 << 40, Epoch: 7}}})
		e.recorder.Invalidate(&kv.StaleRangeError{Refs: []kv.RangeRef{ref}})
		e.get("a", e.now())
	}},
	{"Router/CreateRange keeps the keys readable", "", func(e *env) {
		e.store(put("a", "1"), put("z", "1"))
		e.must(e.recorder.CreateRange(e.ctx, span("m", "n")))
		for _, key := range []string{"a", "m1", "z"} {
			_, err := e.tryGet(key, kv.ReadOptions{ReadTS: e.now()})
			if stale, ok := errkind.As[*kv.StaleRangeError](err); ok {
				e.recorder.Invalidate(stale)
				_, err = e.tryGet(key, kv.ReadOptions{ReadTS: e.now()})
			}
			e.must(err)
		}
		equal(e, "a", e.get("a", e.now()), "1")
		e.store(put("m1", "1"))
		equal(e, "m1", e.get("m1", e.now()), "1")
	}},
	{"Router/sizes are of ranges there are", "", func(e *env) {
		e.store(put("a", "1"))
		ranges, err := e.recorder.Ranges(e.ctx)
		e.must(err)
		sizes, err := e.recorder.RangeSizes(e.ctx)
		e.must(err)
		for id := range sizes {
			equal(e, "known", slices.ContainsFunc(ranges, func(d kv.RangeDescriptor) bool { return d.ID == id }), true)
		}
		equal(e, "some", len(sizes) > 0, true)
	}},
}

// accounts of the delivery cases, and what each has at first.
const (
	accounts = 6
	funds    = 100
)

var deliveryCases = []Case{
	{"Delivery/transfers over a network that loses, delays and repeats", "", func(e *env) { transfers(e, numTransfers()) }},
}

// numTransfers is how many transfers each client makes: over a remote engine one takes 10 ms and more.
func numTransfers() int {
	if testing.Short() {
		return 25
	}
	return 100
}

// transfers moves money between accounts with several clients whose write requests are lost, answered and then
// lost, delivered twice, or late and out of order. Every snapshot must show all the money.
func transfers(e *env, each int) {
	var ms []mvcc.Mutation
	var names []string
	for i := range accounts {
		names = append(names, fmt.Sprintf("account%d", i))
		ms = append(ms, put(names[i], strconv.Itoa(funds)))
	}
	e.store(ms...)
	e.recorder.off = true // This case delivers by itself.
	late := &lateRequests{ctx: e.ctx}
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			c := &transferClient{e: e, late: late, r: rand.New(rand.NewPCG(7, uint64(client))), names: names}
			for range each {
				if err := c.transfer(); err != nil {
					e.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	late.deliverAll(rand.New(rand.NewPCG(8, 8)))
	e.settle()
	for _, ts := range []tso.Timestamp{e.now(), e.now()} {
		if sum := e.sum(names, ts); sum != accounts*funds {
			e.Errorf("the accounts have %d in all", sum)
		}
	}
}

func (e *env) sum(names []string, ts tso.Timestamp) (sum int) {
	res, err := e.batch(ts, names...)
	if err != nil || len(res.Locked) > 0 {
		e.Errorf("read all accounts: %v", err)
		return 0
	}
	for _, v := range res.Values {
		n, err := strconv.Atoi(string(v))
		if err != nil {
			e.Errorf("balance %q", v)
		}
		sum += n
	}
	return sum
}

// lateRequests are requests that arrive some other time.
type lateRequests struct {
	ctx context.Context
	mu  sync.Mutex
	all []func(context.Context) error
}

func (l *lateRequests) add(f func(context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, f)
}

// deliverOne delivers some request that is late, if there is one.
func (l *lateRequests) deliverOne(r *rand.Rand) {
	l.mu.Lock()
	if len(l.all) == 0 {
		l.mu.Unlock()
		return
	}
	i := r.IntN(len(l.all))
	f := l.all[i]
	l.all = slices.Delete(l.all, i, i+1)
	l.mu.Unlock()
	_ = f(l.ctx) // The answer is ignored.
}

func (l *lateRequests) deliverAll(r *rand.Rand) {
	for len(l.all) > 0 {
		l.deliverOne(r)
	}
}

var errLost = errors.New("the answer was lost")

// transferClient is one client of the delivery case.
type transferClient struct {
	e     *env
	late  *lateRequests
	r     *rand.Rand
	names []string
}

// deliver sends a request as the network likes.
func (c *transferClient) deliver(f func(context.Context) error) error {
	c.late.deliverOne(c.r)
	switch c.r.IntN(8) {
	case 0: // lost
		return errLost
	case 1: // carried out, and the answer lost
		_ = f(c.e.ctx)
		return errLost
	case 2: // late, and taken for lost
		c.late.add(f)
		return errLost
	case 3: // twice, the second time late
		c.late.add(f)
	}
	return f(c.e.ctx)
}

// insist sends a request until it is answered.
func (c *transferClient) insist(f func(context.Context) error) error {
	for {
		if err := c.deliver(f); !errors.Is(err, errLost) {
			return err
		}
	}
}

// transfer is one transaction; that others are in the way is no error.
func (c *transferClient) transfer() error {
	from, to := c.r.IntN(accounts), c.r.IntN(accounts-1)
	if to >= from {
		to++
	}
	keys := []string{c.names[min(from, to)], c.names[max(from, to)]}
	x := c.e.begin(keys[c.r.IntN(2)])
	balance := map[string]int{}
	for _, key := range keys {
		n, ok, err := c.read(key, x.start)
		if err != nil || !ok {
			return err
		}
		balance[key] = n
	}
	balance[c.names[from]] -= 5
	balance[c.names[to]] += 5
	ms := []mvcc.Mutation{put(keys[0], strconv.Itoa(balance[keys[0]])), put(keys[1], strconv.Itoa(balance[keys[1]]))}
	for _, m := range ms { // Two requests, as to two shards.
		if err := c.insist(func(context.Context) error { return second(x.tryPrewrite(nil, m)) }); err != nil {
			return c.giveUp(x, keys, err)
		}
	}
	ts := c.e.now()
	err := c.insist(func(context.Context) error { return x.tryCommit(ts, true, x.primary) })
	if err != nil && errkind.Of(err) != errkind.Committed {
		return c.giveUp(x, keys, err)
	}
	for _, key := range keys {
		if err := c.deliver(func(context.Context) error { return x.resolve(ts, key) }); err != nil && !errors.Is(err, errLost) {
			return fmt.Errorf("finish %s: %w", key, err)
		}
	}
	return nil
}

// giveUp rolls the transaction back, after an error that the contract has for it.
func (c *transferClient) giveUp(x *txn, keys []string, err error) error {
	switch errkind.Of(err) {
	case errkind.WriteConflict, errkind.Locked, errkind.RolledBack, errkind.CommitTSExpired:
	default:
		return err
	}
	for _, key := range append([]string{x.primary}, keys...) {
		if err := c.insist(func(context.Context) error { return x.tryRollback(key) }); err != nil {
			return fmt.Errorf("roll %s back: %w", key, err)
		}
	}
	return nil
}

// read reads a balance, and finishes transactions in its way; ok is false if one is alive.
func (c *transferClient) read(key string, ts tso.Timestamp) (n int, ok bool, _ error) {
	for {
		value, err := c.e.tryGet(key, kv.ReadOptions{ReadTS: ts})
		if err == nil {
			n, err := strconv.Atoi(string(value))
			return n, true, err
		}
		locked, ok := errkind.As[*mvcc.KeyLockedError](err)
		if !ok {
			return 0, false, err
		}
		other := &txn{e: c.e, start: locked.Lock.StartTS, primary: string(locked.Lock.Primary)}
		// A primary that has not arrived must not come through once the lock is gone.
		st, err := other.status(func(r *kv.CheckTxnStatusRequest) { r.RollbackIfMissing = true })
		if err != nil || st.Lock != nil {
			return 0, false, err
		}
		if err := other.resolve(st.CommitTS, key); err != nil {
			return 0, false, err
		}
	}
}
