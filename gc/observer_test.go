package gc

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// observerDrops lists one observer until it is forgotten.
type observerDrops struct {
	w         *world
	forgotten []uint64
}

func (d *observerDrops) Dropped(context.Context, tso.Timestamp) ([]DroppedSpan, error) {
	if len(d.forgotten) > 0 {
		return nil, nil
	}
	return []DroppedSpan{{ID: 3, Observer: 5}}, nil
}

func (d *observerDrops) RemoveCells(ctx context.Context, observer uint64) error {
	return d.w.db.Observers().Drop(ctx, observer, kv.Span{})
}

func (d *observerDrops) Forget(_ context.Context, ids []uint64) error {
	d.forgotten = append(d.forgotten, ids...)
	return nil
}

// Goal: the notify cells of a dropped observer, and no others, are removed from all stores, once no store is away whose locks may become
// cells. Method: cells of two observers on two stores, of which one is away at first.
func TestCellsOfDroppedObserversAreRemoved(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	d := &observerDrops{w: w}
	w.Controller.opts.Drops = d
	w.put("a", "1", "z", "1")
	for _, observer := range []uint64{5, 6} {
		w.must(w.db.Observers().Put(ctx, observer, [][]byte{[]byte("a"), []byte("z")}, w.now(), 0))
	}
	cells := func(observer uint64) int {
		cells, _, err := w.db.Observers().Scan(ctx, observer, kv.Span{}, 10, nil)
		w.must(err)
		return len(cells)
	}
	round := func() {
		w.oracle.advance(10 * time.Minute)
		w.must(w.Round(ctx))
	}
	w.bounds[1], w.down[1] = w.now(), true
	round()
	if n := cells(5); n != 2 || d.forgotten != nil {
		t.Fatalf("%d cells while a store is away, forgotten: %v", n, d.forgotten)
	}
	w.down[1] = false
	round()
	if n := cells(5); n != 0 || !slices.Equal(d.forgotten, []uint64{3}) {
		t.Fatalf("%d cells are left, forgotten: %v", n, d.forgotten)
	}
	if n := cells(6); n != 2 {
		t.Fatalf("%d cells of another observer", n)
	}
}
