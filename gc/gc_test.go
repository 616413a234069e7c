package gc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Goal: a long transaction pins the safe point while its process reports. When the lease has ended it no longer does,
// and the transaction fails instead of reading wrong data. Method: a transaction older than the life, reports and a
// clock that the test advances, rounds in between.
func TestProto_T_GC_3(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	if _, err := w.db.OldestActive(ctx); err != nil { // as a process does when it starts
		t.Fatal(err)
	}
	w.put("a", "1", "z", "1")
	long, err := w.db.Begin(ctx)
	w.must(err)
	defer long.Close()
	report := func() {
		t.Helper()
		oldest, err := w.db.OldestActive(ctx)
		w.must(err)
		_, err = w.Report(ctx, "p", oldest)
		w.must(err)
	}
	for range 3 {
		w.put("a", "2", "z", "2")
		w.oracle.advance(10 * time.Minute)
		w.clock = w.clock.Add(DefaultLease / 2)
		report()
		w.must(w.Round(ctx))
		if st := w.Status(); st.SafePoint >= long.StartTS() || st.Oldest >= long.StartTS() || st.Holder != "p" {
			t.Fatalf("the transaction at %d does not pin: %+v", long.StartTS(), st)
		}
		for _, key := range []string{"a", "z"} {
			if v, err := long.Get(ctx, []byte(key)); string(v) != "1" || err != nil {
				t.Fatalf("the pinned transaction reads %s = %q, %v", key, v, err)
			}
		}
	}
	w.clock = w.clock.Add(DefaultLease + time.Second)
	w.must(w.Round(ctx))
	if st := w.Status(); st.SafePoint <= long.StartTS() || st.Oldest != 0 || st.Collected != st.SafePoint {
		t.Errorf("the lease has ended, and still: %+v", st)
	}
	if v, err := long.Get(ctx, []byte("a")); !isTooOld(err) {
		t.Errorf("a transaction below the safe point reads %q, %v", v, err)
	}
	w.must(long.Put([]byte("a"), []byte("late")))
	if _, err := long.Commit(ctx); !isTooOld(err) {
		t.Errorf("a transaction below the safe point commits: %v", err)
	}
	if v := w.get("a"); v != "2" {
		t.Errorf("a = %q", v)
	}
	// A process that closes removes its pin at once.
	report()
	if _, err := w.Report(ctx, "p", 0); err != nil || w.Status().Oldest != 0 {
		t.Errorf("status %+v, %v", w.Status(), err)
	}
}

// Goal: the record of a primary is not removed before its secondaries' commits are durable: after a power cut a lock
// would reappear whose transaction's outcome is no longer known. Method: a transaction over two stores whose secondary
// the round commits, without a sync; its primary has been deleted since. Collect, cut the power, read. Without the
// barrier the same steps do leave the lock.
func TestProto_T_GC_4(t *testing.T) {
	for _, barrier := range []bool{true, false} {
		w := newWorld(t)
		ctx := context.Background()
		skip := errors.New("skipped")
		var syncs atomic.Int32 // the first of each store returns its run ID, before anything is resolved
		w.setHook(func(_ int, req any) error {
			if c, ok := req.(*kv.CommitRequest); ok && !c.Primary {
				return errDropped
			}
			if req == "sync" && syncs.Add(1) > int32(len(w.stores)) && !barrier {
				return skip
			}
			return nil
		})
		w.put("a", "1", "z", "1")
		w.put("a", "")
		if w.locks() != 1 {
			t.Fatal("the test proves nothing: the secondary has been committed")
		}
		w.oracle.advance(time.Hour)
		err := w.Round(ctx)
		if barrier {
			w.must(err)
		} else {
			if !errors.Is(err, skip) {
				t.Fatal(err)
			}
			// What a controller without the barrier would do, the second store's log still unsynced.
			sp := w.Status().SafePoint
			if _, err := w.stores[0].CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: sp}); err != nil {
				t.Fatal(err)
			}
			_, err := w.stores[0].SyncLog(ctx)
			w.must(err)
		}
		if w.locks() != 0 {
			t.Error("the round has left a lock")
		}
		w.crash()
		w.setHook(nil)
		if n := w.locks(); barrier != (n == 0) {
			t.Errorf("barrier %v: %d locks after the power cut", barrier, n)
		}
		if barrier {
			if v := w.get("z"); v != "1" {
				t.Errorf("z = %q after the power cut", v)
			}
		}
	}
}

