package executor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// Goal: which observers a change notifies, by the columns that differ. Method: a table of changes; observer 5 observes columns 1 and
// 2, observer 7 column 2, observer 9 column 0.
func TestObserversOfAChange(t *testing.T) {
	ex := &execution{rt: &Runtime{Hop: 3}}
	n := newNotifier(ex, &planner.Observed{
		Observers: []uint64{5, 7, 9},
		Columns:   []planner.ObservedColumn{{Ordinal: 0, Observers: 4}, {Ordinal: 1, Observers: 1}, {Ordinal: 2, Observers: 3}},
	})
	set := func(ref notifyRef) *mvcc.NotifySet {
		if ref == 0 {
			return &mvcc.NotifySet{}
		}
		return n.sets[ref-1].set
	}
	parse := func(text string) types.Datum {
		d, err := types.ParseText(types.TNumeric, text, &types.Format{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	old := types.Row{types.Int(1), types.Text("x"), parse("1.0")}
	for _, c := range []struct {
		row  types.Row
		want []uint64
	}{
		{types.Row{types.Int(1), types.Text("x"), parse("1.0")}, nil},
		{types.Row{types.Int(2), types.Text("x"), parse("1.0")}, []uint64{9}},
		{types.Row{types.Int(1), types.Text("y"), parse("1.0")}, []uint64{5}},
		{types.Row{types.Int(1), types.Null, parse("1.0")}, []uint64{5}},
		{types.Row{types.Int(1), types.Text("x"), parse("1.00")}, []uint64{5, 7}},
		{types.Row{types.Int(3), types.Text(""), types.Null}, []uint64{5, 7, 9}},
	} {
		ref, err := n.changed(old, c.row)
		if err != nil {
			t.Fatal(err)
		}
		if got := set(ref); !slices.Equal(got.Observers, c.want) || ref != 0 && got.Hop != 3 {
			t.Errorf("%v: %v, want %v", c.row, got, c.want)
		}
	}
	if a, b := n.everyone(), n.everyone(); a != b || len(n.sets) != 4 {
		t.Errorf("%d sets; %d and %d for all observers", len(n.sets), a, b)
	}
	ex.rt = &Runtime{Hop: 4}
	if got := set(n.everyone()); got.Hop != 4 || len(got.Observers) != 3 {
		t.Errorf("the next run notifies %v", got)
	}
	var none *notifier
	if ref, err := none.changed(old, old); ref != 0 || err != nil || none.everyone() != 0 {
		t.Error("a table without observers notifies")
	}
}

// Goal: the sets of a statement are bounded; none is too small. Method: one observer for each of 20 columns, and more combinations
// than the bound.
func TestNotifySetsOfAStatementAreBounded(t *testing.T) {
	o := &planner.Observed{}
	for i := range 20 {
		o.Observers = append(o.Observers, uint64(i+1))
		o.Columns = append(o.Columns, planner.ObservedColumn{Ordinal: i, Observers: 1 << i})
	}
	n := newNotifier(&execution{rt: &Runtime{}}, o)
	old, row := make(types.Row, 20), make(types.Row, 20)
	for mask := 1; mask < 2*maxObserverSets; mask++ {
		for i := range row {
			row[i] = types.Int(int64(mask >> i & 1))
			old[i] = types.Int(0)
		}
		ref, err := n.changed(old, row)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.sets[ref-1].bits; got&uint64(mask) != uint64(mask) {
			t.Fatalf("%b is not in %b", mask, got)
		}
	}
	if len(n.sets) > maxObserverSets+1 {
		t.Fatalf("%d sets", len(n.sets))
	}
}

// Goal: rows that COPY stores notify all observers, with the hop of the run. Method: an inserter.
func TestInsertedRowsAreMarked(t *testing.T) {
	table := testTable(7, 1, "id int", "a int")
	txn := newMemTxn()
	rt := testRuntime(txn, table)
	rt.Hop = 2
	in := NewInserter(table, nil, &planner.Observed{Observers: []uint64{5, 7}}, nil, rt)
	for id := range 3 {
		if err := in.Insert(t.Context(), types.Row{types.Int(int64(id)), types.Null}); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, set := range txn.notified {
		if set.Hop != 2 || !slices.Equal(set.Observers, []uint64{5, 7}) {
			t.Errorf("%x notifies %v", key, set)
		}
	}
	if len(txn.notified) != 3 {
		t.Errorf("%d keys are marked", len(txn.notified))
	}
}

// Goal: the row's key alone is marked with the set, however the statement writes it. Method: insert, update and delete with and without
// deferred writes.
func TestRowsAreMarked(t *testing.T) {
	table := testTable(7, 1, "id int", "a int")
	o := &planner.Observed{Observers: []uint64{5}, Columns: []planner.ObservedColumn{{Ordinal: 1, Observers: 1}}}
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct=%v", direct), func(t *testing.T) {
			txn := newMemTxn()
			ex := &execution{}
			ex.bind(testRuntime(txn, table))
			w := newTableWriter(ex, table, nil, []int{1}, o, nil)
			w.sink.direct = direct
			one, two := types.Row{types.Int(1), types.Int(10)}, types.Row{types.Int(2), types.Int(20)}
			three := types.Row{types.Int(3), types.Int(30)}
			ctx := t.Context()
			for _, err := range []error{
				w.insert(ctx, one), w.update(ctx, two, types.Row{types.Int(2), types.Int(21)}),
				w.update(ctx, types.Row{types.Int(4), types.Int(1)}, types.Row{types.Int(4), types.Int(1)}), w.delete(ctx, three), w.sink.finish(ctx),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, row := range []types.Row{one, two, three} {
				key, _, err := rowenc.AppendKey(nil, table, &table.Primary, row)
				if err != nil {
					t.Fatal(err)
				}
				if set := txn.notified[string(key)]; set == nil || !slices.Equal(set.Observers, []uint64{5}) {
					t.Errorf("row %v notifies %v", row, set)
				}
			}
			if len(txn.notified) != 3 {
				t.Errorf("%d keys are marked", len(txn.notified))
			}
		})
	}
}
