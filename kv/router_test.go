package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Goal: a caching router finds every key, in both directions, over splits, moves and stale caches,
// and asks the directory only for what it does not know. Method: three stores that split and hand
// ranges over at random; keys located through one router all along, refused ones invalidated.
func TestCachingRouterFollowsRanges(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a", "b", "c")
	dials := 0
	router, err := NewRouter(RouterOptions{Directory: c.dir, Dial: func(_ context.Context, info ShardInfo) (Shard, error) {
		dials++
		return c.stores[info.ID], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(key []byte, end bool) {
		t.Helper()
		readTS, _ := c.oracle.Now(ctx)
		for range 50 {
			locate := router.Locate
			if end {
				locate = router.LocateEnd
			}
			d, shard, err := locate(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			read := Span{Start: key, End: d.Span.End}
			if end {
				read = Span{Start: d.Span.Start, End: key}
			}
			_, err = shard.Scan(ctx, &ScanRequest{Ranges: []RangeRef{d.Ref()}, Spans: []Span{read}, Reverse: end, Limit: 1, ReadOptions: ReadOptions{ReadTS: readTS}})
			var stale *StaleRangeError
			if errors.As(err, &stale) {
				router.Invalidate(stale)
				continue
			}
			inside := d.Span.Contains(key)
			if end {
				inside = compareEnds(key, d.Span.End) <= 0 && (len(key) == 0 || string(d.Span.Start) < string(key))
			}
			if err != nil || !inside {
				t.Fatalf("key %q, end %v: range [%q, %q), %v", key, end, d.Span.Start, d.Span.End, err)
			}
			return
		}
		t.Fatalf("key %q: the route stays stale", key)
	}
	for i := range 60 {
		key := fmt.Sprintf("k%03d", rng.IntN(500))
		switch i % 3 {
		case 0:
			desc, _, _ := c.dir.Lookup(ctx, []byte(key))
			if err := c.stores[desc.Shard].ForceSplit(ctx, []byte(key)); err != nil && !errors.As(err, new(*StaleRangeError)) {
				t.Fatal(err)
			}
		case 1:
			if err := c.dir.CreateRange(ctx, span(key, key+"x")); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			check([]byte(fmt.Sprintf("k%03d", rng.IntN(500))), rng.IntN(2) == 0)
		}
		check(nil, false)
		check(nil, true)
	}
	if dials != 3 {
		t.Errorf("%d dials of 3 shards", dials)
	}
	key := []byte("k1")
	d, _, _ := router.Locate(ctx, key)
	if n := testing.AllocsPerRun(100, func() {
		if got, _, _ := router.Locate(ctx, key); got != d {
			t.Error("the route was not cached")
		}
	}); n > 0 {
		t.Errorf("a cached route costs %.0f allocations", n)
	}
}

// Goal: a shard that comes back elsewhere is found there. Method: register it with another address,
// drop the cached route, locate.
func TestCachingRouterRedialsMovedShards(t *testing.T) {
	ctx := context.Background()
	c := newTestCluster(t, "a")
	var addrs []string
	router, err := NewRouter(RouterOptions{Directory: c.dir, Dial: func(_ context.Context, info ShardInfo) (Shard, error) {
		addrs = append(addrs, info.Addr)
		return c.stores[info.ID], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"a", "elsewhere"} {
		if _, err := c.dir.RegisterShard(ctx, &Registration{ShardInfo: ShardInfo{ID: "a", Addr: addr},
			Incarnation: c.stores["a"].incarnation, Former: []uint64{c.stores["a"].incarnation}, Owned: c.stores["a"].ownedRanges()}); err != nil {
			t.Fatal(err)
		}
		d, _, err := router.Locate(ctx, []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		router.Invalidate(&StaleRangeError{Refs: []RangeRef{d.Ref()}})
	}
	if fmt.Sprint(addrs) != "[a elsewhere]" {
		t.Errorf("dialed %v", addrs)
	}
}
