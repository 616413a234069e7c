package entries

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// Maker computes what the indexes of one table hold of one row after the other. One goroutine's.
type Maker struct {
	table *catalog.TableDescriptor
	exprs *planner.IndexExprs
	ev    *expr.Context
	row   types.Row // the columns, then the computed columns
	known []bool    // of the computed columns: evaluated for the row
}

// NewMaker returns a Maker that evaluates expressions with ev; nil if the indexes of t compute nothing, so that a row is all they hold.
func NewMaker(t *catalog.TableDescriptor, exprs *planner.IndexExprs, ev *expr.Context) *Maker {
	if exprs == nil {
		return nil
	}
	return &Maker{table: t, exprs: exprs, ev: ev, row: make(types.Row, len(t.Columns)+len(t.Computed)), known: make([]bool, len(t.Computed))}
}

// Begin takes the next row, which must have the table's columns and is copied.
func (m *Maker) Begin(row types.Row) {
	copy(m.row[:len(m.table.Columns)], row)
	clear(m.known)
}

// Entry returns the row with the values of the expressions that the i-th secondary index holds, for the functions of rowenc; false if the
// index has no entry for the row. It is valid until the next Begin.
func (m *Maker) Entry(i int) (types.Row, bool, error) {
	if where := m.exprs.Where[i]; where != nil {
		d, err := where.Eval(m.ev, m.row)
		if err != nil || d.IsNull() || !d.Bool() {
			return nil, false, err
		}
	}
	ix := &m.table.Indexes[i]
	for j := range ix.Columns {
		if err := m.compute(ix.Columns[j].ColumnID); err != nil {
			return nil, false, err
		}
	}
	for j := range ix.Inverted {
		if err := m.compute(ix.Inverted[j].ColumnID); err != nil {
			return nil, false, err
		}
	}
	for j := range ix.Exclude {
		if err := m.compute(ix.Exclude[j].ColumnID); err != nil {
			return nil, false, err
		}
	}
	return m.row, true, nil
}

// compute evaluates a column that has an expression, once for a row.
func (m *Maker) compute(columnID uint32) error {
	at := m.table.Ordinal(columnID) - len(m.table.Columns)
	if at < 0 || m.known[at] || m.exprs.Computed[at] == nil {
		return nil
	}
	d, err := m.exprs.Computed[at].Eval(m.ev, m.row)
	m.row[len(m.table.Columns)+at], m.known[at] = d, err == nil
	return err
}

// Entries calls f with the row of each entry that the i-th secondary index has for the row: as Entry returns it, and of an inverted index with
// one term after the other.
func (m *Maker) Entries(i int, f func(types.Row) error) error {
	row, ok, err := m.Entry(i)
	if !ok || err != nil {
		return err
	}
	if m.table.Indexes[i].Inverted == nil {
		return f(row)
	}
	terms, err := m.Terms(i)
	if err != nil {
		return err
	}
	for _, term := range terms {
		if err := f(m.WithTerm(i, term)); err != nil {
			return err
		}
	}
	return nil
}

// Terms returns the terms that the i-th secondary index, which is inverted and for which Entry has returned a row, has for the row: sorted, each
// once. The first byte of a term is the place of its column in the index.
func (m *Maker) Terms(i int) ([][]byte, error) {
	var all [][]byte
	for n, c := range m.table.Indexes[i].Inverted {
		ord := m.table.Ordinal(c.ColumnID)
		if m.row[ord].IsNull() {
			continue
		}
		terms, err := inverted.Class(c.Class).Terms(m.ev.Env, m.row[ord], m.table.ColumnAt(ord).Type)
		if err != nil {
			return nil, err
		}
		for _, t := range terms {
			all = append(all, inverted.InColumn(n, t))
		}
	}
	return all, nil
}

// WithTerm returns the row with a term of the i-th secondary index, which is inverted.
func (m *Maker) WithTerm(i int, term []byte) types.Row {
	m.row[m.table.Ordinal(m.table.Indexes[i].Columns[0].ColumnID)] = types.Bytes(term)
	return m.row
}
