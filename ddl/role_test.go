package ddl

import (
	"context"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
)

// roleStatements are statements by roles, with what PostgreSQL 15 answers; but that the two errors about pg_database_owner have no
// SQLSTATE there.
const roleStatements = `
# postgres
create role creator createrole login → CREATE ROLE
create role app login connection limit 5 valid until '2030-01-01 00:00:00+00' nosuperuser → CREATE ROLE
create user boss superuser password 'x' → CREATE ROLE
create group team role app admin creator → CREATE ROLE
create role repl replication → CREATE ROLE
create role byp bypassrls → CREATE ROLE
create role app → ERROR 42710: role "app" already exists
create role pg_x → ERROR 42939: role name "pg_x" is reserved / DETAIL: Role names starting with "pg_" are reserved.
create role public → ERROR 42939: role name "public" is reserved
create role "none" → ERROR 42939: role name "none" is reserved
create role current_user → ERROR 42939: CURRENT_USER cannot be used as a role name here
create role x connection limit -2 → ERROR 22023: invalid connection limit: -2
create role x superuser nosuperuser → ERROR 42601: conflicting or redundant options
create role x inherit inherit → ERROR 42601: conflicting or redundant options
create role x password '' → NOTICE 00000: empty string is not a valid password, clearing password / CREATE ROLE
create role y password 'SCRAM-SHA-256$4096:8FP7CJpoOXuWAg25Atq1lw==$6F3kZCqwv5b6wdeIn6WFhIGr+UvaMdZNczIdKmpByPk=:jnCEgukudmNvEOehAJawnYLzCg0td5FgkYtWj9+Bmy8=' → CREATE ROLE
create role z sysid 7 in role team → NOTICE 00000: SYSID can no longer be specified / CREATE ROLE
create role w in role nosuch → ERROR 42704: role "nosuch" does not exist
create role v valid until 'never' → ERROR 22007: invalid input syntax for type timestamp with time zone: "never"
alter role app createdb noinherit → ALTER ROLE
alter role app valid until 'infinity' → ALTER ROLE
alter role nobody login → ERROR 42704: role "nobody" does not exist
alter role pg_monitor login → ERROR 42939: role name "pg_monitor" is reserved / DETAIL: Cannot alter reserved roles.
alter role current_user createdb → ALTER ROLE
alter group team add user z, x → NOTICE 00000: role "z" is already a member of role "team" / ALTER ROLE
alter group team drop user z → ALTER ROLE
alter group team drop user z → NOTICE 01000: role "z" is not a member of role "team" / ALTER ROLE
alter role app rename to app2 → ALTER ROLE
alter role app2 rename to x → ERROR 42710: role "x" already exists
alter role app2 rename to pg_app → ERROR 42939: role name "pg_app" is reserved / DETAIL: Role names starting with "pg_" are reserved.
alter role pg_monitor rename to mon → ERROR 42939: role name "pg_monitor" is reserved / DETAIL: Role names starting with "pg_" are reserved.
alter role postgres rename to p → ERROR 0A000: session user cannot be renamed
alter role nobody rename to p → ERROR 42704: role "nobody" does not exist
alter role app2 rename to app → ALTER ROLE
grant team to z → GRANT ROLE
grant team to z → NOTICE 00000: role "z" is already a member of role "team" / GRANT ROLE
grant team to z with admin option → GRANT ROLE
grant z to team → ERROR 0LP01: role "z" is a member of role "team"
grant team to team → ERROR 0LP01: role "team" is a member of role "team"
grant pg_database_owner to z → ERROR 0LP01: role "pg_database_owner" cannot have explicit members
grant team to pg_database_owner → ERROR 0LP01: role "pg_database_owner" cannot be a member of any role
grant pg_read_all_data to z → GRANT ROLE
grant team (a) to z → ERROR 0LP01: column names cannot be included in GRANT/REVOKE ROLE
grant nosuch to z → ERROR 42704: role "nosuch" does not exist
grant team to nosuch → ERROR 42704: role "nosuch" does not exist
grant team to public → ERROR 42704: role "public" does not exist
grant team, y to z, x granted by boss → NOTICE 00000: role "z" is already a member of role "team" / NOTICE 00000: role "x" is already a member of role "team" / GRANT ROLE
revoke admin option for team from z → REVOKE ROLE
revoke team from z, x → REVOKE ROLE
revoke team from z → NOTICE 01000: role "z" is not a member of role "team" / REVOKE ROLE
drop role if exists nosuch, w → NOTICE 00000: role "nosuch" does not exist, skipping / NOTICE 00000: role "w" does not exist, skipping / DROP ROLE
drop role nosuch → ERROR 42704: role "nosuch" does not exist
drop role current_user → ERROR 22023: cannot use special role specifier in DROP ROLE
drop role postgres → ERROR 55006: current user cannot be dropped
drop role pg_monitor → ERROR 2BP01: cannot drop role pg_monitor because it is required by the database system
comment on role team is 'people' → COMMENT
comment on role nosuch is 'x' → ERROR 42704: role "nosuch" does not exist
# creator
create role su superuser → ERROR 42501: must be superuser to create superusers
create role re replication → ERROR 42501: must be superuser to create replication users
create role by bypassrls → ERROR 42501: must be superuser to create bypassrls users
create role made login in role team → CREATE ROLE
create role boss → ERROR 42710: role "boss" already exists
alter role boss nologin → ERROR 42501: must be superuser to alter superuser roles or change superuser attribute
alter role made superuser → ERROR 42501: must be superuser to alter superuser roles or change superuser attribute
alter role made nosuperuser → ERROR 42501: must be superuser to alter superuser roles or change superuser attribute
alter role repl login → ERROR 42501: must be superuser to alter replication roles or change replication attribute
alter role made noreplication → ERROR 42501: must be superuser to alter replication roles or change replication attribute
alter role made bypassrls → ERROR 42501: must be superuser to change bypassrls attribute
alter role made password 'p' connection limit 1 → ALTER ROLE
alter role boss set work_mem = '1MB' → ERROR 42501: must be superuser to alter superusers
alter role made set work_mem = '1MB' → ALTER ROLE
alter role all set work_mem = '1MB' → ERROR 42501: must be superuser to alter settings globally
grant boss to made → ERROR 42501: must be superuser to alter superusers
revoke boss from made → ERROR 42501: must be superuser to alter superusers
grant team to made granted by boss → ERROR 42501: must be superuser to set grantor
grant made to z → GRANT ROLE
alter role boss rename to b2 → ERROR 42501: must be superuser to rename superusers
alter role made rename to made2 → ALTER ROLE
alter role creator rename to c2 → ERROR 0A000: session user cannot be renamed
drop role boss → ERROR 42501: must be superuser to drop superusers
drop role creator → ERROR 55006: current user cannot be dropped
drop role made2 → DROP ROLE
comment on role boss is 'x' → ERROR 42501: must be superuser
comment on role z is 'x' → COMMENT
# app
create role q → ERROR 42501: permission denied to create role
alter role app password 'new' → ALTER ROLE
alter role app password 'new' login → ERROR 42501: permission denied
alter role app createdb → ERROR 42501: permission denied
alter role app set work_mem = '2MB' → ALTER ROLE
alter role z set work_mem = '2MB' → ERROR 42501: permission denied
alter role z password 'p' → ERROR 42501: permission denied
alter role z rename to zz → ERROR 42501: permission denied to rename role
drop role z → ERROR 42501: permission denied to drop role
grant team to z → ERROR 42501: must have admin option on role "team"
grant z to app → ERROR 42501: must have admin option on role "z"
comment on role z is 'x' → ERROR 42501: must have CREATEROLE privilege
# z
grant team to x → ERROR 42501: must have admin option on role "team"
`

