package are

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Goal: compiling a pattern takes little memory, whatever it says; a pattern that would take more is too complex. Method: patterns
// that describe exponentially or quadratically large expressions, or very many sets of characters, with a bound on what is
// allocated meanwhile, garbage included.
func TestCompileIsBounded(t *testing.T) {
	doubled := "(a)"
	for i := 1; i < 40; i++ {
		doubled += fmt.Sprintf(`(\%d\%d)`, i, i)
	}
	characters := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, string(rune(0x4e00+i)))
		}
		return b.String()
	}
	for _, c := range []struct {
		name, pattern string
		flags         Flags
		complex       bool
	}{
		{"a back reference to a back reference", doubled, 0, true},
		{"nested quantifiers of groups", strings.Repeat("(", 40) + "a" + strings.Repeat(")+", 40) + `\1`, 0, true},
		{"nested bounds", "((((a{200}){200}){200}){200})", 0, true},
		{"nested bounds without captures", "(?:(?:(?:a{255}){255}){255})", 0, true},
		{"bounds of nothing", "(?:(?:(?:(?:){255}){255}){255})", 0, true},
		{"many back references to a long group", "(" + strings.Repeat("a", 20_000) + ")" + strings.Repeat(`\1`, 20_000), 0, true},
		{"a long text", strings.Repeat("a", 250_000), 0, true},
		{"many groups, repeated", "(" + strings.Repeat("(a)", 20_000) + ")*", 0, true},
		{"many groups", strings.Repeat("(a)", 80_000), 0, true},
		{"many alternatives", strings.Repeat("a|", 120_000), 0, true},
		{"many complements", strings.Repeat(`\W`, 30_000), 0, false},
		{"many classes in brackets", strings.Repeat(`[\w]`, 6000), 0, false},
		{"very many classes in brackets", strings.Repeat(`[\w]`, 60_000), 0, true},
		{"many large sets", characters(`[\w%s]`, 20_000), 0, true},
		{"many ranges regardless of case", characters("[b-%s]", 20_000), FoldCase, true},
		{"many characters", characters("%s", 20_000), 0, false},
		{"many nested sets", characters("[%s-\U0010ffff]", 20_000), 0, true},
		{"deep parentheses", strings.Repeat("(", 900) + strings.Repeat("(?:ab)", 10_000) + strings.Repeat(")", 900), 0, false},
		{"many constraints", strings.Repeat("(?=a)", 40_000), 0, false},
		{"an ordinary bound", "^(?:[a-z]{100}){100}$", 0, false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		re, err := Compile(c.pattern, c.flags)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<20 {
			t.Errorf("%s: %d MB were allocated", c.name, n>>20)
		} else {
			t.Logf("%s: %d MB allocated", c.name, n>>20)
		}
		if (err == errTooBig) != c.complex || err != nil && err != errTooBig {
			t.Errorf("%s: %v", c.name, err)
		}
		if re != nil && re.Bytes() > 32<<20 {
			t.Errorf("%s takes %d bytes", c.name, re.Bytes())
		}
	}
}
