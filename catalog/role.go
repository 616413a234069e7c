package catalog

import (
	"bytes"
	"cmp"
	"context"
	"slices"
)

// Role is a role as of one schema version. Immutable once published.
type Role struct {
	OID         uint32
	Name        string
	Superuser   bool `json:",omitempty"`
	Inherit     bool `json:",omitempty"` // has the privileges of the roles that it is a member of, unless a membership says otherwise
	CreateRole  bool `json:",omitempty"`
	CreateDB    bool `json:",omitempty"`
	Login       bool `json:",omitempty"`
	Replication bool `json:",omitempty"`
	BypassRLS   bool `json:",omitempty"`
	// ConnectionLimit bounds the role's sessions in one process; -1: nothing does. Superusers are not bound by it.
	ConnectionLimit int
	// Verifier is pg_authid.rolpassword, "" for none. It is a secret.
	Verifier string `json:",omitempty"`
	// ValidUntil is when the password expires, in microseconds since 2000-01-01 UTC (or types' infinities); nil: never.
	ValidUntil *int64        `json:",omitempty"`
	Settings   []RoleSetting `json:",omitempty"` // by database and name
	MemberOf   []Membership  `json:",omitempty"` // by role
	Comment    string        `json:",omitempty"`
}

// RoleSetting is a parameter that a session gets when the role connects. The later ones take precedence: of the role in the
// database, of the role, of all roles in the database, of all roles.
type RoleSetting struct {
	Database    string `json:",omitempty"` // "" for all databases
	Name, Value string
}

// Membership is a grant of a role to the member in whose MemberOf it is.
type Membership struct {
	Role    uint32
	Grantor uint32
	Admin   bool  `json:",omitempty"` // may grant the role to others
	Inherit *bool `json:",omitempty"` // has the role's privileges; nil: if the member's attribute Inherit is set
	NoSet   bool  `json:",omitempty"` // SET ROLE to the role is not permitted
}

// Roles with a meaning of their own. The OIDs are PostgreSQL's.
const (
	BootstrapSuperuser     = 10   // postgres, which always exists and owns what no role has created
	DatabaseOwnerRole      = 6171 // pg_database_owner, whose only member is the owner of the database
	ReadAllDataRole        = 6181
	WriteAllDataRole       = 6182
	MonitorRole            = 3373
	ReadAllSettingsRole    = 3374
	ReadAllStatsRole       = 3375
	StatScanTablesRole     = 3377
	SignalBackendRole      = 4200
	CheckpointRole         = 4544
	ReadServerFilesRole    = 4569
	WriteServerFilesRole   = 4570
	ExecuteServerProgRole  = 4571
	BootstrapSuperuserName = "postgres"

	// formerUser is the user whom the server proposed before it had roles.
	formerUser = "percodb"
	// everyone is the number of the record whose settings are those of all roles; no role has it.
	everyone = 0
)

// builtinRoles are the roles that exist unless a record of the store replaces them.
func builtinRoles() []*Role {
	all := []*Role{{
		OID: BootstrapSuperuser, Name: BootstrapSuperuserName, Superuser: true, Inherit: true, CreateRole: true, CreateDB: true, Login: true,
		Replication: true, BypassRLS: true, ConnectionLimit: -1,
	}}
	for _, r := range []struct {
		oid  uint32
		name string
	}{
		{DatabaseOwnerRole, "pg_database_owner"}, {ReadAllDataRole, "pg_read_all_data"}, {WriteAllDataRole, "pg_write_all_data"},
		{MonitorRole, "pg_monitor"}, {ReadAllSettingsRole, "pg_read_all_settings"}, {ReadAllStatsRole, "pg_read_all_stats"},
		{StatScanTablesRole, "pg_stat_scan_tables"}, {SignalBackendRole, "pg_signal_backend"}, {CheckpointRole, "pg_checkpoint"},
		{ReadServerFilesRole, "pg_read_server_files"}, {WriteServerFilesRole, "pg_write_server_files"},
		{ExecuteServerProgRole, "pg_execute_server_program"},
	} {
		role := &Role{OID: r.oid, Name: r.name, Inherit: true, ConnectionLimit: -1}
		if r.oid == MonitorRole {
			for _, granted := range []uint32{ReadAllSettingsRole, ReadAllStatsRole, StatScanTablesRole} {
				role.MemberOf = append(role.MemberOf, Membership{Role: granted, Grantor: BootstrapSuperuser})
			}
		}
		all = append(all, role)
	}
	return all
}

// Predefined reports whether the role is one of PostgreSQL's predefined ones, which cannot be altered or dropped.
func (r *Role) Predefined() bool { return r.OID != BootstrapSuperuser && r.OID < uint32(firstUserOID) }

