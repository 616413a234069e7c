package bigtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv/bigtable/widerow"
)

// randomCells makes filters and changes of few rows and columns, so that they meet.
type randomCells struct{ *rand.Rand }

func (r randomCells) word() string { return string(rune('a'+r.IntN(4))) + string(rune('a'+r.IntN(3))) }

func (r randomCells) family() string { return families[r.IntN(len(families))] }

func (r randomCells) filter(depth int) widerow.Filter {
	n := 6
	if depth == 0 {
		n = 4
	}
	switch r.IntN(n) {
	case 0:
		return widerow.ChainFilters(widerow.ColumnRangeFilter(r.family(), "", ""), widerow.FirstOfRowFilter())
	case 1:
		from, to := r.word(), r.word()
		return widerow.ValueRangeFilter([]byte(min(from, to)), []byte(max(from, to)+"a"))
	case 2:
		return widerow.ColumnRangeFilter(r.family(), "", "")
	case 3:
		from, to := r.word(), r.word()
		return widerow.ColumnRangeFilter(r.family(), min(from, to), max(from, to)+"a")
	case 4:
		return widerow.ChainFilters(r.filter(depth-1), r.filter(depth-1))
	default:
		return widerow.InterleaveFilters(r.filter(depth-1), r.filter(depth-1), r.filter(depth-1))
	}
}

func (r randomCells) change() *widerow.Mutation {
	m := widerow.NewMutation()
	for range 1 + r.IntN(4) {
		switch r.IntN(8) {
		case 0:
			m.DeleteRow()
		case 1, 2:
			m.DeleteCellsInColumn(r.family(), r.word())
		default:
			m.Set(r.family(), r.word(), []byte(r.word()))
		}
	}
	return m
}

func (r randomCells) rows() widerow.RowSet {
	if r.IntN(2) == 0 {
		names := []string{r.word(), r.word(), r.word()}
		slices.Sort(names)
		return widerow.RowList(slices.Compact(names))
	}
	from, to := r.word(), r.word()
	return widerow.RowRangeList{widerow.NewClosedOpenRange(min(from, to), max(from, to)+"a")}
}

// Goal: a table in memory, on which the simulation runs, does what Bigtable's emulator does. Method: random requests on both.
func TestTableInMemory(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	tables := []widerow.Table{e.client.table, widerow.NewMemory()}
	r := randomCells{rand.New(rand.NewPCG(1, 1))}
	matches := 0
	for i := range 3000 {
		row, filter, yes, no := r.word(), r.filter(2), r.change(), r.change()
		set, reading, opts := r.rows(), r.filter(2), widerow.ReadOptions{Limit: int64(r.IntN(4)), Reverse: r.IntN(3) == 0}
		if r.IntN(4) == 0 {
			no = nil
		}
		var answers [2]string
		for n, table := range tables {
			matched, err := table.CheckAndMutate(t.Context(), row, filter, yes, no)
			if err == nil && i%3 == 0 {
				_, err = table.Mutate(t.Context(), []string{row, row + "x"}, []*widerow.Mutation{yes, yes})
			}
			answers[n] = fmt.Sprint(matched)
			if matched {
				matches++
			}
			if err == nil {
				err = table.ReadRows(t.Context(), set, reading, opts, func(row widerow.Row) bool {
					answers[n] += fmt.Sprintf("\n%s", row.Key())
					for _, family := range families {
						for _, item := range row[family] {
							answers[n] += fmt.Sprintf(" %s=%s", item.Column, item.Value)
						}
					}
					return true
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if answers[0] != answers[1] {
			t.Fatalf("request %d, filters %v and %v, %v %v:\nthe emulator: %s\nin memory: %s", i, filter, reading, set, opts, answers[0], answers[1])
		}
	}
	if matches < 500 || matches > 5500 {
		t.Errorf("%d conditions matched: too few or too many to tell anything", matches)
	}
}
