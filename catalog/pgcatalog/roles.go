package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// hiddenPassword is what views show in the place of a password.
const hiddenPassword = "********"

// roleName is the name of a role, "" if there is none.
func (s *scan) roleName(oid uint32) string {
	if role := s.Roles().ByOID(oid); role != nil {
		return role.Name
	}
	return ""
}

func validUntil(r *catalog.Role) types.Datum {
	if r.ValidUntil == nil {
		return types.Null
	}
	return types.Int(*r.ValidUntil)
}

// configuration lists a role's settings of a database, "" for all, as name=value; NULL if there are none.
func configuration(settings []catalog.RoleSetting, database string) types.Datum {
	var list []string
	for _, s := range settings {
		if s.Database == database {
			list = append(list, s.Name+"="+s.Value)
		}
	}
	if list == nil {
		return types.Null
	}
	return textArray(list)
}

// attributes are the columns that pg_authid and pg_roles share.
func attributes(r *catalog.Role) []col {
	return []col{
		{"oid", oid(r.OID)}, {"rolname", text(r.Name)}, {"rolsuper", boolean(r.Superuser)}, {"rolinherit", boolean(r.Inherit)},
		{"rolcreaterole", boolean(r.CreateRole)}, {"rolcreatedb", boolean(r.CreateDB)}, {"rolcanlogin", boolean(r.Login)},
		{"rolreplication", boolean(r.Replication)}, {"rolbypassrls", boolean(r.BypassRLS)}, {"rolconnlimit", num(r.ConnectionLimit)},
		{"rolvaliduntil", validUntil(r)},
	}
}

func authidRows(s *scan) error {
	for _, r := range s.Roles().All() {
		if err := s.emit(append(attributes(r), col{"rolpassword", optional(r.Verifier)})...); err != nil {
			return err
		}
	}
	return nil
}

func roleRows(s *scan) error {
	for _, r := range s.Roles().All() {
		err := s.emit(append(attributes(r), col{"rolpassword", text(hiddenPassword)}, col{"rolconfig", configuration(r.Settings, "")})...)
		if err != nil {
			return err
		}
	}
	return nil
}

// userRows serves pg_user, and shadowRows pg_shadow: the roles that may log in.
func userRows(s *scan) error {
	return s.eachUser(func(*catalog.Role) types.Datum { return text(hiddenPassword) })
}

func shadowRows(s *scan) error {
	return s.eachUser(func(r *catalog.Role) types.Datum { return optional(r.Verifier) })
}

func (s *scan) eachUser(password func(*catalog.Role) types.Datum) error {
	for _, r := range s.Roles().All() {
		if !r.Login {
			continue
		}
		err := s.emit(col{"usename", text(r.Name)}, col{"usesysid", oid(r.OID)}, col{"usecreatedb", boolean(r.CreateDB)},
			col{"usesuper", boolean(r.Superuser)}, col{"userepl", boolean(r.Replication)}, col{"usebypassrls", boolean(r.BypassRLS)},
			col{"passwd", password(r)}, col{"valuntil", validUntil(r)}, col{"useconfig", configuration(r.Settings, "")})
		if err != nil {
			return err
		}
	}
	return nil
}

// groupRows serves pg_group: the roles that may not log in.
func groupRows(s *scan) error {
	for _, r := range s.Roles().All() {
		if r.Login {
			continue
		}
		var members []int64
		for _, member := range s.Roles().All() {
			if member.Membership(r.OID) != nil {
				members = append(members, int64(member.OID))
			}
		}
		if err := s.emit(col{"groname", text(r.Name)}, col{"grosysid", oid(r.OID)}, col{"grolist", oids(members)}); err != nil {
			return err
		}
	}
	return nil
}

