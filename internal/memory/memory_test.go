package memory

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
)

// Goal: a pool refuses what exceeds its own limit or that of a pool above, names the pool, and counts
// nothing of a refused reservation anywhere.
func TestPoolRefusal(t *testing.T) {
	root := NewPool("the server", 100)
	a, b := root.Sub("a", 80), root.Sub("b", 80)
	if err := a.Reserve(70); err != nil {
		t.Fatal(err)
	}
	var exceeded *ExceededError
	if err := a.Reserve(20); !errors.As(err, &exceeded) || exceeded.Pool != "a" {
		t.Fatalf("got %v, want a refusal by a", err)
	}
	if err := b.Reserve(40); !errors.As(err, &exceeded) || exceeded.Pool != "the server" {
		t.Fatalf("got %v, want a refusal by the server", err)
	}
	if root.Used() != 70 || a.Used() != 70 || b.Used() != 0 {
		t.Fatalf("used: root %d, a %d, b %d", root.Used(), a.Used(), b.Used())
	}
	a.Release(70)
	if err := b.Reserve(80); err != nil {
		t.Fatal(err)
	}
}

// Goal: whatever accounts do at once, the pool's sum stays within its limit and is zero when all are
// closed; an account always has drawn what it holds beyond its allowance.
func TestAccountsConcurrently(t *testing.T) {
	const limit = 8 << 20
	root := NewPool("the server", limit)
	pool := root.Sub("statements", limit)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			a := NewAccount(pool, 1<<16)
			held := int64(0)
			for range 20000 {
				n := r.Int64N(1 << 18)
				if r.IntN(2) == 0 {
					if a.Grow(n) == nil {
						held += n
					}
				} else {
					n = min(n, held)
					a.Shrink(n)
					held -= n
				}
				if a.Used() != held || a.drawn+a.allowance < held || root.Used() > limit {
					t.Errorf("holds %d, counts %d, has drawn %d, pool %d", held, a.Used(), a.drawn, root.Used())
					return
				}
			}
			a.Close()
		})
	}
	wg.Wait()
	if root.Used() != 0 || pool.Used() != 0 {
		t.Fatalf("left over: %d, %d", root.Used(), pool.Used())
	}
}

// Goal: the first bytes are free, and what a full pool has left is used to the end.
func TestAccountAllowance(t *testing.T) {
	pool := NewPool("the server", chunkBytes+10)
	a := NewAccount(pool, 1000)
	if err := a.Grow(1000); err != nil || pool.Used() != 0 {
		t.Fatalf("err %v, pool %d", err, pool.Used())
	}
	b := NewAccount(pool, 0)
	if err := b.Grow(1); err != nil {
		t.Fatal(err)
	}
	if err := a.Grow(10); err != nil {
		t.Fatalf("ten bytes were left: %v", err)
	}
	if err := a.Grow(1); err == nil {
		t.Fatal("no byte was left")
	}
	if a.Used() != 1010 {
		t.Fatalf("a refused byte was counted: %d", a.Used())
	}
}

// Goal: large reservations one after another, each made garbage, succeed although their sum is many
// times the heap's limit; what is live is refused.
func TestHeapIsCollected(t *testing.T) {
	runtime.GC()
	pool := NewServerPool(1<<40, 0)
	pool.heap.limit = pool.heap.inUse() + 96<<20
	const size = 32 << 20
	var live [][]byte
	for range 40 {
		if err := pool.Reserve(size); err != nil {
			t.Fatal(err)
		}
		live = [][]byte{make([]byte, size)}
		pool.Release(size)
	}
	var err error
	for range 10 {
		if err = pool.Reserve(size); err != nil {
			break
		}
		live = append(live, make([]byte, size))
	}
	var exceeded *ExceededError
	if !errors.As(err, &exceeded) || len(live) > 4 {
		t.Fatalf("%d live blocks, error %v", len(live), err)
	}
	runtime.KeepAlive(live)
}

// Goal: counting costs no allocation and no look at the pool.
func TestGrowAllocatesNothing(t *testing.T) {
	pool := NewPool("the server", 1<<30)
	a := NewAccount(pool, 0)
	if err := a.Grow(1); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		_ = a.Grow(100)
		a.Shrink(100)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// Goal: the collector's setting is lowered while anybody asks for it, never raised, and restored when the last has ended.
func TestTightenCollector(t *testing.T) {
	setting := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	defer debug.SetGCPercent(setting())
	for before, want := range map[int]int{400: tightPercent, 100: 100, -1: -1} {
		debug.SetGCPercent(before)
		TightenCollector()
		TightenCollector()
		LoosenCollector()
		if got := setting(); got != want {
			t.Errorf("from %d: %d, want %d", before, got, want)
		}
		LoosenCollector()
		if got := setting(); got != before {
			t.Errorf("afterwards %d, want %d", got, before)
		}
	}
}
