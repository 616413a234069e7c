package waitgraph

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/percodb/percodb/tso"
)

// Goal: the edge that closes a circle is refused and told in order, and only it; edges go with their
// waits. Method: a circle of three, with a second wait of the same pair.
func TestCircle(t *testing.T) {
	g := NewLocal()
	done12, err := g.Wait(t.Context(), 1, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := g.Add(1, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Add(2, 3, nil); err != nil {
		t.Fatal(err)
	}
	var deadlock *DeadlockError
	if _, err := g.Add(3, 1, []byte("k")); !errors.As(err, &deadlock) || !slices.Equal(deadlock.Cycle, []tso.Timestamp{3, 1, 2}) ||
		deadlock.Waiter != 3 || deadlock.Holder != 1 || string(deadlock.Key) != "k" {
		t.Errorf("the circle closed: %+v", err)
	}
	if _, err := g.Add(4, 4, nil); !errors.As(err, &deadlock) || len(deadlock.Cycle) != 1 {
		t.Errorf("who waits for itself: %v", err)
	}
	done12()
	if _, err := g.Add(3, 1, nil); err == nil {
		t.Error("one of two equal waits has ended, and the other was forgotten")
	}
	g.Remove(again)
	g.Remove(again)
	if _, err := g.Add(3, 1, nil); err != nil {
		t.Errorf("no circle any more: %v", err)
	}
	if n := g.Len(); n != 2 {
		t.Errorf("%d edges", n)
	}
}

// Goal: an edge whose waiter has not been heard of closes no circles once its lease is over. Method: a
// clock that the test moves.
func TestLease(t *testing.T) {
	g, now := NewLocal(), time.Unix(0, 0)
	g.now = func() time.Time { return now }
	e, err := g.Lease(1, 2, nil, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Lease(3, 4, nil, time.Second); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second - 1)
	if _, err := g.Add(2, 1, nil); err == nil {
		t.Error("a circle with a leased edge was closed")
	}
	now = now.Add(1)
	if _, err := g.Add(2, 1, nil); err != nil {
		t.Errorf("the lease is over: %v", err)
	}
	if n := g.Len(); n != 1 {
		t.Errorf("%d edges besides the one whose lease is over", n-1)
	}
	g.Remove(e)
	if n := g.Len(); n != 1 {
		t.Errorf("%d edges", n)
	}
}

// Goal: the graph never holds a circle, and never refuses an edge that closes none. Method: random
// edges come and go, against a search that knows no shortcuts.
func TestAgainstASearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	g := NewLocal()
	var edges []*Edge
	var reaches func(from, to tso.Timestamp) bool
	reaches = func(from, to tso.Timestamp) bool {
		return from == to || slices.ContainsFunc(edges, func(e *Edge) bool { return e.waiter == from && reaches(e.holder, to) })
	}
	refused := 0
	for range 3000 {
		if len(edges) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(edges))
			g.Remove(edges[i])
			edges = slices.Delete(edges, i, i+1)
			continue
		}
		from, to := tso.Timestamp(rng.IntN(8)), tso.Timestamp(rng.IntN(8))
		e, err := g.Add(from, to, nil)
		if (err != nil) != reaches(to, from) {
			t.Fatalf("%d → %d: %v", from, to, err)
		}
		if err != nil {
			refused++
		} else {
			edges = append(edges, e)
		}
	}
	if g.Len() != len(edges) || refused == 0 {
		t.Errorf("%d edges of %d, %d refused", g.Len(), len(edges), refused)
	}
}
