package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

func grantTag(n *ast.Grant) string {
	if n.Revoke {
		return "REVOKE"
	}
	return "GRANT"
}

// grant is GRANT and REVOKE of privileges on objects. Who may do it is decided by each object's privileges.
func (r *run) grant(ctx context.Context, n *ast.Grant) error {
	g := &granting{run: r, n: n, Grant: acl.Grant{Revoke: n.Revoke, Option: n.WithOption || n.OptionOnly, Cascade: n.Cascade}}
	if err := g.grantees(); err != nil {
		return err
	}
	switch n.Kind {
	case "TABLE", "SEQUENCE":
		return g.relations(ctx)
	case "SCHEMA":
		return g.schemas(ctx)
	case "DATABASE":
		return g.databases(ctx)
	case "ALL TABLES IN SCHEMA", "ALL SEQUENCES IN SCHEMA":
		return g.relationsOfSchemas(ctx)
	case "ALL FUNCTIONS IN SCHEMA", "ALL PROCEDURES IN SCHEMA", "ALL ROUTINES IN SCHEMA":
		return g.functionsOfSchemas(ctx)
	}
	if objectKinds[n.Kind] != 0 {
		return g.objects(ctx)
	}
	return pgerror.Unsupported(grantTag(n)+" on a "+strings.ToLower(n.Kind), "Privileges are granted on tables, columns, sequences, schemas and the database.").
		At(n.Position())
}

// granting is a GRANT or REVOKE on its way. acl.Grant.Privileges are set for each kind of object.
type granting struct {
	*run
	acl.Grant
	n *ast.Grant
}

// grantees looks the roles up.
func (g *granting) grantees() error {
	if g.n.GrantedBy != nil {
		by, err := g.roleOID(*g.n.GrantedBy)
		if err != nil {
			return err
		}
		if by != g.User {
			return pgerror.New(pgerror.FeatureNotSupported, "grantor must be current user")
		}
	}
	var err error
	g.Grantees, err = g.granteeOIDs(g.n.Grantees)
	return err
}

// granteeOIDs returns the OIDs of roles, among which PUBLIC may be.
func (r *run) granteeOIDs(roles []ast.Role) ([]uint32, error) {
	oids := make([]uint32, len(roles))
	for i, role := range roles {
		if !role.Keyword && role.Name == "public" {
			oids[i] = acl.Public
			continue
		}
		var err error
		if oids[i], err = r.roleOID(role); err != nil {
			return nil, err
		}
	}
	return oids, nil
}

// privileges returns those that the statement names for a whole object: all of the kind for ALL. The columns' are left out.
func (g *granting) privileges(k acl.Kind, kind string) (acl.Privileges, error) {
	if g.n.Privileges == nil {
		return k.All(), nil
	}
	var p acl.Privileges
	for i := range g.n.Privileges {
		v := &g.n.Privileges[i]
		if v.Columns != nil {
			if k != acl.Table {
				return 0, pgerror.New(pgerror.InvalidGrantOperation, "column privileges are only valid for relations")
			}
			continue
		}
		one, err := privilegeNamed(v)
		if err != nil {
			return 0, err
		}
		if one&k.All() == 0 {
			return 0, pgerror.New(pgerror.InvalidGrantOperation, "invalid privilege type %s for %s", one.Name(), kind)
		}
		p |= one
	}
	return p, nil
}

func privilegeNamed(v *ast.Privilege) (acl.Privileges, error) {
	if p := acl.Named(strings.ToUpper(v.Name)); p != 0 {
		return p, nil
	}
	return 0, pgerror.New(pgerror.SyntaxError, "unrecognized privilege type %q", v.Name).At(v.Position())
}

// onObject returns the list of an object after the statement. whole is what the user may have for the object to be shown to exist.
func (g *granting) onObject(o catalog.Owned, k acl.Kind, kind, name string, p acl.Privileges) (acl.List, error) {
	list, owner := o.ACL.Or(k, o.OwnerOID()), o.OwnerOID()
	grantor, can := list.BestGrantor(g.access.Roles, g.User, owner, p)
	if can == acl.None && list.Mask(g.access.Roles, grantor, owner, k.All()|k.All().Options(), true) == acl.None {
		return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied for %s %s", kind, name)
	}
	g.warnPartial(p, can, `"`+name+`"`)
	change := g.Grant
	change.Privileges = p & can
	return list.Apply(g.access.Roles, &change, grantor, owner)
}

