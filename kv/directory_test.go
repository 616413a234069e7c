package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// testCluster is a directory and stores in one process. Calls from the directory to stores can be
// made to fail.
type testCluster struct {
	t      *testing.T
	fs     *storage.MemFS
	engine *Engine
	oracle *tso.Local
	dir    *LocalDirectory
	stores map[string]*Store

	mu sync.Mutex
	// fail, if set, is called before and after every call of the directory to a store.
	fail func(shard, call string, after bool) error
}

func newTestCluster(t *testing.T, shards ...string) *testCluster {
	c := &testCluster{t: t, fs: storage.NewCrashableMemFS(), stores: map[string]*Store{}}
	engine, err := OpenEngine(EngineOptions{Dir: "oracle", FS: c.fs})
	if err != nil {
		t.Fatal(err)
	}
	c.engine = engine
	if c.oracle, err = tso.NewLocal(context.Background(), engine.WindowStore(), tso.Options{}); err != nil {
		t.Fatal(err)
	}
	c.openDirectory()
	for _, id := range shards {
		c.openStore(id)
	}
	t.Cleanup(c.close)
	return c
}

func (c *testCluster) openDirectory() {
	c.t.Helper()
	dir, err := OpenDirectory(DirectoryOptions{Engine: c.engine, Dial: c.dial})
	if err != nil {
		c.t.Fatal(err)
	}
	c.dir = dir
}

func (c *testCluster) openStore(id string) {
	c.t.Helper()
	store, err := Open(context.Background(), Options{Dir: id, FS: c.fs, ShardID: id, Addr: id,
		Oracle: c.oracle, Directory: c.dir})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.stores[id] = store
	c.mu.Unlock()
}

func (c *testCluster) close() {
	for _, s := range c.stores {
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	}
	if err := errors.Join(c.dir.Close(), c.oracle.Close(), c.engine.Close()); err != nil {
		c.t.Error(err)
	}
}

func (c *testCluster) setFail(f func(shard, call string, after bool) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = f
}

func (c *testCluster) dial(_ context.Context, info ShardInfo) (RangeOwner, error) {
	return &flakyOwner{c: c, shard: info.ID}, nil
}

// flakyOwner passes calls on to a store, or loses them, or their answers.
type flakyOwner struct {
	c     *testCluster
	shard string
}

// check returns the injected failure of a call, if there is one. A store that is being opened is registered before it
// listens: it does not answer yet.
func (f *flakyOwner) check(call string, after bool) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.c.stores[f.shard] == nil {
		return fmt.Errorf("shard %s does not listen", f.shard)
	}
	if f.c.fail == nil {
		return nil
	}
	return f.c.fail(f.shard, call, after)
}

func (f *flakyOwner) store() *Store {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.c.stores[f.shard]
}

func (f *flakyOwner) NumRanges(ctx context.Context) (int, error) {
	if err := f.check("num", false); err != nil {
		return 0, err
	}
	return f.store().NumRanges(ctx)
}

func (f *flakyOwner) Status(ctx context.Context) (ShardStatus, error) {
	if err := f.check("status", false); err != nil {
		return ShardStatus{}, err
	}
	return f.store().Status(ctx)
}

func (f *flakyOwner) ReleaseSpan(ctx context.Context, req *ReleaseSpanRequest) (*ReleaseSpanResponse, error) {
	if err := f.check("release", false); err != nil {
		return nil, err
	}
	res, err := f.store().ReleaseSpan(ctx, req)
	return res, errors.Join(err, f.check("release", true))
}

func (f *flakyOwner) AdoptRange(ctx context.Context, req *AdoptRangeRequest) error {
	if err := f.check("adopt", false); err != nil {
		return err
	}
	return errors.Join(f.store().AdoptRange(ctx, req), f.check("adopt", true))
}

// checkOwners verifies that every one of some keys has exactly one owner, and that the directory
// names it; it returns shard by key.
func (c *testCluster) checkOwners(keys ...string) map[string]string {
	c.t.Helper()
	owners := map[string]string{}
	for _, key := range keys {
		for id, s := range c.stores {
			if s.ranges.Load().find([]byte(key)) == nil {
				continue
			}
			if owners[key] != "" {
				c.t.Errorf("key %s is owned by %s and %s", key, owners[key], id)
			}
			owners[key] = id
		}
		desc, _, err := c.dir.Lookup(context.Background(), []byte(key))
		if err != nil {
			c.t.Error(err)
		}
		if owners[key] == "" || desc.Shard != owners[key] {
			c.t.Errorf("key %s is owned by %q, the directory says %q", key, owners[key], desc.Shard)
		}
	}
	return owners
}

func span(start, end string) Span { return Span{Start: []byte(start), End: []byte(end)} }

