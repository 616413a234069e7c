package catalog

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
)

// Owned is the owner and the privileges of an object.
type Owned struct {
	// Owner is a role's OID; 0, of what was there before there were roles, stands for BootstrapSuperuser.
	Owner uint32   `json:",omitempty"`
	ACL   acl.List `json:",omitzero"` // nil: acl.Default
}

// OwnerOID returns the OID of the owner.
func (o *Owned) OwnerOID() uint32 {
	if o.Owner == 0 {
		return BootstrapSuperuser
	}
	return o.Owner
}

// GivenTo returns the owner and the privileges of an object that another role becomes the owner of.
func (o *Owned) GivenTo(owner uint32) Owned {
	return Owned{Owner: owner, ACL: o.ACL.WithOwner(o.OwnerOID(), owner)}
}

// ACLKind returns the kind of object that the relation's privileges are of.
func (t *TableDescriptor) ACLKind() acl.Kind {
	if t.Kind == KindSequence {
		return acl.Sequence
	}
	return acl.Table
}

// EffectiveACL returns the relation's privileges, the default ones included. System tables without a list are readable for all.
func (t *TableDescriptor) EffectiveACL() acl.List {
	if t.Kind == KindVirtual && t.ACL == nil {
		return acl.List{
			{Grantee: BootstrapSuperuser, Grantor: BootstrapSuperuser, Rights: acl.Table.All()},
			{Grantee: acl.Public, Grantor: BootstrapSuperuser, Rights: acl.Select},
		}
	}
	return t.ACL.Or(t.ACLKind(), t.OwnerOID())
}

// WithPrivilegesOf returns a copy of the relation with the owner and privileges that now has; none on columns that now lacks.
func (t *TableDescriptor) WithPrivilegesOf(now *TableDescriptor) *TableDescriptor {
	c := t.Clone()
	c.Owned = now.Owned
	c.RowSecurity, c.ForceRowSecurity = now.RowSecurity, now.ForceRowSecurity
	for i := range c.Columns {
		c.Columns[i].ACL = nil
		if ord := now.Ordinal(c.Columns[i].ID); ord >= 0 {
			c.Columns[i].ACL = now.Columns[ord].ACL
		}
	}
	for i := range c.Observers {
		if o := now.ObserverByID(c.Observers[i].ID); o != nil {
			c.Observers[i].Owner = o.Owner
		}
	}
	return c
}

// Grants are the owners and privileges of what is no relation, as of one schema version. Immutable; safe for concurrent use.
type Grants struct {
	Database Owned
	Schemas  map[string]Owned // by name
	Defaults []DefaultGrant
	// ConnectionLimit is the database's, nil for none (DatabaseLimit).
	ConnectionLimit *int
	// Objects are the privileges on objects without descriptors that are not those by default. ObjectsVersion is another number each time
	// they have changed, 0 until then.
	Objects        []ObjectGrant
	ObjectsVersion uint64
	objects        map[objectName]acl.List // an index of Objects
}

// DefaultGrant is a row of pg_default_acl: the privileges on objects of a kind that a role creates.
type DefaultGrant struct {
	OID    uint32
	Role   uint32
	Schema uint64 `json:",omitempty"` // id; 0: everywhere. The privileges in a schema are in addition to those everywhere.
	Kind   acl.Kind
	ACL    acl.List
}

// grantsRecord is the value of a database's grantsKey. That of the first database has the objects that all databases share.
type grantsRecord struct {
	Defaults []DefaultGrant `json:",omitempty"`

	Objects        []ObjectGrant `json:",omitempty"`
	ObjectsVersion uint64        `json:",omitempty"`
}

// record returns what is stored of g.
func (g *Grants) record() grantsRecord {
	return grantsRecord{Defaults: g.Defaults, Objects: g.Objects, ObjectsVersion: g.ObjectsVersion}
}

// Default returns the entry for a role and a kind in a schema (0: everywhere), nil if there is none.
func (g *Grants) Default(role uint32, kind acl.Kind, schema uint64) *DefaultGrant {
	for i := range g.Defaults {
		if d := &g.Defaults[i]; d.Role == role && d.Kind == kind && d.Schema == schema {
			return d
		}
	}
	return nil
}

// Initial returns the privileges on an object of the kind that the role creates in a schema (0: it is in none); nil for acl.Default.
func (g *Grants) Initial(roles *Roles, role uint32, kind acl.Kind, schema uint64) (acl.List, error) {
	everywhere, here := g.Default(role, kind, 0), g.Default(role, kind, schema)
	if schema == 0 {
		here = nil
	}
	if everywhere == nil && here == nil {
		return nil, nil
	}
	list := acl.Default(kind, role)
	if everywhere != nil {
		list = everywhere.ACL
	}
	if here != nil {
		var err error
		if list, err = list.Merge(roles, here.ACL, role); err != nil {
			return nil, err
		}
	}
	if list.Equal(acl.Default(kind, role)) {
		return nil, nil
	}
	return list.Sorted(), nil
}

