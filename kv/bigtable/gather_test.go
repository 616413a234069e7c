package bigtable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Goal: what is wanted while requests are under way shares the next one; who leaves is not waited for, and a request for nobody is cancelled. Method: a
// gatherer whose requests end when the test says so.
func TestGatherer(t *testing.T) {
	type item struct{ of int }
	begun, end := make(chan context.Context), make(chan struct{})
	g := gatherer[item]{atOnce: 1, most: 3}
	g.send = func(ctx context.Context, items []*item) {
		begun <- ctx
		select {
		case <-end:
		case <-ctx.Done():
		}
		for _, it := range items {
			it.of = len(items)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	items := make([]item, 5)
	want := func(ctx context.Context, n int) {
		wg.Go(func() {
			if err := g.do(ctx, &items[n]); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	waiting := func(n int) {
		for {
			g.mu.Lock()
			have := len(g.waiting)
			g.mu.Unlock()
			if have == n {
				return
			}
		}
	}
	want(t.Context(), 0)
	<-begun
	for n := 1; n <= 3; n++ {
		want(t.Context(), n)
		waiting(n)
	}
	want(ctx, 4)
	waiting(4)
	end <- struct{}{}
	<-begun
	end <- struct{}{}
	last := <-begun
	leave()
	<-last.Done()
	wg.Wait()
	if got := fmt.Sprint(items[:4]); got != "[{1} {3} {3} {3}]" {
		t.Errorf("requests: %s", got)
	}
	for done := false; !done; {
		g.mu.Lock()
		done = g.flying == 0
		g.mu.Unlock()
	}
}

// Goal: reads that share a request see what their own snapshots show. Method: snapshots before, between and after commits, of rows that are put, deleted,
// locked and absent, in one request and each by itself.
func TestGatheredSnapshots(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	snapshots := []tso.Timestamp{mustNow(t, e.oracle)}
	for i := range 4 {
		e.mustPut(t, fmt.Sprintf("a=%d", i), fmt.Sprintf("b%d=%d", i, i))
		snapshots = append(snapshots, mustNow(t, e.oracle))
	}
	var reads []*pointRead
	var want []string
	ref := theRange()
	for _, ts := range snapshots {
		for _, key := range []string{"a", "b0", "b2", "none"} {
			reads = append(reads, &pointRead{key: []byte(key), ts: ts})
			value, err := e.shard.Get(t.Context(), ref.Ref(), []byte(key), kv.ReadOptions{ReadTS: ts})
			want = append(want, fmt.Sprintf("%s@%d: %q %v", key, ts, value, err))
		}
	}
	before := append([]*pointRead{}, reads...)
	e.shard.readPoints(t.Context(), reads)
	for i, p := range before {
		got := ""
		if p.record != nil && len(p.record.versions) > 0 && p.record.versions[0].commitTS > p.ts {
			continue // It is read by itself.
		}
		v, err := see(p.record, &kv.ReadOptions{ReadTS: p.ts})
		if got = fmt.Sprintf("%s@%d: %q %v", p.key, p.ts, v.value, err); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
	// The same by concurrent reads.
	var wg sync.WaitGroup
	for range 20 {
		for i, p := range before {
			wg.Go(func() {
				value, err := e.shard.Get(t.Context(), ref.Ref(), p.key, kv.ReadOptions{ReadTS: p.ts})
				if got := fmt.Sprintf("%s@%d: %q %v", p.key, p.ts, value, err); got != want[i] {
					t.Errorf("%s, want %s", got, want[i])
				}
			})
		}
	}
	wg.Wait()
}
