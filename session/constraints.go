package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// setConstraints is SET CONSTRAINTS. No constraint is deferrable, so ALL and IMMEDIATE change nothing,
// and a constraint that is named must exist.
func setConstraints(ctx context.Context, t *transaction, n *ast.SetConstraints, w ResultWriter) error {
	if !t.phase.shared() {
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET CONSTRAINTS can only be used in transaction blocks"))
	}
	if len(n.Names) == 0 {
		return nil
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	for _, name := range n.Names {
		if name.Schema != "" {
			if ok, err := t.resolver.SchemaExists(ctx, name.Schema); err != nil {
				return err
			} else if !ok {
				return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name.Schema)
			}
		}
		found, err := catalog.HasConstraint(ctx, t.resolver, name.Schema, name.Name)
		switch {
		case err != nil:
			return err
		case !found:
			return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" does not exist", name.Name)
		case n.Deferred:
			return pgerror.New(pgerror.WrongObjectType, "constraint \"%s\" is not deferrable", name.Name)
		}
	}
	return nil
}
