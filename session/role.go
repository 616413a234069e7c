package session

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/pgerror"
)

// login returns the role as which a client connects, if it may log in.
func login(present catalog.Resolver, user string) (*catalog.Role, error) {
	role := present.Roles().ByName(user)
	switch {
	case role == nil:
		return nil, pgerror.New(pgerror.InvalidAuthorization, `role "%s" does not exist`, user)
	case !role.Login:
		return nil, pgerror.New(pgerror.InvalidAuthorization, `role "%s" is not permitted to log in`, user)
	}
	return role, nil
}

// admit fails unless a role may connect to the database of present.
func admit(present catalog.Resolver, role *catalog.Role) error {
	switch d := present.Database(); {
	case d.Closed:
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "database %q is not currently accepting connections", d.Name)
	case catalog.NewAccess(present, role.OID).Database(acl.Connect) == 0:
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for database %q", d.Name).
			WithDetail("User does not have CONNECT privilege.")
	}
	return nil
}

// principal is the role as which a session acts: the session user, or the role that SET ROLE has chosen. Both are the values of
// settings, so that rollbacks restore them. One goroutine's.
type principal struct {
	settings *settings.Settings
	tx       *transaction
	// authenticated is the role that has connected, as it was then.
	authenticated *catalog.Role
	// session and current are OIDs.
	session, current uint32
	// known are the roles that settings have named, as they were then.
	known map[string]*catalog.Role
	// permitted are the roles under which the current one was last permitted to run statements.
	permitted *catalog.Roles
	// within says where the session acts as a role that the settings do not decide (restricted.go); "": they decide.
	within string
	// restricted: the session is in a security-restricted operation, or in what that calls.
	restricted bool
	// access is that of the current role under the schema of accessVersion, path the part of the search path that it may use (privileges.go);
	// nil: to be made.
	access        *catalog.Access
	accessVersion uint64
	path          []string
	audit         *auditor // nil while the session is being made
	// initial are the roles while the session is being made.
	initial *catalog.Roles
}

// connect makes the principal of a role that has connected.
func (p *principal) connect(s *settings.Settings, tx *transaction, role *catalog.Role, roles *catalog.Roles) {
	*p = principal{
		settings: s, tx: tx, authenticated: role, session: role.OID, current: role.OID,
		known: map[string]*catalog.Role{role.Name: role}, initial: roles,
	}
	s.CheckRoles(p.check, p.mayChange)
}

// roles returns the roles that decide as whom the session may act: those in force, whatever snapshot the transaction has, and
// those as it sees them, which are others if it has changed the schema.
func (p *principal) roles() (inForce, own *catalog.Roles, err error) {
	if p.initial != nil {
		return p.initial, p.initial, nil
	}
	if inForce, err = p.tx.catalog.Roles(p.tx.env.Ctx); err != nil {
		return nil, nil, err
	}
	if p.tx.changed {
		if r := p.tx.names(); r != nil {
			return inForce, r.Roles(), nil
		}
	}
	return inForce, inForce, nil
}

// check permits a new value of one of the settings that are roles, or of one for superusers.
func (p *principal) check(setting, name string) error {
	isRole := setting == settings.Role || setting == settings.SessionAuthorization
	if isRole {
		if err := p.mayChange(setting); err != nil || name == settings.NoRole && setting == settings.Role {
			return err
		}
	}
	inForce, own, err := p.roles()
	if err != nil {
		return err
	}
	if !isRole {
		if inForce.Superuser(p.current) || inForce.ByOID(p.current) == nil && own.Superuser(p.current) {
			return nil
		}
		if p.mayUseParameter(setting, acl.Set) {
			return nil
		}
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to set parameter %q", setting)
	}
	role := own.ByName(name)
	switch {
	case role == nil:
		return pgerror.New(pgerror.InvalidParameterValue, `role "%s" does not exist`, name)
	case setting == settings.Role && !p.maySet(inForce, own, role.OID):
		return pgerror.New(pgerror.InsufficientPrivilege, `permission denied to set role "%s"`, name)
	case setting == settings.SessionAuthorization && role.OID != p.authenticated.OID && !p.authenticated.Superuser:
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to set session authorization")
	}
	p.known[name] = role
	return nil
}

// mayChange fails for a setting that is a role where the settings do not decide.
func (p *principal) mayChange(setting string) error {
	if p.within == "" {
		return nil
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "cannot set parameter %q within %s", setting, p.within)
}

// mayUseParameter reports whether a privilege on a parameter has been granted to the current role.
func (p *principal) mayUseParameter(name string, want acl.Privileges) bool {
	if p.initial != nil { // The session is being made: the settings of its role are applied as the role's own.
		return false
	}
	r, err := p.tx.catalog.Present(p.tx.env.Ctx)
	return err == nil && catalog.NewAccess(r, p.current).Object(acl.Parameter, strings.ToLower(name), want) != 0
}

// maySet reports whether the session user may become a role. Of roles that this transaction has made, only it knows.
func (p *principal) maySet(inForce, own *catalog.Roles, role uint32) bool {
	made := inForce.ByOID(role) == nil || inForce.ByOID(p.session) == nil
	return own.CanSetRole(p.session, role) && (made || inForce.CanSetRole(p.session, role))
}

// update takes the present values of the settings.
func (p *principal) update() {
	p.access = nil // The search path may be another one.
	if p.within != "" {
		return
	}
	session := p.known[p.settings.SessionUser]
	current := session
	if name := p.settings.CurrentRole; name != settings.NoRole {
		current = p.known[name]
	}
	if session.OID == p.session && current.OID == p.current {
		return
	}
	p.session, p.current, p.permitted = session.OID, current.OID, nil
	p.settings.SetServer("is_superuser", settings.OnOff(current.Superuser))
	p.audit.changed()
}

// permit refuses the statements of a role that does not exist any more.
func (p *principal) permit(roles *catalog.Roles) error {
	if roles == p.permitted {
		return nil
	}
	role := roles.ByOID(p.current)
	if role == nil {
		return pgerror.New(pgerror.UndefinedObject, "role with OID %d does not exist", p.current)
	}
	p.permitted = roles
	return nil
}

// name returns the name of a role that the session acts as.
func (p *principal) name(oid uint32) string {
	if r := p.tx.resolver; r != nil {
		if role := r.Roles().ByOID(oid); role != nil {
			return role.Name
		}
	}
	for name, role := range p.known {
		if role.OID == oid {
			return name
		}
	}
	return ""
}
