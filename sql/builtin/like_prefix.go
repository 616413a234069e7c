package builtin

import "strings"

// LikePrefix returns the text that all texts begin with that match a LIKE pattern with the default escape.
func LikePrefix(pattern string) string {
	at := strings.IndexAny(pattern, `%_\`)
	if at < 0 {
		return pattern
	}
	var b strings.Builder
	for at = 0; at < len(pattern); at++ {
		switch pattern[at] {
		case '%', '_':
			return b.String()
		case '\\':
			if at++; at == len(pattern) {
				return b.String()
			}
		}
		b.WriteByte(pattern[at])
	}
	return b.String()
}
