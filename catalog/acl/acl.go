// Package acl has PostgreSQL's access control lists: who granted which privileges on an object to whom. Its functions are pure;
// what they need of roles they are given as Roles.
//
// A list is nil until something is granted or revoked: Default then says what it contains. Names and rules are those of
// PostgreSQL's acl.c:
//
//	aclmask               List.Mask
//	aclupdate             List.Update
//	recursive_revoke      List.revokeDependent
//	check_circularity     List.checkCircularity
//	select_best_grantor   List.BestGrantor
//	aclnewowner           List.WithOwner
//	aclmerge              List.Merge
package acl

import (
	"cmp"
	"slices"
)

// Privileges is a set of privileges in the lower half, and of the options to grant them in the upper half.
type Privileges uint32

// The privileges. Their order is that of PostgreSQL's text form.
const (
	Insert      Privileges = 1 << iota // a
	Select                             // r
	Update                             // w
	Delete                             // d
	Truncate                           // D
	References                         // x
	Trigger                            // t
	Execute                            // X
	Usage                              // U
	Create                             // C
	Temporary                          // T
	Connect                            // c
	Set                                // s
	AlterSystem                        // A

	None Privileges = 0
)

const optionShift = 16

// letters are the privileges' letters in the order of their bits.
const letters = "arwdDxtXUCTcsA"

// names are the privileges' names in the order of their bits.
var names = [...]string{
	"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "EXECUTE", "USAGE", "CREATE", "TEMPORARY", "CONNECT",
	"SET", "ALTER SYSTEM",
}

// Options returns the options to grant the privileges in p.
func (p Privileges) Options() Privileges { return p << optionShift }

// Granted returns the privileges whose options are in p.
func (p Privileges) Granted() Privileges { return p >> optionShift }

// Plain returns p without options.
func (p Privileges) Plain() Privileges { return p & (1<<optionShift - 1) }

// Each calls f with each privilege in p, without options.
func (p Privileges) Each(f func(Privileges)) {
	for i := range names {
		if one := Privileges(1) << i; p&one != 0 {
			f(one)
		}
	}
}

// Name returns the name of a single privilege.
func (p Privileges) Name() string {
	for i, name := range names {
		if p == 1<<i {
			return name
		}
	}
	return ""
}

// Named returns the privilege of a name, in upper case; None if there is none.
func Named(name string) Privileges {
	if name == "TEMP" {
		return Temporary
	}
	if i := slices.Index(names[:], name); i >= 0 {
		return 1 << i
	}
	return None
}

// Kind is a kind of object with privileges.
type Kind uint8

// The kinds of objects.
const (
	Table Kind = iota + 1
	Column
	Sequence
	Database
	Schema
	Function
	Type
	Language
	LargeObject
	Parameter
	Tablespace
	ForeignDataWrapper
	ForeignServer
)

// kindLetters are the kinds as acldefault and, where it has them, pg_default_acl name them.
var kindLetters = map[byte]Kind{
	'r': Table, 'c': Column, 's': Sequence, 'd': Database, 'n': Schema, 'f': Function, 'T': Type, 'l': Language,
	'L': LargeObject, 'p': Parameter, 't': Tablespace, 'F': ForeignDataWrapper, 'S': ForeignServer,
}

// KindOf returns the kind with a letter of acldefault, 0 if there is none.
func KindOf(letter byte) Kind { return kindLetters[letter] }

// All returns all privileges on objects of a kind.
func (k Kind) All() Privileges {
	switch k {
	case Table:
		return Insert | Select | Update | Delete | Truncate | References | Trigger
	case Column:
		return Insert | Select | Update | References
	case Sequence:
		return Usage | Select | Update
	case Database:
		return Create | Temporary | Connect
	case Schema:
		return Usage | Create
	case Function:
		return Execute
	case Type, Language, ForeignDataWrapper, ForeignServer:
		return Usage
	case LargeObject:
		return Select | Update
	case Parameter:
		return Set | AlterSystem
	case Tablespace:
		return Create
	}
	return None
}

// public returns what everybody may do with objects of a kind by default.
func (k Kind) public() Privileges {
	switch k {
	case Database:
		return Temporary | Connect
	case Function:
		return Execute
	case Type, Language:
		return Usage
	}
	return None
}

// Public is the grantee that stands for all roles.
const Public uint32 = 0

// Item says what Grantor granted to Grantee; both are roles' OIDs.
type Item struct {
	Grantee uint32     `json:"to,omitempty"`
	Grantor uint32     `json:"by"`
	Rights  Privileges `json:"p"`
}

// List is an access control list. nil means Default; a list without items grants nothing. Immutable: methods return new lists.
type List []Item