// Goal: new ranges go to the shard with the fewest, and a span that holds keys stays. Method: three
// stores, six ranges, then one around a key.
func TestCreateRangePlacesOnTheShardWithTheFewest(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b", "c")
	var keys []string
	for i := range 6 {
		key := fmt.Sprintf("t%d", i)
		keys = append(keys, key+"/1")
		if err := c.dir.CreateRange(ctx, span(key+"/", key+"0")); err != nil {
			t.Fatal(err)
		}
	}
	owners := c.checkOwners(append(keys, "", "a", "t00", "zz")...)
	count := map[string]int{}
	for _, key := range keys {
		count[owners[key]]++
	}
	// The first shard keeps what lies between the tables, so the others get them.
	if count["b"] < 2 || count["c"] < 2 {
		t.Errorf("tables by shard: %v", count)
	}

	router, err := NewRouter(RouterOptions{Directory: c.dir, Dial: func(_ context.Context, info ShardInfo) (Shard, error) {
		return c.stores[info.ID], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	desc, shard, err := router.Locate(ctx, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	start, _ := c.oracle.Now(ctx)
	if _, err := shard.Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{desc.Ref()}, Mutations: mutations(put("x", "1")),
		Primary: []byte("x"), StartTS: start, TryOnePC: true}); err != nil {
		t.Fatal(err)
	}
	before := c.checkOwners("x")["x"]
	if err := c.dir.CreateRange(ctx, span("w", "y")); err != nil {
		t.Fatal(err)
	}
	if after := c.checkOwners("x", "w", "xx")["x"]; after != before {
		t.Errorf("a span with a key moved from %s to %s", before, after)
	}
}

// Goal: whatever call or answer is lost, and whenever the directory is restarted, every key ends up
// with one owner. Method: lose each call of the protocol before or after it takes effect, restart
// the directory, let it carry on, look.
func TestCreateRangeSurvivesLostCallsAndRestarts(t *testing.T) {
	lost := errors.New("lost")
	for _, call := range []string{"num", "release", "adopt"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", call, after), func(t *testing.T) {
				c := newTestCluster(t, "a", "b")
				c.setFail(func(_, what string, when bool) error {
					if what == call && when == after {
						return lost
					}
					return nil
				})
				err := c.dir.CreateRange(context.Background(), span("m", "n"))
				if call != "num" && !errors.Is(err, lost) {
					t.Errorf("error %v", err)
				}
				if err := c.dir.Close(); err != nil {
					t.Fatal(err)
				}
				c.setFail(nil)
				c.openDirectory()
				deadline := time.Now().Add(time.Minute)
				for len(c.pendingPlans()) > 0 && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
				owners := c.checkOwners("", "l", "m", "mm", "n", "o")
				if call != "num" && owners["m"] != "b" {
					t.Errorf("owners %v", owners)
				}
			})
		}
	}
}

func (c *testCluster) pendingPlans() []uint64 {
	c.dir.mu.RLock()
	defer c.dir.mu.RUnlock()
	var ids []uint64
	for id := range c.dir.mu.plans {
		ids = append(ids, id)
	}
	return ids
}

// Goal: the new owner never commits below a read that the former owner has served. Method: read an
// empty span late, move it, prewrite with an old start_ts at the new owner, look at the minimum.
func TestAdoptedRangeCommitsAboveFormerReads(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b")
	start, _ := c.oracle.Now(ctx)
	read, _ := c.oracle.Now(ctx)
	desc, _, _ := c.dir.Lookup(ctx, []byte("m"))
	if v, err := c.stores["a"].Get(ctx, desc.Ref(), []byte("m"), ReadOptions{ReadTS: read}); v != nil || err != nil {
		t.Fatal(v, err)
	}
	// The stores opened with timestamps above start, so the fence is seen only on the number read.
	if err := c.dir.CreateRange(ctx, span("m", "n")); err != nil {
		t.Fatal(err)
	}
	var stale *StaleRangeError
	if _, err := c.stores["a"].Get(ctx, desc.Ref(), []byte("m"), ReadOptions{ReadTS: read}); !errors.As(err, &stale) {
		t.Errorf("read at the former owner: %v", err)
	}
	desc, _, _ = c.dir.Lookup(ctx, []byte("m"))
	res, err := c.stores["b"].Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{desc.Ref()}, Mutations: mutations(put("m", "1")),
		Primary: []byte("m"), StartTS: start, TTLMillis: 3000})
	if err != nil || res.MinCommitTS <= read {
		t.Errorf("min_commit_ts %d, read at %d, err %v", res.MinCommitTS, read, err)
	}
}

// Goal: a restarted shard is known with all its ranges, and an emptied data directory is noticed.
// Method: split, restart, register; then open the shard's id on a fresh directory.
func TestShardRestart(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a")
	if err := c.stores["a"].ForceSplit(ctx, []byte("m")); err != nil {
		t.Fatal(err)
	}
	if err := c.stores["a"].Close(); err != nil {
		t.Fatal(err)
	}
	c.openStore("a")
	ranges, _ := c.dir.Ranges(ctx)
	if len(ranges) != 2 || string(ranges[1].Span.Start) != "m" {
		t.Errorf("ranges %v", ranges)
	}
	var lost *LostRangesError
	_, err := Open(ctx, Options{Dir: "fresh", FS: c.fs, ShardID: "a", Addr: "a", Oracle: c.oracle, Directory: c.dir})
	if !errors.As(err, &lost) || len(lost.Lost) != 2 {
		t.Errorf("fresh data directory under an old id: %v", err)
	}
}