// Clone returns a copy that may be changed.
func (r *Role) Clone() *Role {
	c := *r
	c.Settings, c.MemberOf = slices.Clone(r.Settings), slices.Clone(r.MemberOf)
	return &c
}

// Membership returns the grant of a role to r, nil if there is none.
func (r *Role) Membership(role uint32) *Membership {
	for i := range r.MemberOf {
		if r.MemberOf[i].Role == role {
			return &r.MemberOf[i]
		}
	}
	return nil
}

// Grant makes r a member of a role, or changes the options of its membership that are given. It returns false if nothing changes.
func (r *Role) Grant(role, grantor uint32, admin, inherit, set *bool) (changed bool) {
	m := r.Membership(role)
	if m == nil {
		at, _ := slices.BinarySearchFunc(r.MemberOf, role, func(m Membership, role uint32) int { return cmp.Compare(m.Role, role) })
		r.MemberOf = slices.Insert(r.MemberOf, at, Membership{Role: role, Grantor: grantor})
		m, changed = &r.MemberOf[at], true
	}
	before := *m
	if admin != nil {
		m.Admin = *admin
	}
	if inherit != nil && (m.Inherit == nil || *m.Inherit != *inherit) {
		m.Inherit = inherit
	}
	if set != nil {
		m.NoSet = !*set
	}
	return changed || *m != before
}

// Revoke ends r's membership in a role.
func (r *Role) Revoke(role uint32) {
	r.MemberOf = slices.DeleteFunc(r.MemberOf, func(m Membership) bool { return m.Role == role })
}

// AddSetting adds s to a list that has none of its database and name.
func AddSetting(list []RoleSetting, s RoleSetting) []RoleSetting {
	at, _ := slices.BinarySearchFunc(list, s, func(a, b RoleSetting) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Name, b.Name))
	})
	return slices.Insert(list, at, s)
}

// Roles are all roles as of one schema version. Immutable; safe for concurrent use. Schema versions between which no role has changed
// share one.
type Roles struct {
	byOID    map[uint32]*Role
	byName   map[string]*Role
	list     []*Role // by OID
	everyone []RoleSetting
	stored   []byte // what they were decoded from
	// databaseOwner is the only member of DatabaseOwnerRole.
	databaseOwner uint32
}

// NewRoles makes roles without a store: the predefined ones, the superuser postgres, and others.
func NewRoles(others ...*Role) *Roles {
	roles := newRoles()
	for _, r := range others {
		roles.byOID[r.OID] = r
	}
	roles.finish()
	return roles
}

// newRoles makes the roles that exist unless a record replaces them. Call finish when the others are added.
func newRoles() *Roles {
	roles := &Roles{byOID: map[uint32]*Role{}, byName: map[string]*Role{}, databaseOwner: BootstrapSuperuser}
	for _, r := range builtinRoles() {
		roles.byOID[r.OID] = r
	}
	return roles
}

// finish makes the lists once all roles are in byOID.
func (r *Roles) finish() {
	for _, role := range r.byOID {
		r.byName[role.Name] = role
		r.list = append(r.list, role)
	}
	slices.SortFunc(r.list, func(a, b *Role) int { return cmp.Compare(a.OID, b.OID) })
}

