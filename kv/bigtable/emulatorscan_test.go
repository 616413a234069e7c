package bigtable

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/bttest"

	"github.com/percodb/percodb/internal/tsotest"
)

// Goal: what is changed on the way to Google's emulator does not change its answers. Method: the same changes and reads, of random ranges, names, limits
// and filters in both directions, against it and against the emulator as it is.
func TestEmulatorAnswersAsGoogles(t *testing.T) {
	tables := bothEmulators(t)
	r := rand.New(rand.NewPCG(1, 2))
	name := func() string { return fmt.Sprintf("k%04d", r.IntN(3000)) }
	var rows []string
	var changes []*bigtable.Mutation
	for range 3000 {
		m := bigtable.NewMutation()
		switch r.IntN(8) {
		case 0:
			m.DeleteRow()
		case 1: // a long row
			for range 2 * manyCells {
				m.Set(families[r.IntN(len(families))], fmt.Sprint(r.IntN(20)), 0, fmt.Append(nil, r.IntN(100)))
			}
		default:
			for range 1 + r.IntN(6) {
				m.Set(families[r.IntN(len(families))], fmt.Sprint(r.IntN(5)), 0, fmt.Append(nil, r.IntN(100)))
			}
		}
		rows, changes = append(rows, name()), append(changes, m)
	}
	for _, table := range tables {
		if _, err := table.ApplyBulk(t.Context(), rows, changes); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		row, condition := name(), randomFilter(r, 3)
		if i%2 == 0 && readAll(t, tables[0], bigtable.SingleRow(row), nil) == nil {
			continue
		}
		var matched [2]bool
		for k, table := range tables {
			yes, no := bigtable.NewMutation(), bigtable.NewMutation()
			yes.Set(familyWrite, "1", 0, fmt.Append(nil, i))
			no.DeleteCellsInFamily(familyData)
			no.Set(familyLock, "2", 0, fmt.Append(nil, i))
			if err := table.Apply(t.Context(), row, bigtable.NewCondMutation(condition, yes, no), bigtable.GetCondMutationResult(&matched[k])); err != nil {
				t.Fatal(err)
			}
		}
		if matched[0] != matched[1] {
			t.Fatalf("condition %d, %v: %v", i, condition, matched)
		}
	}
	for i := range 100 {
		var set bigtable.RowSet = bigtable.InfiniteRange(name())
		if n := r.IntN(4); n > 0 {
			var ranges bigtable.RowRangeList
			for range n {
				a, b := name(), name()
				switch r.IntN(3) {
				case 0:
					ranges = append(ranges, bigtable.NewClosedOpenRange(min(a, b), max(a, b)+"0"))
				case 1:
					ranges = append(ranges, bigtable.NewClosedRange(min(a, b), max(a, b)))
				default:
					ranges = append(ranges, bigtable.NewOpenRange(min(a, b), max(a, b)+"0"))
				}
			}
			set = ranges
		}
		opts := []bigtable.ReadOption{bigtable.LimitRows(int64(r.IntN(4)) * int64(r.IntN(1000)))}
		if r.IntN(2) == 0 {
			opts = append(opts, bigtable.ReverseScan())
		}
		if r.IntN(4) > 0 {
			opts = append(opts, bigtable.RowFilter(randomFilter(r, 3)))
		}
		got, want := readAll(t, tables[0], set, opts), readAll(t, tables[1], set, opts)
		if !slices.Equal(got, want) {
			t.Fatalf("read %d, %v: %d cells, want %d\n%.300s\n%.300s", i, set, len(got), len(want), fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// bothEmulators returns an empty table of our emulator and one of Google's.
func bothEmulators(t *testing.T) (tables []*bigtable.Table) {
	t.Helper()
	ours, err := StartEmulator("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ours.Close)
	theirs, err := bttest.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(theirs.Close)
	for _, addr := range []string{ours.Addr(), theirs.Addr} {
		opts := Options{Project: "p", Instance: "i", Emulator: addr}
		if _, err := CreateTable(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		c, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		table, none := c.client.Open(c.opts.Table), bigtable.NewMutation()
		none.DeleteRow()
		if err := table.Apply(t.Context(), metaRow(coordinatorRow), none); err != nil { // its identity
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	return tables
}

// Goal: a row of many versions that is kept is changed as the emulator changes it. Method: random conditional changes of some long rows, at times of their
// last cell of a family, on our emulator and on Google's; the rows are read in between.
func TestEmulatorChangesLongRows(t *testing.T) {
	tables := bothEmulators(t)
	r := rand.New(rand.NewPCG(3, 4))
	column := func() string { return fmt.Sprint(r.IntN(60)) }
	for i := range 3000 {
		row, family, n := fmt.Sprint("k", r.IntN(3)), families[r.IntN(2)], 1+r.IntN(3)
		if r.IntN(3) == 0 {
			family = families[2+r.IntN(len(families)-2)] // Few cells, which come and go.
		}
		condition := bigtable.ColumnRangeFilter(families[r.IntN(len(families))], column(), "")
		yes, no := bigtable.NewMutation(), bigtable.NewMutation()
		for range n {
			switch r.IntN(5) {
			case 0:
				yes.DeleteCellsInColumn(family, column())
			case 1:
				no.DeleteCellsInColumn(family, fmt.Sprint(r.IntN(2)))
			case 2:
				no.Set(family, fmt.Sprint(r.IntN(2)), 0, fmt.Append(nil, i))
			default:
				yes.Set(family, column(), 0, fmt.Append(nil, i))
				no.Set(families[r.IntN(2)], column(), 0, fmt.Append(nil, i))
			}
		}
		var matched [2]bool
		for k, table := range tables {
			m := bigtable.NewCondMutation(condition, yes, no)
			if i%97 == 0 {
				m = bigtable.NewMutation()
				m.Set(families[0], "ts", bigtable.Timestamp(i)*1000, []byte("1"))
				if err := table.Apply(t.Context(), row, m); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := table.Apply(t.Context(), row, m, bigtable.GetCondMutationResult(&matched[k])); err != nil {
				t.Fatal(err)
			}
		}
		if matched[0] != matched[1] {
			t.Fatalf("change %d: %v", i, matched)
		}
		opts := []bigtable.ReadOption{bigtable.RowFilter(bigtable.ColumnRangeFilter(families[r.IntN(len(families))], column(), ""))}
		if i%10 == 0 {
			opts = []bigtable.ReadOption{bigtable.RowFilter(bigtable.PassAllFilter())}
		}
		if got, want := readAll(t, tables[0], bigtable.SingleRow(row), opts), readAll(t, tables[1], bigtable.SingleRow(row), opts); !slices.Equal(got, want) {
			t.Fatalf("read %d: %d cells, want %d\n%.300s\n%.300s", i, len(got), len(want), fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}

// randomFilter returns a filter of those that are computed here. Google's emulator limits the cells of a row in no certain order of families.
func randomFilter(r *rand.Rand, depth int) bigtable.Filter {
	column := func() bigtable.Filter {
		bounds := []string{"", "0", "1", "1\x00", "2", "3", "4", ""}
		i := r.IntN(len(bounds) - 1)
		return bigtable.ColumnRangeFilter(families[r.IntN(len(families))], bounds[i], bounds[i+1+r.IntN(len(bounds)-i-1)])
	}
	some := func() []bigtable.Filter {
		filters := make([]bigtable.Filter, 2+r.IntN(3))
		for i := range filters {
			filters[i] = randomFilter(r, depth-1)
		}
		return filters
	}
	kind := r.IntN(7)
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return bigtable.ValueRangeFilter(fmt.Append(nil, r.IntN(5)), fmt.Append(nil, 5+r.IntN(5)))
	case 1:
		return bigtable.ChainFilters(column(), bigtable.CellsPerRowLimitFilter(1+r.IntN(2)))
	case 2:
		return bigtable.ChainFilters(column(), bigtable.StripValueFilter())
	case 3:
		return column()
	case 4:
		return bigtable.ChainFilters(some()...)
	default:
		return bigtable.InterleaveFilters(some()...)
	}
}

func readAll(t *testing.T, table *bigtable.Table, set bigtable.RowSet, opts []bigtable.ReadOption) (cells []string) {
	t.Helper()
	err := table.ReadRows(context.WithoutCancel(t.Context()), set, func(row bigtable.Row) bool {
		for _, family := range slices.Sorted(maps.Keys(row)) {
			for _, item := range row[family] {
				cells = append(cells, fmt.Sprint(item.Row, item.Column, string(item.Value)))
			}
		}
		return true
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

// Goal: rows can be changed while another client reads many. Method: a reader that does not go on before a change has been made.
func TestEmulatorChangesDuringScans(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	table := e.client.client.Open(e.client.opts.Table)
	var rows []string
	var changes []*bigtable.Mutation
	for i := range 2000 {
		m := bigtable.NewMutation()
		m.Set(familyData, "d", 0, make([]byte, 8<<10))
		rows, changes = append(rows, fmt.Sprintf("k%04d", i)), append(changes, m)
	}
	if _, err := table.ApplyBulk(t.Context(), rows, changes); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n := 0
	err := table.ReadRows(ctx, bigtable.PrefixRange("k"), func(bigtable.Row) bool {
		if n++; n == 1 {
			if err := table.Apply(ctx, rows[0], changes[0]); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if n != len(rows) || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}

// Goal: rows that are dropped by their prefix are gone, long ones that were kept among them. Method: a row of many cells, read, dropped and read again.
func TestEmulatorDropsLongRows(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	table := e.client.client.Open(e.client.opts.Table)
	m := bigtable.NewMutation()
	for i := range 2 * manyCells {
		m.Set(familyData, fmt.Sprintf("%03d", i), 0, []byte{1})
	}
	if err := table.Apply(t.Context(), "klong", m); err != nil {
		t.Fatal(err)
	}
	opts := []bigtable.ReadOption{bigtable.RowFilter(bigtable.ColumnRangeFilter(familyData, "", ""))}
	if n := len(readAll(t, table, bigtable.SingleRow("klong"), opts)); n != 2*manyCells {
		t.Errorf("%d cells", n)
	}
	admin, err := bigtable.NewAdminClient(t.Context(), "p", "i", EmulatorOptions(e.client.opts.Emulator)...)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.DropRowRange(t.Context(), e.client.opts.Table, "klo"); err != nil {
		t.Fatal(err)
	}
	if cells := readAll(t, table, bigtable.SingleRow("klong"), opts); cells != nil {
		t.Errorf("after the drop: %d cells", len(cells))
	}
}
