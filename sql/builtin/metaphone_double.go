package builtin

import "strings"

// doubleMetaphone is Lawrence Philips' Double Metaphone, as the extension fuzzystrmatch computes it: two codes of at most four letters for how
// a word may sound, the second for another pronunciation. It works on bytes: only letters of ASCII are known, and Ç and Ñ of Latin-1.
func doubleMetaphone(s string) (primary, secondary string) {
	d := &dmetaphone{text: strings.Map(upperASCII, s) + "     ", last: len(s) - 1}
	d.slavic = strings.ContainsAny(d.text, "WK") || strings.Contains(d.text, "CZ")
	if d.at(0, "GN", "KN", "PN", "WR", "PS") {
		d.pos++ // The first letter is silent.
	}
	if d.letter(0) == 'X' { // as in Xavier
		d.code("S")
		d.pos++
	}
	for d.pos <= d.last && (len(d.primary) < metaphoneLength || len(d.secondary) < metaphoneLength) {
		d.next()
	}
	return string(d.primary[:min(len(d.primary), metaphoneLength)]), string(d.secondary[:min(len(d.secondary), metaphoneLength)])
}

// metaphoneLength is the length of a code.
const metaphoneLength = 4

func upperASCII(r rune) rune {
	if 'a' <= r && r <= 'z' {
		return r - 'a' + 'A'
	}
	return r
}

// dmetaphone is the state of doubleMetaphone.
type dmetaphone struct {
	text               string // in upper case, with blanks behind it
	pos, last          int
	slavic             bool // it looks Slavic or Germanic
	primary, secondary []byte
}

// letter returns the byte at a place, 0 outside of the text.
func (d *dmetaphone) letter(i int) byte {
	if i < 0 || i >= len(d.text) {
		return 0
	}
	return d.text[i]
}

func (d *dmetaphone) vowel(i int) bool {
	c := d.letter(i)
	return c != 0 && strings.IndexByte("AEIOUY", c) >= 0
}

// at reports whether one of some words is at a place.
func (d *dmetaphone) at(i int, words ...string) bool {
	if i < 0 || i >= len(d.text) {
		return false
	}
	for _, w := range words {
		if strings.HasPrefix(d.text[i:], w) {
			return true
		}
	}
	return false
}

// here is at from the current letter on.
func (d *dmetaphone) here(offset int, words ...string) bool { return d.at(d.pos+offset, words...) }

// oneOf reports whether the letter at an offset from the current one is one of some.
func (d *dmetaphone) oneOf(offset int, letters string) bool {
	c := d.letter(d.pos + offset)
	return c != 0 && strings.IndexByte(letters, c) >= 0
}

// code appends to both codes.
func (d *dmetaphone) code(s string) { d.codes(s, s) }

func (d *dmetaphone) codes(primary, secondary string) {
	d.primary, d.secondary = append(d.primary, primary...), append(d.secondary, secondary...)
}

// single moves over the current letter, and over the next one if it is one of some.
func (d *dmetaphone) single(doubled string) {
	if d.oneOf(1, doubled) {
		d.pos++
	}
	d.pos++
}

// plainCodes are those of letters whose sound does not depend on others, but that are doubled.
var plainCodes = map[byte]string{'B': "P", 'F': "F", 'K': "K", 'N': "N", 'Q': "K", 'V': "F"}

// next encodes the current letter, with the ones after it that it is pronounced with.
func (d *dmetaphone) next() {
	c := d.letter(d.pos)
	if code, ok := plainCodes[c]; ok {
		d.code(code)
		d.single(string(c))
		return
	}
	switch c {
	case 'A', 'E', 'I', 'O', 'U', 'Y':
		if d.pos == 0 {
			d.code("A")
		}
		d.pos++
	case 0xC7: // Ç
		d.code("S")
		d.pos++
	case 0xD1: // Ñ
		d.code("N")
		d.pos++
	case 'C':
		d.letterC()
	case 'D':
		d.letterD()
	case 'G':
		d.letterG()
	case 'H':
		d.letterH()
	case 'J':
		d.letterJ()
	case 'L':
		d.letterL()
	case 'M':
		d.letterM()
	case 'P':
		d.letterP()
	case 'R':
		d.letterR()
	case 'S':
		d.letterS()
	case 'T':
		d.letterT()
	case 'W':
		d.letterW()
	case 'X':
		d.letterX()
	case 'Z':
		d.letterZ()
	default:
		d.pos++
	}
}

// take appends codes and moves on.
func (d *dmetaphone) take(letters int, primary, secondary string) {
	d.codes(primary, secondary)
	d.pos += letters
}

func (d *dmetaphone) germanic() bool { return d.at(0, "VAN ", "VON ", "SCH") }

