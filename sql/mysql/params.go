package mysql

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// Clients of PostgreSQL's protocol write parameters as $1: JDBC and others turn question marks into that before they send a
// text. MySQL's grammar reads question marks alone, so each $n becomes one, with blanks behind it that keep all offsets.

// questionMarks replaces $n, outside of strings and comments, and returns the numbers by their offsets; nil without any.
func questionMarks(text string) (replaced string, numbers map[int]int, err error) {
	if !mayHaveDollars(text) {
		return text, nil, nil
	}
	b := []byte(text)
	for i := 0; i < len(text); {
		switch ch := text[i]; {
		case ch == '\'' || ch == '"' || ch == '`':
			i = skipQuoted(text, i)
		case ch == '#', ch == '-' && strings.HasPrefix(text[i:], "-- "), ch == '-' && strings.HasPrefix(text[i:], "--\n"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return string(b), numbers, nil
			}
			i += end
		case ch == '/' && plainComment(text[i:]):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return string(b), numbers, nil
			}
			i += end + 4
		case wordByte(ch):
			end := i
			for end < len(text) && wordByte(text[end]) {
				end++
			}
			n, isParam := paramNumber(text[i:end])
			if isParam {
				if n < 1 || n > maxParams {
					return "", nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter %s", text[i:min(end, i+20)])
				}
				if numbers == nil {
					numbers = map[int]int{}
				}
				numbers[i] = n
				b[i] = '?'
				for j := i + 1; j < end; j++ {
					b[j] = ' '
				}
			}
			i = end
		default:
			i++
		}
	}
	return string(b), numbers, nil
}

// mayHaveDollars reports whether a dollar sign stands before a digit.
func mayHaveDollars(text string) bool {
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			return false
		}
		if '0' <= text[i+1] && text[i+1] <= '9' {
			return true
		}
		text = text[i+1:]
	}
}

// paramNumber reads $n.
func paramNumber(word string) (int, bool) {
	if word[0] != '$' || len(word) < 2 {
		return 0, false
	}
	for _, ch := range []byte(word[1:]) {
		if ch < '0' || ch > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(word[1:])
	if err != nil {
		n = maxParams + 1
	}
	return n, true
}