// memberRows serves pg_auth_members, which has the columns of PostgreSQL 15 and then the options of 16.
func memberRows(s *scan) error {
	for _, member := range s.Roles().All() {
		for i := range member.MemberOf {
			m := &member.MemberOf[i]
			inherit := member.Inherit
			if m.Inherit != nil {
				inherit = *m.Inherit
			}
			err := s.emit(col{"roleid", oid(m.Role)}, col{"member", oid(member.OID)}, col{"grantor", oid(m.Grantor)},
				col{"admin_option", boolean(m.Admin)}, col{"inherit_option", boolean(inherit)}, col{"set_option", boolean(!m.NoSet)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func roleSettingRows(s *scan) error {
	emit := func(role uint32, settings []catalog.RoleSetting) error {
		for _, database := range append([]*catalog.DatabaseDescriptor{{}}, s.Databases().All()...) {
			config := configuration(settings, database.Name)
			if config.IsNull() {
				continue
			}
			if err := s.emit(col{"setdatabase", oid(database.OID)}, col{"setrole", oid(role)}, col{"setconfig", config}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := emit(0, s.Roles().Everyone()); err != nil {
		return err
	}
	for _, r := range s.Roles().All() {
		if err := emit(r.OID, r.Settings); err != nil {
			return err
		}
	}
	return nil
}

// RoleName implements builtin.Catalog.
func (o *Objects) RoleName(id types.OID) (string, bool) {
	if role := o.roles().ByOID(uint32(id)); role != nil {
		return role.Name, true
	}
	return "", false
}

// RoleOID implements types.Names: name may be quoted.
func (o *Objects) RoleOID(name string) (types.OID, error) {
	bare, after, ok := takeName(strings.TrimSpace(name))
	if !ok || after != "" {
		return 0, pgerror.New(pgerror.InvalidName, "invalid name syntax")
	}
	return o.RoleNamed(bare)
}

// RoleNamed implements builtin.Catalog.
func (o *Objects) RoleNamed(name string) (types.OID, error) {
	role := o.roles().ByName(name)
	if role == nil {
		return 0, pgerror.New(pgerror.UndefinedObject, `role "%s" does not exist`, name)
	}
	return types.OID(role.OID), nil
}

// HasRole implements builtin.Catalog.
func (o *Objects) HasRole(member, role types.OID, privilege string) (bool, error) {
	roles, answer := o.roles(), false
	for _, word := range strings.Split(privilege, ",") {
		word = strings.ToUpper(strings.TrimSpace(word))
		kind, option, _ := strings.Cut(word, " WITH ")
		switch {
		case option != "" && option != "ADMIN OPTION" && option != "GRANT OPTION", kind != "USAGE" && kind != "MEMBER" && kind != "SET":
			return false, pgerror.New(pgerror.InvalidParameterValue, "unrecognized privilege type: %q", strings.TrimSpace(privilege))
		case option != "":
			answer = answer || roles.IsAdminOf(uint32(member), uint32(role))
		case kind == "USAGE":
			answer = answer || roles.HasPrivilegesOf(uint32(member), uint32(role))
		case kind == "SET":
			answer = answer || roles.CanSetRole(uint32(member), uint32(role))
		default:
			answer = answer || roles.IsMemberOf(uint32(member), uint32(role))
		}
	}
	return answer, nil
}

// roles returns the roles as the session sees them.
func (o *Objects) roles() *catalog.Roles {
	if r := o.Resolver(); r != nil {
		return r.Roles()
	}
	return catalog.NewRoles()
}

// QuotedRole implements types.Names.
func (o *Objects) QuotedRole(id types.OID) (string, bool) {
	name, ok := o.RoleName(id)
	return keyword.QuoteIdent(name), ok
}

// classPgAuthid is pg_authid, and classPgDatabase pg_database, as classoid.
const (
	classPgAuthid   = 1260
	classPgDatabase = 1262
)

// sharedDescriptionRows serves pg_shdescription: the comments of roles and databases.
func sharedDescriptionRows(s *scan) error {
	for _, r := range s.Roles().All() {
		if r.Comment == "" {
			continue
		}
		if err := s.emit(col{"objoid", oid(r.OID)}, col{"classoid", num(classPgAuthid)}, col{"description", text(r.Comment)}); err != nil {
			return err
		}
	}
	for _, d := range s.Databases().All() {
		if d.Comment == "" {
			continue
		}
		if err := s.emit(col{"objoid", oid(d.OID)}, col{"classoid", num(classPgDatabase)}, col{"description", text(d.Comment)}); err != nil {
			return err
		}
	}
	return nil
}
