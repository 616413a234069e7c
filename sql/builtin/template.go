package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// A template of to_char, to_date, to_timestamp and to_number is divided into nodes: fields with their modifiers, and
// text between them.

type nodeKind uint8

const (
	nodeField nodeKind = iota
	nodeText           // a character that is copied, or skipped on input
	nodeSeparator
	nodeSpace
)

// templateNode is one field, or one character.
type templateNode struct {
	kind nodeKind
	key  string // of a field, as written
	text string // the character of another node
	fill bool   // FM: no padding
	name bool   // TM: a name in the language of the messages, without padding
	th   string // "TH" or "th" after the field
}

// templateSyntax is the keywords of one kind of template.
type templateSyntax struct {
	keys      map[string]bool
	longest   int
	modifiers bool // FM and TM before a field, TH and SP after it
	// separators are the characters that may stand between fields without quotes; "": all.
	separators string
}

func newTemplateSyntax(words string, modifiers bool) *templateSyntax {
	s := &templateSyntax{keys: map[string]bool{}, modifiers: modifiers}
	for _, w := range strings.Fields(words) {
		s.keys[w] = true
		s.longest = max(s.longest, len(w))
	}
	return s
}

// key returns the longest keyword with which t begins.
func (s *templateSyntax) key(t string) string {
	for n := min(s.longest, len(t)); n > 0; n-- {
		if s.keys[t[:n]] {
			return t[:n]
		}
	}
	return ""
}

// maxTemplateBytes bounds templates: nodes take many times their size.
const maxTemplateBytes = 64 << 10

// parse divides a template into nodes; 54000 if it is too long.
func (s *templateSyntax) parse(t string) ([]templateNode, error) {
	if len(t) > maxTemplateBytes {
		return nil, pgerror.New(pgerror.ProgramLimitExceeded, "format template of %d bytes is too long: at most %d are allowed", len(t), maxTemplateBytes)
	}
	var nodes []templateNode
	for t != "" {
		var n templateNode
		if s.modifiers {
			for strings.HasPrefix(t, "FM") || strings.HasPrefix(t, "fm") || strings.HasPrefix(t, "TM") || strings.HasPrefix(t, "tm") {
				n.fill, n.name = n.fill || t[0]|0x20 == 'f', n.name || t[0]|0x20 == 't'
				t = t[2:]
			}
		}
		if key := s.key(t); key != "" {
			n.kind, n.key, t = nodeField, key, t[len(key):]
			if s.modifiers && (strings.HasPrefix(t, "TH") || strings.HasPrefix(t, "th")) {
				n.th, t = t[:2], t[2:]
			}
			if s.modifiers && n.th == "" && strings.HasPrefix(t, "SP") {
				t = t[2:] // spelled out: accepted without effect, as in PostgreSQL
			}
			nodes = append(nodes, n)
			continue
		}
		switch {
		case t == "":
		case t[0] == '"':
			nodes, t = parseQuoted(nodes, t[1:])
		default:
			if strings.HasPrefix(t, `\"`) {
				t = t[1:]
			}
			r, size := utf8.DecodeRuneInString(t)
			if s.separators != "" && !strings.ContainsRune(s.separators, r) {
				return nil, errDateInput("invalid datetime format separator: \"%s\"", t[:size])
			}
			nodes = append(nodes, templateNode{kind: charKind(t[0]), text: t[:size]})
			t = t[size:]
		}
	}
	return nodes, nil
}

func parseQuoted(nodes []templateNode, t string) ([]templateNode, string) {
	for t != "" {
		if t[0] == '"' {
			return nodes, t[1:]
		}
		if t[0] == '\\' && len(t) > 1 {
			t = t[1:]
		}
		_, size := utf8.DecodeRuneInString(t)
		nodes = append(nodes, templateNode{kind: nodeText, text: t[:size]})
		t = t[size:]
	}
	return nodes, t
}

func charKind(c byte) nodeKind {
	switch {
	case isSeparator(c):
		return nodeSeparator
	case isBlank(c):
		return nodeSpace
	}
	return nodeText
}

func isSeparator(c byte) bool { return c > ' ' && c < 0x7f && !isLetter(c) && !isDigit(c) }
func isBlank(c byte) bool     { return c == ' ' || c >= '\t' && c <= '\r' }

// ordinal returns the suffix of a number written in digits: st, nd, rd or th.
func ordinal(digits, th string) string {
	if th == "" || digits == "" {
		return ""
	}
	s := "th"
	if n := len(digits); n < 2 || digits[n-2] != '1' {
		switch digits[n-1] {
		case '1':
			s = "st"
		case '2':
			s = "nd"
		case '3':
			s = "rd"
		}
	}
	if th == "TH" {
		return strings.ToUpper(s)
	}
	return s
}
