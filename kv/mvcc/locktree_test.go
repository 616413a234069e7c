package mvcc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Goal: the lock tree is an ordered map, whichever finger is used. Method: random runs of ascending keys and single
// ones are put, replaced, looked up and removed with fingers that other changes have made stale, next to a sorted list;
// after every step the structure is checked, and spans are iterated in both directions.
func TestLockTree(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &treeWorld{T: t, rng: rand.New(rand.NewPCG(seed, 1)), tree: newLockTree()}
			for range 400 {
				w.step()
				w.check()
			}
			for len(w.model) > 0 { // empty it, from anywhere
				w.remove(&w.fingers[0], w.model[w.rng.IntN(len(w.model))].key)
			}
			w.check()
			if w.tree.root.children != nil {
				t.Fatal("an empty tree has more than one leaf")
			}
		})
	}
}

type treeWorld struct {
	*testing.T
	rng     *rand.Rand
	tree    *lockTree
	model   []*entry
	fingers [3]finger
}

func (w *treeWorld) place(key []byte) (int, bool) {
	return slices.BinarySearchFunc(w.model, key, func(e *entry, key []byte) int { return bytes.Compare(e.key, key) })
}

// step changes a run of ascending keys, which may be a single one.
func (w *treeWorld) step() {
	f := &w.fingers[w.rng.IntN(len(w.fingers))]
	run, stride := 1+w.rng.IntN(3)*w.rng.IntN(200), uint64(1+w.rng.IntN(3))
	next, what := uint64(w.rng.IntN(5000)), w.rng.IntN(4)
	for range run {
		key := binary.BigEndian.AppendUint64(nil, next)
		next += stride
		switch what {
		case 0, 1:
			w.put(f, key)
		case 2:
			w.remove(f, key)
		default:
			at, found := w.place(key)
			if got := w.tree.get(f, key); found != (got != nil) || found && got != w.model[at] {
				w.Fatalf("get %x: %v", key, got)
			}
		}
	}
}

func (w *treeWorld) put(f *finger, key []byte) {
	e := &entry{key: key}
	at, found := w.place(key)
	switch old := w.tree.put(f, e); {
	case found && old != w.model[at], !found && old != nil:
		w.Fatalf("put %x: was %v", key, old)
	case found:
		w.model[at] = e
	default:
		w.model = slices.Insert(w.model, at, e)
	}
}

func (w *treeWorld) remove(f *finger, key []byte) {
	at, found := w.place(key)
	switch old := w.tree.remove(f, key); {
	case found && old != w.model[at], !found && old != nil:
		w.Fatalf("remove %x: was %v", key, old)
	case found:
		w.model = slices.Delete(w.model, at, at+1)
	}
}

// check compares all entries, and a span, and checks the bounds and the neighbours of the leaves.
func (w *treeWorld) check() {
	if w.tree.n != len(w.model) {
		w.Fatalf("%d entries, want %d", w.tree.n, len(w.model))
	}
	key := binary.BigEndian.AppendUint64(nil, uint64(w.rng.IntN(5000)))
	at, _ := w.place(key)
	collect := func(walk func(f func(*entry) bool)) (out []*entry) {
		walk(func(e *entry) bool { out = append(out, e); return true })
		return out
	}
	for name, c := range map[string]struct{ got, want []*entry }{
		"from the start": {collect(func(f func(*entry) bool) { w.tree.ascend(nil, f) }), w.model},
		"from a key":     {collect(func(f func(*entry) bool) { w.tree.ascend(key, f) }), w.model[at:]},
		"from the end":   {reversed(collect(func(f func(*entry) bool) { w.tree.descend(nil, f) })), w.model},
		"below a key":    {reversed(collect(func(f func(*entry) bool) { w.tree.descend(key, f) })), w.model[:at]},
	} {
		if !slices.Equal(c.got, c.want) {
			w.Fatalf("%s: %d entries, want %d", name, len(c.got), len(c.want))
		}
	}
	n := w.tree.leafOf(nil)
	for last := []byte(nil); ; n = n.next {
		switch {
		case !bytes.Equal(n.low, last):
			w.Fatalf("a leaf begins at %x, the one before ends at %x", n.low, last)
		case len(n.items) == 0 && n != w.tree.root, len(n.items) > treeFanOut:
			w.Fatalf("a leaf with %d entries", len(n.items))
		case slices.ContainsFunc(n.items, func(e *entry) bool { return !n.holds(e.key) || w.tree.leafOf(e.key) != n }):
			w.Fatal("a leaf holds what it is not responsible for")
		case n.next == nil && n.high == nil:
			return
		case n.next == nil || n.next.prev != n || n.high == nil:
			w.Fatal("a leaf without its neighbour")
		}
		last = n.high
	}
}

func reversed(s []*entry) []*entry {
	slices.Reverse(s)
	return s
}
