package kv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/tso"
)

// Goal: what a shard tells puts the oracle on hold exactly when the directory must be lost or older. Method: a table.
func TestJudgeAnnouncement(t *testing.T) {
	at := tso.FromPhysical
	info := func(id string) ShardInfo { return ShardInfo{ID: id} }
	ab := map[string]bool{"a": true, "b": true}
	for _, tc := range []struct {
		name string
		view clusterView
		a    Announcement
		want verdict
	}{
		{"first store of all", clusterView{standing: standingEmpty, cluster: 1}, Announcement{ShardInfo: info("a")}, verdictNewCluster},
		{"an old store, an empty directory", clusterView{standing: standingEmpty, cluster: 1}, Announcement{ShardInfo: info("a"), Cluster: 7, Accepted: true}, verdictLost},
		{"one from before there were clusters' numbers", clusterView{standing: standingEmpty, cluster: 1}, Announcement{ShardInfo: info("a"), Accepted: true}, verdictLost},
		{"never accepted, of a cluster", clusterView{standing: standingEmpty, cluster: 1}, Announcement{ShardInfo: info("a"), Cluster: 7}, verdictLost},
		{"a registered store", clusterView{cluster: 7, known: ab, windowEnd: at(9000)}, Announcement{ShardInfo: info("a"), Cluster: 7, Accepted: true, Newest: at(9000), Peers: []string{"a", "b"}}, verdictAgrees},
		{"a new store", clusterView{cluster: 7, known: ab}, Announcement{ShardInfo: info("c")}, verdictAgrees},
		{"a new store that has announced itself before", clusterView{cluster: 7, known: ab}, Announcement{ShardInfo: info("c"), Cluster: 7, Peers: []string{"a", "c"}}, verdictAgrees},
		{"an accepted store that is not registered", clusterView{cluster: 7, known: ab}, Announcement{ShardInfo: info("c"), Cluster: 7, Accepted: true}, verdictOlder},
		{"a peer that is not registered", clusterView{cluster: 7, known: ab}, Announcement{ShardInfo: info("a"), Cluster: 7, Accepted: true, Peers: []string{"c"}}, verdictOlder},
		{"a forgotten peer", clusterView{cluster: 7, known: ab, forgotten: map[string]bool{"c": true}}, Announcement{ShardInfo: info("a"), Cluster: 7, Accepted: true, Peers: []string{"c"}}, verdictAgrees},
		{"a later timestamp", clusterView{cluster: 7, known: ab, windowEnd: at(9000)}, Announcement{ShardInfo: info("a"), Cluster: 7, Accepted: true, Newest: at(9001 + behindMillis)}, verdictOlder},
		{"a later timestamp, while shards are asked", clusterView{standing: standingAsking, cluster: 7, known: ab, windowEnd: at(9000)}, Announcement{ShardInfo: info("a"), Newest: at(9001 + behindMillis)}, verdictOlder},
		{"a store of another cluster", clusterView{cluster: 7, known: ab}, Announcement{ShardInfo: info("c"), Cluster: 8, Accepted: true, Newest: at(1 << 40)}, verdictForeign},
		{"a later timestamp of a stranger", clusterView{cluster: 7, known: ab}, Announcement{ShardInfo: info("c"), Newest: at(1 << 40)}, verdictAgrees},
	} {
		if got := tc.view.judge(&tc.a); got != tc.want {
			t.Errorf("%s: verdict %d, want %d", tc.name, got, tc.want)
		}
	}
}

// Goal: the oracle goes on above all that was told, and not if that cannot be right.
func TestResumeAbove(t *testing.T) {
	now := tso.FromPhysical(1_700_000_000_000)
	if above, ok := resumeAbove(map[string]tso.Timestamp{"a": now, "b": now + 7}, now); !ok || above <= now+7 {
		t.Error(above, ok)
	}
	if above, ok := resumeAbove(map[string]tso.Timestamp{"new": 0}, now); !ok || above != 0 {
		t.Error(above, ok)
	}
	if _, ok := resumeAbove(map[string]tso.Timestamp{"a": now + tso.FromPhysical(2*24*3600*1000)}, now); ok {
		t.Error("two days from now are believed")
	}
}

// judgedDirectory gives the cluster a directory that holds its oracle.
func (c *testCluster) judgedDirectory() *tso.Gate {
	c.t.Helper()
	if err := c.dir.Close(); err != nil {
		c.t.Fatal(err)
	}
	gate := tso.NewGate(c.oracle)
	var err error
	if c.dir, err = OpenDirectory(DirectoryOptions{Engine: c.engine, Dial: c.dialRunning, Oracle: gate}); err != nil {
		c.t.Fatal(err)
	}
	return gate
}

