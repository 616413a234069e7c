package executor

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// UniqueViolation makes the client's error of a key that exists already: 23505 with the constraint
// and the values. key is a row's or a unique entry's, as *mvcc.KeyExistsError reports it at commit.
// Where the key's table cannot be found any more the error says so with the key in hexadecimal.
func UniqueViolation(ctx context.Context, resolver catalog.Resolver, key []byte) *pgerror.Error {
	e := pgerror.New(pgerror.UniqueViolation, "duplicate key value violates a unique constraint")
	tableID, indexID, _, err := rowenc.SplitKey(key)
	if err != nil {
		return unexplained(e, key, err)
	}
	t, err := resolver.RelationByID(ctx, tableID)
	if t == nil || err != nil {
		return unexplained(e, key, err)
	}
	ix := indexByID(t, indexID)
	if ix == nil {
		return unexplained(e, key, nil)
	}
	e.Message = `duplicate key value violates unique constraint "` + ix.Name + `"`
	e.Schema, e.Table, e.Constraint = t.Schema, t.Name, ix.Name
	values, err := rowenc.KeyColumns(t, ix, key)
	if err != nil {
		return unexplained(e, key, err)
	}
	var names, texts strings.Builder
	for i, c := range ix.Columns {
		if i > 0 {
			names.WriteString(", ")
			texts.WriteString(", ")
		}
		column := &t.Columns[t.Ordinal(c.ColumnID)]
		names.WriteString(column.Name)
		texts.Write(plainText(values[i], column.Type))
	}
	return e.WithDetail("Key (%s)=(%s) already exists.", names.String(), texts.String())
}

func unexplained(e *pgerror.Error, key []byte, cause error) *pgerror.Error {
	e.Cause = cause
	return e.WithDetail("Key %x already exists.", key)
}

func indexByID(t *catalog.TableDescriptor, id uint32) *catalog.IndexDescriptor {
	if t.Primary.ID == id {
		return &t.Primary
	}
	for i := range t.Indexes {
		if t.Indexes[i].ID == id {
			return &t.Indexes[i]
		}
	}
	return nil
}

// plainText prints a value with the default output settings.
func plainText(d types.Datum, t types.Type) []byte {
	if d.IsNull() {
		return []byte("null")
	}
	return types.AppendText(nil, d, t, nil)
}
