package pgcatalog

import (
	"slices"
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
	"pg_catalog.pg_replication_origin_status": true, "information_schema.transforms": true, "information_schema.sql_parts": true, "information_schema._pg_foreign_data_wrappers": true,
	"information_schema._pg_foreign_servers": true, "information_schema._pg_foreign_tables": true,
	"information_schema._pg_foreign_table_columns": true, "information_schema._pg_user_mappings": true,
}

// restrict sets who may read a system table: all roles, unless it is one for superusers.
func restrict(t *catalog.TableDescriptor) {
	if superuserTables[t.Schema+"."+t.Name] {
		t.ACL = acl.Default(acl.Table, catalog.BootstrapSuperuser)
	}
	if t.Name == "pg_subscription" { // Everything but connection strings, which may contain passwords.
		for i := range t.Columns {
			if c := &t.Columns[i]; c.Name != "subconninfo" && !c.Hidden {
				c.ACL = acl.List{{Grantee: catalog.PublicRole, Grantor: catalog.BootstrapSuperuser, Rights: acl.Select}}
			}
		}
	}
}

// access is that of the role that reads the system table, by the roles and privileges in force.
func (s *scan) access() *catalog.Access { return s.reader }

// reads determines the access of the role that reads the system table.
func (s *scan) reads() error {
	role, schema := uint32(catalog.BootstrapSuperuser), s.Resolver
	if s.view != nil {
		role = s.view.Role()
		var err error
		if schema, err = s.view.InForce(s.ctx, schema); err != nil {
			return err
		}
	}
	s.reader = catalog.NewAccess(schema, role)
	return nil
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

// showsColumn reports whether information_schema shows a column to the reader: the owner of its relation, and whoever has a privilege on it.
func (s *scan) showsColumn(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) bool {
	a := s.access()
	if a.Owns(t.OwnerOID()) || a.Relation(t, acl.Column.All(), true) != 0 {
		return true
	}
	return len(c.ACL) > 0 && c.ACL.Mask(a.Roles, a.Role, t.OwnerOID(), acl.Column.All(), true) != 0
}

// changes reports whether information_schema shows the constraints of a table to the reader: its owner, and whoever has a privilege other
// than SELECT on it or on one of its columns.
func (s *scan) changes(t *catalog.TableDescriptor) bool {
	a := s.access()
	if a.Owns(t.OwnerOID()) || a.Relation(t, acl.Table.All()&^acl.Select, true) != 0 {
		return true
	}
	return slices.ContainsFunc(t.Columns, func(c catalog.ColumnDescriptor) bool {
		return c.ACL.Mask(a.Roles, a.Role, t.OwnerOID(), acl.Column.All()&^acl.Select, true) != 0
	})
}

// eachShown is each for the relations that the reader is shown.
func (s *scan) eachShown(f func(t *catalog.TableDescriptor) error) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !s.shows(t) || t.Materialized { // The standard has no materialized views.
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

// relationACL is pg_class.relacl. System tables show that all roles may read them.
func (s *scan) relationACL(t *catalog.TableDescriptor) types.Datum {
	if t.Kind == catalog.KindVirtual {
		return types.ACL(t.EffectiveACL())
	}
	return types.ACL(t.ACL)
}

func defaultACLRows(s *scan) error {
	letters := map[acl.Kind]byte{acl.Table: 'r', acl.Sequence: 'S', acl.Function: 'f', acl.Type: 'T', acl.Schema: 'n'}
	for _, d := range s.Grants().Defaults {
		err := s.emit(col{"oid", oid(d.OID)}, col{"defaclrole", oid(d.Role)}, col{"defaclnamespace", num(int64(d.Schema))},
			col{"defaclobjtype", letter(letters[d.Kind])}, col{"defaclacl", types.ACL(d.ACL)})
		if err != nil {
			return err
		}
	}
	return nil
}

// privilegeWords are the privileges that has_…_privilege takes for each kind of object.
var privilegeWords = map[string]acl.Privileges{
	"table": acl.Table.All(), "column": acl.Column.All(), "any_column": acl.Column.All(), "sequence": acl.Sequence.All(),
	"schema": acl.Schema.All(), "database": acl.Database.All(), "function": acl.Function.All(), "type": acl.Type.All(),
	"language": acl.Language.All(), "tablespace": acl.Tablespace.All(), "parameter": acl.Parameter.All(),
	"foreign_data_wrapper": acl.ForeignDataWrapper.All(), "server": acl.ForeignServer.All(),
}

// parsePrivileges reads a list of privileges, each with or without WITH GRANT OPTION.
func parsePrivileges(object, list string) (p acl.Privileges, err error) {
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		name, option := strings.CutSuffix(strings.ToUpper(word), " WITH GRANT OPTION")
		one := acl.Named(name)
		switch {
		case name == "RULE" && object == "table": // It has no meaning any more.
			continue
		case one&privilegeWords[object] == 0:
			return 0, pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: \"%s\"", word)
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
		return hasDatabasePrivilege(r, a, q)
	case "type":
		return o.hasTypePrivilege(r, a, q)
	case "function":
		if d, err := o.routineAsked(r, q); d != nil || err != nil {
			return hasRoutinePrivilege(a, d, q, err)
		}
	}
	if kind := fixedKinds[q.Object]; kind != 0 {
		return o.hasObjectPrivilege(a, kind, q)
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

func hasDatabasePrivilege(r catalog.Resolver, a *catalog.Access, q *builtin.PrivilegeQuery) (has, known bool, err error) {
	d := r.Databases().ByOID(uint32(q.OID))
	if q.Named {
		if d = r.Databases().Named(q.Name); d == nil {
			return false, false, pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", q.Name)
		}
	}
	if d == nil {
		return false, false, nil
	}
	p, err := parsePrivileges("database", q.Privileges)
	return a.OfDatabase(d, p) != 0, true, err
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
