package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// ttl is the TTL of locks in milliseconds of the oracle's time, which advances only when a case advances it.
const ttl = 3000

// caseTimeout bounds the waits of a case.
const caseTimeout = 2 * time.Minute

// steppedOracle counts, and takes its time from the case.
type steppedOracle struct {
	mu   sync.Mutex
	last tso.Timestamp
}

func (o *steppedOracle) Now(context.Context) (tso.Timestamp, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last += tso.Tick
	return o.last, nil
}

// env is one case: an engine, its oracle, and short forms of the requests.
type env struct {
	testing.TB
	ctx      context.Context
	cancel   context.CancelFunc
	oracle   *steppedOracle
	engine   *Engine
	recorder *recorder
	caps     kv.Capabilities
	closed   bool // the shard is closed
}

func newEnv(t testing.TB, open Factory, seen *coverage) *env {
	// The engine's own clock may bound the timestamps that it accepts.
	oracle := &steppedOracle{last: tso.FromPhysical(time.Now().UnixMilli())}
	engine := open(t, oracle)
	e := &env{TB: t, oracle: oracle, engine: engine}
	e.recorder = &recorder{Router: engine.Router, seen: seen, rand: rand.New(rand.NewPCG(1, uint64(len(t.Name()))))}
	e.ctx, e.cancel = context.WithTimeout(t.Context(), caseTimeout)
	_, shard := e.at("a")
	e.caps = shard.Capabilities()
	return e
}

func (e *env) now() tso.Timestamp {
	ts, _ := e.oracle.Now(e.ctx)
	return ts
}

// pass has the oracle's time go on.
func (e *env) pass(millis int64) {
	e.oracle.mu.Lock()
	defer e.oracle.mu.Unlock()
	e.oracle.last = tso.FromPhysical(e.oracle.last.Physical() + millis)
}

// future is a timestamp that was not issued.
func (e *env) future() tso.Timestamp { return tso.FromPhysical(e.now().Physical() + 3_600_000) }

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// want fails unless err is an E, which it returns.
func want[E error](e *env, err error) E {
	e.Helper()
	var typed E
	if !errors.As(err, &typed) {
		e.Fatalf("%v (%T), want %T", err, err, typed)
	}
	return typed
}

// equal fails unless got is as wanted.
func equal[T comparable](e *env, what string, got, want T) {
	e.Helper()
	if got != want {
		e.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// at returns the ref of a key's range, and its shard.
func (e *env) at(key string) (kv.RangeRef, kv.Shard) {
	e.Helper()
	d, s, err := e.recorder.Locate(e.ctx, []byte(key))
	e.must(err)
	return d.Ref(), s
}

// on returns the refs of the ranges of ascending keys, and their shard.
func (e *env) on(keys ...string) (refs []kv.RangeRef, shard kv.Shard) {
	e.Helper()
	for _, key := range keys {
		ref, s := e.at(key)
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
		shard = s
	}
	if shard == nil { // a request without keys
		var ref kv.RangeRef
		ref, shard = e.at("a")
		refs = append(refs, ref)
	}
	return refs, shard
}

func bytesOf(keys []string) [][]byte {
	out := make([][]byte, len(keys))
	for i, key := range keys {
		out[i] = []byte(key)
	}
	return out
}

func put(key, value string) mvcc.Mutation {
	return mvcc.Mutation{Op: mvcc.OpPut, Key: []byte(key), Value: []byte(value)}
}

func insert(key, value string) mvcc.Mutation {
	m := put(key, value)
	m.MustBeNew = true
	return m
}

func del(key string) mvcc.Mutation { return mvcc.Mutation{Op: mvcc.OpDelete, Key: []byte(key)} }

func lockOnly(key string) mvcc.Mutation { return mvcc.Mutation{Op: mvcc.OpLock, Key: []byte(key)} }

func absentKey(key string) mvcc.Mutation {
	return mvcc.Mutation{Op: mvcc.OpCheckNotExists, Key: []byte(key)}
}

// locked is m for a key that was locked as of ts.
func locked(m mvcc.Mutation, ts tso.Timestamp) mvcc.Mutation {
	m.LockedAt = ts
	return m
}

// txn is a transaction of a case.
type txn struct {
	e       *env
	start   tso.Timestamp
	primary string
}

func (e *env) begin(primary string) *txn { return &txn{e: e, start: e.now(), primary: primary} }

func keysOf(ms []mvcc.Mutation) []string {
	keys := make([]string, len(ms))
	for i := range ms {
		keys[i] = string(ms[i].Key)
	}
	return keys
}

// tryPrewrite sends ms, changed as the case likes.
func (x *txn) tryPrewrite(change func(*kv.PrewriteRequest), ms ...mvcc.Mutation) (kv.PrewriteResponse, error) {
	x.e.Helper()
	refs, shard := x.e.on(keysOf(ms)...)
	req := &kv.PrewriteRequest{Ranges: refs, Mutations: ms, Primary: []byte(x.primary), StartTS: x.start, TTLMillis: ttl, TxnSize: uint32(len(ms))}
	if change != nil {
		change(req)
	}
	return shard.Prewrite(x.e.ctx, req)
}

func (x *txn) prewrite(ms ...mvcc.Mutation) kv.PrewriteResponse {
	x.e.Helper()
	res, err := x.tryPrewrite(nil, ms...)
	x.e.must(err)
	return res
}

func onePhase(req *kv.PrewriteRequest) { req.TryOnePC = true }

func (x *txn) tryCommit(ts tso.Timestamp, primary bool, keys ...string) error {
	x.e.Helper()
	refs, shard := x.e.on(keys...)
	return shard.Commit(x.e.ctx, &kv.CommitRequest{Ranges: refs, Keys: bytesOf(keys), StartTS: x.start, CommitTS: ts, Primary: primary})
}

// commit commits keys, the primary first, at a fresh timestamp.
func (x *txn) commit(keys ...string) tso.Timestamp {
	x.e.Helper()
	ts := x.e.now()
	x.e.must(x.tryCommit(ts, true, x.primary))
	rest := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == x.primary })
	if len(rest) > 0 {
		x.e.must(x.tryCommit(ts, false, rest...))
	}
	return ts
}

