package acl

import (
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
)

// Update returns the list with the rights of an item added, or taken away if add is not set. Privileges that others granted by an
// option which is taken away go with it if cascade is set. Errors: 0LP01 for a grant that would return to the grantor's own
// grantor, 2BP01 for dependent privileges without cascade.
func (l List) Update(roles Roles, change Item, add bool, owner uint32, cascade bool) (List, error) {
	if add && change.Rights.Granted() != None {
		if err := l.checkCircularity(roles, change, owner); err != nil {
			return nil, err
		}
	}
	next := slices.Clone(l)
	if next == nil {
		next = List{}
	}
	i := next.index(change.Grantee, change.Grantor)
	if i < 0 {
		i = len(next)
		next = append(next, Item{Grantee: change.Grantee, Grantor: change.Grantor})
	}
	old := next[i].Rights
	if add {
		next[i].Rights |= change.Rights
	} else {
		next[i].Rights &^= change.Rights
	}
	lost := old.Granted() &^ next[i].Rights.Granted()
	if next[i].Rights == None {
		next = slices.Delete(next, i, i+1)
	}
	if lost == None {
		return next, nil
	}
	return next.revokeDependent(roles, change.Grantee, lost, owner, cascade)
}

// revokeDependent takes away what a role granted by options that it has lost, unless it has them from somebody else.
func (l List) revokeDependent(roles Roles, grantee uint32, lost Privileges, owner uint32, cascade bool) (List, error) {
	if grantee == owner {
		return l, nil
	}
	lost &^= l.Mask(roles, grantee, owner, lost.Options(), false).Granted()
	if lost == None {
		return l, nil
	}
	// Each round takes rights from an item, so their number bounds the rounds.
	for {
		i := slices.IndexFunc(l, func(it Item) bool { return it.Grantor == grantee && it.Rights.Plain()&lost != None })
		if i < 0 {
			return l, nil
		}
		if !cascade {
			return nil, pgerror.New(pgerror.DependentObjectsStillExist, "dependent privileges exist").WithHint("Use CASCADE to revoke them too.")
		}
		var err error
		l, err = l.Update(roles, Item{Grantee: l[i].Grantee, Grantor: grantee, Rights: lost | lost.Options()}, false, owner, cascade)
		if err != nil {
			return nil, err
		}
	}
}

// checkCircularity fails if the grantor has the options that it grants only from the grantee.
func (l List) checkCircularity(roles Roles, change Item, owner uint32) error {
	if change.Grantor == owner {
		return nil
	}
	without := l
	for {
		i := slices.IndexFunc(without, func(it Item) bool { return it.Grantee == change.Grantee && it.Rights.Granted() != None })
		if i < 0 {
			break
		}
		var err error
		if without, err = without.Update(roles, without[i], false, owner, true); err != nil {
			return err
		}
	}
	options := change.Rights.Granted().Options()
	if options&^without.Mask(roles, change.Grantor, owner, options, false) != None {
		return pgerror.New(pgerror.InvalidGrantOperation, "grant options cannot be granted back to your own grantor")
	}
	return nil
}

// Grant is what GRANT or REVOKE says of one object.
type Grant struct {
	Revoke     bool
	Privileges Privileges // plain
	Grantees   []uint32
	// Option is WITH GRANT OPTION, or GRANT OPTION FOR.
	Option  bool
	Cascade bool
}

// Apply returns the list after the grantor has granted or revoked. Errors: those of Update, 0LP01 for a grant option for PUBLIC.
func (l List) Apply(roles Roles, g *Grant, grantor, owner uint32) (List, error) {
	for _, grantee := range g.Grantees {
		if !g.Revoke && g.Option && grantee == Public {
			return nil, pgerror.New(pgerror.InvalidGrantOperation, "grant options can only be granted to roles")
		}
		change := Item{Grantee: grantee, Grantor: grantor}
		if !g.Revoke || !g.Option {
			change.Rights |= g.Privileges
		}
		if g.Revoke || g.Option {
			change.Rights |= g.Privileges.Options()
		}
		var err error
		if l, err = l.Update(roles, change, !g.Revoke, owner, g.Cascade); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Without returns the list without what a role was granted, for DROP OWNED; what it granted by options goes with them.
func (l List) Without(roles Roles, role, owner uint32) (List, error) {
	for {
		i := slices.IndexFunc(l, func(it Item) bool { return it.Grantee == role })
		if i < 0 {
			return l, nil
		}
		var err error
		if l, err = l.Update(roles, l[i], false, owner, true); err != nil {
			return nil, err
		}
	}
}
