package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Goal: the records of transactions that may have locks on an unavailable store, and of those whose locks were left,
// are protected. Method: tables.
func TestProtect(t *testing.T) {
	cleared := map[string]tso.Timestamp{"a": 5}
	got := protect([]Member{{ID: "a", LockBound: 20}, {ID: "new", LockBound: 30}}, cleared, []kv.LeftLocks{{Shard: "c", Oldest: 8, Newest: 40}})
	want := []kv.TSSpan{{After: 5, Through: 20}, {After: 0, Through: 30}, {After: 7, Through: 40}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	left := []kv.LeftLocks{{Shard: "c", Oldest: 8}}
	for _, tc := range []struct {
		id           string
		before, want tso.Timestamp
	}{{"a", 5, 50}, {"c", 3, 7}, {"c", 7, 7}, {"new", 0, 50}} {
		if got := clearedAfter(50, tc.before, tc.id, left); got != tc.want {
			t.Errorf("%s: cleared up to %d, want %d", tc.id, got, tc.want)
		}
	}
}

// downShard is a shard that may be unavailable.
type downShard struct {
	kv.Shard
	w *world
	i int
}

func (d *downShard) err() error {
	if d.w.down[d.i] {
		return &kv.UnavailableError{Shard: fmt.Sprint("s", d.i), Err: errors.New("the test has stopped it")}
	}
	return nil
}

func (d *downShard) SetSafePoint(ctx context.Context, ts tso.Timestamp) (tso.Timestamp, error) {
	if err := d.err(); err != nil {
		return 0, err
	}
	return d.Shard.SetSafePoint(ctx, ts)
}

func (d *downShard) SyncLog(ctx context.Context) (uint64, error) {
	if err := d.err(); err != nil {
		return 0, err
	}
	return d.Shard.SyncLog(ctx)
}

func (d *downShard) CollectGarbage(ctx context.Context, req *kv.CollectGarbageRequest) (kv.CollectGarbageResponse, error) {
	if err := d.err(); err != nil {
		return kv.CollectGarbageResponse{}, err
	}
	return d.Shard.CollectGarbage(ctx, req)
}

func (d *downShard) DropSpan(ctx context.Context, req *kv.DropSpanRequest) (bool, error) {
	if err := d.err(); err != nil {
		return false, err
	}
	return d.Shard.DropSpan(ctx, req)
}

func (d *downShard) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	if err := d.err(); err != nil {
		return nil, err
	}
	return d.Shard.ScanLock(ctx, req)
}

func (d *downShard) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	if err := d.err(); err != nil {
		return mvcc.TxnStatus{}, err
	}
	return d.Shard.CheckTxnStatus(ctx, req)
}

func (d *downShard) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	if err := d.err(); err != nil {
		return mvcc.SecondaryStatus{}, err
	}
	return d.Shard.CheckSecondaryLocks(ctx, req)
}

func (d *downShard) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	if err := d.err(); err != nil {
		return err
	}
	return d.Shard.ResolveLock(ctx, req)
}

func (w *world) storeOf(key string) int {
	if key < "m" {
		return 0
	}
	return 1
}

func (w *world) ref(key string) kv.RangeRef {
	w.t.Helper()
	d, _, err := w.stores[w.storeOf(key)].Router().Locate(context.Background(), []byte(key))
	w.must(err)
	return d.Ref()
}

// lock prewrites keys of a transaction, the first of which is its primary; async makes it an async commit.
func (w *world) lock(start tso.Timestamp, async bool, keys ...string) {
	w.t.Helper()
	for i, key := range keys {
		req := &kv.PrewriteRequest{Ranges: []kv.RangeRef{w.ref(key)}, Primary: []byte(keys[0]), StartTS: start, TTLMillis: 1000, TxnSize: uint32(len(keys)),
			Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte(key), Value: fmt.Append(nil, start)}}, Async: async}
		if async && i == 0 {
			for _, k := range keys[1:] {
				req.Secondaries = append(req.Secondaries, []byte(k))
			}
		}
		_, err := w.stores[w.storeOf(key)].Prewrite(context.Background(), req)
		w.must(err)
	}
}

func (w *world) now() tso.Timestamp {
	ts, _ := w.oracle.Now(context.Background())
	return ts
}

func (w *world) commit(start tso.Timestamp, key string) {
	w.t.Helper()
	w.must(w.stores[w.storeOf(key)].Commit(context.Background(), &kv.CommitRequest{Ranges: []kv.RangeRef{w.ref(key)},
		Keys: [][]byte{[]byte(key)}, StartTS: start, CommitTS: w.now(), Primary: true}))
}

func (w *world) checkClean() {
	w.t.Helper()
	for i, s := range w.stores {
		findings, err := s.Check(context.Background())
		if err != nil || len(findings) > 0 {
			w.t.Errorf("check of store %d: %v, %v", i, findings, err)
		}
	}
}

