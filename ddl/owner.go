package ddl

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// roleOID returns the OID of a role that a statement names.
func (r *run) roleOID(n ast.Role) (uint32, error) {
	role, err := r.findRole(n)
	if err != nil {
		return 0, err
	}
	return role.OID, nil
}

func (r *run) roleName(oid uint32) string {
	if role := r.access.Roles.ByOID(oid); role != nil {
		return role.Name
	}
	return ""
}

// memberRole returns the OID of a role that is to own what the user makes: the user must be a member of it.
func (r *run) memberRole(n ast.Role) (uint32, error) {
	oid, err := r.roleOID(n)
	if err != nil {
		return 0, err
	}
	if !r.access.Roles.IsMemberOf(r.User, oid) {
		return 0, pgerror.New(pgerror.InsufficientPrivilege, "must be member of role %q", r.roleName(oid))
	}
	return oid, nil
}

// changeOwner is ALTER … OWNER TO of an object in a schema, which the user owns: pass gives it to the role.
func (r *run) changeOwner(o *catalog.Owned, schema string, to ast.Role, pass func(owner uint32) error) error {
	owner, err := r.roleOID(to)
	if err != nil || owner == o.OwnerOID() {
		return err
	}
	if _, err := r.memberRole(to); err != nil {
		return err
	}
	if err := r.ownerMayCreate(owner, schema); err != nil {
		return err
	}
	return pass(owner)
}

// alterOwner is ALTER … OWNER TO of a relation.
func (r *run) alterOwner(ctx context.Context, t *catalog.TableDescriptor, to ast.Role) error {
	if owner, err := r.roleOID(to); err != nil || owner == t.OwnerOID() {
		return err
	}
	if t.Kind == catalog.KindSequence && t.Sequence.OwnerTable != 0 {
		e := pgerror.New(pgerror.FeatureNotSupported, "cannot change owner of sequence %q", t.Name)
		if table, err := r.r.RelationByID(ctx, t.Sequence.OwnerTable); err == nil && table != nil {
			e = e.WithDetail("Sequence %q is linked to table %q.", t.Name, table.Name)
		}
		return e
	}
	return r.changeOwner(&t.Owned, t.Schema, to, func(owner uint32) error { return r.passRelation(ctx, t, owner) })
}

// ownerMayCreate fails if the role that is to own an object could not have created it in its schema.
func (r *run) ownerMayCreate(owner uint32, schema string) error {
	if !r.access.Superuser() && r.access.As(owner).Schema(schema, acl.Create) == 0 {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for schema %s", schema)
	}
	return nil
}

