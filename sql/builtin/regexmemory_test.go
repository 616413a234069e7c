package builtin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/types"
)

// Goal: regular expressions and their automata count in the session's memory, as long as the session keeps them. Method: patterns
// with large automata, many of them, in an account with plenty and one with little.
func TestRegexMemoryIsCounted(t *testing.T) {
	text := strings.Repeat("ab", 4000)
	pattern := func(i int) string { return fmt.Sprintf("(a|b)*a(a|b){%d}c", 100+i) }
	account := memory.NewAccount(memory.NewPool("a test", 64<<20), 0)
	env := &Env{Memory: &account}
	largest := int64(0)
	for i := range 100 {
		re, err := env.patterns.regex(env, pattern(i), regexOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := re.matches(env, text); err != nil {
			t.Fatal(err)
		}
		total := 0
		for key, kept := range env.patterns.regexes {
			total += len(key.pattern) + kept.re.Bytes()
		}
		if n := account.Used(); n != int64(total) || n != int64(env.patterns.regexBytes) {
			t.Fatalf("%d bytes are counted for %d that are kept", n, total)
		}
		largest = max(largest, account.Used())
	}
	if largest < 1<<20 || largest > maxRegexBytes+2<<20 {
		t.Errorf("at most %d bytes were counted", largest)
	}
	env.patterns.dropRegexes(env)
	if n := account.Used(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
	little := memory.NewAccount(memory.NewPool("a test", 64<<10), 0)
	env = &Env{Memory: &little}
	re, err := env.patterns.regex(env, pattern(0), regexOptions{})
	if err == nil {
		_, err = re.matches(env, text)
	}
	var exceeded *memory.ExceededError
	if !errors.As(err, &exceeded) || little.Used() != 0 {
		t.Errorf("with little memory: %v, %d bytes counted", err, little.Used())
	}
}

// Goal: the arrays of all matches count, however many groups each has.
func TestRegexMatchesMemoryIsCounted(t *testing.T) {
	account := memory.NewAccount(memory.NewPool("a test", 16<<20), 0)
	args := []types.Datum{types.Text(strings.Repeat("a", 10_000)), types.Text("a" + strings.Repeat("(b)?", 500)), types.Text("g")}
	_, err := openRegexMatches(&Env{Memory: &account}, args)
	var exceeded *memory.ExceededError
	if !errors.As(err, &exceeded) {
		t.Errorf("answered with %v", err)
	}
}
