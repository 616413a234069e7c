package bigtable

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// longRows keeps rows of many cells as the emulator sent them, and changes them as it does: it copies a row, with all its versions, for every
// read. Callers of methods that change rows hold Emulator.mu alone.
type longRows struct {
	mu   sync.Mutex
	rows map[longRow]cellsOfRow
	// families are those of each table in the order in which the cells of a row are sent, as far as it is known.
	families map[string][]string
}

type longRow struct{ table, name string }

// A row is long with manyCells. longRowsKept rows are kept at most.
const (
	manyCells    = 32
	longRowsKept = 1000
)

func (l *longRows) get(table, name string) cellsOfRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[longRow{table, name}]
}

// keep keeps a row as it was sent, if it is long.
func (l *longRows) keep(table string, cells cellsOfRow) {
	if len(cells) < manyCells {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil || len(l.rows) >= longRowsKept {
		l.rows = map[longRow]cellsOfRow{}
	}
	l.rows[longRow{table, string(cells[0].RowKey)}] = cells
	l.learn(table, cells.families())
}

// learn notes the order of a row's families if it adds to what is known.
func (l *longRows) learn(table string, families []string) {
	known := l.families[table]
	rest := families
	for _, f := range known {
		i := slices.Index(rest, f)
		if i < 0 {
			return
		}
		rest = rest[i+1:]
	}
	if l.families == nil {
		l.families = map[string][]string{}
	}
	l.families[table] = families
}

func (l *longRows) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows, l.families = nil, nil
}

// errNotApplied stands for the outcome of mutations that are not known to have been made.
var errNotApplied = errors.New("bigtable: mutations whose outcome is not known")

// change makes mutations of a row that is kept. If they have failed, or it is not certain what the emulator makes of them, the row is forgotten.
func (l *longRows) change(table, name string, mutations []*bigtablepb.Mutation, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := longRow{table, name}
	cells, kept := l.rows[key]
	for i := 0; i < len(mutations) && kept && err == nil; i++ {
		switch m := mutations[i].Mutation.(type) {
		case *bigtablepb.Mutation_SetCell_:
			cells, kept = cells.set(m.SetCell, l.families[table])
		case *bigtablepb.Mutation_DeleteFromColumn_:
			cells, kept = cells.deleteColumn(m.DeleteFromColumn)
		default:
			kept = false
		}
	}
	if kept && err == nil && len(cells) >= manyCells {
		l.rows[key] = cells
	} else {
		delete(l.rows, key)
	}
}

// families are those of the row's cells, in their order.
func (row cellsOfRow) families() (all []string) {
	for i := 0; i < len(row); {
		family := row[i].FamilyName.GetValue()
		_, i = row.family(family)
		all = append(all, family)
	}
	return all
}

// set sets a cell whose timestamp is 0, as all of percodb's are. ok is false if the place of the cell is not known: families has the order of families.
func (row cellsOfRow) set(m *bigtablepb.Mutation_SetCell, families []string) (_ cellsOfRow, ok bool) {
	if m.TimestampMicros != 0 {
		return nil, false
	}
	from, to := row.family(m.FamilyName)
	if from < 0 {
		if from = row.placeOfFamily(m.FamilyName, families); from < 0 {
			return nil, false
		}
		to = from
	}
	i, found := row.column(from, to, m.ColumnQualifier)
	cell := &bigtablepb.ReadRowsResponse_CellChunk{RowKey: row[0].RowKey, FamilyName: wrapperspb.String(m.FamilyName),
		Qualifier: wrapperspb.Bytes(m.ColumnQualifier), Value: m.Value}
	if !found {
		return slices.Insert(row, i, cell), true
	}
	if row[i].TimestampMicros != 0 { // A cell of another timestamp stays.
		return nil, false
	}
	row[i] = cell
	return row, true
}

func (row cellsOfRow) deleteColumn(m *bigtablepb.Mutation_DeleteFromColumn) (_ cellsOfRow, ok bool) {
	if m.TimeRange != nil {
		return nil, false
	}
	from, to := row.family(m.FamilyName)
	if from < 0 {
		return row, true
	}
	i, _ := row.column(from, to, m.ColumnQualifier)
	n := i
	for n < to && bytes.Equal(row[n].Qualifier.GetValue(), m.ColumnQualifier) {
		n++
	}
	return slices.Delete(row, i, n), true
}

// placeOfFamily is where the cells of a family belong that the row has none of, -1 if that is not known.
func (row cellsOfRow) placeOfFamily(family string, families []string) int {
	own := slices.Index(families, family)
	if own < 0 {
		return -1
	}
	place := 0
	for _, f := range row.families() {
		switch i := slices.Index(families, f); {
		case i < 0:
			return -1
		case i < own:
			_, place = row.family(f)
		}
	}
	return place
}

// column is the place of the first cell of a column among those of its family, or where it would be.
func (row cellsOfRow) column(from, to int, column []byte) (i int, found bool) {
	i, found = slices.BinarySearchFunc(row[from:to], column, func(c *bigtablepb.ReadRowsResponse_CellChunk, column []byte) int {
		return bytes.Compare(c.Qualifier.GetValue(), column)
	})
	return from + i, found
}
