package percolator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/kv/waitgraph"
	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepOracle counts, and takes its time from the test.
type stepOracle struct {
	mu    sync.Mutex
	last  tso.Timestamp
	err   error
	moved time.Duration // by the test, in addition to real time
}

func newStepOracle() *stepOracle { return &stepOracle{last: tso.FromPhysical(1_700_000_000_000)} }

func (o *stepOracle) Now(context.Context) (tso.Timestamp, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	o.last += tso.Tick
	return o.last, nil
}

// advance lets time pass.
func (o *stepOracle) advance(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved += d
	o.last = tso.FromPhysical(o.last.Physical() + d.Milliseconds())
}

// jump moves only the oracle's clock.
func (o *stepOracle) jump(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = tso.FromPhysical(o.last.Physical() + d.Milliseconds())
}

// clock returns the stores' clock.
func (o *stepOracle) clock() func() time.Duration {
	begun := time.Now()
	return func() time.Duration {
		o.mu.Lock()
		defer o.mu.Unlock()
		return time.Since(begun) + o.moved
	}
}

// member is what serves a part of a cluster's keys: a store, or a table.
type member interface {
	kv.Shard
	Router() kv.Router
	Close() error
}

// cluster is a number of stores that divide the keys at fixed bounds, or a table of kv/bigtable.
type cluster struct {
	t      testing.TB
	oracle tso.Oracle
	step   *stepOracle // the oracle, unless the test brought its own
	// undivided: routers still believe that the first store has all keys.
	undivided atomic.Bool
	twoPhases bool     // DBs do not commit asynchronously
	bounds    []string // the first keys of all stores but the first
	stores    []member
	fs        []storage.FS
	opts      kv.Options
	table     *widerow.Memory // nil: stores on fs
}

// newCluster opens len(bounds)+1 stores in memory.
func newCluster(t testing.TB, oracle tso.Oracle, bounds ...string) *cluster {
	t.Helper()
	return newClusterWith(t, oracle, kv.Options{}, bounds...)
}

// newClusterWith is newCluster with options for the stores.
func newClusterWith(t testing.TB, oracle tso.Oracle, opts kv.Options, bounds ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, oracle: oracle, bounds: bounds, opts: opts}
	if oracle == nil {
		c.step = newStepOracle()
		c.oracle = c.step
	}
	for range len(bounds) + 1 {
		c.fs = append(c.fs, storage.NewMemFS())
		c.stores = append(c.stores, nil)
	}
	for i := range c.stores {
		c.open(i)
	}
	t.Cleanup(func() {
		for _, s := range c.stores {
			s.Close()
		}
	})
	return c
}

// open starts a member with what its predecessor has left.
func (c *cluster) open(i int) {
	c.t.Helper()
	if c.table != nil {
		c.openTable()
		return
	}
	opts := c.opts
	opts.Dir, opts.FS, opts.Oracle = "data", c.fs[i], c.oracle
	opts.EmbeddedOracle = len(c.stores) == 1
	opts.CacheBytes = 64 << 20
	opts.ScanBlockRows = 4
	opts.ShardID = fmt.Sprintf("s%d", i)
	if c.step != nil {
		opts.Clock = c.step.clock()
	}
	s, err := kv.Open(context.Background(), opts)
	if err != nil {
		c.t.Fatal(err)
	}
	c.stores[i] = s
}

// tableMember is a shard of kv/bigtable over a table in memory.
type tableMember struct{ *bigtable.Shard }

func (m tableMember) Router() kv.Router { return bigtable.NewRouter(m.Shard) }

func (m tableMember) Close() error {
	m.Shard.Close()
	return nil
}

// newTable is a cluster of one process over a table of kv/bigtable: the engine that states no capability.
func newTable(t testing.TB, oracle tso.Oracle) *cluster {
	t.Helper()
	c := &cluster{t: t, oracle: oracle, table: widerow.NewMemory(), stores: make([]member, 1)}
	if oracle == nil {
		c.step = newStepOracle()
		c.oracle = c.step
	}
	c.opts.WaitGraph = waitgraph.NewLocal()
	c.openTable()
	t.Cleanup(func() { c.stores[0].Close() })
	return c
}

// openTable starts the process of a table.
func (c *cluster) openTable() {
	c.t.Helper()
	opts := bigtable.ShardOptions{Oracle: c.oracle, WaitGraph: c.opts.WaitGraph}
	if c.step != nil {
		begun, clock := time.Now(), c.step.clock()
		opts.Clock = func() time.Time { return begun.Add(clock()) }
	}
	s, err := bigtable.NewShard(context.Background(), bigtable.NewClient(c.table, time.Minute), opts)
	if err != nil {
		c.t.Fatal(err)
	}
	c.stores[0] = tableMember{s}
}

