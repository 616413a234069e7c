package planner

import (
	"fmt"
	"testing"
)

// Goal: what a plan states about its rows holds for every shape of input, so that the executor need not look. Method: the changes of a
// table whose input has each shape, and what was derived for them.
func TestProperties(t *testing.T) {
	m := newMemCatalog()
	for _, define := range []string{
		"table t rows=1000: id int4 pk, a int4, b text\nindex t_a on t: a",
		"table u rows=1000: id int4 pk, a int4\nunique u_a on u: a",
	} {
		if err := m.define(define); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"DELETE FROM t WHERE id = 1", "one once direct locked"},
		{"UPDATE t SET b = 'x' WHERE id = 1", "one once direct locked"},
		{"DELETE FROM t WHERE id = 1 AND a = 2", "one once direct"},
		{"DELETE FROM u WHERE a = 1", "one once direct"},
		{"DELETE FROM t", "once ahead direct"},
		{"DELETE FROM t RETURNING (SELECT max(a) FROM u)", "once"},
		{"DELETE FROM t WHERE id IN (1, 2, 3)", "once"},
		{"DELETE FROM t WHERE b = 'x' AND id > 7", "once ahead direct"},
		{"DELETE FROM t USING u WHERE u.id = t.a", ""},
		{"DELETE FROM t WHERE EXISTS (SELECT FROM u WHERE u.id = t.a)", "once"},
		{"INSERT INTO t VALUES (1, 2, 'x')", "one direct"},
		{"INSERT INTO t VALUES (1, 2, 'x'), (2, 3, 'y')", "direct"},
		{"INSERT INTO t SELECT id + 1000, a, b FROM t", "once ahead gather direct"},
		{"INSERT INTO t SELECT id, a, 'x' FROM u", "once ahead direct"},
		{"INSERT INTO t SELECT (SELECT max(id) FROM t), a, 'x' FROM u", "once gather direct"},
		{"INSERT INTO t VALUES (1, 2, 'x') RETURNING (SELECT max(a) FROM t)", "one"},
	} {
		p, _, err := planText(m, c.text, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var got string
		add := func(yes bool, word string) {
			if yes && got != "" {
				got += " "
			}
			if yes {
				got += word
			}
		}
		props := p.Root.Children()[0].Properties()
		add(props.AtMostOne, "one")
		add(props.EachRowOnce, "once")
		add(props.ReadsAhead, "ahead")
		switch n := p.Root.(type) {
		case *Insert:
			add(n.Gather, "gather")
			add(n.Direct, "direct")
		case *Update:
			add(n.Direct, "direct")
			add(n.LockedBelow, "locked")
		case *Delete:
			add(n.Direct, "direct")
			add(n.LockedBelow, "locked")
			if get, ok := n.Input.(*PointGet); ok && get.LockFirst != n.LockedBelow {
				got += fmt.Sprintf(" LockFirst %t", get.LockFirst)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}
