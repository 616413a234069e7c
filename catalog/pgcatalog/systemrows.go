package pgcatalog

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// SystemRows implements builtin.Catalog.
func (o *Objects) SystemRows(ctx context.Context, relation string, yield func(types.Row) error) ([]builtin.SetColumn, error) {
	r := o.Resolver()
	if r == nil {
		return nil, nil
	}
	t, err := r.Relation(ctx, catalog.SystemSchema, relation)
	if err != nil || t == nil || t.Rows == nil {
		return nil, err
	}
	columns := make([]builtin.SetColumn, len(t.Columns))
	for i := range t.Columns {
		columns[i] = builtin.SetColumn{Name: t.Columns[i].Name, Type: t.Columns[i].Type}
	}
	return columns, t.Rows(ctx, r, o.View, yield)
}
