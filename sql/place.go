package sql

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// PlaceError moves the position of an error in a text that the statement has as a literal, such as the body of a function, to that in the
// query text. Other errors pass, and those in a text that the statement does not have exactly once.
func (s *Statement) PlaceError(err error) error {
	var e *pgerror.Error
	if s == nil || !errors.As(err, &e) || e.InternalPosition == 0 || e.Where != "" {
		return err
	}
	toks, lexErr := Tokens(s.Text, nil)
	if lexErr != nil {
		return err
	}
	at := -1
	for i := range toks {
		if t := &toks[i]; t.Kind == TokenString && t.Value == e.InternalQuery {
			if at >= 0 {
				return err
			}
			at = i
		}
	}
	if at < 0 {
		return err
	}
	raw := s.Text[toks[at].Start:toks[at].End]
	c := *e
	c.Position = s.base + utf8.RuneCountInString(s.Text[:toks[at].Start]) + placeIn(raw, e.InternalPosition)
	c.InternalPosition, c.InternalQuery = 0, ""
	return &c
}

// placeIn returns the place in a literal, as it is written, of the nth character of its value.
func placeIn(raw string, n int) int {
	if raw[0] == '$' {
		return strings.IndexByte(raw[1:], '$') + 2 + n
	}
	place := strings.IndexByte(raw, '\'') + 1
	escapes := place > 1
	rest := []rune(raw[place:])
	for i := 0; n > 1 && i < len(rest); i, n = i+1, n-1 {
		if place++; rest[i] == '\'' || escapes && rest[i] == '\\' {
			i++
			place++
		}
	}
	return place + 1
}
