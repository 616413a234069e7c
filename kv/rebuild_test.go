package kv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// behindClock is so far behind the machine's.
type behindClock time.Duration

func (c behindClock) NowMillis() int64 { return time.Now().Add(-time.Duration(c)).UnixMilli() }

// replaceDirectory closes everything, and gives the cluster an empty directory and an oracle of that clock.
func (c *testCluster) replaceDirectory(clock tso.Clock) {
	c.t.Helper()
	for id, s := range c.stores {
		if err := s.Close(); err != nil {
			c.t.Fatal(err)
		}
		delete(c.stores, id)
	}
	if err := errors.Join(c.dir.Close(), c.oracle.Close(), c.engine.Close()); err != nil {
		c.t.Fatal(err)
	}
	var err error
	if c.engine, err = OpenEngine(EngineOptions{Dir: "oracle", FS: storage.NewMemFS()}); err != nil {
		c.t.Fatal(err)
	}
	if c.oracle, err = tso.NewLocal(context.Background(), c.engine.WindowStore(), tso.Options{Clock: clock}); err != nil {
		c.t.Fatal(err)
	}
	c.openDirectory()
}

// Goal: a directory that was lost is rebuilt by what the stores own, whichever comes first, and gives no id twice.
// Method: three stores of which one owns nothing but what it adopted; an empty directory; they register in an
// order in which the first owns the least.
func TestLostDirectoryIsRebuilt(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b")
	if err := c.dir.CreateRange(ctx, span("m", "n")); err != nil {
		t.Fatal(err)
	}
	c.openStore("idle")
	want := c.checkOwners("", "m", "n")
	before, err := c.dir.AllocateRangeID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.replaceDirectory(tso.SystemClock{})
	c.openStore("idle")
	if ranges, _ := c.dir.Ranges(ctx); len(ranges) != 0 {
		t.Fatalf("a store that owned nothing was given %v", ranges)
	}
	c.openStore("b")
	c.openStore("a")
	if got := c.checkOwners("", "m", "n"); got[""] != want[""] || got["m"] != want["m"] {
		t.Errorf("owners %v, were %v", got, want)
	}
	if findings, err := CheckDirectory(ctx, c.dir); len(findings) > 0 || err != nil {
		t.Error(findings, err)
	}
	if id, err := c.dir.AllocateRangeID(ctx); err != nil || id <= before {
		t.Errorf("id %d after %d, %v", id, before, err)
	}
}

// Goal: a new store that was the first to register with a lost directory does not make the data of others
// disappear: they refuse. Method: as above, with a store that was never in the cluster first.
func TestLostDirectoryTakenByANewStore(t *testing.T) {
	c := newTestCluster(t, "a")
	c.replaceDirectory(tso.SystemClock{})
	c.openStore("new")
	_, err := Open(context.Background(), Options{Dir: "a", FS: c.fs, ShardID: "a", Addr: "a", Oracle: c.oracle, Directory: c.dir})
	if err == nil {
		t.Fatal("the store of the cluster has registered, and its ranges are another's")
	}
	t.Log(err)
}

// Goal: a store does not open under an oracle that is behind its data, and does once the oracle has been raised;
// what it commits then lies above what was there. Method: a lost directory whose clock is an hour behind.
func TestOracleBehindAStore(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a")
	write := func(value string) tso.Timestamp {
		t.Helper()
		start, _ := c.oracle.Now(ctx)
		desc, _, _ := c.dir.Lookup(ctx, []byte("m"))
		res, err := c.stores["a"].Prewrite(ctx, &PrewriteRequest{Ranges: []RangeRef{desc.Ref()}, Mutations: mutations(put("m", value)),
			Primary: []byte("m"), StartTS: start, TTLMillis: 3000, TryOnePC: true})
		if err != nil || res.OnePCCommitTS == 0 {
			t.Fatal(res, err)
		}
		return res.OnePCCommitTS
	}
	former := write("1")
	c.replaceDirectory(behindClock(time.Hour))
	_, err := Open(ctx, Options{Dir: "a", FS: c.fs, ShardID: "a", Addr: "a", Oracle: c.oracle, Directory: c.dir})
	var behind *OracleBehindError
	if !errors.As(err, &behind) || behind.Above() <= former {
		t.Fatal(err)
	}
	if err := c.oracle.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.engine.WindowStore().Save(ctx, behind.Above()); err != nil {
		t.Fatal(err)
	}
	if c.oracle, err = tso.NewLocal(ctx, c.engine.WindowStore(), tso.Options{Clock: behindClock(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	c.openStore("a")
	later := write("2")
	now, _ := c.oracle.Now(ctx)
	desc, _, _ := c.dir.Lookup(ctx, []byte("m"))
	if v, err := c.stores["a"].Get(ctx, desc.Ref(), []byte("m"), ReadOptions{ReadTS: now}); later <= former || string(v) != "2" || err != nil {
		t.Errorf("%q at %d after %d, %v", v, later, former, err)
	}
}