func (x *txn) tryRollback(keys ...string) error {
	x.e.Helper()
	refs, shard := x.e.on(keys...)
	return shard.Rollback(x.e.ctx, &kv.RollbackRequest{Ranges: refs, Keys: bytesOf(keys), StartTS: x.start})
}

func (x *txn) resolve(ts tso.Timestamp, keys ...string) error {
	x.e.Helper()
	refs, shard := x.e.on(keys...)
	return shard.ResolveLock(x.e.ctx, &kv.ResolveLockRequest{Ranges: refs, Keys: bytesOf(keys), StartTS: x.start, CommitTS: ts})
}

// status checks the status at the primary as of now, with a request changed by the case.
func (x *txn) status(change func(*kv.CheckTxnStatusRequest)) (mvcc.TxnStatus, error) {
	x.e.Helper()
	ref, shard := x.e.at(x.primary)
	req := &kv.CheckTxnStatusRequest{Range: ref, Primary: []byte(x.primary), StartTS: x.start, NowTS: x.e.now()}
	if change != nil {
		change(req)
	}
	return shard.CheckTxnStatus(x.e.ctx, req)
}

func (x *txn) heartbeat(millis uint64) (uint64, error) {
	x.e.Helper()
	ref, shard := x.e.at(x.primary)
	return shard.Heartbeat(x.e.ctx, &kv.HeartbeatRequest{Range: ref, Primary: []byte(x.primary), StartTS: x.start, TTLMillis: millis})
}

func (x *txn) tryAcquire(change func(*kv.AcquireLocksRequest), keys ...string) (kv.AcquireLocksResponse, error) {
	x.e.Helper()
	refs, shard := x.e.on(keys...)
	req := &kv.AcquireLocksRequest{Ranges: refs, Keys: bytesOf(keys), Primary: []byte(x.primary), StartTS: x.start, ReadTS: x.start, TTLMillis: ttl}
	if change != nil {
		change(req)
	}
	return shard.AcquireLocks(x.e.ctx, req)
}

func (x *txn) acquire(keys ...string) []tso.Timestamp {
	x.e.Helper()
	res, err := x.tryAcquire(nil, keys...)
	x.e.must(err)
	return res.LockedAt
}

func shared(req *kv.AcquireLocksRequest) { req.Shared = true }

func (x *txn) release(upTo tso.Timestamp, keys ...string) {
	x.e.Helper()
	refs, shard := x.e.on(keys...)
	x.e.must(shard.ReleaseLocks(x.e.ctx, &kv.ReleaseLocksRequest{Ranges: refs, Keys: bytesOf(keys), StartTS: x.start, ForUpdateTS: upTo}))
}

