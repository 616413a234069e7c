package executor

import (
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// RowList is a list of rows by their position: in memory up to its share, beyond that in a temporary file too. It belongs to no Runner. Not safe
// for concurrent use.
type RowList struct{ store windowStore }

// NewRowList creates a list for rows of these columns. It uses only the memory and temporary-file settings of rt.
func NewRowList(columns []planner.Column, rt *Runtime) *RowList {
	ex := &execution{}
	ex.bind(rt)
	return &RowList{windowStore{ex: ex, mayNot: !storable(columnTypes(columns))}}
}

// Add appends a copy of row.
func (l *RowList) Add(row types.Row) error { return l.store.add(row) }

// At returns the row at a position, from 0. It is valid until the following call of any method.
func (l *RowList) At(pos int64) (types.Row, error) { return l.store.at(pos) }

// Len is the number of rows.
func (l *RowList) Len() int64 { return l.store.n }

// Bytes is the memory that the rows take.
func (l *RowList) Bytes() int64 { return l.store.held }

// Close drops all rows; the list cannot be used afterwards.
func (l *RowList) Close() error {
	err := l.store.release()
	l.store.ex.unbind()
	return err
}
