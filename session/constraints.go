package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// setConstraints is SET CONSTRAINTS. What is immediate from now on is checked now.
func setConstraints(ctx context.Context, t *transaction, n *ast.SetConstraints, w ResultWriter) error {
	if !t.phase.shared() {
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET CONSTRAINTS can only be used in transaction blocks"))
	}
	if len(n.Names) == 0 {
		t.deferred.SetAll(n.Deferred)
	} else {
		if err := t.begin(ctx); err != nil {
			return err
		}
		for _, name := range n.Names {
			if err := setConstraint(ctx, t, name, n.Deferred); err != nil {
				return err
			}
		}
	}
	if n.Deferred {
		return nil
	}
	return t.checkDeferred(ctx, false)
}

// setConstraint sets the mode of the constraints of a name, in the first schema that has one.
func setConstraint(ctx context.Context, t *transaction, name ast.TableName, deferred bool) error {
	if name.Schema != "" {
		if ok, err := t.resolver.SchemaExists(ctx, name.Schema); err != nil {
			return err
		} else if !ok {
			return pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", name.Schema)
		}
	}
	found, err := catalog.ConstraintsNamed(ctx, t.resolver, name.Schema, name.Name)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return pgerror.New(pgerror.UndefinedObject, "constraint \"%s\" does not exist", name.Name)
	}
	some := false
	for _, c := range found {
		if c.Deferrable {
			t.deferred.Set(c.OID, deferred)
			some = true
		}
	}
	if !some && deferred {
		return pgerror.New(pgerror.WrongObjectType, "constraint \"%s\" is not deferrable", name.Name)
	}
	return nil
}

// checkDeferred runs the deferred checks of constraints that are immediate now, or all of them.
func (t *transaction) checkDeferred(ctx context.Context, all bool) error {
	if t.deferred.Empty() || t.txn == nil {
		return nil
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.txn.KeepReads()
	rt := executor.Runtime{Txn: t.txn, Resolver: t.resolver, Role: t.acting.current, Env: t.env, Triggers: t.triggers}
	return t.deferred.Check(ctx, &rt, all, len(t.savepoints) > 0)
}
