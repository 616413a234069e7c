package planner

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
)

// usedBy returns the relations that a node reads or writes, and the privileges that this needs at least.
func usedBy(n Node) (tables []*catalog.TableDescriptor, p acl.Privileges) {
	switch n := n.(type) {
	case *PointGet:
		return []*catalog.TableDescriptor{n.Table}, 0
	case *Scan:
		return []*catalog.TableDescriptor{n.Table}, 0
	case *Append:
		return []*catalog.TableDescriptor{n.Table}, 0
	case *LookupJoin:
		return []*catalog.TableDescriptor{n.Table}, 0
	case *VirtualScan:
		return []*catalog.TableDescriptor{n.Table}, acl.Select
	case *Changes:
		return []*catalog.TableDescriptor{n.Table}, acl.Select | acl.Trigger
	case *Insert:
		return []*catalog.TableDescriptor{n.Table}, acl.Insert
	case *Update:
		return []*catalog.TableDescriptor{n.Table}, acl.Update
	case *Delete:
		return []*catalog.TableDescriptor{n.Table}, acl.Delete
	case *InsteadOf:
		return []*catalog.TableDescriptor{n.View}, map[catalog.TriggerEvents]acl.Privileges{
			catalog.TriggerInsert: acl.Insert, catalog.TriggerUpdate: acl.Update, catalog.TriggerDelete: acl.Delete}[n.Event]
	case *Merge:
		var p acl.Privileges
		for _, a := range n.Actions {
			p |= map[string]acl.Privileges{"INSERT": acl.Insert, "UPDATE": acl.Update, "DELETE": acl.Delete}[a.Action]
		}
		return []*catalog.TableDescriptor{n.Table}, p
	case *LockRows:
		for _, target := range n.Targets {
			tables = append(tables, target.Table)
		}
		return tables, acl.Update
	}
	return nil, 0
}

// authorized fails unless the plan's needs cover what a node reads and writes. checkPlan calls it for every node of every plan that this
// package's tests make.
func (c *checker) authorized(n Node) {
	tables, p := usedBy(n)
	for _, t := range tables {
		covered := slices.ContainsFunc(c.plan.Needs, func(n *Need) bool { return n.Relation == t && n.Privileges&p == p && n.Privileges != 0 })
		if !covered {
			c.fail("nobody checks the privileges on %s that %T needs", t.Name, n)
		}
	}
}

// Goal: a node that is added to the planner and refers to a relation is known to usedBy, so that every plan with it is checked. Method:
// the declarations are read from the source.
func TestNodesAreAuthorized(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "node.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		node, relation := false, false
		for _, field := range st.Fields.List {
			name := ""
			ast.Inspect(field.Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					name = id.Name
				}
				return true
			})
			node = node || len(field.Names) == 0 && name == "Base"
			relation = relation || name == "Access" || name == "TableDescriptor" || name == "LockTarget"
		}
		if node && relation {
			declared = append(declared, spec.Name.Name)
		}
		return true
	})
	known := []string{"PointGet", "Scan", "Append", "Changes", "VirtualScan", "LookupJoin", "LockRows", "Insert", "Update", "Delete", "Merge", "InsteadOf"}
	slices.Sort(declared)
	slices.Sort(known)
	if !slices.Equal(declared, known) {
		t.Errorf("nodes that refer to relations: %v; usedBy knows %v", declared, known)
	}
}

// Goal: the privileges that statements need, column by column, as PostgreSQL's permission checks have them. Method: a table.
func TestNeeds(t *testing.T) {
	m := newMemCatalog()
	if err := m.define("table t: a int4 pk, b int4, c text\ntable u: a int4 pk, d int4"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sql                     string
		relation                string
		privileges              acl.Privileges
		selected, inserted, upd []string
	}{
		{"SELECT a FROM t WHERE b = 1", "t", acl.Select, []string{"a", "b"}, nil, nil},
		{"SELECT count(*) FROM t", "t", acl.Select, nil, nil, nil},
		{"SELECT * FROM t", "t", acl.Select, []string{"a", "b", "c"}, nil, nil},
		{"SELECT t FROM t", "t", acl.Select, []string{"a", "b", "c"}, nil, nil},
		{"SELECT d FROM t JOIN u USING (a)", "t", acl.Select, []string{"a"}, nil, nil},
		{"SELECT a FROM t FOR UPDATE", "t", acl.Select | acl.Update, []string{"a"}, nil, nil},
		{"SELECT (SELECT max(b) FROM t)", "t", acl.Select, []string{"b"}, nil, nil},
		{"INSERT INTO t(a) VALUES (1)", "t", acl.Insert, nil, []string{"a"}, nil},
		{"INSERT INTO t VALUES (1, 2)", "t", acl.Insert, nil, []string{"a", "b"}, nil},
		{"INSERT INTO t DEFAULT VALUES", "t", acl.Insert, nil, nil, nil},
		{"INSERT INTO t(a) SELECT a FROM u RETURNING c", "t", acl.Insert | acl.Select, []string{"c"}, []string{"a"}, nil},
		{"INSERT INTO t(a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b", "t", acl.Insert | acl.Select | acl.Update, []string{"a", "b"}, []string{"a"}, []string{"b"}},
		{"UPDATE t SET b = 1", "t", acl.Update, nil, nil, []string{"b"}},
		{"UPDATE t SET b = a WHERE c = 'x'", "t", acl.Update | acl.Select, []string{"a", "c"}, nil, []string{"b"}},
		{"DELETE FROM t", "t", acl.Delete, nil, nil, nil},
		{"DELETE FROM t WHERE a = 1", "t", acl.Delete | acl.Select, []string{"a"}, nil, nil},
		{"UPDATE t SET b = u.d FROM u WHERE u.a = t.a", "u", acl.Select, []string{"a", "d"}, nil, nil},
	} {
		p, _, err := planText(m, c.sql, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		i := slices.IndexFunc(p.Needs, func(n *Need) bool { return n.Relation != nil && n.Relation.Name == c.relation })
		if i < 0 {
			t.Errorf("%s: needs nothing of %s", c.sql, c.relation)
			continue
		}
		n := p.Needs[i]
		names := func(s colSet) (all []string) {
			s.each(func(ordinal int) { all = append(all, n.Relation.Columns[ordinal].Name) })
			return all
		}
		if n.Privileges != c.privileges || !slices.Equal(names(n.Selected), c.selected) || !slices.Equal(names(n.Inserted), c.inserted) ||
			!slices.Equal(names(n.Updated), c.upd) {
			t.Errorf("%s: privileges %b, selected %v, inserted %v, updated %v", c.sql, n.Privileges, names(n.Selected), names(n.Inserted), names(n.Updated))
		}
	}
}
