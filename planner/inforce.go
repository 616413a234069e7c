package planner

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
)

// AuthorizeInForce is Authorize for a plan that was made under another schema than now, the one in force: of an older snapshot, or of the
// past. Owners, roles and privileges are those of now. What is no longer there, a relation, a column, or a view as it was defined, can be
// read by superusers and members of its owner only: nobody can grant or revoke privileges on it any more.
func (p *Plan) AuthorizeInForce(ctx context.Context, now catalog.Resolver, role uint32) error {
	a := catalog.NewAccess(now, role)
	for _, n := range p.Needs {
		as := a
		if n.As != 0 && n.As != role {
			as = a.As(n.As)
		}
		if n.Routine != nil {
			if d := now.Routines().ByOID(n.Routine.OID()); d != nil { // One that has been dropped since is nobody's.
				if err := RoutineDenied(a, d); err != nil {
					return err
				}
			}
			continue
		}
		if n.Relation == nil {
			if _, exists := a.Grants.Schemas[n.Schema]; exists && as.Schema(n.Schema, acl.Usage) == 0 {
				return SchemaDenied(n.Schema, n.Pos)
			}
			continue
		}
		if err := n.authorizeInForce(ctx, now, as); err != nil {
			return err
		}
	}
	return nil
}

func (n *Need) authorizeInForce(ctx context.Context, now catalog.Resolver, a *catalog.Access) error {
	if n.Relation.Kind == catalog.KindVirtual {
		return n.authorize(a)
	}
	t, err := now.RelationByID(ctx, n.Relation.ID)
	switch {
	case err != nil:
		return err
	case t != nil && n.Named && a.Schema(t.Schema, acl.Usage) == 0:
		return SchemaDenied(t.Schema, 0)
	case t != nil && n.stillIn(t):
		if t == n.Relation {
			return n.authorize(a)
		}
		present := *n
		present.Relation = n.Relation.WithPrivilegesOf(t)
		if n.Observer != nil {
			present.Observer = t.ObserverByID(n.Observer.ID)
		}
		return present.authorize(a)
	}
	if !a.Owns(n.Relation.OwnerOID()) || t != nil && !a.Owns(t.OwnerOID()) || n.Observer != nil && !a.Owns(n.Observer.OwnerOID()) {
		return RelationDenied(n.Relation)
	}
	return nil
}

// stillIn reports whether what the statement uses of the relation is still there: its columns, or the view as it was.
func (n *Need) stillIn(now *catalog.TableDescriptor) bool {
	was := n.Relation
	if n.Observer != nil && now.ObserverByID(n.Observer.ID) == nil {
		return false
	}
	if was.Kind == catalog.KindView {
		return was.ViewQuery == now.ViewQuery && was.OwnerOID() == now.OwnerOID() && was.SecurityInvoker == now.SecurityInvoker &&
			was.SecurityBarrier == now.SecurityBarrier && was.CheckOption == now.CheckOption
	}
	all := true
	for _, used := range [...]colSet{n.Selected, n.Inserted, n.Updated} {
		used.each(func(ordinal int) { all = all && now.Ordinal(was.Columns[ordinal].ID) >= 0 })
	}
	return all
}
