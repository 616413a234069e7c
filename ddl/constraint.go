package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// newCheck makes a CHECK constraint of t. It binds the expression once, so that an invalid one is refused now.
func (r *run) newCheck(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint) (catalog.CheckDescriptor, error) {
	none := catalog.CheckDescriptor{}
	if _, err := r.bind(ctx, t, c.Check, types.TBool, inCheck); err != nil {
		return none, err
	}
	name := c.Name
	taken := func(name string) bool { return constraintNamed(t, name) }
	switch {
	case name == "":
		column := ""
		if columns := columnNames(c.Check); len(columns) == 1 {
			column = columns[0]
		}
		name = chooseName(t.Name, column, "check", taken)
	case taken(name):
		return none, constraintExists(t, name)
	}
	oid, err := r.ch.NewID(ctx)
	if err != nil {
		return none, err
	}
	return catalog.CheckDescriptor{
		OID: uint32(oid), Name: name, Expr: r.pinned(c.Check), NotValid: c.NotValid, NoInherit: slices.Contains(c.Attributes, "NO INHERIT"),
	}, nil
}

func constraintExists(t *catalog.TableDescriptor, name string) error {
	return pgerror.New(pgerror.DuplicateObject, "constraint %q for relation %q already exists", name, t.Name)
}

// constraintNamed reports whether t has a constraint of that name.
func constraintNamed(t *catalog.TableDescriptor, name string) bool {
	if ix := t.IndexNamed(name); ix != nil && ix.Constraint {
		return true
	}
	for i := range t.Checks {
		if t.Checks[i].Name == name {
			return true
		}
	}
	for i := range t.ForeignKeys {
		if slices.ContainsFunc(t.ForeignKeys[i].Parts, func(p catalog.ForeignKeyPart) bool { return p.Name == name }) {
			return true
		}
	}
	return t.ForeignKeyNamed(name) != nil
}

// columnNames lists the distinct columns that an expression over one table names.
func columnNames(e ast.Expr) []string {
	var names []string
	ast.InspectExpr(e, ast.Visitor{Expr: func(e ast.Expr) {
		ref, ok := e.(*ast.ColumnRef)
		if !ok {
			return
		}
		if name := ref.Parts[len(ref.Parts)-1]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}})
	return names
}