// passRelation gives a relation, and the sequences that it owns, to another role.
func (r *run) passRelation(ctx context.Context, t *catalog.TableDescriptor, owner uint32) error {
	next := t.Clone()
	from := t.OwnerOID()
	next.Owned = t.GivenTo(owner)
	for i := range next.Columns {
		next.Columns[i].ACL = next.Columns[i].ACL.WithOwner(from, owner)
	}
	if err := r.update(ctx, t, next, false); err != nil {
		return err
	}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Kind == catalog.KindSequence && s.Sequence.OwnerTable == t.ID && s.OwnerOID() != owner {
			if err := r.passRelation(ctx, s, owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// alterSchemaOwner is ALTER SCHEMA … OWNER TO.
func (r *run) alterSchemaOwner(ctx context.Context, name string, to ast.Role) error {
	o, exists := r.access.Grants.Schemas[name]
	if !exists {
		return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name)
	}
	if name == catalog.OwnSchema {
		return pgerror.Unsupported("ALTER SCHEMA percodb", "It belongs to the system.")
	}
	owner, err := r.roleOID(to)
	if err != nil || owner == o.OwnerOID() {
		return err
	}
	if !r.access.OwnsSchema(name) {
		return mustBeOwner("schema", name)
	}
	if _, err := r.memberRole(to); err != nil {
		return err
	}
	if r.access.Database(acl.Create) == 0 {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for database %s", r.Database)
	}
	return r.passSchema(ctx, name, owner)
}

func (r *run) passSchema(ctx context.Context, name string, owner uint32) error {
	o := r.access.Grants.Schemas[name]
	if err := r.ch.SetSchemaOwned(ctx, name, o.GivenTo(owner)); err != nil {
		return err
	}
	return r.look(ctx)
}

// ownedRoles returns the OIDs of the roles of REASSIGN and DROP OWNED, whose privileges the user must have. what ends the message.
func (r *run) ownedRoles(roles []ast.Role, what string) ([]uint32, error) {
	oids := make([]uint32, len(roles))
	for i, role := range roles {
		oid, err := r.roleOID(role)
		if err != nil {
			return nil, err
		}
		if !r.access.Owns(oid) {
			return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied to %s objects", what)
		}
		if oid == catalog.BootstrapSuperuser {
			verb := "drop objects owned by role"
			if what == "reassign" {
				verb = "reassign ownership of objects owned by role"
			}
			return nil, pgerror.New(pgerror.DependentObjectsStillExist, "cannot %s %s because they are required by the database system", verb, r.roleName(oid))
		}
		oids[i] = oid
	}
	return oids, nil
}

// reassignOwned is REASSIGN OWNED.
func (r *run) reassignOwned(ctx context.Context, n *ast.OwnedBy) error {
	from, err := r.ownedRoles(n.Roles, "reassign")
	if err != nil {
		return err
	}
	to, err := r.roleOID(*n.To)
	if err != nil {
		return err
	}
	if !r.access.Owns(to) {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to reassign objects")
	}
	for _, d := range r.r.Databases().All() {
		if slices.Contains(from, d.OwnerOID()) {
			if err := r.passDatabase(ctx, d, to); err != nil {
				return err
			}
		}
	}
	for name, o := range r.access.Grants.Schemas {
		if slices.Contains(from, o.OwnerOID()) {
			if err := r.passSchema(ctx, name, to); err != nil {
				return err
			}
		}
	}
	for _, d := range r.extensionsOf(from) {
		next := *d
		next.Owner = to
		if err := r.putExtension(ctx, &next); err != nil {
			return err
		}
	}
	for _, d := range r.collationsOf(from) {
		if err := r.passCollation(ctx, d, to); err != nil {
			return err
		}
	}
	if err := r.passOperations(ctx, r.operationsOf(from), to); err != nil {
		return err
	}
	for _, d := range r.r.Types().All() {
		if slices.Contains(from, d.OwnerOID()) {
			if err := r.passType(ctx, d, to); err != nil {
				return err
			}
		}
	}
	for _, d := range r.r.Routines().All() {
		if slices.Contains(from, d.OwnerOID()) {
			if err := r.passRoutine(ctx, d, to); err != nil {
				return err
			}
		}
	}
	for _, d := range r.textSearchWhere(func(d *catalog.TextSearchDescriptor) bool { return slices.Contains(from, d.OwnerOID()) }) {
		if err := r.passTextSearch(ctx, d, to); err != nil {
			return err
		}
	}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		now, err := r.r.RelationByID(ctx, t.ID)
		if err != nil {
			return err
		}
		if slices.Contains(from, now.OwnerOID()) && now.Kind != catalog.KindVirtual {
			if err := r.passRelation(ctx, now, to); err != nil {
				return err
			}
			if now, err = r.r.RelationByID(ctx, t.ID); err != nil {
				return err
			}
		}
		next := now.Clone()
		changed := false
		for i := range next.Observers {
			if o := &next.Observers[i]; slices.Contains(from, o.OwnerOID()) {
				o.Owner, changed = to, true
			}
		}
		if changed {
			if err := r.update(ctx, now, next, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropOwned is DROP OWNED: it drops what the roles own, and revokes what they have been granted.
func (r *run) dropOwned(ctx context.Context, n *ast.OwnedBy) error {
	roles, err := r.ownedRoles(n.Roles, "drop")
	if err != nil {
		return err
	}
	if err := r.dropRelationsOf(ctx, roles, n.Cascade); err != nil {
		return err
	}
	for _, d := range r.extensionsOf(roles) {
		if err := r.dropExtension(ctx, d, n.Cascade); err != nil {
			return err
		}
	}
	if err := r.dropOperationList(ctx, r.operationsOf(roles), n.Cascade); err != nil {
		return err
	}
	for _, d := range r.r.Types().All() {
		if slices.Contains(roles, d.OwnerOID()) {
			if err := r.dropType(ctx, d, n.Cascade); err != nil {
				return err
			}
		}
	}
	if err := r.dropCollationList(ctx, r.collationsOf(roles), n.Cascade); err != nil {
		return err
	}
	owned := r.routinesWhere(func(d *catalog.RoutineDescriptor) bool { return slices.Contains(roles, d.OwnerOID()) })
	if err := r.dropRoutineList(ctx, owned, n.Cascade); err != nil {
		return err
	}
	search := r.textSearchWhere(func(d *catalog.TextSearchDescriptor) bool { return slices.Contains(roles, d.OwnerOID()) })
	if err := r.dropTextSearchList(ctx, search, n.Cascade); err != nil {
		return err
	}
	var schemas []string
	for name, o := range r.access.Grants.Schemas {
		if slices.Contains(roles, o.OwnerOID()) {
			schemas = append(schemas, name)
		}
	}
	slices.Sort(schemas)
	for _, name := range schemas {
		drop := &ast.Drop{Kind: "SCHEMA", Names: []ast.TableName{{Name: name}}, Cascade: n.Cascade}
		if err := r.dropSchema(ctx, drop); err != nil {
			return err
		}
	}
	for _, role := range roles {
		if err := r.revokeAll(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

// dropRelationsOf drops the relations and observers that belong to roles.
func (r *run) dropRelationsOf(ctx context.Context, roles []uint32, cascade bool) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	d := newDropping(r)
	for _, t := range all {
		if t.Kind == catalog.KindVirtual {
			continue
		}
		if slices.Contains(roles, t.OwnerOID()) {
			d.addTarget(t)
			continue
		}
		for i := range t.Observers {
			if slices.Contains(roles, t.Observers[i].OwnerOID()) {
				now, err := r.r.RelationByID(ctx, t.ID)
				if err != nil {
					return err
				}
				if err := r.removeObservers(ctx, now, []uint64{t.Observers[i].ID}); err != nil {
					return err
				}
			}
		}
	}
	if len(d.targets) == 0 {
		return nil
	}
	return d.run(ctx, cascade)
}

// revokeAll revokes what a role has been granted on the objects of others, and forgets its default privileges.
func (r *run) revokeAll(ctx context.Context, role uint32) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	roles := r.access.Roles
	for _, t := range all {
		if t.Kind == catalog.KindVirtual || !mentions(t, role) && !policiesName(t, role) {
			continue
		}
		next := t.Clone()
		withoutRole(next, role)
		if next.ACL, err = t.ACL.Without(roles, role, t.OwnerOID()); err != nil {
			return err
		}
		for i := range next.Columns {
			c := &next.Columns[i]
			if c.ACL, err = c.ACL.Without(roles, role, t.OwnerOID()); err != nil {
				return err
			}
			if len(c.ACL) == 0 {
				c.ACL = nil
			}
		}
		if err := r.update(ctx, t, next, false); err != nil {
			return err
		}
	}
	for _, d := range r.r.Types().All() {
		if !d.ACL.Mentions(role) {
			continue
		}
		list, err := d.ACL.Without(roles, role, d.OwnerOID())
		if err == nil {
			err = r.setTypeACL(ctx, d, list)
		}
		if err != nil {
			return err
		}
	}
	for _, d := range r.r.Routines().All() {
		if !d.ACL.Mentions(role) {
			continue
		}
		next := d.Clone()
		if next.ACL, err = d.ACL.Without(roles, role, d.OwnerOID()); err != nil {
			return err
		}
		if err := r.ch.PutRoutine(ctx, next); err != nil {
			return err
		}
	}
	for name, o := range r.access.Grants.Schemas {
		if !o.ACL.Mentions(role) {
			continue
		}
		list, err := o.ACL.Without(roles, role, o.OwnerOID())
		if err != nil {
			return err
		}
		if err := r.ch.SetSchemaOwned(ctx, name, catalog.Owned{Owner: o.Owner, ACL: list}); err != nil {
			return err
		}
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	for _, d := range r.r.Databases().All() {
		if !d.ACL.Mentions(role) {
			continue
		}
		next := d.Clone()
		if next.ACL, err = d.ACL.Without(roles, role, d.OwnerOID()); err != nil {
			return err
		}
		if err := r.putDatabase(ctx, next); err != nil {
			return err
		}
	}
	var defaults []catalog.DefaultGrant
	for _, d := range r.access.Grants.Defaults {
		if d.Role == role {
			continue
		}
		if d.ACL, err = d.ACL.Without(roles, role, d.Role); err != nil {
			return err
		}
		defaults = append(defaults, d)
	}
	if err := r.ch.SetDefaults(ctx, defaults); err != nil {
		return err
	}
	return r.revokeAllOfObjects(ctx, role)
}

// revokeAllOfObjects is revokeAll for objects without descriptors.
func (r *run) revokeAllOfObjects(ctx context.Context, role uint32) error {
	edit := r.access.Grants.EditObjects()
	for _, o := range r.access.Grants.Objects {
		if !o.ACL.Mentions(role) {
			continue
		}
		list, err := o.ACL.Without(r.access.Roles, role, catalog.BootstrapSuperuser)
		if err == nil {
			err = edit.Set(o.Kind, o.Name, list, nil)
		}
		if err != nil {
			return err
		}
	}
	if edit.Changed {
		if err := r.ch.SetObjectGrants(ctx, edit.Objects()); err != nil {
			return err
		}
	}
	return r.look(ctx)
}

// mentions reports whether a role is in the lists of a relation or its columns.
func mentions(t *catalog.TableDescriptor, role uint32) bool {
	return t.ACL.Mentions(role) || slices.ContainsFunc(t.Columns, func(c catalog.ColumnDescriptor) bool { return c.ACL.Mentions(role) })
}

// dependencies describes what keeps a role from being dropped: what it owns, and where it is in lists of privileges.
func (r *run) dependencies(ctx context.Context, role uint32) ([]string, error) {
	type line struct {
		oid  uint64
		text string
	}
	var lines []line
	add := func(oid uint64, format ...string) { lines = append(lines, line{oid, strings.Join(format, "")}) }
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.Kind == catalog.KindVirtual {
			continue
		}
		name := kindWord(t) + " " + r.displayed(ctx, t)
		switch {
		case t.OwnerOID() == role:
			add(t.ID, "owner of ", name)
		case t.ACL.Mentions(role):
			add(t.ID, "privileges for ", name)
		}
		for i := range t.Columns {
			if t.OwnerOID() != role && t.Columns[i].ACL.Mentions(role) {
				add(t.ID, "privileges for column ", t.Columns[i].Name, " of ", name)
			}
		}
		for i := range t.Policies {
			if p := &t.Policies[i]; slices.Contains(p.Roles, role) {
				add(uint64(p.OID), "target of ", r.policyText(ctx, policyUse{t, p}))
			}
		}
		for i := range t.Observers {
			if o := &t.Observers[i]; o.OwnerOID() == role {
				add(uint64(o.OID), "owner of observer ", o.Name, " on ", name)
			}
		}
	}
	for _, d := range r.extensionsOf([]uint32{role}) {
		add(d.ID, "owner of extension ", d.Name)
	}
	for _, d := range r.collationsOf([]uint32{role}) {
		add(d.ID, "owner of ", r.shownCollation(d))
	}
	operations := r.operationsOf([]uint32{role})
	for _, what := range operations.shown(r) {
		add(0, "owner of ", what)
	}
	for _, d := range r.r.Types().All() {
		switch name := builtin.TypeName(d.Type()); {
		case d.OwnerOID() == role:
			add(d.ID, "owner of type ", name)
		case d.ACL.Mentions(role):
			add(d.ID, "privileges for type ", name)
		}
	}
	for _, d := range r.r.Routines().All() {
		switch name := "function " + r.routineSignature(d); {
		case d.OwnerOID() == role:
			add(d.ID, "owner of ", name)
		case d.ACL.Mentions(role):
			add(d.ID, "privileges for ", name)
		}
	}
	for _, d := range r.textSearchWhere(func(d *catalog.TextSearchDescriptor) bool { return d.OwnerOID() == role }) {
		add(d.ID, "owner of ", d.Kind(), " ", r.textSearchName(d))
	}
	for name, o := range r.access.Grants.Schemas {
		switch {
		case o.OwnerOID() == role:
			add(r.schemaID(name), "owner of schema ", name)
		case o.ACL.Mentions(role):
			add(r.schemaID(name), "privileges for schema ", name)
		}
	}
	for _, d := range r.r.Databases().All() {
		switch {
		case d.OwnerOID() == role:
			add(0, "owner of database ", d.Name)
		case d.ACL.Mentions(role):
			add(0, "privileges for database ", d.Name)
		}
	}
	for _, d := range r.access.Grants.Defaults {
		what := "privileges for "
		if d.Role == role {
			what = "owner of "
		} else if !d.ACL.Mentions(role) {
			continue
		}
		text := what + "default privileges on new " + defaultKindWord(d.Kind) + " belonging to role " + r.roleName(d.Role)
		if d.Schema != 0 {
			text += " in schema " + r.schemaNamed(d.Schema)
		}
		add(uint64(d.OID), text)
	}
	for i := range r.access.Grants.Objects {
		if o := &r.access.Grants.Objects[i]; o.ACL.Mentions(role) {
			add(uint64(objectOID(o)), "privileges for ", objectWord(o))
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.oid, b.oid) })
	texts := make([]string, len(lines))
	for i := range lines {
		texts[i] = lines[i].text
	}
	for _, d := range r.r.Databases().All() {
		if d.OID == r.Catalog.OID() {
			continue
		}
		n, err := r.Catalog.Database(d.OID).References(ctx, r.txn, role)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			texts = append(texts, plural.Count(n, "object")+" in database "+d.Name)
		}
	}
	return texts, nil
}

// displayed returns the name of a relation, with its schema if the bare name finds another one or none.
func (r *run) displayed(ctx context.Context, t *catalog.TableDescriptor) string {
	if found, err := r.r.Relation(ctx, "", t.Name); err == nil && found != nil && found.ID == t.ID {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// describe names a relation as messages about dependencies do: with its kind, and its schema unless the search path finds it.
func (r *run) describe(ctx context.Context, t *catalog.TableDescriptor) string {
	name := ast.QuoteIdent(t.Name)
	if found, err := r.r.Relation(ctx, "", t.Name); err != nil || found == nil || found.ID != t.ID {
		name = ast.QuoteIdent(t.Schema) + "." + name
	}
	return kindWord(t) + " " + name
}

// schemaNamed returns the name of the schema with a number.
func (r *run) schemaNamed(id uint64) string {
	for name := range r.access.Grants.Schemas {
		if r.schemaID(name) == id {
			return name
		}
	}
	return ""
}