func (x *txn) secondaries(change func(*kv.CheckSecondaryLocksRequest), keys ...string) (mvcc.SecondaryStatus, error) {
	x.e.Helper()
	refs, shard := x.e.on(keys...)
	req := &kv.CheckSecondaryLocksRequest{Ranges: refs, Keys: bytesOf(keys), StartTS: x.start}
	if change != nil {
		change(req)
	}
	return shard.CheckSecondaryLocks(x.e.ctx, req)
}

func (x *txn) refresh(from, to tso.Timestamp, spans ...kv.Span) error {
	return x.refreshPast(nil, from, to, spans...)
}

func (x *txn) refreshPast(bypass []tso.Timestamp, from, to tso.Timestamp, spans ...kv.Span) error {
	x.e.Helper()
	refs, shard := x.e.on(string(spans[0].Start))
	return shard.Refresh(x.e.ctx, &kv.RefreshRequest{Ranges: refs, Spans: spans, StartTS: x.start, FromTS: from, ToTS: to, Bypass: bypass})
}

// store commits ms in a transaction of its own, in two phases, and returns the commit_ts.
func (e *env) store(ms ...mvcc.Mutation) tso.Timestamp {
	e.Helper()
	x := e.begin(string(ms[0].Key))
	x.prewrite(ms...)
	return x.commit(keysOf(ms)...)
}

func (e *env) tryGet(key string, opts kv.ReadOptions) ([]byte, error) {
	e.Helper()
	ref, shard := e.at(key)
	return shard.Get(e.ctx, ref, []byte(key), opts)
}

// text shows a value, "-" for an absent one.
func text(value []byte) string {
	if value == nil {
		return "-"
	}
	return string(value)
}

func (e *env) get(key string, ts tso.Timestamp) string {
	e.Helper()
	value, err := e.tryGet(key, kv.ReadOptions{ReadTS: ts})
	e.must(err)
	return text(value)
}

func (e *env) latest(key string, floor tso.Timestamp) (kv.LatestValue, error) {
	e.Helper()
	ref, shard := e.at(key)
	return shard.GetLatest(e.ctx, ref, []byte(key), floor)
}

func (e *env) batch(ts tso.Timestamp, keys ...string) (*kv.BatchGetResponse, error) {
	e.Helper()
	refs, shard := e.on(keys...)
	return shard.BatchGet(e.ctx, &kv.BatchGetRequest{Ranges: refs, Keys: bytesOf(keys), ReadOptions: kv.ReadOptions{ReadTS: ts}})
}

func span(start, end string) kv.Span { return kv.Span{Start: []byte(start), End: []byte(end)} }

// point is the span of one key.
func point(key string) kv.Span { return span(key, key+"\x00") }

// scan requests one page of [start, end) as of now, with a request changed by the case.
func (e *env) scan(start, end string, change func(*kv.ScanRequest)) (*kv.ScanResponse, error) {
	e.Helper()
	ref, shard := e.at(start)
	req := &kv.ScanRequest{Ranges: []kv.RangeRef{ref}, Spans: []kv.Span{span(start, end)}, Limit: 100, ReadOptions: kv.ReadOptions{ReadTS: e.now()}}
	if change != nil {
		change(req)
	}
	return shard.Scan(e.ctx, req)
}

func rowsOf(rows []kv.KeyValue) string {
	var out []string
	for i := range rows {
		out = append(out, fmt.Sprintf("%s=%s", rows[i].Key, rows[i].Value))
	}
	return strings.Join(out, " ")
}

// page is scan, shown as its rows.
func (e *env) page(start, end string, change func(*kv.ScanRequest)) string {
	e.Helper()
	res, err := e.scan(start, end, change)
	e.must(err)
	return rowsOf(res.Rows)
}

// eachRange calls do for every range in key order, and again for those whose route turns out stale.
func (e *env) eachRange(do func(d *kv.RangeDescriptor, shard kv.Shard) error) {
	e.Helper()
	for key, end := []byte(nil), false; !end; {
		d, shard, err := e.recorder.Locate(e.ctx, key)
		e.must(err)
		err = do(d, shard)
		if stale, ok := errkind.As[*kv.StaleRangeError](err); ok {
			e.recorder.Invalidate(stale)
			continue
		}
		e.must(err)
		key, end = d.Span.End, len(d.Span.End) == 0
	}
}

// locks lists all locks.
func (e *env) locks() (all []mvcc.LockInfo) {
	e.Helper()
	e.eachRange(func(d *kv.RangeDescriptor, shard kv.Shard) error {
		locks, err := shard.ScanLock(e.ctx, &kv.ScanLockRequest{Range: d.Ref(), Span: d.Span, MaxTS: e.now(), Limit: 10_000})
		all = append(all, locks...)
		return err
	})
	return all
}

