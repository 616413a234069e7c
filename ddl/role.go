package ddl

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/percodb/percodb/auth/verifier"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Who may change which roles is as in PostgreSQL 15: a role with CREATEROLE may change every role that is no superuser.

func (r *run) roles() *catalog.Roles { return r.r.Roles() }

// superuser reports whether the current role is one.
func (r *run) superuser() bool {
	role := r.roles().ByOID(r.User)
	return role != nil && role.Superuser
}

// mayCreateRoles reports whether the current role is a superuser or has CREATEROLE.
func (r *run) mayCreateRoles() bool {
	role := r.roles().ByOID(r.User)
	return role != nil && (role.Superuser || role.CreateRole)
}

// findRole finds the role that a statement names; PUBLIC is none.
func (r *run) findRole(name ast.Role) (*catalog.Role, error) {
	var role *catalog.Role
	switch {
	case name.Keyword && name.Name == "SESSION_USER":
		role = r.roles().ByOID(r.SessionUser)
	case name.Keyword:
		role = r.roles().ByOID(r.User)
	default:
		role = r.roles().ByName(name.Name)
	}
	if role == nil {
		return nil, undefinedRole(name.Name)
	}
	return role, nil
}

func (r *run) findRoles(names []ast.Role) ([]*catalog.Role, error) {
	var list []*catalog.Role
	for _, name := range names {
		role, err := r.findRole(name)
		if err != nil {
			return nil, err
		}
		list = append(list, role)
	}
	return list, nil
}

func undefinedRole(name string) *pgerror.Error {
	return pgerror.New(pgerror.UndefinedObject, `role "%s" does not exist`, name)
}

func denied(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.InsufficientPrivilege, format, args...)
}

// reservedName reports whether names like this one are PostgreSQL's own.
func reservedName(name string) bool { return strings.HasPrefix(name, "pg_") }

const reservedDetail = `Role names starting with "pg_" are reserved.`

func reservedRole(name, detail string) *pgerror.Error {
	return pgerror.New(pgerror.ReservedName, `role name "%s" is reserved`, name).WithDetail("%s", detail)
}

// requireNewRole checks that a role can be given a name.
func (r *run) requireNewRole(name string) error {
	switch {
	case reservedName(name):
		return reservedRole(name, reservedDetail)
	case r.roles().ByName(name) != nil:
		return pgerror.New(pgerror.DuplicateObject, `role "%s" already exists`, name)
	}
	return nil
}

// putRole writes a role and reads the schema again.
func (r *run) putRole(ctx context.Context, role *catalog.Role) error {
	if err := r.ch.PutRole(ctx, role); err != nil {
		return err
	}
	return r.look(ctx)
}

func (r *run) createRole(ctx context.Context, n *ast.CreateRole) error {
	if n.Name.Keyword || n.Name.Name == "public" {
		name := strings.ToUpper(n.Name.Name)
		if n.Name.Keyword {
			return pgerror.New(pgerror.ReservedName, "%s cannot be used as a role name here", name).At(n.Name.Position())
		}
		return pgerror.New(pgerror.ReservedName, `role name "%s" is reserved`, n.Name.Name).At(n.Name.Position())
	}
	role := &catalog.Role{Name: n.Name.Name, Inherit: true, Login: n.Kind == "USER", ConnectionLimit: -1}
	o, err := r.roleOptions(role, n.Options)
	if err != nil {
		return err
	}
	if !r.superuser() {
		switch {
		case role.Superuser:
			return denied("must be superuser to create superusers")
		case role.Replication:
			return denied("must be superuser to create replication users")
		case role.BypassRLS:
			return denied("must be superuser to create bypassrls users")
		case !r.mayCreateRoles():
			return denied("permission denied to create role")
		}
	}
	if err := r.requireNewRole(role.Name); err != nil {
		return err
	}
	if err := r.setPassword(role, o); err != nil {
		return err
	}
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	role.OID = uint32(id)
	if err := r.putRole(ctx, role); err != nil {
		return err
	}
	by := ast.Role{Name: "CURRENT_ROLE", Keyword: true}
	for _, in := range o.in {
		g := membershipChange{role: in, members: []ast.Role{n.Name}, grantor: by}
		if err := r.grantMembership(ctx, g); err != nil {
			return err
		}
	}
	if err := r.grantMembership(ctx, membershipChange{role: n.Name, members: o.admins, grantor: by, admin: new(true)}); err != nil {
		return err
	}
	return r.grantMembership(ctx, membershipChange{role: n.Name, members: o.members, grantor: by})
}

