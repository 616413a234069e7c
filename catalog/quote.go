package catalog

import (
	"strings"

	"github.com/percodb/percodb/sql/keyword"
)

// QuoteName returns a name as SQL needs it: in double quotes unless it is plain lower case and not a reserved word.
func QuoteName(name string) string {
	if plainName(name) && !reserved(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func plainName(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '$'):
		default:
			return false
		}
	}
	return name != ""
}

// QuoteLiteral writes a string as an SQL literal.
func QuoteLiteral(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// reserved reports whether a name would be read as a keyword where PostgreSQL quotes it.
func reserved(name string) bool {
	w := keyword.Lookup([]byte(name))
	return w != keyword.None && w.Category() != keyword.Unreserved
}
