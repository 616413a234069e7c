package bigtable

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// The emulator copies a row, with all its versions, for every filter and part of a filter, and computes conditions likewise. Here it is asked for the row as
// it is, and the filter is computed from its cells. Filters that are malformed, or that percodb does not use, are left to the emulator.

// cellsOfRow are the cells of a row in the order in which they are sent: by family, column, and descending timestamp.
type cellsOfRow []*bigtablepb.ReadRowsResponse_CellChunk

// filtered are the places in a row of the cells that passed a filter, ascending: those in at, in which a cell that passed two branches is twice, or, if at
// is nil, those between from and to.
type filtered struct {
	at       []int
	from, to int
	stripped bool // without values
}

func (f *filtered) len() int {
	if f.at == nil {
		return f.to - f.from
	}
	return len(f.at)
}

// place is the place of the i-th cell.
func (f *filtered) place(i int) int {
	if f.at == nil {
		return f.from + i
	}
	return f.at[i]
}

// computable reports whether a filter is computed here.
func computable(f *bigtablepb.RowFilter) bool {
	switch f := f.GetFilter().(type) {
	case nil:
		return f == nil
	case *bigtablepb.RowFilter_PassAllFilter:
		return f.PassAllFilter
	case *bigtablepb.RowFilter_BlockAllFilter:
		return f.BlockAllFilter
	case *bigtablepb.RowFilter_Chain_:
		return allComputable(f.Chain.GetFilters())
	case *bigtablepb.RowFilter_Interleave_:
		// Whether a cell has a value is known for a whole filter, not by branch.
		return allComputable(f.Interleave.GetFilters()) && !slices.ContainsFunc(f.Interleave.Filters, strips)
	case *bigtablepb.RowFilter_CellsPerRowLimitFilter:
		return f.CellsPerRowLimitFilter > 0
	case *bigtablepb.RowFilter_ColumnRangeFilter, *bigtablepb.RowFilter_ValueRangeFilter, *bigtablepb.RowFilter_StripValueTransformer:
		return true
	}
	return false
}

func allComputable(filters []*bigtablepb.RowFilter) bool {
	return len(filters) >= 2 && !slices.ContainsFunc(filters, func(f *bigtablepb.RowFilter) bool { return !computable(f) })
}

func strips(f *bigtablepb.RowFilter) bool {
	switch f := f.GetFilter().(type) {
	case *bigtablepb.RowFilter_StripValueTransformer:
		return true
	case *bigtablepb.RowFilter_Chain_:
		return slices.ContainsFunc(f.Chain.Filters, strips)
	}
	return false
}

// all is a row before any filter.
func (row cellsOfRow) all() filtered { return filtered{to: len(row)} }

// filter computes a filter that is computable. It keeps in.
func (row cellsOfRow) filter(f *bigtablepb.RowFilter, in filtered) filtered {
	switch f := f.GetFilter().(type) {
	case *bigtablepb.RowFilter_BlockAllFilter:
		return filtered{}
	case *bigtablepb.RowFilter_Chain_:
		for _, next := range f.Chain.Filters {
			in = row.filter(next, in)
		}
	case *bigtablepb.RowFilter_Interleave_:
		out := filtered{at: []int{}, stripped: in.stripped}
		for _, branch := range f.Interleave.Filters {
			passed := row.filter(branch, in)
			for i := range passed.len() {
				out.at = append(out.at, passed.place(i))
			}
		}
		slices.Sort(out.at)
		return out
	case *bigtablepb.RowFilter_CellsPerRowLimitFilter:
		if n := min(in.len(), int(f.CellsPerRowLimitFilter)); in.at != nil {
			in.at = in.at[:n]
		} else {
			in.to = in.from + n
		}
	case *bigtablepb.RowFilter_StripValueTransformer:
		in.stripped = true
	case *bigtablepb.RowFilter_ColumnRangeFilter:
		if in.at == nil && in.len() == len(row) && len(row) >= manyCells {
			from, to := row.columns(f.ColumnRangeFilter)
			return filtered{from: from, to: to, stripped: in.stripped}
		}
		return row.where(in, func(c *bigtablepb.ReadRowsResponse_CellChunk) bool { return inColumnRange(f.ColumnRangeFilter, c) })
	case *bigtablepb.RowFilter_ValueRangeFilter:
		return row.where(in, func(c *bigtablepb.ReadRowsResponse_CellChunk) bool {
			return !in.stripped && inValueRange(f.ValueRangeFilter, c.Value) || in.stripped && inValueRange(f.ValueRangeFilter, nil)
		})
	}
	return in
}

func (row cellsOfRow) where(in filtered, passes func(*bigtablepb.ReadRowsResponse_CellChunk) bool) filtered {
	out := filtered{at: []int{}, stripped: in.stripped}
	for i := range in.len() {
		if at := in.place(i); passes(row[at]) {
			out.at = append(out.at, at)
		}
	}
	return out
}

// family is where the cells of a family are; from is -1 if there are none.
func (row cellsOfRow) family(name string) (from, to int) {
	for i := 0; i < len(row); { // The families are in no order known here.
		family := row[i].FamilyName.GetValue()
		next := i + sort.Search(len(row)-i, func(k int) bool { return row[i+k].FamilyName.GetValue() != family })
		if family == name {
			return i, next
		}
		i = next
	}
	return -1, -1
}

