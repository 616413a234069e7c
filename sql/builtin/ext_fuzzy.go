package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// unaccentFuncs declares the functions of unaccent.
func unaccentFuncs() []decl {
	return []decl{
		{sig: "unaccent(text) text", flags: stable, fn: textMap(textsearch.Unaccent)},
		{sig: "unaccent(regdictionary,text) text", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			d, err := env.dictionary(a[0])
			if err != nil {
				return types.Null, err
			}
			return mapPieces(env, a[1].Text(), 8, func(s string) string {
				if words, _ := d.Lexize(s); len(words) > 0 {
					return words[0]
				}
				return s
			})
		}},
	}
}

// fuzzyFuncs declares the functions of fuzzystrmatch.
func fuzzyFuncs() []decl {
	return []decl{
		{sig: "soundex(text) text", fn: text1(soundex)}, {sig: "text_soundex(text) text", fn: text1(soundex)},
		{sig: "difference(text,text) int4", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			x, y := soundex(a.Text()), soundex(b.Text())
			same := 0
			for i := 0; i < soundexLength && i < len(x) && i < len(y); i++ {
				if x[i] == y[i] {
					same++
				}
			}
			if x == "" && y == "" {
				same = soundexLength
			}
			return types.Int(int64(same)), nil
		})},
		{sig: "levenshtein(text,text) int4", fn: levenshteinFunc(0)}, {sig: "levenshtein(text,text,int4,int4,int4) int4", fn: levenshteinFunc(3)},
		{sig: "levenshtein_less_equal(text,text,int4) int4", fn: levenshteinFunc(1)},
		{sig: "levenshtein_less_equal(text,text,int4,int4,int4,int4) int4", fn: levenshteinFunc(4)},
		{sig: "metaphone(text,int4) text", fn: metaphoneFunc},
		{sig: "dmetaphone(text) text", fn: text1(func(s string) string {
			primary, _ := doubleMetaphone(s)
			return primary
		})},
		{sig: "dmetaphone_alt(text) text", fn: text1(func(s string) string {
			_, secondary := doubleMetaphone(s)
			return secondary
		})},
	}
}

const soundexLength = 4

// soundexDigits are the digits of the letters A to Z; 0: none.
const soundexDigits = "01230120022455012623010202"

// soundex returns the first letter of a text and the digits of those that follow and differ from the character before them.
func soundex(s string) string {
	start := strings.IndexFunc(s, func(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) })
	if start < 0 {
		return ""
	}
	digit := func(c byte) byte {
		if isLetter(c) {
			return soundexDigits[c&^0x20-'A']
		}
		return c
	}
	out := []byte{s[start] &^ 0x20}
	for i := start + 1; i < len(s) && len(out) < soundexLength; i++ {
		if d := digit(s[i]); isLetter(s[i]) && d != digit(s[i-1]) && d != '0' {
			out = append(out, d)
		}
	}
	return string(append(out, "000"[:soundexLength-len(out)]...))
}

// maxLevenshtein is the greatest number of characters that are compared.
const maxLevenshtein = 255

// levenshteinFunc adapts levenshtein to a call with so many arguments behind the texts: the costs of an insertion, a deletion and a substitution
// are three of them, and the greatest distance of interest another.
func levenshteinFunc(more int) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		x, y := []rune(a[0].Text()), []rune(a[1].Text())
		if len(x) > maxLevenshtein || len(y) > maxLevenshtein {
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "levenshtein argument exceeds maximum length of %d characters", maxLevenshtein)
		}
		costs := [3]int32{1, 1, 1}
		if more >= 3 {
			for i := range costs {
				costs[i] = int32(a[2+i].Int())
			}
		}
		if err := env.Step(len(x) * len(y)); err != nil {
			return types.Null, err
		}
		d := levenshtein(x, y, costs[0], costs[1], costs[2])
		if more == 1 || more == 4 {
			if limit := int32(a[len(a)-1].Int()); limit >= 0 && d > limit && len(x) > 0 && len(y) > 0 {
				d = limit + 1
			}
		}
		return types.Int(int64(d)), nil
	}
}

// levenshtein returns the least cost of changing x to y. Costs overflow as PostgreSQL's do.
func levenshtein(x, y []rune, insert, remove, substitute int32) int32 {
	row := make([]int32, len(x)+1)
	for i := 1; i < len(row); i++ {
		row[i] = row[i-1] + remove
	}
	for _, c := range y {
		diagonal := row[0]
		row[0] += insert
		for i, d := range x {
			best := diagonal
			if c != d {
				best += substitute
			}
			diagonal = row[i+1]
			row[i+1] = min(best, row[i]+remove, diagonal+insert)
		}
	}
	return row[len(x)]
}

// maxMetaphone is the length of the longest text, and of the longest result, in bytes.
const maxMetaphone = 255

func metaphoneFunc(_ *Env, a []types.Datum) (types.Datum, error) {
	s, n := a[0].Text(), a[1].Int()
	switch {
	case s == "":
		return types.Text(""), nil
	case len(s) > maxMetaphone:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "argument exceeds the maximum length of %d bytes", maxMetaphone)
	case n > maxMetaphone:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "output exceeds the maximum length of %d bytes", maxMetaphone)
	case n <= 0:
		return types.Null, pgerror.New("2200F", "output cannot be empty string")
	}
	m := metaphone{word: asciiUpper(s), max: int(n)}
	return types.Text(m.code()), nil
}
