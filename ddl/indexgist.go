package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// substitute tells which kind of index takes the place of one of the methods gist and spgist, which percodb does not have: an inverted index where
// the keys have terms, an ordered one where they have an order. It returns the statement that makes it.
func (r *run) substitute(ctx context.Context, t *catalog.TableDescriptor, n *ast.CreateIndex) (_ *ast.CreateIndex, isInverted bool, err error) {
	made := *n
	made.Columns = slices.Clone(n.Columns)
	terms := 0
	for i := range made.Columns {
		c := &made.Columns[i]
		col, err := r.keyColumn(ctx, t, c, ofIndex)
		if err != nil {
			return nil, false, err
		}
		class := ""
		if len(c.OpClass) > 0 {
			class = c.OpClass[len(c.OpClass)-1]
		}
		base := col.Type.Underlying()
		switch {
		case n.Method == "gist" && inverted.OfGist(inverted.Class(class), base):
			terms++
		case n.Method == "spgist" && (base.OID == types.OIDText || base.OID == types.OIDVarchar) && (class == "" || class == "text_ops"):
			c.OpClass = nil
		default:
			if c.OpClass, err = r.substituteClass(n.Method, c.OpClass, col.Type); err != nil {
				return nil, false, err
			}
		}
	}
	if terms > 0 && (terms < len(made.Columns) || len(n.Include) > 0) {
		return nil, false, pgerror.Unsupported("an index of the method gist over values with terms and other columns",
			"Make an index of the method gin over the former, and one of the method btree over the latter.").At(n.Position())
	}
	return &made, terms > 0, nil
}

// substituteClass returns the operator class of an ordered index in place of one of the method gist or spgist.
func (r *run) substituteClass(method string, path []string, t types.Type) ([]string, error) {
	base := t.Underlying()
	inet := base.OID == types.OIDInet || base.OID == types.OIDCidr
	if inet && method == "spgist" && len(path) == 0 {
		return nil, nil
	}
	class, err := r.exclusionClass(method, path, t)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(class.operators, "=") {
		return nil, pgerror.Unsupported("index method \""+method+"\" over "+base.String(), "Index what has an order: a coordinate, an area, a distance.")
	}
	if class.isDefault {
		return nil, nil
	}
	return []string{class.name}, nil
}
