package tso

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Local oracle. The zero value means the defaults named here.
type Options struct {
	Clock  Clock        // SystemClock
	Logger *slog.Logger // discards
	// Registerer receives the oracle's metrics; nil keeps them unregistered.
	Registerer prometheus.Registerer
	// WindowMillis is how far ahead of the time a window is saved: 1500.
	WindowMillis int64
	// RenewMillis is the remainder of a window at which the next one is saved: half of WindowMillis.
	RenewMillis int64
	// AwaitClock makes NewLocal wait until the clock has passed the rest of the window that a crashed oracle left, which
	// takes at most WindowMillis; otherwise the oracle would run ahead of the clock by that much, and further after each
	// crash. It does not wait for a window that is further ahead.
	AwaitClock bool
	// MaxBorrowMillis is how far timestamps may run ahead of the time when more than 32768 are requested in a
	// millisecond: 100.
	MaxBorrowMillis int64
	// MaxClockStepMillis is how far the clock may be above the saved window at start, and how large a forward step at
	// run time may be to be followed: a day.
	MaxClockStepMillis int64
	// AcceptClockStep accepts the clock at start, however far it is above the saved window.
	AcceptClockStep bool
	// TickInterval is the interval at which the oracle reads the clock: 10 ms. Negative: only when it must.
	TickInterval time.Duration
}

func (o Options) ensureDefaults() Options {
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.WindowMillis == 0 {
		o.WindowMillis = 1500
	}
	if o.RenewMillis == 0 {
		o.RenewMillis = o.WindowMillis / 2
	}
	if o.MaxBorrowMillis == 0 {
		o.MaxBorrowMillis = 100
	}
	if o.MaxClockStepMillis == 0 {
		o.MaxClockStepMillis = 24 * 3600 * 1000
	}
	if o.TickInterval == 0 {
		o.TickInterval = 10 * time.Millisecond
	}
	return o
}

// Local is the oracle of this process. Safe for concurrent use. Close it before its WindowStore.
type Local struct {
	// cur is the last timestamp issued, or above it; limit must not be reached. Both only increase, until Close sets
	// limit to 0. They are on separate cache lines, because every transaction of the process writes the first and reads
	// the second.
	_     [64]byte
	cur   atomic.Uint64
	_     [56]byte
	limit atomic.Uint64
	_     [56]byte

	opts    Options
	store   WindowStore
	metrics *metrics

	ctx    context.Context // ends with Close; for saving windows
	cancel context.CancelFunc
	done   sync.WaitGroup // the ticker and the renewal in flight

	mu struct {
		sync.Mutex
		closed    bool
		time      steadyTime
		windowEnd Timestamp // durable
		marked    uint64    // cur as the last tick left it
		behind    bool      // the clock is far behind the oracle's time, and that has been logged
		failing   bool      // the last window could not be saved, and that has been logged
		renewal   *renewal  // in flight, or nil
	}
}

// renewal is one saving of a window. err may be read once done is closed.
type renewal struct {
	done chan struct{}
	err  error
}

// NewLocal starts an oracle above every timestamp that any oracle over the same store handed out.
// Its first window is durable when NewLocal returns. The store stays the caller's.
func NewLocal(ctx context.Context, store WindowStore, opts Options) (*Local, error) {
	o := &Local{opts: opts.ensureDefaults(), store: store}
	saved, err := store.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load timestamp window: %w", err)
	}
	wall := o.opts.Clock.NowMillis()
	if o.opts.AwaitClock {
		if wall, err = o.awaitClock(ctx, saved); err != nil {
			return nil, err
		}
	}
	if saved != 0 && wall-saved.Physical() > o.opts.MaxClockStepMillis && !o.opts.AcceptClockStep {
		return nil, &ClockAheadError{WallMillis: wall, SavedMillis: saved.Physical(), LimitMillis: o.opts.MaxClockStepMillis}
	}
	o.mu.time = steadyTime{maxStepMillis: o.opts.MaxClockStepMillis, now: wall, lastWall: wall}
	if saved >= FromPhysical(wall) {
		o.mu.time.now = saved.Physical() + 1
	}
	start := FromPhysical(o.mu.time.now)
	o.cur.Store(uint64(start))
	end := FromPhysical(o.mu.time.now + o.opts.WindowMillis)
	if err := store.Save(ctx, end); err != nil {
		return nil, fmt.Errorf("save timestamp window: %w", err)
	}
	o.mu.windowEnd = end
	o.mu.marked = o.cur.Load()
	if o.metrics, err = newMetrics(o.opts.Registerer); err != nil {
		return nil, err
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	o.mu.Lock()
	o.followClockLocked()
	o.mu.Unlock()
	if o.opts.TickInterval > 0 {
		o.done.Go(o.tickUntilClosed)
	}
	return o, nil
}