func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// Goal: rounds collect on the stores that can be reached while one is away, keep the records of transactions
// that have locks there, and leave the locks whose outcome only that store knows; once it is back all of them get the
// outcomes of their transactions, and the records are removed. Without a lock bound of the store nothing is collected.
// Method: transactions of all kinds over two stores that end halfway, of which one store or the other is away for two
// rounds, with and without power cuts.
func TestRoundsWithoutStore(t *testing.T) {
	for _, tc := range []struct {
		name    string
		away    int
		crashes bool
	}{{"away", 1, false}, {"away, power cuts", 1, true}, {"the other away", 0, false}, {"the other away, power cuts", 0, true}} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			ctx := context.Background()
			there, gone := "a", "z"
			if tc.away == 0 {
				there, gone = gone, there
			}
			key := func(s string, i int) string { return fmt.Sprint(s, i) }
			w.put(there, "0")
			w.oracle.advance(time.Hour)
			w.must(w.Round(ctx)) // clears both
			want := map[string]string{}
			start := func() tso.Timestamp { ts := w.now(); return ts }
			locked := func(async bool, primary, other string) tso.Timestamp {
				ts := start()
				w.lock(ts, async, primary, other)
				return ts
			}
			// 0: committed on the store that stays available; its secondary is locked on the other.
			ts := locked(false, key(there, 0), key(gone, 0))
			w.commit(ts, key(there, 0))
			want[key(gone, 0)] = fmt.Sprint(ts)
			// 1: undecided; the round rolls its primary back.
			locked(false, key(there, 1), key(gone, 1))
			want[key(gone, 1)] = ""
			// 2: committed on the store that becomes unavailable; the lock on the other is left.
			ts = locked(false, key(gone, 2), key(there, 2))
			w.commit(ts, key(gone, 2))
			want[key(there, 2)], want[key(gone, 2)] = fmt.Sprint(ts), fmt.Sprint(ts)
			// 3: undecided, with its primary on the store that becomes unavailable.
			locked(false, key(gone, 3), key(there, 3))
			want[key(there, 3)], want[key(gone, 3)] = "", ""
			// 4: an async commit with all its locks, the primary on the store that becomes unavailable.
			ts = locked(true, key(gone, 4), key(there, 4))
			want[key(there, 4)], want[key(gone, 4)] = fmt.Sprint(ts), fmt.Sprint(ts)
			// 5: its primary is on the store that stays available.
			ts = locked(true, key(there, 5), key(gone, 5))
			want[key(there, 5)], want[key(gone, 5)] = fmt.Sprint(ts), fmt.Sprint(ts)
			if tc.crashes {
				w.crash()
			}
			w.down[tc.away] = true
			for i := range 50 { // the versions that show the outcome of 0 are covered
				w.put(key(there, 0), fmt.Sprint(i))
				w.put(there, fmt.Sprint(i))
			}
			want[key(there, 0)], want[there] = "49", "49"
			before := w.Status().Collected
			w.oracle.advance(time.Hour)
			if err := w.Round(ctx); err == nil || w.Status().Collected != before {
				t.Fatalf("a round without a store of whose locks nothing is known: %v", err)
			}
			for round := range 2 {
				w.bounds[tc.away] = w.now()
				w.oracle.advance(time.Hour)
				w.must(w.Round(ctx))
				st := w.Status()
				if !slices.Equal(st.Away, []string{fmt.Sprint("s", tc.away)}) || st.LeftLocks != 4 || st.Collected <= before {
					t.Fatalf("round %d: %+v", round, st)
				}
				w.checkClean()
				if tc.crashes {
					w.crash()
				}
			}
			if n := count(t, w.metrics.versions); !tc.crashes && n < 90 {
				t.Errorf("%v versions were removed", n)
			}
			w.down[tc.away] = false
			// A store that is available again does this before it serves.
			_, err := w.stores[tc.away].SetSafePoint(ctx, w.Status().SafePoint)
			w.must(err)
			if tc.crashes { // readers resolve it, or the round
				w.oracle.advance(time.Hour)
				w.must(w.Round(ctx))
			}
			for k, v := range want {
				if got := w.get(k); got != v {
					t.Errorf("%s = %q, want %q", k, got, v)
				}
			}
			w.oracle.advance(time.Hour)
			kept := count(t, w.metrics.kept)
			w.must(w.Round(ctx))
			if st := w.Status(); len(st.Away) > 0 || st.LeftLocks > 0 || w.locks() > 0 || count(t, w.metrics.kept) != kept {
				t.Errorf("with all stores: %+v, %d locks, %v records kept", st, w.locks(), count(t, w.metrics.kept)-kept)
			}
			for k, v := range want {
				if got := w.get(k); got != v {
					t.Errorf("after the last round %s = %q, want %q", k, got, v)
				}
			}
			w.checkClean()
		})
	}
}