// dialRunning is dial, for stores that may be gone.
func (c *testCluster) dialRunning(ctx context.Context, info ShardInfo) (RangeOwner, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stores[info.ID] == nil {
		return nil, &UnavailableError{Shard: info.ID, Err: errors.New("gone")}
	}
	return &flakyOwner{c: c, shard: info.ID}, nil
}

// open opens a store with an oracle in the background.
func (c *testCluster) open(id string, oracle tso.Oracle) chan error {
	done := make(chan error, 1)
	dir := c.dir
	go func() {
		s, err := Open(context.Background(), Options{Dir: id, FS: c.fs, ShardID: id, Addr: id, Oracle: oracle, Directory: dir})
		if err == nil {
			c.mu.Lock()
			c.stores[id] = s
			c.mu.Unlock()
		}
		done <- err
	}()
	return done
}

func (c *testCluster) stopStore(id string) {
	c.t.Helper()
	c.mu.Lock()
	s := c.stores[id]
	delete(c.stores, id)
	c.mu.Unlock()
	if err := s.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// Goal: an oracle that has lost its directory serves only when every store has told its newest timestamp,
// and then above them; a store that is gone for good is excluded, its keys begin anew on the others,
// it cannot come back, and a store with data cannot be excluded while it runs. Method: three stores, of which one
// that has all keys below "m" is gone; an oracle that is an hour behind.
func TestOracleWaitsForAllStores(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t)
	gate := c.judgedDirectory()
	for _, id := range []string{"a", "b", "c"} {
		if err := <-c.open(id, gate); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.dir.CreateRange(ctx, span("m", "")); err != nil {
		t.Fatal(err)
	}
	owners := c.checkOwners("", "m")
	for _, s := range c.stores {
		if _, err := s.announce(ctx, 0); err != nil { // Each store learns of all others, as it does within seconds in operation.
			t.Fatal(err)
		}
	}
	before, err := c.oracle.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.stores {
		if err := s.mvcc.FenceReads(ctx, before); err != nil {
			t.Fatal(err)
		}
		s.seen = 0
	}
	gone := owners[""]
	c.replaceDirectory(behindClock(time.Hour))
	gate = c.judgedDirectory()
	var opening []chan error
	for _, id := range []string{"a", "b", "c"} {
		if id != gone {
			opening = append(opening, c.open(id, gate))
		}
	}
	waits := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			c.dir.mu.RLock()
			reason := holdReason(c.dir.mu.standing, awaitedShards(c.dir.knownLocked(), c.dir.mu.told))
			c.dir.mu.RUnlock()
			if strings.Contains(reason, "waiting for the newest timestamps of "+gone+" ") {
				break
			}
			if time.Now().After(end) {
				t.Fatal(reason)
			}
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if ts, err := gate.Now(short); err == nil {
			t.Errorf("the oracle on hold hands out %d", ts)
		}
	}
	waits()
	if _, err := c.dir.ForgetShard(ctx, "nobody", false); err == nil {
		t.Error("an unknown store was forgotten")
	}
	if res, err := c.dir.ForgetShard(ctx, gone, true); err != nil || res.Registered {
		t.Error(res, err)
	}
	waits() // for nothing was changed
	if _, err := c.dir.ForgetShard(ctx, gone, false); err != nil {
		t.Fatal(err)
	}
	for _, done := range opening {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if now, err := gate.Now(ctx); err != nil || now <= before {
		t.Errorf("%d after %d, %v", now, before, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if findings, err := CheckDirectory(ctx, c.dir); err == nil && len(findings) == 0 && len(c.dir.idlePlansLeft()) == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatal(findings, err)
		}
	}
	if got := c.checkOwners("", "m"); got[""] == gone || got["m"] != owners["m"] {
		t.Errorf("owners %v, were %v", got, owners)
	}
	if _, err := c.dir.ForgetShard(ctx, owners["m"], false); err == nil || !strings.Contains(err.Error(), "it is not gone") {
		t.Errorf("a store that runs: %v", err)
	}
	var forgotten *ForgottenError
	if err := <-c.open(gone, gate); !errors.As(err, &forgotten) {
		t.Errorf("the forgotten store: %v", err)
	}
}

// idlePlansLeft lists the plans that have not come to their end.
func (d *LocalDirectory) idlePlansLeft() (ids []uint64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for id := range d.mu.plans {
		ids = append(ids, id)
	}
	return ids
}

// Goal: a registered store that is gone is excluded while the cluster runs; its keys begin anew, and a range on its
// way to it goes elsewhere. Method: a store that owns a range, and one that cannot be told to adopt its range.
func TestForgetARegisteredStore(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t)
	gate := c.judgedDirectory()
	for _, id := range []string{"a", "b", "c"} {
		if err := <-c.open(id, gate); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.dir.CreateRange(ctx, span("m", "n")); err != nil {
		t.Fatal(err)
	}
	gone := c.checkOwners("m")["m"]
	c.setFail(func(shard, call string, _ bool) error {
		if call == "adopt" && shard != gone {
			return errors.New("lost")
		}
		return nil
	})
	if err := c.dir.CreateRange(ctx, span("x", "y")); err == nil {
		t.Fatal("the test proves nothing: the range was adopted")
	}
	late, _, _ := c.dir.Lookup(ctx, []byte("x"))
	c.stopStore(gone)
	c.stopStore(late.Shard)
	c.setFail(nil)
	for _, id := range []string{gone, late.Shard} {
		if res, err := c.dir.ForgetShard(ctx, id, false); err != nil || res.Ranges == 0 {
			t.Fatalf("forget %s: %+v, %v", id, res, err)
		}
	}
	for end := time.Now().Add(time.Minute); len(c.dir.idlePlansLeft()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("plans are left", c.dir.idlePlansLeft())
		}
	}
	c.checkOwners("", "m", "x", "z")
	if findings, err := CheckDirectory(ctx, c.dir); err != nil || len(findings) > 0 {
		t.Error(findings, err)
	}
	for id := range c.stores {
		c.stopStore(id)
		if _, err := c.dir.ForgetShard(ctx, id, false); err == nil || !strings.Contains(err.Error(), "the only one") {
			t.Errorf("the last store: %v", err)
		}
	}
}