// loadRoles reads the roles through r. If their records are those of last, they are shared with it.
func loadRoles(ctx context.Context, r rowReader, last *schemaSnapshot, databaseOwner uint32) (*Roles, error) {
	var stored []byte
	var ends []int
	err := scan(ctx, r, wordRole, func(_, value []byte) error {
		stored = append(append(stored, value...), '\n')
		ends = append(ends, len(stored))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(last.roles.stored, stored) && last.roles.databaseOwner == databaseOwner {
		return last.roles, nil
	}
	roles, start := newRoles(), 0
	roles.stored, roles.databaseOwner = stored, databaseOwner
	for _, end := range ends {
		role := new(Role)
		if err := decode(wordSpan(wordRole).Start, stored[start:end], role); err != nil {
			return nil, err
		}
		start = end
		if role.OID == everyone {
			roles.everyone = role.Settings
		} else {
			roles.byOID[role.OID] = role
		}
	}
	roles.finish()
	return roles, nil
}

// All lists the roles by OID.
func (r *Roles) All() []*Role { return r.list }

// ByOID returns a role, nil if there is none.
func (r *Roles) ByOID(oid uint32) *Role { return r.byOID[oid] }

// ByName returns a role, nil if there is none.
func (r *Roles) ByName(name string) *Role { return r.byName[name] }

// Everyone returns the settings of all roles.
func (r *Roles) Everyone() []RoleSetting { return r.everyone }

// SettingsAt calls yield with the settings that a role gets when it connects to a database; a later one of a name replaces an earlier one.
func (r *Roles) SettingsAt(role *Role, database string, yield func(name, value string)) {
	pass := func(settings []RoleSetting, of string) {
		for _, s := range settings {
			if s.Database == of {
				yield(s.Name, s.Value)
			}
		}
	}
	pass(r.everyone, "")
	pass(r.everyone, database)
	pass(role.Settings, "")
	pass(role.Settings, database)
}

// through states which memberships count.
type through func(member *Role, m *Membership) bool

func anyMembership(*Role, *Membership) bool { return true }

func inherited(member *Role, m *Membership) bool {
	if m.Inherit != nil {
		return *m.Inherit
	}
	return member.Inherit
}

func settable(_ *Role, m *Membership) bool { return !m.NoSet }

// closure calls visit with member and the roles that it is a member of, directly and indirectly, until visit returns true, and reports
// whether it has.
func (r *Roles) closure(member uint32, counts through, visit func(*Role) bool) bool {
	first := r.byOID[member]
	if first == nil {
		return false
	}
	found := []*Role{first}
	for i := 0; i < len(found); i++ {
		role := found[i]
		if visit(role) {
			return true
		}
		add := func(oid uint32) {
			if next := r.byOID[oid]; next != nil && !slices.Contains(found, next) {
				found = append(found, next)
			}
		}
		for m := range role.MemberOf {
			if counts(role, &role.MemberOf[m]) {
				add(role.MemberOf[m].Role)
			}
		}
		if role.OID == r.databaseOwner {
			add(DatabaseOwnerRole)
		}
	}
	return false
}

func (r *Roles) reaches(member, role uint32, counts through) bool {
	return r.closure(member, counts, func(found *Role) bool { return found.OID == role })
}

func (r *Roles) superuser(oid uint32) bool {
	role := r.byOID[oid]
	return role != nil && role.Superuser
}

// IsMemberOf reports whether member is the role, or a direct or indirect member of it, or a superuser.
func (r *Roles) IsMemberOf(member, role uint32) bool {
	return r.superuser(member) || r.IsGrantedRole(member, role)
}

// IsGrantedRole is IsMemberOf for which superusers are roles like others.
func (r *Roles) IsGrantedRole(member, role uint32) bool {
	return r.reaches(member, role, anyMembership)
}

// HasPrivilegesOf reports whether member has the privileges of the role without SET ROLE.
func (r *Roles) HasPrivilegesOf(member, role uint32) bool {
	return member == role || r.superuser(member) || r.reaches(member, role, inherited)
}

// CanSetRole reports whether a session of member may SET ROLE to the role.
func (r *Roles) CanSetRole(member, role uint32) bool {
	return member == role || r.superuser(member) || r.reaches(member, role, settable)
}

// IsAdminOf reports whether member may grant the role to others. No role may grant itself.
func (r *Roles) IsAdminOf(member, role uint32) bool {
	return r.superuser(member) || member != role && r.closure(member, anyMembership, func(found *Role) bool {
		m := found.Membership(role)
		return m != nil && m.Admin
	})
}

// Present returns the schema that is in force, for decisions outside transactions.
func (c *Catalog) Present(ctx context.Context) (Resolver, error) {
	if p := c.settled(); p != nil && !c.opts.Shared {
		return p.schemaSnapshot, nil
	}
	txn, err := c.db.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer txn.Close()
	return c.at(ctx, txn)
}

// Roles returns the roles that are in force, for decisions outside transactions.
func (c *Catalog) Roles(ctx context.Context) (*Roles, error) {
	r, err := c.Present(ctx)
	if err != nil {
		return nil, err
	}
	return r.Roles(), nil
}

// PutRole adds or replaces a role. The OID of a new one must come from NewID; its name must be free in the schema that the
// transaction sees.
func (ch *Change) PutRole(ctx context.Context, role *Role) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.roles = true
	return ch.txn.Put(idKey(wordRole, uint64(role.OID)), encode(role))
}

// DropRole removes a role. Memberships in it are the caller's to remove.
func (ch *Change) DropRole(ctx context.Context, oid uint32) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.roles = true
	return ch.txn.Delete(idKey(wordRole, uint64(oid)))
}

// SetEveryone replaces the settings of all roles.
func (ch *Change) SetEveryone(ctx context.Context, settings []RoleSetting) error {
	return ch.PutRole(ctx, &Role{OID: everyone, Settings: settings})
}
