package catalog

import (
	"context"
	"fmt"
	"testing"

	"github.com/percodb/percodb/percolator"
)

func yes() *bool {
	v := true
	return &v
}

func no() *bool { return new(bool) }

// Goal: memberships: who is a member, has the privileges, may SET ROLE, may grant. Method: a table over one graph of roles.
func TestMemberships(t *testing.T) {
	const (
		group, app, admin, plain, root, chain = 20001, 20002, 20003, 20004, 20005, 20006
	)
	roles := NewRoles(
		&Role{OID: group, Name: "group"},
		&Role{OID: app, Name: "app", Inherit: true, MemberOf: []Membership{{Role: group, Grantor: 10}}},
		&Role{OID: admin, Name: "admin", MemberOf: []Membership{{Role: group, Grantor: 10, Admin: true}}}, // NOINHERIT
		&Role{OID: plain, Name: "plain", Inherit: true, MemberOf: []Membership{{Role: app, Grantor: 10, Inherit: no(), NoSet: true}}},
		&Role{OID: root, Name: "root", Superuser: true},
		&Role{OID: chain, Name: "chain", MemberOf: []Membership{{Role: admin, Grantor: 10, Inherit: yes()}}},
	)
	for _, c := range []struct {
		member, role                   uint32
		is, privileges, set, mayGrants bool
	}{
		{app, group, true, true, true, false},
		{group, app, false, false, false, false},
		{group, group, true, true, true, false},
		{admin, group, true, false, true, true},
		{admin, admin, true, true, true, false},
		{plain, app, true, false, false, false},
		{plain, group, true, false, false, false},
		{root, group, true, true, true, true},
		{root, root, true, true, true, true},
		{chain, admin, true, true, true, false},
		{chain, group, true, false, true, true}, // admin itself inherits nothing
		{BootstrapSuperuser, DatabaseOwnerRole, true, true, true, true},
		{app, DatabaseOwnerRole, false, false, false, false},
		{MonitorRole, ReadAllStatsRole, true, true, true, false},
		{99999, group, false, false, false, false},
	} {
		t.Run(fmt.Sprint(c.member, "→", c.role), func(t *testing.T) {
			if got := roles.IsMemberOf(c.member, c.role); got != c.is {
				t.Errorf("IsMemberOf: %v", got)
			}
			if got := roles.HasPrivilegesOf(c.member, c.role); got != c.privileges {
				t.Errorf("HasPrivilegesOf: %v", got)
			}
			if got := roles.CanSetRole(c.member, c.role); got != c.set {
				t.Errorf("CanSetRole: %v", got)
			}
			if got := roles.IsAdminOf(c.member, c.role); got != c.mayGrants {
				t.Errorf("IsAdminOf: %v", got)
			}
		})
	}
	if roles.IsGrantedRole(root, group) || !roles.IsGrantedRole(chain, group) {
		t.Error("IsGrantedRole treats superusers as other roles")
	}
}

// Goal: roles are versioned with the schema, survive a restart, and are shared between versions in which they are equal. The superuser
// postgres and the predefined roles exist in a new store.
func TestRolesAreStored(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	c := newCatalog(t, db, Options{})
	current := func(c *Catalog) *Roles {
		t.Helper()
		roles, err := c.Roles(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return roles
	}
	first := current(c)
	if r := first.ByName("postgres"); r == nil || r.OID != BootstrapSuperuser || !r.Superuser || !r.Login || r.Predefined() {
		t.Fatalf("postgres: %+v", r)
	}
	if r := first.ByOID(MonitorRole); r == nil || r.Name != "pg_monitor" || !r.Predefined() || r.Login {
		t.Fatalf("pg_monitor: %+v", r)
	}
	role := &Role{OID: 20000, Name: "app", Login: true, ConnectionLimit: 3, Verifier: "v", Settings: []RoleSetting{{"", "work_mem", "1"}}}
	put := func(role *Role) {
		t.Helper()
		if err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.PutRole(ctx, role) }); err != nil {
			t.Fatal(err)
		}
	}
	before := begin(t, db)
	put(role)
	changed := current(c)
	if r := changed.ByName("app"); r == nil || r.OID != 20000 || r.ConnectionLimit != 3 || r.Verifier != "v" || r.Predefined() {
		t.Fatalf("app: %+v", r)
	}
	if r, err := c.At(ctx, before); err != nil || r.Roles().ByName("app") != nil {
		t.Fatalf("an earlier snapshot sees the role: %v", err)
	}
	mustCreate(t, c, "t")
	if current(c) != changed {
		t.Fatal("a change of a table makes other roles")
	}
	err := run(t, c, func(_ *percolator.Txn, ch *Change) error {
		return ch.SetEveryone(ctx, []RoleSetting{{"", "work_mem", "2"}, {"percodb", "work_mem", "3"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(ctx, db, Options{Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close(ctx) })
	roles := current(again)
	var got []string
	roles.SettingsAt(roles.ByName("app"), "percodb", func(name, value string) { got = append(got, value) })
	if fmt.Sprint(got) != "[2 3 1]" {
		t.Fatalf("settings %v", got)
	}
	renamed := roles.ByOID(BootstrapSuperuser).Clone()
	renamed.Name = "root"
	put(renamed)
	if r := current(c); r.ByName("postgres") != nil || r.ByName("root").OID != BootstrapSuperuser {
		t.Fatal("postgres is not renamed")
	}
	if err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.DropRole(ctx, 20000) }); err != nil {
		t.Fatal(err)
	}
	if current(c).ByName("app") != nil {
		t.Fatal("the role is not dropped")
	}
}

// Goal: a store from before there were indexes on expressions, or collations, is upgraded. Method: take a new store's format back.
func TestFormatWithoutCollations(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	desc := mustCreate(t, newCatalog(t, db, Options{}), "t")
	for _, format := range []string{formatWithoutPartitionedKeys, formatWithoutDatabases, formatWithoutKeys, formatWithoutCollations, formatWithoutPolicies} {
		txn := begin(t, db)
		_ = txn.Put(keyFormat, []byte(format))
		if _, err := txn.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		newCatalog(t, db, Options{})
		txn = begin(t, db)
		if now, err := txn.Get(ctx, keyFormat); err != nil || string(now) != formatVersion {
			t.Errorf("from %s: %s, %v", format, now, err)
		}
		txn.Close()
	}
	if desc.Columns[0].Type.Coll != nil {
		t.Error("a column without collation has one")
	}
}

// Goal: a store from before there were roles is upgraded once: whoever connected as percodb still can. Method: take a new store's
// format back.
func TestRolesAreAdded(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	desc := mustCreate(t, newCatalog(t, db, Options{}), "t")
	txn := begin(t, db)
	_ = txn.Put(keyFormat, []byte(formatWithoutRoles))
	if _, err := txn.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	var oid uint32
	for range 2 {
		c := newCatalog(t, db, Options{})
		roles, err := c.Roles(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r := roles.ByName("percodb")
		if r == nil || !r.Superuser || !r.Login || uint64(r.OID) <= desc.ID || oid != 0 && r.OID != oid {
			t.Fatalf("percodb: %+v", r)
		}
		oid = r.OID
		if id, err := c.NewID(ctx); err != nil || id <= uint64(oid)+1 {
			t.Fatalf("number %d after %d, %v", id, oid, err)
		}
		if find(t, c, begin(t, db), "t") == nil {
			t.Fatal("the table is gone")
		}
	}
}