// Goal: late reports do not undo what is known. Method: mergeReport on hand-made tables.
func TestMergeReportIgnoresLateNews(t *testing.T) {
	desc := func(id, epoch uint64, start, end, shard string) RangeDescriptor {
		return RangeDescriptor{ID: id, Epoch: epoch, Span: span(start, end), Shard: shard}
	}
	known := []RangeDescriptor{desc(7, 2, "b", "c", "a"), desc(9, 1, "c", "d", "b")}
	late := mergeReport(known, "a", []RangeDescriptor{desc(7, 1, "b", "d", "a")})
	if !slices.EqualFunc(late, known, func(x, y RangeDescriptor) bool { return equalDescriptors(&x, &y) }) {
		t.Errorf("late report gave %v", late)
	}
	split := mergeReport(known, "a", []RangeDescriptor{desc(7, 3, "b", "bb", "a"), desc(11, 1, "bb", "c", "a")})
	if len(split) != 3 || split[1].ID != 11 {
		t.Errorf("split gave %v", split)
	}
}

// Goal: a report among thousands of ranges gives what going through all of them for each would. Method: random
// tables and reports, late ones among them.
func TestMergeReportAgainstAllPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := func(n int, shards ...string) (all []RangeDescriptor) {
		cuts := map[int]bool{}
		for len(cuts) < n {
			cuts[r.IntN(10*n)] = true
		}
		at := slices.Sorted(maps.Keys(cuts))
		for i := range at {
			end := ""
			if i+1 < n {
				end = fmt.Sprintf("%06d", at[i+1])
			}
			all = append(all, RangeDescriptor{ID: uint64(at[i]/2 + 1), Epoch: r.Uint64N(3), Span: span(fmt.Sprintf("%06d", at[i]), end), Shard: shards[r.IntN(len(shards))]})
		}
		return slices.CompactFunc(all, func(a, b RangeDescriptor) bool { return a.ID == b.ID })
	}
	for range 300 {
		known := table(1+r.IntN(30), "a", "b")
		owned := slices.DeleteFunc(table(1+r.IntN(30), "a"), func(RangeDescriptor) bool { return r.IntN(2) == 0 })
		r.Shuffle(len(owned), func(i, j int) { owned[i], owned[j] = owned[j], owned[i] })
		var want, news []RangeDescriptor
		for _, o := range owned {
			if !slices.ContainsFunc(known, func(k RangeDescriptor) bool {
				return k.ID == o.ID && k.Epoch > o.Epoch || k.Shard != "a" && k.Span.Overlaps(&o.Span)
			}) {
				news = append(news, o)
			}
		}
		want = slices.Clone(news)
		for _, k := range known {
			if !slices.ContainsFunc(news, func(n RangeDescriptor) bool { return n.ID == k.ID || n.Span.Overlaps(&k.Span) }) {
				want = append(want, k)
			}
		}
		sortDescriptors(want)
		if got := mergeReport(known, "a", owned); !slices.EqualFunc(got, want, func(x, y RangeDescriptor) bool { return equalDescriptors(&x, &y) }) {
			t.Fatalf("known %v\nowned %v\ngot   %v\nwant  %v", known, owned, got, want)
		}
	}
}

// Goal: a data directory serves one purpose; a cluster's store never takes itself for the owner of all
// keys, and can still be looked at. Method: open directories of each kind as the others.
func TestDataDirectoryKeepsItsUse(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b")
	if err := c.dir.CreateRange(ctx, span("m", "n")); err != nil {
		t.Fatal(err)
	}
	if err := c.stores["b"].Close(); err != nil {
		t.Fatal(err)
	}
	delete(c.stores, "b")
	var mode *ModeError
	if _, err := Open(ctx, Options{Dir: "b", FS: c.fs, Oracle: c.oracle}); !errors.As(err, &mode) {
		t.Errorf("a cluster's store on its own: %v", err)
	}
	if _, err := Open(ctx, Options{Engine: c.engine, Oracle: c.oracle}); !errors.As(err, &mode) {
		t.Errorf("a store in the directory's engine: %v", err)
	}
	s, err := Open(ctx, Options{Dir: "b", FS: c.fs, Oracle: c.oracle, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	findings, err := s.Check(ctx)
	if len(findings) > 0 || err != nil || !s.Clustered() || len(s.ownedRanges()) != 1 {
		t.Errorf("detached store: %v, %v, %d ranges", findings, err, len(s.ownedRanges()))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	single := openTestStore(t, storage.NewMemFS(), nil)
	if _, err := OpenDirectory(DirectoryOptions{Engine: single.engine, Dial: c.dial}); !errors.As(err, &mode) {
		t.Errorf("a directory in a store's engine: %v", err)
	}
}
