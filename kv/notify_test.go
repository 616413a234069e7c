package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/kv/storage"
)

// Goal: a span with cells is not given away, since its new owner would not have them. Method: release a span of which
// only a cell is left, then clear it.
func TestSpanWithCellsStays(t *testing.T) {
	ts := openTestStore(t, storage.NewMemFS(), nil)
	ctx := context.Background()
	keys := [][]byte{[]byte("m1")}
	put := &NotifyPutRequest{Ranges: ts.refs(), Observer: 7, Keys: keys, TS: ts.now()}
	if err := ts.NotifyPut(ctx, put); err != nil {
		t.Fatal(err)
	}
	release := func(plan uint64) bool {
		t.Helper()
		res, err := ts.ReleaseSpan(ctx, &ReleaseSpanRequest{Plan: plan, Span: span("m", "n"), RemainderID: 99})
		if err != nil {
			t.Fatal(err)
		}
		return res.Released
	}
	if release(1) {
		t.Fatal("the span was released with a cell")
	}
	cleared, err := ts.NotifyClear(ctx, &NotifyClearRequest{Ranges: ts.refs(), Observer: 7, Cells: []NotifyUpTo{{Key: keys[0], UpTo: put.TS}}})
	if cleared != 1 || err != nil {
		t.Fatal(cleared, err)
	}
	if !release(2) {
		t.Fatal("the span was not released")
	}
	var stale *StaleRangeError
	if err := ts.NotifyPut(ctx, put); !errors.As(err, &stale) {
		t.Errorf("a request for the span after it was given away: %v", err)
	}
}

// Goal: watches end with the store, and before it if asked to; they do not keep it from closing, and do not count as
// activity. Method: two watches, of which each ends in one of the ways.
func TestWatchesEndWithTheStore(t *testing.T) {
	for name, end := range map[string]func(ts *testStore){
		"closed":    func(ts *testStore) { ts.close() },
		"as wanted": func(ts *testStore) { ts.EndWatches() },
	} {
		t.Run(name, func(t *testing.T) {
			ts := openTestStore(t, storage.NewMemFS(), nil)
			store := ts.Store
			began, ended := make(chan struct{}, 2), make(chan error, 2)
			for range 2 {
				go func() {
					ended <- store.WatchNotify(context.Background(), func([]NotifyHint) error {
						began <- struct{}{}
						return nil
					})
				}()
			}
			<-began
			<-began
			if n := store.gate.n.Load(); n != 0 {
				t.Errorf("%d requests under way", n)
			}
			end(ts)
			for range 2 {
				if err := <-ended; !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
			if err := store.WatchNotify(context.Background(), func([]NotifyHint) error { return nil }); !errors.Is(err, ErrClosed) {
				t.Errorf("a watch afterwards: %v", err)
			}
		})
	}
}

// Goal: scans do not walk over cleared cells for long. Method: clear many, scan until the store has compacted them.
func TestClearedCellsAreCompacted(t *testing.T) {
	ts := openTestStore(t, storage.NewMemFS(), nil)
	ctx := context.Background()
	const many = 2 * compactPassed
	var keys [][]byte
	cells := make([]NotifyUpTo, many)
	now := ts.now()
	for i := range cells {
		cells[i] = NotifyUpTo{Key: fmt.Appendf(nil, "k%06d", i), UpTo: now}
		keys = append(keys, cells[i].Key)
	}
	if err := ts.NotifyPut(ctx, &NotifyPutRequest{Ranges: ts.refs(), Observer: 7, Keys: keys, TS: now}); err != nil {
		t.Fatal(err)
	}
	if n, err := ts.NotifyClear(ctx, &NotifyClearRequest{Ranges: ts.refs(), Observer: 7, Cells: cells}); n != many || err != nil {
		t.Fatal(n, err)
	}
	passed := func() int {
		if _, err := ts.NotifyScan(ctx, &NotifyScanRequest{Range: ts.ref("k"), Observer: 7, Limit: 10}); err != nil {
			t.Fatal(err)
		}
		page, err := ts.mvcc.NotifyScan(ctx, nil, nil, 7, 10, 1<<20)
		if err != nil || len(page.Cells) > 0 {
			t.Fatal(page, err)
		}
		return page.Passed
	}
	first := passed()
	if first < compactPassed {
		t.Fatalf("a scan passes over %d entries: the test proves nothing", first)
	}
	for end := time.Now().Add(time.Minute); passed() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a scan still passes over %d entries, %d at first", passed(), first)
		}
	}
}
