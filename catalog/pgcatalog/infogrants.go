package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
)

// What information_schema shows of privileges and memberships.

// audience is whose privileges a view shows: those that an enabled role has granted or holds, and with everybody those of PUBLIC.
// Enabled are the roles whose privileges the reader has.
type audience bool

const (
	enabledRoles audience = false
	everybody    audience = true
)

// grantRow calls emit for each privilege in a list that the view shows.
func (s *scan) grantRow(to audience, list acl.List, owner uint32, within acl.Privileges, emit func(grant []col) error) error {
	a := s.access()
	for _, it := range list {
		public := it.Grantee == acl.Public
		if !a.Owns(it.Grantor) && (public && to == enabledRoles || !public && !a.Owns(it.Grantee)) {
			continue
		}
		grantee := text("PUBLIC")
		if !public {
			grantee = text(s.roleName(it.Grantee))
		}
		var err error
		(it.Rights.Plain() & within).Each(func(p acl.Privileges) {
			if err == nil {
				err = emit([]col{
					{"grantor", text(s.roleName(it.Grantor))}, {"grantee", grantee}, {"privilege_type", text(p.Name())},
					{"is_grantable", yesNo(it.Rights.Granted()&p != 0 || !public && s.Roles().HasPrivilegesOf(it.Grantee, owner))},
				})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func tablePrivilegeRows(s *scan) error { return s.tablePrivileges(everybody) }
func roleTableGrantRows(s *scan) error { return s.tablePrivileges(enabledRoles) }

func (s *scan) tablePrivileges(to audience) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind == catalog.KindSequence {
			return nil
		}
		return s.grantRow(to, t.EffectiveACL(), t.OwnerOID(), acl.Table.All(), func(grant []col) error {
			hierarchy := yesNo(grant[2].value.Text() == "SELECT")
			return s.emit(append(grant, col{"table_catalog", text(s.database())}, col{"table_schema", text(t.Schema)}, col{"table_name", text(t.Name)},
				col{"with_hierarchy", hierarchy})...)
		})
	})
}

func columnPrivilegeRows(s *scan) error { return s.columnPrivileges(everybody) }
func roleColumnGrantRows(s *scan) error { return s.columnPrivileges(enabledRoles) }

// columnPrivileges lists the privileges on columns, those of their tables included.
func (s *scan) columnPrivileges(to audience) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind == catalog.KindSequence {
			return nil
		}
		table := t.EffectiveACL()
		for i := range t.Columns {
			c := &t.Columns[i]
			if c.Hidden {
				continue
			}
			list := append(append(acl.List{}, table...), addedTo(table, c.ACL)...)
			err := s.grantRow(to, list, t.OwnerOID(), acl.Column.All(), func(grant []col) error {
				return s.emit(append(grant, col{"table_catalog", text(s.database())}, col{"table_schema", text(t.Schema)}, col{"table_name", text(t.Name)},
					col{"column_name", text(c.Name)})...)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addedTo returns what a column's list says that the table's does not.
func addedTo(table, column acl.List) acl.List {
	var added acl.List
	for _, it := range column {
		for _, on := range table {
			if on.Grantee == it.Grantee && on.Grantor == it.Grantor {
				same := on.Rights.Plain() & it.Rights.Plain() &^ (on.Rights.Granted() ^ it.Rights.Granted())
				it.Rights &^= same | same.Options()
			}
		}
		added = append(added, it)
	}
	return added
}

func usagePrivilegeRows(s *scan) error { return s.usagePrivileges(everybody) }
func roleUsageGrantRows(s *scan) error { return s.usagePrivileges(enabledRoles) }

// usagePrivileges lists the collations, which all roles may use, the privileges on domains, and what has been granted on sequences.
func (s *scan) usagePrivileges(to audience) error {
	object := func(schema, name, kind string) []col {
		return []col{{"object_catalog", text(s.database())}, {"object_schema", text(schema)}, {"object_name", text(name)}, {"object_type", text(kind)}}
	}
	if to == everybody || s.access().Owns(catalog.BootstrapSuperuser) {
		err := s.eachCollation(func(schema, name string, owner uint32) error {
			return s.emit(append(object(schema, name, "COLLATION"), col{"grantor", text(s.roleName(owner))},
				col{"grantee", text("PUBLIC")}, col{"privilege_type", text("USAGE")}, col{"is_grantable", yesNo(false)})...)
		})
		if err != nil {
			return err
		}
	}
	err := s.eachDomain(func(d *catalog.TypeDescriptor) error {
		return s.grantRow(to, d.EffectiveACL(), d.OwnerOID(), acl.Usage, func(grant []col) error {
			return s.emit(append(grant, object(d.Schema, d.Name, "DOMAIN")...)...)
		})
	})
	if err != nil {
		return err
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind != catalog.KindSequence { // As in PostgreSQL, the privileges that a sequence has by default are not listed.
			return nil
		}
		return s.grantRow(to, t.ACL, t.OwnerOID(), acl.Usage, func(grant []col) error {
			return s.emit(append(grant, object(t.Schema, t.Name, "SEQUENCE")...)...)
		})
	})
}

func enabledRoleRows(s *scan) error {
	for _, r := range s.Roles().All() {
		if !s.access().Owns(r.OID) {
			continue
		}
		if err := s.emit(col{"role_name", text(r.Name)}); err != nil {
			return err
		}
	}
	return nil
}

func applicableRoleRows(s *scan) error    { return s.applicableRoles(false) }
func administrableRoleRows(s *scan) error { return s.applicableRoles(true) }

// applicableRoles lists the memberships of enabled roles; with adminOnly, those with ADMIN OPTION. The owner of the database is a
// member of pg_database_owner.
func (s *scan) applicableRoles(adminOnly bool) error {
	row := func(member, role uint32, admin bool) error {
		if adminOnly && !admin {
			return nil
		}
		return s.emit(col{"grantee", text(s.roleName(member))}, col{"role_name", text(s.roleName(role))}, col{"is_grantable", yesNo(admin)})
	}
	for _, member := range s.Roles().All() {
		if !s.access().Owns(member.OID) {
			continue
		}
		for i := range member.MemberOf {
			if err := row(member.OID, member.MemberOf[i].Role, member.MemberOf[i].Admin); err != nil {
				return err
			}
		}
		if member.OID == s.Grants().Database.OwnerOID() {
			if err := row(member.OID, catalog.DatabaseOwnerRole, false); err != nil {
				return err
			}
		}
	}
	return nil
}
