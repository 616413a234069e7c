package are

import (
	"encoding/binary"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// runeSet is a set of characters: ranges in order, without overlap, two entries each. It does not change.
type runeSet []rune

// The classes of characters, as tokens name them.
const (
	classDigit int32 = iota
	classSpace
	classWord
)

// canonical sorts and merges ranges.
func canonical(ranges []rune) runeSet {
	type span struct{ lo, hi rune }
	spans := make([]span, 0, len(ranges)/2)
	for i := 0; i < len(ranges); i += 2 {
		spans = append(spans, span{ranges[i], ranges[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo) - int(b.lo) })
	out := runeSet{}
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.hi)
			continue
		}
		out = append(out, s.lo, s.hi)
	}
	return out
}

// complement returns all other characters.
func (s runeSet) complement() runeSet {
	out := runeSet{}
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, next, utf8.MaxRune)
	}
	return out
}

// key returns bytes that differ for different sets.
func (s runeSet) key() []byte {
	key := make([]byte, 0, 4*len(s))
	for _, r := range s {
		key = binary.BigEndian.AppendUint32(key, uint32(r))
	}
	return key
}

// tableSet converts tables of package unicode.
func tableSet(tables ...*unicode.RangeTable) []rune {
	var out []rune
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, r, r)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return out
}

// classes are the character classes by name, in terms of Unicode as the C library classifies it.
var classes = sync.OnceValue(func() map[string]runeSet {
	word := append(tableSet(unicode.L, unicode.Nd, unicode.Nl), '_', '_')
	visible := append(tableSet(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S), '!', '~')
	m := map[string][]rune{
		"alpha": tableSet(unicode.L), "alnum": tableSet(unicode.L, unicode.Nd), "digit": {'0', '9'},
		"lower": tableSet(unicode.Ll), "upper": tableSet(unicode.Lu),
		"space": {'\t', '\r', ' ', ' ', 0x85, 0x85, 0x1680, 0x1680, 0x2000, 0x2006, 0x2008, 0x200a, 0x2028, 0x2029, 0x205f, 0x205f, 0x3000, 0x3000},
		"punct": append(tableSet(unicode.P, unicode.S), '!', '/', ':', '@', '[', '`', '{', '~'),
		"blank": {'\t', '\t', ' ', ' '}, "cntrl": {0, 0x1f, 0x7f, 0x7f}, "xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
		"graph": visible, "print": append(slices.Clone(visible), ' ', ' '), "word": word, "ascii": {0, 0x7f},
	}
	out := map[string]runeSet{}
	for name, ranges := range m {
		out[name] = canonical(ranges)
	}
	return out
})

func classSet(class int32) runeSet {
	return classes()[map[int32]string{classDigit: "digit", classSpace: "space", classWord: "word"}[class]]
}

// classComplements are the characters outside of each class that tokens name.
var classComplements = sync.OnceValue(func() map[int32]runeSet {
	out := map[int32]runeSet{}
	for _, class := range []int32{classDigit, classSpace, classWord} {
		out[class] = classSet(class).complement()
	}
	return out
})

// casedRunes are all characters that have another case, in order.
var casedRunes = sync.OnceValue(func() (out []rune) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.ToLower(r) != r || unicode.ToUpper(r) != r {
			out = append(out, r)
		}
	}
	return out
})

// foldRune returns the characters that a character of a pattern matches regardless of case.
func foldRune(r rune) []rune {
	if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); lower != upper {
		return []rune{lower, lower, upper, upper}
	}
	return []rune{r, r}
}

// foldRange adds the other cases of the characters in a range.
func foldRange(lo, hi rune) []rune {
	out := []rune{lo, hi}
	cased := casedRunes()
	i, _ := slices.BinarySearch(cased, lo)
	for ; i < len(cased) && cased[i] <= hi; i++ {
		out = append(out, foldRune(cased[i])...)
	}
	return out
}

// elementNames are the collating elements of POSIX that have a name.
var elementNames = map[string]rune{
	"NUL": 0, "SOH": 1, "STX": 2, "ETX": 3, "EOT": 4, "ENQ": 5, "ACK": 6, "BEL": 7, "alert": 7, "BS": 8, "backspace": 8, "HT": 9, "tab": 9,
	"LF": 10, "newline": 10, "VT": 11, "vertical-tab": 11, "FF": 12, "form-feed": 12, "CR": 13, "carriage-return": 13, "SO": 14, "SI": 15,
	"DLE": 16, "DC1": 17, "DC2": 18, "DC3": 19, "DC4": 20, "NAK": 21, "SYN": 22, "ETB": 23, "CAN": 24, "EM": 25, "SUB": 26, "ESC": 27,
	"IS4": 28, "FS": 28, "IS3": 29, "GS": 29, "IS2": 30, "RS": 30, "IS1": 31, "US": 31, "space": ' ', "exclamation-mark": '!',
	"quotation-mark": '"', "number-sign": '#', "dollar-sign": '$', "percent-sign": '%', "ampersand": '&', "apostrophe": '\'',
	"left-parenthesis": '(', "right-parenthesis": ')', "asterisk": '*', "plus-sign": '+', "comma": ',', "hyphen": '-', "hyphen-minus": '-',
	"period": '.', "full-stop": '.', "slash": '/', "solidus": '/', "zero": '0', "one": '1', "two": '2', "three": '3', "four": '4',
	"five": '5', "six": '6', "seven": '7', "eight": '8', "nine": '9', "colon": ':', "semicolon": ';', "less-than-sign": '<',
	"equals-sign": '=', "greater-than-sign": '>', "question-mark": '?', "commercial-at": '@', "left-square-bracket": '[',
	"backslash": '\\', "reverse-solidus": '\\', "right-square-bracket": ']', "circumflex": '^', "circumflex-accent": '^',
	"underscore": '_', "low-line": '_', "grave-accent": '`', "left-brace": '{', "left-curly-bracket": '{', "vertical-line": '|',
	"right-brace": '}', "right-curly-bracket": '}', "tilde": '~', "DEL": 0x7f,
}

// element returns the character that a collating element names.
func element(name string) rune {
	if r, n := utf8.DecodeRuneInString(name); n > 0 && n == len(name) {
		return r
	}
	r, ok := elementNames[name]
	if !ok {
		fail(errCollate)
	}
	return r
}
