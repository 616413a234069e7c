package acl

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
)

const (
	owner = uint32(10)
	alice = uint32(20)
	bob   = uint32(21)
	carol = uint32(22)
	root  = uint32(30)
)

// graph are roles: who is a member of whom, and inherits; root is a superuser.
type graph map[uint32][]uint32

func (g graph) Superuser(role uint32) bool { return role == root }

func (g graph) HasPrivilegesOf(role, of uint32) bool {
	return g.Superuser(role) || slices.Contains(g.PrivilegesOf(role), of)
}

func (g graph) PrivilegesOf(role uint32) []uint32 {
	found := []uint32{role}
	for i := 0; i < len(found); i++ {
		for _, next := range g[found[i]] {
			if !slices.Contains(found, next) {
				found = append(found, next)
			}
		}
	}
	return found
}

var roleNames = map[uint32]string{owner: "postgres", alice: "alice", bob: "Bob's \"x\"", carol: "carol", root: "root"}

func roleName(id uint32) string { return roleNames[id] }

func roleOID(name string) (uint32, error) {
	for id, n := range roleNames {
		if n == name {
			return id, nil
		}
	}
	return 0, pgerror.New("42704", "role %q does not exist", name)
}

func text(l List) string {
	s := ""
	for i, it := range l {
		if i > 0 {
			s += ","
		}
		s += string(it.Append(nil, roleName))
	}
	return s
}