// columns are where the cells of a whole row in a range are, which are looked up.
func (row cellsOfRow) columns(r *bigtablepb.ColumnRange) (from, to int) {
	first, behind := row.family(r.FamilyName)
	if first < 0 {
		return 0, 0
	}
	from = first + sort.Search(behind-first, func(k int) bool { return aboveStart(r, row[first+k].Qualifier.GetValue()) })
	to = from + sort.Search(behind-from, func(k int) bool { return !belowEnd(r, row[from+k].Qualifier.GetValue()) })
	return from, to
}

func inColumnRange(r *bigtablepb.ColumnRange, c *bigtablepb.ReadRowsResponse_CellChunk) bool {
	if c.FamilyName.GetValue() != r.FamilyName {
		return false
	}
	column := c.Qualifier.GetValue()
	return aboveStart(r, column) && belowEnd(r, column)
}

func aboveStart(r *bigtablepb.ColumnRange, column []byte) bool {
	switch start := r.StartQualifier.(type) {
	case *bigtablepb.ColumnRange_StartQualifierClosed:
		return bytes.Compare(column, start.StartQualifierClosed) >= 0
	case *bigtablepb.ColumnRange_StartQualifierOpen:
		return bytes.Compare(column, start.StartQualifierOpen) > 0
	}
	return true
}

func belowEnd(r *bigtablepb.ColumnRange, column []byte) bool {
	switch end := r.EndQualifier.(type) {
	case *bigtablepb.ColumnRange_EndQualifierClosed:
		return bytes.Compare(column, end.EndQualifierClosed) <= 0
	case *bigtablepb.ColumnRange_EndQualifierOpen:
		return bytes.Compare(column, end.EndQualifierOpen) < 0
	}
	return true
}

func inValueRange(r *bigtablepb.ValueRange, value []byte) bool {
	switch start := r.StartValue.(type) {
	case *bigtablepb.ValueRange_StartValueClosed:
		if bytes.Compare(value, start.StartValueClosed) < 0 {
			return false
		}
	case *bigtablepb.ValueRange_StartValueOpen:
		if bytes.Compare(value, start.StartValueOpen) <= 0 {
			return false
		}
	}
	switch end := r.EndValue.(type) {
	case *bigtablepb.ValueRange_EndValueClosed:
		return bytes.Compare(value, end.EndValueClosed) <= 0
	case *bigtablepb.ValueRange_EndValueOpen:
		return bytes.Compare(value, end.EndValueOpen) < 0
	}
	return true
}

// sent are the cells that pass a filter, as they are sent.
func (row cellsOfRow) sent(f *bigtablepb.RowFilter) cellsOfRow {
	if f == nil {
		return row
	}
	passed := row.filter(f, row.all())
	cells := make(cellsOfRow, passed.len())
	for i := range cells {
		at := passed.place(i)
		cells[i] = row[at]
		last, twice := i == len(cells)-1, i > 0 && passed.place(i-1) == at
		if passed.stripped || twice || last != (cells[i].RowStatus != nil) {
			c := &bigtablepb.ReadRowsResponse_CellChunk{RowKey: row[at].RowKey, FamilyName: row[at].FamilyName, Qualifier: row[at].Qualifier,
				TimestampMicros: row[at].TimestampMicros}
			if !passed.stripped {
				c.Value = row[at].Value
			}
			if last {
				c.RowStatus = &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
			}
			cells[i] = c
		}
	}
	return cells
}

// decide computes the condition of a request, and leaves only what is to be done in it. ok is false if the emulator has to.
func (n *rowNames) decide(ctx context.Context, server bigtablepb.BigtableServer, req *bigtablepb.CheckAndMutateRowRequest) (matched, ok bool) {
	if req.PredicateFilter == nil || !computable(req.PredicateFilter) {
		return false, false
	}
	cells := n.long.get(req.TableName, string(req.RowKey))
	if cells == nil {
		row := &rowReader{ctx: ctx}
		read := &bigtablepb.ReadRowsRequest{TableName: req.TableName, Rows: &bigtablepb.RowSet{RowKeys: [][]byte{req.RowKey}}}
		if err := server.ReadRows(read, row); err != nil {
			return false, false // The emulator will say the same.
		}
		cells = row.cells
		n.long.keep(req.TableName, cells)
	}
	passed := cells.filter(req.PredicateFilter, cells.all())
	matched = passed.len() > 0
	todo := req.FalseMutations
	if matched {
		todo = req.TrueMutations
	}
	req.PredicateFilter, req.TrueMutations, req.FalseMutations = nil, todo, todo
	return matched, true
}

// rowReader receives one row.
type rowReader struct {
	grpc.ServerStream
	ctx   context.Context
	cells cellsOfRow
}

// Context implements grpc.ServerStream.
func (r *rowReader) Context() context.Context { return r.ctx }

// Send implements bigtablepb.Bigtable_ReadRowsServer.
func (r *rowReader) Send(res *bigtablepb.ReadRowsResponse) error {
	r.cells = append(r.cells, res.Chunks...)
	return nil
}
