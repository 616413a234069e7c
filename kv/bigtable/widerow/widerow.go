// Package widerow is what kv/bigtable requires of a table: rows of cells, filters, and changes of one row that may be conditional. Filters and
// changes are plain data, so that they can be sent to Bigtable (Open), or evaluated in memory (Memory), as the simulation does. Rows, and the
// names and ranges of rows that are read, are those of Google's client library.
//
// A table has the guarantees of Bigtable and no others: a change of a row is atomic, a row is read as of one moment, and a read of several rows
// reads each as of a moment of its own.
package widerow

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
)

// Table is a table. Its requests are executed at most once for each call, except for reads and Mutate, which may be repeated. After an error a
// request may have been executed, or be executed later. Safe for concurrent use.
type Table interface {
	// ReadRows passes the rows of a set of which a cell passes the filter, ascending or descending by name, to visit until it returns false.
	ReadRows(ctx context.Context, rows RowSet, f Filter, opts ReadOptions, visit func(Row) bool) error
	// CheckAndMutate makes the change matched, if a cell of the row passes the predicate, or else the change unmatched; nil changes nothing.
	CheckAndMutate(ctx context.Context, row string, predicate Filter, matched, unmatched *Mutation) (isMatched bool, err error)
	// Mutate makes changes[i] of the row rows[i], in no order and not all at once. errs[i] is the error of one of them; nil: there is none.
	Mutate(ctx context.Context, rows []string, changes []*Mutation) (errs []error, err error)
}

// The types of Google's client library that a Table uses.
type (
	Row          = bigtable.Row
	RowSet       = bigtable.RowSet
	RowList      = bigtable.RowList
	RowRange     = bigtable.RowRange
	RowRangeList = bigtable.RowRangeList
)

// NewClosedOpenRange returns the range of the rows from start on and before end.
func NewClosedOpenRange(start, end string) RowRange { return bigtable.NewClosedOpenRange(start, end) }

// ReadOptions of a read.
type ReadOptions struct {
	Limit   int64 // of rows; 0: none
	Reverse bool  // descending
}

// Filter selects cells of a row. Its zero value is not a filter.
type Filter struct {
	kind   filterKind
	of     []Filter // of a chain or an interleaving
	family string
	// The range [start, end) of columns or values; an empty end is none.
	start, end string
}

type filterKind uint8

const (
	filterNone filterKind = iota
	chain
	interleave
	columnRange
	valueRange
	firstOfRow
	stripValue
)

// ChainFilters passes what passes every one of several filters, each applied to what the one before has passed.
func ChainFilters(of ...Filter) Filter { return Filter{kind: chain, of: of} }

// InterleaveFilters passes what passes any of several filters, as often as it does.
func InterleaveFilters(of ...Filter) Filter { return Filter{kind: interleave, of: of} }

// ColumnRangeFilter passes the cells of a family with a qualifier in [start, end); "" is no end.
func ColumnRangeFilter(family, start, end string) Filter {
	return Filter{kind: columnRange, family: family, start: start, end: end}
}

// ValueRangeFilter passes the cells with a value in [start, end); nil is no end.
func ValueRangeFilter(start, end []byte) Filter {
	return Filter{kind: valueRange, start: string(start), end: string(end)}
}

// FirstOfRowFilter passes the first cell, of cells of one family: the order of families is not defined.
func FirstOfRowFilter() Filter { return Filter{kind: firstOfRow} }

// StripValueFilter passes every cell, without its value.
func StripValueFilter() Filter { return Filter{kind: stripValue} }

// Mutation is a change of a row: deletions and writes of cells, in order. The timestamp of every cell is 0.
type Mutation struct{ steps []step }

type step struct {
	family, qualifier string
	value             []byte // of a written cell
	kind              stepKind
}

type stepKind uint8

const (
	setCell stepKind = iota
	deleteColumn
	deleteRow
)

// NewMutation returns a change that changes nothing yet; such a change must not be sent.
func NewMutation() *Mutation { return &Mutation{} }

// Set writes a cell.
func (m *Mutation) Set(family, qualifier string, value []byte) {
	m.steps = append(m.steps, step{kind: setCell, family: family, qualifier: qualifier, value: value})
}

// DeleteCellsInColumn removes a cell.
func (m *Mutation) DeleteCellsInColumn(family, qualifier string) {
	m.steps = append(m.steps, step{kind: deleteColumn, family: family, qualifier: qualifier})
}

// Len returns of how many deletions and writes the change consists.
func (m *Mutation) Len() int { return len(m.steps) }

// DeleteRow removes a row.
func (m *Mutation) DeleteRow() { m.steps = append(m.steps, step{kind: deleteRow}) }

// String describes the change, for traces: +family:qualifier, -family:qualifier.
func (m *Mutation) String() string {
	if m == nil {
		return "nothing"
	}
	var b strings.Builder
	for i := range m.steps {
		switch s := &m.steps[i]; s.kind {
		case setCell:
			fmt.Fprintf(&b, "+%s:%q ", s.family, s.qualifier)
		case deleteColumn:
			fmt.Fprintf(&b, "-%s:%q ", s.family, s.qualifier)
		case deleteRow:
			b.WriteString("-row ")
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// String describes the filter, for traces.
func (f Filter) String() string {
	switch f.kind {
	case chain:
		return fmt.Sprintf("all%v", f.of)
	case interleave:
		return fmt.Sprintf("any%v", f.of)
	case columnRange:
		return fmt.Sprintf("%s:[%q,%q)", f.family, f.start, f.end)
	case valueRange:
		return fmt.Sprintf("value[%q,%q)", f.start, f.end)
	case firstOfRow:
		return "first"
	case stripValue:
		return "no values"
	default:
		return "no filter"
	}
}
