package widerow

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/bigtable"
)

// Memory is a table in memory, for tests. Its requests are executed one after the other, each in no time.
type Memory struct {
	// Hides, if it is set, hides cells from predicates, or from reads: a defect, for tests of what such defects cause.
	Hides func(predicate bool, family, qualifier string) bool

	mu   sync.Mutex
	rows map[string]map[string][]byte // by name; values of cells by family:qualifier
}

// NewMemory returns an empty table.
func NewMemory() *Memory { return &Memory{rows: map[string]map[string][]byte{}} }

var _ Table = (*Memory)(nil)

// cell is a cell of a row that is filtered.
type cell struct {
	family, qualifier string
	value             []byte
}

// ReadRows implements Table. Visit must not call the table.
func (m *Memory) ReadRows(_ context.Context, set RowSet, f Filter, o ReadOptions, visit func(Row) bool) error {
	for _, row := range m.read(set, &f, o) {
		if !visit(row) {
			return nil
		}
	}
	return nil
}

func (m *Memory) read(set RowSet, f *Filter, o ReadOptions) (out []Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := slices.Sorted(maps.Keys(m.rows))
	if o.Reverse {
		slices.Reverse(names)
	}
	for _, name := range names {
		if !contains(set, name) {
			continue
		}
		if cells := f.apply(m.cells(name, false)); len(cells) > 0 {
			if out = append(out, rowOf(name, cells)); int64(len(out)) == o.Limit {
				break
			}
		}
	}
	return out
}

// contains reports whether a row is in a set.
func contains(set RowSet, name string) bool {
	switch set := set.(type) {
	case RowList:
		return slices.Contains(set, name)
	case RowRange:
		return set.Contains(name)
	case RowRangeList:
		return slices.ContainsFunc(set, func(r RowRange) bool { return r.Contains(name) })
	default:
		panic(fmt.Sprintf("BUG: widerow: a set of rows of type %T", set))
	}
}

// cells returns the cells of a row, by family and qualifier, that are not hidden. The caller holds mu.
func (m *Memory) cells(name string, predicate bool) []cell {
	row := m.rows[name]
	cells := make([]cell, 0, len(row))
	for _, column := range slices.Sorted(maps.Keys(row)) {
		family, qualifier, _ := strings.Cut(column, ":")
		if m.Hides != nil && m.Hides(predicate, family, qualifier) {
			continue
		}
		cells = append(cells, cell{family, qualifier, row[column]})
	}
	return cells
}

func rowOf(name string, cells []cell) Row {
	row := Row{}
	for _, c := range cells {
		row[c.family] = append(row[c.family], bigtable.ReadItem{Row: name, Column: c.family + ":" + c.qualifier, Value: bytes.Clone(c.value)})
	}
	return row
}

// CheckAndMutate implements Table.
func (m *Memory) CheckAndMutate(_ context.Context, row string, predicate Filter, matched, unmatched *Mutation) (isMatched bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	isMatched = len(predicate.apply(m.cells(row, true))) > 0
	change := unmatched
	if isMatched {
		change = matched
	}
	if change != nil {
		m.change(row, change)
	}
	return isMatched, nil
}

// Mutate implements Table.
func (m *Memory) Mutate(_ context.Context, rows []string, changes []*Mutation) ([]error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range rows {
		m.change(rows[i], changes[i])
	}
	return nil, nil
}

// change changes a row. The caller holds mu.
func (m *Memory) change(name string, change *Mutation) {
	row := m.rows[name]
	if row == nil {
		row = map[string][]byte{}
		m.rows[name] = row
	}
	for i := range change.steps {
		switch s := &change.steps[i]; s.kind {
		case setCell:
			row[s.family+":"+s.qualifier] = bytes.Clone(s.value)
		case deleteColumn:
			delete(row, s.family+":"+s.qualifier)
		case deleteRow:
			clear(row)
		}
	}
	if len(row) == 0 {
		delete(m.rows, name)
	}
}

// apply returns those of the cells that pass the filter.
func (f *Filter) apply(cells []cell) (passed []cell) {
	switch f.kind {
	case chain:
		for i := range f.of {
			cells = f.of[i].apply(cells)
		}
		return cells
	case interleave:
		for i := range f.of {
			passed = append(passed, f.of[i].apply(cells)...)
		}
		slices.SortStableFunc(passed, func(a, b cell) int {
			return strings.Compare(a.family+":"+a.qualifier, b.family+":"+b.qualifier)
		})
		return passed
	case firstOfRow:
		return cells[:min(1, len(cells))]
	case filterNone:
		panic("BUG: widerow: a filter that is none")
	}
	for _, c := range cells {
		switch f.kind {
		case stripValue:
			c.value = nil
		case columnRange:
			if c.family != f.family || !f.inRange(c.qualifier) {
				continue
			}
		case valueRange:
			if !f.inRange(string(c.value)) {
				continue
			}
		}
		passed = append(passed, c)
	}
	return passed
}

func (f *Filter) inRange(s string) bool { return s >= f.start && (f.end == "" || s < f.end) }
