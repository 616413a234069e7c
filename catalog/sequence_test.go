package catalog

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func mustCreateSequence(t testing.TB, c *Catalog, seq SequenceDescriptor) *TableDescriptor {
	t.Helper()
	ctx := context.Background()
	id, err := c.NewID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seq.ValueID, seq.Type, seq.First = id, types.TInt8, seq.Start
	desc := &TableDescriptor{ID: id, Kind: KindSequence, Schema: PublicSchema, Name: "s", Sequence: &seq}
	if err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.Create(ctx, desc) }); err != nil {
		t.Fatal(err)
	}
	return desc
}

// take takes n values.
func take(t testing.TB, c *Catalog, seq *TableDescriptor, n int) []int64 {
	t.Helper()
	var out []int64
	for range n {
		v, err := c.NextVal(context.Background(), seq)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// Goal: values continue without a gap after a clean stop, and with a gap of at most SequenceAhead after a crash; setval
// changes the next value.
func TestSequenceSurvivesStops(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	open := func() *Catalog {
		c, err := New(ctx, db, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := open()
	seq := mustCreateSequence(t, c, SequenceDescriptor{Start: 5, Increment: 2, Min: 1, Max: math.MaxInt64})
	if last, called, err := c.LastVal(ctx, seq); err != nil || called || last != 5 {
		t.Fatal(last, called, err)
	}
	if got := take(t, c, seq, 3); !slices.Equal(got, []int64{5, 7, 9}) {
		t.Fatal(got)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	c = open()
	if got := take(t, c, seq, 2); !slices.Equal(got, []int64{11, 13}) {
		t.Fatal("after a clean stop", got)
	}
	c = open() // the one before died
	got := take(t, c, seq, 1)
	if got[0] <= 13 || got[0] > 13+32*2 {
		t.Fatal("after a crash", got)
	}
	if err := c.SetVal(ctx, seq, 100, true); err != nil {
		t.Fatal(err)
	}
	if got := take(t, c, seq, 40); got[0] != 102 || got[39] != 180 {
		t.Fatal("after setval", got)
	}
	if last, called, err := c.LastVal(ctx, seq); err != nil || !called || last != 180 {
		t.Fatal(last, called, err)
	}
	var pg *pgerror.Error
	if err := c.SetVal(ctx, seq, 0, true); !errors.As(err, &pg) || pg.Code != pgerror.NumericValueOutOfRange {
		t.Fatal(err)
	}
}

// Goal: sequences stop at their bounds, or cycle, in both directions, and do not overflow.
func TestSequenceBounds(t *testing.T) {
	c := newCatalog(t, newDB(t), Options{})
	for _, tc := range []struct {
		seq  SequenceDescriptor
		want []int64 // before the end
	}{
		{SequenceDescriptor{Start: 1, Increment: 1, Min: 1, Max: 3}, []int64{1, 2, 3}},
		{SequenceDescriptor{Start: 2, Increment: 1, Min: 1, Max: 3, Cycle: true}, []int64{2, 3, 1, 2, 3, 1}},
		{SequenceDescriptor{Start: -1, Increment: -2, Min: -5, Max: -1}, []int64{-1, -3, -5}},
		{SequenceDescriptor{Start: -5, Increment: -2, Min: -5, Max: -1, Cycle: true}, []int64{-5, -1, -3, -5}},
		{SequenceDescriptor{Start: math.MaxInt64 - 1, Increment: 5, Min: 1, Max: math.MaxInt64}, []int64{math.MaxInt64 - 1}},
	} {
		seq := mustCreateSequence(t, c, tc.seq)
		if got := take(t, c, seq, len(tc.want)); !slices.Equal(got, tc.want) {
			t.Fatalf("%+v: %v, want %v", tc.seq, got, tc.want)
		}
		_, err := c.NextVal(context.Background(), seq)
		var pg *pgerror.Error
		if !tc.seq.Cycle && (!errors.As(err, &pg) || pg.Code != sequenceLimit) {
			t.Fatalf("%+v: %v", tc.seq, err)
		}
		if err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.Drop(context.Background(), seq) }); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: no value is returned twice, by one process or by two.
func TestSequenceValuesAreUnique(t *testing.T) {
	for _, shared := range []bool{false, true} {
		db := newDB(t)
		catalogs := []*Catalog{newCatalog(t, db, Options{Shared: shared})}
		if shared {
			catalogs = append(catalogs, newCatalog(t, db, Options{Shared: true}))
		}
		seq := mustCreateSequence(t, catalogs[0], SequenceDescriptor{Start: 1, Increment: 1, Min: 1, Max: math.MaxInt64})
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 40 {
					v, err := catalogs[i%len(catalogs)].NextVal(context.Background(), seq)
					mu.Lock()
					if err != nil || seen[v] {
						t.Errorf("%d again, %v", v, err)
					}
					seen[v] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}
