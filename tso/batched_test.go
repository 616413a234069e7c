package tso

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowSource answers after a pause, one request at a time, and notices a second one in flight.
type slowSource struct {
	Source
	pause    time.Duration
	inFlight atomic.Int32
	requests atomic.Int64
	overlap  atomic.Bool
}

func (s *slowSource) NowN(ctx context.Context, n int) (Timestamp, error) {
	if s.inFlight.Add(1) > 1 {
		s.overlap.Store(true)
	}
	defer s.inFlight.Add(-1)
	s.requests.Add(1)
	select {
	case <-time.After(s.pause):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.Source.NowN(ctx, n)
}

// Goal: one request in flight, shared. Method: a thousand callers over a slow source.
func TestBatchedSharesRequests(t *testing.T) {
	local := mustLocal(t, &MemoryWindow{}, Options{})
	source := &slowSource{Source: local, pause: time.Millisecond}
	b := NewBatched(source)
	defer b.Close()
	var mu sync.Mutex
	seen := map[Timestamp]bool{}
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			ts := mustNow(t, b)
			mu.Lock()
			defer mu.Unlock()
			if seen[ts] {
				t.Errorf("%d twice", ts)
			}
			seen[ts] = true
		})
	}
	wg.Wait()
	if source.overlap.Load() {
		t.Error("two requests in flight")
	}
	if n := source.requests.Load(); n > 500 {
		t.Errorf("%d requests for 1000 callers", n)
	}
}

// Goal: a caller who gives up, an error and Close reach exactly those concerned.
func TestBatchedPassesCancellationErrorsAndClose(t *testing.T) {
	local := mustLocal(t, &MemoryWindow{}, Options{})
	source := &slowSource{Source: local, pause: 20 * time.Millisecond}
	b := NewBatched(source)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Now(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustNow(t, b)

	local.Close()
	if _, err := b.Now(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}

	source.pause = time.Hour
	failed := make(chan error)
	go func() {
		_, err := b.Now(context.Background())
		failed <- err
	}()
	for source.inFlight.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	b.Close()
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := b.Now(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}
