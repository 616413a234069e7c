package inverted

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// randomJSON returns a document with few keys and values, so that paths find something.
func randomJSON(r *rand.Rand, depth int) string {
	switch n := r.IntN(9); {
	case n < 2 && depth > 0:
		parts := make([]string, r.IntN(3))
		for i := range parts {
			parts[i] = randomJSON(r, depth-1)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case n < 6 && depth > 0:
		parts := make([]string, r.IntN(3))
		for i := range parts {
			parts[i] = fmt.Sprintf(`"%c": %s`, 'a'+r.IntN(3), randomJSON(r, depth-1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return []string{"1", "2.0", "-1", `"a"`, `"x"`, "true", "false", "null"}[r.IntN(8)]
}

func randomSteps(r *rand.Rand, depth int) string {
	out := ""
	for range r.IntN(4) {
		switch r.IntN(12) {
		case 0:
			out += "[*]"
		case 1:
			out += "[0]"
		case 2:
			out += ".*"
		case 3:
			out += ".**"
		case 4:
			out += ".size()"
		case 5:
			out += ".keyvalue().value"
		case 6, 7:
			if depth > 0 {
				out += " ? (" + randomCondition(r, depth-1) + ")"
			}
		default:
			out += "." + string(rune('a'+r.IntN(3)))
		}
	}
	return out
}

func randomOperand(r *rand.Rand, depth int) string {
	switch r.IntN(6) {
	case 0, 1:
		return []string{"1", "2", "-1", `"a"`, `"x"`, "true", "null"}[r.IntN(7)]
	case 2:
		return "($" + randomSteps(r, 0) + " + 1)"
	case 3:
		return "$" + randomSteps(r, depth)
	}
	return "@" + randomSteps(r, depth)
}

// randomCondition returns a condition within a filter.
func randomCondition(r *rand.Rand, depth int) string {
	switch r.IntN(8) {
	case 0:
		return "(" + randomCondition(r, depth) + " && " + randomCondition(r, depth) + ")"
	case 1:
		return "(" + randomCondition(r, depth) + " || " + randomCondition(r, depth) + ")"
	case 2:
		return "!(" + randomCondition(r, depth) + ")"
	case 3:
		return "exists (@" + randomSteps(r, depth) + ")"
	case 4:
		return "(" + randomCondition(r, depth) + ") is unknown"
	}
	return randomOperand(r, depth) + " " + []string{"==", "==", "==", "!=", "<", ">="}[r.IntN(6)] + " " + randomOperand(r, depth)
}

// Goal: no document that a path finds something in, or for which its condition is true, is missed by the query of its terms. Method: random documents
// and paths, lax and strict, against the operators.
func TestPathsMissNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	pathType := types.Type{OID: types.OIDJSONPath, Mod: -1}
	env := &builtin.Env{}
	operators := map[string]*builtin.Overload{}
	for _, op := range []string{"@?", "@@"} {
		o, err := builtin.ResolveOperator(op, types.TJSONB, pathType)
		if err != nil {
			t.Fatal(err)
		}
		operators[op] = o
	}
	holds, narrowed, refused := 0, 0, 0
	for range 20_000 {
		op, text := "@?", "$"+randomSteps(r, 2)
		if r.IntN(2) == 0 {
			op, text = "@@", strings.ReplaceAll(randomCondition(r, 2), "@", "$")
		}
		if r.IntN(3) == 0 {
			text = "strict " + text
		}
		path, err := types.ParseText(pathType, text, &types.Format{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		doc, err := types.ParseText(types.TJSONB, randomJSON(r, 3), &types.Format{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := operators[op].Fn(env, []types.Datum{doc, path})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		yes := !result.IsNull() && result.Bool()
		if yes {
			holds++
		}
		for _, class := range []Class{JSONB, JSONBPath} {
			q, err := class.Search(env, op, path, pathType)
			if err != nil {
				t.Fatal(err)
			}
			terms, err := class.Terms(env, doc, types.TJSONB)
			if err != nil {
				t.Fatal(err)
			}
			if !q.All {
				narrowed++
			}
			switch found := satisfied(q, terms); {
			case yes && !found:
				t.Fatalf("%s: %s is missed for %s %s", class, (&types.Format{}).Text(doc, types.TJSONB), op, text)
			case !yes && !found:
				refused++
			}
		}
	}
	if holds < 5_000 || narrowed < 6_000 || refused < 5_000 {
		t.Errorf("%d held, %d queries narrowed, %d documents were refused", holds, narrowed, refused)
	}
}
