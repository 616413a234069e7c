package observer

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/session"
)

// testRunner returns a runner whose loop does not run.
func testRunner() *runner {
	t := target{table: &catalog.TableDescriptor{ID: 1}, observer: &catalog.ObserverDescriptor{ID: 2, Name: "o", Concurrency: 1, Batch: 1}}
	return newRunner(&Manager{metrics: newMetrics(nil), ctx: context.Background()}, t)
}

func cells(n int) []kv.NotifyCell {
	list := make([]kv.NotifyCell, n)
	for i := range list {
		list[i] = kv.NotifyCell{Key: fmt.Appendf(nil, "%06d", i), Latest: 1}
	}
	return list
}

// Goal: keys that wait for another attempt do not keep a scan from finding others, as long as the queue has room.
func TestQueueWithDelayedKeys(t *testing.T) {
	r := testRunner()
	delay := func(n int) {
		for _, c := range cells(n)[len(r.items):] {
			r.add(change{NotifyCell: c}, true)
			heap.Push(&r.delayed, r.items[string(c.Key)])
		}
		r.ready = nil
	}
	if delay(1000); r.full() {
		t.Error("1,000 keys that wait for another attempt fill the queue")
	}
	if delay(maxQueued); !r.full() {
		t.Errorf("%d keys do not fill the queue", maxQueued)
	}
}

// Goal: a sweep that finds only keys that are queued already is repeated later and later.
func TestSweepOfQueuedKeys(t *testing.T) {
	r := testRunner()
	for i := range 10 {
		r.takePage(page{cells: cells(10)})
		if want := min(scanPauseMin<<i, scanPauseMax); r.scan.pause != want {
			t.Errorf("after sweep %d the pause is %s, want %s", i+1, r.scan.pause, want)
		}
	}
	r.takePage(page{cells: cells(11)})
	if r.scan.pause != scanPauseMin {
		t.Errorf("after a sweep that has found something the pause is %s", r.scan.pause)
	}
}

// Goal: an observer that is dropped does not take away the metrics of another one that has got its name.
func TestMetricsOfSuccessor(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	of := target{table: &catalog.TableDescriptor{Schema: "public"}, observer: &catalog.ObserverDescriptor{Name: "o"}}
	shown := func() int {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return len(families)
	}
	one, two := m.of(of), m.of(of)
	m.forget(one)
	if shown() == 0 {
		t.Error("the metrics of the successor are gone")
	}
	if m.forget(two); shown() != 0 {
		t.Error("metrics are left")
	}
}

// Goal: acknowledgements are collected of all observers in turn, mostly of those that have many.
func TestTurnsOfCollector(t *testing.T) {
	m := &Manager{}
	for _, id := range []uint64{7, 3, 5} {
		m.mu.observers = append(m.mu.observers, target{observer: &catalog.ObserverDescriptor{ID: id}})
	}
	c := collector{m: m, from: map[uint64][]byte{9: nil}, busy: map[uint64]bool{9: true}}
	turns := func(n int) (ids []uint64) {
		for range n {
			of, _ := c.next()
			ids = append(ids, of.observer.ID)
		}
		return ids
	}
	if got := turns(6); !slices.Equal(got, []uint64{3, 5, 7, 3, 5, 7}) {
		t.Errorf("the turns are %v", got)
	}
	c.busy[5] = true
	got := turns(3 * collectTurn)
	for _, id := range []uint64{3, 7} {
		if n := len(got) - len(slices.DeleteFunc(slices.Clone(got), func(x uint64) bool { return x == id })); n < 1 || n > 2 {
			t.Errorf("beside an observer with many, observer %d has %d of %d turns", id, n, len(got))
		}
	}
}

// Goal: while a transaction is under way, others begin with whole batches, but not much later than without.
func TestBatchesGatherForSomeTime(t *testing.T) {
	r := testRunner()
	r.target.observer.Batch, r.running = 10, 1
	r.add(change{NotifyCell: cells(1)[0]}, false)
	now := time.Now()
	r.scan.due = now.Add(time.Hour)
	if !r.gathers(now) || !r.nextDue(now).Equal(now.Add(gatherMax)) {
		t.Error("a key that is alone does not wait for others")
	}
	if !r.gathers(now.Add(gatherMax/2)) || r.gathers(now.Add(gatherMax)) {
		t.Error("a key waits for others for another time than gatherMax")
	}
}

// Goal: a scan looks soon for a key that another transaction had locked, since nobody sends a hint if that fails; the key is not kept.
func TestLockedKeysAreScannedSoon(t *testing.T) {
	r := testRunner()
	r.add(change{NotifyCell: cells(1)[0]}, false)
	it := r.items[string(cells(1)[0].Key)]
	r.running = 1
	now := time.Now()
	r.scan.due = now.Add(time.Hour)
	r.finish(result{worker: &worker{}, items: []*item{it}, h: session.Handling{Locked: 1}, ended: now})
	if r.scan.due.After(time.Now().Add(lockedLook)) {
		t.Errorf("the next scan is in %s", time.Until(r.scan.due))
	}
	if len(r.items) != 0 || r.locking == 0 {
		t.Errorf("%d keys are kept, %d transactions lock", len(r.items), r.locking)
	}
}
