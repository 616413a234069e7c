package builtin

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// randomPattern returns a pattern over a few characters that package regexp accepts.
func randomPattern(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "c", "é", ".", "[ab]", "[^a]", "^", "$", `\b`, `\B`, "ab", ""}[r.IntN(13)]
	}
	x, y := randomPattern(r, depth-1), randomPattern(r, depth-1)
	switch r.IntN(8) {
	case 0:
		return "(" + x + ")"
	case 1:
		return "(?:" + x + "|" + y + ")"
	case 2:
		return "(?:" + x + ")*"
	case 3:
		return "(?:" + x + ")+?"
	case 4:
		return "(?:" + x + ")?"
	case 5:
		return "(" + x + "|" + y + "){0,2}"
	}
	return x + y
}

// Goal: the matcher for long texts finds the same leftmost-longest and leftmost-first matches as package regexp,
// including groups. Method: random patterns and texts.
func TestRegexVMAgainstPackageRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 20000 {
		pattern := []string{"", "(?m)", "(?s)", "(?i)"}[r.IntN(4)] + randomPattern(r, 1+r.IntN(4))
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		re := newRegex(compiled, pattern, 0, i%2 == 0)
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString([]string{"a", "b", "c", "é", "\n", "A", " "}[r.IntN(7)])
		}
		text := b.String()
		want := re.FindAllStringSubmatchIndex(text, -1)
		var got [][]int
		vm := newRegexVM(re, re.program(), 2*(re.NumSubexp()+1))
		env := &Env{}
		for pos, end := 0, -1; pos <= len(text); {
			found, err := vm.find(env, text, pos)
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				break
			}
			if m := vm.match; m[1] > m[0] || m[0] != end {
				got = append(got, append([]int{}, m...))
			}
			end = vm.match[1]
			if pos = end; vm.match[1] == vm.match[0] {
				_, width := nextRune(text, pos)
				pos += max(width, 1)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q over %q, longest %v: %v, want %v", pattern, text, re.longest, got, want)
		}
		matched, err := newRegexVM(re, re.program(), 0).find(env, text, 0)
		if err != nil || matched != (want != nil) {
			t.Fatalf("%q over %q: matched %v, %v", pattern, text, matched, err)
		}
	}
}

// Goal: functions return the same results for long texts as for short ones.
func TestRegexLongText(t *testing.T) {
	env := &Env{}
	re, err := CompileRegex(`(x+)(y?)`, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{10, 1 << 20} {
		text := strings.Repeat("é", n) + "xxy" + strings.Repeat("-", n) + "x"
		count := 0
		if err := re.each(env, text, 0, func([]int) (bool, error) { count++; return true, nil }); err != nil || count != 2 {
			t.Errorf("%d characters: %d matches, %v", n, count, err)
		}
		m, err := re.find(env, text)
		if want := []int{2 * n, 2*n + 3, 2 * n, 2*n + 2, 2*n + 2, 2*n + 3}; err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%d characters: %v, want %v; %v", n, m, want, err)
		}
	}
}

// Goal: a long match ends when the statement is cancelled.
func TestRegexCancel(t *testing.T) {
	re, err := CompileRegex(`(a|b|ab)*(a?){200}c`, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	begin := time.Now()
	_, err = re.matches(&Env{Ctx: ctx}, strings.Repeat("ab", 10<<20)) // takes half an hour
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Fatalf("ended after %v", took)
	}
}

// Goal: word boundaries match according to the definition, at any position of a pattern. Method: random texts with
// non-ASCII letters, short and long; compare the numbers of boundaries with a scan of the text.
func TestWordBoundaries(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, c := range []struct {
		pattern string
		holds   func(was, is bool) bool
	}{
		{`\m`, func(was, is bool) bool { return !was && is }},
		{`[[:<:]]`, func(was, is bool) bool { return !was && is }},
		{`(?:\M|x\m)`, func(was, is bool) bool { return was && !is }},
		{`[[:>:]]`, func(was, is bool) bool { return was && !is }},
		{`\y`, func(was, is bool) bool { return was != is }},
		{`\Y`, func(was, is bool) bool { return was == is }},
	} {
		re, err := CompileRegex(c.pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			var b strings.Builder
			for range r.IntN(1 + n*n/10) {
				b.WriteString([]string{"a", "é", "語", "_", "7", " ", "-", "½", "\n"}[r.IntN(9)])
			}
			text, want := b.String(), 0
			was := false
			for _, char := range text + "\n" {
				is := char == 'a' || char == 'é' || char == '語' || char == '_' || char == '7'
				if c.holds(was, is) {
					want++
				}
				was = is
			}
			got := 0
			err := re.each(&Env{}, text, 0, func([]int) (bool, error) { got++; return true, nil })
			if err != nil || got != want {
				t.Fatalf("%s in %q: %d, %v, want %d", c.pattern, text, got, err, want)
			}
		}
	}
}
