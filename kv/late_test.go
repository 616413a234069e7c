package kv

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// lateOwner remembers the requests of the directory, so that the test can have them come once more.
type lateOwner struct {
	RangeOwner
	shard string
	seen  *[]func() error
}

func (l *lateOwner) ReleaseSpan(ctx context.Context, req *ReleaseSpanRequest) (*ReleaseSpanResponse, error) {
	again := *req
	*l.seen = append(*l.seen, func() error {
		_, err := l.RangeOwner.ReleaseSpan(context.Background(), &again)
		return err
	})
	return l.RangeOwner.ReleaseSpan(ctx, req)
}

func (l *lateOwner) AdoptRange(ctx context.Context, req *AdoptRangeRequest) error {
	again := *req
	*l.seen = append(*l.seen, func() error { return l.RangeOwner.AdoptRange(context.Background(), &again) })
	return l.RangeOwner.AdoptRange(ctx, req)
}

// Goal: a request to give a range away or to take it over that arrives once more, however late, changes
// nothing: neither has a range two owners nor none. Method: an empty span goes from shard to shard; then all
// requests there have been come again, and all once more after a restart of the stores.
func TestLateRequestsOfTheDirectory(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b")
	var seen []func() error
	if err := c.dir.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := OpenDirectory(DirectoryOptions{Engine: c.engine, Dial: func(_ context.Context, info ShardInfo) (RangeOwner, error) {
		return &lateOwner{RangeOwner: &flakyOwner{c: c, shard: info.ID}, shard: info.ID, seen: &seen}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.dir = dir
	move := func() string {
		t.Helper()
		if err := c.dir.CreateRange(ctx, span("m", "n")); err != nil {
			t.Fatal(err)
		}
		return c.checkOwners("", "l", "m", "mm", "n")["m"]
	}
	first := move() // to b
	c.openStore("c")
	second := move() // to c
	c.openStore("d")
	third := move()
	if first == second || second == third {
		t.Fatal("the span has not moved:", first, second, third)
	}
	again := func() {
		t.Helper()
		for i := len(seen) - 1; i >= 0; i-- {
			_ = seen[i]() // Whatever it answers: it must change nothing.
			c.checkOwners("", "l", "m", "mm", "n")
		}
	}
	again()
	for id, s := range c.stores {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c.openStore(id)
	}
	again()
}

// Goal: a shard that has kept a span keeps it, though the request to release it comes again when the span has
// become empty: the directory has ended the plan. Method: a key in the span, then not.
func TestLateReleaseOfWhatWasKept(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a")
	s := c.stores["a"]
	ts, _ := c.oracle.Now(ctx)
	desc, _, _ := c.dir.Lookup(ctx, []byte("m"))
	if _, err := s.Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{desc.Ref()}, Mutations: mutations(put("m", "1")),
		Primary: []byte("m"), StartTS: ts, TTLMillis: 3000, TryOnePC: true}); err != nil {
		t.Fatal(err)
	}
	req := &ReleaseSpanRequest{Plan: 77, Span: span("m", "n"), RemainderID: 78}
	if res, err := s.ReleaseSpan(ctx, req); err != nil || res.Released {
		t.Fatal(res, err)
	}
	now, _ := c.oracle.Now(ctx)
	if _, err := s.SetSafePoint(ctx, now); err != nil {
		t.Fatal(err)
	}
	if dropped, err := s.DropSpan(ctx, &DropSpanRequest{Span: req.Span, SafePoint: now}); !dropped || err != nil {
		t.Fatal(dropped, err)
	}
	if res, err := s.ReleaseSpan(ctx, req); err != nil || res.Released {
		t.Error("a span that was kept is released later:", res, err)
	}
	c.checkOwners("", "m", "z")
}

// Goal: one shard's ranges are not served from two data directories. Method: copies of a filesystem, opened
// while the original runs, before it is started again, and after.
func TestCopiedDataDirectory(t *testing.T) {
	ctx := context.Background()
	fs := storage.NewCrashableMemFS()
	engine, err := OpenEngine(EngineOptions{Dir: "oracle", FS: storage.NewMemFS()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	oracle, err := tso.NewLocal(ctx, engine.WindowStore(), tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer oracle.Close()
	byAddr := map[string]*Store{}
	dir, err := OpenDirectory(DirectoryOptions{Engine: engine, Dial: func(_ context.Context, info ShardInfo) (RangeOwner, error) {
		if s := byAddr[info.Addr]; s != nil {
			return s, nil
		}
		return nil, errors.New("connection refused")
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { dir.Close() }()
	open := func(fs *storage.MemFS, addr string) error {
		t.Helper()
		s, err := Open(ctx, Options{Dir: "a", FS: fs, ShardID: "a", Addr: addr, Oracle: oracle, Directory: dir})
		if err == nil {
			byAddr[addr] = s
		}
		return err
	}
	shut := func(addr string) {
		t.Helper()
		if err := byAddr[addr].Close(); err != nil {
			t.Fatal(err)
		}
		delete(byAddr, addr)
	}
	refused := func(what string, err error) {
		t.Helper()
		var replaced *ShardReplacedError
		if !errors.As(err, &replaced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	clone := func() *storage.MemFS { return storage.CrashClone(fs, 0, nil) }

	if err := open(fs, "one"); err != nil {
		t.Fatal(err)
	}
	running := clone()
	refused("a copy beside the original", open(running, "two"))
	shut("one")
	old := clone()
	if err := open(fs, "three"); err != nil { // restarted, at another address
		t.Fatal(err)
	}
	shut("three")
	refused("an older copy", open(old, "four"))
	copied := clone()
	if err := open(copied, "five"); err != nil { // moved to another machine
		t.Fatal(err)
	}
	refused("the original beside its copy", open(fs, "one"))
	shut("five")
	refused("the original after its copy", open(fs, "one"))
	if err := dir.ReportRanges(ctx, "a", 12345, nil); err == nil {
		t.Error("a report of another incarnation is believed")
	}
	dir.Close()
	if dir, err = OpenDirectory(DirectoryOptions{Engine: engine, Dial: dir.opts.Dial}); err != nil {
		t.Fatal(err)
	}
	refused("the original after a restart of the directory", open(fs, "one"))
	if err := open(copied, "five"); err != nil {
		t.Error("the copy that took the place:", err)
	} else {
		shut("five")
	}
}

// Goal: a store that could not be reached while a copy of its data directory was started ends soon afterwards, although
// nothing of its own has changed. A directory of ranges that is older than a store takes it for no copy, whether it runs
// or starts again. Method: the former process is out of reach; the recorded incarnation is an earlier one.
func TestReplacedWhileOutOfReach(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t)
	gate := c.judgedDirectory()
	fatal := make(chan error, 1)
	open := func(dir, addr string) (*Store, error) {
		return Open(ctx, Options{Dir: dir, FS: c.fs, ShardID: "a", Addr: addr, Oracle: gate, Directory: c.dir, OnFatal: func(err error) { fatal <- err }})
	}
	first, err := open("a", "a")
	if err != nil {
		t.Fatal(err)
	}
	record := func() uint64 {
		c.dir.mu.Lock()
		defer c.dir.mu.Unlock()
		return c.dir.mu.incarnations["a"]
	}
	earlier := record()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if first, err = open("a", "a"); err != nil {
		t.Fatal(err)
	}
	later := record()
	c.dir.mu.Lock()
	c.dir.mu.incarnations["a"] = earlier
	c.dir.mu.Unlock()
	if err := c.dir.ReportRanges(ctx, "a", later, first.ownedRanges()); err != nil {
		t.Errorf("a store that runs, under an older directory: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if first, err = open("a", "a"); err != nil {
		t.Fatalf("a store that starts, under an older directory: %v", err)
	}
	defer first.Close()
	copied := storage.CrashClone(c.fs, 100, rand.New(rand.NewPCG(1, 1)))
	second, err := Open(ctx, Options{Dir: "a", FS: copied, ShardID: "a", Addr: "elsewhere", Oracle: gate, Directory: c.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	select {
	case err := <-fatal:
		var replaced *ShardReplacedError
		if !errors.As(err, &replaced) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("two stores serve the ranges of one")
	}
}
