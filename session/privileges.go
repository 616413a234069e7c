package session

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// accessTo returns the current role's access to the objects of a schema. It is valid until the role or the schema changes.
func (p *principal) accessTo(r catalog.Resolver) *catalog.Access {
	if p.access == nil || p.accessVersion != r.Version() || p.access.Role != p.current {
		p.access, p.accessVersion = catalog.NewAccess(r, p.current), r.Version()
		p.path = p.access.Path(p.settings.SearchPath)
	}
	return p.access
}

// actAs has the session act as a role, whatever its settings say: the owner of the observer whose statements it runs.
func (p *principal) actAs(role uint32) {
	p.fixed, p.session, p.current, p.permitted, p.access = true, role, role, nil, nil
}

// usable returns r with unqualified names looked up in the part of the search path that the current role may use.
func (p *principal) usable(r catalog.Resolver) catalog.Resolver {
	p.accessTo(r)
	if p.settings.DefaultPath() && len(p.path) == len(p.settings.SearchPath) {
		return r
	}
	return catalog.SearchPath(r, p.path)
}

// authorize returns 42501 unless the current role may run the plan. The answer is kept with the plan: for the same role under the same
// schema it costs two comparisons.
func (t *transaction) authorize(ctx context.Context, c *cachedPlan) error {
	role := t.acting.current
	if c.permittedRole == role && c.permittedVersion == c.version && t.asOf == 0 {
		return nil
	}
	if t.asOf != 0 {
		return t.authorizeAsOf(ctx, c)
	}
	if err := c.Authorize(t.acting.accessTo(t.resolver)); err != nil {
		return err
	}
	c.permittedRole, c.permittedVersion = role, c.version
	return nil
}

// authorizeAsOf is authorize for a statement that reads the past: the privileges of the present decide, those of the past where an
// object does not exist any more.
func (t *transaction) authorizeAsOf(ctx context.Context, c *cachedPlan) error {
	now, err := t.catalog.Present(ctx)
	if err != nil {
		return err
	}
	present := &cachedPlan{Plan: &planner.Plan{Needs: make([]*planner.Need, len(c.Needs))}}
	for i, n := range c.Needs {
		copied := *n
		if n.Relation != nil {
			relation, err := now.RelationByID(ctx, n.Relation.ID)
			if err != nil {
				return err
			}
			if relation != nil {
				copied.Relation = n.Relation.WithPrivilegesOf(relation)
			}
		}
		present.Needs[i] = &copied
	}
	return present.Authorize(catalog.NewAccess(now, t.acting.current))
}

// authorize returns 42501 unless the current role may run a statement that has no plan of its own. Every such statement is named
// here: those that do nothing to what others own, those that run a plan, which is authorized as it is opened, and those that decide by
// the objects that they name. Package ddl authorizes its statements.
func (c *commands) authorize(ctx context.Context, tree ast.Statement) error {
	switch n := tree.(type) {
	case *ast.Begin, *ast.Commit, *ast.Rollback, *ast.Savepoint, *ast.ReleaseSavepoint, *ast.RollbackTo, *ast.SetTransaction,
		*ast.SetConstraints, *ast.Show, *ast.Prepare, *ast.Deallocate, *ast.Discard, *ast.Listen, *ast.Unlisten, *ast.Notify:
		return nil
	case *ast.Fetch, *ast.CloseCursor: // The cursor is the session's.
		return nil
	case *ast.Execute, *ast.Explain, *ast.Copy, *ast.DeclareCursor: // by their plans
		return nil
	case *ast.Set: // by the setting (settings.Settings)
		return nil
	case *ast.LockTable: // It is refused.
		return nil
	case *ast.AlterSystem:
		return c.mayAlterSystem(ctx, n)
	case *ast.NotifyObserver:
		return c.mayUseObserver(ctx, n.Name, true)
	case *ast.WaitObserver:
		return c.mayUseObserver(ctx, n.Name, false)
	}
	return nil
}

func (c *commands) mayAlterSystem(ctx context.Context, n *ast.AlterSystem) error {
	super, err := c.tx.superuser(ctx)
	if err != nil || super {
		return err
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to set parameter %q", n.Name)
}

// superuser reports whether the current role is one.
func (t *transaction) superuser(ctx context.Context) (bool, error) {
	roles, err := t.catalog.Roles(ctx)
	return err == nil && roles.Superuser(t.acting.current), err
}

// mayUseObserver checks statements about an observer's work: whoever may read the table may wait for it; the owner of the observer or of
// the table may have rows handled.
func (c *commands) mayUseObserver(ctx context.Context, name ast.TableName, notify bool) error {
	if err := c.tx.begin(ctx); err != nil {
		return err
	}
	t, o, err := catalog.FindObserver(ctx, c.tx.resolver, name.Schema, name.Name)
	if err != nil || o == nil {
		return err
	}
	a := c.tx.acting.accessTo(c.tx.resolver)
	switch {
	case a.Owns(o.OwnerOID()), a.Owns(t.OwnerOID()):
		return nil
	case notify:
		return pgerror.New(pgerror.InsufficientPrivilege, "must be owner of observer %s", o.Name)
	case a.Relation(t, acl.Select, false) != 0 || a.AnyColumn(t, acl.Select):
		return nil
	}
	return planner.RelationDenied(t)
}

// may checks the use of a sequence: one of the privileges suffices. Who may write the column of an identity gets its values.
func (q *sequences) may(ctx context.Context, t *catalog.TableDescriptor, anyOf acl.Privileges, next bool) error {
	a := q.tx.acting.accessTo(q.tx.resolver)
	if a.Relation(t, anyOf, true) != 0 {
		return nil
	}
	if next && t.Sequence.OwnerTable != 0 {
		table, err := q.tx.resolver.RelationByID(ctx, t.Sequence.OwnerTable)
		if err != nil {
			return err
		}
		if table != nil {
			i := table.Ordinal(t.Sequence.OwnerColumn)
			const write = acl.Insert | acl.Update
			if i >= 0 && table.Columns[i].Identity != "" && (a.Relation(table, write, true) != 0 || a.AnyColumn(table, acl.Insert) || a.AnyColumn(table, acl.Update)) {
				return nil
			}
		}
	}
	return planner.RelationDenied(t)
}

// samePath reports whether a plan looked unqualified names up as r does.
func (c *cachedPlan) samePath(r catalog.Resolver) bool {
	return slices.Equal(c.SearchPath, catalog.Path(r))
}
