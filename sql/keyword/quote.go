package keyword

import "strings"

// QuoteIdent returns a name as one identifier, as PostgreSQL's quote_ident does: in double quotes unless it may stand bare.
func QuoteIdent(name string) string {
	if Bare(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// Bare reports whether a name needs no quotes: lower-case letters, digits and underscores, not a digit first, and not a keyword
// that is reserved in some place.
func Bare(name string) bool {
	if name == "" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return Lookup([]byte(name)).Category() <= Unreserved
}
