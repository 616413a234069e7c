package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// namedType finds a type that GRANT names, by the name that pg_type has.
func (g *granting) namedType(ctx context.Context, o *ast.Object) (grantable, error) {
	none := grantable{}
	written := nameOf(o)
	if err := g.useSchema(ast.TableName{Schema: written.Schema}); err != nil {
		return none, err
	}
	name, system, err := g.systemName(o.Name)
	if err != nil {
		return none, err
	}
	var typ types.Type
	if system {
		if t, err := types.Lookup(name, nil, 0); err == nil && t.Info().Name == name {
			typ = t
		}
	}
	if !typ.Valid() {
		typ = catalog.FindType(g.r, written.Schema, name)
	}
	if !typ.Valid() {
		return none, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", strings.Join(o.Name, "."))
	}
	if elem := typ.Elem(); elem.Valid() {
		return none, pgerror.New(pgerror.InvalidGrantOperation, "cannot set privileges of array types").
			WithHint("Set the privileges of the element type instead.")
	}
	if g.n.Kind == "DOMAIN" && !typ.IsDomain() {
		return none, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a domain", name)
	}
	if typ.Def != nil && typ.Def.Relation != 0 {
		return none, pgerror.Unsupported(grantTag(g.n)+" on the row type of a relation", "Everybody may use it. Grant privileges on the relation.").At(g.n.Position())
	}
	found := grantable{name: name, shown: name}
	if typ.Def != nil {
		found.typ = typ.OID
	}
	return found, nil
}

// onType changes the privileges on a type that users have defined.
func (g *granting) onType(ctx context.Context, oid types.OID, p acl.Privileges) error {
	d := g.r.Types().ByOID(oid)
	list, err := g.onObject(d.Owned, acl.Type, "type", d.Name, p)
	if err != nil {
		return err
	}
	return g.setTypeACL(ctx, d, list)
}

// setTypeACL replaces the privileges on a type.
func (r *run) setTypeACL(ctx context.Context, d *catalog.TypeDescriptor, list acl.List) error {
	next := d.Clone()
	next.ACL = list
	return r.addType(ctx, next)
}

// mayUseType fails unless the user has USAGE of a type, of whose values a column or an attribute is to be, or a domain is to be made. The
// privileges of an array are those of its elements.
func (r *run) mayUseType(t types.Type) error {
	if r.access == nil || r.access.Type(r.r.Types(), t, acl.Usage) != 0 {
		return nil
	}
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for type %s", builtin.TypeName(t))
}