// awaitClock waits for the clock to pass the saved window, and returns its time.
func (o *Local) awaitClock(ctx context.Context, saved Timestamp) (wall int64, err error) {
	wall = o.opts.Clock.NowMillis()
	// The rest of the window may include borrowed time.
	end := time.Now().Add(time.Duration(o.opts.WindowMillis+o.opts.MaxBorrowMillis) * time.Millisecond)
	for ahead := saved.Physical() - wall; ahead >= 0 && ahead <= o.opts.WindowMillis+o.opts.MaxBorrowMillis && time.Now().Before(end); ahead = saved.Physical() - wall {
		timer := time.NewTimer(time.Duration(ahead+1) * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		}
		wall = o.opts.Clock.NowMillis()
	}
	return wall, nil
}

// Now implements Oracle. It fails with ErrClosed, ctx errors, and *UnavailableError when the next
// window cannot be saved.
func (o *Local) Now(ctx context.Context) (Timestamp, error) {
	if v := o.cur.Add(uint64(Tick)); v < o.limit.Load() {
		return Timestamp(v), nil
	}
	return o.wait(ctx, 1)
}

// NowN implements Source, with the errors of Now. n lies in [1, MaxBatch].
func (o *Local) NowN(ctx context.Context, n int) (Timestamp, error) {
	if n < 1 || n > MaxBatch {
		return 0, fmt.Errorf("tso: asked for %d timestamps at once, the limit is %d", n, MaxBatch)
	}
	if v := o.cur.Add(uint64(n) * uint64(Tick)); v < o.limit.Load() {
		return Timestamp(v) - Timestamp(n-1)*Tick, nil
	}
	return o.wait(ctx, n)
}

// wait is Now when the limit has been reached. The timestamps that the fast path drew are lost; gaps are harmless.
func (o *Local) wait(ctx context.Context, n int) (Timestamp, error) {
	o.metrics.waits.Inc()
	need := uint64(n) * uint64(Tick)
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		o.mu.Lock()
		if o.mu.closed {
			o.mu.Unlock()
			return 0, ErrClosed
		}
		o.followClockLocked()
		cur := o.cur.Load()
		windowEnd := uint64(o.mu.windowEnd)
		var r *renewal
		if cur+need >= windowEnd {
			r = o.renewLocked()
		}
		o.mu.Unlock()

		if r == nil && cur+need < o.limit.Load() {
			if v := o.cur.Add(need); v < o.limit.Load() {
				return Timestamp(v) - Timestamp(n-1)*Tick, nil
			}
			continue
		}
		if err := o.waitFor(ctx, r); err != nil {
			return 0, err
		}
	}
}

// waitFor waits for the renewal or, if there is none, for the time to catch up with what was borrowed.
func (o *Local) waitFor(ctx context.Context, r *renewal) error {
	if r == nil {
		time.Sleep(time.Millisecond)
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		if r.err != nil {
			return &UnavailableError{Err: r.err}
		}
		return nil
	}
}

