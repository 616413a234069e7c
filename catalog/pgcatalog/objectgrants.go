package pgcatalog

import (
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Privileges on objects without descriptors.

const (
	internalLanguageOID = 12
	sqlLanguageOID      = 14
	plpgsqlLanguageOID  = int(builtin.PlpgsqlOID)
	globalTablespaceOID = 1664
)

// tablespaceNames are the tablespaces by OID.
var tablespaceNames = map[int]string{tablespaceOID: "pg_default", globalTablespaceOID: "pg_global"}

// fixedKinds are the kinds of such objects in the names of has_…_privilege.
var fixedKinds = map[string]acl.Kind{
	"function": acl.Function, "language": acl.Language, "tablespace": acl.Tablespace, "parameter": acl.Parameter,
	"foreign_data_wrapper": acl.ForeignDataWrapper, "server": acl.ForeignServer,
}

func parameterACLRows(s *scan) error {
	for _, o := range s.Grants().Objects {
		if o.Kind != acl.Parameter {
			continue
		}
		if err := s.emit(col{"oid", oid(o.OID)}, col{"parname", text(o.Name)}, col{"paracl", types.ACL(o.ACL)}); err != nil {
			return err
		}
	}
	return nil
}

// hasObjectPrivilege answers for objects without descriptors.
func (o *Objects) hasObjectPrivilege(a *catalog.Access, kind acl.Kind, q *builtin.PrivilegeQuery) (has, known bool, err error) {
	name, known := "", true
	if q.Named {
		name, err = o.namedObject(kind, q.Name)
	} else {
		name, known = numberedObject(kind, int(q.OID))
	}
	if err != nil {
		return false, false, err
	}
	p, err := parsePrivileges(q.Object, q.Privileges)
	if err != nil || !known {
		return false, false, err
	}
	owner := uint32(catalog.BootstrapSuperuser)
	if a.Superuser() {
		return true, true, nil
	}
	return a.Grants.EffectiveObjectACL(kind, name).Mask(a.Roles, a.Role, owner, p, true) != 0, true, nil
}

// hasTypePrivilege answers for types, those that users have defined included.
func (o *Objects) hasTypePrivilege(r catalog.Resolver, a *catalog.Access, q *builtin.PrivilegeQuery) (has, known bool, err error) {
	t := types.Type{OID: q.OID, Mod: -1}
	if q.Named {
		t, err = types.ParseTypeName(q.Name, o)
	} else {
		t = r.Types().Complete(t)
	}
	if err != nil {
		return false, false, err
	}
	p, err := parsePrivileges("type", q.Privileges)
	if err != nil || t.Info() == nil {
		return false, false, err
	}
	if a.Superuser() {
		return true, true, nil
	}
	list, owner := a.Grants.TypeACL(r.Types(), t)
	return list.Mask(a.Roles, a.Role, owner, p, true) != 0, true, nil
}

// namedObject returns an object's name in the catalog.
func (o *Objects) namedObject(kind acl.Kind, name string) (string, error) {
	missing := func(what string) error {
		return pgerror.New(pgerror.UndefinedObject, "%s \"%s\" does not exist", what, name)
	}
	switch kind {
	case acl.Function:
		p, err := o.function(name)
		if err != nil {
			return "", err
		}
		return p.Signature, nil
	case acl.Language:
		if name != "sql" && name != "plpgsql" {
			return "", missing("language")
		}
	case acl.Tablespace:
		if name != "pg_default" && name != "pg_global" {
			return "", missing("tablespace")
		}
	case acl.Parameter:
		return strings.ToLower(name), nil
	case acl.ForeignDataWrapper:
		return "", missing("foreign-data wrapper")
	case acl.ForeignServer:
		return "", missing("server")
	}
	return name, nil
}

// numberedObject returns the name of an object with an OID.
func numberedObject(kind acl.Kind, id int) (name string, known bool) {
	switch kind {
	case acl.Function:
		if p := builtin.ProcByOID(types.OID(id)); p != nil {
			return p.Signature, true
		}
	case acl.Language:
		if id == plpgsqlLanguageOID {
			return "plpgsql", true
		}
		return "sql", id == sqlLanguageOID
	case acl.Tablespace:
		name, known = tablespaceNames[id]
	}
	return name, known
}
