package builtin

import "strings"

// metaphone makes the code of how an English word sounds: its consonants, with X for SH and 0 for TH, and a vowel at its beginning.
type metaphone struct {
	word string // in upper case
	max  int
	out  []byte
}

// at returns the letter at a place, 0 beyond the word.
func (m *metaphone) at(i int) byte {
	if i < 0 || i >= len(m.word) {
		return 0
	}
	return m.word[i]
}

func (m *metaphone) put(code string) {
	for i := 0; i < len(code) && len(m.out) < m.max; i++ {
		m.out = append(m.out, code[i])
	}
}

func oneOf(c byte, letters string) bool { return c != 0 && strings.IndexByte(letters, c) >= 0 }
func vowel(c byte) bool                 { return oneOf(c, "AEIOU") }
func softens(c byte) bool               { return oneOf(c, "EIY") }

// code returns the code.
func (m *metaphone) code() string {
	i := 0
	for i < len(m.word) && !isLetter(m.word[i]) {
		i++
	}
	if i == len(m.word) {
		return ""
	}
	for i += m.begin(i); i < len(m.word) && len(m.out) < m.max; i++ {
		c := m.at(i)
		if !isLetter(c) || c == m.at(i-1) && c != 'C' {
			continue
		}
		i += m.letter(i, c)
	}
	return string(m.out)
}

// begin takes the letters at the beginning of a word that sound differently there, and returns their number.
func (m *metaphone) begin(i int) int {
	c, next := m.at(i), m.at(i+1)
	switch {
	case c == 'A' && next == 'E':
		m.put("E")
		return 2
	case oneOf(c, "GKP") && next == 'N':
		m.put("N")
		return 2
	case c == 'X':
		m.put("S")
		return 1
	case vowel(c):
		m.put(string(c))
		return 1
	case c == 'W' && next == 'R':
		m.put("R")
		return 2
	case c == 'W' && next == 'H':
		m.put("H")
		return 2
	case c == 'W' && vowel(next):
		m.put("W")
		return 2
	case c == 'W':
		return 1
	}
	return 0
}

// letter takes the letter c, which is at i, and returns the number of letters behind it that belong to it.
func (m *metaphone) letter(i int, c byte) int {
	last, next, after := m.at(i-1), m.at(i+1), m.at(i+2)
	switch c {
	case 'B':
		if last != 'M' {
			m.put("B")
		}
	case 'C':
		return m.letterC(last, next, after)
	case 'D':
		if next == 'G' && softens(after) {
			m.put("J")
			return 1
		}
		m.put("T")
	case 'G':
		return m.letterG(i, last, next, after)
	case 'H':
		if vowel(next) && !oneOf(last, "CGPST") {
			m.put("H")
		}
	case 'K':
		if last != 'C' {
			m.put("K")
		}
	case 'P':
		if next == 'H' {
			m.put("F")
		} else {
			m.put("P")
		}
	case 'Q':
		m.put("K")
	case 'S':
		return m.letterS(next, after)
	case 'T':
		return m.letterT(next, after)
	case 'V':
		m.put("F")
	case 'W', 'Y':
		if vowel(next) {
			m.put(string(c))
		}
	case 'X':
		m.put("KS")
	case 'Z':
		m.put("S")
	case 'F', 'J', 'L', 'M', 'N', 'R':
		m.put(string(c))
	}
	return 0
}

func (m *metaphone) letterC(last, next, after byte) int {
	switch {
	case softens(next) && next == 'I' && after == 'A':
		m.put("X")
	case softens(next):
		if last != 'S' {
			m.put("S")
		}
	case next == 'H' && (after == 'R' || last == 'S'):
		m.put("K")
		return 1
	case next == 'H':
		m.put("X")
		return 1
	default:
		m.put("K")
	}
	return 0
}

func (m *metaphone) letterG(i int, last, next, after byte) int {
	switch {
	case next == 'H':
		if !oneOf(m.at(i-3), "BDH") && m.at(i-4) != 'H' {
			m.put("F")
			return 1
		}
	case next == 'N':
		if isLetter(after) && (after != 'E' || m.at(i+3) != 'D') {
			m.put("K")
		}
	case softens(next) && last != 'G':
		m.put("J")
	default:
		m.put("K")
	}
	return 0
}

func (m *metaphone) letterS(next, after byte) int {
	switch {
	case next == 'I' && (after == 'O' || after == 'A'):
		m.put("X")
	case next == 'H':
		m.put("X")
		return 1
	case next == 'C' && after == 'H':
		m.put("SK")
		return 2
	default:
		m.put("S")
	}
	return 0
}

func (m *metaphone) letterT(next, after byte) int {
	switch {
	case next == 'I' && (after == 'O' || after == 'A'):
		m.put("X")
		return 0
	case next == 'H':
		m.put("0")
		return 1
	}
	m.put("T")
	return 0
}