func (d *dmetaphone) letterC() {
	switch {
	case d.pos > 1 && !d.vowel(d.pos-2) && d.here(-1, "ACH") && !d.oneOf(2, "I") && (!d.oneOf(2, "E") || d.here(-2, "BACHER", "MACHER")):
		d.take(2, "K", "K")
	case d.pos == 0 && d.here(0, "CAESAR"):
		d.take(2, "S", "S")
	case d.here(0, "CHIA"):
		d.take(2, "K", "K")
	case d.here(0, "CH"):
		d.lettersCH()
	case d.here(0, "CZ") && !d.here(-2, "WICZ"):
		d.take(2, "S", "X")
	case d.here(1, "CIA"):
		d.take(3, "X", "X")
	case d.here(0, "CC") && !(d.pos == 1 && d.letter(0) == 'M'):
		d.lettersCC()
	case d.here(0, "CK", "CG", "CQ"):
		d.take(2, "K", "K")
	case d.here(0, "CIO", "CIE", "CIA"):
		d.take(2, "S", "X")
	case d.here(0, "CI", "CE", "CY"):
		d.take(2, "S", "S")
	case d.here(1, " C", " Q", " G"): // Mac Gregor
		d.take(3, "K", "K")
	case d.oneOf(1, "CKQ") && !d.here(1, "CE", "CI"):
		d.take(2, "K", "K")
	default:
		d.take(1, "K", "K")
	}
}

func (d *dmetaphone) lettersCH() {
	first := d.pos == 0
	switch {
	case !first && d.here(0, "CHAE"): // Michael
		d.take(2, "K", "X")
	case first && d.here(1, "HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM") && !d.at(0, "CHORE"): // Greek
		d.take(2, "K", "K")
	case d.germanic(), d.here(-2, "ORCHES", "ARCHIT", "ORCHID"), d.oneOf(2, "TS"), (first || d.oneOf(-1, "AOUE")) && d.oneOf(2, "LRNMBHFVW "):
		d.take(2, "K", "K")
	case first:
		d.take(2, "X", "X")
	case d.at(0, "MC"):
		d.take(2, "K", "K")
	default:
		d.take(2, "X", "K")
	}
}

func (d *dmetaphone) lettersCC() {
	switch {
	case !d.oneOf(2, "IEH") || d.here(2, "HU"):
		d.take(2, "K", "K")
	case d.pos == 1 && d.oneOf(-1, "A"), d.here(-1, "UCCEE", "UCCES"): // accident, succeed
		d.take(3, "KS", "KS")
	default: // Italian
		d.take(3, "X", "X")
	}
}

func (d *dmetaphone) letterD() {
	switch {
	case d.here(0, "DGI", "DGE", "DGY"):
		d.take(3, "J", "J")
	case d.here(0, "DG"):
		d.take(2, "TK", "TK")
	case d.here(0, "DT", "DD"):
		d.take(2, "T", "T")
	default:
		d.take(1, "T", "T")
	}
}

func (d *dmetaphone) letterG() {
	switch {
	case d.oneOf(1, "H"):
		d.lettersGH()
	case d.oneOf(1, "N"):
		switch {
		case d.pos == 1 && d.vowel(0) && !d.slavic:
			d.take(2, "KN", "N")
		case !d.here(2, "EY") && !d.slavic:
			d.take(2, "N", "KN")
		default:
			d.take(2, "KN", "KN")
		}
	case d.here(1, "LI") && !d.slavic:
		d.take(2, "KL", "L")
	case d.pos == 0 && d.here(1, "Y", "ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER"):
		d.take(2, "K", "J")
	case d.here(1, "ER", "Y") && !d.at(0, "DANGER", "RANGER", "MANGER") && !d.oneOf(-1, "EI") && !d.here(-1, "RGY", "OGY"):
		d.take(2, "K", "J")
	case d.oneOf(1, "EIY"), d.here(-1, "AGGI", "OGGI"):
		switch {
		case d.germanic(), d.here(1, "ET"):
			d.take(2, "K", "K")
		case d.here(1, "IER "):
			d.take(2, "J", "J")
		default:
			d.take(2, "J", "K")
		}
	default:
		d.code("K")
		d.single("G")
	}
}

func (d *dmetaphone) lettersGH() {
	before := func(n int, letters string) bool { return d.pos >= n && d.oneOf(-n, letters) }
	switch {
	case d.pos > 0 && !d.vowel(d.pos-1):
		d.take(2, "K", "K")
	case d.pos == 0 && d.oneOf(2, "I"):
		d.take(2, "J", "J")
	case d.pos == 0:
		d.take(2, "K", "K")
	case before(2, "BHD"), before(3, "BHD"), before(4, "BH"): // Hugh, bough, Broughton
		d.pos += 2
	case before(3, "CGLRT") && d.oneOf(-1, "U"): // laugh
		d.take(2, "F", "F")
	case !d.oneOf(-1, "I"):
		d.take(2, "K", "K")
	default:
		d.pos += 2
	}
}

func (d *dmetaphone) letterH() {
	if (d.pos == 0 || d.vowel(d.pos-1)) && d.vowel(d.pos+1) {
		d.take(2, "H", "H")
		return
	}
	d.pos++
}