// store returns a store of a cluster that is not a table.
func (c *cluster) store(i int) *kv.Store { return c.stores[i].(*kv.Store) }

// needs skips a test of what the engine does not do.
func (c *cluster) needs(t *testing.T, what string, has func(kv.Capabilities) bool) {
	t.Helper()
	if !has(c.stores[0].Capabilities()) {
		t.Skipf("the shard does not state %s", what)
	}
}

// networked is a shard whose requests a test loses, delays and repeats: it states the capabilities of a network.
type networked struct{ member }

func (n networked) Capabilities() kv.Capabilities {
	caps := n.member.Capabilities()
	caps.ExactlyOnce, caps.WaitForRelease, caps.LargeCommit = false, false, false
	return caps
}

// db returns a DB whose requests go through wrap, if that is given.
func (c *cluster) db(opts Options, wrap func(kv.Shard) kv.Shard) *DB {
	c.t.Helper()
	r := &testRouter{c: c}
	for _, s := range c.stores {
		shard := kv.Shard(s)
		if wrap != nil {
			shard = wrap(networked{s})
		}
		r.shards = append(r.shards, shard)
	}
	opts.DisableAsyncCommit = opts.DisableAsyncCommit || c.twoPhases
	db := New(r, c.oracle, opts)
	c.t.Cleanup(func() { db.Close() })
	return db
}

// testRouter finds a store by the cluster's bounds, and there a range by the store's own router.
type testRouter struct {
	c      *cluster
	shards []kv.Shard
}

func (r *testRouter) at(i int, d *kv.RangeDescriptor, err error) (*kv.RangeDescriptor, kv.Shard, error) {
	if err != nil {
		return nil, nil, err
	}
	var span kv.Span
	if r.c.undivided.Load() {
		return d, r.shards[i], nil
	}
	if i > 0 {
		span.Start = []byte(r.c.bounds[i-1])
	}
	if i < len(r.c.bounds) {
		span.End = []byte(r.c.bounds[i])
	}
	clipped := *d
	clipped.Span = clip(d.Span, span)
	return &clipped, r.shards[i], nil
}

func (r *testRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	i := len(r.c.bounds)
	for i > 0 && (r.c.undivided.Load() || string(key) < r.c.bounds[i-1]) {
		i--
	}
	d, _, err := r.c.stores[i].Router().Locate(ctx, key)
	return r.at(i, d, err)
}

func (r *testRouter) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	i := len(r.c.bounds)
	for len(end) > 0 && i > 0 && string(end) <= r.c.bounds[i-1] {
		i--
	}
	d, _, err := r.c.stores[i].Router().LocateEnd(ctx, end)
	return r.at(i, d, err)
}

func (r *testRouter) Invalidate(*kv.StaleRangeError)             {}
func (r *testRouter) CreateRange(context.Context, kv.Span) error { return nil }
func (r *testRouter) Ranges(ctx context.Context) (descs []kv.RangeDescriptor, _ error) {
	for i := range r.c.stores {
		start := ""
		if i > 0 {
			start = r.c.bounds[i-1]
		}
		d, _, err := r.Locate(ctx, []byte(start))
		if err != nil {
			return nil, err
		}
		descs = append(descs, *d)
	}
	return descs, nil
}
func (r *testRouter) RangeSizes(context.Context) (map[uint64]int64, error) {
	return nil, errors.New("not asked for in these tests")
}

