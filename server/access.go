package server

import (
	"context"
	"slices"
	"time"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/types"
)

// roles are the catalog's roles for package auth.
type roles struct{ catalog *catalog.Catalog }

// Roles returns the roles and the secret that logins are judged by.
func Roles(c *catalog.Catalog) auth.Roles { return roles{c} }

// Role implements auth.Roles.
func (r roles) Role(ctx context.Context, name string) (*auth.Role, error) {
	all, err := r.catalog.Roles(ctx)
	if err != nil {
		return nil, session.ToPGError(err)
	}
	role := all.ByName(name)
	if role == nil {
		return nil, nil
	}
	return loginOf(all, role), nil
}

// loginOf returns what matters of a role for its login.
func loginOf(all *catalog.Roles, role *catalog.Role) *auth.Role {
	found := &auth.Role{Verifier: role.Verifier, MemberOf: func(other string) bool {
		group := all.ByName(other)
		return group != nil && all.IsGrantedRole(role.OID, group.OID)
	}}
	if until := role.ValidUntil; until != nil && *until != types.TimestampInfinity {
		found.Expires = expiry(*until)
	}
	return found
}

// AnyPassword reports whether a role can log in by a password now.
func AnyPassword(ctx context.Context, c *catalog.Catalog) (bool, error) {
	present, err := c.Present(ctx)
	if err != nil {
		return false, err
	}
	roles := present.Roles()
	return slices.ContainsFunc(roles.All(), func(r *catalog.Role) bool {
		return r.Login && (r.Superuser || r.ConnectionLimit != 0) && catalog.NewAccess(present, r.OID).Database(acl.Connect) != 0 &&
			loginOf(roles, r).HasPassword()
	}), nil
}

// expiry is the time of a number of microseconds since 2000-01-01 UTC.
func expiry(micros int64) time.Time {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if micros == types.TimestampNegInfinity {
		return epoch
	}
	return time.UnixMicro(epoch.UnixMicro() + micros)
}

// Secret implements auth.Roles.
func (r roles) Secret(ctx context.Context) ([]byte, error) {
	secret, err := r.catalog.Secret(ctx)
	if err != nil {
		return nil, session.ToPGError(err)
	}
	return secret, nil
}
