package types

import (
	"encoding/binary"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/pgerror"
)

// oidACLItems is the type of access lists, aclitem[].
const oidACLItems OID = 1034

// aclItemBytes is the size of an aclitem: grantee, grantor, rights.
const aclItemBytes = 12

// ACLItem returns an aclitem datum.
func ACLItem(it acl.Item) Datum {
	b := make([]byte, 0, aclItemBytes)
	b = binary.BigEndian.AppendUint32(b, it.Grantee)
	b = binary.BigEndian.AppendUint32(b, it.Grantor)
	return Bytes(binary.BigEndian.AppendUint32(b, uint32(it.Rights)))
}

// ACLItem returns the value of an aclitem.
func (d Datum) ACLItem() acl.Item {
	b := d.Bytes()
	return acl.Item{
		Grantee: binary.BigEndian.Uint32(b), Grantor: binary.BigEndian.Uint32(b[4:]), Rights: acl.Privileges(binary.BigEndian.Uint32(b[8:])),
	}
}

// ACL returns a list of privileges as an array of aclitem; NULL for nil.
func ACL(list acl.List) Datum {
	if list == nil {
		return Null
	}
	a := &Array{Elem: TACLItem, Elems: make([]Datum, len(list))}
	for i, it := range list {
		a.Elems[i] = ACLItem(it)
	}
	return NewArray(a)
}

// bootstrapRole is the role that an item without a grantor names: the superuser that every directory has.
const bootstrapRole = 10

func parseACLItem(s string, f *Format) (Datum, error) {
	oid := func(name string) (uint32, error) {
		if f.Names == nil {
			return 0, pgerror.New(pgerror.UndefinedObject, "role \"%s\" does not exist", name)
		}
		id, err := f.Names.RoleNamed(name)
		return uint32(id), err
	}
	warn := func() {
		if f.Warn != nil {
			f.Warn(pgerror.New(pgerror.InvalidGrantor, "defaulting grantor to user ID %d", bootstrapRole))
		}
	}
	it, err := acl.Parse(s, oid, bootstrapRole, warn)
	if err != nil {
		return Null, err
	}
	return ACLItem(it), nil
}

func appendACLItem(dst []byte, d Datum, f *Format) []byte {
	return d.ACLItem().Append(dst, func(id uint32) string {
		if f.Names == nil {
			return ""
		}
		name, _ := f.Names.RoleName(OID(id))
		return name
	})
}