// Goal: what roles may do to roles, and the errors. Method: statements executed by roles with different attributes, compared with
// PostgreSQL's answers.
func TestRoles(t *testing.T) {
	s := newServer(t, catalog.Options{})
	c := s.session()
	for line := range strings.Lines(roleStatements) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# "); ok {
			roles, err := s.catalog.Roles(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			c.user = roles.ByName(name).OID
			continue
		}
		text, want, _ := strings.Cut(line, " → ")
		if text == "" {
			continue
		}
		if got := strings.ReplaceAll(strings.TrimSpace(c.exec(text)), "\n", " / "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	if got := s.verify(); got != "" {
		t.Error(got)
	}
}

// Goal: a role that is dropped is a member of nothing, and nothing is a member of it; the grantor of memberships may be gone. Memberships
// have the options of PostgreSQL 16.
func TestDroppedRole(t *testing.T) {
	s := newServer(t, catalog.Options{})
	c := s.session()
	for _, text := range []string{
		"create role a", "create role b", "create role c", "create role g superuser", "grant a to b with admin true, inherit false, set false granted by g",
		"grant b to c", "revoke set option for b from c", "revoke inherit option for b from c", "drop role g",
	} {
		if got := c.exec(text); strings.Contains(got, "ERROR") {
			t.Fatalf("%s: %s", text, got)
		}
	}
	roles := func() *catalog.Roles {
		t.Helper()
		roles, err := s.catalog.Roles(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return roles
	}
	a, b := roles().ByName("a"), roles().ByName("b")
	m := b.Membership(a.OID)
	if m == nil || !m.Admin || m.Inherit == nil || *m.Inherit || !m.NoSet || roles().ByOID(m.Grantor) != nil {
		t.Fatalf("%+v", m)
	}
	m = roles().ByName("c").Membership(b.OID)
	if m == nil || m.Admin || m.Inherit == nil || *m.Inherit || !m.NoSet {
		t.Fatalf("%+v", m)
	}
	for text, want := range map[string]string{
		"grant a to b with admin true, admin false": "ERROR 42601: conflicting or redundant options\n",
		"grant a to b with nosuch true":             "ERROR 42601: unrecognized role option \"nosuch\"\n",
		"drop role b":                               "DROP ROLE\n",
	} {
		if got := c.exec(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if list := roles().ByName("c").MemberOf; len(list) != 0 {
		t.Errorf("memberships of a dropped role: %+v", list)
	}
}
