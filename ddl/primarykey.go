package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// addPrimaryKey changes the key of the table: its rows are moved to the new key, so that a read by it is one seek, and
// every entry, which ends in the primary key, is rewritten.
func (r *run) addPrimaryKey(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) error {
	return r.addPrimaryKeyAs(ctx, t, c, 0)
}

// addPrimaryKeyAs is addPrimaryKey by which a unique index becomes the primary key: it keeps its OID, which foreign keys name.
func (r *run) addPrimaryKeyAs(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint, oid uint32) error {
	if t.PrimaryKey() != nil {
		return multiplePrimaryKeys(t.Name).At(c.Position())
	}
	taken, err := r.relationTaken(ctx, t.Schema, nil)
	if err != nil {
		return err
	}
	next := t.Clone()
	if c.Deferrable {
		return r.addDeferrablePrimaryKey(ctx, t, next, c, taken, oid)
	}
	ix, err := r.keyIndex(ctx, next, c, "primary key", 0, taken)
	if err != nil {
		return err
	}
	if oid != 0 {
		ix.OID = oid
	}
	var notNull []int
	for i := range ix.Columns {
		ord := next.Ordinal(ix.Columns[i].ColumnID)
		next.Columns[ord].NotNull = true
		notNull = append(notNull, ord)
	}
	// The hidden rowid goes: it was the last column of a new table, but others may have come since.
	rowid := t.Ordinal(t.Primary.Columns[0].ColumnID)
	next.Columns = append(next.Columns[:rowid], next.Columns[rowid+1:]...)
	next.Primary = ix
	renumber(next)
	row := make([]int, 0, len(next.Columns))
	for i := range t.Columns {
		if i != rowid {
			row = append(row, i)
		}
	}
	project := projector(row)
	err = r.rewrite(ctx, t, next, func(old types.Row) (types.Row, error) {
		for _, ord := range notNull {
			if old[ord].IsNull() {
				return nil, containsNulls(t, ord)
			}
		}
		return project(old), nil
	})
	if err != nil {
		return err
	}
	if err := r.dropIndexes(ctx, t); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// addDeferrablePrimaryKey gives a table a primary key under which its rows do not lie.
func (r *run) addDeferrablePrimaryKey(ctx context.Context, t, next *catalog.TableDescriptor, c *ast.TableConstraint, taken func(string) bool, oid uint32) error {
	ix, err := r.keyIndex(ctx, next, c, "primary key", next.NextIndexID, taken)
	if err != nil {
		return err
	}
	if oid != 0 {
		ix.OID = oid
	}
	var notNull []int
	for i := range ix.Columns {
		ord := next.Ordinal(ix.Columns[i].ColumnID)
		next.Columns[ord].NotNull = true
		notNull = append(notNull, ord)
	}
	if err := r.verifyRows(ctx, t, next, nil, notNull); err != nil {
		return err
	}
	return r.addIndex(ctx, t, next, ix)
}

func containsNulls(t *catalog.TableDescriptor, ord int) error {
	e := pgerror.New(pgerror.NotNullViolation, "column %q of relation %q contains null values", t.Columns[ord].Name, t.Name)
	e.Schema, e.Table, e.Column = t.Schema, t.Name, t.Columns[ord].Name
	return e
}

// dropPrimaryKey moves the rows under a hidden rowid. The columns stay NOT NULL, as in PostgreSQL.
func (r *run) dropPrimaryKey(ctx context.Context, t *catalog.TableDescriptor) error {
	next := t.Clone()
	addRowID(next)
	renumber(next)
	err := r.rewrite(ctx, t, next, func(old types.Row) (types.Row, error) {
		id, err := r.Catalog.NextRowID(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		return append(old[:len(old):len(old)], types.Int(id)), nil
	})
	if err != nil {
		return err
	}
	if err := r.dropIndexes(ctx, t); err != nil {
		return err
	}
	return r.update(ctx, t, next, true)
}

// projector returns a function that copies the given ordinals of a row into a separate row.
func projector(ordinals []int) func(types.Row) types.Row {
	out := make(types.Row, len(ordinals))
	return func(row types.Row) types.Row {
		for i, ord := range ordinals {
			out[i] = row[ord]
		}
		return out
	}
}
