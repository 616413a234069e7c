package bigtable

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/faultproxy"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
)

// Goal: the undoing of a prewrite that has failed, executed after the next attempt, does not remove that one's lock. Method: the second key is locked by
// another transaction; the undoing of the first one is executed late; the key is unlocked and the prewrite repeated before that.
func TestLateUndo(t *testing.T) {
	proxy, opts := newProxy(t)
	if _, err := CreateTable(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	client, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	oracle := &tsotest.ClockOracle{}
	shard, err := NewShard(t.Context(), client, ShardOptions{Oracle: oracle})
	if err != nil {
		t.Fatal(err)
	}
	descriptor := theRange()
	refs := []kv.RangeRef{descriptor.Ref()}
	put := func(key string) mvcc.Mutation {
		return mvcc.Mutation{Op: mvcc.OpPut, Key: []byte(key), Value: []byte("v")}
	}
	other := &kv.PrewriteRequest{Ranges: refs, Primary: []byte("b"), StartTS: mustNow(t, oracle), TTLMillis: 60_000, Mutations: []mvcc.Mutation{put("b")}}
	if _, err := shard.Prewrite(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	ours := &kv.PrewriteRequest{Ranges: refs, Primary: []byte("b"), StartTS: mustNow(t, oracle), TTLMillis: 60_000, Mutations: []mvcc.Mutation{put("a"), put("b")}}
	const late = 300 * time.Millisecond
	var conditional atomic.Int32
	proxy.Inject(func(method string, _ []byte) faultproxy.Fault {
		if method == "CheckAndMutateRow" && conditional.Add(1) == 3 { // a is locked, b is refused, a is undone
			return faultproxy.Fault{Err: status.Error(codes.Unavailable, "lost"), Execute: true, Delay: late}
		}
		return faultproxy.Fault{}
	})
	if _, err := shard.Prewrite(t.Context(), ours); err == nil {
		t.Fatal("b is locked")
	}
	proxy.Inject(nil)
	if conditional.Load() != 3 {
		t.Fatalf("%d conditional requests", conditional.Load())
	}
	if err := shard.Rollback(t.Context(), &kv.RollbackRequest{Ranges: refs, Keys: [][]byte{[]byte("b")}, StartTS: other.StartTS}); err != nil {
		t.Fatal(err)
	}
	if _, err := shard.Prewrite(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * late) // The undoing is executed.
	v, err := shard.look(t.Context(), ours.StartTS, []byte("a"))
	if err != nil || v.own == nil || v.own.lock.Op != mvcc.OpPut {
		t.Errorf("%+v, %v: the lock is gone", v, err)
	}
}

// Goal: a lock that was set late, when the rollback record of its transaction's primary had been collected, is removed by whoever meets it. Method: the
// primary is rolled back and collected; the prewrite of the secondary, whose row has no fence, comes through a shard with an old safe point.
func TestLateSecondary(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	start := mustNow(t, e.oracle)
	late, err := NewShard(ctx, e.client, ShardOptions{Oracle: e.oracle})
	if err != nil {
		t.Fatal(err)
	}
	ref := theRange()
	refs := []kv.RangeRef{ref.Ref()}
	if err := e.shard.Rollback(ctx, &kv.RollbackRequest{Ranges: refs, Keys: [][]byte{[]byte("a")}, StartTS: start}); err != nil {
		t.Fatal(err)
	}
	safePoint := mustNow(t, e.oracle)
	if _, err := e.shard.SetSafePoint(ctx, safePoint); err != nil {
		t.Fatal(err)
	}
	if res, err := e.shard.CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: safePoint}); err != nil || res.Statuses != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	if _, err := late.Prewrite(ctx, &kv.PrewriteRequest{Ranges: refs, Primary: []byte("a"), StartTS: start, TTLMillis: 1,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte("b"), Value: []byte("1")}}}); err != nil {
		t.Fatal(err)
	}
	e.withDB(func(db *percolator.DB) {
		if v, err := db.Get(ctx, []byte("b")); v != nil || err != nil {
			t.Errorf("read: %q %v", v, err)
		}
		if _, left, err := db.ResolveBefore(ctx, mustNow(t, e.oracle), nil); len(left) > 0 || err != nil {
			t.Errorf("garbage collection: %v %v", left, err)
		}
	})
	if locks, err := e.shard.ScanLock(ctx, &kv.ScanLockRequest{Range: refs[0], MaxTS: mustNow(t, e.oracle)}); len(locks) > 0 || err != nil {
		t.Errorf("%v %v", locks, err)
	}
}

// Goal: an owner whose commit was executed and whose answer was lost is not told that its transaction was rolled back, when its record has been
// collected: it has to report that the outcome is unknown. Method: another transaction commits on the primary, and the first one's version is
// collected; then its owner asks, and repeats the commit.
func TestProbeOfACollectedCommit(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	ctx := t.Context()
	ref := theRange()
	refs := []kv.RangeRef{ref.Ref()}
	start := mustNow(t, e.oracle)
	if _, err := e.shard.Prewrite(ctx, &kv.PrewriteRequest{Ranges: refs, Primary: []byte("a"), StartTS: start, TTLMillis: 60_000,
		Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte("a"), Value: []byte("1")}}}); err != nil {
		t.Fatal(err)
	}
	commit := &kv.CommitRequest{Ranges: refs, Keys: [][]byte{[]byte("a")}, StartTS: start, CommitTS: mustNow(t, e.oracle), Primary: true}
	if err := e.shard.Commit(ctx, commit); err != nil {
		t.Fatal(err)
	}
	e.mustPut(t, "a=2")
	safePoint := mustNow(t, e.oracle)
	if _, err := e.shard.SetSafePoint(ctx, safePoint); err != nil {
		t.Fatal(err)
	}
	if res, err := e.shard.CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: safePoint}); err != nil || res.Versions != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	st, err := e.shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{Range: refs[0], Primary: []byte("a"), StartTS: start, NowTS: mustNow(t, e.oracle)})
	if errkind.Of(err) != errkind.TxnNotFound {
		t.Errorf("a commit of which nothing is known any more: %+v, %v", st, err)
	}
	if err := e.shard.Commit(ctx, commit); errkind.Of(err) != errkind.TooOld {
		t.Errorf("the commit repeated: %v", err)
	}
}