// roleOptions are those of CREATE and ALTER ROLE that are no attributes.
type roleOptions struct {
	given       map[string]bool
	password    *string // nil: none is given, or NULL
	in          []ast.Role
	admins      []ast.Role
	members     []ast.Role
	hasPassword bool
}

// roleOptions applies attributes to role and returns the other options.
func (r *run) roleOptions(role *catalog.Role, list []ast.RoleOption) (o roleOptions, err error) {
	o.given = map[string]bool{}
	for i := range list {
		item := &list[i]
		name := item.Name
		if flag, value := roleFlag(role, name); flag != nil {
			*flag = value
			name = strings.TrimPrefix(name, "NO")
		}
		if name == "USER" {
			name = "ROLE"
		}
		if o.given[name] {
			return o, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(item.Position())
		}
		o.given[name] = true
		switch name {
		case "PASSWORD":
			o.password, o.hasPassword = item.Value, true
		case "CONNECTION LIMIT":
			limit, err := strconv.ParseInt(item.Number, 10, 32)
			if err != nil || limit < -1 {
				return o, pgerror.New(pgerror.InvalidParameterValue, "invalid connection limit: %s", item.Number)
			}
			role.ConnectionLimit = int(limit)
		case "VALID UNTIL":
			until, err := types.ParseText(types.TTimestamptz, *item.Value, &r.Env.Format)
			if err != nil {
				return o, err
			}
			micros := until.Int()
			role.ValidUntil = &micros
		case "SYSID":
			r.noticeAbsent("SYSID can no longer be specified")
		case "IN ROLE":
			o.in = item.Roles
		case "ADMIN":
			o.admins = item.Roles
		case "ROLE":
			o.members = item.Roles
		}
	}
	return o, nil
}

// roleFlag returns the attribute that an option sets, and its value; nil if the option is another.
func roleFlag(role *catalog.Role, option string) (flag *bool, value bool) {
	name, negated := strings.CutPrefix(option, "NO")
	switch name {
	case "SUPERUSER":
		flag = &role.Superuser
	case "INHERIT":
		flag = &role.Inherit
	case "CREATEROLE":
		flag = &role.CreateRole
	case "CREATEDB":
		flag = &role.CreateDB
	case "LOGIN":
		flag = &role.Login
	case "REPLICATION":
		flag = &role.Replication
	case "BYPASSRLS":
		flag = &role.BypassRLS
	}
	return flag, !negated
}

// setPassword stores the verifier of the password that is given.
func (r *run) setPassword(role *catalog.Role, o roleOptions) error {
	if !o.hasPassword {
		return nil
	}
	role.Verifier = ""
	if o.password == nil {
		return nil
	}
	stored, err := verifier.Stored(*o.password)
	switch {
	case errors.Is(err, verifier.ErrEmpty):
		r.noticeAbsent("empty string is not a valid password, clearing password")
		return nil
	case err != nil:
		return pgerror.New(pgerror.InvalidParameterValue, "%v", err).WithHint("Make a verifier with fewer, such as by psql's \\password.")
	}
	if verifier.IsMD5(stored) {
		r.Report.Notice(pgerror.New(pgerror.Warning, "an MD5 hash permits no login").
			WithHint("Set a password, or a SCRAM-SHA-256 verifier."))
	}
	role.Verifier = stored
	return nil
}

// requireAlterable checks that a role's name is not that of a predefined one.
func (r *run) requireAlterable(name ast.Role) (*catalog.Role, error) {
	if !name.Keyword && reservedName(name.Name) {
		return nil, reservedRole(name.Name, "Cannot alter reserved roles.")
	}
	return r.findRole(name)
}

func (r *run) alterRole(ctx context.Context, n *ast.AlterRole) error {
	old, err := r.requireAlterable(n.Name)
	if err != nil {
		return err
	}
	role := old.Clone()
	o, err := r.roleOptions(role, n.Options)
	if err != nil {
		return err
	}
	if err := r.requireAlter(old, n, o); err != nil {
		return err
	}
	if len(n.Options) > 0 {
		if err := r.setPassword(role, o); err != nil {
			return err
		}
		if err := r.putRole(ctx, role); err != nil {
			return err
		}
	}
	g := membershipChange{role: n.Name, members: append(n.Members, o.members...), grantor: ast.Role{Name: "CURRENT_ROLE", Keyword: true}}
	if n.Action == "DROP" {
		return r.revokeMembership(ctx, g)
	}
	return r.grantMembership(ctx, g)
}

