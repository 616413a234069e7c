package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// defaultKinds are the kinds of objects of ALTER DEFAULT PRIVILEGES, with their words in messages.
var defaultKinds = map[string]struct {
	kind acl.Kind
	one  string
}{
	"TABLES": {acl.Table, "relation"}, "SEQUENCES": {acl.Sequence, "sequence"}, "FUNCTIONS": {acl.Function, "function"},
	"ROUTINES": {acl.Function, "function"}, "TYPES": {acl.Type, "type"}, "SCHEMAS": {acl.Schema, "schema"},
}

// defaultKindWord names the objects of a kind as messages about default privileges do.
func defaultKindWord(k acl.Kind) string {
	switch k {
	case acl.Table:
		return "relations"
	case acl.Sequence:
		return "sequences"
	case acl.Function:
		return "functions"
	case acl.Type:
		return "types"
	}
	return "schemas"
}

// alterDefaultPrivileges is ALTER DEFAULT PRIVILEGES: of the user, or of roles that the user is a member of.
func (r *run) alterDefaultPrivileges(ctx context.Context, n *ast.AlterDefaultPrivileges) error {
	g := &granting{run: r, n: n.Grant, Grant: acl.Grant{
		Revoke: n.Grant.Revoke, Option: n.Grant.WithOption || n.Grant.OptionOnly, Cascade: n.Grant.Cascade,
	}}
	if err := g.grantees(); err != nil {
		return err
	}
	kind := defaultKinds[n.Grant.Kind]
	var err error
	if g.Privileges, err = g.privileges(kind.kind, kind.one); err != nil {
		return err
	}
	roles, schemas := []uint32{r.User}, []uint64{0}
	seen := map[bool]bool{}
	for _, o := range n.Options {
		if seen[o.Roles != nil] {
			return pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(o.Position())
		}
		seen[o.Roles != nil] = true
		if o.Roles != nil {
			if roles, err = r.memberRoles(o.Roles); err != nil {
				return err
			}
			continue
		}
		if kind.kind == acl.Schema {
			return pgerror.New(pgerror.InvalidGrantOperation, "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
		}
		schemas = nil
		for _, name := range o.Schemas {
			if _, exists := r.access.Grants.Schemas[name]; !exists {
				return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name)
			}
			schemas = append(schemas, r.schemaID(name))
		}
	}
	defaults := slices.Clone(r.access.Grants.Defaults)
	for _, role := range roles {
		for _, schema := range schemas {
			if defaults, err = g.setDefault(ctx, defaults, role, kind.kind, schema); err != nil {
				return err
			}
		}
	}
	if err := r.ch.SetDefaults(ctx, defaults); err != nil {
		return err
	}
	return r.look(ctx)
}

func (r *run) memberRoles(names []ast.Role) ([]uint32, error) {
	oids := make([]uint32, len(names))
	for i := range names {
		var err error
		if oids[i], err = r.memberRole(names[i]); err != nil {
			return nil, err
		}
	}
	return oids, nil
}

// setDefault changes the entry for a role, a kind and a schema. An entry that says what holds without it is removed.
func (g *granting) setDefault(ctx context.Context, all []catalog.DefaultGrant, role uint32, kind acl.Kind, schema uint64) ([]catalog.DefaultGrant, error) {
	initial := acl.List{} // In a schema, privileges are added to those everywhere.
	if schema == 0 {
		initial = acl.Default(kind, role)
	}
	i := slices.IndexFunc(all, func(d catalog.DefaultGrant) bool { return d.Role == role && d.Kind == kind && d.Schema == schema })
	list := initial
	if i >= 0 {
		list = all[i].ACL
	}
	list, err := list.Apply(g.access.Roles, &g.Grant, role, role)
	list = list.Sorted()
	switch {
	case err != nil:
		return nil, err
	case list.Equal(initial) && i >= 0:
		return slices.Delete(all, i, i+1), nil
	case list.Equal(initial):
		return all, nil
	case i >= 0:
		all[i].ACL = list
		return all, nil
	}
	id, err := g.ch.NewID(ctx)
	if err != nil {
		return nil, err
	}
	return append(all, catalog.DefaultGrant{OID: uint32(id), Role: role, Schema: schema, Kind: kind, ACL: list}), nil
}

// forgetDefaults removes the entries of the default privileges for which remove returns true.
func (r *run) forgetDefaults(ctx context.Context, remove func(*catalog.DefaultGrant) bool) error {
	defaults := slices.DeleteFunc(slices.Clone(r.access.Grants.Defaults), func(d catalog.DefaultGrant) bool { return remove(&d) })
	if len(defaults) == len(r.access.Grants.Defaults) {
		return nil
	}
	return r.ch.SetDefaults(ctx, defaults)
}
