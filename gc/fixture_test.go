package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepOracle counts, and takes its time from the test.
type stepOracle struct {
	mu   sync.Mutex
	last tso.Timestamp
}

func (o *stepOracle) Now(context.Context) (tso.Timestamp, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last += tso.Tick
	return o.last, nil
}

func (o *stepOracle) advance(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = tso.FromPhysical(o.last.Physical() + d.Milliseconds())
}

// clock moves with the oracle's time.
func (o *stepOracle) clock() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Duration(o.last.Physical()) * time.Millisecond
}

// memorySettings are settings that last as long as the test.
type memorySettings struct {
	stored  kv.GCSettings
	cleared map[string]tso.Timestamp
}

func (m *memorySettings) LoadCleared() (map[string]tso.Timestamp, error) {
	return maps.Clone(m.cleared), nil
}

func (m *memorySettings) SaveCleared(cleared map[string]tso.Timestamp) error {
	if m.cleared == nil {
		m.cleared = map[string]tso.Timestamp{}
	}
	maps.Copy(m.cleared, cleared)
	return nil
}

func (m *memorySettings) LoadGC() (kv.GCSettings, error)  { return m.stored, nil }
func (m *memorySettings) SaveGC(next kv.GCSettings) error { m.stored = next; return nil }
func (m *memorySettings) String() string                  { return fmt.Sprint(m.stored) }

// world is two stores on filesystems that can crash, with keys below "m" on the first, a client, and a controller whose
// rounds the test runs.
type world struct {
	t        testing.TB
	oracle   *stepOracle
	fs       [2]*storage.MemFS
	stores   [2]*kv.Store
	db       *percolator.DB
	hook     atomic.Pointer[hookFunc]
	settings memorySettings
	clock    time.Time // of leases
	bounds   [2]tso.Timestamp
	down     [2]bool // unavailable stores
	*Controller
}

// hookFunc sees requests to shards and may refuse them.
type hookFunc func(shard int, req any) error

func (w *world) setHook(f hookFunc) { w.hook.Store(&f) }