// Goal: the lists after sequences of GRANT and REVOKE are PostgreSQL's, also with options, cascades and circles. Method: the results
// were taken from PostgreSQL 15.
func TestApply(t *testing.T) {
	none := graph{}
	grant := func(by uint32, option bool, p Privileges, to ...uint32) func(List) (List, error) {
		return func(l List) (List, error) {
			return l.Apply(none, &Grant{Privileges: p, Grantees: to, Option: option}, by, owner)
		}
	}
	revoke := func(by uint32, option, cascade bool, p Privileges, from ...uint32) func(List) (List, error) {
		return func(l List) (List, error) {
			return l.Apply(none, &Grant{Revoke: true, Privileges: p, Grantees: from, Option: option, Cascade: cascade}, by, owner)
		}
	}
	for _, c := range []struct {
		name  string
		steps []func(List) (List, error)
		want  string
		code  pgerror.Code
	}{
		{"grant", []func(List) (List, error){grant(owner, false, Select|Insert, alice)}, "postgres=arwdDxt/postgres,alice=ar/postgres", ""},
		{"public", []func(List) (List, error){grant(owner, false, Select, Public)}, "postgres=arwdDxt/postgres,=r/postgres", ""},
		{"option", []func(List) (List, error){grant(owner, true, Select, alice), grant(alice, false, Select, bob)},
			`postgres=arwdDxt/postgres,alice=r*/postgres,"Bob's ""x"""=r/alice`, ""},
		{"restrict", []func(List) (List, error){grant(owner, true, Select, alice), grant(alice, false, Select, bob), revoke(owner, false, false, Select, alice)},
			"", pgerror.DependentObjectsStillExist},
		{"cascade", []func(List) (List, error){grant(owner, true, Select, alice), grant(alice, false, Select, bob), revoke(owner, false, true, Select, alice)},
			"postgres=arwdDxt/postgres", ""},
		{"option only", []func(List) (List, error){grant(owner, true, Select, alice), revoke(owner, true, false, Select, alice)},
			"postgres=arwdDxt/postgres,alice=r/postgres", ""},
		{"two ways", []func(List) (List, error){
			grant(owner, true, Select, alice, carol), grant(carol, true, Select, alice), grant(alice, false, Select, bob), revoke(owner, false, false, Select, alice)},
			`postgres=arwdDxt/postgres,carol=r*/postgres,alice=r*/carol,"Bob's ""x"""=r/alice`, ""},
		{"circle", []func(List) (List, error){grant(owner, true, Select, alice), grant(alice, true, Select, bob), grant(bob, true, Select, alice)}, "", pgerror.InvalidGrantOperation},
		{"public option", []func(List) (List, error){grant(owner, true, Select, Public)}, "", pgerror.InvalidGrantOperation},
		{"owner's own", []func(List) (List, error){revoke(owner, false, false, Insert, owner)}, "postgres=rwdDxt/postgres", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Default(Table, owner)
			var err error
			for i, step := range c.steps {
				if l, err = step(l); err != nil && i < len(c.steps)-1 {
					t.Fatal(err)
				}
			}
			var e *pgerror.Error
			if errors.As(err, &e) != (c.code != "") || e != nil && e.Code != c.code {
				t.Fatalf("error %v, want %s", err, c.code)
			}
			if got := text(l); err == nil && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Goal: properties that hold after every sequence of changes: nobody holds an option or a privilege that does not lead back to the
// owner; granting and revoking the same by the same leaves nothing of it; no item is empty or doubled; a refused change changes nothing.
// Method: random sequences by random grantors, of those that BestGrantor permits.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	people := []uint32{alice, bob, carol, 23, 24}
	for round := range 300 {
		roles := graph{}
		for _, p := range people {
			if round%2 == 0 && rng.IntN(3) == 0 {
				roles[p] = []uint32{people[rng.IntN(len(people))]}
			}
		}
		l := Default(Table, owner)
		for range 30 {
			by := append(people, owner)[rng.IntN(len(people)+1)]
			want := Privileges(rng.Uint32()) & Table.All()
			grantor, can := l.BestGrantor(roles, by, owner, want)
			g := &Grant{
				Revoke: rng.IntN(2) == 0, Privileges: can, Grantees: []uint32{people[rng.IntN(len(people))]},
				Option: rng.IntN(2) == 0, Cascade: rng.IntN(2) == 0,
			}
			before := slices.Clone(l)
			next, err := l.Apply(roles, g, grantor, owner)
			if !slices.Equal(before, l) {
				t.Fatal("a list was changed in place")
			}
			if err != nil {
				continue
			}
			l = next
			if checkItems(t, l); len(roles) == 0 { // With members PostgreSQL's rules permit circles, too.
				checkRooted(t, l)
			}
			if g.Revoke && !g.Option {
				if i := l.index(g.Grantees[0], grantor); i >= 0 && l[i].Rights&g.Privileges != None {
					t.Fatalf("revoked, but still there: %s", text(l))
				}
			}
		}
	}
}

// checkItems fails if an item is empty, doubled, or has an option without its privilege.
func checkItems(t *testing.T, l List) {
	t.Helper()
	for i, it := range l {
		if it.Rights.Plain() == None || it.Rights.Granted()&^it.Rights.Plain() != None || l.index(it.Grantee, it.Grantor) != i {
			t.Fatalf("item %d of %s", i, text(l))
		}
	}
}

// checkRooted fails unless every privilege was granted by somebody who has its option, by a way from the owner.
func checkRooted(t *testing.T, l List) {
	t.Helper()
	Table.All().Each(func(p Privileges) {
		holds := []uint32{owner}
		for range l {
			for _, it := range l {
				if it.Rights.Granted()&p != None && slices.Contains(holds, it.Grantor) && !slices.Contains(holds, it.Grantee) {
					holds = append(holds, it.Grantee)
				}
			}
		}
		for _, it := range l {
			if it.Rights&p != None && !slices.Contains(holds, it.Grantor) {
				t.Fatalf("%s was granted by a role that may not: %s", p.Name(), text(l))
			}
		}
	})
}

// Goal: privileges by membership and PUBLIC, and the owner's options. Method: a table.
func TestMask(t *testing.T) {
	roles := graph{bob: {alice}, carol: {owner}}
	l := List{{owner, owner, Select | Insert}, {alice, owner, Update | Update.Options()}, {Public, owner, Delete}}
	for _, c := range []struct {
		role       uint32
		want, have Privileges
	}{
		{alice, Select | Update | Delete, Update | Delete},
		{bob, Update | Delete | Insert, Update | Delete},
		{carol, Select | Truncate, Select},
		{bob, Update.Options() | Select.Options(), Update.Options()},
		{carol, Truncate.Options(), Truncate.Options()},
		{23, Delete | Select, Delete},
	} {
		if have := l.Mask(roles, c.role, owner, c.want, false); have != c.have {
			t.Errorf("role %d: %b of %b, want %b", c.role, have, c.want, c.have)
		}
	}
	for _, c := range []struct {
		role, grantor uint32
		want, can     Privileges
	}{
		{root, owner, Select, Select}, {owner, owner, Select, Select}, {carol, owner, Select | Update, Select | Update},
		{bob, alice, Update, Update}, {bob, alice, Update | Select, Update}, {23, 23, Update, None},
	} {
		if by, can := l.BestGrantor(roles, c.role, owner, c.want); by != c.grantor || can != c.can {
			t.Errorf("role %d grants %b as %d: %b", c.role, c.want, by, can)
		}
	}
}

// Goal: a new owner takes the place of the old one, and items that become equal are joined. Method: PostgreSQL's result.
func TestWithOwner(t *testing.T) {
	l := List{{owner, owner, Table.All()}, {alice, owner, Select}, {bob, alice, Select}}
	if got := text(l.WithOwner(owner, alice)); got != `alice=arwdDxt/alice,"Bob's ""x"""=r/alice` {
		t.Error(got)
	}
	if List(nil).WithOwner(owner, alice) != nil {
		t.Error("a list without items is not the default")
	}
}

// Goal: the text form, its errors, and what has no role. Method: a table from PostgreSQL 15.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"alice=r*w/postgres":       "alice=r*w/postgres",
		"=r/alice":                 "=r/alice",
		" user alice = r":          "",
		"group carol=r":            "carol=r/postgres",
		`"Bob's ""x"""=a*/alice  `: `"Bob's ""x"""=a*/alice`,
		"alice=/postgres":          "alice=/postgres",
		"alice=q/postgres":         "22P02",
		"alice":                    "22P02",
		"nobody=r/postgres":        "42704",
		"alice=r/":                 "22P02",
		"alice=r/postgres garbage": "22P02",
		"alice=r1/postgres":        "22P02",
		"alice=r_/postgres":        "22P02",
		"=*r/postgres":             "=r/postgres",
		"=r /postgres":             "22P02",
		"group =r/postgres":        "42704",
		"x y=r":                    "22P02",
	} {
		warned := false
		it, err := Parse(in, roleOID, owner, func() { warned = true })
		if !strings.Contains(in, "/") != warned && err == nil {
			t.Errorf("%q: warned %v", in, warned)
		}
		got := string(it.Append(nil, roleName))
		var e *pgerror.Error
		if errors.As(err, &e) {
			got = string(e.Code)
		}
		if want != "" && got != want {
			t.Errorf("%q: %s, want %s (%v)", in, got, want, err)
		}
	}
	if got := string(Item{77, 78, Select}.Append(nil, roleName)); got != "77=r/78" {
		t.Error(got)
	}
}

// Goal: no text makes Parse panic; what it accepts is printed and read again as the same item.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"alice=r*w/postgres", `"a""b"=X/x`, "=", "group x=U", "1=r/2",
		" user a = r", "=*r/a", "a=rr*r*/a x", "a=arwdDxtXUCTcsA/b", "ä=r/ö", `"=r/a`, "a=r1/b", "=/", "a=z", strings.Repeat("n", 64) + "=r/a"} {
		f.Add(s)
	}
	seen := map[uint32]string{}
	oid := func(name string) (uint32, error) {
		for id, n := range seen {
			if n == name {
				return id, nil
			}
		}
		id := uint32(len(seen) + 1)
		seen[id] = name
		return id, nil
	}
	name := func(id uint32) string { return seen[id] }
	f.Fuzz(func(t *testing.T, s string) {
		clear(seen)
		_, _ = oid("postgres")
		it, err := Parse(s, oid, 1, func() {})
		if err != nil {
			return
		}
		printed := string(it.Append(nil, name))
		again, err := Parse(printed, oid, 1, func() { t.Fatal("no grantor") })
		if err != nil || again != it {
			t.Fatalf("%q: %s is read as %+v, %v; was %+v", s, strconv.Quote(printed), again, err, it)
		}
	})
}
