package textsearch

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// option is an item of a list Key = value, Key = 'value', …
type option struct{ key, value string }

// parseOptions reads such a list. Keys and values may be quoted; values end at a comma or a blank if they are not.
//
// Errors: 42601.
func parseOptions(s string) ([]option, error) {
	var list []option
	rest := s
	for {
		rest = strings.TrimLeft(rest, spaces+",")
		if rest == "" {
			return list, nil
		}
		var o option
		var ok bool
		if o.key, rest, ok = optionKey(rest); !ok {
			break
		}
		if rest = strings.TrimLeft(rest, spaces); rest == "" || rest[0] != '=' {
			break
		}
		if o.value, rest, ok = optionValue(strings.TrimLeft(rest[1:], spaces)); !ok {
			break
		}
		list = append(list, o)
	}
	return nil, pgerror.New(pgerror.SyntaxError, "invalid parameter list format: \"%s\"", s)
}

const spaces = " \t\n\v\f\r"

func optionKey(s string) (key, rest string, ok bool) {
	if s[0] == '"' {
		return quotedPart(s[1:], '"')
	}
	// The first character may be any.
	n := strings.IndexAny(s[1:], spaces+"=")
	if n < 0 {
		return "", "", false
	}
	return s[:n+1], s[n+1:], true
}

func optionValue(s string) (value, rest string, ok bool) {
	switch {
	case s == "":
		return "", "", false
	case s[0] == '\'' || s[0] == '"':
		return quotedPart(s[1:], s[0])
	case strings.HasPrefix(s, "E'"):
		return quotedPart(s[2:], '\'')
	}
	n := strings.IndexAny(s[1:], spaces+",")
	if n < 0 {
		return s, "", true
	}
	return s[:n+1], s[n+1:], true
}

// quotedPart reads up to a quote. Two quotes are one that does not end the part; in single quotes two backslashes are one.
func quotedPart(s string, quote byte) (part, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		double := i+1 < len(s) && s[i+1] == c
		switch {
		case c == quote && !double:
			return b.String(), s[i+1:], true
		case double && (c == quote || c == '\\' && quote == '\''):
			i++
		}
		b.WriteByte(c)
	}
	return "", "", false
}