func (d *dmetaphone) letterJ() {
	san := d.at(0, "SAN ")
	switch {
	case san, d.pos == 0 && d.here(0, "JOSE "): // Spanish
		d.take(1, "H", "H")
		return
	case d.here(0, "JOSE"):
		d.take(1, "J", "H")
		return
	case d.pos == 0:
		d.codes("J", "A")
	case d.vowel(d.pos-1) && !d.slavic && d.oneOf(1, "AO"):
		d.codes("J", "H")
	case d.pos == d.last:
		d.codes("J", "")
	case !d.oneOf(1, "LTKSNMBZ") && !d.oneOf(-1, "SKL"):
		d.code("J")
	}
	d.single("J")
}

func (d *dmetaphone) letterL() {
	if !d.oneOf(1, "L") {
		d.take(1, "L", "L")
		return
	}
	spanish := d.pos == d.last-2 && d.here(-1, "ILLO", "ILLA", "ALLE") ||
		(d.at(d.last-1, "AS", "OS") || d.at(d.last, "A", "O")) && d.here(-1, "ALLE")
	if spanish {
		d.take(2, "L", "")
		return
	}
	d.take(2, "L", "L")
}

func (d *dmetaphone) letterM() {
	d.code("M")
	if d.here(-1, "UMB") && (d.pos+1 == d.last || d.here(2, "ER")) { // dumb
		d.pos += 2
		return
	}
	d.single("M")
}

func (d *dmetaphone) letterP() {
	if d.oneOf(1, "H") {
		d.take(2, "F", "F")
		return
	}
	d.code("P")
	d.single("PB")
}

func (d *dmetaphone) letterR() {
	if d.pos == d.last && !d.slavic && d.here(-2, "IE") && !d.here(-4, "ME", "MA") { // French
		d.codes("", "R")
	} else {
		d.code("R")
	}
	d.single("R")
}

func (d *dmetaphone) letterS() {
	switch {
	case d.here(-1, "ISL", "YSL"): // island
		d.pos++
	case d.pos == 0 && d.here(0, "SUGAR"):
		d.take(1, "X", "S")
	case d.here(0, "SH") && d.here(1, "HEIM", "HOEK", "HOLM", "HOLZ"):
		d.take(2, "S", "S")
	case d.here(0, "SH"):
		d.take(2, "X", "X")
	case d.here(0, "SIO", "SIA") && d.slavic:
		d.take(3, "S", "S")
	case d.here(0, "SIO", "SIA"):
		d.take(3, "S", "X")
	case d.oneOf(1, "Z"), d.pos == 0 && d.oneOf(1, "MNLW"):
		d.codes("S", "X")
		d.single("Z")
	case d.here(0, "SC"):
		d.lettersSC()
	default:
		if d.pos == d.last && d.here(-2, "AI", "OI") { // French
			d.codes("", "S")
		} else {
			d.code("S")
		}
		d.single("SZ")
	}
}

func (d *dmetaphone) lettersSC() {
	switch {
	case d.oneOf(2, "H") && d.here(3, "ER", "EN"):
		d.take(3, "X", "SK")
	case d.oneOf(2, "H") && d.here(3, "OO", "UY", "ED", "EM"): // Dutch
		d.take(3, "SK", "SK")
	case d.oneOf(2, "H") && d.pos == 0 && !d.vowel(3) && d.letter(3) != 'W':
		d.take(3, "X", "S")
	case d.oneOf(2, "H"):
		d.take(3, "X", "X")
	case d.oneOf(2, "IEY"):
		d.take(3, "S", "S")
	default:
		d.take(3, "SK", "SK")
	}
}

func (d *dmetaphone) letterT() {
	switch {
	case d.here(0, "TION", "TIA", "TCH"):
		d.take(3, "X", "X")
	case !d.here(0, "TH", "TTH"):
		d.code("T")
		d.single("TD")
	case d.here(2, "OM", "AM"), d.germanic(): // Thomas
		d.take(2, "T", "T")
	default:
		d.take(2, "0", "T")
	}
}

func (d *dmetaphone) letterW() {
	if d.here(0, "WR") {
		d.take(2, "R", "R")
		return
	}
	if d.pos == 0 && d.vowel(1) {
		d.codes("A", "F")
	} else if d.pos == 0 && d.here(0, "WH") {
		d.code("A")
	}
	switch {
	case d.pos == d.last && d.vowel(d.pos-1), d.here(-1, "EWSKI", "EWSKY", "OWSKI", "OWSKY"), d.at(0, "SCH"):
		d.take(1, "", "F")
	case d.here(0, "WICZ", "WITZ"):
		d.take(4, "TS", "FX")
	default:
		d.pos++
	}
}

func (d *dmetaphone) letterX() {
	if !(d.pos == d.last && (d.here(-3, "IAU", "EAU") || d.here(-2, "AU", "OU"))) { // French
		d.code("KS")
	}
	d.single("CX")
}

func (d *dmetaphone) letterZ() {
	switch {
	case d.oneOf(1, "H"): // Chinese
		d.take(2, "J", "J")
		return
	case d.here(1, "ZO", "ZI", "ZA"), d.slavic && d.pos > 0 && !d.oneOf(-1, "T"):
		d.codes("S", "TS")
	default:
		d.code("S")
	}
	d.single("Z")
}