// requireAlter checks that the current role may do what ALTER ROLE is to do.
func (r *run) requireAlter(role *catalog.Role, n *ast.AlterRole, o roleOptions) error {
	if r.superuser() {
		if role.OID == catalog.BootstrapSuperuser && hasOption(n, "NOSUPERUSER") {
			return pgerror.New(pgerror.FeatureNotSupported, "permission denied to alter role").
				WithDetail("The bootstrap user must have the SUPERUSER attribute.")
		}
		return nil
	}
	own := role.OID == r.User && o.hasPassword && len(o.given) == 1
	switch {
	case role.Superuser || o.given["SUPERUSER"]:
		return denied("must be superuser to alter superuser roles or change superuser attribute")
	case role.Replication || o.given["REPLICATION"]:
		return denied("must be superuser to alter replication roles or change replication attribute")
	case o.given["BYPASSRLS"]:
		return denied("must be superuser to change bypassrls attribute")
	case !r.mayCreateRoles() && !own:
		return denied("permission denied")
	}
	return nil
}

func hasOption(n *ast.AlterRole, name string) bool {
	for i := range n.Options {
		if n.Options[i].Name == name {
			return true
		}
	}
	return false
}

// renameRole is ALTER ROLE … RENAME TO.
func (r *run) renameRole(ctx context.Context, n *ast.AlterObject) error {
	role, err := r.findRole(*n.Object.Role)
	if err != nil {
		return err
	}
	switch {
	case role.OID == r.SessionUser:
		return pgerror.New(pgerror.FeatureNotSupported, "session user cannot be renamed")
	case role.OID == r.User:
		return pgerror.New(pgerror.FeatureNotSupported, "current user cannot be renamed")
	case reservedName(role.Name):
		return reservedRole(role.Name, reservedDetail)
	}
	if err := r.requireNewRole(n.Change.Rename); err != nil {
		return err
	}
	switch {
	case role.Superuser && !r.superuser():
		return denied("must be superuser to rename superusers")
	case !r.mayCreateRoles():
		return denied("permission denied to rename role")
	}
	next := role.Clone()
	next.Name = n.Change.Rename
	if verifier.IsMD5(next.Verifier) { // The name is part of what was hashed.
		next.Verifier = ""
		r.noticeAbsent("MD5 password cleared because of role rename")
	}
	return r.putRole(ctx, next)
}

