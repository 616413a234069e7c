package builtin

import (
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/types"
)

// Goal: the items of a predicate's, an arithmetic operator's or a subscript's operands are not counted any more once it is evaluated. Method:
// many evaluations over many items, with memory for a few of them.
func TestPathOperandsAreReleased(t *testing.T) {
	value, err := types.ParseText(types.TJSONB, "["+strings.Repeat("1,", 1499)+"1]", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"$[*] ? ($[*] == -1)", "$[*] ? ($[*] starts with \"x\")", "$[*] ? ($[*] like_regex \"x\")", "strict $[*] ? (exists ($[*] ? (@ > 1)))",
	} {
		account := memory.NewAccount(memory.NewPool("a test", 1<<20), 0)
		env := &Env{Memory: &account}
		found, err := newPathCall(env, []types.Datum{value, types.Text(path)}, false).exists()
		if err != nil || found.Bool() {
			t.Errorf("%s: %v, %v", path, found, err)
		}
	}
}
