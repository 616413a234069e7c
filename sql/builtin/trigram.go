package builtin

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/types"
)

// trigram is three characters of a text, or a hash of them if they are not bytes.
type trigram [3]byte

// compareTrigrams orders trigrams as PostgreSQL does: by bytes with a sign.
func compareTrigrams(a, b trigram) int {
	for i := range a {
		if c := cmp.Compare(int8(a[i]), int8(b[i])); c != 0 {
			return c
		}
	}
	return 0
}

// String returns the characters, or the number of the hash.
func (t trigram) String() string {
	for _, c := range t {
		if c != ' ' && !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return fmt.Sprintf("0x%02x%02x%02x", t[0], t[1], t[2])
		}
	}
	return string(t[:])
}

// bounds say whether a trigram is at the begin and at the end of a word.
type bounds uint8

const (
	leftBound bounds = 1 << iota
	rightBound
)

// textTrigrams are the trigrams of a text in its order, with their bounds.
type textTrigrams struct {
	list   []trigram
	bounds []bounds
}

// trigramsOf divides a text into words of letters and digits, in lower case, and these into trigrams: a word begins with two blanks and ends
// with one.
func trigramsOf(env *Env, text string) (textTrigrams, error) {
	var t textTrigrams
	if err := env.Reserve(len(text) * 5); err != nil {
		return t, err
	}
	if err := env.Step(len(text)); err != nil {
		return t, err
	}
	word := []byte("  ")
	end := func() {
		if len(word) > 2 {
			t.addWord(append(word, ' '))
			word = word[:2]
		}
	}
	for _, r := range types.FoldLower(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			word = utf8.AppendRune(word, r)
		} else {
			end()
		}
	}
	end()
	return t, nil
}

func (t *textTrigrams) addWord(word []byte) {
	first := len(t.list)
	for i := 0; i < len(word); {
		rest := word[i:]
		n := 0
		for range 3 {
			_, size := utf8.DecodeRune(rest[n:])
			n += size
			if size == 0 {
				n = -1
				break
			}
		}
		if n < 0 {
			break
		}
		t.list, t.bounds = append(t.list, newTrigram(rest[:n])), append(t.bounds, 0)
		_, size := utf8.DecodeRune(rest)
		i += size
	}
	t.bounds[first] |= leftBound
	t.bounds[len(t.bounds)-1] |= rightBound
}

// newTrigram returns the trigram of three characters.
func newTrigram(chars []byte) trigram {
	if len(chars) == 3 {
		return trigram(chars)
	}
	crc := ^uint32(0)
	for _, c := range chars { // PostgreSQL shifts to the left by the table for shifts to the right.
		crc = crc32.IEEETable[byte(crc>>24)^c] ^ crc<<8
	}
	crc = ^crc
	return trigram{byte(crc), byte(crc >> 8), byte(crc >> 16)}
}

// set returns the trigrams sorted, each once.
func (t textTrigrams) set() []trigram {
	list := slices.Clone(t.list)
	slices.SortFunc(list, compareTrigrams)
	return slices.Compact(list)
}

// similar is the number of common trigrams in proportion to that of all.
func similar(common, a, b int) float32 { return float32(common) / float32(a+b-common) }

// similarity is how much alike two texts are, from 0 to 1.
func similarity(env *Env, x, y string) (float32, error) {
	a, err := trigramsOf(env, x)
	if err != nil {
		return 0, err
	}
	b, err := trigramsOf(env, y)
	if err != nil || len(a.list) == 0 || len(b.list) == 0 {
		return 0, err
	}
	s, t := a.set(), b.set()
	common, i, j := 0, 0, 0
	for i < len(s) && j < len(t) {
		switch c := compareTrigrams(s[i], t[j]); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			common, i, j = common+1, i+1, j+1
		}
	}
	return similar(common, len(s), len(t)), nil
}

// wordSearch finds the part of a text that is most alike another text.
type wordSearch struct {
	env    *Env
	strict bool   // parts begin and end with words
	wanted int    // the number of trigrams of the text that is looked for
	parts  []int  // the trigrams of the text in its order, by number
	found  []bool // by number: the trigram is of the text that is looked for
	last   []int  // by number: the last place in the current part, -1: none
	bounds []bounds
}

// wordSimilarity is how much alike the text x is to a part of y. Strictly, parts consist of whole words.
func wordSimilarity(env *Env, x, y string, strict bool) (float32, error) {
	a, err := trigramsOf(env, x)
	if err != nil {
		return 0, err
	}
	b, err := trigramsOf(env, y)
	if err != nil || len(a.list) == 0 || len(b.list) == 0 {
		return 0, err
	}
	wanted := a.set()
	all := b.set()
	s := &wordSearch{env: env, strict: strict, wanted: len(wanted), parts: make([]int, len(b.list)), found: make([]bool, len(all)),
		last: make([]int, len(all)), bounds: b.bounds}
	for i, t := range b.list {
		s.parts[i], _ = slices.BinarySearchFunc(all, t, compareTrigrams)
	}
	for i, t := range all {
		_, s.found[i] = slices.BinarySearchFunc(wanted, t, compareTrigrams)
		s.last[i] = -1
	}
	return s.best()
}

// best extends a part to the right, trigram by trigram, and moves its begin to where it is most alike.
func (s *wordSearch) best() (float32, error) {
	lower, count, size := -1, 0, 0
	if s.strict {
		lower = 0
	}
	best := float32(0)
	for i, part := range s.parts {
		if lower >= 0 || s.found[part] {
			if s.last[part] < 0 {
				size++
				if s.found[part] {
					count++
				}
			}
			s.last[part] = i
		}
		if s.strict && s.bounds[i]&rightBound == 0 || !s.strict && !s.found[part] {
			continue
		}
		if lower < 0 {
			lower, size = i, 1
		}
		if err := s.env.Step(8 * (i - lower + 1)); err != nil {
			return 0, err
		}
		current := similar(count, s.wanted, size)
		before, c, n := lower, count, size
		for j := lower; j <= i; j++ {
			if !s.strict || s.bounds[j]&leftBound != 0 {
				if sml := similar(c, s.wanted, n); sml > current {
					current, size, lower, count = sml, n, j, c
				}
			}
			if at := s.parts[j]; s.last[at] == j {
				n--
				if s.found[at] {
					c--
				}
			}
		}
		best = max(best, current)
		for j := before; j < lower; j++ {
			if at := s.parts[j]; s.last[at] == j {
				s.last[at] = -1
			}
		}
	}
	return best, nil
}

// sortedTexts returns trigrams as texts.
func (t textTrigrams) sortedTexts() []string {
	set := t.set()
	out := make([]string, len(set))
	for i := range set {
		out[i] = set[i].String()
	}
	return out
}