func (o *Local) tickUntilClosed() {
	t := time.NewTicker(o.opts.TickInterval)
	defer t.Stop()
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-t.C:
			o.tick()
		}
	}
}

// WindowEnd returns the bound below which timestamps may be handed out before more is saved.
func (o *Local) WindowEnd() Timestamp {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.windowEnd
}

// tick advances timestamps to the clock and saves the next window in time. An idle oracle saves none: the first caller
// afterwards waits for one sync.
func (o *Local) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return
	}
	used := o.cur.Load() != o.mu.marked
	o.followClockLocked()
	o.mu.marked = o.cur.Load()
	if left := o.mu.windowEnd.Physical() - Timestamp(o.mu.marked).Physical(); used && left < o.opts.RenewMillis {
		o.renewLocked()
	}
}

// followClockLocked reads the clock, raises cur to the time and limit as far as I1 and I4 allow.
func (o *Local) followClockLocked() {
	wall := o.opts.Clock.NowMillis()
	t := &o.mu.time
	if t.advance(wall) {
		o.opts.Logger.Error("clock leapt forward and is not followed", "wall_ms", wall, "oracle_ms", t.now)
	}
	// A quick restart alone puts the time ahead by the rest of the window.
	behind := t.now-wall > 3*o.opts.WindowMillis
	if behind && !o.mu.behind {
		o.opts.Logger.Warn("clock is behind the timestamps handed out", "wall_ms", wall, "oracle_ms", t.now)
	}
	o.mu.behind = behind

	want := uint64(FromPhysical(t.now))
	for cur := o.cur.Load(); cur < want && !o.cur.CompareAndSwap(cur, want); cur = o.cur.Load() {
	}
	o.limit.Store(uint64(min(o.mu.windowEnd, FromPhysical(t.now+o.opts.MaxBorrowMillis))))
}

// renewLocked returns the saving of the next window, starting it if none is in flight.
func (o *Local) renewLocked() *renewal {
	if o.mu.renewal != nil {
		return o.mu.renewal
	}
	from := max(o.mu.time.now, Timestamp(o.cur.Load()).Physical())
	end := FromPhysical(from + o.opts.WindowMillis)
	r := &renewal{done: make(chan struct{})}
	o.mu.renewal = r
	o.done.Go(func() { o.save(r, end) })
	return r
}

func (o *Local) save(r *renewal, end Timestamp) {
	r.err = o.store.Save(o.ctx, end)
	o.metrics.windows.Inc()
	o.mu.Lock()
	o.mu.renewal = nil
	if r.err == nil && !o.mu.closed {
		o.mu.windowEnd = end
		o.followClockLocked()
	}
	failing := o.mu.failing
	o.mu.failing = r.err != nil
	o.mu.Unlock()
	switch {
	case r.err != nil && !failing: // Every caller tries again.
		o.opts.Logger.Error("saving the timestamp window", "err", r.err)
	case r.err == nil && failing:
		o.opts.Logger.Info("the timestamp window is saved again")
	}
	close(r.done)
}

// Close closes the oracle; calls in flight and later ones fail with ErrClosed. It releases the rest of the window, so
// that the next oracle need not start ahead of the clock, and returns when the WindowStore is no longer used.
func (o *Local) Close() error {
	if !o.stop() {
		return nil
	}
	// Every issued timestamp was drawn from cur before limit became 0, so none is at or above this.
	unused := Timestamp(o.cur.Load()) + Tick
	if unused >= o.mu.windowEnd {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := o.store.Save(ctx, unused); err != nil {
		return fmt.Errorf("give back the timestamp window: %w", err)
	}
	return nil
}

const closeTimeout = time.Second

// stop stops the oracle and leaves the window as it is. It reports false if the oracle was stopped before.
func (o *Local) stop() bool {
	o.mu.Lock()
	closed := o.mu.closed
	o.mu.closed = true
	o.limit.Store(0)
	o.mu.Unlock()
	o.cancel()
	o.done.Wait()
	return !closed
}
