package keyword

import "testing"

// Goal: names are quoted as PostgreSQL 15's quote_ident does. Method: a table of its results.
func TestQuoteIdent(t *testing.T) {
	for name, want := range map[string]string{
		"": `""`, "a": "a", "_1": "_1", "a1_": "a1_", "1a": `"1a"`, "A": `"A"`, "a b": `"a b"`, `a"b`: `"a""b"`, "a$b": `"a$b"`, "é": `"é"`,
		"select": `"select"`, "int": `"int"`, "left": `"left"`, "rows": "rows", "selects": "selects",
	} {
		if got := QuoteIdent(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
