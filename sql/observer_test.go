package sql

import (
	"testing"

	"github.com/percodb/percodb/sql/ast"
)

// TestObserverBodyPosition: the position of an observer's body is that of its first character, for errors in it.
func TestObserverBodyPosition(t *testing.T) {
	for _, c := range []struct {
		text string
		pos  ast.Pos
		body string
	}{
		{"create observer o on t as $$abc$$", 29, "abc"},
		{"create observer ö on t as $täg$ abc$täg$", 32, " abc"},
		{"create observer o on t as 'abc'", 28, "abc"},
	} {
		node, err := ParseTree(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if body := node.(*ast.CreateObserver).Body; body.Pos != c.pos || body.SQL != c.body {
			t.Errorf("%s: %q at %d, want %q at %d", c.text, body.SQL, body.Pos, c.body, c.pos)
		}
	}
}
