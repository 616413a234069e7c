package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxInverted is the greatest number of columns of an index, as in PostgreSQL.
const maxInverted = 32

// newInverted completes ix for an inverted index.
func (r *run) newInverted(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateIndex, ix catalog.IndexDescriptor) (catalog.IndexDescriptor, error) {
	if len(n.Columns) > maxInverted {
		return ix, pgerror.New(pgerror.TooManyColumns, "cannot use more than %d columns in an index", maxInverted)
	}
	var names []string
	for i := range n.Columns {
		c := &n.Columns[i]
		col, err := r.keyColumn(ctx, t, c, ofIndex)
		if err != nil {
			return ix, err
		}
		class, err := r.invertedClass(n.Method, c.OpClass, col.Type)
		if err != nil {
			return ix, err
		}
		names = appendIndexName(names, c)
		ix.Inverted = append(ix.Inverted, catalog.InvertedColumn{ColumnID: col.ID, Class: string(class)})
	}
	ix.Columns = []catalog.IndexColumn{catalog.NewIndexColumn(addTermColumn(t), nil)}
	return ix, r.finishIndex(ctx, t, n, &ix, names)
}

// addTermColumn adds the column of the terms of an inverted index to t.
func addTermColumn(t *catalog.TableDescriptor) *catalog.ColumnDescriptor {
	t.Computed = append(t.Computed, catalog.ColumnDescriptor{ID: t.NextColumnID, Name: "term", Type: types.TBytea})
	t.NextColumnID++
	return &t.Computed[len(t.Computed)-1]
}

// invertedClass finds the operator class of a column of an inverted index.
func (r *run) invertedClass(method string, path []string, t types.Type) (inverted.Class, error) {
	class := inverted.DefaultClass(t)
	scalars := r.r.Extensions().Named(ginExtension) != nil
	if class.IsScalar() && !scalars {
		class = ""
	}
	if len(path) == 0 {
		if class == "" {
			return "", pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method %q", t.Base(), method).
				WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
		}
	} else {
		class = inverted.Class(path[len(path)-1])
		if !r.hasClass(class) {
			return "", noClass(class, method)
		}
		if !class.Accepts(t) {
			return "", pgerror.New(pgerror.DatatypeMismatch, "operator class %q does not accept data type %s", class, t.Base())
		}
		class = class.Stored()
	}
	if class == inverted.Array && !rowenc.Indexable(t.Underlying().Elem()) {
		return "", pgerror.Unsupported("an index over arrays of type "+t.Underlying().Elem().String(), "Index arrays of scalar types.")
	}
	return class, nil
}

// hasClass reports whether an operator class of inverted indexes is there: it belongs to no extension, or to one that is installed.
func (r *run) hasClass(class inverted.Class) bool {
	if e := class.Extension(); e != "" {
		return r.r.Extensions().Named(e) != nil
	}
	return class == inverted.JSONB || class == inverted.JSONBPath || class == inverted.Array || class == inverted.TSVector
}

// ginExtension has operator classes of the method gin for types with an order.
const ginExtension = "btree_gin"

func noClass(class inverted.Class, method string) error {
	return pgerror.New(pgerror.UndefinedObject, "operator class %q does not exist for access method %q", class, method)
}

// fitsKeys checks that the columns of an index, whose types may have changed, can be indexed.
func fitsKeys(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
	for i := range ix.Columns {
		if err := requireIndexable(t.ColumnByID(ix.Columns[i].ColumnID)); err != nil {
			return err
		}
	}
	for _, c := range ix.Inverted {
		if typ := t.ColumnByID(c.ColumnID).Type; !inverted.Class(c.Class).Accepts(typ) {
			return pgerror.New(pgerror.DatatypeMismatch, "operator class %q does not accept data type %s", c.Class, typ.Base())
		}
	}
	return nil
}