// Roles answers questions about roles.
type Roles interface {
	// Superuser reports whether a role may do everything.
	Superuser(role uint32) bool
	// HasPrivilegesOf reports whether a role has the privileges of another one: superusers, and members that inherit them.
	HasPrivilegesOf(role, of uint32) bool
	// PrivilegesOf lists the roles whose privileges a role has by membership, itself first. Superusers are members of none.
	PrivilegesOf(role uint32) []uint32
}

// Default returns the privileges on an object of which nothing was granted or revoked.
func Default(k Kind, owner uint32) List {
	list := List{}
	if p := k.public(); p != None {
		list = append(list, Item{Grantee: Public, Grantor: owner, Rights: p})
	}
	if k != Column {
		list = append(list, Item{Grantee: owner, Grantor: owner, Rights: k.All()})
	}
	return list
}

// Or returns l, or the default of the kind if nothing was granted or revoked.
func (l List) Or(k Kind, owner uint32) List {
	if l == nil {
		return Default(k, owner)
	}
	return l
}

// Mask returns which of want the role has. If anyOf is set it may return only some of them, but never none if it has any.
func (l List) Mask(roles Roles, role, owner uint32, want Privileges, anyOf bool) Privileges {
	done := func(have Privileges) bool { return have == want || anyOf && have != None }
	var have Privileges
	// The owner has all options to grant.
	if options := want &^ want.Plain(); options != None && roles.HasPrivilegesOf(role, owner) {
		if have = options; done(have) {
			return have
		}
	}
	for _, it := range l {
		if it.Grantee == Public || it.Grantee == role {
			if have |= it.Rights & want; done(have) {
				return have
			}
		}
	}
	for _, it := range l {
		if it.Grantee == Public || it.Grantee == role || it.Rights&(want&^have) == None {
			continue
		}
		if roles.HasPrivilegesOf(role, it.Grantee) {
			if have |= it.Rights & want; done(have) {
				return have
			}
		}
	}
	return have
}

// direct returns which of want the role has itself: not as PUBLIC, and not as a member of other roles.
func (l List) direct(role, owner uint32, want Privileges) Privileges {
	var have Privileges
	if role == owner {
		have = want &^ want.Plain()
	}
	for _, it := range l {
		if it.Grantee == role {
			have |= it.Rights & want
		}
	}
	return have
}

// BestGrantor returns the role as which a role grants privileges on an object, and which of their options that role has, as
// plain privileges.
func (l List) BestGrantor(roles Roles, role, owner uint32, privileges Privileges) (grantor uint32, grantable Privileges) {
	privileges = privileges.Plain()
	if role == owner || roles.Superuser(role) {
		return owner, privileges
	}
	grantor = role
	most := 0
	for _, other := range roles.PrivilegesOf(role) {
		have := l.direct(other, owner, privileges.Options()).Granted()
		if have == privileges {
			return other, have
		}
		if n := have.count(); n > most {
			grantor, grantable, most = other, have, n
		}
	}
	return grantor, grantable
}

func (p Privileges) count() (n int) {
	for ; p != 0; p &= p - 1 {
		n++
	}
	return n
}

// WithOwner returns the list after the object has passed from one owner to another: the new one takes the place of the old one.
func (l List) WithOwner(from, to uint32) List {
	if l == nil {
		return nil
	}
	next := make(List, 0, len(l))
	for _, it := range l {
		if it.Grantor == from {
			it.Grantor = to
		}
		if it.Grantee == from {
			it.Grantee = to
		}
		if i := next.index(it.Grantee, it.Grantor); i >= 0 {
			next[i].Rights |= it.Rights
		} else {
			next = append(next, it)
		}
	}
	return next
}

// Merge returns the union of two lists that an object of the owner has been given.
func (l List) Merge(roles Roles, other List, owner uint32) (List, error) {
	next := l
	for _, it := range other {
		var err error
		if next, err = next.Update(roles, it, true, owner, false); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// index returns the place of the item for grantee and grantor, -1 if there is none.
func (l List) index(grantee, grantor uint32) int {
	return slices.IndexFunc(l, func(it Item) bool { return it.Grantee == grantee && it.Grantor == grantor })
}

// Mentions reports whether a role is the grantee or the grantor of an item.
func (l List) Mentions(role uint32) bool {
	return slices.ContainsFunc(l, func(it Item) bool { return it.Grantee == role || it.Grantor == role })
}

// Sorted returns the items by grantee and grantor, as PostgreSQL stores default privileges.
func (l List) Sorted() List {
	next := slices.Clone(l)
	slices.SortFunc(next, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Grantee, b.Grantee), cmp.Compare(a.Grantor, b.Grantor))
	})
	return next
}

// Equal reports whether two lists have the same items, in whatever order.
func (l List) Equal(other List) bool {
	if len(l) != len(other) {
		return false
	}
	for _, it := range l {
		if !slices.Contains(other, it) {
			return false
		}
	}
	return true
}
