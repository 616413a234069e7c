package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// What system tables and functions show of owners and privileges.

// superuserTables are the system tables that PUBLIC may not read, as in PostgreSQL.
var superuserTables = map[string]bool{
	"pg_catalog.pg_authid": true, "pg_catalog.pg_shadow": true, "pg_catalog.pg_hba_file_rules": true, "pg_catalog.pg_file_settings": true,
	"pg_catalog.pg_statistic": true, "pg_catalog.pg_statistic_ext_data": true, "pg_catalog.pg_largeobject": true,
	"pg_catalog.pg_user_mapping": true, "pg_catalog.pg_subscription": true, "pg_catalog.pg_backend_memory_contexts": true,
	"pg_catalog.pg_shmem_allocations": true, "pg_catalog.pg_config": true, "pg_catalog.pg_ident_file_mappings": true,
	"pg_catalog.pg_replication_origin_status": true,
}

// restrict sets who may read a system table: all roles, unless it is one for superusers.
func restrict(t *catalog.TableDescriptor) {
	if superuserTables[t.Schema+"."+t.Name] {
		t.ACL = acl.Default(acl.Table, catalog.BootstrapSuperuser)
	}
}

// access is that of the role that reads the system table.
func (s *scan) access() *catalog.Access {
	if s.reader == nil {
		role := uint32(catalog.BootstrapSuperuser)
		if s.view != nil {
			role = s.view.Role()
		}
		s.reader = catalog.NewAccess(s.Resolver, role)
	}
	return s.reader
}

// shows reports whether information_schema shows a relation to the reader: its owner, and whoever has a privilege on it.
func (s *scan) shows(t *catalog.TableDescriptor) bool {
	a := s.access()
	if a.Owns(t.OwnerOID()) || a.Relation(t, t.ACLKind().All(), true) != 0 {
		return true
	}
	for i := range t.Columns {
		if a.Column(t, i, acl.Column.All()) != 0 {
			return true
		}
	}
	return false
}

// eachShown is each for the relations that the reader is shown.
func (s *scan) eachShown(f func(t *catalog.TableDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !s.shows(t) {
			return nil
		}
		return f(t)
	})
}

// monitors reports whether the reader has the privileges of a predefined role for monitoring.
func (s *scan) monitors(role uint32) bool { return s.access().Owns(role) }

// sees reports whether the reader is shown what belongs to a role: its own, that of roles whose privileges it has, and everything as a
// member of pg_monitor.
func (s *scan) sees(role uint32) bool {
	a := s.access()
	return a.Owns(role) || a.Owns(catalog.MonitorRole)
}

// roleName returns the name of a role, its number if it does not exist.
func roleName(roles *catalog.Roles, id uint32) string {
	if r := roles.ByOID(id); r != nil {
		return r.Name
	}
	return ""
}

// acl is a list of privileges as an array of its items' texts; NULL for the default one.
func (s *scan) acl(l acl.List) types.Datum { return aclArray(s.Roles(), l) }

func aclArray(roles *catalog.Roles, l acl.List) types.Datum {
	if l == nil {
		return types.Null
	}
	items := make([]string, len(l))
	for i, it := range l {
		items[i] = string(it.Append(nil, func(id uint32) string { return roleName(roles, id) }))
	}
	return textArray(items)
}

// relationACL is pg_class.relacl. System tables show that all roles may read them.
func (s *scan) relationACL(t *catalog.TableDescriptor) types.Datum {
	if t.Kind == catalog.KindVirtual {
		return s.acl(t.EffectiveACL())
	}
	return s.acl(t.ACL)
}

func defaultACLRows(s *scan) error {
	letters := map[acl.Kind]byte{acl.Table: 'r', acl.Sequence: 'S', acl.Function: 'f', acl.Type: 'T', acl.Schema: 'n'}
	for _, d := range s.Grants().Defaults {
		err := s.emit(col{"oid", oid(d.OID)}, col{"defaclrole", oid(d.Role)}, col{"defaclnamespace", num(int64(d.Schema))},
			col{"defaclobjtype", letter(letters[d.Kind])}, col{"defaclacl", s.acl(d.ACL)})
		if err != nil {
			return err
		}
	}
	return nil
}

