package readlease

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/percodb/percodb/tso"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handOracle's clock stands still unless the test moves it.
type handOracle struct{ last atomic.Uint64 }

func newHandOracle() *handOracle {
	o := &handOracle{}
	o.last.Store(uint64(tso.FromPhysical(1_700_000_000_000)))
	return o
}

func (o *handOracle) Now(context.Context) (tso.Timestamp, error) {
	return tso.Timestamp(o.last.Add(uint64(tso.Tick))), nil
}

func (o *handOracle) pass(d time.Duration) { o.last.Add(uint64(span(d))) }

func newTestAuthority(t *testing.T, o tso.Oracle) *Authority {
	t.Helper()
	a, err := New(t.Context(), Options{Oracle: o, Lease: time.Second, MaxHold: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustRenew(t *testing.T, a *Authority, id string, epoch uint64) Grant {
	t.Helper()
	g, err := a.Renew(t.Context(), id, epoch, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// held reports whether Hold returns soon.
func held(t *testing.T, a *Authority, owner string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := a.Hold(ctx, owner)
	return err == nil
}

// Goal: I1 to I3. Method: the steps by hand, with a clock that the test moves.
func TestLeasesAndHolds(t *testing.T) {
	o := newHandOracle()
	a := newTestAuthority(t, o)
	if g := mustRenew(t, a, "p", 0); g.Until != 0 {
		t.Fatal("a new authority grants a lease while an earlier hold may last")
	}
	if held(t, a, "c") {
		t.Fatal("Hold of a new authority does not wait for the leases of an earlier one")
	}
	o.pass(2 * time.Second)
	if !held(t, a, "c") {
		t.Fatal("Hold waits for leases that have ended")
	}
	a.Release(t.Context(), "c")
	if g := mustRenew(t, a, "p", 0); g.Until != 0 {
		t.Fatal("released is somebody else's hold")
	}
	o.pass(11 * time.Second)
	g := mustRenew(t, a, "p", 0)
	if g.Until == 0 {
		t.Fatal("no lease")
	}
	again := mustRenew(t, a, "p", g.Epoch)
	if again.Epoch != g.Epoch || again.Until <= g.Until {
		t.Fatal(again, g)
	}
	if held(t, a, "c") {
		t.Fatal("Hold does not wait for a lease")
	}
	if g := mustRenew(t, a, "p", g.Epoch); g.Until != 0 {
		t.Fatal("renewed during a hold")
	}
	if held(t, a, "c") {
		t.Fatal("Hold does not wait until the holder knows")
	}
	if g := mustRenew(t, a, "p", 0); g.Until != 0 {
		t.Fatal("granted during a hold")
	}
	if !held(t, a, "c") {
		t.Fatal("Hold waits for a lease that was given back")
	}
	a.Release(t.Context(), "c")
	after := mustRenew(t, a, "p", g.Epoch)
	if after.Until == 0 || after.Epoch == g.Epoch {
		t.Fatal("the same epoch before and after a hold")
	}
	if held(t, a, "d") {
		t.Fatal("Hold does not wait for a silent holder")
	}
	o.pass(1100 * time.Millisecond)
	if !held(t, a, "d") {
		t.Fatal("Hold waits for a silent holder whose lease is over")
	}
	if g := mustRenew(t, a, "p", 0); g.Until != 0 {
		t.Fatal("granted during a hold")
	}
	o.pass(10*time.Second + time.Millisecond)
	if g := mustRenew(t, a, "p", 0); g.Until == 0 {
		t.Fatal("a hold without an owner lasts for ever")
	}
}

// Goal: a copy read under a lease is never read beyond a change. Method: holders that copy a value and check
// it against the value's history at their timestamps, and changers, all at once, on a real clock; one holder
// stops without a word now and then.
func TestCopiesAreRight(t *testing.T) {
	oracle, err := tso.NewLocal(t.Context(), &tso.MemoryWindow{}, tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer oracle.Close()
	a, err := New(t.Context(), Options{Oracle: oracle, Lease: 30 * time.Millisecond, MaxHold: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	now := func() tso.Timestamp {
		ts, err := oracle.Now(t.Context())
		if err != nil {
			t.Error(err)
		}
		return ts
	}
	var mu sync.Mutex
	history := []tso.Timestamp{now()} // when the value became its position
	valueAt := func(ts tso.Timestamp) int {
		mu.Lock()
		defer mu.Unlock()
		for i := len(history) - 1; ; i-- {
			if i == 0 || history[i] <= ts {
				return i
			}
		}
	}
	var reads atomic.Int64
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(history) >= 20 && reads.Load() >= 100
	}
	begun := time.Now()
	goesOn := func() bool {
		took := time.Since(begun)
		return !t.Failed() && (took < 2*time.Second || !enough() && took < time.Minute)
	}
	var wg sync.WaitGroup
	for _, owner := range []string{"c1", "c2"} {
		wg.Go(func() {
			for goesOn() {
				until, err := a.Hold(t.Context(), owner)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if c := now(); c <= until {
					history = append(history, c)
				}
				mu.Unlock()
				a.Release(t.Context(), owner)
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // holds last for random times
			}
		})
	}
	for _, id := range []string{"p1", "p2", "silent"} {
		wg.Go(func() {
			var g Grant
			var value int
			var from tso.Timestamp
			for goesOn() {
				next, err := a.Renew(t.Context(), id, g.Epoch, 5*time.Millisecond)
				switch {
				case err != nil:
					t.Error(err)
					return
				case next.Until == 0:
					g = Grant{}
					continue
				case next.Epoch != g.Epoch:
					from = now()
					value = valueAt(from)
				}
				g = next
				for range 20 {
					if id == "silent" && rand.IntN(10) == 0 {
						time.Sleep(40 * time.Millisecond) // Its lease expires.
					}
					if ts := now(); ts <= g.Until {
						time.Sleep(time.Duration(rand.IntN(2)) * time.Millisecond) // the reader is slow
						if want := valueAt(ts); want != value {
							t.Errorf("%s reads %d as of %d, it is %d", id, value, ts, want)
							return
						}
						reads.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if !enough() {
		t.Error("too little has happened")
	}
	t.Logf("%d changes, %d reads", len(history), reads.Load())
}