// Warnings of GRANT and REVOKE.
const (
	privilegeNotGranted pgerror.Code = "01007"
	privilegeNotRevoked pgerror.Code = "01006"
)

// warnPartial reports that not all privileges can be granted or revoked; for ALL, only that none can.
func (g *granting) warnPartial(p, can acl.Privileges, of string) {
	code, done := privilegeNotGranted, "were granted for "
	if g.Revoke {
		code, done = privilegeNotRevoked, "could be revoked for "
	}
	switch {
	case p&can == acl.None:
		g.notice(code, "no privileges %s%s", done, of)
	case p&^can != acl.None && g.n.Privileges != nil:
		g.notice(code, "not all privileges %s%s", done, of)
	}
}

// relations is GRANT on tables, views and sequences that are named.
func (g *granting) relations(ctx context.Context) error {
	for i := range g.n.Objects {
		t, err := g.mustFind(ctx, nameOf(&g.n.Objects[i]))
		if err != nil {
			return err
		}
		if err := g.onRelation(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns the name of an object as that of a relation.
func nameOf(o *ast.Object) ast.TableName {
	name := ast.TableName{Pos: o.Pos}
	if n := len(o.Name); n > 0 {
		name.Name = o.Name[n-1]
		if n > 1 {
			name.Schema = o.Name[n-2]
		}
	}
	return name
}

// onRelation changes the privileges on a relation and its columns.
func (g *granting) onRelation(ctx context.Context, t *catalog.TableDescriptor) error {
	if t.Kind == catalog.KindVirtual {
		return pgerror.Unsupported(grantTag(g.n)+" on a system table", "All roles may read it, and see the rows that concern them.").At(g.n.Position())
	}
	kind := kindWord(t)
	k := t.ACLKind()
	if g.n.Kind == "SEQUENCE" && k != acl.Sequence {
		return pgerror.New(pgerror.WrongObjectType, "%q is not a sequence", t.Name)
	}
	p, err := g.relationPrivileges(t)
	if err != nil {
		return err
	}
	columns, err := g.columnPrivileges(t)
	if err != nil {
		return err
	}
	// What is revoked of the table is revoked of its columns.
	if g.Revoke && k == acl.Table {
		for i := range t.Columns {
			if !t.Columns[i].Hidden && p&acl.Column.All() != 0 {
				columns[i] |= p & acl.Column.All()
			}
		}
	}
	next := t.Clone()
	if p != acl.None {
		if next.ACL, err = g.onObject(t.Owned, k, kind, t.Name, p); err != nil {
			return err
		}
	}
	for i := range next.Columns {
		if columns[i] == acl.None || g.Revoke && p != acl.None && next.Columns[i].ACL == nil {
			continue
		}
		if err := g.onColumn(t, next, i, columns[i]); err != nil {
			return err
		}
	}
	return g.update(ctx, t, next, false)
}

// relationPrivileges returns the privileges on the whole relation. GRANT ON TABLE may name a sequence.
func (g *granting) relationPrivileges(t *catalog.TableDescriptor) (acl.Privileges, error) {
	if t.Kind != catalog.KindSequence {
		return g.privileges(acl.Table, "table")
	}
	if g.n.Kind == "SEQUENCE" || g.n.Privileges == nil {
		return g.privileges(acl.Sequence, "sequence")
	}
	var p acl.Privileges
	for i := range g.n.Privileges {
		if g.n.Privileges[i].Columns != nil {
			continue
		}
		one, err := privilegeNamed(&g.n.Privileges[i])
		if err != nil {
			return 0, err
		}
		if one&(acl.Sequence.All()|acl.Table.All()) == 0 {
			return 0, pgerror.New(pgerror.InvalidGrantOperation, "invalid privilege type %s for table", one.Name())
		}
		p |= one
	}
	if p&^acl.Sequence.All() != 0 {
		g.notice(pgerror.Warning, "sequence %q only supports USAGE, SELECT, and UPDATE privileges", t.Name)
	}
	return p & acl.Sequence.All(), nil
}

// columnPrivileges returns the privileges that the statement names for columns, by ordinal.
func (g *granting) columnPrivileges(t *catalog.TableDescriptor) ([]acl.Privileges, error) {
	columns := make([]acl.Privileges, len(t.Columns))
	for i := range g.n.Privileges {
		v := &g.n.Privileges[i]
		if v.Columns == nil {
			continue
		}
		p := acl.Column.All()
		if v.Name != "" {
			var err error
			if p, err = privilegeNamed(v); err != nil {
				return nil, err
			}
		}
		if p&acl.Column.All() == 0 {
			return nil, pgerror.New(pgerror.InvalidGrantOperation, "invalid privilege type %s for column", p.Name())
		}
		for _, name := range v.Columns {
			ord := t.ColumnNamed(name)
			if ord < 0 {
				return nil, pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", name, t.Name)
			}
			if t.Kind == catalog.KindSequence {
				p &= acl.Select
			}
			columns[ord] |= p
		}
	}
	return columns, nil
}

// onColumn changes the privileges on a column. Options of the whole table count for it.
func (g *granting) onColumn(t, next *catalog.TableDescriptor, ordinal int, p acl.Privileges) error {
	c := &next.Columns[ordinal]
	owner := t.OwnerOID()
	all := append(append(acl.List{}, t.EffectiveACL()...), c.ACL...)
	grantor, can := all.BestGrantor(g.access.Roles, g.User, owner, p)
	if can == acl.None && all.Mask(g.access.Roles, grantor, owner, acl.Column.All()|acl.Column.All().Options(), true) == acl.None {
		return planner.RelationDenied(t)
	}
	g.warnPartial(p, can, `column "`+c.Name+`" of relation "`+t.Name+`"`)
	change := g.Grant
	change.Privileges = p & can
	list, err := c.ACL.Or(acl.Column, owner).Apply(g.access.Roles, &change, grantor, owner)
	if len(list) == 0 {
		list = nil
	}
	c.ACL = list
	return err
}

// eachSchema calls f with the schemas that the statement names.
func (g *granting) eachSchema(f func(name string) error) error {
	for i := range g.n.Objects {
		name := nameOf(&g.n.Objects[i])
		if _, exists := g.access.Grants.Schemas[name.Name]; !exists {
			return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Name)
		}
		if err := f(name.Name); err != nil {
			return err
		}
	}
	return nil
}

// relationsOfSchemas is GRANT on ALL TABLES or SEQUENCES IN SCHEMA.
func (g *granting) relationsOfSchemas(ctx context.Context) error {
	sequences := g.n.Kind == "ALL SEQUENCES IN SCHEMA"
	return g.eachSchema(func(schema string) error {
		if g.access.Schema(schema, acl.Usage) == 0 {
			return planner.SchemaDenied(schema, 0)
		}
		all, err := g.r.Relations(ctx)
		if err != nil {
			return err
		}
		for _, t := range all {
			if t.Schema != schema || t.Kind == catalog.KindVirtual || (t.Kind == catalog.KindSequence) != sequences {
				continue
			}
			now, err := g.r.RelationByID(ctx, t.ID)
			if err != nil {
				return err
			}
			if err := g.onRelation(ctx, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *granting) schemas(ctx context.Context) error {
	p, err := g.privileges(acl.Schema, "schema")
	if err != nil {
		return err
	}
	return g.eachSchema(func(name string) error {
		if name == catalog.OwnSchema {
			return pgerror.Unsupported(grantTag(g.n)+" on schema percodb", "All roles may use it, and see the rows that concern them.").At(g.n.Position())
		}
		o := g.access.Grants.Schemas[name]
		list, err := g.onObject(o, acl.Schema, "schema", name, p)
		if err != nil {
			return err
		}
		if err := g.ch.SetSchemaOwned(ctx, name, catalog.Owned{Owner: o.Owner, ACL: list}); err != nil {
			return err
		}
		return g.look(ctx)
	})
}

func (g *granting) databases(ctx context.Context) error {
	p, err := g.privileges(acl.Database, "database")
	if err != nil {
		return err
	}
	for i := range g.n.Objects {
		name := nameOf(&g.n.Objects[i]).Name
		d, err := g.findDatabase(name)
		if err != nil {
			return err
		}
		next := d.Clone()
		if next.ACL, err = g.onObject(d.Owned, acl.Database, "database", name, p); err != nil {
			return err
		}
		if err := g.putDatabase(ctx, next); err != nil {
			return err
		}
	}
	return nil
}