// locks lists the locks of all stores.
func (c *cluster) locks() []mvcc.LockInfo {
	c.t.Helper()
	var all []mvcc.LockInfo
	ctx := context.Background()
	for _, s := range c.stores {
		descs, err := s.Router().Ranges(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		now, err := c.oracle.Now(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, d := range descs {
			locks, err := s.ScanLock(ctx, &kv.ScanLockRequest{Range: d.Ref(), Span: d.Span, MaxTS: now, Limit: 1 << 20})
			if err != nil {
				c.t.Fatal(err)
			}
			all = append(all, locks...)
		}
	}
	slices.SortFunc(all, func(a, b mvcc.LockInfo) int { return bytes.Compare(a.Key, b.Key) })
	return all
}

// hookShard is a Shard with hooks for tests. before may refuse a request; after may replace its answer's error. The
// request is one of the kv.*Request types, or the key of a Get.
type hookShard struct {
	kv.Shard
	before func(ctx context.Context, req any) error
	after  func(ctx context.Context, req, res any, err error) error
}

func hooked[T any](h *hookShard, ctx context.Context, req any, do func() (T, error)) (T, error) {
	var zero T
	if h.before != nil {
		if err := h.before(ctx, req); err != nil {
			return zero, err
		}
	}
	res, err := do()
	if h.after != nil {
		if err := h.after(ctx, req, res, err); err != nil {
			return zero, err
		}
	}
	return res, err
}

func hookedErr(h *hookShard, ctx context.Context, req any, do func() error) error {
	_, err := hooked(h, ctx, req, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (h *hookShard) Get(ctx context.Context, r kv.RangeRef, key []byte, opts kv.ReadOptions) ([]byte, error) {
	return hooked(h, ctx, key, func() ([]byte, error) { return h.Shard.Get(ctx, r, key, opts) })
}

func (h *hookShard) GetLatest(ctx context.Context, r kv.RangeRef, key []byte, floor tso.Timestamp) (kv.LatestValue, error) {
	return hooked(h, ctx, key, func() (kv.LatestValue, error) { return h.Shard.GetLatest(ctx, r, key, floor) })
}

func (h *hookShard) BatchGet(ctx context.Context, req *kv.BatchGetRequest) (*kv.BatchGetResponse, error) {
	return hooked(h, ctx, req, func() (*kv.BatchGetResponse, error) { return h.Shard.BatchGet(ctx, req) })
}

func (h *hookShard) Scan(ctx context.Context, req *kv.ScanRequest) (*kv.ScanResponse, error) {
	return hooked(h, ctx, req, func() (*kv.ScanResponse, error) { return h.Shard.Scan(ctx, req) })
}

func (h *hookShard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	return hooked(h, ctx, req, func() (kv.PrewriteResponse, error) { return h.Shard.Prewrite(ctx, req) })
}

func (h *hookShard) Commit(ctx context.Context, req *kv.CommitRequest) error {
	return hookedErr(h, ctx, req, func() error { return h.Shard.Commit(ctx, req) })
}

func (h *hookShard) Rollback(ctx context.Context, req *kv.RollbackRequest) error {
	return hookedErr(h, ctx, req, func() error { return h.Shard.Rollback(ctx, req) })
}

func (h *hookShard) CheckTxnStatus(ctx context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	return hooked(h, ctx, req, func() (mvcc.TxnStatus, error) { return h.Shard.CheckTxnStatus(ctx, req) })
}

func (h *hookShard) ResolveLock(ctx context.Context, req *kv.ResolveLockRequest) error {
	return hookedErr(h, ctx, req, func() error { return h.Shard.ResolveLock(ctx, req) })
}

func (h *hookShard) Heartbeat(ctx context.Context, req *kv.HeartbeatRequest) (uint64, error) {
	return hooked(h, ctx, req, func() (uint64, error) { return h.Shard.Heartbeat(ctx, req) })
}

func (h *hookShard) ScanLock(ctx context.Context, req *kv.ScanLockRequest) ([]mvcc.LockInfo, error) {
	return hooked(h, ctx, req, func() ([]mvcc.LockInfo, error) { return h.Shard.ScanLock(ctx, req) })
}

func (h *hookShard) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	return hooked(h, ctx, req, func() (kv.AcquireLocksResponse, error) { return h.Shard.AcquireLocks(ctx, req) })
}

func (h *hookShard) ReleaseLocks(ctx context.Context, req *kv.ReleaseLocksRequest) error {
	return hookedErr(h, ctx, req, func() error { return h.Shard.ReleaseLocks(ctx, req) })
}

func (h *hookShard) CheckSecondaryLocks(ctx context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	return hooked(h, ctx, req, func() (mvcc.SecondaryStatus, error) { return h.Shard.CheckSecondaryLocks(ctx, req) })
}

func (h *hookShard) Refresh(ctx context.Context, req *kv.RefreshRequest) error {
	return hookedErr(h, ctx, req, func() error { return h.Shard.Refresh(ctx, req) })
}

// waitIdle waits until the DB's background work is done.
func (db *DB) waitIdle() {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for range db.opts.Workers {
		wg.Add(1)
		for !db.background.submit(func(context.Context) { wg.Done(); <-gate }) {
			time.Sleep(time.Millisecond)
		}
	}
	wg.Wait()
	close(gate)
}

func mustBegin(t testing.TB, db *DB) *Txn {
	t.Helper()
	txn, err := db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

func mustGet(t testing.TB, r Reader, key string) string {
	t.Helper()
	value, err := r.Get(context.Background(), []byte(key))
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	if value == nil {
		return "-"
	}
	return string(value)
}

func mustPut(t testing.TB, w Writer, pairs ...string) {
	t.Helper()
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if err := w.Put([]byte(key), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
}

func mustCommit(t testing.TB, txn *Txn) tso.Timestamp {
	t.Helper()
	ts, err := txn.Commit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// scanAll returns a scan's rows as "k=v k=v".
func scanAll(t testing.TB, r Reader, span kv.Span, opts ScanOptions) string {
	t.Helper()
	it := r.Scan(context.Background(), span, opts)
	defer it.Close()
	var out []string
	for it.Next(context.Background()) {
		out = append(out, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return strings.Join(out, " ")
}