func (r *run) dropRoles(ctx context.Context, n *ast.DropObjects) error {
	if !r.mayCreateRoles() {
		return denied("permission denied to drop role")
	}
	for i := range n.Objects {
		name := *n.Objects[i].Role
		if name.Keyword {
			return pgerror.New(pgerror.InvalidParameterValue, "cannot use special role specifier in DROP ROLE")
		}
		role := r.roles().ByName(name.Name)
		if role == nil {
			if !n.IfExists {
				return undefinedRole(name.Name)
			}
			r.noticeAbsent(`role "%s" does not exist, skipping`, name.Name)
			continue
		}
		if err := r.dropRole(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

// dropRole removes a role and its memberships.
func (r *run) dropRole(ctx context.Context, role *catalog.Role) error {
	switch {
	case role.OID == r.User:
		return pgerror.New(pgerror.ObjectInUse, "current user cannot be dropped")
	case role.OID == r.SessionUser:
		return pgerror.New(pgerror.ObjectInUse, "session user cannot be dropped")
	case role.Superuser && !r.superuser():
		return denied("must be superuser to drop superusers")
	case role.OID == catalog.BootstrapSuperuser || role.Predefined():
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop role %s because it is required by the database system", role.Name)
	}
	uses, err := r.dependencies(ctx, role.OID)
	if err != nil {
		return err
	}
	if len(uses) > 0 {
		return pgerror.New(pgerror.DependentObjectsStillExist, "role %q cannot be dropped because some objects depend on it", role.Name).
			WithDetail("%s", strings.Join(uses, "\n"))
	}
	for _, member := range r.roles().All() {
		if member.Membership(role.OID) == nil {
			continue
		}
		next := member.Clone()
		next.Revoke(role.OID)
		if err := r.ch.PutRole(ctx, next); err != nil {
			return err
		}
	}
	if err := r.ch.DropRole(ctx, role.OID); err != nil {
		return err
	}
	return r.look(ctx)
}

// commentRole is COMMENT ON ROLE.
func (r *run) commentRole(ctx context.Context, name ast.Role, text string) error {
	role, err := r.findRole(name)
	if err != nil {
		return err
	}
	switch {
	case role.Superuser && !r.superuser():
		return denied("must be superuser")
	case !r.mayCreateRoles():
		return denied("must have CREATEROLE privilege")
	}
	next := role.Clone()
	next.Comment = text
	return r.putRole(ctx, next)
}

// alterRoleSet is ALTER ROLE … SET and RESET, and of ALL roles in a database ALTER DATABASE … SET and RESET.
func (r *run) alterRoleSet(ctx context.Context, n *ast.AlterRoleSet) error {
	var database *catalog.DatabaseDescriptor
	var err error
	if n.Database != "" {
		if database, err = r.findDatabase(n.Database); err != nil {
			return err
		}
	}
	var role *catalog.Role
	if n.Name != nil {
		if role, err = r.requireAlterable(*n.Name); err != nil {
			return err
		}
	}
	current := r.roles().ByOID(r.User)
	switch {
	case r.superuser():
	case role == nil && n.Database == "":
		return denied("must be superuser to alter settings globally")
	case role == nil && !r.access.Owns(database.OwnerOID()):
		return mustBeOwner("database", n.Database)
	case role == nil:
	case role.Superuser:
		return denied("must be superuser to alter superusers")
	case current == nil || !current.CreateRole && role.OID != r.User:
		return denied("permission denied")
	}
	if role == nil {
		settings, err := r.changeSettings(r.roles().Everyone(), n)
		if err != nil {
			return err
		}
		if err := r.ch.SetEveryone(ctx, settings); err != nil {
			return err
		}
		return r.look(ctx)
	}
	next := role.Clone()
	if next.Settings, err = r.changeSettings(role.Settings, n); err != nil {
		return err
	}
	return r.putRole(ctx, next)
}

// changeSettings returns a list of settings after a statement. The list itself stays.
func (r *run) changeSettings(list []catalog.RoleSetting, n *ast.AlterRoleSet) ([]catalog.RoleSetting, error) {
	name := strings.ToLower(n.Set.Name)
	var next []catalog.RoleSetting
	for _, s := range list {
		reset := n.Set.Default && name == "all" && r.maySetParameter(s.Name) // RESET ALL leaves what the role may not reset.
		if s.Database != n.Database || !strings.EqualFold(s.Name, name) && !reset {
			next = append(next, s)
		}
	}
	if n.Set.Default {
		if name == "all" {
			return next, nil
		}
		if _, err := r.CheckSetting(name, ""); isUnknownSetting(err) {
			return nil, err
		}
		return next, r.requireParameter(name)
	}
	if err := r.requireParameter(name); err != nil {
		return nil, err
	}
	values := n.Set.Values
	if name == "search_path" {
		values = quoteNames(values)
	}
	value := strings.Join(values, ", ")
	if name == "role" && value != "none" {
		if r.roles().ByName(value) == nil {
			return nil, pgerror.New(pgerror.InvalidParameterValue, `role "%s" does not exist`, value)
		}
	}
	title, err := r.CheckSetting(name, value)
	if err != nil {
		return nil, err
	}
	return catalog.AddSetting(next, catalog.RoleSetting{Database: n.Database, Name: title, Value: value}), nil
}

// maySetParameter reports whether the current role may set a parameter for others, and for itself.
func (r *run) maySetParameter(name string) bool {
	return r.superuser() || !r.SuperuserSetting(name) || r.access.Object(acl.Parameter, strings.ToLower(name), acl.Set) != 0
}

func (r *run) requireParameter(name string) error {
	if r.maySetParameter(name) {
		return nil
	}
	return denied("permission denied to set parameter %q", name)
}

func isUnknownSetting(err error) bool {
	e, ok := errors.AsType[*pgerror.Error](err)
	return ok && e.Code == pgerror.UndefinedObject
}
