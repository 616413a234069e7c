//go:build !race

// Under the race detector Pebble checks itself, and pools forget: both allocate.

package kv

import (
	"context"
	"fmt"
	"testing"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
)

// Goal: reads and writes at the shard's door allocate no more than they must. Method: count.
func TestAllocationBudget(t *testing.T) {
	ctx := context.Background()
	ts := openTestStore(t, storage.NewMemFS(), nil)
	var ms []mvcc.Mutation
	for i := range 100 {
		ms = append(ms, put(fmt.Sprintf("k%02d", i), "some value"))
	}
	ts.onePC(ms...)
	router, key, readTS := ts.Router(), []byte("k50"), ts.now()
	read := func() {
		d, shard, err := router.Locate(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := shard.Get(ctx, d.Ref(), key, ReadOptions{ReadTS: readTS}); string(v) != "some value" || err != nil {
			t.Fatal(v, err)
		}
	}
	read()
	if n := testing.AllocsPerRun(200, read); n > 2 {
		t.Errorf("a point read makes %.0f allocations, budget 2", n)
	}
	d, _, _ := router.Locate(ctx, nil)
	req := &ScanRequest{Ranges: []RangeRef{d.Ref()}, Spans: []Span{{}}, Limit: 1000, ReadOptions: ReadOptions{ReadTS: readTS}}
	scan := func() {
		page, err := ts.Scan(ctx, req)
		if err != nil || len(page.Rows) != 100 {
			t.Fatal(len(page.Rows), err)
		}
		req.Reuse = page
	}
	scan()
	if n := testing.AllocsPerRun(200, scan); n > 6 {
		t.Errorf("a page into used memory makes %.0f allocations, budget 6", n)
	}
	w := &PrewriteRequest{Ranges: []RangeRef{d.Ref()}, Mutations: ms[:1], Primary: ms[0].Key, TryOnePC: true}
	write := func() {
		w.StartTS = ts.now()
		if _, err := ts.Prewrite(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(200, write); n > 8 {
		t.Errorf("a one-key commit makes %.0f allocations, budget 8", n)
	}
	w.Mutations = []mvcc.Mutation{ms[0]}
	w.Mutations[0].Notify, w.Notify = 1, []mvcc.NotifySet{{Observers: []uint64{1, 2}}}
	if n := testing.AllocsPerRun(200, write); n > 8 {
		t.Errorf("a one-key commit of which two observers are notified makes %.0f allocations, budget 8", n)
	}
}