// NewGrants returns the owners and privileges of a new store with the schemas that every store has.
func NewGrants() *Grants {
	g := &Grants{Schemas: map[string]Owned{}}
	for _, name := range []string{PublicSchema, SystemSchema, InformationSchema, OwnSchema} {
		g.addSchema(name, Owned{})
	}
	return g
}

// addSchema adds a schema. One that was not created by a role has PostgreSQL's owner and privileges.
func (g *Grants) addSchema(name string, o Owned) {
	if o.Owner == 0 {
		o.Owner = BootstrapSuperuser
		switch {
		case name == PublicSchema:
			o.Owner = DatabaseOwnerRole
			fallthrough
		case name == SystemSchema || name == InformationSchema || name == OwnSchema:
			if o.ACL == nil {
				o.ACL = acl.List{{Grantee: o.Owner, Grantor: o.Owner, Rights: acl.Schema.All()}, {Grantee: acl.Public, Grantor: o.Owner, Rights: acl.Usage}}
			}
		}
	}
	g.Schemas[name] = o
}

// loadGrants reads the owners and privileges of what is no relation of a database.
func loadGrants(ctx context.Context, r rowReader, d *DatabaseDescriptor, schemas map[string]schemaRecord) (*Grants, error) {
	g := &Grants{Schemas: make(map[string]Owned, len(schemas))}
	for name := range schemas {
		g.addSchema(name, schemas[name].Owned)
	}
	own, err := readGrants(ctx, r, spaceOf(d.OID))
	if err != nil {
		return nil, err
	}
	g.Database, g.ConnectionLimit = d.Owned, d.ConnectionLimit
	g.Defaults, g.Objects, g.ObjectsVersion = own.Defaults, own.Objects, own.ObjectsVersion
	if d.OID != FirstDatabase {
		shared, err := readGrants(ctx, r, spaceOf(FirstDatabase))
		if err != nil {
			return nil, err
		}
		for _, o := range shared.Objects {
			if o.shared() {
				g.Objects = append(g.Objects, o)
			}
		}
		g.ObjectsVersion += shared.ObjectsVersion // Each only grows.
	}
	if len(g.Objects) > 0 {
		g.indexObjects()
	}
	return g, nil
}

func readGrants(ctx context.Context, r rowReader, of space) (rec grantsRecord, err error) {
	value, err := r.Get(ctx, of.grantsKey())
	if err == nil && value != nil {
		err = decode(of.grantsKey(), value, &rec)
	}
	return rec, err
}

// SetSchemaOwned replaces the owner and the privileges of a schema, which must exist.
func (ch *Change) SetSchemaOwned(ctx context.Context, name string, o Owned) error {
	return ch.changeSchema(ctx, name, func(rec *schemaRecord) { rec.Owned = o })
}

// changeSchema changes the record of a schema.
func (ch *Change) changeSchema(ctx context.Context, name string, change func(*schemaRecord)) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.schema(name)
	key := ch.space().schemaKey(name)
	value, err := ch.txn.Get(ctx, key)
	if err != nil {
		return err
	}
	var rec schemaRecord
	if err := decode(key, value, &rec); err != nil {
		return err
	}
	change(&rec)
	return ch.txn.Put(key, encode(rec))
}

// SetDefaults replaces the default privileges.
func (ch *Change) SetDefaults(ctx context.Context, defaults []DefaultGrant) error {
	return ch.changeGrants(ctx, ch.space(), func(rec *grantsRecord) { rec.Defaults = defaults })
}

// DatabaseLimit returns how many sessions the database has at most in one process, -1 for no limit. Superusers are not bound by it.
func (g *Grants) DatabaseLimit() int { return limitOf(g.ConnectionLimit) }

// changeGrants changes the record of the owners and privileges of what has no descriptor.
func (ch *Change) changeGrants(ctx context.Context, of space, change func(*grantsRecord)) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.grants = true
	rec, err := readGrants(ctx, ch.txn, of)
	if err != nil {
		return err
	}
	change(&rec)
	return ch.txn.Put(of.grantsKey(), encode(rec))
}

// Superuser reports whether the role may do everything.
func (r *Roles) Superuser(role uint32) bool { return r.superuser(role) }

// PrivilegesOf lists the roles whose privileges a role has by membership, itself first. Superusers are members like others.
func (r *Roles) PrivilegesOf(role uint32) []uint32 {
	var all []uint32
	r.closure(role, inherited, func(found *Role) bool {
		all = append(all, found.OID)
		return false
	})
	if len(all) == 0 {
		all = append(all, role) // It has been dropped.
	}
	return all
}

// Access answers what one role may do, as of one schema version.
type Access struct {
	Roles  *Roles
	Grants *Grants
	Role   uint32
}

// NewAccess returns the access of a role to the objects of r.
func NewAccess(r Resolver, role uint32) *Access {
	return &Access{Roles: r.Roles(), Grants: r.Grants(), Role: role}
}

