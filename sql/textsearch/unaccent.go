package textsearch

import (
	_ "embed"
	"strings"
	"sync"
)

// unaccentText lists what PostgreSQL 15's extension unaccent makes of each character that it changes.
//
//go:embed unaccent.txt
var unaccentText string

var unaccented = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{}
	for line := range strings.Lines(unaccentText) {
		from, to, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		for _, r := range from {
			m[r] = to
		}
	}
	return m
})

// unaccentDictionary is the dictionary of the extension. Its name is known in every database.
var unaccentDictionary = &Dictionary{OID: 2_000_000_020, Name: "unaccent", Options: "rules = 'unaccent'",
	Template: &Template{2_000_000_021, "unaccent", "unaccent_init", "unaccent_lexize", ""}}

// IsOfUnaccent reports whether the dictionary is the one of the extension unaccent.
func (d *Dictionary) IsOfUnaccent() bool { return d == unaccentDictionary }

// IsOfUnaccent reports whether the template is that of the extension unaccent.
func (t *Template) IsOfUnaccent() bool { return t == unaccentDictionary.Template }

// lexizeUnaccent returns a word that Unaccent changes; the dictionary does not know others.
func lexizeUnaccent(word string) ([]string, bool) {
	plain := Unaccent(word)
	if plain == word {
		return nil, false
	}
	return []string{plain}, true
}

// Unaccent replaces the letters of a text that have accents, ligatures and the like. It returns s itself if there are none.
func Unaccent(s string) string {
	m := unaccented()
	at := strings.IndexFunc(s, func(r rune) bool {
		_, changes := m[r]
		return changes
	})
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:at])
	for _, r := range s[at:] {
		if to, changes := m[r]; changes {
			b.WriteString(to)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
