package sql

import "testing"

// FuzzParse: whatever the input, lexing and parsing end without a panic, and what is accepted prints as
// SQL that parses to an equal tree. go test -fuzz FuzzParse ./sql
func FuzzParse(f *testing.F) {
	for _, seed := range ownStatements(f) {
		f.Add(seed)
	}
	f.Add("select 1; select 2;; -- x\nselect /* a /* b */ c */ 3")
	f.Add("select 'a'\n'b', $1, \"x\"")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseAll(text)
		if err != nil && codeOf(err) == "" {
			t.Errorf("%q fails without a SQLSTATE: %v", text, err)
		}
		for _, node := range list {
			checkRoundTrip(t, text, node)
		}
		if x, err := ParseExpr(text); err == nil {
			if again, err := ParseExpr(x.String()); err != nil || again.String() != x.String() {
				t.Errorf("expression %q prints as %q, which parses as %v, %v", text, x, again, err)
			}
		}
	})
}