// Goal: a directory that is older than a store that runs holds its oracle at the start until the stores have told.
// Method: the oracle's window is taken back by an hour.
func TestOlderDirectoryWaits(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t)
	gate := c.judgedDirectory()
	for _, id := range []string{"a", "b"} {
		if err := <-c.open(id, gate); err != nil {
			t.Fatal(err)
		}
	}
	before, err := gate.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stores["a"].mvcc.FenceReads(ctx, before); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.dir.Close(), c.oracle.Close()); err != nil {
		t.Fatal(err)
	}
	window := c.engine.WindowStore()
	if err := window.Save(ctx, before-tso.FromPhysical(3600_000)); err != nil {
		t.Fatal(err)
	}
	if c.oracle, err = tso.NewLocal(ctx, window, tso.Options{Clock: behindClock(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	c.openDirectory()
	gate = c.judgedDirectory()
	b := &Announcement{ShardInfo: ShardInfo{ID: "b"}, Newest: before - 1}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		now, err := gate.Now(ctx)
		if err == nil && now > before {
			break
		}
		if err == nil || time.Now().After(end) {
			t.Fatalf("%d is below %d, %v", now, before, err)
		}
		if _, err := c.dir.Announce(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: an oracle whose directory is older by little hands out nothing below what a store has met, as soon as the store
// has told: at the start, or when it can be reached, or when it opens. Method: the oracle's window is taken
// back by two seconds, or by less than one, and its clock is as far behind.
func TestLittleOlderDirectory(t *testing.T) {
	for _, how := range []string{"asked at the start", "announces itself later", "opens later"} {
		t.Run(how, func(t *testing.T) {
			ctx := context.Background()
			c := newTestCluster(t)
			gate := c.judgedDirectory()
			if err := <-c.open("a", gate); err != nil {
				t.Fatal(err)
			}
			before, err := gate.Now(ctx)
			if err != nil {
				t.Fatal(err)
			}
			a := c.stores["a"]
			if err := a.mvcc.FenceReads(ctx, before); err != nil {
				t.Fatal(err)
			}
			back := 2 * time.Second
			if how == "opens later" {
				c.stopStore("a")
				back = 800 * time.Millisecond
			}
			if err := errors.Join(c.dir.Close(), c.oracle.Close()); err != nil {
				t.Fatal(err)
			}
			window := c.engine.WindowStore()
			if err := window.Save(ctx, before-tso.FromPhysical(back.Milliseconds())); err != nil {
				t.Fatal(err)
			}
			if c.oracle, err = tso.NewLocal(ctx, window, tso.Options{Clock: behindClock(back)}); err != nil {
				t.Fatal(err)
			}
			c.openDirectory()
			if how != "asked at the start" {
				delete(c.stores, "a")
			}
			gate = c.judgedDirectory()
			now, err := gate.Now(ctx)
			switch how {
			case "announces itself later":
				if err == nil && now < before {
					if _, err = c.dir.Announce(ctx, &Announcement{ShardInfo: ShardInfo{ID: "a"}, Accepted: true, Newest: a.mvcc.NewestTS()}); err == nil {
						now, err = gate.Now(ctx)
					}
				}
				c.stores["a"] = a
			case "opens later":
				if err == nil && now < before {
					if err = <-c.open("a", gate); err == nil {
						now, err = gate.Now(ctx)
					}
				}
			}
			if err != nil || now < before {
				t.Errorf("%d is below %d, %v", now, before, err)
			}
		})
	}
}
