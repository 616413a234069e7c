package are

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// budget is a Poller that ends after a number of steps.
type budget struct{ left int }

func (b *budget) Step(n int) error {
	if b.left -= n; b.left < 0 {
		return errors.New("too many steps")
	}
	return nil
}

// Goal: a search ends when its poller says so. Method: a long text, with and without back references.
func TestSearchEnds(t *testing.T) {
	for _, pattern := range []string{"a*b", `(a+)b\1c`} {
		re, err := Compile(pattern, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := re.Find(strings.Repeat("a", 100_000), 0, true, &budget{1000}); err == nil {
			t.Errorf("the search for %q was not ended", pattern)
		}
	}
}

// Goal: no pattern panics or runs without an end, and a match lies in the text with its groups. Method: patterns and texts of the
// fuzzer, with a bound on the steps.
func FuzzFind(f *testing.F) {
	f.Add("(a|ab)(c|bcd)*", "abcd", uint16(0))
	f.Add(`(?<=\y(\w))[^a-c]{1,3}?\1$`, "a ß b", uint16(1))
	f.Add(`***:(?ix)[[:alpha:]] +# x`, "aB", uint16(8))
	f.Fuzz(func(t *testing.T, pattern, text string, flags uint16) {
		if len(pattern) > 200 || len(text) > 200 || !utf8.ValidString(text) {
			return
		}
		re, err := Compile(pattern, Flags(flags)&(Quote<<1-1))
		if err != nil {
			return
		}
		m, err := re.Find(text, 0, true, &budget{1 << 24})
		if err != nil || m == nil {
			return
		}
		for i := 0; i < len(m); i += 2 {
			if m[i] > m[i+1] || m[i] >= 0 && (m[i+1] > m[1] && i == 0 || m[i+1] > len(text)) || (m[i] < 0) != (m[i+1] < 0) {
				t.Fatalf("pattern %q text %q: positions %v", pattern, text, m)
			}
		}
	})
}

// Goal: the rules of choice hold. Method: examples of each rule, with the positions of the match and its groups.
func TestChoice(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{"a|ab|abc", "abcd", "1,4"},                      // alternatives: the longest
		{"XY*?Z?", "XYYZ", "1,2"},                        // the first preference counts for the whole
		{"X(?:Y*Z*?)", "XYYZ", "1,5"},                    //
		{"(a|ab)(c|bcd)(d*)", "abcd", "1,5 1,3 3,4 4,5"}, // earlier parts take more
		{"(a*?)(a*)", "aaa", "1,1 1,1 1,1"},              // and less, if they prefer it
		{`(.)\1`, "abccd", "3,5 3,4"},                    //
		{`(\w+) \1`, "the the cat", "1,8 1,4"},           //
		{"(?<=a)b", "bab", "3,4"},                        //
		{"a(?!b)", "abac", "3,4"},                        //
		{`\mb\w*`, "ab bc", "4,6"},                       //
		{"()*", "", "1,1 1,1"},                           // one empty iteration sets captures
		{"(a*)+", "aa", "1,3 3,3"},                       // the last iteration counts
		{"(?i)ÄÖ", "äö", "1,3"},                          //
		{`***=a.b`, "xa.b", "2,5"},                       //
		{"x", "y", "no match"},
		{"a**", "", errRepeat.Error()}, {"(a", "", errParen.Error()}, {"a)", "", errParen.Error()}, {"[a", "", errBracket.Error()},
		{"a{2", "", errBrace.Error()}, {"a{2,1}", "", errBounds.Error()}, {"a{256}", "", errBounds.Error()}, {`a\`, "", errEscape.Error()},
		{`\1`, "", errBackref.Error()}, {"[b-a]", "", errRange.Error()}, {"[[:x:]]", "", errClass.Error()}, {"[[.xx.]]", "", errCollate.Error()},
		{"(?z)a", "", errOption.Error()}, {"***a", "", errRepeat.Error()}, {"***?", "", errPattern.Error()},
		{"((((a{255}){255}){255}){255})", "", errTooBig.Error()},
	} {
		if got := find(t, c.pattern, c.text, ""); got != c.want {
			t.Errorf("pattern %q text %q: got %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}
