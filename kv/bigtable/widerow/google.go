package widerow

import (
	"context"

	"cloud.google.com/go/bigtable"
)

// Open returns a table of Bigtable.
func Open(t *bigtable.Table) Table { return google{t} }

type google struct{ table *bigtable.Table }

// ReadRows implements Table.
func (g google) ReadRows(ctx context.Context, rows RowSet, f Filter, o ReadOptions, visit func(Row) bool) error {
	opts := append(make([]bigtable.ReadOption, 0, 3), bigtable.RowFilter(f.google()))
	if o.Limit > 0 {
		opts = append(opts, bigtable.LimitRows(o.Limit))
	}
	if o.Reverse {
		opts = append(opts, bigtable.ReverseScan())
	}
	return g.table.ReadRows(ctx, rows, visit, opts...)
}

// CheckAndMutate implements Table.
func (g google) CheckAndMutate(ctx context.Context, row string, predicate Filter, matched, unmatched *Mutation) (isMatched bool, err error) {
	m := bigtable.NewCondMutation(predicate.google(), matched.google(), unmatched.google())
	err = g.table.Apply(ctx, row, m, bigtable.GetCondMutationResult(&isMatched))
	return isMatched, err
}

// Mutate implements Table.
func (g google) Mutate(ctx context.Context, rows []string, changes []*Mutation) (errs []error, err error) {
	if len(rows) == 1 {
		return nil, g.table.Apply(ctx, rows[0], changes[0].google())
	}
	all := make([]*bigtable.Mutation, len(changes))
	for i := range changes {
		all[i] = changes[i].google()
	}
	return g.table.ApplyBulk(ctx, rows, all)
}

// google returns the filter for the client library.
func (f *Filter) google() bigtable.Filter {
	switch f.kind {
	case chain, interleave:
		of := make([]bigtable.Filter, len(f.of))
		for i := range f.of {
			of[i] = f.of[i].google()
		}
		if f.kind == chain {
			return bigtable.ChainFilters(of...)
		}
		return bigtable.InterleaveFilters(of...)
	case columnRange:
		return bigtable.ColumnRangeFilter(f.family, f.start, f.end)
	case valueRange:
		if f.end == "" {
			return bigtable.ValueRangeFilter([]byte(f.start), nil)
		}
		return bigtable.ValueRangeFilter([]byte(f.start), []byte(f.end))
	case firstOfRow:
		return bigtable.CellsPerRowLimitFilter(1)
	case stripValue:
		return bigtable.StripValueFilter()
	default:
		panic("BUG: widerow: a filter that is none")
	}
}

func (m *Mutation) google() *bigtable.Mutation {
	if m == nil {
		return nil
	}
	out := bigtable.NewMutation()
	for i := range m.steps {
		switch s := &m.steps[i]; s.kind {
		case setCell:
			out.Set(s.family, s.qualifier, 0, s.value)
		case deleteColumn:
			out.DeleteCellsInColumn(s.family, s.qualifier)
		case deleteRow:
			out.DeleteRow()
		}
	}
	return out
}
