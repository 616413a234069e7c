package ddl

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// membershipChange is a role that is granted to, or revoked from, members.
type membershipChange struct {
	role    ast.Role
	members []ast.Role
	grantor ast.Role
	// The options that are given; nil: not given. A new membership has ADMIN FALSE, SET TRUE, and the member's INHERIT.
	admin, inherit, set *bool
	only                string // the option to revoke, "" for the membership
}

// grantRole is GRANT and REVOKE of roles.
func (r *run) grantRole(ctx context.Context, n *ast.GrantRole) error {
	change := membershipChange{members: n.Grantees, grantor: ast.Role{Name: "CURRENT_ROLE", Keyword: true}, only: n.Only}
	if n.GrantedBy != nil {
		change.grantor = *n.GrantedBy
	}
	for i := range n.Options {
		o := &n.Options[i]
		to := map[string]**bool{"ADMIN": &change.admin, "INHERIT": &change.inherit, "SET": &change.set}[o.Name]
		if *to != nil {
			return pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(o.Position())
		}
		*to = &o.Value
	}
	if _, err := r.findRole(change.grantor); err != nil {
		return err
	}
	if _, err := r.findRoles(n.Grantees); err != nil {
		return err
	}
	for _, granted := range n.Roles {
		if granted.Columns != nil {
			return pgerror.New(pgerror.InvalidGrantOperation, "column names cannot be included in GRANT/REVOKE ROLE")
		}
		change.role = ast.Role{Name: granted.Name}
		do := r.grantMembership
		if n.Revoke {
			do = r.revokeMembership
		}
		if err := do(ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// membershipRoles finds the roles of a change, which the current role must be permitted.
func (r *run) membershipRoles(g membershipChange) (role *catalog.Role, members []*catalog.Role, grantor *catalog.Role, err error) {
	if role, err = r.findRole(g.role); err != nil {
		return nil, nil, nil, err
	}
	if members, err = r.findRoles(g.members); err != nil {
		return nil, nil, nil, err
	}
	if grantor, err = r.findRole(g.grantor); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case r.superuser():
	case role.Superuser:
		err = denied("must be superuser to alter superusers")
	case !r.mayCreateRoles() && !r.roles().IsAdminOf(grantor.OID, role.OID):
		err = denied(`must have admin option on role "%s"`, role.Name)
	case grantor.OID != r.User:
		err = denied("must be superuser to set grantor")
	}
	return role, members, grantor, err
}

// grantMembership makes roles members of a role.
func (r *run) grantMembership(ctx context.Context, g membershipChange) error {
	if len(g.members) == 0 {
		return nil
	}
	role, members, grantor, err := r.membershipRoles(g)
	if err != nil {
		return err
	}
	if role.OID == catalog.DatabaseOwnerRole {
		return pgerror.New(pgerror.InvalidGrantOperation, `role "%s" cannot have explicit members`, role.Name)
	}
	for _, member := range members {
		switch {
		case member.OID == catalog.DatabaseOwnerRole:
			return pgerror.New(pgerror.InvalidGrantOperation, `role "%s" cannot be a member of any role`, member.Name)
		case r.roles().IsGrantedRole(role.OID, member.OID):
			return pgerror.New(pgerror.InvalidGrantOperation, `role "%s" is a member of role "%s"`, role.Name, member.Name)
		}
		next := r.roles().ByOID(member.OID).Clone() // A member may be named twice.
		if !next.Grant(role.OID, grantor.OID, g.admin, g.inherit, g.set) {
			r.noticeAbsent(`role "%s" is already a member of role "%s"`, member.Name, role.Name)
			continue
		}
		if err := r.putRole(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// revokeMembership ends the membership of roles in a role, or takes an option from it.
func (r *run) revokeMembership(ctx context.Context, g membershipChange) error {
	if len(g.members) == 0 {
		return nil
	}
	role, members, _, err := r.membershipRoles(g)
	if err != nil {
		return err
	}
	for _, member := range members {
		next := r.roles().ByOID(member.OID).Clone()
		m := next.Membership(role.OID)
		if m == nil {
			r.notice(pgerror.Warning, `role "%s" is not a member of role "%s"`, member.Name, role.Name)
			continue
		}
		switch g.only {
		case "ADMIN":
			m.Admin = false
		case "INHERIT":
			m.Inherit = new(bool)
		case "SET":
			m.NoSet = true
		default:
			next.Revoke(role.OID)
		}
		if err := r.putRole(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// quoteNames quotes what are not plain names. A string with a comma is one name.
func quoteNames(names []string) []string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, keyword.QuoteIdent(name))
	}
	return quoted
}
