package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/types"
)

// TrigramTerms returns the trigrams of a text, as the terms of an index.
func TrigramTerms(env *Env, text string) ([][]byte, error) {
	t, err := trigramsOf(env, text)
	return trigramBytes(t.set()), err
}

func trigramBytes(list []trigram) [][]byte {
	terms := make([][]byte, len(list))
	for i := range list {
		terms[i] = []byte(list[i][:])
	}
	return terms
}

// PatternTrigrams returns trigrams that every text has that matches a LIKE pattern, with or without regard to case.
func PatternTrigrams(env *Env, pattern string) ([][]byte, error) {
	var pieces []string // the texts between wildcards, with their ends: a letter that continues a word is marked by wildcardMark
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '%', '_':
			b.WriteRune(wildcardMark)
		case '\\':
			if i++; i < len(pattern) {
				b.WriteByte(pattern[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	pieces = append(pieces, b.String())
	return fixedTrigrams(env, pieces)
}

// wildcardMark stands for characters that are not known.
const wildcardMark = unicode.MaxRune

// fixedTrigrams returns the trigrams of texts in which wildcardMark stands for unknown characters: those of the words that are known, of which an
// end beside a mark is no end of a word.
func fixedTrigrams(env *Env, texts []string) ([][]byte, error) {
	var out textTrigrams
	for _, text := range texts {
		if err := env.Reserve(len(text) * 5); err != nil {
			return nil, err
		}
		if err := env.Step(len(text)); err != nil {
			return nil, err
		}
		var word []byte
		open := false // the word's beginning is not known
		end := func(known bool) {
			if len(word) > 0 {
				if !open {
					word = append([]byte("  "), word...)
				}
				if known {
					word = append(word, ' ')
				}
				if utf8.RuneCount(word) >= 3 {
					out.addWord(word)
				}
				word = nil
			}
		}
		for _, r := range types.FoldLower(text) {
			switch {
			case r == wildcardMark:
				end(false)
				open = true
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				word = utf8.AppendRune(word, r)
			default:
				end(true)
				open = false
			}
		}
		end(true)
	}
	return trigramBytes(out.set()), nil
}

// RegexpTrigrams returns trigrams that every text has that matches a regular expression, with or without regard to case. Only expressions of
// letters, digits and blanks, of . and .*, ^ and $ are understood; for others there are none.
func RegexpTrigrams(env *Env, pattern string) ([][]byte, error) {
	var b strings.Builder
	text := strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
	if text == pattern || !strings.HasPrefix(pattern, "^") {
		b.WriteRune(wildcardMark)
	}
	for i, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == ' ' || r == '_' || r == '-' || r == '@':
			b.WriteRune(r)
		case r == '.':
			b.WriteRune(wildcardMark)
		case (r == '*' || r == '+') && i > 0 && text[i-1] == '.':
		default:
			return nil, nil
		}
	}
	if !strings.HasSuffix(pattern, "$") {
		b.WriteRune(wildcardMark)
	}
	return fixedTrigrams(env, []string{b.String()})
}
