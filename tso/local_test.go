package tso

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testStart = 1_700_000_000_000

// stepClock shows what the test sets.
type stepClock struct{ ms atomic.Int64 }

func newStepClock() *stepClock {
	c := &stepClock{}
	c.ms.Store(testStart)
	return c
}

func (c *stepClock) NowMillis() int64 { return c.ms.Load() }

// byHand are options under which nothing happens by itself.
func byHand(c Clock) Options { return Options{Clock: c, TickInterval: -1} }

func mustLocal(t testing.TB, store WindowStore, opts Options) *Local {
	t.Helper()
	o, err := NewLocal(t.Context(), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func mustNow(t testing.TB, o Oracle) Timestamp {
	t.Helper()
	ts, err := o.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// Goal: concurrent callers get distinct timestamps, each growing, all of subtick 0.
// Method: eight goroutines on the real clock with a small window, so that renewals happen meanwhile.
func TestConcurrentCallersGetDistinctGrowingTimestamps(t *testing.T) {
	store := &MemoryWindow{}
	o := mustLocal(t, store, Options{WindowMillis: 20, TickInterval: time.Millisecond})
	const callers, each = 8, 50_000
	got := make([][]Timestamp, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				ts, err := o.Now(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = append(got[i], ts)
			}
		})
	}
	wg.Wait()
	seen := make(map[Timestamp]bool, callers*each)
	for _, list := range got {
		for i, ts := range list {
			if i > 0 && ts <= list[i-1] || seen[ts] || ts%Tick != 0 {
				t.Fatalf("timestamp %d after %d, seen before: %v", ts, list[max(0, i-1)], seen[ts])
			}
			seen[ts] = true
			if upper, _ := store.Load(context.Background()); ts >= upper {
				t.Fatalf("timestamp %d is not below the saved window %d", ts, upper)
			}
		}
	}
}

// Goal: I3. Method: step the clock back by an hour and go on; timestamps keep growing, do not wait,
// the oracle's time runs at half speed and the clock catches up with it.
func TestClockSteppedBackSlowsTimeDown(t *testing.T) {
	clock := newStepClock()
	o := mustLocal(t, &MemoryWindow{}, byHand(clock))
	last := mustNow(t, o)
	const hour = 3600_000
	clock.ms.Add(-hour)
	for range 2 * hour / 100 {
		clock.ms.Add(100)
		o.tick()
		ts := mustNow(t, o)
		if ts <= last {
			t.Fatalf("%d after %d", ts, last)
		}
		if d := ts.Physical() - last.Physical(); d > 100 {
			t.Fatalf("time jumped by %d ms", d)
		}
		last = ts
	}
	if last.Physical() != clock.ms.Load() {
		t.Fatalf("time %d has not met the clock %d", last.Physical(), clock.ms.Load())
	}
}

// Goal: a leap beyond MaxClockStepMillis is not followed, taken back it leaves no trace, and a
// step within the limit is followed. Method: set the clock and look at the physical part.
func TestClockLeapIsNotFollowed(t *testing.T) {
	clock := newStepClock()
	opts := byHand(clock)
	opts.MaxClockStepMillis = 10_000
	o := mustLocal(t, &MemoryWindow{}, opts)
	physical := func(step int64) int64 {
		clock.ms.Add(step)
		o.tick()
		return mustNow(t, o).Physical() - testStart
	}
	for _, step := range []struct{ by, want int64 }{
		{5000, 5000}, {1 << 40, 5000}, {7, 5007}, {-1 << 40, 5007}, {20, 5027}, {10_000, 15_027},
	} {
		if got := physical(step.by); got != step.want {
			t.Fatalf("after a step by %d: %d, want %d", step.by, got, step.want)
		}
	}
}

// Goal: I4. Method: with the clock at rest, draw until a call has to wait for it, in single
// timestamps and in handfuls; the last one lies within the borrowed time.
func TestBorrowingFromTheFutureIsBounded(t *testing.T) {
	clock := newStepClock()
	opts := byHand(clock)
	opts.MaxBorrowMillis = 3
	o := mustLocal(t, &MemoryWindow{}, opts)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var n int
	var last Timestamp
	for {
		first, err := o.NowN(ctx, 100)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil || first <= last {
			t.Fatal(first, last, err)
		}
		last = first + 99*Tick
		n += 100
	}
	if d := last.Physical() - testStart; d > 3 {
		t.Fatalf("borrowed %d ms", d)
	}
	if low := 2 << LogicalBits; n < low {
		t.Fatalf("only %d timestamps in 3 ms", n)
	}
	clock.ms.Add(1)
	if mustNow(t, o) <= last {
		t.Fatal("not growing")
	}
}

// Goal: an idle oracle saves no windows, a used one saves them ahead, so that no caller waits.
func TestWindowsAreSavedAheadOnlyWhenUsed(t *testing.T) {
	clock := newStepClock()
	store := &crashStore{}
	o := mustLocal(t, store, byHand(clock))
	for range 1000 {
		clock.ms.Add(10)
		o.tick()
	}
	if n := store.saves.Load(); n != 1 {
		t.Fatalf("%d windows saved while idle", n)
	}
	for range 1000 {
		mustNow(t, o)
		clock.ms.Add(10)
		o.tick()
		o.mu.Lock()
		r := o.mu.renewal
		o.mu.Unlock()
		if r != nil {
			<-r.done
		}
	}
	if n := store.saves.Load(); n < 10 || n > 16 {
		t.Fatalf("%d windows saved in 10 s", n)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if left := o.mu.windowEnd.Physical() - clock.ms.Load(); left < 700 {
		t.Fatalf("%d ms left of the window", left)
	}
}

// crashStore is a WindowStore that fails on demand, before or after the bound became durable.
type crashStore struct {
	MemoryWindow
	saves atomic.Int64
	mode  atomic.Int32 // one of save*
}

const (
	saveWorks = iota
	saveFailsBefore
	saveFailsAfter
	saveHangs
)

var errDisk = errors.New("disk full")

func (s *crashStore) Save(ctx context.Context, upper Timestamp) error {
	s.saves.Add(1)
	switch s.mode.Load() {
	case saveFailsBefore:
		return errDisk
	case saveFailsAfter:
		s.MemoryWindow.Save(ctx, upper)
		return errDisk
	case saveHangs:
		<-ctx.Done()
		return ctx.Err()
	}
	return s.MemoryWindow.Save(ctx, upper)
}

// Goal: I1 and I2. Method: random runs of drawing, clock steps, disk faults, orderly ends and crashes
// (the oracle is dropped where it stands, also in the middle of a save); no timestamp ever repeats
// or shrinks.
func TestNothingRepeatsOverCrashesAndDiskFaults(t *testing.T) {
	for seed := range uint64(30) {
		crashRun(t, rand.New(rand.NewPCG(seed, 1)), seed)
	}
}

func crashRun(t *testing.T, r *rand.Rand, seed uint64) {
	clock := newStepClock()
	store := &crashStore{}
	opts := byHand(clock)
	opts.WindowMillis = 50
	var last Timestamp
	for range 10 {
		store.mode.Store(saveWorks)
		o, err := NewLocal(t.Context(), store, opts)
		if err != nil {
			t.Fatal(seed, err)
		}
		for range 60 {
			switch r.IntN(6) {
			case 0:
				clock.ms.Add(r.Int64N(200) - 60)
			case 1:
				store.mode.Store(r.Int32N(4))
			case 2:
				o.tick()
			default:
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				n := 1 + r.IntN(300)
				first, err := o.NowN(ctx, n)
				cancel()
				if err != nil {
					continue
				}
				if upper, _ := store.Load(ctx); first <= last || first+Timestamp(n-1)*Tick >= upper {
					t.Fatalf("seed %d: %d after %d, window end %d", seed, first, last, upper)
				}
				last = first + Timestamp(n-1)*Tick
			}
		}
		if r.IntN(2) == 0 && store.mode.Load() != saveHangs {
			o.Close()
		}
		o.stop()
	}
}

// Goal: an oracle that was closed leaves no gap behind. Method: restart at once; the next timestamp is
// close to the last.
func TestCloseGivesTheWindowBack(t *testing.T) {
	clock := newStepClock()
	store := &MemoryWindow{}
	o := mustLocal(t, store, byHand(clock))
	last := mustNow(t, o)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	next := mustNow(t, mustLocal(t, store, byHand(clock)))
	if next <= last || next.Physical() > last.Physical()+1 {
		t.Fatalf("%d ms after the last", next.Physical()-last.Physical())
	}
}

// Goal: a disk that fails is an error for those who need a window, not for those who do not, and it
// passes; it is logged once, and its end too, however many callers try. Method: break the store, use the window up, mend the store.
func TestFailingDiskIsReportedAndPasses(t *testing.T) {
	clock := newStepClock()
	store := &crashStore{}
	var log bytes.Buffer
	opts := byHand(clock)
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o := mustLocal(t, store, opts)
	store.mode.Store(saveFailsBefore)
	mustNow(t, o)
	clock.ms.Add(5000)
	o.tick()
	for range 3 {
		_, err := o.Now(t.Context())
		var unavailable *UnavailableError
		if !errors.As(err, &unavailable) || !errors.Is(err, errDisk) {
			t.Fatal(err)
		}
	}
	store.mode.Store(saveWorks)
	if ts := mustNow(t, o); ts.Physical() < clock.ms.Load() {
		t.Fatal(ts)
	}
	if text := log.String(); strings.Count(text, "saving the timestamp window") != 1 || strings.Count(text, "saved again") != 1 {
		t.Error(text)
	}
}

// Goal: a start with a clock more than a day above the saved window is refused unless the clock is accepted,
// and one with a clock behind the window starts above the window.
func TestStartChecksTheClockAgainstTheWindow(t *testing.T) {
	store := &MemoryWindow{}
	clock := newStepClock()
	o := mustLocal(t, store, byHand(clock))
	last := mustNow(t, o)
	o.Close()
	if _, err := o.Now(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}

	clock.ms.Add(25 * 3600 * 1000)
	var ahead *ClockAheadError
	if _, err := NewLocal(t.Context(), store, byHand(clock)); !errors.As(err, &ahead) {
		t.Fatal(err)
	}
	accepting := byHand(clock)
	accepting.AcceptClockStep = true
	mustLocal(t, store, accepting).Close()
	clock.ms.Add(23 * 3600 * 1000)
	mustLocal(t, store, byHand(clock)).Close()
	clock.ms.Store(testStart - 3600_000)
	upper, _ := store.Load(t.Context())
	if ts := mustNow(t, mustLocal(t, store, byHand(clock))); ts <= upper || ts <= last {
		t.Fatalf("%d, window end was %d", ts, upper)
	}
}

// Goal: whatever the clock does, timestamps grow and the oracle's time is never behind the time that
// passed forward by more than half. Method: fuzzed clock steps.
func FuzzClockJumps(f *testing.F) {
	f.Add(int64(5), int64(-3), int64(1<<50), uint8(3))
	f.Add(int64(-1<<40), int64(1<<40), int64(-1), uint8(200))
	f.Fuzz(func(t *testing.T, a, b, c int64, rounds uint8) {
		clock := newStepClock()
		o := mustLocal(t, &MemoryWindow{}, byHand(clock))
		var last Timestamp
		for i := range int(rounds) {
			step := [...]int64{a, b, c}[i%3] >> (i % 50)
			if next := clock.ms.Load() + step; next > 0 && next < 1<<45 {
				clock.ms.Store(next)
			}
			if i%2 == 0 {
				o.tick()
			}
			if ts := mustNow(t, o); ts <= last {
				t.Fatalf("%d after %d", ts, last)
			} else {
				last = ts
			}
		}
	})
}

// Goal: the cost of one timestamp. The layout holds 32768 of them in a millisecond, so that no more
// than 32.8 million a second can be sustained; a burst may borrow 100 ms. The timed part draws
// bursts of a million, which never wait.
func BenchmarkLocalNow(b *testing.B) {
	const burst = 1 << 20
	o := mustLocal(b, &MemoryWindow{}, Options{})
	ctx := context.Background()
	b.ReportAllocs()
	for n := 0; n < b.N; {
		b.StopTimer()
		time.Sleep(70 * time.Millisecond) // The clock overtakes the timestamps of the last burst.
		b.StartTimer()
		for end := min(b.N, n+burst); n < end; n++ {
			if _, err := o.Now(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mts/s")
}

// Goal: what can be sustained from several goroutines, waiting for the clock included.
func BenchmarkLocalNowParallel(b *testing.B) {
	o := mustLocal(b, &MemoryWindow{}, Options{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := o.Now(context.Background()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mts/s")
}

// Goal: crashes do not make the oracle run ahead of the clock, however many follow each other; only an
// oracle that is further ahead than a window can be does not wait. Method: twelve oracles on the machine's
// clock, each dropped as it stands.
func TestCrashesDoNotAddUp(t *testing.T) {
	store := &MemoryWindow{}
	opts := Options{WindowMillis: 60, AwaitClock: true, MaxBorrowMillis: 1}
	for range 12 {
		o, err := NewLocal(t.Context(), store, opts)
		if err != nil {
			t.Fatal(err)
		}
		ts := mustNow(t, o)
		if ahead := ts.Physical() - time.Now().UnixMilli(); ahead > 2 {
			t.Fatalf("%d ms ahead of the clock", ahead)
		}
		o.stop()
	}
	if err := store.Save(t.Context(), FromPhysical(time.Now().UnixMilli()+3600_000)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := mustLocal(t, store, opts)
	if ahead := mustNow(t, o).Physical() - time.Now().UnixMilli(); ahead < 3500_000 || time.Since(began) > time.Minute {
		t.Fatalf("%d ms ahead of a clock that was set back, after %v", ahead, time.Since(began))
	}
}