// Goal: no lock stays forever: a round of garbage collection resolves the locks that a lost commit of secondaries left
// and rolls undecided transactions back; for a running one it waits, and a round that cannot wait collects nothing.
// Method: drop the commits of secondaries, and of primaries.
func TestProto_T_ASY_9(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.setHook(func(_ int, req any) error {
		if c, ok := req.(*kv.CommitRequest); ok && !c.Primary {
			return errDropped
		}
		return nil
	})
	w.put("a", "1", "z", "1")
	w.setHook(func(_ int, req any) error {
		if _, ok := req.(*kv.CommitRequest); ok {
			return errDropped
		}
		return nil
	})
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	txn, err := w.db.Begin(short)
	w.must(err)
	w.must(txn.Put([]byte("b"), []byte("2")))
	w.must(txn.Put([]byte("y"), []byte("2")))
	_, err = txn.Commit(short)
	var undetermined *percolator.UndeterminedError
	if err != nil && !errors.As(err, &undetermined) {
		t.Fatal(err)
	}
	w.setHook(nil)
	if w.locks() == 0 {
		t.Fatal("the test proves nothing: no lock was left")
	}
	w.oracle.advance(time.Hour)
	w.must(w.Round(ctx))
	if n := w.locks(); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	if a, z := w.get("a"), w.get("z"); a != "1" || z != "1" {
		t.Errorf("a = %q, z = %q", a, z)
	}
	if b, y := w.get("b"), w.get("y"); b != y {
		t.Errorf("b = %q, y = %q: half a transaction", b, y)
	}
}

// Goal: rounds keep what snapshots above the safe point see and remove the rest, whichever step precedes a power cut.
// Method: random writes over both stores, against a model at several timestamps; a crash before each kind of step.
func TestRoundsSurviveCrashes(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	crash := errors.New("power cut")
	steps := []func(req any) bool{
		func(req any) bool { return false },
		func(req any) bool { return req == "sync" },
		func(req any) bool { _, ok := req.(*kv.CollectGarbageRequest); return ok },
	}
	want := map[string]string{}
	for round := range 9 {
		for i := range 40 {
			a, z := string(rune('a'+i%5)), string(rune('v'+i%5))
			value := string(rune('A'+i%26)) + string(rune('0'+round))
			if i%7 == 0 {
				value = ""
			}
			w.put(a, value, z, value)
			want[a], want[z] = value, value
		}
		at, err := w.oracle.Now(ctx)
		w.must(err)
		w.oracle.advance(50 * time.Second) // less than the life: the last round's values can still be read
		fails := steps[round%len(steps)]
		w.setHook(func(shard int, req any) error {
			if shard == round%2 && fails(req) {
				return crash
			}
			return nil
		})
		if err := w.Round(ctx); err != nil && !errors.Is(err, crash) {
			t.Fatal(err)
		}
		w.setHook(nil)
		if round%len(steps) > 0 {
			w.crash()
		}
		past := w.db.BeginAt(at)
		for key, value := range want {
			if got := w.get(key); got != value {
				t.Errorf("round %d: %s = %q, want %q", round, key, got, value)
			}
			if got, err := past.Get(ctx, []byte(key)); string(got) != value || err != nil {
				t.Errorf("round %d: %s was %q, %v, want %q", round, key, got, err, value)
			}
		}
		past.Close()
	}
	for _, s := range w.stores {
		findings, err := s.Check(ctx)
		if err != nil || len(findings) > 0 {
			t.Errorf("check: %v, %v", findings, err)
		}
	}
}

// Goal: the oldest transaction is never overestimated, and transactions that have ended do not pin. Method: many
// transactions begin and end while the oldest is queried; each checks the answers given while it runs.
func TestOldestActiveIsALowerBound(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	_, err := w.db.OldestActive(ctx)
	w.must(err)
	var mu sync.Mutex
	var running []tso.Timestamp
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 2000 {
				txn, err := w.db.Begin(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				running = append(running, txn.StartTS())
				mu.Unlock()
				mu.Lock()
				i := slices.Index(running, txn.StartTS())
				running = slices.Delete(running, i, i+1)
				mu.Unlock()
				txn.Close()
			}
		})
	}
	past := w.db.BeginAt(tso.FromPhysical(5))
	for range 500 {
		mu.Lock()
		least := tso.MaxTimestamp
		for _, ts := range running {
			least = min(least, ts)
		}
		oldest, err := w.db.OldestActive(ctx)
		mu.Unlock()
		if err != nil || oldest >= least || oldest >= past.StartTS() {
			t.Fatalf("oldest %d, %v, though %d and %d run", oldest, err, least, past.StartTS())
		}
	}
	past.Close()
	workers.Wait()
	before, err := w.oracle.Now(ctx)
	w.must(err)
	if oldest, err := w.db.OldestActive(ctx); err != nil || oldest <= before {
		t.Errorf("nothing runs, and the oldest is %d, %v, below %d", oldest, err, before)
	}
}

