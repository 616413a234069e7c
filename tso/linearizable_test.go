package tso_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/tso"
)

// steppingClock shows what the test sets.
type steppingClock struct{ ms atomic.Int64 }

func (c *steppingClock) NowMillis() int64 { return c.ms.Load() }

// crashWindow is a durable window that a crash can cut off: what an oracle saves after the crash,
// such as the rest of its window on the way out, no longer arrives.
type crashWindow struct {
	tso.WindowStore
	crashed atomic.Bool
}

var errCrashed = errors.New("crashed")

func (w *crashWindow) Save(ctx context.Context, upper tso.Timestamp) error {
	if w.crashed.Load() {
		return errCrashed
	}
	return w.WindowStore.Save(ctx, upper)
}

// turns is oracles over one durable window, one at a time: each is closed or crashed, and the next
// one started. It is the Source that callers see.
type turns struct {
	durable tso.MemoryWindow
	opts    tso.Options
	mu      sync.RWMutex
	window  *crashWindow
	now     *tso.Local
}

func (s *turns) start(ctx context.Context) (err error) {
	s.window = &crashWindow{WindowStore: &s.durable}
	s.now, err = tso.NewLocal(ctx, s.window, s.opts)
	return err
}

// restart replaces the oracle while callers are inside the old one.
func (s *turns) restart(ctx context.Context, crash bool) error {
	s.mu.RLock()
	old, window := s.now, s.window
	s.mu.RUnlock()
	window.crashed.Store(crash)
	if err := old.Close(); err != nil && !errors.Is(err, errCrashed) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start(ctx)
}

func (s *turns) NowN(ctx context.Context, n int) (tso.Timestamp, error) {
	for {
		s.mu.RLock()
		o := s.now
		s.mu.RUnlock()
		var unavailable *tso.UnavailableError
		ts, err := o.NowN(ctx, n)
		if errors.Is(err, tso.ErrClosed) || errors.As(err, &unavailable) {
			time.Sleep(50 * time.Microsecond) // a client that was refused tries again
			continue
		}
		return ts, err
	}
}

func (s *turns) Now(ctx context.Context) (tso.Timestamp, error) { return s.NowN(ctx, 1) }

// Goal: every timestamp is larger than all that were returned before the call began, for concurrent
// callers, while the clock steps both ways and oracles take turns over one window, some closed and
// some crashed. Method: callers of three kinds (single, by the handful, sharing requests) record what
// they got for a fixed number of calls; porcupine looks for an order. Windows and borrowing are small,
// so that renewals and waits are common.
func TestOracleIsLinearizable(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		clock := &steppingClock{}
		clock.ms.Store(1_700_000_000_000)
		s := &turns{opts: tso.Options{Clock: clock, WindowMillis: 20, MaxBorrowMillis: 3, TickInterval: time.Millisecond}}
		if err := s.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		history := &tsotest.History{}
		done := record(t, history, s)
		steps := []int64{1, 1, 1, 2, 7, 19, 500, -3, -500, 3_600_000, -3_600_000}
		restarts := 0
		for running := true; running; {
			clock.ms.Add(steps[r.IntN(len(steps))])
			if r.IntN(8) == 0 {
				restarts++
				if err := s.restart(t.Context(), r.IntN(2) == 0); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-done:
				running = false
			case <-time.After(200 * time.Microsecond):
			}
		}
		if err := history.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if restarts == 0 {
			t.Errorf("seed %d: no oracle was replaced meanwhile", seed)
		}
		if err := s.now.Close(); err != nil {
			t.Error(err)
		}
	}
}

// record has callers of s fill history, and returns a channel that is closed when they are done.
func record(t *testing.T, history *tsotest.History, s *turns) <-chan struct{} {
	const callers, calls = 4, 200
	batched := tso.NewBatched(s)
	var wg sync.WaitGroup
	for i := range callers {
		single, handful, shared := history.Caller(), history.Caller(), history.Caller()
		wg.Go(func() {
			for range calls {
				if err := single.Now(context.Background(), s); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for n := range calls {
				if err := handful.NowN(context.Background(), s, 1+(n*7919+i)%20_000); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range calls {
				if err := shared.Now(context.Background(), batched); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
		batched.Close()
	}()
	return done
}