// grantRow calls emit for each privilege in a list that the reader granted or holds: as columns of information_schema's views.
func (s *scan) grantRow(list acl.List, owner uint32, within acl.Privileges, emit func(grant []col) error) error {
	a := s.access()
	for _, it := range list {
		if it.Grantee != acl.Public && !a.Owns(it.Grantee) && !a.Owns(it.Grantor) {
			continue
		}
		grantee := text("PUBLIC")
		if it.Grantee != acl.Public {
			grantee = text(s.roleName(it.Grantee))
		}
		var err error
		(it.Rights.Plain() & within).Each(func(p acl.Privileges) {
			if err == nil {
				err = emit([]col{
					{"grantor", text(s.roleName(it.Grantor))}, {"grantee", grantee}, {"privilege_type", text(p.Name())},
					{"is_grantable", yesNo(it.Rights.Granted()&p != 0 || it.Grantee != acl.Public && s.Roles().HasPrivilegesOf(it.Grantee, owner))},
				})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func tablePrivilegeRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind == catalog.KindSequence {
			return nil
		}
		return s.grantRow(t.EffectiveACL(), t.OwnerOID(), acl.Table.All(), func(grant []col) error {
			hierarchy := yesNo(grant[2].value.Text() == "SELECT")
			return s.emit(append(grant, col{"table_catalog", text(s.database())}, col{"table_schema", text(t.Schema)}, col{"table_name", text(t.Name)},
				col{"with_hierarchy", hierarchy})...)
		})
	})
}

// columnPrivilegeRows lists the privileges on columns, those of their tables included.
func columnPrivilegeRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind == catalog.KindSequence {
			return nil
		}
		for i := range t.Columns {
			c := &t.Columns[i]
			if c.Hidden {
				continue
			}
			for _, list := range []acl.List{t.EffectiveACL(), c.ACL} {
				err := s.grantRow(list, t.OwnerOID(), acl.Column.All(), func(grant []col) error {
					return s.emit(append(grant, col{"table_catalog", text(s.database())}, col{"table_schema", text(t.Schema)}, col{"table_name", text(t.Name)},
						col{"column_name", text(c.Name)})...)
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// privilegeWords are the privileges that has_…_privilege takes for each kind of object.
var privilegeWords = map[string]acl.Privileges{
	"table": acl.Table.All(), "column": acl.Column.All(), "any_column": acl.Column.All(), "sequence": acl.Sequence.All(),
	"schema": acl.Schema.All(), "database": acl.Database.All(), "function": acl.Function.All(), "type": acl.Type.All(),
}

// parsePrivileges reads a list of privileges, each with or without WITH GRANT OPTION.
func parsePrivileges(object, list string) (p acl.Privileges, err error) {
	for _, word := range strings.Split(list, ",") {
		word = strings.ToUpper(strings.TrimSpace(word))
		name, option := strings.CutSuffix(word, " WITH GRANT OPTION")
		one := acl.Named(name)
		switch {
		case name == "RULE" && object == "table": // It has no meaning any more.
			continue
		case one&privilegeWords[object] == 0:
			return 0, pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: %q", strings.TrimSpace(word))
		case option:
			one = one.Options()
		}
		p |= one
	}
	return p, nil
}

// HasPrivilege implements builtin.Catalog.
func (o *Objects) HasPrivilege(q *builtin.PrivilegeQuery) (has, known bool, err error) {
	r := o.Resolver()
	if r == nil {
		return false, false, nil
	}
	role := o.Role()
	switch {
	case q.RoleName == "public" && q.NamesRole:
		role = acl.Public
	case q.NamesRole:
		found := r.Roles().ByName(q.RoleName)
		if found == nil {
			return false, false, pgerror.New(pgerror.UndefinedObject, "role %q does not exist", q.RoleName)
		}
		role = found.OID
	case q.GivesRole:
		role = uint32(q.RoleOID)
	}
	a := catalog.NewAccess(r, role)
	switch q.Object {
	case "schema":
		return o.hasSchemaPrivilege(r, a, q)
	case "database":
		return hasDatabasePrivilege(a, q, o.Database)
	case "function", "type":
		_, err := parsePrivileges(q.Object, q.Privileges)
		return err == nil && (!strings.HasPrefix(q.Name, "pg_reload_conf(") || a.Superuser()), true, err
	}
	return o.hasRelationPrivilege(r, a, q)
}

func (o *Objects) hasSchemaPrivilege(r catalog.Resolver, a *catalog.Access, q *builtin.PrivilegeQuery) (has, known bool, err error) {
	name := q.Name
	if !q.Named {
		quoted, ok := o.SchemaName(q.OID)
		if !ok {
			return false, false, nil
		}
		if _, name, err = SplitName(quoted); err != nil {
			return false, false, err
		}
	}
	if ok, err := r.SchemaExists(background(), name); err != nil || !ok {
		return false, false, orError(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name))
	}
	p, err := parsePrivileges("schema", q.Privileges)
	return a.Schema(name, p) != 0, true, err
}

func hasDatabasePrivilege(a *catalog.Access, q *builtin.PrivilegeQuery, database string) (has, known bool, err error) {
	switch {
	case q.Named && q.Name != database:
		return false, false, pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", q.Name)
	case !q.Named && q.OID != databaseOID:
		return false, false, nil
	}
	p, err := parsePrivileges("database", q.Privileges)
	return a.Database(p) != 0, true, err
}

// hasRelationPrivilege answers for tables, sequences and columns.
func (o *Objects) hasRelationPrivilege(r catalog.Resolver, a *catalog.Access, q *builtin.PrivilegeQuery) (has, known bool, err error) {
	id := q.OID
	if q.Named {
		if id, err = o.RelationOID(q.Name); err != nil {
			return false, false, err
		}
	}
	_, t := o.relation(id)
	if t == nil {
		return false, false, nil
	}
	if q.Object == "sequence" && t.Kind != catalog.KindSequence {
		if !q.Named {
			return false, false, nil
		}
		return false, false, pgerror.New(pgerror.WrongObjectType, "%q is not a sequence", q.Name)
	}
	ordinal := -1
	if q.Object == "column" {
		if q.ColumnNamed {
			if ordinal = t.ColumnNamed(q.Column); ordinal < 0 {
				return false, false, pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", q.Column, t.Name)
			}
		} else if ordinal = t.Ordinal(uint32(q.Attribute)); ordinal < 0 || t.Columns[ordinal].Hidden {
			return false, false, nil
		}
	}
	p, err := parsePrivileges(q.Object, q.Privileges)
	if err != nil {
		return false, false, err
	}
	if a.Relation(t, p, true) != 0 {
		return true, true, nil
	}
	switch q.Object {
	case "column":
		return a.Column(t, ordinal, p) != 0, true, nil
	case "any_column":
		for i := range t.Columns {
			if !t.Columns[i].Hidden && a.Column(t, i, p) != 0 {
				return true, true, nil
			}
		}
	}
	return false, true, nil
}

func orError(err error, other *pgerror.Error) error {
	if err != nil {
		return err
	}
	return other
}

// DefaultPrivileges implements builtin.Catalog: acldefault.
func (o *Objects) DefaultPrivileges(kind byte, owner types.OID) (types.Datum, error) {
	kinds := map[byte]acl.Kind{
		'r': acl.Table, 's': acl.Sequence, 'd': acl.Database, 'n': acl.Schema, 'f': acl.Function, 'T': acl.Type, 'l': acl.Language, 'c': acl.Column,
	}
	k, ok := kinds[kind]
	if !ok {
		return types.Null, pgerror.New(pgerror.InternalError, "unrecognized object type abbreviation: %c", kind)
	}
	r := o.Resolver()
	if r == nil {
		return types.Null, nil
	}
	return aclArray(r.Roles(), acl.Default(k, uint32(owner))), nil
}

// PrivilegeItem implements builtin.Catalog: makeaclitem.
func (o *Objects) PrivilegeItem(grantee, grantor types.OID, privileges string, grantable bool) (string, error) {
	p := acl.Named(strings.ToUpper(strings.TrimSpace(privileges)))
	if p == acl.None {
		return "", pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: %q", privileges)
	}
	if grantable {
		p |= p.Options()
	}
	name := func(uint32) string { return "" }
	if r := o.Resolver(); r != nil {
		name = func(id uint32) string { return roleName(r.Roles(), id) }
	}
	return string(acl.Item{Grantee: uint32(grantee), Grantor: uint32(grantor), Rights: p}.Append(nil, name)), nil
}