// Goal: how long history is kept is bounded, durable, and takes effect at the next round. Method: set it,
// open another controller on the same settings.
func TestLifeIsKept(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	var bounds *LifeError
	for _, life := range []time.Duration{0, time.Millisecond, 2 * MaxLife, -time.Hour} {
		if err := w.SetLife(ctx, life); !errors.As(err, &bounds) {
			t.Errorf("life %v: %v", life, err)
		}
	}
	w.must(w.SetLife(ctx, time.Hour))
	w.put("a", "1")
	w.oracle.advance(30 * time.Minute)
	w.must(w.Round(ctx))
	first := w.Status().SafePoint
	w.close()
	w.open()
	if st := w.Status(); st.Life != time.Hour || st.SafePoint != first {
		t.Errorf("after a restart: %+v, want life 1h and safe point %d", st, first)
	}
	w.must(w.SetLife(ctx, time.Minute))
	w.must(w.Round(ctx))
	if sp := w.Status().SafePoint; sp.Physical()-first.Physical() < 58*60*1000 {
		t.Errorf("safe point %d after %d", sp, first)
	}
	high := w.Status().SafePoint
	w.must(w.SetLife(ctx, time.Hour))
	w.must(w.Round(ctx))
	if sp := w.Status().SafePoint; sp != high {
		t.Errorf("the safe point went from %d to %d", high, sp)
	}
}

// runShard is a shard that is restarted after its nth sync.
type runShard struct {
	kv.Collector
	syncs, restart int
}

func (s *runShard) SyncLog(context.Context) (uint64, error) {
	s.syncs++
	if s.syncs > s.restart {
		return 2, nil
	}
	return 1, nil
}

// Goal: what a shard had applied, and lost by a restart before the sync, is repeated; otherwise a resolved lock
// reappears after the record of its primary has been collected. Method: a shard that restarts between the syncs around
// the work, before them, or not.
func TestRestartBeforeTheSync(t *testing.T) {
	for _, tc := range []struct{ restart, want int }{{0, 1}, {1, 2}, {2, 1}} {
		done := 0
		shards := []Member{{Shard: &runShard{restart: 9}}, {Shard: &runShard{restart: tc.restart}}}
		if err := durably(t.Context(), shards, func() error { done++; return nil }); err != nil || done != tc.want {
			t.Errorf("restarted after %d syncs: done %d times, want %d, %v", tc.restart, done, tc.want, err)
		}
	}
}

// Goal: what work that outlives its process will still read is kept, and the safe point stays when that cannot be read. Method: the controller is
// told of a snapshot, of an error, and of nothing.
func TestHeldSnapshots(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.put("a", "1", "z", "1")
	held, err := w.db.Timestamp(ctx)
	w.must(err)
	var failed error
	w.opts.Held = func(context.Context, tso.Timestamp) (tso.Timestamp, error) { return held, failed }
	round := func() tso.Timestamp {
		w.put("a", "2", "z", "2")
		w.oracle.advance(10 * time.Minute)
		w.clock = w.clock.Add(2 * DefaultLease)
		w.must(w.Round(ctx))
		return w.Status().SafePoint
	}
	if got := round(); got != held-1 {
		t.Errorf("safe point %d, held %d", got, held)
	}
	reader := w.db.BeginAt(held)
	defer reader.Close()
	if v, err := reader.Get(ctx, []byte("a")); string(v) != "1" || err != nil {
		t.Errorf("as of the held snapshot a = %q, %v", v, err)
	}
	failed = context.DeadlineExceeded
	if got := round(); got != held-1 {
		t.Errorf("safe point %d although the snapshots could not be read", got)
	}
	held, failed = 0, nil
	if got := round(); got <= reader.ReadTS() {
		t.Errorf("safe point %d although nothing is held", got)
	}
}

// Goal: rounds that take long follow each other less often where their part of the time is bounded, and as often as before elsewhere. Method: the
// interval behind a round that is said to have taken a minute.
func TestLongRoundsAreSpaced(t *testing.T) {
	w := newWorld(t)
	if err := w.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.mu.took <= 0 {
		t.Error("the round's time was not noted")
	}
	w.opts.Interval = time.Second
	for _, c := range []struct {
		took  time.Duration
		share float64
		want  time.Duration
	}{
		{time.Minute, 0, time.Second},
		{time.Minute, .1, 9 * time.Minute},
		{50 * time.Millisecond, .1, time.Second},
	} {
		w.mu.took, w.opts.MaxShare = c.took, c.share
		if got := w.interval(); got != c.want {
			t.Errorf("%v behind a round of %v, want %v", got, c.took, c.want)
		}
	}
}
