package check

import (
	"strconv"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// Goal: entries of indexes on expressions and of partial indexes are compared with what their rows should have. Method: damage one thing at a time.
func TestComputedEntries(t *testing.T) {
	table := &catalog.TableDescriptor{
		ID: 16400, Kind: catalog.KindTable, Schema: catalog.PublicSchema, Name: "u", NextColumnID: 5, NextIndexID: 4,
		Columns:  []catalog.ColumnDescriptor{{ID: 1, Name: "a", Type: types.TInt4, NotNull: true}, {ID: 2, Name: "b", Type: types.TText}, {ID: 3, Name: "c", Type: types.TInt4}},
		Computed: []catalog.ColumnDescriptor{{ID: 4, Name: "lower(b)", Type: types.TText, Expr: &catalog.ExprText{SQL: "lower(b)"}}},
		Primary:  catalog.IndexDescriptor{ID: 1, Name: "u_pkey", Unique: true, Constraint: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}},
		Indexes: []catalog.IndexDescriptor{
			{ID: 2, Name: "u_lower", Unique: true, Columns: []catalog.IndexColumn{{ColumnID: 4}}},
			{ID: 3, Name: "u_part", Columns: []catalog.IndexColumn{{ColumnID: 3}}, Where: &catalog.ExprText{SQL: "c > 100"}},
		},
	}
	full := func(a int64, b string, c int64) types.Row {
		return types.Row{types.Int(a), types.Text(b), types.Int(c), types.Text(strings.ToLower(b))}
	}
	for _, tc := range []struct {
		name   string
		damage func(f *fixture, txn *percolator.Txn)
		want   string
	}{
		{"nothing", func(*fixture, *percolator.Txn) {}, ""},
		{"entry of an expression lost", func(f *fixture, txn *percolator.Txn) { _ = txn.Delete(f.key(&table.Indexes[0], full(5, "R5", 5))) }, "u_lower row has no entry"},
		{"value of another expression", func(f *fixture, txn *percolator.Txn) {
			r := full(5, "R5", 5)
			r[3] = types.Text("R5")
			_ = txn.Put(f.key(&table.Indexes[0], r), f.entry(&table.Indexes[0], r))
		}, "u_lower is not the entry of the row it points at"},
		{"entry of a row outside of the predicate", func(f *fixture, txn *percolator.Txn) {
			_ = txn.Put(f.key(&table.Indexes[1], full(5, "R5", 5)), f.entry(&table.Indexes[1], full(5, "R5", 5)))
		}, "u_part is not the entry of the row it points at"},
		{"entry of a row within the predicate lost", func(f *fixture, txn *percolator.Txn) {
			_ = txn.Delete(f.key(&table.Indexes[1], full(150, "R150", 150)))
		},
			"u_part row has no entry"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			f.change(table)
			f.table = table
			f.write(func(txn *percolator.Txn) {
				for i := range int64(200) {
					r := full(i, "R"+strconv.FormatInt(i, 10), i)
					value, err := rowenc.AppendRow(nil, table, r)
					if err != nil {
						t.Fatal(err)
					}
					_ = txn.Put(f.key(&table.Primary, r), value)
					_ = txn.Put(f.key(&table.Indexes[0], r), f.entry(&table.Indexes[0], r))
					if i > 100 {
						_ = txn.Put(f.key(&table.Indexes[1], r), f.entry(&table.Indexes[1], r))
					}
				}
			})
			f.write(func(txn *percolator.Txn) { tc.damage(f, txn) })
			if got, _ := f.problems(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
