package types_test

import (
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// roles names the roles of the tests.
type roles struct{ types.Names }

var roleNames = map[types.OID]string{10: "postgres", 20: `a "b"`, 21: "c"}

func (roles) RoleName(id types.OID) (string, bool) {
	name, ok := roleNames[id]
	return name, ok
}

func (roles) RoleNamed(name string) (types.OID, error) {
	for id, have := range roleNames {
		if have == name {
			return id, nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedObject, "role \"%s\" does not exist", name)
}

func TestACLItem(t *testing.T) {
	warnings := 0
	f := &types.Format{Names: roles{}, Warn: func(*pgerror.Error) { warnings++ }}
	d, err := types.ParseText(types.TACLItem.ArrayOf(), `{"\"a \"\"b\"\"\"=r*w/c",=U}`, f)
	if err != nil {
		t.Fatal(err)
	}
	first, second := d.Array().Elems[0].ACLItem(), d.Array().Elems[1].ACLItem()
	if first != (acl.Item{Grantee: 20, Grantor: 21, Rights: acl.Select | acl.Select.Options() | acl.Update}) ||
		second != (acl.Item{Grantor: 10, Rights: acl.Usage}) || warnings != 1 {
		t.Fatalf("%+v, %+v, %d warnings", first, second, warnings)
	}
	if got := f.Text(d, types.TACLItem.ArrayOf()); got != `{"\"a \"\"b\"\"\"=r*w/c",=U/postgres}` {
		t.Error(got)
	}
	if got := (&types.Format{}).Text(d, types.TACLItem.ArrayOf()); got != "{20=r*w/21,=U/10}" {
		t.Error(got)
	}
	if types.ACL(nil) != types.Null {
		t.Error("the default list is not NULL")
	}
}

// Goal: values that have no binary form are neither read nor sent in one.
func TestACLItemHasNoBinaryForm(t *testing.T) {
	_, err := types.ParseBinary(types.TACLItem, make([]byte, 12), nil)
	for _, err := range []error{err, types.RequireBinary(types.TACLItem), types.RequireBinary(types.TACLItem.ArrayOf())} {
		if err == nil || !strings.Contains(err.Error(), "no binary") {
			t.Error(err)
		}
	}
	if err := types.RequireBinary(types.TUUID); err != nil {
		t.Error(err)
	}
}