// As returns the access of another role.
func (a *Access) As(role uint32) *Access {
	return &Access{Roles: a.Roles, Grants: a.Grants, Role: role}
}

// Superuser reports whether the role may do everything.
func (a *Access) Superuser() bool { return a.Roles.superuser(a.Role) }

// Owns reports whether the role has the privileges of an owner.
func (a *Access) Owns(owner uint32) bool { return a.Roles.HasPrivilegesOf(a.Role, owner) }

// has is acl.List.Mask for the role.
func (a *Access) has(list acl.List, owner uint32, want acl.Privileges, anyOf bool) acl.Privileges {
	if a.Superuser() {
		return want
	}
	return list.Mask(a.Roles, a.Role, owner, want, anyOf)
}

// inherits reports whether the role has the privileges of a predefined role.
func (a *Access) inherits(role uint32) bool { return a.Roles.HasPrivilegesOf(a.Role, role) }

// Relation returns which of the privileges the role has on a relation as a whole: all if they are want, with anyOf at least one if it
// has any.
func (a *Access) Relation(t *TableDescriptor, want acl.Privileges, anyOf bool) acl.Privileges {
	have := a.has(t.EffectiveACL(), t.OwnerOID(), want, anyOf)
	if want&^have&acl.Select != 0 && a.inherits(ReadAllDataRole) {
		have |= acl.Select
	}
	const writes = acl.Insert | acl.Update | acl.Delete
	if missing := want &^ have & writes; missing != 0 && t.Kind != KindVirtual && a.inherits(WriteAllDataRole) {
		have |= missing
	}
	return have
}

// Column returns which of the privileges the role has on a column by the column's own list.
func (a *Access) Column(t *TableDescriptor, ordinal int, want acl.Privileges) acl.Privileges {
	list := t.Columns[ordinal].ACL
	if len(list) == 0 && !a.Superuser() {
		return acl.None
	}
	return a.has(list, t.OwnerOID(), want, false)
}

// AnyColumn reports whether the role has a privilege on a column of the relation, by the columns' own lists.
func (a *Access) AnyColumn(t *TableDescriptor, want acl.Privileges) bool {
	for i := range t.Columns {
		if !t.Columns[i].Hidden && a.Column(t, i, want) == want {
			return true
		}
	}
	return false
}

// SeesKey reports whether the role may read all columns of an index's key in every row, so that messages may contain its values.
func (a *Access) SeesKey(t *TableDescriptor, ix *IndexDescriptor) bool {
	return a.RowSecurity(t) != RowSecurityApplies && a.ReadsKey(t, ix)
}

// ReadsKey reports whether the role may read all columns of an index's key, in the rows that policies let it see.
func (a *Access) ReadsKey(t *TableDescriptor, ix *IndexDescriptor) bool {
	if a.Relation(t, acl.Select, false) != 0 {
		return true
	}
	for _, id := range ix.ElementIDs() {
		if ord := t.Ordinal(id); ord < 0 || ord >= len(t.Columns) || a.Column(t, ord, acl.Select) == 0 {
			return false
		}
	}
	return true
}

// Schema returns which of the privileges the role has on a schema.
func (a *Access) Schema(name string, want acl.Privileges) acl.Privileges {
	if IsTemporary(name) { // Only the session's own can be named.
		return want
	}
	o := a.Grants.Schemas[name]
	have := a.has(o.ACL.Or(acl.Schema, o.OwnerOID()), o.OwnerOID(), want, false)
	if want&^have&acl.Usage != 0 && (a.inherits(ReadAllDataRole) || a.inherits(WriteAllDataRole)) {
		have |= acl.Usage
	}
	return have
}

// OwnsSchema reports whether the role has the privileges of a schema's owner.
func (a *Access) OwnsSchema(name string) bool {
	o := a.Grants.Schemas[name]
	return a.Owns(o.OwnerOID())
}

// Database returns which of the privileges the role has on the database.
func (a *Access) Database(want acl.Privileges) acl.Privileges {
	o := &a.Grants.Database
	return a.has(o.ACL.Or(acl.Database, o.OwnerOID()), o.OwnerOID(), want, false)
}

// OfDatabase returns which of the privileges the role has on a database, which may be another one.
func (a *Access) OfDatabase(d *DatabaseDescriptor, want acl.Privileges) acl.Privileges {
	return a.has(d.ACL.Or(acl.Database, d.OwnerOID()), d.OwnerOID(), want, false)
}

// Path returns the schemas of a search path whose objects the role may name. It is path itself if those are all.
func (a *Access) Path(path []string) []string {
	usable := func(schema string) bool {
		_, exists := a.Grants.Schemas[schema]
		return !exists || a.Schema(schema, acl.Usage) != 0
	}
	if a.Superuser() || !slices.ContainsFunc(path, func(s string) bool { return !usable(s) }) {
		return path
	}
	return slices.DeleteFunc(slices.Clone(path), func(s string) bool { return !usable(s) })
}
