package session

import (
	"cmp"
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
	p.within, p.session, p.current, p.permitted, p.access = inObserver, role, role, nil, nil
}

// restrictedCalls implements builtin.Env.RestrictedCalls.
func (p *principal) restrictedCalls() func(signature string) error {
	now := p.tx.resolver
	if now == nil || p.tx.ownSchema() {
		var err error
		if now, err = p.tx.catalog.Present(p.tx.env.Ctx); err != nil {
			return func(string) error { return err }
		}
	}
	if len(now.Grants().Objects) == 0 {
		return nil
	}
	return func(signature string) error {
		if now.Grants().ObjectACL(acl.Function, signature) == nil {
			return nil
		}
		return planner.FunctionDenied(catalog.NewAccess(now, p.current), signature)
	}
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
	if !c.suits(t.acting) { // The role has changed since the statement was planned.
		return c.changedError()
	}
	if !t.ownSchema() {
		if ok, err := c.policiesOf(ctx, t.resolver); !ok || err != nil {
			return cmp.Or(err, c.changedError())
		}
		if c.permittedRole == role && c.permittedVersion == c.version {
			return nil
		}
		if err := c.Authorize(t.acting.accessTo(t.resolver)); err != nil {
			return err
		}
		c.permittedRole, c.permittedVersion = role, c.version
		return nil
	}
	now, err := t.inForce(ctx)
	if err != nil {
		return err
	}
	if ok, err := c.policiesOf(ctx, now); !ok || err != nil {
		return cmp.Or(err, c.changedError())
	}
	switch {
	case now.Version() == t.resolver.Version() && !t.changed:
		return c.Authorize(t.acting.accessTo(t.resolver))
	}
	if err := t.acting.permit(now.Roles()); err != nil {
		return err
	}
	return c.AuthorizeInForce(ctx, now, role)
}

// ownSchema reports whether the schema that statements are planned under may be another one than that in force for them: of the past,
// of a snapshot that was taken for an earlier statement, or with changes of the transaction.
func (t *transaction) ownSchema() bool {
	return t.asOf != 0 || t.changed || t.phase.shared() && !t.modes.Isolation.PerStatement()
}

// inForce returns the schema whose owners, roles and privileges decide what a statement may do: that of the present, whatever snapshot
// the transaction has, with the transaction's own changes. It returns a conflict if others have changed an object that the transaction
// has changed, too: it cannot commit.
func (t *transaction) inForce(ctx context.Context) (catalog.Resolver, error) {
	if !t.ownSchema() {
		return t.resolver, nil
	}
	if t.changed {
		if now, err := t.guard.InForce(ctx); now != nil || err != nil {
			return t.temporary().Over(now), err
		}
	}
	now, err := t.catalog.Present(ctx)
	return t.temporary().Over(now), err
}

// knownInForce is inForce for messages, also after the end of a transaction: nil if the schema is not known.
func (t *transaction) knownInForce(ctx context.Context) catalog.Resolver {
	now, err := t.inForce(ctx)
	if now == nil && err == nil {
		now, err = t.catalog.Present(ctx)
	}
	if err != nil {
		return nil
	}
	return now
}

// accessNow returns the current role's access to a relation that the transaction sees, and the relation with the owner and privileges
// that are in force; those of the transaction's snapshot if it has been dropped since, when only the owner's count (planner.Need).
func (t *transaction) accessNow(ctx context.Context, r *catalog.TableDescriptor) (*catalog.Access, *catalog.TableDescriptor, error) {
	if !t.ownSchema() {
		return t.acting.accessTo(t.resolver), r, nil
	}
	now, err := t.inForce(ctx)
	if err != nil {
		return nil, nil, err
	}
	a := catalog.NewAccess(now, t.acting.current)
	present, err := now.RelationByID(ctx, r.ID)
	switch {
	case err != nil:
		return nil, nil, err
	case present != nil:
		return a, r.WithPrivilegesOf(present), nil
	}
	dropped := r.Clone()
	dropped.ACL = acl.List{{Grantee: r.OwnerOID(), Grantor: r.OwnerOID(), Rights: r.ACLKind().All()}}
	for i := range dropped.Columns {
		dropped.Columns[i].ACL = nil
	}
	return a, dropped, nil
}

// authorize returns 42501 unless the current role may run a statement that has no plan of its own. Every such statement is named
// here: those that do nothing to what others own, those that run a plan, which is authorized as it is opened, and those that decide by
// the objects that they name. Package ddl authorizes its statements.
func (c *commands) authorize(ctx context.Context, tree ast.Statement) error {
	switch n := tree.(type) {
	case *ast.Begin, *ast.Commit, *ast.Rollback, *ast.Savepoint, *ast.ReleaseSavepoint, *ast.RollbackTo, *ast.SetTransaction,
		*ast.SetConstraints, *ast.Show, *ast.Prepare, *ast.Deallocate, *ast.Discard, *ast.Listen, *ast.Unlisten, *ast.Notify, *ast.PreparedTransaction, *ast.Load, *ast.SecurityLabel:
		return nil
	case *ast.Fetch, *ast.CloseCursor: // The cursor is the session's.
		return nil
	case *ast.Execute, *ast.Explain, *ast.Copy, *ast.DeclareCursor: // by their plans
		return nil
	case *ast.Set: // by the setting (settings.Settings)
		return nil
	case *ast.Do: // by the statements in it
		return nil
	case *ast.AlterSystem:
		return c.system.authorize(ctx, n)
	case *ast.Checkpoint:
		return c.mayCheckpoint(ctx)
	case *ast.NotifyObserver:
		return c.mayUseObserver(ctx, n.Name, true)
	case *ast.WaitObserver:
		return c.mayUseObserver(ctx, n.Name, false)
	}
	return nil
}

func (c *commands) mayCheckpoint(ctx context.Context) error {
	roles, err := c.tx.catalog.Roles(ctx)
	if err == nil && !roles.HasPrivilegesOf(c.tx.acting.current, catalog.CheckpointRole) {
		err = pgerror.New(pgerror.InsufficientPrivilege, "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT")
	}
	return err
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
	a, t, err := c.tx.accessNow(ctx, t)
	if err != nil {
		return err
	}
	o = t.ObserverByID(o.ID)
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
	a, t, err := q.tx.accessNow(ctx, t)
	if err != nil {
		return err
	}
	if a.Relation(t, anyOf, true) != 0 {
		return nil
	}
	if next && t.Sequence.OwnerTable != 0 {
		table, err := q.tx.resolver.RelationByID(ctx, t.Sequence.OwnerTable)
		if err != nil {
			return err
		}
		if table != nil {
			if a, table, err = q.tx.accessNow(ctx, table); err != nil {
				return err
			}
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