func newWorld(t testing.TB) *world {
	w := &world{t: t, oracle: &stepOracle{last: tso.FromPhysical(1_700_000_000_000)}, clock: time.Unix(1_700_000_000, 0)}
	for i := range w.fs {
		w.fs[i] = storage.NewCrashableMemFS()
	}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	for i := range w.stores {
		s, err := kv.Open(context.Background(), kv.Options{Dir: "data", FS: w.fs[i], Oracle: w.oracle, ShardID: fmt.Sprint("s", i), CacheBytes: 8 << 20, Clock: w.oracle.clock})
		if err != nil {
			w.t.Fatal(err)
		}
		w.stores[i] = s
	}
	w.db = percolator.New(&router{w}, w.oracle, percolator.Options{RetryBudget: 300 * time.Millisecond, Workers: 1})
	var err error
	w.Controller, err = New(Options{
		Oracle: w.oracle, Resolver: w.db, Settings: &w.settings, Life: time.Minute, Clock: func() time.Time { return w.clock },
		Members: func(context.Context) ([]Member, error) {
			return []Member{
				{ID: "s0", Shard: w.shard(0), LockBound: w.bounds[0], Spans: []kv.Span{{End: []byte("m")}}},
				{ID: "s1", Shard: w.shard(1), LockBound: w.bounds[1], Spans: []kv.Span{{Start: []byte("m")}}},
			}, nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) close() {
	if w.db == nil {
		return
	}
	w.Controller.Close()
	w.db.Close()
	w.db = nil
	for _, s := range w.stores {
		s.Close()
	}
}

// crash cuts the power of both stores: what was not synced is lost.
func (w *world) crash() {
	w.t.Helper()
	var lost [2]*storage.MemFS
	for i := range w.fs {
		lost[i] = storage.CrashClone(w.fs[i], 0, nil)
	}
	w.close()
	w.fs = lost
	w.open()
}

func (w *world) shard(i int) kv.Shard {
	return &downShard{Shard: &hookShard{Shard: w.stores[i], w: w, i: i}, w: w, i: i}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(pairs ...string) tso.Timestamp {
	w.t.Helper()
	ts, err := w.write(pairs...)
	w.must(err)
	return ts
}

// write commits key, value, key, value…; an empty value deletes.
func (w *world) write(pairs ...string) (tso.Timestamp, error) {
	ctx := context.Background()
	txn, err := w.db.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer txn.Close()
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			err = txn.Delete([]byte(pairs[i]))
		} else {
			err = txn.Put([]byte(pairs[i]), []byte(pairs[i+1]))
		}
		if err != nil {
			return 0, err
		}
	}
	return txn.Commit(ctx)
}

func (w *world) get(key string) string {
	w.t.Helper()
	txn, err := w.db.Begin(context.Background())
	w.must(err)
	defer txn.Close()
	value, err := txn.Get(context.Background(), []byte(key))
	w.must(err)
	return string(value)
}

// locks counts the prewritten locks of both stores.
func (w *world) locks() (n int) {
	w.t.Helper()
	now, _ := w.oracle.Now(context.Background())
	for _, s := range w.stores {
		descs, err := s.Router().Ranges(context.Background())
		w.must(err)
		locks, err := s.ScanLock(context.Background(), &kv.ScanLockRequest{Range: descs[0].Ref(), Span: descs[0].Span, MaxTS: now, Limit: 100})
		w.must(err)
		n += len(locks)
	}
	return n
}

// router splits the keys between the stores at "m".
type router struct{ w *world }

func (r *router) at(i int, d *kv.RangeDescriptor, err error) (*kv.RangeDescriptor, kv.Shard, error) {
	if err != nil {
		return nil, nil, err
	}
	clipped := *d
	if clipped.Shard = fmt.Sprint("s", i); i == 0 {
		clipped.Span.End = []byte("m")
	} else {
		clipped.Span.Start = []byte("m")
	}
	return &clipped, r.w.shard(i), nil
}

func (r *router) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	i := 0
	if string(key) >= "m" {
		i = 1
	}
	d, _, err := r.w.stores[i].Router().Locate(ctx, key)
	return r.at(i, d, err)
}

func (r *router) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	i := 0
	if len(end) == 0 || string(end) > "m" {
		i = 1
	}
	d, _, err := r.w.stores[i].Router().LocateEnd(ctx, end)
	return r.at(i, d, err)
}

func (r *router) Invalidate(*kv.StaleRangeError)             {}
func (r *router) CreateRange(context.Context, kv.Span) error { return nil }
func (r *router) Ranges(context.Context) ([]kv.RangeDescriptor, error) {
	return nil, errors.New("not asked for in these tests")
}
func (r *router) RangeSizes(context.Context) (map[uint64]int64, error) {
	return nil, errors.New("not asked for in these tests")
}

// hookShard lets the test see and refuse what ends transactions and what collects.
type hookShard struct {
	kv.Shard
	w *world
	i int
}

func (h *hookShard) before(req any) error {
	if f := h.w.hook.Load(); f != nil && *f != nil {
		return (*f)(h.i, req)
	}
	return nil
}

func (h *hookShard) Commit(ctx context.Context, req *kv.CommitRequest) error {
	if err := h.before(req); err != nil {
		return err
	}
	return h.Shard.Commit(ctx, req)
}

func (h *hookShard) CollectGarbage(ctx context.Context, req *kv.CollectGarbageRequest) (kv.CollectGarbageResponse, error) {
	if err := h.before(req); err != nil {
		return kv.CollectGarbageResponse{}, err
	}
	return h.Shard.CollectGarbage(ctx, req)
}

func (h *hookShard) SyncLog(ctx context.Context) (uint64, error) {
	if err := h.before("sync"); err != nil {
		return 0, err
	}
	return h.Shard.SyncLog(ctx)
}

var errDropped = &kv.UnavailableError{Shard: "test", Err: errors.New("the test drops it")}

func isTooOld(err error) bool {
	var old *mvcc.TooOldError
	return errors.As(err, &old)
}
