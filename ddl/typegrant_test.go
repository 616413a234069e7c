package ddl

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/percolator"
)

// Goal: no acknowledged change of a type, nor of the privileges on it, is lost when both happen at the same time, in one process and in two,
// by statements of their own and in blocks. Method: sessions add labels to an enum while others grant and revoke; in the end the type has
// what was acknowledged.
func TestPrivilegesBesideChangesOfTypes(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			opts := catalog.Options{Shared: shared, Lease: 60 * time.Millisecond, PollInterval: 10 * time.Millisecond}
			first := newServer(t, opts)
			servers := []*server{first, first}
			if shared {
				servers[1] = &server{t: t, db: first.db, catalog: first.open(opts), chunk: first.chunk}
			}
			root := first.session()
			for _, text := range []string{"create type e as enum ()", "create role r0", "create role r1", "revoke usage on type e from public"} {
				if got := root.exec(text); strings.Contains(got, "ERROR") {
					t.Fatal(got)
				}
			}
			const labels = 8
			held := make([]bool, 2)
			var wg sync.WaitGroup
			for i := range 2 {
				s := servers[i].session()
				s.blocks = percolator.TxnOptions{Pessimistic: true, Isolation: []percolator.Isolation{percolator.SnapshotIsolation, percolator.ReadCommitted}[i]}
				wg.Go(func() {
					for j := range labels {
						add := fmt.Sprintf("alter type e add value 'l%d_%d'", i, j)
						if j%2 == 0 {
							retried(t, s, "begin", add, "commit")
						} else {
							retried(t, s, add)
						}
					}
				})
				g := servers[1-i].session()
				g.blocks = percolator.TxnOptions{Pessimistic: true}
				wg.Go(func() {
					for j := range 20 {
						text := fmt.Sprintf("grant usage on type e to r%d", i)
						if held[i] = j%3 != 1; !held[i] {
							text = fmt.Sprintf("revoke usage on type e from r%d", i)
						}
						if j%4 == 3 {
							retried(t, g, "begin", text, "commit")
						} else {
							retried(t, g, text)
						}
					}
				})
			}
			wg.Wait()
			for _, s := range servers {
				r := s.schema()
				typ := r.Types().Named("public", "e")
				if n := len(typ.Def.Labels); n != 2*labels {
					t.Errorf("%d labels", n)
				}
				for i, want := range held {
					role := r.Roles().ByName(fmt.Sprintf("r%d", i)).OID
					if has := catalog.NewAccess(r, role).Type(r.Types(), typ, acl.Usage) != 0; has != want {
						t.Errorf("role %d has USAGE: %v, want %v", i, has, want)
					}
				}
			}
		})
	}
}

// Goal: a block that changes a type beside a change of its privileges commits with both; if both change its privileges, the block fails. A role
// that has been dropped meanwhile gets none.
func TestChangeOfTypeMeetsGrant(t *testing.T) {
	s := newServer(t, catalog.Options{})
	block, other := s.session(), s.session()
	block.blocks = percolator.TxnOptions{Pessimistic: true}
	must := func(s *session, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if got := s.exec(text); strings.Contains(got, "ERROR") {
				t.Fatalf("%s: %s", text, got)
			}
		}
	}
	must(block, "create type e as enum ('a')", "create role x", "create role y")
	must(block, "begin", "alter type e add value 'b'")
	must(other, "revoke usage on type e from public")
	must(block, "commit")
	d := s.schema().Types().ByOID(s.schema().Types().Named("public", "e").OID)
	if len(d.Labels) != 2 || len(d.ACL) != 1 {
		t.Errorf("labels %v, privileges %v", d.Labels, d.ACL)
	}
	must(block, "begin", "grant usage on type e to x")
	must(other, "alter type e add value 'c'")
	must(block, "commit")
	must(block, "begin", "grant usage on type e to y")
	must(other, "revoke usage on type e from x")
	if got := block.exec("commit"); !strings.Contains(got, "ERROR") {
		t.Errorf("both have changed the privileges: %s", got)
	}
	block.rollback()
	must(block, "begin", "grant usage on type e to y")
	must(other, "drop role y")
	if got := block.exec("commit"); !strings.Contains(got, "ERROR") {
		t.Errorf("the role is gone: %s", got)
	}
	block.rollback()
	d = s.schema().Types().ByOID(d.Type().OID)
	if len(d.Labels) != 3 || len(d.ACL) != 1 {
		t.Errorf("labels %v, privileges %v", d.Labels, d.ACL)
	}
}

// Goal: each kind of object brings its privileges: they keep a role from being dropped, DROP ROLE names them, and DROP OWNED revokes them.
// Method: a grant on an object of each kind; a kind that is added to package acl fails until it has one here.
func TestPrivilegesOfEachKind(t *testing.T) {
	grants := map[acl.Kind][][2]string{
		acl.Table:      {{"select on t", "privileges for table t"}, {"select on v", "privileges for view v"}},
		acl.Column:     {{"select (a) on t", "privileges for column a of table t"}},
		acl.Sequence:   {{"usage on sequence s", "privileges for sequence s"}},
		acl.Database:   {{"create on database percodb", "privileges for database percodb"}},
		acl.Schema:     {{"create on schema public", "privileges for schema public"}},
		acl.Function:   {{"execute on function lower(text)", "privileges for function lower(text)"}},
		acl.Type:       {{"usage on type e", "privileges for type e"}, {"usage on domain d", "privileges for type d"}, {"usage on type c", "privileges for type c"}, {"usage on type r", "privileges for type r"}, {"usage on type r_multirange", "privileges for type r_multirange"}, {"usage on type int4", "privileges for type integer"}},
		acl.Language:   {{"usage on language sql", "privileges for language sql"}},
		acl.Parameter:  {{"set on parameter work_mem", "privileges for parameter work_mem"}},
		acl.Tablespace: {{"create on tablespace pg_default", "privileges for tablespace pg_default"}},
		// Nothing of these kinds exists.
		acl.LargeObject: nil, acl.ForeignDataWrapper: nil, acl.ForeignServer: nil,
	}
	s := newServer(t, catalog.Options{})
	c := s.session()
	for _, text := range []string{
		"create table t (a int)", "create view v as select a from t", "create sequence s", "create type e as enum ()", "create domain d as int",
		"create type c as (a int)", "create type r as range (subtype = int)",
	} {
		if got := c.exec(text); strings.Contains(got, "ERROR") {
			t.Fatal(got)
		}
	}
	for kind := acl.Table; kind.All() != acl.None; kind++ {
		of, known := grants[kind]
		if !known {
			t.Errorf("no grant on an object of kind %d", kind)
		}
		for _, g := range of {
			c.exec("create role x")
			if got := c.exec("grant " + g[0] + " to x"); !strings.HasPrefix(got, "GRANT") {
				t.Errorf("grant %s: %s", g[0], got)
			}
			if got := c.exec("drop role x"); !strings.Contains(got, "DETAIL: "+g[1]) {
				t.Errorf("after grant %s: %s", g[0], got)
			}
			c.exec("drop owned by x")
			if got := c.exec("drop role x"); !strings.HasPrefix(got, "DROP ROLE") {
				t.Errorf("after grant %s and drop owned: %s", g[0], got)
			}
		}
	}
}
