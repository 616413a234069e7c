package entries

import (
	"github.com/percodb/percodb/catalog"
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
		at := m.table.Ordinal(ix.Columns[j].ColumnID) - len(m.table.Columns)
		if at < 0 || m.known[at] {
			continue
		}
		d, err := m.exprs.Computed[at].Eval(m.ev, m.row)
		if err != nil {
			return nil, false, err
		}
		m.row[len(m.table.Columns)+at], m.known[at] = d, true
	}
	return m.row, true, nil
}