// lockedKeys shows whose lock is on which key.
func (e *env) lockedKeys() string {
	e.Helper()
	var keys []string
	for _, l := range e.locks() {
		keys = append(keys, string(l.Key))
	}
	return strings.Join(keys, " ")
}

// dump shows all rows as of ts.
func (e *env) dump(ts tso.Timestamp) string {
	e.Helper()
	var rows []kv.KeyValue
	e.eachRange(func(d *kv.RangeDescriptor, shard kv.Shard) error {
		page, err := shard.Scan(e.ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{d.Ref()}, Spans: []kv.Span{d.Span}, Limit: 1 << 20, ReadOptions: kv.ReadOptions{ReadTS: ts}})
		for err == nil {
			if len(page.Locked) > 0 {
				e.Fatalf("%s is locked by %d", page.Locked[0].Key, page.Locked[0].Lock.StartTS)
			}
			rows = append(rows, page.Rows...)
			if page.ResumeKey == nil {
				return nil
			}
			page, err = shard.Scan(e.ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{d.Ref()}, Spans: []kv.Span{{Start: page.ResumeKey, End: d.Span.End}}, Limit: 1 << 20,
				ReadOptions: kv.ReadOptions{ReadTS: ts}})
		}
		return err
	})
	return rowsOf(rows)
}

// settle ends all transactions that hold locks, as their own clients would that give up.
func (e *env) settle() {
	e.Helper()
	for range 10 {
		locks := e.locks()
		if len(locks) == 0 {
			return
		}
		for _, l := range locks {
			x := &txn{e: e, start: l.Lock.StartTS, primary: string(l.Lock.Primary)}
			if l.Lock.Op == mvcc.OpPessimistic {
				x.release(tso.MaxTimestamp, string(l.Key))
				continue
			}
			var commitTS tso.Timestamp
			err := x.tryRollback(x.primary)
			if committed, ok := errkind.As[*mvcc.AlreadyCommittedError](err); ok {
				commitTS = committed.CommitTS
			} else {
				e.must(err)
			}
			e.must(x.resolve(commitTS, string(l.Key)))
		}
	}
	e.Fatalf("locks that cannot be ended: %s", e.lockedKeys())
}

// replay delivers all acknowledged requests again, late and in another order. Nothing that could be read may change.
func (e *env) replay() {
	e.Helper()
	if e.closed {
		return
	}
	r := e.recorder
	r.mu.Lock()
	kept := r.kept
	r.off = true
	r.mu.Unlock()
	e.settle()
	before := e.now()
	rows := e.dump(before)
	r.rand.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	for _, request := range kept {
		err := request(e.ctx)
		switch errkind.Of(err) {
		case errkind.Invalid, errkind.Corrupt, errkind.Context:
			e.Fatalf("an acknowledged request that comes late is answered with %v", err)
		}
	}
	e.settle()
	equal(e, "rows as of a snapshot before late duplicates", e.dump(before), rows)
	equal(e, "rows after late duplicates", e.dump(e.now()), rows)
}

// queued starts a request that has to wait for a lock, and returns once another transaction can see it wait.
func (x *txn) queued(change func(*kv.AcquireLocksRequest), key string) <-chan acquired {
	x.e.Helper()
	done := make(chan acquired, 1)
	go func() {
		res, err := x.tryAcquire(func(req *kv.AcquireLocksRequest) {
			req.Wait = caseTimeout
			if change != nil {
				change(req)
			}
		}, key)
		done <- acquired{res, err}
	}()
	for {
		for _, l := range x.e.locks() {
			if bytes.Equal(l.Key, []byte(key)) && slices.Contains(l.Waiters, x.start) {
				return done
			}
		}
		select {
		case a := <-done:
			x.e.Fatalf("a request for %s did not wait: %+v", key, a)
		case <-time.After(time.Millisecond):
		}
	}
}

type acquired struct {
	res kv.AcquireLocksResponse
	err error
}

// granted waits for the end of a queued request, which must have got its lock.
func (e *env) granted(done <-chan acquired) tso.Timestamp {
	e.Helper()
	a := e.answer(done)
	e.must(a.err)
	return a.res.LockedAt[0]
}

func (e *env) answer(done <-chan acquired) acquired {
	e.Helper()
	select {
	case a := <-done:
		return a
	case <-e.ctx.Done():
		e.Fatal("a request for a lock is not answered")
		return acquired{}
	}
}
